// SPDX-License-Identifier: Apache-2.0
// Rounding errors of sums of products over windows, and of products of matrices in blocks, measured
// on random operands.
#ifndef PLEAT_GRAPH_BILINEAR_ERRORS_H
#define PLEAT_GRAPH_BILINEAR_ERRORS_H

#include "graph/bilinear.h"
#include "graph/block_products.h"

// The root mean square of the errors against float64, relative to that of the results: of the sum
// in float32 over channels and taps, and of the algorithms'.
typedef struct BilinearErrors {
  double direct, bilinear;
} BilinearErrors;

// For sums over `channels` of a window along one axis (`inner` is NULL) or two. The operands are
// normally distributed, and the same for each call.
BilinearErrors bilinear_errors(Arena *scratch, int64_t channels, const BilinearAlgorithm *outer,
                               const BilinearAlgorithm *inner);
// For products of matrices whose elements are sums of so many terms.
BilinearErrors block_errors(Arena *scratch, int64_t terms, const BlockAlgorithm *algorithm);

#endif
