// SPDX-License-Identifier: Apache-2.0
// Splits loops over threads at barriers, so that threads that run one after the other compute what
// threads compute that run at once and wait for one another:
//
//   for x in threadIdx.x(16):               S = decl_buffer((16,), scope="shared")
//     S = decl_buffer((16,), "shared")      own = decl_buffer((16,), scope="shared")
//     v = A[x]                              for x in threadIdx.x(16):
//     S[x] = v                           →    own[x] = A[x]
//     T.tvm_storage_sync("shared")            S[x] = own[x]
//     B[x] = S[15 - x] + v                  for x in threadIdx.x(16):
//                                             B[x] = S[15 - x] + own[x]
//
// A part between two barriers is a phase. Values and private memory that live in several phases get
// an element for each thread. A loop or a condition around a barrier moves out of the loops over
// threads, which needs that it is the same for all threads. Threads of a warp may also wait under a
// condition that differs between them: each phase is then under the condition.
//
// A phase also ends where a loop with a barrier begins and ends. That is right for programs without
// races. lower_phases is for finding races and makes phases between barriers alone: it has the
// first iteration of a loop after what is before it, the end of an iteration with the beginning of
// the next one, and the end of the last iteration with what follows.
//
// The method is that of loop fission in MCUDA (Stratton, Stone and Hwu, 2008).
#include "ir/intrinsic.h"
#include "lower/pass.h"
#include "script/script.h"

enum { MOST_BLOCK = 65536, MANY_PHASES = -1, LEAST_WARP = 32 };

// A statement around what is split, which stands around each phase.
typedef struct Around {
  Stmt *stmt;      // a loop over threads, LET, DECL_BUFFER or ATTR; NULL: a condition
  Expr *condition; // where the phases run
  int first;       // of the pending statements inside
} Around;

// Private memory with an element for each thread.
typedef struct Widened {
  Buffer *from, *to;
  Expr *thread; // the number of the element
} Widened;

typedef struct Splitting {
  Context *context;
  ThreadValues values;
  bool for_races; // make phases between barriers alone
  bool looking;   // only note in which phases variables are used
  bool failed, grid;
  Array(Around) around;
  PtrArray pending; // Stmt *: of the phase. One without its body is around those that follow
  PtrArray out;     // Stmt *: finished, of the loop or condition that is split
  PtrArray shared;  // Stmt *: allocations around these, without their bodies
  Array(Widened) widened;
  Map elements;   // variables of lets to their elements
  int phase;      // counts the phases
  int conditions; // around, that differ between threads
  Map made, used; // variables to phases + 1
  Map runs;       // Stmt * of a condition to the variable that has its value
} Splitting;

static void split(Splitting *f, Stmt *s);

// ---- Messages

static bool find_barrier(Visitor *visitor, Stmt *s) {
  const Stmt **found = visitor->env;
  if (!*found && s->kind == STMT_EVALUATE && expr_wait(s->as.evaluate)) *found = s;
  return !*found;
}

static const Stmt *barrier_in(Stmt *s) {
  const Stmt *found = NULL;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_barrier}, s);
  return found;
}

// `why` is said of the barrier in the statement, and has a place for a text.
PRINTF_LIKE(3, 4)
static void refuse(Splitting *f, Stmt *s, const char *format, ...) {
  const Stmt *barrier = barrier_in(s);
  va_list args;
  va_start(args, format);
  const char *why = arena_vprintf(&f->context->arena, format, args);
  va_end(args);
  if (!f->failed)
    diag_error(f->context, barrier && barrier->pos.file ? barrier->pos : s->pos,
               "%s wait for one another here, %s", barrier ? wait_text(stmt_wait(s)) : "threads",
               why);
  f->failed = true;
}

// ---- Phases

static bool is_open(const Stmt *s) { // stands around the statements after it
  bool may = s->kind == STMT_LET || s->kind == STMT_ALLOCATE || s->kind == STMT_DECL_BUFFER ||
             s->kind == STMT_ALLOCATE_CONST;
  return may && !lower_body(s);
}

static Stmt *without_body(Context *context, const Stmt *s) {
  return lower_with_body(context, s, NULL);
}

static Stmt *in_order(Context *context, const PtrArray *reversed) {
  Stmt **items = arena_array(&context->arena, Stmt *, reversed->count);
  for (int i = 0; i < reversed->count; i++) items[i] = reversed->items[reversed->count - 1 - i];
  return stmt_seq(context, items, reversed->count);
}

// The statements from `first` on as one.
static Stmt *closed(Context *context, const PtrArray *items, int first) {
  PtrArray reversed = {0};
  for (int i = items->count - 1; i >= first; i--) {
    Stmt *s = items->items[i];
    if (is_open(s)) {
      s = lower_with_body(context, s, in_order(context, &reversed));
      reversed.count = 0;
    }
    array_push(&context->arena, &reversed, s);
  }
  return in_order(context, &reversed);
}

static Stmt *with_around(Context *context, const Around *around, Stmt *body) {
  if (!around->stmt) return stmt_if(context, around->condition, body, NULL);
  if (around->stmt->kind == STMT_LET && !stmt_uses(body, around->stmt->as.let.var)) return body;
  return lower_with_body(context, around->stmt, body);
}

// Variables of lets become their elements, and private memory its widened form.
static Stmt *with_elements(Splitting *f, Stmt *s) {
  if (f->elements.count) s = substitute_stmt(f->context, s, &f->elements, NULL);
  for (int i = 0; i < f->widened.count; i++) {
    const Widened *w = &f->widened.items[i];
    s = lower_index_first(f->context, s, w->from, w->to, w->thread);
  }
  return s;
}

static void note_use(Splitting *f, const Expr *var) {
  intptr_t now = f->phase + 1, known = (intptr_t)map_find(&f->used, var);
  map_put(&f->used, var, !known || known == now ? now : MANY_PHASES);
}

static bool note_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR) note_use(visitor->env, e);
  if (e->op == EXPR_LOAD) note_use(visitor->env, e->as.buffer->data);
  return true;
}

static bool note_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_STORE) note_use(visitor->env, s->as.store.buffer->data);
  if (s->kind == STMT_DECL_BUFFER) note_use(visitor->env, s->as.declare.buffer->data);
  return true;
}

static void add(Splitting *f, Stmt *s) {
  array_push(&f->context->arena, &f->pending, s);
}

// Puts a statement around the pending ones inside of it.
static void close_around(Splitting *f, const Around *around) {
  if (f->pending.count <= around->first) return;
  Stmt *body = closed(f->context, &f->pending, around->first);
  f->pending.count = around->first;
  if (!stmt_is_nothing(body)) add(f, with_around(f->context, around, body));
}

// Ends the phase.
static void end_phase(Splitting *f) {
  Context *context = f->context;
  for (int i = f->around.count - 1; i >= 0; i--) close_around(f, &f->around.items[i]);
  Stmt *body = closed(context, &f->pending, 0);
  if (f->looking)
    visit_stmt(&(Visitor){.env = f, .enter_stmt = note_stmt, .enter_expr = note_expr}, body);
  else if (!stmt_is_nothing(body))
    array_push(&context->arena, &f->out, stmt_renew(context, with_elements(f, body)));
  f->pending = (PtrArray){0};
  for (int i = 0; i < f->around.count; i++) f->around.items[i].first = 0;
  f->phase++;
}

static void enter(Splitting *f, Stmt *s, Expr *condition) {
  Around around = {s ? without_body(f->context, s) : NULL, condition, f->pending.count};
  array_push(&f->context->arena, &f->around, around);
}

static void leave(Splitting *f) {
  close_around(f, &f->around.items[--f->around.count]);
}

static void split_inside(Splitting *f, Stmt *s, Expr *condition, Stmt *body) {
  enter(f, s, condition);
  split(f, body);
  leave(f);
}

// ---- Threads

// The number of the thread among those of the loops around, and how many these have.
static Expr *thread_number(Splitting *f, int64_t *count) {
  Context *context = f->context;
  Expr *number = expr_int(context, DTYPE_INT32, 0);
  *count = 1;
  for (int i = 0; i < f->around.count; i++) {
    const Stmt *s = f->around.items[i].stmt;
    int64_t extent;
    if (!s || s->kind != STMT_FOR || !expr_as_int(s->as.loop.extent, &extent)) continue;
    Expr *at = expr_cast(context, DTYPE_INT32, expr_sub(context, s->as.loop.var, s->as.loop.min));
    number =
        expr_add(context, expr_mul(context, number, expr_int(context, DTYPE_INT32, extent)), at);
    *count *= extent;
  }
  return number;
}

static bool is_around(const Splitting *f, const char *thread) {
  for (int i = 0; i < f->around.count; i++) {
    const Stmt *s = f->around.items[i].stmt;
    if (s && s->kind == STMT_FOR && !strcmp(s->as.loop.thread, thread)) return true;
  }
  return false;
}

static void split_threads(Splitting *f, Stmt *s) {
  int64_t extent, min, count;
  const char *thread = s->as.loop.thread;
  thread_number(f, &count);
  if (!expr_as_int(s->as.loop.extent, &extent) || !expr_as_int(s->as.loop.min, &min)) {
    refuse(f, s, "in the loop %s over %s, whose number of threads is not constant",
           s->as.loop.var->as.var->name, thread);
  } else if (is_around(f, thread)) {
    refuse(f, s, "in a loop over %s inside of another loop over the same threads", thread);
  } else if (extent > MOST_BLOCK || count * extent > MOST_BLOCK) {
    refuse(f, s, "and are more than %d", MOST_BLOCK);
  } else if (extent > 0) {
    if (!f->for_races) end_phase(f);
    enter(f, s, NULL);
    split(f, s->as.loop.body);
    if (!f->for_races) end_phase(f);
    leave(f);
  }
}

// ---- Values that are the same for all threads

static bool find_load(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_LOAD;
  return true;
}

static bool has_load(Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = find_load}, e);
  return found;
}

// A value for use outside of the loops over threads: the one that the first thread has. NULL when
// it may differ, or when a thread that does not run the statement would compute it.
static Expr *same_value(Splitting *f, Expr *e) {
  Context *context = f->context;
  if (lower_value_differs(&f->values, e)) return NULL;
  Map first = map_new(&context->arena);
  for (int i = f->around.count - 1; i >= 0; i--) {
    const Stmt *s = f->around.items[i].stmt;
    if (s && s->kind == STMT_LET) {
      Map let = map_new(&context->arena);
      map_put(&let, s->as.let.var, s->as.let.value);
      e = substitute_expr(context, e, &let);
    }
    if (s && s->kind == STMT_FOR) map_put(&first, s->as.loop.var, s->as.loop.min);
  }
  if (f->looking) return e;
  e = with_elements(f, stmt_evaluate(context, e))->as.evaluate;
  if (f->conditions && has_load(e)) return NULL;
  return substitute_expr(context, e, &first);
}

// ---- Loops and conditions with barriers

typedef struct SplitLevel {
  PtrArray out, shared;
} SplitLevel;

static SplitLevel begin_level(Splitting *f) {
  SplitLevel outer = {f->out, f->shared};
  f->out = f->shared = (PtrArray){0};
  return outer;
}

// The finished statements of the level.
static Stmt *end_level(Splitting *f, SplitLevel outer) {
  Context *context = f->context;
  Stmt *body = stmt_seq(context, (Stmt **)f->out.items, f->out.count);
  for (int i = f->shared.count - 1; i >= 0; i--)
    body = lower_with_body(context, f->shared.items[i], body);
  f->out = outer.out;
  f->shared = outer.shared;
  return body;
}

static Stmt *split_level(Splitting *f, Stmt *s) {
  SplitLevel outer = begin_level(f);
  split(f, s);
  end_phase(f);
  return end_level(f, outer);
}

static void finish(Splitting *f, Stmt *s) {
  array_push(&f->context->arena, &f->out, s);
}

static Stmt *iteration(Splitting *f, const Stmt *s, Expr *number) {
  return lower_substitute(f->context, s->as.loop.body, s->as.loop.var, number);
}

// Begins with these pending statements, all inside of what is around.
static void begin_pending(Splitting *f, Stmt *first) {
  f->pending = (PtrArray){0};
  if (first) add(f, first);
  for (int i = 0; i < f->around.count; i++) f->around.items[i].first = 0;
}

// The end of an iteration, after its last barrier.
static Stmt *end_of_iteration(Splitting *f, Stmt *s) {
  SplitLevel outer = begin_level(f);
  begin_pending(f, NULL);
  split(f, s->as.loop.body);
  end_level(f, outer);
  return closed(f->context, &f->pending, 0);
}

// The phases between the first barrier of an iteration and that of the next one.
static Stmt *between_iterations(Splitting *f, Stmt *s, Stmt *end) {
  Context *context = f->context;
  Expr *var = s->as.loop.var, *one = expr_int(context, var->type, 1);
  SplitLevel outer = begin_level(f);
  begin_pending(f, end);
  split(f, iteration(f, s, expr_add(context, var, one)));
  Stmt *next = stmt_copy(context, s);
  next->as.loop.kind = LOOP_SERIAL;
  next->as.loop.extent = expr_sub(context, s->as.loop.extent, one);
  next->as.loop.body = end_level(f, outer);
  return stmt_renew(context, next);
}

// The phases that iterations of the loop have in common with one another and with what stands
// around it. Where no iteration may run, what is before the loop is in one phase with what follows.
static void split_for_races(Splitting *f, Stmt *s) {
  Context *context = f->context;
  Expr *var = s->as.loop.var, *min = s->as.loop.min, *extent = s->as.loop.extent;
  int64_t known = -1;
  bool is_known = expr_as_int(extent, &known);
  if (is_known && known <= 0) return;
  Array(Around) around = {0};
  PtrArray before = {0};
  Expr *none = expr_binary(context, EXPR_LE, extent, expr_int(context, extent->type, 0));
  for (int i = 0; i < f->around.count; i++)
    array_push(&context->arena, &around, f->around.items[i]);
  for (int i = 0; i < f->pending.count; i++)
    array_push(&context->arena, &before, stmt_if(context, none, f->pending.items[i], NULL));
  split(f, iteration(f, s, min));
  Stmt *end = end_of_iteration(f, s);
  if (!is_known || known > 1) finish(f, between_iterations(f, s, end));
  begin_pending(f, NULL);
  if (!is_known) {
    f->pending = before;
    for (int i = 0; i < around.count; i++) f->around.items[i] = around.items[i];
  }
  Expr *next = expr_add(context, min, extent);
  add(f, lower_substitute(context, end, var,
                          expr_sub(context, next, expr_int(context, var->type, 1))));
}

static void split_loop(Splitting *f, Stmt *s) {
  if (s->as.loop.kind == LOOP_THREAD) {
    split_threads(f, s);
    return;
  }
  const char *name = s->as.loop.var->as.var->name;
  if (s->as.loop.kind == LOOP_PARALLEL || s->as.loop.kind == LOOP_VECTORIZED) {
    refuse(f, s, "in the loop %s, whose iterations do not run one after the other", name);
    return;
  }
  Expr *min = same_value(f, s->as.loop.min), *extent = same_value(f, s->as.loop.extent);
  if (!min || !extent) {
    refuse(f, s, "in the loop %s, whose range (from %s, %s iterations) may not be the same for all",
           name, script_expr_text(f->context, s->as.loop.min),
           script_expr_text(f->context, s->as.loop.extent));
    return;
  }
  if (f->for_races) {
    split_for_races(f, s);
    return;
  }
  end_phase(f);
  Stmt *body = split_level(f, s->as.loop.body);
  Stmt *next = lower_with_body(f->context, s, body);
  next->as.loop.min = min;
  next->as.loop.extent = extent;
  finish(f, next);
}

static void split_while(Splitting *f, Stmt *s) {
  Expr *condition = same_value(f, s->as.repeat.condition);
  if (condition && f->for_races) {
    f->failed = true; // its iterations are not known
    return;
  }
  if (!condition) {
    refuse(f, s, "in a while whose condition %s may not be the same for all",
           script_expr_text(f->context, s->as.repeat.condition));
    return;
  }
  end_phase(f);
  Stmt *next = stmt_copy(f->context, s);
  next->as.repeat.condition = condition;
  next->as.repeat.body = split_level(f, s->as.repeat.body);
  finish(f, next);
}

static void split_alike(Splitting *f, Stmt *s, Expr *condition) {
  end_phase(f);
  Stmt *then_body = split_level(f, s->as.branch.then_body);
  Stmt *else_body = s->as.branch.else_body ? split_level(f, s->as.branch.else_body) : NULL;
  finish(f, stmt_if(f->context, condition, then_body, else_body));
}

// Each phase runs under the condition, whose value is computed once.
static void split_apart(Splitting *f, Stmt *s) {
  Context *context = f->context;
  Expr *holds = map_find(&f->runs, s);
  if (!holds) holds = expr_var(context, "runs", DTYPE_BOOL);
  map_put(&f->runs, s, holds);
  map_put(&f->values.differing, holds, holds);
  Stmt *inner = stmt_copy(context, s);
  inner->as.branch.condition = holds;
  split(f, stmt_let(context, holds, s->as.branch.condition, inner));
}

static void split_under(Splitting *f, Stmt *s) {
  Expr *holds = s->as.branch.condition;
  f->conditions++;
  split_inside(f, NULL, holds, s->as.branch.then_body);
  if (s->as.branch.else_body)
    split_inside(f, NULL, expr_unary(f->context, EXPR_NOT, holds), s->as.branch.else_body);
  f->conditions--;
}

static void split_if(Splitting *f, Stmt *s) {
  Expr *condition = same_value(f, s->as.branch.condition);
  if (condition && f->for_races)
    f->failed = true; // it is not known which phases are one
  else if (condition)
    split_alike(f, s, condition);
  else if (stmt_wait(s) > WAIT_WARP)
    refuse(f, s, "under the condition %s, which may not be the same for all",
           script_expr_text(f->context, s->as.branch.condition));
  else if (s->as.branch.condition->op == EXPR_VAR)
    split_under(f, s);
  else
    split_apart(f, s);
}

// ---- Values and memory that live in several phases

// Is the variable used in the phase only in which it is made?
static bool stays_in_phase(const Splitting *f, const Expr *var) {
  intptr_t used = (intptr_t)map_find(&f->used, var);
  return !f->looking && !f->for_races && (!used || map_find(&f->made, var) == (void *)used);
}

static void note_made(Splitting *f, const Expr *var) {
  if (f->looking) map_put(&f->made, var, (intptr_t)f->phase + 1);
}

// Memory that has an element for each thread and can be seen by all of them.
static const char *wide_scope(const Splitting *f) {
  return f->for_races ? "local" : f->grid ? "global" : "shared";
}

static void allocate_outside(Splitting *f, Buffer *buffer) {
  Stmt *both = stmt_allocate(f->context, buffer, NULL);
  Stmt *declared = lower_body(both);
  array_push(&f->context->arena, &f->shared, without_body(f->context, both));
  if (declared) array_push(&f->context->arena, &f->shared, without_body(f->context, declared));
}

static void split_let_element(Splitting *f, Stmt *s) {
  Context *context = f->context;
  Expr *var = s->as.let.var;
  int64_t count;
  Expr *number = thread_number(f, &count);
  if (var->type.code == TYPE_HANDLE) {
    refuse(f, s, "while they have the pointer %s", var->as.var->name);
  } else if (f->looking) {
    add(f, stmt_evaluate(context, s->as.let.value));
  } else {
    Expr *size = expr_int(context, DTYPE_INT32, count);
    Buffer *all = buffer_new(context, var->as.var->name, var->type, &size, 1, wide_scope(f));
    if (!f->for_races) allocate_outside(f, all);
    map_put(&f->elements, var, expr_load(context, all, &number, 1));
    add(f, stmt_store(context, all, &number, 1, s->as.let.value));
  }
  split(f, s->as.let.body);
}

static void split_let(Splitting *f, Stmt *s) {
  Expr *value = s->as.let.value;
  note_made(f, s->as.let.var);
  if (!expr_reads_memory(value) && expr_is_pure(value)) {
    split_inside(f, s, NULL, s->as.let.body);
  } else if (stays_in_phase(f, s->as.let.var)) {
    add(f, without_body(f->context, s));
    split(f, s->as.let.body);
  } else {
    split_let_element(f, s);
  }
}

static void widen(Splitting *f, Stmt *s) {
  Context *context = f->context;
  const char *name = s->as.allocate.var->as.var->name;
  Buffer *buffer = lower_sole_buffer(s);
  if (!buffer) {
    refuse(f, s, "while they use the memory of %s, which has several descriptions", name);
    return;
  }
  for (int i = 0; i < buffer->rank; i++)
    if (!expr_as_int(buffer->shape[i], &(int64_t){0})) {
      refuse(f, s, "while they use %s, which has not a constant number of elements", name);
      return;
    }
  if (!f->looking) {
    int64_t count;
    Expr *number = thread_number(f, &count);
    Buffer *wide = lower_with_first_axis(context, buffer, expr_int(context, DTYPE_INT32, count));
    wide->scope = str_intern(context, wide_scope(f));
    wide->data = expr_data_var(context, name, buffer->type, wide->scope);
    Widened widened = {buffer, wide, number};
    allocate_outside(f, wide);
    array_push(&context->arena, &f->widened, widened);
  }
  split(f, lower_body(lower_body(s)));
}

// Memory that threads of a block share, one for all of them.
static void share(Splitting *f, Stmt *s) {
  Context *context = f->context;
  const char *name = s->as.allocate.var->as.var->name;
  Stmt *below = lower_body(s);
  for (int i = 0; i < s->as.allocate.rank; i++)
    if (!expr_as_int(s->as.allocate.extents[i], &(int64_t){0})) {
      refuse(f, s, "while they share %s, which has not a constant number of elements", name);
      return;
    }
  bool declares =
      below->kind == STMT_DECL_BUFFER && below->as.declare.buffer->data == s->as.allocate.var;
  array_push(&context->arena, &f->shared, without_body(context, s));
  if (declares) array_push(&context->arena, &f->shared, without_body(context, below));
  split(f, declares ? lower_body(below) : below);
}

static void split_allocate(Splitting *f, Stmt *s) {
  const char *scope = s->as.allocate.var->as.var->scope;
  note_made(f, s->as.allocate.var);
  if (f->for_races) {
    split(f, lower_body(s));
  } else if (lower_is_private(scope) && stays_in_phase(f, s->as.allocate.var)) {
    add(f, without_body(f->context, s));
    split(f, lower_body(s));
  } else if (lower_is_private(scope)) {
    widen(f, s);
  } else if (!strncmp(scope, "shared", strlen("shared")) && !f->grid) {
    share(f, s);
  } else {
    refuse(f, s,
           "while they use %s of scope '%s', which is allocated in a loop over them\n"
           "allocate it outside of the loop, or give it the scope '%s'",
           s->as.allocate.var->as.var->name, scope, f->grid ? "local" : "shared' or 'local");
  }
}

// ---- Other statements

static void split_constant(Splitting *f, Stmt *s) {
  if (!f->for_races) array_push(&f->context->arena, &f->shared, without_body(f->context, s));
  split(f, lower_body(s));
}

static void split_body(Splitting *f, Stmt *s) {
  Stmt *open = s->kind == STMT_DECL_BUFFER ? without_body(f->context, s) : NULL;
  if (open && stays_in_phase(f, s->as.declare.buffer->data)) {
    add(f, open);
    split(f, lower_body(s));
  } else {
    split_inside(f, s, NULL, lower_body(s));
  }
}

static void split_assert(Splitting *f, Stmt *s) {
  Stmt *alone = stmt_copy(f->context, s);
  alone->as.check.body = NULL;
  add(f, alone);
  split(f, s->as.check.body);
}

static void split_seq(Splitting *f, Stmt *s) {
  for (int i = 0; i < s->as.seq.count && !f->failed; i++) split(f, s->as.seq.items[i]);
}

// A barrier of a warp separates the accesses of a block only where that is one warp.
static void split_evaluate(Splitting *f, Stmt *s) {
  int64_t count;
  thread_number(f, &count);
  if (f->for_races && expr_wait(s->as.evaluate) == WAIT_WARP && count > LEAST_WARP)
    f->failed = true;
  else
    end_phase(f);
}

static void (*const kinds[])(Splitting *, Stmt *) = {
    [STMT_FOR] = split_loop,
    [STMT_STORE] = add,
    [STMT_LET] = split_let,
    [STMT_IF] = split_if,
    [STMT_WHILE] = split_while,
    [STMT_ASSERT] = split_assert,
    [STMT_EVALUATE] = split_evaluate,
    [STMT_SEQ] = split_seq,
    [STMT_BLOCK] = add,
    [STMT_ALLOCATE] = split_allocate,
    [STMT_ALLOCATE_CONST] = split_constant,
    [STMT_DECL_BUFFER] = split_body,
    [STMT_ATTR] = split_body,
};

static void split(Splitting *f, Stmt *s) {
  if (f->failed) return;
  if (stmt_wait(s) == WAIT_NONE)
    add(f, s);
  else
    kinds[s->kind](f, s);
}

// ---- Private memory that is not allocated where each thread has its own

typedef struct Depths {
  Splitting *splitting;
  Stmt *loop;
  Map depths; // data variables to loops over threads around their allocation
  int depth;
} Depths;

static void check_memory(Depths *d, const Buffer *buffer) {
  if (!lower_is_private(buffer->scope)) return;
  intptr_t depth = (intptr_t)map_find(&d->depths, buffer->data);
  if (depth >= d->depth) return;
  refuse(d->splitting, d->loop,
         "in a loop that accesses %s, but it is allocated outside of the loop and its scope '%s' "
         "gives each thread memory of its own\nallocate it inside of the loop, or give it the "
         "scope 'shared'",
         buffer->name, buffer->scope);
}

static bool check_stmt(Visitor *visitor, Stmt *s) {
  Depths *d = visitor->env;
  d->depth += s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD;
  if (s->kind == STMT_ALLOCATE) map_put(&d->depths, s->as.allocate.var, (intptr_t)d->depth);
  if (s->kind == STMT_STORE) check_memory(d, s->as.store.buffer);
  return true;
}

static void check_end(Visitor *visitor, Stmt *s) {
  Depths *d = visitor->env;
  d->depth -= s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD;
}

static bool check_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) check_memory(visitor->env, e->as.buffer);
  return true;
}

static void check_private(Splitting *f, Stmt *loop) {
  Depths d = {f, loop, map_new(&f->context->arena), 0};
  visit_stmt(
      &(Visitor){
          .env = &d, .enter_stmt = check_stmt, .leave_stmt = check_end, .enter_expr = check_expr},
      loop);
}

// ---- The pass

static Splitting new_splitting(Context *context, Stmt *loop, bool for_races) {
  Arena *arena = &context->arena;
  return (Splitting){.context = context,
                     .for_races = for_races,
                     .grid = stmt_wait(loop) == WAIT_GRID,
                     .values = lower_thread_values(context, loop),
                     .elements = map_new(arena),
                     .made = map_new(arena),
                     .used = map_new(arena),
                     .runs = map_new(arena)};
}

static Stmt *split_root(Context *context, Stmt *loop, bool for_races) {
  Splitting look = new_splitting(context, loop, for_races);
  check_private(&look, loop);
  look.looking = true;
  if (!for_races && !look.failed) split_level(&look, loop);
  if (look.failed) return loop;
  Splitting f = new_splitting(context, loop, for_races);
  f.made = look.made;
  f.used = look.used;
  f.runs = look.runs;
  Stmt *phases = split_level(&f, loop);
  return f.failed ? loop : phases;
}

// The outermost loop over the threads that wait for one another is split; a barrier outside of
// such a loop has no thread to wait for.
static Stmt *enter_stmt(Rewriter *rewriter, Stmt *s) {
  const bool *for_races = rewriter->env;
  Wait wait = stmt_wait(s);
  if (wait == WAIT_NONE) return s;
  if (s->kind == STMT_EVALUATE && expr_is_barrier(s->as.evaluate))
    return stmt_nothing(rewriter->context);
  if (s->kind != STMT_FOR || s->as.loop.kind != LOOP_THREAD) return NULL;
  if (thread_is_block(s->as.loop.thread) && wait < WAIT_GRID) return NULL;
  return split_root(rewriter->context, s, *for_races);
}

static PrimFunc *split_func(LowerState *state, PrimFunc *func, bool for_races) {
  Rewriter rewriter = {.env = &for_races, .enter_stmt = enter_stmt, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}

// Virtual threads have memory of their own where it is allocated inside of the loop over them, so
// that they are no threads of the block that share it. Buffers shrink to the box that one thread
// uses, since what all threads of a block have of them becomes one buffer.
static PrimFunc *split_at_waits(LowerState *state, PrimFunc *func, bool for_races) {
  func = lower_thread_allreduce(state, func);
  if (func && !for_races && stmt_wait(func->body)) func = lower_compact_buffers(state, func);
  if (func) func = lower_shuffles(state, func, !for_races);
  if (func && stmt_wait(func->body)) func = lower_inject_virtual_threads(state, func);
  return func ? split_func(state, func, for_races) : NULL;
}

PrimFunc *lower_split_at_barriers(LowerState *state, PrimFunc *func) {
  return split_at_waits(state, func, false);
}

PrimFunc *lower_phases(LowerState *state, PrimFunc *func) {
  return split_at_waits(state, func, true);
}
