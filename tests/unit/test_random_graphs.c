// SPDX-License-Identifier: Apache-2.0
// Random small graphs (convolutions, pools, products, elementwise operators with residuals, views,
// concatenations, normalisations, odd channel counts), which are planned, compiled and run at every
// level of the processor with one and two threads. The results must be those of the interpreter on
// the unplanned graph. A first run with NaN inputs reveals reads of padding or of an earlier run's
// memory. Half of the graphs are compiled with random layouts for operands of operators and for the
// graph's inputs and outputs.
//   PLEAT_RANDOM=FIRST:COUNT         other graphs than the fixed ones, each at every level
//   PLEAT_RANDOM=FIRST:COUNT:once    each at one level; 15 of 16 with quick code
#include "driver/driver.h"
#include "driver/reference.h"
#include "graph/graph.h"
#include "script/script.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
enum { GRAPHS = 160 };
#else
enum { GRAPHS = 1000 };
#endif
enum { MOST_VALUES = 32, MOST_ELEMENTS = 6000 };

typedef struct Growth {
  Context *context;
  GraphFunc *graph;
  uint64_t state;
  Value *values[MOST_VALUES];
  int count;
} Growth;

static int below(Growth *g, int n) {
  g->state = g->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((g->state >> 33) % (uint64_t)n);
}

static int64_t extent(const Value *value, int axis) {
  return value->shape[axis]->as.i;
}

static Value *constant(Growth *g, const int64_t *shape, int rank, double low, double high) {
  Arena *arena = &g->context->arena;
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  float *data = arena_alloc(arena, (size_t)count * sizeof *data);
  for (int64_t i = 0; i < count; i++) data[i] = (float)(low + (high - low) * below(g, 1024) / 1023);
  ConstData *contents = arena_new(arena, ConstData);
  *contents = (ConstData){.name = str_format(g->context, "c%d", below(g, 1 << 30)),
                          .type = DTYPE_FLOAT32,
                          .rank = rank,
                          .shape = arena_copy(arena, shape, sizeof *shape * (size_t)rank),
                          .data = data,
                          .bytes = (size_t)count * sizeof *data};
  return value_constant(g->context, contents);
}

static Node *call(Growth *g, const char *op, Value *const *inputs, int count) {
  Str name = str_format(g->context, "n%d", g->graph->nodes.count);
  return node_new(g->context, NODE_OP, op, name, inputs, count, 1);
}

// Adds the node if its definition accepts it and its result is not too large.
static void take(Growth *g, Node *node) {
  Context *context = g->context;
  int64_t shape[TE_MAX_RANK], count = 1;
  bool fits = op_infer(context, node) && node->outputs[0]->rank <= 5 &&
              value_static_shape(node->outputs[0], shape);
  context->diags.count = context->error_count = 0;
  for (int i = 0; fits && i < node->outputs[0]->rank; i++) count *= shape[i];
  if (!fits || count > MOST_ELEMENTS || count == 0 || g->count == MOST_VALUES) return;
  node->outputs[0]->producer = node;
  array_push(&context->arena, &g->graph->nodes, node);
  g->values[g->count++] = node->outputs[0];
}

// ---- Nodes ------------------------------------------------------------------------------------

static void grow_conv(Growth *g, Value *x) {
  static const int filters[] = {1, 3, 5, 8, 13, 16, 17, 20, 32};
  if (x->rank != 4) return;
  int64_t channels = extent(x, 1), groups = 1, out = filters[below(g, COUNT_OF(filters))];
  if (below(g, 4) == 0) groups = out = channels;
  if (channels % 2 == 0 && below(g, 6) == 0) groups = 2, out = 2 * (1 + below(g, 9));
  int64_t r = 1 + below(g, 3), s = below(g, 2) ? r : 1 + below(g, 3);
  double scale = 1.7 / sqrt((double)(channels / groups * r * s));
  Value *inputs[] = {x, constant(g, (int64_t[]){out, channels / groups, r, s}, 4, -scale, scale),
                     constant(g, &out, 1, -0.5, 0.5)};
  Node *node = call(g, "nn.conv2d", inputs, 2 + below(g, 2));
  int64_t strides[] = {1 + below(g, 2), 1 + below(g, 2)};
  int64_t pads[] = {below(g, (int)r), below(g, (int)s), below(g, (int)r), below(g, (int)s)};
  node_set_ints(g->context, node, "strides", strides, 2);
  node_set_ints(g->context, node, "padding", pads, 4);
  if (below(g, 8) == 0) node_set_ints(g->context, node, "dilation", (int64_t[]){2, 1}, 2);
  node_set_int(g->context, node, "groups", groups);
  take(g, node);
}

static void grow_unary(Growth *g, Value *x) {
  static const char *const ops[] = {"nn.relu",      "nn.relu", "sigmoid",       "tanh",
                                    "nn.leakyrelu", "abs",     "nn.hard_swish", "identity"};
  take(g, call(g, ops[below(g, COUNT_OF(ops))], &x, 1));
}

// Combines the tensor with an earlier one that broadcasts, or a constant of one number a channel.
static void grow_binary(Growth *g, Value *x) {
  static const char *const ops[] = {"add", "add", "multiply", "subtract", "maximum"};
  Value *other = g->values[below(g, g->count)];
  int64_t shape[] = {x->rank > 1 ? extent(x, 1) : 1, 1, 1};
  if (below(g, 3) == 0)
    other = x->rank == 4 ? constant(g, shape, 3, -1, 1) : constant(g, shape, 0, -1, 1);
  Value *inputs[] = {x, other};
  if (below(g, 3) == 0) inputs[0] = other, inputs[1] = x;
  take(g, call(g, ops[below(g, COUNT_OF(ops))], inputs, 2));
}

static void grow_residual(Growth *g, Value *x) {
  for (int i = g->count - 1; i >= 0; i--) {
    Value *other = g->values[i];
    bool same = other != x && other->rank == x->rank;
    for (int d = 0; same && d < x->rank; d++) same = extent(other, d) == extent(x, d);
    if (!same) continue;
    take(g, call(g, "add", (Value *[]){x, other}, 2));
    return;
  }
}

static void grow_pool(Growth *g, Value *x) {
  if (x->rank != 4) return;
  if (below(g, 5) == 0) {
    take(g, call(g, below(g, 2) ? "nn.global_avg_pool2d" : "nn.global_max_pool2d", &x, 1));
    return;
  }
  Node *node = call(g, below(g, 2) ? "nn.max_pool2d" : "nn.avg_pool2d", &x, 1);
  int64_t size[] = {1 + below(g, 3), 2 + below(g, 2)}, strides[] = {1 + below(g, 2), 2};
  node_set_ints(g->context, node, "pool_size", size, 2);
  node_set_ints(g->context, node, "strides", strides, 2);
  node_set_ints(g->context, node, "padding", (int64_t[]){0, below(g, 2), 0, 1}, 4);
  take(g, node);
}

static void grow_norm(Growth *g, Value *x) {
  if (x->rank < 2) return;
  int64_t channels = extent(x, 1);
  Value *inputs[] = {x, constant(g, &channels, 1, 0.5, 1.5), constant(g, &channels, 1, -0.5, 0.5),
                     constant(g, &channels, 1, -0.5, 0.5), constant(g, &channels, 1, 0.5, 1.5)};
  Node *node = call(g, "nn.batch_norm", inputs, 5);
  node_set_int(g->context, node, "training", 0);
  take(g, node);
}

static void grow_transpose(Growth *g, Value *x) {
  int64_t axes[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) axes[i] = i;
  for (int i = x->rank - 1; i > 0; i--) {
    int k = below(g, i + 1);
    int64_t t = axes[i];
    axes[i] = axes[k], axes[k] = t;
  }
  Node *node = call(g, "permute_dims", &x, 1);
  node_set_ints(g->context, node, "axes", axes, x->rank);
  if (x->rank > 1) take(g, node);
}

// Two neighbouring axes become one, or one becomes two.
static void grow_reshape(Growth *g, Value *x) {
  int64_t shape[TE_MAX_RANK];
  int rank = 0, at = x->rank > 1 ? below(g, x->rank - 1) : 0, by = 2 + below(g, 3);
  bool merges = x->rank > 1 && (x->rank > 3 || below(g, 2));
  for (int i = 0; i < x->rank; i++) {
    int64_t e = extent(x, i);
    if (merges && i == at + 1)
      shape[rank - 1] *= e;
    else if (!merges && i == at && e % by == 0)
      shape[rank++] = e / by, shape[rank++] = by;
    else
      shape[rank++] = e;
  }
  Node *node = call(g, "reshape", &x, 1);
  node_set_ints(g->context, node, "shape", shape, rank);
  take(g, node);
}

static void grow_concat(Growth *g, Value *x) {
  Value *inputs[3] = {x};
  int axis = x->rank > 1 ? below(g, 2) : 0, count = 1;
  for (int i = g->count - 1; i >= 0 && count < 3; i--) {
    Value *other = g->values[i];
    bool fits = other->rank == x->rank;
    for (int d = 0; fits && d < x->rank; d++) fits = d == axis || extent(other, d) == extent(x, d);
    if (fits && (other != x || below(g, 2))) inputs[count++] = other;
  }
  Node *node = call(g, "concat", inputs, count);
  node_set_int(g->context, node, "axis", axis);
  if (x->rank && count > 1) take(g, node);
}

static void grow_pad(Growth *g, Value *x) {
  int64_t widths[2 * TE_MAX_RANK];
  for (int i = 0; i < 2 * x->rank; i++) widths[i] = below(g, 3) ? 0 : 1 + below(g, 2);
  Node *node = call(g, "nn.pad", &x, 1);
  node_set_ints(g->context, node, "pad_width", widths, 2 * x->rank);
  node_set_float(g->context, node, "pad_value", below(g, 2) ? 0 : 0.5);
  if (x->rank) take(g, node);
}

static void grow_rows(Growth *g, Value *x) {
  static const char *const ops[] = {"nn.layer_norm", "nn.rms_norm", "nn.instance_norm"};
  int which = below(g, COUNT_OF(ops));
  if (x->rank < (which == 2 ? 3 : 1)) return;
  int64_t count = extent(x, which == 2 ? 1 : x->rank - 1);
  Value *inputs[] = {x, constant(g, &count, 1, 0.5, 1.5), constant(g, &count, 1, -0.5, 0.5)};
  Node *node = call(g, ops[which], inputs, which == 1 ? 2 : 1 + 2 * below(g, 2));
  node_set_float(g->context, node, "epsilon",
                 0.5); // else rows of equal elements give rounding noise
  take(g, node);
}

static void grow_softmax(Growth *g, Value *x) {
  Node *node = call(g, "nn.softmax", &x, 1);
  node_set_int(g->context, node, "axis", x->rank ? below(g, x->rank) : 0);
  if (x->rank) take(g, node);
}

static void grow_matmul(Growth *g, Value *x) {
  static const int columns[] = {1, 7, 10, 16, 19, 33};
  if (x->rank < 2) return;
  int64_t k = extent(x, x->rank - 1), n = columns[below(g, COUNT_OF(columns))];
  double scale = 1.7 / sqrt((double)k);
  Value *inputs[] = {x, constant(g, (int64_t[]){k, n}, 2, -scale, scale)};
  take(g, call(g, "matmul", inputs, 2));
}

static void grow_reduction(Growth *g, Value *x) {
  static const char *const ops[] = {"mean", "sum", "max"};
  if (!x->rank) return;
  Node *node = call(g, ops[below(g, COUNT_OF(ops))], &x, 1);
  node_set_ints(g->context, node, "axis", (int64_t[]){below(g, x->rank)}, 1);
  node_set_int(g->context, node, "keepdims", below(g, 2));
  take(g, node);
}

// Running sums, or elements scattered to indices that are computed at run time.
static void grow_ordered(Growth *g, Value *x) {
  static const char *const ways[] = {"none", "add", "max"};
  if (!x->rank) return;
  int axis = below(g, x->rank), sums = below(g, 2);
  int64_t shape[TE_MAX_RANK];
  value_static_shape(x, shape);
  shape[0] = 1 + below(g, (int)shape[0]);
  double last = (double)extent(x, axis) - 0.25;
  Node *places = call(g, "astype", (Value *[]){constant(g, shape, x->rank, -last, last)}, 1);
  node_set_string(g->context, places, "dtype", "int64");
  if (!sums && !op_infer(g->context, places)) return;
  if (!sums) array_push(&g->context->arena, &g->graph->nodes, places);
  Value *inputs[] = {x, places->outputs[0], constant(g, shape, x->rank, -1, 1)};
  Node *node = call(g, sums ? "cumsum" : "scatter_elements", inputs, sums ? 1 : 3);
  node_set_int(g->context, node, "axis", axis);
  if (!sums) node_set_string(g->context, node, "reduction", ways[below(g, 3)]);
  take(g, node);
}

static void (*const growers[])(Growth *, Value *) = {
    grow_conv,     grow_conv,      grow_conv,    grow_conv,   grow_unary,  grow_unary,
    grow_norm,     grow_binary,    grow_binary,  grow_pool,   grow_matmul, grow_residual,
    grow_residual, grow_transpose, grow_reshape, grow_concat, grow_pad,    grow_softmax,
    grow_rows,     grow_reduction, grow_ordered,
};

static GraphFunc *random_graph(Context *context, uint64_t seed) {
  static const int channels[] = {1, 3, 5, 8, 13, 16, 17, 20};
  Growth g = {.context = context, .state = seed * 0x9e3779b97f4a7c15u + 7};
  g.graph = graph_func_new(context, "random");
  int64_t image[] = {1 + below(&g, 5) / 4, channels[below(&g, 8)], 4 + below(&g, 8),
                     3 + below(&g, 8)};
  g.graph->param_count = 1 + below(&g, 3) / 2;
  g.graph->params = arena_array(&context->arena, Value *, 2);
  for (int i = 0; i < g.graph->param_count; i++) {
    Expr *shape[4];
    for (int d = 0; d < 4; d++) shape[d] = expr_index(context, i && d == 1 ? 1 : image[d]);
    g.graph->params[i] = g.values[g.count++] =
        value_new(context, i ? "y" : "x", DTYPE_FLOAT32, shape, 4);
  }
  int wanted = 3 + below(&g, 8);
  for (int tries = 0; tries < 60 && g.graph->nodes.count < wanted; tries++) {
    Value *x = g.values[below(&g, 3) ? g.count - 1 : below(&g, g.count)];
    growers[below(&g, COUNT_OF(growers))](&g, x);
  }
  int made = g.graph->nodes.count;
  g.graph->outputs = arena_array(&context->arena, Value *, 2);
  g.graph->outputs[g.graph->output_count++] = g.values[g.count - 1];
  if (made > 2 && below(&g, 3) == 0) {
    Value *other = g.graph->nodes.items[below(&g, made - 1)]->outputs[0];
    if (dtype_equal(other->type, DTYPE_FLOAT32)) g.graph->outputs[g.graph->output_count++] = other;
  }
  return g.graph;
}

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
