// SPDX-License-Identifier: Apache-2.0
// Splits a reduction in two: one of its loops becomes an axis of partial results, which a second
// block reduces.
//   for i, k0, k1: C[i] += A[i, k0*4 + k1]
//   =>  for i, k0, k1: R[i, k1] += A[i, k0*4 + k1]        (k1 is spatial)
//       for i, k1: C[i] += R[i, k1]
#include "schedule/internal.h"

#include <math.h>

typedef struct ReductionFactor {
  Schedule *schedule;
  Path path; // to the block
  const Block *block;
  Stmt *loop;
  int axis; // index of the new axis in the partial results
  ReductionUpdate update;
  Buffer *target, *partial;
  ExprArray inner; // the reduction's other loops
} ReductionFactor;

Expr *reduction_neutral(Context *context, ExprOp op, DType type) {
  bool floats = dtype_is_float(type);
  int64_t top = type.bits >= 64 ? INT64_MAX : (INT64_C(1) << (type.bits - 1)) - 1;
  switch (op) {
  case EXPR_ADD:
  case EXPR_SUB: return expr_const(context, type, 0);
  case EXPR_MUL: return expr_const(context, type, 1);
  case EXPR_MAX:
    if (floats) return expr_float(context, type, -INFINITY);
    return type.code == TYPE_INT ? expr_int(context, type, -top - 1) : NULL;
  case EXPR_MIN:
    if (floats) return expr_float(context, type, INFINITY);
    return type.code == TYPE_INT ? expr_int(context, type, top) : NULL;
  default: return NULL;
  }
}

static bool uses_loop(const Block *block, IterKind kind, const Expr *var) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == kind && expr_uses(block->vars[i].binding, var)) return true;
  return false;
}

static bool check_factor(ReductionFactor *f, Stmt **loops, int count) {
  Schedule *schedule = f->schedule;
  const Block *block = f->block;
  Context *context = schedule->context;
  SourcePos pos = path_end(&f->path)->pos;
  if (!block->init || block->init->kind != STMT_STORE || block->write_count != 1 ||
      !reduction_update(block, &f->update) || f->update.condition)
    return schedule_refuse(schedule, pos, "block '%s' is not a reduction of one term with an init",
                           block->name);
  if (block_init_is_partial(block)) return refuse_partial_init(schedule, pos, block);
  if (refuse_late_init(schedule, pos, block)) return false;
  f->target = block->writes[0].buffer;
  if (!reduction_neutral(context, f->update.op, f->target->type))
    return schedule_refuse(schedule, pos, "the operation of block '%s' has no neutral element",
                           block->name);
  if (!uses_loop(block, ITER_REDUCTION, f->loop->as.loop.var) ||
      uses_loop(block, ITER_SPATIAL, f->loop->as.loop.var))
    return schedule_refuse(schedule, f->loop->pos,
                           "loop '%s' is not one of the reduction of block '%s'",
                           loop_name(f->loop), block->name);
  if (f->axis < 0) f->axis += f->target->rank + 1; // counted from the last
  if (f->axis < 0 || f->axis > f->target->rank)
    return schedule_refuse(schedule, pos, "the partial results of '%s' have axes 0 to %d",
                           f->target->name, f->target->rank);
  for (int i = 0; i < count; i++) {
    Expr *var = loops[i]->as.loop.var;
    if (loops[i] == f->loop || !uses_loop(block, ITER_REDUCTION, var)) continue;
    if (uses_loop(block, ITER_SPATIAL, var))
      return schedule_refuse(schedule, loops[i]->pos,
                             "loop '%s' is used by spatial and by reduction variables",
                             var->as.var->name);
    array_push(&context->arena, &f->inner, var);
  }
  Analyzer *analyzer = path_analyzer(schedule, &f->path, f->path.count - 1);
  const char *why = path_bindings_check(schedule, &f->path, analyzer, block);
  if (why)
    return schedule_refuse(schedule, pos,
                           "the loops of block '%s' are not proved to run over its domain: %s",
                           block->name, why);
  for (int d = 0; d < f->target->rank; d++)
    if (block->writes[0].min[d]->op != EXPR_VAR && block->writes[0].min[d]->op != EXPR_INT)
      return schedule_refuse(schedule, pos, "block '%s' does not write '%s' by its variables",
                             block->name, f->target->name);
  return true;
}

static void make_partial(ReductionFactor *f) {
  Context *context = f->schedule->context;
  int rank = f->target->rank + 1;
  Expr **shape = arena_array(&context->arena, Expr *, rank);
  for (int d = 0; d < rank; d++)
    shape[d] = d == f->axis ? f->loop->as.loop.extent : f->target->shape[d < f->axis ? d : d - 1];
  f->partial = buffer_new(context, arena_printf(&context->arena, "%s_rf", f->target->name),
                          f->target->type, shape, rank, "global");
}

static Expr **partial_indices(ReductionFactor *f, Expr *const *indices, Expr *at) {
  int rank = f->partial->rank;
  Expr **out = arena_array(&f->schedule->context->arena, Expr *, rank);
  for (int d = 0; d < rank; d++) out[d] = d == f->axis ? at : indices[d < f->axis ? d : d - 1];
  return out;
}

// The block that computes the partial results: the factored loop is a spatial variable, and each
// other loop of the reduction is a reduction variable.
static Stmt *partial_block(ReductionFactor *f, Str name) {
  Context *context = f->schedule->context;
  const Block *block = f->block;
  Block *copy = block_copy(context, block);
  copy->name = name;
  copy->vars = arena_array(&context->arena, BlockVar, block->var_count + f->inner.count + 1);
  copy->var_count = 0;
  Map loops = map_new(&context->arena), vars = map_new(&context->arena);
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind != ITER_REDUCTION) copy->vars[copy->var_count++] = block->vars[i];
  Expr *loop_var = f->loop->as.loop.var, *min = f->loop->as.loop.min;
  Expr *at = expr_var(context, arena_printf(&context->arena, "v%s", loop_var->as.var->name),
                      loop_var->type);
  Expr *zero = expr_int(context, at->type, 0);
  copy->vars[copy->var_count++] =
      (BlockVar){at, zero, f->loop->as.loop.extent, ITER_SPATIAL, expr_sub(context, loop_var, min)};
  map_put(&loops, loop_var, expr_add(context, at, min));
  for (int i = 0; i < f->inner.count; i++) {
    Expr *old = f->inner.items[i];
    Stmt *s = schedule_loop(f->schedule, old);
    Expr *v = expr_var(context, arena_printf(&context->arena, "v%s", old->as.var->name), old->type);
    copy->vars[copy->var_count++] =
        (BlockVar){v, s->as.loop.min, s->as.loop.extent, ITER_REDUCTION, old};
    map_put(&loops, old, v);
  }
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == ITER_REDUCTION)
      map_put(&vars, block->vars[i].var, substitute_expr(context, block->vars[i].binding, &loops));
  Expr **indices = partial_indices(f, block->body->as.store.indices, at);
  Expr *self = expr_load(context, f->partial, indices, f->partial->rank);
  Expr *term = substitute_expr(context, f->update.term, &vars);
  copy->init = stmt_store(context, f->partial, indices, f->partial->rank,
                          reduction_neutral(context, f->update.op, f->target->type));
  copy->body = stmt_store(context, f->partial, indices, f->partial->rank,
                          expr_binary(context, f->update.op, self, term));
  return stmt_with_block(context, path_end(&f->path), block_with_regions(context, copy));
}

// The condition under which a partial result is initialised: the predicate with the reduction's
// other loops at their start. NULL when a partial result might be updated without an init.
static Expr *started(ReductionFactor *f) {
  Context *context = f->schedule->context;
  Map first = map_new(&context->arena);
  for (int i = 0; i < f->inner.count; i++)
    map_put(&first, f->inner.items[i], schedule_loop(f->schedule, f->inner.items[i])->as.loop.min);
  Analyzer *analyzer = path_analyzer(f->schedule, &f->path, f->path.count - 1);
  Expr *condition = substitute_expr(context, f->block->predicate, &first);
  analyzer_assume(analyzer, f->block->predicate);
  return analyzer_prove(analyzer, condition) ? condition : NULL;
}

// The nest of C = op(C, R[…]) over the block's spatial domain and the new axis.
static Stmt *final_nest(ReductionFactor *f, Expr *condition) {
  Context *context = f->schedule->context;
  const Block *block = f->block;
  Block *copy = block_copy(context, block);
  Map vars = map_new(&context->arena);
  copy->vars = arena_array(&context->arena, BlockVar, block->var_count + 1);
  copy->var_count = 0;
  Expr **loops = arena_array(&context->arena, Expr *, block->var_count + 1);
  for (int i = 0; i < block->var_count; i++) {
    BlockVar v = block->vars[i];
    if (v.kind == ITER_REDUCTION) continue;
    Expr *var = expr_var(context, v.var->as.var->name, v.var->type);
    map_put(&vars, v.var, var);
    loops[copy->var_count] =
        expr_var(context, arena_printf(&context->arena, "ax%d", copy->var_count), var->type);
    v.binding = expr_add(context, v.min, loops[copy->var_count]);
    v.var = var;
    copy->vars[copy->var_count++] = v;
  }
  Expr *old = f->loop->as.loop.var;
  Expr *at = expr_var(context, arena_printf(&context->arena, "v%s", old->as.var->name), old->type);
  loops[copy->var_count] = expr_var(context, old->as.var->name, old->type);
  copy->vars[copy->var_count] =
      (BlockVar){at, expr_int(context, old->type, 0), f->loop->as.loop.extent, ITER_REDUCTION,
                 loops[copy->var_count]};
  Map slot = map_new(&context->arena);
  map_put(&slot, old, expr_add(context, loops[copy->var_count], f->loop->as.loop.min));
  copy->var_count++;
  copy->predicate = substitute_expr(context, condition, &slot);
  Stmt *body = substitute_stmt(context, block->body, &vars, NULL);
  Expr *target = expr_load(context, f->target, body->as.store.indices, body->as.store.rank);
  Expr *part = expr_load(context, f->partial, partial_indices(f, body->as.store.indices, at),
                         f->partial->rank);
  ExprOp op = f->update.op == EXPR_SUB ? EXPR_ADD : f->update.op;
  copy->body = stmt_store(context, f->target, body->as.store.indices, body->as.store.rank,
                          expr_binary(context, op, target, part));
  copy->init = substitute_stmt(context, block->init, &vars, NULL);
  Stmt *s = stmt_with_block(context, path_end(&f->path), block_with_regions(context, copy));
  return block_in_loops(context, loops, s);
}

// True when the condition uses loops of the old nest, so that the new nest cannot have it.
static bool names_old_loops(const ReductionFactor *f, const Expr *condition, Stmt **loops,
                            int count) {
  for (int i = 0; i < count; i++)
    if (loops[i] != f->loop && expr_uses(condition, loops[i]->as.loop.var)) return true;
  return false;
}

bool step_rfactor(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  ReductionFactor f = {.schedule = schedule, .axis = (int)call->args[1].as.i};
  Path loop;
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &loop)) return false;
  f.loop = path_end(&loop);
  StmtArray blocks = {0};
  blocks_below(&context->arena, f.loop, &blocks);
  if (blocks.count != 1 || stmt_has_loose_stores(f.loop))
    return schedule_refuse(schedule, f.loop->pos, "loop '%s' must have exactly one block below it",
                           loop_name(f.loop));
  path_to_block(schedule, blocks.items[0]->as.block->name, &f.path);
  f.block = blocks.items[0]->as.block;
  Stmt **loops;
  int count = path_loops(schedule, &f.path, f.path.count - 1, &loops);
  int top = f.path.count - 1 - count;
  if (top <= path_scope(&f.path, f.path.count - 1) || f.path.items[top] != loops[0])
    return schedule_refuse(
        schedule, f.loop->pos,
        "other statements share the loops of block '%s'; do this step before blocks are "
        "moved there",
        f.block->name);
  if (!check_factor(&f, loops, count)) return false;
  Expr *condition = started(&f);
  // A condition on spatial loops only restricts them to the domain, which the new nest runs over.
  if (condition && !expr_is_true(condition) && !expr_uses(condition, f.loop->as.loop.var) &&
      block_writes_whole_domain(schedule, f.block,
                                path_analyzer(schedule, &f.path, f.path.count - 1)))
    condition = expr_bool(context, true);
  if (!condition || names_old_loops(&f, condition, loops, count))
    return schedule_refuse(
        schedule, f.loop->pos,
        "the predicate of block '%s' is not proved to leave each partial result a start; "
        "split with factors that divide the extent",
        f.block->name);
  make_partial(&f);
  Str name = schedule_unique_name(schedule, arena_printf(&context->arena, "%s_rf", f.block->name));
  Stmt *kept = path_with_end(context, &f.path, top, partial_block(&f, name));
  path_place_beside(schedule, &f.path, top, kept, final_nest(&f, condition), true, f.partial);
  step_result(schedule, call, value_block(name));
  return true;
}
