// SPDX-License-Identifier: Apache-2.0
// Defines the operators that state a layout rewrite in a graph: a transform by an index map, and
// the crop of a box. `pad` is defined beside `nn.pad` in shape.c.
#include "graph/ops/ops.h"

#include "ir/index_map.h"

// ---- layout_transform: out[map(i)] = x[i], and the padding value where no element is stored

// The layout of `x` by the index map of the call. NULL with a diagnostic.
static const Layout *layout_of(OpCall *call, const Buffer *x, Map *symbols) {
  Context *context = call->context;
  const char *text = node_string(call->node, "index_map", NULL);
  if (!text)
    return op_error(call, "needs an 'index_map', such as lambda i: [i // 4, i %% 4]"), NULL;
  LayoutSource source = layout_source(text, x->rank);
  const IndexMap *map = index_map_parse(context, &source);
  if (!map) return op_error(call, "its 'index_map' cannot be read"), NULL;
  if (map->input_count != x->rank || map->replica_count)
    return op_error(call, "the map '%s' does not fit a tensor of rank %d", text, x->rank), NULL;
  if (map->output_count > TE_MAX_RANK)
    return op_error(call, "gives %d axes; %d is the most", map->output_count, TE_MAX_RANK), NULL;
  const LayoutExpr *shape[TE_MAX_RANK];
  *symbols = map_new(&context->arena);
  for (int i = 0; i < x->rank; i++) {
    shape[i] = layout_from_expr(context, x->shape[i], NULL, 0, true);
    if (!shape[i]) return op_error(call, "extent %d is not one of a layout", i), NULL;
    if (x->shape[i]->op == EXPR_VAR) map_put(symbols, x->shape[i]->as.var->name, x->shape[i]);
  }
  return layout_new(context, map, shape, NULL, (LayoutFacts){0}, (LayoutPadding){0},
                    call->node->pos);
}

static bool check_separators(OpCall *call, const char *key, int rank) {
  int64_t separators[TE_MAX_RANK];
  int count = node_ints(call->node, key, separators, TE_MAX_RANK);
  bool ascends = count >= 0;
  for (int i = 0; i < count; i++)
    ascends &= separators[i] > (i ? separators[i - 1] : 0) && separators[i] < rank;
  return ascends || op_error(call, "'%s' must ascend between 1 and %d", key, rank - 1);
}

static bool define_layout_transform(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Map symbols;
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK], *holds;
  const Layout *layout = layout_of(call, x, &symbols);
  if (!layout) return false;
  int rank = layout->physical_rank;
  if (!check_separators(call, "axis_separators", rank) ||
      !check_separators(call, "input_axis_separators", x->rank))
    return false;
  for (int i = 0; i < rank; i++)
    if (!(shape[i] = expr_from_layout(context, layout->physical[i], NULL, 0, &symbols)))
      return op_error(call, "the extent of axis %d of the result is not known", i);
  TeAxes axes = te_axes(call->te, shape, rank);
  LayoutAnswer answer;
  if (!layout_inverse_exprs(context, layout, axes.at, &symbols, indices, &holds, &answer))
    return op_error(call, "the map has no inverse on %s: %s",
                    extents_text(context, x->shape, x->rank), layout_answer_text(context, &answer));
  Expr *value = te_at(call->te, x, indices), *filler;
  if (!op_number(call, "pad_value", x->type, &filler)) return false;
  if (!expr_is_true(holds)) value = expr_if_then_else(context, holds, value, filler);
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes, value));
  return true;
}

// ---- crop: the box of `slice_sizes` that begins at `start_indices`

// Reads a list of an integer, or a size that is not known yet, for each axis.
static bool read_sizes(OpCall *call, const char *key, Expr **out) {
  const Expr *list = attrs_get(&call->node->attrs, key);
  int rank = call->inputs[0]->rank;
  bool fits = list ? list->op == EXPR_TUPLE && list->count == rank : rank == 0;
  for (int i = 0; fits && i < rank; i++) {
    int64_t known;
    fits = dtype_is_int(list->args[i]->type);
    bool is_known = expr_as_int(list->args[i], &known);
    out[i] = is_known ? expr_index(call->context, known) : list->args[i];
  }
  return fits || op_error(call, "'start_indices' and 'slice_sizes' need %d integers each", rank);
}

// Is the box known not to be within the axis? Sizes that are not known yet are checked when they
// are given.
static bool is_outside(Context *context, Analyzer *analyzer, Expr *extent, Expr *start,
                       Expr *size) {
  int64_t first, count, most, rest;
  bool known = expr_as_int(start, &first), counted = expr_as_int(size, &count);
  if ((known && first < 0) || (counted && count < 0)) return true;
  if (known && counted && expr_as_int(extent, &most)) return count > most - first;
  Expr *left = expr_sub(context, extent, expr_add(context, start, size));
  return expr_as_int(analyzer_simplify(analyzer, left), &rest) && rest < 0;
}

static const char *number_text(Context *context, Expr *number) {
  const char *list = extents_text(context, &number, 1); // in brackets
  return str_intern_n(context, list + 1, strlen(list) - 2);
}

static bool read_box(OpCall *call, Expr **start, Expr **size) {
  Context *context = call->context;
  const Buffer *x = call->inputs[0];
  if (!read_sizes(call, "start_indices", start) || !read_sizes(call, "slice_sizes", size))
    return false;
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < x->rank; i++)
    if (is_outside(context, analyzer, x->shape[i], start[i], size[i]))
      return op_error(call, "%s elements from %s are not within axis %d of %s",
                      number_text(context, size[i]), number_text(context, start[i]), i,
                      extents_text(context, x->shape, x->rank));
  return true;
}

static bool define_crop(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Expr *start[TE_MAX_RANK], *size[TE_MAX_RANK], *indices[TE_MAX_RANK], *cropped;
  if (!read_box(call, start, size) || !op_number(call, "cropped_value", x->type, &cropped))
    return false;
  TeAxes axes = te_axes(call->te, size, x->rank);
  for (int i = 0; i < x->rank; i++) indices[i] = expr_add(context, axes.at[i], start[i]);
  op_output(call, te_compute(call->te, call->node->name, x->type, size, &axes,
                             te_at(call->te, x, indices)));
  const Expr *stated = attrs_get(&call->node->attrs, "cropped_value");
  if (stated && !expr_is_undefined(stated)) array_last(&call->te->stages)->outside = cropped;
  return true;
}

const OpRow transform_ops[] = {
    {"layout_transform", NULL, 1, 1, define_layout_transform,
     "index_map pad_value axis_separators input_axis_separators",
     .positional = "index_map pad_value"},
    {"crop", NULL, 1, 1, define_crop, "start_indices slice_sizes cropped_value",
     .positional = "start_indices slice_sizes cropped_value"},
};
const int transform_op_count = COUNT_OF(transform_ops);
