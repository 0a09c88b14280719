// SPDX-License-Identifier: Apache-2.0
// Finds the views that only put all elements of a tensor into another order, digit by digit:
// transposes, reshapes, channel shuffles. Every layout of such a view is one of the tensor that is
// read, so that a copy of the view is a layout rewrite of the tensor.
#include "graph/stages.h"
#include "ir/index_map.h"

typedef struct ViewDigits {
  int rank, read_rank;
  int64_t box[TE_MAX_RANK];
  LayoutDigitSum sums[TE_MAX_RANK]; // by dimension of the tensor that is read
} ViewDigits;

static bool read_digits(Context *context, const TeStage *te, ViewDigits *v) {
  Expr *vars[TE_MAX_RANK];
  v->rank = te->axis_count;
  v->read_rank = te->value->count;
  for (int a = 0; a < v->rank; a++) {
    vars[a] = te->axes[a].var;
    if (!expr_as_int(te->axes[a].extent, &v->box[a])) return false;
  }
  for (int d = 0; d < v->read_rank; d++) {
    const LayoutExpr *e = layout_from_expr(context, te->value->args[d], vars, v->rank, false);
    if (!e || !layout_expr_digits(context, e, v->box, v->rank, &v->sums[d]) || v->sums[d].start)
      return false;
  }
  return true;
}

// Does the index tell its digits, which fill the dimension?
static bool is_dense(const LayoutDigitSum *sum, int64_t extent) {
  int64_t size = 1;
  for (int i = sum->count - 1; i >= 0; i--) {
    if (sum->digits[i].weight != size) return false;
    size *= sum->digits[i].extent;
  }
  return size == extent;
}

// The extent of the digits of the axis from 1 on that follow one another, in all dimensions.
static int64_t axis_told(const ViewDigits *v, int axis) {
  int64_t known = 1;
  for (bool more = true; more;) {
    more = false;
    for (int d = 0; d < v->read_rank && !more; d++)
      for (int i = 0; i < v->sums[d].count && !more; i++) {
        const LayoutWeightedDigit *g = &v->sums[d].digits[i];
        more = g->axis == axis && g->cut == known && g->extent > 1;
        if (more) known *= g->extent;
      }
  }
  return known;
}

bool stage_is_reordering(Context *context, const Stage *stage) {
  ViewDigits v = {0};
  int64_t extent, elements = 1, read = 1;
  if (!stage_is_view(stage) || stage->te->axis_count > TE_MAX_RANK ||
      !read_digits(context, stage->te, &v))
    return false;
  for (int d = 0; d < v.read_rank; d++) {
    if (!expr_as_int(stage->te->value->as.buffer->shape[d], &extent)) return false;
    if (!is_dense(&v.sums[d], extent) || !mul_fits(read, extent, &read)) return false;
  }
  for (int a = 0; a < v.rank; a++)
    if (axis_told(&v, a) != v.box[a] || !mul_fits(elements, v.box[a], &elements)) return false;
  return elements == read;
}
