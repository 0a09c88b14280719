// SPDX-License-Identifier: Apache-2.0
// Shows for `plan --fusion` which operators are fused into one kernel, and why others are not.
#include "cli/fusion.h"

// ---- The summary -------------------------------------------------------------------------------

typedef struct Reason {
  const char *kind;
  PtrArray tensors; // const StageTensor *
} Reason;
typedef Array(Reason) Reasons;

static Reasons find_reasons(const View *v) {
  Arena *arena = &v->cli->context->arena;
  Reasons reasons = {0};
  for (int i = 0; i < v->report.plan->kernels.count; i++) {
    const PlanKernel *kernel = v->report.plan->kernels.items[i];
    const StageTensor *tensor = array_last(&kernel->params);
    if (kernel->is_rewrite || tensor->is_output) continue;
    const char *kind = plan_fusion_blocker(v->report.plan, tensor).kind;
    int at = 0;
    while (at < reasons.count && strcmp(reasons.items[at].kind, kind) != 0) at++;
    if (at == reasons.count) array_push(arena, &reasons, ((Reason){.kind = kind}));
    array_push(arena, &reasons.items[at].tensors, (void *)tensor);
  }
  return reasons;
}

static void print_names(const PtrArray *tensors) {
  enum { SHOWN = 3 };
  for (int i = 0; i < MIN_OF(tensors->count, SHOWN); i++)
    printf("%s%s", i ? ", " : "", plan_tensor_name(tensors->items[i]));
  if (tensors->count > SHOWN) printf(", …");
}

static void print_counts(const View *v) {
  static const char *const rest[] = {"that no output needs", "computed while compiling",
                                     "only move elements, which are read in place"};
  int counts[4] = {0}, kernels = 0, rows = 0;
  Map places = node_kernels(v->cli->context, v->program->graph, v->report.plan);
  for (int i = 0; i < places.count; i++)
    counts[((const NodeKernels *)places.entries[i].value)->fate]++;
  for (int i = 0; i < v->report.plan->kernels.count; i++) {
    kernels += !v->report.plan->kernels.items[i]->is_rewrite;
    rows += kernel_has_rows(v->report.plan->kernels.items[i]);
  }
  printf("fused: %d operators in %d kernels", counts[NODE_COMPUTED], kernels);
  if (rows) printf(", %d of them row by row", rows);
  for (int fate = NODE_IN_PLACE; fate >= NODE_UNUSED; fate--)
    if (counts[fate]) printf(" · %d %s", counts[fate], rest[fate]);
  printf("\n");
}

void fusion_print_summary(const View *v) {
  Reasons reasons = find_reasons(v);
  int count = 0;
  print_counts(v);
  for (int i = 0; i < reasons.count; i++) count += reasons.items[i].tensors.count;
  if (!count) return;
  printf("not fused: %d tensor%s between kernels, because\n", count, count == 1 ? "" : "s");
  for (int i = 0; i < reasons.count; i++) {
    printf("  %4d  %s (", reasons.items[i].tensors.count, reasons.items[i].kind);
    print_names(&reasons.items[i].tensors);
    printf(")\n");
  }
}

// ---- All kernels --------------------------------------------------------------------------------

static const char *readers_text(const View *v, const StageTensor *tensor) {
  IntArray readers = fusion_readers(&v->report, tensor);
  Text text = text_new(&v->cli->context->arena);
  for (int i = 0; i < readers.count; i++)
    text_printf(&text, "%s%lld", i ? " " : "", (long long)readers.items[i]);
  if (tensor->is_output) text_printf(&text, "%soutput", readers.count ? " " : "");
  return text_string(&text);
}

void fusion_print(const View *v) {
  Table table = table_new(&v->cli->context->arena, "rlllll");
  static const char *const heads[] = {
      "#", "kernel", "writes", "read by", "not fused with them, because", "computes"};
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < v->report.plan->kernels.count; i++) {
    const PlanKernel *kernel = v->report.plan->kernels.items[i];
    const StageTensor *tensor = array_last(&kernel->params);
    table_cell(&table, "%d", i + 1);
    table_cell(&table, "%s", kernel->name);
    table_cell(&table, "%s", plan_tensor_name(tensor));
    table_cell(&table, "%s", readers_text(v, tensor));
    table_cell(&table, "%s", fusion_because(&v->report, kernel));
    table_cell(&table, "%s", fusion_operators(&v->report, kernel));
  }
  table_print(&table, stdout);
}
