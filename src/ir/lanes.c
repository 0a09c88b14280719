// SPDX-License-Identifier: Apache-2.0
// Writes the store of a vector as a vectorised loop over its lanes, so that a condition of several
// lanes decides for each of them whether memory is accessed.
//
//   B[i:i + 4] = T.if_then_else(T.Ramp(i, 1, 4) < n, A[i:i + 4], 0)
//   →
//   for lane in T.vectorized(4):
//       B[i + lane] = T.if_then_else(i + lane < n, A[i + lane], 0)
//
// Where the value reads other elements of the memory that is stored to, all lanes are computed
// before the first one is stored.
#include "ir/intrinsic.h"
#include "ir/lanes.h"

typedef struct Lanes {
  Context *context;
  Expr *lane; // the number of the lane
  Map vars;   // vector variables of LETs to those of one lane
  Map memo;
  bool ok;
} Lanes;

static Expr *lane_of(Lanes *l, Expr *e);

static Expr *lane_of_let(Lanes *l, Expr *e) {
  Expr *value = lane_of(l, e->args[1]), *var = e->args[0];
  if (var->type.lanes > 1) {
    var = expr_var(l->context, var->as.var->name, value->type);
    map_put(&l->vars, e->args[0], var);
  }
  return expr_let(l->context, var, value, lane_of(l, e->args[2]));
}

static bool is_lanewise(const Expr *e) {
  switch (op_table[e->op].class) {
  case OP_ARITH:
  case OP_COMPARE:
  case OP_LOGIC:
  case OP_BIT:
  case OP_MATH:
  case OP_CHOICE: return true;
  default:
    return e->op == EXPR_CAST || e->op == EXPR_LIKELY || e->op == EXPR_CALL_PURE ||
           (e->op == EXPR_LOAD && e->as.buffer->type.lanes == 1);
  }
}

static Expr *lane_of_operation(Lanes *l, Expr *e) {
  Context *context = l->context;
  Expr **args = arena_array(&context->scratch, Expr *, e->count);
  for (int i = 0; i < e->count; i++) args[i] = lane_of(l, e->args[i]);
  DType type = dtype_lanes(e->type, 1);
  if (e->op == EXPR_CAST) return expr_cast(context, type, args[0]);
  if (e->op == EXPR_LOAD) return expr_load(context, e->as.buffer, args, e->count);
  Expr *like =
      expr_raw(context, e->op, type, e->op == EXPR_CALL_PURE ? e->as.s : NULL, args, e->count);
  return expr_with_args(context, like, args);
}

static Expr *lane_made(Lanes *l, Expr *e) {
  Context *context = l->context;
  if (e->type.lanes == 1 || !l->ok) return e;
  if (e->op == EXPR_BROADCAST && e->args[0]->type.lanes == 1) return e->args[0];
  if (e->op == EXPR_VAR && map_contains(&l->vars, e)) return map_find(&l->vars, e);
  if (e->op == EXPR_RAMP && e->args[0]->type.lanes == 1) {
    Expr *lane = expr_cast(context, e->args[0]->type, l->lane);
    return expr_add(context, e->args[0], expr_mul(context, e->args[1], lane));
  }
  if (e->op == EXPR_LET) return lane_of_let(l, e);
  if (is_lanewise(e)) return lane_of_operation(l, e);
  Expr *value = intrinsic_value(context, e);
  if (value) return lane_of(l, value);
  l->ok = false;
  return e;
}

static Expr *lane_of(Lanes *l, Expr *e) {
  Expr *known = map_find(&l->memo, e);
  if (known) return known;
  known = lane_made(l, e);
  map_put(&l->memo, e, known);
  return known;
}

// ---- Stores

typedef struct StoredReads {
  const Stmt *store;
  bool others; // elements of the same memory at other indices
} StoredReads;

static bool see_read(Visitor *visitor, Expr *e) {
  StoredReads *reads = visitor->env;
  const Stmt *s = reads->store;
  if (e->op != EXPR_LOAD || e->as.buffer->data != s->as.store.buffer->data) return true;
  bool same = e->as.buffer == s->as.store.buffer &&
              !memcmp(e->args, s->as.store.indices, sizeof(Expr *) * (size_t)e->count);
  reads->others |= !same;
  return true;
}

static bool reads_others(const Stmt *store) {
  StoredReads reads = {store, false};
  visit_expr(&(Visitor){.env = &reads, .enter_expr = see_read}, store->as.store.value);
  return reads.others;
}

static Stmt *lane_loop(Lanes *l, int lanes, Expr *condition, Stmt *body) {
  Context *context = l->context;
  if (condition) body = stmt_if(context, lane_of(l, condition), body, NULL);
  return stmt_for(context, l->lane, expr_int(context, DTYPE_INT32, 0),
                  expr_int(context, DTYPE_INT32, lanes), LOOP_VECTORIZED, body);
}

static Lanes lanes_new(Context *context) {
  return (Lanes){.context = context,
                 .lane = expr_var(context, "lane", DTYPE_INT32),
                 .vars = map_new(&context->scratch),
                 .memo = map_new(&context->scratch),
                 .ok = true};
}

// The loop that computes the lanes of the value in a buffer of its own.
static Stmt *computed_first(Context *context, const Stmt *s, Expr *condition, Buffer *local,
                            bool *ok) {
  Lanes l = lanes_new(context);
  Stmt *store = stmt_store(context, local, &l.lane, 1, lane_of(&l, s->as.store.value));
  Stmt *loop = lane_loop(&l, s->as.store.value->type.lanes, condition, store);
  *ok &= l.ok;
  return loop;
}

Stmt *stmt_lane_loop(Context *context, Stmt *s, Expr *condition) {
  Expr *value = s->as.store.value;
  int64_t lanes = value->type.lanes;
  bool fits = s->as.store.buffer->type.lanes == 1 && lanes > 1 && !dtype_is_scalable(value->type);
  if (!fits) return NULL;
  bool ok = true, apart = reads_others(s);
  Buffer *local = buffer_static(context, "lanes", dtype_lanes(value->type, 1), &lanes, 1, "local");
  Lanes l = lanes_new(context);
  Expr **indices = arena_array(&context->arena, Expr *, s->as.store.rank);
  for (int i = 0; i < s->as.store.rank; i++) indices[i] = lane_of(&l, s->as.store.indices[i]);
  Expr *stored = apart ? expr_load(context, local, &l.lane, 1) : lane_of(&l, value);
  Stmt *store = stmt_store(context, s->as.store.buffer, indices, s->as.store.rank, stored);
  store->pos = s->pos;
  Stmt *loop = lane_loop(&l, (int)lanes, condition, store);
  loop->pos = s->pos;
  if (apart) {
    Stmt *both[] = {computed_first(context, s, condition, local, &ok), loop};
    loop = stmt_allocate(context, local, stmt_seq(context, both, 2));
  }
  return l.ok && ok ? loop : NULL;
}
