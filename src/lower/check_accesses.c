// SPDX-License-Identifier: Apache-2.0
// Checks the accesses of a tensor program: regions that blocks state, bounds, and iterations of
// parallel loops that share elements.
#include "lower/lower.h"

const char *loop_races_kind(const Stmt *loop) {
  LoopKind kind = loop->as.loop.kind;
  return kind == LOOP_PARALLEL ? "parallel" : kind == LOOP_THREAD ? "thread" : "vectorized";
}

static void warn_of_undecided(Context *context, const LoopRaces *races) {
  const char *meeting = races->other ? arena_printf(&context->arena, " and %s", races->other) : "";
  diag_warning(context, races->pos,
               "it is not decided whether iterations of the %s loop '%s' share an element, by "
               "%s%s: %s\n%s",
               loop_races_kind(races->loop), races->loop->as.loop.var->as.var->name, races->access,
               meeting, races->why,
               races->loop->as.loop.kind == LOOP_THREAD
                   ? "a device runs the threads at once, in any order"
                   : "make the loop serial where they may");
}

static void warn_from(Context *context, const LoopRacesList *loops, int first) {
  for (int i = first; i < loops->count; i++)
    if (loops->items[i].verdict == VERDICT_UNDECIDED) warn_of_undecided(context, &loops->items[i]);
}

bool lower_report_races(Context *context, PrimFunc *func, LoopRacesList *loops) {
  int first = loops->count;
  bool race = lower_find_races(context, func, loops);
  warn_from(context, loops, first);
  return race;
}

static bool report_thread_races(Context *context, PrimFunc *func, LoopRacesList *loops) {
  int first = loops->count;
  bool race = lower_find_thread_races(context, func, loops);
  warn_from(context, loops, first);
  return race;
}

// ---- Sizes for which an access is out of bounds

static void add_size(Context *context, Map *sizes, Expr *e, int64_t value) {
  if (e->op == EXPR_VAR && dtype_is_int(e->type))
    map_put(sizes, e, expr_int(context, e->type, value));
}

// The extents of parameters that are variables, each with this value.
static Map sizes_of(Context *context, const PrimFunc *func, int64_t value) {
  Map sizes = map_new(&context->arena);
  for (int i = 0; i < func->param_count; i++)
    for (int d = 0; func->buffers[i] && d < func->buffers[i]->rank; d++)
      add_size(context, &sizes, func->buffers[i]->shape[d], value);
  return sizes;
}

static bool has_shapes(const PrimFunc *func) {
  int64_t extent;
  for (int i = 0; i < func->param_count; i++)
    for (int d = 0; func->buffers[i] && d < func->buffers[i]->rank; d++)
      if (!expr_as_int(func->buffers[i]->shape[d], &extent) || extent < 0) return false;
  return true;
}

static const char *sizes_text(Context *context, const Map *sizes, int64_t value) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < sizes->count; i++)
    text_printf(&text, "%s%s", i ? " = " : "", ((const Expr *)sizes->entries[i].key)->as.var->name);
  text_printf(&text, " = %lld", (long long)value);
  return text_string(&text);
}

// Tries a value for all free sizes. A fault is a warning, since the caller may know that the sizes
// are others, and a run checks the access.
static bool warn_of_size(Context *context, const PrimFunc *func, int64_t value) {
  int first = context->diags.count, errors = context->error_count;
  Map sizes = sizes_of(context, func, value);
  PrimFunc *fixed = sizes.count ? prim_func_specialize(context, func, &sizes) : NULL;
  if (!fixed || !has_shapes(fixed)) return false;
  bool is_outside = lower_accesses_are_inside(context, fixed) == VERDICT_NO;
  for (int i = first; i < context->diags.count; i++) {
    Diag *diag = &context->diags.items[i];
    diag->message =
        str_format(context, "where %s, %s", sizes_text(context, &sizes, value), diag->message);
  }
  diag_only_warn(context, first, errors);
  return is_outside;
}

static void warn_of_sizes(Context *context, const PrimFunc *func) {
  static const int64_t values[] = {7, 1}; // a prime, and one
  for (int i = 0; i < COUNT_OF(values) && !warn_of_size(context, func, values[i]);) i++;
}

// ---- Memory that nothing writes

typedef struct MemoryUses {
  Context *context;
  SourcePos pos;
  Map allocated, written, read; // data variables; to the Buffer of the first load
} MemoryUses;

// A data variable that is an operand leaves the program, which may write its memory elsewhere. An
// intrinsic may write to an element that is its operand.
static bool see_use(Visitor *visitor, Expr *e) {
  MemoryUses *uses = visitor->env;
  for (int i = 0; e->op == EXPR_INTRINSIC && i < e->count; i++)
    if (e->args[i]->op == EXPR_LOAD) map_put(&uses->written, e->args[i]->as.buffer->data, e);
  if (e->op == EXPR_VAR) map_put(&uses->written, e, e);
  if (e->op == EXPR_ADDRESS_OF && e->args[0]->op == EXPR_LOAD)
    map_put(&uses->written, e->args[0]->as.buffer->data, e);
  if (e->op == EXPR_LOAD && !map_contains(&uses->read, e->as.buffer->data))
    map_put(&uses->read, e->as.buffer->data, e->as.buffer);
  return true;
}

static bool see_statement(Visitor *visitor, Stmt *s) {
  MemoryUses *uses = visitor->env;
  if (s->kind == STMT_STORE) map_put(&uses->written, s->as.store.buffer->data, s);
  if (s->kind == STMT_ALLOCATE) map_put(&uses->allocated, s->as.allocate.var, s);
  const Block *block = s->kind == STMT_BLOCK ? s->as.block : NULL;
  for (int i = 0; block && i < block->alloc_count; i++)
    map_put(&uses->allocated, block->allocs[i]->data, s);
  for (int i = 0; block && i < block->match_count; i++) // a view of it may be written
    map_put(&uses->written, block->matches[i].source.buffer->data, s);
  return true;
}

static void warn_of_unwritten(Context *context, const PrimFunc *func) {
  Map none = map_new(&context->scratch);
  MemoryUses uses = {context, func->pos, none, none, none};
  visit_stmt(&(Visitor){.env = &uses, .enter_stmt = see_statement, .enter_expr = see_use},
             func->body);
  for (int i = 0; i < uses.read.count; i++) {
    const Expr *data = (const Expr *)(uintptr_t)uses.read.entries[i].key;
    const Buffer *buffer = map_find(&uses.read, data);
    bool is_own = map_contains(&uses.allocated, data);
    if (!is_own || map_contains(&uses.written, data)) continue;
    diag_warning(context, buffer->pos.file ? buffer->pos : func->pos,
                 "%s is read, but nothing writes it", buffer->name);
  }
}

Verdict lower_check_accesses(Context *context, const Module *module, PrimFunc *func,
                             LoopRacesList *loops) {
  bool stated = lower_states_accesses(context, func);
  warn_of_unwritten(context, func);
  func = lower_with_callees(context, module, func);
  if (!func) return VERDICT_NO;
  Verdict inside = lower_accesses_are_inside(context, func);
  if (inside == VERDICT_NO) return inside;
  if (inside == VERDICT_UNDECIDED) warn_of_sizes(context, func);
  bool race =
      loops ? lower_report_races(context, func, loops) : lower_find_races(context, func, NULL);
  race |= loops && report_thread_races(context, func, loops);
  return stated && !race ? inside : VERDICT_NO;
}
