// SPDX-License-Identifier: Apache-2.0
// Writes a whole program as C: kernels, weights, and a function that runs the steps in order. The
// code allocates no memory: the caller gives inputs, outputs and one arena.
#include "target/c/program.h"

// ---- The header --------------------------------------------------------------------------------

static const char *c_title(CProgram *w) {
  const HostMachine *machine = w->options->target.machine;
  return arena_printf(w->arena,
                      "// %s, as C without dependencies. Compile for the machine it was made for:\n"
                      "//   cc -std=gnu11 -O2 %s%s -c %s.c\n// with GCC 12, Clang 14, or later.\n",
                      w->program->unit.name, target_level_flags(target_find("c"), machine),
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
                         .weights_file = weights};
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
  case TARGET_ARENA: break;
  }
  return arena_printf(w->arena, "(memory + %lld)", offset);
}

// The first iteration of chunk `chunk`: "task * 7", or "task * 100 / 3" where the chunks differ.
static const char *chunk_begin(CProgram *w, const char *chunk, int64_t count, int64_t chunks) {
  if (count == chunks) return chunk;
  if (count % chunks == 0)
    return arena_printf(w->arena, "%s * %lld", chunk, (long long)(count / chunks));
  return arena_printf(w->arena, "%s * %lld / %lld", chunk, (long long)count, (long long)chunks);
}

static void write_calls(CProgram *w, CEmit *emit, const char *name, const char *arguments,
                        const char *indent) {
  int column = (int)(strlen(indent) + strlen(name)) + 5; // with ");" at the end
  c_line(emit, "%s%s(%s);", indent, name, c_broken(w->arena, arguments, column, 6));
}

static bool write_call(CProgram *w, CEmit *emit, const CFunction *function, const char *arguments) {
  int64_t count, chunks;
  if (!expr_as_int(function->region->extent, &count) ||
      !expr_as_int(function->region->chunks, &chunks))
    return diag_error(w->context, function->kernel->func->pos, "'%s' has a size that is not known",
                      function->name);
  if (chunks == 1 || !w->options->openmp) {
    arguments = arena_printf(w->arena, "%s0, %lld", arguments, (long long)count);
    write_calls(w, emit, function->name, arguments, "");
    return true;
  }
  const char *begin = chunk_begin(w, "task", count, chunks);
  const char *end = chunk_begin(w, count == chunks ? "task + 1" : "(task + 1)", count, chunks);
  c_line(emit, "PARALLEL");
  c_line(emit, "for (int64_t task = 0; task < %lld; task++)", (long long)chunks);
  arguments = arena_printf(w->arena, "%s%s, %s", arguments, begin, end);
  write_calls(w, emit, function->name, arguments, "  ");
  return true;
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

static bool write_calls_of_step(CProgram *w, CEmit *emit, const TargetStep *step) {
  CFunction *const *functions = w->made;
  const LowerKernel *kernel = w->program->unit.kernels[step->kernel];
  const char **from = arena_array(w->arena, const char *, kernel->arg_count + 1);
  for (int i = 0; i < kernel->arg_count; i++) {
    if (kernel->args[i].kind != LOWER_ARG_TENSOR)
      return diag_error(w->context, kernel->func->pos, "'%s' has a size that is not known",
                        kernel->args[i].name);
    from[i] = c_program_place(w, &step->arguments[i]);
  }
  from[kernel->arg_count] = arena_printf(w->arena, "memory + %lld", (long long)step->workspace);
  for (int i = 0; i < kernel->region_count; i++) {
    const CFunction *function = &functions[step->kernel][i];
    if (!write_call(w, emit, function, c_arguments(emit, function, from))) return false;
  }
  return true;
}

static bool write_step(CProgram *w, CEmit *emit, const TargetStep *step) {
  if (step->comment) c_line(emit, "// %s", step->comment);
  if (!step->condition_count) return write_calls_of_step(w, emit, step);
  c_line(emit, "if (%s) {", conditions_of(w, step));
  emit->depth++;
  bool ok = write_calls_of_step(w, emit, step);
  emit->depth--;
  c_line(emit, "}");
  return ok;
}

static bool c_steps(CProgram *w, CEmit *emit) {
  for (int i = 0; i < w->program->step_count; i++)
    if (!write_step(w, emit, &w->program->steps[i])) return false;
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
  c_line(emit, "if (%s(uintptr_t)arena %% %d) return 1;", p->arena_bytes ? "!arena || " : "",
         TENSOR_ALIGNMENT);
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

static bool write_run(CProgram *w, const ProgramHeader *header, CModule *module, Text *out) {
  const TargetProgram *p = w->program;
  CEmit emit = c_emit_new(module);
  check_pointers(w, &emit);
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
  target_header_run(header, out);
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
    target_report_kernel(&w->options->target, k, &before, module->report);
  }
  w->made = functions;
  return true;
}

static void c_code(CProgram *w, CModule *module, Text *out) {
  (void)w;
  c_module_text(module, out);
}

static bool write_source(CProgram *w, const ProgramHeader *header, Text *out) {
  const TargetProgram *p = w->program;
  CModule module = c_module_new(w->context, &w->options->target);
  Text run = text_new(w->arena);
  if (!w->dialect->make(w, &module) || !write_run(w, header, &module, &run)) return false;
  text_printf(out, "// %s: %d kernels in %d steps\n#include \"%s.h\"\n\n", p->unit.name,
              p->unit.kernel_count, p->step_count, path_file_name(w->base));
  w->dialect->code(w, &module, out);
  if (!write_weights(w, out)) return false;
  if (w->options->openmp) text_puts(out, parallel);
  text_printf(out, "\n%s", text_string(&run));
  c_write_call(w->context, &module, p, header, out);
  return true;
}

static bool write_files(CProgram *w, const char *path) {
  Text source = text_new(w->arena);
  ProgramHeader header = header_of(w);
  return write_source(w, &header, &source) &&
         target_header_write(w->context, w->files, w->program, &header, path) &&
         file_set_write(w->files, path, source.data, source.size);
}

bool c_program_write(Context *context, const TargetProgram *program,
                     const TargetProgramOptions *options, const CProgramDialect *dialect,
                     const char *path) {
  ArenaMark mark = arena_mark(&context->scratch);
  CProgram w = {context, &context->scratch, program, options, .dialect = dialect};
  w.base = arena_printf(w.arena, "%.*s", (int)strlen(path) - 2, path);
  w.name = c_identifier(w.arena, path_file_name(w.base));
  w.files = file_set_new(context);
  bool done = file_set_end(w.files, write_files(&w, path));
  arena_reset(&context->scratch, mark);
  return done;
}

bool target_write_c(Context *context, const TargetProgram *program,
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
  return c_program_write(context, program, options, &dialect, path);
}
