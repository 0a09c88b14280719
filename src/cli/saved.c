// SPDX-License-Identifier: Apache-2.0
// Writes, loads and shows saved models (runtime/saved.h) for the subcommands.
#include "cli/saved.h"

#include "cli/kernel.h"
#include "cli/summary.h"
#include "driver/operators.h"

#include <jansson.h>

bool saved_named(const char *path) {
  const char *ending = strrchr(path, '.');
  char first[16];
  if (ending && strcmp(ending, ".pleat") == 0) return true;
  FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "rb");
  size_t size = file ? fread(first, 1, sizeof first, file) : 0;
  if (file) fclose(file);
  return saved_is(first, size);
}

// ---- Writing ------------------------------------------------------------------------------------

bool saved_compile(Cli *cli, const GraphFunc *graph, const ModelOptions *options) {
  int64_t start = clock_now_ns();
  Program *program = model_build_to_run(cli, graph, options, NULL);
  CompiledProgram *compiled = program ? program_compile(program, NULL) : NULL;
  bool done = compiled && saved_write(cli->context, compiled, cli->output);
  compiled_program_release(compiled);
  if (!done || strcmp(cli->output, "-") == 0) return done;
  double seconds = (double)(clock_now_ns() - start) * 1e-9;
  summary_print_program(cli, program, seconds);
  return true;
}

// ---- Loading ------------------------------------------------------------------------------------

// Sizes, layouts and the processor were chosen when the model was compiled.
static bool check_options(Cli *cli, const char *path, const ModelOptions *options) {
  const GivenOption rows[] = {
      {"--input-shape", options->input_shapes.count},
      {"--dim", options->dims.count},
      {"--func", options->func != NULL},
      {"--print-ir-after", options->print_after != NULL},
      {"--verify-each", options->verify_each},
      {"--unchecked", options->unchecked},
      {"--cpu", cli->cpu != NULL},
  };
  const char *why = arena_printf(&cli->context->arena,
                                 "%s is compiled already; give the option to the 'pleat compile' "
                                 "that makes it",
                                 path);
  bool fits = model_refuse_choices(cli, options, why);
  return cli_refuse(cli, rows, COUNT_OF(rows), why) && fits;
}

static Tensor *make_input(Session *s, const InputContents *contents, int number) {
  const ArgumentSpec *spec = &s->compiled->inputs[number];
  Context *context = s->cli->context;
  Tensor *tensor =
      cli_given_array(s->cli, &contents->given, spec->name, element_type_name(spec->type));
  if (tensor || context->error_count) return tensor;
  if (!contents->fill) {
    diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                  "input '%s' has no contents\ngive --input %s=file.npy, or --fill random",
                  spec->name, spec->name);
    return NULL;
  }
  uint64_t seed = (uint64_t)(contents->seed + number);
  bool is_random = strcmp(contents->fill, "random") == 0;
  tensor = compiled_input_new(s->compiled, number, is_random ? &seed : NULL);
  if (!tensor) diag_error(context, (SourcePos){0}, "no memory for '%s'", spec->name);
  return tensor_keep(s->cli->context, tensor);
}

// Arrays of files have rows without gaps, of elements that are no vectors.
static bool check_files(Session *s, const ArgumentSpec *specs, int count) {
  for (int i = 0; i < count; i++)
    if (specs[i].type.lanes > 1 || !specs[i].any_strides)
      return diag_error_as(s->cli->context, DIAG_UNSUPPORTED, (SourcePos){0},
                           "'%s' has %s, which arrays of files do not have\n"
                           "run the model from Python or C",
                           specs[i].name,
                           specs[i].type.lanes > 1 ? "vectors as elements" : "strides of its own");
  return true;
}

bool session_compiled_tensors(Session *s, const InputContents *contents) {
  Arena *arena = &s->cli->context->arena;
  const CompiledProgram *p = s->compiled;
  const char **names = arena_array(arena, const char *, p->input_count);
  s->input_count = p->input_count;
  s->output_count = p->output_count;
  s->inputs = arena_array(arena, Tensor *, p->input_count);
  s->outputs = arena_array(arena, Tensor *, p->output_count);
  s->output_names = arena_array(arena, const char *, p->output_count);
  if (!check_files(s, p->inputs, p->input_count) || !check_files(s, p->outputs, p->output_count))
    return false;
  for (int i = 0; i < p->input_count; i++) names[i] = p->inputs[i].name;
  if (!cli_check_given(s->cli, &contents->given, "model", names, p->input_count)) return false;
  for (int i = 0; i < p->input_count; i++)
    if (!(s->inputs[i] = make_input(s, contents, i))) return false;
  for (int i = 0; i < p->output_count; i++) {
    const ArgumentSpec *spec = &p->outputs[i];
    s->output_names[i] = spec->name;
    s->outputs[i] = tensor_keep(s->cli->context, tensor_new(spec->type, spec->shape, spec->rank));
    if (!s->outputs[i])
      return diag_error(s->cli->context, (SourcePos){0}, "no memory for '%s'", spec->name);
  }
  return true;
}

bool session_begin_saved(Session *s, const char *path, const InputContents *contents) {
  if (!check_options(s->cli, path, s->model) || !cli_machine(s->cli, &s->machine)) return false;
  s->compiled = saved_read(s->cli->context, path);
  const OpaqueFunctions *functions;
  if (!s->compiled || !model_functions(s->cli, s->model, &functions) ||
      !operators_bind(s->cli->context, s->compiled, functions))
    return false;
  if (!session_compiled_tensors(s, contents)) return false;
  machine_limit(&s->machine, s->compiled->cpu);
  s->executable = executable_of(s->cli->context, s->compiled);
  return s->executable && session_ready(s);
}

// ---- Showing ------------------------------------------------------------------------------------

static int kernel_count(const CompiledProgram *p) {
  int count = 0;
  for (int i = 0; i < p->step_count; i++)
    if (!p->steps[i].record) count = MAX_OF(count, p->steps[i].kernel + 1);
  return count;
}

// The functions outside of the program that it calls, each once.
static StringList functions_of(Arena *arena, const CompiledProgram *p) {
  StringList names = {0};
  for (int i = 0; i < p->step_count; i++) {
    const char *name = p->steps[i].record ? p->steps[i].record->call->function : NULL;
    for (int k = 0; name && k < names.count; k++)
      if (strcmp(names.items[k], name) == 0) name = NULL;
    if (name) array_push(arena, &names, name);
  }
  return names;
}

void saved_show(Cli *cli, const char *path, const CompiledProgram *p, double seconds) {
  Arena *arena = &cli->context->arena;
  printf("%s%-15s%s saved by version %s   %s of weights\n", cli_paint(cli, COLOUR_BOLD),
         path_file_name(path), cli_paint(cli, COLOUR_NONE), PLEAT_VERSION,
         show_bytes(arena, p->weight_bytes));
  printf("code            %d kernels, %s, loaded in %s             arena %s\n", kernel_count(p),
         p->cpu, show_seconds(arena, seconds), show_bytes(arena, p->arena_bytes));
  const StringList names = functions_of(arena, p);
  for (int i = 0; i < names.count; i++) printf("%-16s%s\n", i ? "" : "calls", names.items[i]);
}

static const char *shape_text(Arena *arena, const ArgumentSpec *spec) {
  Text text = text_new(arena);
  for (int i = 0; i < spec->rank; i++)
    text_printf(&text, "%s%lld", i ? "x" : "", (long long)spec->shape[i]);
  return spec->rank ? text_string(&text) : "scalar";
}

static void add_arguments(Cli *cli, Table *table, const char *what, const ArgumentSpec *specs,
                          int count, const void *const *known) {
  Arena *arena = &cli->context->arena;
  for (int i = 0; i < count; i++) {
    table_cell(table, "%s", specs[i].name);
    table_cell(table, "%s", what);
    table_cell(table, "%s", shape_text(arena, &specs[i]));
    table_cell(table, "%s", element_type_name(specs[i].type));
    table_cell(table, "%lld", (long long)argument_bytes(&specs[i]));
    table_cell(table, "%s", known && known[i] ? "has one value only" : "");
  }
}

static void show_text(Cli *cli, const char *path, const CompiledProgram *p, double seconds) {
  static const char *const heads[] = {"#name", "use", "shape", "type", "bytes", ""};
  Table table = table_new(&cli->context->arena, "llllrl");
  saved_show(cli, path, p, seconds);
  printf("\n");
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  add_arguments(cli, &table, "input", p->inputs, p->input_count, p->known);
  add_arguments(cli, &table, "output", p->outputs, p->output_count, NULL);
  table_print(&table, stdout);
}

static json_t *arguments_json(const ArgumentSpec *specs, int count, const void *const *known) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) {
    json_t *shape = json_array();
    for (int k = 0; k < specs[i].rank; k++)
      json_array_append_new(shape, json_integer(specs[i].shape[k]));
    json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:b}", "name", specs[i].name, "type",
                                          element_type_name(specs[i].type), "shape", shape, "known",
                                          known && known[i]));
  }
  return list;
}

static json_t *steps_json(const CompiledProgram *p) {
  json_t *list = json_array();
  for (int i = 0; i < p->step_count; i++) {
    const CompiledStep *step = &p->steps[i];
    json_array_append_new(list, json_pack("{s:s, s:o, s:f, s:I}", "name", step->name, "code",
                                          json_sprintf("k%d", step->kernel), "operations",
                                          step->operations, "bytes", (json_int_t)step->bytes));
  }
  return list;
}

static json_t *functions_json(Arena *arena, const CompiledProgram *p) {
  const StringList names = functions_of(arena, p);
  json_t *list = json_array();
  for (int i = 0; i < names.count; i++) json_array_append_new(list, json_string(names.items[i]));
  return list;
}

static int show_json(Cli *cli, const CompiledProgram *p) {
  return json_print(
      cli, json_pack("{s:s, s:s, s:I, s:I, s:i, s:o, s:o, s:o, s:o}", "version", PLEAT_VERSION,
                     "cpu", p->cpu, "weight_bytes", (json_int_t)p->weight_bytes, "arena_bytes",
                     (json_int_t)p->arena_bytes, "kernels", kernel_count(p), "inputs",
                     arguments_json(p->inputs, p->input_count, p->known), "outputs",
                     arguments_json(p->outputs, p->output_count, NULL), "steps", steps_json(p),
                     "functions", functions_json(&cli->context->arena, p)));
}

int saved_inspect(Cli *cli, const char *path, const ModelOptions *options) {
  int64_t start = clock_now_ns();
  const GivenOption input = {"--input", options->inputs.count > 0};
  const GivenOption operators = {"--operators", options->operators.count > 0};
  if (!check_options(cli, path, options) ||
      !cli_refuse(cli, &input, 1, "the inputs of a compiled model are known") ||
      !cli_refuse(cli, &operators, 1, "the functions that a saved model calls are not looked at"))
    return STATUS_BAD;
  CompiledProgram *program = saved_read(cli->context, path);
  if (!program) return STATUS_BAD;
  int status = STATUS_DONE;
  if (cli->json)
    status = show_json(cli, program);
  else
    show_text(cli, path, program, (double)(clock_now_ns() - start) * 1e-9);
  compiled_program_release(program);
  return status;
}
