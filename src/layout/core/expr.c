// SPDX-License-Identifier: Apache-2.0
// Builds consed expressions over logical axes and symbols, substitutes in them, and evaluates them.
#include "layout/core/core.h"

LayoutTable *layout_table_new(Context *context) {
  LayoutTable *table = context->layouts = arena_new(&context->lasting, LayoutTable);
  table->maps = map_new(&context->lasting);
  table->layouts = map_new(&context->lasting);
  return table;
}

// ---- Consing -----------------------------------------------------------------------------------

static uint64_t expr_hash(const LayoutExpr *e) {
  uint64_t h = hash_mix(e->op, (uint64_t)e->value);
  if (e->symbol) h = hash_mix(h, map_key(e->symbol));
  for (int i = 0; i < 3 && e->args[i]; i++) h = hash_mix(h, e->args[i]->id);
  return h;
}

static bool expr_equal(const LayoutExpr *a, const LayoutExpr *b) {
  return a->op == b->op && a->value == b->value && a->symbol == b->symbol &&
         a->args[0] == b->args[0] && a->args[1] == b->args[1] && a->args[2] == b->args[2];
}

static int find_slot(const LayoutTable *table, const LayoutExpr *e) {
  uint64_t at = expr_hash(e);
  for (;; at++) {
    int slot = (int)(at & (uint64_t)(table->expr_slots - 1));
    const LayoutExpr *there = table->exprs[slot];
    if (!there || expr_equal(there, e)) return slot;
  }
}

static void table_grow(Context *context, LayoutTable *table) {
  const LayoutExpr **old = table->exprs;
  int old_slots = table->expr_slots;
  table->expr_slots = old_slots ? old_slots * 2 : 256;
  table->exprs = arena_array(&context->lasting, const LayoutExpr *, table->expr_slots);
  for (int i = 0; i < old_slots; i++)
    if (old[i]) table->exprs[find_slot(table, old[i])] = old[i];
}

// A consed expression with its size as a tree, in which shared nodes count as often as they occur.
typedef struct ExprNode {
  LayoutExpr e;
  uint32_t size;
  uint64_t axes; // the axes that it reads, as a bit set
} ExprNode;

uint64_t layout_axes_read(const LayoutExpr *e) {
  return ((const ExprNode *)e)->axes;
}

uint32_t layout_expr_size(const LayoutExpr *e) {
  return ((const ExprNode *)e)->size;
}

bool layout_add_symbols(const LayoutExpr *e, Str *symbols, int *count, int most) {
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!layout_add_symbols(e->args[i], symbols, count, most)) return false;
  if (e->op != LAYOUT_SYMBOL) return true;
  for (int i = 0; i < *count; i++)
    if (symbols[i] == e->symbol) return true;
  if (*count == most) return false;
  symbols[(*count)++] = e->symbol;
  return true;
}

LayoutFact layout_fact_of(LayoutFacts facts, Str symbol) {
  LayoutFact fact = {.symbol = symbol, .min = 1, .multiple = 1};
  for (int i = 0; i < facts.count; i++)
    if (facts.items[i].symbol == symbol) fact = facts.items[i];
  fact.multiple = MAX_OF(fact.multiple, (int64_t)1);
  return fact;
}

static uint64_t find_axes(const LayoutExpr *e) {
  uint64_t axes = e->op == LAYOUT_AXIS ? (uint64_t)1 << (e->value & 63) : 0;
  for (int i = 0; i < 3 && e->args[i]; i++) axes |= layout_axes_read(e->args[i]);
  return axes;
}

static uint32_t count_nodes(const LayoutExpr *e) {
  uint64_t size = 1;
  for (int i = 0; i < 3 && e->args[i]; i++) size += layout_expr_size(e->args[i]);
  return (uint32_t)MIN_OF(size, (uint64_t)UINT32_MAX);
}

static const LayoutExpr *cons(Context *context, const LayoutExpr *e) {
  LayoutTable *table = layout_table(context);
  if (table->expr_count * 2 >= table->expr_slots) table_grow(context, table);
  int slot = find_slot(table, e);
  if (table->exprs[slot]) return table->exprs[slot];
  ExprNode *made = arena_new(&context->lasting, ExprNode);
  *made = (ExprNode){*e, count_nodes(e), find_axes(e)};
  made->e.id = ++table->next_id;
  table->expr_count++;
  return table->exprs[slot] = &made->e;
}

const LayoutExpr *layout_const(Context *context, int64_t value) {
  return cons(context, &(LayoutExpr){.op = LAYOUT_CONST, .value = value});
}

const LayoutExpr *layout_axis(Context *context, int axis) {
  return cons(context, &(LayoutExpr){.op = LAYOUT_AXIS, .value = axis});
}

const LayoutExpr *layout_symbol(Context *context, Str name) {
  return cons(context, &(LayoutExpr){.op = LAYOUT_SYMBOL, .symbol = name});
}

// ---- Values ------------------------------------------------------------------------------------

static bool symbol_value(Str name, const LayoutValue *values, int count, int64_t *out) {
  for (int i = 0; i < count; i++)
    if (values[i].symbol == name) return *out = values[i].value, true;
  return false;
}

bool layout_expr_value(const LayoutExpr *e, const int64_t *index, const LayoutValue *values,
                       int value_count, int64_t *out) {
  if (e->op == LAYOUT_CONST) return *out = e->value, true;
  if (e->op == LAYOUT_AXIS) return *out = index[e->value], true;
  if (e->op == LAYOUT_SYMBOL) return symbol_value(e->symbol, values, value_count, out);
  int64_t v[3] = {0};
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!layout_expr_value(e->args[i], index, values, value_count, &v[i])) return false;
  return layout_op_value(e->op, v[0], v[1], v[2], out);
}

// ---- Building ----------------------------------------------------------------------------------

// Whether the value is 0 or 1: only such operands of `and` and `or` may replace the result.
static bool is_truth(const LayoutExpr *e) {
  LayoutOpClass class = layout_op_class(e->op);
  return class == LAYOUT_OP_COMPARISON || class == LAYOUT_OP_LOGIC;
}

static const LayoutExpr *fold_truth(Context *context, LayoutOp op, const LayoutExpr *a,
                                    const LayoutExpr *b) {
  if (is_const(a) && is_truth(b)) return fold_truth(context, op, b, a);
  if (!is_const(b) || !is_truth(a)) return NULL;
  if (layout_op_is_neutral(op, b->value)) return a;
  return layout_const(context, op == LAYOUT_EITHER);
}

static const LayoutExpr *fold(Context *context, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b, const LayoutExpr *c) {
  int64_t value;
  if (is_const(a) && (!b || is_const(b)) && (!c || is_const(c)) &&
      layout_op_value(op, a->value, b ? b->value : 0, c ? c->value : 0, &value))
    return layout_const(context, value);
  if (op == LAYOUT_BOTH || op == LAYOUT_EITHER) return fold_truth(context, op, a, b);
  if (op == LAYOUT_SELECT && is_const(a)) return a->value ? b : c;
  if ((op == LAYOUT_MIN || op == LAYOUT_MAX) && a == b) return a;
  if (b && is_const(b) && layout_op_is_neutral(op, b->value)) return a;
  if (b && is_const(a) && layout_op_rows[op].commutes && layout_op_is_neutral(op, a->value))
    return b;
  if (op == LAYOUT_MOD && is_const(b) && b->value == 1) return layout_const(context, 0);
  if (op == LAYOUT_MUL && is_const(b) && b->value == 0) return b;
  if (op == LAYOUT_MUL && is_const(a) && a->value == 0) return a;
  return NULL;
}

const LayoutExpr *layout_expr(Context *context, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b, const LayoutExpr *c) {
  const LayoutExpr *folded = fold(context, op, a, b, c);
  return folded ? folded : cons(context, &(LayoutExpr){.op = op, .args = {a, b, c}});
}

const LayoutExpr *layout_expr_substitute(Context *context, const LayoutExpr *e,
                                         const LayoutExpr *const *axes, int count) {
  if (e->op == LAYOUT_AXIS) return e->value < count && axes[e->value] ? axes[e->value] : e;
  if (!e->args[0]) return e;
  const LayoutExpr *args[3] = {0};
  bool changed = false;
  for (int i = 0; i < 3 && e->args[i]; i++) {
    args[i] = layout_expr_substitute(context, e->args[i], axes, count);
    changed |= args[i] != e->args[i];
  }
  return changed ? layout_expr(context, e->op, args[0], args[1], args[2]) : e;
}

const LayoutExpr *layout_instantiate(Context *context, const LayoutExpr *e,
                                     const LayoutValue *values, int count) {
  for (int i = 0; i < count && e->op == LAYOUT_SYMBOL; i++)
    if (values[i].symbol == e->symbol) return layout_const(context, values[i].value);
  if (!e->args[0]) return e;
  const LayoutExpr *args[3] = {0};
  for (int i = 0; i < 3 && e->args[i]; i++)
    args[i] = layout_instantiate(context, e->args[i], values, count);
  return layout_expr(context, e->op, args[0], args[1], args[2]);
}

// ---- Combinations ------------------------------------------------------------------------------

const LayoutExpr *layout_add_product(Context *context, const LayoutExpr *sum, const LayoutExpr *a,
                                     const LayoutExpr *b) {
  return layout_binary(context, LAYOUT_ADD, sum, layout_times(context, a, b));
}

const LayoutExpr *layout_product_expr(Context *context, const LayoutExpr *const *factors,
                                      int count) {
  const LayoutExpr *product = layout_const(context, 1);
  for (int i = 0; i < count; i++) product = layout_times(context, product, factors[i]);
  return product;
}

const LayoutExpr *layout_number_expr(Context *context, const LayoutExpr *const *index,
                                     const LayoutExpr *const *extents, int count) {
  const LayoutExpr *number = layout_const(context, 0);
  for (int i = 0; i < count; i++) {
    number = layout_times(context, number, extents[i]);
    number = layout_binary(context, LAYOUT_ADD, number, index[i]);
  }
  return number;
}

const LayoutExpr *layout_with_axis(Context *context, const LayoutExpr *e, int axis,
                                   const LayoutExpr *value) {
  const LayoutExpr *axes[MAX_RANK + 1] = {0};
  axes[axis] = value;
  return layout_expr_substitute(context, e, axes, axis + 1);
}

const LayoutExpr *layout_at_zero(Context *context, const LayoutExpr *e, int from, int to) {
  const LayoutExpr *axes[MAX_RANK] = {0};
  for (int i = from; i < to; i++) axes[i] = layout_const(context, 0);
  return layout_expr_substitute(context, e, axes, to);
}
