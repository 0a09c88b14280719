// SPDX-License-Identifier: Apache-2.0
// Implements cache_index, which computes values that depend on a block's variables alone, such as
// indices, once for each of their values and before the block's nest:
//   for i, j: B[i, j] = A[i // 4 + j // 4]
//   =>  for i, j: index_var_0[i, j] = i // 4 + j // 4
//       for i, j: B[i, j] = A[index_var_0[i, j]]
// A value is stored where the block computes it at least as often as the threshold; one that occurs
// less often gives its occurrences to its operands.
#include "schedule/internal.h"

typedef struct IndexCandidate {
  Expr *value;
  int count; // how often the block computes it
  int size;  // nodes
} IndexCandidate;

typedef struct IndexCaching {
  Schedule *schedule;
  Path path;
  const Block *block;
  Map sizes;                        // the variables in the parameters' shapes, by name
  Array(IndexCandidate) candidates; // the largest first
  const Expr *whole;                // whose operands are counted, and not itself; NULL: none
  int times;                        // what each occurrence counts
} IndexCaching;

enum { MOST_INDEX_NODES = 1 << 12 };

// ---- Finding the values ----------------------------------------------------------------------

static bool is_block_variable(const Block *block, const Expr *e) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].var == e) return true;
  return false;
}

typedef struct Eligibility {
  const IndexCaching *c;
  bool ok, varies;
} Eligibility;

// Rejects what another iteration, or a place before the conditions of the block, may compute in
// another way or not at all.
static bool enter_part(Visitor *visitor, Expr *e) {
  Eligibility *state = visitor->env;
  if (e->op == EXPR_VAR) {
    bool own = is_block_variable(state->c->block, e);
    state->varies |= own;
    state->ok &= own || map_find(&state->c->sizes, e->as.var->name) == e;
  }
  state->ok &= e->op != EXPR_LOAD && e->op != EXPR_LET && e->op != EXPR_STRING &&
               e->op != EXPR_TUPLE && !expr_is_call(e) && !expr_may_divide_by_zero(e);
  return state->ok;
}

static bool is_eligible(const IndexCaching *c, Expr *e) {
  if (!e->count || e->type.lanes != 1 || dtype_is_bool(e->type) || !expr_is_pure(e) ||
      expr_reads_memory(e))
    return false;
  Eligibility state = {c, true, false};
  Visitor visitor = {.env = &state, .enter_expr = enter_part};
  visit_expr(&visitor, e);
  return state.ok && state.varies;
}

static void count_value(IndexCaching *c, Expr *e) {
  for (int i = 0; i < c->candidates.count; i++)
    if (c->candidates.items[i].value == e) {
      c->candidates.items[i].count += c->times;
      return;
    }
  IndexCandidate new = {e, c->times, expr_tree_size(e, NULL, 0, MOST_INDEX_NODES)};
  array_push(&c->schedule->context->arena, &c->candidates, new);
  int at = c->candidates.count - 1;
  for (; at > 0 && c->candidates.items[at - 1].size < new.size; at--)
    c->candidates.items[at] = c->candidates.items[at - 1];
  c->candidates.items[at] = new;
}

static bool enter_value(Visitor *visitor, Expr *e) {
  IndexCaching *c = visitor->env;
  if (e == c->whole || !is_eligible(c, e)) return true;
  count_value(c, e);
  return false;
}

// Counts the largest values that can be stored, and the operands of those that occur less than
// `least` times.
static void find_values(IndexCaching *c, int64_t least) {
  Visitor visitor = {.env = c, .enter_expr = enter_value};
  c->times = 1;
  visit_stmt(&visitor, c->block->body);
  for (int i = 0; i < c->candidates.count; i++) {
    IndexCandidate candidate = c->candidates.items[i];
    if (candidate.count >= least) continue;
    c->whole = candidate.value;
    c->times = candidate.count;
    visit_expr(&visitor, candidate.value); // smaller ones, which come behind it
  }
}

// ---- Storing a value -------------------------------------------------------------------------

typedef struct UsedVars {
  const Block *block;
  Arena *arena;
  Array(const BlockVar *) vars; // in the order in which the value has them
} UsedVars;

static bool enter_use(Visitor *visitor, Expr *e) {
  UsedVars *used = visitor->env;
  for (int i = 0; i < used->block->var_count; i++) {
    const BlockVar *v = &used->block->vars[i];
    bool known = v->var != e;
    for (int k = 0; k < used->vars.count; k++) known |= used->vars.items[k] == v;
    if (!known) array_push(used->arena, &used->vars, v);
  }
  return true;
}

typedef struct StoredValue {
  Expr *value;
  Buffer *buffer;
  Expr *load; // in the block
  Stmt *nest;
} StoredValue;

// The nest that stores the value for all values of its variables.
static void store_value(const IndexCaching *c, int number, Str name, Str scope, StoredValue *out) {
  Context *context = c->schedule->context;
  UsedVars used = {c->block, &context->arena};
  Visitor visitor = {.env = &used, .enter_expr = enter_use};
  visit_expr(&visitor, out->value);
  int rank = used.vars.count;
  Expr **shape = arena_array(&context->arena, Expr *, rank);
  Expr **loops = arena_array(&context->arena, Expr *, rank);
  Expr **outside = arena_array(&context->arena, Expr *, rank);
  Expr **inside = arena_array(&context->arena, Expr *, rank);
  Block *block = arena_new(&context->arena, Block);
  Map vars = map_new(&context->arena);
  block->name = name;
  block->var_count = rank;
  block->vars = arena_array(&context->arena, BlockVar, rank);
  for (int d = 0; d < rank; d++) {
    const BlockVar *v = used.vars.items[d];
    Expr *var = expr_var(context, arena_printf(&context->arena, "v%d", d), v->var->type);
    loops[d] = expr_var(context, arena_printf(&context->arena, "ax%d", d), v->var->type);
    shape[d] = v->extent;
    outside[d] = expr_sub(context, v->var, v->min);
    inside[d] = expr_sub(context, var, v->min);
    block->vars[d] =
        (BlockVar){var, v->min, v->extent, ITER_SPATIAL, expr_add(context, v->min, loops[d])};
    map_put(&vars, v->var, var);
  }
  out->buffer = buffer_new(context, arena_printf(&context->arena, "index_var_%d", number),
                           out->value->type, shape, rank, scope);
  out->load = expr_load(context, out->buffer, outside, rank);
  block->predicate = expr_bool(context, true);
  block->body =
      stmt_store(context, out->buffer, inside, rank, substitute_expr(context, out->value, &vars));
  out->nest =
      block_in_loops(context, loops, stmt_block(context, block_with_regions(context, block)));
}

static Expr *load_value(Rewriter *rewriter, Expr *e) {
  const StoredValue *stored = rewriter->env;
  return e == stored->value ? stored->load : e;
}

static bool check_caching(IndexCaching *c, const StepCall *call) {
  Schedule *schedule = c->schedule;
  if (!schedule_find_block(schedule, call->args[0].as.block, &c->path)) return false;
  Stmt *at = path_end(&c->path);
  StmtArray inner = {0};
  c->block = at->as.block;
  if (path_scope(&c->path, c->path.count - 1) < 0)
    return schedule_refuse(schedule, at->pos, "the root block itself computes no index");
  blocks_below(&schedule->context->arena, at, &inner);
  if (inner.count)
    return schedule_refuse(schedule, at->pos, "block '%s' has blocks inside", c->block->name);
  if (value_int_or(&call->args[2], 0) < 0)
    return schedule_refuse(schedule, at->pos, "cse_thresh is not negative");
  c->sizes = schedule_size_symbols(schedule);
  return schedule_check_scope(schedule, at, call->args[1].as.s);
}

bool step_cache_index(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  IndexCaching c = {.schedule = schedule};
  if (!check_caching(&c, call)) return false;
  int64_t least = value_int_or(&call->args[2], 0);
  find_values(&c, least);
  Block *block = block_copy(context, c.block);
  Array(StoredValue) stored = {0};
  for (int i = 0; i < c.candidates.count; i++) {
    if (c.candidates.items[i].count < least) continue;
    Str name = schedule_unique_name(schedule, str_format(context, "index_%d", stored.count));
    StoredValue value = {c.candidates.items[i].value};
    store_value(&c, stored.count, name, call->args[1].as.s, &value);
    Rewriter rewriter = {.context = context, .env = &value, .expr = load_value};
    block->body = rewrite_stmt(&rewriter, block->body);
    array_push(&context->arena, &stored, value);
    step_result(schedule, call, value_block(name));
  }
  path_replace_block(schedule, &c.path, block_with_regions(context, block));
  for (int i = 0; i < stored.count; i++) {
    path_to_block(schedule, c.block->name, &c.path);
    int top = path_nest_top(&c.path, c.path.count - 1);
    path_place_beside(schedule, &c.path, top, c.path.items[top], stored.items[i].nest, false,
                      stored.items[i].buffer);
  }
  return true;
}
