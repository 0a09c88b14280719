// SPDX-License-Identifier: Apache-2.0
// Which part of the compiler made a result wrong: the kernel is run by the interpreter as each part
// left it, on what the step itself read. What is wrong once is taken to stay wrong, so the passes
// are halved. Sums in another order, products fused with them and functions of vectors round
// otherwise than the definitions: what the usual tolerance allows is nobody's mistake.
#include "driver/reference.h"

typedef struct Blame {
  Executable *executable;
  const Program *program;
  const PlanKernel *step;
  int number;
  const void *expected; // row-major
  const Tolerance *tolerance;
  bool strict; // what the usual tolerance allows counts too
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

static bool agrees(const Blame *b, const void *result, const Tolerance *tolerance,
                   Difference *difference) {
  const StageTensor *tensor = array_last(&b->step->params);
  DType type = tensor->buffer->type;
  int64_t count = plan_bytes(tensor, NULL) / dtype_bytes(type);
  return values_agree(type, b->expected, result, count, tolerance, difference);
}

static const void *row_major(const Blame *b, const void *result) {
  int last = b->step->params.count - 1;
  const StageTensor *tensor = b->step->params.items[last];
  const Layout *layout = b->step->choice.layouts[last];
  if (!layout) return result;
  Context *context = b->program->context;
  void *logical = arena_alloc(&context->scratch, (size_t)plan_bytes(tensor, NULL) + 64);
  layout_unpack(context, layout, dtype_bytes(tensor->buffer->type), result, logical);
  return logical;
}

// Is the result right that the interpreter gets from `func`?
static bool is_right(const Blame *b, const PrimFunc *func, bool physical) {
  Context *context = b->program->context;
  ArenaMark mark = arena_mark(&context->scratch);
  int last = b->step->params.count - 1;
  InterpTensor *args = arguments(b, physical);
  const InterpOptions options = {.flat_args = true};
  bool right = interp_run(context, NULL, func, args, last + 1, &options);
  const void *result = physical ? row_major(b, args[last].data) : args[last].data;
  Difference difference;
  right = right && (agrees(b, result, b->tolerance, &difference) ||
                    (!b->strict && agrees(b, result, &TOLERANCE_DEFAULT, &difference)));
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

static const char *part_to_blame(const Blame *b) {
  if (!is_right(b, b->step->func, false)) return "the stages of the graph (folding, merging)";
  if (!is_right(b, schedule_func(b->step->choice.schedule), true))
    return "its schedule (plan --schedules prints the steps)";
  return lowering_blame(b);
}

const char *executable_blame(Executable *executable, int step, const void *expected,
                             const Tolerance *tolerance) {
  const Program *program = executable_program(executable);
  const PlanKernel *kernel = program->steps.items[step].plan;
  Blame b = {executable, program, kernel, step, expected, tolerance, .strict = true};
  Difference difference;
  Context *context = program->context;
  ArenaMark mark = arena_mark(&context->scratch);
  const void *actual =
      row_major(&b, executable_argument(executable, step, kernel->params.count - 1));
  b.strict = agrees(&b, actual, &TOLERANCE_DEFAULT, &difference);
  if (b.strict) agrees(&b, actual, tolerance, &difference);
  arena_reset(&context->scratch, mark);
  const char *part = part_to_blame(&b);
  if (!b.strict || difference.ulp < 0) return part;
  return str_format(context,
                    "rounding: sums in another order, or fused products, from %s on; %lld ulp "
                    "there, %.2g of the largest element, which is usual",
                    part, (long long)difference.ulp, difference.largest);
}
