// SPDX-License-Identifier: Apache-2.0
// Finds products of matrices by their loops, and computes them with seven products of blocks in
// place of eight (Strassen, "Gaussian elimination is not optimal", 1969):
//
//   y[i, j] = Σ_k x[i, k] * w[k, j]     for J columns and K terms, and with the digits
//                                       i = 2*i' + i0, j = j1*J/2 + j', k = k1*K/2 + k':
//   u[a, k', j'] = Σ_{k1, j1} G[a, k1, j1] * w[k, j]     constant
//   v[a, i', k'] = Σ_{i0, k1} B[a, i0, k1] * x[i, k]     0 behind the last row
//   p[a, i', j'] = Σ_k' v[a, i', k'] * u[a, k', j']
//   y[i, j]      = Σ_a A[i0, j1, a] * p[a, i', j']
//
// Blocks have the even or the odd rows, so that their number may be odd, and the left or the right
// half of the columns and of the terms, along which vectors run.
#include "graph/block_products.h"

#include "arith/arith.h"

#include <math.h>

// ---- The algorithm

// Has the least bound of rounding errors among the known algorithms of seven products.
static const BlockAlgorithm strassen = {
    .image = {7,
              4,
              {{1, 0, 0, 1},
               {0, 0, 1, 1},
               {1, 0, 0, 0},
               {0, 0, 0, 1},
               {1, 1, 0, 0},
               {-1, 0, 1, 0},
               {0, 1, 0, -1}}},
    .weight = {7,
               4,
               {{1, 0, 0, 1},
                {1, 0, 0, 0},
                {0, 1, 0, -1},
                {-1, 0, 1, 0},
                {0, 0, 0, 1},
                {1, 1, 0, 0},
                {0, 0, 1, 1}}},
    .output = {4,
               7,
               {{1, 0, 0, 1, -1, 0, 1},
                {0, 0, 1, 0, 1, 0, 0},
                {0, 1, 0, 1, 0, 0, 0},
                {1, -1, 1, 0, 0, 1, 0}}},
};

const BlockAlgorithm *block_algorithm(void) {
  return &strassen;
}

// The factor of image block a times weight block b in an output block.
static double coefficient(const BlockAlgorithm *by, int output, int a, int b) {
  double sum = 0;
  for (int p = 0; p < by->image.count; p++)
    sum += by->output.at[output][p] * by->image.at[p][a] * by->weight.at[p][b];
  return sum;
}

bool block_proves(const BlockAlgorithm *by) {
  for (int output = 0; output < BLOCK_TERMS; output++)
    for (int a = 0; a < BLOCK_TERMS; a++)
      for (int b = 0; b < BLOCK_TERMS; b++) {
        bool term = a / 2 == output / 2 && b % 2 == output % 2 && a % 2 == b / 2;
        if (coefficient(by, output, a, b) != term) return false;
      }
  return true;
}

static double magnitudes(const double *row, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += fabs(row[i]);
  return sum;
}

double block_bound(const BlockAlgorithm *by) {
  double largest = 0;
  for (int output = 0; output < BLOCK_TERMS; output++) {
    double sum = 0;
    for (int p = 0; p < by->image.count; p++)
      sum += fabs(by->output.at[output][p]) * magnitudes(by->image.at[p], BLOCK_TERMS) *
             magnitudes(by->weight.at[p], BLOCK_TERMS);
    largest = fmax(largest, sum);
  }
  return largest / 2;
}

// ---- The form

// By how much the rows grow when their number becomes even.
static double growth(int64_t rows) {
  return 2 * (double)ceil_div(rows, 2) / (double)rows;
}

// The axis of the rows that grows least; -1: there is none.
static int row_axis(const WeightedSum *p) {
  int best = -1;
  for (int a = 0; a < p->stage->te->axis_count; a++) {
    int64_t extent = weighted_sum_extent(p, a);
    if (extent < 2 || !weighted_sum_moves_image(p, a)) continue;
    if (best < 0 || growth(extent) < growth(weighted_sum_extent(p, best))) best = a;
  }
  return best;
}

// The longest axis between two with an even extent that moves the weight, and the image if that is
// asked; -1: there is none.
static int longest_axis(const WeightedSum *p, int first, int end, bool image) {
  int best = -1;
  for (int a = first; a < end; a++)
    if (weighted_sum_extent(p, a) % 2 == 0 && weighted_sum_moves_weight(p, a) &&
        weighted_sum_moves_image(p, a) == image &&
        (best < 0 || weighted_sum_extent(p, a) > weighted_sum_extent(p, best)))
      best = a;
  return best;
}

static bool note_load(Visitor *visitor, Expr *e) {
  double *largest = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  const Buffer *buffer = e->as.buffer;
  double elements = 1;
  int64_t extent;
  for (int i = 0; i < buffer->rank; i++)
    elements *= expr_as_int(buffer->shape[i], &extent) ? (double)extent : 0;
  *largest = MAX_OF(*largest, elements);
  return true;
}

// Does the sum use an element of the image in one row only? Where windows overlap, the blocks would
// have a copy of it for each of them.
static bool uses_elements_once(const WeightedSum *p) {
  double largest = 0, used = 1;
  Visitor visitor = {.env = &largest, .enter_expr = note_load};
  const TeStage *te = p->stage->te;
  visit_expr(&visitor, p->image);
  for (int a = 0; a < te->axis_count + te->reduce_count; a++)
    if (weighted_sum_moves_image(p, a)) used *= (double)weighted_sum_extent(p, a);
  return used <= largest;
}

bool block_product_of(StageGraph *s, Stage *stage, BlockProduct *out) {
  *out = (BlockProduct){.row = -1};
  if (!weighted_sum_of(s, stage, &out->sum)) return false;
  out->row = row_axis(&out->sum);
  int spatial = stage->te->axis_count, all = spatial + stage->te->reduce_count;
  out->column = longest_axis(&out->sum, 0, spatial, false);
  out->inner = longest_axis(&out->sum, spatial, all, true);
  return out->row >= 0 && out->column >= 0 && out->inner >= 0 && uses_elements_once(&out->sum);
}

// ---- The stages

typedef struct BlockRewriting {
  Context *context;
  Te *te;
  const BlockProduct *product;
  const TeStage *from;
  const BlockAlgorithm *by;
  BilinearStages out;
} BlockRewriting;

static int64_t extent_of(const BlockRewriting *r, int axis) {
  return weighted_sum_extent(&r->product->sum, axis);
}

static int64_t half_of(const BlockRewriting *r, int axis) {
  return ceil_div(extent_of(r, axis), 2);
}

static bool is_halved(const BlockRewriting *r, int axis) {
  return axis == r->product->row || axis == r->product->column || axis == r->product->inner;
}

// Is it an axis of one term, as the taps of a convolution of 1x1?
static bool is_single(const BlockRewriting *r, int axis) {
  return weighted_sum_is_reduced(&r->product->sum, axis) && extent_of(r, axis) == 1;
}

static void add_axis(const BlockRewriting *r, TensorAxes *t, int axis) {
  tensor_axes_add(r->context, t, axis, is_halved(r, axis) ? half_of(r, axis) : extent_of(r, axis));
}

static TensorAxes axes_of_products(const BlockRewriting *r) {
  TensorAxes t = {0};
  tensor_axes_add(r->context, &t, -1, BLOCK_PRODUCTS);
  return t;
}

// The axes of the sum for an element of a block; those of one term are 0.
static Map element_map(const BlockRewriting *r, const TensorAxes *t) {
  Map map = tensor_axes_map(r->context, &r->product->sum, t);
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++) {
    Expr *var = r->from->axes[a].var;
    if (is_single(r, a)) map_put(&map, var, expr_int(r->context, var->type, 0));
  }
  return map;
}

// The index of element `at` of the left half of an axis, or of the right one.
static Expr *in_half(const BlockRewriting *r, const TensorAxes *t, int axis, int half) {
  Expr *at = tensor_axes_find(t, axis);
  return expr_add(r->context, at, expr_int(r->context, at->type, half * half_of(r, axis)));
}

// Element a of the axis of products, which is one of the combinations of the terms.
static TeStage *compute_combinations(BlockRewriting *r, const char *name, const TensorAxes *t,
                                     const MatrixRows *rows, Expr **terms) {
  NestedSum sum = {.context = r->context, .count = 1, .rows = {*rows}, .indices = {t->axes.at[0]}};
  te_compute(r->te, str_format(r->context, "%s_%s", r->from->name, name), DTYPE_FLOAT32, t->shape,
             &t->axes, combination_nested(&sum, terms));
  TeStage *stage = array_last(&r->te->stages);
  stage->transform = combination_transform(&sum, 1);
  return stage;
}

// u: the weights, added in float64 and rounded once.
static TensorAxes make_weights(BlockRewriting *r) {
  TensorAxes t = axes_of_products(r);
  for (int a = 0; a < r->from->axis_count + r->from->reduce_count; a++)
    if (weighted_sum_moves_weight(&r->product->sum, a) && !is_single(r, a)) add_axis(r, &t, a);
  t.axes = te_axes(r->te, t.shape, t.rank);
  Expr *terms[BLOCK_TERMS];
  for (int e = 0; e < BLOCK_TERMS; e++) {
    Map map = element_map(r, &t);
    int inner = r->product->inner, column = r->product->column;
    map_put(&map, r->from->axes[inner].var, in_half(r, &t, inner, e / 2));
    map_put(&map, r->from->axes[column].var, in_half(r, &t, column, e % 2));
    terms[e] = expr_cast(r->context, DTYPE_FLOAT64,
                         substitute_expr(r->context, r->product->sum.weight, &map));
  }
  r->out.weights = compute_combinations(r, "weights", &t, &r->by->weight, terms);
  r->out.weights->transform = NULL; // it is computed while compiling
  return t;
}

static void add_image_sums(const BlockRewriting *r, TensorAxes *t) {
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++)
    if (weighted_sum_moves_image(&r->product->sum, a) && !is_single(r, a)) add_axis(r, t, a);
}

// The axes that are summed take the place of the columns.
static TensorAxes data_axes(const BlockRewriting *r) {
  TensorAxes t = axes_of_products(r);
  bool added = false;
  for (int a = 0; a < r->from->axis_count; a++) {
    bool filters = !weighted_sum_moves_image(&r->product->sum, a);
    if (filters && !added) add_image_sums(r, &t);
    if (!filters) add_axis(r, &t, a);
    added |= filters;
  }
  t.axes = te_axes(r->te, t.shape, t.rank);
  return t;
}

// Element e of the blocks of the image, which is 0 behind the last row.
static Expr *image_term(const BlockRewriting *r, const TensorAxes *t, int e) {
  Context *context = r->context;
  Map map = element_map(r, t);
  int row = r->product->row, inner = r->product->inner;
  Expr *pair = tensor_axes_find(t, row), *two = expr_int(context, pair->type, 2);
  Expr *index =
      expr_add(context, expr_mul(context, pair, two), expr_int(context, pair->type, e / 2));
  map_put(&map, r->from->axes[row].var, index);
  map_put(&map, r->from->axes[inner].var, in_half(r, t, inner, e % 2));
  Expr *value = substitute_expr(context, r->product->sum.image, &map);
  if (e / 2 == 0 || extent_of(r, row) % 2 == 0) return value;
  Expr *inside = expr_lt(context, index, expr_int(context, index->type, extent_of(r, row)));
  return expr_if_then_else(context, inside, value, expr_float(context, DTYPE_FLOAT32, 0));
}

static TensorAxes make_data(BlockRewriting *r) {
  TensorAxes t = data_axes(r);
  Expr *terms[BLOCK_TERMS];
  for (int e = 0; e < BLOCK_TERMS; e++) terms[e] = image_term(r, &t, e);
  r->out.data = compute_combinations(r, "blocks", &t, &r->by->image, terms);
  return t;
}

// The element of a factor at the axes of the products and of the sum.
static Expr *factor_at(const BlockRewriting *r, const TensorAxes *t, const TensorAxes *products,
                       const Map *sums, Buffer *buffer) {
  Expr *at[TE_MAX_RANK];
  for (int d = 0; d < t->rank; d++) {
    bool summed = t->of[d] >= 0 && weighted_sum_is_reduced(&r->product->sum, t->of[d]);
    at[d] =
        summed ? map_find(sums, r->from->axes[t->of[d]].var) : tensor_axes_find(products, t->of[d]);
  }
  return te_at(r->te, buffer, at);
}

static TensorAxes make_products(BlockRewriting *r, const TensorAxes *weights,
                                const TensorAxes *data) {
  TensorAxes t = axes_of_products(r);
  for (int a = 0; a < r->from->axis_count; a++) add_axis(r, &t, a);
  t.axes = te_axes(r->te, t.shape, t.rank);
  ProductSum sum = product_sum_new(r->context);
  for (int a = r->from->axis_count; a < r->from->axis_count + r->from->reduce_count; a++)
    if (!is_single(r, a))
      product_sum_add(r->te, &r->product->sum, a, is_halved(r, a) ? half_of(r, a) : extent_of(r, a),
                      &sum);
  r->out.products = product_sum_stage(r->te, &r->product->sum, &t, &sum,
                                      factor_at(r, data, &t, &sum.axes, r->out.data->output),
                                      factor_at(r, weights, &t, &sum.axes, r->out.weights->output));
  return t;
}

// Product number `product` at the element of the output.
static Expr *product_at(const BlockRewriting *r, const TensorAxes *t, int product) {
  Expr *index[TE_MAX_RANK] = {expr_index(r->context, product)};
  for (int d = 1; d < t->rank; d++) {
    int a = t->of[d];
    Expr *var = r->from->axes[a].var, *two = expr_int(r->context, var->type, 2);
    index[d] = a == r->product->row ? expr_floor_div(r->context, var, two)
               : a == r->product->column
                   ? expr_floor_mod(r->context, var, expr_int(r->context, var->type, half_of(r, a)))
                   : var;
  }
  return te_at(r->te, r->out.products->output, index);
}

// The value of the first block when the digit is 0.
static Expr *chosen(const BlockRewriting *r, Expr *digit, Expr *first, Expr *second) {
  Expr *zero = expr_int(r->context, digit->type, 0);
  return expr_select(r->context, expr_binary(r->context, EXPR_EQ, digit, zero), first, second);
}

static void make_outputs(BlockRewriting *r, const TensorAxes *products) {
  Context *context = r->context;
  const MatrixRows *rows = &r->by->output;
  NestedSum sum = {.context = context, .count = 1, .rows = {*rows}};
  Expr *parts[BLOCK_PRODUCTS], *blocks[BLOCK_TERMS];
  for (int p = 0; p < BLOCK_PRODUCTS; p++)
    parts[p] = combination_hold(&sum, product_at(r, products, p));
  for (int e = 0; e < BLOCK_TERMS; e++) blocks[e] = combination_row(context, rows, parts, e);
  Expr *i = r->from->axes[r->product->row].var, *j = r->from->axes[r->product->column].var;
  Expr *row = expr_floor_mod(context, i, expr_int(context, i->type, 2));
  Expr *column =
      expr_floor_div(context, j, expr_int(context, j->type, half_of(r, r->product->column)));
  TeStage *te = arena_copy(&context->arena, r->from, sizeof *te);
  te->reduce_count = 0;
  te->init = NULL;
  te->transform = combination_transform(&sum, 1u << r->product->row);
  te->value = combination_with_held(&sum, chosen(r, row, chosen(r, column, blocks[0], blocks[1]),
                                                 chosen(r, column, blocks[2], blocks[3])));
  r->out.outputs = te;
}

BilinearStages block_product_stages(Context *context, const BlockProduct *product) {
  BlockRewriting r = {context, te_new(context), product, product->sum.stage->te, block_algorithm()};
  TensorAxes weights = make_weights(&r), data = make_data(&r),
             products = make_products(&r, &weights, &data);
  make_outputs(&r, &products);
  return r.out;
}
