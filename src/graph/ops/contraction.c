// SPDX-License-Identifier: Apache-2.0
// Defines the products of matrices (matmul, gemm) as reductions.
#include "graph/ops/ops.h"

// ---- Products of matrices

// The batch axes of an operand as a tensor of lower rank, to broadcast them.
static Buffer batch_of(const Buffer *b) {
  Buffer batch = *b;
  batch.rank = MAX_OF(b->rank - 2, 0);
  return batch;
}

static Expr *operand_at(OpCall *call, Buffer *b, const TeAxes *axes, int batch_rank, Expr *row,
                        Expr *column) {
  Expr *indices[TE_MAX_RANK];
  int own = MAX_OF(b->rank - 2, 0), n = 0;
  for (; n < own; n++) {
    bool spread = expr_is_int(b->shape[n], 1);
    indices[n] = spread ? expr_index(call->context, 0) : axes->at[batch_rank - own + n];
  }
  if (row) indices[n++] = row;
  if (column) indices[n++] = column;
  return te_at(call->te, b, indices);
}

static bool define_matmul(OpCall *call) {
  Context *context = call->context;
  Buffer *a = call->inputs[0], *b = call->inputs[1];
  if (!a->rank || !b->rank) return op_error(call, "takes tensors of rank 1 or more");
  Expr *k = a->shape[a->rank - 1], *k_of_b = b->shape[b->rank - (b->rank > 1 ? 2 : 1)];
  if (k != k_of_b && !(k->op == EXPR_INT && k_of_b->op == EXPR_INT && k->as.i == k_of_b->as.i))
    return op_error(call, "the inner extents differ: %lld and %lld",
                    (long long)(k->op == EXPR_INT ? k->as.i : -1),
                    (long long)(k_of_b->op == EXPR_INT ? k_of_b->as.i : -1));
  Buffer batches[2] = {batch_of(a), batch_of(b)};
  Expr *shape[TE_MAX_RANK];
  int batch_rank;
  if (!op_broadcast_shape(call, (Buffer *[]){&batches[0], &batches[1]}, 2, shape, &batch_rank))
    return false;
  int rank = batch_rank;
  if (a->rank > 1) shape[rank++] = a->shape[a->rank - 2];
  if (b->rank > 1) shape[rank++] = b->shape[b->rank - 1];
  TeAxes axes = te_axes(call->te, shape, rank);
  const char *name = node_string(call->node, "out_dtype", "");
  DType type = DTYPE_VOID; // as TVM writes an absent one
  if (*name && !dtype_parse(name, strlen(name), &type))
    return op_error(call, "'out_dtype' is \"%s\", which is no element type", name);
  if (dtype_equal(type, DTYPE_VOID)) type = a->type;
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, type, 0)};
  Expr *inner = op_reduce_axis(call, &sum, "rk", k);
  Expr *row = a->rank > 1 ? axes.at[batch_rank] : NULL;
  Expr *column = b->rank > 1 ? axes.at[rank - 1] : NULL;
  Expr *left = a->rank > 1 ? operand_at(call, a, &axes, batch_rank, row, inner)
                           : operand_at(call, a, &axes, batch_rank, inner, NULL);
  Expr *right = operand_at(call, b, &axes, batch_rank, inner, column);
  Expr *product =
      expr_mul(context, expr_cast(context, type, left), expr_cast(context, type, right));
  op_output(call, te_reduce(call->te, call->node->name, type, shape, &axes, &sum, product));
  return true;
}

static Expr *scaled(Context *context, Expr *e, double factor) {
  return expr_mul(context, e, expr_const(context, e->type, factor));
}

// alpha * op(a) op(b) + beta * c
static bool define_gemm(OpCall *call) {
  Context *context = call->context;
  Buffer *a = call->inputs[0], *b = call->inputs[1];
  Buffer *c = call->input_count > 2 ? call->inputs[2] : NULL;
  if (a->rank != 2 || b->rank != 2)
    return op_error(call, "takes matrices, got ranks %d and %d", a->rank, b->rank);
  int ta = node_int(call->node, "transpose_a", 0) != 0;
  int tb = node_int(call->node, "transpose_b", 0) != 0;
  if (!op_same_extent(a->shape[!ta], b->shape[tb]))
    return op_error(call, "the inner extents differ: axis %d of '%s'%s and axis %d of '%s'%s", !ta,
                    a->name, ta ? " (transposed)" : "", tb, b->name, tb ? " (transposed)" : "");
  Expr *shape[] = {a->shape[ta], b->shape[!tb]};
  TeAxes axes = te_axes(call->te, shape, 2);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, a->type, 0)};
  Expr *k = op_reduce_axis(call, &sum, "rk", a->shape[!ta]);
  Expr *left = te_at(call->te, a, ta ? (Expr *[]){k, axes.at[0]} : (Expr *[]){axes.at[0], k});
  Expr *right = te_at(call->te, b, tb ? (Expr *[]){axes.at[1], k} : (Expr *[]){k, axes.at[1]});
  Buffer *product = te_reduce(call->te, call->node->name, a->type, shape, &axes, &sum,
                              expr_mul(context, left, right));
  double alpha = node_float(call->node, "alpha", 1), beta = node_float(call->node, "beta", 1);
  if (c || alpha != 1) {
    TeAxes at = te_axes(call->te, shape, 2);
    Expr *value = scaled(context, te_at(call->te, product, at.at), alpha);
    if (c) {
      Expr *common[TE_MAX_RANK];
      int rank;
      if (!op_broadcast_shape(call, (Buffer *[]){product, c}, 2, common, &rank)) return false;
      if (rank != 2 || !op_same_extent(common[0], shape[0]) || !op_same_extent(common[1], shape[1]))
        return op_error(call, "the added tensor does not broadcast to the product");
      value = expr_add(context, value, scaled(context, op_broadcast_at(call, c, &at), beta));
    }
    product = te_compute(call->te, str_format(context, "%s_sum", call->node->name), a->type, shape,
                         &at, value);
  }
  op_output(call, product);
  return true;
}

const OpRow contraction_ops[] = {
    {"matmul", "MatMul", 2, 2, define_matmul, "out_dtype"},
    {"gemm", "Gemm", 2, 3, define_gemm, "alpha beta transpose_a transpose_b"},
};
const int contraction_op_count = COUNT_OF(contraction_ops);
