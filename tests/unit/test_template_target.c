// SPDX-License-Identifier: Apache-2.0
// The template of a target (src/target/template), which newcomers copy: its listing of one kernel,
// its code against the interpreter, and a program.
#include "context_support.h"
#include "target_check.h"

#include "target/template/template.h"

#include <unistd.h>

// Two regions, workspace between them, a register, a tail of vectors, a symbolic size.
static const char text[] =
    "@T.prim_func\n"
    "def f(a: T.handle, B: T.Buffer((7,), \"float32\"), scale: T.int32):\n"
    "    n = T.int32()\n"
    "    A = T.match_buffer(a, (n, 11), \"float32\")\n"
    "    with T.block(\"root\"):\n"
    "        P = T.alloc_buffer((7, 11), \"float32\")\n"
    "        sum = T.alloc_buffer((7,), \"float32\", scope=\"local\")\n"
    "        for i in T.parallel(7):\n"
    "            for j in T.vectorized(11):\n"
    "                with T.block(\"p\"):\n"
    "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
    "                    P[vi, vj] = A[T.min(vi, n - 1), vj] * T.Cast(\"float32\", scale)\n"
    "        for i in T.parallel(7):\n"
    "            for k in range(11):\n"
    "                with T.block(\"sum\"):\n"
    "                    vi, vk = T.axis.remap(\"SR\", [i, k])\n"
    "                    with T.init():\n"
    "                        sum[vi] = T.float32(0)\n"
    "                    sum[vi] = sum[vi] + P[6 - vi, vk]\n"
    "            with T.block(\"b\"):\n"
    "                vi = T.axis.spatial(7, i)\n"
    "                B[vi] = sum[vi]\n";

static const char listing[] =
    "unit unit for a processor with 32-byte vectors\n"
    "kernel f\n"
    "  tensor A: float32 [n, 11]\n"
    "  tensor B: float32 [7]\n"
    "  scalar scale: int32\n"
    "  size n: extent 0 of A\n"
    "  workspace P: 308 bytes from byte 0\n"
    "  region f, 7 iterations\n"
    "    buffer A_2: float32 [(n * 11)] in A\n"
    "    buffer P_2: float32 [77] in P\n"
    "    for i from cast<int32>(begin), cast<int32>((end - begin)) times\n"
    "      let A_at = (min(cast<int64>(i), (cast<int64>(n) - 1)) * 11)\n"
    "      store P_2[Ramp<int32x8>((i * 11), 1)] = (A_2[Ramp<int64x8>(A_at, 1)] * "
    "Broadcast<float32x8>(cast<float32>(scale)))\n"
    "      store P_2[Ramp<int32x2>(((i * 11) + 8), 1)] = (A_2[Ramp<int64x2>((A_at + 8), "
    "1)] * Broadcast<float32x2>(cast<float32>(scale)))\n"
    "      store P_2[((i * 11) + 10)] = (A_2[(A_at + 10)] * cast<float32>(scale))\n"
    "  region f_2, 7 iterations\n"
    "    buffer B_2: float32 [7] in B\n"
    "    buffer P_2: float32 [77] in P\n"
    "    for i_2 from cast<int32>(begin_2), cast<int32>((end_2 - begin_2)) times\n"
    "      register sum: float32 [1]\n"
    "      buffer sum_2: float32 [1] in sum\n"
    "      store sum_2[0] = 0\n"
    "      store sum_2[0] = (sum_2[0] + P_2[(66 - (i_2 * 11))])\n"
    "      for k from 1, 10 times\n"
    "        let P_at = (cast<int64>(k) - (cast<int64>(i_2) * 11))\n"
    "        store sum_2[0] = (sum_2[0] + P_2[(P_at + 66)])\n"
    "      store B_2[i_2] = sum_2[0]\n";

static PrimFunc *parse_and_lower(PrimFunc **source) {
  SourceFile *file = source_file_new(context, "kernel.py", text, strlen(text));
  Module *module = script_parse(context, file);
  assert_non_null(module);
  *source = module->funcs.items[0].prim;
  PrimFunc *lowered = lower_prim_func(context, *source, NULL);
  assert_non_null(lowered);
  return lowered;
}

static void test_listing_of_a_kernel(void **state) {
  (void)state;
  PrimFunc *source, *lowered = parse_and_lower(&source);
  LowerKernel *kernel = lower_kernel_new(context, lowered, NULL);
  TargetUnit unit = {"unit", &kernel, 1};
  HostMachine machine = machine_probe();
  assert_true(machine_use(&machine, "avx2"));
  TargetReport of_kernel = {0};
  TargetOptions options = {.machine = &machine, .kernels = &of_kernel};
  Text out = text_new(&context->arena);
  assert_true(template_target.emit(context, &unit, &options, ".listing", &out));
  assert_string_equal(text_string(&out), listing);
  assert_int_equal(of_kernel.counts[TARGET_GATHERS], 0);
}

// Through the driver, which gives the code a whole region at once.
static void test_code_is_run_by_the_target(void **state) {
  (void)state;
  PrimFunc *source, *lowered = parse_and_lower(&source);
  InterpSize sizes[] = {{source->buffers[0]->shape[0], 5}, {source->params[2], 3}};
  TargetCase one = {source, lowered, {.sizes = sizes, .size_count = 2, .seed = 5}, "template"};
  TargetCases cases = {0};
  array_push(&context->arena, &cases, one);
  CompileOptions options = {.machine = machine_probe(), .target = &template_target};
  ThreadPool *pool = thread_pool_new(2);
  assert_int_equal(target_check_level(context, cases.items, cases.count, &options, pool), 0);
  thread_pool_free(pool);
}

static void test_hooks_that_a_row_leaves_out(void **state) {
  (void)state;
  static const TargetRow none = {.name = "none", .summary = "no hooks"};
  TargetUnit unit = {"unit", NULL, 0};
  TargetProgram program = {.unit = unit};
  TargetProgramOptions options = {0};
  assert_string_equal(target_level_flags(&none, NULL), "");
  assert_null(target_load(context, &none, &unit, NULL));
  assert_false(target_write_file(context, &none, &unit, NULL, "x.o"));
  assert_false(target_write_programs(context, &none, &program, 1, &options, "x.o"));
  static const char *const messages[] = {"target none cannot run code in this process",
                                         "x.o: target none writes no such file",
                                         "x.o: no target writes such a file"};
  assert_int_equal(context->diags.count, COUNT_OF(messages));
  for (int i = 0; i < COUNT_OF(messages); i++)
    assert_string_equal(context->diags.items[i].message, messages[i]);
}

static void test_program_as_a_listing(void **state) {
  (void)state;
  char path[] = "/tmp/pleat-template-XXXXXX.listing";
  int file = mkstemps(path, (int)strlen(".listing"));
  assert_true(file >= 0);
  close(file);
  TargetProgram program = {.unit = {"empty", NULL, 0},
                           .arena_bytes = expr_int(context, DTYPE_INT64, 64)};
  TargetProgramOptions options = {0};
  assert_true(target_write_programs(context, &template_target, &program, 1, &options, path));
  size_t size;
  char *written = file_read(context, &context->arena, path, &size);
  unlink(path);
  assert_string_equal(written,
                      "program empty: 0 inputs, 0 outputs, arena of 64 bytes, weights of 0\n"
                      "unit empty\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_listing_of_a_kernel),
      TEST(test_code_is_run_by_the_target),
      TEST(test_hooks_that_a_row_leaves_out),
      TEST(test_program_as_a_listing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
