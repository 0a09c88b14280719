// SPDX-License-Identifier: Apache-2.0
// Gives a function the outermost structure that code generators expect (lower.h): declarations and
// workspace first, then the regions, each of them one parallel loop from 0 or serial statements.
//
//   A_1 = decl_buffer(...)                         A_1 = decl_buffer(...)
//   T = allocate(1000000)                    →     T = allocate(1000000)      # workspace
//   for i in T.parallel(2, 9):                     for i in T.parallel(7):
//     for j in T.parallel(4): ...                    for j in range(4): ...
//   s = allocate(16); ...                          s = allocate(16); ...      # a serial region
//
// An outermost loop over threads is a region of its own, because a device runs it at once;
// allocations around such loops are workspace. A parallel loop that is not outermost, or whose
// length is read from memory, becomes serial and is reported. The allocations inside a region stay
// where they are while they fit the stack together; a larger one becomes workspace. For a parallel
// region, the workspace holds one copy of it for each iteration, one after the other. A function
// that has regions already gets them anew, so the pass may run twice.
#include "lower/pass.h"

typedef struct Forming {
  LowerState *state;
  Context *context;
  PtrArray wrappers; // Stmt *: DECL_BUFFER, ALLOCATE, …, from the outside in
  PtrArray regions;  // Stmt *: parallel loops and serial statements
  int region_count;  // consecutive serial statements are one region
  int64_t stack;     // bytes of the allocations that stayed in the current region
  Map shared;        // data variables in the current region that several loops over blocks share
  Map moved;         // Buffer* → Moved*, for allocations out of a parallel loop
  Expr *iteration;   // loop variable of the current region; NULL in a serial one
  Expr *iterations;  // extent of that loop
  const AccessGuards *guards;
} Forming;

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
  Forming *forming = rewriter->env;
  if (s->kind != STMT_FOR || s->as.loop.kind != LOOP_PARALLEL) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.loop.kind = LOOP_SERIAL;
  bool reads = expr_reads_memory(s->as.loop.min) || expr_reads_memory(s->as.loop.extent);
  lower_note(forming->state, LOWER_SERIALIZED, "loop %s runs in one thread: %s",
             s->as.loop.var->as.var->name,
             reads ? "its length is read from memory" : "it is not outermost");
  return next;
}

static Stmt *serialized(Forming *forming, Stmt *s) {
  if (!has_parallel(s)) return s;
  Rewriter rewriter = {.context = forming->context, .env = forming, .stmt = serialize};
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

static bool enter_region_loop(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= lower_is_region_loop(s);
  return true;
}

static bool has_region(Stmt *s) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = enter_region_loop}, s);
  return found;
}

// ---- Allocations inside a region

static int64_t allocation_bytes(const Stmt *s) {
  int64_t bytes = dtype_bytes(s->as.allocate.type) * (int64_t)s->as.allocate.type.lanes, extent;
  for (int i = 0; i < s->as.allocate.rank; i++)
    if (!expr_as_int(s->as.allocate.extents[i], &extent) || !mul_fits(bytes, extent, &bytes))
      return -1;
  return bytes;
}

// One workspace of iterations * elements elements; the accesses in an iteration are shifted by
// iteration * elements.
static void give_each_iteration(Forming *forming, Stmt *s, Buffer *buffer) {
  Context *context = forming->context;
  Expr *wide_iteration = expr_cast(context, DTYPE_INT64, forming->iteration);
  Expr *elements = expr_cast(context, DTYPE_INT64, buffer->shape[0]);
  Moved *moved = arena_new(&context->arena, Moved);
  Expr *count = expr_cast(context, DTYPE_INT64, forming->iterations);
  Expr *shape = expr_mul(context, count, elements);
  moved->buffer = buffer_copy(context, buffer);
  moved->buffer->shape = arena_copy(&context->arena, &shape, sizeof shape);
  moved->shift = expr_mul(context, wide_iteration, elements);
  map_put(&forming->moved, buffer, moved);
  Stmt *allocate = stmt_allocate(context, moved->buffer, s->as.allocate.body->as.declare.body);
  array_push(&context->arena, &forming->wrappers, allocate);
  array_push(&context->arena, &forming->wrappers, allocate->as.allocate.body);
  lower_note(forming->state, LOWER_COUNT_KINDS,
             "buffer %s is too large for the stack: the workspace holds one for each iteration",
             buffer->name);
}

static bool enter_bound(Visitor *visitor, Expr *e) {
  const Map *bound = ((void **)visitor->env)[0];
  bool *found = ((void **)visitor->env)[1];
  *found |= e->op == EXPR_VAR && map_contains(bound, e);
  return true;
}

// Whether the extents depend on a variable that is bound inside the region.
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
  Forming *forming;
  Map bound; // variables bound inside the region
} Lifting;

static Stmt *lift_large(Rewriter *rewriter, Stmt *s) {
  Lifting *lifting = rewriter->env;
  Forming *forming = lifting->forming;
  Context *context = forming->context;
  if (s->kind != STMT_ALLOCATE) return s;
  int64_t bytes = allocation_bytes(s);
  if (map_contains(&forming->shared, s->as.allocate.var)) bytes = -1;
  if (bytes >= 0 && forming->stack + bytes <= LOWER_STACK_BYTES) {
    forming->stack += bytes;
    return s;
  }
  Stmt *declare = s->as.allocate.body;
  Buffer *buffer = declare->kind == STMT_DECL_BUFFER ? declare->as.declare.buffer : NULL;
  if (uses_any(s, &lifting->bound) || !buffer || (forming->iteration && buffer->rank != 1)) {
    diag_error(context, s->pos,
               "the size of %s depends on a loop around it, so it cannot be planned",
               s->as.allocate.var->as.var->name);
    return s;
  }
  if (forming->iteration) {
    give_each_iteration(forming, s, buffer);
  } else {
    array_push(&context->arena, &forming->wrappers, s);
    array_push(&context->arena, &forming->wrappers, declare);
  }
  return declare->as.declare.body;
}

static Expr *shift_load(Rewriter *rewriter, Expr *e) {
  Forming *forming = rewriter->env;
  const Moved *moved = e->op == EXPR_LOAD ? map_find(&forming->moved, e->as.buffer) : NULL;
  if (!moved) return e;
  Expr *index = expr_add(rewriter->context, e->args[0], moved->shift);
  return expr_load_like(rewriter->context, e, moved->buffer, &index, 1);
}

static Stmt *shift_store(Rewriter *rewriter, Stmt *s) {
  Forming *forming = rewriter->env;
  const Moved *moved = s->kind == STMT_STORE ? map_find(&forming->moved, s->as.store.buffer) : NULL;
  if (!moved) return s;
  Expr *index = expr_add(rewriter->context, s->as.store.indices[0], moved->shift);
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.store.buffer = moved->buffer;
  next->as.store.indices = arena_copy(&rewriter->context->arena, &index, sizeof index);
  return next;
}

// A device runs each loop over blocks as a kernel of its own, so that memory which is allocated
// around one must outlive it.
typedef struct OutlivingSearch {
  Forming *forming;
  PtrArray around; // Stmt *: allocations
  int threads;     // loops over threads around
} OutlivingSearch;

static bool enter_shared(Visitor *visitor, Stmt *s) {
  OutlivingSearch *search = visitor->env;
  bool is_block = false, is_thread = loop_thread_axis(s, &is_block) >= 0;
  if (is_block && !search->threads)
    for (int i = 0; i < search->around.count; i++) {
      const Stmt *allocate = search->around.items[i];
      map_put(&search->forming->shared, allocate->as.allocate.var, allocate);
    }
  if (s->kind == STMT_ALLOCATE && !search->threads)
    array_push(&search->forming->context->scratch, &search->around, s);
  search->threads += is_thread;
  return true;
}

static void leave_shared(Visitor *visitor, Stmt *s) {
  OutlivingSearch *search = visitor->env;
  search->threads -= loop_thread_axis(s, NULL) >= 0;
  if (s->kind == STMT_ALLOCATE && !search->threads) search->around.count--;
}

static void find_shared(Forming *forming, Stmt *s) {
  OutlivingSearch search = {.forming = forming};
  forming->shared = map_new(&forming->context->scratch);
  if (!forming->state->options->device) return;
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = enter_shared, .leave_stmt = leave_shared}, s);
}

static Stmt *without_large(Forming *forming, Stmt *s) {
  Lifting lifting = {forming, map_new(&forming->context->arena)};
  find_shared(forming, s);
  Visitor visitor = {.env = &lifting.bound, .enter_stmt = note_bound};
  if (forming->iteration) map_put(&lifting.bound, forming->iteration, s);
  visit_stmt(&visitor, s);
  Rewriter rewriter = {.context = forming->context,
                       .env = &lifting,
                       .stmt = lift_large,
                       .buffer = lower_keep_buffer};
  forming->moved = map_new(&forming->context->arena);
  s = rewrite_stmt(&rewriter, s);
  if (!forming->moved.count) return s;
  Rewriter shifter = {.context = forming->context,
                      .env = forming,
                      .expr = shift_load,
                      .stmt = shift_store,
                      .buffer = lower_keep_buffer};
  return rewrite_stmt(&shifter, s);
}

// ---- Regions

static void add_parallel_region(Forming *forming, Stmt *loop) {
  loop = from_zero(forming->context, loop);
  Stmt *body = serialized(forming, loop->as.loop.body);
  forming->iteration = loop->as.loop.var;
  forming->iterations = loop->as.loop.extent;
  forming->stack = 0;
  body = without_large(forming, body);
  array_push(&forming->context->arena, &forming->regions,
             lower_with_body(forming->context, loop, body));
  forming->region_count++;
  forming->iteration = NULL;
}

static bool ends_serially(const Forming *forming) {
  const Stmt *last = forming->regions.count ? array_last(&forming->regions) : NULL;
  return last && !lower_is_region_loop(last);
}

static void add_serial_statement(Forming *forming, Stmt *s) {
  if (stmt_is_nothing(s)) return;
  forming->stack = 0;
  s = without_large(forming, serialized(forming, s));
  forming->region_count += !ends_serially(forming) || lower_is_region_loop(s);
  array_push(&forming->context->arena, &forming->regions, s);
}

static bool is_wrapper(const Stmt *s) {
  return s->kind == STMT_DECL_BUFFER || s->kind == STMT_ALLOCATE ||
         s->kind == STMT_ALLOCATE_CONST ||
         (s->kind == STMT_LET && expr_is_pure(s->as.let.value) &&
          !expr_reads_memory(s->as.let.value));
}

// The memory in which guards note accesses out of bounds is workspace, where the caller reads it.
static bool holds_faults(const Forming *forming, const Stmt *s) {
  return s->kind == STMT_ALLOCATE && forming->guards && s->as.allocate.var == forming->guards->data;
}

// Are there regions below declarations and workspace, from an earlier run of the pass?
static bool is_formed(const Stmt *s) {
  while (is_wrapper(s)) s = lower_body(s);
  return lower_is_regions(s);
}

// The caller computes how many iterations a region has, from sizes and scalars.
static bool is_parallel_region(const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_PARALLEL &&
         !expr_reads_memory(s->as.loop.min) && !expr_reads_memory(s->as.loop.extent);
}

static void split(Forming *forming, Stmt *s, bool outermost) {
  if (is_parallel_region(s)) {
    add_parallel_region(forming, s);
  } else if (s->kind == STMT_SEQ && (outermost || has_region(s))) {
    for (int i = 0; i < s->as.seq.count; i++) split(forming, s->as.seq.items[i], false);
  } else if (s->kind == STMT_ATTR && (has_region(s) || lower_is_regions(s))) {
    split(forming, s->as.attr.body, outermost);
  } else if (is_wrapper(s) && (has_region(s) || is_formed(s) || holds_faults(forming, s) ||
                               (outermost && s->kind != STMT_ALLOCATE && s->kind != STMT_LET))) {
    array_push(&forming->context->arena, &forming->wrappers, s);
    split(forming, lower_body(s), outermost);
  } else {
    add_serial_statement(forming, s);
  }
}

PrimFunc *lower_form_parallel_regions(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  int errors = context->error_count;
  Forming forming = {.state = state, .context = context, .guards = func->guards};
  if (!lower_lanes_are_split(context, func->body)) return NULL;
  split(&forming, func->body, true);
  Stmt *body = stmt_seq(context, (Stmt *const *)forming.regions.items, forming.regions.count);
  Expr *count = expr_index(context, forming.region_count);
  body = stmt_attr(context, LOWER_REGIONS_ATTR, NULL, count, body);
  for (int i = forming.wrappers.count - 1; i >= 0; i--)
    body = lower_with_body(context, forming.wrappers.items[i], body);
  return context->error_count > errors ? NULL : prim_func_with_body(context, func, body);
}
