// SPDX-License-Identifier: Apache-2.0
// Writes the statements of a device's kernel: loops over threads become the numbers of the thread,
// and barriers stand where threads of a block would otherwise see unfinished work.
#include "target/device/emit.h"

static DeviceKernel *kernel_of(const CEmit *emit) {
  return emit->dialect;
}

static const DeviceWords *words_of(const CEmit *emit) {
  return &kernel_of(emit)->dialect->words;
}

bool device_fail(CEmit *emit, SourcePos pos, const char *format, ...) {
  DeviceKernel *kernel = kernel_of(emit);
  if (kernel->failed) return false;
  kernel->failed = true;
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(emit->arena, format, args);
  va_end(args);
  return diag_error_as(emit->context, DIAG_UNSUPPORTED, pos.file ? pos : kernel->kernel->func->pos,
                       "%s", text);
}

// ---- What a statement accesses ----------------------------------------------------------------

typedef struct Accesses {
  const DeviceKernel *kernel;
  Map read, written; // data variables of memory that threads share
  bool has_threads;  // there is a loop over threads
  bool crosses;      // there is one, or a store to what several threads fill
} Accesses;

static bool has_threads(const DeviceKernel *kernel) {
  return kernel->launch.axes != 0;
}

static bool is_whole_block(const DeviceKernel *kernel) { // all threads are in one iteration
  return kernel->bound != kernel->launch.axes;
}

static bool is_private(const DeviceKernel *kernel, const Buffer *buffer) {
  const DeviceMemory *memory = map_find(&kernel->memories, buffer->data);
  return memory && !memory->is_shared;
}

static bool access_stmt(Visitor *visitor, Stmt *s) {
  Accesses *a = visitor->env;
  bool is_block;
  if (loop_thread_axis(s, &is_block) >= 0) a->has_threads |= !is_block;
  a->crosses |= a->has_threads;
  if (s->kind != STMT_STORE || is_private(a->kernel, s->as.store.buffer)) return true;
  const DeviceMemory *memory = map_find(&a->kernel->memories, s->as.store.buffer->data);
  a->crosses |= memory && memory->depth > 0;
  map_put(&a->written, s->as.store.buffer->data, s);
  return true;
}

static bool access_expr(Visitor *visitor, Expr *e) {
  Accesses *a = visitor->env;
  if (e->op == EXPR_LOAD && !is_private(a->kernel, e->as.buffer))
    map_put(&a->read, e->as.buffer->data, e);
  return true;
}

static Accesses accesses_new(CEmit *emit) {
  return (Accesses){kernel_of(emit), map_new(emit->arena), map_new(emit->arena), false, false};
}

static void add_accesses(CEmit *emit, Accesses *a, Stmt *s) {
  Map once = map_new(emit->arena);
  Visitor visitor = {
      .env = a, .enter_stmt = access_stmt, .enter_expr = access_expr, .once = &once};
  visit_stmt(&visitor, s);
}

static bool meets(const Map *a, const Map *b) {
  for (int i = 0; i < a->count; i++)
    if (map_contains(b, a->entries[i].key)) return true;
  return false;
}

// Whether threads must wait between both. Without loops over threads in them, several threads store
// the same values in the same order, or elements of their own, so only reads need to wait for that.
static bool conflicts(const Accesses *a, const Accesses *b) {
  bool over_threads = a->has_threads || b->has_threads || is_whole_block(a->kernel);
  return (over_threads && meets(&a->written, &b->written)) || meets(&a->written, &b->read) ||
         meets(&a->read, &b->written);
}

// ---- Barriers ---------------------------------------------------------------------------------

static void barrier(CEmit *emit, const Stmt *at) {
  DeviceKernel *kernel = kernel_of(emit);
  if (kernel->divergent)
    device_fail(
        emit, at->pos,
        "threads of a block would wait for one another here, under a condition or in a loop "
        "that is not the same for all of them");
  c_line(emit, "%s", words_of(emit)->barrier);
}

typedef struct Dependence {
  const DeviceKernel *kernel;
  bool varies;   // the value may differ between the threads of a block
  bool unsteady; // it is read from memory that threads write
} Dependence;

static bool enter_dependence(Visitor *visitor, Expr *e) {
  Dependence *d = visitor->env;
  bool is_load = e->op == EXPR_LOAD, own = is_load && is_private(d->kernel, e->as.buffer);
  d->varies |= own || (e->op == EXPR_VAR && map_contains(&d->kernel->varying, e));
  d->unsteady |= is_load && !own && map_contains(&d->kernel->written, e->as.buffer->data);
  return true;
}

static Dependence dependence_of(const DeviceKernel *kernel, Expr *e) {
  Dependence dependence = {.kernel = kernel};
  visit_expr(&(Visitor){.env = &dependence, .enter_expr = enter_dependence}, e);
  return dependence;
}

static bool varies(const DeviceKernel *kernel, Expr *e) {
  return dependence_of(kernel, e).varies;
}

static bool is_unsteady(const DeviceKernel *kernel, Expr *e) {
  return dependence_of(kernel, e).unsteady;
}

// ---- Statements -------------------------------------------------------------------------------

static bool seq(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  Accesses before = accesses_new(emit);
  for (int i = 0; i < s->as.seq.count; i++) {
    Stmt *item = s->as.seq.items[i];
    Accesses next = accesses_new(emit);
    add_accesses(emit, &next, item);
    bool crosses = is_whole_block(kernel) || before.crosses || next.crosses;
    if (crosses && conflicts(&before, &next)) {
      barrier(emit, item);
      before = accesses_new(emit);
    }
    add_accesses(emit, &before, item);
    c_stmt(emit, item);
  }
  return true;
}

static const char *launch_number(CEmit *emit, const Stmt *s, int axis, bool is_block) {
  const char *number = is_block ? words_of(emit)->block[axis] : words_of(emit)->thread[axis];
  const char *type = c_type(emit->module, s->as.loop.var->type);
  if (expr_is_int(s->as.loop.min, 0)) return arena_printf(emit->arena, "(%s)%s", type, number);
  return arena_printf(emit->arena, "%s + (%s)%s", c_index(emit, s->as.loop.min).text, type, number);
}

// The loop's body for the iteration of this thread.
static bool launch_loop(CEmit *emit, const Stmt *s, int axis, bool is_block) {
  DeviceKernel *kernel = kernel_of(emit);
  unsigned bound = kernel->bound;
  int64_t extent = 0;
  bool all = is_block ||
             (expr_as_int(s->as.loop.extent, &extent) && extent == kernel->launch.threads[axis]);
  const char *number = launch_number(emit, s, axis, is_block);
  const char *name = c_name(emit, s->as.loop.var->as.var->name);
  map_put(&emit->vars, s->as.loop.var, name);
  if (all)
    c_line(emit, "{");
  else
    c_line(emit, "if (%s < %lld) {", words_of(emit)->thread[axis], (long long)extent);
  emit->depth++;
  c_line(emit, "const %s %s = %s;", c_type(emit->module, s->as.loop.var->type), name, number);
  if (!is_block) kernel->bound |= 1u << axis;
  if (!is_block || varies(kernel, s->as.loop.min))
    map_put(&kernel->varying, s->as.loop.var, s->as.loop.var);
  kernel->divergent += !all;
  c_stmt(emit, s->as.loop.body);
  kernel->divergent -= !all;
  kernel->bound = bound;
  emit->depth--;
  c_line(emit, "}");
  return true;
}

// The iteration of this thread of a parallel region.
static bool item_loop(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  Expr *var = s->as.loop.var;
  const char *type = c_type(emit->module, var->type), *name = c_name(emit, var->as.var->name);
  kernel->launch.items = NULL; // only the outermost loop is the region's
  map_put(&emit->vars, var, name);
  c_line(emit, "if (%s < end - begin) {", words_of(emit)->item);
  emit->depth++;
  c_line(emit, "const %s %s = (%s)(begin + %s);", type, name, type, words_of(emit)->item);
  c_stmt(emit, s->as.loop.body);
  emit->depth--;
  c_line(emit, "}");
  return true;
}

// Writes the statement in the way of C, with what is inside under `divergent` more conditions.
static bool as_in_c(CEmit *emit, const Stmt *s, bool divergent) {
  DeviceKernel *kernel = kernel_of(emit);
  kernel->entered = s;
  kernel->divergent += divergent;
  c_stmt(emit, s);
  kernel->divergent -= divergent;
  return true;
}

static Stmt *with_barrier(CEmit *emit, const Stmt *s) {
  Stmt *next = stmt_copy(emit->context, s);
  Expr *sync = expr_raw(emit->context, EXPR_INTRINSIC, DTYPE_VOID,
                        str_intern(emit->context, "tvm_storage_sync"), NULL, 0);
  Stmt *items[] = {s->as.loop.body, stmt_evaluate(emit->context, sync)};
  next->as.loop.body = stmt_seq(emit->context, items, 2);
  return next;
}

// A barrier at the end of each iteration, where the next one accesses what this one wrote.
static bool serial_loop(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  Accesses body = accesses_new(emit);
  add_accesses(emit, &body, s->as.loop.body);
  bool differs = varies(kernel, s->as.loop.min) || varies(kernel, s->as.loop.extent);
  if (differs) map_put(&kernel->varying, s->as.loop.var, s->as.loop.var);
  bool crosses = is_whole_block(kernel) || body.crosses;
  if (!crosses) return false;
  if (is_unsteady(kernel, s->as.loop.min) || is_unsteady(kernel, s->as.loop.extent))
    return device_fail(emit, s->pos,
                       "the number of iterations is read from memory that is written "
                       "by the same threads") ||
           true;
  int64_t extent;
  bool once = expr_as_int(s->as.loop.extent, &extent) && extent <= 1;
  bool waits = !once && (conflicts(&body, &body) || lower_loop_ends(s));
  return as_in_c(emit, waits ? with_barrier(emit, s) : s, differs);
}

static bool loop(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  if (!expr_reads_memory(s->as.loop.min) && !expr_reads_memory(s->as.loop.extent))
    analyzer_bind(kernel->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  bool is_block;
  int axis = loop_thread_axis(s, &is_block);
  if (kernel->launch.items) return item_loop(emit, s);
  if (has_threads(kernel) ? axis >= 0 : axis >= 0 && is_block && kernel->launch.blocks[axis])
    return launch_loop(emit, s, axis, is_block);
  return has_threads(kernel) && serial_loop(emit, s);
}

static void declare_shared(CEmit *emit, const Stmt *s, int64_t count) {
  DeviceKernel *kernel = kernel_of(emit);
  Expr *var = s->as.allocate.var;
  const char *name = c_name(emit, var->as.var->name);
  const char *element = c_memory_type(emit->module, s->as.allocate.type);
  count = MAX_OF(count, 1);
  kernel->shared_bytes += count * dtype_bytes(s->as.allocate.type) * s->as.allocate.type.lanes;
  if (kernel->shared_bytes > kernel->dialect->shared_bytes)
    device_fail(emit, s->pos,
                "%s of scope '%s' makes %lld bytes of shared memory in a kernel; %s has at most "
                "%lld bytes",
                var->as.var->name, var->as.var->scope, (long long)kernel->shared_bytes,
                kernel->dialect->language, (long long)kernel->dialect->shared_bytes);
  text_printf(&kernel->locals, "  %s%s %s[%lld] __attribute__((aligned(%d)));\n",
              words_of(emit)->shared, element, name, (long long)count, TENSOR_ALIGNMENT);
  map_put(&emit->vars, var, name);
  map_put(&emit->pointees, var, element);
  map_put(&emit->spaces, var, words_of(emit)->shared);
}

static bool allocate(CEmit *emit, const Stmt *s) {
  const DeviceMemory *memory = map_find(&kernel_of(emit)->memories, s->as.allocate.var);
  int64_t count = 1, extent = 1;
  if (!strncmp(s->as.allocate.var->as.var->scope, "global.", 7))
    return device_fail(emit, s->pos,
                       "%s of scope '%s' is allocated inside of a kernel, where no memory has this "
                       "scope\nbind the loops that write it and those that read it to threads, so "
                       "that each becomes a kernel",
                       s->as.allocate.var->as.var->name, s->as.allocate.var->as.var->scope) ||
           true;
  if (!memory || !memory->is_shared) return false;
  for (int i = 0; i < s->as.allocate.rank; i++)
    if (expr_as_int(s->as.allocate.extents[i], &extent)) count *= extent;
  declare_shared(emit, s, count);
  c_stmt(emit, s->as.allocate.body);
  return true;
}

// "get_local_id(0) == 0 && …" for the axes whose loops are not around.
static const char *first_thread(CEmit *emit) {
  const DeviceKernel *kernel = kernel_of(emit);
  Text text = text_new(emit->arena);
  for (int i = 0; i < LAUNCH_AXES; i++)
    if (kernel->launch.axes & ~kernel->bound & 1u << i)
      text_printf(&text, "%s%s == 0", text.size ? " && " : "", words_of(emit)->thread[i]);
  return text_string(&text);
}

static bool store(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  if (!is_whole_block(kernel) || is_private(kernel, s->as.store.buffer)) return false;
  c_line(emit, "if (%s) {", first_thread(emit));
  emit->depth++;
  as_in_c(emit, s, true);
  emit->depth--;
  c_line(emit, "}");
  return true;
}

static bool let(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  if (dtype_is_int(s->as.let.var->type) && !expr_reads_memory(s->as.let.value))
    analyzer_bind_value(kernel->analyzer, s->as.let.var, s->as.let.value);
  if (!has_threads(kernel)) return false;
  if (varies(kernel, s->as.let.value)) map_put(&kernel->varying, s->as.let.var, s->as.let.var);
  Accesses body = accesses_new(emit);
  add_accesses(emit, &body, s->as.let.body);
  if ((is_whole_block(kernel) || body.crosses) && is_unsteady(kernel, s->as.let.value))
    device_fail(emit, s->pos, "%s is read from memory that is written by the same threads",
                s->as.let.var->as.var->name);
  return false;
}

static bool condition(CEmit *emit, const Stmt *s, Expr *test) {
  DeviceKernel *kernel = kernel_of(emit);
  Accesses body = accesses_new(emit);
  if (!has_threads(kernel)) return false;
  add_accesses(emit, &body, (Stmt *)s);
  if ((is_whole_block(kernel) || body.crosses) && is_unsteady(kernel, test))
    device_fail(emit, s->pos,
                "the condition is read from memory that is written by the same "
                "threads");
  if ((body.has_threads && varies(kernel, test)) || (body.crosses && s->kind == STMT_WHILE))
    device_fail(emit, s->pos,
                "a loop over threads stands under a condition that is not the same "
                "for all threads of the block");
  return as_in_c(emit, s, varies(kernel, test));
}

static bool evaluate(CEmit *emit, const Stmt *s) {
  if (s->as.evaluate->op != EXPR_INTRINSIC) return s->as.evaluate->op == EXPR_PREFETCH;
  barrier(emit, s);
  return true;
}

bool device_stmt(CEmit *emit, const Stmt *s) {
  DeviceKernel *kernel = kernel_of(emit);
  bool entered = kernel->entered == s;
  kernel->entered = NULL;
  if (entered) return false;
  switch (s->kind) {
  case STMT_SEQ: return has_threads(kernel) && seq(emit, s);
  case STMT_FOR: return loop(emit, s);
  case STMT_ALLOCATE: return allocate(emit, s);
  case STMT_STORE: return has_threads(kernel) && store(emit, s);
  case STMT_LET: return let(emit, s);
  case STMT_IF: return condition(emit, s, s->as.branch.condition);
  case STMT_WHILE: return condition(emit, s, s->as.repeat.condition);
  case STMT_EVALUATE: return evaluate(emit, s);
  case STMT_ASSERT:
  case STMT_BLOCK:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: break;
  }
  return false;
}
