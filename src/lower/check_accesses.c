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

Verdict lower_check_accesses(Context *context, const Module *module, PrimFunc *func,
                             LoopRacesList *loops) {
  bool stated = lower_states_accesses(context, func);
  func = lower_with_callees(context, module, func);
  if (!func) return VERDICT_NO;
  Verdict inside = lower_accesses_are_inside(context, func);
  if (inside == VERDICT_NO) return inside;
  bool race =
      loops ? lower_report_races(context, func, loops) : lower_find_races(context, func, NULL);
  race |= loops && report_thread_races(context, func, loops);
  return stated && !race ? inside : VERDICT_NO;
}
