// SPDX-License-Identifier: Apache-2.0
// Writes whole programs as C: kernels, weights, and for each program a function that runs the steps
// in order. The code allocates no memory: the caller gives inputs, outputs and one arena.
#include "target/c/program.h"

#include "target/checks.h"

// ---- The header --------------------------------------------------------------------------------

static const char *c_title(CProgram *w) {
  const HostMachine *machine = w->options->target.machine;
  return arena_printf(w->arena,
                      "// %s, as C without dependencies. Compile for the machine it was made for:\n"
                      "//   cc -std=gnu11 -O2 %s%s -c %s.c\n// with GCC 12, Clang 14, or later.\n",
                      c_program_title(w), target_level_flags(target_find("c"), machine),
                      w->options->openmp ? " -fopenmp" : "", path_file_name(w->base));
}

static ProgramHeader header_of(CProgram *w) {
  const char *source = path_file_name(w->base);
  const char *weights =
      w->options->weights_beside ? arena_printf(w->arena, "%s.c.weights", source) : NULL;
  return (ProgramHeader){.code = arena_printf(w->arena, "%s.c", source),
                         .name = w->name,
                         .title = w->dialect->title(w),
                         .returns = w->dialect->returns,
                         .weights_file = weights,
                         .arena = w->arena};
}

// ---- Steps -------------------------------------------------------------------------------------

const char *c_program_place(CProgram *w, const TargetArgument *argument) {
  long long offset = (long long)argument->offset;
  switch (argument->place) {
  case TARGET_INPUT: return arena_printf(w->arena, "inputs[%d]", argument->number);
  case TARGET_OUTPUT:
    if (!offset) return arena_printf(w->arena, "outputs[%d]", argument->number);
    return arena_printf(w->arena, "((char *)outputs[%d] + %lld)", argument->number, offset);
  case TARGET_WEIGHTS: return arena_printf(w->arena, "(constants + %lld)", offset);
  case TARGET_SIZE: return arena_printf(w->arena, "&%s", w->sizes[argument->number]);
  case TARGET_ARENA: break;
  }
  return arena_printf(w->arena, "(memory + %lld)", offset);
}

// How many iterations a region has, and in how many chunks they run: constants or names.
typedef struct ChunkTexts {
  const char *count, *chunks;
} ChunkTexts;

static const char *size_text(CProgram *w, CEmit *emit, Expr *e) {
  int64_t value;
  if (expr_as_int(e, &value)) return arena_printf(w->arena, "%lld", (long long)value);
  return c_hold(emit, c_expr(emit, target_legal_size(w->context, e)), DTYPE_INT64);
}

// The first iteration of chunk `chunk`: "task * 7", or "task * 100 / 3" where the chunks differ.
static const char *chunk_begin(CProgram *w, const char *chunk, const LowerRegion *region,
                               const ChunkTexts *texts) {
  int64_t count, chunks;
  bool known = expr_as_int(region->extent, &count) && expr_as_int(region->chunks, &chunks);
  if (known && count == chunks) return chunk;
  if (known && count % chunks == 0)
    return arena_printf(w->arena, "%s * %lld", chunk, (long long)(count / chunks));
  return arena_printf(w->arena, "%s * %s / %s", chunk, texts->count, texts->chunks);
}

static void write_calls(CProgram *w, CEmit *emit, const char *name, const char *arguments,
                        const char *indent) {
  int column = (int)(strlen(indent) + strlen(name)) + 5; // with ");" at the end
  c_line(emit, "%s%s(%s);", indent, name, c_broken(w->arena, arguments, column, 6));
}

static void write_call(CProgram *w, CEmit *emit, const CFunction *function, const char *arguments) {
  const LowerRegion *region = function->region;
  bool serial = expr_is_int(region->chunks, 1) || !w->options->openmp;
  ChunkTexts texts = {size_text(w, emit, region->extent),
                      serial ? "1" : size_text(w, emit, region->chunks)};
  if (serial) {
    arguments = arena_printf(w->arena, "%s0, %s", arguments, texts.count);
    write_calls(w, emit, function->name, arguments, "");
    return;
  }
  bool alone = region->extent == region->chunks;
  const char *begin = chunk_begin(w, "task", region, &texts);
  const char *end = chunk_begin(w, alone ? "task + 1" : "(task + 1)", region, &texts);
  c_line(emit, "PARALLEL");
  c_line(emit, "for (int64_t task = 0; task < %s; task++)", texts.chunks);
  arguments = arena_printf(w->arena, "%s%s, %s", arguments, begin, end);
  write_calls(w, emit, function->name, arguments, "  ");
}

// "*(const bool *)(memory + 64) && !*(const bool *)inputs[0]"
static const char *conditions_of(CProgram *w, const TargetStep *step) {
  const char *all = "";
  for (int i = 0; i < step->condition_count; i++) {
    const TargetCondition *condition = &step->conditions[i];
    all = arena_printf(w->arena, "%s%s%s*(const bool *)%s", all, *all ? " &&\n      " : "",
                       condition->value ? "" : "!", c_program_place(w, &condition->at));
  }
  return all;
}

// Extents and offsets may depend on scalars and sizes.
static void name_scalar(CEmit *emit, const LowerArg *arg, const char *place) {
  if (arg->kind == LOWER_ARG_TENSOR) return;
  const char *type = c_type(emit->module, arg->var->type);
  const char *text = arg->kind == LOWER_ARG_SYMBOL
                         ? place + 1 // without the "&"
                         : arena_printf(emit->arena, "(*(const %s *)%s)", type, place);
  map_put(&emit->vars, arg->var, text);
}

static void write_calls_of_step(CProgram *w, CEmit *emit, const TargetStep *step) {
  CFunction *const *functions = w->made;
  const LowerKernel *kernel = w->program->unit.kernels[step->kernel];
  const char **from = arena_array(w->arena, const char *, kernel->arg_count + 1);
  for (int i = 0; i < kernel->arg_count; i++) {
    from[i] = c_program_place(w, &step->arguments[i]);
    name_scalar(emit, &kernel->args[i], from[i]);
  }
  from[kernel->arg_count] = arena_printf(w->arena, "memory + %lld", (long long)step->workspace);
  for (int i = 0; i < kernel->region_count; i++) {
    const CFunction *function = &functions[step->kernel][i];
    write_call(w, emit, function, c_arguments(emit, function, from));
  }
}

static void write_step(CProgram *w, CEmit *emit, const TargetStep *step) {
  if (step->comment) c_line(emit, "// %s", step->comment);
  if (!step->condition_count) {
    write_calls_of_step(w, emit, step);
    return;
  }
  c_line(emit, "if (%s) {", conditions_of(w, step));
  emit->depth++;
  write_calls_of_step(w, emit, step);
  emit->depth--;
  c_line(emit, "}");
}

static bool c_steps(CProgram *w, CEmit *emit) {
  for (int i = 0; i < w->program->step_count; i++) write_step(w, emit, &w->program->steps[i]);
  return true;
}

static void check_each(CEmit *emit, const char *array, int count) {
  if (!count) return;
  c_line(emit, "if (!%s) return 1;", array);
  c_line(emit, "for (int i = 0; i < %d; i++)", count);
  c_line(emit, "  if (!%s[i]) return 1;", array);
}

static void check_pointers(CProgram *w, CEmit *emit) {
  const TargetProgram *p = w->program;
  if (w->options->weights_beside && p->weight_bytes)
    c_line(emit, "if (!weights || (uintptr_t)weights %% %d) return 1;", TENSOR_ALIGNMENT);
  c_line(emit, "if (%s(uintptr_t)arena %% %d) return 1;",
         expr_is_int(p->arena_bytes, 0) ? "" : "!arena || ", TENSOR_ALIGNMENT);
  check_each(emit, "inputs", p->input_count);
  check_each(emit, "outputs", p->output_count);
}

// Writes what is done with the notes of each kernel's guards; %s is their place in memory, %d their
// number.
static void write_for_guards(CProgram *w, CEmit *emit, const char *format) {
  const TargetProgram *p = w->program;
  for (int i = 0; i < p->step_count; i++) {
    const LowerKernel *kernel = p->unit.kernels[p->steps[i].kernel];
    long long offset = (long long)(p->steps[i].workspace + kernel->guards_offset);
    if (!kernel->guards) continue;
    c_line(emit, "for (int i = 0; i < %d; i++)", kernel->guards->count);
    c_line(emit, format, offset);
  }
}

// Names that the text of the function has beside those of its variables.
static void reserve_names(CEmit *emit) {
  static const char *const names[] = {"inputs", "outputs", "sizes", "arena",    "memory",
                                      "task",   "weights", "i",     "constants"};
  for (int i = 0; i < COUNT_OF(names); i++) c_name(emit, names[i]);
}

// Gives each size a variable of its type.
static void write_sizes(CProgram *w, CEmit *emit) {
  w->sizes = arena_array(w->arena, const char *, w->program->size_count + 1);
  for (int i = 0; i < w->program->size_count; i++) {
    const Expr *var = w->program->sizes[i].var;
    w->sizes[i] = c_name(emit, var->as.var->name);
    c_line(emit, "const %s %s = sizes[%d];", c_type(emit->module, var->type), w->sizes[i], i);
    c_line(emit, "(void)%s;", w->sizes[i]);
  }
}

static void write_arena_bytes(CProgram *w, const ProgramHeader *header, CModule *module,
                              Text *out) {
  const TargetProgram *p = w->program;
  int64_t known;
  if (expr_as_int(p->arena_bytes, &known)) return;
  CEmit emit = c_emit_new(module);
  Expr **sizes = arena_array(w->arena, Expr *, p->size_count + 1);
  for (int i = 0; i < p->size_count; i++) {
    sizes[i] = expr_var(w->context, p->sizes[i].var->as.var->name, DTYPE_INT64);
    map_put(&emit.vars, sizes[i], arena_printf(w->arena, "sizes[%d]", i));
  }
  emit.in_index = true; // the bytes are computed where nothing overflows
  c_line(&emit, "return %s;", c_text(&emit, target_arena_bytes(w->context, p, sizes)));
  target_header_arena(header, p, out);
  text_printf(out, " {\n%s}\n\n", text_string(&emit.body));
}

static bool write_run(CProgram *w, const ProgramHeader *header, CModule *module, Text *out) {
  const TargetProgram *p = w->program;
  CEmit emit = c_emit_new(module);
  reserve_names(&emit);
  check_pointers(w, &emit);
  write_sizes(w, &emit);
  c_line(&emit, "const char *constants = (const char *)%s;",
         w->options->weights_beside || !p->weight_bytes ? (p->weight_bytes ? "weights" : "arena")
                                                        : "weight_words");
  c_line(&emit, "char *memory = arena;");
  c_line(&emit, "(void)constants, (void)memory%s;",
         w->options->weights_beside ? ", (void)weights" : "");
  write_for_guards(w, &emit, "  ((int64_t *)(memory + %lld))[2 * i + 1] = 0;");
  if (!w->dialect->steps(w, &emit)) return false;
  write_for_guards(w, &emit, "  if (((int64_t *)(memory + %lld))[2 * i + 1]) return 2;");
  c_line(&emit, "return 0;");
  write_arena_bytes(w, header, module, out);
  target_header_run(header, p, out);
  text_printf(out, " {\n%s}\n", text_string(&emit.body));
  return true;
}

// ---- Weights -----------------------------------------------------------------------------------

static void write_words(CProgram *w, Text *out) {
  const uint8_t *bytes = w->program->weights;
  int64_t size = w->program->weight_bytes, count = (size + 3) / 4;
  text_printf(out,
              "\ntypedef uint32_t word __attribute__((may_alias));\n"
              "static const word weight_words[%lld] __attribute__((aligned(%d))) = {",
              (long long)count, TENSOR_ALIGNMENT);
  for (int64_t i = 0; i < count; i++) {
    uint32_t word = 0;
    memcpy(&word, bytes + 4 * i, (size_t)MIN_OF(size - 4 * i, 4));
    text_printf(out, "%s0x%x,", i % 10 ? " " : "\n  ", word);
  }
  text_puts(out, "\n};\n");
}

// Only a file's only program has weights.
static bool write_weights(CProgram *w, Text *source) {
  if (!w->program->weight_bytes) return true;
  if (!w->options->weights_beside) {
    write_words(w, source);
    return true;
  }
  return file_set_write(w->files, arena_printf(w->arena, "%s.c.weights", w->base),
                        w->program->weights, (size_t)w->program->weight_bytes);
}

// ---- All of it ---------------------------------------------------------------------------------

static const char parallel[] = "#if defined(_OPENMP)\n"
                               "#define PARALLEL PRAGMA(omp parallel for schedule(static))\n"
                               "#else\n#define PARALLEL\n#endif\n";

static bool c_make(CProgram *w, CModule *module) {
  const TargetUnit *unit = &w->program->unit;
  CFunction **functions = arena_array(w->arena, CFunction *, unit->kernel_count);
  for (int k = 0; k < unit->kernel_count; k++) {
    functions[k] = arena_array(w->arena, CFunction, unit->kernels[k]->region_count);
    TargetReport before = *module->report;
    c_module_add(module, unit->kernels[k], w->program->names ? w->program->names[k] : NULL,
                 functions[k]);
    target_report_kernel(&w->options->target, w->reported++, &before, module->report);
  }
  w->made = functions;
  return true;
}

static void c_code(CProgram *w, CModule *module, Text *out) {
  (void)w;
  c_module_text(module, out);
}

// The functions of a program, with which names of kernels must not collide.
static void reserve_functions(CProgram *w, const ProgramHeader *header, CModule *module) {
  static const char *const endings[] = {"run", "call", "arena_bytes"};
  for (int i = 0; i < w->count; i++)
    for (int k = 0; k < COUNT_OF(endings); k++)
      c_global_name(module, arena_printf(w->arena, "%s_%s",
                                         target_program_name(header, &w->programs[i]), endings[k]));
}

static int sum_of(const CProgram *w, bool steps) {
  int sum = 0;
  for (int i = 0; i < w->count; i++)
    sum += steps ? w->programs[i].step_count : w->programs[i].unit.kernel_count;
  return sum;
}

static bool write_functions(CProgram *w, const ProgramHeader *header, CModule *module, Text *out) {
  const char *wrong = NULL;
  for (int i = 0; i < w->count; i++) {
    w->program = &w->programs[i];
    if (!w->dialect->make(w, module)) return false;
    if (i) text_puts(out, "\n");
    if (!write_run(w, header, module, out)) return false;
    if (w->program->host) {
      c_write_host(w->context, module, w->program, header, out);
      continue;
    }
    if (!wrong) wrong = c_write_fault(module, header, out);
    c_write_call(w->context, module, w->program, header, wrong, out);
  }
  return true;
}

static bool write_source(CProgram *w, const ProgramHeader *header, Text *out) {
  CModule module = c_module_new(w->context, &w->options->target);
  Text functions = text_new(w->arena);
  reserve_functions(w, header, &module);
  Map called = map_new(w->arena);
  for (int i = 0; i < w->count; i++) c_reserve_calls(&module, &w->programs[i].unit, &called);
  if (target_has_host(w->programs, w->count)) c_write_host_support(&module, header, &functions);
  if (!write_functions(w, header, &module, &functions)) return false;
  text_printf(out, "// %s: %d kernels in %d steps\n#include \"%s.h\"\n\n", c_program_title(w),
              sum_of(w, false), sum_of(w, true), path_file_name(w->base));
  if (target_has_host(w->programs, w->count))
    text_puts(out, "#include <stdio.h>\n#include <stdlib.h>\n");
  w->dialect->code(w, &module, out);
  if (!write_weights(w, out)) return false;
  if (w->options->openmp) text_puts(out, parallel);
  text_printf(out, "\n%s", text_string(&functions));
  return true;
}

static bool write_files(CProgram *w, const char *path) {
  Text source = text_new(w->arena);
  ProgramHeader header = header_of(w);
  return write_source(w, &header, &source) &&
         target_header_write(w->context, w->files, w->programs, w->count, &header, path) &&
         file_set_write(w->files, path, source.data, source.size);
}

const char *c_program_title(const CProgram *w) {
  Text text = text_new(w->arena);
  for (int i = 0; i < w->count; i++)
    text_printf(&text, "%s%s", i ? ", " : "", w->programs[i].unit.name);
  return text_string(&text);
}

bool c_programs_write(Context *context, const TargetProgram *programs, int count,
                      const TargetProgramOptions *options, const CProgramDialect *dialect,
                      const char *path) {
  ArenaMark mark = arena_mark(&context->scratch);
  CProgram w = {context, &context->scratch, programs, count, programs, options, .dialect = dialect};
  w.base = arena_printf(w.arena, "%.*s", (int)strlen(path) - 2, path);
  w.name = c_identifier(w.arena, path_file_name(w.base));
  w.files = file_set_new(context);
  bool done = file_set_end(w.files, write_files(&w, path));
  arena_reset(&context->scratch, mark);
  return done;
}

bool target_write_c(Context *context, const TargetProgram *programs, int count,
                    const TargetProgramOptions *options, const char *path) {
  static const CProgramDialect dialect = {
      .title = c_title,
      .returns = "Returns 0, or 1 when a pointer is NULL or not aligned.",
      .make = c_make,
      .steps = c_steps,
      .code = c_code};
  if (!text_ends_with(path, ".c"))
    return diag_error(context, (SourcePos){NULL}, "%s: C source goes to a file that ends in .c",
                      path);
  return c_programs_write(context, programs, count, options, &dialect, path);
}
