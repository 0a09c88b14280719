// SPDX-License-Identifier: Apache-2.0
// Writes types, constants and instructions as LLVM's text.
#include "target/llvm/emit.h"

#include "interp/interp.h"

// Small floats are represented by their bits, and only conversions (emit_cast) know their values.
// With LLVM's own type, an operation that only moves a half, such as a shuffle, becomes calls where
// the processor does not have the type.
static const char *scalar_type(Emit *emit, DType type) {
  switch ((TypeCode)type.code) {
  case TYPE_VOID: return "void";
  case TYPE_BOOL: return "i1";
  case TYPE_FLOAT:
    if (type.bits == 16) break;
    return type.bits == 32 ? "float" : "double";
  case TYPE_HANDLE: return "ptr";
  case TYPE_INT:
  case TYPE_UINT:
  case TYPE_BFLOAT:
  case TYPE_FLOAT8_E4M3:
  case TYPE_FLOAT8_E5M2:
  case TYPE_FLOAT8_E4M3_FNUZ:
  case TYPE_FLOAT8_E5M2_FNUZ:
  case TYPE_FLOAT8_E3M4:
  case TYPE_FLOAT8_E8M0:
  case TYPE_FLOAT6_E2M3:
  case TYPE_FLOAT6_E3M2:
  case TYPE_FLOAT4_E2M1: break;
  }
  return arena_printf(emit->arena, "i%d", type.bits);
}

static const char *lanes_of(Emit *emit, const char *scalar, int lanes) {
  return lanes == 1 ? scalar : arena_printf(emit->arena, "<%d x %s>", lanes, scalar);
}

const char *llvm_type(Emit *emit, DType type) {
  return lanes_of(emit, scalar_type(emit, type), type.lanes);
}

const char *llvm_memory_type(Emit *emit, DType type) {
  bool byte = dtype_is_bool(type) || type.bits < 8;
  return lanes_of(emit, byte ? "i8" : scalar_type(emit, type), type.lanes);
}

const char *llvm_zero(DType type) {
  if (type.code == TYPE_HANDLE) return "null";
  if (type.lanes > 1) return "zeroinitializer";
  return type.code == TYPE_FLOAT && type.bits > 16 ? "0.0" : "0";
}

// The text of a float is the bits of the double with the same value; a small float has its own
// bits.
static const char *float_constant(Emit *emit, DType type, double value) {
  if (type.bits <= 16)
    return arena_printf(emit->arena, "%llu", (unsigned long long)number_bits(type, value));
  uint64_t bits = number_bits(DTYPE_FLOAT64, number_round(type, value));
  return arena_printf(emit->arena, "0x%016llX", (unsigned long long)bits);
}

const char *llvm_constant(Emit *emit, DType type, const Expr *e) {
  double value = e->op == EXPR_FLOAT ? e->as.f : (double)e->as.i;
  if (dtype_is_float(type)) return float_constant(emit, type, value);
  if (dtype_is_bool(type)) return e->as.i ? "true" : "false";
  return arena_printf(emit->arena, "%lld", (long long)number_wrap(type, e->as.i));
}

const char *llvm_splat(Emit *emit, const Expr *e) {
  return arena_printf(emit->arena, "splat (%s %s)", llvm_type(emit, e->type),
                      llvm_constant(emit, e->type, e));
}

const char *emit_value(Emit *emit, const char *format, ...) {
  const char *name = arena_printf(emit->arena, "%%v%d", emit->next++);
  va_list args;
  va_start(args, format);
  text_printf(&emit->body, "  %s = ", name);
  text_vprintf(&emit->body, format, args);
  text_puts(&emit->body, "\n");
  va_end(args);
  return name;
}

void emit_line(Emit *emit, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_puts(&emit->body, "  ");
  text_vprintf(&emit->body, format, args);
  text_puts(&emit->body, "\n");
  va_end(args);
}

int emit_label_number(Emit *emit) {
  return emit->next++;
}

void emit_label(Emit *emit, const char *prefix, int number) {
  emit->block = arena_printf(emit->arena, "%%%s%d", prefix, number);
  text_printf(&emit->body, "%s:\n", emit->block + 1);
}

const char *emit_alloca(Emit *emit, const char *type, int alignment) {
  const char *name = arena_printf(emit->arena, "%%v%d", emit->next++);
  text_printf(&emit->entry, "  %s = alloca %s, align %d\n", name, type, alignment);
  return name;
}

void emit_declare(Emit *emit, const char *name, const char *format, ...) {
  Str key = str_intern(emit->context, name);
  if (map_contains(&emit->module->declared, key)) return;
  map_put(&emit->module->declared, key, key);
  va_list args;
  va_start(args, format);
  text_puts(&emit->module->declarations, "declare ");
  text_vprintf(&emit->module->declarations, format, args);
  text_puts(&emit->module->declarations, "\n");
  va_end(args);
}
