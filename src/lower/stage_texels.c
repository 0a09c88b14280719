// SPDX-License-Identifier: Apache-2.0
// Computes the texels that a vectorised loop writes in local memory, where conditions differ
// between the lanes, and then writes them whole, which is the only way to write a texture:
//
//   for c in T.vectorized(4):               lanes = allocate(4)
//     if c < 3: B[x, c] = A[x, c]     →     for c in T.unroll(4):
//                                             lanes[c] = T.if_then_else(c < 3, A[x, c], 0)
//                                           for c in T.vectorized(4): B[x, c] = lanes[c]
//
// This also writes the elements for which the condition of the store does not hold. The pass
// proves that the program gives them no other value: the statement is the only one that stores to
// the texture, and each of its iterations since the allocation has an element of its own.
#include "lower/races.h"

enum { MOST_LANES = 64 };

typedef struct Staging {
  Context *context;
  PtrArray loops; // Stmt *: those around, from the outside in
  Map begin;      // data variable of an allocation → how many loops are around it, plus 1
  Map stores;     // data variable → how many statements store to it; its other uses count twice
} Staging;

// A store in a loop, and the conditions around it.
typedef struct TexelStore {
  Stmt *loop, *store;
  ExprArray lane_conditions, other_conditions;
} TexelStore;

static void count_uses(Staging *staging, const Expr *data, intptr_t count) {
  map_put(&staging->stores, data, (void *)((intptr_t)map_find(&staging->stores, data) + count));
}

static bool count_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR && e->as.var->scope) count_uses(visitor->env, e, 2);
  return true;
}

static bool count_in_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_STORE) count_uses(visitor->env, s->as.store.buffer->data, 1);
  return true;
}

// ---- Elements that nothing else is stored to ---------------------------------------------------

// Do the iterations of the loop `at` of those around the store write different elements, if the
// loops around this one are in the same iteration?
static bool is_apart(const Staging *staging, const TexelStore *texel, int first, int at) {
  int count = staging->loops.count - first + 1;
  VarRange *ranges = arena_array(&staging->context->arena, VarRange, count);
  for (int i = 0; i < count - 1; i++) ranges[i] = loop_range(staging->loops.items[first + i]);
  ranges[count - 1] = loop_range(texel->loop);
  LoopAccess access = {.buffer = texel->store->as.store.buffer,
                       .indices = texel->store->as.store.indices,
                       .writes = true,
                       .ranges = ranges + at + 1,
                       .range_count = count - at - 1};
  RaceQuestion question = {.context = staging->context,
                           .loop = at < count - 1 ? staging->loops.items[first + at] : texel->loop,
                           .outer = ranges,
                           .outer_count = at};
  return lower_layouts_keep_apart(&question, &access, &access);
}

static bool others_hold_nothing(const Staging *staging, const TexelStore *texel) {
  const Expr *data = texel->store->as.store.buffer->data;
  intptr_t begin = (intptr_t)map_find(&staging->begin, data);
  if (!begin || (intptr_t)map_find(&staging->stores, data) != 1) return false;
  int first = (int)begin - 1;
  for (int at = 0; at <= staging->loops.count - first; at++)
    if (!is_apart(staging, texel, first, at)) return false;
  return true;
}

// ---- The two loops -----------------------------------------------------------------------------

static bool see_lane_choice(Visitor *visitor, Expr *e) {
  TexelStore *texel = visitor->env;
  if (e->op == EXPR_IF_THEN_ELSE && expr_uses(e->args[0], texel->loop->as.loop.var))
    texel->loop = NULL;
  return texel->loop != NULL;
}

static bool chooses_lanes(const TexelStore *texel) {
  TexelStore search = *texel;
  visit_expr(&(Visitor){.env = &search, .enter_expr = see_lane_choice},
             texel->store->as.store.value);
  return !search.loop;
}

// Finds the store of the loop; false where the body is another one.
static bool find_store(const Staging *staging, TexelStore *texel) {
  Expr *var = texel->loop->as.loop.var;
  Stmt *s = texel->loop->as.loop.body;
  ExprArray parts = {0};
  for (; s->kind == STMT_IF && !s->as.branch.else_body; s = s->as.branch.then_body)
    expr_conjuncts(staging->context, s->as.branch.condition, &parts);
  for (int i = 0; i < parts.count; i++)
    array_push(&staging->context->arena,
               expr_uses(parts.items[i], var) ? &texel->lane_conditions : &texel->other_conditions,
               parts.items[i]);
  texel->store = s;
  return s->kind == STMT_STORE && scope_is_texture(s->as.store.buffer->scope) &&
         s->as.store.buffer->type.lanes == 1;
}

static Stmt *in_both_loops(Context *context, const TexelStore *texel) {
  Stmt *loop = texel->loop, *store = texel->store, *copy = stmt_copy(context, store);
  Expr *var = loop->as.loop.var, *value = store->as.store.value;
  Buffer *lanes =
      buffer_new(context, "lanes", store->as.store.buffer->type, &loop->as.loop.extent, 1, "local");
  Expr *at = expr_sub(context, var, loop->as.loop.min);
  if (texel->lane_conditions.count)
    value = expr_if_then_else(context, expr_conjunction(context, &texel->lane_conditions), value,
                              expr_const(context, value->type, 0));
  Stmt *fill = stmt_store(context, lanes, &at, 1, value);
  fill->pos = store->pos;
  copy->as.store.value = expr_load(context, lanes, &at, 1);
  Expr *lane = expr_var(context, var->as.var->name, var->type);
  Stmt *items[] = {stmt_for(context, lane, loop->as.loop.min, loop->as.loop.extent, LOOP_UNROLLED,
                            lower_substitute(context, fill, var, lane)),
                   lower_with_body(context, loop, copy)};
  Stmt *both = stmt_allocate(context, lanes, stmt_seq(context, items, 2));
  return stmt_if(context, expr_conjunction(context, &texel->other_conditions), both, NULL);
}

static Stmt *staged(const Staging *staging, Stmt *loop) {
  TexelStore texel = {.loop = loop};
  int64_t lanes;
  if (loop->as.loop.kind != LOOP_VECTORIZED || !expr_as_int(loop->as.loop.extent, &lanes) ||
      lanes > MOST_LANES || !find_store(staging, &texel))
    return NULL;
  bool stages = texel.lane_conditions.count ? others_hold_nothing(staging, &texel)
                                            : chooses_lanes(&texel);
  return stages ? in_both_loops(staging->context, &texel) : NULL;
}

static Stmt *enter_stmt(Rewriter *rewriter, Stmt *s) {
  Staging *staging = rewriter->env;
  if (s->kind == STMT_ALLOCATE)
    map_put(&staging->begin, s->as.allocate.var, (void *)(intptr_t)(staging->loops.count + 1));
  if (s->kind == STMT_WHILE) return s; // how often it runs is not known
  if (s->kind != STMT_FOR) return NULL;
  Stmt *both = staged(staging, s);
  if (both) return both;
  array_push(&staging->context->arena, &staging->loops, s);
  Stmt *next = rewrite_stmt_children(rewriter, s);
  staging->loops.count--;
  return next;
}

PrimFunc *lower_stage_texels(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Staging staging = {
      .context = context, .begin = map_new(&context->arena), .stores = map_new(&context->arena)};
  Visitor counting = {
      .env = &staging, .enter_expr = count_in_expr, .enter_stmt = count_in_stmt};
  visit_stmt(&counting, func->body);
  Rewriter rewriter = {.env = &staging, .enter_stmt = enter_stmt, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
