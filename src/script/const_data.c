// SPDX-License-Identifier: Apache-2.0
// Reads and writes the elements of constants by type, and reads the lists of numbers that scripts
// give.
#include "script/const_data.h"

#include "script/parser.h"

bool const_data_storable(DType type) {
  return dtype_is_float(type) || dtype_is_int(type) || dtype_is_bool(type);
}

int64_t const_data_count(const ConstData *data) {
  int64_t count = 1;
  for (int i = 0; i < data->rank; i++) count *= data->shape[i];
  return count;
}

void const_data_store(void *data, DType type, int64_t at, double real, int64_t integer) {
  int bytes = dtype_bytes(type);
  char *place = (char *)data + at * bytes;
  const FloatFormat *format = dtype_small_float(type);
  float single = (float)real;
  uint32_t code = format ? float_encode(*format, real) : 0;
  const void *source = format                  ? (const void *)&code
                       : !dtype_is_float(type) ? (const void *)&integer
                       : type.bits == 32       ? (const void *)&single
                                               : (const void *)&real;
  memcpy(place, source, (size_t)bytes); // little-endian: the low bytes are the narrower value
}

Contents *const_data_share(Context *context, ConstData *data) {
  if (data->contents) return data->contents;
  data->contents = contents_made(context, data->data, data->bytes);
  data->data = data->contents->data;
  return data->contents;
}

bool const_data_take(Context *context, ConstData *data, Contents *contents) {
  size_t bytes = (size_t)(const_data_count(data) * dtype_bytes(data->type));
  if (!contents) return true;
  if (contents->bytes != bytes) return false;
  contents_hold(context, contents);
  data->contents = contents;
  data->data = contents->data;
  data->bytes = bytes;
  return true;
}

static int64_t load_integer(const char *place, DType type) {
  int bytes = dtype_bytes(type);
  uint64_t value = 0;
  memcpy(&value, place, (size_t)bytes);
  if (type.code == TYPE_INT && bytes < 8 && value >> (8 * bytes - 1))
    value |= ~(uint64_t)0 << (8 * bytes);
  return (int64_t)value;
}

static double load_real(const char *place, DType type) {
  const FloatFormat *format = dtype_small_float(type);
  uint32_t code = 0;
  float single;
  double real;
  if (format) {
    memcpy(&code, place, (size_t)dtype_bytes(type));
    return float_decode(*format, code);
  } else if (type.bits == 32) {
    memcpy(&single, place, sizeof single);
    return single;
  } else {
    memcpy(&real, place, sizeof real);
  }
  return real;
}

static const char *place_of(const ConstData *data, int64_t at) {
  return (const char *)data->data + at * dtype_bytes(data->type);
}

Expr *const_data_load(Context *context, const ConstData *data, int64_t at) {
  const char *place = place_of(data, at);
  DType type = data->type;
  return dtype_is_float(type) ? expr_float(context, type, load_real(place, type))
                              : expr_int(context, type, load_integer(place, type));
}

// ---- Lists of numbers

enum { MOST_ELEMENTS = 1 << 24, MOST_AXES = 16 };

bool const_data_nests(const ConstData *data) {
  for (int i = 0; i + 1 < data->rank; i++)
    if (!data->shape[i]) return false;
  return data->rank <= MOST_AXES;
}

static int64_t list_count(const PyNode *node) {
  if (!py_is_list(node)) return 1;
  int64_t count = 0;
  for (int i = 0; i < node->count; i++) count += list_count(node->items[i]);
  return count;
}

static int list_shape(const PyNode *node, int64_t *shape) {
  int rank = 0;
  while (py_is_list(node) && rank < MOST_AXES) {
    shape[rank++] = node->count;
    if (!node->count) break;
    node = node->items[0];
  }
  return rank;
}

typedef struct Element {
  const PyNode *node;
  Operand value;
} Element;

typedef Array(Element) ElementArray;

// Appends the elements of the list to `out`.
static bool read_list(Parser *parser, const PyNode *node, ElementArray *out) {
  for (int i = 0; py_is_list(node) && i < node->count; i++)
    if (!read_list(parser, node->items[i], out)) return false;
  if (py_is_list(node)) return true;
  Element element = {node, parse_operand(parser, node)};
  const Expr *e = element.value.e;
  if (!e) return false;
  if (e->op != EXPR_INT && e->op != EXPR_FLOAT) return REPORT(parser, node, "expected a number");
  array_push(parser->arena, out, element);
  return true;
}

// The type of elements for which no type is written, as in NumPy, but with 32 bits: float32 where
// there is a float or no element, bool where all are booleans, int32 otherwise. An element such as
// T.int64(1) states its own.
static DType type_of_elements(const ElementArray *elements) {
  bool is_real = !elements->count, is_bool = true;
  for (int i = 0; i < elements->count; i++) {
    Operand value = elements->items[i].value;
    bool is_truth = dtype_is_bool(value.e->type);
    if (!value.is_literal && !is_truth) return value.e->type;
    is_real |= value.e->op == EXPR_FLOAT;
    is_bool &= is_truth;
  }
  return is_real ? DTYPE_FLOAT32 : is_bool ? DTYPE_BOOL : DTYPE_INT32;
}

static bool store_element(Parser *parser, const Element *element, const ConstData *data,
                          void *bytes, int64_t at) {
  const Expr *e = element->value.e;
  bool is_int = e->op == EXPR_INT, is_real = dtype_is_float(data->type);
  Str type = dtype_name(parser->context, data->type);
  if (!is_int && !is_real) return REPORT(parser, element->node, "expected a number for %s", type);
  if (!is_real && !dtype_holds(data->type, e->as.i))
    return REPORT(parser, element->node, "%lld does not fit %s", (long long)e->as.i, type);
  const_data_store(bytes, data->type, at, is_int ? (double)e->as.i : e->as.f, is_int ? e->as.i : 0);
  return true;
}

static bool read_extents(Parser *parser, const PyNode *node, ConstData *data) {
  Expr **shape;
  if (!parse_shape(parser, node, &shape, &data->rank)) return false;
  data->shape = arena_array(&parser->context->arena, int64_t, data->rank);
  for (int i = 0; i < data->rank; i++)
    if (!expr_as_int(shape[i], &data->shape[i]) || data->shape[i] < 0)
      return REPORT(parser, node, "expected constant extents");
  return true;
}

static bool count_agrees(Parser *parser, const PyNode *node, const ConstData *data, int64_t count) {
  int64_t expected = 1;
  bool fits = count <= MOST_ELEMENTS;
  for (int i = 0; i < data->rank; i++) fits &= mul_fits(expected, data->shape[i], &expected);
  if (fits && expected == count) return true;
  return REPORT(parser, node, "%lld numbers do not fill the extents", (long long)count);
}

// ---- Contents beside the script: "constant:…", or an array of Python, which is written as
// R.const("constant:…", R.Tensor(shape, dtype))

bool parse_contents(Parser *parser, const PyNode *name, ConstData *data) {
  const ScriptCapture *capture = parser->capture;
  Contents *contents =
      capture && capture->contents ? capture->contents(capture->contents_env, name->text) : NULL;
  data->name = name->text;
  return const_data_take(parser->context, data, contents) ||
         REPORT(parser, name, "the contents have %zu bytes, which do not fill the extents",
                contents->bytes);
}

// R.const("name", R.Tensor(shape, dtype))
static bool is_named(Parser *parser, const PyNode *node) {
  Str member = node->kind == PY_CALL ? parser_called(parser, node, DIALECT_GRAPH) : NULL;
  return member && !strcmp(member, "const") && node->count == 3 &&
         node->items[1]->kind == PY_STRING && node->items[2]->kind == PY_CALL;
}

static bool stored_as(Parser *parser, const PyNode *node, const ConstData *from, ConstData *to) {
  int64_t count = const_data_count(from);
  bool from_real = dtype_is_float(from->type), is_real = dtype_is_float(to->type);
  void *bytes = arena_alloc(&parser->context->arena, to->bytes + 1);
  to->data = bytes;
  if (from_real && !is_real) return REPORT(parser, node, "the elements are no integers");
  for (int64_t i = 0; i < count; i++) {
    int64_t integer = from_real ? 0 : load_integer(place_of(from, i), from->type);
    if (!is_real && !dtype_holds(to->type, integer))
      return REPORT(parser, node, "%lld does not fit %s", (long long)integer,
                    dtype_name(parser->context, to->type));
    double real = from_real ? load_real(place_of(from, i), from->type) : (double)integer;
    const_data_store(bytes, to->type, i, real, integer);
  }
  return true;
}

// The array with the type that is stated, or else the one that a list of its elements would have.
static ConstData *array_data(Parser *parser, const PyNode *node, ConstData *data) {
  const PyNode *type = node->items[2];
  const PyNode *dtype = type->count > 2 ? type->items[2] : NULL;
  if (dtype && dtype->kind == PY_KEYWORD) dtype = dtype->items[0];
  if (!dtype || type->count < 2) return REPORT(parser, node, "expected a shape and a type"), NULL;
  ConstData *array = parse_const_data(parser, node->items[1], dtype, type->items[1]);
  if (!array) return NULL;
  if (!data->shape) data->rank = array->rank, data->shape = array->shape;
  if (const_data_count(data) != const_data_count(array))
    return REPORT(parser, node, "the elements do not fill the extents"), NULL;
  if (!data->type.bits)
    data->type = dtype_is_float(array->type)  ? DTYPE_FLOAT32
                 : dtype_is_bool(array->type) ? DTYPE_BOOL
                                              : DTYPE_INT32;
  if (dtype_equal(data->type, array->type)) {
    data->data = array->data, data->bytes = array->bytes, data->contents = array->contents;
    return data;
  }
  data->bytes = (size_t)(const_data_count(data) * dtype_bytes(data->type));
  return stored_as(parser, node, array, data) ? data : NULL;
}

// The data of a constant whose elements are not in the script; NULL with a diagnostic.
static ConstData *outside_data(Parser *parser, const PyNode *node, ConstData *data) {
  if (node->kind != PY_STRING) return array_data(parser, node, data);
  if (!data->shape || !data->type.bits)
    return REPORT(parser, node, "expected the shape and type of the constant"), NULL;
  if (!parse_contents(parser, node, data)) return NULL;
  if (data->data) return data;
  REPORT(parser, node, "the contents of constant '%s' are not in this script", node->text);
  return NULL;
}

ConstData *parse_const_data(Parser *parser, const PyNode *node, const PyNode *dtype,
                            const PyNode *extents) {
  Arena *arena = &parser->context->arena;
  ConstData *data = arena_new(arena, ConstData);
  data->name = "constant";
  if (dtype && !parse_dtype(parser, dtype, &data->type)) return NULL;
  if (dtype && (!const_data_storable(data->type) || data->type.lanes > 1)) {
    REPORT(parser, dtype, "there are no constants of this type");
    return NULL;
  }
  int64_t count = list_count(node), shape[MOST_AXES];
  if (extents && !read_extents(parser, extents, data)) return NULL;
  if (node->kind == PY_STRING || is_named(parser, node)) return outside_data(parser, node, data);
  if (!extents) {
    data->rank = list_shape(node, shape);
    data->shape = arena_copy(arena, shape, sizeof *shape * (size_t)data->rank);
  }
  ElementArray elements = {0};
  if (!count_agrees(parser, node, data, count) || !read_list(parser, node, &elements)) return NULL;
  if (!dtype) data->type = type_of_elements(&elements);
  data->bytes = (size_t)(count * dtype_bytes(data->type));
  void *bytes = arena_alloc(arena, data->bytes);
  data->data = bytes;
  for (int i = 0; i < elements.count; i++)
    if (!store_element(parser, &elements.items[i], data, bytes, i)) return NULL;
  return data;
}
