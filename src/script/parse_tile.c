// SPDX-License-Identifier: Apache-2.0
// Reads what only the newer dialect has: regions as operands of calls, and the layouts of tiles.
//   T.tile.copy(A[0:4, 0:4], B)   OBJECT region(address of A[0, 0], 4, 4), region(…)
//   layout=T.TileLayout(T.S[(8, 4):(4, 1 @ Axis.laneid)] + 64)
// Both are kept as they are written: no pass computes with them, and programs with them do not run.
#include "script/parser.h"

// ---- Regions

// A buffer without brackets stands for itself: its region states no extents.
static Expr *region_of(Parser *parser, const PyNode *node) {
  Region region;
  if (!parse_region(parser, node, &region)) return NULL;
  int rank = region.buffer->rank;
  Expr **parts = arena_array(parser->arena, Expr *, rank + 1);
  Expr *first = expr_load(parser->context, region.buffer, region.min, rank);
  parts[0] = expr_raw(parser->context, EXPR_ADDRESS_OF, DTYPE_HANDLE, NULL, &first, 1);
  for (int i = 0; i < rank; i++) parts[i + 1] = region.extent[i];
  return parsed_object(parser, "region", parts, node->kind == PY_NAME ? 1 : rank + 1);
}

Expr *parse_region_operand(Parser *parser, const PyNode *node) {
  return region_of(parser, node);
}

static bool is_region(Parser *parser, const PyNode *node) {
  bool has_slice = false;
  for (int i = 1; node->kind == PY_SUBSCRIPT && i < node->count; i++)
    has_slice |= node->items[i]->kind == PY_SLICE;
  Buffer *buffer = parser_buffer(parser, has_slice ? node->items[0] : node);
  bool is_element =
      buffer && !has_slice && node->kind == PY_NAME && parse_only_element(parser, buffer);
  return buffer && !is_element;
}

// I.Op("tirx.tile.sum")
static Expr *operator_of(Parser *parser, const PyNode *node, Str member) {
  PyNode *args[1];
  if (!py_arguments(parser->context, node, "name", args, NULL)) return NULL;
  Expr *name = parse_call_operand(parser, args[0]);
  return name ? parsed_object(parser, member, &name, 1) : NULL;
}

static Expr *dictionary_of(Parser *parser, const PyNode *node) {
  Expr **items = arena_array(parser->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++)
    if (!(items[i] = parse_tile_operand(parser, node->items[i]))) return NULL;
  return expr_raw(parser->context, EXPR_DICT, DTYPE_VOID, NULL, items, node->count);
}

Expr *parse_tile_operand(Parser *parser, const PyNode *node) {
  if (is_region(parser, node)) return region_of(parser, node);
  Str member = parser_called(parser, node, DIALECT_MODULE);
  if (member && !strcmp(member, "Op")) return operator_of(parser, node, member);
  if (node->kind == PY_DICT) return dictionary_of(parser, node);
  if (!py_is_list(node)) return parse_call_operand(parser, node);
  Expr **items = arena_array(parser->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++)
    if (!(items[i] = parse_tile_operand(parser, node->items[i]))) return NULL;
  return expr_tuple(parser->context, items, node->count);
}

// ---- Layouts

static Expr *layout_part(Parser *parser, const PyNode *node);

static Expr **layout_parts(Parser *parser, PyNode *const *nodes, int count) {
  Expr **parts = arena_array(parser->arena, Expr *, count);
  for (int i = 0; i < count; i++)
    if (!(parts[i] = layout_part(parser, nodes[i]))) return NULL;
  return parts;
}

// T.S[shape:strides], T.R[shape:strides], or T.S[shape]
static Expr *layout_piece(Parser *parser, const PyNode *node) {
  Str member = parser_member(parser, node->items[0], DIALECT_TIR);
  bool is_piece = member && (!strcmp(member, "S") || !strcmp(member, "R")) && node->count == 2;
  const PyNode *item = node->items[node->count - 1];
  bool is_pair = item->kind == PY_SLICE && item->items[0] && item->items[1] && !item->items[2];
  if (!is_piece || (item->kind == PY_SLICE && !is_pair)) {
    REPORT(parser, node, "expected T.S[shape:strides] or T.R[shape:strides]");
    return NULL;
  }
  Expr **parts = is_pair ? layout_parts(parser, item->items, 2)
                         : layout_parts(parser, (PyNode *const *)&node->items[1], 1);
  return parts ? parsed_object(parser, member, parts, is_pair ? 2 : 1) : NULL;
}

static Expr *layout_binary(Parser *parser, const PyNode *node) {
  bool is_sum = !strcmp(node->text, "+"), is_axis = !strcmp(node->text, "@");
  if (!is_sum && !is_axis) {
    REPORT(parser, node, "expected '+' or '@' in a layout, saw '%s'", node->text);
    return NULL;
  }
  Expr **parts = layout_parts(parser, node->items, 2);
  return parts ? parsed_object(parser, is_sum ? "layout_sum" : "layout_axis", parts, 2) : NULL;
}

static Expr *layout_call(Parser *parser, const PyNode *node) {
  static const char *const names[] = {"TileLayout", "ComposeLayout", "SwizzleLayout"};
  Str member = parser_called(parser, node, DIALECT_TIR);
  for (int i = 0; member && i < COUNT_OF(names); i++) {
    if (strcmp(member, names[i])) continue;
    Expr **parts = layout_parts(parser, node->items + 1, node->count - 1);
    return parts ? parsed_object(parser, member, parts, node->count - 1) : NULL;
  }
  return parse_value(parser, node);
}

// Axis.laneid, a kind of thread or memory.
static Expr *layout_name(Parser *parser, const PyNode *node) {
  Str dotted = py_dotted_name(parser->context, node);
  if (dotted && !strncmp(dotted, "Axis.", strlen("Axis.")))
    return expr_string(parser->context, dotted);
  return parse_value(parser, node);
}

static Expr *layout_part(Parser *parser, const PyNode *node) {
  switch (node->kind) {
  case PY_SUBSCRIPT: return layout_piece(parser, node);
  case PY_BINARY: return layout_binary(parser, node);
  case PY_CALL: return layout_call(parser, node);
  case PY_ATTRIBUTE: return layout_name(parser, node);
  case PY_LIST:
  case PY_TUPLE: {
    Expr **parts = layout_parts(parser, node->items, node->count);
    return parts ? expr_tuple(parser->context, parts, node->count) : NULL;
  }
  case PY_STRING:
    REPORT(parser, node, "expected a number or an axis in a layout, saw a string");
    return NULL;
  default: return parse_value(parser, node);
  }
}

Expr *parse_no_layout(Parser *parser, const PyNode *call) {
  for (int i = 1; i < call->count; i++) {
    const PyNode *item = call->items[i];
    bool is_layout = item->kind == PY_KEYWORD && !strcmp(item->text, "layout");
    if (is_layout && item->items[0]->kind == PY_NONE)
      return parse_attribute_value(parser, item->items[0]);
  }
  return NULL;
}

Expr *parse_tile_layout(Parser *parser, const PyNode *node) {
  if (node->kind == PY_CALL) return layout_part(parser, node);
  if (node->kind == PY_NONE) return parse_attribute_value(parser, node);
  REPORT(parser, node, "expected a layout such as T.TileLayout(T.S[(4, 8):(8, 1)]), or None");
  return NULL;
}

// allocated_addr=1024, which may stand beside a layout.
bool parse_tile_address(Parser *parser, const PyNode *node, Expr **layout) {
  Expr *address = parse_value(parser, node);
  if (!address) return false;
  Expr *parts[] = {address, *layout};
  *layout = parsed_object(parser, "layout_address", parts, *layout ? 2 : 1);
  return true;
}
