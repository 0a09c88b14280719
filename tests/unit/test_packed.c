// SPDX-License-Identifier: Apache-2.0
// Functions of TVM's calling convention run in the interpreter, which checks all their arguments,
// and the function that is unpacked from them computes the same.
#include "context_support.h"

#include "interp/interp.h"
#include "lower/lower.h"
#include "runtime/runtime.h"
#include "script/script.h"

static const char source[] =
    "from tvm.script import tir as T\n"
    "@T.prim_func\n"
    "def f(a: T.handle, k: T.int16, x: T.float32, b: T.handle) -> T.int32:\n"
    "    n, s = T.int32(), T.int64()\n"
    "    A = T.match_buffer(a, (n, 3), \"float32\", strides=[s, 1], elem_offset=2, align=4)\n"
    "    B = T.match_buffer(b, (n * 2,), \"int8\")\n"
    "    for i in range(n):\n"
    "        B[i * 2] = T.Cast(\"int8\", A[i, 2] + x)\n"
    "        B[i * 2 + 1] = T.Cast(\"int8\", k)\n"
    "    return n + 1\n";

typedef struct Tagged { // as TVM passes an argument
  int32_t kind, padding;
  union {
    int64_t i;
    double f;
    void *pointer;
  } value;
} Tagged;

typedef struct Call {
  float a[13];
  int8_t b[6];
  int64_t shapes[2][2], strides[2];
  Tensor tensors[2];
  Tagged args[4], result;
  int count;
} Call;

static Call good_call(void) {
  Call call = {.shapes = {{3, 3}, {6}}, .strides = {4, 1}, .count = 4, .result = {9, 9, {.i = 9}}};
  for (int i = 0; i < 13; i++) call.a[i] = (float)i;
  return call;
}

// Fills in the pointers, which a copy of a call would share with the original.
static void connect(Call *call) {
  call->tensors[0] = (Tensor){.data = call->a,
                              .device_type = 1,
                              .rank = 2,
                              .type = {ELEMENT_FLOAT, 32, 1},
                              .shape = call->shapes[0],
                              .strides = call->strides,
                              .byte_offset = 8};
  call->tensors[1] = (Tensor){.data = call->b,
                              .device_type = 1,
                              .rank = 1,
                              .type = {ELEMENT_INT, 8, 1},
                              .shape = call->shapes[1]};
  call->args[0] = (Tagged){7, 0, {.pointer = &call->tensors[0]}};
  call->args[1] = (Tagged){1, 0, {.i = 7}};
  call->args[2] = (Tagged){3, 0, {.f = 0.5}};
  call->args[3] = (Tagged){7, 0, {.pointer = &call->tensors[1]}};
}

static PrimFunc *packed_function(void) {
  const char *pass = "make_packed";
  Module *module = script_parse(context, source_file_new(context, "f.py", source, strlen(source)));
  PrimFunc *func = lower_run_passes(context, module->funcs.items[0].prim, &pass, 1, NULL);
  if (!func) diag_print_all(context, stderr);
  assert_non_null(func);
  return func;
}

static bool run(const PrimFunc *func, Call *call) {
  void *pointers[] = {NULL, call->args, &call->result};
  InterpTensor args[] = {{.type = DTYPE_HANDLE, .data = &pointers[0]},
                         {.type = DTYPE_HANDLE, .data = &pointers[1]},
                         {.type = DTYPE_INT32, .data = &call->count},
                         {.type = DTYPE_HANDLE, .data = &pointers[2]}};
  return interp_run(context, NULL, func, args, 4, NULL);
}

static const int8_t expected[] = {4, 7, 8, 7, 12, 7};

static void test_interpreter(void **state) {
  (void)state;
  Call call = good_call();
  connect(&call);
  assert_true(run(packed_function(), &call));
  assert_memory_equal(call.b, expected, 6);
  assert_int_equal(call.result.kind, 1);
  assert_int_equal(call.result.padding, 0);
  assert_int_equal(call.result.value.i, 4);
}

static void test_unpacked(void **state) {
  (void)state;
  Call call = good_call();
  connect(&call);
  LowerHost *host;
  PrimFunc *func = lower_unpack(context, packed_function(), &host);
  assert_non_null(func);
  assert_string_equal(host->symbol, "__tvm_ffi_f");
  assert_int_equal(func->param_count, 5);
  int16_t k = 7;
  float x = 0.5f;
  int64_t two = 2;
  InterpTensor args[] = {
      {DTYPE_FLOAT32, 2, call.shapes[0], call.strides, call.a, 2},
      {.type = DTYPE(TYPE_INT, 16), .data = &k},
      {.type = DTYPE_FLOAT32, .data = &x},
      {.type = DTYPE(TYPE_INT, 8), .rank = 1, .shape = call.shapes[1], .data = call.b},
      {.type = DTYPE_INT64, .rank = 1, .shape = &two, .data = &call.result}};
  assert_true(interp_run(context, NULL, func, args, 5, NULL));
  assert_memory_equal(call.b, expected, 6);
  assert_int_equal(call.result.value.i, 4);
}

static void fewer(Call *call) {
  call->count = 3;
}
static void other_kind(Call *call) {
  call->args[1].kind = 3;
}
static void no_tensor(Call *call) {
  call->args[0].value.pointer = NULL;
}
static void other_rank(Call *call) {
  call->tensors[1].rank = 2;
}
static void other_type(Call *call) {
  call->tensors[0].type.bits = 64;
}
static void no_shape(Call *call) {
  call->tensors[1].shape = NULL;
}
static void large_shape(Call *call) {
  call->shapes[0][0] = (int64_t)1 << 32;
}
static void other_shape(Call *call) {
  call->shapes[1][0] = 5;
}
static void other_strides(Call *call) {
  call->strides[1] = 2;
}
static void other_offset(Call *call) {
  call->tensors[0].byte_offset = 4;
}
static void other_device(Call *call) {
  call->tensors[1].device_type = 2;
}
static void no_memory(Call *call) {
  call->tensors[1].data = NULL;
}
static void other_alignment(Call *call) {
  call->tensors[0].data = (char *)call->a + 2;
}

static const struct {
  void (*change)(Call *call);
  const char *begin, *end;
} wrong[] = {
    {fewer, "TypeError: Mismatched number of arguments", "expected 4 arguments, got 3"},
    {other_kind, "TypeError: Mismatched type on argument #1", "expected int, got 3"},
    {no_tensor, "TypeError: Mismatched type on argument #0", "expected Tensor, got NULL"},
    {other_rank, "ValueError: Mismatched B.ndim on argument #3", "expected 1, got 2"},
    {other_type, "TypeError: Mismatched A.dtype on argument #0",
     "expected float32, got type code 2 of 64 bits and 1 lanes"},
    {no_shape, "ValueError: Mismatched B.shape on argument #3",
     "expected extents of the axes, got NULL"},
    {large_shape, "ValueError: Invalid A.shape[0] on argument #0",
     "expected a value of int32, got 4294967296"},
    {other_shape, "ValueError: Invalid B.shape[0] on argument #3", "expected n * 2, got 5"},
    {other_strides, "ValueError: Invalid A.strides[1] on argument #0", "expected 1, got 2"},
    {other_offset, "ValueError: Invalid A.byte_offset on argument #0",
     "expected T.uint64(8), got 4"},
    {other_device, "ValueError: Mismatched B.device_type on argument #3", "expected cpu, got 2"},
    {no_memory, "ValueError: B data pointer is NULL on argument #3",
     "expected non-NULL data pointer, got NULL"},
    {other_alignment, "ValueError: Misaligned Tensor data on argument #0",
     "expected data alignment=4 bytes, got 2"},
};

static void test_wrong_arguments(void **state) {
  (void)state;
  PrimFunc *func = packed_function();
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    Call call = good_call();
    connect(&call);
    wrong[i].change(&call);
    assert_false(run(func, &call));
    const char *message = array_last(&context->diags).message;
    const char *begin = arena_printf(&context->arena, "assertion failed: %s when", wrong[i].begin);
    if (strncmp(message, begin, strlen(begin)) || !text_ends_with(message, wrong[i].end))
      fail_msg("'%s' is not '%s … %s'", message, begin, wrong[i].end);
    assert_int_equal(call.b[0], 0);
    assert_int_equal(call.result.kind, 9);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_interpreter),
      TEST(test_unpacked),
      TEST(test_wrong_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
