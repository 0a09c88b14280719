// SPDX-License-Identifier: Apache-2.0
// Finds the factors of sums of products by their loops, and names the axes of the tensors by which
// bilinear algorithms compute them.
#include "graph/weighted_sums.h"

#include "arith/arith.h"

// ---- The form

static bool is_sum_so_far(const Stage *stage, const Expr *e) {
  return e->op == EXPR_LOAD && e->as.buffer == stage->te->output;
}

// Sets the factors of value = sum so far + image * weight, where the weight is the element of a
// constant.
static bool find_factors(const StageGraph *s, WeightedSum *p) {
  const Expr *sum = p->stage->te->value;
  if (sum->op != EXPR_ADD) return false;
  int own = is_sum_so_far(p->stage, sum->args[0]) ? 0 : 1;
  const Expr *product = sum->args[1 - own];
  if (!is_sum_so_far(p->stage, sum->args[own]) || product->op != EXPR_MUL) return false;
  for (int i = 0; i < 2; i++) {
    Expr *e = product->args[i];
    const StageTensor *tensor = e->op == EXPR_LOAD ? stage_tensor_of(s, e->as.buffer) : NULL;
    if (!tensor || !(tensor->data || tensor->constant)) continue;
    p->weight = e;
    p->image = product->args[1 - i];
    return true;
  }
  return false;
}

Expr *weighted_sum_axis(const WeightedSum *p, int axis) {
  return p->stage->te->axes[axis].var;
}

bool weighted_sum_moves_image(const WeightedSum *p, int axis) {
  return expr_uses(p->image, weighted_sum_axis(p, axis));
}

bool weighted_sum_moves_weight(const WeightedSum *p, int axis) {
  return expr_uses(p->weight, weighted_sum_axis(p, axis));
}

int64_t weighted_sum_extent(const WeightedSum *p, int axis) {
  int64_t extent = 0;
  expr_as_int(p->stage->te->axes[axis].extent, &extent);
  return extent;
}

bool weighted_sum_is_reduced(const WeightedSum *p, int axis) {
  return axis >= p->stage->te->axis_count;
}

// Does each axis of the output move one factor alone, and some axis the weight?
static bool has_filters(const WeightedSum *p) {
  bool filters = false;
  for (int a = 0; a < p->stage->te->axis_count; a++) {
    if (weighted_sum_moves_image(p, a) && weighted_sum_moves_weight(p, a)) return false;
    filters |= weighted_sum_moves_weight(p, a);
  }
  return filters;
}

static bool is_float_sum(const Stage *stage) {
  return stage_is_reduction(stage) && !stage_is_ordered(stage) && !stage->te->program &&
         dtype_equal(stage->te->output->type, DTYPE_FLOAT32) && stage->te->init->op == EXPR_FLOAT &&
         stage->te->init->as.f == 0;
}

static bool has_known_axes(const TeStage *te) {
  int64_t extent;
  for (int a = 0; a < te->axis_count + te->reduce_count; a++)
    if (!expr_as_int(te->axes[a].extent, &extent) || extent < 1 || !expr_is_int(te->axes[a].min, 0))
      return false;
  return te->axis_count + 2 <= TE_MAX_RANK;
}

bool weighted_sum_of(const StageGraph *s, Stage *stage, WeightedSum *out) {
  *out = (WeightedSum){.stage = stage};
  return is_float_sum(stage) && has_known_axes(stage->te) && find_factors(s, out) &&
         has_filters(out);
}

// ---- The stages of a bilinear algorithm

void tensor_axes_add(Context *context, TensorAxes *t, int of, int64_t extent) {
  t->of[t->rank] = of;
  t->shape[t->rank++] = expr_index(context, extent);
}

Expr *tensor_axes_find(const TensorAxes *t, int of) {
  for (int d = 0; d < t->rank; d++)
    if (t->of[d] == of) return t->axes.at[d];
  return NULL;
}

Map tensor_axes_map(Context *context, const WeightedSum *sum, const TensorAxes *t) {
  Map map = map_new(&context->arena);
  for (int d = 0; d < t->rank; d++)
    if (t->of[d] >= 0) map_put(&map, weighted_sum_axis(sum, t->of[d]), t->axes.at[d]);
  return map;
}

ProductSum product_sum_new(Context *context) {
  return (ProductSum){
      .reduction = {.combine = EXPR_ADD, .init = expr_float(context, DTYPE_FLOAT32, 0)},
      .axes = map_new(&context->arena)};
}

void product_sum_add(Te *te, const WeightedSum *sum, int axis, int64_t extent,
                     ProductSum *products) {
  TeReduction *r = &products->reduction;
  Expr *var = weighted_sum_axis(sum, axis);
  r->extents[r->count] = expr_index(te->context, extent);
  r->axes[r->count] = te_reduce_axis(te, var->as.var->name, r->extents[r->count]);
  map_put(&products->axes, var, r->axes[r->count++]);
}

TeStage *product_sum_stage(Te *te, const WeightedSum *sum, TensorAxes *axes,
                           const ProductSum *products, Expr *data, Expr *weight) {
  const char *name = str_format(te->context, "%s_products", sum->stage->te->name);
  te_reduce(te, name, DTYPE_FLOAT32, axes->shape, &axes->axes, &products->reduction,
            expr_mul(te->context, data, weight));
  return array_last(&te->stages);
}

void stage_graph_add_bilinear(StageGraph *s, Stage *stage, const BilinearStages *use) {
  TeStage *const by[] = {use->data, use->weights, use->products, use->outputs};
  stage_graph_add_other(s, stage, by, COUNT_OF(by));
  stage->usual = array_last(&stage->others);
  stage_tensor_of(s, use->weights->output)->folds = true;
}
