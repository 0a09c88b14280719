// SPDX-License-Identifier: Apache-2.0
// Measures the rounding errors of bilinear algorithms: computes tiles of random operands as the
// compiled code does (weights transformed in float64 and rounded once, all else in float32, the
// products fused with their additions), and compares with sums in float64.
#include "graph/bilinear_errors.h"

#include <math.h>

enum { LEAST_RESULTS = 64, LEAST_TERMS = 1 << 15, TILE = BILINEAR_MOST * BILINEAR_MOST };

typedef double Matrix[BILINEAR_MOST][BILINEAR_MOST];

typedef struct ErrorTrial {
  const BilinearAlgorithm *by[2]; // along the outer and the inner axis
  Matrix output[2], tap[2], data[2];
  int64_t channels;
  float *image, *weights; // by channel: a tile, and the taps
  uint64_t state, skip_factor, skip_offset;
  double errors[2], results; // sums of squares: direct, bilinear
} ErrorTrial;

enum { UNIFORM_TERMS = 6 }; // of a number that is nearly normally distributed

static uint64_t next_state(uint64_t state) {
  return state * 6364136223846793005u + 1442695040888963407u;
}

static float random_normal(ErrorTrial *t) {
  double sum = 0;
  for (int i = 0; i < UNIFORM_TERMS; i++) {
    t->state = next_state(t->state);
    sum += (double)(t->state >> 33) * 0x1p-31 - 0.5;
  }
  return (float)(sum * sqrt(2));
}

// Finds the linear form of the state after the next number.
static void set_skip(ErrorTrial *t) {
  t->skip_factor = 1;
  for (int i = 0; i < UNIFORM_TERMS; i++) {
    t->skip_offset = next_state(t->skip_offset);
    t->skip_factor = next_state(t->skip_factor);
  }
  t->skip_factor -= t->skip_offset;
}

static void skip_normal(ErrorTrial *t) {
  t->state = t->state * t->skip_factor + t->skip_offset;
}

// Fills the part of a tile that is used, of which the numbers do not depend on the part's size.
static void fill(ErrorTrial *t, int at, float *to, int rows, int columns) {
  if (at / BILINEAR_MOST < rows && at % BILINEAR_MOST < columns)
    *to = random_normal(t);
  else
    skip_normal(t);
}

static float fused(double a, double b, float sum) {
  return (float)(a * b + sum);
}

// Multiplies along one axis: to[i, s] = Σ_k matrix[i, k] * from[k, s], where element (k, s) is at
// k * step + s * stride.
static void multiply(const Matrix matrix, int rows, int columns, const float *from, float *to,
                     int step, int stride, int count) {
  for (int i = 0; i < rows; i++) {
    float sums[BILINEAR_MOST] = {0}; // which do not wait for one another
    for (int k = 0; k < columns; k++)
      for (int s = 0; s < count && matrix[i][k] != 0; s++)
        sums[s] = fused(matrix[i][k], from[k * step + s * stride], sums[s]);
    for (int s = 0; s < count; s++) to[i * step + s * stride] = sums[s];
  }
}

// Transforms the taps of a channel, along the outer axis first.
static void transform_weights(const ErrorTrial *t, const float *taps, float *out) {
  const BilinearAlgorithm *y = t->by[0], *x = t->by[1];
  for (int a = 0; a < y->products; a++) {
    double along[BILINEAR_MOST] = {0};
    for (int i = 0; i < y->taps; i++)
      for (int k = 0; k < x->taps; k++) along[k] += t->tap[0][a][i] * taps[i * BILINEAR_MOST + k];
    for (int b = 0; b < x->products; b++) {
      double sum = 0;
      for (int k = 0; k < x->taps; k++) sum += t->tap[1][b][k] * along[k];
      out[a * BILINEAR_MOST + b] = (float)sum;
    }
  }
}

static void bilinear_tile(const ErrorTrial *t, float *out) {
  const BilinearAlgorithm *y = t->by[0], *x = t->by[1];
  float sums[TILE] = {0}, rows[TILE], tile[TILE], weights[TILE];
  for (int64_t c = 0; c < t->channels; c++) {
    multiply(t->data[0], y->products, y->products, t->image + c * TILE, rows, BILINEAR_MOST, 1,
             x->products);
    multiply(t->data[1], x->products, x->products, rows, tile, 1, BILINEAR_MOST, y->products);
    transform_weights(t, t->weights + c * TILE, weights);
    for (int a = 0; a < y->products; a++)
      for (int b = 0, at = a * BILINEAR_MOST; b < x->products; b++, at++)
        sums[at] = fused(weights[at], tile[at], sums[at]);
  }
  multiply(t->output[0], y->outputs, y->products, sums, rows, BILINEAR_MOST, 1, x->products);
  multiply(t->output[1], x->outputs, x->products, rows, out, 1, BILINEAR_MOST, y->outputs);
}

// Adds the errors of a row of outputs of the tile.
static void compare(ErrorTrial *t, int i, const float *bilinear) {
  double exact[BILINEAR_MOST] = {0};
  float direct[BILINEAR_MOST] = {0};
  int outputs = t->by[1]->outputs;
  for (int64_t c = 0; c < t->channels; c++)
    for (int a = 0; a < t->by[0]->taps; a++)
      for (int b = 0; b < t->by[1]->taps; b++) {
        double w = t->weights[c * TILE + a * BILINEAR_MOST + b];
        const float *x = &t->image[c * TILE + (i + a) * BILINEAR_MOST + b];
        for (int k = 0; k < outputs; k++) {
          exact[k] += w * x[k];
          direct[k] = fused(w, x[k], direct[k]);
        }
      }
  for (int k = 0; k < outputs; k++) {
    t->errors[0] += (direct[k] - exact[k]) * (direct[k] - exact[k]);
    t->errors[1] += (bilinear[k] - exact[k]) * (bilinear[k] - exact[k]);
    t->results += exact[k] * exact[k];
  }
}

static void run_tile(ErrorTrial *t) {
  float out[TILE];
  const BilinearAlgorithm *y = t->by[0], *x = t->by[1];
  for (int64_t i = 0; i < t->channels * TILE; i++) {
    fill(t, (int)(i % TILE), &t->image[i], y->products, x->products);
    fill(t, (int)(i % TILE), &t->weights[i], y->taps, x->taps);
  }
  bilinear_tile(t, out);
  for (int i = 0; i < y->outputs; i++) compare(t, i, out + i * BILINEAR_MOST);
}

static void set_numbers(const Fraction (*matrix)[BILINEAR_MOST], Matrix to) {
  for (int i = 0; i < BILINEAR_MOST; i++)
    for (int k = 0; k < BILINEAR_MOST; k++)
      to[i][k] = matrix[i][k].under ? fraction_value(matrix[i][k]) : 0;
}

BilinearErrors bilinear_errors(Arena *scratch, int64_t channels, const BilinearAlgorithm *outer,
                               const BilinearAlgorithm *inner) {
  // The algorithm of one output and one tap.
  static const BilinearAlgorithm one = {
      1, 1, 1, .output = {{{1, 1}}}, .tap = {{{1, 1}}}, .data = {{{1, 1}}}};
  ArenaMark mark = arena_mark(scratch);
  ErrorTrial t = {.by = {outer, inner ? inner : &one}, .channels = channels, .state = 1};
  set_skip(&t);
  for (int i = 0; i < 2; i++) {
    set_numbers(t.by[i]->output, t.output[i]);
    set_numbers(t.by[i]->tap, t.tap[i]);
    set_numbers(t.by[i]->data, t.data[i]);
  }
  t.image = arena_array(scratch, float, channels *TILE);
  t.weights = arena_array(scratch, float, channels *TILE);
  int64_t results = 0;
  for (; results < LEAST_RESULTS || results * channels < LEAST_TERMS;
       results += t.by[0]->outputs * t.by[1]->outputs)
    run_tile(&t);
  arena_reset(scratch, mark);
  double scale = sqrt(t.results);
  return (BilinearErrors){sqrt(t.errors[0]) / scale, sqrt(t.errors[1]) / scale};
}

// ---- Products in blocks: an element of each of the four blocks of the result

typedef struct BlockTrial {
  const BlockAlgorithm *by;
  int64_t half;              // terms of a block
  float *image, *weights;    // by term of a half and block
  double errors[2], results; // sums of squares: direct, bilinear
} BlockTrial;

static float block_sum(const double *factors, const float *blocks) {
  float sum = 0;
  for (int b = 0; b < BLOCK_TERMS; b++)
    if (factors[b] != 0) sum = fused(factors[b], blocks[b], sum);
  return sum;
}

static float block_weight(const double *factors, const float *blocks) {
  double sum = 0;
  for (int b = 0; b < BLOCK_TERMS; b++) sum += factors[b] * blocks[b];
  return (float)sum;
}

static void multiply_blocks(const BlockTrial *t, float *products) {
  for (int p = 0; p < BLOCK_PRODUCTS; p++) {
    float sum = 0;
    for (int64_t k = 0; k < t->half; k++)
      sum = fused(block_sum(t->by->image.at[p], t->image + k * BLOCK_TERMS),
                  block_weight(t->by->weight.at[p], t->weights + k * BLOCK_TERMS), sum);
    products[p] = sum;
  }
}

static float block_output(const BlockTrial *t, const float *products, int output) {
  float result = 0;
  for (int p = 0; p < BLOCK_PRODUCTS; p++) {
    double factor = t->by->output.at[output][p];
    if (factor != 0) result = fused(factor, products[p], result);
  }
  return result;
}

static void compare_block(BlockTrial *t, int output, float bilinear) {
  int row = output / 2, column = output % 2;
  double exact = 0;
  float direct = 0;
  for (int half = 0; half < 2; half++)
    for (int64_t k = 0; k < t->half; k++) {
      double x = t->image[k * BLOCK_TERMS + 2 * row + half];
      double w = t->weights[k * BLOCK_TERMS + 2 * half + column];
      exact += x * w;
      direct = fused(x, w, direct);
    }
  t->errors[0] += (direct - exact) * (direct - exact);
  t->errors[1] += (bilinear - exact) * (bilinear - exact);
  t->results += exact * exact;
}

BilinearErrors block_errors(Arena *scratch, int64_t terms, const BlockAlgorithm *algorithm) {
  ArenaMark mark = arena_mark(scratch);
  BlockTrial t = {.by = algorithm, .half = ceil_div(terms, 2)};
  ErrorTrial random = {.state = 1};
  t.image = arena_array(scratch, float, t.half *BLOCK_TERMS);
  t.weights = arena_array(scratch, float, t.half *BLOCK_TERMS);
  for (int64_t r = 0; r < LEAST_RESULTS || r * terms < LEAST_TERMS; r += BLOCK_TERMS) {
    for (int64_t i = 0; i < t.half * BLOCK_TERMS; i++) {
      t.image[i] = random_normal(&random);
      t.weights[i] = random_normal(&random);
    }
    float products[BLOCK_PRODUCTS];
    multiply_blocks(&t, products);
    for (int output = 0; output < BLOCK_TERMS; output++)
      compare_block(&t, output, block_output(&t, products, output));
  }
  arena_reset(scratch, mark);
  double scale = sqrt(t.results);
  return (BilinearErrors){sqrt(t.errors[0]) / scale, sqrt(t.errors[1]) / scale};
}
