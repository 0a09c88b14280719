// SPDX-License-Identifier: Apache-2.0
// Reports about a plan: its rewrites with their reasons, its costs, and for one tensor what other
// layouts would cost.
#include "report/report.h"

const char *report_layout_name(const PlanReport *r, const StageTensor *tensor,
                               const Layout *layout) {
  return plan_layout_name(r->context, tensor, layout);
}

// ---- Rows -------------------------------------------------------------------------------------

static PlanRow *row_for(PlanReport *r, const PlanRewrite *rewrite, const char *from,
                        const char *to) {
  for (int i = 0; rewrite->folded && i < r->rows.count; i++) {
    PlanRow *row = &r->rows.items[i];
    if (row->first->folded && !strcmp(row->from, from) && !strcmp(row->to, to)) return row;
  }
  array_push(&r->context->arena, &r->rows, ((PlanRow){rewrite, from, to, {0}, 0}));
  return &array_last(&r->rows);
}

static void make_rows(PlanReport *report) {
  for (int folded = 0; folded < 2; folded++)
    for (int i = 0; i < report->plan->rewrites.count; i++) {
      const PlanRewrite *r = &report->plan->rewrites.items[i];
      if (r->folded != folded) continue;
      PlanRow *row = row_for(report, r, report_layout_name(report, r->tensor, r->from),
                         report_layout_name(report, r->tensor, r->to));
      array_push(&report->context->arena, &row->members, (void *)r);
      row->bytes += r->bytes;
    }
}

PlanReport plan_report_new(const Program *program) {
  PlanReport report = {.context = program->context, .program = program, .plan = program->plan};
  make_rows(&report);
  return report;
}

const char *plan_row_member(const PlanRow *row, int i) {
  return plan_tensor_name(((const PlanRewrite *)row->members.items[i])->tensor);
}

const char *plan_row_name(const PlanReport *r, const PlanRow *row) {
  const char *first = plan_row_member(row, 0), *end = first + strlen(first);
  size_t head = strlen(first), tail = head;
  for (int i = 1; i < row->members.count; i++) {
    const char *name = plan_row_member(row, i);
    size_t n = strlen(name), same = 0;
    while (same < head && name[same] == first[same]) same++;
    head = same;
    for (same = 0; same < MIN_OF(tail, n) && name[n - 1 - same] == end[-1 - (ptrdiff_t)same];)
      same++;
    tail = same;
  }
  if (row->members.count == 1) return first;
  tail = MIN_OF(tail, strlen(first) - head);
  return arena_printf(&r->context->arena, "%.*s*%s", (int)head, first,
                      first + strlen(first) - tail);
}

const char *plan_row_because(const PlanReport *r, const PlanRow *row) {
  if (!row->first->folded || row->members.count == 1) return row->first->because;
  return arena_printf(&r->context->arena, "%d constants, originals dropped", row->members.count);
}

// ---- Tensors ------------------------------------------------------------------------------------

const StageTensor *plan_report_tensor(const PlanReport *r, const char *name) {
  const StageGraph *stages = r->plan->stages;
  for (int i = 0; i < stages->tensors.count; i++)
    if (!strcmp(plan_tensor_name(stages->tensors.items[i]), name)) return stages->tensors.items[i];
  return NULL;
}

bool plan_tensor_is_fused(const PlanReport *r, const StageTensor *tensor) {
  for (int i = 0; i < r->plan->kernels.count; i++) {
    const PlanKernel *kernel = r->plan->kernels.items[i];
    for (int j = 0; j < kernel->params.count; j++)
      if (kernel->params.items[j] == tensor) return false;
  }
  return true;
}

// ---- As JSON ------------------------------------------------------------------------------------

json_t *plan_report_json(const PlanReport *report) {
  const Plan *plan = report->plan;
  json_t *list = json_array();
  for (int i = 0; i < report->rows.count; i++)
    for (int j = 0; j < report->rows.items[i].members.count; j++) {
      const PlanRow *row = &report->rows.items[i];
      const PlanRewrite *r = row->members.items[j];
      json_array_append_new(list,
                            json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:f}", "tensor",
                                      plan_tensor_name(r->tensor), "from", row->from, "to", row->to,
                                      "reason", r->because, "bytes", (json_int_t)r->bytes, "when",
                                      r->folded ? "folded" : "run", "cost", r->cost));
    }
  return json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:I, s:I, s:I, s:i, s:o}", "rewrites",
                   list, "cost", plan->cost, "cost_unplanned", plan->cost_unplanned, "cost_optimal",
                   plan->cost_optimal, "cost_forward", plan->cost_forward, "cost_backward",
                   plan->cost_backward, "lower_bound", plan->lower_bound, "optimal", plan->optimal,
                   "choices", (json_int_t)plan->limits.choices, "choices_left_out",
                   (json_int_t)plan->limits.choices_left_out, "layouts_left_out",
                   (json_int_t)plan->limits.layouts_left_out, "kernels", plan->kernels.count,
                   "joins", fusion_report_json(report));
}

static json_t *uses_json(const PlanReport *r, const StageTensor *tensor) {
  json_t *uses = json_array();
  for (int i = 0; i < r->plan->kernels.count; i++) {
    const PlanKernel *kernel = r->plan->kernels.items[i];
    for (int j = 0; j < kernel->params.count; j++)
      if (kernel->params.items[j] == tensor)
        json_array_append_new(
            uses, json_pack("{s:i, s:s, s:b, s:s}", "kernel", i + 1, "name", kernel->name, "writes",
                            j == kernel->params.count - 1, "layout",
                            report_layout_name(r, tensor, kernel->choice.layouts[j])));
  }
  return uses;
}

static json_t *candidates_json(const PlanReport *r, const StageTensor *tensor) {
  PlanCandidate items[PLAN_MAX_LAYOUTS];
  json_t *list = json_array();
  int count = tensor->data ? 0 : plan_candidate_costs((Plan *)r->plan, tensor, items);
  for (int i = 0; i < count; i++)
    json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:b, s:f}", "layout",
                                          report_layout_name(r, tensor, items[i].layout), "bytes",
                                          (json_int_t)plan_bytes(tensor, items[i].layout), "chosen",
                                          items[i].chosen, "possible", items[i].feasible,
                                          "cost_of_plan", items[i].feasible ? items[i].cost : 0));
  return list;
}

json_t *plan_tensor_json(const PlanReport *r, const StageTensor *tensor) {
  int64_t shape[TE_MAX_RANK];
  const Buffer *buffer = tensor->buffer;
  json_t *extents = json_array();
  buffer_static_shape(buffer, shape);
  for (int i = 0; i < buffer->rank; i++) json_array_append_new(extents, json_integer(shape[i]));
  bool fused = plan_tensor_is_fused(r, tensor);
  bool stored = !tensor->data && tensor->producer && !fused && tensor->users.count;
  return json_pack("{s:s, s:s, s:o, s:s, s:b, s:s, s:o, s:o}", "tensor", plan_tensor_name(tensor),
                   "type", dtype_name(r->context, buffer->type), "shape", extents, "kind",
                   tensor->data         ? "constant"
                   : tensor->input >= 0 ? "input"
                   : tensor->is_output  ? "output"
                                        : "intermediate",
                   "fused", fused, "in_memory_because",
                   stored ? plan_fusion_blocker(r->plan, tensor).because : "", "uses",
                   uses_json(r, tensor), "layouts", candidates_json(r, tensor));
}
