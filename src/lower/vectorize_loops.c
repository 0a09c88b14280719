// SPDX-License-Identifier: Apache-2.0
// Turns vectorised loops of constant extent into vector operations. The buffers may have several
// axes, and the lanes are then neighbours along the last one.
//
//   for v in T.vectorized(16): C[i * 16 + v] = A[i * 16 + v] * B[0]
//     →  C[T.Ramp(i * 16, 1, 16)] = A[T.Ramp(i * 16, 1, 16)] * T.Broadcast(B[0], 16)
//
// An extent that is not a power of two is cut into pieces (10 = 8 + 2). So are the lanes for which
// a condition holds, where they are known and consecutive, unless the other lanes can be stored
// back: in memory of this thread a whole vector is chosen from, and what would be loaded from
// outside of a buffer for the other lanes is that of the nearest lane. Sums, minima and maxima over
// all lanes into one element become one vector operation and a reduction of its lanes. An extent
// that is a multiple of T.vscale() becomes one vector of scalable length.
//
// A statement that cannot be a vector becomes a scalar loop over the lanes and is counted; the
// smallest such statement is taken. These are: a condition that differs between lanes around a
// store to memory which other threads may access, or around a load that is not proved to be inside
// its buffer; calls; and loops whose bounds differ between lanes.
#include "lower/pass.h"

#include "script/script.h"

typedef struct Vector {
  LowerState *state;
  Context *context;
  Analyzer *analyzer;
  Expr *var, *first; // the loop's variable, and its value in lane 0
  int lanes;
  Map values;   // variables that differ between lanes → their vectors
  int from, to; // the lanes that count, where only some do: 0 and 0 if all of them do
  int lets;     // LET statements around that differ between lanes
  bool failed;  // the current expression cannot be a vector
  bool silent;  // another piece of the loop has noted its accesses
  // The access that made the last statement a scalar loop; NULL: something else.
  const char *blocker;
} Vector;

// ---- Expressions

static Expr *vector_of(Vector *vector, Expr *e);

static bool differs(const Vector *vector, Expr *e) {
  for (int i = 0; i < vector->values.count; i++)
    if (expr_uses(e, (Expr *)(uintptr_t)vector->values.entries[i].key)) return true;
  return false;
}

static bool is_scalable(const Vector *vector) {
  return (vector->lanes & DTYPE_SCALABLE) != 0;
}

// The number of lanes as a value of the type of the loop's variable.
static Expr *lane_count(const Vector *vector) {
  DType type = vector->var->type;
  return expr_lanes(vector->context, type, dtype_lanes(type, vector->lanes));
}

// Whether the index of every lane is inside the buffer, also where the conditions around the access
// do not hold.
static bool stays_inside(Vector *vector, Expr *e) {
  int64_t low, high, size;
  for (int i = 0; i < e->count; i++)
    if (!expr_as_int(e->as.buffer->shape[i], &size) ||
        !analyzer_const_bounds(vector->analyzer, e->args[i], &low, &high) || low < 0 ||
        high >= size)
      return false;
  return true;
}

typedef struct Safety {
  Vector *vector;
  bool loads; // whether loads must be inside of their buffers
  bool safe;
} Safety;

static bool enter_unsafe(Visitor *visitor, Expr *e) {
  Safety *safety = visitor->env;
  if (expr_may_divide_by_zero(e) || expr_is_call(e)) safety->safe = false;
  if (e->op == EXPR_LOAD && safety->loads && !stays_inside(safety->vector, e)) safety->safe = false;
  return safety->safe;
}

// Whether `e` may be computed where its condition does not hold; without `loads`, if its loads take
// only the lanes that count.
static bool is_safe(Vector *vector, Expr *e, bool loads) {
  Safety safety = {vector, loads, true};
  Visitor visitor = {.env = &safety, .enter_expr = enter_unsafe};
  visit_expr(&visitor, e);
  return safety.safe;
}

// An index of the form base + stride * lane as a ramp; NULL for any other index.
static Expr *ramp_of(Vector *vector, Expr *index) {
  Expr *base;
  int64_t stride;
  Context *context = vector->context;
  if (!linear_form(context, index, &vector->var, 1, &stride, &base) || differs(vector, base))
    return NULL;
  Expr *first = expr_cast(context, base->type, vector->first);
  Expr *step = expr_int(context, base->type, stride);
  base = expr_add(context, base, expr_mul(context, first, step));
  return expr_ramp(context, base, step, vector->lanes);
}

static Expr *index_vector(Vector *vector, Expr *index) {
  if (!differs(vector, index)) return index;
  Expr *ramp = ramp_of(vector, index);
  if (ramp) return ramp;
  index = analyzer_simplify(vector->analyzer, index);
  if (!differs(vector, index)) return index;
  ramp = ramp_of(vector, index);
  return ramp ? ramp : vector_of(vector, index);
}

// ---- Accesses that are not contiguous

// An access of a buffer that is not a vector yet, and the logical one that it came from.
typedef struct LaneAccess {
  Buffer *buffer;
  Expr *const *indices;
  int rank;
  const Expr *origin; // may be NULL
} LaneAccess;

static Expr *in_lane(const Vector *vector, Expr *e, int lane) {
  Context *context = vector->context;
  Expr *at = expr_add(context, vector->first, expr_int(context, vector->var->type, lane));
  Map values = map_new(&context->arena);
  map_put(&values, vector->var, at);
  return analyzer_simplify(vector->analyzer, substitute_expr(context, e, &values));
}

static Buffer *accessed(const LaneAccess *access) {
  return access->origin ? access->origin->as.buffer : access->buffer;
}

// The element that a lane accesses, as text.
static const char *element_in_lane(const Vector *vector, const LaneAccess *access, int lane) {
  Context *context = vector->context;
  int rank = access->origin ? access->origin->count : access->rank;
  Expr *const *from = access->origin ? access->origin->args : access->indices;
  Expr **indices = arena_array(&context->arena, Expr *, rank);
  for (int d = 0; d < rank; d++) indices[d] = in_lane(vector, from[d], lane);
  return script_expr_text(context, expr_load(context, accessed(access), indices, rank));
}

// Finds the first lane whose next one is not its neighbour, and the distance between these two in
// elements; NULL where all lanes are neighbours. Stores whether all lanes have the same distance.
static Expr *first_jump(const Vector *vector, Expr *index, int *lane, bool *constant) {
  Context *context = vector->context;
  int count = is_scalable(vector) ? 2 : vector->lanes;
  Expr *found = NULL;
  *constant = true;
  for (int i = 0; i + 1 < count; i++) {
    Expr *step = expr_sub(context, in_lane(vector, index, i + 1), in_lane(vector, index, i));
    step = analyzer_simplify(vector->analyzer, step);
    *constant &= !found || found == step;
    if (found || expr_is_int(step, 1)) continue;
    *constant &= i == 0;
    found = step;
    *lane = i;
  }
  return found;
}

// Says of an access whose lanes are not neighbours which two of them are not, and where they are.
static const char *describe_gather(const Vector *vector, const Expr *lanes,
                                   const LaneAccess *access) {
  Context *context = vector->context;
  Expr *index = access->indices[access->rank - 1];
  int lane = 0;
  bool constant = true;
  Expr *step =
      lanes->op == EXPR_RAMP ? lanes->args[1] : first_jump(vector, index, &lane, &constant);
  if (!step) return NULL;
  const char *stride =
      constant ? arena_printf(&context->arena, "the stride is %s", script_expr_text(context, step))
               : "the stride differs between iterations";
  return arena_printf(
      &context->arena,
      "accesses of %s along loop %s are not contiguous: %s, as %s is at %s and %s at %s",
      accessed(access)->name, vector->var->as.var->name, stride,
      element_in_lane(vector, access, lane),
      script_expr_text(context, in_lane(vector, index, lane)),
      element_in_lane(vector, access, lane + 1),
      script_expr_text(context, in_lane(vector, index, lane + 1)));
}

static void note_gather(Vector *vector, const Expr *index, const LaneAccess *access) {
  if (index->type.lanes == 1 || (index->op == EXPR_RAMP && expr_is_int(index->args[1], 1))) return;
  const char *note = vector->silent ? NULL : describe_gather(vector, index, access);
  if (note)
    lower_note(vector->state, LOWER_GATHERS, "%s", note);
  else
    vector->state->report->counts[LOWER_GATHERS]++;
}

// Takes back what was noted of accesses since there were so many counts and notes.
static void forget_gathers(const Vector *vector, int gathers, int notes) {
  vector->state->report->counts[LOWER_GATHERS] = gathers;
  vector->state->report->notes.count = notes;
}

// The index in the lanes that count, and in each other lane the index of the nearest of them; NULL
// where the distance of the lanes is not known, or so large that the load would be a gather.
static Expr *near_index(Vector *vector, Expr *index) {
  Context *context = vector->context;
  Expr *ramp = ramp_of(vector, analyzer_simplify(vector->analyzer, index));
  int64_t stride;
  if (!ramp || !expr_as_int(ramp->args[1], &stride) || stride < 1 || stride > MOST_SHUFFLED_STRIDE)
    return NULL;
  DType type = ramp->args[0]->type;
  Expr *steps = expr_ramp(context, expr_int(context, type, 0), ramp->args[1], vector->lanes);
  Expr *last = expr_int(context, type, stride * (vector->to - 1));
  Expr *first = expr_int(context, type, stride * vector->from);
  if (vector->to < vector->lanes)
    steps = expr_binary(context, EXPR_MIN, steps, expr_broadcast(context, last, vector->lanes));
  if (vector->from > 0)
    steps = expr_binary(context, EXPR_MAX, steps, expr_broadcast(context, first, vector->lanes));
  return expr_add(context, expr_broadcast(context, ramp->args[0], vector->lanes), steps);
}

// An index in all lanes, or only in those that count.
static Expr *lane_index(Vector *vector, Expr *index, bool near) {
  if (!near || !differs(vector, index)) return index_vector(vector, index);
  Expr *result = near_index(vector, index);
  if (!result) vector->failed = true;
  return result;
}

// Only the last index may be a vector, and the buffer then holds scalars. There are several indices
// where a flat buffer has axis separators.
static bool may_be_vector(Vector *vector, const LaneAccess *access, Expr *const *indices) {
  Context *context = vector->context;
  for (int i = 0; i < access->rank; i++) {
    if (indices[i]->type.lanes == 1) continue;
    if (access->buffer->type.lanes > 1) return false;
    if (i + 1 == access->rank) continue;
    vector->blocker = arena_printf(
        &context->arena,
        "accesses of %s along loop %s move along axis %d of its memory, not along the last one, "
        "as %s and %s",
        accessed(access)->name, vector->var->as.var->name, i, element_in_lane(vector, access, 0),
        element_in_lane(vector, access, 1));
    return false;
  }
  return true;
}

// The logical access in all lanes; NULL where its indices cannot be vectors.
static Expr *vector_origin(Vector *vector, Expr *origin, bool near) {
  if (!origin || vector->failed) return NULL;
  Expr **indices = arena_array(&vector->context->arena, Expr *, origin->count);
  LowerReport *report = vector->state->report;
  int gathers = report->counts[LOWER_GATHERS], notes = report->notes.count;
  for (int i = 0; i < origin->count; i++) indices[i] = lane_index(vector, origin->args[i], near);
  bool failed = vector->failed;
  vector->failed = false;
  forget_gathers(vector, gathers, notes);
  return failed ? NULL
                : expr_raw(vector->context, EXPR_LOAD, origin->type, origin->as.buffer, indices,
                           origin->count);
}

static Expr *vector_load(Vector *vector, Expr *e) {
  Expr **indices = arena_array(&vector->context->arena, Expr *, e->count);
  bool near = vector->to && !stays_inside(vector, e);
  for (int i = 0; i < e->count; i++) indices[i] = lane_index(vector, e->args[i], near);
  LaneAccess access = {e->as.buffer, e->args, e->count, expr_origin(e)};
  if (!vector->failed && !may_be_vector(vector, &access, indices)) vector->failed = true;
  if (e->count && !vector->failed && !near) note_gather(vector, indices[e->count - 1], &access);
  if (vector->failed) return e;
  Expr *load = expr_load(vector->context, e->as.buffer, indices, e->count);
  expr_set_origin(vector->context, load, vector_origin(vector, expr_origin(e), near));
  return load;
}

static Expr *vector_choice(Vector *vector, Expr *e) {
  Context *context = vector->context;
  Expr *condition = vector_of(vector, e->args[0]);
  bool masked = condition->type.lanes > 1;
  if (masked && e->op == EXPR_IF_THEN_ELSE &&
      !(is_safe(vector, e->args[1], true) && is_safe(vector, e->args[2], true)))
    vector->failed = true;
  Expr *a = vector_of(vector, e->args[1]);
  Expr *b = vector_of(vector, e->args[2]);
  if (vector->failed) return e;
  if (masked) return expr_select(context, condition, a, b);
  return e->op == EXPR_SELECT ? expr_select(context, condition, a, b)
                              : expr_if_then_else(context, condition, a, b);
}

static Expr *vector_let(Vector *vector, Expr *e) {
  Context *context = vector->context;
  Expr *value = vector_of(vector, e->args[1]);
  if (vector->failed) return e;
  Expr *var = e->args[0];
  if (value->type.lanes > 1) {
    var = expr_var(context, e->args[0]->as.var->name, value->type);
    map_put(&vector->values, e->args[0], var);
  }
  Expr *body = vector_of(vector, e->args[2]);
  return vector->failed ? e : expr_let(context, var, value, body);
}

static Expr *spread(Vector *vector, Expr *e) {
  return e->type.lanes == 1 ? expr_broadcast(vector->context, e, vector->lanes) : e;
}

static bool is_number(const Expr *e) {
  return e->op == EXPR_INT || e->op == EXPR_FLOAT;
}

// The builders broadcast a scalar operand beside a vector, except in calls of many operands.
static Expr *vector_operands(Vector *vector, Expr *e) {
  Context *context = vector->context;
  const OpInfo *info = &op_table[e->op];
  if (info->class == OP_VECTOR || info->class == OP_MEMORY || info->arity < 0)
    vector->failed = true;
  if (vector->failed) return e;
  Expr **args = arena_array(&context->arena, Expr *, e->count);
  for (int i = 0; i < e->count; i++) args[i] = vector_of(vector, e->args[i]);
  for (int i = 0; i < e->count; i++) args[i] = spread(vector, args[i]);
  if (vector->failed) return e;
  if (e->op == EXPR_CAST && args[0]->op == EXPR_RAMP && dtype_is_int(e->type)) {
    DType scalar = e->type;
    return expr_ramp(context, expr_cast(context, scalar, args[0]->args[0]),
                     expr_cast(context, scalar, args[0]->args[1]), vector->lanes);
  }
  // A number that a script states on the left, T.Mul(2, x), stays there.
  bool is_left = info->arity == 2 && info->result != OP_GIVEN && is_number(e->args[0]);
  if (!is_left || is_number(e->args[1])) return expr_with_args(context, e, args);
  return expr_raw(context, e->op, expr_result_type(e->op, args[0]->type), NULL, args, 2);
}

// Functions of LLVM take vectors as they take scalars. The first operand is the name.
static Expr *vector_call(Vector *vector, Expr *e) {
  Context *context = vector->context;
  if (strcmp(e->as.s, "call_llvm_pure_intrin") != 0) vector->failed = true;
  Expr **args = arena_copy(&context->arena, e->args, sizeof *args * (size_t)e->count);
  for (int i = 1; i < e->count; i++) args[i] = spread(vector, vector_of(vector, e->args[i]));
  DType type = dtype_lanes(e->type, vector->lanes);
  return vector->failed ? e : expr_raw(context, e->op, type, e->as.s, args, e->count);
}

// `e` in all lanes: itself when they agree, otherwise a vector with `lanes` times as many lanes.
static Expr *vector_of(Vector *vector, Expr *e) {
  if (vector->failed || !differs(vector, e)) return e;
  Expr *known = map_find(&vector->values, e);
  if (known) return known;
  if (e->type.lanes > 1) vector->failed = true;
  if (vector->failed) return e;
  switch ((ExprOp)e->op) {
  case EXPR_LOAD: return vector_load(vector, e);
  case EXPR_SELECT:
  case EXPR_IF_THEN_ELSE: return vector_choice(vector, e);
  case EXPR_LET: return vector_let(vector, e);
  case EXPR_INTRINSIC_PURE: return vector_call(vector, e);
  default: return vector_operands(vector, e);
  }
}

// ---- Statements: NULL where it cannot be done

static Stmt *vector_stmt(Vector *vector, Stmt *s);

static Expr *try_vector(Vector *vector, Expr *e) {
  vector->failed = false;
  Expr *result = vector_of(vector, e);
  return vector->failed ? NULL : result;
}

// B[k] = B[k] op x(lane)  →  B[k] = B[k] op reduce(x)
static Stmt *reduce_lanes(Vector *vector, Stmt *s) {
  Expr *value = s->as.store.value;
  ExprOp reduce = value->op == EXPR_ADD   ? EXPR_VECTOR_SUM
                  : value->op == EXPR_MIN ? EXPR_VECTOR_MIN
                  : value->op == EXPR_MAX ? EXPR_VECTOR_MAX
                                          : EXPR_OP_COUNT;
  if (reduce == EXPR_OP_COUNT || is_scalable(vector)) return NULL;
  int self = expr_loads_stored(value->args[0], s) ? 0 : 1;
  if (!expr_loads_stored(value->args[self], s)) return NULL;
  Expr *x = try_vector(vector, value->args[1 - self]);
  if (!x) return NULL;
  Context *context = vector->context;
  Expr *sum = expr_unary(context, reduce, spread(vector, x));
  Stmt *next = stmt_copy(context, s);
  next->as.store.value = expr_binary(context, value->op, value->args[self], sum);
  return next;
}

static bool reads_buffer(Expr *e, const Buffer *buffer) {
  if (e->op == EXPR_LOAD && e->as.buffer->data == buffer->data) return true;
  for (int i = 0; i < e->count; i++)
    if (reads_buffer(e->args[i], buffer)) return true;
  return false;
}

static Stmt *vector_store(Vector *vector, Stmt *s) {
  Context *context = vector->context;
  int rank = s->as.store.rank;
  bool moves = false;
  for (int i = 0; i < rank; i++) moves |= differs(vector, s->as.store.indices[i]);
  if (!moves) {
    bool same = !differs(vector, s->as.store.value);
    return same && !reads_buffer(s->as.store.value, s->as.store.buffer) ? s
                                                                        : reduce_lanes(vector, s);
  }
  Expr **indices = arena_array(&context->arena, Expr *, rank);
  vector->failed = false;
  for (int i = 0; i < rank; i++) indices[i] = index_vector(vector, s->as.store.indices[i]);
  Expr *last = indices[rank - 1];
  LaneAccess access = {s->as.store.buffer, s->as.store.indices, rank, s->as.store.origin};
  if (vector->failed || !may_be_vector(vector, &access, indices) || last->type.lanes == 1)
    return NULL;
  Expr *value = try_vector(vector, s->as.store.value);
  if (!value) return NULL;
  note_gather(vector, last, &access);
  Stmt *next = stmt_copy(context, s);
  next->as.store.indices = indices;
  next->as.store.value = spread(vector, value);
  next->as.store.origin = vector_origin(vector, s->as.store.origin, false);
  return next;
}

// A store under a condition that differs between lanes, to memory that only this thread accesses:
// the other lanes are loaded and stored back.
static Stmt *masked_store(Vector *vector, Expr *condition, Stmt *s) {
  if (s->kind != STMT_STORE || s->as.store.rank != 1 || !buffer_is_local(s->as.store.buffer))
    return NULL;
  Context *context = vector->context;
  Expr *old = expr_load(context, s->as.store.buffer, s->as.store.indices, 1);
  if (!is_safe(vector, old, true) || !is_safe(vector, s->as.store.value, true)) return NULL;
  Stmt *next = stmt_copy(context, s);
  next->as.store.value = expr_select(context, condition, s->as.store.value, old);
  return vector_store(vector, next);
}

// ---- A condition that holds for neighbouring lanes

// Has the expression one value, by its form or by the facts about its parts? Facts bound the digits
// of a loop that was made of several, so only the ends of the expression's range are asked for.
static bool one_value(Context *context, Analyzer *analyzer, Expr *e, int64_t *value) {
  int64_t low, high;
  e = analyzer_simplify(analyzer, e);
  if (expr_as_int(e, value)) return true;
  if (!analyzer_const_bounds(analyzer, e, &low, &high)) return false;
  *value = high;
  if (analyzer_prove(analyzer, expr_binary(context, EXPR_GE, e, expr_int(context, e->type, high))))
    return true;
  *value = low;
  return analyzer_prove(analyzer,
                        expr_binary(context, EXPR_LE, e, expr_int(context, e->type, low)));
}

// Narrows the lanes *from ≤ lane < *to by a condition that is linear in the variable; false for any
// other condition.
static bool narrow_lanes(Vector *vector, Expr *condition, int64_t *from, int64_t *to) {
  Context *context = vector->context;
  ConditionKind kind;
  Expr *form, *base;
  int64_t c, k;
  if (!lower_condition_form(context, condition, &kind, &form) || kind == CONDITION_DIFFERENT ||
      !linear_form(context, form, &vector->var, 1, &c, &base) || c == 0)
    return false;
  Expr *first = expr_cast(context, base->type, vector->first);
  base = expr_add(context, base, expr_mul(context, first, expr_int(context, base->type, c)));
  if (!one_value(context, vector->analyzer, base, &k)) return false;
  if (c > 0 || kind == CONDITION_EQUAL)
    *from = MAX_OF(*from, c > 0 ? ceil_div(-k, c) : ceil_div(k, -c));
  if (c < 0 || kind == CONDITION_EQUAL)
    *to = MIN_OF(*to, 1 + (c < 0 ? floor_div(k, -c) : floor_div(-k, c)));
  return true;
}

static Stmt *vector_or_scalar(Vector *vector, Stmt *s);

// `s` in `lanes` lanes, the first of which is lane `from`.
static Stmt *some_lanes(Vector *vector, Stmt *s, int64_t from, int lanes) {
  Context *context = vector->context;
  Expr *one = expr_int(context, vector->var->type, 1);
  Expr *first = expr_add(context, vector->first, expr_int(context, one->type, from));
  s = stmt_renew(context, s);
  if (lanes == 1) return lower_substitute(context, s, vector->var, first);
  Vector part = *vector;
  part.first = first;
  part.lanes = lanes;
  part.values = map_new(&context->arena);
  map_put(&part.values, vector->var, expr_ramp(context, first, one, lanes));
  int mark = analyzer_mark(vector->analyzer);
  Expr *from_first = expr_binary(context, EXPR_GE, vector->var, first);
  Expr *end = expr_add(context, first, expr_int(context, one->type, lanes));
  analyzer_assume(vector->analyzer,
                  expr_and(context, from_first, expr_lt(context, vector->var, end)));
  Stmt *result = vector_or_scalar(&part, s);
  analyzer_reset(vector->analyzer, mark);
  return result;
}

// Whether each lane counts.
static Expr *lane_mask(Context *context, int lanes, int64_t from, int64_t to) {
  Expr *zero = expr_int(context, DTYPE_INT32, 0), *one = expr_int(context, DTYPE_INT32, 1);
  Expr *numbers = expr_ramp(context, zero, one, lanes);
  Expr *first = expr_broadcast(context, expr_int(context, DTYPE_INT32, from), lanes);
  Expr *end = expr_broadcast(context, expr_int(context, DTYPE_INT32, to), lanes);
  Expr *begun = from > 0 ? expr_binary(context, EXPR_GE, numbers, first) : NULL;
  Expr *before_end = to < lanes ? expr_lt(context, numbers, end) : NULL;
  return !begun ? before_end : before_end ? expr_and(context, begun, before_end) : begun;
}

// A store in the lanes from ≤ lane < to, to memory that only this thread accesses, as one vector:
// the other lanes are stored back.
static Stmt *store_in_lanes(Vector *vector, Stmt *s, int64_t from, int64_t to) {
  if (s->kind != STMT_STORE || s->as.store.rank != 1 || !buffer_is_local(s->as.store.buffer) ||
      from >= to || to - from == vector->lanes)
    return NULL;
  Context *context = vector->context;
  Expr *old = expr_load(context, s->as.store.buffer, s->as.store.indices, 1);
  if (!is_safe(vector, old, true) || !is_safe(vector, s->as.store.value, false)) return NULL;
  vector->from = (int)from;
  vector->to = (int)to;
  Stmt *next = vector_store(vector, s);
  vector->from = vector->to = 0;
  if (!next || next->as.store.indices[0]->type.lanes != vector->lanes) return NULL;
  old = expr_load(context, s->as.store.buffer, next->as.store.indices, 1);
  Expr *mask = lane_mask(context, vector->lanes, from, to);
  next->as.store.value = expr_select(context, mask, next->as.store.value, old);
  return next;
}

// The statement of an if in the lanes where its condition holds: as one vector, or in pieces of
// powers of two.
static Stmt *chosen_lanes(Vector *vector, Stmt *s) {
  Context *context = vector->context;
  ExprArray parts = {0}, rest = {0};
  Array(Stmt *) items = {0};
  int64_t from = 0, to = vector->lanes;
  if (vector->lets || is_scalable(vector)) return NULL;
  expr_conjuncts(context, s->as.branch.condition, &parts);
  for (int i = 0; i < parts.count; i++)
    if (!differs(vector, parts.items[i]))
      array_push(&context->arena, &rest, parts.items[i]);
    else if (!narrow_lanes(vector, parts.items[i], &from, &to))
      return NULL;
  Stmt *whole = store_in_lanes(vector, s->as.branch.then_body, from, to);
  if (whole) return stmt_if(context, expr_conjunction(context, &rest), whole, NULL);
  for (int lanes = vector->lanes; lanes >= 1; lanes /= 2)
    for (; to - from >= lanes; from += lanes)
      array_push(&context->arena, &items, some_lanes(vector, s->as.branch.then_body, from, lanes));
  Stmt *all = stmt_seq(context, items.items, items.count);
  return stmt_if(context, expr_conjunction(context, &rest), all, NULL);
}

// A branch under a condition that all lanes share. Where the condition reads memory, which the
// lanes may write, all of the branch runs lane after lane or none.
static Stmt *shared_branch(Vector *vector, Expr *condition, Stmt *s) {
  return s && expr_reads_memory(condition) ? vector_stmt(vector, s)
         : s                               ? vector_or_scalar(vector, s)
                                           : NULL;
}

static Stmt *vector_branch(Vector *vector, Stmt *s) {
  Context *context = vector->context;
  Expr *condition = s->as.branch.condition;
  if (differs(vector, condition)) {
    if (s->as.branch.else_body) return NULL;
    Stmt *masked = masked_store(vector, condition, s->as.branch.then_body);
    return masked ? masked : chosen_lanes(vector, s);
  }
  Stmt *then_body = shared_branch(vector, condition, s->as.branch.then_body);
  Stmt *else_body = shared_branch(vector, condition, s->as.branch.else_body);
  if (!then_body || (s->as.branch.else_body && !else_body)) return NULL;
  return stmt_if(context, condition, then_body, else_body);
}

static Stmt *vector_let_stmt(Vector *vector, Stmt *s) {
  Expr *value = try_vector(vector, s->as.let.value), *var = s->as.let.var;
  if (!value) return NULL;
  bool differ = value->type.lanes > 1;
  if (differ) {
    var = expr_var(vector->context, s->as.let.var->as.var->name, value->type);
    map_put(&vector->values, s->as.let.var, var);
  }
  vector->lets += differ;
  Stmt *body = vector_stmt(vector, s->as.let.body);
  vector->lets -= differ;
  return body ? stmt_let(vector->context, var, value, body) : NULL;
}

static Stmt *vector_inner_loop(Vector *vector, Stmt *s) {
  if (differs(vector, s->as.loop.min) || differs(vector, s->as.loop.extent)) return NULL;
  int mark = analyzer_mark(vector->analyzer);
  analyzer_bind(vector->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  Stmt *body = vector_stmt(vector, s->as.loop.body);
  analyzer_reset(vector->analyzer, mark);
  return body ? lower_with_body(vector->context, s, body) : NULL;
}

// A prefetch is done for the first lane; the other lanes are in the same cache line or close to it.
static Stmt *vector_evaluate(Vector *vector, Stmt *s) {
  Expr *e = s->as.evaluate;
  if (!differs(vector, e)) return expr_is_pure(e) || e->op == EXPR_PREFETCH ? s : NULL;
  if (e->op != EXPR_PREFETCH) return expr_is_pure(e) ? stmt_nothing(vector->context) : NULL;
  return lower_substitute(vector->context, s, vector->var, vector->first);
}

static Stmt *scalar_loop(Vector *vector, Stmt *s) {
  Context *context = vector->context;
  Expr *lane = expr_var(context, vector->var->as.var->name, vector->var->type);
  Expr *at = expr_add(context, vector->first, lane);
  Stmt *body = lower_substitute(context, stmt_renew(context, s), vector->var, at);
  if (vector->blocker && !vector->silent)
    lower_note(vector->state, LOWER_SCALARIZED, "%s", vector->blocker);
  else
    vector->state->report->counts[LOWER_SCALARIZED]++;
  return stmt_for(context, lane, expr_int(context, lane->type, 0), lane_count(vector), LOOP_SERIAL,
                  body);
}

// A scalar loop may replace a statement only when no let around it became a vector.
static bool may_be_scalar(const Vector *vector) {
  return vector->lets == 0;
}

static Stmt *vector_or_scalar(Vector *vector, Stmt *s) {
  LowerReport *report = vector->state->report;
  int gathers = report->counts[LOWER_GATHERS], notes = report->notes.count;
  vector->blocker = NULL;
  Stmt *next = vector_stmt(vector, s);
  if (next || !may_be_scalar(vector)) return next;
  forget_gathers(vector, gathers, notes);
  return scalar_loop(vector, s);
}

static Stmt *vector_seq(Vector *vector, Stmt *s) {
  Stmt **items = arena_array(&vector->context->arena, Stmt *, s->as.seq.count);
  for (int i = 0; i < s->as.seq.count; i++) {
    items[i] = vector_or_scalar(vector, s->as.seq.items[i]);
    if (!items[i]) return NULL;
  }
  return stmt_seq(vector->context, items, s->as.seq.count);
}

static Stmt *vector_scope(Vector *vector, Stmt *s) {
  Stmt *body = vector_stmt(vector, lower_body(s));
  return body ? lower_with_body(vector->context, s, body) : NULL;
}

static Stmt *vector_stmt(Vector *vector, Stmt *s) {
  switch (s->kind) {
  case STMT_STORE: return vector_store(vector, s);
  case STMT_IF: return vector_branch(vector, s);
  case STMT_LET: return vector_let_stmt(vector, s);
  case STMT_FOR: return vector_inner_loop(vector, s);
  case STMT_EVALUATE: return vector_evaluate(vector, s);
  case STMT_SEQ: return vector_seq(vector, s);
  case STMT_DECL_BUFFER:
  case STMT_ATTR: return vector_scope(vector, s);
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_BLOCK:
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST: break;
  }
  return NULL;
}

// ---- One element for all lanes

typedef struct LaneSearch {
  Vector *vector;
  int stores;
  bool shared; // all lanes of a store write one element
} LaneSearch;

static bool enter_store(Visitor *visitor, Stmt *s) {
  LaneSearch *search = visitor->env;
  if (s->kind != STMT_STORE) return true;
  bool moves = false;
  for (int i = 0; i < s->as.store.rank; i++)
    moves |= expr_uses(s->as.store.indices[i], search->vector->var);
  search->shared |= !moves;
  search->stores++;
  return true;
}

// Whether a statement may read what another one wrote to an element that all lanes share. Such
// statements must run lane after lane.
static bool hands_on(Vector *vector, Stmt *body) {
  LaneSearch search = {vector, 0, false};
  Visitor visitor = {.env = &search, .enter_stmt = enter_store};
  visit_stmt(&visitor, body);
  return search.shared && search.stores > 1;
}

// ---- Loops

typedef struct Vectorization {
  LowerState *state;
  Analyzer *analyzer;
  bool noted; // a piece of the current loop has noted its accesses
} Vectorization;

// `lanes` iterations of the body, which begin with `first`.
static Stmt *piece(Vectorization *env, Stmt *loop, Expr *first, int lanes) {
  Context *context = env->state->context;
  Expr *var = loop->as.loop.var;
  Stmt *body = stmt_renew(context, loop->as.loop.body);
  if (lanes == 1) return lower_substitute(context, body, var, first);
  Vector vector = {.state = env->state,
                   .context = context,
                   .analyzer = env->analyzer,
                   .var = var,
                   .first = first,
                   .lanes = lanes,
                   .values = map_new(&context->arena),
                   .silent = env->noted};
  env->noted = true;
  Expr *one = expr_int(context, var->type, 1);
  map_put(&vector.values, var, expr_ramp(context, first, one, lanes));
  int mark = analyzer_mark(env->analyzer);
  analyzer_bind(env->analyzer, var, first, lane_count(&vector));
  Stmt *result =
      hands_on(&vector, body) ? scalar_loop(&vector, body) : vector_or_scalar(&vector, body);
  analyzer_reset(env->analyzer, mark);
  return result;
}

static Stmt *serial(Vectorization *env, Stmt *loop, const char *why) {
  Stmt *next = stmt_copy(env->state->context, loop);
  next->as.loop.kind = LOOP_SERIAL;
  lower_note(env->state, LOWER_SCALARIZED, "loop %s is not vectorised: %s",
             loop->as.loop.var->as.var->name, why);
  return next;
}

// A loop over vectors of the most lanes, then the iterations that are left in powers of two.
static Stmt *in_pieces(Vectorization *env, Stmt *loop, int64_t extent) {
  Context *context = env->state->context;
  DType type = loop->as.loop.var->type;
  Array(Stmt *) items = {0};
  int most = env->state->options->device ? LOWER_DEVICE_LANES : LOWER_MAX_LANES;
  int64_t at = 0, whole = extent / most;
  if (whole > 1) {
    Expr *outer = expr_var(context, loop->as.loop.var->as.var->name, type);
    Expr *step = expr_mul(context, outer, expr_int(context, type, most));
    int mark = analyzer_mark(env->analyzer);
    Expr *zero = expr_int(context, type, 0), *count = expr_int(context, type, whole);
    analyzer_bind(env->analyzer, outer, zero, count);
    Stmt *body = piece(env, loop, expr_add(context, loop->as.loop.min, step), most);
    analyzer_reset(env->analyzer, mark);
    array_push(&context->arena, &items, stmt_for(context, outer, zero, count, LOOP_SERIAL, body));
    at = whole * most;
  }
  for (int lanes = most; lanes >= 1; lanes /= 2)
    for (; extent - at >= lanes; at += lanes) {
      Expr *first = expr_add(context, loop->as.loop.min, expr_int(context, type, at));
      array_push(&context->arena, &items, piece(env, loop, first, lanes));
    }
  return stmt_seq(context, items.items, items.count);
}

static Stmt *vectorize(Vectorization *env, Stmt *loop) {
  int64_t extent;
  int lanes;
  bool is_constant = expr_as_int(loop->as.loop.extent, &extent);
  if (!is_constant && !expr_scalable_lanes(loop->as.loop.extent, &lanes))
    return serial(env, loop, "its extent is not constant");
  env->state->report->counts[LOWER_VECTORIZED]++;
  env->noted = false;
  return is_constant ? in_pieces(env, loop, extent) : piece(env, loop, loop->as.loop.min, lanes);
}

static Stmt *enter_branch(Rewriter *rewriter, Stmt *s) {
  const Vectorization *env = rewriter->env;
  Context *context = env->state->context;
  Expr *condition = s->as.branch.condition, *opposite = expr_unary(context, EXPR_NOT, condition);
  Analyzer *analyzer = env->analyzer;
  Stmt *then_body = lower_rewrite_under(rewriter, analyzer, condition, s->as.branch.then_body);
  Stmt *else_body = lower_rewrite_under(rewriter, analyzer, opposite, s->as.branch.else_body);
  return stmt_if(context, condition, then_body, else_body);
}

static Stmt *enter_loop(Rewriter *rewriter, Stmt *s) {
  Vectorization *env = rewriter->env;
  if (s->kind == STMT_IF) return enter_branch(rewriter, s);
  if (s->kind != STMT_FOR) return NULL;
  int mark = analyzer_mark(env->analyzer);
  analyzer_bind(env->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  Stmt *next = rewrite_stmt_children(rewriter, s);
  analyzer_reset(env->analyzer, mark);
  return next->as.loop.kind == LOOP_VECTORIZED ? vectorize(env, next) : next;
}

static Stmt *as_serial(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_FOR || s->as.loop.kind != LOOP_VECTORIZED) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.loop.kind = LOOP_SERIAL;
  return next;
}

PrimFunc *lower_vectorize_loops(LowerState *state, PrimFunc *func) {
  bool vectorizes = true;
  if (!lower_take_flag(state, "enable_vectorize", &vectorizes)) return NULL;
  if (!vectorizes) return lower_rewrite(state, func, &(Rewriter){.stmt = as_serial});
  Vectorization env = {.state = state, .analyzer = analyzer_new(state->context)};
  Rewriter rewriter = {.env = &env, .enter_stmt = enter_loop};
  return lower_rewrite(state, func, &rewriter);
}
