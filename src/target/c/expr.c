// SPDX-License-Identifier: Apache-2.0
// Writes expressions as C, by a table with a row for each operation. An expression that occurs more
// than once in a statement gets a name before the statement; a value that is computed only under a
// condition gets an `if` when it needs such names. Integers wrap, so arithmetic on them goes
// through unsigned types, except in indices, which stay inside their buffers.
#include "ir/intrinsic.h"
#include "target/c/emit.h"

#include "interp/interp.h"

#include <math.h>

typedef struct OperatorRow {
  const char *spelling;
  CPrecedence precedence;
  bool wraps;                           // can leave the range of integers
  CValue (*emit)(CEmit *emit, Expr *e); // writes it in place of the columns above
} OperatorRow;

// ---- Values ------------------------------------------------------------------------------------

CValue c_value(CPrecedence precedence, const char *text) {
  return (CValue){text, precedence};
}

CValue c_format(CEmit *emit, CPrecedence precedence, const char *format, ...) {
  va_list args;
  va_start(args, format);
  CValue value = {arena_vprintf(emit->arena, format, args), precedence};
  va_end(args);
  return value;
}

const char *c_operand(CEmit *emit, CValue value, CPrecedence at_least) {
  if (value.precedence >= at_least) return value.text;
  return arena_printf(emit->arena, "(%s)", value.text);
}

const char *c_hold(CEmit *emit, CValue value, DType type) {
  if (value.precedence == C_NAME) return value.text;
  const char *name = c_name(emit, "t");
  c_line(emit, "const %s %s = %s;", c_type(emit->module, type), name, value.text);
  return name;
}

int c_mark(const CEmit *emit) {
  return emit->computed.count;
}

void c_forget(CEmit *emit, int mark) {
  for (int i = mark; i < emit->computed.count; i++)
    map_put(&emit->values, emit->computed.items[i], NULL);
  emit->computed.count = mark;
}

void c_count_uses(CEmit *emit, Expr *e) {
  intptr_t count = (intptr_t)map_find(&emit->uses, e);
  map_put(&emit->uses, e, count + 1);
  for (int i = 0; i < e->count && !count; i++) c_count_uses(emit, e->args[i]);
}

static int size_of(const Expr *e, int limit) {
  int size = 1;
  for (int i = 0; i < e->count && size < limit; i++) size += size_of(e->args[i], limit - size);
  return size;
}

static bool deserves_name(CEmit *emit, const Expr *e) {
  if (!e->count || (intptr_t)map_find(&emit->uses, e) < 2) return false;
  if (e->op == EXPR_TUPLE || e->op == EXPR_ADDRESS_OF) return false;
  if (e->op == EXPR_BROADCAST && !e->args[0]->count) return false;
  if (e->op == EXPR_LOAD && map_find(&emit->registers, e->as.buffer->data)) return false;
  return e->type.lanes > 1 || dtype_is_float(e->type) || size_of(e, 6) > 5;
}

// ---- Leaves ------------------------------------------------------------------------------------

static CValue int_constant(CEmit *emit, DType type, int64_t value) {
  if (dtype_is_bool(type)) return c_value(C_NAME, value ? "1" : "0");
  if (type.code == TYPE_UINT && type.bits == 64)
    return c_format(emit, C_NAME, "UINT64_C(%llu)", (unsigned long long)value);
  if (type.code == TYPE_UINT && type.bits == 32)
    return c_format(emit, C_NAME, "%lluu", (unsigned long long)(uint32_t)value);
  if (value == INT64_MIN) return c_value(C_NAME, "INT64_MIN");
  if (value == INT32_MIN && type.bits == 32) return c_value(C_NAME, "INT32_MIN");
  if (type.bits == 64 && (value > INT32_MAX || value < INT32_MIN))
    return c_format(emit, value < 0 ? C_UNARY : C_NAME, "%s%sINT64_C(%lld)", "",
                    value < 0 ? "-" : "", (long long)(value < 0 ? -value : value));
  return c_format(emit, value < 0 ? C_UNARY : C_NAME, "%lld", (long long)value);
}

static CValue float_constant(CEmit *emit, DType type, double value) {
  const char *end = type.bits == 64 ? "" : "f";
  const CSpelling *spelling = emit->module->spelling;
  if (!isfinite(value) && spelling->special) return spelling->special(emit, type, value);
  if (isnan(value)) return c_format(emit, C_POSTFIX, "__builtin_nan%s(\"\")", end);
  if (isinf(value))
    return c_format(emit, C_POSTFIX, "%s__builtin_inf%s()", value < 0 ? "-" : "", end);
  const char *digits = arena_printf(emit->arena, type.bits == 64 ? "%.17g" : "%.9g", value);
  const char *point = strpbrk(digits, ".e") ? "" : ".0";
  return c_format(emit, *digits == '-' ? C_UNARY : C_NAME, "%s%s%s", digits, point, end);
}

// Small floats are represented by their bits.
static CValue small_constant(CEmit *emit, DType type, double value) {
  DType bits = c_bits_type(type);
  return int_constant(emit, bits, number_wrap(bits, (int64_t)number_bits(type, value)));
}

static CValue emit_constant(CEmit *emit, Expr *e) {
  DType type = dtype_lanes(e->type, 1);
  bool small = dtype_is_float(type) && type.bits < 32;
  CValue value = small               ? small_constant(emit, type, e->as.f)
                 : e->op == EXPR_INT ? int_constant(emit, type, e->as.i)
                                     : float_constant(emit, type, e->as.f);
  return e->type.lanes > 1 ? c_spread(emit, value, e->type) : value;
}

static CValue emit_var(CEmit *emit, Expr *e) {
  const char *name = map_find(&emit->vars, e);
  if (!name) bug(emit->context, "%s has no value in lowered code", e->as.var->name);
  return c_value(C_NAME, name);
}

// ---- Casts -------------------------------------------------------------------------------------

CValue c_wrapped(CEmit *emit, DType type, CValue value) {
  if (!dtype_is_int(type) || type.bits >= 32) return value;
  const char *name = c_type(emit->module, type);
  if (type.bits >= 8) {
    if (type.lanes > 1) return value;
    return c_format(emit, C_UNARY, "(%s)%s", name, c_operand(emit, value, C_UNARY));
  }
  int shift = 8 - type.bits; // moves the sign bit of an int4 to that of the byte
  return c_format(emit, C_SHIFT, "(%s)(%s << %d) >> %d", name, c_operand(emit, value, C_POSTFIX),
                  shift, shift);
}

static CValue cast_scalar(CEmit *emit, DType from, DType to, CValue value) {
  if (dtype_is_bool(to))
    return c_format(emit, C_EQUAL, "%s != 0", c_operand(emit, value, C_RELATION));
  if (emit->module->spelling->convert && dtype_is_float(from) && dtype_is_int(to))
    return emit->module->spelling->convert(emit, from, to, value);
  CValue cast =
      c_format(emit, C_UNARY, "(%s)%s", c_type(emit->module, to), c_operand(emit, value, C_UNARY));
  (void)from;
  return to.bits < 8 ? c_wrapped(emit, to, cast) : cast;
}

static CValue emit_cast(CEmit *emit, Expr *e) {
  DType from = e->args[0]->type, to = e->type;
  CValue value = c_expr(emit, e->args[0]);
  if (from.code == to.code && from.bits == to.bits) return value;
  if (to.lanes == 1) return cast_scalar(emit, from, to, value);
  if (dtype_is_bool(to)) {
    // OpenCL compares lanes of fewer bits than int with a vector only
    CValue zero = c_value(C_NAME, "0");
    if (from.bits < 32) zero = c_spread(emit, zero, from);
    value = c_format(emit, C_UNARY, "(%s)(%s != %s)", c_type(emit->module, c_bits_type(from)),
                     c_operand(emit, value, C_RELATION), zero.text);
    return c_convert(emit, c_bits_type(c_value_type(from)), c_mask_type(to), value);
  }
  if (dtype_is_bool(from)) {
    value = c_format(emit, C_UNARY, "-%s", c_operand(emit, value, C_POSTFIX));
    return c_convert(emit, c_mask_type(from), to, value);
  }
  return c_wrapped(emit, to, c_convert(emit, from, to, value));
}

static CValue emit_reinterpret(CEmit *emit, Expr *e) {
  const char *from = c_type(emit->module, e->args[0]->type), *to = c_type(emit->module, e->type);
  CValue value = c_expr(emit, e->args[0]);
  if (!strcmp(from, to)) return value;
  const CSpelling *spelling = emit->module->spelling;
  if (spelling->reinterpret) return spelling->reinterpret(emit, e->type, value);
  bool floats =
      dtype_is_float(c_value_type(e->type)) || dtype_is_float(c_value_type(e->args[0]->type));
  if (e->type.lanes > 1 || !floats)
    return c_format(emit, C_UNARY, "(%s)%s", to, c_operand(emit, value, C_UNARY));
  return c_format(emit, C_POSTFIX, "((union { %s from; %s to; }){%s}).to", from, to, value.text);
}

// ---- Arguments of TVM's calling convention -----------------------------------------------------

static CValue emit_intrinsic(CEmit *emit, Expr *e) {
  int64_t offset;
  CValue base = e->count ? c_expr(emit, e->args[0]) : c_value(C_NAME, "");
  const char *pointer = c_operand(emit, base, C_UNARY);
  if (expr_is_null_test(e)) return c_format(emit, C_UNARY, "!%s", pointer);
  if (expr_is_moved_pointer(e))
    return c_format(emit, C_UNARY, "(void *)((char *)%s + %s)", pointer,
                    c_operand(emit, c_expr(emit, e->args[1]), C_PRODUCT));
  if (!expr_field_offset(e, &offset))
    bug(emit->context, "the intrinsic '%s' was not legalized", e->as.s);
  const char *type = c_type(emit->module, e->type);
  const char *space = type[strlen(type) - 1] == '*' ? "" : " ";
  return c_format(emit, C_UNARY, "*(%s%s*)((char *)%s + %lld)", type, space, pointer,
                  (long long)offset);
}

// ---- Arithmetic --------------------------------------------------------------------------------

static CValue emit_extreme(CEmit *emit, Expr *e) {
  bool least = e->op == EXPR_MIN;
  CValue a = c_expr(emit, e->args[0]), b = c_expr(emit, e->args[1]);
  if (e->type.lanes > 1) return c_vector_extreme(emit, e->type, least, a, b);
  const char *x = c_hold(emit, a, e->type), *y = c_hold(emit, b, e->type);
  return c_format(emit, C_CONDITIONAL, "%s %s %s ? %s : %s", y, least ? "<" : ">", x, y, x);
}

static CValue emit_fma(CEmit *emit, Expr *e) {
  CValue a = c_expr(emit, e->args[0]), b = c_expr(emit, e->args[1]), c = c_expr(emit, e->args[2]);
  bool fused = emit->module->features.fma;
  if (!fused) emit->module->report->counts[TARGET_UNFUSED_FMA]++;
  const CSpelling *spelling = emit->module->spelling;
  if (spelling->call && (e->type.lanes == 1 || spelling->calls_vectors))
    return spelling->call(emit, e->type, "fma",
                          arena_printf(emit->arena, "%s, %s, %s", a.text, b.text, c.text));
  if (e->type.lanes == 1 && fused)
    return c_format(emit, C_POSTFIX, "__builtin_fma%s(%s, %s, %s)", e->type.bits == 64 ? "" : "f",
                    a.text, b.text, c.text);
  return c_format(emit, C_SUM, "%s * %s + %s", c_operand(emit, a, C_UNARY),
                  c_operand(emit, b, C_UNARY), c_operand(emit, c, C_UNARY));
}

// Calls a function of the C library, lane by lane.
static CValue by_lane(CEmit *emit, Expr *e, const char *function) {
  CValue a = c_expr(emit, e->args[0]);
  const CSpelling *spelling = emit->module->spelling;
  if (spelling->call && (e->type.lanes == 1 || spelling->calls_vectors))
    return spelling->call(emit, e->type, function + strlen("__builtin_"), a.text);
  const char *end = e->type.bits == 64 ? "" : "f";
  if (e->type.lanes == 1) return c_format(emit, C_POSTFIX, "%s%s(%s)", function, end, a.text);
  const char *x = c_hold(emit, a, e->type);
  const char **lanes = arena_array(emit->arena, const char *, e->type.lanes);
  for (int i = 0; i < e->type.lanes; i++)
    lanes[i] = arena_printf(emit->arena, "%s%s(%s)", function, end, c_lane(emit, x, i));
  return c_list_of_lanes(emit, c_type(emit->module, e->type), lanes, e->type.lanes);
}

static CValue emit_sqrt(CEmit *emit, Expr *e) {
  return by_lane(emit, e, "__builtin_sqrt");
}

static CValue emit_floor(CEmit *emit, Expr *e) {
  return by_lane(emit, e, "__builtin_floor");
}

static CValue emit_ceil(CEmit *emit, Expr *e) {
  return by_lane(emit, e, "__builtin_ceil");
}

static CValue emit_trunc(CEmit *emit, Expr *e) {
  return by_lane(emit, e, "__builtin_trunc");
}

static CValue emit_round(CEmit *emit, Expr *e) {
  return by_lane(emit, e, "__builtin_nearbyint");
}

static CValue emit_abs(CEmit *emit, Expr *e) {
  if (e->type.lanes == 1 || emit->module->spelling->calls_vectors)
    return by_lane(emit, e, "__builtin_fabs");
  const char *bits = c_type(emit->module, c_bits_type(e->type));
  return c_format(emit, C_UNARY, "(%s)((%s)%s & %s)", c_type(emit->module, e->type), bits,
                  c_operand(emit, c_expr(emit, e->args[0]), C_UNARY),
                  e->type.bits == 64 ? "INT64_MAX" : "INT32_MAX");
}

static CValue emit_not(CEmit *emit, Expr *e) {
  bool is_scalar_bool = dtype_is_bool(e->type) && e->type.lanes == 1;
  CValue value = c_expr(emit, e->args[0]);
  value = c_format(emit, C_UNARY, "%s%s", is_scalar_bool ? "!" : "~",
                   c_operand(emit, value, C_POSTFIX));
  return c_wrapped(emit, e->type, value);
}

// ---- Choice ------------------------------------------------------------------------------------

typedef struct Branch { // a value that is computed only under a condition
  CValue value;
  Text lines;
} Branch;

// The value as a side of ?:, both of which have one type. A vector in memory has another one.
static CValue side_of_choice(CEmit *emit, Expr *e) {
  CValue value = c_expr(emit, e);
  if (e->op != EXPR_LOAD || e->type.lanes == 1) return value;
  return c_format(emit, C_UNARY, "(%s)%s", c_type(emit->module, e->type),
                  c_operand(emit, value, C_UNARY));
}

static Branch branch_of(CEmit *emit, Expr *e) {
  Text outer = emit->body;
  int mark = c_mark(emit);
  emit->body = text_new(emit->arena);
  emit->depth++;
  Branch branch = {.value = side_of_choice(emit, e)};
  emit->depth--;
  c_forget(emit, mark);
  branch.lines = emit->body;
  emit->body = outer;
  return branch;
}

static void branch_lines(CEmit *emit, const Branch *branch, const char *name) {
  if (branch->lines.size) text_puts(&emit->body, branch->lines.data);
  c_line(emit, "  %s = %s;", name, branch->value.text);
}

static CValue choose(CEmit *emit, Expr *condition, DType type, const Branch *yes,
                     const Branch *no) {
  CValue test = c_expr(emit, condition);
  if (!yes->lines.size && !no->lines.size)
    return c_format(emit, C_CONDITIONAL, "%s ? %s : %s", c_operand(emit, test, C_EQUAL),
                    c_operand(emit, yes->value, C_OR), c_operand(emit, no->value, C_OR));
  const char *name = c_name(emit, "t");
  c_line(emit, "%s %s;", c_type(emit->module, type), name);
  c_line(emit, "if (%s) {", test.text);
  branch_lines(emit, yes, name);
  c_line(emit, "} else {");
  branch_lines(emit, no, name);
  c_line(emit, "}");
  return c_value(C_NAME, name);
}

static CValue emit_if_then_else(CEmit *emit, Expr *e) {
  Branch yes = branch_of(emit, e->args[1]), no = branch_of(emit, e->args[2]);
  return choose(emit, e->args[0], e->type, &yes, &no);
}

// Both values are computed, before the choice where they are used elsewhere too.
static CValue emit_select(CEmit *emit, Expr *e) {
  if (e->args[0]->type.lanes == 1) {
    Branch yes = {.value = side_of_choice(emit, e->args[1])};
    Branch no = {.value = side_of_choice(emit, e->args[2])};
    return choose(emit, e->args[0], e->type, &yes, &no);
  }
  const char *mask = c_hold(emit, c_expr(emit, e->args[0]), e->args[0]->type);
  CValue a = c_expr(emit, e->args[1]), b = c_expr(emit, e->args[2]);
  return c_vector_select(emit, e->type, mask, a, b);
}

static CValue emit_logic(CEmit *emit, Expr *e) {
  bool is_and = e->op == EXPR_AND;
  if (e->type.lanes > 1) {
    CValue a = c_expr(emit, e->args[0]), b = c_expr(emit, e->args[1]);
    return c_format(emit, is_and ? C_BIT_AND : C_BIT_OR, "%s %s %s", c_operand(emit, a, C_UNARY),
                    is_and ? "&" : "|", c_operand(emit, b, C_UNARY));
  }
  Branch second = branch_of(emit, e->args[1]);
  if (second.lines.size) {
    Branch fixed = {.value = c_value(C_NAME, is_and ? "0" : "1")};
    return is_and ? choose(emit, e->args[0], e->type, &second, &fixed)
                  : choose(emit, e->args[0], e->type, &fixed, &second);
  }
  CValue first = c_expr(emit, e->args[0]);
  CPrecedence own = is_and ? C_AND : C_OR;
  return c_format(emit, own, "%s %s %s",
                  c_operand(emit, first, first.precedence == own ? own : C_EQUAL),
                  is_and ? "&&" : "||", c_operand(emit, second.value, C_EQUAL));
}

static CValue emit_let(CEmit *emit, Expr *e) {
  Expr *var = e->args[0];
  bool in_index = emit->in_index;
  emit->in_index = false;
  CValue value = c_expr(emit, e->args[1]);
  emit->in_index = in_index;
  const char *name = c_name(emit, var->as.var->name);
  c_line(emit, "const %s %s = %s;", c_type(emit->module, var->type), name, value.text);
  map_put(&emit->vars, var, name);
  return c_expr(emit, e->args[2]);
}

// ---- Calls and memory --------------------------------------------------------------------------

static CValue emit_prefetch(CEmit *emit, Expr *e) {
  int64_t write = 0, level = 1;
  if (emit->module->spelling->call) return c_value(C_NAME, "0"); // a hint that is left out
  expr_as_int(e->args[1], &write);
  expr_as_int(e->args[2], &level);
  return c_format(emit, C_POSTFIX, "__builtin_prefetch(%s, %d, %d)", c_text(emit, e->args[0]),
                  write != 0, 4 - (int)level);
}

static CValue emit_string(CEmit *emit, Expr *e) {
  return c_value(C_NAME, c_quoted(emit->arena, e->as.s));
}

static CValue emit_call(CEmit *emit, Expr *e) {
  CModule *module = emit->module;
  const CSpelling *spelling = module->spelling;
  Text given = text_new(emit->arena), wanted = text_new(emit->arena);
  for (int i = 0; i < e->count; i++) {
    text_printf(&given, "%s%s", i ? ", " : "", c_text(emit, e->args[i]));
    text_printf(&wanted, "%s%s", i ? ", " : "",
                e->args[i]->op == EXPR_STRING ? "const char *" : c_type(module, e->args[i]->type));
  }
  if (spelling->call) return spelling->call(emit, e->type, e->as.s, text_string(&given));
  if (c_define(module, e->as.s))
    text_printf(&module->declarations, "extern %s %s(%s);\n", c_type(module, e->type), e->as.s,
                e->count ? text_string(&wanted) : "void");
  return c_format(emit, C_POSTFIX, "%s(%s)", e->as.s, text_string(&given));
}

static CValue emit_address_of(CEmit *emit, Expr *e) {
  return c_address(emit, e->args[0]);
}

// ---- Operators ---------------------------------------------------------------------------------

static const OperatorRow rows[EXPR_OP_COUNT] = {
    [EXPR_INT] = {.emit = emit_constant},
    [EXPR_FLOAT] = {.emit = emit_constant},
    [EXPR_VAR] = {.emit = emit_var},
    [EXPR_CAST] = {.emit = emit_cast},
    [EXPR_REINTERPRET] = {.emit = emit_reinterpret},
    [EXPR_ADD] = {"+", C_SUM, true},
    [EXPR_SUB] = {"-", C_SUM, true},
    [EXPR_MUL] = {"*", C_PRODUCT, true},
    [EXPR_DIV] = {"/", C_PRODUCT, false},
    [EXPR_TRUNC_DIV] = {"/", C_PRODUCT, false},
    [EXPR_TRUNC_MOD] = {"%", C_PRODUCT, false},
    [EXPR_MIN] = {.emit = emit_extreme},
    [EXPR_MAX] = {.emit = emit_extreme},
    [EXPR_EQ] = {"==", C_EQUAL, false},
    [EXPR_NE] = {"!=", C_EQUAL, false},
    [EXPR_LT] = {"<", C_RELATION, false},
    [EXPR_LE] = {"<=", C_RELATION, false},
    [EXPR_GT] = {">", C_RELATION, false},
    [EXPR_GE] = {">=", C_RELATION, false},
    [EXPR_AND] = {.emit = emit_logic},
    [EXPR_OR] = {.emit = emit_logic},
    [EXPR_NOT] = {.emit = emit_not},
    [EXPR_BIT_AND] = {"&", C_BIT_AND, false},
    [EXPR_BIT_OR] = {"|", C_BIT_OR, false},
    [EXPR_BIT_XOR] = {"^", C_BIT_XOR, false},
    [EXPR_BIT_NOT] = {.emit = emit_not},
    [EXPR_SHIFT_LEFT] = {"<<", C_SHIFT, true},
    [EXPR_SHIFT_RIGHT] = {">>", C_SHIFT, false},
    [EXPR_SELECT] = {.emit = emit_select},
    [EXPR_IF_THEN_ELSE] = {.emit = emit_if_then_else},
    [EXPR_LET] = {.emit = emit_let},
    [EXPR_LOAD] = {.emit = c_load},
    [EXPR_ADDRESS_OF] = {.emit = emit_address_of},
    [EXPR_RAMP] = {.emit = c_ramp},
    [EXPR_BROADCAST] = {.emit = c_broadcast},
    [EXPR_SHUFFLE] = {.emit = c_shuffle},
    [EXPR_VECTOR_SUM] = {.emit = c_reduction},
    [EXPR_VECTOR_MIN] = {.emit = c_reduction},
    [EXPR_VECTOR_MAX] = {.emit = c_reduction},
    [EXPR_STRING] = {.emit = emit_string},
    [EXPR_CALL] = {.emit = emit_call},
    [EXPR_CALL_PURE] = {.emit = emit_call},
    [EXPR_PREFETCH] = {.emit = emit_prefetch},
    [EXPR_INTRINSIC] = {.emit = emit_intrinsic},
    [EXPR_INTRINSIC_PURE] = {.emit = emit_intrinsic},
    [EXPR_FMA] = {.emit = emit_fma},
    [EXPR_ABS] = {.emit = emit_abs},
    [EXPR_SQRT] = {.emit = emit_sqrt},
    [EXPR_FLOOR] = {.emit = emit_floor},
    [EXPR_CEIL] = {.emit = emit_ceil},
    [EXPR_TRUNC] = {.emit = emit_trunc},
    [EXPR_ROUND] = {.emit = emit_round},
};

// Parentheses that C's grammar does not need and that avoid a warning of the compilers.
static const char *left_of(CEmit *emit, const OperatorRow *row, CValue value) {
  CPrecedence own = row->precedence;
  bool chain = (own == C_SUM || own == C_PRODUCT) && value.precedence == own;
  if (own == C_SUM && value.precedence == C_PRODUCT) chain = true;
  if ((own == C_RELATION || own == C_EQUAL) && value.precedence >= C_SUM) chain = true;
  return chain ? value.text : c_operand(emit, value, C_UNARY);
}

static const char *right_of(CEmit *emit, const OperatorRow *row, CValue value) {
  CPrecedence own = row->precedence;
  bool chain = own == C_SUM && value.precedence == C_PRODUCT;
  if ((own == C_RELATION || own == C_EQUAL) && value.precedence >= C_SUM) chain = true;
  return chain ? value.text : c_operand(emit, value, C_UNARY);
}

// A vector operation may take a scalar and a vector, and C broadcasts the scalar. OpenCL shifts
// no scalar by a vector.
static CValue side_of(CEmit *emit, const Expr *other, Expr *e) {
  bool plain = e->type.bits >= 32 && !dtype_is_bool(e->type) && e->type.code != TYPE_UINT;
  bool scalar = e->op == EXPR_BROADCAST && e->args[0]->type.lanes == 1 && plain;
  if (!scalar || other->op == EXPR_BROADCAST || map_find(&emit->values, e)) return c_expr(emit, e);
  CValue value = c_expr(emit, e->args[0]);
  if (e->type.bits == 32 || value.precedence != C_NAME || dtype_is_float(e->type)) return value;
  return c_format(emit, C_UNARY, "(int64_t)%s", value.text);
}

static CValue compare_lanes(CEmit *emit, Expr *e, const char *a, const char *spelling,
                            const char *b) {
  DType lanes = c_bits_type(c_value_type(e->args[0]->type));
  CValue value =
      c_format(emit, C_UNARY, "(%s)(%s %s %s)", c_type(emit->module, lanes), a, spelling, b);
  return c_convert(emit, lanes, c_mask_type(e->type), value);
}

static CValue through_unsigned(CEmit *emit, Expr *e, const OperatorRow *row, CValue a, CValue b) {
  DType type = {TYPE_UINT, e->type.bits, 1};
  const char *name = c_type(emit->module, type);
  CValue value =
      c_format(emit, row->precedence, "(%s)%s %s (%s)%s", name, c_operand(emit, a, C_UNARY),
               row->spelling, name, c_operand(emit, b, C_UNARY));
  return c_format(emit, C_UNARY, "(%s)(%s)", c_type(emit->module, e->type), value.text);
}

static CValue emit_operator(CEmit *emit, Expr *e) {
  const OperatorRow *row = &rows[e->op];
  bool vector = e->args[0]->type.lanes > 1;
  bool shifts = e->op == EXPR_SHIFT_LEFT || e->op == EXPR_SHIFT_RIGHT;
  CValue a = vector && !shifts ? side_of(emit, e->args[1], e->args[0]) : c_expr(emit, e->args[0]);
  CValue b = vector ? side_of(emit, e->args[0], e->args[1]) : c_expr(emit, e->args[1]);
  const char *left = left_of(emit, row, a), *right = right_of(emit, row, b);
  if (op_table[e->op].result == OP_BOOL && vector)
    return compare_lanes(emit, e, left, row->spelling, right);
  bool is_int = dtype_is_int(e->type);
  if (row->wraps && e->type.code == TYPE_INT && !vector && e->type.bits >= 32 && !emit->in_index)
    return through_unsigned(emit, e, row, a, b);
  bool less = e->op == EXPR_ADD && *right == '-' && !vector && b.precedence == C_UNARY;
  CValue value = c_format(emit, row->precedence, "%s %s %s", left, less ? "-" : row->spelling,
                          right + less); // x - 3, not x + -3
  return is_int && (row->wraps || e->type.bits >= 8) ? c_wrapped(emit, e->type, value) : value;
}

static CValue emit_new(CEmit *emit, Expr *e) {
  const OperatorRow *row = &rows[e->op];
  if (row->emit) return row->emit(emit, e);
  if (!row->spelling)
    bug(emit->context, "%s of %s was not legalized", op_table[e->op].name,
        dtype_name(emit->context, e->type));
  return emit_operator(emit, e);
}

CValue c_expr(CEmit *emit, Expr *e) {
  const char *known = e->count ? map_find(&emit->values, e) : NULL;
  if (known) return c_value(C_NAME, known);
  CValue value = emit_new(emit, e);
  if (!deserves_name(emit, e)) return value;
  value = c_value(C_NAME, c_hold(emit, value, e->type));
  map_put(&emit->values, e, value.text);
  array_push(emit->arena, &emit->computed, (void *)e);
  return value;
}

const char *c_text(CEmit *emit, Expr *e) {
  return c_expr(emit, e).text;
}

CValue c_index(CEmit *emit, Expr *e) {
  bool before = emit->in_index;
  emit->in_index = true;
  CValue value = c_expr(emit, e);
  emit->in_index = before;
  return value;
}
