// SPDX-License-Identifier: Apache-2.0
// Finds the numbers of a function that index maps may name: the sizes in the shapes of its
// parameters, and its integer parameters. What is known of them are the assertions and
// assumptions with which the body begins.
//   def f(a, n, p): …; assert p > 0, ""; for i in range(n): …   =>   n >= 1, p >= 1
#include "schedule/internal.h"

static void add_name(Map *names, Expr *var) {
  if (!map_contains(names, var->as.var->name)) map_put(names, var->as.var->name, var);
}

static bool name_size(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR) add_name(visitor->env, e);
  return true;
}

static void name_sizes(const PrimFunc *func, Map *names) {
  Visitor visitor = {.env = names, .enter_expr = name_size};
  for (int i = 0; i < func->param_count; i++)
    for (int d = 0; func->buffers[i] && d < func->buffers[i]->rank; d++)
      visit_expr(&visitor, func->buffers[i]->shape[d]);
}

static bool is_number(const PrimFunc *func, int i) {
  DType type = func->params[i]->type;
  return !func->buffers[i] && dtype_is_int(type) && type.lanes == 1;
}

Map schedule_size_symbols(const Schedule *schedule) {
  Map names = map_new(&schedule->context->arena);
  const PrimFunc *func = schedule->func;
  name_sizes(func, &names);
  for (int i = 0; i < func->param_count; i++)
    if (is_number(func, i)) add_name(&names, func->params[i]);
  return names;
}

// The condition that the statement states for all that follow; NULL: it is no such statement.
static Expr *stated_condition(const Stmt *s) {
  if (s->kind == STMT_ASSERT) return s->as.check.condition;
  return stmt_is_assumption(s) ? s->as.evaluate->args[0] : NULL;
}

static void assume_condition(Analyzer *analyzer, Expr *condition) {
  if (!expr_reads_memory(condition)) analyzer_assume(analyzer, condition);
}

// Assumes what holds when the first statement runs that states nothing.
static void assume_begin(Analyzer *analyzer, const Stmt *s) {
  while (s) {
    Expr *condition = stated_condition(s);
    if (condition) assume_condition(analyzer, condition);
    if (s->kind == STMT_BLOCK && !s->as.block->var_count) {
      s = s->as.block->body;
    } else if (s->kind == STMT_SEQ) {
      int i = 0;
      for (; i < s->as.seq.count && (condition = stated_condition(s->as.seq.items[i])) &&
             (s->as.seq.items[i]->kind != STMT_ASSERT || !s->as.seq.items[i]->as.check.body);
           i++)
        assume_condition(analyzer, condition);
      s = i < s->as.seq.count ? s->as.seq.items[i] : NULL;
    } else {
      s = s->kind == STMT_ASSERT ? s->as.check.body : NULL;
    }
  }
}

static LayoutFact fact_of(Context *context, Analyzer *analyzer, Expr *var, bool is_size) {
  Expr *zero = expr_int(context, var->type, 0);
  bool is_positive = is_size || analyzer_prove(analyzer, expr_lt(context, zero, var));
  LayoutFact fact = {var->as.var->name, is_positive, INT32_MAX, 1};
  int64_t low, high;
  if (!analyzer_const_bounds(analyzer, var, &low, &high)) return fact;
  fact.min = MAX_OF(fact.min, low);
  if (high >= MAX_OF(fact.min, 1)) fact.max = MIN_OF(high, INT32_MAX);
  return fact;
}

LayoutFacts schedule_size_facts(const Schedule *schedule) {
  Context *context = schedule->context;
  Map names = schedule_size_symbols(schedule), sizes = map_new(&context->arena);
  if (!names.count) return (LayoutFacts){NULL, 0};
  name_sizes(schedule->func, &sizes);
  LayoutFact *facts = arena_array(&context->arena, LayoutFact, names.count + 1);
  Analyzer *analyzer = analyzer_new(context);
  assume_begin(analyzer, schedule->func->body);
  for (int i = 0; i < names.count; i++) {
    Expr *var = names.entries[i].value;
    facts[i] = fact_of(context, analyzer, var, map_contains(&sizes, var->as.var->name));
  }
  return (LayoutFacts){facts, names.count};
}
