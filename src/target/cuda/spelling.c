// SPDX-License-Identifier: Apache-2.0
// Writes the parts of C that CUDA C++ has in another form. CUDA has no arithmetic on vectors, so
// each file brings a template of vectors with the operators of C's vector extensions, lane by lane:
//     typedef pleat::Vec<float, 4> f32x4;
// A vector of up to 16 bytes at an address that is known to be aligned is read as one.
#include "target/cuda/rows.h"
#include "target/cuda/runtime.h"

#include <math.h>

static const char prelude[] =
    "#ifdef __CUDACC_RTC__\n"
    "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\n"
    "typedef long long int64_t;\ntypedef unsigned char uint8_t;\n"
    "typedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"
    "typedef unsigned long long uint64_t;\n"
    "#define INT64_C(x) x##LL\n#define UINT64_C(x) x##ULL\n"
    "#define INT64_MAX 9223372036854775807LL\n#define INT64_MIN (-INT64_MAX - 1)\n"
    "#define INT32_MAX 2147483647\n#define INT32_MIN (-INT32_MAX - 1)\n"
    "#else\n#include <math.h>\n#include <stdint.h>\n#include <string.h>\n#endif\n"
    "#define _Alignas(n) alignas(n)\n"
    "#define PRAGMA(x) _Pragma(#x)\n#define UNROLL(n) PRAGMA(unroll n)\n\n"
    "namespace pleat {\n"
    "template <class T> struct Same { typedef T type; };\n"
    "// Integers wrap, which signed ones of C++ do not.\n"
    "template <class T> struct Wrap { typedef T type; };\n"
    "template <> struct Wrap<int8_t> { typedef uint32_t type; };\n"
    "template <> struct Wrap<int16_t> { typedef uint32_t type; };\n"
    "template <> struct Wrap<uint16_t> { typedef uint32_t type; };\n"
    "template <> struct Wrap<int32_t> { typedef uint32_t type; };\n"
    "template <> struct Wrap<int64_t> { typedef uint64_t type; };\n"
    "template <int bytes> struct Bits { typedef int32_t type; };\n"
    "template <> struct Bits<1> { typedef int8_t type; };\n"
    "template <> struct Bits<2> { typedef int16_t type; };\n"
    "template <> struct Bits<8> { typedef int64_t type; };\n"
    "template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec {\n"
    "  typedef T Lane;\n  static const int count = N;\n  T lanes[N];\n};\n"
    "#define EACH_LANE for (int i = 0; i < N; i++)\n"
    "#define OPERATOR(op, R, value) \\\n"
    "  template <class T, int N> __device__ inline Vec<R, N> operator op(Vec<T, N> a, \\\n"
    "                                                                 Vec<T, N> b) { \\\n"
    "    Vec<R, N> y; EACH_LANE { const T p = a.lanes[i], q = b.lanes[i]; \\\n"
    "      y.lanes[i] = (R)(value); } return y; } \\\n"
    "  template <class T, int N> __device__ inline Vec<R, N> operator op( \\\n"
    "      Vec<T, N> a, typename Same<T>::type q) { \\\n"
    "    Vec<R, N> y; EACH_LANE { const T p = a.lanes[i]; y.lanes[i] = (R)(value); } \\\n"
    "    return y; } \\\n"
    "  template <class T, int N> __device__ inline Vec<R, N> operator op( \\\n"
    "      typename Same<T>::type p, Vec<T, N> b) { \\\n"
    "    Vec<R, N> y; EACH_LANE { const T q = b.lanes[i]; y.lanes[i] = (R)(value); } \\\n"
    "    return y; }\n"
    "#define WRAPPED(op) OPERATOR(op, T, (typename Wrap<T>::type)p op (typename Wrap<T>::type)q)\n"
    "#define PLAIN(op) OPERATOR(op, T, p op q)\n"
    "#define COMPARED(op) OPERATOR(op, typename Bits<sizeof(T)>::type, -(p op q))\n"
    "WRAPPED(+) WRAPPED(-) WRAPPED(*) PLAIN(/) PLAIN(%) PLAIN(&) PLAIN(|) PLAIN(^) PLAIN(>>)\n"
    "OPERATOR(<<, T, (typename Wrap<T>::type)p << q)\n"
    "COMPARED(==) COMPARED(!=) COMPARED(<) COMPARED(<=) COMPARED(>) COMPARED(>=)\n"
    "#define UNARY(name, value) \\\n"
    "  template <class T, int N> __device__ inline Vec<T, N> name(Vec<T, N> a) { \\\n"
    "    EACH_LANE { const T p = a.lanes[i]; a.lanes[i] = (T)(value); } return a; }\n"
    "UNARY(operator-, -(typename Wrap<T>::type)p) UNARY(operator~, ~p)\n"
    "UNARY(sqrt, ::sqrt(p)) UNARY(floor, ::floor(p)) UNARY(ceil, ::ceil(p))\n"
    "UNARY(trunc, ::trunc(p)) UNARY(rint, ::rint(p)) UNARY(fabs, ::fabs(p))\n"
    "template <class T, int N> __device__ inline Vec<T, N> fma(Vec<T, N> a, Vec<T, N> b,\n"
    "                                                          Vec<T, N> c) {\n"
    "  EACH_LANE a.lanes[i] = ::fma(a.lanes[i], b.lanes[i], c.lanes[i]);\n  return a;\n}\n"
    "template <class T, int N> __device__ inline Vec<T, N> lesser(Vec<T, N> a, Vec<T, N> b) {\n"
    "  EACH_LANE a.lanes[i] = b.lanes[i] < a.lanes[i] ? b.lanes[i] : a.lanes[i];\n"
    "  return a;\n}\n"
    "template <class T, int N> __device__ inline Vec<T, N> greater(Vec<T, N> a, Vec<T, N> b) {\n"
    "  EACH_LANE a.lanes[i] = b.lanes[i] > a.lanes[i] ? b.lanes[i] : a.lanes[i];\n"
    "  return a;\n}\n"
    "template <class M, class T, int N>\n"
    "__device__ inline Vec<T, N> choose(Vec<M, N> mask, Vec<T, N> a, Vec<T, N> b) {\n"
    "  EACH_LANE a.lanes[i] = mask.lanes[i] ? a.lanes[i] : b.lanes[i];\n  return a;\n}\n"
    "template <class V, class... A> __device__ inline V list(A... a) {\n"
    "  return V{{(typename V::Lane)a...}};\n}\n"
    "template <class A, class B> __device__ inline A reinterpret(B b) {\n"
    "  static_assert(sizeof(A) == sizeof(B), \"as many bytes\");\n"
    "  A a;\n  memcpy(&a, &b, sizeof a);\n  return a;\n}\n"
    "// Numbers out of range and NaN give the least integer.\n"
    "template <class T, class F> __device__ inline T convert_one(F x) { return (T)x; }\n"
    "#define CONVERTED(T, F, limit, least) \\\n"
    "  template <> __device__ inline T convert_one<T, F>(F x) { \\\n"
    "    return x >= -limit && x < limit ? (T)x : least; }\n"
    "CONVERTED(int32_t, float, 2147483648.0f, INT32_MIN)\n"
    "CONVERTED(int32_t, double, 2147483648.0, INT32_MIN)\n"
    "CONVERTED(int64_t, float, 9223372036854775808.0f, INT64_MIN)\n"
    "CONVERTED(int64_t, double, 9223372036854775808.0, INT64_MIN)\n"
    "template <class V, class T, int N> __device__ inline V convert(Vec<T, N> x) {\n"
    "  V y;\n  EACH_LANE y.lanes[i] = convert_one<typename V::Lane>(x.lanes[i]);\n  return y;\n}\n"
    "template <class V> __device__ inline V load(const typename V::Lane *from) {\n"
    "  V y;\n  for (int i = 0; i < V::count; i++) y.lanes[i] = from[i];\n  return y;\n}\n"
    "template <class T, int N> __device__ inline void store(T *to, Vec<T, N> x) {\n"
    "  EACH_LANE to[i] = x.lanes[i];\n}\n"
    "} // namespace pleat\n";

// Names of CUDA C++ that a program's names must not be.
static const char *const reserved[] = {
    "pleat",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "class",
    "new",
    "delete",
    "this",
    "template",
    "typename",
    "operator",
    "private",
    "public",
    "protected",
    "namespace",
    "using",
    "virtual",
    "friend",
    "try",
    "catch",
    "throw",
    "explicit",
    "export",
    "mutable",
    "constexpr",
    "nullptr",
    "static_assert",
    "thread_local",
    "decltype",
    "noexcept",
    "alignas",
    "alignof",
    "typeid",
    "wchar_t",
    "char16_t",
    "char32_t",
    "and",
    "or",
    "not",
    "xor",
    "bitand",
    "bitor",
    "compl",
    "and_eq",
    "or_eq",
    "xor_eq",
    "not_eq",
    "min",
    "max",
    "memcpy",
    "memset",
    "malloc",
    "free",
    "printf",
    "clock",
    "PRAGMA",
    "UNROLL",
    "EACH_LANE",
    "OPERATOR",
    "WRAPPED",
    "PLAIN",
    "COMPARED",
    "UNARY",
    "CONVERTED",
    "float1",
    "float2",
    "float3",
    "float4",
    "int1",
    "int2",
    "int3",
    "int4",
    "double2",
    "double4",
    "dim3",
    "const_cast",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "dynamic_cast",
    "static_cast",
    "reinterpret_cast",
    "char8_t",
    "concept",
    "requires",
    "fdim",
    "fmin",
    "fmax",
    "ldexp",
    "frexp",
    "modf",
    "scalbn",
    "norm",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "nan",
    "lround",
    "cbrt",
    "expm1",
    "logb",
    "ilogb",
    "assert",
    "NULL",
    "acosf",
    "acoshf",
    "asinf",
    "asinhf",
    "atan2f",
    "atanf",
    "atanhf",
    "cbrtf",
    "ceilf",
    "clock64",
    "copysign",
    "copysignf",
    "cosf",
    "coshf",
    "cospi",
    "cospif",
    "cudaStream_t",
    "cyl_bessel_i0",
    "cyl_bessel_i0f",
    "cyl_bessel_i1",
    "cyl_bessel_i1f",
    "erfc",
    "erfcf",
    "erfcinv",
    "erfcinvf",
    "erfcx",
    "erfcxf",
    "erff",
    "erfinv",
    "erfinvf",
    "exp10",
    "exp10f",
    "exp2f",
    "expf",
    "expm1f",
    "fabsf",
    "fdimf",
    "fdivide",
    "fdividef",
    "floorf",
    "fmaf",
    "fmaxf",
    "fminf",
    "fmodf",
    "frexpf",
    "hypotf",
    "ilogbf",
    "j0f",
    "j1f",
    "jnf",
    "labs",
    "ldexpf",
    "lgamma",
    "lgammaf",
    "llabs",
    "llmax",
    "llmin",
    "llrint",
    "llrintf",
    "llround",
    "llroundf",
    "log10f",
    "log1pf",
    "log2f",
    "logbf",
    "logf",
    "lrint",
    "lrintf",
    "lroundf",
    "modff",
    "nanf",
    "nearbyint",
    "nearbyintf",
    "nextafterf",
    "norm3d",
    "norm3df",
    "norm4d",
    "norm4df",
    "normcdf",
    "normcdff",
    "normcdfinv",
    "normcdfinvf",
    "normf",
    "powf",
    "ptrdiff_t",
    "rcbrt",
    "rcbrtf",
    "remainder",
    "remainderf",
    "remquo",
    "remquof",
    "rhypot",
    "rhypotf",
    "rintf",
    "rnorm",
    "rnorm3d",
    "rnorm3df",
    "rnorm4d",
    "rnorm4df",
    "rnormf",
    "roundf",
    "rsqrt",
    "rsqrtf",
    "scalbln",
    "scalblnf",
    "scalbnf",
    "sincos",
    "sincosf",
    "sincospi",
    "sincospif",
    "sinf",
    "sinhf",
    "sinpi",
    "sinpif",
    "sqrtf",
    "tanf",
    "tanhf",
    "tgamma",
    "tgammaf",
    "truncf",
    "ullmax",
    "ullmin",
    "umax",
    "umin",
    "y0f",
    "y1f",
    "ynf",
    NULL,
};

// ---- Vectors ----------------------------------------------------------------------------------

static void define_vector(CModule *module, DType type, const char *name) {
  text_printf(&module->types, "typedef pleat::Vec<%s, %d> %s;\n",
              c_type(module, dtype_lanes(type, 1)), c_lanes(type), name);
}

static CValue list(CEmit *emit, const char *type, const char *lanes) {
  return c_format(emit, C_POSTFIX, "pleat::list<%s>(%s)", type, lanes);
}

static const char *lane(CEmit *emit, const char *vector, int lane) {
  return arena_printf(emit->arena, "%s.lanes[%d]", vector, lane);
}

static CValue convert(CEmit *emit, DType from, DType to, CValue value) {
  (void)from;
  return c_format(emit, C_POSTFIX, "pleat::convert%s<%s>(%s)", to.lanes == 1 ? "_one" : "",
                  c_type(emit->module, to), value.text);
}

static CValue reinterpret(CEmit *emit, DType to, CValue value) {
  return c_format(emit, C_POSTFIX, "pleat::reinterpret<%s>(%s)", c_type(emit->module, to),
                  value.text);
}

static CValue choose(CEmit *emit, DType type, const char *mask, CValue a, CValue b) {
  (void)type;
  return c_format(emit, C_POSTFIX, "pleat::choose(%s, %s, %s)", mask, a.text, b.text);
}

static const char *extreme(CModule *module, DType type, bool least) {
  (void)module, (void)type;
  return least ? "pleat::lesser(a, b)" : "pleat::greater(a, b)";
}

// ---- Memory -----------------------------------------------------------------------------------

enum { MOST_ALIGNED = 16 }; // bytes that one instruction reads

// Whether the address of the element with this index is aligned for a vector that begins there.
static bool is_aligned(const CEmit *emit, DType type, Expr *index) {
  const DeviceKernel *kernel = emit->dialect;
  int element = dtype_bytes(dtype_lanes(type, 1));
  int bytes = MIN_OF(element * c_lanes(type), MOST_ALIGNED);
  return modular_is_multiple(kernel->analyzer, index, bytes / element);
}

static CValue load_vector(CEmit *emit, DType type, const char *first, Expr *index) {
  const char *name = c_memory_type(emit->module, type);
  if (is_aligned(emit, type, index))
    return c_format(emit, C_UNARY, "*(const %s *)&%s", name, first);
  return c_format(emit, C_POSTFIX, "pleat::load<%s>(&%s)", name, first);
}

static void store_vector(CEmit *emit, DType type, const char *first, Expr *index,
                         const char *value) {
  if (is_aligned(emit, type, index))
    c_line(emit, "*(%s *)&%s = %s;", c_memory_type(emit->module, type), first, value);
  else
    c_line(emit, "pleat::store(&%s, %s);", first, value);
}

// ---- Functions and numbers --------------------------------------------------------------------

// A function of the device, such as __expf, is called as it is named.
static CValue call(CEmit *emit, DType type, const char *function, const char *arguments) {
  if (!strncmp(function, "__", 2)) return c_format(emit, C_POSTFIX, "%s(%s)", function, arguments);
  const char *name = device_function(emit, function);
  if (type.lanes > 1) return c_format(emit, C_POSTFIX, "pleat::%s(%s)", name, arguments);
  return c_format(emit, C_POSTFIX, "%s%s(%s)", name, type.bits == 64 ? "" : "f", arguments);
}

static CValue special(CEmit *emit, DType type, double value) {
  bool wide = type.bits == 64;
  unsigned sign = value < 0, exponent = wide ? 0x7ff00000u : 0x7f800000u;
  unsigned high = sign << 31 | exponent | (isnan(value) ? (wide ? 0x80000u : 0x400000u) : 0);
  return c_format(emit, C_POSTFIX, "pleat::reinterpret<%s>(0x%08x%s)", wide ? "double" : "float",
                  high, wide ? "00000000ULL" : "u");
}

// ---- The dialect ------------------------------------------------------------------------------

static const CSpelling spelling = {
    DEVICE_SPELLING,
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
};

static const char *head(Arena *arena, const Launch *launch) {
  const int64_t *threads = launch->threads;
  return arena_printf(arena, "extern \"C\" __global__ void __launch_bounds__(%lld)\n",
                      (long long)(threads[0] * threads[1] * threads[2]));
}

const DeviceDialect cuda_dialect = {
    .language = "CUDA C++",
    .prelude = prelude,
    .spelling = &spelling,
    .words = {.shared = "__shared__ ",
              .global = "",
              .pointer = "__restrict__",
              .constant = "const ",
              .constants = "static __device__ const ",
              .barrier = "__syncthreads();",
              .block = {"blockIdx.x", "blockIdx.y", "blockIdx.z"},
              .thread = {"threadIdx.x", "threadIdx.y", "threadIdx.z"},
              .item = "(int64_t)blockIdx.x * blockDim.x + threadIdx.x"},
    .reserved = reserved,
    .advice = "// Compile with -fmad=false for the results of the other targets: a multiply-add in "
              "one rounding\n// is then only where the program has one. Memory of tensors is "
              "aligned to 64 bytes.\n",
    .most_lanes = LOWER_MAX_LANES,
    .item_threads = 128,
    .blocks = {INT32_MAX, 65535, 65535},
    .threads = {1024, 1024, 64},
    .block_threads = 1024,
    .shared_bytes = 48 * 1024,
    .head = head,
};

bool cuda_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
               const char *ending, Text *out) {
  if (!strcmp(ending, ".c"))
    return device_refuse_host(context);
  if (!strcmp(ending, ".cu")) return device_emit(context, &cuda_dialect, unit, options, out, out);
  Text text = text_new(&context->scratch);
  return device_emit(context, &cuda_dialect, unit, options, out, &text) &&
         nvrtc_compile(context, text_string(&text), 0, out);
}
