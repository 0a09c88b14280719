// SPDX-License-Identifier: Apache-2.0
// Declares ensembles of decision trees: trees.c computes them, and the operators of the domain
// ai.onnx.ml fill them from their attributes.
#ifndef PLEAT_FRONTEND_ONNX_TREES_H
#define PLEAT_FRONTEND_ONNX_TREES_H

#include "frontend/onnx/compose.h"

// In the order of the attribute aggregate_function.
typedef enum TreesAggregate {
  TREES_AVERAGE,
  TREES_SUM,
  TREES_MIN,
  TREES_MAX,
  TREES_AGGREGATES
} TreesAggregate;

// A branch's condition on its feature, in the order of the attribute nodes_modes.
typedef enum TreesMode {
  TREES_LEQ,
  TREES_LT,
  TREES_GTE,
  TREES_GT,
  TREES_EQ,
  TREES_NEQ,
  TREES_MEMBER
} TreesMode;

enum { TREES_MOST_WEIGHTS = 1 << 25 };

// A branch is a number from 0; leaves are numbered after the branches.
typedef struct Trees {
  Import *import;
  Value *x; // [rows, features], of float32 or float64
  int64_t rows, branches, leaves, count, targets;
  int64_t *roots;           // the branch or leaf at which each of `count` trees begins
  int64_t *modes;           // TreesMode of each branch
  double *splits;           // of each branch
  int64_t *tracks;          // nonzero for branches whose condition holds for NaN; NULL: none
  int64_t *yes, *no;        // successors of branches when the condition holds, or does not
  int64_t *features;        // the feature that each branch reads
  const ConstData *members; // of the attribute membership_values
  double *weights;          // [leaves, targets]; NaN: the leaf has none for the target
  TreesAggregate aggregate;
} Trees;

// Sets `import` and `x` (in its own type, or float32 for integers), and counts its rows. False
// after a diagnostic, as for the functions below.
bool trees_begin(Trees *trees, Import *import);
// Makes the arrays for `branches`, `leaves`, `count` and `targets`.
bool trees_allocate(Trees *trees);
// Gives a leaf a weight for a target.
bool trees_weigh(Trees *trees, int64_t leaf, int64_t target, double weight);
// The leaf that each row reaches in each tree, counted from 0: [rows, count].
Value *trees_descend(Trees *trees);
// The aggregated weights of these leaves for each target: [rows, targets]. A target without any
// weight gets 0 (sum, average), or the greatest (min) or least (max) number.
Value *trees_aggregate(Trees *trees, Value *leaves);
// True where one of these leaves has a weight for the target.
Value *trees_scored(Trees *trees, Value *leaves);

#endif
