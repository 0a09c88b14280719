// SPDX-License-Identifier: Apache-2.0
// Reports about the accesses of tensor programs, and whether iterations of loops are independent.
#include "report/report.h"

#include "arith/shared_access.h"
#include "script/script.h"

json_t *report_loops(const LoopRacesList *loops) {
  static const char *const races[] = {
      [VERDICT_NO] = "found", [VERDICT_YES] = "none", [VERDICT_UNDECIDED] = "undecided"};
  json_t *list = json_array();
  for (int i = 0; i < loops->count; i++) {
    const LoopRaces *loop = &loops->items[i];
    DiagPlace place = diag_place(&(Diag){.pos = loop->loop->pos});
    json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:s, s:s?, s:s?, s:s?}", "loop",
                                          loop->loop->as.loop.var->as.var->name, "kind",
                                          loop_races_kind(loop->loop), "line", place.line, "races",
                                          races[loop->verdict], "access", loop->access, "other",
                                          loop->other, "why", loop->why));
  }
  return list;
}

static const char *access_text(Context *context, const SharedAccess *access) {
  return script_expr_text(
      context, expr_load(context, access->buffer, access->indices, access->buffer->rank));
}

json_t *report_banks(Context *context, const PrimFunc *func, json_t *list) {
  static const char *const conflicts[] = {
      [VERDICT_NO] = "found", [VERDICT_YES] = "none", [VERDICT_UNDECIDED] = "undecided"};
  SharedAccesses all = {0};
  shared_accesses(context, func, NULL, &all);
  for (int i = 0; i < all.count; i++) {
    const SharedAccess *access = &all.items[i];
    LayoutConflicts found;
    LayoutAnswer answer = shared_access_conflicts(context, access, &found);
    bool known = answer.verdict != VERDICT_UNDECIDED;
    DiagPlace place = diag_place(&(Diag){.pos = access->pos});
    json_t *item = json_pack("{s:s, s:b, s:i, s:s, s:s?}", "access", access_text(context, access),
                             "write", access->write, "line", place.line, "conflicts",
                             conflicts[answer.verdict], "why", known ? NULL : answer.reason);
    const int64_t numbers[] = {found.degree, found.waves, found.words};
    static const char *const names[] = {"degree", "waves", "words"};
    for (int k = 0; k < COUNT_OF(names); k++)
      json_object_set_new(item, names[k], known ? json_integer(numbers[k]) : json_null());
    json_array_append_new(list, item);
  }
  return list;
}

json_t *report_accesses(Context *context, const Module *module, PrimFunc *func) {
  LoopRacesList loops = {0};
  Verdict inside = lower_check_accesses(context, module, func, &loops);
  if (inside == VERDICT_NO) return NULL;
  return json_pack("{s:s, s:o, s:o}", "bounds", inside == VERDICT_YES ? "proved" : "guarded",
                   "loops", report_loops(&loops), "banks",
                   report_banks(context, func, json_array()));
}
