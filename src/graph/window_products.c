// SPDX-License-Identifier: Apache-2.0
// Finds sums of products over windows by their loops, and computes them by bilinear algorithms:
//
//   y[k, i] = Σ_{c, r} x[c, i + r] * w[k, c, r]      for m outputs i = m*t + s and n products:
//
//   u[a, k, c] = Σ_r G[a, r] * w[k, c, r]            constant
//   v[a, c, t] = Σ_e B[a, e] * x[c, m*t + e]         0 behind the last window
//   p[a, k, t] = Σ_c v[a, c, t] * u[a, k, c]         a product for each a
//   y[k, i]    = Σ_a A[i % m, a] * p[a, k, i // m]
//
// Each of two windows adds an axis a, and the sums are nested. The matrices are written as chains
// of choices between rows, which are constant once the axes that choose are unrolled.
#include "graph/window_products.h"

#include "graph/combinations.h"

#include "arith/arith.h"

// ---- The form

static Expr *shifted(Context *context, Expr *var, int64_t by) {
  return expr_add(context, var, expr_int(context, var->type, by));
}

// Is the image the same after a step of the axis forward and of the tap backward?
static bool moves_as_sum(Context *context, const WindowProduct *p, int axis, int tap) {
  Expr *y = weighted_sum_axis(&p->sum, axis), *r = weighted_sum_axis(&p->sum, tap);
  if (!weighted_sum_moves_image(&p->sum, axis) || !weighted_sum_moves_image(&p->sum, tap))
    return false;
  Map step = map_new(&context->scratch);
  map_put(&step, y, shifted(context, y, 1));
  map_put(&step, r, shifted(context, r, -1));
  Analyzer *analyzer = analyzer_new(context);
  Expr *after = substitute_expr(context, p->sum.image, &step);
  return analyzer_simplify(analyzer, after) == analyzer_simplify(analyzer, p->sum.image);
}

static bool has_window(const WindowProduct *p, int axis) {
  for (int i = 0; i < p->count; i++)
    if (p->windows[i].axis == axis) return true;
  return false;
}

static bool is_window(Context *context, const WindowProduct *p, int axis, int tap) {
  return !has_window(p, axis) && !weighted_sum_moves_weight(&p->sum, axis) &&
         weighted_sum_moves_weight(&p->sum, tap) && moves_as_sum(context, p, axis, tap);
}

static void find_windows(Context *context, WindowProduct *p) {
  const TeStage *te = p->sum.stage->te;
  for (int r = te->axis_count; r < te->axis_count + te->reduce_count; r++) {
    int64_t taps = weighted_sum_extent(&p->sum, r);
    if (taps < 3 || taps > WINDOW_MOST_TAPS) continue;
    for (int y = 0; y < te->axis_count && p->count < WINDOW_MOST; y++) {
      if (!is_window(context, p, y, r)) continue;
      int64_t outputs = weighted_sum_extent(&p->sum, y);
      p->windows[p->count++] = (TapWindow){.axis = y, .tap = r, .outputs = outputs, .taps = taps};
      break;
    }
  }
}

bool window_product_of(StageGraph *s, Stage *stage, WindowProduct *out) {
  out->count = 0;
  if (!weighted_sum_of(s, stage, &out->sum)) return false;
  find_windows(s->context, out);
  return out->count > 0;
}

// ---- The stages

typedef struct Rewriting {
  Context *context;
  Te *te;
  const WindowProduct *product;
  const TeStage *from;
  int count;                             // of transformed windows
  const TapWindow *windows[WINDOW_MOST]; // these
  BilinearStages out;
} Rewriting;

static const TapWindow *window_at(const Rewriting *r, int axis, bool transformed) {
  for (int i = 0; i < r->product->count; i++) {
    const TapWindow *w = &r->product->windows[i];
    if ((w->axis == axis || w->tap == axis) && w->transformed == transformed) return w;
  }
  return NULL;
}

static int64_t tiles_of(const TapWindow *w) {
  return ceil_div(w->outputs, w->algorithm.outputs);
}

static bool is_tap(const Rewriting *r, int axis) {
  return axis >= r->from->axis_count;
}

static TensorAxes axes_of_products(const Rewriting *r) {
  TensorAxes t = {0};
  for (int i = 0; i < r->count; i++)
    tensor_axes_add(r->context, &t, -1, r->windows[i]->algorithm.products);
  return t;
}

static void add_own(const Rewriting *r, TensorAxes *t, int axis) {
  tensor_axes_add(r->context, t, axis, weighted_sum_extent(&r->product->sum, axis));
}

// ---- u: the weights, summed in float64 and rounded once

static TensorAxes weight_axes(Rewriting *r) {
  TensorAxes t = axes_of_products(r);
  for (int a = 0; a < r->from->axis_count + r->from->reduce_count; a++)
    if (weighted_sum_moves_weight(&r->product->sum, a) && !window_at(r, a, true)) add_own(r, &t, a);
  t.axes = te_axes(r->te, t.shape, t.rank);
  return t;
}

// Calls `term` for each combination of the terms of the transformed windows; the last one runs
// innermost.
typedef Expr *TermOf(const Rewriting *r, const TensorAxes *t, const int64_t *at);
static Expr *sum_of_terms(const Rewriting *r, const TensorAxes *t, NestedSum *n, TermOf *term) {
  int64_t at[WINDOW_MOST];
  int all = 1;
  for (int i = 0; i < n->count; i++) all *= n->rows[i].terms;
  Expr **terms = arena_array(&r->context->arena, Expr *, all);
  for (int k = 0; k < all; k++) {
    for (int i = n->count - 1, rest = k; i >= 0; rest /= n->rows[i--].terms)
      at[i] = rest % n->rows[i].terms;
    terms[k] = term(r, t, at);
  }
  return combination_nested(n, terms);
}

static Expr *weight_term(const Rewriting *r, const TensorAxes *t, const int64_t *at) {
  Map map = tensor_axes_map(r->context, &r->product->sum, t);
  for (int i = 0; i < r->count; i++) {
    Expr *tap = r->from->axes[r->windows[i]->tap].var;
    map_put(&map, tap, expr_int(r->context, tap->type, at[i]));
  }
  return expr_cast(r->context, DTYPE_FLOAT64,
                   substitute_expr(r->context, r->product->sum.weight, &map));
}

static TensorAxes make_weights(Rewriting *r) {
  TensorAxes t = weight_axes(r);
  NestedSum sum = {.context = r->context, .count = r->count};
  for (int i = 0; i < r->count; i++) {
    const BilinearAlgorithm *a = &r->windows[i]->algorithm;
    sum.rows[i] = matrix_rows(a->tap, a->products, a->taps);
    sum.indices[i] = t.axes.at[i];
  }
  te_compute(r->te, str_format(r->context, "%s_weights", r->from->name), DTYPE_FLOAT32, t.shape,
             &t.axes, sum_of_terms(r, &t, &sum, weight_term));
  r->out.weights = array_last(&r->te->stages);
  return t;
}

// ---- v: the image in tiles

static void add_image_sums(const Rewriting *r, TensorAxes *t) {
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++)
    if (weighted_sum_moves_image(&r->product->sum, a) && !window_at(r, a, true) &&
        !window_at(r, a, false))
      add_own(r, t, a);
}

// The axes of the reduction take the place of the filters.
static TensorAxes data_axes(Rewriting *r) {
  TensorAxes t = axes_of_products(r);
  bool added = false;
  for (int a = 0; a < r->from->axis_count; a++) {
    const TapWindow *tiled = window_at(r, a, true), *kept = window_at(r, a, false);
    if (!weighted_sum_moves_image(&r->product->sum, a) && !added) add_image_sums(r, &t);
    added |= !weighted_sum_moves_image(&r->product->sum, a);
    if (!weighted_sum_moves_image(&r->product->sum, a)) continue;
    if (tiled) tensor_axes_add(r->context, &t, a, tiles_of(tiled));
    if (kept) tensor_axes_add(r->context, &t, a, kept->outputs + kept->taps - 1);
    if (!tiled && !kept) add_own(r, &t, a);
  }
  t.axes = te_axes(r->te, t.shape, t.rank);
  return t;
}

// The element `at` of a tile, which is 0 where no window has it.
static Expr *data_term(const Rewriting *r, const TensorAxes *t, const int64_t *at) {
  Context *context = r->context;
  Map map = tensor_axes_map(r->context, &r->product->sum, t);
  Expr *inside = expr_bool(context, true);
  for (int i = 0; i < r->product->count; i++) {
    Expr *tap = r->from->axes[r->product->windows[i].tap].var;
    map_put(&map, tap, expr_int(context, tap->type, 0));
  }
  for (int i = 0; i < r->count; i++) {
    const TapWindow *w = r->windows[i];
    Expr *y = r->from->axes[w->axis].var, *tile = tensor_axes_find(t, w->axis);
    Expr *first = expr_mul(context, tile, expr_int(context, tile->type, w->algorithm.outputs));
    Expr *index = shifted(context, first, at[i]);
    int64_t tiles = ceil_div(w->outputs, w->algorithm.outputs), end = w->outputs + w->taps - 1;
    if ((tiles - 1) * w->algorithm.outputs + at[i] >= end)
      inside = expr_and(context, inside, expr_lt(context, index, expr_int(context, y->type, end)));
    map_put(&map, y, index);
  }
  return expr_if_then_else(context, inside, substitute_expr(context, r->product->sum.image, &map),
                           expr_float(context, DTYPE_FLOAT32, 0));
}

static TensorAxes make_data(Rewriting *r) {
  TensorAxes t = data_axes(r);
  NestedSum sum = {.context = r->context, .count = r->count};
  for (int i = 0; i < r->count; i++) {
    const BilinearAlgorithm *a = &r->windows[i]->algorithm;
    sum.rows[i] = matrix_rows(a->data, a->products, a->products);
    sum.indices[i] = t.axes.at[i];
  }
  te_compute(r->te, str_format(r->context, "%s_tiles", r->from->name), DTYPE_FLOAT32, t.shape,
             &t.axes, sum_of_terms(r, &t, &sum, data_term));
  r->out.data = array_last(&r->te->stages);
  r->out.data->transform = combination_transform(&sum, (1u << r->count) - 1);
  return t;
}

// ---- p: the products

// The element of a tensor at the axes of the products and of the reduction.
static Expr *factor_at(const Rewriting *r, const TensorAxes *t, const TensorAxes *products,
                       const Map *sums, Buffer *buffer) {
  Expr *at[TE_MAX_RANK];
  for (int d = 0; d < t->rank; d++) {
    at[d] = t->of[d] < 0          ? products->axes.at[d]
            : is_tap(r, t->of[d]) ? map_find(sums, r->from->axes[t->of[d]].var)
                                  : tensor_axes_find(products, t->of[d]);
    const TapWindow *kept = t->of[d] < 0 ? NULL : window_at(r, t->of[d], false);
    if (kept && buffer == r->out.data->output)
      at[d] = expr_add(r->context, at[d], map_find(sums, r->from->axes[kept->tap].var));
  }
  return te_at(r->te, buffer, at);
}

static TensorAxes make_products(Rewriting *r, const TensorAxes *weights, const TensorAxes *data) {
  TensorAxes t = axes_of_products(r);
  for (int a = 0; a < r->from->axis_count; a++) {
    const TapWindow *tiled = window_at(r, a, true);
    if (tiled) tensor_axes_add(r->context, &t, a, tiles_of(tiled));
    if (!tiled) add_own(r, &t, a);
  }
  t.axes = te_axes(r->te, t.shape, t.rank);
  const WeightedSum *direct = &r->product->sum;
  ProductSum sum = product_sum_new(r->context);
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++)
    if (!window_at(r, a, true))
      product_sum_add(r->te, direct, a, weighted_sum_extent(direct, a), &sum);
  r->out.products = product_sum_stage(r->te, direct, &t, &sum,
                                      factor_at(r, data, &t, &sum.axes, r->out.data->output),
                                      factor_at(r, weights, &t, &sum.axes, r->out.weights->output));
  return t;
}

// ---- y: the outputs

static Expr *product_term(const Rewriting *r, const TensorAxes *t, const int64_t *at) {
  Expr *index[TE_MAX_RANK];
  for (int d = 0; d < t->rank; d++) {
    Expr *y = d < r->count ? NULL : r->from->axes[t->of[d]].var;
    const TapWindow *tiled = d < r->count ? NULL : window_at(r, t->of[d], true);
    index[d] = !y       ? expr_index(r->context, at[d])
               : !tiled ? y
                        : expr_floor_div(r->context, y,
                                         expr_int(r->context, y->type, tiled->algorithm.outputs));
  }
  return te_at(r->te, r->out.products->output, index);
}

static void make_outputs(Rewriting *r, const TensorAxes *products) {
  Context *context = r->context;
  NestedSum sum = {.context = context, .count = r->count};
  for (int i = 0; i < r->count; i++) {
    const BilinearAlgorithm *a = &r->windows[i]->algorithm;
    Expr *y = r->from->axes[r->windows[i]->axis].var;
    sum.rows[i] = matrix_rows(a->output, a->outputs, a->products);
    sum.indices[i] = expr_floor_mod(context, y, expr_int(context, y->type, a->outputs));
  }
  TeStage *te = arena_copy(&context->arena, r->from, sizeof *te);
  te->reduce_count = 0;
  te->init = NULL;
  uint32_t axes = 0;
  for (int i = 0; i < r->count; i++) axes |= 1u << r->windows[i]->axis;
  te->transform = combination_transform(&sum, axes);
  te->value = sum_of_terms(r, products, &sum, product_term);
  r->out.outputs = te;
}

BilinearStages bilinear_stages(Context *context, const WindowProduct *product) {
  Rewriting r = {context, te_new(context), product, product->sum.stage->te};
  for (int i = 0; i < product->count; i++)
    if (product->windows[i].transformed) r.windows[r.count++] = &product->windows[i];
  TensorAxes weights = make_weights(&r), data = make_data(&r),
             products = make_products(&r, &weights, &data);
  make_outputs(&r, &products);
  return r.out;
}
