// SPDX-License-Identifier: Apache-2.0
// Locates a miscompile: finds the part of the compiler that made the result of a kernel wrong. The
// interpreter runs the kernel as each part left it, on the inputs that the step itself read. The
// passes are searched by bisection, which assumes that a result stays wrong once it is. Sums in
// another order, fused multiply-adds and vector functions round differently from the definitions; a
// difference within the usual tolerance is therefore reported as rounding, not as a miscompile.
#include "driver/reference.h"

typedef struct Miscompile {
  Executable *executable;
  const Program *program;
  const PlanKernel *step;
  int number;
  const Expected *expected;
  const Tolerance *tolerance;
  bool strict; // differences within the usual tolerance count as wrong, too
} Miscompile;

static InterpTensor flat(Context *context, DType type, void *data, int64_t bytes) {
  int64_t *shape = arena_array(&context->scratch, int64_t, 1);
  shape[0] = bytes / dtype_bytes(type);
  return (InterpTensor){.type = type, .rank = 1, .shape = shape, .data = data};
}

// Copies what the step read from a parameter, to its layout or to row-major.
static void copy_argument(const Miscompile *m, int param, bool physical, void *to) {
  Context *context = m->program->context;
  const StageTensor *tensor = m->step->params.items[param];
  int bytes = dtype_bytes(tensor->buffer->type);
  const Layout *layout = physical ? m->step->choice.layouts[param] : NULL,
               *memory = plan_memory_layout(m->program->plan, m->step, param);
  const void *given = executable_argument(m->executable, m->number, param);
  if (memory == layout) {
    memcpy(to, given, (size_t)plan_bytes(tensor, layout));
    return;
  }
  void *logical = layout ? arena_alloc(&context->scratch, (size_t)plan_bytes(tensor, NULL)) : to;
  layout_unpack(context, memory, bytes, given, logical);
  if (layout) layout_pack(context, layout, bytes, logical, to);
}

// The arguments of the step, in the layouts of its parameters or row-major; the result's memory is
// fresh.
static InterpTensor *arguments(const Miscompile *m, bool physical) {
  Context *context = m->program->context;
  int count = m->step->params.count;
  InterpTensor *args = arena_array(&context->scratch, InterpTensor, count);
  for (int i = 0; i < count; i++) {
    DType type = m->step->params.items[i]->buffer->type;
    const Layout *layout = m->step->choice.layouts[i];
    int64_t bytes = plan_bytes(m->step->params.items[i], physical ? layout : NULL);
    void *data = arena_alloc(&context->scratch, (size_t)bytes + 64);
    if (i + 1 < count) copy_argument(m, i, physical, data);
    args[i] = flat(context, type, data, bytes);
  }
  return args;
}

static bool agrees(const Miscompile *m, const void *result, const Tolerance *tolerance,
                   Difference *difference) {
  const StageTensor *tensor = array_last(&m->step->params);
  DType type = tensor->buffer->type;
  int64_t count = plan_bytes(tensor, NULL) / dtype_bytes(type);
  return values_agree(type, m->expected, result, count, tolerance, difference);
}

static const void *row_major(const Miscompile *m, const void *result) {
  int last = m->step->params.count - 1;
  const StageTensor *tensor = m->step->params.items[last];
  const Layout *layout = m->step->choice.layouts[last];
  if (!layout) return result;
  Context *context = m->program->context;
  void *logical = arena_alloc(&context->scratch, (size_t)plan_bytes(tensor, NULL) + 64);
  layout_unpack(context, layout, dtype_bytes(tensor->buffer->type), result, logical);
  return logical;
}

// True when the interpreter's result of `func` is right.
static bool is_right(const Miscompile *m, const PrimFunc *func, bool physical) {
  Context *context = m->program->context;
  ArenaMark mark = arena_mark(&context->scratch);
  int last = m->step->params.count - 1;
  InterpTensor *args = arguments(m, physical);
  const InterpOptions options = {.flat_args = true};
  bool right = interp_run(context, NULL, func, args, last + 1, &options);
  const void *result = physical ? row_major(m, args[last].data) : args[last].data;
  Difference difference;
  right = right && (agrees(m, result, m->tolerance, &difference) ||
                    (!m->strict && agrees(m, result, &TOLERANCE_DEFAULT, &difference)));
  arena_reset(&context->scratch, mark);
  return right;
}

static PrimFunc *lowered_until(const Miscompile *m, int pass) {
  LowerOptions options = m->program->options.lower;
  options.report = NULL;
  options.print_after = NULL;
  options.stop_after = lower_passes[pass].name;
  return lower_prim_func(m->program->context, schedule_func(m->step->choice.schedule), &options);
}

static Cause faulty_pass(const Miscompile *m) {
  int right = -1, wrong = 0;
  while (lower_passes[wrong].name) wrong++;
  int end = wrong;
  while (wrong - right > 1) {
    int middle = (right + wrong) / 2;
    PrimFunc *func = lowered_until(m, middle);
    if (func && is_right(m, func, true))
      right = middle;
    else
      wrong = middle;
  }
  Context *context = m->program->context;
  Cause cause = {.part = wrong < end ? "pass" : "code"};
  cause.name = wrong < end ? lower_passes[wrong].name : compile_target(&m->program->options)->name;
  cause.text =
      str_format(context, wrong < end ? "the pass %s" : "the code generator %s", cause.name);
  return cause;
}

// The number of the last step that changes the layout of a tensor; after it, all arguments are
// physical.
static int last_layout_step(const Schedule *schedule) {
  int step = 0, last = 0;
  for (const char *line = schedule_trace(schedule), *end; (end = strchr(line, '\n'));
       line = end + 1) {
    const char *found = strstr(line, ".transform_layout(");
    step++;
    if (found && found < end) last = step;
  }
  return last;
}

static bool is_right_scheduled(void *m, const PrimFunc *func) {
  return is_right(m, func, true);
}

static Cause faulty_step(Miscompile *m) {
  const Schedule *schedule = m->step->choice.schedule;
  Cause cause = {.part = "schedule",
                 .text = m->program->context->caller == CALLER_COMMAND
                             ? "its schedule (plan --schedules prints the steps)"
                             : "its schedule"};
  int step = schedule_find_step(schedule, m->step->func, last_layout_step(schedule),
                                is_right_scheduled, m, &cause.name);
  if (step)
    cause.text = str_format(m->program->context, "step %d of its schedule: %s", step, cause.name);
  return cause;
}

static Cause faulty_part(Miscompile *m) {
  if (!is_right(m, m->step->func, false))
    return (Cause){.part = "stages", .text = "the stages of the graph (folding, merging)"};
  if (!is_right(m, schedule_func(m->step->choice.schedule), true)) return faulty_step(m);
  return faulty_pass(m);
}

Cause miscompile_locate(const Program *program, Executable *executable, int step,
                        const Expected *expected, const Tolerance *tolerance) {
  const PlanKernel *kernel = program->steps.items[step].plan;
  Miscompile m = {executable, program, kernel, step, expected, tolerance, .strict = true};
  Difference difference;
  Context *context = program->context;
  ArenaMark mark = arena_mark(&context->scratch);
  const void *actual =
      row_major(&m, executable_argument(executable, step, kernel->params.count - 1));
  m.strict = agrees(&m, actual, &TOLERANCE_DEFAULT, &difference);
  if (m.strict) agrees(&m, actual, tolerance, &difference);
  arena_reset(&context->scratch, mark);
  Cause cause = faulty_part(&m);
  if (!m.strict || difference.ulp < 0) return cause;
  cause.rounding = true;
  cause.text = str_format(context,
                          "rounding: sums in another order, or fused products, from %s on; %lld "
                          "ulp there, %.2g of the largest element, which is usual",
                          cause.text, (long long)difference.ulp, difference.largest);
  return cause;
}
