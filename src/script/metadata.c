// SPDX-License-Identifier: Apache-2.0
// Reads what TVM's printer keeps apart from the program: strings with line breaks and their like.
//   metadata = tvm.ir.load_json("""{"root_index": …, "nodes": [{"type": …, "data": …}, …]}""")
//   … metadata["ir.StringImm"][0] …
// Where the text holds the table, the strings take the places of their names. TVM leaves the table
// out unless it is asked for it; then a name stays what it is, and programs that need the string
// cannot run.
#include "script/parser.h"

#include <jansson.h>

static bool is_metadata(const PyNode *node) {
  return node->kind == PY_NAME && !strcmp(node->text, "metadata");
}

// metadata["ir.StringImm"][0]
static bool is_entry(const PyNode *node) {
  bool has_index = node->kind == PY_SUBSCRIPT && node->count == 2;
  if (!has_index || node->items[1]->kind != PY_INT) return false;
  const PyNode *kind = node->items[0];
  return kind->kind == PY_SUBSCRIPT && kind->count == 2 && is_metadata(kind->items[0]) &&
         kind->items[1]->kind == PY_STRING;
}

// ---- The table: nodes refer to one another by their positions -----------------------------------

static json_t *node_at(json_t *nodes, json_t *position) {
  return json_is_integer(position) ? json_array_get(nodes, (size_t)json_integer_value(position))
                                   : NULL;
}

static json_t *data_at(json_t *nodes, json_t *position) {
  return json_object_get(node_at(nodes, position), "data");
}

// The list of the nodes of a kind: the root is [kind, list, kind, list, …].
static json_t *list_of(json_t *table, const char *kind) {
  json_t *nodes = json_object_get(table, "nodes");
  json_t *pairs = data_at(nodes, json_object_get(table, "root_index"));
  for (size_t i = 0; i + 1 < json_array_size(pairs); i += 2) {
    const char *name = json_string_value(data_at(nodes, json_array_get(pairs, i)));
    if (name && !strcmp(name, kind)) return data_at(nodes, json_array_get(pairs, i + 1));
  }
  return NULL;
}

// The string of an entry; NULL where the table has none.
static const char *string_at(json_t *table, const char *kind, int64_t index) {
  json_t *nodes = json_object_get(table, "nodes"), *list = list_of(table, kind);
  json_t *fields = index >= 0 ? data_at(nodes, json_array_get(list, (size_t)index)) : NULL;
  return json_string_value(data_at(nodes, json_object_get(fields, "value")));
}

static void put_strings(Parser *parser, PyNode *node, json_t *table) {
  const char *text = is_entry(node) ? string_at(table, node->items[0]->items[1]->text,
                                                node->items[1]->i)
                                    : NULL;
  if (text) {
    *node = (PyNode){.kind = PY_STRING, .pos = node->pos, .depth = 1,
                     .text = str_intern(parser->context, text)};
    return;
  }
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) put_strings(parser, node->items[i], table);
}

// The text of the table that a statement states; NULL for any other statement.
static const PyNode *table_of(Context *context, const PyNode *node) {
  if (node->kind != PY_ASSIGN || !is_metadata(node->items[0])) return NULL;
  const PyNode *call = node->items[1];
  Str callee = call->kind == PY_CALL && call->count == 2 && call->items[1]->kind == PY_STRING
                   ? py_dotted_name(context, call->items[0])
                   : NULL;
  return callee && !strcmp(callee, "tvm.ir.load_json") ? call->items[1] : NULL;
}

void parser_take_metadata(Parser *parser, PyNode *suite) {
  for (int i = 0; i < suite->count; i++) {
    const PyNode *text = table_of(parser->context, suite->items[i]);
    if (!text) continue;
    json_error_t error;
    json_t *table = json_loads(text->text, 0, &error);
    if (table)
      put_strings(parser, suite, table);
    else
      REPORT(parser, text, "the metadata is no JSON: %s", error.text);
    json_decref(table);
  }
}

Operand parse_metadata(Parser *parser, const PyNode *node) {
  if (!is_entry(node)) return (Operand){0};
  const char *name = str_format(parser->context, "metadata[\"%s\"][%lld]",
                                node->items[0]->items[1]->text, (long long)node->items[1]->i);
  return (Operand){expr_named_string(parser->context, name), false};
}
