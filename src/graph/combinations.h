// SPDX-License-Identifier: Apache-2.0
// Linear combinations with the rows of small matrices, written as expressions.
#ifndef PLEAT_GRAPH_COMBINATIONS_H
#define PLEAT_GRAPH_COMBINATIONS_H

#include "graph/bilinear.h"
#include "te/te.h"

enum { COMBINATION_NEST = 3 }; // most matrices of a nested sum

typedef struct MatrixRows { // a matrix of numbers that are exact in doubles
  int count, terms;
  double at[BILINEAR_MOST][BILINEAR_MOST];
} MatrixRows;
MatrixRows matrix_rows(const Fraction (*matrix)[BILINEAR_MOST], int count, int terms);
// The additions and multiplications by which the matrix multiplies one column.
int matrix_operations(const MatrixRows *rows);

typedef struct HeldPart { // a value that several terms use
  Expr *var, *value;
} HeldPart;

typedef struct NestedSum {
  Context *context;
  int count;                         // matrices, from the outer to the inner term
  MatrixRows rows[COMBINATION_NEST]; //
  Expr *indices[COMBINATION_NEST];   // of the row, by matrix
  Array(HeldPart) held;
} NestedSum;

// A variable that stands for the value in the terms; combination_with_held defines it.
Expr *combination_hold(NestedSum *sum, Expr *value);
Expr *combination_with_held(const NestedSum *sum, Expr *value);
// Σ_a rows[0][index, a] Σ_b rows[1][index, b] … terms[a, b, …], which may be overwritten. Each row
// is chosen by its index, which is constant once the axes that choose are unrolled.
Expr *combination_nested(NestedSum *sum, Expr **terms);
// Row number `row` of the product of the matrix and the terms.
Expr *combination_row(Context *context, const MatrixRows *rows, Expr *const *terms, int row);
// The work of the sum when the axes of the set are unrolled.
TeTransform *combination_transform(const NestedSum *sum, uint32_t axes);

#endif
