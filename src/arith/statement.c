// SPDX-License-Identifier: Apache-2.0
// Simplifies statements under the facts of the statements around them.
//   for io in range(7):                        for io in range(7):
//     for ii in range(16):                       for ii in range(16):
//       for k in range(1):               =>        if io*16 + ii < 100:
//         if io*16 + ii < 100:                       B[io*16 + ii] = A[io]
//           if 0 <= io: B[io*16 + ii + k] = A[(io*16 + ii)//16]
// A condition that reads memory is never assumed, because the body may write to that memory.
#include "arith/internal.h"
#include "ir/intrinsic.h"

typedef struct Pass {
  Context *context;
  Analyzer *analyzer;
  bool and_of_ors;
} Pass;

static Stmt *pass_stmt(Pass *pass, Stmt *s);

static Expr *pass_expr(Pass *pass, Expr *e) {
  if (!e) return NULL;
  Expr *r = analyzer_simplify(pass->analyzer, e);
  return pass->and_of_ors ? analyzer_and_of_ors(pass->analyzer, r) : r;
}

// Returns `items` itself when no item changes.
static Expr **pass_exprs(Pass *pass, Expr **items, int count) {
  Expr **result = items;
  for (int i = 0; i < count; i++) {
    Expr *e = analyzer_simplify(pass->analyzer, items[i]);
    if (e == items[i]) continue;
    if (result == items)
      result = arena_copy(&pass->context->arena, items, sizeof *items * (size_t)count);
    result[i] = e;
  }
  return result;
}

static Stmt *changed(Pass *pass, Stmt *s, const Stmt *next) {
  return memcmp(s, next, sizeof *s) ? stmt_copy(pass->context, next) : s;
}

static void assume_stable(Pass *pass, Expr *condition) {
  if (condition->op == EXPR_LIKELY) condition = condition->args[0];
  if (condition->op == EXPR_AND) {
    assume_stable(pass, condition->args[0]);
    assume_stable(pass, condition->args[1]);
  } else if (!expr_reads_memory(condition)) {
    analyzer_assume(pass->analyzer, condition);
  }
}

static Stmt *pass_under(Pass *pass, Stmt *s, Expr *condition) {
  int mark = analyzer_mark(pass->analyzer);
  assume_stable(pass, condition);
  Stmt *r = pass_stmt(pass, s);
  analyzer_reset(pass->analyzer, mark);
  return r;
}

static Expr *opposite(Pass *pass, Expr *condition) {
  return expr_unary(pass->context, EXPR_NOT, condition);
}

// ---- Loops

static Stmt *put_for_var(Pass *pass, Stmt *body, Expr *var, Expr *value) {
  Map vars = map_new(&pass->context->arena);
  map_put(&vars, var, expr_cast(pass->context, var->type, value));
  return substitute_stmt(pass->context, body, &vars, NULL);
}

// True when no pass, runtime or jump depends on the loop itself, so that it may be removed.
static bool is_plain_loop(const Stmt *s) {
  return s->as.loop.kind != LOOP_THREAD && s->as.loop.annotations.count == 0 &&
         !stmt_leaves_iteration(s->as.loop.body);
}

static Stmt *pass_loop(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.loop.min = pass_expr(pass, s->as.loop.min);
  next.as.loop.extent = pass_expr(pass, s->as.loop.extent);
  int64_t extent;
  bool constant = expr_as_int(next.as.loop.extent, &extent);
  if (constant && extent <= 0) return loop_left_out(pass->context, changed(pass, s, &next));
  if (constant && extent == 1 && is_plain_loop(s))
    return pass_stmt(pass, put_for_var(pass, s->as.loop.body, s->as.loop.var, next.as.loop.min));
  bool keep = s->as.loop.kind == LOOP_THREAD;
  (keep ? analyzer_bind_kept : analyzer_bind)(pass->analyzer, s->as.loop.var, next.as.loop.min,
                                              next.as.loop.extent);
  next.as.loop.body = pass_stmt(pass, s->as.loop.body);
  if (stmt_is_nothing(next.as.loop.body)) return next.as.loop.body;
  return changed(pass, s, &next);
}

// ---- Conditions

static bool merges(const Stmt *outer, const Stmt *inner) {
  return !outer->as.branch.else_body && inner->kind == STMT_IF && !inner->as.branch.else_body &&
         !expr_reads_memory(inner->as.branch.condition);
}

static Stmt *pass_branch(Pass *pass, Stmt *s) {
  Expr *condition = pass_expr(pass, s->as.branch.condition);
  Stmt *otherwise = s->as.branch.else_body;
  int64_t constant;
  if (expr_as_int(condition, &constant)) {
    if (constant) return pass_stmt(pass, s->as.branch.then_body);
    return otherwise ? pass_stmt(pass, otherwise) : stmt_nothing(pass->context);
  }
  Stmt next = *s;
  next.as.branch.condition = condition;
  next.as.branch.then_body = pass_under(pass, s->as.branch.then_body, condition);
  if (otherwise) otherwise = pass_under(pass, otherwise, opposite(pass, condition));
  if (otherwise && stmt_is_nothing(otherwise)) otherwise = NULL;
  next.as.branch.else_body = otherwise;
  Stmt *inner = next.as.branch.then_body;
  if (stmt_is_nothing(inner) && expr_is_pure(condition)) {
    if (!otherwise) return inner;
    next.as.branch.condition = opposite(pass, condition);
    next.as.branch.then_body = otherwise;
    next.as.branch.else_body = NULL;
  } else if (merges(&next, inner)) {
    next.as.branch.condition = expr_and(pass->context, condition, inner->as.branch.condition);
    next.as.branch.then_body = inner->as.branch.then_body;
  }
  return changed(pass, s, &next);
}

static Stmt *pass_check(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.check.condition = pass_expr(pass, s->as.check.condition);
  Stmt *body = s->as.check.body;
  if (body) next.as.check.body = pass_under(pass, body, next.as.check.condition);
  if (!expr_is_true(next.as.check.condition)) return changed(pass, s, &next);
  return body ? next.as.check.body : stmt_nothing(pass->context);
}

static Stmt *pass_repeat(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.repeat.condition = pass_expr(pass, s->as.repeat.condition);
  if (expr_is_int(next.as.repeat.condition, 0)) return stmt_nothing(pass->context);
  next.as.repeat.body = pass_stmt(pass, s->as.repeat.body);
  return changed(pass, s, &next);
}

// ---- Lets

static bool is_small(Expr *e) {
  if (expr_reads_memory(e)) return false;
  if (e->count == 0) return true;
  return e->count == 2 && dtype_is_index(e->type) && e->args[0]->count == 0 &&
         e->args[1]->op == EXPR_INT;
}

static Stmt *pass_let(Pass *pass, Stmt *s) {
  Stmt next = *s;
  Expr *value = pass_expr(pass, s->as.let.value);
  next.as.let.value = value;
  if (is_small(value))
    return pass_stmt(pass, put_for_var(pass, s->as.let.body, s->as.let.var, value));
  analyzer_bind_named(pass->analyzer, s->as.let.var, value);
  next.as.let.body = pass_stmt(pass, s->as.let.body);
  if (expr_is_pure(value) && !stmt_uses(next.as.let.body, s->as.let.var)) return next.as.let.body;
  return changed(pass, s, &next);
}

// ---- Blocks

static Region *pass_regions(Pass *pass, Region *items, int count) {
  Region *result = items;
  for (int i = 0; i < count; i++) {
    int rank = items[i].buffer->rank;
    Region r = {items[i].buffer, pass_exprs(pass, items[i].min, rank),
                pass_exprs(pass, items[i].extent, rank)};
    if (r.min == items[i].min && r.extent == items[i].extent) continue;
    if (result == items)
      result = arena_copy(&pass->context->arena, items, sizeof *items * (size_t)count);
    result[i] = r;
  }
  return result;
}

static BlockVar *pass_block_vars(Pass *pass, const Block *block) {
  size_t size = sizeof(BlockVar) * (size_t)block->var_count;
  BlockVar *vars = arena_copy(&pass->context->arena, block->vars, size);
  for (int i = 0; i < block->var_count; i++) {
    vars[i].min = pass_expr(pass, vars[i].min);
    vars[i].extent = pass_expr(pass, vars[i].extent);
    vars[i].binding = pass_expr(pass, vars[i].binding);
  }
  return size == 0 || memcmp(vars, block->vars, size) == 0 ? block->vars : vars;
}

static Stmt *pass_block(Pass *pass, Stmt *s) {
  Block *block = s->as.block, next = *block;
  next.predicate = pass_expr(pass, block->predicate);
  if (expr_is_int(next.predicate, 0)) return stmt_nothing(pass->context);
  next.vars = pass_block_vars(pass, block);
  for (int i = 0; i < next.var_count; i++)
    analyzer_bind_kept(pass->analyzer, next.vars[i].var, next.vars[i].min, next.vars[i].extent);
  next.reads = pass_regions(pass, block->reads, block->read_count);
  next.writes = pass_regions(pass, block->writes, block->write_count);
  next.init = block->init ? pass_stmt(pass, block->init) : NULL;
  if (next.init && stmt_is_nothing(next.init)) next.init = NULL;
  next.body = pass_stmt(pass, block->body);
  if (memcmp(&next, block, sizeof next) == 0) return s;
  Stmt *r = stmt_copy(pass->context, s);
  r->as.block = block_copy(pass->context, &next);
  return r;
}

// ---- The rest

static Stmt *pass_store(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.store.indices = pass_exprs(pass, s->as.store.indices, s->as.store.rank);
  next.as.store.value = pass_expr(pass, s->as.store.value);
  if (store_is_idle(&next)) return stmt_nothing(pass->context);
  return changed(pass, s, &next);
}

static Stmt *pass_evaluate(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.evaluate = pass_expr(pass, s->as.evaluate);
  return changed(pass, s, &next);
}

// An assertion's condition holds in the statements after it.
static Stmt *pass_seq(Pass *pass, Stmt *s) {
  int count = s->as.seq.count, kept = 0;
  Stmt **items = arena_array(&pass->context->arena, Stmt *, count);
  bool same = true;
  for (int i = 0; i < count; i++) {
    Stmt *item = pass_stmt(pass, s->as.seq.items[i]);
    same &= item == s->as.seq.items[i] && !stmt_is_nothing(item);
    if (item->kind == STMT_ASSERT && !item->as.check.body)
      assume_stable(pass, item->as.check.condition);
    if (!stmt_is_nothing(item)) items[kept++] = item;
  }
  if (same) return s;
  Stmt *r = stmt_seq(pass->context, items, kept);
  if (r->kind == STMT_SEQ) r->pos = s->pos;
  return r;
}

static Stmt *pass_allocate(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.allocate.extents = pass_exprs(pass, s->as.allocate.extents, s->as.allocate.rank);
  next.as.allocate.body = pass_stmt(pass, s->as.allocate.body);
  return changed(pass, s, &next);
}

static Stmt *pass_allocate_const(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.allocate_const.body = pass_stmt(pass, s->as.allocate_const.body);
  return changed(pass, s, &next);
}

static Stmt *pass_declare(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.declare.body = pass_stmt(pass, s->as.declare.body);
  return changed(pass, s, &next);
}

static Stmt *pass_attr(Pass *pass, Stmt *s) {
  Stmt next = *s;
  next.as.attr.value = pass_expr(pass, s->as.attr.value);
  next.as.attr.body = pass_stmt(pass, s->as.attr.body);
  return changed(pass, s, &next);
}

static Stmt *(*const passes[])(Pass *, Stmt *) = {
    [STMT_FOR] = pass_loop,
    [STMT_STORE] = pass_store,
    [STMT_LET] = pass_let,
    [STMT_IF] = pass_branch,
    [STMT_WHILE] = pass_repeat,
    [STMT_ASSERT] = pass_check,
    [STMT_EVALUATE] = pass_evaluate,
    [STMT_SEQ] = pass_seq,
    [STMT_BLOCK] = pass_block,
    [STMT_ALLOCATE] = pass_allocate,
    [STMT_ALLOCATE_CONST] = pass_allocate_const,
    [STMT_DECL_BUFFER] = pass_declare,
    [STMT_ATTR] = pass_attr,
};

static Stmt *pass_stmt(Pass *pass, Stmt *s) {
  int mark = analyzer_mark(pass->analyzer);
  Stmt *r = passes[s->kind](pass, s);
  analyzer_reset(pass->analyzer, mark);
  return r;
}

static Stmt *simplify_for(Context *context, const PrimFunc *func, Stmt *s, bool and_of_ors) {
  ArenaMark mark = arena_mark(&context->scratch);
  Pass pass = {context, analyzer_new_in(context, &context->scratch), and_of_ors};
  if (func) {
    analyzer_assume_sizes(pass.analyzer, func);
    analyzer_keep_names(pass.analyzer);
  }
  Stmt *r = pass_stmt(&pass, s);
  arena_reset(&context->scratch, mark);
  return r;
}

Stmt *arith_simplify_stmt(Context *context, Stmt *s) {
  return simplify_for(context, NULL, s, false);
}

Stmt *arith_simplify_body(Context *context, const PrimFunc *func, bool and_of_ors) {
  return simplify_for(context, func, func->body, and_of_ors);
}
