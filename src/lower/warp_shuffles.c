// SPDX-License-Identifier: Apache-2.0
// Writes out the exchange of values between the threads of a warp, before loops over threads are
// split: each thread stores its value in shared memory, all wait, and each reads the value of the
// lane that it names. The memory is written again only by the same statement in the next iteration
// of a loop around it, where a phase ends anyway.
//
//   for x in threadIdx.x(64):                             S = decl_buffer((64,), scope="shared")
//     B[x] = T.tvm_warp_shuffle_down(m, A[x], 1, 8, 32) → S[x] = A[x]; sync
//                                                         v = S[select(x % 8 + 1 > 7, x, x + 1)]
//                                                         B[x] = v
//
// Lanes are counted in a warp, whose threads follow one another with x fastest. As PTX defines it,
// a group of `width` lanes exchanges values, and a lane that names another one outside of its group
// keeps its own value; so does one that names a thread which the block does not have.
#include "ir/intrinsic.h"
#include "lower/pass.h"

enum { AXES = 3, MOST_EXCHANGES = 16, MASK_LANES = 32, MOST_IN_BLOCK = 65536 };

typedef struct Shuffle {
  Expr *call, *value, *lane, *var;
  int64_t width, warp;
} Shuffle;

typedef struct Exchanges {
  Context *context;
  bool known;             // the lanes that values come from matter
  PtrArray threads;       // Stmt *: loops over threads of a block around
  int64_t launched[AXES]; // the most threads of a loop along each axis; 0: there is none
  bool uneven;            // two loops along an axis have different numbers of threads
  ThreadValues values;    // of the outermost loop over threads
  int conditions;         // around, that differ between threads
  SourcePos pos;
  Shuffle found[MOST_EXCHANGES]; // in the statement, the inner ones first
  int count;
} Exchanges;

static bool refuse(Exchanges *x, const Expr *call, const char *why) {
  return diag_error(x->context, x->pos, "T.%s %s", call->as.s, why);
}

// ---- Threads

static bool add_launch(Visitor *visitor, Stmt *s) {
  Exchanges *x = visitor->env;
  int axis = loop_thread_axis(s, NULL);
  if (axis < 0) return true;
  int64_t extent = 0;
  x->uneven |= !expr_as_int(s->as.loop.extent, &extent);
  x->uneven |= x->launched[axis] && x->launched[axis] != extent;
  x->launched[axis] = MAX_OF(x->launched[axis], extent);
  return true;
}

// The number of the thread in its block, and how many there are.
static bool find_thread(Exchanges *x, const Expr *call, Expr **number, int64_t *count) {
  Context *context = x->context;
  *number = expr_int(context, DTYPE_INT32, 0);
  *count = 1;
  for (int axis = 0; axis < AXES; axis++) {
    const Stmt *loop = NULL;
    for (int i = 0; i < x->threads.count; i++) {
      const Stmt *s = x->threads.items[i];
      if (loop_thread_axis(s, NULL) == axis) loop = s;
    }
    if (!loop && x->launched[axis])
      return refuse(x, call, "is not inside of the loops over all threads of the block");
    if (!loop) continue;
    Expr *at =
        expr_cast(context, DTYPE_INT32, expr_sub(context, loop->as.loop.var, loop->as.loop.min));
    *number =
        expr_add(context, *number, expr_mul(context, at, expr_int(context, DTYPE_INT32, *count)));
    if (!mul_fits(*count, x->launched[axis], count)) *count = MOST_IN_BLOCK + 1;
  }
  if (!x->threads.count) return refuse(x, call, "is not inside of a loop over threads");
  if (x->uneven)
    return refuse(x, call, "needs loops over threads with one constant number of threads an axis");
  return *count <= MOST_IN_BLOCK || refuse(x, call, "is in a block of too many threads");
}

// ---- Lanes

static Expr *number_of(Context *context, int64_t n) {
  return expr_int(context, DTYPE_INT32, n);
}

static Expr *within(Context *context, Expr *e, int64_t n) {
  return expr_floor_mod(context, expr_cast(context, DTYPE_INT32, e), number_of(context, n));
}

// The lane from which a lane gets its value.
static Expr *source_lane(Context *context, const Shuffle *s, Expr *lane) {
  Exchange kind = expr_exchange(s->call);
  Expr *first = expr_sub(context, lane, within(context, lane, s->width));
  if (kind == EXCHANGE_INDEX) return expr_add(context, first, within(context, s->lane, s->width));
  Expr *by = within(context, s->lane, s->warp);
  Expr *last = expr_add(context, first, number_of(context, s->width - 1));
  Expr *from = kind == EXCHANGE_UP     ? expr_sub(context, lane, by)
               : kind == EXCHANGE_DOWN ? expr_add(context, lane, by)
                                       : expr_binary(context, EXPR_BIT_XOR, lane, by);
  Expr *outside =
      kind == EXCHANGE_UP ? expr_lt(context, from, first) : expr_lt(context, last, from);
  return expr_select(context, outside, lane, from);
}

static Expr *source_of(Context *context, const Shuffle *s, Expr *number, int64_t count) {
  Expr *lane = within(context, number, s->warp);
  Expr *from = expr_add(context, expr_sub(context, number, lane), source_lane(context, s, lane));
  if (count % s->warp == 0) return from;
  return expr_select(context, expr_lt(context, from, number_of(context, count)), from, number);
}

// The threads of the warp that the block has, as bits.
static Expr *mask_of(Exchanges *x, Expr *call) {
  Context *context = x->context;
  DType wide = DTYPE_INT64;
  Expr *number;
  int64_t count;
  if (x->conditions) {
    refuse(x, call,
           "stands under a condition that is not the same for all threads, so that its "
           "value is not defined");
    return call;
  }
  if (!find_thread(x, call, &number, &count)) return call;
  Expr *first = expr_sub(context, number, within(context, number, MASK_LANES));
  Expr *left = expr_min(context, expr_sub(context, number_of(context, count), first),
                        number_of(context, MASK_LANES));
  Expr *bit = expr_binary(context, EXPR_SHIFT_LEFT, expr_int(context, wide, 1),
                          expr_cast(context, wide, left));
  return expr_cast(context, call->type, expr_sub(context, bit, expr_int(context, wide, 1)));
}

// ---- Exchanges in the expressions of a statement

static bool read_shuffle(Exchanges *x, Shuffle *s) {
  if (!expr_as_int(s->call->args[SHUFFLE_WIDTH], &s->width) ||
      !expr_as_int(s->call->args[SHUFFLE_WARP], &s->warp) || log2_of(s->width) < 0 ||
      log2_of(s->warp) < 0 || s->width > s->warp)
    return refuse(x, s->call,
                  "needs a width and a warp size that are constant powers of two, and a "
                  "width that is at most the warp size");
  if (x->count == MOST_EXCHANGES) return refuse(x, s->call, "is one of too many in a statement");
  return true;
}

// The operands of `e` are rewritten.
static Expr *take_out(Rewriter *rewriter, Expr *e) {
  Exchanges *x = rewriter->env;
  Exchange kind = expr_exchange(e);
  if (kind == EXCHANGE_NONE) return e;
  if (kind == EXCHANGE_MASK) return mask_of(x, e);
  Shuffle s = {e, e->args[SHUFFLE_VALUE], e->args[SHUFFLE_LANE]};
  if (!read_shuffle(x, &s)) return e;
  s.var = expr_var(x->context, "v", e->type);
  x->found[x->count++] = s;
  return s.var;
}

// A mask says which threads take part; here all do that arrive.
static Expr *without_mask(Rewriter *rewriter, Expr *e) {
  if (!expr_exchange(e) || !e->count || e->args[SHUFFLE_MASK]->op == EXPR_INT) return e;
  Expr **args = arena_copy(&rewriter->context->arena, e->args, sizeof *args * (size_t)e->count);
  args[SHUFFLE_MASK] = expr_int(rewriter->context, args[SHUFFLE_MASK]->type, 0);
  return expr_with_args(rewriter->context, e, args);
}

static bool find_exchange(Visitor *visitor, Expr *e) {
  const Expr **found = visitor->env;
  if (!*found && expr_exchange(e)) *found = e;
  return !*found;
}

static const Expr *exchange_in(Expr *e) {
  const Expr *found = NULL;
  visit_expr(&(Visitor){.env = &found, .enter_expr = find_exchange}, e);
  return found;
}

static bool find_lazy(Visitor *visitor, Expr *e) {
  Exchanges *x = visitor->env;
  bool is_lazy =
      e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_AND || e->op == EXPR_OR || e->op == EXPR_LET;
  const Expr *call = is_lazy ? exchange_in(e) : NULL;
  if (call)
    refuse(x, call,
           "stands in an expression of which a part may not be evaluated\n"
           "give its value a name before");
  return !call;
}

static Expr *exchanged(Exchanges *x, Expr *e) {
  if (!e || !exchange_in(e)) return e;
  int errors = x->context->error_count;
  visit_expr(&(Visitor){.env = x, .enter_expr = find_lazy}, e);
  if (x->context->error_count > errors) return e;
  Rewriter rewriter = {
      .context = x->context, .env = x, .expr = take_out, .buffer = lower_keep_buffer};
  return rewrite_expr(&rewriter, e);
}

static void refuse_in(Exchanges *x, Expr *e) {
  const Expr *call = exchange_in(e);
  if (call)
    refuse(x, call,
           "stands where each thread evaluates it as often as it likes\n"
           "give its value a name before");
}

// The statement with the exchanges of its own expressions taken out.
static Stmt *rewrite_own(Exchanges *x, Stmt *s) {
  Stmt *next = stmt_copy(x->context, s);
  switch (s->kind) {
  case STMT_STORE:
    next->as.store.indices = arena_copy(&x->context->arena, s->as.store.indices,
                                        sizeof(Expr *) * (size_t)s->as.store.rank);
    for (int i = 0; i < s->as.store.rank; i++)
      next->as.store.indices[i] = exchanged(x, s->as.store.indices[i]);
    next->as.store.value = exchanged(x, s->as.store.value);
    break;
  case STMT_LET: next->as.let.value = exchanged(x, s->as.let.value); break;
  case STMT_IF: next->as.branch.condition = exchanged(x, s->as.branch.condition); break;
  case STMT_ASSERT: next->as.check.condition = exchanged(x, s->as.check.condition); break;
  case STMT_EVALUATE: next->as.evaluate = exchanged(x, s->as.evaluate); break;
  case STMT_FOR:
    refuse_in(x, s->as.loop.min);
    refuse_in(x, s->as.loop.extent);
    break;
  case STMT_WHILE: refuse_in(x, s->as.repeat.condition); break;
  case STMT_ALLOCATE:
    for (int i = 0; i < s->as.allocate.rank; i++) refuse_in(x, s->as.allocate.extents[i]);
    break;
  case STMT_ATTR: refuse_in(x, s->as.attr.value); break;
  case STMT_SEQ:
  case STMT_BLOCK:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER: break;
  }
  return next;
}

// `body` after the exchange, which binds its variable.
static Stmt *with_exchange(Exchanges *x, const Shuffle *s, Stmt *body) {
  Context *context = x->context;
  Expr *number, *one = number_of(context, 1), *size;
  int64_t count;
  if (!find_thread(x, s->call, &number, &count)) return body;
  size = x->known ? number_of(context, count) : one;
  Buffer *memory =
      buffer_new(context, "exchanged", s->call->type, &size, 1, x->known ? "shared" : "local");
  Expr *own = x->known ? number : number_of(context, 0);
  Expr *from = x->known ? source_of(context, s, number, count) : own;
  PtrArray items = {0};
  array_push(&context->arena, &items, stmt_store(context, memory, &own, 1, s->value));
  if (x->known) array_push(&context->arena, &items, stmt_barrier(x->context, "warp"));
  Expr *value = expr_load(context, memory, &from, 1);
  array_push(&context->arena, &items, stmt_let(context, s->var, value, body));
  return stmt_allocate(context, memory, stmt_seq(context, (Stmt **)items.items, items.count));
}

static bool is_unused_mask(const Stmt *s) {
  return s->kind == STMT_LET && expr_exchange(s->as.let.value) == EXCHANGE_MASK &&
         !stmt_uses(s->as.let.body, s->as.let.var);
}

static Stmt *exchange_in_stmt(Rewriter *rewriter, Stmt *s) {
  Exchanges *x = rewriter->env;
  if (is_unused_mask(s)) return s->as.let.body;
  if (s->pos.file) x->pos = s->pos;
  int errors = x->context->error_count;
  x->count = 0;
  Stmt *next = rewrite_own(x, s);
  for (int i = x->count - 1; i >= 0 && x->context->error_count == errors; i--)
    next = with_exchange(x, &x->found[i], next);
  return next;
}

// ---- The pass

static bool differs(const Exchanges *x, const Stmt *s) {
  if (s->kind == STMT_IF) return lower_value_differs(&x->values, s->as.branch.condition);
  return s->kind == STMT_WHILE && lower_value_differs(&x->values, s->as.repeat.condition);
}

static Stmt *enter(Rewriter *rewriter, Stmt *s) {
  Exchanges *x = rewriter->env;
  if (stmt_wait(s) == WAIT_NONE) return s;
  bool is_thread =
      s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD && !thread_is_block(s->as.loop.thread);
  if (!is_thread && s->kind != STMT_IF && s->kind != STMT_WHILE) return NULL;
  if (is_thread && !x->threads.count) {
    memset(x->launched, 0, sizeof x->launched);
    x->uneven = false;
    visit_stmt(&(Visitor){.env = x, .enter_stmt = add_launch}, s);
    x->values = lower_thread_values(x->context, s);
  }
  int added = !is_thread && x->threads.count && differs(x, s);
  if (is_thread) array_push(&x->context->arena, &x->threads, s);
  x->conditions += added;
  Stmt *next = rewrite_stmt_children(rewriter, s);
  x->conditions -= added;
  x->threads.count -= is_thread;
  return exchange_in_stmt(rewriter, next);
}

static bool has_exchanges(const PrimFunc *func) {
  const Expr *found = NULL;
  visit_stmt(&(Visitor){.env = &found, .enter_expr = find_exchange}, func->body);
  return found;
}

PrimFunc *lower_shuffles(LowerState *state, PrimFunc *func, bool known) {
  if (!has_exchanges(func)) return func;
  Rewriter masks = {.expr = without_mask, .buffer = lower_keep_buffer};
  func = lower_rewrite(state, func, &masks);
  Exchanges x = {.context = state->context, .known = known, .pos = func->pos};
  Rewriter rewriter = {
      .env = &x, .enter_stmt = enter, .stmt = exchange_in_stmt, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
