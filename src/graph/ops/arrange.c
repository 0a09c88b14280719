// SPDX-License-Identifier: Apache-2.0
// Defines the operators that reverse sequences of different lengths, grids of coordinates, and
// determinants of small matrices.
#include "graph/ops/ops.h"

// out[t, b, …] = x[length[b] - 1 - t, b, …] while t < length[b], then x[t, b, …].
static bool define_reverse_sequence(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *lengths = call->inputs[1];
  int batch, time;
  if (!op_check_indices(call, 1) ||
      !op_axis(call, node_int(call->node, "batch_axis", 0), x->rank, &batch) ||
      !op_axis(call, node_int(call->node, "seq_axis", 1), x->rank, &time))
    return false;
  if (batch == time) return op_error(call, "its time axis and its batch axis are the same");
  if (lengths->rank != 1 || lengths->shape[0] != x->shape[batch])
    return op_error(call, "takes one length for each batch");
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  Expr *at[TE_MAX_RANK];
  memcpy(at, axes.at, sizeof at);
  Expr *length = te_at(call->te, lengths, &axes.at[batch]);
  Expr *step = expr_cast(context, length->type, axes.at[time]);
  Expr *one = expr_const(context, length->type, 1);
  Expr *back = expr_sub(context, expr_sub(context, length, one), step);
  Expr *place = expr_select(context, expr_lt(context, step, length), back, step);
  at[time] = op_position(context, place, x->shape[time]);
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes,
                             te_at(call->te, x, at)));
  return true;
}

// Result d is input d, a vector or a number, along axis d of a grid of all of them. With the
// indexing "xy", the first two axes of the grid are exchanged.
static bool define_meshgrid(OpCall *call) {
  const char *indexing = node_string(call->node, "indexing", "ij");
  bool swaps = !strcmp(indexing, "xy") && call->input_count > 1;
  int rank = call->input_count;
  Expr *shape[TE_MAX_RANK];
  if (strcmp(indexing, "xy") != 0 && strcmp(indexing, "ij") != 0)
    return op_error(call, "'indexing' is '%s', expected ij or xy", indexing);
  if (rank > TE_MAX_RANK) return op_error(call, "its results would have rank %d", rank);
  for (int i = 0; i < rank; i++) {
    Buffer *x = call->inputs[i];
    if (!x || x->rank > 1) return op_error(call, "takes vectors");
    shape[swaps && i < 2 ? 1 - i : i] = x->rank ? x->shape[0] : expr_index(call->context, 1);
  }
  for (int i = 0; i < rank; i++) {
    TeAxes axes = te_axes(call->te, shape, rank);
    Str name =
        rank == 1 ? call->node->name : str_format(call->context, "%s_%d", call->node->name, i);
    Expr *value = te_at(call->te, call->inputs[i], &axes.at[swaps && i < 2 ? 1 - i : i]);
    op_output(call, te_compute(call->te, name, call->inputs[i]->type, shape, &axes, value));
  }
  return true;
}

// ---- Determinants

enum { LARGEST_DETERMINANT = 4 };

typedef struct Determinant {
  OpCall *call;
  const TeAxes *axes;
  int size;
} Determinant;

static Expr *matrix_at(const Determinant *d, int row, int column) {
  Expr *at[TE_MAX_RANK];
  memcpy(at, d->axes->at, sizeof at);
  at[d->axes->rank] = expr_index(d->call->context, row);
  at[d->axes->rank + 1] = expr_index(d->call->context, column);
  return te_at(d->call->te, d->call->inputs[0], at);
}

// The determinant of the rows from `row` on and of the columns in the set, by expansion along the
// first of these rows.
static Expr *minor_of(const Determinant *d, int row, unsigned columns) {
  Context *context = d->call->context;
  Expr *sum = NULL;
  for (int column = 0, sign = 0; column < d->size; column++) {
    if (!(columns >> column & 1)) continue;
    Expr *term = matrix_at(d, row, column);
    if (row + 1 < d->size)
      term = expr_mul(context, term, minor_of(d, row + 1, columns & ~(1u << column)));
    sum = !sum ? term : expr_binary(context, sign ? EXPR_SUB : EXPR_ADD, sum, term);
    sign = !sign;
  }
  return sum;
}

static bool define_determinant(OpCall *call) {
  Buffer *x = call->inputs[0];
  int64_t rows, columns;
  if (x->rank < 2 || !expr_as_int(x->shape[x->rank - 2], &rows) ||
      !expr_as_int(x->shape[x->rank - 1], &columns) || rows != columns || rows < 1)
    return op_error(call, "takes square matrices");
  if (rows > LARGEST_DETERMINANT)
    return op_error(call, "of %lld rows is not supported, only of up to %d", (long long)rows,
                    LARGEST_DETERMINANT);
  TeAxes axes = te_axes(call->te, x->shape, x->rank - 2);
  Determinant d = {call, &axes, (int)rows};
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes,
                             minor_of(&d, 0, (1u << rows) - 1)));
  return true;
}

const OpRow arrange_ops[] = {
    {"reverse_sequence", NULL, 2, 2, define_reverse_sequence, "seq_axis batch_axis",
     .mixed_types = true, .positional = "seq_axis batch_axis"},
    {"meshgrid", NULL, 1, -1, define_meshgrid, "indexing", .mixed_types = true,
     .results = OP_RESULT_EACH, .positional = "indexing"},
    {"linalg.det", "Det", 1, 1, define_determinant, NULL},
};
const int arrange_op_count = COUNT_OF(arrange_ops);
