// SPDX-License-Identifier: Apache-2.0
// Writes programs and kernels as files: native code, C with a header, or TVMScript, as the ending
// of the file name says.
#include "driver/driver.h"

#include "base/caller.h"
#include "script/script.h"

enum { WEIGHTS_INSIDE = 1 << 20 }; // weights up to this size are part of the code file by default

static bool is_script(const char *path) {
  return text_ends_with(path, ".py");
}

static const TargetRow *target_of(const EmitOptions *options, const char *path) {
  return options->target ? target_find(options->target) : target_for_file(path);
}

// ---- Options that have no effect ----------------------------------------------------------------

typedef struct UnusedOption {
  CallerOption option;
  bool given;
  const char *why; // the option has no effect; NULL: it has one
} UnusedOption;

static bool refuse_unused(Context *context, const char *path, const UnusedOption *rows, int count) {
  bool used = true;
  for (int i = 0; i < count; i++)
    if (rows[i].given && rows[i].why)
      used = diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "%s: %s %s",
                           caller_option(context, rows[i].option), path, rows[i].why);
  return used;
}

// Why a file gets no annotations; NULL when it can have some.
static const char *unannotated(const EmitOptions *options, const char *path) {
  if (is_script(path) && !options->lowered)
    return "is TVMScript as scheduled, and flat accesses are made by lowering; give lowered too";
  static const char *const always[] = {".c", ".cl", ".cu"};
  for (int i = 0; i < COUNT_OF(always); i++)
    if (text_ends_with(path, always[i])) return "is C, which names the logical accesses always";
  bool is_text = is_script(path) || text_ends_with(path, ".ll") || text_ends_with(path, ".s");
  return is_text ? NULL : "is not TVMScript, .ll or .s, which are annotated";
}

static bool options_are_used(Context *context, EmitKind kind, const EmitOptions *options,
                             const char *path) {
  bool script = is_script(path) && kind != EMIT_SAVED;
  const TargetRow *target = script ? NULL : target_of(options, path);
  const char *saved = kind == EMIT_SAVED
                          ? "is a saved model, which holds native code and weights in one file"
                          : NULL;
  const UnusedOption rows[] = {
      {CALLER_TARGET, options->target != NULL,
       script ? "is TVMScript, which no code generator writes" : saved},
      {CALLER_WEIGHTS, options->weights != NULL,
       script                 ? "is TVMScript, which has no weights"
       : kind == EMIT_KERNELS ? "has kernels alone, which have no weights"
                              : saved},
      {CALLER_OPENMP, options->openmp,
       saved                             ? saved
       : target && target->writes_openmp ? NULL
       : text_ends_with(path, ".c")      ? "runs on a device, which has threads of its own"
                                         : "is not C, and parallel loops for -fopenmp are C"},
      {CALLER_LOWERED, options->lowered,
       saved    ? saved
       : script ? NULL
                : "is code; TVMScript alone has a form before the kernels are lowered"},
      {CALLER_ANNOTATE, options->annotate, saved ? saved : unannotated(options, path)},
  };
  return refuse_unused(context, path, rows, COUNT_OF(rows));
}

static bool is_written(Context *context, EmitKind kind, const EmitOptions *options,
                       const char *path) {
  static const char *const first[] = {[CALLER_COMMAND] = ".pleat, ", [CALLER_PYTHON] = ""};
  static const char *const last[] = {[CALLER_COMMAND] = "",
                                     [CALLER_C] = "; pleat_model_save writes a .pleat",
                                     [CALLER_PYTHON] =
                                         "; the save() of a compiled model writes a .pleat"};
  Caller caller = context->caller;
  if (is_script(path)) return true;
  if (options->target && target_for_file(path) && !target_writes(target_of(options, path), path))
    return diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                         "%s %s: this target does not write files like %s; it writes %s",
                         caller_option(context, CALLER_TARGET), options->target, path,
                         target_endings(context, target_of(options, path), false));
  return target_of(options, path) ||
         diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                       "%s: its ending says what to write: %s%s or .py%s", path,
                       first[caller] ? first[caller] : "",
                       target_endings(context, NULL, kind == EMIT_PROGRAM), last[caller]);
}

bool emit_check(Context *context, EmitKind kind, const EmitOptions *options, const char *path) {
  const char *weights = options->weights;
  const TargetRow *target;
  if (weights && strcmp(weights, "inside") != 0 && strcmp(weights, "beside") != 0)
    return diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                         "weights '%s': expected inside or beside", weights);
  return target_named(context, options->target, &target) &&
         (kind == EMIT_SAVED || is_written(context, kind, options, path)) &&
         options_are_used(context, kind, options, path);
}

// ---- TVMScript ----------------------------------------------------------------------------------

static bool write_module(Context *context, const Module *module, bool annotate, const char *path) {
  Text text = text_new(&context->arena);
  script_print_module(context, module, &text, &(ScriptOptions){.annotate = annotate});
  return file_write(context, path, text_string(&text), text.size);
}

// Writes every kernel once, named k0, k1, … as in profiles.
static bool write_program_script(const Program *program, const EmitOptions *options,
                                 const char *path) {
  Context *context = program->context;
  Module *module = module_new(context, "");
  for (int i = 0; i < program->steps.count; i++) {
    const ProgramStep *step = &program->steps.items[i];
    if (step->plan->same_as >= 0) continue;
    PrimFunc *func = step->kernel < 0   ? plan_kernel_func(program->plan, i)
                     : options->lowered ? program->kernels.items[step->kernel]->func
                                        : schedule_func(step->plan->choice.schedule);
    func = prim_func_copy(context, func);
    func->name = step->kernel < 0 ? str_format(context, "call%d", i)
                                  : str_format(context, "k%d", step->kernel);
    module_add_prim(module, func);
  }
  return write_module(context, module, options->annotate, path);
}

static bool write_kernel_script(Context *context, const Kernels *kernels,
                                const EmitOptions *options, const char *path) {
  Module *module = module_new(context, "");
  for (int i = 0; i < kernels->count; i++) module_add_prim(module, kernels->items[i].scheduled);
  return write_module(context, module, options->annotate, path);
}

// ---- Code ---------------------------------------------------------------------------------------

static bool refuse_call(const Program *program, int step) {
  const OpaqueCall *call = program->steps.items[step].plan->call;
  return diag_error_as(program->context, DIAG_UNSUPPORTED,
                       call->node ? call->node->pos : (SourcePos){0},
                       "'%s' is computed by the function '%s', which a file cannot hold; compile "
                       "the model in the process that runs it",
                       call->name, call->function->name);
}

bool emit_program(Program *program, const EmitOptions *options, const char *path) {
  if (!emit_check(program->context, EMIT_PROGRAM, options, path)) return false;
  if (is_script(path)) return write_program_script(program, options, path);
  for (int i = 0; i < program->steps.count; i++)
    if (program->steps.items[i].kernel < 0) return refuse_call(program, i);
  bool beside = options->weights ? !strcmp(options->weights, "beside")
                                 : program->weight_bytes > WEIGHTS_INSIDE;
  TargetProgramOptions write = {.target = {.machine = &program->options.machine,
                                           .kernels = program->target_reports,
                                           .annotate = options->annotate},
                                .weights_beside = beside,
                                .openmp = options->openmp};
  return program_write(program, target_of(options, path), &write, path);
}

static LowerKernel *lower_scheduled(Context *context, Kernel *kernel, const CompileOptions *options,
                                    const TargetRow *target, LowerReport *report) {
  LowerOptions lower = options->lower;
  lower.report = report;
  if (target) lower.device = target_is_device(target);
  PrimFunc *func = lower_prim_func(context, kernel->scheduled, &lower);
  if (!func) return NULL;
  kernel->scheduled = func;
  return lower_kernel_new(context, func, &options->machine);
}

bool emit_kernels(Context *context, Kernels *kernels, const EmitOptions *options,
                  const CompileOptions *compile, TargetReport *reports, const char *path) {
  LowerKernel **lowered = arena_array(&context->arena, LowerKernel *, kernels->count);
  const uint8_t **access = arena_array(&context->arena, const uint8_t *, kernels->count);
  const LowerHost **hosts = arena_array(&context->arena, const LowerHost *, kernels->count);
  LowerReport *lower = compile->lower.report;
  if (!emit_check(context, EMIT_KERNELS, options, path)) return false;
  bool script = is_script(path);
  const TargetRow *target = script ? NULL : target_of(options, path);
  for (int i = 0; i < kernels->count && (!script || options->lowered); i++) {
    access[i] = kernels->items[i].access;
    hosts[i] = kernels->items[i].host;
    lowered[i] = lower_scheduled(context, &kernels->items[i], compile, target,
                                 lower ? &lower[i] : NULL);
    if (!lowered[i]) return false;
  }
  if (script) return write_kernel_script(context, kernels, options, path);
  TargetProgramOptions write = {
      .target = {.machine = &compile->machine, .kernels = reports, .annotate = options->annotate},
      .openmp = options->openmp};
  return kernels_write(context, lowered, access, hosts, kernels->count, target, &write, path);
}
