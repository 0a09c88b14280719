// SPDX-License-Identifier: Apache-2.0
// Writes the parts of C that OpenCL C has in another form: vector types are its own, lanes are
// v.s0 to v.sf, and its functions take vectors.
#include "target/opencl/emit.h"
#include "target/opencl/rows.h"

#include <math.h>

static const char prelude[] =
    "#pragma OPENCL EXTENSION cl_khr_byte_addressable_store : enable\n"
    "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
    "typedef char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long int64_t;\n"
    "typedef uchar uint8_t;\ntypedef ushort uint16_t;\ntypedef uint uint32_t;\n"
    "typedef ulong uint64_t;\n"
    "#define INT64_C(x) x##L\n#define UINT64_C(x) x##UL\n"
    "#define INT64_MIN LONG_MIN\n#define INT64_MAX LONG_MAX\n"
    "#define INT32_MIN INT_MIN\n#define INT32_MAX INT_MAX\n"
    "#define _Alignas(n) __attribute__((aligned(n)))\n"
    "#if __OPENCL_C_VERSION__ >= 200\n"
    "#define UNROLL(n) __attribute__((opencl_unroll_hint(n)))\n"
    "#else\n#define UNROLL(n)\n#endif\n";

// Names of OpenCL C that a program's names must not be.
static const char *const reserved[] = {
    "kernel",       "global",
    "local",        "constant",
    "private",      "half",
    "float2",       "float3",
    "float4",       "float8",
    "int2",         "int3",
    "int4",         "int8",
    "uint2",        "uint3",
    "uint4",        "uint8",
    "long2",        "long4",
    "double2",      "double4",
    "uchar",        "ushort",
    "uint",         "ulong",
    "select",       "min",
    "max",          "clamp",
    "mix",          "step",
    "sign",         "dot",
    "cross",        "length",
    "fma",          "mad",
    "convert",      "barrier",
    "image2d_t",    "event_t",
    "sampler_t",    "distance",
    "normalize",    "radians",
    "degrees",      "fmin",
    "fmax",         "hypot",
    "rint",         "pipe",
    "rotate",       "hadd",
    "all",          "any",
    "shuffle",      "wait_group_events",
    "prefetch",     "size_t",
    "complex",      "imaginary",
    "read_halves",  "write_halves",
    "vec_step",     "get_local_id",
    "get_group_id", "get_global_id",
    "popcount",     "clz",
    NULL,
};

// ---- Types ------------------------------------------------------------------------------------

static const char *scalar_name(DType type) {
  if (dtype_is_float(type)) return type.bits == 64 ? "double" : "float";
  bool is_unsigned = type.code == TYPE_UINT;
  switch (type.bits) {
  case 8: return is_unsigned ? "uchar" : "char";
  case 16: return is_unsigned ? "ushort" : "short";
  case 32: return is_unsigned ? "uint" : "int";
  default: return is_unsigned ? "ulong" : "long";
  }
}

// "float4", or "float" for one lane.
static const char *type_name(Arena *arena, DType type) {
  type = c_value_type(type);
  if (type.lanes == 1) return scalar_name(type);
  return arena_printf(arena, "%s%d", scalar_name(type), c_lanes(type));
}

static void define_vector(CModule *module, DType type, const char *name) {
  text_printf(&module->types, "typedef %s %s;\n", type_name(module->arena, type), name);
}

// ---- Vectors ----------------------------------------------------------------------------------

static CValue list(CEmit *emit, const char *type, const char *lanes) {
  return c_format(emit, C_POSTFIX, "(%s)(%s)", type, lanes);
}

static const char *lane(CEmit *emit, const char *vector, int lane) {
  return arena_printf(emit->arena, "%s.s%x", vector, (unsigned)lane);
}

// A macro that gives the least integer for numbers out of range and NaN, for which OpenCL C leaves
// the result open.
static const char *truncation(CEmit *emit, DType from, DType to) {
  Arena *arena = emit->arena;
  const char *name = type_name(arena, to), *source = type_name(arena, from);
  const char *macro = arena_printf(arena, "%s_of_%s", name, source);
  if (!c_define(emit->module, macro)) return macro;
  const char *limit = from.bits == 64 ? (to.bits == 64 ? "0x1p63" : "0x1p31")
                                      : (to.bits == 64 ? "0x1p63f" : "0x1p31f");
  const char *least = to.bits == 64 ? "LONG_MIN" : "INT_MIN";
  const char *inside = arena_printf(arena, "(x) >= -%s && (x) < %s", limit, limit);
  Text *text = &emit->module->macros;
  if (to.lanes == 1)
    text_printf(text, "#define %s(x) (%s ? (%s)(x) : %s)\n", macro, inside, name, least);
  else
    text_printf(text,
                "#define %s(x) select((%s)(%s), convert_%s(select((%s)(0), x, %s)), "
                "convert_%s(%s))\n",
                macro, name, least, name, source, inside, name, inside);
  return macro;
}

static CValue convert(CEmit *emit, DType from, DType to, CValue value) {
  if (!dtype_is_float(from) || !dtype_is_int(to))
    return c_format(emit, C_POSTFIX, "convert_%s(%s)", type_name(emit->arena, to), value.text);
  return c_format(emit, C_POSTFIX, "%s(%s)", truncation(emit, from, to), c_hold(emit, value, from));
}

static CValue reinterpret(CEmit *emit, DType to, CValue value) {
  return c_format(emit, C_POSTFIX, "as_%s(%s)", type_name(emit->arena, to), value.text);
}

static CValue choose(CEmit *emit, DType type, const char *mask, CValue a, CValue b) {
  (void)type;
  return c_format(emit, C_POSTFIX, "select(%s, %s, %s)", b.text, a.text, mask);
}

static const char *extreme(CModule *module, DType type, bool least) {
  (void)module, (void)type;
  return least ? "select(a, b, (b) < (a))" : "select(a, b, (b) > (a))";
}

static CValue load_vector(CEmit *emit, DType type, const char *first, Expr *index) {
  (void)index;
  return c_format(emit, C_POSTFIX, "vload%d(0, &%s)", c_lanes(type), first);
}

static void store_vector(CEmit *emit, DType type, const char *first, Expr *index,
                         const char *value) {
  (void)index;
  c_line(emit, "vstore%d(%s, 0, &%s);", c_lanes(type), value, first);
}

// ---- Functions --------------------------------------------------------------------------------

// Some devices compute log1p of float64 wrongly.
static const char own_log1p[] =
    "static inline double own_log1p(double x) {\n  const double u = 1.0 + x;\n"
    "  return u == 1.0 || u - 1.0 == u ? x : log(u) * (x / (u - 1.0));\n}\n";

static bool is_of_device(const char *function) {
  return !strncmp(function, "native_", 7) || !strncmp(function, "half_", 5);
}

static CValue call(CEmit *emit, DType type, const char *function, const char *arguments) {
  if (is_of_device(function)) return c_format(emit, C_POSTFIX, "%s(%s)", function, arguments);
  bool own = type.lanes == 1 && !strcmp(function, "log1p");
  if (own && c_define(emit->module, "own_log1p")) text_puts(&emit->module->macros, own_log1p);
  return c_format(emit, C_POSTFIX, "%s(%s)", own ? "own_log1p" : device_function(emit, function),
                  arguments);
}

static CValue special(CEmit *emit, DType type, double value) {
  const char *text = isnan(value) ? "NAN" : value < 0 ? "-INFINITY" : "INFINITY";
  return c_format(emit, C_UNARY, type.bits == 64 ? "(double)%s" : "%s", text);
}

static const CSpelling spelling = {
    DEVICE_SPELLING,
    .needs_contents = true,
    .define_vector = define_vector,
    .list = list,
    .lane = lane,
    .convert = convert,
    .reinterpret = reinterpret,
    .choose = choose,
    .extreme = extreme,
    .call = call,
    .special = special,
    .load_vector = load_vector,
    .store_vector = store_vector,
    .store = texture_store,
    .load = texture_load,
};

static const char *head(Arena *arena, const Launch *launch) {
  const int64_t *threads = launch->threads;
  return arena_printf(arena,
                      "__kernel __attribute__((reqd_work_group_size(%lld, %lld, %lld)))\nvoid ",
                      (long long)threads[0], (long long)threads[1], (long long)threads[2]);
}

// Devices differ in the sizes of their blocks and shared memory, and say so when a kernel is made.
const DeviceDialect opencl_dialect = {
    .language = "OpenCL C",
    .prelude = prelude,
    .spelling = &spelling,
    .words = {.shared = "__local ",
              .global = "__global ",
              .pointer = "restrict",
              .constant = "__constant ",
              .constants = "__constant ",
              .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
              .block = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)"},
              .thread = {"get_local_id(0)", "get_local_id(1)", "get_local_id(2)"},
              .item = "(int64_t)get_global_id(0)"},
    .reserved = reserved,
    .most_lanes = LOWER_DEVICE_LANES,
    .item_threads = 1,
    .blocks = {INT64_MAX, INT64_MAX, INT64_MAX},
    .threads = {INT64_MAX, INT64_MAX, INT64_MAX},
    .block_threads = INT64_MAX,
    .shared_bytes = INT64_MAX,
    .head = head,
    .takes_texture = texture_is_supported,
};

bool opencl_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
                 const char *ending, Text *out) {
  if (!strcmp(ending, ".c"))
    return device_refuse_host(context);
  return device_emit(context, &opencl_dialect, unit, options, out, out);
}
