// SPDX-License-Identifier: Apache-2.0
// Tests the runtime: the machine's description, tensors and arguments, random numbers, threads and
// memory.
#include "runtime/compiled.h"
#include "runtime/runtime.h"
#include "runtime/workers.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

static const ElementType float32 = {ELEMENT_FLOAT, 32, 1}, int8 = {ELEMENT_INT, 8, 1};

// ---- The machine and clocks

static void test_machine_is_plausible(void **state) {
  HostMachine machine = machine_probe();
  assert_in_range(machine.cores, 1, 4096);
  assert_in_range(machine.line_bytes, 16, 1024);
  assert_true(machine.l1_bytes >= 4096 && machine.l1_bytes <= machine.l2_bytes);
  assert_true(machine.l3_bytes == 0 || machine.l3_bytes >= machine.l2_bytes);
  assert_true(machine.vector_bytes == 16 << MIN_OF(machine.level, CPU_AVX512));
  assert_true(machine_limit(&machine, machine.level_name));
}

static void test_machine_is_lowered_by_name(void **state) {
  HostMachine machine = machine_probe();
  assert_false(machine_limit(&machine, "avx1024"));
  assert_true(machine_limit(&machine, "sse2"));
  assert_string_equal(machine.level_name, "baseline");
  assert_int_equal(machine.vector_bytes, 16);
  assert_false(machine.fma);
  assert_false(machine_limit(&machine, "avx2"));
  assert_int_equal(machine.level, CPU_BASELINE);
}

static void test_every_level_can_be_measured(void **state) {
  HostMachine machine = machine_probe();
  for (int level = (int)machine.level; level >= 0; level--) {
    static const char *const names[] = {"baseline", "avx2", "avx512", "avx512vnni"};
    assert_true(machine_limit(&machine, names[level]));
#if defined(__x86_64__)
    assert_true(machine_fma_peak(&machine, 0.001) > 0.1);
#endif
  }
  assert_true(machine_copy_bandwidth(1 << 20) > 0);
}

static void test_spread_takes_quantiles(void **state) {
  double samples[] = {7, 3, 1, 10, 2, 9, 4, 8, 6, 5, 0};
  Spread spread = spread_of(samples, 11);
  assert_true(spread.least == 0 && spread.p10 == 1 && spread.median == 5);
  assert_true(spread.p90 == 9 && spread.most == 10);
  double one[] = {4};
  assert_true(spread_of(one, 1).median == 4 && spread_of(one, 1).p90 == 4);
  int64_t before = clock_now_ns();
  assert_true(clock_now_ns() >= before);
  assert_true(process_peak_bytes() > 1 << 16);
}

// ---- Threads

enum { MOST_ITERATIONS = 1000 };

typedef struct Tally {
  atomic_int times[MOST_ITERATIONS];
  atomic_int pieces;
} Tally;

static void count_iterations(void *env, int64_t begin, int64_t end) {
  Tally *tally = env;
  atomic_fetch_add(&tally->pieces, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&tally->times[i], 1);
}

static int runs_in_child(ThreadPool *pool) {
  static Tally tally;
  thread_pool_run(pool, count_iterations, &tally, MOST_ITERATIONS);
  thread_pool_free(pool);
  int once = 0;
  for (int i = 0; i < MOST_ITERATIONS; i++) once += tally.times[i] == 1;
  return once == MOST_ITERATIONS;
}

static void check_loop(ThreadPool *pool, int count) {
  Tally *tally = calloc(1, sizeof *tally);
  thread_pool_run(pool, count_iterations, tally, count);
  for (int i = 0; i < MOST_ITERATIONS; i++) assert_int_equal(tally->times[i], i < count);
  if (thread_pool_size(pool) == 1) assert_int_equal(tally->pieces, count > 0);
  free(tally);
}

static void test_loops_run_each_iteration_once(void **state) {
  for (int threads = 0; threads <= 5; threads++) {
    ThreadPool *pool = thread_pool_new(threads);
    assert_non_null(pool);
    if (threads) assert_int_equal(thread_pool_size(pool), threads);
    // More threads than cores take turns: few rounds of those.
    for (int round = 0; round < (threads <= 2 ? 50 : 1); round++)
      for (int count = 0; count < 40; count += 3) check_loop(pool, count);
    check_loop(pool, MOST_ITERATIONS);
    thread_pool_free(pool);
  }
  check_loop(NULL, 17);
}

static void test_threads_wake_from_sleep(void **state) {
  ThreadPool *pool = thread_pool_new(3);
  for (int round = 0; round < 3; round++) {
    check_loop(pool, 101);
    struct timespec pause = {0, 30000000};
    nanosleep(&pause, NULL);
  }
  thread_pool_free(pool);
}

// Workers may still look for pieces of the last loop when the pool ends.
static void test_pools_end_after_a_loop(void **state) {
  for (int i = 0; i < 50; i++) {
    ThreadPool *pool = thread_pool_new(3);
    check_loop(pool, 1 + i);
    thread_pool_free(pool);
  }
}

// A process that was forked does all iterations in its only thread.
static void test_loops_run_in_a_forked_process(void **state) {
  ThreadPool *pool = thread_pool_new(3);
  check_loop(pool, 101);
  pid_t child = fork();
  if (child == 0) _exit(!runs_in_child(pool));
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  check_loop(pool, 101);
  thread_pool_free(pool);
}

// ---- Element types

static void test_element_names(void **state) {
  static const char *const names[] = {
      "bool",   "int4",    "int8",    "int16",   "int32",    "int64",         "uint8",
      "uint64", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"};
  for (int i = 0; i < COUNT_OF(names); i++) {
    ElementType type;
    assert_true(element_type_parse(names[i], &type));
    assert_string_equal(element_type_name(type), names[i]);
  }
  ElementType type;
  assert_false(element_type_parse("float33", &type));
  assert_string_equal(element_type_name((ElementType){ELEMENT_INT, 7, 1}), "unknown");
}

static double through(const char *name, double value) {
  ElementType type;
  char place[8];
  assert_true(element_type_parse(name, &type));
  element_set(type, place, value);
  return element_get(type, place);
}

static void test_elements_round_and_saturate(void **state) {
  assert_true(through("int8", 127.4) == 127 && through("int8", 300) == 127);
  assert_true(through("int8", -129) == -128 && through("int8", -2.5) == -2);
  assert_true(through("uint8", -3) == 0 && through("uint8", 255.7) == 255);
  assert_true(through("int64", -1e30) == -0x1p63 && through("uint64", 0x1p63) == 0x1p63);
  assert_true(through("bool", 1) == 1 && through("int32", NAN) == 0);
  assert_true(through("float32", 1.0000000001) == 1 && through("float64", 0.1) == 0.1);
  assert_true(through("float16", 2049) == 2048 && isinf(through("bfloat16", 1e39)));
  assert_true(isnan(through("float16", NAN)) && signbit(through("float32", -0.0)));
}

// ---- Tensors

static void test_tensor_sizes(void **state) {
  const int64_t shape[] = {3, 1, 7};
  Tensor *tensor = tensor_new(float32, shape, 3);
  assert_int_equal(tensor_count(tensor), 21);
  assert_int_equal(tensor_bytes(tensor), 84);
  assert_int_equal((uintptr_t)tensor->data % 64, 0);
  tensor_free(tensor);
  tensor = tensor_new(float32, NULL, 0);
  assert_int_equal(tensor_count(tensor), 1);
  tensor_free(tensor);
  const int64_t empty[] = {INT64_MAX, 0, INT64_MAX};
  tensor = tensor_new(float32, empty, 3);
  assert_int_equal(tensor_bytes(tensor), 0);
  tensor_free(tensor);
  tensor_free(NULL);
}

static void test_absurd_tensors_are_refused(void **state) {
  const int64_t negative[] = {-1, 4}, wide[] = {INT64_C(1) << 60, 16}, long_[] = {INT64_C(1) << 59};
  assert_null(tensor_new(float32, negative, 2));
  assert_null(tensor_new(float32, wide, 2));
  assert_null(tensor_new(float32, long_, 1));
  assert_null(tensor_new(float32, wide, TENSOR_MAX_RANK + 1));
}

static void test_large_memory_is_page_aligned(void **state) {
  char *data = memory_alloc(5 << 20);
  assert_int_equal((uintptr_t)data % (2 << 20), 0);
  data[(5 << 20) - 1] = 1;
  memory_free(data);
}

static void test_the_environment_poisons_memory(void **state) {
  static const char *const values[] = {"", "0", "1"};
  unsetenv("PLEAT_POISON");
  assert_false(memory_poisons());
  for (int i = 0; i < COUNT_OF(values); i++) {
    float numbers[3] = {1, 2, 3};
    setenv("PLEAT_POISON", values[i], 1);
    memory_poison(numbers, 2 * sizeof *numbers);
    memory_poison(numbers + 2, 0);
    assert_int_equal(isnan(numbers[0]) && isnan(numbers[1]), i == 2);
    assert_true(numbers[2] == 3);
  }
  unsetenv("PLEAT_POISON");
}

static void test_compactness_ignores_axes_of_one(void **state) {
  int64_t shape[] = {3, 1, 7}, strides[] = {7, 99, 1};
  Tensor tensor = tensor_over(NULL, float32, shape, 3);
  assert_true(tensor_is_compact(&tensor));
  tensor.strides = strides;
  assert_true(tensor_is_compact(&tensor));
  strides[0] = 8;
  assert_false(tensor_is_compact(&tensor));
  shape[2] = 0;
  assert_true(tensor_is_compact(&tensor));
}

static void test_copy_between_strides(void **state) {
  int64_t shape[] = {2, 5}, columns[] = {1, 2};
  int8_t from[10], to[10];
  for (int i = 0; i < 10; i++) from[i] = (int8_t)i;
  Tensor a = tensor_over(from, int8, shape, 2), b = tensor_over(to, int8, shape, 2);
  b.strides = columns;
  tensor_copy(&b, &a);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 5; j++) assert_int_equal(to[i + 2 * j], 5 * i + j);
  assert_ptr_equal(tensor_element(&b, 7), to + 1 + 2 * 2);
}

// ---- Arguments

typedef struct Call {
  Tensor a, b;
  int64_t a_shape[2], b_shape[1], strides[2];
  Tensor *tensors[2];
  char message[200];
} Call;

static const int64_t a_extents[] = {-1, 5}, b_extents[] = {3}, b_strides[] = {2};
static const ArgumentSpec shifted[] = {
    {"A", {ELEMENT_FLOAT, 32, 1}, 2, a_extents, NULL},
    {"B", {ELEMENT_INT, 8, 1}, 1, b_extents, b_strides, .offset = 3, .alignment = 32},
};
static const ArgumentSpec specs[] = {
    {"A", {ELEMENT_FLOAT, 32, 1}, 2, a_extents, NULL},
    {"B", {ELEMENT_INT, 8, 1}, 1, b_extents, b_strides},
};

static Call *good_call(void) {
  static char data[100];
  Call *call = calloc(1, sizeof *call);
  *call = (Call){.a_shape = {7, 5}, .b_shape = {3}, .strides = {2}};
  call->a = tensor_over(data, float32, call->a_shape, 2);
  call->b = tensor_over(data, int8, call->b_shape, 1);
  call->b.strides = call->strides;
  call->tensors[0] = &call->a;
  call->tensors[1] = &call->b;
  return call;
}

static void expect_message(Call *call, int given, const char *expected) {
  bool ok =
      arguments_check("f", specs, 2, call->tensors, given, call->message, sizeof call->message);
  assert_int_equal(ok, expected == NULL);
  if (expected) assert_string_equal(call->message, expected);
  free(call);
}

static void expect_shifted(uint64_t offset, int64_t at, const char *expected) {
  static _Alignas(64) char data[100];
  Call *call = good_call();
  call->b.data = data + at;
  call->b.byte_offset = offset;
  bool ok = arguments_check("f", shifted, 2, call->tensors, 2, call->message, sizeof call->message);
  assert_int_equal(ok, expected == NULL);
  if (expected) assert_non_null(strstr(call->message, expected));
  free(call);
}

static void test_offsets_and_alignments_are_checked(void **state) {
  expect_shifted(3, 32, NULL);
  expect_shifted(0, 32, "begin 0 bytes after its memory does, expected 3");
  expect_shifted(3, 33, "expected a multiple of 32 bytes");
}

// Each element of an output has an address of its own; those of an input may share one.
static void test_elements_of_outputs_do_not_overlap(void **state) {
  static _Alignas(64) char data[400];
  static const int64_t extents[] = {2, 3};
  const ArgumentSpec spec = {"C", {ELEMENT_FLOAT, 32, 1}, 2, extents, NULL, .any_strides = true};
  const struct {
    int64_t shape[2], strides[2];
    bool fits;
  } rows[] = {{{2, 3}, {3, 1}, true},   {{2, 3}, {1, 2}, true},    {{2, 3}, {-8, -2}, true},
              {{2, 3}, {0, 1}, false},  {{2, 3}, {2, 1}, false},   {{2, 3}, {1, 0}, false},
              {{2, 3}, {-2, 1}, false}, {{2, 3}, {100, 0}, false}, {{2, 3}, {50, 25}, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t shape[2] = {rows[i].shape[0], rows[i].shape[1]};
    int64_t strides[2] = {rows[i].strides[0], rows[i].strides[1]};
    Tensor tensor = tensor_over(data + 200, spec.type, shape, 2), *tensors[] = {&tensor};
    char message[200];
    tensor.strides = strides;
    assert_true(arguments_check("f", &spec, 1, tensors, 1, message, sizeof message));
    bool ok = outputs_check("f", &spec, 1, tensors, 1, message, sizeof message);
    assert_int_equal(ok, rows[i].fits);
    if (!ok) assert_non_null(strstr(message, "'C' of 'f': it is written, and by its strides"));
  }
}

// Vectors are aligned to one lane, where nothing else is stated.
static void test_vectors_are_aligned_to_a_lane(void **state) {
  static _Alignas(64) char data[64];
  static const int64_t extents[] = {2}, strides[] = {1};
  const ArgumentSpec spec = {"W", {ELEMENT_FLOAT, 32, 4}, 1, extents, strides};
  int64_t shape[] = {2};
  Tensor tensor = tensor_over(data + 4, spec.type, shape, 1), *tensors[] = {&tensor};
  char message[200];
  assert_true(arguments_check("f", &spec, 1, tensors, 1, message, sizeof message));
  assert_true(argument_is_aligned(&spec, data + 8));
  assert_false(argument_is_aligned(&spec, data + 2));
  tensor.data = data + 2;
  assert_false(arguments_check("f", &spec, 1, tensors, 1, message, sizeof message));
  assert_non_null(strstr(message, "expected a multiple of 4 bytes"));
}

static void test_arguments_are_checked(void **state) {
  expect_message(good_call(), 2, NULL);
  expect_message(good_call(), 1, "'f' takes 2 arguments, not 1");
  Call *call = good_call();
  call->tensors[1] = NULL;
  expect_message(call, 2, "argument 1 'B' of 'f': is missing");
  call = good_call();
  call->a.type = int8;
  expect_message(call, 2, "argument 0 'A' of 'f': has element type int8, expected float32");
  call = good_call();
  call->a.rank = 1;
  expect_message(call, 2, "argument 0 'A' of 'f': has 1 axes, expected 2");
  call = good_call();
  call->a_shape[1] = 6;
  expect_message(call, 2, "argument 0 'A' of 'f': axis 1 has extent 6, expected 5");
  call = good_call();
  call->a.strides = call->strides;
  expect_message(call, 2,
                 "argument 0 'A' of 'f': its strides leave gaps or permute axes, expected "
                 "compact rows");
  call = good_call();
  call->b.strides = NULL;
  expect_message(call, 2, "argument 1 'B' of 'f': axis 0 has stride 1, expected 2");
  call = good_call();
  call->b.device_type = 2;
  expect_message(call, 2,
                 "argument 1 'B' of 'f': is on device type 2, expected the processor's "
                 "memory (1)");
}

// ---- Random elements

static void test_random_is_the_same_everywhere(void **state) {
  int64_t shape[] = {4};
  float values[4];
  Tensor tensor = tensor_over(values, float32, shape, 1);
  tensor_fill_random(&tensor, 42);
  static const float expected[] = {0.3954726457595825f, -0.3134162425994873f, 0.9114934206008911f,
                                   -0.02730095386505127f};
  for (int i = 0; i < 4; i++) assert_true(values[i] == expected[i]);
}

static void check_range(const char *name, double low, double high) {
  ElementType type;
  assert_true(element_type_parse(name, &type));
  int64_t shape[] = {997};
  Tensor *tensor = tensor_new(type, shape, 1);
  tensor_fill_random(tensor, 7);
  double least = INFINITY, most = -INFINITY;
  for (int i = 0; i < 997; i++) {
    double value = element_get(type, tensor_element(tensor, i));
    least = fmin(least, value);
    most = fmax(most, value);
  }
  double slack = (high - low) / 20;
  assert_true(least >= low && least <= low + slack && most <= high && most >= high - slack);
  tensor_free(tensor);
}

static void test_random_covers_its_range(void **state) {
  check_range("float32", -1, 1);
  check_range("float16", -1, 1);
  check_range("bfloat16", -1, 1);
  check_range("int8", -100, 100);
  check_range("int64", -100, 100);
  check_range("uint8", 0, 100);
  check_range("bool", 0, 1);
}

// ---- Shared constants

static int released;

static void release_counted(void *owner) {
  released++;
  memory_free(owner);
}

// A program with a constant of 100 bytes for each letter of `text`, which fills it.
static CompiledProgram *program_of(const char *text) {
  enum { BYTES = 100, STEP = 2 * TENSOR_ALIGNMENT };
  CompiledProgram *p = compiled_program_new();
  int count = (int)strlen(text);
  char *weights = memory_alloc((size_t)(count + 1) * STEP);
  assert_true(p && weights);
  p->constants = arena_array(&p->context->lasting, CompiledConstant, count);
  p->constant_count = count;
  for (int i = 0; i < count; i++) {
    memset(weights + i * STEP, text[i], BYTES);
    p->constants[i] = (CompiledConstant){weights + i * STEP, BYTES};
  }
  p->weights = p->owner = weights;
  p->release = release_counted;
  return p;
}

static void check_constants(const CompiledProgram *p, const char *text) {
  assert_int_equal(p->constant_count, strlen(text));
  for (int i = 0; i < p->constant_count; i++) {
    const char *data = p->constants[i].data;
    assert_int_equal((uintptr_t)data % TENSOR_ALIGNMENT, 0);
    for (int k = 0; k < p->constants[i].bytes; k++) assert_int_equal(data[k], text[i]);
  }
}

static void test_equal_constants_are_shared(void **state) {
  (void)state;
  CompiledProgram *others[] = {program_of("abc"), program_of("de")};
  CompiledProgram *mixed = program_of("xcdx"), *alone = program_of("z");
  const void *kept = alone->constants[0].data;
  released = 0;
  assert_true(compiled_program_share(mixed, others, 2));
  assert_true(compiled_program_share(alone, others, 2));
  assert_int_equal(released, 1); // the copies of `mixed`
  assert_ptr_equal(mixed->constants[1].data, others[0]->constants[2].data);
  assert_ptr_equal(mixed->constants[2].data, others[1]->constants[0].data);
  assert_ptr_equal(alone->constants[0].data, kept);
  compiled_program_release(others[0]);
  compiled_program_release(others[1]);
  check_constants(mixed, "xcdx");
  assert_int_equal(released, 1); // `mixed` keeps the others
  compiled_program_release(mixed);
  assert_int_equal(released, 3);
  compiled_program_release(alone);
}

// The busiest thread has as few iterations as with any piece of a like size, and never more pieces
// than twice the fewest.
static void test_pieces_are_shared_evenly(void **state) {
  (void)state;
  assert_int_equal(workers_piece(14, 2), 1); // pieces of 2 would give one thread 8 iterations
  assert_int_equal(workers_piece(8, 2), 1);
  for (int threads = 2; threads <= 16; threads++)
    for (int64_t count = 2; count <= 600; count++) {
      int64_t piece = workers_piece(count, threads), pieces = ceil_div(count, piece);
      int64_t usual = ceil_div(count, (int64_t)threads * 4);
      assert_true(piece >= 1 && piece <= usual && pieces <= threads * 8);
      assert_true(ceil_div(pieces, threads) * piece <=
                  ceil_div(ceil_div(count, usual), threads) * usual);
    }
  assert_true(workers_piece(INT64_C(1) << 40, 2) > 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pieces_are_shared_evenly),
      cmocka_unit_test(test_equal_constants_are_shared),
      cmocka_unit_test(test_machine_is_plausible),
      cmocka_unit_test(test_machine_is_lowered_by_name),
      cmocka_unit_test(test_every_level_can_be_measured),
      cmocka_unit_test(test_spread_takes_quantiles),
      cmocka_unit_test(test_loops_run_each_iteration_once),
      cmocka_unit_test(test_threads_wake_from_sleep),
      cmocka_unit_test(test_pools_end_after_a_loop),
      cmocka_unit_test(test_loops_run_in_a_forked_process),
      cmocka_unit_test(test_element_names),
      cmocka_unit_test(test_elements_round_and_saturate),
      cmocka_unit_test(test_tensor_sizes),
      cmocka_unit_test(test_absurd_tensors_are_refused),
      cmocka_unit_test(test_large_memory_is_page_aligned),
      cmocka_unit_test(test_the_environment_poisons_memory),
      cmocka_unit_test(test_compactness_ignores_axes_of_one),
      cmocka_unit_test(test_copy_between_strides),
      cmocka_unit_test(test_arguments_are_checked),
      cmocka_unit_test(test_offsets_and_alignments_are_checked),
      cmocka_unit_test(test_elements_of_outputs_do_not_overlap),
      cmocka_unit_test(test_vectors_are_aligned_to_a_lane),
      cmocka_unit_test(test_random_is_the_same_everywhere),
      cmocka_unit_test(test_random_covers_its_range),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
