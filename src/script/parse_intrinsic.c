// SPDX-License-Identifier: Apache-2.0
// Reads calls of functions that have no meaning of their own here: intrinsics, functions outside of
// the program, and other functions of the module. Their operands may be values, lists, None and
// strings.
#include "ir/lanes.h"
#include "script/parser.h"

static const Operand nothing = {NULL, false};

typedef struct CallParts {
  const PyNode *first;        // of the positional arguments that are left
  const PyNode *const *items; // the positional arguments that are left
  int count;
  const PyNode *dtype; // the keyword argument, or NULL
  bool is_packed;      // takes buffers
  bool is_open;        // takes keywords other than that of the type, and regions
  Array(const PyNode *) keywords;
} CallParts;

static bool parts_of(Parser *parser, const PyNode *call, CallParts *out) {
  out->items = (const PyNode *const *)call->items + 1;
  for (int i = 1; i < call->count; i++) {
    const PyNode *item = call->items[i];
    if (item->kind != PY_KEYWORD)
      out->count++;
    else if (!strcmp(item->text, "dtype") || !strcmp(item->text, "ret_ty") ||
             !strcmp(item->text, "return_type"))
      out->dtype = item->items[0];
    else if (out->is_open)
      array_push(parser->arena, &out->keywords, item);
    else
      return REPORT(parser, item, "there is no argument '%s'", item->text);
  }
  return true;
}

static void drop_first(CallParts *parts) {
  parts->items++;
  parts->count--;
}

// The text "" means no result.
static bool result_type(Parser *parser, const PyNode *node, DType *type) {
  *type = DTYPE_VOID;
  bool is_void = node->kind == PY_STRING && !*node->text;
  return is_void || parse_dtype(parser, node, type);
}

// The keyword arguments as a dictionary.
static Expr *keywords_of(Parser *parser, const CallParts *parts) {
  int count = 2 * parts->keywords.count;
  Expr **items = arena_array(parser->arena, Expr *, count);
  for (int i = 0; i < count; i += 2) {
    const PyNode *keyword = parts->keywords.items[i / 2];
    items[i] = expr_string(parser->context, keyword->text);
    if (!(items[i + 1] = parse_tile_operand(parser, keyword->items[0]))) return NULL;
  }
  return expr_raw(parser->context, EXPR_DICT, DTYPE_VOID, NULL, items, count);
}

static Expr *handle_call(Context *context, const char *name, Expr *const *args, int count) {
  const Intrinsic *row = intrinsic_find(name);
  ExprOp op = row->flags & INTRINSIC_PURE ? EXPR_INTRINSIC_PURE : EXPR_INTRINSIC;
  return expr_raw(context, op, DTYPE_HANDLE, str_intern(context, row->name), args, count);
}

// The array that a packed function gets of a buffer, T.tvm_stack_make_array(…).
static Expr *packed_buffer(Context *context, const Buffer *buffer) {
  static const char shape[] = "tvm_stack_make_shape";
  Expr *zero = expr_index(context, 0);
  Expr *parts[] = {buffer->data,
                   handle_call(context, shape, buffer->shape, buffer->rank),
                   buffer->strides ? handle_call(context, shape, buffer->strides, buffer->rank)
                                   : zero,
                   expr_index(context, buffer->rank),
                   expr_const(context, buffer->type, 0),
                   buffer->offset};
  return handle_call(context, "tvm_stack_make_array", parts, COUNT_OF(parts));
}

static Expr *packed_operand(Parser *parser, const PyNode *node) {
  const Binding *binding = node->kind == PY_NAME ? parser_find(parser, node->text) : NULL;
  if (binding && binding->kind == BOUND_BUFFER)
    return packed_buffer(parser->context, binding->buffer);
  return parse_call_operand(parser, node);
}

static Expr **operands(Parser *parser, CallParts *parts) {
  Expr **values = arena_array(parser->arena, Expr *, parts->count + 1);
  for (int i = 0; i < parts->count; i++)
    if (!(values[i] = parts->is_open     ? parse_tile_operand(parser, parts->items[i])
                      : parts->is_packed ? packed_operand(parser, parts->items[i])
                                         : parse_call_operand(parser, parts->items[i])))
      return NULL;
  if (!parts->keywords.count) return values;
  return (values[parts->count++] = keywords_of(parser, parts)) ? values : NULL;
}

// ---- Intrinsics

static bool is_type_text(const PyNode *node) {
  DType type;
  return node->kind == PY_STRING &&
         (!*node->text || dtype_parse(node->text, strlen(node->text), &type));
}

// Finds the type that the call states: the keyword, or an argument before or after the operands.
static const PyNode *stated_type(const Intrinsic *row, CallParts *parts) {
  if (parts->dtype) return parts->dtype;
  if (!parts->count) return NULL;
  bool one_more = row->most >= 0 && parts->count == row->most + 1;
  bool may_state = one_more || row->type == INTRINSIC_STATED;
  bool is_first = row->type == INTRINSIC_GIVEN || (may_state && is_type_text(parts->items[0]));
  if (!is_first && row->type != INTRINSIC_GIVEN_LAST) return NULL;
  if (is_first) {
    const PyNode *type = parts->items[0];
    drop_first(parts);
    return type;
  }
  return parts->items[--parts->count];
}

static bool operand_count(Parser *parser, const PyNode *call, const Intrinsic *row,
                          const CallParts *parts) {
  int count = parts->count + (parts->keywords.count > 0);
  if (count >= row->least && (row->most < 0 || count <= row->most)) return true;
  const char *most = row->most < 0             ? " or more"
                     : row->most == row->least ? ""
                                               : str_format(parser->context, " to %d", row->most);
  return REPORT(parser, call, "T.%s takes %d%s operands, saw %d", row->name, row->least, most,
                count);
}

Operand parse_intrinsic(Parser *parser, const PyNode *call, const Intrinsic *row, Str called) {
  CallParts parts = {.is_open = intrinsic_takes_keywords(row),
                     .is_packed = !strcmp(row->name, "tvm_call_packed")};
  if (!parts_of(parser, call, &parts)) return nothing;
  const PyNode *type_node = stated_type(row, &parts);
  bool needs_type = row->type == INTRINSIC_GIVEN || row->type == INTRINSIC_GIVEN_LAST;
  if (needs_type && !type_node) {
    REPORT(parser, call, "T.%s needs the type of its result, such as dtype=\"int32\"", row->name);
    return nothing;
  }
  DType type = DTYPE_VOID;
  if (type_node && !result_type(parser, type_node, &type)) return nothing;
  if (!operand_count(parser, call, row, &parts)) return nothing;
  Expr **values = operands(parser, &parts);
  if (!values) return nothing;
  if (!type_node) type = intrinsic_type(row, values, parts.count);
  ExprOp op = row->flags & INTRINSIC_PURE ? EXPR_INTRINSIC_PURE : EXPR_INTRINSIC;
  Str name = str_intern(parser->context, intrinsic_name(row, called));
  return (Operand){expr_raw(parser->context, op, type, name, values, parts.count), false};
}

// ---- Methods of buffers

static const Buffer *method_object(Parser *parser, const PyNode *callee) {
  bool is_method = callee->kind == PY_ATTRIBUTE && callee->items[0]->kind == PY_NAME;
  const Binding *binding = is_method ? parser_find(parser, callee->items[0]->text) : NULL;
  return binding && binding->kind == BOUND_BUFFER ? binding->buffer : NULL;
}

// "r", "w", "rw", or the number of the sum of 1 (reads) and 2 (writes).
static bool access_mask(Parser *parser, const PyNode *node, int64_t *mask) {
  if (node->kind != PY_STRING) return parse_int(parser, node, "\"r\", \"w\" or \"rw\"", mask);
  *mask = (strchr(node->text, 'r') != NULL) | (strchr(node->text, 'w') != NULL) << 1;
  bool is_known = *mask && strspn(node->text, "rw") == strlen(node->text);
  return is_known || REPORT(parser, node, "expected \"r\", \"w\" or \"rw\"");
}

// The number of elements from the start of the buffer to its end.
static Expr *span_of(Context *context, const Buffer *buffer) {
  if (buffer->strides && buffer->rank)
    return expr_mul(context, buffer->strides[0], buffer->shape[0]);
  Expr *span = expr_int(context, buffer->rank ? buffer->shape[0]->type : DTYPE_INT32, 1);
  for (int i = 0; i < buffer->rank; i++) span = expr_mul(context, span, buffer->shape[i]);
  return span;
}

// A.access_ptr("r"): the address of the buffer's elements, as T.tvm_access_ptr.
static Operand access_ptr(Parser *parser, const PyNode *call, const Buffer *buffer) {
  PyNode *args[5];
  Context *context = parser->context;
  int64_t mask, lanes = 1;
  if (!py_arguments(context, call, "access_mask ptr_type? content_lanes? offset? extent?", args,
                    NULL) ||
      !access_mask(parser, args[0], &mask))
    return nothing;
  if (args[2] && !parse_int(parser, args[2], "the number of lanes", &lanes)) return nothing;
  if (lanes != 1) {
    REPORT(parser, args[2], "expected 1 lane, saw %lld", (long long)lanes);
    return nothing;
  }
  Expr *zero = expr_int(context, buffer->offset->type, 0);
  Expr *offset = args[3] ? parse_value_as(parser, args[3], zero->type) : zero;
  if (!offset) return nothing;
  Expr *extent =
      args[4] ? parse_value(parser, args[4]) : expr_sub(context, span_of(context, buffer), offset);
  if (!extent) return nothing;
  Expr *type = expr_raw(context, EXPR_INTRINSIC_PURE, buffer->type,
                        str_intern(context, "type_annotation"), NULL, 0);
  Expr *parts[] = {type, buffer->data, expr_add(context, buffer->offset, offset), extent,
                   expr_int(context, DTYPE_INT32, mask)};
  Str name = str_intern(context, "tvm_access_ptr");
  return (Operand){expr_raw(context, EXPR_INTRINSIC, DTYPE_HANDLE, name, parts, 5), false};
}

static Expr *lane_mask(Parser *parser, const PyNode *node, DType vector) {
  Expr *mask = parse_value(parser, node);
  if (!mask) return NULL;
  DType type = dtype_lanes(DTYPE_BOOL, mask->type.lanes);
  bool is_call = mask->op == EXPR_INTRINSIC_PURE && mask->type.code == TYPE_UINT;
  if (is_call && mask->type.bits == 1) // T.get_active_lane_mask("uint1x4", i, n)
    mask = expr_raw(parser->context, mask->op, type, mask->as.s, mask->args, mask->count);
  if (mask->type.lanes == vector.lanes) return expr_cast(parser->context, type, mask);
  REPORT(parser, node, "the predicate has %d lanes, expected those of %s", mask->type.lanes,
         parser_type_name(parser, vector));
  return NULL;
}

// The lanes of a load for which the predicate is true, and 0 for others, which TVM does not define.
static Expr *chosen_lanes(Parser *parser, const PyNode *node, Expr *load) {
  Expr *mask = lane_mask(parser, node, load->type);
  if (!mask) return NULL;
  return expr_if_then_else(parser->context, mask, load, expr_const(parser->context, load->type, 0));
}

// The indices of vectors of this type; NULL after a report.
static Expr **vector_indices(Parser *parser, const PyNode *call, const PyNode *list,
                             const Buffer *buffer, DType type) {
  bool fits = dtype_equal(dtype_lanes(type, 1), dtype_lanes(buffer->type, 1)) &&
              type.lanes % buffer->type.lanes == 0 && !dtype_is_scalable(type);
  if (!py_is_list(list) || list->count != buffer->rank || !buffer->rank || !fits) {
    REPORT(parser, call, "expected %d indices and vectors of %s", buffer->rank,
           parser_type_name(parser, buffer->type));
    return NULL;
  }
  Expr **indices = arena_array(parser->arena, Expr *, buffer->rank);
  for (int i = 0; i < buffer->rank; i++)
    if (!(indices[i] = parse_value(parser, list->items[i]))) return NULL;
  Expr **last = &indices[buffer->rank - 1];
  int lanes = type.lanes / buffer->type.lanes;
  Expr *one = expr_int(parser->context, dtype_lanes((*last)->type, 1), 1);
  if (lanes > 1 && (*last)->type.lanes == 1) *last = expr_ramp(parser->context, *last, one, lanes);
  return indices;
}

// A.vload([i, j], "float32x4"): a vector of elements along the last axis. With `predicate`, only
// lanes for which that is true are read.
static Operand vload(Parser *parser, const PyNode *call, const Buffer *buffer) {
  PyNode *args[3];
  DType type = buffer->type;
  if (!py_arguments(parser->context, call, "begin dtype? predicate?", args, NULL) ||
      (args[1] && !parse_dtype(parser, args[1], &type)))
    return nothing;
  Expr **indices = vector_indices(parser, call, args[0], buffer, type);
  if (!indices) return nothing;
  Expr *load = expr_load(parser->context, (Buffer *)buffer, indices, buffer->rank);
  return (Operand){args[2] ? chosen_lanes(parser, args[2], load) : load, false};
}

// A.vstore([i, j], value): the counterpart of vload; a statement, or NULL after a report.
static Stmt *vstore(Parser *parser, const PyNode *call, Buffer *buffer) {
  PyNode *args[3];
  if (!py_arguments(parser->context, call, "begin value predicate?", args, NULL)) return NULL;
  Expr *value = parse_value(parser, args[1]);
  if (!value) return NULL;
  Expr **indices = vector_indices(parser, call, args[0], buffer, value->type);
  if (!indices) return NULL;
  Stmt *store = stmt_store(parser->context, buffer, indices, buffer->rank, value);
  if (!args[2]) return store;
  Expr *mask = lane_mask(parser, args[2], value->type);
  if (!mask) return NULL;
  if (value->type.lanes == 1) return stmt_if(parser->context, mask, store, NULL);
  Stmt *loop = stmt_lane_loop(parser->context, store, mask);
  if (!loop)
    REPORT(parser, call,
           "the value stored under a predicate is not computed lane by lane; store it to a buffer "
           "first");
  return loop;
}

static const struct {
  const char *name;
  Operand (*parse)(Parser *parser, const PyNode *call, const Buffer *buffer);
} methods[] = {
    {"vload", vload},
    {"access_ptr", access_ptr},
};

bool parse_method_statement(Parser *parser, const PyNode *call, Stmt **out) {
  const PyNode *callee = call->kind == PY_CALL ? call->items[0] : NULL;
  Buffer *buffer = callee ? (Buffer *)method_object(parser, callee) : NULL;
  if (!buffer || strcmp(callee->text, "vstore") != 0) return false;
  *out = vstore(parser, call, buffer);
  return true;
}

bool parse_method(Parser *parser, const PyNode *call, Operand *out) {
  const Buffer *buffer = method_object(parser, call->items[0]);
  for (int i = 0; buffer && i < COUNT_OF(methods); i++) {
    if (strcmp(methods[i].name, call->items[0]->text)) continue;
    *out = methods[i].parse(parser, call, buffer);
    return true;
  }
  return false;
}

// ---- Functions of the module: Module.f(a), cls.f(a), or f(a)

const PyNode *parser_function(Parser *parser, const PyNode *callee) {
  bool is_member = callee->kind == PY_ATTRIBUTE && callee->items[0]->kind == PY_NAME;
  Str object = is_member ? callee->items[0]->text : NULL;
  if (object && object != parser->class_name && strcmp(object, "cls")) return NULL;
  if ((!is_member && callee->kind != PY_NAME) || !parser->functions) return NULL;
  for (int i = 0; i < parser->functions->count; i++) {
    const PyNode *node = parser->functions->items[i];
    if (node->kind == PY_DEF && node->text == callee->text) return node;
  }
  return NULL;
}

// The types of the operands are checked when all functions have been read.
Operand parse_module_call(Parser *parser, const PyNode *call) {
  const PyNode *def = parser_function(parser, call->items[0]);
  DType type = DTYPE_VOID;
  CallParts parts = {0};
  bool has_result = def->items[2] && def->items[2]->kind != PY_NONE;
  if (has_result && !parse_dtype(parser, def->items[2], &type)) return nothing;
  if (!parts_of(parser, call, &parts)) return nothing;
  int wanted = def->items[1]->count;
  if (parts.count != wanted) {
    REPORT(parser, call, "%s takes %d argument%s, saw %d", def->text, wanted,
           wanted == 1 ? "" : "s", parts.count);
    return nothing;
  }
  Expr **values = operands(parser, &parts);
  if (!values) return nothing;
  return (Operand){
      expr_raw(parser->context, EXPR_CALL_MODULE, type, def->text, values, parts.count), false};
}

// ---- Functions outside: T.call_extern("int32", "f", a) or T.call_extern("f", a, dtype="int32")

Operand parse_call_outside(Parser *parser, const PyNode *call, ExprOp op) {
  CallParts parts = {0};
  DType type;
  if (!parts_of(parser, call, &parts)) return nothing;
  const PyNode *type_node = parts.dtype;
  if (!type_node && parts.count) {
    type_node = parts.items[0];
    drop_first(&parts);
  }
  if (!type_node || !parts.count) {
    REPORT(parser, call, "expected the type of the result and the name of the function");
    return nothing;
  }
  Str callee = parse_string(parser, parts.items[0], "the function's name");
  drop_first(&parts);
  if (!callee || !result_type(parser, type_node, &type)) return nothing;
  Expr **values = operands(parser, &parts);
  if (!values) return nothing;
  return (Operand){expr_raw(parser->context, op, type, callee, values, parts.count), false};
}
