// SPDX-License-Identifier: Apache-2.0
// `pleat opt`: reads TVMScript, applies schedule steps and passes, and prints TVMScript.
#include "cli/model.h"

#include "passes/passes.h"
#include "script/script.h"

typedef struct OptOptions {
  StringList passes; // each item may hold several names, separated by commas
  const char *schedule, *function, *stop_after, *print_after;
  bool verify_each, newer, annotate, list;
} OptOptions;

static const Option options[] = {
    {"pass", 'p', OPTION_LIST, "A,B", "passes to run, in this order; 'lower' is all of them",
     offsetof(OptOptions, passes)},
    {"schedule", 's', OPTION_TEXT, "STEPS.py", "schedule steps to apply first",
     offsetof(OptOptions, schedule)},
    {"func", 0, OPTION_TEXT, "NAME", "only this function; needed for a schedule when there are two",
     offsetof(OptOptions, function)},
    {"stop-after", 0, OPTION_TEXT, "PASS", "run no pass after this one",
     offsetof(OptOptions, stop_after)},
    {"print-ir-after", 0, OPTION_TEXT, "PASS", "print the functions after it; 'all' is every pass",
     offsetof(OptOptions, print_after)},
    {"verify-each", 0, OPTION_FLAG, NULL, "run each pass's input and output and compare",
     offsetof(OptOptions, verify_each)},
    {"annotate", 0, OPTION_FLAG, NULL, "print the logical accesses of flat ones as comments",
     offsetof(OptOptions, annotate)},
    {"newer-names", 0, OPTION_FLAG, NULL, "print T.sblock and tirx", offsetof(OptOptions, newer)},
    {"list", 0, OPTION_FLAG, NULL, "print the passes", offsetof(OptOptions, list)},
};

static void list_words(Table *table, const char *what, const char *words) {
  if (!words || !*words) return;
  table_cell(table, "%s", "");
  table_cell(table, "  %s: %s", what, words);
}

static void list_facts(Cli *cli, Table *table, const char *verb, unsigned facts) {
  if (!facts) return;
  table_cell(table, "%s", "");
  table_cell(table, "  %s: %s", verb, lower_facts_text(&cli->context->arena, facts));
}

static void list_orders(Cli *cli) {
  Table table = table_new(&cli->context->arena, "ll");
  for (const LowerOrder *order = lower_orders; order->before; order++) {
    table_cell(&table, "%s before %s", order->before, order->after);
    table_cell(&table, "%s", order->because);
  }
  printf("\nWhy in this order:\n");
  table_print(&table, stdout);
}

static int list_passes(Cli *cli) {
  Table table = table_new(&cli->context->arena, "ll");
  const LowerPass *pass;
  for (int i = 0; (pass = lower_pass_at(i)); i++) {
    bool separate = lower_pass_index(pass->name) < 0;
    table_cell(&table, "%s", pass->name);
    table_cell(&table, "%s%s", pass->summary, separate ? " (not part of 'lower')" : "");
    list_words(&table, "TVM's name", pass->other_names);
    list_words(&table, "arguments", pass->signature);
    list_facts(cli, &table, "needs", pass->needs);
    list_facts(cli, &table, "gives", pass->gives);
    list_facts(cli, &table, "may undo", pass->breaks);
  }
  for (const GraphPass *pass = graph_passes; pass->name; pass++) {
    table_cell(&table, "%s", pass->name);
    table_cell(&table, "%s (graph functions)", pass->summary);
    list_words(&table, "arguments", pass->signature);
  }
  table_print(&table, stdout);
  list_orders(cli);
  return STATUS_DONE;
}

// Does the user's name mean the pass of the call, whose name is that of a table?
static bool is_pass(const PassCall *call, const char *name) {
  const LowerPass *pass = lower_pass_find(name);
  return strcmp(call->name, pass ? pass->name : name) == 0;
}

// The passes of `--pass`, with 'lower' expanded, up to the pass of `--stop-after`. False with
// diagnostics.
static bool pass_calls(Cli *cli, const OptOptions *o, PassCalls *calls) {
  PassCalls given = {0};
  *calls = (PassCalls){0};
  for (int i = 0; i < o->passes.count; i++)
    if (!pass_calls_read(cli->context, o->passes.items[i], &given)) return false;
  for (int i = 0; i < given.count; i++)
    if (!lower_add_calls(cli->context, &given.items[i], calls)) return false;
  for (int i = 0; o->stop_after && i < calls->count; i++)
    if (is_pass(&calls->items[i], o->stop_after)) calls->count = i + 1;
  return true;
}

static bool is_among(const PassCalls *calls, const char *name) {
  for (int i = 0; i < calls->count; i++)
    if (is_pass(&calls->items[i], name)) return true;
  return false;
}

// Refuses options that have no effect beside others.
static bool check_options(Cli *cli, const OptOptions *o, const PassCalls *names) {
  bool prints = !o->print_after || is_among(names, o->print_after) ||
                (names->count && strcmp(o->print_after, "all") == 0);
  const GivenOption with_list[] = {{"--pass", o->passes.count > 0},
                                   {"--schedule", o->schedule != NULL},
                                   {"--func", o->function != NULL},
                                   {"--stop-after", o->stop_after != NULL},
                                   {"--print-ir-after", o->print_after != NULL},
                                   {"--verify-each", o->verify_each},
                                   {"--annotate", o->annotate},
                                   {"--newer-names", o->newer},
                                   {"--output", cli->output != NULL},
                                   {"the file", cli->inputs.count > 0}};
  const GivenOption of_passes[] = {
      {"--stop-after", o->stop_after && !is_among(names, o->stop_after)},
      {"--print-ir-after", !prints},
      {"--verify-each", o->verify_each && !names->count}};
  const GivenOption annotate = {"--annotate", o->annotate && !names->count};
  const GivenOption function = {"--func", o->function && !names->count && !o->schedule};
  if (o->list)
    return cli_refuse(cli, with_list, COUNT_OF(with_list), "--list prints the passes alone");
  return cli_refuse(cli, of_passes, COUNT_OF(of_passes), "no such pass is among those of --pass") &&
         cli_refuse(cli, &annotate, 1, "passes flatten accesses, and --pass names none") &&
         cli_refuse(cli, &function, 1, "neither --pass nor --schedule says what to do with it");
}

static PrimFunc *scheduled(Cli *cli, const Module *module, PrimFunc *func, const char *path) {
  SourceFile *steps = script_read(cli, path);
  if (!steps) return NULL;
  Schedule *schedule = schedule_new(cli->context, func);
  schedule_use_module(schedule, module);
  return schedule_replay(schedule, steps) ? schedule_func(schedule) : NULL;
}

static bool is_named(const OptOptions *o, const ModuleFunc *func) {
  return !o->function || strcmp(o->function, func->name) == 0;
}

// Does the graph function of --func call the program?
static bool is_called(const OptOptions *o, const Module *module, const PrimFunc *func) {
  const ModuleFunc *named = o->function ? module_find(module, o->function) : NULL;
  for (int i = 0; named && named->graph && i < named->graph->nodes.count; i++) {
    const Node *node = named->graph->nodes.items[i];
    if (node->kind == NODE_CALL_TIR && node->callee == func) return true;
  }
  return false;
}

static bool is_chosen(const OptOptions *o, const Module *module, const ModuleFunc *func) {
  return func->prim && (is_named(o, func) || is_called(o, module, func->prim));
}

static void print_after(Cli *cli, const OptOptions *o, const char *pass, const Module *module) {
  Text text = text_new(&cli->context->arena);
  const ScriptOptions how = {.no_imports = true, .annotate = o->annotate};
  script_print_module(cli->context, module, &text, &how);
  fprintf(stderr, "# after %s\n%s\n", pass, text_string(&text));
}

// Notes where the module has no function on which a pass of this kind runs.
static void note_idle_pass(Cli *cli, const OptOptions *o, const Module *module,
                           const PassCall *call, bool on_graphs) {
  int count = 0;
  for (int i = 0; i < module->funcs.count; i++) {
    const ModuleFunc *func = &module->funcs.items[i];
    count += on_graphs ? func->graph && is_named(o, func) : is_chosen(o, module, func);
  }
  const char *kind = on_graphs ? "graph functions" : "tensor programs";
  if (!count && o->function)
    diag_note(cli->context, (SourcePos){0},
              "%s changes nothing: it runs on %s, and --func chooses none", call->name, kind);
  else if (!count)
    diag_note(cli->context, (SourcePos){0}, "%s changes nothing: it runs on %s, and %s holds none",
              call->name, kind, cli->inputs.items[0]);
}

// Reading and printing a program works in spite of these mistakes, so they are warnings.
static void warn_of_accesses(Context *context, const Module *module, PrimFunc *func) {
  int first = context->diags.count, errors = context->error_count;
  lower_check_accesses(context, module, func, NULL);
  diag_only_warn(context, first, errors);
}

// Runs passes over a tensor program, after the steps of a schedule if there is one.
static bool lower_func(Cli *cli, const OptOptions *o, Module *module, ModuleFunc *func,
                       const PassCalls *passes, const char *schedule) {
  LowerOptions lower = {.print_after = o->print_after,
                        .verify_each = o->verify_each,
                        .guards = true,
                        .module = module};
  PrimFunc *read = func->prim, *next = read;
  if (schedule) next = scheduled(cli, module, next, schedule);
  if (next) next = lower_run_calls(cli->context, next, passes->items, passes->count, &lower);
  if (!next) return false;
  warn_of_accesses(cli->context, module, read);
  func->prim = next;
  return true;
}

static bool lower_chosen(Cli *cli, const OptOptions *o, Module *module, const PassCalls *passes,
                         const char *schedule) {
  for (int i = 0; i < module->funcs.count; i++) {
    ModuleFunc *func = &module->funcs.items[i];
    if (is_chosen(o, module, func) && !lower_func(cli, o, module, func, passes, schedule))
      return false;
  }
  return lower_check_calls(cli->context, module);
}

// Runs the passes up to the last one over graph functions or modules, in their order, and puts the
// others into `lowering`. With a schedule, whose steps come before them, all others come last.
static bool run_graph_passes(Cli *cli, const OptOptions *o, Module *module, const PassCalls *calls,
                             PassCalls *lowering) {
  const char *after = o->print_after;
  for (int i = 0; i < calls->count; i++) {
    const PassCall *call = &calls->items[i];
    const GraphPass *pass = graph_pass_find(call->name);
    if (!pass) array_push(&cli->context->arena, lowering, *call);
    if (!pass) continue;
    if (lowering->count && !o->schedule) {
      if (!lower_chosen(cli, o, module, lowering, NULL)) return false;
      lowering->count = 0;
    }
    if (!pass->on_module) note_idle_pass(cli, o, module, call, true);
    if (!graph_pass_run(cli->context, pass, call, module, o->function)) return false;
    if (after && (strcmp(after, "all") == 0 || strcmp(after, call->name) == 0))
      print_after(cli, o, call->name, module);
  }
  return true;
}

static bool has_function(Cli *cli, const OptOptions *o, const Module *module) {
  return !o->function || module_find(module, o->function) ||
         diag_error(cli->context, (SourcePos){0}, "%s holds no function '%s'", cli->inputs.items[0],
                    o->function);
}

// Checks that there is only one tensor program to schedule when there are steps. False with a
// diagnostic.
static bool check_chosen(Cli *cli, const OptOptions *o, const Module *module) {
  int chosen = 0;
  for (int i = 0; i < module->funcs.count; i++)
    chosen += is_chosen(o, module, &module->funcs.items[i]);
  return !o->schedule || chosen == 1 ||
         diag_error(cli->context, (SourcePos){0},
                    "%s holds %d tensor programs; say with --func which to schedule",
                    cli->inputs.items[0], chosen);
}

static bool transform(Cli *cli, const OptOptions *o, const PassCalls *calls, Module *module) {
  PassCalls lowering = {0};
  if (!has_function(cli, o, module)) return false;
  if (!run_graph_passes(cli, o, module, calls, &lowering)) return false;
  if (calls->count && !lowering.count && !o->schedule) return true;
  if (!check_chosen(cli, o, module)) return false;
  if (lowering.count) note_idle_pass(cli, o, module, &lowering.items[0], false);
  return lower_chosen(cli, o, module, &lowering, o->schedule);
}

static bool check_pass(Cli *cli, const char *option, const char *name) {
  return (name && graph_pass_find(name)) || cli_check_pass(cli, option, name);
}

static int run(Cli *cli, void *given) {
  const OptOptions *o = given;
  PassCalls calls;
  if (!check_pass(cli, "--stop-after", o->stop_after) ||
      !check_pass(cli, "--print-ir-after", o->print_after) || !pass_calls(cli, o, &calls) ||
      !check_options(cli, o, &calls))
    return STATUS_MISUSE;
  if (o->list) return list_passes(cli);
  if (cli->inputs.count == 0) {
    diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                  "opt needs a file of TVMScript; - is standard input");
    return STATUS_MISUSE;
  }
  Module *module = script_load(cli, cli->inputs.items[0]);
  if (!module || !transform(cli, o, &calls, module)) return STATUS_BAD;
  Text text = text_new(&cli->context->arena);
  script_print_module(cli->context, module, &text,
                      &(ScriptOptions){.newer = o->newer, .annotate = o->annotate});
  const char *path = cli->output ? cli->output : "-";
  return file_write(cli->context, path, text_string(&text), text.size) ? STATUS_DONE : STATUS_BAD;
}

const Command command_opt = {
    .name = "opt",
    .arguments = "KERNEL.py",
    .summary = "run schedule steps and passes on TVMScript and print it",
    .example =
        "  $ pleat opt examples/kernels/matmul.py --pass convert_blocks,simplify_loops\n"
        "  from pleat.script import tir as T\n"
        "  \n"
        "  @T.prim_func\n"
        "  def matmul(A: T.Buffer((384, 256), \"float32\"), B: T.Buffer((256, 512), \"float32\"),\n"
        "             bias: T.Buffer((512,), \"float32\"), C: T.Buffer((384, 512), \"float32\")):\n"
        "      product = T.decl_buffer((384, 512), \"float32\")\n"
        "      for i, j, k in T.grid(384, 512, 256):\n"
        "          if k == 0:\n"
        "              product[i, j] = T.float32(0.0)\n"
        "          product[i, j] = product[i, j] + A[i, k] * B[k, j]\n"
        "      for i, j in T.grid(384, 512):\n"
        "          C[i, j] = T.max(product[i, j] + bias[j], T.float32(0.0))\n",
    .takes = TAKES_OUTPUT,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(OptOptions),
    .least_inputs = 0,
    .most_inputs = 1,
    .run = run,
};
