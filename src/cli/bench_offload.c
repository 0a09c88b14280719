// SPDX-License-Identifier: Apache-2.0
// Measures a model with and without a library. The two programs fuse differently, so that a call of
// the library is compared with the kernels that compute its operators together with all kernels, of
// either program, that share operators with them:
//   library   call [conv], kernel [norm, relu]        own   kernel [conv, norm, relu]
//   one row   [conv, norm, relu]
#include "cli/bench_offload.h"

#include "driver/reference.h"
#include "report/report.h"
#include "report/table.h"

// The steps of a program with the operators that each computes, and its time.
typedef struct Steps {
  const Session *session;
  PtrArray *nodes; // by step: of the graph
  double *seconds; // by step: in the turn with the lowest median
  bool *done;      // by step: it is in a row
} Steps;

static bool is_call(const Steps *s, int step) {
  return s->session->program->steps.items[step].plan->call != NULL;
}

static bool is_rewrite(const Steps *s, int step) {
  return s->session->program->steps.items[step].plan->is_rewrite;
}

static int step_count(const Steps *s) {
  return s->session->program->steps.count;
}

static Steps steps_new(const Session *session) {
  Arena *arena = &session->cli->context->arena;
  int count = session->program->steps.count;
  Steps s = {session, arena_array(arena, PtrArray, count), arena_array(arena, double, count),
             arena_array(arena, bool, count)};
  for (int i = 0; i < count; i++)
    s.nodes[i] = kernel_nodes(arena, session->program->steps.items[i].plan);
  return s;
}

// ---- Measuring ----------------------------------------------------------------------------------

// Measures once more; the turn with the lowest median counts.
static bool take_turn(Session *s, Steps *steps, int64_t runs, bool first, Spread *latency) {
  if (!session_measure(s, runs, true)) return false;
  if (!first && s->latency.median >= latency->median) return true;
  *latency = s->latency;
  for (int i = 0; i < step_count(steps); i++)
    steps->seconds[i] = (double)s->measurement.step_ns[i] * 1e-9;
  return true;
}

static bool measure_both(Session *own, Session *library, Steps *own_steps, Steps *library_steps,
                         int64_t repeat) {
  enum { TURNS = 5, LEAST_RUNS = 3 };
  Spread ours, theirs;
  double first = own->first_seconds;
  int64_t runs = MAX_OF(repeat / TURNS, LEAST_RUNS);
  for (int i = 0; i < TURNS; i++)
    if (!take_turn(library, library_steps, runs, i == 0, &theirs) ||
        !take_turn(own, own_steps, runs, i == 0, &ours))
      return false;
  own->latency = ours;
  own->first_seconds = first;
  library->latency = theirs;
  return true;
}

static bool results_agree(const Session *own, const Session *library, double *apart) {
  const Tolerance tolerance = TOLERANCE_DEFAULT;
  for (int i = 0; i < own->output_count; i++) {
    const Tensor *a = own->outputs[i], *b = library->outputs[i];
    Difference difference;
    bool agree = values_agree(own->graph->outputs[i]->type, &(Expected){.value = a->data}, b->data,
                              tensor_count(b), &tolerance, &difference);
    *apart = MAX_OF(*apart, difference.largest);
    if (!agree)
      return diag_error(own->cli->context, (SourcePos){0},
                        "--against: '%s' differs, by %.2g of its largest element",
                        own->output_names[i], difference.largest);
  }
  return true;
}

// ---- Rows ---------------------------------------------------------------------------------------

static bool has_node(const PtrArray *nodes, const void *node) {
  for (int i = 0; i < nodes->count; i++)
    if (nodes->items[i] == node) return true;
  return false;
}

// Adds the steps that share an operator with `nodes`, and their operators. True if there were any.
static bool take_steps(Steps *s, Arena *arena, PtrArray *nodes, int *count, double *seconds) {
  bool found = false;
  for (int i = 0; i < step_count(s); i++) {
    bool shares = false;
    for (int k = 0; k < s->nodes[i].count && !s->done[i]; k++)
      shares |= has_node(nodes, s->nodes[i].items[k]);
    if (!shares) continue;
    found = s->done[i] = true;
    *count += is_call(s, i) || !s->session->model->offload;
    *seconds += s->seconds[i];
    for (int k = 0; k < s->nodes[i].count; k++)
      if (!has_node(nodes, s->nodes[i].items[k])) array_push(arena, nodes, s->nodes[i].items[k]);
  }
  return found;
}

static const char *names_of(Arena *arena, const PtrArray *nodes) {
  Text text = text_new(arena);
  for (int i = 0; i < nodes->count; i++)
    text_printf(&text, "%s%s", i ? ", " : "", ((const Node *)nodes->items[i])->name);
  return text_string(&text);
}

static void find_rows(Beside *beside, Steps *own, Steps *library, Arena *arena) {
  for (int i = 0; i < step_count(library); i++) {
    if (!is_call(library, i) || library->done[i]) continue;
    BesideRow row = {0};
    PtrArray nodes = {0};
    for (int k = 0; k < library->nodes[i].count; k++)
      array_push(arena, &nodes, library->nodes[i].items[k]);
    bool more = true;
    while (more) {
      more = take_steps(library, arena, &nodes, &row.calls, &row.library);
      more |= take_steps(own, arena, &nodes, &row.kernels, &row.own);
    }
    row.operators = names_of(arena, &nodes);
    array_push(arena, &beside->rows, row);
  }
}

static double rewrite_seconds(const Steps *s) {
  double seconds = 0;
  for (int i = 0; i < step_count(s); i++)
    if (is_rewrite(s, i)) seconds += s->seconds[i];
  return seconds;
}

static const char *library_name(const Steps *library) {
  for (int i = 0; i < step_count(library); i++)
    if (is_call(library, i))
      return library->session->program->steps.items[i].plan->call->function->name;
  return NULL;
}

// ---- The comparison -----------------------------------------------------------------------------

static Session *library_session(const Session *own, const char *offload,
                                const InputContents *contents) {
  Arena *arena = &own->cli->context->arena;
  ModelOptions *model = arena_copy(arena, own->model, sizeof *model);
  model->offload = offload;
  Session *library = session_new(own->cli, model);
  library->keep_kernels = true;
  return session_begin(library, own->graph, contents) ? library : NULL;
}

Beside *bench_beside(Session *own, const char *offload, const InputContents *contents,
                     int64_t repeat) {
  Context *context = own->cli->context;
  Beside *beside = arena_new(&context->arena, Beside);
  Session *library = beside->library = library_session(own, offload, contents);
  if (!library) return NULL;
  Steps ours = steps_new(own), theirs = steps_new(library);
  beside->name = library_name(&theirs);
  if (!beside->name) {
    diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                  "--against dnnl: the library computes nothing of the model");
    return NULL;
  }
  if (!measure_both(own, library, &ours, &theirs, repeat) ||
      !results_agree(own, library, &beside->apart))
    return NULL;
  find_rows(beside, &ours, &theirs, &context->arena);
  beside->library_rewrites = rewrite_seconds(&theirs);
  beside->own_rewrites = rewrite_seconds(&ours);
  return beside;
}

static void add_row(Table *table, const char *what, const char *calls, double library, double own) {
  table_cell(table, "  %s", what);
  table_cell(table, "%s", calls);
  table_cell(table, "%s", show_seconds(table->arena, library));
  table_cell(table, "%s", show_seconds(table->arena, own));
  table_cell(table, library > 0 ? "%.2f" : "", own / library);
}

void beside_print(const Beside *beside, const Session *session) {
  Arena *arena = &session->cli->context->arena;
  Table table = table_new(arena, "llrrr");
  const Spread *library = &beside->library->latency;
  printf("%-15s %s median   %s p10   %s p90   %.2f of its time; results at most %.1g apart\n",
         "with oneDNN", show_seconds(arena, library->median), show_seconds(arena, library->p10),
         show_seconds(arena, library->p90), session->latency.median / library->median,
         beside->apart);
  const char *const heads[] = {"  operators", "calls and own kernels", "with oneDNN", "own",
                               "ratio"};
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < beside->rows.count; i++) {
    const BesideRow *row = &beside->rows.items[i];
    add_row(&table, row->operators, arena_printf(arena, "%d and %d", row->calls, row->kernels),
            row->library, row->own);
  }
  if (beside->library_rewrites > 0 || beside->own_rewrites > 0)
    add_row(&table, "rewrites", "", beside->library_rewrites, beside->own_rewrites);
  table_print(&table, stdout);
}

json_t *beside_json(const Beside *beside) {
  json_t *rows = json_array();
  const Spread *latency = &beside->library->latency;
  for (int i = 0; i < beside->rows.count; i++) {
    const BesideRow *row = &beside->rows.items[i];
    json_array_append_new(rows,
                          json_pack("{s:s, s:i, s:i, s:f, s:f}", "operators", row->operators,
                                    "calls", row->calls, "own_kernels", row->kernels, "library_ms",
                                    row->library * 1e3, "own_ms", row->own * 1e3));
  }
  return json_pack("{s:s, s:{s:f, s:f, s:f}, s:f, s:f, s:f, s:o}", "name", beside->name,
                   "latency_ms", "median", latency->median * 1e3, "p10", latency->p10 * 1e3, "p90",
                   latency->p90 * 1e3, "apart", beside->apart, "library_rewrites_ms",
                   beside->library_rewrites * 1e3, "own_rewrites_ms", beside->own_rewrites * 1e3,
                   "rows", rows);
}
