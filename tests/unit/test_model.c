// SPDX-License-Identifier: Apache-2.0
// The model's schedules give the operator's answer, before and after lowering, for every layout of
// their tensors: the interpreter is the judge.
#include "driver/driver.h"
#include "graph/graph.h"
#include "interp/interp.h"
#include "script/script.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST_PARAMS = 8 };

typedef struct TestKernel {
  Context *context;
  PrimFunc *func;
  KernelParam params[MOST_PARAMS];
  void *data[MOST_PARAMS];   // row-major
  void *packed[MOST_PARAMS]; // in its layout
  int64_t shape[MOST_PARAMS][TE_MAX_RANK];
} TestKernel;

static int64_t count_of(const TestKernel *k, int param) {
  int64_t count = 1;
  for (int d = 0; d < k->func->buffers[param]->rank; d++) count *= k->shape[param][d];
  return count;
}

static InterpTensor row_major(const TestKernel *k, int param) {
  const Buffer *buffer = k->func->buffers[param];
  return (InterpTensor){
      .type = buffer->type, .rank = buffer->rank, .shape = k->shape[param], .data = k->data[param]};
}

static void fill(TestKernel *k) {
  for (int i = 0; i < k->func->param_count; i++) {
    buffer_static_shape(k->func->buffers[i], k->shape[i]);
    k->data[i] = arena_alloc(&k->context->arena, (size_t)count_of(k, i) * 8);
    interp_fill(k->func->buffers[i]->type, k->data[i], count_of(k, i), 17 + (uint64_t)i,
                INTERP_FILL_EIGHTHS);
  }
}

static InterpTensor laid_out(TestKernel *k, const KernelChoice *choice, int param) {
  const Layout *layout = choice->layouts[param];
  if (!layout) return row_major(k, param);
  const Buffer *buffer = k->func->buffers[param];
  int64_t size;
  assert_true(layout_physical_size(layout, &size));
  k->packed[param] = arena_alloc(&k->context->arena, (size_t)size * 8);
  layout_pack(k->context, layout, dtype_bytes(buffer->type), k->data[param], k->packed[param]);
  if (layout->padding.kind == LAYOUT_PADDING_ANY) { // poison, since its content is undefined
    for (int64_t i = 0; i < size; i++) {
      int64_t index[TE_MAX_RANK];
      if (layout_at_offset(k->context, layout, i, index).verdict == VERDICT_NO)
        ((float *)k->packed[param])[i] = NAN;
    }
  }
  return (InterpTensor){.type = buffer->type,
                        .rank = layout->physical_rank,
                        .shape = layout->physical_extents,
                        .data = k->packed[param]};
}

static float result_at(const TestKernel *k, const KernelChoice *choice, int param,
                       const int64_t *index, int64_t flat) {
  const Layout *layout = choice->layouts[param];
  int64_t offset = flat;
  if (layout) assert_true(layout_offset(layout, index, &offset));
  return ((const float *)(layout ? k->packed[param] : k->data[param]))[offset];
}

static void compare(const TestKernel *k, const KernelChoice *choice, const float *expected,
                    const char *what) {
  int param = k->func->param_count - 1, rank = k->func->buffers[param]->rank;
  int64_t index[TE_MAX_RANK] = {0};
  for (int64_t i = 0; i < count_of(k, param); i++) {
    float got = result_at(k, choice, param, index, i);
    if (!(fabsf(got - expected[i]) <= 1e-4f * fmaxf(1, fabsf(expected[i]))))
      fail_msg("%s: element %lld is %g, expected %g\n%s", what, (long long)i, (double)got,
               (double)expected[i], schedule_trace(choice->schedule));
    for (int d = rank - 1; d >= 0 && ++index[d] == k->shape[param][d]; d--) index[d] = 0;
  }
}

static void fail_with_diagnostics(Context *context, const char *what) {
  diag_print_all(context, stderr);
  fail_msg("%s", what);
}

static void run_and_compare(TestKernel *k, KernelChoice *choice, PrimFunc *func,
                            const float *expected, const char *what) {
  InterpTensor args[MOST_PARAMS];
  for (int i = 0; i < func->param_count; i++) args[i] = laid_out(k, choice, i);
  InterpOptions options = {.poison = true};
  if (!interp_run(k->context, NULL, func, args, func->param_count, &options))
    fail_with_diagnostics(k->context, what);
  compare(k, choice, expected, what);
}

static void check_kernel(TestKernel *k, const char *cpu, bool print) {
  HostMachine machine = machine_probe();
  assert_true(machine_use(&machine, cpu)); // the interpreter needs no such processor
  fill(k);
  int last = k->func->param_count - 1;
  InterpTensor args[MOST_PARAMS];
  for (int i = 0; i <= last; i++) args[i] = row_major(k, i);
  if (!interp_run(k->context, NULL, k->func, args, last + 1, NULL))
    fail_with_diagnostics(k->context, "reference");
  float *expected =
      arena_copy(&k->context->arena, k->data[last], (size_t)count_of(k, last) * sizeof(float));
  KernelChoice choice;
  if (!autosched_kernel(k->context, &machine, k->func, k->params, NULL, &choice)) {
    Text text = text_new(&k->context->arena);
    script_print_prim_func(k->context, schedule_func(choice.schedule), &text, NULL);
    fprintf(stderr, "%s\n%s\n", schedule_trace(choice.schedule), text_string(&text));
    fail_with_diagnostics(k->context, "schedule");
  }
  PrimFunc *scheduled = schedule_func(choice.schedule);
  if (choice.slow && getenv("PLEAT_TEST_SLOW"))
    fprintf(stderr, "slow: %s   x %lld k %lld\n", choice.slow, (long long)k->shape[0][1],
            (long long)k->shape[last][1]);
  if (print) {
    Text text = text_new(&k->context->arena);
    script_print_prim_func(k->context, scheduled, &text, NULL);
    fprintf(stderr, "%s\n%s\n", schedule_trace(choice.schedule), text_string(&text));
  }
  run_and_compare(k, &choice, scheduled, expected, "scheduled");
  PrimFunc *lowered = lower_prim_func(k->context, scheduled, NULL);
  if (!lowered) fail_with_diagnostics(k->context, "lower");
  if (print) {
    Text text = text_new(&k->context->arena);
    script_print_prim_func(k->context, lowered, &text, NULL);
    fprintf(stderr, "%s\n", text_string(&text));
  }
  run_and_compare(k, &choice, lowered, expected, "lowered");
}

static Value *value_of(Context *context, const char *name, const int64_t *shape, int rank) {
  Expr *extents[TE_MAX_RANK];
  for (int i = 0; i < rank; i++) extents[i] = expr_index(context, shape[i]);
  return value_new(context, name, DTYPE_FLOAT32, extents, rank);
}

typedef struct Conv {
  int64_t n, c, h, w, k, r, s, stride, pad, dilation, groups;
} Conv;

static Node *conv_node(Context *context, const Conv *v) {
  Value *inputs[] = {
      value_of(context, "x", (int64_t[]){v->n, v->c, v->h, v->w}, 4),
      value_of(context, "weight", (int64_t[]){v->k, v->c / v->groups, v->r, v->s}, 4),
      value_of(context, "bias", (int64_t[]){v->k}, 1),
  };
  Node *node = node_new(context, NODE_OP, "nn.conv2d", "conv", inputs, 3, 1);
  node_set_ints(context, node, "strides", (int64_t[]){v->stride, v->stride}, 2);
  node_set_ints(context, node, "padding", (int64_t[]){v->pad, v->pad, v->pad, v->pad}, 4);
  node_set_ints(context, node, "dilation", (int64_t[]){v->dilation, v->dilation}, 2);
  node_set_int(context, node, "groups", v->groups);
  return node;
}

static const Layout *laid(Context *context, PrimFunc *func, int param, const char *spelling) {
  int64_t shape[TE_MAX_RANK];
  if (!spelling) return NULL;
  buffer_static_shape(func->buffers[param], shape);
  const Layout *layout = layout_parse_static(context, spelling, shape, func->buffers[param]->rank);
  assert_non_null(layout);
  return layout_with_padding(context, layout, (LayoutPadding){LAYOUT_PADDING_ANY, 0});
}

static void check_conv(const Conv *v, const char *in, const char *out, const char *cpu) {
  Context *context = context_new();
  TestKernel k = {.context = context, .func = op_prim_func(context, conv_node(context, v))};
  if (!k.func) fail_with_diagnostics(context, "define");
  k.params[0].layout = laid(context, k.func, 0, in);
  k.params[1].constant = k.params[2].constant = true;
  k.params[3].layout = laid(context, k.func, 3, out);
  check_kernel(&k, cpu, getenv("PLEAT_TEST_PRINT") != NULL);
  context_free(context);
}

static const Conv convs[] = {
    {1, 16, 5, 7, 32, 1, 1, 1, 0, 1, 1},  {1, 32, 7, 7, 32, 3, 3, 1, 1, 1, 1},
    {1, 3, 11, 13, 17, 3, 3, 2, 1, 1, 1}, {2, 13, 9, 6, 9, 1, 1, 2, 0, 1, 1},
    {1, 20, 6, 5, 40, 3, 1, 1, 1, 1, 1},  {1, 32, 8, 9, 32, 3, 3, 1, 1, 1, 32},
    {1, 17, 7, 5, 17, 3, 3, 2, 1, 1, 17}, {1, 12, 9, 10, 24, 3, 3, 1, 2, 2, 3},
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1},    {1, 3, 15, 14, 33, 7, 7, 2, 3, 1, 1},
    {1, 96, 5, 6, 24, 1, 1, 1, 0, 1, 1},  {1, 24, 6, 7, 144, 1, 1, 1, 0, 1, 1},
};

static void check_all(const char *in, const char *out, const char *cpu) {
  for (int i = 0; i < COUNT_OF(convs); i++) check_conv(&convs[i], in, out, cpu);
}

static void test_conv_blocked(void **state) {
  (void)state;
  check_all("NCHW16c", "NCHW16c", "avx512");
}
static void test_conv_row_major_in(void **state) {
  (void)state;
  check_all(NULL, "NCHW16c", "avx512");
}
static void test_conv_row_major(void **state) {
  (void)state;
  check_all(NULL, NULL, "avx512");
}
static void test_conv_channels_last(void **state) {
  (void)state;
  check_all("NHWC", "NHWC", "avx512");
  check_all("NHWC", "NCHW16c", "avx512");
  check_all("NCHW16c", "NHWC", "avx512");
}
static void test_conv_avx2(void **state) {
  (void)state;
  check_all("NCHW8c", "NCHW8c", "avx2");
  check_all("NCHW8c", "NCHW16c", "avx2"); // blocks of several vectors
  check_all("NHWC", "NCHW32c", "avx2");
}
static void test_conv_baseline(void **state) {
  (void)state;
  check_all("NCHW4c", "NCHW4c", "baseline");
}

// ---- Rows: reductions in vectors along their own axis

#define HEAD "from pleat.script import tir as T\n@T.prim_func\n"

// Sizes: ROWS and COLUMNS stand for numbers.
static const char *const row_programs[] = {
    HEAD "def sum(X: T.Buffer((ROWS, COLUMNS), 'float32'), Y: T.Buffer((ROWS,), 'float32')):\n"
         "    for i, k in T.grid(ROWS, COLUMNS):\n"
         "        with T.block('Y'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                Y[vi] = T.float32(0.5)\n"
         "            Y[vi] = Y[vi] + X[vi, vk]\n",
    HEAD "def least(X: T.Buffer((ROWS, 3, COLUMNS), 'float32'), Y: T.Buffer((ROWS,), 'float32')):\n"
         "    for i, j, k in T.grid(ROWS, 3, COLUMNS):\n"
         "        with T.block('Y'):\n"
         "            vi, vj, vk = T.axis.remap('SRR', [i, j, k])\n"
         "            with T.init():\n"
         "                Y[vi] = T.float32(100)\n"
         "            Y[vi] = T.min(Y[vi], X[vi, vj, vk])\n",
    HEAD
    "def times(A: T.Buffer((5, COLUMNS), 'float32'), B: T.Buffer((ROWS, COLUMNS), 'float32'),\n"
    "          bias: T.Buffer((ROWS,), 'float32'), C: T.Buffer((5, ROWS), 'float32')):\n"
    "    P = T.alloc_buffer((5, ROWS))\n"
    "    for i, j, k in T.grid(5, ROWS, COLUMNS):\n"
    "        with T.block('P'):\n"
    "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
    "            with T.init():\n"
    "                P[vi, vj] = T.float32(0)\n"
    "            P[vi, vj] = P[vi, vj] + A[vi, vk] * B[vj, vk]\n"
    "    for i, j in T.grid(5, ROWS):\n"
    "        with T.block('C'):\n"
    "            vi, vj = T.axis.remap('SS', [i, j])\n"
    "            C[vi, vj] = T.max(P[vi, vj] + bias[vj], T.float32(0))\n",
    HEAD
    "def soft(X: T.Buffer((ROWS, COLUMNS), 'float32'), Y: T.Buffer((ROWS, COLUMNS), 'float32')):\n"
    "    M = T.alloc_buffer((ROWS,))\n"
    "    E = T.alloc_buffer((ROWS, COLUMNS))\n"
    "    S = T.alloc_buffer((ROWS,))\n"
    "    for i, k in T.grid(ROWS, COLUMNS):\n"
    "        with T.block('M'):\n"
    "            vi, vk = T.axis.remap('SR', [i, k])\n"
    "            with T.init():\n"
    "                M[vi] = T.float32(-100)\n"
    "            M[vi] = T.max(M[vi], X[vi, vk])\n"
    "    for i, k in T.grid(ROWS, COLUMNS):\n"
    "        with T.block('E'):\n"
    "            vi, vk = T.axis.remap('SS', [i, k])\n"
    "            E[vi, vk] = T.exp(X[vi, vk] - M[vi])\n"
    "    for i, k in T.grid(ROWS, COLUMNS):\n"
    "        with T.block('S'):\n"
    "            vi, vk = T.axis.remap('SR', [i, k])\n"
    "            with T.init():\n"
    "                S[vi] = T.float32(0)\n"
    "            S[vi] = S[vi] + E[vi, vk]\n"
    "    for i, k in T.grid(ROWS, COLUMNS):\n"
    "        with T.block('Y'):\n"
    "            vi, vk = T.axis.remap('SS', [i, k])\n"
    "            Y[vi, vk] = E[vi, vk] / S[vi]\n",
};

static const char *with_sizes(Context *context, const char *program, int rows, int columns) {
  Text out = text_new(&context->arena);
  while (*program) {
    bool is_rows = !strncmp(program, "ROWS", 4), is_columns = !strncmp(program, "COLUMNS", 7);
    if (is_rows || is_columns)
      text_printf(&out, "%d", is_rows ? rows : columns);
    else
      text_printf(&out, "%c", *program);
    program += is_rows ? 4 : is_columns ? 7 : 1;
  }
  return text_string(&out);
}

static void check_rows(const char *program, int rows, int columns, const char *cpu) {
  Context *context = context_new();
  const char *text = with_sizes(context, program, rows, columns);
  SourceFile *file = source_file_new(context, "rows.py", text, strlen(text));
  Module *module = script_parse(context, file);
  if (!module || context->error_count) fail_with_diagnostics(context, text);
  TestKernel k = {.context = context, .func = module->funcs.items[0].prim};
  check_kernel(&k, cpu, getenv("PLEAT_TEST_PRINT") != NULL);
  HostMachine machine = machine_probe();
  assert_true(machine_use(&machine, cpu)); // the interpreter needs no such processor
  KernelChoice choice;
  assert_true(autosched_kernel(context, &machine, k.func, k.params, NULL, &choice));
  if (columns >= 4 && choice.slow)
    fail_msg("%d rows of %d: %s\n%s", rows, columns, choice.slow, text);
  context_free(context);
}

static void test_rows(void **state) {
  (void)state;
  static const int columns[] = {1, 2, 7, 16, 31, 64, 65, 128, 133, 197};
  static const int rows[] = {1, 3, 4, 9};
  for (int p = 0; p < COUNT_OF(row_programs); p++)
    for (int c = 0; c < COUNT_OF(columns); c++) {
      check_rows(row_programs[p], rows[(p + c) % COUNT_OF(rows)], columns[c], "avx512");
      check_rows(row_programs[p], rows[c % COUNT_OF(rows)], columns[c], "avx2");
    }
  for (int p = 0; p < COUNT_OF(row_programs); p++) check_rows(row_programs[p], 5, 37, "baseline");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_conv_blocked),   cmocka_unit_test(test_conv_row_major_in),
      cmocka_unit_test(test_conv_row_major), cmocka_unit_test(test_conv_channels_last),
      cmocka_unit_test(test_conv_avx2),      cmocka_unit_test(test_conv_baseline),
      cmocka_unit_test(test_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
