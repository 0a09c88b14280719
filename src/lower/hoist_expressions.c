// SPDX-License-Identifier: Apache-2.0
// Moves conditions and values out of the loops in which they do not change (TVM's HoistExpression):
//
//   for i in range(5):                            for i in range(5):
//     for j in range(7):                            x: T.let = i * 3
//       x: T.let = i * 3                   →        if i < 2:
//       if i < 2 and j < x: A[i, j] = 1               for j in range(7): if j < x: A[i, j] = 1
//       B[i, j] = if_then_else(i < 2, 3, 4)           for j in range(7): B[i, j] = 3
//                                                    else: for j in range(7): B[i, j] = 4
//
// A condition chooses between two copies of the loop, in which it is true and false. It may stand
// anywhere in the loop, unless it uses what the loop defines, reads memory or may divide by 0.
// `hoisted_conditionals` and `hoisted_let_bindings` are sums of TVM's flags. Copies stop once they
// have MOST_COPIED statements.
#include "lower/pass.h"

enum { OF_STATEMENTS = 1, OF_EXPRESSIONS = 2, OF_CONJUNCTS = 4, OF_THREADS = 8 };
enum { LETS = 1 | 2 }; // that conditions need, and others
enum { MOST_COPIED = 16384 };

typedef struct ExpressionHoisting {
  Context *context;
  int64_t conditions, lets; // flags
  Map threads;              // variables of loops over threads
  int64_t copied;           // statements
} ExpressionHoisting;

static bool find_thread(Visitor *visitor, Stmt *s) {
  ExpressionHoisting *hoisting = visitor->env;
  if (s->kind == STMT_FOR && s->as.loop.thread)
    map_put(&hoisting->threads, s->as.loop.var, s->as.loop.var);
  return true;
}

// ---- Conditions of a loop

typedef struct ConditionSearch {
  const ExpressionHoisting *hoisting;
  Map defined; // variables of the loop and of what stands in it
  Expr *found; // the first condition that may leave; NULL: none
} ConditionSearch;

static bool note_definition(Visitor *visitor, Stmt *s) {
  ConditionSearch *search = visitor->env;
  Expr **var = stmt_defined_var(s);
  if (var) map_put(&search->defined, *var, *var);
  return true;
}

static bool note_let(Visitor *visitor, Expr *e) {
  ConditionSearch *search = visitor->env;
  if (e->op == EXPR_LET) map_put(&search->defined, e->args[0], e->args[0]);
  return true;
}

typedef struct VarSearch {
  const ConditionSearch *search;
  bool stays;
} VarSearch;

static bool find_defined(Visitor *visitor, Expr *e) {
  VarSearch *vars = visitor->env;
  const ExpressionHoisting *hoisting = vars->search->hoisting;
  if (e->op != EXPR_VAR) return true;
  bool is_thread = map_contains(&hoisting->threads, e) && !(hoisting->conditions & OF_THREADS);
  vars->stays |= map_contains(&vars->search->defined, e) || e->as.var->scope || is_thread;
  return true;
}

static bool leaves(const ConditionSearch *search, Expr *condition) {
  VarSearch vars = {search, false};
  visit_expr(&(Visitor){.env = &vars, .enter_expr = find_defined}, condition);
  return !vars.stays && condition->type.lanes == 1 && condition->op != EXPR_INT &&
         lower_may_move(condition);
}

static void offer(ConditionSearch *search, Expr *condition) {
  ExprArray parts = {0};
  if (search->hoisting->conditions & OF_CONJUNCTS)
    expr_conjuncts(search->hoisting->context, condition, &parts);
  else
    array_push(&search->hoisting->context->arena, &parts, condition);
  for (int i = 0; i < parts.count && !search->found; i++)
    if (leaves(search, parts.items[i])) search->found = parts.items[i];
}

static bool offer_statement(Visitor *visitor, Stmt *s) {
  ConditionSearch *search = visitor->env;
  if (s->kind == STMT_IF && search->hoisting->conditions & OF_STATEMENTS)
    offer(search, s->as.branch.condition);
  return !search->found;
}

static bool offer_expression(Visitor *visitor, Expr *e) {
  ConditionSearch *search = visitor->env;
  bool is_choice = e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_SELECT;
  if (is_choice && search->hoisting->conditions & OF_EXPRESSIONS) offer(search, e->args[0]);
  return !search->found && e->op != EXPR_LAMBDA; // whose parameters nothing defines outside
}

static Expr *condition_that_leaves(const ExpressionHoisting *hoisting, Stmt *loop) {
  ConditionSearch search = {.hoisting = hoisting, .defined = map_new(&hoisting->context->arena)};
  bool stays = loop->as.loop.thread && !(hoisting->conditions & OF_THREADS);
  if (stays) return NULL;
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = note_definition, .enter_expr = note_let},
             loop);
  visit_stmt(
      &(Visitor){.env = &search, .enter_stmt = offer_statement, .enter_expr = offer_expression},
      loop->as.loop.body);
  return search.found;
}

// ---- Loops

typedef struct KnownCondition {
  Expr *condition, *value;
  Analyzer *analyzer; // assumes that the condition has the value
} KnownCondition;

// The condition, and others that follow from it.
static Expr *replace_condition(Rewriter *rewriter, Expr *e) {
  const KnownCondition *known = rewriter->env;
  Context *context = rewriter->context;
  if (e == known->condition) return known->value;
  bool is_condition = op_table[e->op].class == OP_COMPARE && e->type.lanes == 1 &&
                      dtype_is_int(e->args[0]->type) && !expr_reads_memory(e);
  if (!is_condition) return e;
  if (analyzer_prove(known->analyzer, e)) return expr_bool(context, true);
  bool is_false = analyzer_prove(known->analyzer, expr_unary(context, EXPR_NOT, e));
  return is_false ? expr_bool(context, false) : e;
}

static Stmt *replace_branch(Rewriter *rewriter, Stmt *s) {
  Context *context = rewriter->context;
  bool is_idle = false;
  if (s->kind == STMT_IF) {
    Stmt *then_body = s->as.branch.then_body, *else_body = s->as.branch.else_body;
    s = stmt_if(context, s->as.branch.condition, then_body, else_body);
    is_idle = s->kind == STMT_IF && expr_is_pure(s->as.branch.condition) &&
              stmt_is_nothing(then_body) && (!else_body || stmt_is_nothing(else_body));
  } else if (s->kind == STMT_FOR) {
    is_idle = stmt_is_nothing(s->as.loop.body) && expr_is_pure(s->as.loop.extent);
  }
  return is_idle ? stmt_nothing(context) : s;
}

// The loop where the condition has the value; NULL where it does nothing.
static Stmt *loop_where(ExpressionHoisting *hoisting, Stmt *loop, Expr *condition, bool value) {
  Context *context = hoisting->context;
  KnownCondition known = {condition, expr_bool(context, value), analyzer_new(context)};
  analyzer_assume(known.analyzer, value ? condition : expr_unary(context, EXPR_NOT, condition));
  Rewriter rewriter = {.context = context,
                       .env = &known,
                       .expr = replace_condition,
                       .stmt = replace_branch,
                       .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&rewriter, loop->as.loop.body);
  return stmt_is_nothing(body) ? NULL : lower_with_body(context, loop, body);
}

static Stmt *hoist_conditions(ExpressionHoisting *hoisting, Stmt *loop) {
  Context *context = hoisting->context;
  Expr *condition = hoisting->copied < MOST_COPIED ? condition_that_leaves(hoisting, loop) : NULL;
  if (!condition) return loop;
  hoisting->copied += lower_size(loop, MOST_COPIED);
  Stmt *then_loop = loop_where(hoisting, loop, condition, true);
  Stmt *else_loop = loop_where(hoisting, loop, condition, false);
  Stmt *then_body = then_loop ? hoist_conditions(hoisting, then_loop) : stmt_nothing(context);
  Stmt *else_body = NULL;
  if (else_loop) else_body = hoist_conditions(hoisting, stmt_renew(context, else_loop));
  return stmt_if(context, condition, then_body, else_body);
}

// A loop whose body begins with a let: the value leaves it where the loop does not change it.
static Stmt *hoist_from_loop(ExpressionHoisting *hoisting, Stmt *loop) {
  const Stmt *let = loop->as.loop.body;
  bool leaves = hoisting->lets & LETS && let->kind == STMT_LET &&
                !expr_uses(let->as.let.value, loop->as.loop.var) &&
                lower_may_move(let->as.let.value);
  if (!leaves) return hoist_conditions(hoisting, loop);
  Stmt *inner = lower_with_body(hoisting->context, loop, let->as.let.body);
  return lower_with_body(hoisting->context, let, hoist_from_loop(hoisting, inner));
}

static Stmt *hoist(Rewriter *rewriter, Stmt *s) {
  return s->kind == STMT_FOR ? hoist_from_loop(rewriter->env, s) : s;
}

PrimFunc *lower_hoist_expressions(LowerState *state, PrimFunc *func) {
  ExpressionHoisting hoisting = {.context = state->context,
                                 .conditions =
                                     OF_STATEMENTS | OF_EXPRESSIONS | OF_CONJUNCTS | OF_THREADS,
                                 .lets = LETS,
                                 .threads = map_new(&state->context->arena)};
  if (!lower_take_number(state, "hoisted_conditionals", &hoisting.conditions) ||
      !lower_take_number(state, "hoisted_let_bindings", &hoisting.lets))
    return NULL;
  visit_stmt(&(Visitor){.env = &hoisting, .enter_stmt = find_thread}, func->body);
  return lower_rewrite(state, func,
                       &(Rewriter){.env = &hoisting, .stmt = hoist, .buffer = lower_keep_buffer});
}
