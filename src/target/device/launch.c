// SPDX-License-Identifier: Apache-2.0
// Finds how the region of a kernel is started on a device: from its loops over blocks and threads
// come the number of blocks and the threads of each.
//
//   for b in T.thread_binding(6, "blockIdx.x"):           6 blocks of 7 threads
//     for t in T.thread_binding(7, "threadIdx.x"): ...  →   a barrier between the loops
//     for t in T.thread_binding(5, "threadIdx.x"): ...      only threads 0 to 4
#include "target/device/emit.h"

typedef struct LaunchSearch {
  Context *context;
  Launch *launch;
  Map lets;           // variables of lets around → their values
  Map inner;          // variables that are bound inside the region
  PtrArray splitters; // statements around that are no place for a loop over blocks
  bool parallel, ok;
} LaunchSearch;

static bool refuse(LaunchSearch *f, const Stmt *loop, const char *why) {
  if (f->ok)
    f->ok = diag_error_as(f->context, DIAG_UNSUPPORTED, loop->pos, "the loop %s over %s %s",
                          loop->as.loop.var->as.var->name, loop->as.loop.thread, why);
  return false;
}

static bool enter_unknown(Visitor *visitor, Expr *e) {
  const LaunchSearch *f = ((void **)visitor->env)[0];
  bool *unknown = ((void **)visitor->env)[1];
  *unknown |= e->op == EXPR_LOAD || (e->op == EXPR_VAR && map_contains(&f->inner, e));
  return true;
}

// The extent over the arguments of the kernel; NULL where it depends on more.
static Expr *outer_extent(LaunchSearch *f, const Stmt *loop) {
  Expr *extent = substitute_expr(f->context, loop->as.loop.extent, &f->lets);
  bool unknown = false;
  visit_expr(&(Visitor){.env = (void *[]){f, &unknown}, .enter_expr = enter_unknown}, extent);
  return unknown ? NULL : extent;
}

static bool add_blocks(LaunchSearch *f, const Stmt *loop, int axis) {
  Expr *extent = outer_extent(f, loop);
  if (f->splitters.count)
    return refuse(f, loop,
                  "is inside of another statement; blocks cannot wait for one another, so "
                  "it must be outermost");
  if (f->launch->blocks[axis])
    return refuse(f, loop, "is inside of another loop over the same blocks");
  if (!extent) return refuse(f, loop, "has an extent that the arguments do not give");
  f->launch->blocks[axis] = extent;
  return true;
}

static bool add_threads(LaunchSearch *f, const Stmt *loop, int axis) {
  int64_t extent;
  if (!expr_as_int(loop->as.loop.extent, &extent))
    return refuse(f, loop, "needs a constant number of threads");
  f->launch->threads[axis] = MAX_OF(f->launch->threads[axis], extent);
  f->launch->axes |= 1u << axis;
  return true;
}

static bool add_loop(LaunchSearch *f, const Stmt *loop) {
  bool is_block;
  int axis = loop_thread_axis(loop, &is_block);
  if (axis >= 0) return is_block ? add_blocks(f, loop, axis) : add_threads(f, loop, axis);
  return loop_is_virtual(loop) || refuse(f, loop, "is not over threads that a device has");
}

static bool enter(Visitor *visitor, Stmt *s) {
  LaunchSearch *f = visitor->env;
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD && !f->parallel) add_loop(f, s);
  if (s->kind == STMT_FOR) map_put(&f->inner, s->as.loop.var, s);
  if (s->kind == STMT_LET)
    map_put(&f->lets, s->as.let.var, substitute_expr(f->context, s->as.let.value, &f->lets));
  if (device_stmt_orders(s)) array_push(&f->context->scratch, &f->splitters, s);
  return f->ok;
}

static void leave(Visitor *visitor, Stmt *s) {
  LaunchSearch *f = visitor->env;
  if (device_stmt_orders(s) && f->splitters.count) f->splitters.count--;
}

bool launch_of(Context *context, const LowerRegion *region, Stmt *body, Launch *launch) {
  *launch = (Launch){.threads = {1, 1, 1}};
  LaunchSearch f = {.context = context,
                    .launch = launch,
                    .lets = map_new(&context->scratch),
                    .inner = map_new(&context->scratch),
                    .parallel = stmt_uses(body, region->end),
                    .ok = true};
  if (f.parallel) launch->items = expr_sub(context, region->end, region->begin);
  visit_stmt(&(Visitor){.env = &f, .enter_stmt = enter, .leave_stmt = leave}, body);
  return f.ok;
}

// ---- Memory -----------------------------------------------------------------------------------

typedef struct Placing {
  Context *context;
  Map *memories;
  int depth;                                  // loops over threads around
  int loops[LAUNCH_AXES], outer[LAUNCH_AXES]; // of each axis, and the depth inside the first
  SourcePos pos;
  bool ok;
} Placing;

// Enters or leaves a loop over threads.
static void count_loop(Placing *p, const Stmt *s, int step) {
  int axis = loop_thread_axis(s, NULL);
  if (axis < 0) return;
  p->depth += step;
  p->loops[axis] += step;
  if (step > 0 && p->loops[axis] == 1) p->outer[axis] = p->depth;
}

// A loop over threads inside of a loop over the same threads runs once on the device, and not once
// for each thread outside. That is the same only for memory that each thread outside has anew.
static void check_nested(Placing *p, const Stmt *s) {
  const DeviceMemory *memory = map_find(p->memories, s->as.store.buffer->data);
  for (int i = 0; i < LAUNCH_AXES && p->ok; i++)
    if (p->loops[i] > 1 && (!memory || memory->depth < p->outer[i]))
      p->ok = diag_error_as(p->context, DIAG_UNSUPPORTED, p->pos,
                            "%s is written in a loop over threads inside of another loop over the "
                            "same threads, and is not allocated between them\n"
                            "move the inner loop out, or bind it to another axis of threads",
                            s->as.store.buffer->name);
}

static void add_memory(Placing *p, const Stmt *s) {
  const Expr *var = s->as.allocate.var;
  DeviceMemory *memory = arena_new(&p->context->scratch, DeviceMemory);
  *memory = (DeviceMemory){s, !strncmp(var->as.var->scope, "shared", 6), p->depth};
  map_put(p->memories, var, memory);
}

static void check_private(Placing *p, const Buffer *buffer) {
  const DeviceMemory *memory = map_find(p->memories, buffer->data);
  if (!memory || memory->is_shared || p->depth <= memory->depth || !p->ok) return;
  p->ok = diag_error_as(p->context, DIAG_UNSUPPORTED, buffer->pos.file ? buffer->pos : p->pos,
                        "%s is allocated outside of a loop over threads that accesses it, but its "
                        "scope '%s' gives each thread memory of its own\n"
                        "allocate it inside of the loop, or give it the scope 'shared'",
                        buffer->name, buffer->scope);
}

static bool place_stmt(Visitor *visitor, Stmt *s) {
  Placing *p = visitor->env;
  if (s->pos.file) p->pos = s->pos;
  if (s->kind == STMT_ALLOCATE) add_memory(p, s);
  if (s->kind == STMT_STORE) check_private(p, s->as.store.buffer);
  if (s->kind == STMT_STORE) check_nested(p, s);
  count_loop(p, s, 1);
  return p->ok;
}

static void place_end(Visitor *visitor, Stmt *s) {
  count_loop(visitor->env, s, -1);
}

static bool place_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) check_private(visitor->env, e->as.buffer);
  return true;
}

// ---- Shared memory that is allocated inside of a loop over threads
//
// Each thread of that loop has its own in the lowered program. On the device they have one, so all
// must fill it with the same values: no store may depend on the threads outside.

typedef struct Tainting {
  Context *context;
  const Map *memories;
  const DeviceMemory *memory;
  Map tainted;    // variables that depend on the threads outside of the memory
  int conditions; // around, that depend on them
  bool found, differs;
} Tainting;

static bool taints(Visitor *visitor, Expr *e) {
  Tainting *t = visitor->env;
  const DeviceMemory *from = e->op == EXPR_LOAD ? map_find(t->memories, e->as.buffer->data) : NULL;
  t->found |= (e->op == EXPR_VAR && map_contains(&t->tainted, e)) || (from && !from->is_shared);
  return true;
}

static bool is_tainted(Tainting *t, Expr *e) {
  t->found = false;
  visit_expr(&(Visitor){.env = t, .enter_expr = taints}, e);
  return t->found;
}

static bool loop_is_tainted(Tainting *t, const Stmt *s) {
  return is_tainted(t, s->as.loop.min) || is_tainted(t, s->as.loop.extent);
}

static bool stores_tainted(Tainting *t, const Stmt *s) {
  bool tainted = t->conditions || is_tainted(t, s->as.store.value);
  for (int i = 0; i < s->as.store.rank; i++) tainted |= is_tainted(t, s->as.store.indices[i]);
  return tainted;
}

static bool adds_condition(Tainting *t, const Stmt *s) {
  return (s->kind == STMT_FOR && loop_is_tainted(t, s)) ||
         (s->kind == STMT_IF && is_tainted(t, s->as.branch.condition)) ||
         (s->kind == STMT_WHILE && is_tainted(t, s->as.repeat.condition));
}

static bool taint_stmt(Visitor *visitor, Stmt *s) {
  Tainting *t = visitor->env;
  if (s->kind == STMT_STORE && s->as.store.buffer->data == t->memory->allocate->as.allocate.var)
    t->differs |= stores_tainted(t, s);
  if (s->kind == STMT_LET && is_tainted(t, s->as.let.value)) map_put(&t->tainted, s->as.let.var, s);
  if (s->kind == STMT_FOR && loop_is_tainted(t, s)) map_put(&t->tainted, s->as.loop.var, s);
  t->conditions += adds_condition(t, s);
  return true;
}

static void taint_end(Visitor *visitor, Stmt *s) {
  Tainting *t = visitor->env;
  t->conditions -= adds_condition(t, s);
}

static bool fills_alike(Tainting *t, Stmt *s) {
  visit_stmt(&(Visitor){.env = t, .enter_stmt = taint_stmt, .leave_stmt = taint_end}, s);
  return !t->differs;
}

typedef struct SharedCheck {
  Context *context;
  const Map *memories;
  PtrArray around; // Stmt *: loops over threads and lets, from the outside in
  bool ok;
} SharedCheck;

static void check_shared(SharedCheck *sharing, const Stmt *s) {
  Tainting t = {.context = sharing->context,
                .memories = sharing->memories,
                .memory = map_find(sharing->memories, s->as.allocate.var),
                .tainted = map_new(&sharing->context->scratch)};
  if (!t.memory->is_shared || !t.memory->depth) return;
  for (int i = 0; i < sharing->around.count; i++) {
    const Stmt *around = sharing->around.items[i];
    if (around->kind == STMT_FOR &&
        (loop_thread_axis(around, NULL) >= 0 || loop_is_tainted(&t, around)))
      map_put(&t.tainted, around->as.loop.var, around);
    else if (around->kind == STMT_LET && is_tainted(&t, around->as.let.value))
      map_put(&t.tainted, around->as.let.var, around);
  }
  if (fills_alike(&t, s->as.allocate.body)) return;
  sharing->ok = diag_error_as(
      sharing->context, DIAG_UNSUPPORTED, s->pos,
      "shared memory %s is allocated inside of a loop over threads and filled differently by them, "
      "but the threads of a block have one %s\n"
      "allocate it outside of the loop, or fill it by a loop over the same threads inside",
      s->as.allocate.var->as.var->name, s->as.allocate.var->as.var->name);
}

static bool sharing_stmt(Visitor *visitor, Stmt *s) {
  SharedCheck *sharing = visitor->env;
  if (s->kind == STMT_ALLOCATE && sharing->ok) check_shared(sharing, s);
  if (s->kind == STMT_FOR || s->kind == STMT_LET)
    array_push(&sharing->context->scratch, &sharing->around, s);
  return sharing->ok;
}

static void sharing_end(Visitor *visitor, Stmt *s) {
  SharedCheck *sharing = visitor->env;
  if ((s->kind == STMT_FOR || s->kind == STMT_LET) && sharing->around.count)
    sharing->around.count--;
}

bool device_memories(Context *context, Stmt *body, Map *memories) {
  Placing p = {.context = context, .memories = memories, .ok = true};
  visit_stmt(
      &(Visitor){
          .env = &p, .enter_stmt = place_stmt, .leave_stmt = place_end, .enter_expr = place_expr},
      body);
  SharedCheck sharing = {.context = context, .memories = memories, .ok = true};
  if (p.ok)
    visit_stmt(&(Visitor){.env = &sharing, .enter_stmt = sharing_stmt, .leave_stmt = sharing_end},
               body);
  return p.ok && sharing.ok;
}
