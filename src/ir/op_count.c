// SPDX-License-Identifier: Apache-2.0
// Counts the operations of an expression in one walk.
#include "ir/op_count.h"

static bool count_node(Visitor *visitor, Expr *e) {
  OpCount *count = visitor->env;
  OpClass class = op_table[e->op].class;
  count->arithmetic += class == OP_ARITH;
  count->functions += class == OP_MATH;
  count->instructions += class != OP_MATH && (e->count || e->op == EXPR_LOAD);
  if (dtype_is_float(e->type) && (class == OP_ARITH || class == OP_MATH))
    count->floating += e->type.lanes;
  return e->op != EXPR_LOAD;
}

OpCount expr_op_count(Expr *e) {
  OpCount count = {0};
  Visitor visitor = {.env = &count, .enter_expr = count_node};
  visit_expr(&visitor, e);
  return count;
}
