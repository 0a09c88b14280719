// SPDX-License-Identifier: Apache-2.0
// Makes the checks of a program's arguments: first device, rank and element type of each, then the
// values of the program's sizes, then shape, strides, memory and its alignment of each argument. A
// check relies on those before it.
#include "target/checks.h"

#include "ir/intrinsic.h"
#include "lower/lower.h"
#include "runtime/runtime.h"
#include "target/sizes.h"

typedef struct CallChecks {
  Context *context;
  const TargetProgram *program;
  TargetCall *call;
  WideSizes sizes;
  const TargetTensor *tensor; // the one that is checked,
  int argument;               // and its number
  // For each argument, the DLTensor and its arrays of extents and strides; NULL: not read yet.
  Expr **pointers, **shapes, **strides;
} CallChecks;

// ---- Statements

static Expr *number(const CallChecks *c, int64_t value) {
  return expr_int(c->context, DTYPE_INT64, value);
}

static Expr *wide(const CallChecks *c, Expr *e) {
  return expr_cast(c->context, DTYPE_INT64, e);
}

static Expr *binary(const CallChecks *c, ExprOp op, Expr *a, Expr *b) {
  return expr_binary(c->context, op, a, b);
}

static void push(CallChecks *c, Stmt *s) {
  array_push(&c->context->arena, &c->call->statements, s);
}

static void define(CallChecks *c, Expr *var, Expr *value) {
  push(c, stmt_let(c->context, var, target_legal_size(c->context, value), NULL));
}

static Expr *pointer_named(CallChecks *c, const char *suffix, Expr *value) {
  Arena *arena = &c->context->scratch;
  Expr *var =
      expr_var(c->context, arena_printf(arena, "%s%s", c->tensor->name, suffix), DTYPE_HANDLE);
  define(c, var, value);
  return var;
}

// The name as a string of C and LLVM can hold it.
static const char *plain_name(Arena *arena, const char *name) {
  char *text = arena_printf(arena, "%s", name);
  for (char *t = text; *t; t++)
    if ((unsigned char)*t < ' ' || *t == '"' || *t == '\\' || *t == '?') *t = '_';
  return text;
}

static void check(CallChecks *c, Expr *condition, const char *what, Expr *expected, Expr *got) {
  Context *context = c->context;
  if (expr_is_true(condition)) return;
  Expr *parts[] = {expr_string(context, what), target_legal_size(context, expected),
                   target_legal_size(context, got)};
  Stmt *s = arena_new(&context->arena, Stmt);
  s->kind = STMT_ASSERT;
  s->as.check.condition = target_legal_size(context, condition);
  s->as.check.message = expr_tuple(context, parts, 3);
  push(c, s);
}

static const char *described(const CallChecks *c, const char *what) {
  Arena *arena = &c->context->scratch;
  return arena_printf(arena, "argument %d '%s': %s", c->argument,
                      plain_name(arena, c->tensor->name), what);
}

// Checks that `got`, an integer, has a value, unless `exempt` (which may be NULL) holds.
static void check_equal(CallChecks *c, Expr *exempt, Expr *got, Expr *expected, const char *what) {
  Expr *equal = binary(c, EXPR_EQ, got, expected);
  check(c, exempt ? binary(c, EXPR_OR, exempt, equal) : equal, described(c, what), expected, got);
}

static void check_not_null(CallChecks *c, Expr *exempt, Expr *pointer, const char *what) {
  Expr *null = expr_is_null(c->context, pointer);
  Expr *fits = expr_unary(c->context, EXPR_NOT, null);
  check(c, exempt ? binary(c, EXPR_OR, exempt, fits) : fits, described(c, what), number(c, 0),
        number(c, 1));
}

static Expr *field(const CallChecks *c, StructField which, DType type) {
  return expr_field(c->context, c->pointers[c->argument], 0, which, type);
}

static Expr *element(const CallChecks *c, Expr *array, int axis) {
  return expr_field(c->context, array, axis, FIELD_ELEMENT, DTYPE_INT64);
}

// ---- What has nothing to do with sizes

static void check_type(CallChecks *c) {
  Arena *arena = &c->context->scratch;
  const char *name = dtype_name(c->context, c->tensor->type);
  DType byte = DTYPE_UINT8, half = DTYPE(TYPE_UINT, 16);
  ElementType type = {0};
  element_type_parse(name, &type);
  check_equal(c, NULL, wide(c, field(c, FIELD_CODE, byte)), number(c, type.code),
              arena_printf(arena, "type code (%s)", name));
  check_equal(c, NULL, wide(c, field(c, FIELD_BITS, byte)), number(c, type.bits),
              arena_printf(arena, "bits of an element (%s)", name));
  check_equal(c, NULL, wide(c, field(c, FIELD_LANES, half)), number(c, type.lanes),
              arena_printf(arena, "lanes of an element (%s)", name));
}

static void check_kind(CallChecks *c) {
  c->pointers[c->argument] = pointer_named(
      c, "", expr_field(c->context, c->call->tensors, c->argument, FIELD_ELEMENT, DTYPE_HANDLE));
  check_not_null(c, NULL, c->pointers[c->argument], "is NULL");
  check_equal(c, NULL, wide(c, field(c, FIELD_DEVICE_TYPE, DTYPE_INT32)), number(c, 1),
              "device type (1 is the processor)");
  check_equal(c, NULL, wide(c, field(c, FIELD_RANK, DTYPE_INT32)), number(c, c->tensor->rank),
              "number of axes");
  check_type(c);
  if (!c->tensor->rank) return;
  c->shapes[c->argument] = pointer_named(c, "_shape", field(c, FIELD_SHAPE, DTYPE_HANDLE));
  check_not_null(c, NULL, c->shapes[c->argument], "shape is NULL");
}

// ---- Sizes

static void select_argument(CallChecks *c, int argument) {
  c->argument = argument;
  c->tensor = target_program_tensor(c->program, argument);
}

static void check_range(CallChecks *c, Expr *value, int64_t least, int64_t most, const char *what) {
  Arena *arena = &c->context->scratch;
  check(c, binary(c, EXPR_GE, value, number(c, least)),
        described(c, arena_printf(arena, "%s, at least", what)), number(c, least), value);
  check(c, binary(c, EXPR_LE, value, number(c, most)),
        described(c, arena_printf(arena, "%s, at most", what)), number(c, most), value);
}

static Expr *strides_of(CallChecks *c) {
  Expr **strides = &c->strides[c->argument];
  if (!*strides) *strides = pointer_named(c, "_strides", field(c, FIELD_STRIDES, DTYPE_HANDLE));
  return *strides;
}

static int64_t item_bytes(const CallChecks *c) {
  return dtype_bytes(c->tensor->type) * (int64_t)MAX_OF(c->tensor->type.lanes, 1);
}

// The elements between the memory of the tensor and its first one.
static Expr *read_offset(CallChecks *c) {
  Expr *bytes = wide(c, field(c, FIELD_BYTE_OFFSET, DTYPE(TYPE_UINT, 64)));
  Expr *size = number(c, item_bytes(c));
  check_equal(c, NULL, binary(c, EXPR_TRUNC_MOD, bytes, size), number(c, 0),
              arena_printf(&c->context->scratch, "byte offset modulo the %lld bytes of an element",
                           (long long)item_bytes(c)));
  return binary(c, EXPR_TRUNC_DIV, bytes, size);
}

static void read_size(CallChecks *c, int i) {
  Arena *arena = &c->context->scratch;
  const TargetSize *size = &c->program->sizes[i];
  Expr *value = c->call->sizes[i];
  int64_t most = size->var->type.bits < 64 ? INT32_MAX : c->sizes.most;
  select_argument(c, size->argument);
  switch (size->from) {
  case LOWER_FROM_STRIDE:
    check_not_null(c, NULL, strides_of(c), "strides are NULL");
    define(c, value, element(c, strides_of(c), size->axis));
    check_range(c, value, -most, most, arena_printf(arena, "stride of axis %d", size->axis));
    break;
  case LOWER_FROM_OFFSET:
    define(c, value, read_offset(c));
    check_range(c, value, 0, most, "element offset");
    break;
  default:
    define(c, value, element(c, c->shapes[size->argument], size->axis));
    check_range(c, value, 0, most, arena_printf(arena, "extent of axis %d", size->axis));
  }
}

// ---- Shapes and memory

static Expr *extent(CallChecks *c, int axis) {
  c->sizes.parts.count = 0;
  return wide_size(&c->sizes, c->tensor->shape[axis]);
}

// Does a size get its value from the extent, or the stride, of this axis, or from the offset?
static bool defines_size(const CallChecks *c, int axis, int from) {
  for (int i = 0; i < c->program->size_count; i++) {
    const TargetSize *size = &c->program->sizes[i];
    bool is_axis = from == LOWER_FROM_OFFSET || size->axis == axis;
    if (size->from == from && size->argument == c->argument && is_axis) return true;
  }
  return false;
}

static void check_extent(CallChecks *c, int axis) {
  Arena *arena = &c->context->scratch;
  if (defines_size(c, axis, LOWER_FROM_SHAPE)) return;
  Expr *expected = extent(c, axis);
  for (int i = 0; i < c->sizes.parts.count; i++)
    check_range(c, c->sizes.parts.items[i], INT32_MIN, INT32_MAX,
                arena_printf(arena, "extent of axis %d in 32 bits", axis));
  check_equal(c, NULL, element(c, c->shapes[c->argument], axis), expected,
              arena_printf(arena, "extent of axis %d", axis));
}

static Expr *stated_stride(CallChecks *c, int axis) {
  c->sizes.parts.count = 0;
  return wide_size(&c->sizes, c->tensor->strides[axis]);
}

// Rows without gaps, whose strides may be NULL, must have the strides that are expected.
static void check_stride(CallChecks *c, Expr *exempt, int axis, Expr *expected, Expr *compact) {
  const char *what = arena_printf(&c->context->scratch, "stride of axis %d", axis);
  Expr *strides = strides_of(c), *is_null = expr_is_null(c->context, strides);
  if (expected != compact) {
    Expr *given = binary(c, EXPR_OR, exempt, expr_unary(c->context, EXPR_NOT, is_null));
    check_equal(c, given, compact, expected, what);
  }
  check_equal(c, binary(c, EXPR_OR, exempt, is_null), element(c, strides, axis), expected, what);
}

// Strides say nothing where there is at most one element along the axis.
static void check_strides(CallChecks *c, Expr *is_empty) {
  Expr *step = number(c, 1);
  for (int k = c->tensor->rank - 1; k >= 0; k--) {
    Expr *size = extent(c, k);
    Expr *exempt = binary(c, EXPR_OR, is_empty, binary(c, EXPR_EQ, size, number(c, 1)));
    Expr *expected = c->tensor->strides ? stated_stride(c, k) : step;
    bool is_free = defines_size(c, k, LOWER_FROM_STRIDE);
    if (!is_free && !expr_is_true(exempt)) check_stride(c, exempt, k, expected, step);
    step = expr_mul(c->context, step, size);
  }
}

static Expr *absolute(const CallChecks *c, Expr *e) {
  Expr *zero = number(c, 0);
  return expr_select(c->context, binary(c, EXPR_LT, e, zero), binary(c, EXPR_SUB, zero, e), e);
}

// The code computes with strides in the type that they have in the program.
static void check_reach(CallChecks *c) {
  Arena *arena = &c->context->scratch;
  Expr *reach = number(c, 0);
  bool is_narrow = false;
  for (int k = 0; c->tensor->strides && k < c->tensor->rank; k++) {
    Expr *part = absolute(c, binary(c, EXPR_MUL, stated_stride(c, k), extent(c, k)));
    bool is_free = !expr_as_int(c->tensor->strides[k], &(int64_t){0});
    if (is_free && c->tensor->strides[k]->type.bits < 64) {
      is_narrow = true;
      check_range(c, part, 0, INT32_MAX, arena_printf(arena, "elements that axis %d spans", k));
    }
    reach = binary(c, EXPR_ADD, reach, part);
  }
  if (is_narrow) check_range(c, reach, 0, INT32_MAX, "elements that the axes span");
}

static void check_offset(CallChecks *c) {
  if (defines_size(c, 0, LOWER_FROM_OFFSET)) return;
  c->sizes.parts.count = 0;
  Expr *expected = wide_size(&c->sizes, c->tensor->offset);
  check_equal(c, NULL, read_offset(c), expected, "elements before the first one");
}

static void check_memory(CallChecks *c, Expr *is_empty) {
  Context *context = c->context;
  DType word = DTYPE(TYPE_UINT, 64);
  int64_t bytes = item_bytes(c);
  Expr *data = field(c, FIELD_DATA, DTYPE_HANDLE);
  if (expr_is_true(is_empty)) return;
  check_not_null(c, is_empty, data, "memory is NULL");
  if (bytes == 1) return;
  Expr *address = expr_raw(context, EXPR_REINTERPRET, word, NULL, &data, 1);
  Expr *first = expr_add(context, address, field(c, FIELD_BYTE_OFFSET, word));
  Expr *rest = binary(c, EXPR_TRUNC_MOD, first, expr_int(context, word, bytes));
  check_equal(c, is_empty, wide(c, rest), number(c, 0),
              arena_printf(&context->scratch, "address modulo the %lld bytes of an element",
                           (long long)bytes));
}

static void check_elements(CallChecks *c) {
  Expr *is_empty = expr_bool(c->context, false);
  for (int k = 0; k < c->tensor->rank; k++) {
    check_extent(c, k);
    is_empty = binary(c, EXPR_OR, is_empty, binary(c, EXPR_EQ, extent(c, k), number(c, 0)));
  }
  check_strides(c, is_empty);
  check_reach(c);
  if (c->tensor->offset) check_offset(c);
  check_memory(c, is_empty);
}

// ---- The arena

// True where all parts and the sum itself, computed with more bits, fit.
static Expr *arena_fits(WideSizes *w, Expr *bytes) {
  Context *context = w->context;
  Expr *limit = expr_float(context, DTYPE_FLOAT64, (double)((int64_t)1 << 62));
  Expr *fits = expr_binary(context, EXPR_LT, wide_size_float(w, bytes), limit);
  for (int i = 0; i < w->parts.count; i++) {
    Expr *part = w->parts.items[i], *low = expr_int(context, DTYPE_INT64, INT32_MIN);
    Expr *high = expr_int(context, DTYPE_INT64, INT32_MAX);
    fits = expr_and(context, fits, expr_binary(context, EXPR_GE, part, low));
    fits = expr_and(context, fits, expr_binary(context, EXPR_LE, part, high));
  }
  return fits;
}

static Expr *arena_bytes(WideSizes *w) {
  Expr *bytes = w->program->arena_bytes;
  w->parts.count = 0;
  Expr *value = wide_size(w, bytes);
  return expr_select(w->context, arena_fits(w, bytes), value,
                     expr_int(w->context, DTYPE_INT64, -1));
}

Expr *target_arena_bytes(Context *context, const TargetProgram *program, Expr *const *sizes) {
  int64_t known;
  if (expr_as_int(program->arena_bytes, &known)) return program->arena_bytes;
  WideSizes w = wide_sizes_new(context, program);
  for (int i = 0; i < program->size_count; i++) w.vars[i] = sizes[i];
  return target_legal_size(context, arena_bytes(&w));
}

static void check_arena(CallChecks *c) {
  int64_t known;
  if (expr_as_int(c->program->arena_bytes, &known)) return;
  Expr *bytes = arena_bytes(&c->sizes);
  check(c, binary(c, EXPR_GE, bytes, number(c, 0)), "bytes of the arena", number(c, 0), bytes);
}

// ---- All of it

TargetCall *target_call(Context *context, const TargetProgram *program) {
  int count = program->input_count + program->output_count;
  CallChecks c = {.context = context, .program = program};
  c.call = arena_new(&context->arena, TargetCall);
  c.sizes = wide_sizes_new(context, program);
  c.call->tensors = expr_var(context, "tensors", DTYPE_HANDLE);
  c.call->count = expr_var(context, "count", DTYPE_INT32);
  c.call->sizes = c.sizes.vars;
  c.pointers = arena_array(&context->scratch, Expr *, count + 1);
  c.shapes = arena_array(&context->scratch, Expr *, count + 1);
  c.strides = arena_array(&context->scratch, Expr *, count + 1);
  Expr *given = wide(&c, c.call->count), *wanted = number(&c, count);
  check(&c, binary(&c, EXPR_EQ, given, wanted), "number of arguments", wanted, given);
  for (int i = 0; i < count; i++) {
    select_argument(&c, i);
    check_kind(&c);
  }
  for (int i = 0; i < program->size_count; i++) read_size(&c, i);
  for (int i = 0; i < count; i++) {
    select_argument(&c, i);
    check_elements(&c);
  }
  check_arena(&c);
  return c.call;
}
