// SPDX-License-Identifier: Apache-2.0
// Makes the public structs of a plan, from which the command prints its tables and the library
// returns structs and JSON.
#include "report/report.h"

const char *report_layout_name(const PlanReport *r, const StageTensor *tensor,
                               const Layout *layout) {
  return plan_layout_name(r->context, tensor, layout);
}

// ---- Uses ---------------------------------------------------------------------------------------

// A layout in which a tensor is in memory.
typedef struct NamedLayout {
  const Layout *layout;
  const char *name;
} NamedLayout;

// The kernels that read a tensor, rewrites not counted, and its layouts.
typedef struct TensorUses {
  IntArray readers; // from 0
  Array(NamedLayout) layouts;
} TensorUses;

typedef struct Gathering {
  PlanReport *report;
  Arena *arena;     // of the data
  Map uses;         // from a StageTensor to its TensorUses *
  Map numbers;      // from a PlanKernel or a StageTensor to its number, from 1
  PtrArray tensors; // by their number
  Map names;        // from the letters of axes to a map from an index map to the layout's name
} Gathering;

static TensorUses *uses_of(Gathering *g, const StageTensor *tensor) {
  TensorUses *uses = map_find(&g->uses, tensor);
  if (!uses) map_put(&g->uses, tensor, uses = arena_new(&g->report->context->arena, TensorUses));
  return uses;
}

// The name depends on the letters of the axes, of which row-major tensors have all, and on the
// layout.
static const char *shared_name(Gathering *g, const StageTensor *tensor, const Layout *layout) {
  Str letters = plan_axis_letters(g->report->context, tensor);
  Map *names = map_find(&g->names, letters);
  if (!names) {
    names = arena_new(&g->report->context->arena, Map);
    *names = map_new(&g->report->context->arena);
    map_put(&g->names, letters, names);
  }
  uint64_t key = map_key(layout) + 1;
  const char *name = map_get(names, key);
  if (!name) {
    name = arena_text(g->arena, report_layout_name(g->report, tensor, layout));
    map_set(names, key, (void *)name);
  }
  return name;
}

static const char *layout_name(Gathering *g, const StageTensor *tensor, const Layout *layout) {
  TensorUses *uses = uses_of(g, tensor);
  for (int i = 0; i < uses->layouts.count; i++) {
    const Layout *known = uses->layouts.items[i].layout;
    if (known == layout || (known && layout && known->map == layout->map))
      return uses->layouts.items[i].name;
  }
  NamedLayout named = {layout, shared_name(g, tensor, layout)};
  array_push(&g->report->context->arena, &uses->layouts, named);
  return named.name;
}

static void gather_uses(Gathering *g) {
  const Plan *plan = g->report->plan;
  for (int i = 0; i < plan->kernels.count; i++) {
    const PlanKernel *kernel = plan->kernels.items[i];
    map_put(&g->numbers, kernel, (void *)(intptr_t)(i + 1));
    for (int k = 0; k < kernel->params.count; k++) {
      const StageTensor *tensor = kernel->params.items[k];
      IntArray *readers = &uses_of(g, tensor)->readers;
      bool reads = !plan_kernel_writes(kernel, k) && !kernel->is_rewrite;
      if (reads && (!readers->count || array_last(readers) != i))
        array_push(&g->report->context->arena, readers, i);
      layout_name(g, tensor, kernel->choice.layouts[k]);
      const PlanPlacement *part = kernel->placements[k];
      if (part && part->whole) layout_name(g, part->whole, part->whole_layout);
    }
  }
}

static void number_tensor(Gathering *g, const StageTensor *tensor) {
  if (map_contains(&g->numbers, tensor)) return;
  array_push(&g->report->context->arena, &g->tensors, (void *)tensor);
  map_put(&g->numbers, tensor, (void *)(intptr_t)g->tensors.count);
}

// Numbers the tensors that kernels read and write, and those that are computed only inside a
// kernel. Copies that are written in place in another tensor are not among those of the stages.
static void number_tensors(Gathering *g) {
  const Plan *plan = g->report->plan;
  for (int i = 0; i < plan->stages->tensors.count; i++) {
    const StageTensor *tensor = plan->stages->tensors.items[i];
    if (map_contains(&g->uses, tensor) || (tensor->producer && !tensor->data))
      number_tensor(g, tensor);
  }
  for (int i = 0; i < plan->kernels.count; i++)
    for (int k = 0; k < plan->kernels.items[i]->params.count; k++)
      number_tensor(g, plan->kernels.items[i]->params.items[k]);
  g->report->data.tensor_count = g->tensors.count;
}

// From 0; -1 for NULL.
static int number_of(const Gathering *g, const void *object) {
  return object ? (int)(intptr_t)map_find(&g->numbers, object) - 1 : -1;
}

// ---- Kernels ------------------------------------------------------------------------------------

static void set_operators(Gathering *g, const PlanKernel *kernel, PleatPlanKernel *data) {
  PtrArray nodes = kernel_nodes(&g->report->context->arena, kernel);
  const char **names = arena_array(g->arena, const char *, nodes.count);
  for (int i = 0; i < nodes.count; i++)
    names[i] = arena_text(g->arena, ((const Node *)nodes.items[i])->name);
  data->operators = names;
  data->operator_count = nodes.count;
}

static void set_operands(Gathering *g, const PlanKernel *kernel, PleatPlanKernel *data) {
  int count = kernel->params.count;
  const PleatPlanOperand **operands = arena_array(g->arena, const PleatPlanOperand *, count);
  for (int i = 0; i < count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    PleatPlanOperand *operand = arena_new(g->arena, PleatPlanOperand);
    *operand = (PleatPlanOperand){.tensor = arena_text(g->arena, plan_tensor_name(tensor)),
                                  .layout = layout_name(g, tensor, kernel->choice.layouts[i]),
                                  .is_written = plan_kernel_writes(kernel, i),
                                  .tensor_number = number_of(g, tensor)};
    operands[i] = operand;
  }
  data->operands = operands;
  data->operand_count = count;
}

// The tensor in whose memory this one is written; NULL: it has memory of its own.
static const StageTensor *whole_of(const Gathering *g, const StageTensor *tensor) {
  const PlanPlacement *placement = map_find(&g->report->plan->placements, tensor);
  return placement ? placement->whole : NULL;
}

// The kernels that read the tensor, or a larger one that it is a part of.
static void set_readers(Gathering *g, const StageTensor *tensor, PleatPlanKernel *data) {
  int most = 0;
  for (const StageTensor *t = tensor; t; t = whole_of(g, t)) most += uses_of(g, t)->readers.count;
  int *numbers = arena_array(g->arena, int, most);
  for (const StageTensor *t = tensor; t; t = whole_of(g, t)) {
    const IntArray *readers = &uses_of(g, t)->readers;
    for (int i = 0; i < readers->count; i++) {
      int at = data->reader_count, reader = (int)readers->items[i];
      while (at && numbers[at - 1] > reader) at--;
      if (at && numbers[at - 1] == reader) continue;
      memmove(numbers + at + 1, numbers + at,
              sizeof *numbers * (size_t)(data->reader_count++ - at));
      numbers[at] = reader;
    }
    data->is_output |= t->is_output;
  }
  data->readers = numbers;
}

static const char *record_of(Gathering *g, const TuningRecord *record) {
  const Diag at = {.pos = record->pos};
  return arena_printf(g->arena, "%s:%d", record->pos.file->name, diag_place(&at).line);
}

static PleatPlanKernel *kernel_of(Gathering *g, const PlanKernel *kernel) {
  const StageTensor *tensor = array_last(&kernel->params);
  PlanBlocker blocker = {"", ""};
  if (!kernel->is_rewrite) blocker = plan_fusion_blocker(g->report->plan, tensor);
  PleatPlanKernel *data = arena_new(g->arena, PleatPlanKernel);
  *data = (PleatPlanKernel){.name = arena_text(g->arena, kernel->name),
                            .is_rewrite = kernel->is_rewrite,
                            .by_rows = kernel_has_rows(kernel),
                            .band_parts = kernel->bands ? kernel->bands->count : 0,
                            .because_kind = arena_text(g->arena, blocker.kind),
                            .because = arena_text(g->arena, blocker.because),
                            .cycles = kernel->cost,
                            .same_as = kernel->same_as,
                            .slow = arena_text(g->arena, kernel->choice.slow)};
  if (kernel->call) data->function = arena_text(g->arena, kernel->call->function->name);
  if (kernel->tuned) data->record = record_of(g, kernel->tuned->record);
  set_operators(g, kernel, data);
  set_operands(g, kernel, data);
  set_readers(g, tensor, data);
  return data;
}

static void add_kernels(Gathering *g) {
  const Plan *plan = g->report->plan;
  const PleatPlanKernel **kernels =
      arena_array(g->arena, const PleatPlanKernel *, plan->kernels.count);
  for (int i = 0; i < plan->kernels.count; i++) kernels[i] = kernel_of(g, plan->kernels.items[i]);
  g->report->data.kernels = kernels;
  g->report->data.kernel_count = plan->kernels.count;
}

// ---- Rewrites -----------------------------------------------------------------------------------

static PleatPlanRewrite *rewrite_of(Gathering *g, const PlanRewrite *r) {
  PleatPlanRewrite *data = arena_new(g->arena, PleatPlanRewrite);
  *data = (PleatPlanRewrite){.tensor = arena_text(g->arena, plan_tensor_name(r->tensor)),
                             .from = layout_name(g, r->tensor, r->from),
                             .to = layout_name(g, r->written ? r->written : r->tensor, r->to),
                             .folded = r->folded,
                             .bytes = r->bytes,
                             .cycles = r->cost,
                             .because = arena_text(g->arena, r->because),
                             .kernel = number_of(g, r->kernel),
                             .tensor_number = number_of(g, r->tensor)};
  return data;
}

// The rewrites of a row follow one another in the data.
typedef struct RowMembers {
  const char *from, *to;
  PtrArray members; // PleatPlanRewrite *
  PtrArray sources; // const PlanRewrite *
} RowMembers;
typedef Array(RowMembers) RowList;

static RowMembers *row_for(Arena *arena, RowList *rows, const PleatPlanRewrite *r) {
  for (int i = 0; r->folded && i < rows->count; i++) {
    const PleatPlanRewrite *first = rows->items[i].members.items[0];
    if (first->folded && !strcmp(first->from, r->from) && !strcmp(first->to, r->to))
      return &rows->items[i];
  }
  array_push(arena, rows, ((RowMembers){r->from, r->to, {0}, {0}}));
  return &array_last(rows);
}

static RowList gather_rows(Gathering *g) {
  const Plan *plan = g->report->plan;
  Arena *arena = &g->report->context->arena;
  RowList rows = {0};
  for (int folded = 0; folded < 2; folded++)
    for (int i = 0; i < plan->rewrites.count; i++) {
      if (plan->rewrites.items[i].folded != folded) continue;
      PleatPlanRewrite *rewrite = rewrite_of(g, &plan->rewrites.items[i]);
      RowMembers *row = row_for(arena, &rows, rewrite);
      array_push(arena, &row->members, rewrite);
      array_push(arena, &row->sources, (void *)&plan->rewrites.items[i]);
    }
  return rows;
}

static void add_rewrites(Gathering *g) {
  PlanReport *report = g->report;
  Arena *arena = &report->context->arena;
  RowList rows = gather_rows(g);
  const PleatPlanRewrite **rewrites =
      arena_array(g->arena, const PleatPlanRewrite *, report->plan->rewrites.count);
  int count = 0;
  for (int i = 0; i < rows.count; i++) {
    const RowMembers *from = &rows.items[i];
    PlanRow row = {.first = count, .count = from->members.count};
    for (int k = 0; k < row.count; k++) {
      rewrites[count] = from->members.items[k];
      row.bytes += rewrites[count++]->bytes;
      array_push(arena, &report->rewrites, from->sources.items[k]);
    }
    array_push(arena, &report->rows, row);
  }
  report->data.rewrites = rewrites;
  report->data.rewrite_count = count;
}

// ---- The data -----------------------------------------------------------------------------------

static const char *kind_of(const StageTensor *tensor) {
  return tensor->data         ? "constant"
         : tensor->input >= 0 ? "input"
         : tensor->is_output  ? "output"
                              : "intermediate";
}

PleatPlanTensor *plan_tensor_describe(const PlanReport *r, const StageTensor *tensor,
                                      Arena *results) {
  const Buffer *buffer = tensor->buffer;
  PleatPlanTensor *data = arena_new(results, PleatPlanTensor);
  int64_t *shape = arena_array(results, int64_t, buffer->rank + 1);
  buffer_static_shape(buffer, shape);
  *data = (PleatPlanTensor){.name = arena_text(results, plan_tensor_name(tensor)),
                            .type = arena_text(results, dtype_name(r->context, buffer->type)),
                            .rank = buffer->rank,
                            .shape = shape,
                            .kind = kind_of(tensor),
                            .is_fused = tensor->producer != NULL};
  return data;
}

static PleatPlanTensor *tensor_of(Gathering *g, const StageTensor *tensor, const TensorUses *uses) {
  PleatPlanTensor *data = plan_tensor_describe(g->report, tensor, g->arena);
  if (!uses) return data;
  const char **layouts = arena_array(g->arena, const char *, uses->layouts.count);
  for (int i = 0; i < uses->layouts.count; i++) layouts[i] = uses->layouts.items[i].name;
  data->is_fused = false;
  data->layouts = layouts;
  data->layout_count = uses->layouts.count;
  return data;
}

static void add_tensors(Gathering *g) {
  PleatPlan *data = &g->report->data;
  const PleatPlanTensor **tensors =
      arena_array(g->arena, const PleatPlanTensor *, data->tensor_count);
  for (int i = 0; i < data->tensor_count; i++)
    tensors[i] = tensor_of(g, g->tensors.items[i], map_find(&g->uses, g->tensors.items[i]));
  data->tensors = tensors;
}

static void set_costs(PleatPlan *data, const Plan *plan) {
  data->cycles = plan->cost;
  data->cycles_row_major = plan->cost_unplanned;
  data->cycles_optimal = plan->cost_optimal;
  data->cycles_forward = plan->cost_forward;
  data->cycles_backward = plan->cost_backward;
  data->cycles_saved_by_bands = plan->saved_by_bands;
  data->lower_bound = plan->lower_bound;
  data->optimal = plan->optimal;
  data->gap = plan->optimal || plan->cost <= 0 ? 0 : (plan->cost - plan->lower_bound) / plan->cost;
  data->choices = plan->limits.choices;
  data->choices_left_out = plan->limits.choices_left_out;
  data->layouts_left_out = plan->limits.layouts_left_out;
  data->fusions_decided = plan->limits.fusions_decided;
}

static void count_nodes(PlanReport *report) {
  PleatPlan *data = &report->data;
  int *counts[] = {[NODE_UNUSED] = &data->nodes_unused,
                   [NODE_FOLDED] = &data->nodes_folded,
                   [NODE_IN_PLACE] = &data->nodes_in_place,
                   [NODE_COMPUTED] = &data->nodes_in_kernels};
  Map places = node_kernels(report->context, report->program->graph, report->plan);
  for (int i = 0; i < places.count; i++)
    ++*counts[((const NodeKernels *)places.entries[i].value)->fate];
}

static void add_bilinear(Gathering *g) {
  const PlanBilinears *uses = &g->report->plan->bilinear;
  const PleatPlanBilinear **rows = arena_array(g->arena, const PleatPlanBilinear *, uses->count);
  for (int i = 0; i < uses->count; i++) {
    const PlanBilinear *use = &uses->items[i];
    PleatPlanBilinear *row = arena_new(g->arena, PleatPlanBilinear);
    *row = (PleatPlanBilinear){.tensor = arena_text(g->arena, plan_tensor_name(use->stage->output)),
                               .axis_count = use->count,
                               .cycles = use->cycles,
                               .direct_cycles = use->direct_cycles,
                               .error = use->error,
                               .direct_error = use->direct_error,
                               .bound = use->bound,
                               .weight_bytes = use->weight_bytes,
                               .direct_weight_bytes = use->direct_weight_bytes};
    for (int k = 0; k < use->count; k++) {
      row->outputs[k] = (int)use->outputs[k];
      row->taps[k] = (int)use->taps[k];
    }
    rows[i] = row;
  }
  g->report->data.bilinear = rows;
  g->report->data.bilinear_count = uses->count;
}

PlanReport plan_report_new(const Program *program, Arena *results) {
  PlanReport report = {.context = program->context, .program = program, .plan = program->plan};
  Arena *arena = &program->context->arena;
  int tensors = program->plan->stages->tensors.count, kernels = program->plan->kernels.count;
  Gathering g = {.report = &report,
                 .arena = results,
                 .uses = map_for(arena, tensors),
                 .numbers = map_for(arena, tensors + kernels),
                 .names = map_new(arena)};
  report.data.machine = arena_text(results, program->options.machine.level_name);
  report.data.policy = policy_name(program->options.policy);
  gather_uses(&g);
  number_tensors(&g);
  add_kernels(&g);
  add_rewrites(&g);
  add_tensors(&g);
  add_bilinear(&g);
  set_costs(&report.data, report.plan);
  report.data.cycles_own_kernels = program->cycles_own_kernels;
  count_nodes(&report);
  return report;
}

const PleatPlanRewrite *plan_row_member(const PlanReport *r, const PlanRow *row, int i) {
  return r->data.rewrites[row->first + i];
}

// ---- Tensors ------------------------------------------------------------------------------------

const StageTensor *plan_report_tensor(const PlanReport *r, const char *name) {
  const StageGraph *stages = r->plan->stages;
  for (int i = 0; i < stages->tensors.count; i++)
    if (!strcmp(plan_tensor_name(stages->tensors.items[i]), name)) return stages->tensors.items[i];
  const PlanConstraints *constraints = r->plan->constraints;
  const Value *asked = constraints ? constraints->asked.value : NULL;
  for (int i = 0; asked && i < stages->tensors.count; i++)
    if (((const StageTensor *)stages->tensors.items[i])->value == asked)
      return stages->tensors.items[i];
  return NULL;
}

// ---- As JSON ------------------------------------------------------------------------------------

static json_t *rewrite_json(const PleatPlanRewrite *r) {
  return json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:f}", "tensor", r->tensor, "from", r->from,
                   "to", r->to, "reason", r->because, "bytes", (json_int_t)r->bytes, "when",
                   r->folded ? "folded" : "run", "cost", r->cycles);
}

static json_t *kernel_json(const PleatPlanKernel *kernel, int number) {
  json_t *names = json_array(), *readers = json_array();
  for (int i = 0; i < kernel->operator_count; i++)
    json_array_append_new(names, json_string(kernel->operators[i]));
  for (int i = 0; i < kernel->reader_count; i++)
    json_array_append_new(readers, json_integer(kernel->readers[i] + 1));
  json_t *object =
      json_pack("{s:i, s:s, s:o, s:b, s:b, s:s, s:o, s:s, s:f}", "kernel", number + 1, "name",
                kernel->name, "operators", names, "by_rows", kernel->by_rows, "rewrite",
                kernel->is_rewrite, "writes", kernel->operands[kernel->operand_count - 1]->tensor,
                "read_by", readers, "because", kernel->because, "cycles", kernel->cycles);
  if (kernel->function) json_object_set_new(object, "function", json_string(kernel->function));
  if (kernel->record) json_object_set_new(object, "record", json_string(kernel->record));
  if (kernel->band_parts) json_object_set_new(object, "bands", json_integer(kernel->band_parts));
  return object;
}

static json_t *bilinear_json(const PleatPlanBilinear *b) {
  json_t *outputs = json_array(), *taps = json_array();
  for (int i = 0; i < b->axis_count; i++) {
    json_array_append_new(outputs, json_integer(b->outputs[i]));
    json_array_append_new(taps, json_integer(b->taps[i]));
  }
  return json_pack("{s:s, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "tensor", b->tensor,
                   "outputs", outputs, "taps", taps, "cycles", b->cycles, "direct_cycles",
                   b->direct_cycles, "error", b->error, "direct_error", b->direct_error, "bound",
                   b->bound, "weight_bytes", b->weight_bytes, "direct_weight_bytes",
                   b->direct_weight_bytes);
}

json_t *plan_report_json(const PleatPlan *plan) {
  json_t *rewrites = json_array(), *kernels = json_array(), *bilinear = json_array();
  for (int i = 0; i < plan->bilinear_count; i++)
    json_array_append_new(bilinear, bilinear_json(plan->bilinear[i]));
  for (int i = 0; i < plan->rewrite_count; i++)
    json_array_append_new(rewrites, rewrite_json(plan->rewrites[i]));
  for (int i = 0; i < plan->kernel_count; i++)
    json_array_append_new(kernels, kernel_json(plan->kernels[i], i));
  return json_pack(
      "{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:f, s:I, s:I, s:I, s:I, s:i, s:o, s:o}",
      "rewrites", rewrites, "cost", plan->cycles, "cost_unplanned", plan->cycles_row_major,
      "cost_optimal", plan->cycles_optimal, "cost_forward", plan->cycles_forward, "cost_backward",
      plan->cycles_backward, "cost_own_kernels", plan->cycles_own_kernels, "lower_bound",
      plan->lower_bound, "optimal", plan->optimal, "saved_by_bands", plan->cycles_saved_by_bands,
      "choices", (json_int_t)plan->choices, "choices_left_out", (json_int_t)plan->choices_left_out,
      "layouts_left_out", (json_int_t)plan->layouts_left_out, "fusions_decided",
      (json_int_t)plan->fusions_decided, "kernels", plan->kernel_count, "joins", kernels,
      "bilinear", bilinear);
}
