// SPDX-License-Identifier: Apache-2.0
// Reads the declarations of buffers, their indices and regions.
#include "script/parse_stmt.h"

enum { MOST_AXES = 64 };

Buffer *parse_buffer_name(Parser *parser, const PyNode *node) {
  if (node->kind != PY_NAME) {
    REPORT(parser, node, "expected the name of a buffer, saw %s", py_kind_name(node->kind));
    return NULL;
  }
  Binding *binding = parser_lookup(parser, node);
  if (!binding || binding->kind == BOUND_NOTHING) return NULL;
  if (binding->kind == BOUND_BUFFER) return binding->buffer;
  REPORT(parser, node, "'%s' is not a buffer", node->text);
  return NULL;
}

// ---- Indices

static bool rank_agrees(Parser *parser, const PyNode *node, const Buffer *buffer, int count) {
  if (count == buffer->rank) return true;
  return REPORT(parser, node, "%s has %d ax%s, saw %d ind%s", buffer->name, buffer->rank,
                buffer->rank == 1 ? "is" : "es", count, count == 1 ? "ex" : "ices");
}

static Expr *index_value(Parser *parser, const PyNode *node) {
  Expr *e = parse_value(parser, node);
  if (!e || dtype_is_int(e->type) || dtype_is_bool(e->type)) return e;
  REPORT(parser, node, "an index must be an integer, saw %s", parser_type_name(parser, e->type));
  return NULL;
}

Expr *parse_difference(Parser *parser, Expr *start, Expr *stop) {
  if (start->op == EXPR_INT && stop->op == EXPR_INT)
    return expr_int(parser->context, stop->type,
                    (int64_t)((uint64_t)stop->as.i - (uint64_t)start->as.i));
  if (expr_is_int(start, 0)) return stop;
  if (stop->op == EXPR_ADD && stop->args[0] == start) return stop->args[1];
  if (stop->op == EXPR_ADD && stop->args[1] == start) return stop->args[0];
  return expr_sub(parser->context, stop, start);
}

// The start and extent of one axis of a slice; the whole axis where a bound is omitted.
static bool slice_bounds(Parser *parser, const PyNode *slice, Expr *whole, Expr **min,
                         Expr **extent) {
  Operand start = {expr_int(parser->context, whole->type, 0), true}, stop = {whole, false};
  if (slice->items[0]) start = parse_operand(parser, slice->items[0]);
  if (slice->items[1]) stop = parse_operand(parser, slice->items[1]);
  if (!parse_same_type(parser, slice, &start, &stop)) return false;
  *min = start.e;
  *extent = parse_difference(parser, start.e, stop.e);
  return true;
}

static Expr *slice_ramp(Parser *parser, const PyNode *slice, Expr *whole) {
  Expr *min, *extent;
  int64_t length, step = 1;
  if (!slice_bounds(parser, slice, whole, &min, &extent)) return NULL;
  if (slice->items[2] && !parse_int(parser, slice->items[2], "the step of a slice", &step))
    return NULL;
  bool known = expr_as_int(extent, &length) && step > 0 && min->type.lanes == 1;
  int64_t lanes = known ? ceil_div(length, step) : 0;
  if (lanes >= 2 && lanes <= 4096) {
    Expr *stride = expr_int(parser->context, min->type, step);
    return expr_raw(parser->context, EXPR_RAMP, dtype_lanes(min->type, (int)lanes), NULL,
                    (Expr *[]){min, stride}, 2);
  }
  REPORT(parser, slice,
         "a slice as a vector must have a constant number of elements, 2 to 4096: write i:i + 4");
  return NULL;
}

Expr **parse_indices(Parser *parser, const PyNode *node, Buffer *buffer) {
  if (!rank_agrees(parser, node, buffer, node->count - 1)) return NULL;
  Expr **indices = arena_array(parser->arena, Expr *, buffer->rank);
  for (int i = 0; i < buffer->rank; i++) {
    const PyNode *item = node->items[i + 1];
    Expr *whole = buffer->shape[i];
    indices[i] =
        item->kind == PY_SLICE ? slice_ramp(parser, item, whole) : index_value(parser, item);
    if (!indices[i]) return NULL;
    if (indices[i]->type.lanes == 1 || i == buffer->rank - 1) continue;
    REPORT(parser, item, "only the last index of a buffer may be a vector");
    return NULL;
  }
  return indices;
}

// ---- Regions

static void region_whole(Parser *parser, Region *region, int axis) {
  Expr *extent = region->buffer->shape[axis];
  region->min[axis] = expr_int(parser->context, extent->type, 0);
  region->extent[axis] = extent;
}

static bool region_axis(Parser *parser, const PyNode *item, Region *region, int axis) {
  Expr **min = &region->min[axis], **extent = &region->extent[axis];
  if (item->kind == PY_SLICE)
    return slice_bounds(parser, item, region->buffer->shape[axis], min, extent);
  *min = index_value(parser, item);
  if (!*min) return false;
  *extent = expr_int(parser->context, (*min)->type, 1);
  return true;
}

bool parse_region(Parser *parser, const PyNode *node, Region *out) {
  bool is_whole = node->kind == PY_NAME;
  const PyNode *name = node->kind == PY_SUBSCRIPT ? node->items[0] : node;
  Buffer *buffer = parse_buffer_name(parser, name);
  if (!buffer) return false;
  Context *context = parser->context;
  out->buffer = buffer;
  out->min = arena_array(&context->arena, Expr *, buffer->rank);
  out->extent = arena_array(&context->arena, Expr *, buffer->rank);
  if (!is_whole && !rank_agrees(parser, node, buffer, node->count - 1)) return false;
  for (int i = 0; i < buffer->rank; i++) {
    if (is_whole)
      region_whole(parser, out, i);
    else if (!region_axis(parser, node->items[i + 1], out, i))
      return false;
  }
  return true;
}

// ---- Declarations

// An extent: an expression, or a string that names a variable, which is made when it is new.
static Expr *extent_value(Parser *parser, const PyNode *node) {
  if (node->kind != PY_STRING) {
    Expr *e = parse_value(parser, node);
    if (!e || (dtype_is_int(e->type) && e->type.lanes == 1)) return e;
    REPORT(parser, node, "expected an integer, saw %s", parser_type_name(parser, e->type));
    return NULL;
  }
  Binding *binding = parser_find(parser, node->text);
  if (binding && binding->kind == BOUND_EXPR) return binding->expr;
  Expr *var = expr_var(parser->context, node->text, DTYPE_INT64);
  parser_bind_expr(parser, node->text, var);
  return var;
}

bool parse_shape(Parser *parser, const PyNode *node, Expr ***out, int *rank) {
  bool is_list = node->kind == PY_TUPLE || node->kind == PY_LIST;
  const PyNode *const single[] = {node};
  const PyNode *const *items = is_list ? (const PyNode *const *)node->items : single;
  *rank = is_list ? node->count : 1;
  if (*rank > MOST_AXES)
    return REPORT(parser, node, "%d axes are too many (the limit is %d)", *rank, MOST_AXES);
  Expr **shape = arena_array(&parser->context->arena, Expr *, *rank);
  for (int i = 0; i < *rank; i++)
    if (!(shape[i] = extent_value(parser, items[i]))) return false;
  *out = shape;
  return true;
}

static bool check_extents(Parser *parser, const PyNode *node, const Buffer *buffer) {
  for (int i = 0; i < buffer->rank; i++) {
    int64_t extent;
    if (expr_as_int(buffer->shape[i], &extent) && extent < 0)
      return REPORT(parser, node, "extent %lld of axis %d is negative", (long long)extent, i);
  }
  return true;
}

static bool parse_strides(Parser *parser, const PyNode *node, Buffer *buffer) {
  int count;
  bool is_empty = (node->kind == PY_LIST || node->kind == PY_TUPLE) && !node->count;
  if (is_empty) return true;
  if (!parse_shape(parser, node, &buffer->strides, &count)) return false;
  if (count == buffer->rank) return true;
  return REPORT(parser, node, "%d axes and %d strides", buffer->rank, count);
}

static bool parse_separators(Parser *parser, const PyNode *node, Buffer *buffer) {
  if (node->kind != PY_LIST && node->kind != PY_TUPLE)
    return REPORT(parser, node, "expected a list of axis numbers");
  int *separators = arena_array(&parser->context->arena, int, node->count);
  int64_t axis, last = -1;
  for (int i = 0; i < node->count; i++, last = axis) {
    if (!parse_int(parser, node->items[i], "the number of an axis", &axis)) return false;
    if (axis < 0 || axis > buffer->rank || axis < last)
      return REPORT(parser, node->items[i],
                    "axis separators must ascend from 0 to the number of axes");
    separators[i] = (int)axis;
  }
  buffer->separators = separators;
  buffer->separator_count = node->count;
  return true;
}

static bool parse_small_int(Parser *parser, const PyNode *node, const char *what, int *out) {
  int64_t value;
  if (!node) return true;
  if (!parse_int(parser, node, what, &value)) return false;
  *out = (int)value;
  if (value >= -1 && value <= 1 << 20) return true;
  return REPORT(parser, node, "%lld is not a valid %s", (long long)value, what);
}

static bool parse_data(Parser *parser, const PyNode *node, Buffer *buffer) {
  Expr *data = parse_value(parser, node);
  if (!data) return false;
  if (data->type.code != TYPE_HANDLE || data->op != EXPR_VAR)
    return REPORT(parser, node, "expected a data variable, such as A.data");
  buffer->data = data;
  if (!data->as.var->scope) { // the handle is new: it points to this buffer's elements
    data->as.var->scope = buffer->scope;
    data->as.var->pointee = dtype_lanes(buffer->type, 1);
  }
  return true;
}

enum {
  AT_SHAPE,
  AT_DTYPE,
  AT_DATA,
  AT_STRIDES,
  AT_OFFSET,
  AT_SCOPE,
  AT_ALIGN,
  AT_FACTOR,
  AT_TYPE,
  AT_SEPARATORS,
  FIELD_COUNT
};
#define BUFFER_SIGNATURE                                                                           \
  "shape dtype? data? strides? elem_offset? scope? align? offset_factor? buffer_type? "            \
  "axis_separators?"

static bool parse_layout_fields(Parser *parser, PyNode **args, Buffer *buffer) {
  if (args[AT_STRIDES] && !parse_strides(parser, args[AT_STRIDES], buffer)) return false;
  if (args[AT_OFFSET] && !(buffer->offset = extent_value(parser, args[AT_OFFSET]))) return false;
  if (args[AT_SEPARATORS] && !parse_separators(parser, args[AT_SEPARATORS], buffer)) return false;
  const PyNode *kind = args[AT_TYPE];
  if (kind && (kind->kind != PY_STRING || *kind->text))
    return REPORT(parser, kind, "buffers that broadcast by themselves are not supported");
  if (!parse_small_int(parser, args[AT_ALIGN], "alignment", &buffer->alignment)) return false;
  if (!parse_small_int(parser, args[AT_FACTOR], "offset factor", &buffer->offset_factor))
    return false;
  if (buffer->offset_factor == 0) buffer->offset_factor = 1;
  return true;
}

static Buffer *buffer_of(Parser *parser, const PyNode *node, Str name, PyNode **args) {
  DType type = DTYPE_FLOAT32;
  Expr **shape;
  int rank;
  Str scope = "global";
  if (!parse_shape(parser, args[AT_SHAPE], &shape, &rank)) return NULL;
  if (args[AT_DTYPE] && !parse_dtype(parser, args[AT_DTYPE], &type)) return NULL;
  if (args[AT_SCOPE] && !(scope = parse_string(parser, args[AT_SCOPE], "a scope"))) return NULL;
  Buffer *buffer = buffer_new(parser->context, name, type, shape, rank, scope);
  buffer->pos = node->pos;
  if (!check_extents(parser, args[AT_SHAPE], buffer)) return NULL;
  if (!parse_layout_fields(parser, args, buffer)) return NULL;
  if (args[AT_DATA] && !parse_data(parser, args[AT_DATA], buffer)) return NULL;
  return buffer;
}

// T.Buffer[(30, 64), "float32"], an older spelling.
static Buffer *buffer_of_subscript(Parser *parser, const PyNode *node, Str name) {
  PyNode *args[FIELD_COUNT] = {NULL};
  args[AT_SHAPE] = node->items[1];
  if (node->count > 2) args[AT_DTYPE] = node->items[2];
  if (node->count <= 3) return buffer_of(parser, node, name, args);
  REPORT(parser, node, "expected T.Buffer[shape, \"type\"]");
  return NULL;
}

Buffer *parse_buffer(Parser *parser, const PyNode *node, Str name, PyNode **source) {
  PyNode *args[FIELD_COUNT + 1] = {NULL};
  if (node->kind == PY_SUBSCRIPT) return buffer_of_subscript(parser, node, name);
  const char *signature = source ? "param " BUFFER_SIGNATURE : BUFFER_SIGNATURE;
  if (!py_arguments(parser->context, node, signature, args, NULL)) return NULL;
  if (source) *source = args[0];
  return buffer_of(parser, node, name, args + (source != NULL));
}
