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

#include "arith/arith.h"

// ---- The form

static bool is_sum_so_far(const Stage *stage, const Expr *e) {
  return e->op == EXPR_LOAD && e->as.buffer == stage->te->output;
}

// Sets the factors of value = sum so far + image * weight, where the weight is the element of a
// constant.
static bool find_factors(const StageGraph *s, WindowProduct *p) {
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

static Expr *axis_of(const WindowProduct *p, int axis) {
  return p->stage->te->axes[axis].var;
}

static bool moves_image(const WindowProduct *p, int axis) {
  return expr_uses(p->image, axis_of(p, axis));
}

static bool moves_weight(const WindowProduct *p, int axis) {
  return expr_uses(p->weight, axis_of(p, axis));
}

static Expr *shifted(Context *context, Expr *var, int64_t by) {
  return expr_add(context, var, expr_int(context, var->type, by));
}

// Is the image the same after a step of the axis forward and of the tap backward?
static bool moves_as_sum(Context *context, const WindowProduct *p, int axis, int tap) {
  Expr *y = axis_of(p, axis), *r = axis_of(p, tap);
  if (!moves_image(p, axis) || !moves_image(p, tap)) return false;
  Map step = map_new(&context->scratch);
  map_put(&step, y, shifted(context, y, 1));
  map_put(&step, r, shifted(context, r, -1));
  Analyzer *analyzer = analyzer_new(context);
  Expr *after = substitute_expr(context, p->image, &step);
  return analyzer_simplify(analyzer, after) == analyzer_simplify(analyzer, p->image);
}

static bool has_window(const WindowProduct *p, int axis) {
  for (int i = 0; i < p->count; i++)
    if (p->windows[i].axis == axis) return true;
  return false;
}

static void find_windows(Context *context, WindowProduct *p) {
  const TeStage *te = p->stage->te;
  for (int r = te->axis_count; r < te->axis_count + te->reduce_count; r++)
    for (int y = 0; y < te->axis_count && p->count < WINDOW_MOST; y++) {
      TapWindow window = {.axis = y, .tap = r};
      if (!expr_as_int(te->axes[y].extent, &window.outputs) ||
          !expr_as_int(te->axes[r].extent, &window.taps) || window.taps < 3 ||
          window.taps > WINDOW_MOST_TAPS || has_window(p, y) || moves_weight(p, y) ||
          !moves_weight(p, r) || !moves_as_sum(context, p, y, r))
        continue;
      p->windows[p->count++] = window;
      break;
    }
}

// Does each axis of the output move one factor alone, and some axis the weight?
static bool has_filters(const WindowProduct *p) {
  bool filters = false;
  for (int a = 0; a < p->stage->te->axis_count; a++) {
    if (moves_image(p, a) && moves_weight(p, a)) return false;
    filters |= moves_weight(p, a);
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

bool window_product_of(StageGraph *s, Stage *stage, WindowProduct *out) {
  *out = (WindowProduct){.stage = stage};
  if (!is_float_sum(stage) || !has_known_axes(stage->te) || !find_factors(s, out)) return false;
  if (!has_filters(out)) return false;
  find_windows(s->context, out);
  return out->count > 0;
}

// ---- Linear combinations

typedef struct MatrixRows { // a matrix of numbers that are exact in doubles
  int count, terms;
  double at[BILINEAR_MOST][BILINEAR_MOST];
} MatrixRows;

static MatrixRows rows_of(const Fraction (*matrix)[BILINEAR_MOST], int count, int terms) {
  MatrixRows rows = {count, terms, {{0}}};
  for (int i = 0; i < count; i++)
    for (int k = 0; k < terms; k++) rows.at[i][k] = fraction_value(matrix[i][k]);
  return rows;
}

typedef struct Combining {
  Context *context;
  Expr *terms[BILINEAR_MOST];
} Combining;

static Expr *with_term(Context *context, Expr *sum, Expr *term, double factor) {
  if (!sum && factor == 1) return term;
  Expr *scaled = factor == 1 || (factor == -1 && sum)
                     ? term
                     : expr_mul(context, term, expr_float(context, term->type, factor));
  if (!sum) return scaled;
  return factor == -1 ? expr_sub(context, sum, scaled) : expr_add(context, sum, scaled);
}

// Σ factors[i] * terms[i], beginning with a term whose factor is 1.
static Expr *combination(const Combining *c, const double *factors, int count) {
  int first = -1;
  for (int i = count - 1; i >= 0; i--)
    if (factors[i] == 1 || (factors[i] != 0 && first < 0)) first = i;
  Expr *sum = first < 0 ? expr_float(c->context, c->terms[0]->type, 0)
                        : with_term(c->context, NULL, c->terms[first], factors[first]);
  for (int i = 0; i < count; i++)
    if (i != first && factors[i] != 0) sum = with_term(c->context, sum, c->terms[i], factors[i]);
  return sum;
}

// Splits two rows into half their sum and half their difference, which two points of different
// signs share. False when a term is in both parts.
static bool share_parts(const MatrixRows *rows, int a, int b, double *same, double *other) {
  bool first = false, second = false;
  for (int k = 0; k < rows->terms; k++) {
    same[k] = (rows->at[a][k] + rows->at[b][k]) / 2;
    other[k] = (rows->at[a][k] - rows->at[b][k]) / 2;
    if (same[k] != 0 && other[k] != 0) return false;
    first |= same[k] != 0;
    second |= other[k] != 0;
  }
  return first && second;
}

static Expr *row_of(const Combining *c, const MatrixRows *rows, int i) {
  double same[BILINEAR_MOST], other[BILINEAR_MOST];
  for (int k = 0; k < rows->count; k++) {
    if (k == i || !share_parts(rows, MIN_OF(i, k), MAX_OF(i, k), same, other)) continue;
    Expr *a = combination(c, same, rows->terms), *b = combination(c, other, rows->terms);
    return i < k ? expr_add(c->context, a, b) : expr_sub(c->context, a, b);
  }
  return combination(c, rows->at[i], rows->terms);
}

// Are the two terms' factors equal in each row, or each other's negatives?
static bool are_paired(const MatrixRows *rows, int a, int b) {
  for (int i = 0; i < rows->count; i++)
    if (rows->at[i][a] != rows->at[i][b] && rows->at[i][a] != -rows->at[i][b]) return false;
  return true;
}

// Replaces two paired terms by their sum and their difference, which the rows share.
static void pair_terms(Combining *c, MatrixRows *rows, int a, int b) {
  Expr *x = c->terms[a], *y = c->terms[b];
  c->terms[a] = expr_add(c->context, x, y);
  c->terms[b] = expr_sub(c->context, x, y);
  for (int i = 0; i < rows->count; i++) {
    bool equal = rows->at[i][a] == rows->at[i][b];
    if (equal) rows->at[i][b] = 0;
    if (!equal) rows->at[i][b] = rows->at[i][a], rows->at[i][a] = 0;
  }
}

static void pair_all_terms(Combining *c, MatrixRows *rows) {
  bool paired[BILINEAR_MOST] = {false};
  for (int a = 0; a < rows->terms; a++)
    for (int b = a + 1; b < rows->terms && !paired[a]; b++)
      if (!paired[b] && are_paired(rows, a, b)) {
        pair_terms(c, rows, a, b);
        paired[a] = paired[b] = true;
      }
}

// The row `index` of the product of the matrix and the terms.
static Expr *chosen_row(Context *context, MatrixRows rows, Expr *const *terms, Expr *index) {
  Combining c = {.context = context};
  memcpy(c.terms, terms, sizeof *terms * (size_t)rows.terms);
  if (rows.count < rows.terms) pair_all_terms(&c, &rows);
  Expr *chosen = row_of(&c, &rows, rows.count - 1);
  for (int i = rows.count - 2; i >= 0; i--) {
    Expr *is_row = expr_binary(context, EXPR_EQ, index, expr_int(context, index->type, i));
    chosen = expr_select(context, is_row, row_of(&c, &rows, i), chosen);
  }
  return chosen;
}

// ---- Nested sums

typedef struct HeldPart { // a value that several terms use
  Expr *var, *value;
} HeldPart;

typedef struct NestedSum {
  Context *context;
  int count;                    // matrices, from the outer to the inner term
  MatrixRows rows[WINDOW_MOST]; //
  Expr *indices[WINDOW_MOST];
  Array(HeldPart) held;
} NestedSum;

static Expr *hold(NestedSum *n, Expr *value) {
  HeldPart held = {expr_var(n->context, "part", value->type), value};
  array_push(&n->context->arena, &n->held, held);
  return held.var;
}

// Σ_a rows[0][index, a] Σ_b rows[1][index, b] … terms[a, b, …], which may be overwritten.
static Expr *nested_sum(NestedSum *n, Expr **terms) {
  int rest = 1;
  for (int i = 1; i < n->count; i++) rest *= n->rows[i].terms;
  for (int i = 0; i < rest * n->rows[0].terms; i++) terms[i] = hold(n, terms[i]);
  for (int w = 0; w < n->count; w++) {
    for (int i = 0; i < rest; i++) {
      Expr *column[BILINEAR_MOST];
      for (int k = 0; k < n->rows[w].terms; k++) column[k] = terms[k * rest + i];
      Expr *sum = chosen_row(n->context, n->rows[w], column, n->indices[w]);
      terms[i] = w + 1 < n->count ? hold(n, sum) : sum;
    }
    if (w + 1 < n->count) rest /= n->rows[w + 1].terms;
  }
  Expr *value = terms[0];
  for (int i = n->held.count - 1; i >= 0; i--)
    value = expr_let(n->context, n->held.items[i].var, n->held.items[i].value, value);
  return value;
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

static Expr *tiles_of(const Rewriting *r, const TapWindow *w) {
  return expr_index(r->context, ceil_div(w->outputs, w->algorithm.outputs));
}

static bool is_tap(const Rewriting *r, int axis) {
  return axis >= r->from->axis_count;
}

// The new axes of a tensor, and the axis of the product that each of them stands for; -1: the
// products of a window.
typedef struct TensorAxes {
  int rank, of[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK];
  TeAxes axes;
} TensorAxes;

static void add_axis(TensorAxes *t, int of, Expr *extent) {
  t->of[t->rank] = of;
  t->shape[t->rank++] = extent;
}

static TensorAxes axes_of_products(const Rewriting *r) {
  TensorAxes t = {0};
  for (int i = 0; i < r->count; i++)
    add_axis(&t, -1, expr_index(r->context, r->windows[i]->algorithm.products));
  return t;
}

static Expr *extent_of(const Rewriting *r, int axis) {
  return expr_cast(r->context, DTYPE_INT32, r->from->axes[axis].extent);
}

static Expr *new_axis_of(const TensorAxes *t, int of) {
  for (int d = 0; d < t->rank; d++)
    if (t->of[d] == of) return t->axes.at[d];
  return NULL;
}

// ---- u: the weights, summed in float64 and rounded once

static TensorAxes weight_axes(Rewriting *r) {
  TensorAxes t = axes_of_products(r);
  for (int a = 0; a < r->from->axis_count + r->from->reduce_count; a++)
    if (moves_weight(r->product, a) && !window_at(r, a, true)) add_axis(&t, a, extent_of(r, a));
  t.axes = te_axes(r->te, t.shape, t.rank);
  return t;
}

static Map axis_map(const Rewriting *r, const TensorAxes *t) {
  Map map = map_new(&r->context->arena);
  for (int d = 0; d < t->rank; d++)
    if (t->of[d] >= 0) map_put(&map, r->from->axes[t->of[d]].var, t->axes.at[d]);
  return map;
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
  return nested_sum(n, terms);
}

static Expr *weight_term(const Rewriting *r, const TensorAxes *t, const int64_t *at) {
  Map map = axis_map(r, t);
  for (int i = 0; i < r->count; i++) {
    Expr *tap = r->from->axes[r->windows[i]->tap].var;
    map_put(&map, tap, expr_int(r->context, tap->type, at[i]));
  }
  return expr_cast(r->context, DTYPE_FLOAT64,
                   substitute_expr(r->context, r->product->weight, &map));
}

static TensorAxes make_weights(Rewriting *r) {
  TensorAxes t = weight_axes(r);
  NestedSum sum = {.context = r->context, .count = r->count};
  for (int i = 0; i < r->count; i++) {
    const BilinearAlgorithm *a = &r->windows[i]->algorithm;
    sum.rows[i] = rows_of(a->tap, a->products, a->taps);
    sum.indices[i] = t.axes.at[i];
  }
  te_compute(r->te, str_format(r->context, "%s_weights", r->from->name), DTYPE_FLOAT32, t.shape,
             &t.axes, sum_of_terms(r, &t, &sum, weight_term));
  r->out.weights = array_last(&r->te->stages);
  return t;
}

// ---- What the transforms take

// The operations of a matrix that multiplies one column.
static int matrix_operations(const MatrixRows *rows) {
  int operations = 0;
  for (int i = 0; i < rows->count; i++) {
    int terms = 0;
    for (int k = 0; k < rows->terms; k++) terms += rows->at[i][k] != 0;
    operations += MAX_OF(terms - 1, 1);
  }
  return operations;
}

static TeTransform *transform_of(const NestedSum *n, uint32_t axes) {
  TeTransform *transform = arena_new(&n->context->arena, TeTransform);
  double before = 1, after = 1;
  for (int w = 0; w < n->count; w++) before *= n->rows[w].terms;
  *transform = (TeTransform){.axes = axes};
  for (int w = 0; w < n->count; w++) {
    before /= n->rows[w].terms;
    transform->operations += before * after * matrix_operations(&n->rows[w]);
    after *= n->rows[w].count;
  }
  transform->operations /= after;
  return transform;
}

// ---- v: the image in tiles

static void add_image_sums(const Rewriting *r, TensorAxes *t) {
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++)
    if (moves_image(r->product, a) && !window_at(r, a, true) && !window_at(r, a, false))
      add_axis(t, a, extent_of(r, a));
}

// The axes of the reduction take the place of the filters.
static TensorAxes data_axes(Rewriting *r) {
  TensorAxes t = axes_of_products(r);
  bool added = false;
  for (int a = 0; a < r->from->axis_count; a++) {
    const TapWindow *tiled = window_at(r, a, true), *kept = window_at(r, a, false);
    if (!moves_image(r->product, a) && !added) add_image_sums(r, &t);
    added |= !moves_image(r->product, a);
    if (!moves_image(r->product, a)) continue;
    if (tiled) add_axis(&t, a, tiles_of(r, tiled));
    if (kept) add_axis(&t, a, expr_index(r->context, kept->outputs + kept->taps - 1));
    if (!tiled && !kept) add_axis(&t, a, extent_of(r, a));
  }
  t.axes = te_axes(r->te, t.shape, t.rank);
  return t;
}

// The element `at` of a tile, which is 0 where no window has it.
static Expr *data_term(const Rewriting *r, const TensorAxes *t, const int64_t *at) {
  Context *context = r->context;
  Map map = axis_map(r, t);
  Expr *inside = expr_bool(context, true);
  for (int i = 0; i < r->product->count; i++) {
    Expr *tap = r->from->axes[r->product->windows[i].tap].var;
    map_put(&map, tap, expr_int(context, tap->type, 0));
  }
  for (int i = 0; i < r->count; i++) {
    const TapWindow *w = r->windows[i];
    Expr *y = r->from->axes[w->axis].var, *tile = new_axis_of(t, w->axis);
    Expr *first = expr_mul(context, tile, expr_int(context, tile->type, w->algorithm.outputs));
    Expr *index = shifted(context, first, at[i]);
    int64_t tiles = ceil_div(w->outputs, w->algorithm.outputs), end = w->outputs + w->taps - 1;
    if ((tiles - 1) * w->algorithm.outputs + at[i] >= end)
      inside = expr_and(context, inside, expr_lt(context, index, expr_int(context, y->type, end)));
    map_put(&map, y, index);
  }
  return expr_if_then_else(context, inside, substitute_expr(context, r->product->image, &map),
                           expr_float(context, DTYPE_FLOAT32, 0));
}

static TensorAxes make_data(Rewriting *r) {
  TensorAxes t = data_axes(r);
  NestedSum sum = {.context = r->context, .count = r->count};
  for (int i = 0; i < r->count; i++) {
    const BilinearAlgorithm *a = &r->windows[i]->algorithm;
    sum.rows[i] = rows_of(a->data, a->products, a->products);
    sum.indices[i] = t.axes.at[i];
  }
  te_compute(r->te, str_format(r->context, "%s_tiles", r->from->name), DTYPE_FLOAT32, t.shape,
             &t.axes, sum_of_terms(r, &t, &sum, data_term));
  r->out.data = array_last(&r->te->stages);
  r->out.data->transform = transform_of(&sum, (1u << r->count) - 1);
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
                                  : new_axis_of(products, t->of[d]);
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
    add_axis(&t, a, tiled ? tiles_of(r, tiled) : extent_of(r, a));
  }
  t.axes = te_axes(r->te, t.shape, t.rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_float(r->context, DTYPE_FLOAT32, 0)};
  Map sums = map_new(&r->context->arena);
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++) {
    if (window_at(r, a, true)) continue;
    const char *name = r->from->axes[a].var->as.var->name;
    sum.extents[sum.count] = extent_of(r, a);
    sum.axes[sum.count] = te_reduce_axis(r->te, name, sum.extents[sum.count]);
    map_put(&sums, r->from->axes[a].var, sum.axes[sum.count++]);
  }
  Expr *value = expr_mul(r->context, factor_at(r, data, &t, &sums, r->out.data->output),
                         factor_at(r, weights, &t, &sums, r->out.weights->output));
  te_reduce(r->te, str_format(r->context, "%s_products", r->from->name), DTYPE_FLOAT32, t.shape,
            &t.axes, &sum, value);
  r->out.products = array_last(&r->te->stages);
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
    sum.rows[i] = rows_of(a->output, a->outputs, a->products);
    sum.indices[i] = expr_floor_mod(context, y, expr_int(context, y->type, a->outputs));
  }
  TeStage *te = arena_copy(&context->arena, r->from, sizeof *te);
  te->reduce_count = 0;
  te->init = NULL;
  uint32_t axes = 0;
  for (int i = 0; i < r->count; i++) axes |= 1u << r->windows[i]->axis;
  te->transform = transform_of(&sum, axes);
  te->value = sum_of_terms(r, products, &sum, product_term);
  r->out.outputs = te;
}

BilinearStages bilinear_stages(Context *context, const WindowProduct *product) {
  Rewriting r = {context, te_new(context), product, product->stage->te};
  for (int i = 0; i < product->count; i++)
    if (product->windows[i].transformed) r.windows[r.count++] = &product->windows[i];
  TensorAxes weights = make_weights(&r), data = make_data(&r),
             products = make_products(&r, &weights, &data);
  make_outputs(&r, &products);
  return r.out;
}

void stage_graph_add_bilinear(StageGraph *s, const WindowProduct *product,
                              const BilinearStages *use) {
  TeStage *const by[] = {use->data, use->weights, use->products, use->outputs};
  stage_graph_add_other(s, product->stage, by, COUNT_OF(by));
  product->stage->usual = array_last(&product->stage->others);
  stage_tensor_of(s, use->weights->output)->folds = true;
}
