// SPDX-License-Identifier: Apache-2.0
// Puts plans into words and tables.
#include "report/report.h"

#include <math.h>

#include "report/table.h"

// ---- Rewrites -----------------------------------------------------------------------------------

const char *plan_row_name(const PlanReport *r, const PlanRow *row) {
  const char *first = plan_row_member(r, row, 0)->tensor, *end = first + strlen(first);
  size_t head = strlen(first), tail = head;
  for (int i = 1; i < row->count; i++) {
    const char *name = plan_row_member(r, row, i)->tensor;
    size_t n = strlen(name), same = 0;
    while (same < head && name[same] == first[same]) same++;
    head = same;
    for (same = 0; same < MIN_OF(tail, n) && name[n - 1 - same] == end[-1 - (ptrdiff_t)same];)
      same++;
    tail = same;
  }
  if (row->count == 1) return first;
  tail = MIN_OF(tail, strlen(first) - head);
  return arena_printf(&r->context->arena, "%.*s*%s", (int)head, first,
                      first + strlen(first) - tail);
}

const char *plan_row_because(const PlanReport *r, const PlanRow *row) {
  const PleatPlanRewrite *first = plan_row_member(r, row, 0);
  if (!first->folded || row->count == 1) return first->because;
  return arena_printf(&r->context->arena, "%d constants, originals dropped", row->count);
}

static void put_rewrites(const PlanReport *r, Arena *arena, Text *out) {
  static const char *const heads[] = {"#",    "tensor", "from",   "to",
                                      "when", "bytes",  "cycles", "because"};
  if (!r->rows.count) return;
  Table table = table_new(arena, "rllllrrl");
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < r->rows.count; i++) {
    const PlanRow *row = &r->rows.items[i];
    const PleatPlanRewrite *first = plan_row_member(r, row, 0);
    table_cell(&table, "%d", i + 1);
    table_cell(&table, "%s", plan_row_name(r, row));
    table_cell(&table, "%s", first->from);
    table_cell(&table, "%s", first->to);
    table_cell(&table, "%s", first->folded ? "folded" : "run");
    table_cell(&table, "%s", show_bytes(arena, row->bytes));
    table_cell(&table, "%s", first->folded ? "-" : show_cycles(arena, first->cycles));
    table_cell(&table, "%s", plan_row_because(r, row));
  }
  table_put(&table, out);
}

// ---- Totals -------------------------------------------------------------------------------------

const char *plan_gap_text(const PlanReport *r, Arena *arena) {
  const PleatPlan *data = &r->data;
  if (data->optimal) return "optimal (gap 0)";
  const char *left_out = plan_left_out(arena, r->plan);
  const char *best = left_out ? "best of those looked at" : "best plan";
  if (data->gap > 0)
    best = arena_printf(arena, "at most %.1f %% above the %s", 100 * data->gap, best);
  return left_out ? arena_printf(arena, "%s (%s)", best, left_out) : best;
}

// The cost of each policy for the same choices, with the optimum.
static void put_policies(const PleatPlan *data, Arena *arena, Text *out) {
  static const char *const names[] = {"optimal", "forward", "backward"};
  const double costs[] = {data->cycles_optimal, data->cycles_forward, data->cycles_backward};
  if (costs[0] <= 0) return;
  text_puts(out, "policies:");
  for (int i = 0; i < COUNT_OF(costs); i++) {
    if (costs[i] <= 0) continue; // it finds no plan with all tuning records
    text_printf(out, "%s %s %s", i ? " ·" : "", names[i], show_cycles(arena, costs[i]));
    if (costs[i] > costs[0]) text_printf(out, " (+%.1f %%)", 100 * (costs[i] / costs[0] - 1));
  }
  text_puts(out, "\n");
}

static const char *tile_text(Arena *arena, const int *extents, int count) {
  return count == 1 ? arena_printf(arena, "%d", extents[0])
                    : arena_printf(arena, "%dx%d", extents[0], extents[1]);
}

static const char *algorithm_text(Arena *arena, const PleatPlanBilinear *b) {
  if (!b->axis_count) return "7 products of blocks instead of 8";
  return arena_printf(arena, "tiles of %s for windows of %s",
                      tile_text(arena, b->outputs, b->axis_count),
                      tile_text(arena, b->taps, b->axis_count));
}

// The sums that are computed with fewer products, one a line.
static void put_bilinear(const PleatPlan *data, Arena *arena, Text *out) {
  double cycles = 0, direct = 0;
  for (int i = 0; i < data->bilinear_count; i++) {
    cycles += data->bilinear[i]->cycles;
    direct += data->bilinear[i]->direct_cycles;
  }
  if (!data->bilinear_count) return;
  text_printf(out, "fewer products: %d sum%s in %s cycles instead of %s\n", data->bilinear_count,
              data->bilinear_count == 1 ? "" : "s", show_cycles(arena, cycles),
              show_cycles(arena, direct));
  for (int i = 0; i < data->bilinear_count; i++) {
    const PleatPlanBilinear *b = data->bilinear[i];
    text_printf(out,
                "  %s: %s, %s cycles instead of %s; rounding %.2g, %.2g times the direct sum's "
                "(bound: %.3g times); weights %s instead of %s\n",
                b->tensor, algorithm_text(arena, b), show_cycles(arena, b->cycles),
                show_cycles(arena, b->direct_cycles), b->error, b->error / b->direct_error,
                b->bound, show_bytes(arena, b->weight_bytes),
                show_bytes(arena, b->direct_weight_bytes));
  }
}

// The kernels that run in bands.
static void put_bands(const PleatPlan *data, Arena *arena, Text *out) {
  int kernels = 0, parts = 0;
  for (int i = 0; i < data->kernel_count; i++) {
    kernels += data->kernels[i]->band_parts > 0;
    parts += data->kernels[i]->band_parts;
  }
  if (kernels)
    text_printf(out, "in bands of rows: %d kernel%s in the place of %d: %s cycles less\n", kernels,
                kernels == 1 ? "" : "s", parts, show_cycles(arena, data->cycles_saved_by_bands));
}

static void put_totals(const PlanReport *r, Arena *arena, Text *out) {
  const PleatPlan *data = &r->data;
  int at_run = 0;
  double cycles = 0;
  for (int i = 0; i < data->rewrite_count; i++) {
    at_run += !data->rewrites[i]->folded;
    cycles += data->rewrites[i]->cycles;
  }
  text_printf(out, "%d kernel%s, %d rewrite%s at run time: %s of %s cycles · %s\n",
              data->kernel_count, data->kernel_count == 1 ? "" : "s", at_run,
              at_run == 1 ? "" : "s", show_cycles(arena, cycles), show_cycles(arena, data->cycles),
              plan_gap_text(r, arena));
  text_printf(out, "row-major throughout: %s cycles, %.2f times as many\n",
              show_cycles(arena, data->cycles_row_major),
              data->cycles_row_major / fmax(data->cycles, 1));
  put_policies(data, arena, out);
  put_bands(data, arena, out);
  put_bilinear(data, arena, out);
}

// ---- Fusion -------------------------------------------------------------------------------------

static void put_counts(const PleatPlan *data, Text *out) {
  const int nodes[] = {data->nodes_in_place, data->nodes_folded, data->nodes_unused};
  static const char *const rest[] = {"only move elements, which are read in place",
                                     "computed while compiling", "that no output needs"};
  int kernels = 0, rows = 0;
  for (int i = 0; i < data->kernel_count; i++) {
    kernels += !data->kernels[i]->is_rewrite;
    rows += data->kernels[i]->by_rows;
  }
  text_printf(out, "fused: %d operator%s in %d kernel%s", data->nodes_in_kernels,
              data->nodes_in_kernels == 1 ? "" : "s", kernels, kernels == 1 ? "" : "s");
  if (rows) text_printf(out, ", %d of them row by row", rows);
  for (int i = 0; i < COUNT_OF(nodes); i++)
    if (nodes[i]) text_printf(out, " · %d %s", nodes[i], rest[i]);
  text_puts(out, "\n");
}

// "tuned: 3 of 12 kernels by records of FILE"
static void put_records(const PleatPlan *data, Text *out) {
  int kernels = 0, tuned = 0;
  const char *record = "";
  for (int i = 0; i < data->kernel_count; i++) {
    kernels += !data->kernels[i]->is_rewrite;
    if (!data->kernels[i]->record) continue;
    record = data->kernels[i]->record;
    tuned++;
  }
  if (tuned)
    text_printf(out, "tuned: %d of %d kernels by records of %.*s\n", tuned, kernels,
                (int)(strrchr(record, ':') - record), record);
}

// Does a function compute both kernels, on tensors in the same layouts?
static bool called_alike(const PleatPlanKernel *a, const PleatPlanKernel *b) {
  bool same = a->function && b->function && !strcmp(a->function, b->function) &&
              a->operand_count == b->operand_count;
  for (int i = 0; same && i < a->operand_count; i++)
    same = !strcmp(a->operands[i]->layout, b->operands[i]->layout);
  return same;
}

// "called: 3 times 'oneDNN 2.6 convolution', from NCHW8c, OIHW8i8o, C to NCHW8c: 3.1 k cycles", a
// line for calls that are alike.
static void put_calls_like(const PleatPlan *data, int first, Arena *arena, Text *out) {
  const PleatPlanKernel *kernel = data->kernels[first];
  int count = 0;
  double cycles = 0;
  for (int i = 0; i < data->kernel_count; i++) {
    if (!called_alike(kernel, data->kernels[i])) continue;
    if (i < first) return; // this line is written
    count++;
    cycles += data->kernels[i]->cycles;
  }
  text_printf(out, "called: %d time%s '%s'", count, count == 1 ? "" : "s", kernel->function);
  for (int i = 0; i < kernel->operand_count; i++)
    text_printf(out, "%s%s",
                i == kernel->operand_count - 1 ? " to "
                : i                            ? ", "
                                               : ", from ",
                kernel->operands[i]->layout);
  text_printf(out, ": %s cycles\n", show_cycles(arena, cycles));
}

static void put_calls(const PleatPlan *data, Arena *arena, Text *out) {
  for (int i = 0; i < data->kernel_count; i++)
    if (data->kernels[i]->function) put_calls_like(data, i, arena, out);
  if (data->cycles_own_kernels > 0)
    text_printf(out, "without the library: %s cycles, %.2f times as many\n",
                show_cycles(arena, data->cycles_own_kernels),
                data->cycles_own_kernels / fmax(data->cycles, 1));
}

typedef struct Reason {
  const char *kind;
  PtrArray kernels; // const PleatPlanKernel *: those that write the tensors
} Reason;
typedef Array(Reason) Reasons;

static Reasons find_reasons(const PleatPlan *data, Arena *arena) {
  Reasons reasons = {0};
  for (int i = 0; i < data->kernel_count; i++) {
    const PleatPlanKernel *kernel = data->kernels[i];
    int at = 0;
    if (kernel->is_rewrite || kernel->is_output) continue;
    while (at < reasons.count && strcmp(reasons.items[at].kind, kernel->because_kind) != 0) at++;
    if (at == reasons.count) array_push(arena, &reasons, ((Reason){.kind = kernel->because_kind}));
    array_push(arena, &reasons.items[at].kernels, (void *)kernel);
  }
  return reasons;
}

static const char *written_by(const PleatPlanKernel *kernel) {
  return kernel->operands[kernel->operand_count - 1]->tensor;
}

static void put_names(const PtrArray *kernels, Text *out) {
  enum { SHOWN = 3 };
  for (int i = 0; i < MIN_OF(kernels->count, SHOWN); i++)
    text_printf(out, "%s%s", i ? ", " : "", written_by(kernels->items[i]));
  if (kernels->count > SHOWN) text_puts(out, ", …");
}

static void put_fusion(const PleatPlan *data, Arena *arena, Text *out) {
  Reasons reasons = find_reasons(data, arena);
  int count = 0;
  put_counts(data, out);
  put_calls(data, arena, out);
  put_records(data, out);
  for (int i = 0; i < reasons.count; i++) count += reasons.items[i].kernels.count;
  if (!count) return;
  text_printf(out, "not fused: %d tensor%s between kernels, because\n", count,
              count == 1 ? "" : "s");
  for (int i = 0; i < reasons.count; i++) {
    text_printf(out, "  %4d  %s (", reasons.items[i].kernels.count, reasons.items[i].kind);
    put_names(&reasons.items[i].kernels, out);
    text_puts(out, ")\n");
  }
}

const char *plan_text(const PlanReport *report, Arena *arena) {
  Text text = text_new(arena);
  put_rewrites(report, arena, &text);
  put_totals(report, arena, &text);
  put_fusion(&report->data, arena, &text);
  return text_string(&text);
}

// ---- All kernels --------------------------------------------------------------------------------

const char *plan_operators_text(const PleatPlanKernel *kernel, Arena *arena) {
  Text text = text_new(arena);
  if (kernel->is_rewrite) return "another layout";
  if (!kernel->operator_count) return "a copy";
  for (int i = 0; i < kernel->operator_count; i++)
    text_printf(&text, "%s%s", i ? " + " : "", kernel->operators[i]);
  if (kernel->band_parts)
    text_puts(&text, ", in bands of rows");
  else if (kernel->by_rows)
    text_puts(&text, ", row by row");
  return text_string(&text);
}

static const char *readers_text(const PleatPlanKernel *kernel, Arena *arena) {
  Text text = text_new(arena);
  for (int i = 0; i < kernel->reader_count; i++)
    text_printf(&text, "%s%d", i ? " " : "", kernel->readers[i] + 1);
  if (kernel->is_output) text_printf(&text, "%soutput", kernel->reader_count ? " " : "");
  return text_string(&text);
}

const char *plan_fusion_text(const PleatPlan *plan, Arena *arena) {
  static const char *const heads[] = {
      "#", "kernel", "writes", "read by", "not fused with them, because", "computes"};
  Table table = table_new(arena, "rlllll");
  Text text = text_new(arena);
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < plan->kernel_count; i++) {
    const PleatPlanKernel *kernel = plan->kernels[i];
    table_cell(&table, "%d", i + 1);
    table_cell(&table, "%s", kernel->name);
    table_cell(&table, "%s", written_by(kernel));
    table_cell(&table, "%s", readers_text(kernel, arena));
    table_cell(&table, "%s", kernel->because);
    table_cell(&table, "%s", plan_operators_text(kernel, arena));
  }
  table_put(&table, &text);
  return text_string(&text);
}
