// SPDX-License-Identifier: Apache-2.0
// Checks the inputs of an operator by its definition: each operation states the element types that
// it takes, and each access the number of elements that it needs.
//   sqrt of int64 tensors: the definition has SQRT, which is for floating point only.
//   add of float32 and int64: the definition has an ADD of two types.
//   a bias of 7 for 8 channels: the definition reads bias[k] for k below 8.
#include "graph/op_types.h"

typedef struct Finding {
  Context *context;
  const TeStage *stage;
  const char *problem; // the first problem found
} Finding;

static void find(Finding *finding, const char *what, DType a, DType b) {
  if (finding->problem) return;
  Context *context = finding->context;
  finding->problem =
      arena_printf(&context->arena, what, dtype_name(context, a), dtype_name(context, b));
}

static bool same_element(DType a, DType b) {
  return a.code == b.code && a.bits == b.bits;
}

static const char one_type[] = "takes tensors of one element type, got %s and %s";

static void check_operand(Finding *finding, const OpInfo *info, DType type) {
  if ((info->flags & OP_FLOATS) && !dtype_is_float(type))
    find(finding, "takes floating point, got %s", type, type);
  if ((info->flags & OP_INTS) && !dtype_is_int(type))
    find(finding, "takes integers, got %s", type, type);
  if (info->class == OP_LOGIC && !dtype_is_bool(type))
    find(finding, "takes bool, got %s", type, type);
  if (info->class == OP_ARITH && dtype_is_bool(type) && info->result == OP_SAME &&
      strcmp(info->name, "MIN") != 0 && strcmp(info->name, "MAX") != 0)
    find(finding, "takes numbers, got %s", type, type);
}

// Reports a load at an axis of the result that is longer than the loaded tensor: a bias of 7 for 8
// channels. Loads under conditions are not checked, because they may be in bounds where they run.
static void check_bounds(Finding *finding, const Expr *load) {
  for (int d = 0; d < load->count && d < load->as.buffer->rank; d++)
    for (int i = 0; i < finding->stage->axis_count + finding->stage->reduce_count; i++) {
      const BlockVar *axis = &finding->stage->axes[i];
      int64_t has, needed;
      if (load->args[d] != axis->var) continue;
      if (!expr_as_int(load->as.buffer->shape[d], &has) || !expr_as_int(axis->extent, &needed))
        continue;
      if (has < needed && !finding->problem)
        finding->problem = arena_printf(
            &finding->context->arena, "needs %lld elements on axis %d of '%s', which has %lld",
            (long long)needed, d, load->as.buffer->name, (long long)has);
    }
}

static bool check_place(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) check_bounds(visitor->env, e);
  return e->op != EXPR_IF_THEN_ELSE;
}

static bool check_expr(Visitor *visitor, Expr *e) {
  Finding *finding = visitor->env;
  const OpInfo *info = &op_table[e->op];
  bool choice = info->class == OP_CHOICE;
  bool scalar = info->class == OP_ARITH || info->class == OP_COMPARE || info->class == OP_LOGIC ||
                info->class == OP_BIT || info->class == OP_MATH;
  if (choice && !dtype_is_bool(e->args[0]->type))
    find(finding, "takes bool to choose by, got %s", e->args[0]->type, e->args[0]->type);
  for (int i = choice ? 2 : 1; (choice || scalar) && i < e->count; i++)
    if (!same_element(e->args[i - 1]->type, e->args[i]->type))
      find(finding, one_type, e->args[i - 1]->type, e->args[i]->type);
  for (int i = 0; scalar && i < e->count; i++) check_operand(finding, info, e->args[i]->type);
  return !finding->problem;
}

const char *op_problem(Context *context, const Te *te, int first) {
  Finding finding = {.context = context};
  Visitor types = {.env = &finding, .enter_expr = check_expr};
  Visitor places = {.env = &finding, .enter_expr = check_place};
  for (int i = first; i < te->stages.count; i++) {
    const TeStage *stage = finding.stage = te->stages.items[i];
    visit_expr(&types, stage->value);
    if (!same_element(stage->value->type, stage->output->type))
      find(&finding, one_type, stage->output->type, stage->value->type);
    if (!stage->ordered) visit_expr(&places, stage->value);
  }
  return finding.problem;
}
