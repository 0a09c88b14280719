// SPDX-License-Identifier: Apache-2.0
// Makes bilinear algorithms from points, in exact arithmetic. With the finite points p_j and
// M(x) = Π_j (x - p_j):
//   A[i][j] = p_j^i,  G[j][k] = p_j^k / Π_{l≠j} (p_j - p_l),
//   B[j] = the coefficients of M / (x - p_j)
// The point at infinity adds the product g[taps - 1] * Σ_t M_t d[t] to the last output.
#include "graph/bilinear.h"

#include <math.h>

// ---- Fractions

typedef __int128 Product;

// A number that does not fit has the denominator 0, and so has every result computed from it.
static const Fraction no_number = {0, 0};

static Product common_divisor(Product a, Product b) {
  for (Product rest; b; a = b, b = rest) rest = a % b;
  return a < 0 ? -a : a;
}

static Fraction fraction(Product over, Product under) {
  if (!under) return no_number;
  Product divisor = common_divisor(over, under);
  if (under < 0) divisor = -divisor;
  over /= divisor;
  under /= divisor;
  bool fits = over <= INT32_MAX && over >= -INT32_MAX && under <= INT32_MAX;
  return fits ? (Fraction){(int64_t)over, (int64_t)under} : no_number;
}

static Fraction times(Fraction a, Fraction b) {
  return fraction((Product)a.over * b.over, (Product)a.under * b.under);
}

static Fraction divided(Fraction a, Fraction b) {
  return fraction((Product)a.over * b.under, (Product)a.under * b.over);
}

static Fraction plus(Fraction a, Fraction b) {
  return fraction((Product)a.over * b.under + (Product)b.over * a.under,
                  (Product)a.under * b.under);
}

static Fraction minus(Fraction a, Fraction b) {
  return plus(a, (Fraction){-b.over, b.under});
}

static bool is_number(Fraction a, int64_t value) {
  return a.under == 1 && a.over == value;
}

double fraction_value(Fraction a) {
  return (double)a.over / (double)a.under;
}

// ---- The matrices

// Sets the coefficients of Π (x - p) over the points but `without` (-1: over all points).
static void product_of_roots(const Fraction *points, int count, int without, Fraction *out) {
  for (int i = 0; i < BILINEAR_MOST; i++) out[i] = (Fraction){0, 1};
  out[0] = (Fraction){1, 1};
  for (int p = 0; p < count; p++) {
    if (p == without) continue;
    for (int i = BILINEAR_MOST - 1; i >= 0; i--)
      out[i] = minus(i ? out[i - 1] : (Fraction){0, 1}, times(out[i], points[p]));
  }
}

// The product of the differences between a point and all others.
static Fraction distance(const Fraction *points, int count, int from) {
  Fraction product = {1, 1};
  for (int p = 0; p < count; p++)
    if (p != from) product = times(product, minus(points[from], points[p]));
  return product;
}

static void set_powers(Fraction point, int count, Fraction *out, int stride, Fraction first) {
  for (int i = 0; i < count; i++, first = times(first, point)) out[i * stride] = first;
}

static void set_matrices(BilinearAlgorithm *a) {
  int last = a->products - 1;
  const Fraction zero = {0, 1}, one = {1, 1};
  for (int j = 0; j < last; j++) {
    Fraction scale = divided(one, distance(a->points, last, j));
    set_powers(a->points[j], a->outputs, &a->output[0][j], BILINEAR_MOST, one);
    set_powers(a->points[j], a->taps, a->tap[j], 1, scale);
    product_of_roots(a->points, last, j, a->data[j]);
  }
  for (int i = 0; i < a->outputs; i++) a->output[i][last] = i == a->outputs - 1 ? one : zero;
  for (int k = 0; k < a->taps; k++) a->tap[last][k] = k == a->taps - 1 ? one : zero;
  product_of_roots(a->points, last, -1, a->data[last]);
}

// The algorithm of these points, which is not proved.
static BilinearAlgorithm algorithm_of(int outputs, int taps, const Fraction *points) {
  BilinearAlgorithm a = {.outputs = outputs, .taps = taps, .products = outputs + taps - 1};
  memcpy(a.points, points, sizeof *points * (size_t)(a.products - 1));
  set_matrices(&a);
  return a;
}

bool bilinear_from_points(int outputs, int taps, const Fraction *points, BilinearAlgorithm *out) {
  int products = outputs + taps - 1;
  if (outputs < 1 || taps < 1 || products < 2 || products > BILINEAR_MOST) return false;
  *out = algorithm_of(outputs, taps, points);
  return bilinear_proves(out);
}

// ---- The proof: the coefficient of g[k] * d[t] in output i is 1 where t = i + k, and 0 elsewhere

static Fraction coefficient(const BilinearAlgorithm *a, int i, int k, int t) {
  Fraction sum = {0, 1};
  for (int j = 0; j < a->products; j++)
    sum = plus(sum, times(times(a->output[i][j], a->tap[j][k]), a->data[j][t]));
  return sum;
}

bool bilinear_proves(const BilinearAlgorithm *a) {
  for (int i = 0; i < a->outputs; i++)
    for (int k = 0; k < a->taps; k++)
      for (int t = 0; t < a->products; t++)
        if (!is_number(coefficient(a, i, k, t), t == i + k)) return false;
  return true;
}

// ---- Rounding errors

static double sum_of_powers(const Fraction *row, int count, int power) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += pow(fabs(fraction_value(row[i])), power);
  return sum;
}

// The largest sum over the products of an output, of the magnitudes of all terms to the power,
// divided by the number of taps, which is the same sum for the direct form.
static double largest_output(const BilinearAlgorithm *a, int power) {
  double largest = 0;
  for (int i = 0; i < a->outputs; i++) {
    double sum = 0;
    for (int j = 0; j < a->products; j++)
      sum += pow(fabs(fraction_value(a->output[i][j])), power) *
             sum_of_powers(a->tap[j], a->taps, power) *
             sum_of_powers(a->data[j], a->products, power);
    largest = fmax(largest, sum);
  }
  return largest / a->taps;
}

double bilinear_growth(const BilinearAlgorithm *a) {
  return sqrt(largest_output(a, 2));
}

double bilinear_bound(const BilinearAlgorithm *a) {
  return largest_output(a, 1);
}

// ---- The choice of points

// Magnitudes of points, as fractions whose powers are exact in float32.
static const Fraction magnitudes[] = {{1, 2}, {5, 8}, {3, 4}, {1, 1}, {5, 4}, {3, 2}, {2, 1}};

typedef struct PointSearch {
  int outputs, taps, count;
  Fraction points[BILINEAR_MOST];
  BilinearAlgorithm best;
  double least; // growth of the best so far; negative: none
} PointSearch;

static void try_points(PointSearch *s) {
  BilinearAlgorithm algorithm = algorithm_of(s->outputs, s->taps, s->points);
  double growth = bilinear_growth(&algorithm);
  bool better = s->least < 0 || growth < s->least;
  if (!better || !bilinear_proves(&algorithm)) return; // proofs take longest
  s->best = algorithm;
  s->least = growth;
}

// Adds points of both signs, of rising magnitudes from `next` on, and one without its negative
// where the number of points is odd.
static void add_points(PointSearch *s, int count, int next) {
  if (count == s->count) {
    try_points(s);
    return;
  }
  for (int i = next; i < COUNT_OF(magnitudes); i++) {
    s->points[count] = magnitudes[i];
    s->points[count + 1] = (Fraction){-magnitudes[i].over, magnitudes[i].under};
    add_points(s, MIN_OF(count + 2, s->count), i + 1);
  }
}

bool bilinear_best(int outputs, int taps, BilinearAlgorithm *out) {
  int products = outputs + taps - 1;
  if (outputs < 1 || taps < 1 || products < 3 || products > BILINEAR_MOST) return false;
  PointSearch search = {outputs, taps, .count = products - 1, .points = {{0, 1}}, .least = -1};
  add_points(&search, 1, 0);
  *out = search.best;
  return search.least >= 0;
}
