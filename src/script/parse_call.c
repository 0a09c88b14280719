// SPDX-License-Identifier: Apache-2.0
// Reads calls in expressions: T.<name>(…). Operations whose operands have one type come from the
// table of operations; calls of another form are rows of `rules` here.
#include "script/parse_stmt.h"
#include "script/parser.h"

#include <math.h>

static const Operand nothing = {NULL, false};

static Operand typed(Expr *e) {
  return (Operand){e, false};
}

static Operand raw(Parser *parser, ExprOp op, DType type, Expr *const *args, int count) {
  return typed(expr_raw(parser->context, op, type, NULL, args, count));
}

// ---- Casts and constants

static Operand cast_of(Parser *parser, const PyNode *type_node, const PyNode *value_node,
                       bool folds) {
  DType type;
  Operand value = parse_operand(parser, value_node);
  if (!parse_dtype(parser, type_node, &type) || !value.e) return nothing;
  if (folds && value.is_literal) return typed(operand_as(parser, value_node, value, type));
  value.e = operand_as(parser, value_node, value, value.e->type);
  if (value.e->op == EXPR_FLOAT && value.is_literal)
    value.e = expr_float(parser->context, DTYPE_FLOAT32, value.e->as.f);
  type = dtype_lanes(type, MAX_OF(type.lanes, value.e->type.lanes));
  if (folds) return typed(expr_cast(parser->context, type, value.e));
  return raw(parser, EXPR_CAST, type, &value.e, 1);
}

// A call whose only operand is its value.
static Operand operand_value(Parser *parser, const PyNode *call) {
  PyNode *args[1];
  if (!py_arguments(parser->context, call, "value", args, NULL)) return nothing;
  return parse_operand(parser, args[0]);
}

static Operand cast(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "value dtype", args, NULL)) return nothing;
  return cast_of(parser, args[1], args[0], true);
}

// x.astype("int32")
static bool is_astype(const PyNode *call) {
  return call->items[0]->kind == PY_ATTRIBUTE && !strcmp(call->items[0]->text, "astype");
}

static Operand astype(Parser *parser, const PyNode *call) {
  PyNode *args[1];
  if (!py_arguments(parser->context, call, "dtype", args, NULL)) return nothing;
  return cast_of(parser, args[0], call->items[0]->items[0], true);
}

static Operand cast_node(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "dtype value", args, NULL)) return nothing;
  return cast_of(parser, args[0], args[1], false);
}

// T.reinterpret("int32", x), or the older T.reinterpret(x, dtype="int32").
static Operand reinterpret(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  DType type;
  bool is_older = call->count == 3 && call->items[2]->kind == PY_KEYWORD &&
                  !strcmp(call->items[2]->text, "dtype");
  if (!py_arguments(parser->context, call, is_older ? "value dtype" : "dtype value", args, NULL))
    return nothing;
  if (is_older) {
    PyNode *value_node = args[0];
    args[0] = args[1];
    args[1] = value_node;
  }
  Expr *value = parse_value(parser, args[1]);
  if (!parse_dtype(parser, args[0], &type) || !value) return nothing;
  if (type.bits * type.lanes == value->type.bits * value->type.lanes)
    return raw(parser, EXPR_REINTERPRET, type, &value, 1);
  REPORT(parser, call, "%s and %s differ in size", parser_type_name(parser, value->type),
         parser_type_name(parser, type));
  return nothing;
}

static Operand special_number(Parser *parser, const PyNode *node, DType type) {
  static const struct {
    const char *name;
    double value;
  } numbers[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};
  for (int i = 0; i < COUNT_OF(numbers); i++)
    if (!strcmp(numbers[i].name, node->text) && dtype_is_float(type))
      return typed(expr_float(parser->context, type, numbers[i].value));
  REPORT(parser, node, "'%s' is not a value of type %s", node->text,
         parser_type_name(parser, type));
  return nothing;
}

static Operand typed_literal(Parser *parser, const PyNode *node, Operand value, DType type) {
  if (dtype_is_float(type) || dtype_is_int(type)) {
    if (value.e->op == EXPR_FLOAT && dtype_is_int(type)) {
      REPORT(parser, node, "expected an integer for %s", parser_type_name(parser, type));
      return nothing;
    }
    Expr *e = operand_as(parser, node, value, type);
    return typed(e ? expr_broadcast(parser->context, e, type.lanes) : NULL);
  }
  if (dtype_is_bool(type)) return typed(expr_int(parser->context, type, value.e->as.i));
  REPORT(parser, node, "there are no constants of type %s", parser_type_name(parser, type));
  return nothing;
}

// T.float32(x) is a constant of that type, or a cast; without an argument it is a new variable.
static Operand type_call(Parser *parser, const PyNode *call, DType type) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "value? is_size_var?", args, NULL)) return nothing;
  if (!args[0]) return typed(expr_var(parser->context, "v", type));
  if (args[0]->kind == PY_STRING) return special_number(parser, args[0], type);
  if (args[0]->kind == PY_INT && args[0]->text && type.code == TYPE_UINT && type.bits == 64)
    return typed(expr_int(parser->context, type, args[0]->i));
  Operand value = parse_operand(parser, args[0]);
  if (!value.e) return nothing;
  if (value.is_literal) return typed_literal(parser, args[0], value, type);
  type = dtype_lanes(type, MAX_OF(type.lanes, value.e->type.lanes));
  return typed(expr_cast(parser->context, type, value.e));
}

static Operand immediate(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  DType type;
  if (!py_arguments(parser->context, call, "dtype value", args, NULL)) return nothing;
  Operand value = parse_operand(parser, args[1]);
  if (!parse_dtype(parser, args[0], &type) || !value.e) return nothing;
  if (value.is_literal) return typed_literal(parser, args[1], value, type);
  return value;
}

// ---- Limits of types

static double largest_float(DType type) {
  const FloatFormat *format = dtype_small_float(type);
  return format            ? float_decode(*format, float_beyond(*format) - 1)
         : type.bits == 32 ? 0x1.FFFFFEp127
                           : 0x1.FFFFFFFFFFFFFp1023;
}

static Operand limit(Parser *parser, const PyNode *call, bool is_largest) {
  PyNode *args[1];
  DType type;
  if (!py_arguments(parser->context, call, "dtype", args, NULL)) return nothing;
  if (!parse_dtype(parser, args[0], &type)) return nothing;
  double real = is_largest ? largest_float(type) : -largest_float(type);
  if (dtype_is_float(type)) return typed(expr_float(parser->context, type, real));
  bool is_signed = type.code == TYPE_INT;
  uint64_t all = ~(uint64_t)0 >> (64 - type.bits + is_signed);
  int64_t value = is_largest ? (int64_t)all : is_signed ? -(int64_t)all - 1 : 0;
  if (dtype_is_int(type)) return typed(expr_int(parser->context, type, value));
  REPORT(parser, args[0], "expected a numeric type");
  return nothing;
}

static Operand min_value(Parser *parser, const PyNode *call) {
  return limit(parser, call, false);
}

static Operand max_value(Parser *parser, const PyNode *call) {
  return limit(parser, call, true);
}

static Operand infinity(Parser *parser, const PyNode *call) {
  PyNode *args[1];
  DType type;
  if (!py_arguments(parser->context, call, "dtype", args, NULL)) return nothing;
  if (!parse_dtype(parser, args[0], &type)) return nothing;
  if (dtype_is_float(type)) return typed(expr_float(parser->context, type, INFINITY));
  REPORT(parser, args[0], "expected a floating-point type");
  return nothing;
}

// ---- Choices

// Older programs state the type: T.if_then_else(c, a, b, dtype="float32").
static Operand choice(Parser *parser, const PyNode *call, ExprOp op, const char *signature) {
  PyNode *args[4];
  DType type;
  if (!py_arguments(parser->context, call, signature, args, NULL)) return nothing;
  Expr *condition = parse_condition(parser, args[0]);
  Operand a = parse_operand(parser, args[1]), b = parse_operand(parser, args[2]);
  if (args[3] && !parse_dtype(parser, args[3], &type)) return nothing;
  if (args[3] && a.is_literal && b.is_literal)
    a = (Operand){operand_as(parser, args[1], a, type), false};
  if (!condition || !parse_same_type(parser, call, &a, &b)) return nothing;
  if (args[3] && !dtype_equal(a.e->type, type)) {
    REPORT(parser, args[3], "the result has the type %s, declared %s",
           parser_type_name(parser, a.e->type), parser_type_name(parser, type));
    return nothing;
  }
  return raw(parser, op, a.e->type, (Expr *[]){condition, a.e, b.e}, 3);
}

static Operand if_then_else(Parser *parser, const PyNode *call) {
  return choice(parser, call, EXPR_IF_THEN_ELSE, "cond t f dtype?");
}

static Operand select_call(Parser *parser, const PyNode *call) {
  return choice(parser, call, EXPR_SELECT, "condition true_value false_value dtype?");
}

// T.Let(body, where={x: value})
static Operand let_in(Parser *parser, const PyNode *name, const PyNode *stated,
                      const PyNode *inside) {
  Expr *value = parse_value(parser, stated);
  if (!value) return nothing;
  int mark = parser_mark(parser);
  Expr *var = expr_var(parser->context, name->text, value->type);
  parser_bind_expr(parser, name->text, var);
  Expr *body = parse_value(parser, inside);
  parser_reset(parser, mark);
  return typed(body ? expr_let(parser->context, var, value, body) : NULL);
}

// T.Let(body, where={x: value}); older T.Let(x, value, body)
static Operand let(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (call->count == 4 && call->items[1]->kind == PY_NAME)
    return let_in(parser, call->items[1], call->items[2], call->items[3]);
  if (!py_arguments(parser->context, call, "expr where", args, NULL)) return nothing;
  const PyNode *where = args[1];
  if (where->kind == PY_DICT && where->count == 2 && where->items[0]->kind == PY_NAME)
    return let_in(parser, where->items[0], where->items[1], args[0]);
  REPORT(parser, where, "expected {variable: value}");
  return nothing;
}

// ---- Vectors

// A constant, or a multiple of T.vscale().
static bool parse_lanes(Parser *parser, const PyNode *node, int *lanes) {
  int64_t value = 0;
  Expr *e = parse_value(parser, node);
  if (!e) return false;
  if (expr_scalable_lanes(e, lanes)) return true;
  if (!expr_as_int(e, &value))
    return REPORT(parser, node, "expected the number of lanes, a constant integer");
  *lanes = (int)value;
  if (value >= 2 && value <= MOST_LANES) return true;
  return REPORT(parser, node, "expected 2 to %d lanes, saw %lld", MOST_LANES, (long long)value);
}

static bool is_scalar(Parser *parser, const PyNode *node, const Expr *e) {
  if (e->type.lanes == 1) return true;
  return REPORT(parser, node, "expected a scalar, saw %s", parser_type_name(parser, e->type));
}

static Operand ramp(Parser *parser, const PyNode *call) {
  PyNode *args[3];
  int lanes;
  if (!py_arguments(parser->context, call, "base stride lanes", args, NULL)) return nothing;
  Operand base = parse_operand(parser, args[0]), stride = parse_operand(parser, args[1]);
  if (!parse_lanes(parser, args[2], &lanes) || !parse_same_type(parser, call, &base, &stride))
    return nothing;
  if (!is_scalar(parser, args[0], base.e)) return nothing;
  DType type = dtype_lanes(base.e->type, lanes);
  return raw(parser, EXPR_RAMP, type, (Expr *[]){base.e, stride.e}, 2);
}

static Operand broadcast(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  int lanes;
  if (!py_arguments(parser->context, call, "value lanes", args, NULL)) return nothing;
  Expr *value = parse_value(parser, args[0]);
  if (!value || !parse_lanes(parser, args[1], &lanes) || !is_scalar(parser, args[0], value))
    return nothing;
  return raw(parser, EXPR_BROADCAST, dtype_lanes(value->type, lanes), &value, 1);
}

static Expr *tuple_of(Parser *parser, const PyNode *node) {
  if (!py_is_list(node)) {
    REPORT(parser, node, "expected a list, saw %s", py_kind_name(node->kind));
    return NULL;
  }
  Expr **items = arena_array(parser->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++)
    if (!(items[i] = parse_value(parser, node->items[i]))) return NULL;
  return expr_tuple(parser->context, items, node->count);
}

static Operand shuffle(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "vectors indices", args, NULL)) return nothing;
  Expr *vectors = tuple_of(parser, args[0]), *indices = tuple_of(parser, args[1]);
  if (!vectors || !indices) return nothing;
  if (!vectors->count || !indices->count) {
    REPORT(parser, call, "expected vectors and lane numbers");
    return nothing;
  }
  DType type = dtype_lanes(vectors->args[0]->type, indices->count);
  return raw(parser, EXPR_SHUFFLE, type, (Expr *[]){vectors, indices}, 2);
}

static Operand vector_reduction(Parser *parser, const PyNode *call, ExprOp op) {
  PyNode *args[1];
  if (!py_arguments(parser->context, call, "value", args, NULL)) return nothing;
  Expr *value = parse_value(parser, args[0]);
  return value ? raw(parser, op, dtype_lanes(value->type, 1), &value, 1) : nothing;
}

// ---- Memory and functions outside

static Operand address_of(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "load dtype?", args, NULL)) return nothing;
  Expr *load = parse_value(parser, args[0]);
  if (!load) return nothing;
  if (load->op == EXPR_LOAD) return raw(parser, EXPR_ADDRESS_OF, DTYPE_HANDLE, &load, 1);
  bool is_handle = load->op == EXPR_VAR && load->type.code == TYPE_HANDLE;
  if (is_handle) // the address of the variable
    return typed(expr_raw(parser->context, EXPR_INTRINSIC_PURE, DTYPE_HANDLE,
                          str_intern(parser->context, "address_of"), &load, 1));
  REPORT(parser, args[0], "expected an element of a buffer, such as A[0]");
  return nothing;
}

static Operand prefetch(Parser *parser, const PyNode *call) {
  PyNode *nodes[3];
  if (!py_arguments(parser->context, call, "address rw locality", nodes, NULL)) return nothing;
  Expr *args[3];
  for (int i = 0; i < 3; i++)
    if (!(args[i] = parse_value(parser, nodes[i]))) return nothing;
  return raw(parser, EXPR_PREFETCH, DTYPE_VOID, args, 3);
}

// True when the predicate of an older access is absent or holds for all lanes.
bool parse_no_predicate(Parser *parser, const PyNode *node) {
  Expr *e = node ? parse_value(parser, node) : NULL;
  bool holds = e && dtype_is_bool(e->type) && expr_is_int(e, 1);
  if (!node || holds) return true;
  return e && REPORT(parser, node, "a predicate of an access is not supported");
}

// T.load("float32x4", A.data, T.ramp(0, 1, 4))
static Operand load_call(Parser *parser, const PyNode *call) {
  PyNode *args[4];
  DType type;
  if (!py_arguments(parser->context, call, "dtype var index predicate?", args, NULL) ||
      !parse_dtype(parser, args[0], &type))
    return nothing;
  Buffer *buffer = parse_pointer(parser, args[1], dtype_lanes(type, 1));
  Expr *index = parse_value(parser, args[2]);
  if (!buffer || !index || !parse_no_predicate(parser, args[3])) return nothing;
  if (dtype_is_int(index->type) && index->type.lanes == type.lanes)
    return typed(expr_load(parser->context, buffer, &index, 1));
  REPORT(parser, args[2], "expected an index of %d lanes, saw %s", type.lanes,
         parser_type_name(parser, index->type));
  return nothing;
}

static Operand call_extern(Parser *parser, const PyNode *call) {
  return parse_call_outside(parser, call, EXPR_CALL);
}

static Operand call_pure_extern(Parser *parser, const PyNode *call) {
  return parse_call_outside(parser, call, EXPR_CALL_PURE);
}

static bool is_known_call(const char *name);

// Did the Python program register this operation?
static bool is_registered(Parser *parser, const char *name) {
  const ScriptCapture *capture = parser->capture;
  if (!capture || !capture->find) return false;
  Str question = str_format(parser->context, "_pleat_is_operation('%s')", name);
  return capture->find(capture->env, parser->context, 0, question, NULL, NULL, 0).kind ==
         CAPTURED_VALUE;
}

// T.NAME(operands…, dtype=type) for the operation "tir.NAME". `is_object`: it is written as an
// object of TVM, as printed programs write those operations that the user registers.
static Operand call_named(Parser *parser, const PyNode *call, PyNode *type, Str name,
                          bool is_object, PyNode *const *operands, int count) {
  const char *dot = strchr(name, '.');
  PyNode *callee = arena_copy(parser->arena, call->items[0], sizeof *callee);
  callee->text = str_intern(parser->context, dot ? dot + 1 : name);
  if (dot && !is_known_call(callee->text) && (is_object || is_registered(parser, name)))
    callee->text = intrinsic_registered(parser->context, callee->text);
  PyNode *dtype = arena_new(parser->arena, PyNode), *named = arena_new(parser->arena, PyNode);
  *dtype =
      (PyNode){.kind = PY_KEYWORD, .pos = type->pos, .text = str_intern(parser->context, "dtype")};
  dtype->items = arena_copy(parser->arena, &type, sizeof *dtype->items);
  dtype->count = 1;
  *named = *call;
  named->count = count + 2;
  named->items = arena_array(parser->arena, PyNode *, named->count);
  named->items[0] = callee;
  for (int i = 0; i < count; i++) named->items[i + 1] = operands[i];
  named->items[named->count - 1] = dtype;
  return parse_call(parser, named);
}

// T.NAME(operands…, dtype="handle") for an operation of the Python program, as in TVM 0.8.
static Operand call_registered(Parser *parser, const PyNode *call, Str name) {
  PyNode *handle = arena_new(parser->arena, PyNode);
  *handle =
      (PyNode){.kind = PY_STRING, .pos = call->pos, .text = str_intern(parser->context, "handle")};
  int count = call->count - 1;
  const PyNode *last = call->items[count];
  bool has_type = count && last->kind == PY_KEYWORD && !strcmp(last->text, "dtype");
  return call_named(parser, call, has_type ? last->items[0] : handle, name, false, call->items + 1,
                    count - has_type);
}

// "tir.exp", or tvm.ir.Op.get("tir.exp"), which is an object.
static Str name_of_operation(Parser *parser, const PyNode *node, bool *is_object) {
  bool is_get = node->kind == PY_CALL && node->count == 2 && node->items[0]->kind == PY_ATTRIBUTE &&
                !strcmp(node->items[0]->text, "get");
  Str owner = is_get ? py_dotted_name(parser->context, node->items[0]) : NULL;
  *is_object = owner && text_ends_with(owner, "Op.get");
  if (*is_object) node = node->items[1];
  return parse_string(parser, node, "the name of an operation");
}

// T.Call("int32", "tir.isnullptr", [p]) is T.isnullptr(p, dtype="int32").
static Operand call_node(Parser *parser, const PyNode *call) {
  PyNode *args[3];
  if (!py_arguments(parser->context, call, "dtype op args", args, NULL)) return nothing;
  bool is_object;
  Str name = name_of_operation(parser, args[1], &is_object);
  bool is_list = py_is_list(args[2]);
  if (!is_list) REPORT(parser, args[2], "expected a list of operands");
  if (!name || !is_list) return nothing;
  return call_named(parser, call, args[0], name, is_object, args[2]->items, args[2]->count);
}

// T.call_intrin("float32", "tir.exp", x)
static Operand call_intrin(Parser *parser, const PyNode *call) {
  Str name =
      call->count > 2 ? parse_string(parser, call->items[2], "the name of an operation") : NULL;
  if (call->count <= 2)
    REPORT(parser, call, "expected a type, the name of an operation, and its operands");
  if (!name) return nothing;
  return call_named(parser, call, call->items[1], name, false, call->items + 3, call->count - 3);
}

// ---- Shorthands

static Operand joined(Parser *parser, const PyNode *call, ExprOp op) {
  Operand whole = nothing;
  if (call->count < 2) REPORT(parser, call, "expected at least one condition");
  for (int i = 1; i < call->count; i++) {
    Operand one = parse_operand(parser, call->items[i]);
    whole = i == 1 ? one : parse_binary(parser, call->items[i], op, whole, one);
  }
  return whole;
}

// T.all(a, b, c) is a and b and c.
static Operand all_of(Parser *parser, const PyNode *call) {
  return joined(parser, call, EXPR_AND);
}

static Operand any_of(Parser *parser, const PyNode *call) {
  return joined(parser, call, EXPR_OR);
}

// (a + b - 1) // b
static Operand ceildiv(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "lhs rhs", args, NULL)) return nothing;
  Operand a = parse_operand(parser, args[0]), b = parse_operand(parser, args[1]);
  Operand one = {expr_index(parser->context, 1), true};
  Operand sum = parse_binary(parser, call, EXPR_ADD, a, b);
  Operand top = parse_binary(parser, call, EXPR_SUB, sum, one);
  return parse_binary(parser, call, EXPR_FLOOR_DIV, top, b);
}

static Operand new_var(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  DType type = DTYPE_INT32;
  if (!py_arguments(parser->context, call, "dtype? name?", args, NULL)) return nothing;
  if (args[0] && !parse_dtype(parser, args[0], &type)) return nothing;
  return typed(expr_var(parser->context, "v", type));
}

static Operand size_var(Parser *parser, const PyNode *call) {
  PyNode *args[3];
  DType type = DTYPE_INT32;
  if (!py_arguments(parser->context, call, "name? dtype? ty?", args, NULL)) return nothing;
  if (!args[1]) args[1] = args[2];
  if (args[1] && !parse_dtype(parser, args[1], &type)) return nothing;
  return typed(expr_var(parser->context, "v", type));
}

// T.captured_var("n", "int32", 7), which the package writes for variable number 7 of Python: one
// variable in all places of a function.
static Operand captured_var(Parser *parser, const PyNode *call) {
  PyNode *args[3];
  DType type;
  int64_t number;
  if (!py_arguments(parser->context, call, "name dtype number", args, NULL)) return nothing;
  Str name = parse_string(parser, args[0], "a name");
  if (!name || !parse_dtype(parser, args[1], &type)) return nothing;
  if (!parse_int(parser, args[2], "a number", &number)) return nothing;
  Str key = str_format(parser->context, "%s %lld", name, (long long)number);
  Expr *var = map_find(&parser->captured_vars, key);
  if (!var) map_put(&parser->captured_vars, key, var = expr_var(parser->context, name, type));
  return typed(var);
}

Str parser_set_captured(Parser *parser, const PyNode *text, const Expr *var, Expr *own) {
  Str called = parser_called(parser, text, DIALECT_TIR);
  if (!called || strcmp(called, "captured_var") || captured_var(parser, text).e != var) return NULL;
  int64_t number;
  if (!parse_int(parser, text->items[3], "a number", &number)) return NULL;
  Str key = str_format(parser->context, "%s %lld", own->as.var->name, (long long)number);
  map_put(&parser->captured_vars, key, own);
  return key;
}

// T.handle("float32", "global") is a pointer to such elements, T.handle() one to anything.
static Operand handle_var(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  DType type;
  Str scope = "global";
  if (!py_arguments(parser->context, call, "dtype? storage_scope?", args, NULL)) return nothing;
  if (!args[0]) return typed(expr_var(parser->context, "v", DTYPE_HANDLE));
  if (!parse_dtype(parser, args[0], &type)) return nothing;
  if (args[1] && !(scope = parse_string(parser, args[1], "a scope"))) return nothing;
  return typed(expr_data_var(parser->context, "v", type, scope));
}

// ---- The table

typedef struct CallRule {
  const char *name;
  Operand (*parse)(Parser *parser, const PyNode *call);
} CallRule;

static const CallRule rules[] = {
    {"Cast", cast_node},
    {"cast", cast},
    {"astype", cast},
    {"reinterpret", reinterpret},
    {"if_then_else", if_then_else},
    {"Select", select_call},
    {"Let", let},
    {"let", let},
    {"Ramp", ramp},
    {"ramp", ramp},
    {"Broadcast", broadcast},
    {"broadcast", broadcast},
    {"Shuffle", shuffle},
    {"address_of", address_of},
    {"prefetch", prefetch},
    {"load", load_call},
    {"call_extern", call_extern},
    {"call_pure_extern", call_pure_extern},
    {"Call", call_node},
    {"call_intrin", call_intrin},
    {"call_pure_intrin", call_intrin},
    {"ceildiv", ceildiv},
    {"all", all_of},
    {"any", any_of},
    {"min_value", min_value},
    {"max_value", max_value},
    {"infinity", infinity},
    {"IntImm", immediate},
    {"FloatImm", immediate},
    {"StringImm", operand_value},
    {"meta_var", operand_value},
    {"var", new_var},
    {"dyn", new_var},
    {"SizeVar", size_var},
    {"Var", size_var},
    {"captured_var", captured_var},
    {"handle", handle_var},
    {"Ptr", handle_var},
};

// Names that are accepted beside those of the table of operations.
static const struct {
  const char *name;
  ExprOp op;
} other_names[] = {
    {"Add", EXPR_ADD},
    {"Sub", EXPR_SUB},
    {"Mul", EXPR_MUL},
    {"Div", EXPR_DIV},
    {"Mod", EXPR_TRUNC_MOD},
    {"FloorDiv", EXPR_FLOOR_DIV},
    {"FloorMod", EXPR_FLOOR_MOD},
    {"floordiv", EXPR_FLOOR_DIV},
    {"floormod", EXPR_FLOOR_MOD},
    {"indexdiv", EXPR_FLOOR_DIV},
    {"indexmod", EXPR_FLOOR_MOD},
    {"BitwiseAnd", EXPR_BIT_AND},
    {"BitwiseOr", EXPR_BIT_OR},
    {"BitwiseXor", EXPR_BIT_XOR},
    {"Min", EXPR_MIN},
    {"Max", EXPR_MAX},
    {"EQ", EXPR_EQ},
    {"NE", EXPR_NE},
    {"LT", EXPR_LT},
    {"LE", EXPR_LE},
    {"GT", EXPR_GT},
    {"GE", EXPR_GE},
    {"And", EXPR_AND},
    {"Or", EXPR_OR},
    {"Not", EXPR_NOT},
    {"power", EXPR_POW},
    {"fabs", EXPR_ABS},
};

static ExprOp operation_named(const char *name) {
  for (int op = 0; op < EXPR_OP_COUNT; op++) {
    const OpInfo *info = &op_table[op];
    bool is_call = info->arity > 0 && !(info->flags & OP_INFIX);
    if (is_call && !strcmp(info->spelling, name)) return (ExprOp)op;
  }
  for (int i = 0; i < COUNT_OF(other_names); i++)
    if (!strcmp(other_names[i].name, name)) return other_names[i].op;
  return EXPR_OP_COUNT;
}

static bool is_known_call(const char *name) {
  for (int i = 0; i < COUNT_OF(rules); i++)
    if (!strcmp(rules[i].name, name)) return true;
  DType type;
  return dtype_parse(name, strlen(name), &type) || operation_named(name) != EXPR_OP_COUNT ||
         intrinsic_find(name) || parse_is_scope(name);
}

static Operand fused_multiply_add(Parser *parser, const PyNode *call, Operand *args) {
  if (!parse_same_type(parser, call, &args[0], &args[1]) ||
      !parse_same_type(parser, call, &args[0], &args[2]) ||
      !parse_same_type(parser, call, &args[0], &args[1]))
    return nothing;
  return raw(parser, EXPR_FMA, args[0].e->type, (Expr *[]){args[0].e, args[1].e, args[2].e}, 3);
}

// An operator that is written as a call, T.Add(a, b), is not computed while reading.
static Operand operator_node(Parser *parser, const PyNode *call, ExprOp op, Operand *args) {
  if (!parse_same_type(parser, call, &args[0], &args[1])) return nothing;
  bool is_whole = op == EXPR_DIV && dtype_is_int(args[0].e->type);
  return parse_binary(parser, call, is_whole ? EXPR_TRUNC_DIV : op, args[0], args[1]);
}

static Operand plain_operation(Parser *parser, const PyNode *call, ExprOp op) {
  int arity = op_table[op].arity;
  if (op_table[op].class == OP_VECTOR) return vector_reduction(parser, call, op);
  if (call->count - 1 != arity) {
    REPORT(parser, call, "'%s' takes %d operand%s, saw %d", op_table[op].spelling, arity,
           arity == 1 ? "" : "s", call->count - 1);
    return nothing;
  }
  Operand args[3];
  for (int i = 0; i < arity; i++) {
    if (call->items[i + 1]->kind == PY_KEYWORD) {
      REPORT(parser, call->items[i + 1], "'%s' takes no keyword arguments", op_table[op].spelling);
      return nothing;
    }
    args[i] = parse_operand(parser, call->items[i + 1]);
  }
  if (arity == 1) return parse_unary(parser, call, op, args[0]);
  if (arity == 2 && op_table[op].flags & OP_INFIX) return operator_node(parser, call, op, args);
  if (arity == 2) return parse_binary(parser, call, op, args[0], args[1]);
  return fused_multiply_add(parser, call, args);
}

static bool is_dtype_keyword(const PyNode *node) {
  return node->kind == PY_KEYWORD && !strcmp(node->text, "dtype");
}

// An operation of the table; its operands are converted to one type. Older programs state the type
// of the result: T.exp(x, dtype="float32").
static Operand operation(Parser *parser, const PyNode *call, ExprOp op) {
  const PyNode *last = call->items[call->count - 1];
  DType type;
  if (call->count < 2 || !is_dtype_keyword(last)) return plain_operation(parser, call, op);
  PyNode untyped = *call;
  untyped.count--;
  Operand value = plain_operation(parser, &untyped, op);
  if (!value.e || !parse_dtype(parser, last->items[0], &type)) return nothing;
  if (value.is_literal) return typed(operand_as(parser, call, value, type));
  if (dtype_equal(value.e->type, type)) return value;
  REPORT(parser, last, "the result has the type %s, declared %s",
         parser_type_name(parser, value.e->type), parser_type_name(parser, type));
  return nothing;
}

static const char *known_call(Parser *parser, const char *word) {
  if (!strncmp(word, "axis.", 5))
    return "\nwrite T.axis.spatial, T.axis.reduce, T.axis.scan, T.axis.opaque or T.axis.remap";
  Array(const char *) names = {0};
  for (int i = 0; i < COUNT_OF(rules); i++) array_push(parser->arena, &names, rules[i].name);
  for (int op = 0; op < EXPR_OP_COUNT; op++)
    if (op_table[op].arity > 0 && !(op_table[op].flags & OP_INFIX))
      array_push(parser->arena, &names, op_table[op].spelling);
  for (int i = 0; intrinsic_at(i); i++)
    if (!intrinsic_is_namespace(intrinsic_at(i)))
      array_push(parser->arena, &names, intrinsic_at(i)->name);
  static const char *const types[] = {"float16", "float32", "float64", "bfloat16", "int8",
                                      "int32",   "int64",   "uint8",   "bool"};
  for (int i = 0; i < COUNT_OF(types); i++) array_push(parser->arena, &names, types[i]);
  return parser_suggestion(parser, word, names.items, names.count);
}

// The name of Python's own min, max or abs; NULL for another callee.
static const char *builtin_name(const PyNode *callee) {
  static const char *const names[] = {"min", "max", "abs"};
  if (callee->kind != PY_NAME) return NULL;
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(callee->text, names[i])) return names[i];
  return NULL;
}

static const char *callee_text(Parser *parser, const PyNode *callee) {
  Str dotted = py_dotted_name(parser->context, callee);
  return dotted ? dotted : "this";
}

// The spelling here of a function of Python, NumPy or the like.
static const char *other_spelling(Parser *parser, const PyNode *callee) {
  static const struct {
    const char *name, *hint;
  } known[] = {{"len", "\nA.shape[0] is the extent of an axis"},
               {"float", "\nwrite T.Cast(\"float32\", value)"},
               {"int", "\nwrite T.Cast(\"int32\", value)"}};
  const Binding *bound = callee->kind == PY_NAME ? parser_find(parser, callee->text) : NULL;
  if (bound && bound->kind == BOUND_BUFFER)
    return str_format(parser->context, "\nan element of it is %s[…]", callee->text);
  bool has_name = callee->kind == PY_NAME || callee->kind == PY_ATTRIBUTE;
  for (int i = 0; callee->kind == PY_NAME && i < COUNT_OF(known); i++)
    if (!strcmp(callee->text, known[i].name)) return known[i].hint;
  return has_name && operation_named(callee->text) != EXPR_OP_COUNT
             ? str_format(parser->context, "; T.%s can", callee->text)
             : "";
}

Operand parse_call(Parser *parser, const PyNode *call) {
  Str member = parser_called(parser, call, DIALECT_TIR);
  const char *name = member ? member : builtin_name(call->items[0]);
  Operand result;
  if (!name && parse_method(parser, call, &result)) return result;
  if (!name && is_astype(call)) return astype(parser, call);
  if (!name && parser_function(parser, call->items[0])) return parse_module_call(parser, call);
  if (!name) {
    REPORT(parser, call, "%s cannot be called in a tensor program%s",
           callee_text(parser, call->items[0]), other_spelling(parser, call->items[0]));
    return nothing;
  }
  for (int i = 0; i < COUNT_OF(rules); i++)
    if (!strcmp(rules[i].name, name)) return rules[i].parse(parser, call);
  DType type;
  if (dtype_parse(name, strlen(name), &type)) return type_call(parser, call, type);
  ExprOp op = operation_named(name);
  if (op != EXPR_OP_COUNT) return operation(parser, call, op);
  const Intrinsic *intrinsic = intrinsic_find(name);
  if (intrinsic) return parse_intrinsic(parser, call, intrinsic, name);
  Str own = str_format(parser->context, "tir.%s", name);
  if (member && is_registered(parser, own)) return call_registered(parser, call, own);
  Str callee = callee_text(parser, call->items[0]);
  if (parse_is_scope(name))
    REPORT(parser, call, "%s has statements of its own: write `with %s(...):`", callee, callee);
  else
    REPORT(parser, call->items[0], "there is no %s%s", callee, known_call(parser, name));
  return nothing;
}
