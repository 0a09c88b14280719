// SPDX-License-Identifier: Apache-2.0
// Reads the declarations of buffers, their indices and regions.
#include "arith/arith.h"
#include "script/parse_stmt.h"

enum { MOST_AXES = 64 };

// In programs with T.load and T.store, a pointer may be indexed as a buffer: A.data[i].
static bool is_pointer(Parser *parser, const PyNode *node) {
  if (!parser->uses_pointers) return false;
  if (node->kind == PY_ATTRIBUTE) return !strcmp(node->text, "data");
  const Binding *binding = node->kind == PY_NAME ? parser_find(parser, node->text) : NULL;
  return binding && binding->kind == BOUND_EXPR && binding->expr->type.code == TYPE_HANDLE;
}

Buffer *parser_buffer(Parser *parser, const PyNode *node) {
  bool is_source = node->kind == PY_ATTRIBUTE && !strcmp(node->text, "source");
  const PyNode *name = is_source ? node->items[0] : node;
  const Binding *binding = name->kind == PY_NAME ? parser_find(parser, name->text) : NULL;
  if (!binding) return NULL;
  if (binding->kind == BOUND_BUFFER) return binding->buffer;
  bool is_load = is_source && binding->kind == BOUND_EXPR && binding->expr->op == EXPR_LOAD;
  return is_load ? binding->expr->as.buffer : NULL;
}

Expr *parse_only_element(Parser *parser, Buffer *buffer) {
  Expr *zero = expr_int(parser->context, DTYPE_INT32, 0);
  bool is_one = parser->is_newer && buffer->rank == 1 && expr_is_int(buffer->shape[0], 1);
  return is_one ? expr_load(parser->context, buffer, &zero, 1) : NULL;
}

Buffer *parse_buffer_name(Parser *parser, const PyNode *node) {
  if (is_pointer(parser, node)) return parse_pointer(parser, node, DTYPE_VOID);
  Buffer *source = node->kind == PY_ATTRIBUTE ? parser_buffer(parser, node) : NULL;
  if (source) return source;
  if (node->kind != PY_NAME) {
    bool is_element = node->kind == PY_SUBSCRIPT && parser_buffer(parser, node->items[0]);
    REPORT(parser, node, "expected the name of a buffer, saw %s%s", py_kind_name(node->kind),
           is_element ? "\nwrite all indices in one pair of brackets, A[i, j]" : "");
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
  if (node->kind == PY_BOOL) {
    REPORT(parser, node, "an index must be an integer, saw %s: write %d",
           node->i ? "True" : "False", node->i != 0);
    return NULL;
  }
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

// The start and end of one axis of a slice; those of the whole axis where they are omitted.
static bool slice_bounds(Parser *parser, const PyNode *slice, Expr *whole, Expr **min, Expr **end) {
  Operand start = {expr_int(parser->context, whole->type, 0), true}, stop = {whole, false};
  if (slice->items[0]) start = parse_operand(parser, slice->items[0]);
  if (slice->items[1]) stop = parse_operand(parser, slice->items[1]);
  if (!parse_same_type(parser, slice, &start, &stop)) return false;
  *min = start.e;
  *end = stop.e;
  return true;
}

// (i + 1) * 4 - i * 4 as 4
static Expr *simplified(Parser *parser, Expr *e) {
  return analyzer_simplify(analyzer_new(parser->context), e);
}

static Expr *slice_ramp(Parser *parser, const PyNode *slice, Expr *whole) {
  Expr *min, *end;
  int64_t length, step = 1;
  if (!slice_bounds(parser, slice, whole, &min, &end)) return NULL;
  Expr *extent = parse_difference(parser, min, end);
  if (slice->items[2] && !parse_int(parser, slice->items[2], "the step of a slice", &step))
    return NULL;
  if (!expr_as_int(extent, &length)) extent = simplified(parser, extent);
  bool known = expr_as_int(extent, &length) && step > 0 && min->type.lanes == 1;
  int64_t lanes = known ? ceil_div(length, step) : 0;
  int scalable;
  bool is_scalable = step == 1 && min->type.lanes == 1 && expr_scalable_lanes(extent, &scalable);
  if (is_scalable) lanes = scalable;
  if (lanes == 1) return min;
  if (is_scalable || (lanes >= 2 && lanes <= MOST_LANES)) {
    Expr *stride = expr_int(parser->context, min->type, step);
    return expr_raw(parser->context, EXPR_RAMP, dtype_lanes(min->type, (int)lanes), NULL,
                    (Expr *[]){min, stride}, 2);
  }
  REPORT(parser, slice,
         "a slice as a vector must have a constant number of elements, 1 to %d: write i:i + 4",
         MOST_LANES);
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

static bool region_axis(Parser *parser, const PyNode *item, Region *region, int axis) {
  Expr **min = &region->min[axis], **extent = &region->extent[axis];
  if (item->kind == PY_SLICE) {
    Expr *end;
    if (!slice_bounds(parser, item, region->buffer->shape[axis], min, &end)) return false;
    *extent = parse_difference(parser, *min, end);
    bool is_stated = end->op == EXPR_ADD && (*extent == end->args[0] || *extent == end->args[1]);
    if (!is_stated && (*extent)->op == EXPR_SUB)
      *extent = simplified(parser, *extent); // i - 1:i + 2 has 3
    return true;
  }
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
  *out = region_whole(parser->context, buffer);
  if (is_whole) return true;
  if (!rank_agrees(parser, node, buffer, node->count - 1)) return false;
  for (int i = 0; i < buffer->rank; i++)
    if (!region_axis(parser, node->items[i + 1], out, i)) return false;
  return true;
}

// ---- Declarations

// Makes the variables of an expression in quotes that are new, and gives the expression the
// position of the quotes.
static void declare_names(Parser *parser, PyNode *node, SourcePos pos) {
  node->pos = pos;
  if (node->kind == PY_NAME && !parser_find(parser, node->text))
    parser_bind_expr(parser, node->text, expr_var(parser->context, node->text, DTYPE_INT32));
  int first = node->kind == PY_CALL; // the callee is the name of a function
  for (int i = first; i < node->count; i++)
    if (node->items[i]) declare_names(parser, node->items[i], pos);
}

// An expression in quotes may use sizes before they are declared: ("n * 2",).
static PyNode *quoted(Parser *parser, const PyNode *node) {
  Context *context = parser->context;
  int first = context->diags.count, errors = context->error_count;
  SourceFile *text = source_file_new(context, node->pos.file->name, node->text, strlen(node->text));
  PyNode *inner = py_parse_expression(context, parser->arena, text);
  if (inner) {
    declare_names(parser, inner, node->pos);
    return inner;
  }
  diag_forget(context, first, errors);
  REPORT(parser, node, "'%s' is not an expression", node->text);
  return NULL;
}

// An extent: an expression, or one in quotes.
static Expr *extent_value(Parser *parser, const PyNode *node) {
  DType type;
  if (node->kind == PY_STRING && dtype_parse(node->text, strlen(node->text), &type)) {
    REPORT(parser, node, "expected a shape, saw the element type '%s'", node->text);
    return NULL;
  }
  if (node->kind == PY_STRING && !(node = quoted(parser, node))) return NULL;
  Expr *e = parse_value(parser, node);
  if (!e || (dtype_is_int(e->type) && e->type.lanes == 1)) return e;
  REPORT(parser, node, "expected an integer, saw %s", parser_type_name(parser, e->type));
  return NULL;
}

bool parse_shape(Parser *parser, const PyNode *node, Expr ***out, int *rank) {
  bool is_list = py_is_list(node);
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

static bool check_extents(Parser *parser, const PyNode *node, Expr *const *shape, int rank) {
  for (int i = 0; i < rank; i++) {
    int64_t extent;
    if (expr_as_int(shape[i], &extent) && extent < 0)
      return REPORT(parser, node, "extent %lld of axis %d is negative", (long long)extent, i);
  }
  return true;
}

bool parse_extents(Parser *parser, const PyNode *node, Expr ***out, int *rank) {
  return parse_shape(parser, node, out, rank) && check_extents(parser, node, *out, *rank);
}

static bool parse_strides(Parser *parser, const PyNode *node, Buffer *buffer) {
  int count;
  bool is_empty = py_is_list(node) && !node->count;
  if (is_empty) return true;
  if (!parse_shape(parser, node, &buffer->strides, &count)) return false;
  if (count == buffer->rank) return true;
  return REPORT(parser, node, "%d axes and %d strides", buffer->rank, count);
}

static bool parse_separators(Parser *parser, const PyNode *node, Buffer *buffer) {
  if (!py_is_list(node)) return REPORT(parser, node, "expected a list of axis numbers");
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

// data=T.address_of(A[i, j]): the memory of A, from that element on.
static Expr *data_at(Parser *parser, const PyNode *node, const Expr *load, Buffer *buffer) {
  Context *context = parser->context;
  const Buffer *source = load->as.buffer;
  if (buffer_element_bytes(source) != buffer_element_bytes(buffer)) {
    REPORT(parser, node, "the address is that of an element of %s, which has another size than %s",
           parser_type_name(parser, source->type), parser_type_name(parser, buffer->type));
    return NULL;
  }
  Expr **strides = arena_array(parser->arena, Expr *, source->rank);
  Expr *offset = expr_add(context, buffer->offset, source->offset);
  buffer_stride_exprs(context, source, strides);
  for (int i = 0; i < source->rank; i++) {
    if (load->args[i]->type.lanes != 1 || expr_reads_memory(load->args[i])) {
      REPORT(parser, node, "the index of an address is a number that is not read from memory");
      return NULL;
    }
    offset = expr_add(context, offset, expr_mul(context, load->args[i], strides[i]));
  }
  buffer->offset = offset;
  return source->data;
}

static bool parse_data(Parser *parser, const PyNode *node, Buffer *buffer) {
  const Binding *named = node->kind == PY_NAME ? parser_find(parser, node->text) : NULL;
  if (named && named->kind == BOUND_BUFFER)
    return REPORT(parser, node,
                  "expected the memory of a buffer, saw the buffer '%s'\nwrite %s.data", node->text,
                  node->text);
  Expr *data = parse_value(parser, node);
  if (data && data->op == EXPR_ADDRESS_OF) data = data_at(parser, node, data->args[0], buffer);
  if (!data) return false;
  bool is_pointer = data->type.code == TYPE_HANDLE;
  if (is_pointer && data->op != EXPR_VAR && parser->pointer) {
    *parser->pointer = data;
    return true;
  }
  if (!is_pointer || data->op != EXPR_VAR)
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
  AT_LAYOUT,
  AT_ADDRESS,
  FIELD_COUNT
};
#define MORE_FIELDS                                                                                \
  "dtype? data? strides? elem_offset? scope? align? offset_factor? buffer_type? "                  \
  "axis_separators? layout? allocated_addr?"

static bool parse_layout_fields(Parser *parser, PyNode **args, Buffer *buffer) {
  if (args[AT_STRIDES] && !parse_strides(parser, args[AT_STRIDES], buffer)) return false;
  if (args[AT_OFFSET] && !(buffer->offset = extent_value(parser, args[AT_OFFSET]))) return false;
  const PyNode *layout = args[AT_LAYOUT], *address = args[AT_ADDRESS];
  if (layout && !(buffer->tile_layout = parse_tile_layout(parser, layout))) return false;
  if (address && !parse_tile_address(parser, address, &buffer->tile_layout)) return false;
  if (args[AT_SEPARATORS] && !parse_separators(parser, args[AT_SEPARATORS], buffer)) return false;
  const PyNode *kind = args[AT_TYPE];
  bool is_auto = kind && kind->kind == PY_STRING &&
                 (!strcmp(kind->text, "auto") || !strcmp(kind->text, "auto_broadcast"));
  if (kind && !is_auto && (kind->kind != PY_STRING || *kind->text))
    return REPORT(parser, kind, "expected \"\" or \"auto\"");
  buffer->broadcasts = is_auto;
  if (!parse_small_int(parser, args[AT_ALIGN], "alignment", &buffer->alignment)) return false;
  if (!parse_small_int(parser, args[AT_FACTOR], "offset factor", &buffer->offset_factor))
    return false;
  if (args[AT_OFFSET] && buffer->offset_factor == 1) buffer->offset_factor = 0; // the default
  return true;
}

// `region` is that of a T.match_buffer which states no shape; it gives shape and element type.
static Buffer *buffer_of(Parser *parser, const PyNode *node, Str name, PyNode **args,
                         const Region *region) {
  DType type = region ? region->buffer->type : DTYPE_FLOAT32;
  Expr **shape = region ? region->extent : NULL;
  int rank = region ? region->buffer->rank : 0;
  Str scope = "global";
  if (!region && !parse_shape(parser, args[AT_SHAPE], &shape, &rank)) return NULL;
  if (!region && args[AT_DTYPE] && !parse_dtype(parser, args[AT_DTYPE], &type)) return NULL;
  if (args[AT_SCOPE] && !(scope = parse_string(parser, args[AT_SCOPE], "a scope"))) return NULL;
  if (!*scope) scope = "global"; // as TVM means it
  Buffer *buffer = buffer_new(parser->context, name, type, shape, rank, scope);
  buffer->pos = node->pos;
  if (!check_extents(parser, region ? node : args[AT_SHAPE], buffer->shape, buffer->rank))
    return NULL;
  if (!parse_layout_fields(parser, args, buffer)) return NULL;
  if (args[AT_DATA] && !parse_data(parser, args[AT_DATA], buffer)) return NULL;
  return buffer;
}

// T.Buffer[(30, 64), "float32"], an older spelling.
static Buffer *buffer_of_subscript(Parser *parser, const PyNode *node, Str name) {
  PyNode *args[FIELD_COUNT] = {NULL};
  args[AT_SHAPE] = node->items[1];
  if (node->count > 2) args[AT_DTYPE] = node->items[2];
  if (node->count <= 3) return buffer_of(parser, node, name, args, NULL);
  REPORT(parser, node, "expected T.Buffer[shape, \"type\"]");
  return NULL;
}

// ---- Older accesses of pointers: T.load("float32", A.data, i), T.store(A.data, i, value)

static bool is_flat(const Buffer *buffer, const Expr *data) {
  return buffer->data == data && buffer->rank == 1 && !buffer->strides &&
         expr_is_int(buffer->offset, 0);
}

Buffer *parse_flat(Parser *parser, Str name, Expr *data, DType type, Expr *const *shape, int rank) {
  Context *context = parser->context;
  Expr *size = expr_int(context, rank ? shape[0]->type : DTYPE_INT32, 1);
  for (int i = 0; i < rank; i++) size = expr_mul(context, size, shape[i]);
  Buffer *flat = buffer_new(context, name, type, &size, 1, data->as.var->scope);
  flat->data = data;
  return flat;
}

Buffer *parse_pointer(Parser *parser, const PyNode *node, DType element) {
  Expr *data = parse_value(parser, node);
  if (!data) return NULL;
  const Buffer *other = NULL;
  for (int i = parser->bindings.count - 1; i >= 0; i--) {
    const Binding *binding = &parser->bindings.items[i];
    if (binding->kind != BOUND_BUFFER || !is_flat(binding->buffer, data)) continue;
    if (element.code == TYPE_VOID || dtype_equal(binding->buffer->type, element))
      return binding->buffer;
    other = binding->buffer;
  }
  if (other)
    REPORT(parser, node, "the memory of %s holds %s, not %s", other->name,
           parser_type_name(parser, other->type), parser_type_name(parser, element));
  else
    REPORT(parser, node, "expected the memory of a buffer or an allocation, such as A.data");
  return NULL;
}

// A.view("uint32"): the memory of A as elements of another type, along the last axis.
static Buffer *view_as(Parser *parser, const PyNode *call, Buffer *source, Str name) {
  Context *context = parser->context;
  DType type;
  if (!parse_dtype(parser, call->items[1], &type)) return NULL;
  int from = source->type.bits * source->type.lanes, to = type.bits * type.lanes;
  bool fits = source->rank && !source->strides && from > 0 && to > 0 &&
              (from % to == 0 || to % from == 0);
  int64_t extent = 0, bits = 0;
  fits = fits && expr_as_int(source->shape[source->rank - 1], &extent) &&
         mul_fits(extent, from, &bits) && bits % to == 0;
  if (!fits) {
    REPORT(parser, call, "%s cannot be seen as elements of %s", source->name,
           parser_type_name(parser, type));
    return NULL;
  }
  Expr **shape = arena_copy(&context->arena, source->shape, sizeof *shape * (size_t)source->rank);
  Expr **last = &shape[source->rank - 1];
  *last = expr_int(context, (*last)->type, bits / to);
  Buffer *view = buffer_new(context, name, type, shape, source->rank, source->scope);
  view->pos = call->pos;
  view->data = source->data;
  if (expr_is_int(source->offset, 0)) return view;
  REPORT(parser, call, "%s starts at an offset", source->name);
  return NULL;
}

// A.view(64): the elements of A with another shape.
Buffer *parse_view(Parser *parser, const PyNode *call, Buffer *source, Str name) {
  const PyNode *last = call->items[call->count - 1];
  bool has_layout = last->kind == PY_KEYWORD && !strcmp(last->text, "layout");
  Expr *layout = has_layout ? parse_tile_layout(parser, last->items[0]) : NULL;
  if (has_layout && !layout) return NULL;
  int rank = call->count - 1 - has_layout;
  bool is_type = rank == 1 && call->items[1]->kind == PY_STRING;
  if (is_type) return view_as(parser, call, source, name);
  Expr **shape = arena_array(&parser->context->arena, Expr *, rank);
  for (int i = 0; i < rank; i++)
    if (!(shape[i] = extent_value(parser, call->items[i + 1]))) return NULL;
  if (!rank) {
    REPORT(parser, call, "expected the extents of the view");
    return NULL;
  }
  Buffer *view = buffer_new(parser->context, name, source->type, shape, rank, source->scope);
  view->pos = call->pos;
  view->data = source->data;
  view->offset = source->offset;
  view->tile_layout = layout;
  return check_extents(parser, call, view->shape, view->rank) ? view : NULL;
}

// A buffer that is bound to memory of its caller, with an `offset_factor` and without
// `elem_offset`: its offset is a variable.
static void open_offset(Parser *parser, Buffer *buffer) {
  Str name = str_format(parser->context, "%s_elem_offset", buffer->name);
  buffer->offset = expr_var(parser->context, name, buffer_open_offset_type(buffer));
}

// T.match_buffer(A[0:4, 0:8]): the region that stands for a shape.
static bool find_region(Parser *parser, const PyNode *node, const PyNode *source, Region *out) {
  const Binding *binding = source->kind == PY_NAME ? parser_find(parser, source->text) : NULL;
  bool is_handle = binding && binding->kind == BOUND_EXPR;
  if (is_handle) return REPORT(parser, node, "argument 'shape' is missing");
  return parse_region(parser, source, out);
}

static Buffer *declaration(Parser *parser, const PyNode *node, Str name, PyNode **source,
                           bool is_bound) {
  PyNode *args[FIELD_COUNT + 1] = {NULL};
  if (node->kind == PY_SUBSCRIPT) return buffer_of_subscript(parser, node, name);
  const char *signature = source ? "param shape? " MORE_FIELDS : "shape " MORE_FIELDS;
  if (!py_arguments(parser->context, node, signature, args, NULL)) return NULL;
  if (source) *source = args[0];
  Region region;
  bool has_region = source && !args[AT_SHAPE + 1];
  if (has_region && !find_region(parser, node, args[0], &region)) return NULL;
  Buffer *buffer =
      buffer_of(parser, node, name, args + (source != NULL), has_region ? &region : NULL);
  if (buffer && !buffer->tile_layout) buffer->tile_layout = parse_no_layout(parser, node);
  if (!buffer) return NULL;
  buffer->holds_offset = args[AT_OFFSET + (source != NULL)];
  if (buffer->offset_factor && !buffer->holds_offset && is_bound) open_offset(parser, buffer);
  return buffer;
}

Buffer *parse_param_buffer(Parser *parser, const PyNode *node, Str name) {
  return declaration(parser, node, name, NULL, true);
}

Buffer *parse_buffer(Parser *parser, const PyNode *node, Str name, PyNode **source) {
  return declaration(parser, node, name, source, source != NULL);
}
