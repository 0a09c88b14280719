// SPDX-License-Identifier: Apache-2.0
// Expressions as C. Short ones are written where they are used; what grows long becomes a constant
// of its own before the statement, so shared subexpressions are computed once.
#include "target/c/emit.h"

#include "interp/interp.h"

#include <math.h>

enum { LONGEST = 70 }; // characters of an expression that is written in place

// ---- Text and names ----------------------------------------------------------------------------

const char *c_text(CEmit *emit, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(emit->arena, format, args);
  va_end(args);
  return text;
}

void c_line(CEmit *emit, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_pad(&emit->body, ' ', 2 * emit->indent);
  text_vprintf(&emit->body, format, args);
  text_puts(&emit->body, "\n");
  va_end(args);
}

int c_mark(const CEmit *emit) {
  return emit->computed.count;
}

void c_forget(CEmit *emit, int mark) {
  for (int i = mark; i < emit->computed.count; i++)
    map_put(&emit->texts, emit->computed.items[i], NULL);
  emit->computed.count = mark;
}

static Str clean_name(CEmit *emit, const char *name) {
  char *copy = arena_printf(emit->arena, "%s%s", name[0] >= '0' && name[0] <= '9' ? "_" : "", name);
  for (char *c = copy; *c; c++) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!plain) *c = '_';
  }
  return str_intern(emit->context, copy);
}

const char *c_name(CEmit *emit, const Expr *var) {
  const char *known = map_find(&emit->names, var);
  if (known) return known;
  Str base = clean_name(emit, var->as.var->name), name = base;
  for (int i = 1; map_contains(&emit->taken, name); i++)
    name = str_format(emit->context, "%s_%d", base, i);
  map_put(&emit->taken, name, name);
  map_put(&emit->names, var, name);
  return name;
}

// The type of a value as it is held: a vector of bools is a mask.
static const char *held_type(CEmit *emit, const Expr *e) {
  if (dtype_is_bool(e->type) && e->type.lanes > 1)
    return c_mask_type(emit->unit, c_mask_bits(emit, e), e->type.lanes);
  return c_type(emit->unit, e->type);
}

static const char *temporary(CEmit *emit, const char *type, const char *value) {
  const char *name = c_text(emit, "t%d", emit->next++);
  c_line(emit, "const %s %s = %s;", type, name, value);
  return name;
}

// ---- Masks -------------------------------------------------------------------------------------

static int lane_bits(DType type) {
  return MAX_OF(type.bits, 8);
}

int c_mask_bits(CEmit *emit, const Expr *e) {
  switch (op_table[e->op].class) {
  case OP_COMPARE:
    return dtype_is_bool(e->args[0]->type) ? c_mask_bits(emit, e->args[0])
                                           : lane_bits(e->args[0]->type);
  case OP_LOGIC:
  case OP_BIT: return c_mask_bits(emit, e->args[0]);
  case OP_CHOICE: return c_mask_bits(emit, e->args[1]);
  case OP_LEAF:
  case OP_ARITH:
  case OP_MATH:
  case OP_MEMORY:
  case OP_VECTOR:
  case OP_OTHER: break;
  }
  if (e->op == EXPR_CAST) return lane_bits(e->args[0]->type);
  if (e->op == EXPR_LET) return c_mask_bits(emit, e->args[2]);
  void *bits = e->op == EXPR_VAR ? map_find(&emit->mask_bits, e) : NULL;
  return bits ? (int)(intptr_t)bits : 8;
}

static const char *convert(CEmit *emit, const char *value, const char *type) {
  return c_text(emit, "__builtin_convertvector(%s, %s)", value, type);
}

static const char *mask(CEmit *emit, Expr *e, int bits) {
  const char *value = c_expr(emit, e);
  if (c_mask_bits(emit, e) == bits) return value;
  return convert(emit, value, c_mask_type(emit->unit, bits, e->type.lanes));
}

static bool is_mask(const Expr *e) {
  return dtype_is_bool(e->type) && e->type.lanes > 1;
}

// ---- Leaves ------------------------------------------------------------------------------------

static const char *float_text(CEmit *emit, DType type, double value) {
  const char *suffix = type.bits == 32 ? "f" : "";
  if (isnan(value)) return c_text(emit, "__builtin_nan%s(\"\")", suffix);
  if (isinf(value)) return c_text(emit, "%s__builtin_inf%s()", value < 0 ? "-" : "", suffix);
  if (value == floor(value) && fabs(value) < 1e6) return c_text(emit, "%.1f%s", value, suffix);
  return c_text(emit, "%a%s", number_round(type, value), suffix);
}

static const char *int_text(CEmit *emit, DType type, int64_t value) {
  if (type.code == TYPE_UINT && type.bits > 31)
    return c_text(emit, type.bits == 64 ? "%lluull" : "%lluu", (unsigned long long)value);
  if (value == INT64_MIN) return "(-9223372036854775807ll - 1)";
  return c_text(emit, type.bits == 64 ? "%lldll" : "%lld", (long long)value);
}

static const char *constant(CEmit *emit, Expr *e) {
  DType type = e->type;
  double value = e->op == EXPR_FLOAT ? e->as.f : (double)e->as.i;
  if (dtype_is_float(type) && type.bits < 32)
    return c_text(emit, "%llu", (unsigned long long)number_bits(type, value));
  if (dtype_is_float(type)) return float_text(emit, type, value);
  if (dtype_is_bool(type)) return e->as.i ? "true" : "false";
  return int_text(emit, type, number_wrap(type, e->as.i));
}

static const char *variable(CEmit *emit, Expr *e) {
  return c_name(emit, e);
}

// ---- Arithmetic --------------------------------------------------------------------------------

// Integers wrap: computed unsigned, brought back to the type. Four bits live in a byte.
static const char *wrapped(CEmit *emit, const Expr *e, const char *value) {
  const char *type = c_type(emit->unit, e->type);
  if (e->type.bits >= 8) return c_text(emit, "(%s)(%s)", type, value);
  if (e->type.code == TYPE_UINT) return c_text(emit, "(%s)((%s) & 15)", type, value);
  return c_text(emit, "(%s)((%s)((%s) << 4) >> 4)", type, type, value);
}

static const char *as_unsigned(CEmit *emit, const Expr *e, const char *value) {
  if (e->type.code == TYPE_UINT && e->type.bits >= 32) return value;
  DType type = e->type;
  type.code = TYPE_UINT;
  if (type.lanes == 1) type.bits = (uint8_t)MAX_OF(type.bits, 32);
  return c_text(emit, "(%s)%s", c_type(emit->unit, type), value);
}

static const char *operator_of(const Expr *e) {
  static const char *const signs[EXPR_OP_COUNT] = {
      [EXPR_ADD] = "+",       [EXPR_SUB] = "-",        [EXPR_MUL] = "*",
      [EXPR_DIV] = "/",       [EXPR_TRUNC_DIV] = "/",  [EXPR_TRUNC_MOD] = "%",
      [EXPR_EQ] = "==",       [EXPR_NE] = "!=",        [EXPR_LT] = "<",
      [EXPR_LE] = "<=",       [EXPR_GT] = ">",         [EXPR_GE] = ">=",
      [EXPR_BIT_AND] = "&",   [EXPR_BIT_OR] = "|",     [EXPR_BIT_XOR] = "^",
      [EXPR_SHIFT_LEFT] = "<<", [EXPR_SHIFT_RIGHT] = ">>"};
  return signs[e->op];
}

static const char *arithmetic(CEmit *emit, Expr *e) {
  const char *a = c_expr(emit, e->args[0]), *b = c_expr(emit, e->args[1]);
  bool wraps = e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_MUL ||
               e->op == EXPR_SHIFT_LEFT || e->op == EXPR_TRUNC_DIV;
  if (dtype_is_float(e->type) || !wraps)
    return c_text(emit, "(%s %s %s)", a, operator_of(e), b);
  if (e->op != EXPR_TRUNC_DIV)
    a = as_unsigned(emit, e, a), b = as_unsigned(emit, e, b);
  return wrapped(emit, e, c_text(emit, "%s %s %s", a, operator_of(e), b));
}

static const char *comparison(CEmit *emit, Expr *e) {
  const char *a = c_expr(emit, e->args[0]), *b;
  if (!is_mask(e->args[0])) b = c_expr(emit, e->args[1]);
  else b = mask(emit, e->args[1], c_mask_bits(emit, e->args[0]));
  const char *value = c_text(emit, "(%s %s %s)", a, operator_of(e), b);
  if (!is_mask(e)) return value;
  const char *type = c_mask_type(emit->unit, c_mask_bits(emit, e), e->type.lanes);
  return c_text(emit, "(%s)%s", type, value);
}

static const char *extreme(CEmit *emit, Expr *e) {
  const char *helper = c_extreme(emit->unit, (ExprOp)e->op, e->type);
  const char *a = c_expr(emit, e->args[0]), *b = c_expr(emit, e->args[1]);
  return c_text(emit, "%s(%s, %s)", helper, a, b);
}

static const char *fma_of(CEmit *emit, Expr *e) {
  if (!emit->unit->features.fma) emit->unit->report->counts[TARGET_UNFUSED_FMA]++;
  const char *a = c_expr(emit, e->args[0]), *b = c_expr(emit, e->args[1]);
  return c_text(emit, "(%s * %s + %s)", a, b, c_expr(emit, e->args[2]));
}

static const char *function_of(CEmit *emit, Expr *e, const char *name) {
  const char *a = c_expr(emit, e->args[0]);
  const char *function = c_text(emit, "%s%s", name, e->type.bits == 32 ? "f" : "");
  if (e->type.lanes == 1) return c_text(emit, "__builtin_%s(%s)", function, a);
  return c_text(emit, "%s(%s)", c_unary(emit->unit, e->type, function), a);
}

static const char *square_root(CEmit *emit, Expr *e) {
  return function_of(emit, e, "sqrt");
}

static const char *absolute(CEmit *emit, Expr *e) {
  return function_of(emit, e, "fabs");
}

static const char *not_of(CEmit *emit, Expr *e) {
  const char *a = c_expr(emit, e->args[0]);
  if (dtype_is_bool(e->type) && e->type.lanes == 1) return c_text(emit, "(!%s)", a);
  return is_mask(e) ? c_text(emit, "(~%s)", a) : wrapped(emit, e, c_text(emit, "~%s", a));
}

static const char *logic(CEmit *emit, Expr *e) {
  bool is_and = e->op == EXPR_AND;
  if (is_mask(e)) {
    const char *a = c_expr(emit, e->args[0]);
    const char *b = mask(emit, e->args[1], c_mask_bits(emit, e));
    return c_text(emit, "(%s %s %s)", a, is_and ? "&" : "|", b);
  }
  const char *a = c_expr(emit, e->args[0]);
  Text before = emit->body;
  emit->body = text_new(emit->arena);
  int mark = c_mark(emit);
  const char *b = c_expr(emit, e->args[1]);
  bool lines = emit->body.size > 0;
  const char *extra = text_string(&emit->body);
  emit->body = before;
  if (!lines) return c_text(emit, "(%s %s %s)", a, is_and ? "&&" : "||", b);
  const char *name = c_text(emit, "t%d", emit->next++);
  c_line(emit, "bool %s = %s;", name, a);
  c_line(emit, "if (%s%s) {", is_and ? "" : "!", name);
  text_puts(&emit->body, extra);
  c_line(emit, "  %s = %s;", name, b);
  c_line(emit, "}");
  c_forget(emit, mark);
  return name;
}

// ---- Choice ------------------------------------------------------------------------------------

static const char *select_of(CEmit *emit, Expr *e) {
  const char *a = c_expr(emit, e->args[1]), *b = c_expr(emit, e->args[2]);
  if (e->args[0]->type.lanes == 1)
    return c_text(emit, "(%s ? %s : %s)", c_expr(emit, e->args[0]), a, b);
  DType type = e->type;
  if (is_mask(e)) {
    type = (DType){TYPE_INT, (uint8_t)c_mask_bits(emit, e), e->type.lanes};
    b = mask(emit, e->args[2], type.bits);
  }
  const char *condition = mask(emit, e->args[0], lane_bits(type));
  return c_text(emit, "%s(%s, %s, %s)", c_select(emit->unit, type), condition, a, b);
}

static void branch(CEmit *emit, const char *name, Expr *value) {
  int mark = c_mark(emit);
  emit->indent++;
  c_line(emit, "%s = %s;", name, c_expr(emit, value));
  emit->indent--;
  c_forget(emit, mark);
}

// Only the chosen value is computed.
static const char *if_then_else(CEmit *emit, Expr *e) {
  if (e->args[0]->type.lanes > 1) return select_of(emit, e);
  const char *name = c_text(emit, "t%d", emit->next++);
  const char *condition = c_expr(emit, e->args[0]);
  c_line(emit, "%s %s;", held_type(emit, e), name);
  c_line(emit, "if (%s) {", condition);
  branch(emit, name, e->args[1]);
  c_line(emit, "} else {");
  branch(emit, name, e->args[2]);
  c_line(emit, "}");
  return name;
}

static const char *let(CEmit *emit, Expr *e) {
  const char *value = c_expr(emit, e->args[1]), *type = held_type(emit, e->args[1]);
  if (is_mask(e->args[1]))
    map_put(&emit->mask_bits, e->args[0], (intptr_t)c_mask_bits(emit, e->args[1]));
  map_put(&emit->names, e->args[0], NULL);
  const char *name = c_text(emit, "t%d", emit->next++);
  map_put(&emit->names, e->args[0], name);
  c_line(emit, "const %s %s = %s;", type, name, value);
  return c_expr(emit, e->args[2]);
}

// ---- Casts -------------------------------------------------------------------------------------

static const char *cast(CEmit *emit, Expr *e) {
  Expr *a = e->args[0];
  const char *value = c_expr(emit, a), *type = c_type(emit->unit, e->type);
  if (e->type.lanes == 1) {
    if (dtype_is_bool(e->type)) return c_text(emit, "(%s != 0)", value);
    return dtype_is_int(e->type) ? wrapped(emit, e, value) : c_text(emit, "(%s)%s", type, value);
  }
  if (dtype_is_bool(e->type))
    return c_text(emit, "(%s != 0)", value);
  if (is_mask(a)) value = c_text(emit, "(%s & 1)", value);
  const char *converted = convert(emit, value, type);
  return e->type.bits < 8 ? wrapped(emit, e, converted) : converted;
}

static const char *reinterpret(CEmit *emit, Expr *e) {
  const char *value = c_expr(emit, e->args[0]);
  const char *from = c_type(emit->unit, e->args[0]->type), *to = c_type(emit->unit, e->type);
  if (from == to || !strcmp(from, to)) return value;
  return c_text(emit, "%s(%s)", c_reinterpret(emit->unit, from, to), value);
}

// ---- Vectors -----------------------------------------------------------------------------------

static const char *broadcast(CEmit *emit, Expr *e) {
  const char *value = c_expr(emit, e->args[0]);
  DType type = e->type;
  if (is_mask(e)) {
    type = (DType){TYPE_INT, 8, e->type.lanes};
    value = c_text(emit, "-(int8_t)%s", value);
  }
  return c_text(emit, "%s(%s)", c_spread(emit->unit, type), value);
}

static const char *ramp(CEmit *emit, Expr *e) {
  const char *type = c_type(emit->unit, e->type), *all = c_spread(emit->unit, e->type);
  const char *base = c_expr(emit, e->args[0]), *stride = c_expr(emit, e->args[1]);
  Text steps = text_new(emit->arena);
  for (int i = 0; i < e->type.lanes; i++) text_printf(&steps, "%s%d", i ? ", " : "", i);
  return c_text(emit, "(%s(%s) + %s(%s) * (%s){%s})", all, base, all, stride, type,
                text_string(&steps));
}

static const char *numbered_lane(CEmit *emit, Expr *const *vectors, int64_t number) {
  int i = 0;
  for (; number >= vectors[i]->type.lanes; i++) number -= vectors[i]->type.lanes;
  const char *value = c_expr(emit, vectors[i]);
  if (vectors[i]->type.lanes == 1) return value;
  return c_text(emit, "%s[%lld]", value, (long long)number);
}

static const char *shuffle(CEmit *emit, Expr *e) {
  const Expr *vectors = e->args[0], *order = e->args[1];
  DType first = vectors->args[0]->type;
  if (e->type.lanes == 1) return numbered_lane(emit, vectors->args, order->args[0]->as.i);
  bool pair = vectors->count <= 2 && first.lanes > 1 &&
              vectors->args[vectors->count - 1]->type.lanes == first.lanes;
  Text lanes = text_new(emit->arena);
  for (int i = 0; i < e->type.lanes; i++) {
    int64_t number = order->args[i]->as.i;
    if (pair) text_printf(&lanes, ", %lld", (long long)number);
    else text_printf(&lanes, "%s%s", i ? ", " : "", numbered_lane(emit, vectors->args, number));
  }
  if (!pair) return c_text(emit, "(%s){%s}", held_type(emit, e), text_string(&lanes));
  const char *a = c_expr(emit, vectors->args[0]);
  const char *b = vectors->count > 1 ? c_expr(emit, vectors->args[1]) : a;
  return c_text(emit, "__builtin_shufflevector(%s, %s%s)", a, b, text_string(&lanes));
}

static const char *reduction(CEmit *emit, Expr *e) {
  const char *helper = c_reduction(emit->unit, (ExprOp)e->op, e->args[0]->type);
  return c_text(emit, "%s(%s)", helper, c_expr(emit, e->args[0]));
}

// ---- Calls -------------------------------------------------------------------------------------

static const char *call(CEmit *emit, Expr *e) {
  Text given = text_new(emit->arena), wanted = text_new(emit->arena);
  for (int i = 0; i < e->count; i++) {
    const char *value = c_expr(emit, e->args[i]);
    text_printf(&given, "%s%s", i ? ", " : "", value);
    text_printf(&wanted, "%s%s", i ? ", " : "", c_type(emit->unit, e->args[i]->type));
  }
  if (c_helper_is_new(emit->unit, e->as.s))
    text_printf(&emit->unit->types, "extern %s %s(%s);\n", c_type(emit->unit, e->type), e->as.s,
                e->count ? text_string(&wanted) : "void");
  return c_text(emit, "%s(%s)", e->as.s, text_string(&given));
}

static const char *prefetch(CEmit *emit, Expr *e) {
  int64_t write = 0, level = 1;
  expr_as_int(e->args[1], &write);
  expr_as_int(e->args[2], &level);
  return c_text(emit, "__builtin_prefetch(%s, %d, %d)", c_expr(emit, e->args[0]), write != 0,
                4 - (int)level);
}

// ---- The table ---------------------------------------------------------------------------------

static const char *(*const emitters[EXPR_OP_COUNT])(CEmit *, Expr *) = {
    [EXPR_INT] = constant,
    [EXPR_FLOAT] = constant,
    [EXPR_VAR] = variable,
    [EXPR_CAST] = cast,
    [EXPR_REINTERPRET] = reinterpret,
    [EXPR_ADD] = arithmetic,
    [EXPR_SUB] = arithmetic,
    [EXPR_MUL] = arithmetic,
    [EXPR_DIV] = arithmetic,
    [EXPR_TRUNC_DIV] = arithmetic,
    [EXPR_TRUNC_MOD] = arithmetic,
    [EXPR_MIN] = extreme,
    [EXPR_MAX] = extreme,
    [EXPR_EQ] = comparison,
    [EXPR_NE] = comparison,
    [EXPR_LT] = comparison,
    [EXPR_LE] = comparison,
    [EXPR_GT] = comparison,
    [EXPR_GE] = comparison,
    [EXPR_AND] = logic,
    [EXPR_OR] = logic,
    [EXPR_NOT] = not_of,
    [EXPR_BIT_AND] = arithmetic,
    [EXPR_BIT_OR] = arithmetic,
    [EXPR_BIT_XOR] = arithmetic,
    [EXPR_BIT_NOT] = not_of,
    [EXPR_SHIFT_LEFT] = arithmetic,
    [EXPR_SHIFT_RIGHT] = arithmetic,
    [EXPR_SELECT] = select_of,
    [EXPR_IF_THEN_ELSE] = if_then_else,
    [EXPR_LET] = let,
    [EXPR_LOAD] = c_load,
    [EXPR_ADDRESS_OF] = c_address,
    [EXPR_RAMP] = ramp,
    [EXPR_BROADCAST] = broadcast,
    [EXPR_SHUFFLE] = shuffle,
    [EXPR_VECTOR_SUM] = reduction,
    [EXPR_VECTOR_MIN] = reduction,
    [EXPR_VECTOR_MAX] = reduction,
    [EXPR_CALL] = call,
    [EXPR_CALL_PURE] = call,
    [EXPR_PREFETCH] = prefetch,
    [EXPR_FMA] = fma_of,
    [EXPR_ABS] = absolute,
    [EXPR_SQRT] = square_root,
};

const char *c_expr(CEmit *emit, Expr *e) {
  const char *text = e->count ? map_find(&emit->texts, e) : NULL;
  if (text) return text;
  if (!emitters[e->op]) bug(emit->context, "%s was not legalized", op_table[e->op].name);
  text = emitters[e->op](emit, e);
  if (!e->count) return text;
  bool is_void = e->type.code == TYPE_VOID || e->op == EXPR_PREFETCH;
  if (strlen(text) > LONGEST && !is_void) text = temporary(emit, held_type(emit, e), text);
  map_put(&emit->texts, e, text);
  array_push(emit->arena, &emit->computed, (void *)e);
  return text;
}

// Indices do not leave their type, so plain C arithmetic says it.
const char *c_index(CEmit *emit, Expr *e) {
  bool sum = e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_MUL;
  if (!sum || e->type.lanes > 1) return c_expr(emit, e);
  const char *a = c_index(emit, e->args[0]), *b = c_index(emit, e->args[1]);
  bool product = e->op == EXPR_MUL;
  return c_text(emit, product ? "%s %s %s" : "(%s %s %s)", a, operator_of(e), b);
}
