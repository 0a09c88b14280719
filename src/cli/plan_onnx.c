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

static const char *layout_of(const Noting *n, const PlanKernel *kernel, int param) {
  return report_layout_name(&n->view->report, kernel->params.items[param],
                            kernel->choice.layouts[param]);
}

static void put_param(Noting *n, Text *out, const PlanKernel *kernel, int param) {
  text_printf(out, "%s %s", plan_tensor_name(kernel->params.items[param]),
              layout_of(n, kernel, param));
}

// Does the rewrite produce what the kernel reads as `param`, or read what it writes?
static bool is_beside(const Noting *n, const PlanRewrite *r, const PlanKernel *kernel, int param) {
  bool writes = param == kernel->params.count - 1;
  const Layout *layout = writes ? r->from : r->to;
  return kernel->params.items[param] == r->tensor &&
         !strcmp(report_layout_name(&n->view->report, r->tensor, layout),
                 layout_of(n, kernel, param));
}

static void put_rewrite(Noting *n, Text *out, const PlanRewrite *r, bool writes) {
  const char *when = r->folded ? "while compiling" : writes ? "at each run, after" : "at each run";
  text_printf(out, "%s%s %s -> %s, %s: %s", out->size ? "\n" : "", plan_tensor_name(r->tensor),
              report_layout_name(&n->view->report, r->tensor, r->from),
              report_layout_name(&n->view->report, r->tensor, r->to), when, r->because);
}

static void put_rewrites(Noting *n, Text *out, const PlanKernel *kernel) {
  const Plan *plan = n->view->report.plan;
  for (int i = 0; i < plan->rewrites.count; i++)
    for (int j = 0; j < kernel->params.count; j++)
      if (is_beside(n, &plan->rewrites.items[i], kernel, j))
        put_rewrite(n, out, &plan->rewrites.items[i], j == kernel->params.count - 1);
}

typedef struct NodeTexts {
  Text number, reads, writes, cycles, rewrites;
} NodeTexts;

static void put_kernel(Noting *n, NodeTexts *t, int number) {
  const PlanKernel *kernel = n->view->report.plan->kernels.items[number];
  const char *line = t->number.size ? "\n" : "";
  int last = kernel->params.count - 1;
  text_printf(&t->number, "%s%d", line, number + 1);
  text_printf(&t->cycles, "%s%.0f", line, kernel->cost);
  text_puts(&t->reads, line);
  text_puts(&t->writes, line);
  for (int i = 0; i < last; i++) {
    text_puts(&t->reads, i ? ", " : "");
    put_param(n, &t->reads, kernel, i);
  }
  put_param(n, &t->writes, kernel, last);
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
  const Plan *plan = n->view->report.plan;
  OnnxNoteList *list = arena_new(n->arena, OnnxNoteList);
  int at_run = 0;
  double cost = 0;
  int64_t bytes = 0;
  for (int i = 0; i < plan->rewrites.count; i++) {
    const PlanRewrite *r = &plan->rewrites.items[i];
    at_run += !r->folded;
    bytes += r->folded ? 0 : r->bytes;
    cost += r->cost;
  }
  add_printed(n, list, ONNX_NOTE_PREFIX "machine", "%s",
              n->view->program->options.machine.level_name);
  add_printed(n, list, ONNX_NOTE_PREFIX "kernels", "%d", plan->kernels.count);
  add_printed(n, list, ONNX_NOTE_PREFIX "rewrites",
              "%d at each run, %lld bytes; %d while compiling", at_run, (long long)bytes,
              plan->rewrites.count - at_run);
  add_printed(n, list, ONNX_NOTE_PREFIX "cycles", "%.0f", plan->cost);
  add_printed(n, list, ONNX_NOTE_PREFIX "cycles.rewrites", "%.0f", cost);
  add_printed(n, list, ONNX_NOTE_PREFIX "cycles.row_major", "%.0f", plan->cost_unplanned);
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
