// SPDX-License-Identifier: Apache-2.0
// Prints a model whose sizes are free: operators have shapes and layouts only for given sizes, so
// that these are its inputs and outputs alone, with the names of the free sizes.
#include "cli/inspect.h"

#include <jansson.h>

#include "frontend/onnx/onnx.h"

// ---- As text ----------------------------------------------------------------------------------

static const char *shape_text(Arena *arena, const OnnxArgument *argument) {
  if (argument->rank < 0) return "not known";
  Text text = text_new(arena);
  for (int i = 0; i < argument->rank; i++) {
    const char *name = argument->names && argument->names[i] ? argument->names[i] : "?";
    text_puts(&text, i ? ", " : "[");
    if (argument->shape[i] == ONNX_OPEN)
      text_puts(&text, name);
    else
      text_printf(&text, "%lld", (long long)argument->shape[i]);
  }
  text_puts(&text, argument->rank ? "]" : "[]");
  return text_string(&text);
}

static const char *type_text(Cli *cli, const OnnxArgument *argument) {
  return argument->has_type ? dtype_name(cli->context, argument->type) : "not known";
}

static void add_rows(Cli *cli, Table *table, const char *use, const OnnxArguments *arguments) {
  for (int i = 0; i < arguments->count; i++) {
    const OnnxArgument *argument = &arguments->items[i];
    table_cell(table, "%s", argument->name);
    table_cell(table, "%s", use);
    table_cell(table, "%s", shape_text(&cli->context->arena, argument));
    table_cell(table, "%s", type_text(cli, argument));
  }
}

static int show_text(Cli *cli, const OnnxImport *import) {
  static const char *const heads[] = {"#name", "use", "shape", "type"};
  Table table = table_new(&cli->context->arena, "llll");
  for (int i = 0; i < COUNT_OF(heads); i++) table_cell(&table, "%s", heads[i]);
  add_rows(cli, &table, "input", &import->open_inputs);
  add_rows(cli, &table, "output", &import->open_outputs);
  table_print(&table, stdout);
  printf("operators       %d, printed for given sizes:", import->node_count);
  for (int i = 0; i < import->open_sizes.count; i++)
    printf(" --dim %s=1", import->open_sizes.items[i]);
  printf("\n");
  return STATUS_DONE;
}

// ---- As JSON ----------------------------------------------------------------------------------

static json_t *axis_json(const OnnxArgument *argument, int axis) {
  if (argument->shape[axis] != ONNX_OPEN) return json_integer(argument->shape[axis]);
  const char *name = argument->names ? argument->names[axis] : NULL;
  return name ? json_string(name) : json_null();
}

static json_t *arguments_json(Cli *cli, const OnnxArguments *arguments) {
  json_t *list = json_array();
  for (int i = 0; i < arguments->count; i++) {
    const OnnxArgument *argument = &arguments->items[i];
    json_t *shape = argument->rank < 0 ? json_null() : json_array();
    for (int k = 0; k < argument->rank; k++) json_array_append_new(shape, axis_json(argument, k));
    json_array_append_new(list, json_pack("{s:s, s:s?, s:o}", "name", argument->name, "type",
                                          argument->has_type ? type_text(cli, argument) : NULL,
                                          "shape", shape));
  }
  return list;
}

int inspect_open(Cli *cli, const OnnxImport *import) {
  if (!cli->json) return show_text(cli, import);
  json_t *sizes = json_array();
  for (int i = 0; i < import->open_sizes.count; i++)
    json_array_append_new(sizes, json_string(import->open_sizes.items[i]));
  return json_print(cli, json_pack("{s:o, s:o, s:o}", "free_sizes", sizes, "inputs",
                                   arguments_json(cli, &import->open_inputs), "outputs",
                                   arguments_json(cli, &import->open_outputs)));
}
