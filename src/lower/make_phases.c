// SPDX-License-Identifier: Apache-2.0
// The outermost structure that code generators expect (lower.h): declarations and workspace first,
// then phases, each one parallel loop from 0 or one serial statement.
//
//   A_1 = decl_buffer(...)                         A_1 = decl_buffer(...)
//   T = allocate(1000000)                    →     T = allocate(1000000)      # workspace
//   for i in T.parallel(2, 9):                     for i in T.parallel(7):
//     for j in T.parallel(4): ...                    for j in range(4): ...
//   s = allocate(16); ...                          s = allocate(16); ...      # one serial phase
//
// A parallel loop that is not outermost becomes serial and is reported. Allocations below a phase
// stay where they are while they fit the stack; larger ones become workspace, with a leading axis
// for the tasks when they lie in a parallel loop.
#include "lower/pass.h"

typedef struct Phases {
  LowerState *state;
  Context *context;
  PtrArray wrappers; // Stmt *: DECL_BUFFER, ALLOCATE, …, from the outside in
  PtrArray phases;   // Stmt *
  int64_t stack;     // bytes of allocations that stayed below phases
  Map moved;         // Buffer* → Moved*, for allocations out of a parallel loop
  Expr *task;        // variable of the phase at hand; NULL in serial ones
  Expr *task_count;
} Phases;

typedef struct Moved {
  Buffer *buffer;
  Expr *shift; // added to the index
} Moved;

// ---- Parallel loops

static bool enter_parallel(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= s->kind == STMT_FOR && s->as.loop.kind == LOOP_PARALLEL;
  return true;
}

static bool has_parallel(Stmt *s) {
  bool found = false;
  Visitor visitor = {.env = &found, .enter_stmt = enter_parallel};
  visit_stmt(&visitor, s);
  return found;
}

static Stmt *serialize(Rewriter *rewriter, Stmt *s) {
  Phases *phases = rewriter->env;
  if (s->kind != STMT_FOR || s->as.loop.kind != LOOP_PARALLEL) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.loop.kind = LOOP_SERIAL;
  lower_note(phases->state, LOWER_SERIALIZED, "loop %s runs in one thread: it is not outermost",
             s->as.loop.var->as.var->name);
  return next;
}

static Stmt *serialized(Phases *phases, Stmt *s) {
  if (!has_parallel(s)) return s;
  Rewriter rewriter = {.context = phases->context, .env = phases, .stmt = serialize};
  return rewrite_stmt(&rewriter, s);
}

static Stmt *from_zero(Context *context, Stmt *loop) {
  if (expr_is_int(loop->as.loop.min, 0)) return loop;
  Expr *var = loop->as.loop.var;
  Stmt *body =
      lower_substitute(context, loop->as.loop.body, var, expr_add(context, var, loop->as.loop.min));
  Stmt *next = lower_with_body(context, loop, body);
  next->as.loop.min = expr_int(context, var->type, 0);
  return next;
}

// ---- Allocations below a phase

static int64_t allocation_bytes(const Stmt *s) {
  int64_t bytes = dtype_bytes(s->as.allocate.type) * (int64_t)s->as.allocate.type.lanes, extent;
  for (int i = 0; i < s->as.allocate.rank; i++)
    if (!expr_as_int(s->as.allocate.extents[i], &extent) || !mul_fits(bytes, extent, &bytes))
      return -1;
  return bytes;
}

// Every task its own part of one workspace: [count * elements], shifted by task * elements.
static void give_each_task(Phases *phases, Stmt *s, Buffer *buffer) {
  Context *context = phases->context;
  Expr *wide_task = expr_cast(context, DTYPE_INT64, phases->task);
  Expr *elements = expr_cast(context, DTYPE_INT64, buffer->shape[0]);
  Moved *moved = arena_new(&context->arena, Moved);
  Expr *count = expr_cast(context, DTYPE_INT64, phases->task_count);
  Expr *shape = expr_mul(context, count, elements);
  moved->buffer = buffer_copy(context, buffer);
  moved->buffer->shape = arena_copy(&context->arena, &shape, sizeof shape);
  moved->shift = expr_mul(context, wide_task, elements);
  map_put(&phases->moved, buffer, moved);
  Stmt *allocate = stmt_allocate(context, moved->buffer, s->as.allocate.body->as.declare.body);
  array_push(&context->arena, &phases->wrappers, allocate);
  array_push(&context->arena, &phases->wrappers, allocate->as.allocate.body);
  lower_note(phases->state, LOWER_COUNT_KINDS,
             "buffer %s is too large for the stack: every task has its own in the workspace",
             buffer->name);
}

static bool enter_bound(Visitor *visitor, Expr *e) {
  const Map *bound = ((void **)visitor->env)[0];
  bool *found = ((void **)visitor->env)[1];
  *found |= e->op == EXPR_VAR && map_contains(bound, e);
  return true;
}

// Do the extents depend on anything bound below the phase?
static bool uses_any(const Stmt *s, const Map *bound) {
  bool found = false;
  Visitor visitor = {.env = (void *[]){(void *)bound, &found}, .enter_expr = enter_bound};
  for (int i = 0; i < s->as.allocate.rank; i++) visit_expr(&visitor, s->as.allocate.extents[i]);
  return found;
}

static bool note_bound(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_FOR) map_put((Map *)visitor->env, s->as.loop.var, s);
  if (s->kind == STMT_LET) map_put((Map *)visitor->env, s->as.let.var, s);
  return true;
}

typedef struct Lifting {
  Phases *phases;
  Map bound; // variables bound below the phase
} Lifting;

static Stmt *lift_large(Rewriter *rewriter, Stmt *s) {
  Lifting *lifting = rewriter->env;
  Phases *phases = lifting->phases;
  Context *context = phases->context;
  if (s->kind != STMT_ALLOCATE) return s;
  int64_t bytes = allocation_bytes(s);
  if (bytes >= 0 && phases->stack + bytes <= LOWER_STACK_BYTES) {
    phases->stack += bytes;
    return s;
  }
  Stmt *declare = s->as.allocate.body;
  Buffer *buffer = declare->kind == STMT_DECL_BUFFER ? declare->as.declare.buffer : NULL;
  if (uses_any(s, &lifting->bound) || !buffer || (phases->task && buffer->rank != 1)) {
    diag_error(context, s->pos,
               "the size of %s depends on a loop around it, so it cannot be planned",
               s->as.allocate.var->as.var->name);
    return s;
  }
  if (phases->task) {
    give_each_task(phases, s, buffer);
  } else {
    array_push(&context->arena, &phases->wrappers, s);
    array_push(&context->arena, &phases->wrappers, declare);
  }
  return declare->as.declare.body;
}

static Expr *shift_load(Rewriter *rewriter, Expr *e) {
  Phases *phases = rewriter->env;
  const Moved *moved = e->op == EXPR_LOAD ? map_find(&phases->moved, e->as.buffer) : NULL;
  if (!moved) return e;
  Expr *index = expr_add(rewriter->context, e->args[0], moved->shift);
  return expr_load(rewriter->context, moved->buffer, &index, 1);
}

static Stmt *shift_store(Rewriter *rewriter, Stmt *s) {
  Phases *phases = rewriter->env;
  const Moved *moved = s->kind == STMT_STORE ? map_find(&phases->moved, s->as.store.buffer) : NULL;
  if (!moved) return s;
  Expr *index = expr_add(rewriter->context, s->as.store.indices[0], moved->shift);
  return stmt_store(rewriter->context, moved->buffer, &index, 1, s->as.store.value);
}

static Stmt *without_large(Phases *phases, Stmt *s) {
  Lifting lifting = {phases, map_new(&phases->context->arena)};
  Visitor visitor = {.env = &lifting.bound, .enter_stmt = note_bound};
  visit_stmt(&visitor, s);
  Rewriter rewriter = {
      .context = phases->context, .env = &lifting, .stmt = lift_large, .buffer = lower_keep_buffer};
  phases->moved = map_new(&phases->context->arena);
  s = rewrite_stmt(&rewriter, s);
  if (!phases->moved.count) return s;
  Rewriter shifter = {.context = phases->context,
                      .env = phases,
                      .expr = shift_load,
                      .stmt = shift_store,
                      .buffer = lower_keep_buffer};
  return rewrite_stmt(&shifter, s);
}

// ---- Phases

static void add_parallel(Phases *phases, Stmt *loop) {
  loop = from_zero(phases->context, loop);
  Stmt *body = serialized(phases, loop->as.loop.body);
  phases->task = loop->as.loop.var;
  phases->task_count = loop->as.loop.extent;
  phases->stack = 0;
  body = without_large(phases, body);
  array_push(&phases->context->arena, &phases->phases,
             lower_with_body(phases->context, loop, body));
  phases->task = NULL;
}

// Neighbouring serial statements are one phase.
static void add_serial(Phases *phases, Stmt *s) {
  Context *context = phases->context;
  if (stmt_is_nothing(s)) return;
  phases->stack = 0;
  s = without_large(phases, serialized(phases, s));
  Stmt *last = phases->phases.count ? array_last(&phases->phases) : NULL;
  if (last && !(last->kind == STMT_FOR && last->as.loop.kind == LOOP_PARALLEL))
    array_last(&phases->phases) = stmt_seq(context, (Stmt *[]){last, s}, 2);
  else
    array_push(&context->arena, &phases->phases, s);
}

static bool is_wrapper(const Stmt *s) {
  return s->kind == STMT_DECL_BUFFER || s->kind == STMT_ALLOCATE ||
         s->kind == STMT_ALLOCATE_CONST ||
         (s->kind == STMT_LET && expr_is_pure(s->as.let.value) &&
          !lower_reads_memory(s->as.let.value));
}

static void split(Phases *phases, Stmt *s, bool outermost) {
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_PARALLEL) {
    add_parallel(phases, s);
  } else if (s->kind == STMT_SEQ && (outermost || has_parallel(s))) {
    for (int i = 0; i < s->as.seq.count; i++) split(phases, s->as.seq.items[i], false);
  } else if (s->kind == STMT_ATTR && has_parallel(s)) {
    split(phases, s->as.attr.body, outermost);
  } else if (is_wrapper(s) &&
             (has_parallel(s) || (outermost && s->kind != STMT_ALLOCATE && s->kind != STMT_LET))) {
    array_push(&phases->context->arena, &phases->wrappers, s);
    split(phases, lower_body(s), outermost);
  } else {
    add_serial(phases, s);
  }
}

PrimFunc *lower_make_phases(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  int errors = context->error_count;
  Phases phases = {.state = state, .context = context};
  split(&phases, func->body, true);
  Stmt *body = stmt_seq(context, (Stmt *const *)phases.phases.items, phases.phases.count);
  body = stmt_attr(context, "pleat.phases", NULL, expr_index(context, phases.phases.count), body);
  for (int i = phases.wrappers.count - 1; i >= 0; i--)
    body = lower_with_body(context, phases.wrappers.items[i], body);
  return context->error_count > errors ? NULL : prim_func_with_body(context, func, body);
}
