// SPDX-License-Identifier: Apache-2.0
// Bilinear algorithms for short correlations. The `outputs` sums y[i] = Σ_k g[k] * d[i + k] over
// `taps` taps are computed with outputs + taps - 1 products of two transformed operands:
//   y = A (G g ∘ B d)        ∘: element by element
// The matrices follow from points at which two polynomials are evaluated (Toom and Cook; Winograd,
// "Arithmetic Complexity of Computations", chapter IV). The last point is infinity.
#ifndef PLEAT_GRAPH_BILINEAR_H
#define PLEAT_GRAPH_BILINEAR_H

#include "base/base.h"

enum { BILINEAR_MOST = 8 }; // products of an algorithm

typedef struct Fraction {
  int64_t over, under; // without a common divisor; under > 0
} Fraction;

typedef struct BilinearAlgorithm {
  int outputs, taps, products;
  Fraction points[BILINEAR_MOST];                // products - 1 of them, beside infinity
  Fraction output[BILINEAR_MOST][BILINEAR_MOST]; // A: by output and product
  Fraction tap[BILINEAR_MOST][BILINEAR_MOST];    // G: by product and tap
  Fraction data[BILINEAR_MOST][BILINEAR_MOST];   // B: by product and element of d
} BilinearAlgorithm;

// The algorithm of these points, which must differ from one another. False when a number does not
// fit, or when bilinear_proves fails.
bool bilinear_from_points(int outputs, int taps, const Fraction *points, BilinearAlgorithm *out);
// The algorithm with the least bilinear_growth among symmetric points of a short list. False when
// outputs + taps - 1 is not in 3 … BILINEAR_MOST.
bool bilinear_best(int outputs, int taps, BilinearAlgorithm *out);
// Is A (G g ∘ B d) the correlation of g and d for all g and d, in exact arithmetic?
bool bilinear_proves(const BilinearAlgorithm *algorithm);
// By how much the rounding errors of the products are magnified in an output, in the root mean
// square over operands without correlation, relative to the direct sum.
double bilinear_growth(const BilinearAlgorithm *algorithm);
// The largest sum of the magnitudes of all terms of an output, relative to the direct sum of the
// same magnitudes: rounding errors are bounded by this multiple of the direct sum's bound for sums
// of as many terms.
double bilinear_bound(const BilinearAlgorithm *algorithm);

double fraction_value(Fraction fraction);

#endif
