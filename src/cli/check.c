// SPDX-License-Identifier: Apache-2.0
// `pleat check`: reports everything in a model or a kernel that is unsupported or ill-formed, in
// one run.
#include "cli/model.h"

#include <jansson.h>

#include "graph/graph.h"
#include "graph/stages.h"
#include "report/report.h"
#include "script/script.h"

static const Option options[] = {INPUT_SHAPE_OPTION, KNOWN_INPUT_OPTION};

// The file under check: its contents, and the operators of its nodes as far as they are known.
typedef struct Checked {
  Cli *cli;
  const ModelOptions *options;
  const char *path;
  int64_t assumed_size; // as in OnnxOptions
  LoadedModel model;
  LoopRacesList loops; // the parallel, vectorised and thread loops of tensor programs
  json_t *banks;       // report_banks of these
} Checked;

static bool check_graph(Checked *c, GraphFunc *graph) {
  bool first = !c->model.graph; // the sizes of the options are for the first graph function
  if (first) c->model.graph = graph;
  c->model.node_count += graph->nodes.count;
  bool fits = (!first || model_bind_sizes(c->cli, c->options, graph, false)) &&
              graph_infer(c->cli->context, graph);
  if (fits && !first) stage_graph_new(c->cli->context, graph); // finds the errors of compiling
  return fits;
}

// Refuses sizes where they have no effect, because tensor programs are checked for every size.
static bool check_sizes(const Checked *c, const Module *module) {
  const GivenOption rows[] = {{"--input-shape", c->options->input_shapes.count > 0},
                              {"--dim", c->options->dims.count > 0},
                              {"--input", c->options->inputs.count > 0}};
  for (int i = 0; i < module->funcs.count; i++)
    if (module->funcs.items[i].graph) return true;
  return cli_refuse(c->cli, rows, COUNT_OF(rows),
                    "the file has no graph function to give sizes to");
}

static void check_program(Checked *c, const Module *module, PrimFunc *func) {
  lower_check_intrinsics(c->cli->context, func);
  lower_check_nested_threads(c->cli->context, func);
  lower_check_accesses(c->cli->context, module, func, &c->loops);
  if (c->banks) report_banks(c->cli->context, func, c->banks);
}

static bool check_module(Checked *c, const Module *module) {
  if (!module || !check_sizes(c, module)) return false;
  for (int i = 0; i < module->funcs.count; i++)
    if (module->funcs.items[i].prim) check_program(c, module, module->funcs.items[i].prim);
  for (int i = 0; i < module->funcs.count; i++)
    if (module->funcs.items[i].graph && !check_graph(c, module->funcs.items[i].graph)) return false;
  return true;
}

// Checks the module that the path names, and otherwise each module of the file.
static bool check_script(Checked *c) {
  Context *context = c->cli->context;
  SourceFile *file = script_read(c->cli, c->path);
  const Str *names;
  int count = file && !file->module ? script_module_names(context, file, &names) : 0;
  if (!file) return false;
  if (count < 2) return check_module(c, script_parse(context, file));
  bool fits = true;
  for (int i = 0; i < count; i++) {
    SourceFile *part = source_file_new(context, file->name, file->text, file->size);
    part->module = names[i];
    fits = check_module(c, script_parse(context, part)) && fits;
  }
  return fits;
}

static bool load(Checked *c) {
  if (model_is_script(c->path)) return check_script(c);
  return model_read(c->cli, c->path, c->options, c->assumed_size, &c->model);
}

// Makes the definitions of all operators, to find the errors that compiling would find.
static void check_definitions(Checked *c) {
  if (c->model.graph) stage_graph_new(c->cli->context, c->model.graph);
}

// ---- Problems that free sizes hide -------------------------------------------------------------

// A problem that only a second check with assumed sizes finds.
typedef struct Further {
  Str node;
  const char *text; // the message with its notes
} Further;
typedef Array(Further) FurtherList;

static bool is_reported(const Context *context, Str node, const char *message) {
  for (int i = 0; i < context->diags.count; i++) {
    const Diag *diag = &context->diags.items[i];
    if (diag->pos.node == node && strcmp(diag->message, message) == 0) return true;
  }
  return false;
}

// The message of an error of `from` followed by its notes; *i becomes the index of the last note.
static Text with_notes(Context *context, const Context *from, int *i) {
  const Diag *items = from->diags.items;
  Text text = text_new(&context->arena);
  text_puts(&text, items[*i].message);
  while (*i + 1 < from->diags.count && items[*i + 1].severity == DIAG_NOTE && !items[*i + 1].alone)
    text_printf(&text, "\n%s", items[++*i].message);
  return text;
}

// Adds the errors of `other` that `context` does not have yet.
static void add_further(Context *context, const Context *other, const char *assumed,
                        FurtherList *list) {
  for (int i = 0; i < other->diags.count; i++) {
    const Diag *diag = &other->diags.items[i];
    Str node = diag->pos.node ? str_intern(context, diag->pos.node) : NULL;
    if (diag->severity != DIAG_ERROR || is_reported(context, node, diag->message)) continue;
    Text text = with_notes(context, other, &i);
    text_printf(&text, "\nseen with %s", assumed);
    array_push(&context->arena, list, ((Further){node, text_string(&text)}));
  }
}

static void look(void *env) {
  Checked *c = env;
  if (load(c)) check_definitions(c);
}

// The errors that appear when a size is assumed.
typedef struct Trial {
  FurtherList list;
  const char *fine; // the options with which the whole model is supported, or NULL
} Trial;

// Repeats the check in a context of its own, with `size` for the free dimensions.
static bool check_with_size(const Checked *c, int64_t size, Trial *trial) {
  Context *context = c->cli->context;
  Cli cli = *c->cli;
  cli.context = context_new();
  Checked other = {.cli = &cli, .options = c->options, .path = c->path, .assumed_size = size};
  *trial = (Trial){0};
  bool done = context_protect(cli.context, look, &other);
  if (done) add_further(context, cli.context, other.model.assumed, &trial->list);
  if (done && cli.context->error_count == 0)
    trial->fine = arena_printf(&context->arena, "%s", other.model.assumed);
  context_free(cli.context);
  return done;
}

// When sizes are free, much of a model cannot be checked. This function reports the problems with
// the assumed size that shows the fewest, because these problems are the model's rather than the
// size's.
static void report_further(const Checked *c) {
  static const int64_t sizes[] = {224, 64, 512};
  Context *context = c->cli->context;
  Trial best = {0}, trial;
  bool any = false;
  for (int i = 0; i < COUNT_OF(sizes) && (!any || best.list.count); i++) {
    if (!check_with_size(c, sizes[i], &trial)) continue;
    if (!any || trial.list.count < best.list.count) best = trial;
    any = true;
  }
  SourcePos pos = {.file = context->diags.items[0].pos.file};
  if (best.fine) diag_note(context, pos, "with %s all is supported", best.fine);
  for (int i = 0; i < best.list.count; i++) {
    pos.node = best.list.items[i].node;
    diag_error(context, pos, "%s", best.list.items[i].text);
  }
}

// ---- Results ----------------------------------------------------------------------------------

static const char *operator_of(const Checked *c, Str node) {
  const char *name = node ? map_find(&c->model.operators, node) : NULL;
  return name ? name : "";
}

// The position of a problem in a text file: "line:column: ".
static const char *position_text(Arena *arena, const Diag *diag) {
  DiagPlace place = diag_place(diag);
  return place.source ? arena_printf(arena, "%d:%d: ", place.line, place.column) : "";
}

// The errors as JSON, each with the notes that follow it.
static json_t *problem_list(const Checked *c) {
  Context *context = c->cli->context;
  json_t *list = json_array();
  for (int i = 0; i < context->diags.count; i++) {
    const Diag *diag = &context->diags.items[i];
    if (diag->severity != DIAG_ERROR) continue;
    Str node = diag->pos.node;
    Text what = with_notes(context, context, &i);
    const char *text = arena_printf(&context->arena, "%s%s", position_text(&context->arena, diag),
                                    text_string(&what));
    json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "node", node ? node : "", "operator",
                                          operator_of(c, node), "what", text));
  }
  return list;
}

static int show_json(const Checked *c) {
  bool supported = c->cli->context->error_count == 0;
  json_print(c->cli,
             json_pack("{s:b, s:o, s:o, s:O}", "supported", supported, "problems", problem_list(c),
                       "loops", report_loops(&c->loops), "banks", c->banks));
  return supported ? STATUS_DONE : STATUS_BAD;
}

// The operators that have problems, with their numbers of problems: "Loop (2), NonZero (1)"; empty
// when no operator is known.
static const char *operators_text(const Checked *c) {
  Context *context = c->cli->context;
  Map counts = map_new(&context->arena);
  for (int i = 0; i < context->diags.count; i++) {
    const Diag *diag = &context->diags.items[i];
    const char *name = operator_of(c, diag->pos.node);
    if (diag->severity != DIAG_ERROR || !*name) continue;
    Str key = str_intern(context, name);
    map_put(&counts, key, (uintptr_t)map_find(&counts, key) + 1);
  }
  Text text = text_new(&context->arena);
  for (int i = 0; i < counts.count; i++)
    text_printf(&text, "%s%s (%d)", i ? ", " : "", (const char *)(uintptr_t)counts.entries[i].key,
                (int)(uintptr_t)counts.entries[i].value);
  return text_string(&text);
}

// ", 2 of 3 parallel and vectorized loops proved free of races", of files that have such loops.
static const char *loops_text(const Checked *c) {
  int free = 0, count = c->loops.count;
  for (int i = 0; i < count; i++) free += c->loops.items[i].verdict == VERDICT_YES;
  if (!count) return "";
  const char *text = free < count ? arena_printf(&c->cli->context->arena, "%d of %d", free, count)
                                  : arena_printf(&c->cli->context->arena, "%d", count);
  return arena_printf(&c->cli->context->arena,
                      ", %s parallel, vectorized or thread loop%s proved free of races", text,
                      count == 1 ? "" : "s");
}

// ", 1 of 2 accesses of shared memory without bank conflicts", of files that have such accesses;
// and a line for each other one.
static const char *banks_text(const Checked *c, Text *others) {
  size_t count = json_array_size(c->banks), free = 0;
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(c->banks, i);
    const char *access = json_string_value(json_object_get(item, "access"));
    const char *why = json_string_value(json_object_get(item, "why"));
    const char *verb = json_is_true(json_object_get(item, "write")) ? "write" : "read";
    int line = (int)json_integer_value(json_object_get(item, "line"));
    int64_t degree = json_integer_value(json_object_get(item, "degree"));
    free += degree == 1;
    if (why)
      text_printf(others, "  line %d: %s of %s: bank conflicts are not known: %s\n", line, verb,
                  access, why);
    else if (degree > 1)
      text_printf(others, "  line %d: %s of %s: a bank serves %lld words one after the other\n",
                  line, verb, access, (long long)degree);
  }
  if (!count) return "";
  return arena_printf(&c->cli->context->arena,
                      ", %zu of %zu accesses of shared memory without bank conflicts", free, count);
}

static int show_text(const Checked *c) {
  Cli *cli = c->cli;
  int errors = cli->context->error_count;
  const char *operators = operators_text(c);
  printf("%s: ", c->path);
  if (c->model.node_count)
    printf("%d operator%s, ", c->model.node_count, c->model.node_count == 1 ? "" : "s");
  if (c->model.opset) printf("opset %lld, ", (long long)c->model.opset);
  Text conflicts = text_new(&cli->context->arena);
  const char *banks = banks_text(c, &conflicts);
  if (errors == 0)
    printf("%ssupported%s%s%s\n%s", cli_paint(cli, COLOUR_GREEN), cli_paint(cli, COLOUR_NONE),
           loops_text(c), banks, text_string(&conflicts));
  else
    printf("%s%d problem%s%s%s%s\n", cli_paint(cli, COLOUR_RED), errors, errors == 1 ? "" : "s",
           cli_paint(cli, COLOUR_NONE), *operators ? ": " : "", operators);
  return errors ? STATUS_BAD : STATUS_DONE;
}

static int run(Cli *cli, void *given) {
  Checked checked = {.cli = cli, .options = given, .path = cli->inputs.items[0]};
  checked.banks = json_array();
  checked.model.operators = map_new(&cli->context->arena);
  look(&checked);
  if (checked.model.lacks_sizes) report_further(&checked);
  int status = cli->json ? show_json(&checked) : show_text(&checked);
  json_decref(checked.banks);
  return status;
}

const Command command_check = {
    .name = "check",
    .arguments = "MODEL|KERNEL.py",
    .summary = "list everything in a model or kernel that is not supported or wrong",
    .example = "  $ pleat check examples/digits/digits.onnx\n"
               "  examples/digits/digits.onnx: 33 operators, opset 17, supported\n",
    .takes = TAKES_JSON,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(ModelOptions),
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
