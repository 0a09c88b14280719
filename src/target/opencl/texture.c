// SPDX-License-Identifier: Apache-2.0
// Reads and writes textures. A texture is memory of two physical axes: rows, and elements of a row,
// of which four that follow one another are a texel.
//
//   A[y, T.Ramp(4 * x, 1, 4)]   →   read_imagef(A, (int2)(x, y))
//   A[y, x]                     →   one lane of read_imagef(A, (int2)(x / 4, y))
//
// A kernel writes whole texels only, and does not read a texture that it writes.
#include "target/opencl/emit.h"
#include "target/opencl/runtime.h"

enum { TEXEL = 4 };

static DeviceKernel *kernel_of(const CEmit *emit) {
  return emit->dialect;
}

// The letter of the functions read_image and write_image, and the type of their texels in a kernel,
// where a float16 is its bits.
static char letter_of(DType type, DType *texel) {
  bool is_float = dtype_is_float(type), is_half = is_float && type.bits == 16;
  *texel = (DType){is_half ? TYPE_UINT : is_float ? TYPE_FLOAT : type.code, type.bits, TEXEL};
  return is_half ? 'h' : is_float ? 'f' : type.code == TYPE_UINT ? 'u' : 'i';
}

// Reads and writes the bits of float16, also on devices that have no arithmetic on them.
static const char half_texels[] =
    "#ifdef cl_khr_fp16\n"
    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    "#define read_halves(image, at) as_ushort4(read_imageh(image, at))\n"
    "#define write_halves(image, at, bits) write_imageh(image, at, as_half4(bits))\n"
    "#else\n"
    "static inline ushort4 bits_of_halves(float4 x) {\n"
    "  ushort4 bits;\n  vstore_half4_rte(x, 0, (half *)&bits);\n  return bits;\n}\n"
    "static inline float4 halves_of_bits(ushort4 bits) {\n"
    "  return vload_half4(0, (const half *)&bits);\n}\n"
    "#define read_halves(image, at) bits_of_halves(read_imagef(image, at))\n"
    "#define write_halves(image, at, bits) write_imagef(image, at, halves_of_bits(bits))\n"
    "#endif\n";

static const char *function_of(CEmit *emit, const char *verb, DType type) {
  DType texel;
  char letter = letter_of(type, &texel);
  if (letter == 'h' && c_define(emit->module, "half_texels"))
    text_puts(&emit->module->macros, half_texels);
  if (letter == 'h') return arena_printf(emit->arena, "%s_halves", verb);
  return arena_printf(emit->arena, "%s_image%s%c", verb, letter == 'u' ? "u" : "",
                      letter == 'u' ? 'i' : letter);
}

uint32_t texture_channel_type(DType type) {
  if (dtype_is_float(type)) return type.bits == 16 ? CL_HALF_FLOAT : CL_FLOAT;
  return type.code == TYPE_UINT ? CL_UNSIGNED_INT32 : CL_SIGNED_INT32;
}

int texture_texel_bytes(DType type) {
  return TEXEL * type.bits / 8;
}

bool texture_is_supported(CEmit *emit, const Buffer *buffer) {
  DType type = buffer->type;
  bool is_float = type.code == TYPE_FLOAT && (type.bits == 32 || type.bits == 16);
  bool is_channel = is_float || (type.bits == 32 && dtype_is_int(type));
  if (!is_channel || (type.lanes != 1 && type.lanes != TEXEL))
    return device_fail(emit, buffer->pos,
                       "%s is a texture of %s; its elements are float32, float16, int32 or "
                       "uint32, or vectors of 4 of them",
                       buffer->name, dtype_name(emit->context, type));
  if (type.lanes == TEXEL) return true;
  if (modular_is_multiple(kernel_of(emit)->analyzer, buffer->shape[1], TEXEL)) return true;
  return device_fail(emit, buffer->pos,
                     "%s is a texture whose rows are not a multiple of 4 elements, which is what a "
                     "texel holds",
                     buffer->name);
}

static bool is_texture(const CEmit *emit, const Buffer *buffer) {
  return map_contains(&kernel_of(emit)->images, buffer->data);
}

static const char *texel_at(CEmit *emit, const Buffer *buffer, const char *x, Expr *y) {
  return arena_printf(emit->arena, "%s, (int2)((int)(%s), (int)(%s))",
                      (const char *)map_find(&emit->vars, buffer->data), x, c_index(emit, y).text);
}

static bool see_division(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_FLOOR_DIV || e->op == EXPR_FLOOR_MOD;
  return true;
}

static bool divides(Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = see_division}, e);
  return found;
}

static Expr *texel_part(CEmit *emit, Expr *index, ExprOp op) {
  Expr *size = expr_int(emit->context, index->type, TEXEL);
  return analyzer_simplify(kernel_of(emit)->analyzer, expr_binary(emit->context, op, index, size));
}

// The number in its row of the texel that holds an element, where it is known without a division;
// otherwise NULL.
static const char *texel_number(CEmit *emit, Expr *index) {
  Expr *part = texel_part(emit, index, EXPR_FLOOR_DIV);
  return divides(part) ? NULL : c_index(emit, part).text;
}

static const char *texel_lane(CEmit *emit, Expr *index) {
  Expr *part = texel_part(emit, index, EXPR_FLOOR_MOD);
  if (!divides(part)) return c_index(emit, part).text;
  Expr *of = part->op == EXPR_FLOOR_MOD && !divides(part->args[0]) ? part->args[0] : index;
  CValue number = c_index(emit, of);
  return arena_printf(emit->arena, "%s & %d", c_operand(emit, number, C_PRODUCT), TEXEL - 1);
}

// Whether the access is a whole texel; *x is then its number in the row.
static bool whole_texel(CEmit *emit, const Buffer *buffer, Expr *index, const char **x) {
  if (buffer->type.lanes == TEXEL && index->type.lanes == 1) {
    *x = c_index(emit, index).text;
    return true;
  }
  bool ramp = buffer->type.lanes == 1 && index->type.lanes == TEXEL && index->op == EXPR_RAMP &&
              expr_is_int(index->args[1], 1) &&
              modular_is_multiple(kernel_of(emit)->analyzer, index->args[0], TEXEL);
  if (!ramp) return false;
  if ((*x = texel_number(emit, index->args[0]))) return true;
  CValue first = c_index(emit, index->args[0]);
  *x = arena_printf(emit->arena, "%s / %d", c_operand(emit, first, C_PRODUCT), TEXEL);
  return true;
}

static const char *one_lane(CEmit *emit, const Buffer *buffer, const char *x, const char *lane,
                            Expr *y) {
  DType texel;
  char letter = letter_of(buffer->type, &texel);
  const char *macro = arena_printf(emit->arena, "texel_lane_%c", letter);
  if (c_define(emit->module, macro))
    text_printf(&emit->module->macros,
                "static inline %s %s(%s t, int i) {\n"
                "  return i < 2 ? (i ? t.s1 : t.s0) : (i < 3 ? t.s2 : t.s3);\n}\n",
                c_type(emit->module, dtype_lanes(texel, 1)), macro, c_type(emit->module, texel));
  return arena_printf(emit->arena, "%s(%s(%s), (int)(%s))", macro,
                      function_of(emit, "read", buffer->type), texel_at(emit, buffer, x, y), lane);
}

static CValue each_lane(CEmit *emit, const Buffer *buffer, Expr *index, Expr *y, DType type) {
  const char **lanes = arena_array(emit->arena, const char *, type.lanes);
  const char *all = c_hold(emit, c_index(emit, index), index->type);
  for (int i = 0; i < type.lanes; i++) {
    const char *index = c_lane(emit, all, i);
    const char *x = arena_printf(emit->arena, "(%s) / %d", index, TEXEL);
    const char *lane = arena_printf(emit->arena, "(%s) & %d", index, TEXEL - 1);
    lanes[i] = one_lane(emit, buffer, x, lane, y);
  }
  return c_list_of_lanes(emit, c_type(emit->module, type), lanes, type.lanes);
}

bool texture_load(CEmit *emit, Expr *e, CValue *value) {
  const Buffer *buffer = e->as.buffer;
  const char *x;
  if (!is_texture(emit, buffer)) return false;
  Expr *y = e->args[0], *index = e->args[1];
  if (e->args[0]->type.lanes > 1 || (buffer->type.lanes > 1 && index->type.lanes > 1)) {
    device_fail(emit, buffer->pos, "%s is a texture that is read along several rows at once",
                buffer->name);
    *value = c_value(C_NAME, "0");
  } else if (whole_texel(emit, buffer, index, &x)) {
    *value = c_format(emit, C_POSTFIX, "%s(%s)", function_of(emit, "read", buffer->type),
                      texel_at(emit, buffer, x, y));
  } else if (index->type.lanes == 1) {
    if (!(x = texel_number(emit, index)))
      x = arena_printf(emit->arena, "(%s) / %d", c_index(emit, index).text, TEXEL);
    *value = c_value(C_POSTFIX, one_lane(emit, buffer, x, texel_lane(emit, index), y));
  } else {
    *value = each_lane(emit, buffer, index, y, e->type);
  }
  return true;
}

bool texture_store(CEmit *emit, const Stmt *s) {
  const Buffer *buffer = s->as.store.buffer;
  const char *x;
  if (!is_texture(emit, buffer)) return false;
  Expr *y = s->as.store.indices[0], *index = s->as.store.indices[1];
  if (y->type.lanes > 1 || !whole_texel(emit, buffer, index, &x))
    return device_fail(emit, s->pos,
                       "%s is a texture, which is written in whole texels: 4 elements that follow "
                       "one another, the first at a multiple of 4\n"
                       "vectorize the innermost physical axis by 4; where a condition guards what "
                       "the elements read, compute them into local memory (cache_write), and copy "
                       "these",
                       buffer->name) ||
           true;
  DType texel;
  letter_of(buffer->type, &texel);
  CValue value = c_expr(emit, s->as.store.value);
  if (s->as.store.value->type.lanes == 1) value = c_spread(emit, value, texel);
  const char *at = texel_at(emit, buffer, x, y);
  c_line(emit, "%s(%s, %s);", function_of(emit, "write", buffer->type), at, value.text);
  return true;
}
