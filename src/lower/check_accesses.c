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

Verdict lower_check_accesses(Context *context, const Module *module, PrimFunc *func,
                             LoopRacesList *loops) {
  bool stated = lower_states_accesses(context, func);
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
