// SPDX-License-Identifier: Apache-2.0
// Writes the plan as one HTML page: its cost, the rewrites that remain, and the kernels in the
// order in which they run. Arcs beside the kernels lead from where a tensor is written to where it
// is read. The page has no scripts and loads nothing; it supports light and dark colours.
#include "cli/plan_view.h"

#include <math.h>

enum { ROW = 26, LANE = 10, MOST_LANES = 16, HEAD = 34 };

typedef struct Page {
  const View *view;
  Text *out;
  Map colours; // from a layout's name to its number
} Page;

// ---- Text -------------------------------------------------------------------------------------

static void put(Page *p, const char *text) {
  for (; *text; text++) switch (*text) {
    case '<': text_puts(p->out, "&lt;"); break;
    case '>': text_puts(p->out, "&gt;"); break;
    case '&': text_puts(p->out, "&amp;"); break;
    case '"': text_puts(p->out, "&quot;"); break;
    default: text_append(p->out, text, 1);
    }
}

static void cell(Page *p, const char *class, const char *text) {
  text_printf(p->out, "<td%s%s%s>", class ? " class=\"" : "", class ? class : "",
              class ? "\"" : "");
  put(p, text);
  text_puts(p->out, "</td>");
}

static void heads(Page *p, const char *const *names, int count) {
  text_puts(p->out, "<tr>");
  for (int i = 0; i < count; i++) text_printf(p->out, "<th>%s</th>", names[i]);
  text_puts(p->out, "</tr>\n");
}

// ---- Layouts ----------------------------------------------------------------------------------

enum { COLOURS = 8 };

static int colour_of(Page *p, const char *name) {
  Str key = str_intern(p->view->cli->context, name);
  if (!map_contains(&p->colours, key))
    map_put(&p->colours, key, (void *)(intptr_t)(p->colours.count % COLOURS));
  return (int)(intptr_t)map_find(&p->colours, key);
}

static void chip(Page *p, const char *name) {
  text_printf(p->out, "<span class=\"chip c%d\">", colour_of(p, name));
  put(p, name);
  text_puts(p->out, "</span>");
}

// ---- Arcs -------------------------------------------------------------------------------------

typedef struct EdgeArc {
  int from, to; // numbers of kernels; -1: an input of the graph
  const PleatPlanOperand *operand;
  int lane;
} EdgeArc;
typedef Array(EdgeArc) Arcs;

static const PleatPlanTensor *tensor_of(const Page *p, const PleatPlanOperand *operand) {
  return p->view->report.data.tensors[operand->tensor_number];
}

static bool is_constant(const Page *p, const PleatPlanOperand *operand) {
  return strcmp(tensor_of(p, operand)->kind, "constant") == 0;
}

// Equal for operands that are the same tensor in the same layout.
static Str storage_of(const Page *p, const PleatPlanOperand *operand) {
  return str_format(p->view->cli->context, "%d %s", operand->tensor_number, operand->layout);
}

// The lane nearest to the table in which no earlier arc overlaps this one.
static int free_lane(const Arcs *arcs, const EdgeArc *arc) {
  for (int lane = 0; lane < MOST_LANES - 1; lane++) {
    bool taken = false;
    for (int i = 0; i < arcs->count; i++)
      taken |= arcs->items[i].lane == lane && arcs->items[i].to > arc->from &&
               arc->to > arcs->items[i].from;
    if (!taken) return lane;
  }
  return MOST_LANES - 1;
}

static Arcs find_arcs(Page *p) {
  const PleatPlan *plan = &p->view->report.data;
  Arena *arena = &p->view->cli->context->arena;
  Map writers = map_new(arena); // from storage to the number of the kernel that wrote it last, + 1
  Arcs arcs = {0};
  for (int i = 0; i < plan->kernel_count; i++) {
    const PleatPlanKernel *kernel = plan->kernels[i];
    for (int j = 0; j < kernel->operand_count; j++) {
      const PleatPlanOperand *operand = kernel->operands[j];
      Str storage = storage_of(p, operand);
      EdgeArc arc = {(int)(intptr_t)map_find(&writers, storage) - 1, i, operand, 0};
      if (operand->is_written)
        map_put(&writers, storage, (void *)(intptr_t)(i + 1));
      else if (!is_constant(p, operand)) {
        arc.lane = arc.from == i - 1 ? 0 : free_lane(&arcs, &arc);
        array_push(arena, &arcs, arc);
      }
    }
  }
  return arcs;
}

static void draw_arc(Page *p, const EdgeArc *arc, int width) {
  int y0 = HEAD + arc->from * ROW + ROW / 2, y1 = HEAD + arc->to * ROW + ROW / 2;
  int x = width - 8 - (arc->lane + 1) * LANE;
  if (arc->from < 0) y0 = y1 - ROW / 2 + 2;
  const char *name = arc->operand->layout;
  text_printf(p->out,
              "<path class=\"c%d\" d=\"M%d %dC%d %d %d %d %d %dV%dC%d %d %d %d %d %d\"><title>",
              colour_of(p, name), width - 6, y0, x, y0, x, y0, x, y0 + 8, y1 - 8, x, y1, x, y1,
              width - 6, y1);
  put(p, arc->operand->tensor);
  text_puts(p->out, " as ");
  put(p, name);
  text_puts(p->out, "</title></path>\n");
}

static void draw_arcs(Page *p) {
  Arcs arcs = find_arcs(p);
  const PleatPlan *plan = &p->view->report.data;
  int lanes = 0, height = HEAD + plan->kernel_count * ROW;
  for (int i = 0; i < arcs.count; i++) lanes = MAX_OF(lanes, arcs.items[i].lane + 1);
  int width = 20 + lanes * LANE;
  text_printf(p->out, "<svg class=\"arcs\" width=\"%d\" height=\"%d\" aria-hidden=\"true\">\n",
              width, height);
  for (int i = 0; i < arcs.count; i++) draw_arc(p, &arcs.items[i], width);
  for (int i = 0; i < plan->kernel_count; i++)
    text_printf(p->out, "<circle cx=\"%d\" cy=\"%d\" r=\"4\"%s/>\n", width - 6,
                HEAD + i * ROW + ROW / 2, plan->kernels[i]->is_rewrite ? " class=\"moved\"" : "");
  text_puts(p->out, "</svg>\n");
}

// ---- Kernels ----------------------------------------------------------------------------------

static void put_operators(Page *p, const PleatPlanKernel *kernel) {
  text_puts(p->out, kernel->is_rewrite ? "<td class=\"moved\">" : "<td>");
  put(p, plan_operators_text(kernel, &p->view->cli->context->arena));
  text_puts(p->out, "</td>");
}

static void put_reads(Page *p, const PleatPlanKernel *kernel) {
  text_puts(p->out, "<td>");
  for (int i = 0; i + 1 < kernel->operand_count; i++) {
    const PleatPlanOperand *operand = kernel->operands[i];
    if (!is_constant(p, operand) || tensor_of(p, operand)->rank >= 2) chip(p, operand->layout);
  }
  text_puts(p->out, "</td>");
}

static void put_shape(Page *p, const PleatPlanTensor *tensor) {
  text_puts(p->out, "<td class=\"dim\">");
  for (int i = 0; i < tensor->rank; i++)
    text_printf(p->out, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
  text_puts(p->out, "</td>");
}

static void put_kernel(Page *p, int number, double most) {
  const View *v = p->view;
  const PleatPlanKernel *kernel = v->report.data.kernels[number];
  const PleatPlanOperand *output = kernel->operands[kernel->operand_count - 1];
  text_printf(p->out, "<tr><td class=\"n\">%d</td>", number + 1);
  cell(p, "name", kernel->name);
  put_operators(p, kernel);
  put_reads(p, kernel);
  text_puts(p->out, "<td>");
  chip(p, output->layout);
  text_puts(p->out, "</td>");
  put_shape(p, tensor_of(p, output));
  text_printf(p->out,
              "<td class=\"n\">%s</td><td><span class=\"bar\" style=\"width:%.1fpx\"></span></td>",
              view_cycles(v, kernel->cycles), fmax(1, 120 * kernel->cycles / fmax(most, 1)));
  cell(p, "slow", kernel->slow ? kernel->slow : "");
  cell(p, "dim", kernel->because);
  text_puts(p->out, "</tr>\n");
}

static void put_kernels(Page *p) {
  static const char *const names[] = {
      "#",     "kernel", "operators", "reads", "writes",
      "shape", "cycles", "",          "",      "not fused with its reader, because"};
  const PleatPlan *plan = &p->view->report.data;
  double most = 0;
  for (int i = 0; i < plan->kernel_count; i++) most = fmax(most, plan->kernels[i]->cycles);
  text_puts(p->out, "<h2>Kernels, in the order in which they run</h2>\n<div class=\"scroll\">"
                    "<div class=\"graph\">\n");
  draw_arcs(p);
  text_puts(p->out, "<table class=\"kernels\">\n");
  heads(p, names, COUNT_OF(names));
  for (int i = 0; i < plan->kernel_count; i++) put_kernel(p, i, most);
  text_puts(p->out, "</table></div></div>\n");
}

// ---- Rewrites ---------------------------------------------------------------------------------

static void put_rewrite(Page *p, int number) {
  const View *v = p->view;
  const PlanRow *row = &v->report.rows.items[number];
  const PleatPlanRewrite *r = plan_row_member(&v->report, row, 0);
  text_printf(p->out, "<tr><td class=\"n\">%d</td>", number + 1);
  cell(p, "name", plan_row_name(&v->report, row));
  text_puts(p->out, "<td>");
  chip(p, r->from);
  text_puts(p->out, "</td><td>");
  chip(p, r->to);
  text_printf(p->out, "</td><td%s>%s</td>", r->folded ? " class=\"dim\"" : " class=\"moved\"",
              r->folded ? "folded" : "at each run");
  cell(p, "n", show_bytes(&v->cli->context->arena, row->bytes));
  cell(p, "n", r->folded ? "–" : view_cycles(v, r->cycles));
  cell(p, NULL, plan_row_because(&v->report, row));
  text_puts(p->out, "</tr>\n");
}

static void put_rewrites(Page *p) {
  static const char *const names[] = {"#",    "tensor", "from",   "to",
                                      "when", "bytes",  "cycles", "because"};
  text_puts(p->out, "<h2>Layout rewrites</h2>\n");
  if (!p->view->report.rows.count) {
    text_puts(p->out, "<p>None.</p>\n");
    return;
  }
  text_puts(p->out, "<div class=\"scroll\"><table>\n");
  heads(p, names, COUNT_OF(names));
  for (int i = 0; i < p->view->report.rows.count; i++) put_rewrite(p, i);
  text_puts(p->out, "</table></div>\n");
}

// ---- The prices of layouts --------------------------------------------------------------------

static void put_price(Page *p, const TensorReport *t, int number, double most) {
  const View *v = p->view;
  const PleatLayoutPrice *price = t->data.prices[number];
  double more = price->possible ? price->cycles - v->report.data.cycles : 0;
  text_puts(p->out, price->chosen ? "<tr class=\"chosen\"><td>" : "<tr><td>");
  chip(p, price->layout);
  text_puts(p->out, "</td>");
  cell(p, "n", show_bytes(&v->cli->context->arena, price->bytes));
  cell(p, "n", price->possible ? view_cycles(v, price->cycles) : "–");
  cell(p, price->possible ? "n" : "n slow", view_difference(v, price));
  text_printf(p->out, "<td><span class=\"bar\" style=\"width:%.1fpx\"></span></td>",
              120 * fmax(more, 0) / fmax(most, 1));
  cell(p, "wide", price->because);
  bool other = price->possible && !price->chosen;
  cell(p, "name dim", other ? view_option(v, t->tensor, t->layouts[number]) : "");
  text_puts(p->out, "</tr>\n");
}

static void put_uses(Page *p, const TensorReport *t) {
  text_puts(p->out, "<p>");
  for (int i = 0; i < t->data.use_count; i++) {
    const PleatTensorUse *use = t->data.uses[i];
    text_printf(p->out, "%s%s ", i ? " · " : "", use->is_written ? "written as" : "read as");
    chip(p, use->layout);
    text_printf(p->out, "by kernel %d", use->kernel + 1);
  }
  if (*t->data.because) {
    text_puts(p->out, "<br><span class=\"dim\">in memory: ");
    put(p, t->data.because);
    text_puts(p->out, "</span>");
  }
  text_puts(p->out, "</p>\n");
}

static void put_prices(Page *p, const StageTensor *tensor) {
  static const char *const names[] = {"layout", "bytes",   "cycles of the plan", "",
                                      "",       "because", "to have it"};
  const View *v = p->view;
  const TensorReport t = tensor_report_new(&v->report, tensor, &v->cli->context->arena);
  double most = 0;
  text_puts(p->out, "<h3><span class=\"name\">");
  put(p, t.data.tensor->name);
  text_printf(p->out, "</span> <span class=\"dim\">[%s] %s, %s</span></h3>\n",
              view_shape(v, tensor->buffer), t.data.tensor->type, t.data.tensor->kind);
  put_uses(p, &t);
  if (!t.data.price_count) return;
  for (int i = 0; i < t.data.price_count; i++)
    if (t.data.prices[i]->possible)
      most = fmax(most, t.data.prices[i]->cycles - v->report.data.cycles);
  text_puts(p->out, "<div class=\"scroll\"><table>\n");
  heads(p, names, COUNT_OF(names));
  for (int i = 0; i < t.data.price_count; i++) put_price(p, &t, i, most);
  text_puts(p->out, "</table></div>\n");
}

// The prices for the tensor of --why. Each one solves the problem again.
static void put_why(Page *p) {
  if (!p->view->options->model.asked) return;
  text_puts(p->out, "<h2>What other layouts would cost</h2>\n");
  put_prices(p, view_asked(p->view));
}

// ---- The page ---------------------------------------------------------------------------------

static void tile(Page *p, const char *value, const char *what) {
  text_puts(p->out, "<div class=\"tile\"><b>");
  put(p, value);
  text_puts(p->out, "</b><span>");
  put(p, what);
  text_puts(p->out, "</span></div>\n");
}

static void put_tiles(Page *p) {
  const View *v = p->view;
  const PleatPlan *plan = &v->report.data;
  Arena *arena = &v->cli->context->arena;
  int at_run = 0;
  for (int i = 0; i < plan->rewrite_count; i++) at_run += !plan->rewrites[i]->folded;
  bool is_limited = plan->choices_left_out || plan->layouts_left_out || plan->fusions_decided;
  text_puts(p->out, "<div class=\"tiles\">\n");
  tile(p, view_cycles(v, plan->cycles), "estimated cycles");
  tile(p, view_gap(v), is_limited ? "of all plans" : "against every other plan");
  tile(p, arena_printf(arena, "%d", at_run), "rewrites at each run");
  tile(p, arena_printf(arena, "%d", plan->rewrite_count - at_run), "folded into constants");
  tile(p, arena_printf(arena, "× %.2f", plan->cycles_row_major / fmax(plan->cycles, 1)),
       "cycles with every tensor row-major");
  if (plan->cycles_optimal > 0)
    tile(p,
         arena_printf(arena, "%+.1f %% · %+.1f %%",
                      100 * (plan->cycles_forward / plan->cycles_optimal - 1),
                      100 * (plan->cycles_backward / plan->cycles_optimal - 1)),
         "greedy forward · backward, over the optimum");
  if (plan->cycles_saved_by_bands > 0)
    tile(p, view_cycles(v, plan->cycles_saved_by_bands), "fewer in bands of rows");
  text_puts(p->out, "</div>\n");
}

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--dim:#68707a;--line:#e3e6ea;--paper:#fff;"
    "--bar:#4c7dd0;--moved:#b3261e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e7eb;--dim:#98a1ab;--line:#30363d;"
    "--paper:#14171b;--bar:#6d9be8;--moved:#ff8a80}}\n"
    "body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
    "margin:2rem auto;max-width:1200px;padding:0 1rem}\n"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .6rem}\n"
    ".sub,.dim{color:var(--dim)}.scroll{overflow-x:auto}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin-top:1.2rem}\n"
    ".tile{border:1px solid var(--line);border-radius:8px;padding:.6rem .9rem}\n"
    ".tile b{display:block;font-size:1.15rem}.tile span{color:var(--dim);font-size:.85rem}\n"
    "table{border-collapse:collapse}th{text-align:left;font-weight:600;color:var(--dim);"
    "font-size:.85rem}td,th{padding:3px 12px 3px 0;white-space:nowrap}\n"
    "tr{border-bottom:1px solid "
    "var(--line)}.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    ".name{font-family:ui-monospace,monospace;font-size:.88rem}\n"
    ".graph{display:flex}.arcs{flex:none}.arcs path{fill:none;stroke:var(--c);stroke-width:1.6}\n"
    ".arcs circle{fill:var(--ink)}.arcs circle.moved{fill:var(--moved)}.moved{color:var(--moved)}\n"
    ".kernels tr{height:26px;box-sizing:border-box}.kernels tr:first-child{height:34px}\n"
    ".kernels td,.kernels th{padding-top:0;padding-bottom:0;line-height:1}\n"
    ".chip{display:inline-block;font:12px/1.2 ui-monospace,monospace;padding:2px 6px;"
    "border-radius:5px;margin-right:4px;border:1px solid var(--c);"
    "background:color-mix(in srgb,var(--c) 16%,transparent)}\n"
    ".bar{display:inline-block;height:9px;border-radius:2px;background:var(--bar)}\n"
    "h3{font-size:1rem;margin:1.2rem 0 .2rem}p{margin:.3rem 0}.chosen td{font-weight:600}\n"
    ".wide{white-space:normal;min-width:18rem}\n"
    ".slow{color:var(--moved);font-size:.85rem}\n"
    ".c0{--c:#4c7dd0}.c1{--c:#2e9e6b}.c2{--c:#c77d1e}.c3{--c:#8f5bd0}.c4{--c:#c2477f}"
    ".c5{--c:#2a98a8}.c6{--c:#8a8f2a}.c7{--c:#7a7f87}\n";

static void put_page(Page *p) {
  const View *v = p->view;
  const char *name = path_file_name(v->path);
  text_puts(p->out, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
  put(p, name);
  text_printf(p->out, " – layout plan</title>\n<style>\n%s</style>\n<h1>", style);
  put(p, name);
  text_printf(p->out, "</h1><p class=\"sub\">layout plan for %s, %d kernels</p>\n",
              v->report.data.machine, v->report.data.kernel_count);
  put_tiles(p);
  put_rewrites(p);
  put_why(p);
  put_kernels(p);
  text_puts(p->out, "</html>\n");
}

bool plan_write_html(const View *view, FileSet *files, const char *path) {
  Context *context = view->cli->context;
  Text out = text_new(&context->arena);
  Page page = {view, &out, map_new(&context->arena)};
  put_page(&page);
  return file_set_write(files, path, text_string(&out), out.size);
}
