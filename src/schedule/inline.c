// SPDX-License-Identifier: Apache-2.0
// Implements the steps that inline a block into its consumers, or into its producer.
//   compute_inline           B[i] = A[i] * 2;  C[i] = B[i] + 1   =>   C[i] = A[i] * 2 + 1
//   reverse_compute_inline   the same result, at the position and with the loops of B's block
//   fuse_reduction_epilogue  { B[i] = 0;  B[i] += A[i, k] };  C[i] = B[i] + D[i]
//                            =>   { C[i] = D[i];  C[i] += A[i, k] }
// The inlined computation must read the same values at its new position: no block may write its
// inputs between the old position and the new one.
#include "schedule/internal.h"

// ---- Order of blocks -------------------------------------------------------------------------

static bool is_leaf(Arena *arena, Stmt *block) {
  StmtArray inner = {0};
  blocks_below(arena, block, &inner);
  return !inner.count;
}

bool block_touches(const Block *block, const Buffer *buffer, bool write) {
  const Region *regions = write ? block->writes : block->reads;
  int count = write ? block->write_count : block->read_count;
  for (int i = 0; i < count; i++)
    if (buffers_alias(regions[i].buffer, buffer)) return true;
  for (int i = 0; i < block->var_count && !write; i++)
    if (expr_reads(block->vars[i].binding, buffer)) return true;
  return !write && expr_reads(block->predicate, buffer);
}

int common_loop(const Path *a, const Path *b) {
  int depth = -1;
  for (int i = 0; i < a->count && i < b->count && a->items[i] == b->items[i]; i++)
    if (a->items[i]->kind == STMT_FOR) depth = i;
  return depth;
}

// True when every leaf block that writes `input` runs before `first`; and where they share a loop,
// `carried` must be filled and used within one iteration of it.
static bool input_is_settled(Schedule *schedule, const StmtArray *blocks, const Path *first,
                             const Buffer *input, const Buffer *carried, const char **why) {
  Arena *arena = &schedule->context->arena;
  int limit = block_number(blocks, path_end(first)->as.block);
  *why =
      arena_printf(arena, "a statement outside of blocks writes '%s', which it reads", input->name);
  if (stmt_uses_loosely(schedule->func->body, input, true)) return false;
  for (int i = 0; i < blocks->count; i++) {
    const Block *writer = blocks->items[i]->as.block;
    if (!is_leaf(arena, blocks->items[i]) || !block_touches(writer, input, true)) continue;
    Path path;
    path_to_block(schedule, writer->name, &path);
    int shared = common_loop(first, &path);
    if (i < limit && (shared < 0 || buffer_is_private_below(schedule, first, shared, carried)))
      continue;
    *why = arena_printf(arena, "block '%s' writes '%s', which it reads", writer->name, input->name);
    return false;
  }
  return true;
}

static bool only_writer(Schedule *schedule, const StmtArray *blocks, const Block *block,
                        const Buffer *buffer, const char **why) {
  Arena *arena = &schedule->context->arena;
  *why = arena_printf(arena, "a statement outside of blocks writes '%s' too", buffer->name);
  if (stmt_uses_loosely(schedule->func->body, buffer, true)) return false;
  for (int i = 0; i < blocks->count; i++) {
    const Block *other = blocks->items[i]->as.block;
    if (other == block || !is_leaf(arena, blocks->items[i])) continue;
    if (!block_touches(other, buffer, true)) continue;
    *why = arena_printf(arena, "block '%s' writes '%s' too", other->name, buffer->name);
    return false;
  }
  return true;
}

// ---- Conditions on inlined blocks --------------------------------------------------------------

// True for a block without reduction whose body is one store of a value that does not read the
// stored buffer.
static bool is_pointwise(Schedule *schedule, Stmt *s, const char **why) {
  const Block *block = s->as.block;
  *why = arena_printf(&schedule->context->arena, "block '%s' is a reduction", block->name);
  if (block_is_reduction(block) || block->init) return false;
  *why = arena_printf(&schedule->context->arena, "block '%s' has more than one store", block->name);
  if (block->body->kind != STMT_STORE || block->match_count) return false;
  *why = arena_printf(&schedule->context->arena, "block '%s' reads what it writes", block->name);
  return !expr_reads(block->body->as.store.value, block->body->as.store.buffer);
}

static bool is_allocation(const Schedule *schedule, const Buffer *buffer) {
  StmtArray blocks = {0};
  blocks_all(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++)
    for (int k = 0; k < blocks.items[i]->as.block->alloc_count; k++)
      if (blocks.items[i]->as.block->allocs[k] == buffer) return true;
  return false;
}

// Solves index = at for the one variable of the block in the index, which is that variable plus or
// minus terms without the block's variables, as 15 - vi: stores the value and returns the variable.
// NULL where the index has another form.
static Expr *solve_index(Context *context, const Block *block, Expr *index, Expr *at,
                         Expr **value) {
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < block->var_count; i++) {
    Expr *var = block->vars[i].var;
    if (!dtype_equal(var->type, index->type) || !expr_uses(index, var)) continue;
    at = expr_cast(context, var->type, at);
    Expr *rest = analyzer_simplify(analyzer, expr_sub(context, index, var));
    *value = expr_sub(context, at, rest);
    if (expr_uses_block_vars(rest, block)) {
      rest = analyzer_simplify(analyzer, expr_add(context, index, var));
      *value = expr_sub(context, rest, at);
    }
    if (expr_uses_block_vars(rest, block) || expr_reads_memory(rest)) return NULL;
    *value = analyzer_simplify(analyzer, *value);
    return var;
  }
  return NULL;
}

// The layout that sends the block's variables to the indices; NULL when there is none.
static const Layout *layout_of_indices(Context *context, const Block *block, Expr *const *indices,
                                       int rank) {
  int count = block->var_count;
  Expr **vars = arena_array(&context->arena, Expr *, count + 1);
  int64_t *extents = arena_array(&context->arena, int64_t, count + 1);
  for (int i = 0; i < count; i++) {
    const BlockVar *v = &block->vars[i];
    if (!expr_is_int(v->min, 0) || v->extent->op != EXPR_INT || v->extent->as.i < 1) return NULL;
    vars[i] = v->var;
    extents[i] = v->extent->as.i;
  }
  const IndexMap *map = index_map_from_exprs(context, vars, count, indices, rank, false);
  int diags = context->diags.count, errors = context->error_count;
  const Layout *layout = map ? layout_static(context, map, extents, (SourcePos){0}) : NULL;
  diag_forget(context, diags, errors); // a map that is no layout has no inverse
  return layout;
}

// Finds the block's variables for which the indices are `at`, by the inverse of the indices.
static bool invert_indices(Context *context, const Block *block, Expr *const *indices, int rank,
                           Expr *const *at, Map *out) {
  const Layout *layout = layout_of_indices(context, block, indices, rank);
  Expr *holds, **values = arena_array(&context->arena, Expr *, block->var_count + 1);
  if (!layout || !layout_inverse_exprs(context, layout, at, NULL, values, &holds, NULL))
    return false;
  *out = map_new(&context->arena);
  for (int i = 0; i < block->var_count; i++) {
    Expr *var = block->vars[i].var;
    map_put(out, var, expr_cast(context, var->type, values[i]));
  }
  return true;
}

// The variables as in variables_at, where each index has at most one of them.
static bool variables_one_by_one(Context *context, const Block *block, Expr *const *indices,
                                 Map *out) {
  const Stmt *store = block->body;
  *out = map_new(&context->arena);
  for (int d = 0; d < store->as.store.rank; d++) {
    Expr *value, *index = store->as.store.indices[d];
    if (index->op == EXPR_INT) continue;
    Expr *var = solve_index(context, block, index, indices[d], &value);
    if (!var || map_contains(out, var)) return false;
    map_put(out, var, value);
  }
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (map_contains(out, v->var)) continue;
    if (!expr_is_int(v->extent, 1)) return false;
    map_put(out, v->var, expr_cast(context, v->var->type, v->min));
  }
  return true;
}

// The values of the block's variables for which the store has these indices; false when the indices
// do not determine them.
static bool variables_at(Context *context, const Block *block, Expr *const *indices, Map *out) {
  const Stmt *store = block->body;
  return variables_one_by_one(context, block, indices, out) ||
         invert_indices(context, block, store->as.store.indices, store->as.store.rank, indices,
                        out);
}

// ---- Rewriting consumers -----------------------------------------------------------------------

typedef struct BlockInlining {
  Context *context;
  const Block *block;
  const Buffer *buffer;
  const Path *path; // of the block
  bool too_large;   // a reader's expression would become too large
} BlockInlining;

enum { MOST_NODES = 1 << 16 };

static Expr *inline_load(Rewriter *rewriter, Expr *e) {
  BlockInlining *env = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != env->buffer) return e;
  Map values;
  if (!variables_at(env->context, env->block, e->args, &values)) bug(env->context, "inlining");
  return substitute_expr(env->context, env->block->body->as.store.value, &values);
}

// True for a block around the inlined one. It states no access to a buffer that it allocates, but
// accesses what its readers read instead.
static bool is_around(const BlockInlining *env, const Block *block) {
  for (int i = 0; i < env->path->count; i++) {
    const Stmt *s = env->path->items[i];
    if (s->kind == STMT_BLOCK && s->as.block->name == block->name) return !block_is_root(block);
  }
  return false;
}

static Stmt *inline_block(Rewriter *rewriter, Stmt *s) {
  BlockInlining *env = rewriter->env;
  if (s->kind == STMT_STORE)
    env->too_large |= expr_tree_size(s->as.store.value, NULL, 0, MOST_NODES) == MOST_NODES;
  bool changes = s->kind == STMT_BLOCK &&
                 (block_touches(s->as.block, env->buffer, false) || is_around(env, s->as.block));
  if (!changes) return s;
  return stmt_with_block(env->context, s, block_with_regions(env->context, s->as.block));
}

typedef struct Removal {
  Context *context;
  const Buffer *buffer;
} Removal;

static Stmt *remove_alloc(Rewriter *rewriter, Stmt *s) {
  Removal *env = rewriter->env;
  if (s->kind != STMT_BLOCK) return s;
  const Block *block = s->as.block;
  for (int i = 0; i < block->alloc_count; i++) {
    if (block->allocs[i] != env->buffer) continue;
    Block *copy = block_copy(env->context, block);
    copy->allocs = arena_array(&env->context->arena, Buffer *, block->alloc_count);
    copy->alloc_count = 0;
    for (int k = 0; k < block->alloc_count; k++)
      if (k != i) copy->allocs[copy->alloc_count++] = block->allocs[k];
    return stmt_with_block(env->context, s, copy);
  }
  return s;
}

static Stmt *without_allocation(Context *context, Stmt *body, const Buffer *buffer) {
  Removal env = {context, buffer};
  Rewriter rewriter = {.context = context, .env = &env, .stmt = remove_alloc};
  return rewrite_stmt(&rewriter, body);
}

static bool refuse_block(Schedule *schedule, const Stmt *at, const char *why) {
  return schedule_refuse(schedule, at->pos, "block '%s' cannot be inlined: %s", at->as.block->name,
                         why);
}

static bool check_inputs(Schedule *schedule, const StmtArray *blocks, const Path *path,
                         const Buffer *carried, const char **why) {
  const Block *block = path_end(path)->as.block;
  PtrArray inputs = {0};
  block_inputs(schedule->context, block, &inputs);
  for (int i = 0; i < inputs.count; i++)
    if (!input_is_settled(schedule, blocks, path, inputs.items[i], carried, why)) return false;
  return true;
}

// The inlined value may read outside of its buffers where the inlined block does not run, so all
// accesses of the readers must be proved to be inside of their buffers.
static bool check_readers(Schedule *schedule, const StmtArray *readers, const char **why) {
  for (int i = 0; i < readers->count; i++) {
    Path path;
    if (!path_to_block(schedule, readers->items[i]->as.block->name, &path)) continue;
    if (!block_in_bounds(schedule, &path, why)) return false;
  }
  return true;
}

// Whether the block may leave elements of the buffer that it writes: it, or a statement around it,
// has a condition, or its domain is not that of the buffer.
static bool may_leave_elements(const Path *path, const Buffer *buffer) {
  const Block *block = path_end(path)->as.block;
  for (int i = 0; i < path->count; i++) {
    const Stmt *s = path->items[i];
    if (s->kind == STMT_IF || s->kind == STMT_WHILE) return true;
    if (s->kind == STMT_BLOCK && !block_is_root(s->as.block) &&
        !expr_is_true(s->as.block->predicate))
      return true;
  }
  for (int d = 0; d < buffer->rank; d++)
    if (!index_is_axis(block, block->body->as.store.indices[d], buffer->shape[d])) return true;
  return false;
}

static bool is_defined_in_readers(Schedule *schedule, const StmtArray *blocks, const Path *path,
                                  const Buffer *buffer, const char **why) {
  for (int i = 0; i < blocks->count; i++) {
    Path reader;
    if (!is_leaf(&schedule->context->arena, blocks->items[i]) ||
        !block_touches(blocks->items[i]->as.block, buffer, false) ||
        !path_to_block(schedule, blocks->items[i]->as.block->name, &reader))
      continue;
    if (!path_is_defined_at(schedule, path, &reader, why)) return false;
  }
  return true;
}

bool step_compute_inline(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  const char *why;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  const Block *block = at->as.block;
  if (!is_pointwise(schedule, at, &why)) return refuse_block(schedule, at, why);
  Buffer *buffer = block->body->as.store.buffer;
  StmtArray blocks = {0}, readers = {0};
  blocks_all(&context->arena, schedule->func->body, &blocks);
  Map values;
  if (!is_allocation(schedule, buffer))
    return refuse_block(schedule, at, "what it writes is not an allocation of this function");
  if (!variables_at(context, block, block->body->as.store.indices, &values))
    return refuse_block(schedule, at, "its indices do not give its variables");
  if (!only_writer(schedule, &blocks, block, buffer, &why) ||
      !check_inputs(schedule, &blocks, &path, buffer, &why))
    return refuse_block(schedule, at, why);
  if (storage_is_opaque(schedule, buffer, &why) ||
      !is_defined_in_readers(schedule, &blocks, &path, buffer, &why))
    return refuse_block(schedule, at, why);
  for (int i = 0; i < blocks.count; i++)
    if (is_leaf(&context->arena, blocks.items[i]) &&
        block_touches(blocks.items[i]->as.block, buffer, false))
      array_push(&context->arena, &readers, blocks.items[i]);

  BlockInlining env = {context, block, buffer, &path, false};
  Rewriter rewriter = {.context = context, .env = &env, .expr = inline_load, .stmt = inline_block};
  Stmt *body = path_replace(context, &path, path.count - 1, NULL);
  body = rewrite_stmt(&rewriter, without_allocation(context, body, buffer));
  schedule_set_body(schedule, body);
  if (env.too_large)
    return refuse_block(schedule, at,
                        "its readers use it several times, and would become too large: let it have "
                        "a buffer here");
  if (may_leave_elements(&path, buffer) && !check_readers(schedule, &readers, &why))
    return refuse_block(schedule, at, why);
  return true;
}

// ---- A consumer in its producer ----------------------------------------------------------------

typedef struct Backward {
  Schedule *schedule;
  Path consumer, producer;
  const Block *into, *block; // producer and consumer
  Buffer *buffer;            // written by the producer, read by the consumer
  Expr **indices;            // the indices at which the consumer reads it
  Map values;                // consumer's variables in terms of the producer's
  Expr *condition;           // true for the producer's points that a consumer's point reads
} Backward;

typedef struct FindIndices {
  const Buffer *buffer;
  const Block *block;
  Expr *load;
  bool several;
} FindIndices;

static bool find_indices(Visitor *visitor, Expr *e) {
  FindIndices *find = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer != find->buffer) return true;
  find->several |=
      find->load && !block_same_element(find->block, find->load->args, e->args, e->count);
  find->load = e;
  return true;
}

// Finds the last producer with a buffer that only this consumer reads.
static bool find_producer(Backward *b, const StmtArray *blocks, const char **why) {
  Schedule *schedule = b->schedule;
  *why = "it reads no buffer that is written for it alone";
  for (int i = block_number(blocks, b->block) - 1; i >= 0; i--) {
    const Block *other = blocks->items[i]->as.block;
    if (!is_leaf(&schedule->context->arena, blocks->items[i]) || other->write_count != 1) continue;
    Buffer *buffer = other->writes[0].buffer;
    if (!block_touches(b->block, buffer, false) || !is_allocation(schedule, buffer)) continue;
    bool alone = true;
    for (int k = 0; k < blocks->count; k++)
      alone &= blocks->items[k]->as.block == b->block ||
               !is_leaf(&schedule->context->arena, blocks->items[k]) ||
               !block_touches(blocks->items[k]->as.block, buffer, false);
    if (!alone) continue;
    b->into = other;
    b->buffer = buffer;
    return path_to_block(schedule, other->name, &b->producer);
  }
  return false;
}

static Expr *in_domain(Context *context, Analyzer *analyzer, const BlockVar *v, Expr *value) {
  Expr *low = expr_binary(context, EXPR_GE, value, v->min);
  Expr *high = expr_lt(context, value, expr_add(context, v->min, v->extent));
  Expr *all = analyzer_prove(analyzer, low) ? NULL : low;
  return analyzer_prove(analyzer, high) ? all : condition_and(context, all, high);
}

// Finds the variables where each index that the consumer reads by has at most one of them.
static bool variables_by_axis(Backward *b) {
  Context *context = b->schedule->context;
  const Stmt *store = b->into->body;
  for (int d = 0; d < store->as.store.rank; d++) {
    Expr *value, *index = b->indices[d];
    if (!expr_uses_block_vars(index, b->block)) continue;
    Expr *var = solve_index(context, b->block, index, store->as.store.indices[d], &value);
    if (!var) return false;
    if (!map_contains(&b->values, var)) map_put(&b->values, var, value);
  }
  return true;
}

// Finds the variables by the inverse of the indices at which the consumer reads.
static bool variables_by_inverse(Backward *b) {
  const Stmt *store = b->into->body;
  return invert_indices(b->schedule->context, b->block, b->indices, store->as.store.rank,
                        store->as.store.indices, &b->values);
}

// Solves for the consumer's variables: its read indices must equal the producer's store indices.
static bool solve_backward(Backward *b, const char **why) {
  Context *context = b->schedule->context;
  const Stmt *store = b->into->body;
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, b->into);
  b->values = map_new(&context->arena);
  if (!variables_by_axis(b) && !variables_by_inverse(b)) {
    *why = "the indices by which it reads are not proved to give its variables; "
           "transform_block_layout may change that";
    return false;
  }
  for (int i = 0; i < b->block->var_count; i++) {
    const BlockVar *v = &b->block->vars[i];
    Expr *value = map_find(&b->values, v->var);
    if (!value && !expr_is_int(v->extent, 1)) {
      *why = "the indices that it reads do not determine those that it writes";
      return false;
    }
    if (!value)
      map_put(&b->values, v->var, expr_cast(b->schedule->context, v->var->type, v->min));
    else
      b->condition = condition_and(context, b->condition, in_domain(context, analyzer, v, value));
  }
  for (int d = 0; d < store->as.store.rank; d++) {
    Expr *index = substitute_expr(context, b->indices[d], &b->values);
    Expr *same = expr_binary(context, EXPR_EQ, store->as.store.indices[d], index);
    if (!analyzer_prove(analyzer, same)) b->condition = condition_and(context, b->condition, same);
  }
  return true;
}

// Adds the consumer's own predicate to the condition, rewritten over the producer's variables.
static bool move_predicate(Backward *b, const char **why) {
  Context *context = b->schedule->context;
  ExprArray of_domain = {0}, of_vars = {0};
  *why = "its predicate depends on its loops in a way that cannot be moved";
  if (!predicate_divide(b->schedule, &b->consumer, &of_domain, &of_vars)) return false;
  for (int i = 0; i < of_vars.count; i++)
    b->condition = condition_and(context, b->condition,
                                 substitute_expr(context, of_vars.items[i], &b->values));
  return true;
}

static bool backward_in_order(Backward *b, const StmtArray *blocks, const char **why) {
  Arena *arena = &b->schedule->context->arena;
  int from = block_number(blocks, b->into), to = block_number(blocks, b->block);
  const Buffer *output = b->block->body->as.store.buffer;
  if (!only_writer(b->schedule, blocks, b->block, output, why)) return false;
  *why = arena_printf(arena, "'%s' is used outside of blocks too", output->name);
  if (stmt_uses_loosely(b->schedule->func->body, output, false)) return false;
  PtrArray inputs = {0};
  block_inputs(b->schedule->context, b->block, &inputs);
  for (int i = 0; i < inputs.count; i++) {
    const Buffer *input = inputs.items[i];
    if (!buffers_alias(input, b->buffer) &&
        !input_is_settled(b->schedule, blocks, &b->producer, input, b->buffer, why))
      return false;
  }
  for (int i = 0; i <= to; i++) {
    const Block *other = blocks->items[i]->as.block;
    if (i == to || !is_leaf(arena, blocks->items[i])) continue;
    Path path;
    path_to_block(b->schedule, other->name, &path);
    if ((i < from && common_loop(&path, &b->producer) < 0) || !block_touches(other, output, false))
      continue;
    *why = arena_printf(arena, "block '%s' reads '%s' before", other->name, output->name);
    return false;
  }
  return true;
}

typedef struct ReplaceLoad {
  const Buffer *buffer;
  Expr *value;
} ReplaceLoad;

static Expr *replace_load(Rewriter *rewriter, Expr *e) {
  ReplaceLoad *env = rewriter->env;
  return e->op == EXPR_LOAD && e->as.buffer == env->buffer ? env->value : e;
}

static Stmt *backward_block(Backward *b) {
  Context *context = b->schedule->context;
  const Stmt *store = b->block->body;
  ReplaceLoad env = {b->buffer, NULL};
  Expr **indices = arena_array(&context->arena, Expr *, store->as.store.rank);
  for (int d = 0; d < store->as.store.rank; d++)
    indices[d] = substitute_expr(context, store->as.store.indices[d], &b->values);
  env.value = b->into->body->as.store.value;
  // The loads of the buffer are replaced first, because substituting variables would change them.
  Rewriter rewriter = {.context = context, .env = &env, .expr = replace_load};
  Expr *hole = expr_var(context, "hole", env.value->type), *value = env.value;
  env.value = hole;
  Expr *shape =
      substitute_expr(context, rewrite_expr(&rewriter, store->as.store.value), &b->values);
  Map fill = map_new(&context->arena);
  map_put(&fill, hole, value);
  Block *copy = block_copy(context, b->into);
  copy->body = stmt_store(context, store->as.store.buffer, indices, store->as.store.rank,
                          substitute_expr(context, shape, &fill));
  copy->body->pos = store->pos;
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, copy);
  copy->body = stmt_simplify_indices(context, analyzer, copy->body);
  Map bindings = bindings_of(context, copy);
  if (b->condition)
    copy->predicate =
        condition_and(context, copy->predicate, substitute_expr(context, b->condition, &bindings));
  return stmt_with_block(context, path_end(&b->producer), block_with_regions(context, copy));
}

// ---- fuse_reduction_epilogue -------------------------------------------------------------------

static bool is_result(const Backward *b, const Expr *e) {
  return e->op == EXPR_LOAD && e->as.buffer == b->buffer;
}

// The operand of `value` that has the reduction's result; -1 unless it is exactly one.
static int operand_with_result(const Backward *b, const Expr *value) {
  bool first = expr_reads(value->args[0], b->buffer);
  bool second = expr_reads(value->args[1], b->buffer);
  return first == second ? -1 : second;
}

// True when the value is f(result) for an f with f(x op y) = f(x) op y, so that f may be applied to
// the init of a reduction by `op`.
static bool commutes_with(const Backward *b, ExprOp op, const Expr *value) {
  if (is_result(b, value)) return true;
  if (op == EXPR_SUB) op = EXPR_ADD;
  bool subtracts = op == EXPR_ADD && value->op == EXPR_SUB;
  if (value->op != op && !subtracts) return false;
  if (op != EXPR_ADD && op != EXPR_MUL && op != EXPR_MIN && op != EXPR_MAX) return false;
  int operand = operand_with_result(b, value);
  return (operand == 0 || (operand == 1 && !subtracts)) &&
         commutes_with(b, op, value->args[operand]);
}

// f(init); an init that is the neutral element of the operation is left out.
static Expr *applied_to_init(const Backward *b, const Expr *value, Expr *init,
                             const Expr *neutral) {
  if (is_result(b, value)) return init;
  int operand = operand_with_result(b, value);
  Expr *inner = applied_to_init(b, value->args[operand], init, neutral);
  Expr *other = substitute_expr(b->schedule->context, value->args[1 - operand], &b->values);
  if (inner == neutral && value->op != EXPR_SUB) return other;
  return operand ? expr_binary(b->schedule->context, value->op, other, inner)
                 : expr_binary(b->schedule->context, value->op, inner, other);
}

static bool only_reader(Backward *b, const StmtArray *blocks, const char **why) {
  Arena *arena = &b->schedule->context->arena;
  for (int i = 0; i < blocks->count; i++) {
    const Block *other = blocks->items[i]->as.block;
    if (other == b->block || other == b->into || !is_leaf(arena, blocks->items[i]) ||
        !block_touches(other, b->buffer, false))
      continue;
    *why = arena_printf(arena, "block '%s' reads '%s' too", other->name, b->buffer->name);
    return false;
  }
  return true;
}

// Refuses a reduction that is not one update of one element, which its init starts.
static bool check_fused(Backward *b, ReductionUpdate *update) {
  Schedule *schedule = b->schedule;
  Stmt *at = path_end(&b->producer);
  const Block *into = b->into;
  if (!into->init || into->init->kind != STMT_STORE || into->write_count != 1 ||
      !reduction_update(into, update) || update->condition)
    return schedule_refuse(schedule, at->pos,
                           "block '%s' is not a reduction of one term with an init", into->name);
  if (block_init_is_partial(into)) return refuse_partial_init(schedule, at->pos, into);
  if (refuse_late_init(schedule, at->pos, into)) return false;
  b->buffer = into->writes[0].buffer;
  return is_allocation(schedule, b->buffer) ||
         schedule_refuse(schedule, at->pos, "'%s' is not an allocation of this function",
                         b->buffer->name);
}

// The box of the buffer that a block accesses within the statement that the paths of both blocks
// share, as the outermost block there states it; false where it has none.
static bool box_within(const Backward *b, const Path *path, int depth, Analyzer *analyzer,
                       bool write, Region *out) {
  AccessArray accesses = {0};
  Stmt *body = b->schedule->func->body;
  int at = depth;
  while (path->items[at]->kind != STMT_BLOCK) at++;
  stmt_accesses_within(b->schedule, analyzer, path->items[depth], body, &accesses);
  for (int i = 0; i < accesses.count; i++) {
    const Access *a = &accesses.items[i];
    if (a->block != path->items[at]->as.block || a->write != write || a->buffer != b->buffer)
      continue;
    *out = (Region){a->buffer, a->min, a->extent};
    return write || a->exact;
  }
  return false;
}

// True when the consumer runs for all that the producer writes: its loops run over its domain, or
// over what the producer writes within the loops around both. Elsewhere it would write more.
static bool consumer_runs_everywhere(const Backward *b, const char **why) {
  Schedule *schedule = b->schedule;
  Analyzer *analyzer = path_analyzer(schedule, &b->consumer, b->consumer.count - 1);
  if (!path_bindings_check(schedule, &b->consumer, analyzer, b->block)) return true;
  int depth = 0;
  while (depth < b->consumer.count - 1 && depth < b->producer.count - 1 &&
         b->consumer.items[depth] == b->producer.items[depth])
    depth++;
  Region read, written;
  analyzer = path_analyzer(schedule, &b->consumer, depth);
  *why = "its loops do not run over its domain, and are not proved to run over all elements that "
         "its producer writes";
  return box_within(b, &b->consumer, depth, analyzer, false, &read) &&
         box_within(b, &b->producer, depth, analyzer, true, &written) &&
         region_covers(analyzer, &read, &written);
}

static bool check_epilogue(Backward *b, const StmtArray *blocks, ExprOp op, const char **why) {
  Context *context = b->schedule->context;
  const Stmt *store = b->block->body;
  FindIndices find = {b->buffer, b->block};
  Visitor visitor = {.env = &find, .enter_expr = find_indices};
  Map values;
  visit_expr(&visitor, store->as.store.value);
  *why =
      arena_printf(&context->arena, "its value does not read one element of '%s'", b->buffer->name);
  if (!find.load || find.several || expr_reads(b->block->predicate, b->buffer)) return false;
  *why = arena_printf(&context->arena,
                      "its value for the init of block '%s' is not proved to be a start for the "
                      "same reduction: a sum may get more terms, a product more factors, and a "
                      "minimum or maximum more operands",
                      b->into->name);
  if (!commutes_with(b, op, store->as.store.value)) return false;
  *why = "its points are not proved to write different elements";
  if (!variables_at(context, b->block, store->as.store.indices, &values)) return false;
  b->indices = find.load->args;
  return only_writer(b->schedule, blocks, b->into, b->buffer, why) && only_reader(b, blocks, why) &&
         solve_backward(b, why) && move_predicate(b, why) && backward_in_order(b, blocks, why) &&
         consumer_runs_everywhere(b, why) && !storage_is_opaque(b->schedule, b->buffer, why) &&
         path_is_defined_at(b->schedule, &b->consumer, &b->producer, why);
}

// The reduction as one of the elements that the epilogue writes.
static Stmt *fused_reduction(Backward *b, ExprOp op) {
  Context *context = b->schedule->context;
  const Stmt *store = b->block->body;
  const Block *into = b->into;
  int rank = store->as.store.rank;
  Buffer *output = store->as.store.buffer;
  Expr **indices = arena_array(&context->arena, Expr *, rank);
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, into);
  for (int d = 0; d < rank; d++)
    indices[d] = analyzer_simplify(
        analyzer, substitute_expr(context, store->as.store.indices[d], &b->values));
  Block *copy = block_copy(context, into);
  Expr *init = applied_to_init(b, store->as.store.value, into->init->as.store.value,
                               reduction_neutral(context, op, b->buffer->type));
  copy->init =
      stmt_simplify_indices(context, analyzer, stmt_store(context, output, indices, rank, init));
  ReplaceLoad env = {b->buffer, expr_load(context, output, indices, rank)};
  Rewriter rewriter = {.context = context, .env = &env, .expr = replace_load};
  copy->body = stmt_store(context, output, indices, rank,
                          rewrite_expr(&rewriter, into->body->as.store.value));
  copy->body->pos = into->body->pos;
  Map bindings = bindings_of(context, copy);
  if (b->condition)
    copy->predicate =
        condition_and(context, copy->predicate, substitute_expr(context, b->condition, &bindings));
  return stmt_with_block(context, path_end(&b->producer), block_with_regions(context, copy));
}

// Computes in the producer, which is a reduction, what the consumer makes of its result.
static bool fuse_into_reduction(Backward *b, const StmtArray *blocks) {
  Schedule *schedule = b->schedule;
  Stmt *at = path_end(&b->consumer);
  ReductionUpdate update;
  const char *why;
  if (!check_fused(b, &update)) return false;
  if (!check_epilogue(b, blocks, update.op, &why)) return refuse_block(schedule, at, why);
  Path producer;
  schedule_set_body(schedule,
                    path_replace(schedule->context, &b->consumer, b->consumer.count - 1, NULL));
  path_to_block(schedule, b->into->name, &producer);
  schedule_set_body(schedule, path_replace(schedule->context, &producer, producer.count - 1,
                                           fused_reduction(b, update.op)));
  return true;
}

bool step_fuse_reduction_epilogue(Schedule *schedule, StepCall *call) {
  Backward b = {.schedule = schedule};
  const char *why;
  if (!schedule_find_block(schedule, call->args[0].as.block, &b.producer) ||
      !schedule_find_block(schedule, call->args[1].as.block, &b.consumer))
    return false;
  b.into = path_end(&b.producer)->as.block;
  Stmt *at = path_end(&b.consumer);
  b.block = at->as.block;
  StmtArray blocks = {0};
  blocks_all(&schedule->context->arena, schedule->func->body, &blocks);
  if (!is_pointwise(schedule, at, &why)) return refuse_block(schedule, at, why);
  return fuse_into_reduction(&b, &blocks); // the old result's allocation stays, as in TVM
}

// ---- reverse_compute_inline --------------------------------------------------------------------

// Removes the buffer that was between the two blocks from `body`, unless a condition, a bound of a
// loop or a prefetch uses it there.
static bool remove_between(Backward *b, Stmt *body, const Buffer *buffer) {
  Schedule *schedule = b->schedule;
  schedule_set_body(schedule, without_allocation(schedule->context, body, buffer));
  return !stmt_uses(schedule->func->body, buffer->data) ||
         refuse_block(schedule, path_end(&b->consumer),
                      arena_printf(&schedule->context->arena, "'%s' is used outside of blocks too",
                                   buffer->name));
}

// A consumer that only copies the result of a reduction: the reduction writes the copy.
static bool inline_into_reduction(Backward *b, const StmtArray *blocks) {
  const Buffer *result = b->buffer;
  return fuse_into_reduction(b, blocks) && remove_between(b, b->schedule->func->body, result);
}

bool step_reverse_compute_inline(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Backward b = {.schedule = schedule};
  const char *why;
  if (!schedule_find_block(schedule, call->args[0].as.block, &b.consumer)) return false;
  Stmt *at = path_end(&b.consumer);
  b.block = at->as.block;
  StmtArray blocks = {0};
  blocks_all(&context->arena, schedule->func->body, &blocks);
  if (!is_pointwise(schedule, at, &why) || !find_producer(&b, &blocks, &why))
    return refuse_block(schedule, at, why);
  if (b.into->init && is_result(&b, b.block->body->as.store.value))
    return inline_into_reduction(&b, &blocks);
  if (!is_pointwise(schedule, path_end(&b.producer), &why))
    return refuse_block(schedule, at,
                        arena_printf(&context->arena,
                                     "%s; move it there with "
                                     "reverse_compute_at instead",
                                     why));
  if (expr_reads(b.block->predicate, b.buffer))
    return refuse_block(schedule, at,
                        "its T.where reads its producer's buffer, which would not exist there");
  FindIndices find = {b.buffer, b.block};
  Visitor visitor = {.env = &find, .enter_expr = find_indices};
  visit_expr(&visitor, b.block->body->as.store.value);
  if (!find.load || find.several)
    return refuse_block(schedule, at, "it reads several elements of its producer's buffer");
  if (block_reads_conditionally(b.block, b.buffer))
    return refuse_block(
        schedule, at,
        "it reads its producer's buffer under a condition, so not each of its points "
        "reads an element of the producer");
  b.indices = find.load->args;
  if (!only_writer(schedule, &blocks, b.into, b.buffer, &why) || !solve_backward(&b, &why) ||
      !move_predicate(&b, &why) || !backward_in_order(&b, &blocks, &why) ||
      !consumer_runs_everywhere(&b, &why) || storage_is_opaque(schedule, b.buffer, &why) ||
      !path_is_defined_at(schedule, &b.consumer, &b.producer, &why))
    return refuse_block(schedule, at, why);
  Path producer;
  schedule_set_body(schedule, path_replace(context, &b.consumer, b.consumer.count - 1, NULL));
  path_to_block(schedule, b.into->name, &producer);
  Stmt *body = path_replace(context, &producer, producer.count - 1, backward_block(&b));
  return remove_between(&b, body, b.buffer);
}
