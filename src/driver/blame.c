// SPDX-License-Identifier: Apache-2.0
// Which part of the compiler made a result wrong: the kernel is run by the interpreter as each part
// left it, on what the step itself read. What is wrong once is taken to stay wrong, so the passes
// are halved.
#include "driver/reference.h"

typedef struct Blame {
  Executable *executable;
  const Program *program;
  const PlanKernel *step;
  int number;
  const void *expected; // row-major
  const Tolerance *tolerance;
} Blame;

static InterpTensor flat(Context *context, DType type, void *data, int64_t bytes) {
  int64_t *shape = arena_array(&context->scratch, int64_t, 1);
  shape[0] = bytes / dtype_bytes(type);
  return (InterpTensor){.type = type, .rank = 1, .shape = shape, .data = data};
}

// The arguments of the step as its parameters lie, or row-major; the result's memory is fresh.
static InterpTensor *arguments(const Blame *b, bool physical) {
  Context *context = b->program->context;
  int count = b->step->params.count;
  InterpTensor *args = arena_array(&context->scratch, InterpTensor, count);
  for (int i = 0; i < count; i++) {
    DType type = b->step->params.items[i]->buffer->type;
    const Layout *layout = b->step->choice.layouts[i];
    const void *given = executable_argument(b->executable, b->number, i);
    int64_t bytes = plan_bytes(b->step->params.items[i], physical ? layout : NULL);
    void *data = arena_alloc(&context->scratch, (size_t)bytes + 64);
    if (i + 1 < count && layout && !physical)
      layout_unpack(context, layout, dtype_bytes(type), given, data);
    else if (i + 1 < count)
      memcpy(data, given, (size_t)bytes);
    args[i] = flat(context, type, data, bytes);
  }
  return args;
}

// Is the result right that the interpreter gets from `func`?
static bool is_right(const Blame *b, const PrimFunc *func, bool physical) {
  Context *context = b->program->context;
  ArenaMark mark = arena_mark(&context->scratch);
  int last = b->step->params.count - 1;
  InterpTensor *args = arguments(b, physical);
  const InterpOptions options = {.flat_args = true};
  bool right = interp_run(context, NULL, func, args, last + 1, &options);
  const Layout *layout = b->step->choice.layouts[last];
  DType type = args[last].type;
  int64_t bytes = plan_bytes(b->step->params.items[last], NULL);
  void *result = args[last].data;
  if (layout && physical) {
    result = arena_alloc(&context->scratch, (size_t)bytes + 64);
    layout_unpack(context, layout, dtype_bytes(type), args[last].data, result);
  }
  Difference difference;
  right = right && values_agree(type, b->expected, result, bytes / dtype_bytes(type), b->tolerance,
                                &difference);
  arena_reset(&context->scratch, mark);
  return right;
}

static PrimFunc *lowered_until(const Blame *b, int pass) {
  LowerOptions options = b->program->options.lower;
  options.report = NULL;
  options.print_after = NULL;
  options.stop_after = lower_passes[pass].name;
  return lower_prim_func(b->program->context, schedule_func(b->step->choice.schedule), &options);
}

static const char *lowering_blame(const Blame *b) {
  int right = -1, wrong = 0;
  while (lower_passes[wrong].name) wrong++;
  int end = wrong;
  while (wrong - right > 1) {
    int middle = (right + wrong) / 2;
    PrimFunc *func = lowered_until(b, middle);
    if (func && is_right(b, func, true))
      right = middle;
    else
      wrong = middle;
  }
  Context *context = b->program->context;
  if (wrong < end) return str_format(context, "the pass %s", lower_passes[wrong].name);
  const TargetRow *target = b->program->options.target;
  return str_format(context, "the code generator %s",
                    (target ? target : target_for_running())->name);
}

const char *executable_blame(Executable *executable, int step, const void *expected,
                             const Tolerance *tolerance) {
  const Program *program = executable_program(executable);
  const PlanKernel *kernel = program->steps.items[step].plan;
  Blame b = {executable, program, kernel, step, expected, tolerance};
  if (!is_right(&b, kernel->func, false)) return "the stages of the graph (folding, merging)";
  if (!is_right(&b, schedule_func(kernel->choice.schedule), true))
    return "its schedule (plan --schedules prints the steps)";
  return lowering_blame(&b);
}
