// SPDX-License-Identifier: Apache-2.0
// Products of matrices in blocks, with seven products of blocks in place of eight. See
// block_products.c.
#ifndef PLEAT_GRAPH_BLOCK_PRODUCTS_H
#define PLEAT_GRAPH_BLOCK_PRODUCTS_H

#include "graph/combinations.h"
#include "graph/weighted_sums.h"

enum { BLOCK_TERMS = 4, BLOCK_PRODUCTS = 7 };

// The product of two matrices of 2 x 2 blocks by products of combinations of their blocks. Blocks
// are numbered 2 * row + column.
typedef struct BlockAlgorithm {
  MatrixRows image, weight; // by product and block of the factor
  MatrixRows output;        // by block of the result and product
} BlockAlgorithm;
const BlockAlgorithm *block_algorithm(void);
// Is the algorithm the product of the matrices for all matrices?
bool block_proves(const BlockAlgorithm *algorithm);
// As bilinear_bound: for the algorithm relative to the direct sum.
double block_bound(const BlockAlgorithm *algorithm);

// A sum whose axes hold a product of matrices: the image has the rows, the weight the columns.
typedef struct BlockProduct {
  WeightedSum sum;
  int row, column, inner; // axes of the sum; `inner` is the one that is summed
} BlockProduct;

// False when the stage is no such sum, or when its columns or terms are not of even number.
bool block_product_of(StageGraph *stages, Stage *stage, BlockProduct *out);
BilinearStages block_product_stages(Context *context, const BlockProduct *product);

#endif
