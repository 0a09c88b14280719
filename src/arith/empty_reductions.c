// SPDX-License-Identifier: Apache-2.0
// States the init of reductions over no elements. The init of a block runs in the first iteration
// of its reduction, so a loop without iterations would leave the result as it was. Before each loop
// of a reduction that may have no iterations, a nest of its own stores the init in that case:
//
//   for i in range(30):                     for i in range(30):
//     for k in range(n):                      if n <= 0:
//       with T.block("sum"):           →        with T.block("sum_init"):
//         vi, vk = T.axis.remap("SR", [i, k])     vi = T.axis.spatial(30, i)
//         with T.init(): B[vi] = 0                B[vi] = 0
//         B[vi] = B[vi] + A[vi, vk]           for k in range(n):  (as before)
//
// The same is done where a condition of the block, such as T.where(k_0 * 4 + k_1 < n), leaves out
// all iterations of loops that have some. Where an outer loop belongs to the same reduction, the
// nest runs in its first iteration alone. A loop over threads is a loop as any other.
// Blocks inside of others, whose init is that of the outer one, and blocks with memory of their own
// stay as they are.
#include "arith/arith.h"

typedef struct EmptyNest {
  Context *context;
  const Expr *var;   // of the loop that the nest is for
  Map loops;         // variables of that loop and of those below it → the loop
  bool by_predicate; // for loops with iterations, all of which the block's predicate leaves out
} EmptyNest;

bool block_binds(const Block *block, const Expr *var, bool reduction) {
  for (int i = 0; i < block->var_count; i++)
    if ((block->vars[i].kind == ITER_REDUCTION) == reduction &&
        expr_uses(block->vars[i].binding, var))
      return true;
  return false;
}

static bool only_reduces(const Block *block, const Expr *var) {
  return block_binds(block, var, true) && !block_binds(block, var, false);
}

typedef struct ReductionLoops { // those that only the reduction of the block uses
  Array(VarRange) ranges;
  Map starts; // variable → where it starts
} ReductionLoops;

static ReductionLoops reduction_loops(const EmptyNest *nest, const Block *block) {
  Arena *arena = &nest->context->arena;
  ReductionLoops found = {.starts = map_new(arena)};
  for (int i = 0; i < nest->loops.count; i++) {
    const Expr *var = (const Expr *)(uintptr_t)nest->loops.entries[i].key;
    const Stmt *loop = nest->loops.entries[i].value;
    if (!only_reduces(block, var)) continue;
    map_put(&found.starts, var, loop->as.loop.min);
    array_push(arena, &found.ranges, loop_range(loop));
  }
  return found;
}

static bool uses_any(const Expr *e, const ReductionLoops *loops) {
  for (int i = 0; i < loops->ranges.count; i++)
    if (expr_uses(e, loops->ranges.items[i].var)) return true;
  return false;
}

// 0 divided by a size is 0, or the loop that was fused by it has no iterations.
static Expr *quotient_of_zero(Rewriter *rewriter, Expr *e) {
  bool divides = e->op == EXPR_FLOOR_DIV || e->op == EXPR_FLOOR_MOD;
  return divides && expr_is_int(e->args[0], 0) ? expr_int(rewriter->context, e->type, 0) : e;
}

// The expression in the first iteration of the loops.
static Expr *at_starts(Context *context, Expr *e, const Map *starts) {
  Rewriter rewriter = {.context = context, .expr = quotient_of_zero};
  return rewrite_expr(&rewriter, substitute_expr(context, e, starts));
}

typedef struct VarUse {
  const Block *block;
  bool spatial; // a loop of the block's spatial variables is used
} VarUse;

static bool find_spatial(Visitor *visitor, Expr *e) {
  VarUse *use = visitor->env;
  use->spatial |= e->op == EXPR_VAR && block_binds(use->block, e, false);
  return !use->spatial;
}

// True when one of the loops is proved to have no iterations.
static bool some_loop_is_empty(Analyzer *analyzer, Context *context, const VarRange *loops,
                               int count) {
  for (int i = 0; i < count; i++) {
    Expr *zero = expr_int(context, loops[i].extent->type, 0);
    if (loops[i].extent->op != EXPR_INT &&
        analyzer_prove(analyzer, expr_binary(context, EXPR_LE, loops[i].extent, zero)))
      return true;
  }
  return false;
}

bool condition_needs_first(Context *context, const Block *block, Expr *condition,
                           const VarRange *loops, int count) {
  Analyzer *analyzer = analyzer_new(context);
  Map starts = map_new(&context->arena);
  VarUse use = {block, false};
  visit_expr(&(Visitor){.env = &use, .enter_expr = find_spatial}, condition);
  if (use.spatial || expr_reads_memory(condition)) return false;
  bool used = false;
  for (int i = 0; i < count; i++) {
    used |= expr_uses(condition, loops[i].var);
    analyzer_bind(analyzer, loops[i].var, loops[i].min, loops[i].extent);
    map_put(&starts, loops[i].var, loops[i].min);
  }
  Expr *first = at_starts(context, condition, &starts);
  if (!used || analyzer_prove(analyzer, first)) return false;
  analyzer_assume(analyzer, expr_unary(context, EXPR_NOT, first));
  return analyzer_prove(analyzer, expr_unary(context, EXPR_NOT, condition)) ||
         some_loop_is_empty(analyzer, context, loops, count);
}

// When the conditions leave out all iterations of the reduction; NULL where this is not known to
// happen.
static Expr *all_left_out(Context *context, const Block *block, const ExprArray *conditions,
                          const ReductionLoops *loops) {
  const VarRange *ranges = loops->ranges.items;
  Expr *found = NULL;
  for (int i = 0; i < conditions->count; i++) {
    Expr *one = conditions->items[i];
    if (!condition_needs_first(context, block, one, ranges, loops->ranges.count)) continue;
    one = expr_unary(context, EXPR_NOT, at_starts(context, one, &loops->starts));
    found = found ? expr_binary(context, EXPR_OR, found, one) : one;
  }
  return found;
}

// Is the block in the first iteration of the loops of the reduction that are outside of the nest?
static void push_first_outside(Context *context, const Block *block, const Map *starts,
                               ExprArray *out) {
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind != ITER_REDUCTION) continue;
    Expr *at = expr_cast(context, v->var->type, at_starts(context, v->binding, starts));
    if (at == v->min || (at->op == EXPR_INT && expr_is_int(v->min, at->as.i))) continue;
    array_push(&context->arena, out, expr_binary(context, EXPR_EQ, at, v->min));
  }
}

// Holds where the block's predicate holds for its spatial variables, and the reduction has not
// begun outside of the nest. NULL where no init is left out.
static Expr *init_predicate(const EmptyNest *nest, const Block *block) {
  Context *context = nest->context;
  ReductionLoops loops = reduction_loops(nest, block);
  ExprArray all = {0}, kept = {0}, of_reduction = {0}, outside = {0};
  expr_conjuncts(context, block->predicate, &all);
  for (int i = 0; i < all.count; i++) {
    ExprArray *list = uses_any(all.items[i], &loops) ? &of_reduction : &kept;
    array_push(&context->arena, list, all.items[i]);
  }
  push_first_outside(context, block, &loops.starts, &outside);
  if (nest->by_predicate) {
    Expr *left_out = outside.count ? NULL : all_left_out(context, block, &of_reduction, &loops);
    if (!left_out) return NULL;
    array_push(&context->arena, &kept, left_out);
  }
  for (int i = 0; i < outside.count; i++) array_push(&context->arena, &kept, outside.items[i]);
  return expr_conjunction(context, &kept);
}

static bool uses_reduction(const Block *block, Stmt *init) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == ITER_REDUCTION && stmt_uses(init, block->vars[i].var)) return true;
  return false;
}

// The init of the block as a block; NULL where it depends on the iterations of the reduction.
static Stmt *init_block(const EmptyNest *nest, const Stmt *s) {
  Context *context = nest->context;
  const Block *block = s->as.block;
  if (!block->init || block->alloc_count || !only_reduces(block, nest->var)) return NULL;
  if (nest->by_predicate && expr_is_true(block->predicate)) return NULL;
  if (uses_reduction(block, block->init)) return NULL;
  Expr *predicate = init_predicate(nest, block);
  if (!predicate) return NULL;
  Block *init = block_copy(context, block);
  init->name = str_format(context, "%s_init", block->name);
  init->predicate = predicate;
  init->body = block->init;
  init->init = NULL;
  init->var_count = init->read_count = init->write_count = 0;
  init->vars = arena_array(&context->arena, BlockVar, block->var_count);
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind != ITER_REDUCTION) init->vars[init->var_count++] = block->vars[i];
  Stmt *next = stmt_block(context, init);
  next->pos = s->pos;
  return uses_reduction(block, next) ? NULL : next;
}

static Stmt *inits_below(EmptyNest *nest, Stmt *s);

static Stmt *inits_in_loop(EmptyNest *nest, Stmt *s) {
  map_put(&nest->loops, s->as.loop.var, s);
  Stmt *body = inits_below(nest, s->as.loop.body);
  if (!body || !stmt_uses(body, s->as.loop.var)) return body;
  Stmt *loop = stmt_copy(nest->context, s);
  loop->as.loop.body = body;
  return loop;
}

static Stmt *inits_in_branch(EmptyNest *nest, Stmt *s) {
  Stmt *then_body = inits_below(nest, s->as.branch.then_body);
  Stmt *else_body = s->as.branch.else_body ? inits_below(nest, s->as.branch.else_body) : NULL;
  if (!then_body && !else_body) return NULL;
  if (!then_body) then_body = stmt_nothing(nest->context);
  return stmt_if(nest->context, s->as.branch.condition, then_body, else_body);
}

static Stmt *inits_in_seq(EmptyNest *nest, const Stmt *s) {
  PtrArray inits = {0};
  for (int i = 0; i < s->as.seq.count; i++) {
    Stmt *one = inits_below(nest, s->as.seq.items[i]);
    if (one) array_push(&nest->context->arena, &inits, one);
  }
  return inits.count ? stmt_seq(nest->context, (Stmt **)inits.items, inits.count) : NULL;
}

static Stmt *inits_below(EmptyNest *nest, Stmt *s) {
  if (s->kind == STMT_FOR) return inits_in_loop(nest, s);
  if (s->kind == STMT_IF) return inits_in_branch(nest, s);
  if (s->kind == STMT_SEQ) return inits_in_seq(nest, s);
  if (s->kind == STMT_ATTR) return inits_below(nest, s->as.attr.body);
  return s->kind == STMT_BLOCK ? init_block(nest, s) : NULL;
}

static bool may_be_empty(const Stmt *s) {
  const Expr *extent = s->as.loop.extent;
  return extent->op != EXPR_INT || extent->as.i <= 0;
}

// The nest of the inits, or NULL.
static Stmt *init_nest(Context *context, Stmt *loop, bool by_predicate) {
  EmptyNest nest = {context, loop->as.loop.var, map_new(&context->arena), by_predicate};
  Stmt *inits = inits_in_loop(&nest, loop);
  if (!inits || stmt_uses(inits, loop->as.loop.var)) return NULL;
  return blocks_find_regions(context, stmt_renew(context, inits));
}

Stmt *loop_empty_inits(Context *context, Stmt *loop) {
  Stmt *left_out = init_nest(context, loop, true);
  Stmt *inits = may_be_empty(loop) ? init_nest(context, loop, false) : NULL;
  if (!inits) return left_out;
  Expr *extent = loop->as.loop.extent, *empty = expr_bool(context, true);
  if (extent->op != EXPR_INT)
    empty = expr_binary(context, EXPR_LE, extent, expr_int(context, extent->type, 0));
  inits = stmt_if(context, empty, inits, NULL);
  return left_out ? stmt_seq(context, (Stmt *[]){left_out, inits}, 2) : inits;
}

Stmt *loop_left_out(Context *context, Stmt *loop) {
  Stmt *inits = loop_empty_inits(context, loop);
  return inits ? inits : stmt_nothing(context);
}

static Stmt *state_inits(Rewriter *rewriter, Stmt *s) {
  Stmt *inits = s->kind == STMT_FOR ? loop_empty_inits(rewriter->context, s) : NULL;
  if (!inits) return NULL;
  Stmt *loop = rewrite_stmt_children(rewriter, s);
  return stmt_seq(rewriter->context, (Stmt *[]){inits, loop}, 2);
}

static bool find_init(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  *found |= s->kind == STMT_BLOCK && s->as.block->init;
  return !*found;
}

static bool find_empty_reduction(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  if (s->kind == STMT_BLOCK) *found |= s->as.block->init && !expr_is_true(s->as.block->predicate);
  if (!*found && s->kind == STMT_FOR && may_be_empty(s))
    visit_stmt(&(Visitor){.env = found, .enter_stmt = find_init}, s->as.loop.body);
  return !*found;
}

Stmt *stmt_state_empty_inits(Context *context, Stmt *s) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_empty_reduction}, s);
  if (!found) return s;
  return rewrite_stmt(&(Rewriter){.context = context, .enter_stmt = state_inits}, s);
}
