// SPDX-License-Identifier: Apache-2.0
// Writes linear combinations with few operations: rows that differ in the signs of some terms share
// parts, and nested sums keep what several terms use.
#include "graph/combinations.h"

#include "arith/arith.h"

// ---- Linear combinations

MatrixRows matrix_rows(const Fraction (*matrix)[BILINEAR_MOST], int count, int terms) {
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

// The first row that shares parts with row `i`; -1: none does.
static int partner_of(const MatrixRows *rows, int i, double *same, double *other) {
  for (int k = 0; k < rows->count; k++)
    if (k != i && share_parts(rows, MIN_OF(i, k), MAX_OF(i, k), same, other)) return k;
  return -1;
}

static Expr *row_of(const Combining *c, const MatrixRows *rows, int i) {
  double same[BILINEAR_MOST], other[BILINEAR_MOST];
  int k = partner_of(rows, i, same, other);
  if (k < 0) return combination(c, rows->at[i], rows->terms);
  Expr *a = combination(c, same, rows->terms), *b = combination(c, other, rows->terms);
  return i < k ? expr_add(c->context, a, b) : expr_sub(c->context, a, b);
}

// Are the two terms' factors equal in each row, or each other's negatives?
static bool are_paired(const MatrixRows *rows, int a, int b) {
  for (int i = 0; i < rows->count; i++)
    if (rows->at[i][a] != rows->at[i][b] && rows->at[i][a] != -rows->at[i][b]) return false;
  return true;
}

// The next two terms from *a on that are paired with each other and with no earlier one.
static bool next_pair(const MatrixRows *rows, bool *paired, int *a, int *b) {
  for (; *a < rows->terms; (*a)++)
    for (*b = *a + 1; *b < rows->terms && !paired[*a]; (*b)++)
      if (!paired[*b] && are_paired(rows, *a, *b)) return paired[*a] = paired[*b] = true;
  return false;
}

// The rows over the sum and the difference of two paired terms in place of these.
static void pair_rows(MatrixRows *rows, int a, int b) {
  for (int i = 0; i < rows->count; i++) {
    bool equal = rows->at[i][a] == rows->at[i][b];
    if (equal) rows->at[i][b] = 0;
    if (!equal) rows->at[i][b] = rows->at[i][a], rows->at[i][a] = 0;
  }
}

// Replaces paired terms by their sums and differences, which the rows share.
static void pair_all_terms(Combining *c, MatrixRows *rows) {
  bool paired[BILINEAR_MOST] = {false};
  for (int a = 0, b; next_pair(rows, paired, &a, &b);) {
    Expr *x = c->terms[a], *y = c->terms[b];
    c->terms[a] = expr_add(c->context, x, y);
    c->terms[b] = expr_sub(c->context, x, y);
    pair_rows(rows, a, b);
  }
}

Expr *combination_row(Context *context, const MatrixRows *rows, Expr *const *terms, int row) {
  Combining c = {.context = context};
  memcpy(c.terms, terms, sizeof *terms * (size_t)rows->terms);
  return row_of(&c, rows, row);
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

Expr *combination_hold(NestedSum *n, Expr *value) {
  HeldPart held = {expr_var(n->context, "part", value->type), value};
  array_push(&n->context->arena, &n->held, held);
  return held.var;
}

Expr *combination_with_held(const NestedSum *n, Expr *value) {
  for (int i = n->held.count - 1; i >= 0; i--)
    value = expr_let(n->context, n->held.items[i].var, n->held.items[i].value, value);
  return value;
}

Expr *combination_nested(NestedSum *n, Expr **terms) {
  int rest = 1;
  for (int i = 1; i < n->count; i++) rest *= n->rows[i].terms;
  for (int i = 0; i < rest * n->rows[0].terms; i++) terms[i] = combination_hold(n, terms[i]);
  for (int w = 0; w < n->count; w++) {
    for (int i = 0; i < rest; i++) {
      Expr *column[BILINEAR_MOST];
      for (int k = 0; k < n->rows[w].terms; k++) column[k] = terms[k * rest + i];
      Expr *sum = chosen_row(n->context, n->rows[w], column, n->indices[w]);
      terms[i] = w + 1 < n->count ? combination_hold(n, sum) : sum;
    }
    if (w + 1 < n->count) rest /= n->rows[w + 1].terms;
  }
  return combination_with_held(n, terms[0]);
}

// ---- What the transforms take

static int sum_operations(const double *factors, int count) {
  int terms = 0;
  for (int k = 0; k < count; k++) terms += factors[k] != 0;
  return MAX_OF(terms - 1, 0);
}

// The operations of a row beside those of parts that it shares with an earlier row.
static int row_operations(const MatrixRows *rows, int i) {
  double same[BILINEAR_MOST], other[BILINEAR_MOST];
  int k = partner_of(rows, i, same, other);
  if (k < 0) return MAX_OF(sum_operations(rows->at[i], rows->terms), 1);
  if (k < i) return 1;
  return 1 + sum_operations(same, rows->terms) + sum_operations(other, rows->terms);
}

int matrix_operations(const MatrixRows *given) {
  MatrixRows rows = *given;
  bool paired[BILINEAR_MOST] = {false};
  int operations = 0;
  for (int a = 0, b; rows.count < rows.terms && next_pair(given, paired, &a, &b);) {
    pair_rows(&rows, a, b);
    operations += 2;
  }
  for (int i = 0; i < rows.count; i++) operations += row_operations(&rows, i);
  return operations;
}

TeTransform *combination_transform(const NestedSum *n, uint32_t axes) {
  TeTransform *transform = arena_new(&n->context->arena, TeTransform);
  double before = 1, after = 1;
  for (int w = 0; w < n->count; w++) before *= n->rows[w].terms;
  double terms = before;
  *transform = (TeTransform){.axes = axes};
  for (int w = 0; w < n->count; w++) {
    before /= n->rows[w].terms;
    transform->operations += before * after * matrix_operations(&n->rows[w]);
    after *= n->rows[w].count;
  }
  transform->operations /= after;
  transform->streams = (int)MAX_OF(after, terms);
  return transform;
}
