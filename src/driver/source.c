// SPDX-License-Identifier: Apache-2.0
// Writes a program as a file: translates its steps and slots to the form that targets take.
#include "driver/driver.h"

static const TargetPlace places[] = {
    [SLOT_INPUT] = TARGET_INPUT,
    [SLOT_OUTPUT] = TARGET_OUTPUT,
    [SLOT_CONSTANT] = TARGET_WEIGHTS,
    [SLOT_ARENA] = TARGET_ARENA,
};

static TargetArgument argument_of(const Program *p, int number) {
  const ProgramSlot *slot = &p->slots.items[number];
  return (TargetArgument){places[slot->kind], slot->number, slot->offset};
}

static TargetStep step_of(const Program *p, const ProgramStep *from) {
  Arena *arena = &p->context->scratch;
  int count = from->plan->params.count;
  TargetArgument *arguments = arena_array(arena, TargetArgument, count);
  TargetCondition *conditions = arena_array(arena, TargetCondition, from->condition_count);
  for (int i = 0; i < count; i++) arguments[i] = argument_of(p, from->slots[i]);
  for (int i = 0; i < from->condition_count; i++) {
    const ProgramCondition *condition = &from->conditions[i];
    conditions[i] = (TargetCondition){argument_of(p, condition->slot), condition->value};
  }
  return (TargetStep){.kernel = from->kernel,
                      .arguments = arguments,
                      .workspace = from->workspace,
                      .comment = from->plan->name,
                      .conditions = conditions,
                      .condition_count = from->condition_count};
}

// The text of a layout, such as "NHWC of NCHW [1, 3, 8, 8]"; NULL for row-major.
static const char *layout_of(const Program *p, const StageTensor *tensor, const Layout *layout) {
  Arena *arena = &p->context->scratch;
  if (!layout) return NULL;
  Text text = text_new(arena);
  text_printf(&text, "%s of %s [", plan_layout_name(p->context, tensor, layout),
              plan_axis_letters(p->context, tensor));
  for (int i = 0; i < layout->rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)layout->extents[i]);
  text_puts(&text, "]");
  return text_string(&text);
}

static TargetTensor tensor_of(const Program *p, const Value *value, const StageTensor *tensor,
                              const Layout *layout) {
  int64_t extents[PHYSICAL_MAX_RANK];
  int rank = program_shape(value, layout, extents);
  Expr **shape = arena_array(&p->context->scratch, Expr *, rank + 1);
  for (int i = 0; i < rank; i++) shape[i] = expr_int(p->context, DTYPE_INT64, extents[i]);
  return (TargetTensor){value->name, value->type, rank, shape, layout_of(p, tensor, layout)};
}

static const TargetTensor *inputs_of(const Program *p) {
  int count = p->graph->param_count;
  TargetTensor *tensors = arena_array(&p->context->scratch, TargetTensor, count);
  for (int i = 0; i < count; i++) {
    tensors[i] = tensor_of(p, p->graph->params[i], p->plan->stages->inputs.items[i],
                           plan_input_layout(p->plan, i));
    tensors[i].is_known = p->graph->params[i]->known != NULL;
  }
  return tensors;
}

static const TargetTensor *outputs_of(const Program *p) {
  int count = p->graph->output_count;
  TargetTensor *tensors = arena_array(&p->context->scratch, TargetTensor, count);
  for (int i = 0; i < count; i++)
    tensors[i] = tensor_of(p, p->graph->outputs[i], p->plan->stages->outputs.items[i],
                           plan_output_layout(p->plan, i));
  return tensors;
}

// Names such as k3_conv1: the kernel's number and the first operator that it computes.
static const char *const *kernel_names(const Program *p) {
  Arena *arena = &p->context->scratch;
  const char **names = arena_array(arena, const char *, p->kernels.count);
  for (int i = p->steps.count; i-- > 0;) {
    const ProgramStep *step = &p->steps.items[i];
    const char *name = step->plan->name;
    names[step->kernel] =
        arena_printf(arena, "k%d_%.*s", step->kernel, (int)strcspn(name, " +,("), name);
  }
  return names;
}

bool program_write(const Program *p, const TargetRow *target, const TargetProgramOptions *options,
                   const char *path) {
  Arena *arena = &p->context->scratch;
  ArenaMark mark = arena_mark(arena);
  TargetStep *steps = arena_array(arena, TargetStep, p->steps.count);
  for (int i = 0; i < p->steps.count; i++) steps[i] = step_of(p, &p->steps.items[i]);
  void *weights = arena_alloc(arena, (size_t)p->weight_bytes);
  if (!program_fill_weights(p, weights)) return false;
  TargetProgram program = {
      .unit = {p->name, p->kernels.items, p->kernels.count},
      .names = kernel_names(p),
      .inputs = inputs_of(p),
      .outputs = outputs_of(p),
      .input_count = p->graph->param_count,
      .output_count = p->graph->output_count,
      .steps = steps,
      .step_count = p->steps.count,
      .arena_bytes = expr_int(p->context, DTYPE_INT64, p->arena_bytes),
      .weights = weights,
      .weight_bytes = p->weight_bytes,
  };
  bool done = target_write_programs(p->context, target, &program, 1, options, path);
  arena_reset(arena, mark);
  return done;
}
