// SPDX-License-Identifier: Apache-2.0
// Random small graphs, which are planned, compiled and run at every level of the processor with one
// and two threads. The results must be those of the interpreter on the unplanned graph. A first run
// with NaN inputs reveals reads of padding or of an earlier run's memory. Half of the graphs are
// compiled with random layouts for operands of operators and for the graph's inputs and outputs.
//   PLEAT_RANDOM=FIRST:COUNT         other graphs than the fixed ones, each at every level
//   PLEAT_RANDOM=FIRST:COUNT:once    each at one level; 15 of 16 with quick code
#include "driver/driver.h"
#include "driver/reference.h"
#include "random_graph.h"
#include "script/script.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
enum { GRAPHS = 48 };
#else
enum { GRAPHS = 500 };
#endif

// ---- Layouts that are asked for ---------------------------------------------------------------

// Axes in any order, perhaps one of them in blocks. NULL: row-major.
static const Layout *random_layout(Growth *g, const Value *value) {
  static const int blocks[] = {2, 3, 4, 8, 16};
  int axes[TE_MAX_RANK], split = below(g, 2) ? below(g, value->rank + 1) : -1;
  int64_t shape[TE_MAX_RANK], block = blocks[below(g, COUNT_OF(blocks))];
  Text text = text_new(&g->context->arena);
  if (!value->rank || !value_static_shape(value, shape)) return NULL;
  for (int i = 0; i < value->rank; i++) {
    int k = below(g, i + 1);
    axes[i] = axes[k], axes[k] = i;
    text_printf(&text, "%s%c", i ? "," : "", 'a' + i);
  }
  for (int i = 0; i < value->rank; i++) {
    text_printf(&text, "%s%c", i ? "," : "->", 'a' + axes[i]);
    if (axes[i] == split) text_printf(&text, "//%d", (int)block);
  }
  if (split >= 0 && split < value->rank) text_printf(&text, ",%c%%%d", 'a' + split, (int)block);
  const Layout *layout = layout_parse_static(g->context, text_string(&text), shape, value->rank);
  return layout_is_identity(g->context, layout).verdict == VERDICT_YES ? NULL : layout;
}

static void constrain_node(Growth *g, Node *node, PlanConstraints *constraints) {
  Arena *arena = &g->context->arena;
  if (below(g, 3) == 0) {
    PlanConstraint constraint = {.node = node, .value = node->outputs[0], .output = true};
    constraint.layout = random_layout(g, constraint.value);
    array_push(arena, &constraints->items, constraint);
  }
  for (int i = 0; i < node->input_count; i++) {
    PlanConstraint constraint = {.node = node, .value = node->inputs[i]};
    constraint.layout = random_layout(g, constraint.value);
    if (below(g, 4) == 0) array_push(arena, &constraints->items, constraint);
  }
  PlanConstraint kept = {.value = node->outputs[0]};
  if (below(g, 40) == 0) array_push(arena, &constraints->items, kept);
}

static PlanConstraint *boundary_constraints(Growth *g, Value *const *values, int count) {
  PlanConstraint *constraints = arena_array(&g->context->arena, PlanConstraint, count + 1);
  for (int i = 0; i < count; i++)
    constraints[i] = (PlanConstraint){.value = values[i],
                                      .layout = below(g, 3) ? NULL : random_layout(g, values[i])};
  return constraints;
}

static const PlanConstraints *random_constraints(Context *context, const GraphFunc *graph,
                                                 uint64_t seed) {
  Growth g = {.context = context, .state = seed * 0x9e3779b97f4a7c15u + 11};
  if (below(&g, 2)) return NULL;
  PlanConstraints *constraints = arena_new(&context->arena, PlanConstraints);
  *constraints =
      (PlanConstraints){.inputs = boundary_constraints(&g, graph->params, graph->param_count),
                        .outputs = boundary_constraints(&g, graph->outputs, graph->output_count)};
  for (int i = 0; i < graph->nodes.count; i++)
    constrain_node(&g, graph->nodes.items[i], constraints);
  return constraints;
}

// ---- Runs -------------------------------------------------------------------------------------

typedef struct Run {
  Context *context;
  const GraphFunc *graph;
  uint64_t seed;
  const char *level;
  bool once;
  const PlanConstraints *constraints;
  Tensor *inputs[2], *outputs[2]; // row-major
  Tensor *given[2], *results[2];  // in the program's layouts
} Run;

typedef struct Tally {
  long graphs, requested, refused, placed; // placed: tensors written in place in larger ones
} Tally;

static Tensor *tensor_for(const Value *value, const Layout *layout) {
  int64_t shape[PHYSICAL_MAX_RANK];
  int rank = program_shape(value, layout, shape);
  return tensor_new((ElementType){ELEMENT_FLOAT, 32, 1}, shape, rank);
}

static void fail_run(Run *run, const char *what) {
  Text text = text_new(&run->context->arena);
  script_print_graph_func(run->context, run->graph, &text, NULL);
  diag_print_all(run->context, stderr);
  fprintf(stderr, "%s\n", text_string(&text));
  fail_msg("seed %llu at %s: %s", (unsigned long long)run->seed, run->level, what);
}

static void check_outputs(Run *run, Reference *reference, const char *threads) {
  for (int o = 0; o < run->graph->output_count; o++) {
    const float *expected = reference_value(reference, run->graph->outputs[o]);
    const float *got = run->outputs[o]->data;
    int64_t count = tensor_count(run->outputs[o]);
    float scale = 1e-3f;
    for (int64_t i = 0; i < count; i++) scale = fmaxf(scale, fabsf(expected[i]));
    for (int64_t i = 0; i < count; i++)
      if (!(fabsf(got[i] - expected[i]) <= 1e-4f * scale))
        fail_run(run, arena_printf(&run->context->arena,
                                   "%s: output %d, element %lld: expected %g, got %g", threads, o,
                                   (long long)i, (double)expected[i], (double)got[i]));
  }
}

static void fill_inputs(Run *run, bool with_nan) {
  for (int i = 0; i < run->graph->param_count; i++) {
    float *data = run->inputs[i]->data;
    interp_fill(DTYPE_FLOAT32, data, tensor_count(run->inputs[i]), run->seed + (uint64_t)i,
                INTERP_FILL_UNIT);
    for (int64_t k = 0; with_nan && k < tensor_count(run->inputs[i]); k++) data[k] = NAN;
  }
}

// The inputs in the program's layouts, with NaN in the padding.
static void give_inputs(Run *run, const Plan *plan) {
  for (int i = 0; i < run->graph->param_count; i++) {
    const Layout *layout = plan_input_layout(plan, i);
    const float *from = run->inputs[i]->data;
    float *to = run->given[i]->data;
    int64_t count = tensor_count(run->inputs[i]), places = tensor_count(run->given[i]);
    if (!layout) {
      memcpy(to, from, sizeof *to * (size_t)count);
      continue;
    }
    float *ones = arena_alloc(&run->context->arena, sizeof *ones * (size_t)count);
    float *holds = arena_alloc(&run->context->arena, sizeof *holds * (size_t)places);
    for (int64_t k = 0; k < count; k++) ones[k] = 1;
    layout_pack(run->context, layout, sizeof *ones, ones, holds);
    layout_pack(run->context, layout, sizeof *to, from, to);
    for (int64_t k = 0; k < places; k++)
      if (holds[k] == 0) to[k] = NAN;
  }
}

static bool run_once(Run *run, const Plan *plan, Executable *executable, ThreadPool *pool,
                     bool with_nan) {
  fill_inputs(run, with_nan);
  give_inputs(run, plan);
  if (!executable_run(executable, pool, run->given, run->results)) return false;
  for (int i = 0; i < run->graph->output_count; i++) {
    const Layout *layout = plan_output_layout(plan, i);
    Tensor *to = run->outputs[i];
    if (layout)
      layout_unpack(run->context, layout, sizeof(float), run->results[i]->data, to->data);
    else
      memcpy(to->data, run->results[i]->data, sizeof(float) * (size_t)tensor_count(to));
  }
  return true;
}

// A requested layout may be refused with a reason; the graph is then built without the requests.
static Program *build(Run *run, CompileOptions *options, Tally *tally) {
  Program *program = program_build(run->context, run->graph, options);
  if (program || !options->constraints || !run->context->error_count) return program;
  tally->refused++;
  run->context->diags.count = run->context->error_count = 0;
  options->constraints = NULL;
  return program_build(run->context, run->graph, options);
}

static void check_level(Run *run, Reference *reference, ThreadPool *pool, Tally *tally) {
  HostMachine machine = machine_probe();
  if (!machine_limit(&machine, run->level)) return;
  machine.region_cycles = run->seed % 2 ? 0 : 100; // small regions run in threads, too
  CompileOptions options = {.machine = machine,
                            .run_only = run->seed % 2,
                            .quick = run->once && run->seed % 16 != 0,
                            .policy =
                                run->constraints ? (PlanPolicy)(run->seed / 2 % 4) : PLAN_OPTIMAL,
                            .constraints = run->constraints};
  tally->requested += run->constraints != NULL;
  Program *program = build(run, &options, tally);
  if (!program) fail_run(run, "not planned");
  tally->placed += program->plan->placements.count;
  if (program->arena_bytes > program->live_bytes + program->live_bytes / 10)
    fail_run(run, "the arena is more than 1.1 times what is alive at once");
  Executable *executable = executable_new(program, NULL);
  if (!executable) fail_run(run, "not compiled");
  for (int i = 0; i < run->graph->param_count; i++)
    run->given[i] = tensor_for(run->graph->params[i], plan_input_layout(program->plan, i));
  for (int i = 0; i < run->graph->output_count; i++)
    run->results[i] = tensor_for(run->graph->outputs[i], plan_output_layout(program->plan, i));
  bool both = !run->once || run->seed % 16 == 0;
  run_once(run, program->plan, executable, both ? pool : NULL, true);
  if (!run_once(run, program->plan, executable, NULL, false)) fail_run(run, "not run");
  check_outputs(run, reference, "one thread");
  if (both) run_once(run, program->plan, executable, pool, false);
  if (both) check_outputs(run, reference, "two threads");
  executable_free(executable);
  for (int i = 0; i < 2; i++) tensor_free(run->given[i]), tensor_free(run->results[i]);
  run->given[0] = run->given[1] = run->results[0] = run->results[1] = NULL;
}

static const char *const levels[] = {"avx512", "avx2", "baseline", "scalar"};

static void check_graph(uint64_t seed, unsigned wanted, bool once, ThreadPool *pool, Tally *tally) {
  Run run = {.context = context_new(), .seed = seed, .level = "all", .once = once};
  Reference reference;
  run.graph = random_graph(run.context, seed);
  if (getenv("PLEAT_SHOW")) fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
  if (run.graph->nodes.count) {
    tally->graphs++;
    run.constraints = random_constraints(run.context, run.graph, seed);
    for (int i = 0; i < run.graph->param_count; i++)
      run.inputs[i] = tensor_for(run.graph->params[i], NULL);
    for (int i = 0; i < run.graph->output_count; i++)
      run.outputs[i] = tensor_for(run.graph->outputs[i], NULL);
    fill_inputs(&run, false);
    if (!reference_begin(run.context, run.graph, run.inputs, false, NULL, &reference))
      fail_run(&run, "no reference");
    for (int i = 0; i < run.graph->output_count; i++)
      if (!reference_value(&reference, run.graph->outputs[i])) fail_run(&run, "no reference");
    for (int i = 0; i < COUNT_OF(levels); i++) {
      run.level = levels[i];
      if (wanted >> i & 1) check_level(&run, &reference, pool, tally);
    }
    for (int i = 0; i < 2; i++) tensor_free(run.inputs[i]), tensor_free(run.outputs[i]);
  }
  context_free(run.context);
}

static void test_random_graphs(void **state) {
  (void)state;
  unsigned long long first = 1, count = GRAPHS;
  char how[8] = "";
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu:%7s", &first, &count, how);
  bool once = !strcmp(how, "once");
  Tally tally = {0};
  ThreadPool *pool = thread_pool_new(2);
  for (uint64_t seed = first; seed < first + count; seed++) {
    unsigned turn = 1u << (once ? seed / 4 : seed) % COUNT_OF(levels);
    check_graph(seed, asked && !once ? ~0u : turn, once, pool, &tally);
  }
  thread_pool_free(pool);
  printf("%ld graphs; %ld times layouts were asked for, %ld times refused; %ld tensors in place\n",
         tally.graphs, tally.requested, tally.refused, tally.placed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
