// SPDX-License-Identifier: Apache-2.0
// Reads the blocks of a tensor program as stages, whatever loops run them:
//   for io, ii in T.grid(4, 8):                       B[a] = A[a] + 1   for a < 30
//     with T.block("B"):
//       T.where(io*8 + ii < 30)                =>
//       v = T.axis.spatial(30, io*8 + ii)
//       B[v] = A[v] + 1
// A block is a stage when the loops around it run it once at each point of its domain, and it
// stores at a different element each time, in all elements of the tensor. The index of the store is
// inverted by the layout algebra, so that it may be any bijection.
#include "graph/call_program.h"

#include "ir/index_map.h"

typedef struct ProgramReader {
  Context *context;
  Te *te;
  Map buffers; // from buffers of the program to those of the stages
  Array(VarRange) loops;
  const char *why;
} ProgramReader;

static bool refuse(ProgramReader *r, const char *why) {
  r->why = why;
  return false;
}

// ---- Values ----------------------------------------------------------------------------------

// Looks for what a value must not have, and for loads of tensors that no earlier block has written.
typedef struct ValueCheck {
  ProgramReader *reader;
  const Buffer *output;
  bool loads_output, good;
} ValueCheck;

static bool check_value(Visitor *visitor, Expr *e) {
  ValueCheck *check = visitor->env;
  if (e->op == EXPR_LET || e->op == EXPR_CALL || e->op == EXPR_ADDRESS_OF || e->type.lanes != 1)
    check->good = false;
  if (e->op != EXPR_LOAD) return check->good;
  if (e->as.buffer == check->output)
    check->loads_output = true;
  else if (!map_contains(&check->reader->buffers, e->as.buffer))
    check->good = false;
  return check->good;
}

static bool value_is_plain(ProgramReader *r, Expr *value, const Buffer *output) {
  ValueCheck check = {r, output, false, true};
  Visitor visitor = {.env = &check, .enter_expr = check_value};
  visit_expr(&visitor, value);
  return (check.good && !check.loads_output && expr_is_pure(value)) ||
         refuse(r, "a value is not made of tensors that are complete");
}

// The operand that a reduction adds to its result so far; NULL when the value is no reduction.
static Expr *reduced_operand(const Stmt *store) {
  Expr *value = store->as.store.value;
  bool combines = value->op == EXPR_ADD || value->op == EXPR_MUL || value->op == EXPR_MIN ||
                  value->op == EXPR_MAX;
  for (int i = 0; combines && i < 2; i++) {
    const Expr *so_far = value->args[i];
    bool own = so_far->op == EXPR_LOAD && so_far->as.buffer == store->as.store.buffer;
    for (int d = 0; own && d < so_far->count; d++)
      own = so_far->args[d] == store->as.store.indices[d];
    if (own) return value->args[1 - i];
  }
  return NULL;
}

// A reduction may begin with its neutral element; a minimum or maximum with any number, since it
// may be taken several times.
static bool may_begin_with(ExprOp combine, const Expr *init) {
  while (init->op == EXPR_CAST) init = init->args[0];
  bool number = init->op == EXPR_INT || init->op == EXPR_FLOAT;
  if (combine == EXPR_MIN || combine == EXPR_MAX) return number;
  double neutral = combine == EXPR_MUL;
  return number && (init->op == EXPR_INT ? (double)init->as.i : init->as.f) == neutral;
}

// ---- One block -------------------------------------------------------------------------------

typedef struct BlockAxes {
  Expr **spatial, **extents;
  int count;
  TeUpdates reduction; // its variables are new
  Map values;          // from the block's variables to expressions of the stage's
} BlockAxes;

static bool read_axes(ProgramReader *r, const Block *block, BlockAxes *axes) {
  Arena *arena = &r->context->arena;
  *axes = (BlockAxes){.spatial = arena_array(arena, Expr *, block->var_count),
                      .extents = arena_array(arena, Expr *, block->var_count),
                      .values = map_new(arena)};
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (!expr_is_int(v->min, 0)) return refuse(r, "a domain does not begin at 0");
    if (iter_is_ordered(v->kind)) return refuse(r, "a block has an axis whose order matters");
    if (v->kind == ITER_SPATIAL) {
      axes->spatial[axes->count] = v->var;
      axes->extents[axes->count++] = v->extent;
      continue;
    }
    TeUpdates *reduction = &axes->reduction;
    if (reduction->count == TE_MAX_RANK) return refuse(r, "a block has too many axes");
    Expr *axis = te_reduce_axis(r->te, v->var->as.var->name, v->extent);
    map_put(&axes->values, v->var, expr_cast(r->context, v->var->type, axis));
    reduction->axes[reduction->count] = axis;
    reduction->extents[reduction->count++] = v->extent;
  }
  return true;
}

static bool is_spatial(const BlockAxes *axes, const Expr *e) {
  for (int i = 0; i < axes->count; i++)
    if (axes->spatial[i] == e) return true;
  return false;
}

// Sets the values of the spatial variables where the stage stores at `at`, when each of them is an
// index of the store.
static bool invert_directly(BlockAxes *axes, const Stmt *store, const TeAxes *at,
                            Context *context) {
  const Buffer *buffer = store->as.store.buffer;
  for (int i = 0; i < axes->count; i++) {
    int found = -1;
    for (int d = 0; d < buffer->rank; d++)
      if (store->as.store.indices[d] == axes->spatial[i]) found = found < 0 ? d : buffer->rank;
    bool whole = found >= 0 && found < buffer->rank && buffer->shape[found] == axes->extents[i];
    bool single = found < 0 && expr_is_int(axes->extents[i], 1);
    if (!whole && !single) return false;
    map_put(&axes->values, axes->spatial[i],
            single ? expr_int(context, axes->spatial[i]->type, 0)
                   : expr_cast(context, axes->spatial[i]->type, at->at[found]));
  }
  for (int d = 0; d < buffer->rank; d++) {
    Expr *index = store->as.store.indices[d];
    bool unit = expr_is_int(index, 0) && expr_is_int(buffer->shape[d], 1);
    if (!is_spatial(axes, index) && !unit) return false;
  }
  return true;
}

// The same for any bijection from the block's domain to the elements of the tensor.
static bool invert_by_algebra(ProgramReader *r, BlockAxes *axes, const Stmt *store,
                              const TeAxes *at) {
  Context *context = r->context;
  const Buffer *buffer = store->as.store.buffer;
  const LayoutExpr *shape[TE_MAX_RANK], *physical[TE_MAX_RANK];
  Expr *values[TE_MAX_RANK], *holds;
  const IndexMap *map = axes->count <= TE_MAX_RANK
                            ? index_map_from_exprs(context, axes->spatial, axes->count,
                                                   store->as.store.indices, buffer->rank, false)
                            : NULL;
  if (!map) return refuse(r, "an index of a store is no index map");
  for (int i = 0; i < axes->count; i++)
    if (!(shape[i] = layout_from_expr(context, axes->extents[i], NULL, 0, false))) return false;
  for (int d = 0; d < buffer->rank; d++)
    if (!(physical[d] = layout_from_expr(context, buffer->shape[d], NULL, 0, false))) return false;
  const Layout *layout = layout_try(context, map, shape, physical, (LayoutFacts){0});
  bool bijective = layout && layout_is_onto(context, layout).verdict == VERDICT_YES &&
                   layout_inverse_exprs(context, layout, at->at, NULL, values, &holds, NULL);
  for (int i = 0; bijective && i < axes->count; i++)
    map_put(&axes->values, axes->spatial[i], expr_cast(context, axes->spatial[i]->type, values[i]));
  return bijective || refuse(r, "a block does not write every element of its tensor once");
}

static Expr *value_for_stage(ProgramReader *r, const BlockAxes *axes, Expr *value) {
  Stmt *carrier = stmt_evaluate(r->context, value);
  return substitute_stmt(r->context, carrier, &axes->values, &r->buffers)->as.evaluate;
}

static bool check_store(ProgramReader *r, const Block *block) {
  const Stmt *store = block->body, *init = block->init;
  if (block->match_count || block->alloc_count) return refuse(r, "a block has buffers of its own");
  if (store->kind != STMT_STORE || (init && init->kind != STMT_STORE))
    return refuse(r, "a block is more than one store");
  const Buffer *buffer = store->as.store.buffer;
  if (map_contains(&r->buffers, buffer)) return refuse(r, "a tensor is written by several blocks");
  if (buffer->rank > TE_MAX_RANK || buffer->type.lanes != 1 || buffer->strides)
    return refuse(r, "a buffer is no plain tensor");
  bool same = !init || init->as.store.buffer == buffer;
  for (int d = 0; init && same && d < buffer->rank; d++)
    same = init->as.store.indices[d] == store->as.store.indices[d];
  return same || refuse(r, "a block begins with another store");
}

static bool read_reduction(ProgramReader *r, const Block *block, BlockAxes *axes, Expr **operand) {
  const Stmt *store = block->body;
  *operand = block->init ? reduced_operand(store) : store->as.store.value;
  if (!block->init && axes->reduction.count) return refuse(r, "a reduction has no initial value");
  if (!*operand || (block->init && !may_begin_with((ExprOp)store->as.store.value->op,
                                                   block->init->as.store.value)))
    return refuse(r, "a reduction is no sum, product, minimum or maximum");
  return value_is_plain(r, *operand, store->as.store.buffer);
}

static void add_stage(ProgramReader *r, const Block *block, const BlockAxes *axes, const TeAxes *at,
                      Expr *operand) {
  Context *context = r->context;
  const Stmt *store = block->body;
  Buffer *buffer = store->as.store.buffer;
  Expr *value = value_for_stage(r, axes, operand);
  TeStage *stage = te_stage(r->te, block->name, buffer->type, buffer->shape, at, &axes->reduction);
  stage->value = value;
  if (block->init && axes->reduction.count) {
    Expr *so_far = expr_load(context, stage->output, at->at, at->rank);
    stage->init = block->init->as.store.value;
    stage->value = expr_binary(context, (ExprOp)store->as.store.value->op, so_far, value);
  } else if (block->init) {
    stage->value =
        expr_binary(context, (ExprOp)store->as.store.value->op, block->init->as.store.value, value);
  }
  map_put(&r->buffers, buffer, stage->output);
}

static bool read_block(ProgramReader *r, const Block *block) {
  BlockAxes axes;
  Expr *operand;
  Analyzer *analyzer = analyzer_new(r->context);
  if (!check_store(r, block) || !read_axes(r, block, &axes)) return false;
  for (int i = 0; i < r->loops.count; i++) {
    const VarRange *loop = &r->loops.items[i];
    analyzer_bind(analyzer, loop->var, loop->min, loop->extent);
  }
  if (bindings_check(analyzer, block, r->loops.items, r->loops.count))
    return refuse(r, "a block does not run once at each point of its domain");
  const Stmt *store = block->body;
  TeAxes at = te_axes(r->te, store->as.store.buffer->shape, store->as.store.buffer->rank);
  if (!read_reduction(r, block, &axes, &operand)) return false;
  if (!invert_directly(&axes, store, &at, r->context) && !invert_by_algebra(r, &axes, store, &at))
    return false;
  add_stage(r, block, &axes, &at, operand);
  return true;
}

// ---- The program -----------------------------------------------------------------------------

static bool read_stmt(ProgramReader *r, const Stmt *s);

static bool read_loop(ProgramReader *r, const Stmt *s) {
  array_push(&r->context->arena, &r->loops, loop_range(s));
  bool read = read_stmt(r, s->as.loop.body);
  r->loops.count--;
  return read;
}

static bool read_stmt(ProgramReader *r, const Stmt *s) {
  if (s->kind == STMT_FOR) return read_loop(r, s);
  if (s->kind == STMT_BLOCK) return read_block(r, s->as.block);
  if (s->kind != STMT_SEQ) return refuse(r, "there are statements outside of blocks");
  for (int i = 0; i < s->as.seq.count; i++)
    if (!read_stmt(r, s->as.seq.items[i])) return false;
  return true;
}

static bool read_program(ProgramReader *r, const PrimFunc *func, int input_count) {
  const Stmt *body = func->body;
  bool has_root = body->kind == STMT_BLOCK && !body->as.block->var_count &&
                  !body->as.block->match_count && !body->as.block->init;
  if (!has_root) return refuse(r, "it has no blocks");
  if (!read_stmt(r, body->as.block->body)) return false;
  for (int i = input_count; i < func->param_count; i++)
    if (!map_contains(&r->buffers, func->buffers[i])) return refuse(r, "a result is not written");
  return true;
}

bool program_read_stages(Te *te, const PrimFunc *func, Buffer *const *inputs, int input_count,
                         const char **why) {
  Context *context = te->context;
  ProgramReader r = {.context = context, .te = te, .buffers = map_new(&context->arena)};
  int stages = te->stages.count;
  for (int i = 0; i < input_count; i++) map_put(&r.buffers, func->buffers[i], inputs[i]);
  bool read = read_program(&r, func, input_count);
  if (!read) te->stages.count = stages;
  for (int i = input_count; read && i < func->param_count; i++)
    array_push(&context->arena, &te->outputs, map_find(&r.buffers, func->buffers[i]));
  if (why) *why = r.why;
  return read;
}
