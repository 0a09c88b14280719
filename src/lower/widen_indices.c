// SPDX-License-Identifier: Apache-2.0
// Computes indices and conditions of type int32 in 64 bits where they may leave their type, since
// proofs and address arithmetic take them for whole numbers:
//
//   if n * n < 8:                  if T.Cast("int64", n) * T.Cast("int64", n) < T.int64(8):
//     A[n * n] = x           →       A[T.Cast("int64", n) * T.Cast("int64", n)] = x
//
// With 32 bits, n = 65536 would pass the condition, and the address be another one. A let or a loop
// whose values may leave their type gets a variable of 64 bits beside its own. A loop whose extent
// may do so counts in 64 bits: where n * m is negative, it must not run, though 32 bits may hold a
// positive number then.
//
// Arguments and loaded numbers have any value of their type. Sizes are those of arrays in memory;
// numbers that are computed from them and from loops over them alone are taken to fit.
#include "lower/pass.h"
#include "lower/races.h"

enum { SPAN_BITS = 62 }; // ends of spans are at most 2^62, so that sums of two fit

typedef struct Span {
  int64_t low, high;
  bool wraps; // may an int32 number in it leave its type?
} Span;

typedef struct Widening {
  Context *context;
  Map spans; // Expr * → Span *
  Map wide;  // variables of lets → their variables of 64 bits
} Widening;

static int64_t end_of(__int128 x) {
  __int128 most = (__int128)1 << SPAN_BITS;
  return (int64_t)(x < -most ? -most : x > most ? most : x);
}

static Span all_of(DType type) {
  if (type.code == TYPE_BOOL) return (Span){0, 1, false};
  int bits = MIN_OF(type.bits, SPAN_BITS + 1) - (type.code == TYPE_INT);
  int64_t most = ((int64_t)1 << MIN_OF(bits, SPAN_BITS)) - 1;
  return (Span){type.code == TYPE_INT ? -most - 1 : 0, most, false};
}

static Span span_of(Widening *w, Expr *e);

static Span product(Span a, Span b) {
  __int128 ends[] = {(__int128)a.low * b.low, (__int128)a.low * b.high, (__int128)a.high * b.low,
                     (__int128)a.high * b.high};
  Span span = {end_of(ends[0]), end_of(ends[0]), false};
  for (int i = 1; i < COUNT_OF(ends); i++) {
    span.low = MIN_OF(span.low, end_of(ends[i]));
    span.high = MAX_OF(span.high, end_of(ends[i]));
  }
  return span;
}

static Span sum(Span a, Span b) {
  return (Span){end_of((__int128)a.low + b.low), end_of((__int128)a.high + b.high), false};
}

static Span quotient(Span a, Span b, DType type) {
  if (b.low != b.high || b.low < 1) return all_of(type);
  return (Span){floor_div(a.low, b.low), floor_div(a.high, b.low), false};
}

static Span remainder_of(Span b, DType type) {
  if (b.low != b.high || b.low < 1) return all_of(type);
  return (Span){0, b.low - 1, false};
}

static Span magnitude(Span a) {
  return (Span){0, MAX_OF(a.high, -a.low), false};
}

static Span ramp(Span base, Span stride, int lanes) {
  Span reach = product(stride, (Span){0, lanes - 1, false});
  return sum(base, reach);
}

// The bits that are set in one of two numbers, or in both. Where neither is negative, the result
// has no more bits than the larger one.
static Span bits_of(Span a, Span b, DType type) {
  int64_t most = 0;
  if (a.low < 0 || b.low < 0) return all_of(type);
  while (most < MAX_OF(a.high, b.high)) most = 2 * most + 1;
  return (Span){0, end_of(most), false};
}

static Span common_bits(Span a, Span b, DType type) {
  if (a.low < 0 && b.low < 0) return all_of(type);
  if (a.low < 0 || b.low < 0) return (Span){0, a.low < 0 ? b.high : a.high, false};
  return (Span){0, MIN_OF(a.high, b.high), false};
}

static Span shifted_right(Span a, Span b, DType type) {
  if (b.low != b.high || b.low < 0 || b.low > 31) return all_of(type);
  return quotient(a, (Span){(int64_t)1 << b.low, (int64_t)1 << b.low, false}, type);
}

static Span of_operands(const Expr *e, Span a, Span b) {
  switch ((int)e->op) {
  case EXPR_ADD: return sum(a, b);
  case EXPR_SUB: return sum(a, (Span){-b.high, -b.low, false});
  case EXPR_MUL: return product(a, b);
  case EXPR_FLOOR_DIV: return quotient(a, b, e->type);
  case EXPR_FLOOR_MOD: return remainder_of(b, e->type);
  case EXPR_MIN: return (Span){MIN_OF(a.low, b.low), MIN_OF(a.high, b.high), false};
  case EXPR_MAX: return (Span){MAX_OF(a.low, b.low), MAX_OF(a.high, b.high), false};
  case EXPR_IF_THEN_ELSE:
  case EXPR_SELECT: return (Span){MIN_OF(a.low, b.low), MAX_OF(a.high, b.high), false};
  case EXPR_RAMP: return ramp(a, b, e->type.lanes);
  case EXPR_BIT_AND: return common_bits(a, b, e->type);
  case EXPR_BIT_OR:
  case EXPR_BIT_XOR: return bits_of(a, b, e->type);
  case EXPR_SHIFT_RIGHT: return shifted_right(a, b, e->type);
  case EXPR_ABS: return magnitude(a);
  case EXPR_CAST:
  case EXPR_BROADCAST: return a;
  default: return all_of(e->type);
  }
}

// Does the cast keep all numbers of the type before it? One of unsigned numbers to as many bits
// makes some of them negative.
static bool keeps_numbers(const Expr *cast) {
  DType from = cast->args[0]->type;
  return dtype_is_int(from) && from.bits + (from.code != TYPE_INT) <= cast->type.bits;
}

// How many operands are numbers of which e is computed alike in any type that holds them, the first
// of which is number *first. 0: e is a number by itself.
static int operands(const Expr *e, int *first) {
  *first = 0;
  if (e->type.code != TYPE_INT || e->type.bits < 32) return 0; // others may wrap around
  if (op_table[e->op].class == OP_ARITH) return 2;
  switch ((int)e->op) {
  case EXPR_SELECT:
  case EXPR_IF_THEN_ELSE: *first = 1; return 2;
  case EXPR_RAMP:
  case EXPR_BIT_AND:
  case EXPR_BIT_OR:
  case EXPR_BIT_XOR:
  case EXPR_SHIFT_RIGHT: return 2;
  case EXPR_BIT_NOT:
  case EXPR_ABS:
  case EXPR_BROADCAST: return 1;
  case EXPR_CAST: return keeps_numbers(e);
  default: return 0;
  }
}

// Is the result made of the last bits of the first operand, which are the same where it overflows?
static bool takes_last_bits(const Expr *e, Span b) {
  if (b.wraps || b.low < 0 || b.high > INT32_MAX) return false;
  bool is_power = b.low == b.high && b.low > 0 && !(b.low & (b.low - 1));
  return e->op == EXPR_BIT_AND || (e->op == EXPR_FLOOR_MOD && is_power);
}

// The span of a variable that is no argument, and that no loop or let defines.
static const Span a_size = {0, 1, false};

static Span find_span(Widening *w, Expr *e) {
  int first, count = operands(e, &first);
  if (e->op == EXPR_INT) return (Span){end_of(e->as.i), end_of(e->as.i), false};
  if (e->op == EXPR_VAR) return a_size;
  if (!count) return all_of(e->type);
  Span a = span_of(w, e->args[first]), b = count > 1 ? span_of(w, e->args[first + 1]) : a;
  Span span = of_operands(e, a, b), all = all_of(e->type);
  span.wraps = ((a.wraps || b.wraps) && !takes_last_bits(e, b)) ||
               (e->type.bits < 64 && (span.low < all.low || span.high > all.high));
  return span;
}

static void put_span(Widening *w, Expr *e, Span span) {
  map_put(&w->spans, e, arena_copy(&w->context->scratch, &span, sizeof span));
}

static Span span_of(Widening *w, Expr *e) {
  const Span *known = map_find(&w->spans, e);
  if (!known) put_span(w, e, find_span(w, e));
  return known ? *known : *(const Span *)map_find(&w->spans, e);
}

// ---- Numbers of 64 bits

static Expr *widened(Widening *w, Expr *e) {
  Context *context = w->context;
  DType type = dtype_lanes(DTYPE_INT64, e->type.lanes);
  Expr *own = map_find(&w->wide, e);
  int first, count = operands(e, &first);
  if (own) return own;
  if (!span_of(w, e).wraps || !count) return expr_cast(context, type, e);
  Expr *a = widened(w, e->args[first]), *b = count > 1 ? widened(w, e->args[first + 1]) : NULL;
  switch ((int)e->op) {
  case EXPR_CAST: return a;
  case EXPR_BROADCAST: return expr_broadcast(context, a, e->type.lanes);
  case EXPR_RAMP: return expr_ramp(context, a, b, e->type.lanes);
  case EXPR_SELECT: return expr_select(context, e->args[0], a, b);
  case EXPR_IF_THEN_ELSE: return expr_if_then_else(context, e->args[0], a, b);
  default: return b ? expr_binary(context, e->op, a, b) : expr_unary(context, e->op, a);
  }
}

static Expr *widened_condition(Widening *w, Expr *e) {
  OpClass class = op_table[e->op].class;
  if (class != OP_LOGIC && class != OP_COMPARE) return e;
  Expr *args[2] = {e->args[0], e->count > 1 ? e->args[1] : NULL};
  if (class == OP_LOGIC) {
    for (int i = 0; i < e->count; i++) args[i] = widened_condition(w, args[i]);
    return expr_with_args(w->context, e, args);
  }
  bool are_numbers = dtype_is_int(args[0]->type) && dtype_is_int(args[1]->type);
  if (!are_numbers || !(span_of(w, args[0]).wraps || span_of(w, args[1]).wraps)) return e;
  return expr_binary(w->context, e->op, widened(w, args[0]), widened(w, args[1]));
}

static Expr *widened_index(Widening *w, Expr *index) {
  return span_of(w, index).wraps ? widened(w, index) : index;
}

// ---- The walk

static Expr *widen_expr(Rewriter *rewriter, Expr *e) {
  Widening *w = rewriter->env;
  if (e->op == EXPR_IF_THEN_ELSE) {
    Expr *args[] = {widened_condition(w, e->args[0]), e->args[1], e->args[2]};
    return args[0] == e->args[0] ? e : expr_with_args(w->context, e, args);
  }
  if (e->op != EXPR_LOAD || !e->count) return e;
  Expr **args = arena_array(&w->context->scratch, Expr *, e->count);
  for (int i = 0; i < e->count; i++) args[i] = widened_index(w, e->args[i]);
  Expr *load = expr_with_args(w->context, e, args);
  if (load != e) expr_set_origin(w->context, load, expr_origin(e) ? expr_origin(e) : e);
  return load;
}

static Stmt *widen_store(Widening *w, Stmt *s) {
  int rank = s->as.store.rank;
  Expr **indices = arena_array(&w->context->arena, Expr *, rank);
  bool wraps = false;
  for (int i = 0; i < rank; i++) {
    indices[i] = widened_index(w, s->as.store.indices[i]);
    wraps |= indices[i] != s->as.store.indices[i];
  }
  if (!wraps) return s;
  Stmt *next = stmt_copy(w->context, s);
  next->as.store.indices = indices;
  if (!s->as.store.origin)
    next->as.store.origin =
        expr_load(w->context, s->as.store.buffer, s->as.store.indices, s->as.store.rank);
  return next;
}

static Stmt *widen_condition(Widening *w, Stmt *s, Expr *condition) {
  Stmt *next = stmt_copy(w->context, s);
  Expr *wide = widened_condition(w, condition);
  if (s->kind == STMT_IF)
    next->as.branch.condition = wide;
  else if (s->kind == STMT_WHILE)
    next->as.repeat.condition = wide;
  else
    next->as.check.condition = wide;
  return wide == condition ? s : next;
}

static Stmt *widen_let(Widening *w, Stmt *s) {
  Expr *var = s->as.let.var, *wide = map_find(&w->wide, var);
  if (!wide) return s;
  Stmt *own = lower_with_body(w->context, s, s->as.let.body);
  own->as.let.value = expr_cast(w->context, var->type, wide);
  return stmt_let(w->context, wide, widened(w, s->as.let.value), own);
}

// for i in T.serial(n, m): …   →   for i_1 in range(m - n): with i = T.Cast("int64", n) + i_1: …
// for i in range(n * m): …     →   for i_1 in range(T.Cast("int64", n) * T.Cast("int64", m)): …
static Stmt *widen_loop(Widening *w, Stmt *s) {
  Context *context = w->context;
  Expr *var = s->as.loop.var, *wide = map_find(&w->wide, var);
  if (!wide) return s;
  Stmt *next = stmt_copy(context, s);
  next->as.loop.extent = widened_index(w, s->as.loop.extent);
  DType type = next->as.loop.extent == s->as.loop.extent ? var->type : DTYPE_INT64;
  next->as.loop.var = expr_var(context, var->as.var->name, type);
  next->as.loop.min = expr_int(context, type, 0);
  Expr *number = expr_cast(context, DTYPE_INT64, next->as.loop.var);
  Expr *value = expr_add(context, widened(w, s->as.loop.min), number);
  Stmt *body = stmt_let(context, var, expr_cast(context, var->type, wide), s->as.loop.body);
  next->as.loop.body = stmt_let(context, wide, value, body);
  return next;
}

static Stmt *widen_stmt(Rewriter *rewriter, Stmt *s) {
  Widening *w = rewriter->env;
  switch ((int)s->kind) {
  case STMT_STORE: return widen_store(w, s);
  case STMT_IF: return widen_condition(w, s, s->as.branch.condition);
  case STMT_WHILE: return widen_condition(w, s, s->as.repeat.condition);
  case STMT_ASSERT: return widen_condition(w, s, s->as.check.condition);
  case STMT_LET: return widen_let(w, s);
  case STMT_FOR: return widen_loop(w, s);
  default: return s;
  }
}

static void put_wide(Widening *w, Expr *var) {
  map_put(&w->wide, var, expr_var(w->context, var->as.var->name, DTYPE_INT64));
}

static void see_loop(Widening *w, const Stmt *s) {
  Expr *var = s->as.loop.var;
  Span min = span_of(w, s->as.loop.min), extent = span_of(w, s->as.loop.extent);
  Span all = all_of(var->type);
  Span span = sum(min, (Span){0, MAX_OF(extent.high - 1, 0), false});
  bool counts = expr_is_int(s->as.loop.min, 0); // up to what its type holds
  span.wraps =
      var->type.bits == 32 && (extent.wraps || (!counts && (min.wraps || span.high > all.high)));
  if (span.wraps) put_wide(w, var);
  if (!span.wraps) span.high = MIN_OF(span.high, all.high);
  put_span(w, var, span);
}

// The values of the variables of loops and lets, from the outside in.
static bool see_variable(Visitor *visitor, Stmt *s) {
  Widening *w = visitor->env;
  if (s->kind == STMT_FOR) see_loop(w, s);
  if (s->kind != STMT_LET || !dtype_is_int(s->as.let.var->type)) return true;
  Span span = span_of(w, s->as.let.value);
  if (span.wraps && s->as.let.var->type.lanes == 1) put_wide(w, s->as.let.var);
  put_span(w, s->as.let.var, span);
  return true;
}

PrimFunc *lower_widen_indices(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Widening w = {context, map_new(&context->scratch), map_new(&context->scratch)};
  for (int i = 0; i < func->param_count; i++)
    put_span(&w, func->params[i], all_of(func->params[i]->type));
  ExprArray sizes = lower_free_sizes(context, func);
  for (int i = 0; i < sizes.count; i++) put_span(&w, sizes.items[i], a_size);
  visit_stmt(&(Visitor){.env = &w, .enter_stmt = see_variable}, func->body);
  Rewriter rewriter = {.env = &w, .expr = widen_expr, .stmt = widen_stmt};
  return lower_rewrite(state, func, &rewriter);
}
