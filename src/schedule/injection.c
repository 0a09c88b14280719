// SPDX-License-Identifier: Apache-2.0
// Proves that a map from loops to index values is injective, so that different iterations access
// different elements. Easy cases come first: each loop is an index by itself, also after terms that
// are the same for all iterations are removed. Other maps become layouts on ranges that start at 0,
// and the layout algebra decides:
//
//   (i, j) -> i * 4 + j        for j in range(4): injective; for j in range(5): not
//   (i, j) -> i * 4 + j + n    injective too, n is removed
//   (t, r) -> t * 6 + r        for r in range(7) with the predicate t * 6 + r < 448: not injective,
//
// but injection_cut_numbers lets one variable below 448 stand for t * 6 + r, where the predicate's
// number has different values for different (t, r).
#include "schedule/injection.h"

static bool each_loop_alone(const Injection *q) {
  for (int i = 0; i < q->loop_count; i++) {
    bool alone = expr_is_int(q->loops[i].extent, 1);
    for (int k = 0; k < q->id_count && !alone; k++) alone = q->ids[k] == q->loops[i].var;
    if (!alone) return false;
  }
  return true;
}

typedef struct VarList {
  Arena *arena;
  ExprArray vars;
} VarList;

static bool list_var(Visitor *visitor, Expr *e) {
  VarList *list = visitor->env;
  if (e->op != EXPR_VAR) return true;
  for (int i = 0; i < list->vars.count; i++)
    if (list->vars.items[i] == e) return true;
  array_push(list->arena, &list->vars, e);
  return true;
}

ExprArray expr_variables(Arena *arena, Expr *e) {
  VarList list = {arena, {0}};
  visit_expr(&(Visitor){.env = &list, .enter_expr = list_var}, e);
  return list.vars;
}

// The extent of a variable's range, moved to start at 0 by subtracting *low: a constant, or a
// loop's symbolic extent. NULL when it is unknown.
static const LayoutExpr *axis_extent(const Injection *q, Expr *var, int64_t *low) {
  Context *context = q->schedule->context;
  int64_t high;
  *low = 0;
  if (analyzer_const_bounds(q->analyzer, var, low, &high))
    return layout_const(context, high - *low + 1);
  for (int i = 0; i < q->loop_count; i++)
    if (q->loops[i].var == var && expr_is_int(q->loops[i].min, 0))
      return layout_from_expr(context, q->loops[i].extent, NULL, 0, true);
  return NULL;
}

// An index as a layout expression over the axes, increased by a constant when it may be negative.
static const LayoutExpr *axis_output(const Injection *q, Expr *id, const Map *shift,
                                     const VarList *axes) {
  Context *context = q->schedule->context;
  int64_t low = 0, high;
  bool positive =
      analyzer_prove(q->analyzer, expr_binary(context, EXPR_GE, id, expr_index(context, 0)));
  if (!positive && !analyzer_const_bounds(q->analyzer, id, &low, &high)) return NULL;
  id = substitute_expr(context, id, shift);
  if (low < 0) id = expr_add(context, id, expr_index(context, -low));
  return layout_from_expr(context, id, axes->vars.items, axes->vars.count, true);
}

// Lists the variables of the indices beside the loops, but for those sizes and numbers of the
// function that are at least 1: these are symbols of the layout.
static void list_others(const Injection *q, const LayoutFacts *facts, VarList *list) {
  VarList all = {list->arena, {0}};
  Visitor visitor = {.env = &all, .enter_expr = list_var};
  Map symbols = schedule_size_symbols(q->schedule);
  for (int k = 0; k < q->id_count; k++) visit_expr(&visitor, q->ids[k]);
  for (int i = 0; i < all.vars.count; i++) {
    Expr *var = all.vars.items[i];
    bool is_symbol = false;
    for (int k = 0; k < facts->count; k++)
      is_symbol |= facts->items[k].symbol == var->as.var->name && facts->items[k].min > 0 &&
                   map_find(&symbols, var->as.var->name) == var;
    if (!is_symbol) list_var(&(Visitor){.env = list}, var);
  }
}

// The map (loops, other variables) -> (ids, other variables), on ranges that start at 0.
static const Layout *injection_layout(const Injection *q) {
  Context *context = q->schedule->context;
  VarList list = {&context->arena, {0}};
  for (int i = 0; i < q->loop_count; i++) array_push(list.arena, &list.vars, q->loops[i].var);
  LayoutFacts facts = schedule_size_facts(q->schedule);
  list_others(q, &facts, &list);
  int axes = list.vars.count, outputs = q->id_count + axes - q->loop_count;
  const LayoutExpr **shape = arena_array(&context->arena, const LayoutExpr *, axes);
  const LayoutExpr **maps = arena_array(&context->arena, const LayoutExpr *, outputs);
  Map shift = map_new(&context->arena);
  for (int i = 0; i < axes; i++) {
    int64_t low;
    Expr *var = list.vars.items[i];
    if (!(shape[i] = axis_extent(q, var, &low))) return NULL;
    if (low) map_put(&shift, var, expr_add(context, var, expr_index(context, low)));
  }
  for (int k = 0; k < q->id_count; k++)
    if (!(maps[k] = axis_output(q, q->ids[k], &shift, &list))) return NULL;
  for (int i = q->loop_count; i < axes; i++)
    maps[q->id_count + i - q->loop_count] = layout_axis(context, i);
  const IndexMap *map = index_map_new(context, axes, NULL, outputs, maps, NULL, NULL, 0);
  int diags = context->diags.count, errors = context->error_count;
  LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  const Layout *layout = layout_new(context, map, shape, NULL, facts, any, (SourcePos){0});
  diag_forget(context, diags, errors); // a map that does not fit is no mistake of the user
  return layout;
}

static bool uses_loops_alone(const Injection *q, Expr *id) {
  ExprArray vars = expr_variables(&q->schedule->context->arena, id);
  for (int i = 0; i < vars.count; i++) {
    bool found = false;
    for (int k = 0; k < q->loop_count && !found; k++) found = q->loops[k].var == vars.items[i];
    if (!found) return false;
  }
  return true;
}

// The same map without the terms of the other variables, which add the same to all elements of an
// index: i_0 * 4 + i_1 becomes i_1 where only i_1 counts. An index that is no such sum stays, and
// one with a load too, whose value may change between the iterations.
static Injection without_fixed_terms(const Injection *q) {
  Context *context = q->schedule->context;
  Injection result = *q;
  result.ids = arena_array(&context->arena, Expr *, q->id_count);
  Map first = map_new(&context->arena);
  for (int i = 0; i < q->loop_count; i++) map_put(&first, q->loops[i].var, q->loops[i].min);
  for (int k = 0; k < q->id_count; k++) {
    Expr *fixed = substitute_expr(context, q->ids[k], &first);
    Expr *rest = analyzer_simplify(q->analyzer, expr_sub(context, q->ids[k], fixed));
    bool keeps = expr_reads_memory(q->ids[k]) || !uses_loops_alone(q, rest);
    result.ids[k] = keeps ? q->ids[k] : rest;
  }
  return result;
}

bool injection_is_proved(const Injection *given) {
  if (each_loop_alone(given)) return true;
  if (!given->id_count) return false;
  const Injection reduced = without_fixed_terms(given), *q = &reduced;
  if (each_loop_alone(q)) return true;
  const Layout *layout = injection_layout(q);
  return layout && layout_is_injective(q->schedule->context, layout).verdict == VERDICT_YES;
}

// A sum of several loops with an upper bound from a predicate, such as t*6 + r < 448 after a split
// that does not divide the extent.
typedef struct CutNumber {
  Expr *number, *var; // the variable stands for all values of the number
} CutNumber;

static Expr *put_number(Rewriter *rewriter, Expr *e) {
  const CutNumber *cut = rewriter->env;
  return e == cut->number ? cut->var : e;
}

// The index with the variable in place of the number. Where the terms of the number are spread over
// those of the index, a loop that the number counts once is solved for: a*21 + b*7 + c becomes
// number*7 + c with b = number - a*3.
static Expr *with_number(const Injection *q, const CutNumber *cut, Expr *id, int count) {
  Context *context = q->schedule->context;
  Rewriter rewriter = {.context = context, .env = (void *)cut, .expr = put_number};
  Expr *put = rewrite_expr(&rewriter, id);
  for (int i = 0; i < count; i++) {
    Expr *loop = q->loops[i].var;
    Expr *rest = analyzer_simplify(q->analyzer, expr_sub(context, cut->number, loop));
    if (!expr_uses(put, loop) || expr_uses(rest, loop)) continue;
    Map solved = map_new(&context->arena);
    map_put(&solved, loop, expr_sub(context, cut->var, rest));
    put = analyzer_simplify(q->analyzer, substitute_expr(context, put, &solved));
  }
  return put;
}

// Moves the number's loops to the front of q's loops; returns their count, or 0 when one is not in
// `q`.
static int loops_of_number(Injection *q, const CutNumber *cut) {
  ExprArray vars = expr_variables(&q->schedule->context->arena, cut->number);
  int count = 0;
  for (int i = 0; i < q->loop_count; i++)
    for (int k = 0; k < vars.count; k++)
      if (q->loops[i].var == vars.items[k]) {
        VarRange front = q->loops[count];
        q->loops[count++] = q->loops[i];
        q->loops[i] = front;
        break;
      }
  return count == vars.count ? count : 0;
}

// True for constants, and for expressions of sizes and numbers of the function alone.
static bool is_fixed_size(const Injection *q, Expr *e) {
  Map symbols = schedule_size_symbols(q->schedule);
  ExprArray vars = expr_variables(&q->schedule->context->arena, e);
  for (int i = 0; i < vars.count; i++)
    if (map_find(&symbols, vars.items[i]->as.var->name) != vars.items[i]) return false;
  return !expr_reads_memory(e);
}

// Replaces the number by one variable, when its loops occur in no other index and determine it.
// Iterations that the predicate excludes then need not be distinguished.
static void cut_number(Injection *q, Expr *number, Expr *end) {
  Context *context = q->schedule->context;
  Expr *zero = expr_index(context, 0), **ids = arena_array(&context->arena, Expr *, q->id_count);
  CutNumber cut = {number, expr_var(context, "number", number->type)};
  int count = number->op == EXPR_VAR ? 0 : loops_of_number(q, &cut);
  if (!count || !analyzer_prove(q->analyzer, expr_binary(context, EXPR_GE, number, zero))) return;
  for (int k = 0; k < q->id_count; k++) {
    ids[k] = with_number(q, &cut, q->ids[k], count);
    for (int i = 0; i < count; i++)
      if (expr_uses(ids[k], q->loops[i].var)) return;
  }
  Injection alone = {q->schedule, q->analyzer, &cut.number, 1, q->loops, count};
  if (!injection_is_proved(&alone)) return;
  analyzer_bind(q->analyzer, cut.var, zero, end);
  q->ids = ids;
  q->loops[count - 1] = (VarRange){cut.var, zero, end};
  q->loops += count - 1;
  q->loop_count -= count - 1;
}

void injection_cut_numbers(Injection *q, const Expr *predicate) {
  if (predicate->op == EXPR_AND) {
    injection_cut_numbers(q, predicate->args[0]);
    injection_cut_numbers(q, predicate->args[1]);
  } else if (predicate->op == EXPR_LT && is_fixed_size(q, predicate->args[1])) {
    cut_number(q, predicate->args[0], predicate->args[1]);
  }
}

bool injection_add_outer(Injection *q, const Path *path, int count) {
  int before = q->loop_count;
  for (int i = 0; i < count; i++) {
    const Stmt *s = path->items[i];
    bool used = false;
    for (int k = 0; k < q->id_count && s->kind == STMT_FOR; k++)
      used |= expr_uses(q->ids[k], s->as.loop.var);
    if (used && !is_fixed_size(q, s->as.loop.extent)) return false;
    if (used) q->loops[q->loop_count++] = loop_range(s);
  }
  return q->loop_count > before;
}
