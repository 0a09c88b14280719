// SPDX-License-Identifier: Apache-2.0
// Writes vector operations as LLVM instructions: lanes, ramps, shuffles, reductions.
#include "target/llvm/emit.h"

const char *emit_lane(Emit *emit, const char *value, DType type, int lane) {
  if (type.lanes == 1) return value;
  return emit_value(emit, "extractelement %s %s, i64 %d", llvm_type(emit, type), value, lane);
}

const char *emit_with_lane(Emit *emit, const char *value, DType type, const char *lane_value,
                           int lane) {
  return emit_value(emit, "insertelement %s %s, %s %s, i64 %d", llvm_type(emit, type), value,
                    llvm_type(emit, dtype_lanes(type, 1)), lane_value, lane);
}

static const char *lane_numbers(Emit *emit, const char *scalar, int lanes, int64_t first,
                                int64_t step) {
  Text text = text_new(emit->arena);
  for (int i = 0; i < lanes; i++)
    text_printf(&text, "%s%s %lld", i ? ", " : "<", scalar, (long long)(first + step * i));
  text_puts(&text, ">");
  return text_string(&text);
}

const char *emit_ramp(Emit *emit, Expr *e) {
  const char *vector = llvm_type(emit, e->type), *scalar = llvm_type(emit, e->args[0]->type);
  int lanes = e->type.lanes;
  int64_t stride;
  const char *base = emit_spread(emit, emit_expr(emit, e->args[0]), e->type);
  if (expr_as_int(e->args[1], &stride))
    return emit_value(emit, "add %s %s, %s", vector, base,
                      lane_numbers(emit, scalar, lanes, 0, stride));
  const char *step = emit_spread(emit, emit_expr(emit, e->args[1]), e->type);
  const char *offset =
      emit_value(emit, "mul %s %s, %s", vector, step, lane_numbers(emit, scalar, lanes, 0, 1));
  return emit_value(emit, "add %s %s, %s", vector, base, offset);
}

// A shuffle of one vector, or of two of the same width, is one instruction. Any other one goes lane
// by lane, and LLVM combines the lanes.
static const char *shuffle_pair(Emit *emit, Expr *e) {
  Expr *const *vectors = e->args[0]->args;
  const char *type = llvm_type(emit, vectors[0]->type);
  const char *a = emit_expr(emit, vectors[0]);
  const char *b = e->args[0]->count > 1 ? emit_expr(emit, vectors[1]) : "poison";
  Text mask = text_new(emit->arena);
  for (int i = 0; i < e->type.lanes; i++)
    text_printf(&mask, "%si32 %lld", i ? ", " : "", (long long)e->args[1]->args[i]->as.i);
  return emit_value(emit, "shufflevector %s %s, %s %s, <%d x i32> <%s>", type, a, type, b,
                    e->type.lanes, text_string(&mask));
}

static const char *numbered_lane(Emit *emit, Expr *const *vectors, int64_t number) {
  int i = 0;
  for (; number >= vectors[i]->type.lanes; i++) number -= vectors[i]->type.lanes;
  return emit_lane(emit, emit_expr(emit, vectors[i]), vectors[i]->type, (int)number);
}

const char *emit_shuffle(Emit *emit, Expr *e) {
  const Expr *vectors = e->args[0], *order = e->args[1];
  DType first = vectors->args[0]->type;
  bool pair = vectors->count <= 2 && first.lanes > 1 && e->type.lanes > 1 &&
              vectors->args[vectors->count - 1]->type.lanes == first.lanes;
  if (pair) return shuffle_pair(emit, e);
  if (e->type.lanes == 1) return numbered_lane(emit, vectors->args, order->args[0]->as.i);
  const char *result = "poison";
  for (int i = 0; i < e->type.lanes; i++) {
    const char *lane = numbered_lane(emit, vectors->args, order->args[i]->as.i);
    result = emit_with_lane(emit, result, e->type, lane, i);
  }
  return result;
}

// ---- Products of bytes -------------------------------------------------------------------------

// A call of an intrinsic function for vectors of 16, 32 or 64 bytes.
static const char *call_of_width(Emit *emit, const char *const names[3], DType type,
                                 const char *arguments, const char *wanted) {
  const char *name = names[type.lanes / 8], *result = llvm_type(emit, type);
  emit_declare(emit, name, "%s @%s(%s)", result, name, wanted);
  return emit_value(emit, "call %s @%s(%s)", result, name, arguments);
}

// The sums of pairs of products of 16 bits.
static const char *products_of_words(Emit *emit, DType type, const char *a, const char *b) {
  static const char *const names[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                      "llvm.x86.avx512.pmaddw.d.512"};
  const char *wide = arena_printf(emit->arena, "<%d x i16>", type.lanes * 2);
  return call_of_width(emit, names, type,
                       arena_printf(emit->arena, "%s %s, %s %s", wide, a, wide, b),
                       arena_printf(emit->arena, "%s, %s", wide, wide));
}

static const char *as_words(Emit *emit, DType type, const char *value) {
  return emit_value(emit, "bitcast %s %s to <%d x i16>", llvm_type(emit, type), value,
                    type.lanes * 2);
}

const char *emit_dot_words(Emit *emit, Expr *e, const char *sum) {
  const char *a = as_words(emit, e->type, emit_expr(emit, e->args[0]));
  const char *b = as_words(emit, e->type, emit_expr(emit, e->args[1]));
  const char *products = products_of_words(emit, e->type, a, b);
  return sum ? emit_value(emit, "add %s %s, %s", llvm_type(emit, e->type), sum, products)
             : products;
}

// The bytes with even numbers of each operand as numbers of 16 bits, or those with odd numbers.
static const char *products_of_half(Emit *emit, DType type, const char *a, const char *b,
                                    bool is_odd) {
  const char *wide = arena_printf(emit->arena, "<%d x i16>", type.lanes * 2);
  if (!is_odd) b = emit_value(emit, "shl %s %s, splat (i16 8)", wide, b);
  b = emit_value(emit, "ashr %s %s, splat (i16 8)", wide, b);
  a = emit_value(emit, "%s %s %s, splat (i16 %d)", is_odd ? "lshr" : "and", wide, a,
                 is_odd ? 8 : 255);
  return products_of_words(emit, type, a, b);
}

// Without an instruction for it, products of 16 bits are added in pairs, which is exact: two of
// them are at most 2 * 255 * 128 in size.
const char *emit_dot_bytes(Emit *emit, Expr *e, const char *sum) {
  static const char *const names[] = {"llvm.x86.avx512.vpdpbusd.128",
                                      "llvm.x86.avx512.vpdpbusd.256",
                                      "llvm.x86.avx512.vpdpbusd.512"};
  const char *a = emit_expr(emit, e->args[0]), *b = emit_expr(emit, e->args[1]);
  const char *type = llvm_type(emit, e->type);
  if (emit->module->features.dot_bytes)
    return call_of_width(emit, names, e->type,
                         arena_printf(emit->arena, "%s %s, %s %s, %s %s", type,
                                      sum ? sum : llvm_zero(e->type), type, a, type, b),
                         arena_printf(emit->arena, "%s, %s, %s", type, type, type));
  a = as_words(emit, e->type, a);
  b = as_words(emit, e->type, b);
  const char *even = products_of_half(emit, e->type, a, b, false);
  const char *odd = products_of_half(emit, e->type, a, b, true);
  if (sum) even = emit_value(emit, "add %s %s, %s", type, sum, even);
  return emit_value(emit, "add %s %s, %s", type, even, odd);
}

// ---- Reductions --------------------------------------------------------------------------------

static const char *combine(Emit *emit, ExprOp op, DType type, const char *a, const char *b) {
  const char *text = llvm_type(emit, type);
  bool floats = dtype_is_float(type), is_signed = type.code == TYPE_INT;
  if (op == EXPR_VECTOR_SUM)
    return emit_value(emit, "%s %s %s, %s", floats ? "fadd" : "add", text, a, b);
  const char *least = floats ? "fcmp olt" : is_signed ? "icmp slt" : "icmp ult";
  const char *most = floats ? "fcmp ogt" : is_signed ? "icmp sgt" : "icmp ugt";
  const char *test = op == EXPR_VECTOR_MIN ? least : most;
  const char *condition = emit_value(emit, "%s %s %s, %s", test, text, b, a);
  return emit_value(emit, "select %s %s, %s %s, %s %s",
                    llvm_type(emit, dtype_lanes(DTYPE_BOOL, type.lanes)), condition, text, b, text,
                    a);
}

static const char *half_of(Emit *emit, const char *value, DType type, bool upper) {
  int half = type.lanes / 2;
  if (half == 1) return emit_lane(emit, value, type, upper);
  return emit_value(emit, "shufflevector %s %s, %s poison, <%d x i32> %s", llvm_type(emit, type),
                    value, llvm_type(emit, type), half,
                    lane_numbers(emit, "i32", half, upper ? half : 0, 1));
}

// Combines the two halves, as long as there are halves, so a float sum rounds like the sum of a
// tree; an odd number of lanes is combined one after the other.
const char *emit_reduction(Emit *emit, Expr *e) {
  DType type = e->args[0]->type, lane = dtype_lanes(type, 1);
  const char *value = emit_expr(emit, e->args[0]);
  while (type.lanes % 2 == 0) {
    const char *low = half_of(emit, value, type, false), *high = half_of(emit, value, type, true);
    type = dtype_lanes(type, type.lanes / 2);
    value = combine(emit, (ExprOp)e->op, type, low, high);
  }
  if (type.lanes == 1) return value;
  const char *result = emit_lane(emit, value, type, 0);
  for (int i = 1; i < type.lanes; i++)
    result = combine(emit, (ExprOp)e->op, lane, result, emit_lane(emit, value, type, i));
  return result;
}
