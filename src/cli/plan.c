// SPDX-License-Identifier: Apache-2.0
// `pleat plan`: shows which rewrites remain, with their places, reasons and costs; what the plan
// gains over no plan, and its distance from the optimum; which operators run together, and why
// others do not; and the schedule of each kernel.
#include "cli/plan_view.h"
#include "passes/rewrites.h"

#include <math.h>
#include <stdlib.h>

#include "driver/tuning.h"
#include "script/script.h"

static const Option options[] = {
    MODEL_OPTIONS,
    KNOWN_INPUT_OPTION,
    WATCH_OPTIONS,
    {"why", 0, OPTION_TEXT, "N or TENSOR or TENSOR=LAYOUT",
     "explain rewrite N of the table, or a tensor: its uses, and what other layouts cost, or what "
     "forbids them; any layout can be named",
     offsetof(PlanCommand, model.asked)},
    {"html", 0, OPTION_TEXT, "FILE",
     "write the plan as one page, with --why also the prices of the tensor's layouts",
     offsetof(PlanCommand, html)},
    {"onnx", 0, OPTION_TEXT, "FILE", "write the model with the plan in its nodes' metadata",
     offsetof(PlanCommand, onnx)},
    {"lp", 0, OPTION_TEXT, "FILE",
     "write the choices and their costs as an integer program, in the LP format of other solvers",
     offsetof(PlanCommand, lp)},
    {"write-tuning", 0, OPTION_TEXT, "FILE",
     "write the schedule of each kernel, with its layouts, as a record that --tuning takes",
     offsetof(PlanCommand, write_tuning)},
    {"fusion", 0, OPTION_FLAG, NULL,
     "for each kernel: its operators, the kernels that read it, and why they are not fused",
     offsetof(PlanCommand, fusion)},
    {"schedules", 0, OPTION_FLAG, NULL, "print the steps that schedule each kernel",
     offsetof(PlanCommand, schedules)},
    {"programs", 0, OPTION_FLAG, NULL, "print the kernels before they are scheduled",
     offsetof(PlanCommand, program)},
    {"kernel", 0, OPTION_INT, "N",
     "with --schedules, --programs, --print-ir-after or --verify-each: only kernel N (from 1)",
     offsetof(PlanCommand, model.only_kernel)},
};

// ---- The table ---------------------------------------------------------------------------------

const char *view_cycles(const View *v, double cycles) {
  return show_cycles(&v->cli->context->arena, cycles);
}

const char *view_gap(const View *v) {
  return plan_gap_text(&v->report, &v->cli->context->arena);
}

static void print_plan(const View *v) {
  fputs(plan_text(&v->report, &v->cli->context->arena), stdout);
  printf("%ssee all:  pleat plan %s --fusion", cli_paint(v->cli, COLOUR_DIM), v->path);
  if (v->report.rows.count) printf("   one rewrite:  --why 1");
  printf("%s\n", cli_paint(v->cli, COLOUR_NONE));
}

// ---- One rewrite ------------------------------------------------------------------------------

const char *view_shape(const View *v, const Buffer *buffer) {
  int64_t shape[TENSOR_MAX_RANK];
  Text text = text_new(&v->cli->context->arena);
  if (buffer->rank > TENSOR_MAX_RANK || !buffer_static_shape(buffer, shape)) return "?";
  for (int i = 0; i < buffer->rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
  return text_string(&text);
}

static const char *padding_text(const View *v, const Layout *layout) {
  int64_t physical, logical;
  if (!layout || !layout_physical_size(layout, &physical) ||
      !layout_logical_size(layout, &logical) || physical == logical)
    return "";
  return arena_printf(&v->cli->context->arena, "   %lld of %lld physical indices are padding",
                      (long long)(physical - logical), (long long)physical);
}

// Prints who writes and reads the tensor, and in which layout; a rewrite both reads and writes.
static void print_uses(const View *v, const StageTensor *tensor) {
  for (int i = 0; i < v->report.plan->kernels.count; i++) {
    const PlanKernel *kernel = v->report.plan->kernels.items[i];
    for (int j = 0; j < kernel->params.count; j++) {
      if (kernel->params.items[j] != tensor) continue;
      const Layout *layout = kernel->choice.layouts[j];
      bool writes = j == kernel->params.count - 1;
      printf("  %-8s %-16s kernel %d '%s'%s\n", writes ? "written" : "read",
             report_layout_name(&v->report, tensor, layout), i + 1, kernel->name,
             padding_text(v, layout));
    }
    const PlanPlacement *part = report_part_written(kernel, tensor);
    if (part)
      printf("  %-8s %-16s kernel %d '%s', a part\n", "written",
             report_layout_name(&v->report, tensor, part->whole_layout), i + 1, kernel->name);
  }
}

static void print_rewrite(const View *v, int number) {
  const PlanRewrite *r = v->report.rewrites.items[number];
  const PleatPlanRewrite *row = v->report.data.rewrites[number];
  const Buffer *buffer = r->tensor->buffer;
  printf("%s  [%s] %s\n", plan_tensor_name(r->tensor), view_shape(v, buffer),
         dtype_name(v->cli->context, buffer->type));
  if (r->tensor->input >= 0)
    printf("  given    %s\n", report_layout_name(&v->report, r->tensor, NULL));
  print_uses(v, r->tensor);
  if (r->folded)
    printf("  folded   %s -> %s while compiling: %s\n", row->from, row->to, r->because);
  else
    printf("  rewritten %s -> %s at each run: moves %s, %s cycles: %s\n", row->from, row->to,
           show_bytes(&v->cli->context->arena, r->bytes), view_cycles(v, r->cost), r->because);
}

static int print_why_rewrite(const View *v, long number) {
  enum { SHOWN = 3 };
  const PlanRow *row = &v->report.rows.items[number - 1];
  int shown = row->count <= SHOWN + 1 ? row->count : SHOWN;
  for (int i = 0; i < shown; i++) print_rewrite(v, row->first + i);
  if (shown == row->count) return STATUS_DONE;
  printf("and %d like these:", row->count - shown);
  for (int i = shown; i < row->count; i++)
    printf("%s %s", i > shown ? "," : "", plan_row_member(&v->report, row, i)->tensor);
  printf("\n");
  return STATUS_DONE;
}

// ---- One tensor -------------------------------------------------------------------------------

const char *view_option(const View *v, const StageTensor *tensor, const Layout *layout) {
  Arena *arena = &v->cli->context->arena;
  const char *name = report_layout_name(&v->report, tensor, layout),
             *quote = strchr(name, ' ') ? "'" : "";
  if (tensor->input >= 0)
    return arena_printf(arena, "%s--input-layout %s=%s%s", quote, plan_tensor_name(tensor), name,
                        quote);
  const Stage *stage = tensor->producer;
  if (!layout)
    return tensor->value ? arena_printf(arena, "--keep-layout=%s", plan_tensor_name(tensor)) : "";
  if (!stage->node || !stage->node->name || !tensor->value) return "";
  return arena_printf(arena, "--desired-layout %s%s:output=%s%s", quote, stage->node->name, name,
                      quote);
}

const char *view_difference(const View *v, const PleatLayoutPrice *price) {
  double more = price->cycles - v->report.data.cycles;
  if (!price->possible) return "impossible";
  if (price->chosen) return "as planned";
  return show_change(&v->cli->context->arena, more);
}

static void print_prices(const View *v, const TensorReport *t) {
  Table table = table_new(&v->cli->context->arena, "lrrrll");
  static const char *const heads[] = {"  layout", "physical indices", "cycles of the plan",
                                      "",         "because",          "to have it"};
  int bytes = dtype_bytes(t->tensor->buffer->type);
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < t->data.price_count; i++) {
    const PleatLayoutPrice *price = t->data.prices[i];
    bool other = price->possible && !price->chosen;
    table_cell(&table, "  %s", price->layout);
    table_cell(&table, "%lld", (long long)(price->bytes / bytes));
    table_cell(&table, "%s", price->possible ? view_cycles(v, price->cycles) : "-");
    table_cell(&table, "%s", view_difference(v, price));
    table_cell(&table, "%s", price->because);
    table_cell(&table, "%s", other ? view_option(v, t->tensor, t->layouts[i]) : "");
  }
  table_print(&table, stdout);
  if (*t->data.no_more_because) printf("  no more layouts: %s\n", t->data.no_more_because);
}

static int print_why_tensor(const View *v, const StageTensor *tensor) {
  const TensorReport t = tensor_report_new(&v->report, tensor, &v->cli->context->arena);
  const PleatPlanTensor *data = t.data.tensor;
  if (v->cli->json) return json_print(v->cli, tensor_report_json(&t.data));
  printf("%s  [%s] %s%s%s\n", data->name, view_shape(v, tensor->buffer), data->type,
         strcmp(data->kind, "intermediate") ? (*data->kind == 'c' ? ", a " : ", an ") : "",
         strcmp(data->kind, "intermediate") ? data->kind : "");
  if (data->is_fused) printf("  never in memory: its reader runs in the kernel that computes it\n");
  if (!tensor->producer && !t.data.use_count) printf("  nothing reads it\n");
  print_uses(v, tensor);
  if (*t.data.because) printf("  in memory: %s\n", t.data.because);
  if (tensor->data)
    printf("  packed while compiling as its kernel reads it: nothing at run time\n");
  else
    print_prices(v, &t);
  return STATUS_DONE;
}

// Is this the name in NAME or NAME=LAYOUT?
static bool is_asked(const char *name, const char *asked) {
  size_t size = strlen(name);
  return !strncmp(name, asked, size) && (!asked[size] || asked[size] == '=');
}

// The result of an operator that has the name that --why gives; NULL: there is none.
static const Value *asked_value(const View *v) {
  const GraphFunc *graph = v->report.plan->stages->graph;
  const char *asked = v->options->model.asked;
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->output_count; k++)
      if (node->outputs[k] && is_asked(node->outputs[k]->name, asked)) return node->outputs[k];
  }
  return NULL;
}

static bool depends_on_inputs(const View *v, const Value *value) {
  const GraphFunc *graph = v->report.plan->stages->graph;
  Map depend = map_new(&v->cli->context->arena);
  for (int i = 0; i < graph->param_count; i++) map_put(&depend, graph->params[i], graph->params[i]);
  for (int i = 0; i < graph->nodes.count; i++) {
    Node *other = graph->nodes.items[i];
    bool depends = false;
    for (int k = 0; k < other->input_count; k++)
      depends |= other->inputs[k] && map_contains(&depend, other->inputs[k]);
    for (int k = 0; depends && k < other->output_count; k++)
      if (other->outputs[k]) map_put(&depend, other->outputs[k], other);
  }
  return map_contains(&depend, value);
}

static bool only_moves(Context *context, const Node *node) {
  const Value *x = node->inputs[0];
  Te *te = te_new(context);
  Buffer *input = te_input(te, x->name, x->type, x->shape, x->rank);
  return node->kind == NODE_OP && node->input_count == 1 && op_define(context, te, node, &input) &&
         stages_only_move(te);
}

static const char *why_no_tensor(const View *v, const Value *value) {
  const Node *node = value->producer;
  if (!depends_on_inputs(v, value))
    return "it is computed while compiling, and costs nothing at run time";
  if (!only_moves(v->cli->context, node))
    return "it is never in memory: its reader is computed together with it";
  return str_format(v->cli->context,
                    "it is never in memory: %s only moves elements, and the readers of its result "
                    "read '%s' in place, which costs no rewrite",
                    node_op_name(node), node->inputs[0]->name);
}

static int no_such_tensor(const View *v) {
  const StageGraph *stages = v->report.plan->stages;
  Context *context = v->cli->context;
  const char *asked = v->options->model.asked;
  const Value *value = asked_value(v);
  const Node *node = value ? value->producer : NULL;
  Array(const char *) names = {0};
  for (int i = 0; i < stages->tensors.count; i++)
    array_push(&context->arena, &names, plan_tensor_name(stages->tensors.items[i]));
  const char *nearest = suggestion_of(&context->arena, asked, names.items, names.count);
  if (node && node->input_count && node->inputs[0]) {
    const char *why = why_no_tensor(v, value);
    if (v->cli->json)
      return diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "--why %s: %s", value->name, why),
             STATUS_BAD;
    printf("%s  %s\n  %s\n", value->name, value_type_text(context, value), why);
    return STATUS_DONE;
  }
  diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                "--why %s: the model has no tensor of this name, and the plan has %d rewrite%s%s",
                asked, v->report.rows.count, v->report.rows.count == 1 ? "" : "s", nearest);
  return STATUS_BAD;
}

// The number of the row of rewrites that --why gives; 0: it gives none.
static long asked_row(const View *v) {
  char *end;
  long number = strtol(v->options->model.asked, &end, 10);
  return *end || number < 1 || number > v->report.rows.count ? 0 : number;
}

const StageTensor *view_asked(const View *v) {
  const StageTensor *tensor = plan_report_tensor(&v->report, v->options->model.asked);
  long row = tensor ? 0 : asked_row(v);
  if (row) tensor = v->report.rewrites.items[v->report.rows.items[row - 1].first]->tensor;
  return tensor;
}

static int print_why(const View *v) {
  const StageTensor *tensor = view_asked(v);
  bool is_name = plan_report_tensor(&v->report, v->options->model.asked) != NULL;
  return is_name || v->cli->json ? print_why_tensor(v, tensor) : print_why_rewrite(v, asked_row(v));
}

// ---- Kernels ----------------------------------------------------------------------------------

static void print_kernel_head(const View *v, int number) {
  const PlanKernel *kernel = v->report.plan->kernels.items[number];
  printf("# kernel %d '%s':", number + 1, kernel->name);
  for (int i = 0; i < kernel->params.count; i++)
    printf("%s %s %s",
           i == kernel->params.count - 1 ? " ->"
           : i                           ? ","
                                         : "",
           plan_tensor_name(kernel->params.items[i]),
           report_layout_name(&v->report, kernel->params.items[i], kernel->choice.layouts[i]));
  printf("\n");
  for (int i = number + 1; i < v->report.plan->kernels.count; i++) {
    const PlanKernel *other = v->report.plan->kernels.items[i];
    if (other->same_as == number) printf("# also serves kernel %d '%s'\n", i + 1, other->name);
  }
  if (kernel->choice.slow) printf("# not vectorised: %s\n", kernel->choice.slow);
}

// A name for the function of a kernel; the names of the functions of one file must differ.
static Str program_name(const View *v, int number) {
  const PlanKernel *kernel = v->report.plan->kernels.items[number];
  for (int i = 0; i < number; i++)
    if (!strcmp(v->report.plan->kernels.items[i]->name, kernel->name))
      return str_format(v->cli->context, "%s_%d", kernel->name, number + 1);
  return kernel->name;
}

static void print_program(const View *v, int number) {
  const Plan *plan = v->report.plan;
  PrimFunc *func = prim_func_copy(v->cli->context, plan_kernel_func(plan, number));
  Text text = text_new(&v->cli->context->arena);
  Module *module = module_new(v->cli->context, "");
  func->name = program_name(v, number);
  module_add_prim(module, func);
  script_print_module(v->cli->context, module, &text, NULL);
  fputs(text_string(&text), stdout);
}

static bool has_kernel(const View *v, int64_t number) {
  int count = v->report.plan->kernels.count;
  return (number >= 0 && number <= count) ||
         diag_error_as(v->cli->context, DIAG_OPTION, (SourcePos){0},
                       "--kernel %lld: the plan has %d kernels", (long long)number, count);
}

static int print_kernels(const View *v) {
  int64_t only = v->options->model.only_kernel;
  for (int i = 0; i < v->report.plan->kernels.count; i++) {
    const PlanKernel *kernel = v->report.plan->kernels.items[i];
    if (only ? only != i + 1 : kernel->same_as >= 0) continue;
    print_kernel_head(v, i);
    if (v->options->program) print_program(v, i);
    if (v->options->schedules) fputs(schedule_trace(kernel->choice.schedule), stdout);
    if (!only) printf("\n");
  }
  return STATUS_DONE;
}

// ---- The command -------------------------------------------------------------------------------

static bool write_program(const View *v, FileSet *files, const char *path) {
  Text out = text_new(&v->cli->context->arena);
  plan_integer_program(v->report.plan, &out);
  return file_set_write(files, path, text_string(&out), out.size);
}

static bool write_tuning(const View *v, FileSet *files, const char *path) {
  Text out = text_new(&v->cli->context->arena);
  tuning_write(v->report.plan, v->path, NULL, &out);
  return file_set_write(files, path, text_string(&out), out.size);
}

// Writes what --html, --onnx, --lp and --write-tuning ask for: all files or none.
static bool write_pages(const View *v) {
  const PlanCommand *o = v->options;
  FileSet *files = file_set_new(v->cli->context);
  return file_set_end(files, (!o->html || plan_write_html(v, files, o->html)) &&
                                 (!o->onnx || plan_write_onnx(v, files, o->onnx)) &&
                                 (!o->lp || write_program(v, files, o->lp)) &&
                                 (!o->write_tuning || write_tuning(v, files, o->write_tuning)));
}

static bool check_options(Cli *cli, const PlanCommand *o) {
  bool kernels = o->schedules || o->program;
  const GivenOption reports[] = {
      {o->schedules ? "--schedules" : "--programs", kernels},
      {"--why", o->model.asked != NULL},
      {"--fusion", o->fusion},
  };
  const GivenOption fusion = {"--fusion", o->fusion && cli->json};
  const GivenOption json = {"--json", kernels && cli->json};
  bool shows = kernels || o->model.print_after || o->model.verify_each;
  const GivenOption kernel = {"--kernel", !shows && o->model.only_kernel};
  return cli_only_one(cli, reports, COUNT_OF(reports)) &&
         cli_refuse(cli, &fusion, 1, "--json prints the same with and without it") &&
         cli_refuse(cli, &json, 1, "schedules and programs are printed as text") &&
         cli_refuse(cli, &kernel, 1,
                    "say what to do with the kernel: --schedules, --programs, --print-ir-after or "
                    "--verify-each");
}

static int run(Cli *cli, void *given) {
  View v = {.cli = cli, .options = given, .path = cli->inputs.items[0]};
  if (!check_options(cli, v.options)) return STATUS_BAD;
  GraphFunc *graph = model_load(cli, v.path, &v.options->model);
  v.program = graph ? model_plan(cli, graph, &v.options->model) : NULL;
  if (!v.program) return STATUS_BAD;
  v.report = plan_report_new(v.program, &cli->context->arena);
  if (!has_kernel(&v, v.options->model.only_kernel)) return STATUS_BAD;
  if (v.options->model.asked && !view_asked(&v)) return no_such_tensor(&v);
  if (!write_pages(&v)) return STATUS_BAD;
  if (v.options->schedules || v.options->program) return print_kernels(&v);
  if (v.options->model.asked) return print_why(&v);
  if (cli->json) return json_print(cli, plan_report_json(&v.report.data));
  if (v.options->fusion)
    fputs(plan_fusion_text(&v.report.data, &cli->context->arena), stdout);
  else
    print_plan(&v);
  return STATUS_DONE;
}

const Command command_plan = {
    .name = "plan",
    .arguments = "MODEL",
    .summary = "show which tensors change their layout, where, why and at what cost",
    .example = "  $ pleat plan resnet50.onnx\n"
               "  #  tensor    from  to          when      bytes  cycles  because\n"
               "  1  input     NCHW  NHWC4c      run     588 KiB  94.1 k  conv1 reads NHWC4c, the "
               "input is NCHW\n"
               "  2  *_weight  OIHW  OI16i16o    folded   97 MiB       -  53 constants, originals "
               "dropped\n",
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_CPU | TAKES_CACHE,
    .runs_nothing = true,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(PlanCommand),
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
