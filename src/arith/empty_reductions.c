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
// Where an outer loop belongs to the same reduction, the nest runs in its first iteration alone.
// Loops over threads, of which devices always run some, and loops around these, whose threads have
// memory of their own, stay as they are. So do blocks inside of others, whose init is that of the
// outer one, and blocks with memory of their own.
#include "arith/arith.h"

typedef struct EmptyNest {
  Context *context;
  const Expr *var; // of the loop that may have no iterations
  Map starts;      // variables of that loop and of those below it → where they start
} EmptyNest;

static bool feeds(const Block *block, const Expr *var, bool reduction) {
  for (int i = 0; i < block->var_count; i++)
    if ((block->vars[i].kind == ITER_REDUCTION) == reduction &&
        expr_uses(block->vars[i].binding, var))
      return true;
  return false;
}

static bool only_reduces(const Block *block, const Expr *var) {
  return feeds(block, var, true) && !feeds(block, var, false);
}

// The loops that only the reduction of the block uses, at their starts.
static Map reduction_starts(const EmptyNest *nest, const Block *block) {
  Map starts = map_new(&nest->context->arena);
  for (int i = 0; i < nest->starts.count; i++) {
    const Expr *var = (const Expr *)(uintptr_t)nest->starts.entries[i].key;
    if (only_reduces(block, var)) map_put(&starts, var, nest->starts.entries[i].value);
  }
  return starts;
}

static bool uses_any(const Expr *e, const Map *vars) {
  for (int i = 0; i < vars->count; i++)
    if (expr_uses(e, (const Expr *)(uintptr_t)vars->entries[i].key)) return true;
  return false;
}

// Runs where the block's predicate holds for its spatial variables, at the start of those loops of
// the reduction that are outside of the nest.
static Expr *init_predicate(const EmptyNest *nest, const Block *block, const Map *starts) {
  Context *context = nest->context;
  ExprArray conjuncts = {0}, kept = {0};
  expr_conjuncts(context, block->predicate, &conjuncts);
  for (int i = 0; i < conjuncts.count; i++)
    if (!uses_any(conjuncts.items[i], starts))
      array_push(&context->arena, &kept, conjuncts.items[i]);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind != ITER_REDUCTION) continue;
    Expr *at = expr_cast(context, v->var->type, substitute_expr(context, v->binding, starts));
    if (at == v->min || (at->op == EXPR_INT && expr_is_int(v->min, at->as.i))) continue;
    array_push(&context->arena, &kept, expr_binary(context, EXPR_EQ, at, v->min));
  }
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
  if (uses_reduction(block, block->init)) return NULL;
  Map starts = reduction_starts(nest, block);
  Block *init = block_copy(context, block);
  init->name = str_format(context, "%s_init", block->name);
  init->predicate = init_predicate(nest, block, &starts);
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
  if (s->as.loop.kind == LOOP_THREAD) return NULL;
  map_put(&nest->starts, s->as.loop.var, s->as.loop.min);
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
  return s->as.loop.kind != LOOP_THREAD && (extent->op != EXPR_INT || extent->as.i <= 0);
}

Stmt *loop_empty_inits(Context *context, Stmt *loop) {
  if (!may_be_empty(loop)) return NULL;
  EmptyNest nest = {context, loop->as.loop.var, map_new(&context->arena)};
  Stmt *inits = inits_in_loop(&nest, loop);
  if (!inits || stmt_uses(inits, loop->as.loop.var)) return NULL;
  Expr *extent = loop->as.loop.extent;
  Expr *empty = extent->op == EXPR_INT
                    ? expr_bool(context, true)
                    : expr_binary(context, EXPR_LE, extent, expr_int(context, extent->type, 0));
  inits = blocks_find_regions(context, stmt_renew(context, inits));
  return stmt_if(context, empty, inits, NULL);
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
