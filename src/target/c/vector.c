// SPDX-License-Identifier: Apache-2.0
// Writes vector operations as C: lanes, ramps, choices, shuffles, reductions. A vector of bools is
// a mask of 32 bits a lane, which is the result of comparing float32; masks of other widths are
// converted, and compilers remove the conversion.
#include "target/c/emit.h"

static const char *vector_macro(CEmit *emit, DType type, const char *what) {
  return arena_printf(emit->arena, "%s_%s", c_type(emit->module, type), what);
}

// ---- Building ----------------------------------------------------------------------------------

CValue c_list_of_lanes(CEmit *emit, const char *type, const char *const *lanes, int count) {
  Text list = text_new(emit->arena);
  int all = c_lanes((DType){.lanes = (uint16_t)count});
  for (int i = 0; i < all; i++) text_printf(&list, "%s%s", i ? ", " : "", lanes[i < count ? i : 0]);
  const char *all_lanes = text_string(&list);
  const CSpelling *spelling = emit->module->spelling;
  return spelling->list ? spelling->list(emit, type, all_lanes)
                        : c_format(emit, C_POSTFIX, "(%s){%s}", type, all_lanes);
}

const char *c_lane(CEmit *emit, const char *vector, int lane) {
  const CSpelling *spelling = emit->module->spelling;
  return spelling->lane ? spelling->lane(emit, vector, lane)
                        : arena_printf(emit->arena, "%s[%d]", vector, lane);
}

// #define f32x4_all(x) ((f32x4){x, x, x, x})
CValue c_spread(CEmit *emit, CValue scalar, DType vector) {
  if (dtype_is_bool(vector)) {
    vector = c_mask_type(vector);
    scalar = c_format(emit, C_UNARY, "-(int32_t)%s", c_operand(emit, scalar, C_UNARY));
  }
  const char *macro = vector_macro(emit, vector, "all");
  if (c_define(emit->module, macro)) {
    const char *lanes[LOWER_MAX_LANES];
    for (int i = 0; i < c_lanes(vector); i++) lanes[i] = "x";
    CValue list = c_list_of_lanes(emit, c_type(emit->module, vector), lanes, c_lanes(vector));
    text_printf(&emit->module->macros, "#define %s(x) (%s)\n", macro, list.text);
  }
  bool simple = scalar.precedence == C_NAME || (*scalar.text == '-' && strlen(scalar.text) < 24);
  const char *x = simple ? scalar.text : c_hold(emit, scalar, dtype_lanes(vector, 1));
  return c_format(emit, C_POSTFIX, "%s(%s)", macro, x);
}

CValue c_broadcast(CEmit *emit, Expr *e) {
  if (e->args[0]->type.lanes > 1) bug(emit->context, "a broadcast of a vector was not legalized");
  return c_spread(emit, c_expr(emit, e->args[0]), e->type);
}

CValue c_ramp(CEmit *emit, Expr *e) {
  CModule *module = emit->module;
  const char **lanes = arena_array(emit->arena, const char *, e->type.lanes);
  int64_t stride = 1;
  bool constant = expr_as_int(e->args[1], &stride);
  for (int i = 0; i < e->type.lanes; i++)
    lanes[i] = arena_printf(emit->arena, "%lld", (long long)(constant ? stride * i : i));
  CValue base = c_spread(emit, c_expr(emit, e->args[0]), e->type);
  CValue steps = c_list_of_lanes(emit, c_type(module, e->type), lanes, e->type.lanes);
  if (constant) return c_format(emit, C_SUM, "%s + %s", base.text, steps.text);
  CValue step = c_spread(emit, c_expr(emit, e->args[1]), e->type);
  return c_format(emit, C_SUM, "%s + %s * %s", base.text, step.text, steps.text);
}

CValue c_convert(CEmit *emit, DType from, DType to, CValue value) {
  const char *source = c_type(emit->module, from), *target = c_type(emit->module, to);
  if (!strcmp(source, target)) return value;
  if (emit->module->spelling->convert)
    return emit->module->spelling->convert(emit, from, to, value);
  return c_format(emit, C_POSTFIX, "__builtin_convertvector(%s, %s)", value.text, target);
}

// ---- Choosing ----------------------------------------------------------------------------------

CValue c_vector_select(CEmit *emit, DType type, const char *mask, CValue a, CValue b) {
  DType value = c_value_type(type), bits = c_bits_type(value);
  const char *wide =
      c_hold(emit, c_convert(emit, c_mask_type(type), bits, c_value(C_NAME, mask)), bits);
  const char *name = c_type(emit->module, bits);
  const CSpelling *spelling = emit->module->spelling;
  if (spelling->choose) return spelling->choose(emit, value, wide, a, b);
  return c_format(emit, C_UNARY, "(%s)(((%s)%s & %s) | ((%s)%s & ~%s))",
                  c_type(emit->module, value), name, c_operand(emit, a, C_UNARY), wide, name,
                  c_operand(emit, b, C_UNARY), wide);
}

typedef struct ExtremeRow { // an instruction that GCC does not choose by itself
  int bits, lanes;
  const char *when, *call; // of min or max, a and b
} ExtremeRow;

static const ExtremeRow extremes[] = {
    {32, 16, "__AVX512F__", "__builtin_ia32_%sps512_mask(b, a, b, -1, 4)"},
    {32, 8, "__AVX__", "__builtin_ia32_%sps256(b, a)"},
    {32, 4, "__SSE__", "__builtin_ia32_%sps(b, a)"},
    {64, 8, "__AVX512F__", "__builtin_ia32_%spd512_mask(b, a, b, -1, 4)"},
    {64, 4, "__AVX__", "__builtin_ia32_%spd256(b, a)"},
    {64, 2, "__SSE2__", "__builtin_ia32_%spd(b, a)"},
};

static const char *extreme_macro(CEmit *emit, DType type, bool least) {
  const char *what = least ? "min" : "max", *macro = vector_macro(emit, type, what);
  if (!c_define(emit->module, macro)) return macro;
  Text *text = &emit->module->macros;
  const CSpelling *spelling = emit->module->spelling;
  if (spelling->extreme) {
    text_printf(text, "#define %s(a, b) %s\n", macro, spelling->extreme(emit->module, type, least));
    return macro;
  }
  const char *bits = c_type(emit->module, c_bits_type(type)), *name = c_type(emit->module, type);
  const ExtremeRow *found = NULL;
  for (int i = 0; i < COUNT_OF(extremes); i++)
    if (dtype_is_float(type) && extremes[i].bits == type.bits && extremes[i].lanes == c_lanes(type))
      found = &extremes[i];
  if (found) {
    text_printf(text, "#if defined(%s) && !defined(__clang__)\n#define %s(a, b) (", found->when,
                macro);
    text_printf(text, "%.*s%s%s)\n#else\n", (int)(strstr(found->call, "%s") - found->call),
                found->call, what, strstr(found->call, "%s") + 2);
  }
  const char *test = least ? "<" : ">";
  text_printf(text,
              "#define %s(a, b) \\\n  ((%s)(((%s)(b) & (%s)((b) %s (a))) | "
              "((%s)(a) & ~(%s)((b) %s (a)))))\n",
              macro, name, bits, bits, test, bits, bits, test);
  if (found) text_puts(text, "#endif\n");
  return macro;
}

CValue c_vector_extreme(CEmit *emit, DType type, bool least, CValue a, CValue b) {
  DType value = c_value_type(type);
  const char *x = c_hold(emit, a, type), *y = c_hold(emit, b, type);
  return c_format(emit, C_POSTFIX, "%s(%s, %s)", extreme_macro(emit, value, least), x, y);
}

// ---- Shuffles ----------------------------------------------------------------------------------

// The lane of the vector of which lanes after `lanes` are those of the second vector.
static const char *lane_of_pair(CEmit *emit, const char *a, const char *b, int lanes, int64_t i) {
  return c_lane(emit, i < lanes ? a : b, (int)(i < lanes ? i : i - lanes));
}

static CValue pick_lanes(CEmit *emit, Expr *e, const char *a, const char *b, int lanes) {
  const char **picked = arena_array(emit->arena, const char *, e->type.lanes);
  for (int i = 0; i < e->type.lanes; i++)
    picked[i] = lane_of_pair(emit, a, b, lanes, e->args[1]->args[i]->as.i);
  return c_list_of_lanes(emit, c_type(emit->module, e->type), picked, e->type.lanes);
}

static CValue shuffle_pair(CEmit *emit, Expr *e) {
  const Expr *vectors = e->args[0];
  DType type = vectors->args[0]->type;
  const char *a = c_hold(emit, c_expr(emit, vectors->args[0]), type), *b = a;
  if (vectors->count > 1) b = c_hold(emit, c_expr(emit, vectors->args[1]), type);
  if (emit->module->spelling->lane) return pick_lanes(emit, e, a, b, type.lanes);
  Text lanes = text_new(emit->arena);
  for (int i = 0; i < c_lanes(e->type); i++) {
    int64_t number = e->args[1]->args[i < e->type.lanes ? i : 0]->as.i;
    text_printf(&lanes, ", %lld",
                (long long)(number < type.lanes ? number : number - type.lanes + c_lanes(type)));
  }
  return c_format(emit, C_POSTFIX, "__builtin_shufflevector(%s, %s%s)", a, b, text_string(&lanes));
}

static const char *numbered_lane(CEmit *emit, const char *const *names, Expr *const *vectors,
                                 int64_t number) {
  int i = 0;
  for (; number >= vectors[i]->type.lanes; i++) number -= vectors[i]->type.lanes;
  if (vectors[i]->type.lanes == 1) return names[i];
  return c_lane(emit, names[i], (int)number);
}

CValue c_shuffle(CEmit *emit, Expr *e) {
  const Expr *vectors = e->args[0], *order = e->args[1];
  DType first = vectors->args[0]->type;
  bool pair = vectors->count <= 2 && first.lanes > 1 && e->type.lanes > 1 &&
              vectors->args[vectors->count - 1]->type.lanes == first.lanes;
  if (pair) return shuffle_pair(emit, e);
  const char **names = arena_array(emit->arena, const char *, vectors->count);
  for (int i = 0; i < vectors->count; i++)
    names[i] = c_hold(emit, c_expr(emit, vectors->args[i]), vectors->args[i]->type);
  bool is_mask = dtype_is_bool(e->type);
  if (e->type.lanes == 1)
    return c_format(emit, is_mask ? C_EQUAL : C_POSTFIX, is_mask ? "%s != 0" : "%s",
                    numbered_lane(emit, names, vectors->args, order->args[0]->as.i));
  const char **lanes = arena_array(emit->arena, const char *, e->type.lanes);
  for (int i = 0; i < e->type.lanes; i++)
    lanes[i] = numbered_lane(emit, names, vectors->args, order->args[i]->as.i);
  return c_list_of_lanes(emit, c_type(emit->module, e->type), lanes, e->type.lanes);
}

// ---- Reductions --------------------------------------------------------------------------------

static const char *half_of(CEmit *emit, const char *value, DType half, bool upper) {
  if (half.lanes == 1) return c_lane(emit, value, upper);
  if (emit->module->spelling->lane) {
    const char **picked = arena_array(emit->arena, const char *, half.lanes);
    for (int i = 0; i < half.lanes; i++)
      picked[i] = c_lane(emit, value, i + (upper ? half.lanes : 0));
    return c_list_of_lanes(emit, c_type(emit->module, half), picked, half.lanes).text;
  }
  Text lanes = text_new(emit->arena);
  for (int i = 0; i < half.lanes; i++) text_printf(&lanes, ", %d", i + (upper ? half.lanes : 0));
  return arena_printf(emit->arena, "__builtin_shufflevector(%s, %s%s)", value, value,
                      text_string(&lanes));
}

static CValue combine(CEmit *emit, ExprOp op, DType type, const char *a, const char *b) {
  if (op == EXPR_VECTOR_SUM) return c_wrapped(emit, type, c_format(emit, C_SUM, "%s + %s", a, b));
  bool least = op == EXPR_VECTOR_MIN;
  if (type.lanes > 1)
    return c_vector_extreme(emit, type, least, c_value(C_POSTFIX, a), c_value(C_POSTFIX, b));
  return c_format(emit, C_CONDITIONAL, "%s %s %s ? %s : %s", b, least ? "<" : ">", a, b, a);
}

// Combines the lanes one after the other.
static CValue reduce_in_order(CEmit *emit, ExprOp op, DType type, const char *whole) {
  DType lane = dtype_lanes(type, 1);
  CValue value = c_value(C_POSTFIX, c_lane(emit, whole, 0));
  for (int i = 1; i < type.lanes; i++)
    value = combine(emit, op, lane, c_hold(emit, value, lane), c_lane(emit, whole, i));
  return value;
}

// Combines the two halves until one lane is left, so a float sum rounds like the sum of a tree.
CValue c_reduction(CEmit *emit, Expr *e) {
  DType type = e->args[0]->type;
  CValue value = c_expr(emit, e->args[0]);
  if (c_lanes(type) != type.lanes)
    return reduce_in_order(emit, (ExprOp)e->op, type, c_hold(emit, value, type));
  while (type.lanes > 1) {
    const char *whole = c_hold(emit, value, type);
    type = dtype_lanes(type, type.lanes / 2);
    value = combine(emit, (ExprOp)e->op, type, half_of(emit, whole, type, false),
                    half_of(emit, whole, type, true));
  }
  return value;
}
