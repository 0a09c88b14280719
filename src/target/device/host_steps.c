// SPDX-License-Identifier: Apache-2.0
// Cuts a region into kernels, and the loops and conditions around them, which the host runs: blocks
// cannot wait for one another, so a loop over blocks stands in no other statement of a kernel.
//
//   for s in range(4):                                     for s in 0 … 3:
//     A[0] = s                                         →     f:   A[0] = s, by one thread
//     for b in T.thread_binding(6, "blockIdx.x"): ...        f_1: 6 blocks, which get s
//
// The host knows scalars, sizes and its own loops, and reads no tensors. A region without such
// loops is one kernel.
#include "target/device/emit.h"

typedef struct HostMaking {
  Context *context;
  SourcePos pos;     // of the function
  PtrArray wrappers; // Stmt *: declarations and lets around, from the outside in
  Map lets;          // variables of lets around → their values
  Array(HostStep) steps;
  PtrArray kernels; // Stmt *
  bool ok;
} HostMaking;

static bool refuse(HostMaking *m, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);
static bool refuse(HostMaking *m, SourcePos pos, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&m->context->scratch, format, args);
  va_end(args);
  if (!pos.file) pos = m->pos;
  if (m->ok) m->ok = diag_error_as(m->context, DIAG_UNSUPPORTED, pos, "%s", text);
  return false;
}

// ---- Which statements the host runs

typedef struct LaunchesFound {
  int splitters, threads; // statements around: that order what is in them, loops over threads
  bool any, found;        // a loop over blocks; one that is in another statement
} LaunchesFound;

// Several statements one after the other, a condition and a serial loop order what is in them.
bool device_stmt_orders(const Stmt *s) {
  return (s->kind == STMT_SEQ && s->as.seq.count > 1) || s->kind == STMT_IF ||
         s->kind == STMT_WHILE || (s->kind == STMT_FOR && s->as.loop.kind != LOOP_THREAD);
}

static bool enter(Visitor *visitor, Stmt *s) {
  LaunchesFound *f = visitor->env;
  bool is_block = false, is_thread = loop_thread_axis(s, &is_block) >= 0;
  f->any |= is_thread && is_block;
  f->found |= is_thread && is_block && f->splitters && !f->threads;
  f->splitters += device_stmt_orders(s);
  f->threads += is_thread;
  return true;
}

static void leave(Visitor *visitor, Stmt *s) {
  LaunchesFound *f = visitor->env;
  f->splitters -= device_stmt_orders(s);
  f->threads -= loop_thread_axis(s, NULL) >= 0;
}

static LaunchesFound search(Stmt *s) {
  LaunchesFound f = {0};
  visit_stmt(&(Visitor){.env = &f, .enter_stmt = enter, .leave_stmt = leave}, s);
  return f;
}

// ---- Kernels

static const Expr *bound_by(const Stmt *wrapper) {
  switch (wrapper->kind) {
  case STMT_LET: return wrapper->as.let.var;
  case STMT_ALLOCATE_CONST: return wrapper->as.allocate_const.var;
  default: return wrapper->as.declare.buffer->data;
  }
}

static Stmt *wrapped(HostMaking *m, const Stmt *wrapper, Stmt *body) {
  Stmt *next = stmt_copy(m->context, wrapper);
  switch (wrapper->kind) {
  case STMT_LET: next->as.let.body = body; break;
  case STMT_ALLOCATE_CONST: next->as.allocate_const.body = body; break;
  default: next->as.declare.body = body;
  }
  return next;
}

static void add_step(HostMaking *m, HostStep step) {
  array_push(&m->context->lasting, &m->steps, step);
}

static void add_kernel(HostMaking *m, Stmt *body) {
  for (int i = m->wrappers.count - 1; i >= 0; i--)
    if (stmt_uses(body, bound_by(m->wrappers.items[i])))
      body = wrapped(m, m->wrappers.items[i], body);
  add_step(m, (HostStep){.kind = HOST_LAUNCH, .kernel = m->kernels.count});
  array_push(&m->context->scratch, &m->kernels, body);
}

// ---- Loops and conditions

static void add_stmt(HostMaking *m, Stmt *s);

// The value over scalars, sizes and loops of the host; NULL with a diagnostic where it is read from
// memory.
static Expr *host_value(HostMaking *m, const Stmt *s, Expr *e) {
  e = substitute_expr(m->context, e, &m->lets);
  if (!expr_reads_memory(e)) return e;
  refuse(m, s->pos,
         "a loop or condition around loops over blocks depends on a tensor, which the device has, "
         "but the host starts the kernels\n"
         "make it depend on sizes and scalars, or move it into the loops over blocks");
  return NULL;
}

static void add_loop(HostMaking *m, Stmt *s) {
  HostStep step = {.kind = HOST_LOOP,
                   .var = s->as.loop.var,
                   .first = host_value(m, s, s->as.loop.min),
                   .extent = host_value(m, s, s->as.loop.extent)};
  int at = m->steps.count;
  add_step(m, step);
  if (m->ok) add_stmt(m, s->as.loop.body);
  m->steps.items[at].end = m->steps.count;
}

static void add_condition(HostMaking *m, const Stmt *s, Expr *condition, Stmt *body) {
  int at = m->steps.count;
  if (!body || !m->ok) return;
  add_step(m, (HostStep){.kind = HOST_IF, .first = host_value(m, s, condition)});
  if (m->ok) add_stmt(m, body);
  m->steps.items[at].end = m->steps.count;
}

// Statements between those that have loops over blocks are one kernel.
static void add_seq(HostMaking *m, const Stmt *s) {
  int begin = 0;
  for (int i = 0; i <= s->as.seq.count; i++) {
    Stmt *item = i < s->as.seq.count ? s->as.seq.items[i] : NULL;
    if (item && !search(item).any) continue;
    if (i > begin) add_kernel(m, stmt_seq(m->context, s->as.seq.items + begin, i - begin));
    if (item) add_stmt(m, item);
    begin = i + 1;
  }
}

typedef struct Writes {
  Expr *value;
  bool meets;
} Writes;

static bool reads_data(Expr *e, const Expr *data) {
  bool reads = e->op == EXPR_LOAD && e->as.buffer->data == data;
  for (int i = 0; i < e->count && !reads; i++) reads = reads_data(e->args[i], data);
  return reads;
}

static bool enter_write(Visitor *visitor, Stmt *s) {
  Writes *w = visitor->env;
  w->meets |= s->kind == STMT_STORE && reads_data(w->value, s->as.store.buffer->data);
  return true;
}

// Each kernel computes the value anew, so it must not change in between.
static void add_let(HostMaking *m, Stmt *s) {
  Writes w = {s->as.let.value, false};
  visit_stmt(&(Visitor){.env = &w, .enter_stmt = enter_write}, s->as.let.body);
  if (w.meets)
    refuse(m, s->pos, "%s is read from memory that the loops over blocks below it write",
           s->as.let.var->as.var->name);
  map_put(&m->lets, s->as.let.var, substitute_expr(m->context, s->as.let.value, &m->lets));
  array_push(&m->context->scratch, &m->wrappers, s);
  add_stmt(m, s->as.let.body);
  m->wrappers.count--;
}

static void add_wrapped(HostMaking *m, Stmt *s, Stmt *body) {
  array_push(&m->context->scratch, &m->wrappers, s);
  add_stmt(m, body);
  m->wrappers.count--;
}

static void add_stmt(HostMaking *m, Stmt *s) {
  if (!m->ok) return;
  if (!search(s).found) {
    add_kernel(m, s);
    return;
  }
  switch (s->kind) {
  case STMT_SEQ: add_seq(m, s); return;
  case STMT_FOR:
    if (s->as.loop.kind == LOOP_THREAD) break;
    add_loop(m, s);
    return;
  case STMT_IF:
    add_condition(m, s, s->as.branch.condition, s->as.branch.then_body);
    add_condition(m, s, expr_unary(m->context, EXPR_NOT, s->as.branch.condition),
                  s->as.branch.else_body);
    return;
  case STMT_LET: add_let(m, s); return;
  case STMT_ALLOCATE_CONST: add_wrapped(m, s, s->as.allocate_const.body); return;
  case STMT_DECL_BUFFER: add_wrapped(m, s, s->as.declare.body); return;
  case STMT_ATTR: add_stmt(m, s->as.attr.body); return;
  case STMT_ALLOCATE:
    refuse(m, s->pos,
           "%s of scope '%s' is used by several kernels of the device, which have only global "
           "memory in common",
           s->as.allocate.var->as.var->name, s->as.allocate.var->as.var->scope);
    return;
  case STMT_ASSERT: add_stmt(m, s->as.check.body); return;
  case STMT_STORE:
  case STMT_WHILE:
  case STMT_EVALUATE:
  case STMT_BLOCK: break;
  }
  add_kernel(m, s); // launch_of says what is wrong
}

bool device_region_cut(Context *context, const LowerKernel *kernel, const LowerRegion *region,
                       RegionSteps *out, PtrArray *bodies) {
  *out = (RegionSteps){.kernel = kernel, .region = region};
  HostMaking m = {
      .context = context, .pos = kernel->func->pos, .lets = map_new(&context->scratch), .ok = true};
  add_stmt(&m, region->body);
  out->steps = m.steps.items;
  out->step_count = m.steps.count;
  *bodies = m.kernels;
  return m.ok;
}
