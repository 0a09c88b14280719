// SPDX-License-Identifier: Apache-2.0
// Holds the template's row for the table of targets, and writes whole programs as a listing: the
// steps in their order, then the kernels.
#include "target/template/template.h"

// The interpreter has one kind of memory.
static const TargetMemory memories[] = {{"global", 1, TARGET_ANY_RANK},
                                        {"local", 1, TARGET_ANY_RANK},
                                        {"shared", 1, TARGET_ANY_RANK},
                                        {NULL, 0, 0}};

static const char *const endings[] = {".listing", NULL};

// A target for a device names it in `device`, and leaves `level_flags` out.
static const char *const level_flags[] = {
    [CPU_BASELINE] = "any processor",
    [CPU_AVX2] = "a processor with 32-byte vectors",
    [CPU_AVX512] = "a processor with 64-byte vectors",
    [CPU_AVX512_VNNI] = "a processor with 64-byte vectors and sums of products of bytes",
};

static const char *place_text(Arena *arena, const TargetArgument *argument) {
  long long offset = (long long)argument->offset;
  switch (argument->place) {
  case TARGET_INPUT: return arena_printf(arena, "input %d", argument->number);
  case TARGET_OUTPUT:
    return arena_printf(arena, offset ? "output %d + %lld" : "output %d", argument->number, offset);
  case TARGET_WEIGHTS: return arena_printf(arena, "weights + %lld", offset);
  case TARGET_SIZE: return arena_printf(arena, "size %d", argument->number);
  case TARGET_ARENA: break;
  }
  return arena_printf(arena, "arena + %lld", offset);
}

static void list_step(Context *context, const TargetProgram *program, int number, Text *out) {
  const TargetStep *step = &program->steps[number];
  const LowerKernel *kernel = program->unit.kernels[step->kernel];
  text_printf(out, "step %d: %s(", number, kernel->func->name);
  for (int i = 0; i < kernel->arg_count; i++)
    text_printf(out, "%s%s", i ? ", " : "", place_text(&context->scratch, &step->arguments[i]));
  text_puts(out, ")");
  if (kernel->slot_count)
    text_printf(out, ", workspace at arena + %lld", (long long)step->workspace);
  text_printf(out, "%s%s\n", step->comment ? " -- " : "", step->comment ? step->comment : "");
}

static bool write_programs(Context *context, const TargetProgram *program, int count,
                           const TargetProgramOptions *options, const char *path) {
  ArenaMark mark = arena_mark(&context->scratch);
  Text out = text_new(&context->scratch);
  (void)count; // it takes no sizes
  int64_t arena_bytes = 0;
  expr_as_int(program->arena_bytes, &arena_bytes);
  text_printf(&out, "program %s: %d inputs, %d outputs, arena of %lld bytes, weights of %lld\n",
              program->unit.name, program->input_count, program->output_count,
              (long long)arena_bytes, (long long)program->weight_bytes);
  for (int i = 0; i < program->step_count; i++) list_step(context, program, i, &out);
  bool done = template_emit(context, &program->unit, &options->target, endings[0], &out) &&
              file_write(context, path, out.data, out.size);
  arena_reset(&context->scratch, mark);
  return done;
}

const TargetRow template_target = {
    .name = "template",
    .summary = "a listing in words, run by the interpreter",
    .memories = memories,
    .endings = endings,
    .level_flags = level_flags,
    .emit = template_emit,
    .load_begin = template_load_begin,
    .load_add = template_load_add,
    .load_finish = template_load_finish,
    .keeps_kernels = true,
    .write_programs = write_programs,
};
