// SPDX-License-Identifier: Apache-2.0
// Splits a reduction in two: one of its loops becomes an axis of partial results, which a second
// block reduces.
//   for i, k0, k1: C[i] += A[i, k0*4 + k1]
//   =>  for i, k0, k1: R[i, k1] += A[i, k0*4 + k1]        (k1 is spatial)
//       for i, k1: C[i] += R[i, k1]
// A reduction may have several results, each with an operation of its own, or be an argmax:
//   V[i], W[i] = (V[i], W[i]) if V[i] >= v else (v, w)
#include "schedule/reduced_results.h"

typedef struct ReductionFactor {
  Schedule *schedule;
  Path path; // to the block
  const Block *block;
  Stmt *loop;
  int axis; // index of the new axis in the partial results
  ReducedResults all;
  ExprArray inner; // the reduction's other loops
} ReductionFactor;

static bool uses_loop(const Block *block, IterKind kind, const Expr *var) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == kind && expr_uses(block->vars[i].binding, var)) return true;
  return false;
}

// The stores of all results, computed before the first store where the block does so.
static Stmt *stores_of(const ReductionFactor *f, Expr *const *values, bool partial,
                       Expr *const *indices) {
  Context *context = f->schedule->context;
  Stmt *stores[MOST_RESULTS];
  Expr *names[MOST_RESULTS];
  for (int i = 0; i < f->all.count; i++) {
    const ReducedBuffer *r = &f->all.results[i];
    Buffer *to = partial ? r->partial : r->target;
    names[i] =
        r->name ? expr_var(context,
                           partial ? arena_printf(&context->arena, "%s_rf", r->name->as.var->name)
                                   : r->name->as.var->name,
                           r->name->type)
                : values[i];
    stores[i] = stmt_store(context, to, indices, to->rank, names[i]);
  }
  Stmt *s = stmt_seq(context, stores, f->all.count);
  for (int i = f->all.count - 1; i >= 0; i--)
    if (f->all.results[i].name) s = stmt_let(context, names[i], values[i], s);
  return s;
}

// ---- Legality --------------------------------------------------------------------------------

// True when an argmax that keeps the first of equal ones meets the iterations in the old order.
static bool keeps_order(const ReductionFactor *f, Stmt **loops, int count) {
  if (!f->all.chooses || f->all.choice.among != EXPR_SELECT) return true;
  for (int i = 0; i < count && loops[i] != f->loop; i++)
    if (uses_loop(f->block, ITER_REDUCTION, loops[i]->as.loop.var) &&
        loop_const_extent(loops[i]) != 1)
      return false;
  return true;
}

static bool bounds_are_fixed(Schedule *schedule, Stmt **loops, int count) {
  for (int i = 0; i < count; i++)
    for (int k = i + 1; k < count; k++)
      if (expr_uses(loops[k]->as.loop.min, loops[i]->as.loop.var) ||
          expr_uses(loops[k]->as.loop.extent, loops[i]->as.loop.var))
        return schedule_refuse(schedule, loops[k]->pos,
                               "the bounds of loop '%s' depend on loop '%s'", loop_name(loops[k]),
                               loop_name(loops[i]));
  return true;
}

static bool check_factor(ReductionFactor *f, Stmt **loops, int count) {
  Schedule *schedule = f->schedule;
  const Block *block = f->block;
  Context *context = schedule->context;
  SourcePos pos = path_end(&f->path)->pos;
  if (block->init && block_init_is_partial(block)) return refuse_partial_init(schedule, pos, block);
  if (!reduced_results_read(schedule->context, block, &f->all))
    return schedule_refuse(schedule, pos,
                           "block '%s' is not a reduction with an init whose results are combined "
                           "by an operation with a neutral element, or by an argmax or argmin",
                           block->name);
  if (refuse_late_init(schedule, pos, block)) return false;
  bool reduces = uses_loop(block, ITER_REDUCTION, f->loop->as.loop.var) ||
                 (loop_const_extent(f->loop) == 1 && block_is_reduction(block));
  if (!reduces || uses_loop(block, ITER_SPATIAL, f->loop->as.loop.var))
    return schedule_refuse(schedule, f->loop->pos,
                           "loop '%s' is not one of the reduction of block '%s'",
                           loop_name(f->loop), block->name);
  if (!keeps_order(f, loops, count))
    return schedule_refuse(schedule, pos,
                           "block '%s' keeps the first of equal elements, and would meet them in "
                           "another order\nfactor the outermost loop of the reduction, or compare "
                           "the carried values of equal elements",
                           block->name);
  if (f->axis < 0) f->axis += f->all.rank + 1; // counted from the last
  if (f->axis < 0 || f->axis > f->all.rank)
    return schedule_refuse(schedule, pos, "the partial results of '%s' have axes 0 to %d",
                           f->all.results[0].target->name, f->all.rank);
  for (int i = 0; i < count; i++) {
    Expr *var = loops[i]->as.loop.var;
    if (loops[i] == f->loop || !uses_loop(block, ITER_REDUCTION, var)) continue;
    if (uses_loop(block, ITER_SPATIAL, var))
      return schedule_refuse(schedule, loops[i]->pos,
                             "loop '%s' is used by spatial and by reduction variables",
                             var->as.var->name);
    array_push(&context->arena, &f->inner, var);
  }
  if (!bounds_are_fixed(schedule, loops, count)) return false;
  Analyzer *analyzer = path_analyzer(schedule, &f->path, f->path.count - 1);
  const char *why = path_bindings_check(schedule, &f->path, analyzer, block);
  if (why)
    return schedule_refuse(schedule, pos,
                           "the loops of block '%s' are not proved to run over its domain: %s",
                           block->name, why);
  for (int d = 0; d < f->all.rank; d++)
    if (f->all.indices[d]->op != EXPR_VAR && f->all.indices[d]->op != EXPR_INT)
      return schedule_refuse(schedule, pos, "block '%s' does not write '%s' by its variables",
                             block->name, f->all.results[0].target->name);
  return true;
}

// ---- The new blocks --------------------------------------------------------------------------

static void make_partial(ReductionFactor *f, ReducedBuffer *r) {
  Context *context = f->schedule->context;
  int rank = f->all.rank + 1;
  Expr **shape = arena_array(&context->arena, Expr *, rank);
  for (int d = 0; d < rank; d++)
    shape[d] = d == f->axis ? f->loop->as.loop.extent : r->target->shape[d < f->axis ? d : d - 1];
  r->partial = buffer_new(context, arena_printf(&context->arena, "%s_rf", r->target->name),
                          r->target->type, shape, rank, "global");
}

static Expr **partial_indices(const ReductionFactor *f, Expr *const *indices, Expr *at) {
  int rank = f->all.rank + 1;
  Expr **out = arena_array(&f->schedule->context->arena, Expr *, rank);
  for (int d = 0; d < rank; d++) out[d] = d == f->axis ? at : indices[d < f->axis ? d : d - 1];
  return out;
}

// The init of the partial results: neutral elements, or for an argmax that of the results.
static Stmt *partial_init(const ReductionFactor *f, Expr *const *indices) {
  Context *context = f->schedule->context;
  Stmt *stores[MOST_RESULTS];
  for (int i = 0; i < f->all.count; i++) {
    const ReducedBuffer *r = &f->all.results[i];
    Expr *start = f->all.chooses ? r->init->as.store.value
                                 : reduction_neutral(context, r->op, r->target->type);
    stores[i] = stmt_store(context, r->partial, indices, f->all.rank + 1, start);
  }
  return stmt_seq(context, stores, f->all.count);
}

// True when each partial result is one term, which needs no init.
static bool has_one_term(const ReductionFactor *f) {
  for (int i = 0; i < f->all.count; i++)
    if (f->all.results[i].op == EXPR_SUB) return false;
  return !f->all.chooses && !f->inner.count;
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
  Expr *loop_var = f->loop->as.loop.var, *min = f->loop->as.loop.min;
  Expr *at = expr_var(context, arena_printf(&context->arena, "v%s", loop_var->as.var->name),
                      loop_var->type);
  Expr *zero = expr_int(context, at->type, 0);
  copy->vars[copy->var_count++] =
      (BlockVar){at, zero, f->loop->as.loop.extent, ITER_SPATIAL, expr_sub(context, loop_var, min)};
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind != ITER_REDUCTION) copy->vars[copy->var_count++] = block->vars[i];
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
  Expr **indices = partial_indices(f, f->all.indices, at);
  Expr *loads[MOST_RESULTS], *terms[MOST_RESULTS], *values[MOST_RESULTS];
  for (int i = 0; i < f->all.count; i++) {
    loads[i] = expr_load(context, f->all.results[i].partial, indices, f->all.rank + 1);
    terms[i] = substitute_expr(context, f->all.results[i].term, &vars);
  }
  bool one = has_one_term(f);
  for (int i = 0; i < f->all.count; i++)
    values[i] = one ? terms[i] : reduced_value(&f->all, i, loads, terms);
  copy->init = one ? NULL : partial_init(f, indices);
  copy->body = stores_of(f, values, true, indices);
  return stmt_with_block(context, path_end(&f->path), block_with_regions(context, copy));
}

typedef struct LoopProduct {
  const Expr *var;
  bool found; // a product of the variable with a size, or a quotient by one
} LoopProduct;

static bool find_product(Visitor *visitor, Expr *e) {
  LoopProduct *p = visitor->env;
  bool is_linear = e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_CAST;
  if (e->count == 2 && e->op != EXPR_LT && !is_linear && expr_uses(e, p->var))
    p->found |= e->args[0]->op != EXPR_INT && e->args[1]->op != EXPR_INT;
  return !p->found;
}

// True when no element has a term where the condition does not hold, since an inner loop is empty.
static bool has_no_terms(const ReductionFactor *f, Expr *condition) {
  Context *context = f->schedule->context;
  Analyzer *analyzer = path_analyzer(f->schedule, &f->path, f->path.count - 1);
  analyzer_assume(analyzer, expr_unary(context, EXPR_NOT, condition));
  for (int i = 0; i < f->inner.count; i++) {
    Expr *extent = schedule_loop(f->schedule, f->inner.items[i])->as.loop.extent;
    Expr *zero = expr_int(context, extent->type, 0);
    if (analyzer_prove(analyzer, expr_binary(context, EXPR_LE, extent, zero))) return true;
  }
  return false;
}

// The condition so that the result gets its init in the first iteration of the factored loop, or,
// as any reduction without iterations, in place of all. NULL where that is not proved. With the
// sizes of a run, k * ((n + 3) // 4) < n may become false itself, which says nothing about
// iterations: it gets the form k * ((n + 3) // 4) < max(n, 1), for which the partial results have
// their init alone.
static Expr *with_start(const ReductionFactor *f, Analyzer *analyzer, Expr *condition) {
  Context *context = f->schedule->context;
  VarRange loop = loop_range(f->loop);
  LoopProduct product = {loop.var, false};
  Map start = map_new(&context->arena);
  map_put(&start, loop.var, loop.min);
  Expr *first = substitute_expr(context, condition, &start);
  if (!expr_uses(condition, loop.var) || analyzer_prove(analyzer, first)) return condition;
  visit_expr(&(Visitor){.env = &product, .enter_expr = find_product}, condition);
  if (!product.found)
    return condition_needs_first(context, f->block, condition, &loop, 1) ? condition : NULL;
  if (condition->op != EXPR_LT || !has_no_terms(f, first)) return NULL;
  Expr *end = condition->args[1], *value = condition->args[0];
  Expr *least =
      expr_add(context, substitute_expr(context, value, &start), expr_int(context, value->type, 1));
  return expr_lt(context, value, expr_binary(context, EXPR_MAX, end, least));
}

// The condition under which a partial result is initialised: the predicate with the reduction's
// other loops at their start. NULL when a partial result might be updated without an init, or the
// result might get none.
static Expr *started(ReductionFactor *f) {
  Context *context = f->schedule->context;
  Map first = map_new(&context->arena);
  for (int i = 0; i < f->inner.count; i++)
    map_put(&first, f->inner.items[i], schedule_loop(f->schedule, f->inner.items[i])->as.loop.min);
  Analyzer *analyzer = path_analyzer(f->schedule, &f->path, f->path.count - 1);
  Expr *condition = substitute_expr(context, f->block->predicate, &first);
  if (analyzer_prove(analyzer, condition)) return expr_bool(context, true);
  ExprArray all = {0};
  expr_conjuncts(context, condition, &all);
  for (int i = 0; i < all.count; i++)
    if (!(all.items[i] = with_start(f, analyzer, all.items[i]))) return NULL;
  analyzer_assume(analyzer, f->block->predicate);
  return analyzer_prove(analyzer, condition) ? expr_conjunction(context, &all) : NULL;
}

// A partial result of a difference is negative already, and is added.
static Expr *final_value(const ReductionFactor *f, int i, Expr *const *loads, Expr *const *parts) {
  if (f->all.results[i].op == EXPR_SUB) return expr_add(f->schedule->context, loads[i], parts[i]);
  return reduced_value(&f->all, i, loads, parts);
}

// Gives the block the body and the init, at the variables that replace those of the old block.
static void finish_final(const ReductionFactor *f, Block *copy, const Map *vars, Expr *at) {
  Context *context = f->schedule->context;
  Expr **indices = arena_array(&context->arena, Expr *, f->all.rank);
  for (int d = 0; d < f->all.rank; d++)
    indices[d] = substitute_expr(context, f->all.indices[d], vars);
  Expr **places = partial_indices(f, indices, at);
  Expr *loads[MOST_RESULTS], *parts[MOST_RESULTS], *values[MOST_RESULTS];
  for (int i = 0; i < f->all.count; i++) {
    loads[i] = expr_load(context, f->all.results[i].target, indices, f->all.rank);
    parts[i] = expr_load(context, f->all.results[i].partial, places, f->all.rank + 1);
  }
  for (int i = 0; i < f->all.count; i++) values[i] = final_value(f, i, loads, parts);
  copy->body = stores_of(f, values, false, indices);
  copy->init = substitute_stmt(context, f->block->init, vars, NULL);
}

// Makes the last variable the first one, which is where TVM has that of the factored loop.
static void last_to_front(Block *block) {
  BlockVar last = block->vars[block->var_count - 1];
  for (int i = block->var_count - 1; i > 0; i--) block->vars[i] = block->vars[i - 1];
  block->vars[0] = last;
}

// The block of C = op(C, R[…]) over the block's spatial domain and the new axis. It gets `loops`,
// new ones, or keeps the loops of the block where `loops` is NULL.
static Block *final_block(ReductionFactor *f, Expr *condition, Expr **loops) {
  Context *context = f->schedule->context;
  const Block *block = f->block;
  Block *copy = block_copy(context, block);
  Map vars = map_new(&context->arena);
  copy->vars = arena_array(&context->arena, BlockVar, block->var_count + 1);
  copy->var_count = 0;
  for (int i = 0; i < block->var_count; i++) {
    BlockVar v = block->vars[i];
    if (v.kind == ITER_REDUCTION) continue;
    Expr *var = expr_var(context, v.var->as.var->name, v.var->type);
    map_put(&vars, v.var, var);
    Str name = arena_printf(&context->arena, "ax%d", copy->var_count);
    if (loops) {
      loops[copy->var_count] = expr_var(context, name, var->type);
      v.binding = expr_add(context, v.min, loops[copy->var_count]);
    }
    v.var = var;
    copy->vars[copy->var_count++] = v;
  }
  Expr *old = f->loop->as.loop.var, *min = f->loop->as.loop.min;
  Expr *at = expr_var(context, arena_printf(&context->arena, "v%s", old->as.var->name), old->type);
  Expr *loop = loops ? expr_var(context, old->as.var->name, old->type) : NULL;
  if (loops) loops[copy->var_count] = loop;
  copy->vars[copy->var_count++] =
      (BlockVar){at, expr_int(context, old->type, 0), f->loop->as.loop.extent, ITER_REDUCTION,
                 loops ? loop : expr_sub(context, old, min)};
  Map slot = map_new(&context->arena);
  if (loops) map_put(&slot, old, expr_add(context, loop, min));
  copy->predicate = substitute_expr(context, condition, &slot);
  finish_final(f, copy, &vars, at);
  if (!loops) last_to_front(copy);
  return copy;
}

// True when the condition uses loops of the old nest, so that the new nest cannot have it.
static bool names_old_loops(const ReductionFactor *f, const Expr *condition, Stmt **loops,
                            int count) {
  for (int i = 0; i < count; i++)
    if (loops[i] != f->loop && expr_uses(condition, loops[i]->as.loop.var)) return true;
  return false;
}

static Stmt *final_nest(ReductionFactor *f, Expr *condition) {
  Context *context = f->schedule->context;
  Expr **loops = arena_array(&context->arena, Expr *, f->block->var_count + 1);
  Block *block = final_block(f, condition, loops);
  Stmt *s = stmt_with_block(context, path_end(&f->path), block_with_regions(context, block));
  s = block_in_loops(context, loops, s); // in the order of the variables
  last_to_front(block);
  return s;
}

// ---- Loops that other statements share ---------------------------------------------------------
// The partial results are computed before these loops, in loops of their own:
//   for i: { for k0, k1: C[i] += A[i, k0*4 + k1];  D[i] = C[i] }
//   =>  for i, k0, k1: R[i, k1] += A[i, k0*4 + k1]
//       for i: { for k1: C[i] += R[i, k1];  D[i] = C[i] }
// or, where statements in these loops write what the block reads, before the block's own loops:
//   =>  for i: { for k0, k1: R[i, k1] += A[i, k0*4 + k1];  for k1: C[i] += R[i, k1];  D[i] = C[i] }

static bool is_inner(const ReductionFactor *f, const Stmt *loop) {
  for (int i = 0; i < f->inner.count; i++)
    if (f->inner.items[i] == loop->as.loop.var) return true;
  return false;
}

// The depth of the last sequence above the block and below items[top]; -1 where another statement
// than a sequence or a plain loop is there, or a shared loop belongs to the reduction.
static int shared_end(const ReductionFactor *f, int top) {
  int end = -1;
  for (int i = top; i < f->path.count - 1; i++) {
    const Stmt *s = f->path.items[i];
    if (s->kind == STMT_SEQ)
      end = i;
    else if (s->kind != STMT_FOR || !loop_is_plain(s))
      return -1;
  }
  for (int i = top; i < end; i++) {
    const Stmt *s = f->path.items[i];
    if (s->kind == STMT_FOR && (s == f->loop || is_inner(f, s))) return -1;
  }
  return end;
}

// True when no statement below items[top] writes what the block reads.
static bool inputs_are_given(const ReductionFactor *f, int top) {
  Context *context = f->schedule->context;
  PtrArray inputs = {0};
  StmtArray blocks = {0};
  block_inputs(context, f->block, &inputs);
  blocks_innermost(&context->arena, f->path.items[top], &blocks);
  for (int i = 0; i < blocks.count; i++)
    for (int k = 0; k < inputs.count; k++)
      if (block_touches(blocks.items[i]->as.block, inputs.items[k], true)) return false;
  return !stmt_has_loose_stores(f->path.items[top]);
}

// The partial block in copies of all loops from items[top] on.
static Stmt *partial_nest(ReductionFactor *f, int top, Str name) {
  Context *context = f->schedule->context;
  Stmt *s = partial_block(f, name);
  Map vars = map_new(&context->arena);
  for (int i = f->path.count - 2; i >= top; i--)
    if (f->path.items[i]->kind == STMT_FOR) s = stmt_with_child(context, f->path.items[i], 0, s);
  for (int i = top; i < f->path.count; i++) {
    const Stmt *loop = f->path.items[i];
    if (loop->kind != STMT_FOR) continue;
    const Expr *var = loop->as.loop.var;
    map_put(&vars, var, expr_var(context, var->as.var->name, var->type));
  }
  return substitute_stmt(context, s, &vars, NULL);
}

static bool factor_in_shared_loops(ReductionFactor *f, Str name) {
  Schedule *schedule = f->schedule;
  Context *context = schedule->context;
  int top = path_nest_top(&f->path, f->path.count - 1), end = shared_end(f, top);
  if (end >= 0 && !inputs_are_given(f, top)) top = end + 1;
  Expr *condition = started(f);
  if (end < 0 || !condition || !inputs_are_given(f, top))
    return schedule_refuse(
        schedule, f->loop->pos,
        "other statements share the loops of block '%s', and it is not proved that its partial "
        "results can be computed before these loops; do this step before blocks are moved there",
        f->block->name);
  for (int i = 0; i < f->all.count; i++) make_partial(f, &f->all.results[i]);
  Block *last = block_with_regions(context, final_block(f, condition, NULL));
  Stmt *s = stmt_with_block(context, path_end(&f->path), last);
  for (int i = f->path.count - 2; i > end; i--)
    if (!is_inner(f, f->path.items[i])) s = stmt_with_child(context, f->path.items[i], 0, s);
  Path cut = f->path;
  cut.count = end + 2;
  path_place_beside(schedule, &f->path, top, path_with_end(context, &cut, top, s),
                    partial_nest(f, top, name), false, f->all.results[0].partial);
  return true;
}

// ---- The step ----------------------------------------------------------------------------------

// True when the block's spatial domain is that of its results, so that it may run there without a
// condition.
static bool runs_over_results(const ReductionFactor *f) {
  for (int d = 0; d < f->all.rank; d++)
    if (!index_is_axis(f->block, f->all.indices[d], f->all.results[0].target->shape[d]))
      return false;
  return true;
}

// Puts the nest of the final results behind that of the partial ones.
static bool factor_alone(ReductionFactor *f, Stmt **loops, int count, Str name) {
  Schedule *schedule = f->schedule;
  Context *context = schedule->context;
  int top = f->path.count - 1 - count;
  Expr *condition = started(f);
  // A condition on spatial loops only restricts them to the domain, which the new nest runs over.
  if (condition && !expr_is_true(condition) && !expr_uses(condition, f->loop->as.loop.var) &&
      runs_over_results(f) &&
      block_writes_whole_domain(schedule, f->block,
                                path_analyzer(schedule, &f->path, f->path.count - 1)))
    condition = expr_bool(context, true);
  if (!condition || names_old_loops(f, condition, loops, count))
    return schedule_refuse(
        schedule, f->loop->pos,
        "the predicate of block '%s' is not proved to leave each partial result a start; "
        "split with factors that divide the extent",
        f->block->name);
  for (int i = 0; i < f->all.count; i++) make_partial(f, &f->all.results[i]);
  Stmt *kept = path_with_end(context, &f->path, top, partial_block(f, name));
  path_place_beside(schedule, &f->path, top, kept, final_nest(f, condition), true,
                    f->all.results[0].partial);
  return true;
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
  int top = f.path.count - 1 - count, scope = path_scope(&f.path, f.path.count - 1);
  bool alone = top > scope && f.path.items[top] == loops[0];
  if (!check_factor(&f, loops, count)) return false;
  BlockRef parent = f.path.items[scope]->as.block->name;
  Str name = schedule_unique_name(schedule, arena_printf(&context->arena, "%s_rf", f.block->name));
  if (alone ? !factor_alone(&f, loops, count, name) : !factor_in_shared_loops(&f, name))
    return false;
  for (int i = 1; i < f.all.count; i++) block_allocate(schedule, parent, f.all.results[i].partial);
  step_result(schedule, call, value_block(name));
  return true;
}
