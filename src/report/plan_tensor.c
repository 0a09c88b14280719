// SPDX-License-Identifier: Apache-2.0
// Makes the public struct of one tensor of a plan: its uses, and what a run would cost with its
// other layouts.
#include "report/report.h"

#include <math.h>

#include "report/table.h"

typedef struct Describing {
  const PlanReport *report;
  const StageTensor *tensor;
  Arena *arena; // of the data
} Describing;

static const char *layout_name(const Describing *d, const Layout *layout) {
  return arena_text(d->arena, report_layout_name(d->report, d->tensor, layout));
}

// ---- Uses ---------------------------------------------------------------------------------------

static const PleatTensorUse *use_new(const Describing *d, int number, bool is_written,
                                     const Layout *layout) {
  const PlanKernel *kernel = d->report->plan->kernels.items[number];
  PleatTensorUse *use = arena_new(d->arena, PleatTensorUse);
  *use = (PleatTensorUse){.kernel = number,
                          .name = arena_text(d->arena, kernel->name),
                          .is_written = is_written,
                          .layout = layout_name(d, layout)};
  return use;
}

static const PleatTensorUse *use_of(const Describing *d, int number, int param) {
  const PlanKernel *kernel = d->report->plan->kernels.items[number];
  return use_new(d, number, param == kernel->params.count - 1, kernel->choice.layouts[param]);
}

const PlanPlacement *report_part_written(const PlanKernel *kernel, const StageTensor *tensor) {
  const PlanPlacement *part = kernel->placements[kernel->params.count - 1];
  return part && part->whole == tensor ? part : NULL;
}

static void add_uses(const Describing *d, PleatTensorPlan *data) {
  Array(const PleatTensorUse *) uses = {0};
  for (int i = 0; i < d->report->plan->kernels.count; i++) {
    const PlanKernel *kernel = d->report->plan->kernels.items[i];
    for (int k = 0; k < kernel->params.count; k++)
      if (kernel->params.items[k] == d->tensor) array_push(d->arena, &uses, use_of(d, i, k));
    const PlanPlacement *part = report_part_written(kernel, d->tensor);
    if (part) array_push(d->arena, &uses, use_new(d, i, true, part->whole_layout));
  }
  data->uses = uses.items;
  data->use_count = uses.count;
}

static bool has_text(const char *const *texts, int count, const char *text) {
  for (int i = 0; i < count; i++)
    if (!strcmp(texts[i], text)) return true;
  return false;
}

static const PleatPlanTensor *described(const Describing *d, const PleatTensorPlan *data) {
  PleatPlanTensor *tensor = plan_tensor_describe(d->report, d->tensor, d->arena);
  const char **layouts = arena_array(d->arena, const char *, data->use_count);
  for (int i = 0; i < data->use_count; i++)
    if (!has_text(layouts, tensor->layout_count, data->uses[i]->layout))
      layouts[tensor->layout_count++] = data->uses[i]->layout;
  tensor->layouts = layouts;
  tensor->is_fused &= !data->use_count;
  return tensor;
}

// ---- Prices -------------------------------------------------------------------------------------

// "n3 +2.3 k; x is rewritten for n5 -910", or what forbids the layout.
static const char *price_because(const Describing *d, const PlanCandidate *candidate) {
  Text text = text_new(d->arena);
  if (candidate->forbidden) return arena_text(d->arena, candidate->forbidden);
  for (int i = 0; i < candidate->change_count; i++) {
    const PlanChange *change = &candidate->changes[i];
    text_printf(&text, "%s%s %s", i ? "; " : "", change->what,
                show_change(d->arena, change->cycles));
  }
  return text_string(&text);
}

static void add_prices(const Describing *d, TensorReport *report) {
  PlanCandidate items[PLAN_MAX_LAYOUTS];
  int count = d->tensor->data ? 0 : plan_candidate_costs(d->report->plan, d->tensor, items);
  const PleatLayoutPrice **prices = arena_array(d->arena, const PleatLayoutPrice *, count);
  for (int i = 0; i < count; i++) {
    PleatLayoutPrice *price = arena_new(d->arena, PleatLayoutPrice);
    *price = (PleatLayoutPrice){.layout = layout_name(d, items[i].layout),
                                .bytes = plan_bytes(d->tensor, items[i].layout),
                                .chosen = items[i].chosen,
                                .possible = !items[i].forbidden,
                                .cycles = items[i].cost,
                                .because = price_because(d, &items[i])};
    prices[i] = price;
    report->layouts[i] = items[i].layout;
  }
  report->data.prices = prices;
  report->data.price_count = count;
  report->data.no_more_because =
      arena_text(d->arena, plan_no_more_candidates(d->report->plan, d->tensor));
}

// Why the tensor is in memory, and why that has gaps.
static const char *memory_because(const Describing *d) {
  const PlanPlacement *placement = map_find(&d->report->plan->placements, d->tensor);
  const char *because = plan_fusion_blocker(d->report->plan, d->tensor).because;
  if (!placement || placement->whole) return arena_text(d->arena, because);
  int64_t gaps = placement->bytes - plan_bytes(d->tensor, placement->layout);
  return arena_printf(d->arena,
                      "%s; with gaps of %s in all, so that elements that are used at the same time "
                      "do not share sets of the first cache",
                      because, show_bytes(d->arena, gaps));
}

TensorReport tensor_report_new(const PlanReport *r, const StageTensor *tensor, Arena *results) {
  const Describing d = {r, tensor, results};
  TensorReport report = {.tensor = tensor};
  PleatTensorPlan *data = &report.data;
  add_uses(&d, data);
  data->tensor = described(&d, data);
  bool stored = !tensor->data && tensor->producer && data->use_count && tensor->users.count;
  data->because = stored ? memory_because(&d) : "";
  add_prices(&d, &report);
  return report;
}

// ---- As JSON ------------------------------------------------------------------------------------

static json_t *use_json(const PleatTensorUse *use) {
  return json_pack("{s:i, s:s, s:b, s:s}", "kernel", use->kernel + 1, "name", use->name, "writes",
                   use->is_written, "layout", use->layout);
}

static json_t *price_json(const PleatLayoutPrice *price) {
  return json_pack("{s:s, s:I, s:b, s:b, s:f, s:s}", "layout", price->layout, "bytes",
                   (json_int_t)price->bytes, "chosen", price->chosen, "possible", price->possible,
                   "cost_of_plan", price->cycles, "because", price->because);
}

json_t *tensor_report_json(const PleatTensorPlan *plan) {
  const PleatPlanTensor *tensor = plan->tensor;
  json_t *extents = json_array(), *uses = json_array(), *prices = json_array();
  for (int i = 0; i < tensor->rank; i++)
    json_array_append_new(extents, json_integer(tensor->shape[i]));
  for (int i = 0; i < plan->use_count; i++) json_array_append_new(uses, use_json(plan->uses[i]));
  for (int i = 0; i < plan->price_count; i++)
    json_array_append_new(prices, price_json(plan->prices[i]));
  return json_pack("{s:s, s:s, s:o, s:s, s:b, s:s, s:o, s:o, s:s}", "tensor", tensor->name, "type",
                   tensor->type, "shape", extents, "kind", tensor->kind, "fused", tensor->is_fused,
                   "in_memory_because", plan->because, "uses", uses, "layouts", prices,
                   "no_more_layouts_because", plan->no_more_because);
}
