// SPDX-License-Identifier: Apache-2.0
// Writes types, names and lines of C. A vector type is defined when it is first used:
//     typedef float f32x16 __attribute__((vector_size(64)));
//     typedef float f32x16u __attribute__((vector_size(64), aligned(4), may_alias));
#include "target/c/emit.h"

// ---- Names -------------------------------------------------------------------------------------

static const char *const taken[] = {
    "auto",    "break",    "case",      "char",       "const",    "continue", "default", "do",
    "double",  "else",     "enum",      "extern",     "float",    "for",      "goto",    "if",
    "inline",  "int",      "long",      "main",       "register", "restrict", "return",  "short",
    "signed",  "sizeof",   "static",    "struct",     "switch",   "typedef",  "union",   "unsigned",
    "void",    "volatile", "while",     "args",       "begin",    "end",      "linux",   "unix",
    "asm",     "typeof",   "bool",      "true",       "false",    "weights",  "arena",   "inputs",
    "outputs", "i386",     "y0",        "y1",         "yn",       "j0",       "j1",      "jn",
    "gamma",   "index",    "exp",       "log",        "pow",      "sqrt",     "tanh",    "erf",
    "sin",     "cos",      "tan",       "signal",     "read",     "write",    "abs",     "floor",
    "ceil",    "trunc",    "round",     "exp2",       "log2",     "log10",    "log1p",   "asin",
    "acos",    "atan",     "sinh",      "cosh",       "asinh",    "acosh",    "atanh",   "fmod",
    "atan2",   "hypot",    "nextafter", "expf",       "exp2f",    "logf",     "log2f",   "log10f",
    "log1pf",  "powf",     "tanhf",     "erff",       "sinf",     "cosf",     "tanf",    "asinf",
    "acosf",   "atanf",    "sinhf",     "coshf",      "asinhf",   "acoshf",   "atanhf",  "fmodf",
    "atan2f",  "hypotf",   "roundf",    "nextafterf",
};

const char *c_identifier(Arena *arena, const char *preferred) {
  char *name =
      arena_printf(arena, "%s%s", *preferred >= '0' && *preferred <= '9' ? "v" : "", preferred);
  for (char *c = name; *c; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    if (!letter && !(*c >= '0' && *c <= '9')) *c = '_';
  }
  while (*name == '_') name++;
  return *name ? name : "v";
}

// A name that is not in the map: `preferred`, or `preferred_2` and so on.
static const char *unique_name(Context *context, Arena *arena, Map *names, const char *preferred) {
  if (!names->count)
    for (int i = 0; i < COUNT_OF(taken); i++)
      map_put(names, str_intern(context, taken[i]), (intptr_t)1);
  Str base = str_intern(context, c_identifier(arena, preferred)), name = base;
  intptr_t count = (intptr_t)map_find(names, base);
  while (count && map_contains(names, name))
    name = str_format(context, "%s_%d", base, (int)++count);
  map_put(names, base, count ? count : 1);
  map_put(names, name, (intptr_t)1);
  return name;
}

const char *c_name(CEmit *emit, const char *preferred) {
  return unique_name(emit->context, emit->arena, &emit->names, preferred);
}

const char *c_global_name(CModule *module, const char *preferred) {
  return unique_name(module->context, module->arena, &module->names, preferred);
}

bool c_define(CModule *module, const char *name) {
  Str key = str_intern(module->context, name);
  if (map_contains(&module->defined, key)) return false;
  map_put(&module->defined, key, key);
  return true;
}

// ---- Types -------------------------------------------------------------------------------------

DType c_bits_type(DType type) {
  return (DType){TYPE_INT, type.bits, type.lanes};
}

DType c_mask_type(DType type) {
  return (DType){TYPE_INT, 32, type.lanes};
}

DType c_value_type(DType type) {
  if (dtype_is_bool(type)) return type.lanes > 1 ? c_mask_type(type) : type;
  if (dtype_is_float(type) && type.bits < 32) type.code = TYPE_UINT;
  if (dtype_is_int(type) && type.bits < 8) type.bits = 8;
  return type;
}

static const char *scalar_type(CModule *module, DType type) {
  if (type.code == TYPE_VOID) return "void";
  if (type.code == TYPE_HANDLE) return "void *";
  if (dtype_is_bool(type)) return "bool";
  if (dtype_is_float(type)) return type.bits == 64 ? "double" : "float";
  return arena_printf(module->arena, "%sint%d_t", type.code == TYPE_UINT ? "u" : "", type.bits);
}

int c_lanes(DType type) {
  int lanes = 1;
  while (lanes < type.lanes) lanes *= 2;
  return lanes;
}

static const char *vector_name(CModule *module, DType type) {
  char letter = dtype_is_float(type) ? 'f' : type.code == TYPE_UINT ? 'u' : 'i';
  return arena_printf(module->arena, "%c%dx%d", letter, type.bits, c_lanes(type));
}

static const char *vector_type(CModule *module, DType type) {
  const char *name = vector_name(module, type);
  if (!c_define(module, name)) return name;
  if (module->spelling->define_vector)
    module->spelling->define_vector(module, type, name);
  else
    text_printf(&module->types, "typedef %s %s __attribute__((vector_size(%d)));\n",
                scalar_type(module, dtype_lanes(type, 1)), name, type.bits / 8 * c_lanes(type));
  return name;
}

const char *c_type(CModule *module, DType type) {
  type = c_value_type(type);
  return type.lanes > 1 ? vector_type(module, type) : scalar_type(module, type);
}

static DType memory_type(DType type) {
  if (dtype_is_bool(type)) return (DType){TYPE_UINT, 8, type.lanes};
  return c_value_type(type);
}

const char *c_memory_type(CModule *module, DType type) {
  return c_type(module, memory_type(type));
}

const char *c_unaligned_type(CModule *module, DType type) {
  type = memory_type(type);
  const char *name = arena_printf(module->arena, "%su", vector_name(module, type));
  if (c_define(module, name))
    text_printf(
        &module->types, "typedef %s %s __attribute__((vector_size(%d), aligned(%d), may_alias));\n",
        scalar_type(module, dtype_lanes(type, 1)), name, type.bits / 8 * type.lanes, type.bits / 8);
  return name;
}

// ---- Lines -------------------------------------------------------------------------------------

void c_line(CEmit *emit, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_pad(&emit->body, ' ', 2 * emit->depth);
  text_vprintf(&emit->body, format, args);
  text_puts(&emit->body, "\n");
  va_end(args);
}

enum { COLUMNS = 100 };

const char *c_broken(Arena *arena, const char *list, int column, int indent) {
  Text text = text_new(arena);
  while (*list) {
    const char *comma = strstr(list, ", ");
    int size = comma ? (int)(comma - list) + 2 : (int)strlen(list);
    if (column + size > COLUMNS && text.size) {
      text.data[--text.size] = 0; // the space
      text_puts(&text, "\n");
      text_pad(&text, ' ', indent);
      column = indent;
    }
    text_append(&text, list, (size_t)size);
    column += size;
    list += size;
  }
  return text_string(&text);
}

const char *c_byte_list(Arena *arena, const ConstData *data) {
  Text text = text_new(arena);
  const uint8_t *bytes = data->data;
  for (size_t i = 0; i < data->bytes; i++)
    text_printf(&text, "%s%u,", i % 24 ? "" : "\n  ", bytes[i]);
  if (!data->bytes) text_puts(&text, "0");
  return text_string(&text);
}
