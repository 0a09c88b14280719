// SPDX-License-Identifier: Apache-2.0
// Between the expressions of programs and those of layouts. Comparisons and logic of layouts are
// integers, those of programs are bools: each side gets what it wants.
#include "schedule/internal.h"

// ---- Layouts to programs ---------------------------------------------------------------------

typedef struct OpPair {
  LayoutOp layout;
  ExprOp expr;
} OpPair;

static const OpPair pairs[] = {
    {LAYOUT_ADD, EXPR_ADD},         {LAYOUT_SUB, EXPR_SUB},       {LAYOUT_MUL, EXPR_MUL},
    {LAYOUT_DIV, EXPR_FLOOR_DIV},   {LAYOUT_MOD, EXPR_FLOOR_MOD}, {LAYOUT_SHL, EXPR_SHIFT_LEFT},
    {LAYOUT_SHR, EXPR_SHIFT_RIGHT}, {LAYOUT_AND, EXPR_BIT_AND},   {LAYOUT_XOR, EXPR_BIT_XOR},
    {LAYOUT_OR, EXPR_BIT_OR},       {LAYOUT_MIN, EXPR_MIN},       {LAYOUT_MAX, EXPR_MAX},
    {LAYOUT_LT, EXPR_LT},           {LAYOUT_LE, EXPR_LE},         {LAYOUT_EQ, EXPR_EQ},
    {LAYOUT_NE, EXPR_NE},           {LAYOUT_BOTH, EXPR_AND},      {LAYOUT_EITHER, EXPR_OR},
    {LAYOUT_NOT, EXPR_NOT},
};

static Expr *as_condition(Context *context, Expr *e) {
  if (dtype_is_bool(e->type)) return e;
  return expr_binary(context, EXPR_NE, e, expr_int(context, e->type, 0));
}

static Expr *as_integer(Context *context, Expr *e) {
  return dtype_is_bool(e->type) ? expr_cast(context, DTYPE_INT32, e) : e;
}

Expr *layout_expr_ir(Context *context, const LayoutExpr *e, Expr *const *axes) {
  if (e->op == LAYOUT_CONST) return expr_index(context, e->value);
  if (e->op == LAYOUT_AXIS) return axes[e->value];
  if (e->op == LAYOUT_SYMBOL) bug(context, "a layout's symbol '%s' in a program", e->symbol);
  Expr *args[3] = {0};
  for (int i = 0; i < layout_op_arguments(e->op); i++)
    args[i] = layout_expr_ir(context, e->args[i], axes);
  if (e->op == LAYOUT_SELECT)
    return expr_select(context, as_condition(context, args[0]), as_integer(context, args[1]),
                       as_integer(context, args[2]));
  bool logic = e->op == LAYOUT_BOTH || e->op == LAYOUT_EITHER || e->op == LAYOUT_NOT;
  for (int i = 0; i < layout_op_arguments(e->op); i++)
    args[i] = logic ? as_condition(context, args[i]) : as_integer(context, args[i]);
  if (e->op == LAYOUT_NOT) return expr_unary(context, EXPR_NOT, args[0]);
  for (int i = 0; i < COUNT_OF(pairs); i++)
    if (pairs[i].layout == e->op) return expr_binary(context, pairs[i].expr, args[0], args[1]);
  bug(context, "a layout operation without counterpart");
}

void index_map_exprs(Context *context, const IndexMap *map, Expr *const *inputs, Expr **outputs) {
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr_ir(context, map->outputs[i], inputs);
}

// ---- Programs to layouts ---------------------------------------------------------------------

const LayoutExpr *layout_expr_of(Context *context, const Expr *e, Expr *const *axes, int count,
                                 bool symbols) {
  for (int i = 0; i < count; i++)
    if (axes[i] == e) return layout_axis(context, i);
  if (e->type.lanes > 1) return NULL;
  if (e->op == EXPR_INT) return layout_const(context, e->as.i);
  if (e->op == EXPR_VAR) return symbols ? layout_symbol(context, e->as.var->name) : NULL;
  if (e->op == EXPR_CAST && dtype_is_int(e->type) && dtype_is_int(e->args[0]->type))
    return layout_expr_of(context, e->args[0], axes, count, symbols);
  const LayoutExpr *args[3] = {0};
  if (e->count > 3) return NULL;
  for (int i = 0; i < e->count; i++)
    if (!(args[i] = layout_expr_of(context, e->args[i], axes, count, symbols))) return NULL;
  if (e->op == EXPR_SELECT)
    return layout_expr(context, LAYOUT_SELECT, args[0], args[1], args[2]);
  if (e->op == EXPR_GT || e->op == EXPR_GE)
    return layout_expr(context, e->op == EXPR_GT ? LAYOUT_LT : LAYOUT_LE, args[1], args[0], NULL);
  for (int i = 0; i < COUNT_OF(pairs); i++)
    if (pairs[i].expr == (ExprOp)e->op)
      return layout_expr(context, pairs[i].layout, args[0], args[1], NULL);
  return NULL;
}
