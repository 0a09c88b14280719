// SPDX-License-Identifier: Apache-2.0
// `pleat inspect`: prints one line for each operator, in a form suited to grep: its name, kind,
// shapes and types, the planned layouts of the tensors that it reads and writes, its bytes and
// operations, and its share of the predicted time. Rewrites that run at each run have lines of
// their own.
#include "cli/saved.h"
#include "cli/inspect.h"
#include "cli/plan_view.h"
#include "cli/session.h"

#include <jansson.h>

#include "script/script.h"

typedef struct InspectOptions {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  bool aliases;
} InspectOptions;

static const Option options[] = {MODEL_OPTIONS,
                                 KNOWN_INPUT_OPTION,
                                 {"aliases", 0, OPTION_FLAG, NULL,
                                  "TVMScript: print which buffers share memory",
                                  offsetof(InspectOptions, aliases)}};

// The kernel and tensors of one operator in the plan.
typedef struct Placed {
  const PlanKernel *kernel; // NULL: computed at compile time, or only moves elements
  int number;               // of the kernel, from 1
  double operations;
  double share; // of the predicted time: a share of the kernel's time by operations
} Placed;

typedef struct Inspection {
  Cli *cli;
  const GraphFunc *graph;
  Plan *plan;
  Map tensors; // from Value to StageTensor
  Map placed;  // from Node to Placed
  Map places;  // from Node to NodeKernels
} Inspection;

// ---- Looking up -------------------------------------------------------------------------------

static Placed *placed_of(Inspection *v, const Node *node) {
  Placed *placed = map_find(&v->placed, node);
  if (!placed) map_put(&v->placed, node, placed = arena_new(&v->cli->context->arena, Placed));
  return placed;
}

// Divides each kernel's share of the predicted time among its operators by their operations.
static void share_time(Inspection *v) {
  int kernels = v->plan->kernels.count;
  double *all = arena_array(&v->cli->context->arena, double, kernels);
  for (int i = 0; i < v->placed.count; i++) {
    const Placed *placed = v->placed.entries[i].value;
    all[placed->number - 1] += placed->operations + 1;
  }
  for (int i = 0; i < v->placed.count && v->plan->cost > 0; i++) {
    Placed *placed = v->placed.entries[i].value;
    placed->share =
        placed->kernel->cost / v->plan->cost * (placed->operations + 1) / all[placed->number - 1];
  }
}

static void collect(Inspection *v) {
  StageGraph *stages = v->plan->stages;
  v->tensors = map_new(&v->cli->context->arena);
  v->placed = map_new(&v->cli->context->arena);
  for (int i = 0; i < stages->tensors.count; i++)
    if (stages->tensors.items[i]->value)
      map_put(&v->tensors, stages->tensors.items[i]->value, stages->tensors.items[i]);
  for (int i = 0; i < v->plan->kernels.count; i++)
    for (int k = 0; k < v->plan->kernels.items[i]->stage_count; k++) {
      const Stage *stage = v->plan->kernels.items[i]->stages[k];
      for (int p = 0; p < stage->parts.count; p++) {
        Placed *placed = placed_of(v, stage->parts.items[p].node);
        placed->kernel = v->plan->kernels.items[i];
        placed->number = i + 1;
        placed->operations += part_operations(&stage->parts.items[p]);
      }
    }
  share_time(v);
  v->places = node_kernels(v->cli->context, v->graph, v->plan);
}

// A text such as "kernel:3"; for a node without a kernel "read-by:4,7", "constant" or "unused".
static const char *place_text(const Inspection *v, const Node *node) {
  return node_kernels_text(&v->cli->context->arena, map_find(&v->places, node));
}

static const char *layout_of(const Inspection *v, const Placed *placed, const Value *value) {
  const StageTensor *tensor = map_find(&v->tensors, value);
  for (int i = 0; placed->kernel && tensor && i < placed->kernel->params.count; i++)
    if (placed->kernel->params.items[i] == tensor)
      return plan_layout_name(v->cli->context, tensor, placed->kernel->choice.layouts[i]);
  return "_"; // not in memory: fused or computed at compile time
}

// ---- A line -----------------------------------------------------------------------------------

static const char *shape_text(const Inspection *v, const Value *value) {
  Text text = text_new(&v->cli->context->arena);
  for (int i = 0; i < value->rank; i++) {
    int64_t extent;
    text_puts(&text, i ? "x" : "");
    if (expr_as_int(value->shape[i], &extent))
      text_printf(&text, "%lld", (long long)extent);
    else
      text_puts(&text, script_expr_text(v->cli->context, value->shape[i]));
  }
  return value->rank ? text_string(&text) : "scalar";
}

// A physical shape, such as "[1x8x8x3]".
static const char *physical_text(const Inspection *v, const Layout *layout) {
  Text text = text_new(&v->cli->context->arena);
  for (int i = 0; i < layout->physical_rank; i++)
    text_printf(&text, "%s%lld", i ? "x" : "[", (long long)layout->physical_extents[i]);
  text_puts(&text, "]");
  return text_string(&text);
}

typedef const char *(*Describe)(const Inspection *v, const Placed *placed, const Value *value);

static const char *describe_shape(const Inspection *v, const Placed *placed, const Value *value) {
  return shape_text(v, value);
}

static const char *signature_text(const Inspection *v, const Node *node, const Placed *placed,
                                  Describe describe) {
  Text text = text_new(&v->cli->context->arena);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i])
      text_printf(&text, "%s%s", i ? "," : "", describe(v, placed, node->inputs[i]));
  text_puts(&text, "->");
  for (int i = 0; i < node->output_count; i++)
    text_printf(&text, "%s%s", i ? "," : "", describe(v, placed, node->outputs[i]));
  return text_string(&text);
}

static int64_t node_bytes(const Node *node) {
  int64_t bytes = 0;
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) bytes += MAX_OF(value_static_bytes(node->inputs[i]), 0);
  for (int i = 0; i < node->output_count; i++)
    bytes += MAX_OF(value_static_bytes(node->outputs[i]), 0);
  return bytes;
}

static void print_line(Inspection *v, Table *table, const Node *node) {
  Context *context = v->cli->context;
  const Placed *placed = placed_of(v, node);
  table_cell(table, "%s", node->name ? node->name : "-");
  table_cell(table, "%s", node_op_name(node));
  table_cell(table, "%s", signature_text(v, node, placed, describe_shape));
  table_cell(table, "%s", node->output_count ? dtype_name(context, node->outputs[0]->type) : "-");
  table_cell(table, "%s", signature_text(v, node, placed, layout_of));
  table_cell(table, "%lld", (long long)node_bytes(node));
  table_cell(table, "%.0f", placed->operations);
  table_cell(table, "%.1f%%", placed->share * 100);
  table_cell(table, "%s", place_text(v, node));
}

// Prints an input or output of the graph, with the physical shape if it differs from the logical
// shape.
static void print_boundary_value(Inspection *v, Table *table, const Value *value, const char *what,
                                 const StageTensor *tensor, const Layout *layout) {
  Context *context = v->cli->context;
  const char *name = plan_layout_name(context, tensor, layout);
  if (layout && !strstr(name, " in [")) // which states the physical shape too
    name = arena_printf(&context->arena, "%s%s", name, physical_text(v, layout));
  table_cell(table, "%s", value->name);
  table_cell(table, "%s", what);
  table_cell(table, "%s", shape_text(v, value));
  table_cell(table, "%s", dtype_name(context, value->type));
  table_cell(table, "%s", name);
  table_cell(table, "%lld", (long long)plan_bytes(tensor, layout));
  table_cell(table, "0");
  table_cell(table, "0.0%%");
  table_cell(table, "-");
}

// Prints a rewrite that runs at each run.
static void print_rewrite(Inspection *v, Table *table, const PlanKernel *kernel, int number) {
  Context *context = v->cli->context;
  const StageTensor *tensor = kernel->params.items[0];
  const Layout *from = kernel->layouts[0].layout, *to = kernel->layouts[1].layout;
  table_cell(table, "%s", kernel->name);
  table_cell(table, "rewrite");
  table_cell(table, "%s", tensor->value ? shape_text(v, tensor->value) : "-");
  table_cell(table, "%s", dtype_name(context, tensor->buffer->type));
  table_cell(table, "%s->%s", plan_layout_name(context, tensor, from),
             plan_layout_name(context, tensor, to));
  table_cell(table, "%lld", (long long)(plan_bytes(tensor, from) + plan_bytes(tensor, to)));
  table_cell(table, "0");
  table_cell(table, "%.1f%%", v->plan->cost > 0 ? kernel->cost / v->plan->cost * 100 : 0);
  table_cell(table, "kernel:%d", number + 1);
}

static void print_rewrites(Inspection *v, Table *table) {
  for (int i = 0; i < v->plan->kernels.count; i++)
    if (v->plan->kernels.items[i]->is_rewrite)
      print_rewrite(v, table, v->plan->kernels.items[i], i);
}

static void print_boundary(Inspection *v, Table *table, bool outputs) {
  const StageGraph *stages = v->plan->stages;
  int count = outputs ? v->graph->output_count : v->graph->param_count;
  for (int i = 0; i < count; i++) {
    const Value *value = outputs ? v->graph->outputs[i] : v->graph->params[i];
    const StageTensor *tensor = outputs ? stages->outputs.items[i] : stages->inputs.items[i];
    print_boundary_value(v, table, value, outputs ? "output" : "input", tensor,
                         outputs ? plan_output_layout(v->plan, i) : plan_input_layout(v->plan, i));
  }
}

static void print_text(Inspection *v) {
  static const char *const heads[] = {"#name", "operator",   "shapes", "type",  "layouts",
                                      "bytes", "operations", "time",   "kernel"};
  Table table = table_new(&v->cli->context->arena, "lllllrrrl");
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  print_boundary(v, &table, false);
  for (int i = 0; i < v->graph->nodes.count; i++) print_line(v, &table, v->graph->nodes.items[i]);
  print_rewrites(v, &table);
  print_boundary(v, &table, true);
  table_print(&table, stdout);
}

// ---- As JSON ----------------------------------------------------------------------------------

static json_t *value_json(const Inspection *v, const Placed *placed, const Value *value) {
  json_t *shape = json_array();
  for (int i = 0; i < value->rank; i++) {
    int64_t extent = -1;
    expr_as_int(value->shape[i], &extent);
    json_array_append_new(shape, json_integer(extent));
  }
  return json_pack("{s:s, s:s, s:o, s:s}", "name", value->name, "type",
                   dtype_name(v->cli->context, value->type), "shape", shape, "layout",
                   layout_of(v, placed, value));
}

static json_t *node_json(Inspection *v, const Node *node) {
  const Placed *placed = placed_of(v, node);
  json_t *inputs = json_array(), *outputs = json_array();
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) json_array_append_new(inputs, value_json(v, placed, node->inputs[i]));
  for (int i = 0; i < node->output_count; i++)
    json_array_append_new(outputs, value_json(v, placed, node->outputs[i]));
  return json_pack("{s:s, s:s, s:o, s:o, s:I, s:f, s:f, s:i, s:s}", "name",
                   node->name ? node->name : "", "operator", node_op_name(node), "inputs", inputs,
                   "outputs", outputs, "bytes", (json_int_t)node_bytes(node), "operations",
                   placed->operations, "share", placed->share, "kernel", placed->number, "place",
                   place_text(v, node));
}

static json_t *boundary_json(const Inspection *v, bool outputs) {
  json_t *list = json_array();
  int count = outputs ? v->graph->output_count : v->graph->param_count;
  for (int i = 0; i < count; i++) {
    const StageTensor *tensor =
        outputs ? v->plan->stages->outputs.items[i] : v->plan->stages->inputs.items[i];
    const Value *value = outputs ? v->graph->outputs[i] : v->graph->params[i];
    const Layout *layout = outputs ? plan_output_layout(v->plan, i) : plan_input_layout(v->plan, i);
    int64_t shape[PHYSICAL_MAX_RANK];
    int rank = program_shape(value, layout, shape);
    json_t *physical = json_array();
    for (int d = 0; d < rank; d++) json_array_append_new(physical, json_integer(shape[d]));
    json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", value->name, "layout",
                                          plan_layout_name(v->cli->context, tensor, layout),
                                          "physical_shape", physical));
  }
  return list;
}

static int show_json(Inspection *v) {
  json_t *list = json_array();
  for (int i = 0; i < v->graph->nodes.count; i++)
    json_array_append_new(list, node_json(v, v->graph->nodes.items[i]));
  return json_print(v->cli, json_pack("{s:o, s:o, s:o}", "operators", list, "inputs",
                                      boundary_json(v, false), "outputs", boundary_json(v, true)));
}

// Is there an option that only a plan can meet, which needs all sizes?
static bool asks_for_plan(const Cli *cli, const ModelOptions *o) {
  return o->desired.count || o->keep.count || o->input_layouts.count || o->output_layouts.count ||
         o->policy || o->accuracy || o->offload || o->operators.count || o->tuning || o->func ||
         cli->cpu || cli->no_cache;
}

static int run(Cli *cli, void *given) {
  const InspectOptions *o = given;
  const ModelOptions *model = &o->model;
  const char *path = cli->inputs.items[0];
  if (o->aliases) return inspect_aliases(cli, path, model);
  if (saved_named(path)) return saved_inspect(cli, path, model);
  LoadedModel open = {0};
  if (!model_is_script(path) && !asks_for_plan(cli, model) &&
      !model_read(cli, path, model, MODEL_OPEN, &open))
    return STATUS_BAD;
  if (open.open) return inspect_open(cli, open.open);
  Inspection v = {.cli = cli, .graph = open.graph ? open.graph : model_load(cli, path, model)};
  Program *program = v.graph ? model_plan(cli, v.graph, model) : NULL;
  if (!program) return STATUS_BAD;
  v.plan = program->plan;
  collect(&v);
  if (cli->json) return show_json(&v);
  print_text(&v);
  return STATUS_DONE;
}

const Command command_inspect = {
    .name = "inspect",
    .arguments = "MODEL|SAVED.pleat",
    .summary = "print each operator with shapes and layouts, or the contents of a saved model",
    .example = "  $ pleat inspect examples/digits/digits.onnx | grep pool\n"
               "  pool            MaxPool             1x9x8x8->1x9x4x4                "
               "float32  NCHW16c->NHWC           2880         576   0.8%  kernel:4\n"
               "  mean            GlobalAveragePool   1x17x2x2->1x17x1x1              "
               "float32  NCHW16c->NCHW            340          85   0.3%  kernel:11\n",
    .takes = TAKES_JSON | TAKES_CPU | TAKES_CACHE,
    .runs_nothing = true,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(InspectOptions),
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
