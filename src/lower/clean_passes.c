// SPDX-License-Identifier: Apache-2.0
// Passes that leave out statements without effect, and one that renames variables. The names of
// TVM's passes: RemoveNoOp, RemoveAssume, RemoveUndef and ConvertSSA.
//
//   remove_no_ops       for i in range(n): T.evaluate(0)   →  (nothing)
//   remove_assumptions  T.evaluate(T.assume(n > 0))        →  (nothing)
//   remove_undefined    A[i] = T.undef()                   →  (nothing)
//   rename_repeated     two loops over the same variable   →  each over its own one
#include "lower/pass.h"

// ---- Statements without effect

static bool is_idle_branch(const Stmt *s) {
  return expr_is_pure(s->as.branch.condition) && stmt_is_nothing(s->as.branch.then_body) &&
         (!s->as.branch.else_body || stmt_is_nothing(s->as.branch.else_body));
}

// A condition without effect decides nothing where a branch is empty, or where it is constant.
static Stmt *shorter_branch(Context *context, Stmt *s) {
  Expr *condition = s->as.branch.condition;
  Stmt *then_body = s->as.branch.then_body, *else_body = s->as.branch.else_body;
  if (is_idle_branch(s)) return stmt_nothing(context);
  if (condition->op == EXPR_INT) return stmt_if(context, condition, then_body, else_body);
  if (else_body && stmt_is_nothing(else_body)) return stmt_if(context, condition, then_body, NULL);
  if (else_body && stmt_is_nothing(then_body))
    return stmt_if(context, expr_unary(context, EXPR_NOT, condition), else_body, NULL);
  return s;
}

static bool is_idle_loop(const Stmt *s) {
  return stmt_is_nothing(s->as.loop.body) && expr_is_pure(s->as.loop.min) &&
         expr_is_pure(s->as.loop.extent);
}

// The extent is not positive, by what is known of loops, lets and conditions around.
static bool never_runs(Context *context, Analyzer *analyzer, const Stmt *s) {
  Expr *extent = s->as.loop.extent;
  if (!expr_is_pure(s->as.loop.min) || !expr_is_pure(extent) || expr_reads_memory(extent))
    return false;
  Expr *zero = expr_int(context, extent->type, 0);
  return analyzer_prove(analyzer, expr_binary(context, EXPR_LE, extent, zero));
}

static bool is_idle_block(const Block *block) {
  return !block_is_root(block) && !block->init && stmt_is_nothing(block->body);
}

static Stmt *idle_or_same(Rewriter *rewriter, Stmt *s, bool is_idle) {
  return is_idle ? stmt_nothing(rewriter->context) : s;
}

// The value is that of the stored element, by what is known of loops, lets and conditions around.
static bool stores_itself(Analyzer *analyzer, const Stmt *s) {
  const Expr *load = s->as.store.value;
  if (store_is_idle(s)) return true;
  if (load->op != EXPR_LOAD || load->as.buffer != s->as.store.buffer) return false;
  for (int i = 0; i < load->count; i++)
    if (!expr_is_pure(load->args[i]) || expr_reads_memory(load->args[i]) ||
        !dtype_is_int(load->args[i]->type) ||
        !analyzer_prove_equal(analyzer, load->args[i], s->as.store.indices[i]))
      return false;
  return true;
}

static Stmt *without_no_op(Rewriter *rewriter, Stmt *s) {
  switch (s->kind) {
  case STMT_FOR: return idle_or_same(rewriter, s, is_idle_loop(s));
  case STMT_IF: return shorter_branch(rewriter->context, s);
  case STMT_EVALUATE: return idle_or_same(rewriter, s, expr_is_pure(s->as.evaluate));
  case STMT_STORE: return idle_or_same(rewriter, s, stores_itself(rewriter->env, s));
  case STMT_BLOCK: return idle_or_same(rewriter, s, is_idle_block(s->as.block));
  case STMT_LET: {
    bool is_used = stmt_uses(s->as.let.body, s->as.let.var);
    return is_used || !expr_is_pure(s->as.let.value) ? s : s->as.let.body;
  }
  case STMT_ALLOCATE:
    return stmt_uses(s->as.allocate.body, s->as.allocate.var) ? s : s->as.allocate.body;
  case STMT_ALLOCATE_CONST:
    return stmt_uses(s->as.allocate_const.body, s->as.allocate_const.var)
               ? s
               : s->as.allocate_const.body;
  case STMT_DECL_BUFFER:
    return stmt_uses(s->as.declare.body, s->as.declare.buffer->data) ? s : s->as.declare.body;
  case STMT_ATTR: return idle_or_same(rewriter, s, stmt_is_nothing(lower_body(s)));
  case STMT_SEQ: return stmt_seq(rewriter->context, s->as.seq.items, s->as.seq.count);
  case STMT_WHILE:
  case STMT_ASSERT: break;
  }
  return s;
}

// Adds what is known inside of the statement while its parts are visited.
static Stmt *enter_with_facts(Rewriter *rewriter, Stmt *s) {
  Analyzer *analyzer = rewriter->env;
  if (s->kind == STMT_IF) {
    Expr *condition = s->as.branch.condition;
    Expr *opposite = expr_unary(rewriter->context, EXPR_NOT, condition);
    Stmt *next = stmt_copy(rewriter->context, s), **then_body = &next->as.branch.then_body,
         **else_body = &next->as.branch.else_body;
    *then_body = lower_rewrite_under(rewriter, analyzer, condition, *then_body);
    *else_body = lower_rewrite_under(rewriter, analyzer, opposite, *else_body);
    return without_no_op(rewriter, next);
  }
  if (s->kind != STMT_FOR && s->kind != STMT_LET) return NULL;
  if (s->kind == STMT_FOR && never_runs(rewriter->context, analyzer, s))
    return loop_left_out(rewriter->context, s);
  int mark = analyzer_mark(analyzer);
  if (s->kind == STMT_FOR)
    analyzer_bind(analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  else if (!expr_reads_memory(s->as.let.value))
    analyzer_bind_value(analyzer, s->as.let.var, s->as.let.value);
  Stmt *next = without_no_op(rewriter, rewrite_stmt_children(rewriter, s));
  analyzer_reset(analyzer, mark);
  return next;
}

static bool count_block(Visitor *visitor, Stmt *s) {
  *(int *)visitor->env += s->kind == STMT_BLOCK;
  return true;
}

// A function without other blocks needs no root block, unless it holds something.
static PrimFunc *without_idle_root(Context *context, PrimFunc *func) {
  const Block *root = func->body->kind == STMT_BLOCK ? func->body->as.block : NULL;
  int blocks = 0;
  visit_stmt(&(Visitor){.env = &blocks, .enter_stmt = count_block}, func->body);
  bool is_idle = root && blocks == 1 && block_is_root(root) && !root->alloc_count &&
                 !root->match_count && !root->annotations.count && expr_is_true(root->predicate);
  return is_idle ? prim_func_with_body(context, func, root->body) : func;
}

// The work is bounded without a limit of simplification steps.
PrimFunc *lower_remove_no_ops(LowerState *state, PrimFunc *func) {
  int64_t steps;
  if (!lower_expect_flag(state, "use_dataflow_analysis", false) ||
      !lower_take_number(state, "max_simplification_steps", &steps))
    return NULL;
  func = lower_rewrite(state, func,
                       &(Rewriter){.env = analyzer_new(state->context),
                                   .enter_stmt = enter_with_facts,
                                   .stmt = without_no_op,
                                   .buffer = lower_keep_buffer});
  return func ? without_idle_root(state->context, func) : NULL;
}

// ---- Hints

static Stmt *without_assumption(Rewriter *rewriter, Stmt *s) {
  return idle_or_same(rewriter, s, stmt_is_assumption(s));
}

PrimFunc *lower_remove_assumptions(LowerState *state, PrimFunc *func) {
  func = lower_rewrite(state, func,
                       &(Rewriter){.stmt = without_assumption, .buffer = lower_keep_buffer});
  return func ? lower_remove_no_ops(state, func) : NULL;
}

static bool find_undefined(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  *found |= expr_is_undefined(e);
  return true;
}

bool lower_is_undefined(Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = find_undefined}, e);
  return found;
}

static bool find_undefined_index(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  for (int i = 0; e->op == EXPR_LOAD && i < e->count; i++) *found |= lower_is_undefined(e->args[i]);
  return true;
}

static bool loads_undefined_place(Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = find_undefined_index}, e);
  return found;
}

// A name for an undefined value is replaced by the value.
static Stmt *without_undefined_name(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_LET || !lower_is_undefined(s->as.let.value)) return NULL;
  Stmt *body = lower_substitute(rewriter->context, s->as.let.body, s->as.let.var, s->as.let.value);
  return rewrite_stmt(rewriter, body);
}

// A value that is computed from T.undef is undefined too. An index must be defined.
static Stmt *without_undefined(Rewriter *rewriter, Stmt *s) {
  if (s->kind == STMT_STORE) {
    for (int i = 0; i < s->as.store.rank; i++)
      if (lower_is_undefined(s->as.store.indices[i]))
        diag_error(rewriter->context, s->pos,
                   "an index of this store is T.undef, which is no place");
    if (loads_undefined_place(s->as.store.value))
      diag_error(rewriter->context, s->pos, "an index of a load is T.undef, which is no place");
    return idle_or_same(rewriter, s, lower_is_undefined(s->as.store.value));
  }
  bool found = false;
  Visitor visitor = {.env = &found, .enter_expr = find_undefined};
  visit_stmt_exprs(&visitor, s);
  if (found)
    diag_error(rewriter->context, s->pos,
               "T.undef decides here what the program does; it may only "
               "be stored");
  return s;
}

PrimFunc *lower_remove_undefined(LowerState *state, PrimFunc *func) {
  func = lower_rewrite(state, func,
                       &(Rewriter){.enter_stmt = without_undefined_name,
                                   .stmt = without_undefined,
                                   .buffer = lower_keep_buffer});
  return func ? lower_remove_no_ops(state, func) : NULL;
}

// ---- Definitions

static Expr *var_like(Context *context, const Expr *var) {
  const Var *v = var->as.var;
  return v->scope ? expr_data_var(context, v->name, v->pointee, v->scope)
                  : expr_var(context, v->name, var->type);
}

// A definition of a variable that is defined before becomes one of a new variable.
static Stmt *rename_one(Rewriter *rewriter, Stmt *s) {
  Map *seen = rewriter->env;
  Expr **place = stmt_defined_var(s);
  if (!place) return NULL;
  Expr *var = *place;
  if (!map_contains(seen, var)) {
    map_put(seen, var, var);
    return NULL;
  }
  Expr *fresh = var_like(rewriter->context, var);
  Stmt *next = lower_with_body(rewriter->context, s,
                               lower_substitute(rewriter->context, lower_body(s), var, fresh));
  *stmt_defined_var(next) = fresh;
  map_put(seen, fresh, fresh);
  return rewrite_stmt_children(rewriter, next);
}

Stmt *lower_with_own_variables(Context *context, const PrimFunc *func) {
  Map seen = map_new(&context->arena);
  for (int i = 0; i < func->param_count; i++) map_put(&seen, func->params[i], func->params[i]);
  Rewriter rewriter = {
      .context = context, .env = &seen, .enter_stmt = rename_one, .buffer = lower_keep_buffer};
  return rewrite_stmt(&rewriter, func->body);
}

PrimFunc *lower_rename_repeated(LowerState *state, PrimFunc *func) {
  Stmt *body = lower_with_own_variables(state->context, func);
  return body == func->body ? func : prim_func_with_body(state->context, func, body);
}
