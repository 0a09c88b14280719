// SPDX-License-Identifier: Apache-2.0
// Reads expressions: literals, names, operators and loads. Nodes are built as they are written,
// without folding; only arithmetic among Python's own numbers is computed, as Python would do it.
// Operands of different types are converted to one: a literal takes the other operand's type, a
// scalar is broadcast to a vector's lanes, integers and floats are widened, and an integer with a
// float is cast.
#include <math.h>

#include "script/parser.h"

static const Operand nothing = {NULL, false};

static Operand typed(Expr *e) {
  return (Operand){e, false};
}

static Operand literal(Expr *e) {
  return (Operand){e, true};
}

// ---- Types of literals

// The default type of a literal: int32 (int64 if it is large) or float32.
static Expr *settled(Parser *parser, Operand operand) {
  bool is_real = operand.e && operand.is_literal && operand.e->op == EXPR_FLOAT;
  return is_real ? expr_float(parser->context, DTYPE_FLOAT32, operand.e->as.f) : operand.e;
}

// Warns of a number that is infinite in its type.
static void check_finite(Parser *parser, const PyNode *node, double value, DType type) {
  double most = type.code == TYPE_BFLOAT ? 0x1.ffp127
                : type.bits == 16        ? 65520.0
                                         : 0x1.ffffffp127;
  if (type.bits < 16 || type.bits > 32 || isinf(value) || !(fabs(value) >= most)) return;
  diag_warning(parser->context, node->pos,
               "%g is beyond the numbers of %s, in which it is infinite", value,
               parser_type_name(parser, dtype_lanes(type, 1)));
}

static Expr *literal_as(Parser *parser, const PyNode *node, Expr *e, DType type) {
  int64_t value;
  if (dtype_is_float(type)) {
    double number = expr_as_int(e, &value) ? (double)value : e->as.f;
    check_finite(parser, node, number, type);
    return expr_float(parser->context, type, number);
  }
  if (!dtype_is_int(type) || !expr_as_int(e, &value)) return settled(parser, literal(e));
  if (dtype_holds(type, value)) return expr_int(parser->context, type, value);
  REPORT(parser, node, "%lld does not fit %s", (long long)value, parser_type_name(parser, type));
  return NULL;
}

Expr *operand_as(Parser *parser, const PyNode *node, Operand operand, DType type) {
  if (!operand.e || !operand.is_literal) return operand.e;
  return literal_as(parser, node, operand.e, dtype_lanes(type, 1));
}

Expr *parse_value(Parser *parser, const PyNode *node) {
  return settled(parser, parse_operand(parser, node));
}

Expr *parse_value_as(Parser *parser, const PyNode *node, DType type) {
  return operand_as(parser, node, parse_operand(parser, node), type);
}

// An integer is true when it is not zero.
Expr *parse_condition(Parser *parser, const PyNode *node) {
  Expr *e = parse_value(parser, node);
  if (!e || dtype_is_bool(e->type)) return e;
  DType type = dtype_lanes(DTYPE_BOOL, e->type.lanes);
  if (dtype_is_int(e->type)) return expr_raw(parser->context, EXPR_CAST, type, NULL, &e, 1);
  REPORT(parser, node, "expected a condition, saw a value of type %s",
         parser_type_name(parser, e->type));
  return NULL;
}

// ---- Operands of one type

static int rank_of_kind(DType type) {
  return type.code == TYPE_BOOL ? 0 : dtype_is_int(type) ? 1 : dtype_is_float(type) ? 2 : -1;
}

static bool widen(Parser *parser, Expr **e, DType type) {
  *e = expr_cast(parser->context, dtype_lanes(type, (*e)->type.lanes), *e);
  return true;
}

static bool same_lanes(Parser *parser, Expr **a, Expr **b) {
  int lanes = MAX_OF((*a)->type.lanes, (*b)->type.lanes);
  if ((*a)->type.lanes != lanes && (*a)->type.lanes != 1) return false;
  if ((*b)->type.lanes != lanes && (*b)->type.lanes != 1) return false;
  if ((*a)->type.lanes != lanes) *a = expr_broadcast(parser->context, *a, lanes);
  if ((*b)->type.lanes != lanes) *b = expr_broadcast(parser->context, *b, lanes);
  return true;
}

static bool same_element(Parser *parser, Expr **a, Expr **b) {
  DType x = (*a)->type, y = (*b)->type;
  if (x.code == y.code && x.bits == y.bits) return true;
  int kind_x = rank_of_kind(x), kind_y = rank_of_kind(y);
  if (kind_x == 1 && kind_y == 2) return widen(parser, a, y);
  if (kind_x == 2 && kind_y == 1) return widen(parser, b, x);
  if (x.code != y.code || kind_x < 1) return false;
  return x.bits < y.bits ? widen(parser, a, y) : widen(parser, b, x);
}

bool parse_same_type(Parser *parser, const PyNode *node, Operand *a, Operand *b) {
  if (!a->e || !b->e) return false;
  bool both = a->is_literal && b->is_literal;
  Expr *x = both ? settled(parser, *a) : operand_as(parser, node, *a, b->e->type);
  Expr *y = both ? settled(parser, *b) : operand_as(parser, node, *b, a->e->type);
  a->e = x;
  b->e = y;
  a->is_literal = b->is_literal = false;
  if (!a->e || !b->e) return false;
  if (same_element(parser, &a->e, &b->e) && same_lanes(parser, &a->e, &b->e)) return true;
  return REPORT(parser, node, "operands of types %s and %s cannot be combined; cast one",
                parser_type_name(parser, a->e->type), parser_type_name(parser, b->e->type));
}

// ---- Operators

static double number_of(const Expr *e) {
  return e->op == EXPR_INT ? (double)e->as.i : e->as.f;
}

static Operand literal_quotient(Parser *parser, Operand a, Operand b) {
  return literal(expr_float(parser->context, DTYPE_FLOAT64, number_of(a.e) / number_of(b.e)));
}

static bool literal_arithmetic(ExprOp op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
  case EXPR_ADD: return add_fits(a, b, out);
  case EXPR_SUB: return b != INT64_MIN && add_fits(a, -b, out);
  case EXPR_MUL: return mul_fits(a, b, out);
  case EXPR_FLOOR_DIV: *out = floor_div(a, b); return !(a == INT64_MIN && b == -1);
  case EXPR_FLOOR_MOD: *out = floor_mod(a, b); return true;
  case EXPR_TRUNC_DIV: return b == -1 ? sub_fits(0, a, out) : (*out = a / b, true);
  case EXPR_TRUNC_MOD: *out = b == -1 ? 0 : a % b; return true;
  case EXPR_MIN: *out = MIN_OF(a, b); return true;
  case EXPR_MAX: *out = MAX_OF(a, b); return true;
  default: return false;
  }
}

// Computes an operation on literals, since Python would compute it before any tensor program sees
// it.
static Operand fold_literals(Parser *parser, const PyNode *node, ExprOp op, Operand a, Operand b) {
  bool divides = op == EXPR_DIV || op == EXPR_FLOOR_DIV || op == EXPR_FLOOR_MOD ||
                 op == EXPR_TRUNC_DIV || op == EXPR_TRUNC_MOD;
  if (divides && number_of(b.e) == 0) {
    REPORT(parser, node, "division by zero");
    return nothing;
  }
  if (op == EXPR_DIV) return literal_quotient(parser, a, b);
  int64_t value;
  if (a.e->op != EXPR_INT || b.e->op != EXPR_INT) {
    Expr *x = expr_float(parser->context, DTYPE_FLOAT64, number_of(a.e));
    Expr *y = expr_float(parser->context, DTYPE_FLOAT64, number_of(b.e));
    double difference = x->as.f - y->as.f;
    if (isnan(difference)) difference = NAN; // inf - inf, as which NaN is captured, has any sign
    Expr *e = op == EXPR_SUB ? expr_float(parser->context, DTYPE_FLOAT64, difference)
                             : expr_binary(parser->context, op, x, y);
    return (Operand){e, e->op == EXPR_FLOAT};
  }
  if (literal_arithmetic(op, a.e->as.i, b.e->as.i, &value))
    return literal(expr_index(parser->context, value));
  REPORT(parser, node, "this does not fit into 64 bits");
  return nothing;
}

static bool operands_allowed(Parser *parser, const PyNode *node, ExprOp op, DType type) {
  const OpInfo *info = &op_table[op];
  const char *name = parser_type_name(parser, type);
  if (type.code == TYPE_HANDLE && info->class == OP_COMPARE) return true;
  if (info->class == OP_LOGIC && !dtype_is_bool(type))
    return REPORT(parser, node, "'%s' needs conditions, saw %s", info->spelling, name);
  if (op == EXPR_DIV && !dtype_is_float(type))
    return REPORT(parser, node, "'/' on %s is ambiguous: write '//' or T.truncdiv", name);
  if (info->flags & OP_FLOATS && !dtype_is_float(type))
    return REPORT(parser, node, "'%s' needs a floating-point value, saw %s", info->spelling, name);
  if (info->flags & OP_INTS && !dtype_is_int(type) && !dtype_is_bool(type))
    return REPORT(parser, node, "'%s' needs an integer, saw %s", info->spelling, name);
  if (rank_of_kind(type) < 0)
    return REPORT(parser, node, "'%s' cannot take a value of type %s", info->spelling, name);
  return true;
}

Operand parse_binary(Parser *parser, const PyNode *node, ExprOp op, Operand a, Operand b) {
  if (!a.e || !b.e) return nothing;
  bool arithmetic = op_table[op].class == OP_ARITH, is_plain = b.is_literal;
  if (arithmetic && a.is_literal && b.is_literal) return fold_literals(parser, node, op, a, b);
  if (!parse_same_type(parser, node, &a, &b)) return nothing;
  if (!operands_allowed(parser, node, op, a.e->type)) return nothing;
  bool divides =
      op == EXPR_FLOOR_DIV || op == EXPR_FLOOR_MOD || op == EXPR_TRUNC_DIV || op == EXPR_TRUNC_MOD;
  // Passes may leave a typed zero, T.int32(0), as a divisor, which is an error where it is reached.
  if (divides && dtype_is_int(a.e->type) && is_plain && expr_is_int(b.e, 0)) {
    REPORT(parser, node, "division by zero");
    return nothing;
  }
  DType type = expr_result_type(op, a.e->type);
  return typed(expr_raw(parser->context, op, type, NULL, (Expr *[]){a.e, b.e}, 2));
}

Operand parse_unary(Parser *parser, const PyNode *node, ExprOp op, Operand a) {
  a.e = settled(parser, a);
  if (!a.e || !operands_allowed(parser, node, op, a.e->type)) return nothing;
  return typed(expr_raw(parser->context, op, expr_result_type(op, a.e->type), NULL, &a.e, 1));
}

static Operand negated(Parser *parser, const PyNode *node, Operand a) {
  if (!a.e) return nothing;
  if (a.is_literal && a.e->op == EXPR_FLOAT)
    return literal(expr_float(parser->context, a.e->type, -a.e->as.f));
  Operand minus_one = literal(expr_index(parser->context, -1));
  return parse_binary(parser, node, EXPR_MUL, a, minus_one);
}

static Operand unary_operator(Parser *parser, const PyNode *node) {
  const PyNode *operand = node->items[0];
  bool is_minus = !strcmp(node->text, "-");
  if (is_minus && operand->kind == PY_INT && operand->text && operand->i == INT64_MIN)
    return literal(expr_int(parser->context, DTYPE_INT64, INT64_MIN));
  Operand a = parse_operand(parser, operand);
  if (is_minus) return negated(parser, node, a);
  if (!strcmp(node->text, "+")) return a;
  bool is_not = !strcmp(node->text, "not");
  return parse_unary(parser, node, is_not ? EXPR_NOT : EXPR_BIT_NOT, a);
}

static ExprOp binary_op(const char *spelling) {
  static const struct {
    const char *spelling;
    ExprOp op;
  } others[] = {{"&", EXPR_BIT_AND},     {"|", EXPR_BIT_OR},       {"^", EXPR_BIT_XOR},
                {"<<", EXPR_SHIFT_LEFT}, {">>", EXPR_SHIFT_RIGHT}, {"**", EXPR_POW}};
  for (int i = 0; i < COUNT_OF(others); i++)
    if (!strcmp(others[i].spelling, spelling)) return others[i].op;
  for (int op = 0; op < EXPR_OP_COUNT; op++)
    if (op_table[op].flags & OP_INFIX && !strcmp(op_table[op].spelling, spelling))
      return (ExprOp)op;
  return EXPR_OP_COUNT;
}

static bool is_type_of(const PyNode *node) {
  return node->kind == PY_ATTRIBUTE && !strcmp(node->text, "dtype");
}

// A[0].dtype == "float32" is a constant.
static Operand compare_types(Parser *parser, const PyNode *node) {
  DType a, b;
  if (!parse_dtype(parser, node->items[0], &a) || !parse_dtype(parser, node->items[1], &b))
    return nothing;
  return (Operand){expr_bool(parser->context, dtype_equal(a, b) == !strcmp(node->text, "=="))};
}

static bool power_fits(int64_t base, int64_t exponent, int64_t *out) {
  int64_t power = 1;
  if (exponent < 0 || exponent > 64) return false;
  for (int64_t i = 0; i < exponent; i++)
    if (!mul_fits(power, base, &power)) return false;
  *out = power;
  return true;
}

// 2**31 and 1 << 31 are numbers of Python. False for other operators and operands, and where the
// result does not fit int64.
static bool literal_operator(Parser *parser, ExprOp op, Operand a, Operand b, Operand *result) {
  int64_t x, y, value;
  if (!a.e || !b.e || !a.is_literal || !b.is_literal) return false;
  if (!expr_as_int(a.e, &x) || !expr_as_int(b.e, &y)) return false;
  bool shifts = op == EXPR_SHIFT_LEFT || op == EXPR_SHIFT_RIGHT;
  if (shifts && (y < 0 || y > 62)) return false;
  if (op == EXPR_BIT_AND || op == EXPR_BIT_OR)
    value = op == EXPR_BIT_AND ? x & y : x | y;
  else if (op == EXPR_BIT_XOR)
    value = x ^ y;
  else if (op == EXPR_SHIFT_RIGHT)
    value = floor_div(x, (int64_t)1 << y);
  else if (op == EXPR_SHIFT_LEFT ? !mul_fits(x, (int64_t)1 << y, &value)
                                 : op != EXPR_POW || !power_fits(x, y, &value))
    return false;
  *result = literal(expr_index(parser->context, value));
  return true;
}

static Operand binary_operator(Parser *parser, const PyNode *node) {
  bool equals = !strcmp(node->text, "==") || !strcmp(node->text, "!=");
  if (equals && (is_type_of(node->items[0]) || is_type_of(node->items[1])))
    return compare_types(parser, node);
  ExprOp op = binary_op(node->text);
  if (op == EXPR_OP_COUNT) {
    REPORT(parser, node, "the operator '%s' is not supported", node->text);
    return nothing;
  }
  Operand a = parse_operand(parser, node->items[0]), b = parse_operand(parser, node->items[1]);
  Operand number;
  if (literal_operator(parser, op, a, b, &number)) return number;
  return parse_binary(parser, node, op, a, b);
}

// ---- Leaves

static Operand integer(Parser *parser, const PyNode *node) {
  if (!node->text) return literal(expr_index(parser->context, node->i));
  REPORT(parser, node, "this integer does not fit int64 (write T.uint64(%s))", node->text);
  return nothing;
}

// "A[0, 0]"
static const char *element_example(Parser *parser, const Buffer *buffer) {
  Text text = text_new(parser->arena);
  text_printf(&text, "%s[", buffer->name);
  for (int d = 0; d < buffer->rank; d++) text_puts(&text, d ? ", 0" : "0");
  text_puts(&text, buffer->rank ? "]" : "()]");
  return text_string(&text);
}

// The number of a graph function that a name stands for: C = T.int64(16).
static Expr *number_named(const Binding *binding) {
  const GraphTerm *term = binding->kind == BOUND_VALUE ? binding->value->term : NULL;
  return term && term->kind == TERM_EXPR ? term->e : NULL;
}

static Operand name(Parser *parser, const PyNode *node) {
  Binding *binding = parser_lookup(parser, node);
  if (!binding || binding->kind == BOUND_NOTHING) return nothing;
  if (number_named(binding)) return typed(number_named(binding));
  if (binding->kind == BOUND_EXPR) return (Operand){binding->expr, binding->is_literal};
  Expr *only = binding->kind == BOUND_BUFFER ? parse_only_element(parser, binding->buffer) : NULL;
  if (only) return typed(only);
  if (binding->kind == BOUND_BUFFER)
    REPORT(parser, node, "expected a value, saw the buffer '%s'\nwrite one of its elements, %s",
           node->text, element_example(parser, binding->buffer));
  else
    REPORT(parser, node, "expected a value, saw the %s '%s'",
           binding->kind == BOUND_VALUE ? "tensor" : "tuple", node->text);
  return nothing;
}

// A name that a report was about is no further fault.
static bool is_known(Parser *parser, const PyNode *name) {
  const Binding *binding = parser_lookup(parser, name);
  return binding && binding->kind != BOUND_NOTHING;
}

static Operand attribute(Parser *parser, const PyNode *node) {
  Buffer *buffer = parser_buffer(parser, node->items[0]);
  if (buffer && !strcmp(node->text, "data")) {
    buffer->reads_data = true;
    return typed(buffer->data);
  }
  if (buffer && !strcmp(node->text, "elem_offset")) {
    buffer->holds_offset = true;
    return typed(buffer->offset);
  }
  if (buffer)
    REPORT(parser, node,
           "a buffer has no value '%s'; it has data, elem_offset, shape[i], strides[i]",
           node->text);
  else if (node->items[0]->kind == PY_NAME && !parser_member(parser, node, DIALECT_TIR) &&
           !is_known(parser, node->items[0]))
    return nothing;
  else if (py_dotted_name(parser->context, node))
    REPORT(parser, node, "expected a value, saw '%s'", py_dotted_name(parser->context, node));
  else
    REPORT(parser, node, "'%s' is not a field of a value", node->text);
  return nothing;
}

// A.shape[1], A.strides[0]
static Operand extent_of(Parser *parser, const PyNode *node, Buffer *buffer) {
  int64_t axis;
  bool is_shape = !strcmp(node->items[0]->text, "shape");
  if (node->count != 2 || !parse_int(parser, node->items[1], "the number of an axis", &axis))
    return nothing;
  if (axis < -buffer->rank || axis >= buffer->rank) {
    REPORT(parser, node, "%s has %d axes", buffer->name, buffer->rank);
    return nothing;
  }
  axis += axis < 0 ? buffer->rank : 0;
  if (is_shape) return typed(buffer->shape[axis]);
  Expr **strides = arena_array(parser->arena, Expr *, buffer->rank);
  buffer_stride_exprs(parser->context, buffer, strides);
  return typed(strides[axis]);
}

static Operand subscript(Parser *parser, const PyNode *node) {
  const PyNode *object = node->items[0];
  bool is_extent = object->kind == PY_ATTRIBUTE && parser_buffer(parser, object->items[0]) &&
                   (!strcmp(object->text, "shape") || !strcmp(object->text, "strides"));
  if (is_extent) return extent_of(parser, node, parser_buffer(parser, object->items[0]));
  Operand string = parse_metadata(parser, node);
  if (string.e) return string;
  Buffer *buffer = parse_buffer_name(parser, object);
  Expr **indices = buffer ? parse_indices(parser, node, buffer) : NULL;
  if (!indices) return nothing;
  return typed(expr_load(parser->context, buffer, indices, buffer->rank));
}

static Operand conditional(Parser *parser, const PyNode *node) {
  Expr *condition = parse_condition(parser, node->items[1]);
  Operand a = parse_operand(parser, node->items[0]), b = parse_operand(parser, node->items[2]);
  if (!condition || !parse_same_type(parser, node, &a, &b)) return nothing;
  Expr *args[] = {condition, a.e, b.e};
  return typed(expr_raw(parser->context, EXPR_IF_THEN_ELSE, a.e->type, NULL, args, 3));
}

Operand parse_operand(Parser *parser, const PyNode *node) {
  switch (node->kind) {
  case PY_INT: return integer(parser, node);
  case PY_FLOAT: return literal(expr_float(parser->context, DTYPE_FLOAT64, node->f));
  case PY_BOOL: return typed(expr_bool(parser->context, node->i));
  case PY_STRING: return typed(expr_string(parser->context, node->text));
  case PY_NAME: return name(parser, node);
  case PY_ATTRIBUTE: return attribute(parser, node);
  case PY_SUBSCRIPT: return subscript(parser, node);
  case PY_CALL: return parse_call(parser, node);
  case PY_UNARY: return unary_operator(parser, node);
  case PY_BINARY: return binary_operator(parser, node);
  case PY_CONDITIONAL: return conditional(parser, node);
  default: break;
  }
  if (node->kind == PY_TUPLE && node->text)
    REPORT(parser, node,
           "'%s' stands for %d variables, saw it as a value\n"
           "give each of them a name, or take one of them, %s[0]",
           node->text, node->count, node->text);
  else
    REPORT(parser, node, "expected a value, saw %s", py_kind_name(node->kind));
  return nothing;
}

// ---- Arguments of calls

bool parse_int(Parser *parser, const PyNode *node, const char *what, int64_t *out) {
  Expr *e = parse_value(parser, node);
  if (!e) return false;
  if (e->op == EXPR_INT) return expr_as_int(e, out);
  return REPORT(parser, node, "expected %s, a constant integer", what);
}

Str parse_string(Parser *parser, const PyNode *node, const char *what) {
  if (node->kind == PY_STRING) return node->text;
  REPORT(parser, node, "expected %s as a string, saw %s", what, py_kind_name(node->kind));
  return NULL;
}

Str parse_thread_axis(Parser *parser, const PyNode *node) {
  Str thread = parse_string(parser, node, "a thread axis");
  const char *fault = thread ? thread_axis_fault(parser->context, thread) : NULL;
  if (!fault) return thread;
  REPORT(parser, node, "%s\nthe axes are blockIdx, threadIdx and vthread, each with .x, .y or .z",
         fault);
  return NULL;
}

static bool named_type(const char *s, DType *out) {
  static const struct {
    const char *name;
    DType type;
  } shorts[] = {
      {"float", {TYPE_FLOAT, 32, 1}},
      {"int", {TYPE_INT, 32, 1}},
      {"uint", {TYPE_UINT, 32, 1}},
      {"boolean", {TYPE_BOOL, 8, 1}},
  };
  for (int i = 0; i < COUNT_OF(shorts); i++) {
    if (strcmp(shorts[i].name, s)) continue;
    *out = shorts[i].type;
    return true;
  }
  return dtype_parse(s, strlen(s), out);
}

// A.dtype, or A[0].dtype.
static bool parse_type_of(Parser *parser, const PyNode *node, DType *out) {
  Buffer *buffer = parser_buffer(parser, node->items[0]);
  Expr *e = buffer ? NULL : parse_value(parser, node->items[0]);
  if (buffer || e) *out = buffer ? buffer->type : e->type;
  return buffer || e;
}

bool parse_dtype(Parser *parser, const PyNode *node, DType *out) {
  if (is_type_of(node)) return parse_type_of(parser, node, out);
  Str member = parser_member(parser, node, DIALECT_TIR);
  if (member && named_type(member, out)) return true;
  bool is_type = node->kind == PY_ATTRIBUTE && !strcmp(node->text, "ty"); // T.handle().ty
  Str called = is_type ? parser_called(parser, node->items[0], DIALECT_TIR) : NULL;
  if (called && named_type(called, out)) return true;
  if (member && !strcmp(member, "Buffer"))
    return REPORT(parser, node, "T.Buffer needs a shape: T.Buffer((16, 32), \"float32\")");
  if (member) return REPORT(parser, node, "there is no type T.%s", member);
  bool is_bare = node->kind == PY_NAME && named_type(node->text, out);
  if (node->kind != PY_STRING)
    return REPORT(parser, node, "expected an element type (\"float32\" or T.float32), saw %s%s",
                  py_kind_name(node->kind), is_bare ? "\nwrite it in quotes" : "");
  Str name = node->text;
  if (named_type(name, out)) return true;
  return REPORT(parser, node, "'%s' is not an element type", name);
}
