// SPDX-License-Identifier: Apache-2.0
// Writes the plan into the metadata of the model, for viewers and scripts that read ONNX: each node
// has the kernels that compute it and what they read and write; the model has the totals. A node
// that several kernels compute has one line for each kernel, in the same order under every key.
#include "cli/plan_view.h"

#include "config.h"

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"

typedef struct Noting {
  const View *view;
  Arena *arena;
  OnnxNotes notes;
} Noting;

static void add_note(Noting *n, OnnxNoteList *list, const char *key, const Text *value) {
  if (!value->size) return;
  array_push(n->arena, list, ((OnnxNote){key, text_string((Text *)value)}));
}

static void add_printed(Noting *n, OnnxNoteList *list, const char *key, const char *format, ...)
    PRINTF_LIKE(4, 5);
static void add_printed(Noting *n, OnnxNoteList *list, const char *key, const char *format, ...) {
  Text text = text_new(n->arena);
  va_list args;
  va_start(args, format);
  text_vprintf(&text, format, args);
  va_end(args);
  add_note(n, list, key, &text);
}

// ---- Kernels ----------------------------------------------------------------------------------

static void put_operand(Text *out, const PleatPlanOperand *operand) {
  text_printf(out, "%s %s", operand->tensor, operand->layout);
}

// Does the rewrite produce the operand that a kernel reads, or read the one that it writes?
static bool is_beside(const PleatPlanRewrite *r, const PleatPlanOperand *operand) {
  const char *layout = operand->is_written ? r->from : r->to;
  return operand->tensor_number == r->tensor_number && !strcmp(operand->layout, layout);
}

static void put_rewrite(Text *out, const PleatPlanRewrite *r, bool is_after) {
  const char *when = r->folded  ? "while compiling"
                     : is_after ? "at each run, after"
                                : "at each run";
  text_printf(out, "%s%s %s -> %s, %s: %s", out->size ? "\n" : "", r->tensor, r->from, r->to, when,
              r->because);
}

// Is it a kernel that computes nodes, which have notes of their own?
static bool is_kernel_of_nodes(const PleatPlan *plan, const PleatPlanRewrite *r) {
  return r->kernel >= 0 && !plan->kernels[r->kernel]->is_rewrite;
}

static void put_rewrites(Noting *n, Text *out, const PleatPlanKernel *kernel) {
  const PleatPlan *plan = &n->view->report.data;
  for (int j = 0; j < kernel->operand_count; j++)
    for (int i = 0; i < plan->rewrite_count; i++)
      if (!is_kernel_of_nodes(plan, plan->rewrites[i]) &&
          is_beside(plan->rewrites[i], kernel->operands[j]))
        put_rewrite(out, plan->rewrites[i], kernel->operands[j]->is_written);
}

typedef struct NodeTexts {
  Text number, reads, writes, cycles, rewrites;
} NodeTexts;

static void put_kernel(Noting *n, NodeTexts *t, int number) {
  const PleatPlanKernel *kernel = n->view->report.data.kernels[number];
  const char *line = t->number.size ? "\n" : "";
  int last = kernel->operand_count - 1;
  text_printf(&t->number, "%s%d", line, number + 1);
  text_printf(&t->cycles, "%s%.0f", line, kernel->cycles);
  text_puts(&t->reads, line);
  text_puts(&t->writes, line);
  for (int i = 0; i < last; i++) {
    text_puts(&t->reads, i ? ", " : "");
    put_operand(&t->reads, kernel->operands[i]);
  }
  put_operand(&t->writes, kernel->operands[last]);
  put_rewrites(n, &t->rewrites, kernel);
}

// The notes of a node: the kernels that compute it, or the reason why no kernel does.
static const OnnxNoteList *node_notes(void *env, const PtrArray *known) {
  static const char *const none[] = {"none: no output needs it", "none: computed while compiling",
                                     "none: only moves elements, which are read in place"};
  Noting *n = env;
  OnnxNoteList *list = arena_new(n->arena, OnnxNoteList);
  NodeKernels all = {0};
  for (int i = 0; i < known->count; i++) node_kernels_add(n->arena, &all, known->items[i]);
  if (all.fate != NODE_COMPUTED) {
    add_printed(n, list, ONNX_NOTE_PREFIX "kernel", "%s", none[all.fate]);
    return list;
  }
  Text empty = text_new(n->arena);
  NodeTexts t = {empty, empty, empty, empty, empty};
  for (int i = 0; i < all.kernels.count; i++) put_kernel(n, &t, (int)all.kernels.items[i]);
  add_note(n, list, ONNX_NOTE_PREFIX "kernel", &t.number);
  add_note(n, list, ONNX_NOTE_PREFIX "reads", &t.reads);
  add_note(n, list, ONNX_NOTE_PREFIX "writes", &t.writes);
  add_note(n, list, ONNX_NOTE_PREFIX "cycles", &t.cycles);
  add_note(n, list, ONNX_NOTE_PREFIX "rewrites", &t.rewrites);
  return list;
}

// ---- Nodes ------------------------------------------------------------------------------------

static void add_place(Noting *n, Map *places, Str key, const NodeKernels *place) {
  NodeKernels *all = map_find(places, key);
  if (!all) map_put(places, key, all = arena_new(n->arena, NodeKernels));
  node_kernels_add(n->arena, all, place);
}

static void note_places(Noting *n) {
  const GraphFunc *graph = n->view->program->graph;
  Map places = node_kernels(n->view->cli->context, graph, n->view->report.plan);
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    const NodeKernels *place = map_find(&places, node);
    add_place(n, &n->notes.by_name, node->pos.node ? node->pos.node : node->name, place);
    for (int o = 0; o < node->output_count; o++)
      add_place(n, &n->notes.by_output, node->outputs[o]->name, place);
  }
}

static OnnxNoteList *other_notes(Noting *n) {
  OnnxNoteList *list = arena_new(n->arena, OnnxNoteList);
  add_printed(n, list, ONNX_NOTE_PREFIX "kernel",
              "none: computed while compiling, put into its readers, or not needed");
  return list;
}

// ---- The whole --------------------------------------------------------------------------------

static OnnxNoteList *model_notes(Noting *n) {
  const PleatPlan *plan = &n->view->report.data;
  OnnxNoteList *list = arena_new(n->arena, OnnxNoteList);
  int at_run = 0;
  double cost = 0;
  int64_t bytes = 0;
  for (int i = 0; i < plan->rewrite_count; i++) {
    const PleatPlanRewrite *r = plan->rewrites[i];
    at_run += !r->folded;
    bytes += r->folded ? 0 : r->bytes;
    cost += r->cycles;
  }
  add_printed(n, list, ONNX_NOTE_PREFIX "machine", "%s", plan->machine);
  add_printed(n, list, ONNX_NOTE_PREFIX "kernels", "%d", plan->kernel_count);
  add_printed(n, list, ONNX_NOTE_PREFIX "rewrites",
              "%d at each run, %lld bytes; %d while compiling", at_run, (long long)bytes,
              plan->rewrite_count - at_run);
  add_printed(n, list, ONNX_NOTE_PREFIX "cycles", "%.0f", plan->cycles);
  add_printed(n, list, ONNX_NOTE_PREFIX "cycles.rewrites", "%.0f", cost);
  add_printed(n, list, ONNX_NOTE_PREFIX "cycles.row_major", "%.0f", plan->cycles_row_major);
  add_printed(n, list, ONNX_NOTE_PREFIX "plan", "%s", view_gap(n->view));
  return list;
}

bool plan_write_onnx(const View *view, FileSet *files, const char *path) {
  Context *context = view->cli->context;
  Arena *arena = &context->arena;
  Noting n = {view, arena, {.by_name = map_new(arena), .by_output = map_new(arena)}};
  n.notes.make = node_notes;
  n.notes.env = &n;
  if (model_is_script(view->path))
    return diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "--onnx: %s is not an ONNX model",
                         view->path);
  note_places(&n);
  n.notes.model = model_notes(&n);
  n.notes.otherwise = other_notes(&n);
  return onnx_annotate(context, view->path, &n.notes, files, path);
}
#else

bool plan_write_onnx(const View *view, FileSet *files, const char *path) {
  (void)files;
  return diag_error_as(view->cli->context, DIAG_OPTION, (SourcePos){0},
                       "--onnx %s: this build cannot read ONNX", path);
}
#endif
