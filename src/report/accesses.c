// SPDX-License-Identifier: Apache-2.0
// Reports about the accesses of tensor programs, and whether iterations of loops are independent.
#include "report/report.h"

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

json_t *report_accesses(Context *context, const Module *module, PrimFunc *func) {
  LoopRacesList loops = {0};
  Verdict inside = lower_check_accesses(context, module, func, &loops);
  if (inside == VERDICT_NO) return NULL;
  return json_pack("{s:s, s:o}", "bounds", inside == VERDICT_YES ? "proved" : "guarded", "loops",
                   report_loops(&loops));
}
