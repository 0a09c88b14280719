// SPDX-License-Identifier: Apache-2.0
// Applies index maps to expressions and builds index maps from expressions, one operation at a
// time.
#include "ir/index_map.h"

// The operation of programs for each operation of layouts; -1 for axes, symbols and numbers.
enum {
  OF_CONST = -1,
  OF_AXIS = -1,
  OF_SYMBOL = -1,
  OF_ADD = EXPR_ADD,
  OF_SUB = EXPR_SUB,
  OF_MUL = EXPR_MUL,
  OF_DIV = EXPR_FLOOR_DIV,
  OF_MOD = EXPR_FLOOR_MOD,
  OF_SHL = EXPR_SHIFT_LEFT,
  OF_SHR = EXPR_SHIFT_RIGHT,
  OF_AND = EXPR_BIT_AND,
  OF_XOR = EXPR_BIT_XOR,
  OF_OR = EXPR_BIT_OR,
  OF_MIN = EXPR_MIN,
  OF_MAX = EXPR_MAX,
  OF_LT = EXPR_LT,
  OF_LE = EXPR_LE,
  OF_EQ = EXPR_EQ,
  OF_NE = EXPR_NE,
  OF_NOT = EXPR_NOT,
  OF_BOTH = EXPR_AND,
  OF_EITHER = EXPR_OR,
  OF_SELECT = EXPR_SELECT
};
static const int16_t expr_ops[LAYOUT_OP_COUNT] = {
#define OP(name, ...) [LAYOUT_##name] = OF_##name,
#include "layout/core/ops.def"
#undef OP
};

// ---- To expressions

typedef struct ToExpr {
  Context *context;
  Expr *const *axes;
  int count;
  const Map *symbols;
  Map done;
} ToExpr;

static Expr *to_expr(ToExpr *to, const LayoutExpr *e);

// A truth value is the number 0 or 1 in layouts and has a type of its own in programs.
static Expr *as_condition(Context *context, Expr *e) {
  if (dtype_is_bool(e->type)) return e;
  return expr_binary(context, EXPR_NE, e, expr_int(context, e->type, 0));
}

static Expr *as_number(Context *context, Expr *e) {
  return dtype_is_bool(e->type) ? expr_cast(context, DTYPE_INT32, e) : e;
}

static Expr *leaf_to_expr(ToExpr *to, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST) return expr_index(to->context, e->value);
  if (e->op == LAYOUT_AXIS) return e->value < to->count ? to->axes[e->value] : NULL;
  return to->symbols ? map_find(to->symbols, e->symbol) : NULL;
}

static bool takes_condition(ExprOp op, int operand) {
  return op_table[op].class == OP_LOGIC || (op == EXPR_SELECT && operand == 0);
}

static Expr *node_to_expr(ToExpr *to, const LayoutExpr *e) {
  int count = layout_op_arguments(e->op);
  if (count == 0) return leaf_to_expr(to, e);
  ExprOp op = (ExprOp)expr_ops[e->op];
  Expr *args[3] = {0};
  for (int i = 0; i < count; i++) {
    args[i] = to_expr(to, e->args[i]);
    if (!args[i]) return NULL;
    args[i] = takes_condition(op, i) ? as_condition(to->context, args[i])
                                     : as_number(to->context, args[i]);
  }
  if (count == 3) return expr_select(to->context, args[0], args[1], args[2]);
  return count == 2 ? expr_binary(to->context, op, args[0], args[1])
                    : expr_unary(to->context, op, args[0]);
}

static Expr *to_expr(ToExpr *to, const LayoutExpr *e) {
  Expr *known = map_find(&to->done, e);
  if (known) return known;
  Expr *r = node_to_expr(to, e);
  if (r) map_put(&to->done, e, r);
  return r;
}

Expr *expr_from_layout(Context *context, const LayoutExpr *e, Expr *const *axes, int count,
                       const Map *symbols) {
  ToExpr to = {context, axes, count, symbols, map_new(&context->arena)};
  return to_expr(&to, e);
}

bool index_map_apply_exprs(Context *context, const IndexMap *map, Expr *const *indices,
                           const Map *symbols, Expr **outputs) {
  ToExpr to = {context, indices, map->input_count, symbols, map_new(&context->arena)};
  for (int i = 0; i < map->output_count; i++) {
    Expr *e = to_expr(&to, map->outputs[i]);
    if (!e) return false;
    outputs[i] = as_number(context, e);
  }
  return true;
}

// ---- From expressions

typedef struct ToLayout {
  Context *context;
  Expr *const *vars;
  int count;
  bool symbols;
  Map done;
} ToLayout;

static const LayoutExpr *to_layout(ToLayout *to, Expr *e);

static const LayoutExpr *var_to_layout(ToLayout *to, const Expr *e) {
  for (int i = 0; i < to->count; i++)
    if (to->vars[i] == e) return layout_axis(to->context, i);
  return to->symbols ? layout_symbol(to->context, e->as.var->name) : NULL;
}

static LayoutOp layout_op_of(const Expr *e) {
  for (int op = 0; op < LAYOUT_OP_COUNT; op++)
    if (expr_ops[op] == (int16_t)e->op) return (LayoutOp)op;
  return LAYOUT_OP_COUNT;
}

static const LayoutExpr *operation_to_layout(ToLayout *to, LayoutOp op, Expr *const *args) {
  const LayoutExpr *out[3] = {0};
  for (int i = 0; i < layout_op_arguments(op); i++) {
    out[i] = to_layout(to, args[i]);
    if (!out[i]) return NULL;
  }
  return layout_expr(to->context, op, out[0], out[1], out[2]);
}

// A cast between integers keeps the value of an index.
static bool is_index_cast(const Expr *e) {
  DType from = e->count ? e->args[0]->type : e->type;
  return e->op == EXPR_CAST && dtype_is_int(e->type) && (dtype_is_int(from) || dtype_is_bool(from));
}

static const LayoutExpr *node_to_layout(ToLayout *to, Expr *e) {
  if (e->type.lanes != 1 || dtype_is_float(e->type)) return NULL;
  if (e->op == EXPR_INT) return layout_const(to->context, e->as.i);
  if (e->op == EXPR_VAR) return var_to_layout(to, e);
  if (is_index_cast(e)) return to_layout(to, e->args[0]);
  if (e->op == EXPR_IF_THEN_ELSE) return operation_to_layout(to, LAYOUT_SELECT, e->args);
  if (e->op == EXPR_GT)
    return operation_to_layout(to, LAYOUT_LT, (Expr *[]){e->args[1], e->args[0]});
  if (e->op == EXPR_GE)
    return operation_to_layout(to, LAYOUT_LE, (Expr *[]){e->args[1], e->args[0]});
  LayoutOp op = layout_op_of(e);
  return op == LAYOUT_OP_COUNT ? NULL : operation_to_layout(to, op, e->args);
}

static const LayoutExpr *to_layout(ToLayout *to, Expr *e) {
  if (!e->count) return node_to_layout(to, e);
  const LayoutExpr *known = map_find(&to->done, e);
  if (known) return known;
  const LayoutExpr *r = node_to_layout(to, e);
  if (r) map_put(&to->done, e, (void *)(uintptr_t)r);
  return r;
}

const LayoutExpr *layout_from_expr(Context *context, Expr *e, Expr *const *vars, int count,
                                   bool symbols) {
  ToLayout to = {context, vars, count, symbols, map_new(&context->arena)};
  return to_layout(&to, e);
}

const IndexMap *index_map_from_exprs(Context *context, Expr *const *vars, int var_count,
                                     Expr *const *exprs, int count, bool symbols) {
  ToLayout to = {context, vars, var_count, symbols, map_new(&context->arena)};
  Str *names = arena_array(&context->arena, Str, var_count);
  const LayoutExpr **outputs = arena_array(&context->arena, const LayoutExpr *, count);
  for (int i = 0; i < var_count; i++) names[i] = vars[i]->as.var->name;
  for (int i = 0; i < count; i++) {
    outputs[i] = to_layout(&to, exprs[i]);
    if (!outputs[i]) return NULL;
  }
  return index_map_new(context, var_count, names, count, outputs, NULL, NULL, 0);
}

// ---- Inverses

bool layout_inverse_exprs(Context *context, const Layout *layout, Expr *const *physical,
                          const Map *symbols, Expr **indices, Expr **holds, LayoutAnswer *answer) {
  LayoutInverse inverse;
  LayoutAnswer found = layout_inverse(context, layout, &inverse);
  if (answer) *answer = found;
  if (found.verdict != VERDICT_YES) return false;
  if (!index_map_apply_exprs(context, inverse.map, physical, symbols, indices)) return false;
  *holds = expr_bool(context, true);
  if (!inverse.padding) return true;
  Expr *padding =
      expr_from_layout(context, inverse.padding, physical, layout->physical_rank, symbols);
  if (!padding) return false;
  *holds = expr_unary(context, EXPR_NOT, as_condition(context, padding));
  return true;
}
