// SPDX-License-Identifier: Apache-2.0
// Sums of products whose weights are constant, such as convolutions and products of matrices, and
// the stages that compute them by bilinear algorithms (window_products.h, block_products.h).
#ifndef PLEAT_GRAPH_WEIGHTED_SUMS_H
#define PLEAT_GRAPH_WEIGHTED_SUMS_H

#include "graph/stages.h"

// A stage output[…] = Σ image(…) * weight[…] in float32, where the weights are constant. Each axis
// of the output moves one factor alone, and some axis the weight.
typedef struct WeightedSum {
  Stage *stage;
  Expr *image, *weight; // the factors
} WeightedSum;

// False when the stage is no such sum, or when two more axes would be too many.
bool weighted_sum_of(const StageGraph *stages, Stage *stage, WeightedSum *out);
// Does the factor depend on this axis of the stage?
bool weighted_sum_moves_image(const WeightedSum *sum, int axis);
bool weighted_sum_moves_weight(const WeightedSum *sum, int axis);
Expr *weighted_sum_axis(const WeightedSum *sum, int axis);
// The extent of an axis, which is known.
int64_t weighted_sum_extent(const WeightedSum *sum, int axis);
bool weighted_sum_is_reduced(const WeightedSum *sum, int axis);

// The axes of a tensor of a bilinear algorithm, and the axis of the sum that each of them stands
// for; -1: the products of the algorithm.
typedef struct TensorAxes {
  int rank, of[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK];
  TeAxes axes;
} TensorAxes;
void tensor_axes_add(Context *context, TensorAxes *axes, int of, int64_t extent);
// The axis that stands for this axis of the sum; NULL: there is none.
Expr *tensor_axes_find(const TensorAxes *axes, int of);
// Maps each axis of the sum that has one here to it.
Map tensor_axes_map(Context *context, const WeightedSum *sum, const TensorAxes *axes);

// The axes of the sum of the products, and those of the direct sum that they stand for: a map from
// variables of the stage.
typedef struct ProductSum {
  TeReduction reduction;
  Map axes;
} ProductSum;
ProductSum product_sum_new(Context *context);
// Adds an axis that stands for this axis of the direct sum.
void product_sum_add(Te *te, const WeightedSum *sum, int axis, int64_t extent,
                     ProductSum *products);
// Adds the stage of the products of two factors, which has these axes, and returns it.
TeStage *product_sum_stage(Te *te, const WeightedSum *sum, TensorAxes *axes,
                           const ProductSum *products, Expr *data, Expr *weight);

// The stages that compute a sum by a bilinear algorithm.
typedef struct BilinearStages {
  TeStage *weights, *data, *products, *outputs; // `outputs` writes the buffer of the stage
} BilinearStages;
// Makes these stages another way to compute the output of the sum's stage.
void stage_graph_add_bilinear(StageGraph *stages, Stage *stage, const BilinearStages *use);

#endif
