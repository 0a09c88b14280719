// SPDX-License-Identifier: Apache-2.0
// Types, and the small functions that C has no operator for. Each is written once, where it is
// first asked for. Loops over lanes have a constant count and become one instruction.
#include "target/c/emit.h"

static bool is_new(CUnit *unit, const char *name) {
  Str key = str_intern(unit->context, name);
  if (map_contains(&unit->declared, key)) return false;
  map_put(&unit->declared, key, key);
  return true;
}

bool c_helper_is_new(CUnit *unit, const char *name) {
  return is_new(unit, name);
}

static int storage_bits(DType type) {
  return MAX_OF(type.bits, 8);
}

static const char *scalar_type(CUnit *unit, DType type) {
  switch ((TypeCode)type.code) {
  case TYPE_VOID: return "void";
  case TYPE_BOOL: return "bool";
  case TYPE_HANDLE: return "const void *";
  case TYPE_FLOAT:
    if (type.bits == 64) return "double";
    if (type.bits == 32) return "float";
    return "uint16_t";
  case TYPE_INT: return arena_printf(unit->arena, "int%d_t", storage_bits(type));
  case TYPE_UINT:
  case TYPE_BFLOAT:
  case TYPE_FLOAT8_E4M3:
  case TYPE_FLOAT8_E5M2: break;
  }
  return arena_printf(unit->arena, "uint%d_t", storage_bits(type));
}

static const char *vector_type(CUnit *unit, const char *scalar, int bits, int lanes,
                               bool unaligned) {
  size_t stem = strlen(scalar);
  if (stem > 2 && !strcmp(scalar + stem - 2, "_t")) stem -= 2;
  const char *name = arena_printf(unit->arena, "%.*sx%d%s", (int)stem, scalar, lanes,
                                  unaligned ? "_u" : "");
  if (!is_new(unit, name)) return name;
  int bytes = bits / 8 * lanes;
  text_printf(&unit->types, "typedef %s %s __attribute__((vector_size(%d)%s", scalar, name, bytes,
              unaligned ? ", may_alias" : "");
  if (unaligned) text_printf(&unit->types, ", aligned(%d)", bits / 8);
  text_puts(&unit->types, "));\n");
  return name;
}

const char *c_type(CUnit *unit, DType type) {
  const char *scalar = scalar_type(unit, type);
  if (type.lanes == 1) return scalar;
  return vector_type(unit, scalar, storage_bits(type), type.lanes, false);
}

// A bool takes a byte.
const char *c_memory_type(CUnit *unit, DType type) {
  if (dtype_is_bool(type)) type = dtype_lanes(DTYPE_UINT8, type.lanes);
  return c_type(unit, type);
}

const char *c_unaligned_type(CUnit *unit, DType type) {
  if (dtype_is_bool(type)) type = dtype_lanes(DTYPE_UINT8, type.lanes);
  return vector_type(unit, scalar_type(unit, type), storage_bits(type), type.lanes, true);
}

const char *c_mask_type(CUnit *unit, int bits, int lanes) {
  return c_type(unit, (DType){TYPE_INT, (uint8_t)bits, (uint16_t)lanes});
}

// ---- Helpers -----------------------------------------------------------------------------------

const char *c_select(CUnit *unit, DType type) {
  const char *t = c_type(unit, type), *name = arena_printf(unit->arena, "select_%s", t);
  if (!is_new(unit, name)) return name;
  const char *mask = c_mask_type(unit, storage_bits(type), type.lanes);
  text_printf(&unit->helpers,
              "static inline %s %s(%s c, %s a, %s b) {\n"
              "  return (%s)((c & (%s)a) | (~c & (%s)b));\n}\n",
              t, name, mask, t, t, t, mask, mask);
  return name;
}

const char *c_extreme(CUnit *unit, ExprOp op, DType type) {
  const char *t = c_type(unit, type);
  const char *name = arena_printf(unit->arena, "%s_%s", op == EXPR_MIN ? "min" : "max", t);
  char sign = op == EXPR_MIN ? '<' : '>';
  if (!is_new(unit, name)) return name;
  if (type.lanes == 1)
    text_printf(&unit->helpers,
                "static inline %s %s(%s a, %s b) {\n  return b %c a ? b : a;\n}\n", t, name, t, t,
                sign);
  else
    text_printf(&unit->helpers,
                "static inline %s %s(%s a, %s b) {\n"
                "  for (int i = 0; i < %d; i++) a[i] = b[i] %c a[i] ? b[i] : a[i];\n"
                "  return a;\n}\n",
                t, name, t, t, type.lanes, sign);
  return name;
}

const char *c_unary(CUnit *unit, DType type, const char *function) {
  const char *t = c_type(unit, type), *name = arena_printf(unit->arena, "%s_%s", function, t);
  if (!is_new(unit, name)) return name;
  text_printf(&unit->helpers,
              "static inline %s %s(%s a) {\n"
              "  for (int i = 0; i < %d; i++) a[i] = __builtin_%s(a[i]);\n"
              "  return a;\n}\n",
              t, name, t, type.lanes, function);
  return name;
}

const char *c_spread(CUnit *unit, DType type) {
  const char *t = c_type(unit, type), *name = arena_printf(unit->arena, "all_%s", t);
  if (!is_new(unit, name)) return name;
  text_printf(&unit->helpers, "static inline %s %s(%s a) {\n  return (%s){", t, name,
              c_type(unit, dtype_lanes(type, 1)), t);
  for (int i = 0; i < type.lanes; i++) text_puts(&unit->helpers, i ? ", a" : "a");
  text_puts(&unit->helpers, "};\n}\n");
  return name;
}

// Halves are combined until one lane is left, as every target does.
const char *c_reduction(CUnit *unit, ExprOp op, DType type) {
  const char *t = c_type(unit, type);
  const char *verb = op == EXPR_VECTOR_SUM ? "sum" : op == EXPR_VECTOR_MIN ? "least" : "greatest";
  const char *name = arena_printf(unit->arena, "%s_%s", verb, t);
  if (!is_new(unit, name)) return name;
  const char *step = op == EXPR_VECTOR_SUM   ? "a[i] += a[i + n]"
                     : op == EXPR_VECTOR_MIN ? "a[i] = a[i + n] < a[i] ? a[i + n] : a[i]"
                                             : "a[i] = a[i + n] > a[i] ? a[i + n] : a[i]";
  text_printf(&unit->helpers,
              "static inline %s %s(%s a) {\n"
              "  for (int n = %d; n; n /= 2)\n    for (int i = 0; i < n; i++) %s;\n"
              "  return a[0];\n}\n",
              c_type(unit, dtype_lanes(type, 1)), name, t, type.lanes / 2, step);
  return name;
}

const char *c_reinterpret(CUnit *unit, const char *from, const char *to) {
  const char *name = arena_printf(unit->arena, "%s_as_%s", from, to);
  if (!is_new(unit, name)) return name;
  text_printf(&unit->helpers,
              "static inline %s %s(%s a) {\n  %s b;\n  __builtin_memcpy(&b, &a, sizeof b);\n"
              "  return b;\n}\n",
              to, name, from, to);
  return name;
}
