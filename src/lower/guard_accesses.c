// SPDX-License-Identifier: Apache-2.0
// Proves that each access is inside of its buffer, from the ranges of loops and the conditions
// around the access. An access that leaves its buffer for some iteration is an error, which shows
// that iteration. An access that is neither proved nor refuted gets a guard, which skips it and
// notes its index:
//
//   for i in range(5):                           faults = allocate(2)
//     for j in range(7):                         for i in range(5):
//       C[i, j] = A[idx[i], j]             →       if 0 <= idx[i] and idx[i] < 30:
//                                                    for j in range(7):
//                                                      C[i, j] = A[idx[i], j]
//                                                  else:
//                                                    faults[0] = idx[i]
//                                                    faults[1] = 31
//
// A division of integers whose divisor is not proved to be another number than 0 gets one too, or
// is an error. An assertion that is not proved gets one for the statements after it.
//
// A guard stands around the outermost statement in which its condition keeps one value and the
// access always happens, but inside of parallel loops. Guard k notes the index in faults[2*k], and
// after it the extent + 1 in faults[2*k + 1]; the caller clears `faults` before a run and looks
// at it afterwards (LowerKernel). Without LowerOptions.guards, and for a function that was lowered
// already, the pass does nothing. A serial loop that may run long ends at a fault, so that the
// caller gets the message soon.
#include "lower/pass.h"
#include "runtime/guards.h"
#include "script/script.h"

enum { MOST_ASSERTS = 1000 };  // each nests the statements after it
enum { SHORT_LOOP = 1 << 20 }; // iterations that a loop may run after a fault

typedef struct PendingGuard {
  Expr *condition;
  Expr *index, *extent;
  Buffer *buffer; // what is accessed
  SourcePos pos;
  int number;
} PendingGuard;

typedef struct Guarding {
  LowerState *state;
  Context *context;
  Analyzer *analyzer;
  AccessScope scope;           // what surrounds the visited access
  Array(PendingGuard) pending; // must stand around the visited statement or further out
  Array(AccessGuard) guards;   // all of them
  int choices;                 // T.Select around the visited access
  Map proved;                  // accesses of the visited statement that need nothing more
  Map memory;                  // from data variables to the bytes of their memory, as Expr*
  Map beyond;                  // buffers that are not proved to be inside of their memory
  Map wide;                    // variables of fewer than 32 bits to int32 ones of the same range
  SourcePos pos;
  Expr *origin; // of the visited access (expr_origin), or NULL
  Buffer *faults;
  Map awaited; // the numbers of the guards, plus 1, whose faults end a loop
  int asserts; // that are checked at run time
  bool ok;
} Guarding;

static Stmt *guarded(Guarding *g, Stmt *s);
static void check_expr(Guarding *g, Expr *e);

// ---- Facts

static bool loads_data(Visitor *visitor, Expr *e) {
  void **env = visitor->env;
  if (e->op == EXPR_LOAD && e->as.buffer->data == env[0]) *(bool *)env[1] = true;
  return true;
}

static bool condition_loads(const Expr *condition, const Expr *data) {
  bool found = false;
  Visitor visitor = {.env = (void *[]){(void *)data, &found}, .enter_expr = loads_data};
  visit_expr(&visitor, (Expr *)condition);
  return found;
}

// Statements that may change what a condition loads. `hoisted`: also those that may end before the
// guarded access, and parallel loops, which must stay outermost.
typedef struct Obstacles {
  const Expr *condition;
  bool hoisted, found;
} Obstacles;

static bool see_obstacle(Visitor *visitor, Stmt *s) {
  Obstacles *obstacles = visitor->env;
  bool parallel = s->kind == STMT_FOR && s->as.loop.kind == LOOP_PARALLEL;
  obstacles->found |= s->kind == STMT_EVALUATE;
  obstacles->found |= obstacles->hoisted && (parallel || s->kind == STMT_WHILE);
  obstacles->found |=
      s->kind == STMT_STORE && condition_loads(obstacles->condition, s->as.store.buffer->data);
  return !obstacles->found;
}

static bool has_obstacle(Stmt *s, const Expr *condition, bool hoisted) {
  Obstacles obstacles = {condition, hoisted, false};
  visit_stmt(&(Visitor){.env = &obstacles, .enter_stmt = see_obstacle}, s);
  return obstacles.found;
}

// The condition holds in all of `s`; NULL: in what is visited next.
static void assume_in(Guarding *g, Expr *condition, Stmt *s) {
  if (!expr_reads_memory(condition) || (s && !has_obstacle(s, condition, false)))
    analyzer_assume(g->analyzer, condition);
}

// ---- One access

// An index that was widened is shown as it was written.
static const char *access_text(Guarding *g, Buffer *buffer, Expr *const *indices, int rank) {
  bool is_written = g->origin && g->origin->op == EXPR_LOAD && g->origin->as.buffer == buffer;
  if (is_written) return script_expr_text(g->context, g->origin);
  return script_expr_text(g->context, expr_load(g->context, buffer, indices, rank));
}

// How to write a choice whose other value must not be computed.
static const char *choice_advice(const Guarding *g) {
  return g->choices ? "\nT.Select computes both of its values; T.if_then_else computes the chosen "
                      "one, and the pass guard_selects (RewriteUnsafeSelect) writes it"
                    : "";
}

static void report_outside(Guarding *g, const char *access, int axis,
                           const AccessWitness *witness) {
  SourcePos pos = g->pos.file ? g->pos : (SourcePos){0};
  const char *where =
      axis == GUARD_MEMORY ? "its memory" : arena_printf(&g->context->arena, "axis %d", axis);
  diag_error(g->context, pos, "%s is out of bounds%s: index %lld of %s is outside of [0, %lld)%s",
             access, access_witness_text(g->context, witness), (long long)witness->index, where,
             (long long)witness->extent, choice_advice(g));
  g->ok = false;
}

static void report_division(Guarding *g, const char *division, const AccessWitness *witness) {
  SourcePos pos = g->pos.file ? g->pos : (SourcePos){0};
  diag_error(g->context, pos, "%s is a division by 0%s%s", division,
             access_witness_text(g->context, witness), choice_advice(g));
  g->ok = false;
}

// The condition under which an expression inside of a statement is evaluated.
static Expr *evaluated(Guarding *g) {
  Expr *all = expr_bool(g->context, true);
  for (int i = 0; i < g->scope.inner.count; i++)
    all = expr_and(g->context, all, g->scope.inner.items[i]);
  return all;
}

// `buffer` is NULL for a division.
static void add_guard(Guarding *g, Buffer *buffer, const char *access, int axis, Expr *index,
                      Expr *extent, Expr *inside) {
  Context *context = g->context;
  Expr *evaluates = evaluated(g);
  if (!expr_is_true(evaluates)) // the second operand of `or` is evaluated if the first is false
    inside = expr_binary(context, EXPR_OR, expr_unary(context, EXPR_NOT, evaluates), inside);
  for (int i = 0; i < g->pending.count; i++)
    if (g->pending.items[i].condition == inside) return;
  PendingGuard guard = {inside, index, extent, buffer, g->pos, g->guards.count};
  array_push(&context->arena, &g->pending, guard);
  AccessGuard entry = {str_intern(context, access), axis, g->pos};
  array_push(&context->arena, &g->guards, entry);
}

// ---- Indices of fewer than 32 bits

static bool fits(Guarding *g, Expr *wide, DType type) {
  int64_t low, high, most = (int64_t)1 << (type.bits - 1);
  return analyzer_const_bounds(g->analyzer, wide, &low, &high) && low >= -most && high < most;
}

// The value of a narrow expression as int32, which the analyzer knows more of; NULL where an
// operation is not proved to stay in its type, so that it may wrap around.
static Expr *widened(Guarding *g, Expr *e) {
  Context *context = g->context;
  if (e->type.code != TYPE_INT || e->type.lanes > 1) return NULL;
  if (e->type.bits >= 32) return e;
  if (e->op == EXPR_INT) return expr_int(context, DTYPE_INT32, e->as.i);
  if (e->op == EXPR_VAR) return map_find(&g->wide, e);
  bool is_sum = e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_MUL;
  if (e->op != EXPR_CAST && !is_sum) return NULL;
  Expr *a = widened(g, e->args[0]), *b = is_sum ? widened(g, e->args[1]) : NULL;
  if (!a || (is_sum && !b)) return NULL;
  Expr *wide = is_sum ? expr_binary(context, e->op, a, b) : a;
  return fits(g, wide, e->type) ? wide : NULL;
}

static bool narrow_is_inside(Guarding *g, Expr *index, Expr *extent) {
  Context *context = g->context;
  if (index->type.bits >= 32) return false;
  Expr *wide = widened(g, index);
  return wide && analyzer_prove_within(g->analyzer, wide, expr_int(context, wide->type, 0),
                                       expr_cast(context, wide->type, extent));
}

// Gives the variable of a loop of fewer than 32 bits an int32 one.
static void bind_wide(Guarding *g, VarRange range) {
  int64_t min, extent;
  bool is_narrow = range.var->type.code == TYPE_INT && range.var->type.bits < 32;
  if (!is_narrow || !expr_as_int(range.min, &min) || !expr_as_int(range.extent, &extent)) return;
  Expr *wide = expr_var(g->context, range.var->as.var->name, DTYPE_INT32);
  analyzer_bind_kept(g->analyzer, wide, expr_int(g->context, DTYPE_INT32, min),
                     expr_int(g->context, DTYPE_INT32, extent));
  map_put(&g->wide, range.var, wide);
}

static void check_index(Guarding *g, Buffer *buffer, const char **access, Expr *const *indices,
                        int axis, Expr *index, Expr *extent) {
  Context *context = g->context;
  Expr *zero = expr_int(context, index->type, 0);
  Expr *inside = analyzer_unproved_within(g->analyzer, index, zero, extent);
  if (expr_is_true(inside) || narrow_is_inside(g, index, extent)) return;
  if (!*access) *access = access_text(g, buffer, indices, buffer->rank);
  AccessWitness witness;
  if (access_find_witness(context, &g->scope, index, extent, &witness)) {
    report_outside(g, *access, axis, &witness);
    return;
  }
  add_guard(g, buffer, *access, axis, index, extent, inside);
}

// The least and the largest index of the lanes, which are the same for an index of one lane. The
// first and the last lane decide for a range.
static void index_limits(Context *context, Expr *index, Expr **least, Expr **largest) {
  if (index->op == EXPR_BROADCAST) index = index->args[0];
  *least = *largest = index;
  if (index->op == EXPR_RAMP) {
    DType type = index->args[1]->type;
    Expr *steps =
        expr_sub(context, expr_lanes(context, type, index->type), expr_int(context, type, 1));
    Expr *reach = expr_mul(context, index->args[1], steps);
    *least = index->args[0];
    *largest = expr_add(context, index->args[0], reach);
  }
  if ((*least)->type.lanes > 1) {
    *largest = expr_unary(context, EXPR_VECTOR_MAX, *largest);
    *least = expr_unary(context, EXPR_VECTOR_MIN, *least);
  }
}

static Expr *to_int64(Context *context, Expr *e) {
  return expr_cast(context, DTYPE_INT64, e);
}

// The number of the element in the memory of an alias.
static Expr *memory_index(Context *context, const Buffer *buffer, Expr *const *indices) {
  Expr **strides = arena_array(&context->arena, Expr *, buffer->rank);
  Expr *number = to_int64(context, buffer->offset);
  buffer_stride_exprs(context, buffer, strides);
  for (int d = 0; d < buffer->rank; d++)
    number =
        expr_add(context, number,
                 expr_mul(context, to_int64(context, indices[d]), to_int64(context, strides[d])));
  return number;
}

static Expr *element_bytes(Context *context, const Buffer *buffer) {
  return expr_int(context, DTYPE_INT64, buffer_element_bytes(buffer));
}

static void check_access(Guarding *g, Buffer *buffer, Expr *const *indices, int rank,
                         Expr *origin) {
  Context *context = g->context;
  g->origin = origin;
  const char *access = NULL;
  Expr **least = arena_array(&context->arena, Expr *, rank);
  Expr **largest = arena_array(&context->arena, Expr *, rank);
  for (int d = 0; d < rank && g->ok; d++) {
    index_limits(context, indices[d], &least[d], &largest[d]);
    if (largest[d] != least[d])
      check_index(g, buffer, &access, indices, d, largest[d], buffer->shape[d]);
    check_index(g, buffer, &access, indices, d, least[d], buffer->shape[d]);
  }
  if (!g->ok || !map_contains(&g->beyond, buffer)) return;
  Expr *bytes = map_find(&g->memory, buffer->data);
  Expr *extent = analyzer_simplify(g->analyzer,
                                   expr_floor_div(context, bytes, element_bytes(context, buffer)));
  Expr *last = memory_index(context, buffer, largest),
       *first = memory_index(context, buffer, least);
  if (last != first) check_index(g, buffer, &access, indices, GUARD_MEMORY, last, extent);
  check_index(g, buffer, &access, indices, GUARD_MEMORY, first, extent);
}

// ---- Divisions

// A division of integers by 0 ends a process, so its statement is skipped and the division noted.
static void check_division(Guarding *g, Expr *e) {
  Context *context = g->context;
  Expr *divisor = e->args[1]->op == EXPR_BROADCAST ? e->args[1]->args[0] : e->args[1];
  Expr *zero = expr_const(context, divisor->type, 0);
  Expr *inside = expr_binary(context, EXPR_NE, divisor, zero);
  if (divisor->type.lanes > 1) { // of all lanes
    Expr *one = expr_const(context, divisor->type, 1);
    Expr *least = expr_unary(context, EXPR_VECTOR_MIN, expr_select(context, inside, one, zero));
    inside = expr_lt(context, expr_const(context, least->type, 0), least);
  }
  if (!g->ok || analyzer_prove(g->analyzer, inside)) return;
  const char *division = script_expr_text(context, e);
  Expr *none = expr_index(context, 0), *one = expr_index(context, 1);
  Expr *is_zero = expr_binary(context, EXPR_EQ, divisor, zero); // as the index 1 of [0, 1)
  AccessWitness witness;
  if (divisor->type.lanes == 1 &&
      access_find_witness(context, &g->scope, expr_select(context, is_zero, one, none), one,
                          &witness))
    report_division(g, division, &witness);
  else
    add_guard(g, NULL, division, GUARD_DIVISION, none, none, inside);
}

// ---- Memory of buffers

// The bytes from the beginning of the memory to the end of the buffer's last element, where it has
// elements.
static Expr *bytes_to_end(Context *context, const Buffer *buffer) {
  Expr **last = arena_array(&context->arena, Expr *, buffer->rank);
  Expr *one = expr_int(context, DTYPE_INT64, 1);
  for (int d = 0; d < buffer->rank; d++)
    last[d] = expr_sub(context, to_int64(context, buffer->shape[d]), one);
  Expr *count = expr_add(context, memory_index(context, buffer, last), one);
  return expr_mul(context, count, element_bytes(context, buffer));
}

static void add_memory(Guarding *g, const Stmt *s) {
  Context *context = g->context;
  if (s->kind == STMT_ALLOCATE_CONST) {
    Expr *bytes = expr_int(context, DTYPE_INT64, (int64_t)s->as.allocate_const.data->bytes);
    map_put(&g->memory, s->as.allocate_const.var, bytes);
    return;
  }
  Buffer whole = {.type = s->as.allocate.type,
                  .rank = s->as.allocate.rank,
                  .shape = s->as.allocate.extents,
                  .offset = expr_int(context, DTYPE_INT64, 0)};
  map_put(&g->memory, s->as.allocate.var, bytes_to_end(context, &whole));
}

static bool is_not_negative(Guarding *g, Expr *e) {
  return analyzer_prove(g->analyzer,
                        expr_binary(g->context, EXPR_LE, expr_int(g->context, e->type, 0), e));
}

// No element is before the first one, and that one is in the memory.
static bool begins_inside(Guarding *g, const Buffer *buffer) {
  bool ok = is_not_negative(g, buffer->offset);
  for (int d = 0; ok && buffer->strides && d < buffer->rank; d++)
    ok = is_not_negative(g, buffer->strides[d]);
  return ok;
}

// Notes an alias that is not proved to be inside of the memory.
static void add_alias(Guarding *g, Buffer *buffer) {
  Expr *bytes = map_find(&g->memory, buffer->data);
  if (!bytes) return;
  Expr *end = bytes_to_end(g->context, buffer);
  Expr *fits = expr_binary(g->context, EXPR_LE, end, bytes);
  bool inside = end == bytes || analyzer_prove(g->analyzer, fits);
  if (!inside || !begins_inside(g, buffer)) map_put(&g->beyond, buffer, buffer);
}

// ---- Expressions

// `e` is evaluated where the condition holds. One of several lanes decides for none: all lanes of
// `e` are evaluated.
static void check_under(Guarding *g, Expr *e, Expr *condition) {
  if (condition->type.lanes > 1) {
    check_expr(g, e);
    return;
  }
  int mark = analyzer_mark(g->analyzer);
  if (!expr_reads_memory(condition) || expr_is_pure(e)) analyzer_assume(g->analyzer, condition);
  array_push(&g->context->arena, &g->scope.inner, condition);
  check_expr(g, e);
  g->scope.inner.count--;
  analyzer_reset(g->analyzer, mark);
}

static void check_let_expr(Guarding *g, Expr *e) {
  int mark = analyzer_mark(g->analyzer);
  check_expr(g, e->args[1]);
  int inside = g->pending.count;
  analyzer_bind_value(g->analyzer, e->args[0], e->args[1]);
  check_expr(g, e->args[2]);
  analyzer_reset(g->analyzer, mark);
  for (int i = inside; i < g->pending.count; i++) {
    PendingGuard *guard = &g->pending.items[i];
    guard->condition = expr_let(g->context, e->args[0], e->args[1], guard->condition);
    guard->index = expr_let(g->context, e->args[0], e->args[1], guard->index);
  }
}

// An operand as it is accessed: a function outside accesses the element whose address it gets.
static Expr *accessed_operand(const Expr *e, int i) {
  bool is_outside = e->op == EXPR_CALL || e->op == EXPR_CALL_PURE;
  Expr *operand = e->args[i];
  bool is_element = operand->op == EXPR_ADDRESS_OF && operand->args[0]->op == EXPR_LOAD;
  return is_outside && is_element ? operand->args[0] : operand;
}

static void check_expr(Guarding *g, Expr *e) {
  Context *context = g->context;
  if (!e->count || e->op == EXPR_ADDRESS_OF || map_contains(&g->proved, e)) return;
  if (e->op == EXPR_LET) {
    check_let_expr(g, e);
    return;
  }
  check_expr(g, accessed_operand(e, 0));
  Expr *otherwise = NULL;
  g->choices += e->op == EXPR_SELECT;
  if (e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_OR)
    otherwise = expr_unary(context, EXPR_NOT, e->args[0]);
  for (int i = 1; i < e->count; i++) {
    if (e->op == EXPR_AND || (e->op == EXPR_IF_THEN_ELSE && i == 1))
      check_under(g, e->args[i], e->args[0]);
    else if (otherwise)
      check_under(g, e->args[i], otherwise);
    else
      check_expr(g, accessed_operand(e, i));
  }
  g->choices -= e->op == EXPR_SELECT;
  if (e->op == EXPR_LOAD) check_access(g, e->as.buffer, e->args, e->count, expr_origin(e));
  if (expr_may_divide_by_zero(e)) check_division(g, e);
  if (!g->scope.inner.count) map_put(&g->proved, e, e);
}

static void check_exprs(Guarding *g, Expr *const *items, int count) {
  for (int i = 0; i < count; i++) check_expr(g, items[i]);
}

// ---- Where guards stand

static Stmt *note_fault(Guarding *g, const PendingGuard *guard) {
  Context *context = g->context;
  Expr *zero = expr_int(context, DTYPE_INT64, 0), *one = expr_int(context, DTYPE_INT64, 1);
  Expr *extent = expr_cast(context, DTYPE_INT64, guard->extent); // may be below 0, as sizes may
  extent = expr_add(context, expr_binary(context, EXPR_MAX, extent, zero), one);
  Expr *at[] = {expr_index(context, 2 * guard->number), expr_index(context, 2 * guard->number + 1)};
  Expr *index = expr_cast(context, DTYPE_INT64, guard->index);
  Stmt *stores[] = {stmt_store(context, g->faults, &at[0], 1, index),
                    stmt_store(context, g->faults, &at[1], 1, extent)};
  return stmt_seq(context, stores, 2);
}

static Stmt *with_guard(Guarding *g, const PendingGuard *guard, Stmt *s) {
  Stmt *branch = stmt_if(g->context, guard->condition, s, note_fault(g, guard));
  branch->pos = guard->pos;
  return branch;
}

typedef bool (*MayPass)(const Guarding *g, const PendingGuard *guard, Stmt *s);

// The guard's condition loads from a buffer that one of the others guards.
static bool relies_on(const PendingGuard *guard, const PtrArray *others) {
  for (int i = 0; i < others->count; i++) {
    const PendingGuard *other = others->items[i];
    if (other->buffer && condition_loads(guard->condition, other->buffer->data)) return true;
  }
  return false;
}

// Puts the guards since `first` around `s`, except those that may stand further out. The first
// guard becomes the outermost, because the conditions of later ones may rely on it.
static Stmt *settle(Guarding *g, int first, Stmt *s, MayPass may_pass, Stmt *around) {
  int kept = first;
  PtrArray here = {0};
  for (int i = first; i < g->pending.count; i++) {
    PendingGuard guard = g->pending.items[i];
    if (may_pass && may_pass(g, &guard, around) && !relies_on(&guard, &here)) {
      g->pending.items[kept++] = guard;
      continue;
    }
    array_push(&g->context->arena, &here, arena_copy(&g->context->arena, &guard, sizeof guard));
  }
  g->pending.count = kept;
  for (int i = here.count - 1; i >= 0; i--) s = with_guard(g, here.items[i], s);
  return s;
}

static bool may_leave_loop(const Guarding *g, const PendingGuard *guard, Stmt *s) {
  Context *context = g->context;
  Expr *extent = s->as.loop.extent;
  if (s->as.loop.kind == LOOP_PARALLEL || s->as.loop.kind == LOOP_THREAD) return false;
  return !expr_uses(guard->condition, s->as.loop.var) &&
         analyzer_prove(g->analyzer,
                        expr_lt(context, expr_int(context, extent->type, 0), extent)) &&
         !has_obstacle(s->as.loop.body, guard->condition, true);
}

static bool may_leave_sequence(const Guarding *g, const PendingGuard *guard, Stmt *s) {
  (void)g;
  return !has_obstacle(s, guard->condition, true);
}

static bool may_leave_let(const Guarding *g, const PendingGuard *guard, Stmt *s) {
  (void)g;
  return !expr_uses(guard->condition, s->as.let.var);
}

static bool may_leave_memory(const Guarding *g, const PendingGuard *guard, Stmt *s) {
  (void)g;
  const Expr *data = s->kind == STMT_ALLOCATE         ? s->as.allocate.var
                     : s->kind == STMT_ALLOCATE_CONST ? s->as.allocate_const.var
                                                      : s->as.declare.buffer->data;
  return !condition_loads(guard->condition, data);
}

// ---- Statements

// Where guard number k notes that it found a fault.
static Expr *fault_at(const Guarding *g, int k) {
  return expr_index(g->context, 2 * (int64_t)k + 1);
}

// No guard since `first` has noted a fault. The statement of a guard that has may be the one that
// would have ended the loop.
static Expr *no_fault(Guarding *g, int first) {
  Context *context = g->context;
  Expr *all = expr_bool(context, true);
  for (int k = first; k < g->guards.count; k++) {
    Expr *at = fault_at(g, k), *noted = expr_load(context, g->faults, &at, 1);
    map_set(&g->awaited, (uint64_t)k + 1, g->faults);
    all = expr_and(context, all,
                   expr_binary(context, EXPR_EQ, noted, expr_int(context, DTYPE_INT64, 0)));
  }
  return all;
}

// Does the loop take so long that the caller should not wait for its end after a fault?
static bool may_be_long(const Stmt *loop) {
  int64_t extent;
  bool is_short = expr_as_int(loop->as.loop.extent, &extent) && extent <= SHORT_LOOP;
  return loop->as.loop.kind == LOOP_SERIAL && !is_short;
}

// The loop, which ends where one of the guards since `first` in it notes a fault.
static Stmt *ending_at_faults(Guarding *g, Stmt *loop, int first, bool has_jump) {
  Context *context = g->context;
  Stmt *body = loop->as.loop.body;
  bool jumps = lower_loop_ends(loop);
  if (has_jump && !jumps) return loop;
  Expr *condition = no_fault(g, first);
  if (jumps) condition = expr_and(context, condition, body->as.branch.condition);
  Stmt *runs = jumps ? body->as.branch.then_body : body;
  return lower_with_body(context, loop, stmt_if(context, condition, runs, NULL));
}

static Stmt *guard_loop(Guarding *g, Stmt *s) {
  int64_t extent;
  if (expr_as_int(s->as.loop.extent, &extent) && extent <= 0) return s;
  check_expr(g, s->as.loop.min);
  check_expr(g, s->as.loop.extent);
  int first = g->pending.count, guards = g->guards.count, mark = analyzer_mark(g->analyzer);
  VarRange range = loop_range(s);
  analyzer_bind_kept(g->analyzer, range.var, range.min, range.extent);
  bind_wide(g, range);
  array_push(&g->context->arena, &g->scope.loops, range);
  Stmt *body = guarded(g, s->as.loop.body);
  g->scope.loops.count--;
  analyzer_reset(g->analyzer, mark);
  Stmt *loop = lower_with_body(g->context, s, settle(g, first, body, may_leave_loop, s));
  bool guards_inside = g->guards.count - guards > g->pending.count - first;
  bool ends = guards_inside && may_be_long(s);
  return ends ? ending_at_faults(g, loop, guards, lower_loop_ends(s)) : loop;
}

static Stmt *guard_branch(Guarding *g, Stmt *s, Expr *condition) {
  if (!s) return NULL;
  int first = g->pending.count, mark = analyzer_mark(g->analyzer);
  assume_in(g, condition, s);
  array_push(&g->context->arena, &g->scope.conditions, condition);
  s = settle(g, first, guarded(g, s), NULL, NULL);
  g->scope.conditions.count--;
  analyzer_reset(g->analyzer, mark);
  return s;
}

static Stmt *guard_if(Guarding *g, Stmt *s) {
  Expr *condition = s->as.branch.condition;
  check_expr(g, condition);
  Stmt *copy = stmt_copy(g->context, s);
  copy->as.branch.then_body = guard_branch(g, s->as.branch.then_body, condition);
  copy->as.branch.else_body =
      guard_branch(g, s->as.branch.else_body, expr_unary(g->context, EXPR_NOT, condition));
  return copy;
}

static Stmt *guard_let(Guarding *g, Stmt *s) {
  check_expr(g, s->as.let.value);
  int first = g->pending.count, mark = analyzer_mark(g->analyzer);
  bool is_known = dtype_is_int(s->as.let.var->type) || dtype_is_bool(s->as.let.var->type);
  if (is_known && !expr_reads_memory(s->as.let.value))
    analyzer_bind_value(g->analyzer, s->as.let.var, s->as.let.value);
  array_push(&g->context->arena, &g->scope.lets, ((AccessLet){s->as.let.var, s->as.let.value}));
  Stmt *body = guarded(g, s->as.let.body);
  g->scope.lets.count--;
  analyzer_reset(g->analyzer, mark);
  return lower_with_body(g->context, s, settle(g, first, body, may_leave_let, s));
}

// The condition of a while loop is evaluated again after each iteration. A guard of it stands in
// the body, which then evaluates it:
//
//   while A[i[0]] < x:        goes_on = allocate(1); goes_on[0] = 1
//     body                    while faults[1] == 0 and goes_on[0] == 1:
//                        →      if 0 <= i[0] and i[0] < 5:
//                                 goes_on[0] = 0
//                                 if A[i[0]] < x: goes_on[0] = 1; body
static Stmt *with_condition_inside(Guarding *g, Stmt *s, int first, Expr *stays) {
  Context *context = g->context;
  int64_t one = 1;
  Buffer *flag = buffer_static(context, "goes_on", DTYPE_INT32, &one, 1, "local");
  Expr *zero = expr_int(context, DTYPE_INT32, 0), *yes = expr_int(context, DTYPE_INT32, 1);
  Stmt *body[] = {stmt_store(context, flag, &zero, 1, yes), s->as.repeat.body};
  Stmt *tested[] = {stmt_store(context, flag, &zero, 1, zero),
                    stmt_if(context, s->as.repeat.condition, stmt_seq(context, body, 2), NULL)};
  Stmt *loop = stmt_copy(context, s);
  Expr *goes_on = expr_binary(context, EXPR_EQ, expr_load(context, flag, &zero, 1), yes);
  loop->as.repeat.condition = expr_and(context, stays, goes_on);
  loop->as.repeat.body = settle(g, first, stmt_seq(context, tested, 2), NULL, NULL);
  Stmt *whole[] = {stmt_store(context, flag, &zero, 1, yes), loop};
  return stmt_allocate(context, flag, stmt_seq(context, whole, 2));
}

static Stmt *guard_while(Guarding *g, Stmt *s) {
  int first = g->pending.count, guards = g->guards.count;
  check_expr(g, s->as.repeat.condition);
  bool inside = g->pending.count > first;
  Stmt *loop = stmt_copy(g->context, s);
  loop->as.repeat.body = guard_branch(g, s->as.repeat.body, s->as.repeat.condition);
  Expr *stays = no_fault(g, guards);
  if (inside) return with_condition_inside(g, loop, first, stays);
  loop->as.repeat.condition = expr_and(g->context, stays, s->as.repeat.condition);
  return loop;
}

// "assertion failed: …", or the kind of the error and the parts of its text.
static const char *assertion_text(Guarding *g, const Stmt *s) {
  const Expr *message = s->as.check.message;
  Text text = text_new(&g->context->arena);
  bool has_parts = message && message->op == EXPR_TUPLE && message->count == 2 &&
                   message->args[0]->op == EXPR_STRING && message->args[1]->op == EXPR_TUPLE;
  const char *kind = has_parts ? message->args[0]->as.s : "RuntimeError";
  text_printf(&text, "%s: ", strcmp(kind, "RuntimeError") ? kind : "assertion failed");
  const Expr *parts = has_parts ? message->args[1] : NULL;
  for (int i = 0; parts && i < parts->count; i++) {
    const char *string = expr_text(parts->args[i]);
    text_puts(&text, string ? string : script_expr_text(g->context, parts->args[i]));
  }
  if (message && message->op == EXPR_STRING) text_puts(&text, message->as.s);
  return text_string(&text);
}

static bool see_region(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= lower_is_region_loop(s);
  return true;
}

static bool has_region(Stmt *s) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = see_region}, s);
  return found;
}

// The statement where the condition holds. Parallel loops stay outermost.
static Stmt *run_if(Guarding *g, Expr *condition, Stmt *s) {
  Context *context = g->context;
  if (!has_region(s)) return stmt_if(context, condition, s, NULL);
  if (s->kind == STMT_SEQ) {
    Stmt **items = arena_array(&context->arena, Stmt *, s->as.seq.count);
    for (int i = 0; i < s->as.seq.count; i++) items[i] = run_if(g, condition, s->as.seq.items[i]);
    return stmt_seq(context, items, s->as.seq.count);
  }
  if (lower_is_region_loop(s))
    return lower_with_body(context, s, stmt_if(context, condition, s->as.loop.body, NULL));
  Stmt *body = s->kind != STMT_FOR ? lower_body(s) : NULL;
  return body ? lower_with_body(context, s, run_if(g, condition, body))
              : stmt_if(context, condition, s, NULL);
}

// The statements that an assertion is for run where it holds.
static Stmt *asserted(Guarding *g, Stmt *s, Stmt *rest) {
  Context *context = g->context;
  Expr *condition = s->as.check.condition, *none = expr_index(context, 0);
  AccessGuard entry = {str_intern(context, assertion_text(g, s)), GUARD_ASSERT, g->pos};
  PendingGuard guard = {condition, none, none, NULL, g->pos, g->guards.count};
  array_push(&context->arena, &g->guards, entry);
  bool apart = !rest || (has_region(rest) && !has_obstacle(rest, condition, false));
  if (!apart) return with_guard(g, &guard, guard_branch(g, rest, condition));
  Stmt *note =
      stmt_if(context, expr_unary(context, EXPR_NOT, condition), note_fault(g, &guard), NULL);
  note->pos = g->pos;
  if (!rest) return note;
  Stmt *both[] = {note, run_if(g, condition, guard_branch(g, rest, condition))};
  return stmt_seq(context, both, 2);
}

static bool is_proved(Guarding *g, const Stmt *s) {
  return analyzer_prove(g->analyzer, s->as.check.condition);
}

static Stmt *guard_assert(Guarding *g, Stmt *s) {
  check_expr(g, s->as.check.condition);
  if (!is_proved(g, s)) {
    if (++g->asserts <= MOST_ASSERTS) return asserted(g, s, s->as.check.body);
    g->ok = diag_error(g->context, g->pos,
                       "the program has more than %d assertions that are not proved\n"
                       "assert several conditions at once, with 'and'",
                       MOST_ASSERTS);
    return s;
  }
  return s->as.check.body ? guard_branch(g, s->as.check.body, s->as.check.condition) : s;
}

// An assertion without a body is for the rest of its sequence.
static Stmt *guard_sequence(Guarding *g, Stmt *s) {
  Stmt **items = arena_array(&g->context->arena, Stmt *, s->as.seq.count);
  int mark = analyzer_mark(g->analyzer), count = s->as.seq.count;
  for (int i = 0; i < count; i++) {
    Stmt *item = s->as.seq.items[i];
    int first = g->pending.count;
    if (item->kind == STMT_ASSERT && !item->as.check.body) {
      Stmt *whole = stmt_copy(g->context, item);
      whole->as.check.body = stmt_seq(g->context, s->as.seq.items + i + 1, s->as.seq.count - i - 1);
      item = whole;
      count = i + 1;
    }
    items[i] = settle(g, first, guarded(g, item), may_leave_sequence, s);
  }
  analyzer_reset(g->analyzer, mark);
  return stmt_seq(g->context, items, count);
}

static Stmt *guard_memory(Guarding *g, Stmt *s) {
  int first = g->pending.count;
  if (s->kind != STMT_DECL_BUFFER)
    add_memory(g, s);
  else
    add_alias(g, s->as.declare.buffer);
  Stmt *body = guarded(g, lower_body(s));
  return lower_with_body(g->context, s, settle(g, first, body, may_leave_memory, s));
}

static bool may_leave_attr(const Guarding *g, const PendingGuard *guard, Stmt *s) {
  (void)g;
  const Expr *var = expr_iter_var(s->as.attr.node);
  return !var || !expr_uses(guard->condition, var);
}

static Stmt *guard_attr(Guarding *g, Stmt *s) {
  int first = g->pending.count;
  Stmt *body = guarded(g, s->as.attr.body);
  return lower_with_body(g->context, s, settle(g, first, body, may_leave_attr, s));
}

static Stmt *guard_store(Guarding *g, Stmt *s) {
  check_exprs(g, s->as.store.indices, s->as.store.rank);
  check_expr(g, s->as.store.value);
  check_access(g, s->as.store.buffer, s->as.store.indices, s->as.store.rank, s->as.store.origin);
  return s;
}

static Stmt *guard_evaluate(Guarding *g, Stmt *s) {
  check_expr(g, s->as.evaluate);
  return s;
}

static Stmt *(*const guard_kinds[])(Guarding *, Stmt *) = {
    [STMT_FOR] = guard_loop,
    [STMT_STORE] = guard_store,
    [STMT_LET] = guard_let,
    [STMT_IF] = guard_if,
    [STMT_WHILE] = guard_while,
    [STMT_ASSERT] = guard_assert,
    [STMT_EVALUATE] = guard_evaluate,
    [STMT_SEQ] = guard_sequence,
    [STMT_ALLOCATE] = guard_memory,
    [STMT_ALLOCATE_CONST] = guard_memory,
    [STMT_DECL_BUFFER] = guard_memory,
    [STMT_ATTR] = guard_attr,
};

static Stmt *guarded(Guarding *g, Stmt *s) {
  SourcePos outer = g->pos;
  if (s->pos.file) g->pos = s->pos;
  g->proved = map_new(&g->context->arena);
  Stmt *next = g->ok ? guard_kinds[s->kind](g, s) : s;
  g->pos = outer;
  return next;
}

// ---- The function

// The body after stores of 0 for the faults that it reads, so that the function is whole by itself.
static Stmt *with_no_faults(Guarding *g, Stmt *body) {
  Context *context = g->context;
  Stmt **items = arena_array(&context->scratch, Stmt *, g->guards.count + 1);
  int count = 0;
  for (int k = 0; k < g->guards.count; k++) {
    Expr *at = fault_at(g, k), *zero = expr_int(context, DTYPE_INT64, 0);
    if (map_get(&g->awaited, (uint64_t)k + 1))
      items[count++] = stmt_store(context, g->faults, &at, 1, zero);
  }
  items[count++] = body;
  return stmt_seq(context, items, count);
}

static PrimFunc *with_faults(Guarding *g, PrimFunc *func, Stmt *body) {
  Context *context = g->context;
  PrimFunc *next = prim_func_with_body(context, func, NULL);
  g->faults->shape[0] = expr_index(context, 2 * (int64_t)g->guards.count);
  next->body = stmt_allocate(context, g->faults, with_no_faults(g, body));
  AccessGuards *guards = arena_new(&context->arena, AccessGuards);
  *guards = (AccessGuards){g->faults->data, g->guards.count, g->guards.items};
  next->guards = guards;
  return next;
}

Verdict lower_accesses_are_inside(Context *context, PrimFunc *func) {
  static const char *const passes[] = {"lower_intrinsics", "split_lanes", "convert_blocks",
                                       "simplify_loops", "widen_indices", "guard_accesses"};
  LowerOptions options = {.guards = true, .drop_result = true};
  if (lower_is_packed(func)) return VERDICT_UNDECIDED;
  PrimFunc *checked = lower_run_passes(context, func, passes, COUNT_OF(passes), &options);
  return !checked ? VERDICT_NO : checked->guards ? VERDICT_UNDECIDED : VERDICT_YES;
}

PrimFunc *lower_guard_accesses(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  bool done = func->guards || lower_facts_of(func) & LOWER_FACT_REGIONS;
  if (!state->options->guards || done) return func;
  if (!lower_lanes_are_split(context, func->body)) return NULL;
  int64_t none = 0;
  Guarding g = {.state = state,
                .context = context,
                .analyzer = analyzer_new(context),
                .pos = func->pos,
                .faults = buffer_static(context, "faults", DTYPE_INT64, &none, 1, NULL),
                .memory = map_new(&context->arena),
                .beyond = map_new(&context->arena),
                .wide = map_new(&context->arena),
                .awaited = map_new(&context->arena),
                .ok = true};
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i])
      map_put(&g.memory, func->buffers[i]->data, bytes_to_end(context, func->buffers[i]));
  analyzer_assume_sizes(g.analyzer, func);
  Stmt *body = settle(&g, 0, guarded(&g, func->body), NULL, NULL);
  if (!g.ok) return NULL;
  return g.guards.count ? with_faults(&g, func, body) : func;
}
