// SPDX-License-Identifier: Apache-2.0
// Compiles a model to native files: a shared library with the weights inside or in a file, serial
// or with threads. Its results must be those of the program in this process, and two compilations
// must give the same bytes.
#include "driver/driver.h"
#include "frontend/onnx/onnx.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

typedef int (*RunFn)(const void *const *inputs, void *const *outputs, void *arena);
typedef int (*ParallelRunFn)(const void *weights, const void *const *inputs, void *const *outputs,
                             void *arena, ParallelFor parallel, void *pool);

typedef struct Fixture {
  Context *context;
  Program *program;
  Tensor *input, *expected;
  char folder[32];
} Fixture;

static Tensor *tensor_for(const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  assert_true(value_static_shape(value, shape));
  return tensor_new((ElementType){ELEMENT_FLOAT, 32, 1}, shape, value->rank);
}

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  f->context = context_new();
  GraphFunc *graph =
      onnx_import(f->context, SOURCE_ROOT "/examples/digits/digits.onnx", NULL)->graph;
  if (!graph) diag_print_all(f->context, stderr);
  assert_non_null(graph);
  CompileOptions options = {.machine = machine_probe()};
  options.machine.region_cycles = 0; // small regions run in threads, too
  f->program = program_build(f->context, graph, &options);
  assert_non_null(f->program);
  f->input = tensor_for(graph->params[0]);
  f->expected = tensor_for(graph->outputs[0]);
  interp_fill(DTYPE_FLOAT32, f->input->data, tensor_count(f->input), 5, INTERP_FILL_UNIT);
  Executable *executable = executable_new(f->program, NULL);
  assert_non_null(executable);
  assert_true(executable_run(executable, NULL, &f->input, &f->expected));
  executable_free(executable);
  strcpy(f->folder, "/tmp/pleat-test-XXXXXX");
  return mkdtemp(f->folder) ? 0 : -1;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  rmdir(f->folder);
  tensor_free(f->input);
  tensor_free(f->expected);
  context_free(f->context);
  free(f);
  return 0;
}

static void check_output(Fixture *f, const Tensor *output, const char *path) {
  for (int64_t i = 0; i < tensor_count(output); i++) {
    float expected = ((float *)f->expected->data)[i], actual = ((float *)output->data)[i];
    if (fabsf(actual - expected) > 1e-5f * fmaxf(1, fabsf(expected)))
      fail_msg("%s: element %d is %g, not %g", path, (int)i, actual, expected);
  }
}

// With weights inside: serial. With weights handed over: in two threads.
static void run_library(Fixture *f, const char *path, const void *weights) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  union {
    void *data;
    RunFn run;
    ParallelRunFn parallel;
  } entry = {dlsym(library, weights ? "digits_run_parallel" : "digits_run")};
  assert_non_null(entry.data);
  Tensor *output = tensor_for(f->program->graph->outputs[0]);
  void *arena = memory_alloc((size_t)f->program->arena_bytes + 64);
  const void *inputs[] = {f->input->data};
  void *outputs[] = {output->data};
  ThreadPool *pool = thread_pool_new(2);
  if (weights)
    assert_int_equal(entry.parallel(weights, inputs, outputs, arena, thread_pool_run, pool), 0);
  else
    assert_int_equal(entry.run(inputs, outputs, arena), 0);
  check_output(f, output, path);
  thread_pool_free(pool);
  memory_free(arena);
  tensor_free(output);
  dlclose(library);
}

static const char *path_in(const Fixture *f, const char *name) {
  return arena_printf(&f->context->arena, "%s/%s", f->folder, name);
}

static void write_program(Fixture *f, const char *path, bool beside) {
  TargetProgramOptions options = {.target = {.machine = &f->program->options.machine},
                                  .weights_beside = beside};
  if (program_write(f->program, NULL, &options, path)) return;
  diag_print_all(f->context, stderr);
  fail_msg("%s was not written", path);
}

static void test_weights_inside(void **state) {
  Fixture *f = *state;
  write_program(f, path_in(f, "digits.so"), false);
  run_library(f, path_in(f, "digits.so"), NULL);
  unlink(path_in(f, "digits.so"));
  unlink(path_in(f, "digits.h"));
}

static void test_weights_beside(void **state) {
  Fixture *f = *state;
  write_program(f, path_in(f, "digits.so"), true);
  size_t size;
  char *file = file_read(f->context, &f->context->arena, path_in(f, "digits.so.weights"), &size);
  assert_int_equal(size, f->program->weight_bytes);
  void *weights = memory_alloc(size + 64);
  memcpy(weights, file, size);
  run_library(f, path_in(f, "digits.so"), weights);
  memory_free(weights);
  const char *names[] = {"digits.h", "digits.so.weights", "digits.so"};
  for (int i = 0; i < COUNT_OF(names); i++) assert_int_equal(unlink(path_in(f, names[i])), 0);
}

static void test_the_header_compiles(void **state) {
  Fixture *f = *state;
  write_program(f, path_in(f, "digits.o"), false);
  static const char source[] = "#include \"digits.h\"\n#include <stdlib.h>\nstatic char arena[1 + "
                               "DIGITS_ARENA_BYTES];\nint main(void) { void *volatile run = "
                               "(void *)digits_run; return !run + arena[0]; }\n";
  assert_true(file_write(f->context, path_in(f, "main.c"), source, sizeof source - 1));
  const char *command = arena_printf(&f->context->arena,
                                     "cd %s && cc -Wall -Werror main.c digits.o -o main -lm && "
                                     "./main",
                                     f->folder);
  assert_int_equal(system(command), 0);
  const char *names[] = {"digits.h", "digits.o", "main.c", "main"};
  for (int i = 0; i < COUNT_OF(names); i++) assert_int_equal(unlink(path_in(f, names[i])), 0);
}

// The kernels of a program that is only run are discarded after their code is made; its results are
// the same to the bit.
static void test_running_only(void **state) {
  Fixture *f = *state;
  CompileOptions options = f->program->options;
  options.run_only = true;
  Program *program = program_build(f->context, f->program->graph, &options);
  assert_non_null(program);
  assert_int_equal(program->kernels.count, f->program->kernels.count);
  for (int i = 0; i < program->kernels.count; i++) assert_null(program->kernels.items[i]->func);
  Executable *executable = executable_new(program, NULL);
  assert_non_null(executable);
  Tensor *output = tensor_for(program->graph->outputs[0]);
  assert_true(executable_run(executable, NULL, &f->input, &output));
  assert_memory_equal(output->data, f->expected->data,
                      sizeof(float) * (size_t)tensor_count(output));
  tensor_free(output);
  executable_free(executable);
  // A compilation that is cancelled:
  assert_non_null(program_build(f->context, f->program->graph, &options));
}

static void test_writing_is_deterministic(void **state) {
  Fixture *f = *state;
  const char *names[] = {"a.o", "a.c", "a.s", "a.ll"};
  for (int i = 0; i < COUNT_OF(names); i++) {
    char *text[2];
    size_t size[2];
    for (int k = 0; k < 2; k++) {
      write_program(f, path_in(f, names[i]), false);
      text[k] = file_read(f->context, &f->context->arena, path_in(f, names[i]), &size[k]);
      unlink(path_in(f, names[i]));
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(text[0], text[1], size[0]);
  }
  unlink(path_in(f, "a.h"));
}

// The most memory that the process ever had, in bytes, or since `again`; 0: unknown on this system.
static int64_t peak_memory(bool again) {
  char line[256];
  long long kib = 0;
  FILE *f = again ? fopen("/proc/self/clear_refs", "w") : NULL;
  if (f) fputs("5", f), fclose(f);
  f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %lld kB", &kib);
  if (f) fclose(f);
  return kib * 1024;
}

// A constant of a mapped file, of several MiB and not a whole number of pages, from an odd address.
static void test_constants_are_not_in_memory_twice(void **state) {
  Fixture *f = *state;
  enum { ROWS = 1031, COLUMNS = 8191, HEAD = 13, BYTES = ROWS * COLUMNS * 4 };
  const char *path = path_in(f, "constant");
  float *numbers = malloc(BYTES), *copied = malloc(BYTES), *packed;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < ROWS * COLUMNS; i++) numbers[i] = (float)i;
  fwrite(numbers, 1, HEAD, file);
  fwrite(numbers, 1, BYTES, file);
  fclose(file);
  size_t size;
  const char *mapped = file_map(f->context, path, (SourcePos){0}, &size);
  assert_non_null(mapped);
  const ConstData data = {.type = DTYPE_FLOAT32, .data = mapped + HEAD, .bytes = BYTES};

  const Layout *blocks =
      layout_parse_static(f->context, "i, j -> i//16, j, i%16", (int64_t[]){ROWS, COLUMNS}, 2);
  assert_non_null(blocks);
  assert_non_null(packed = calloc((ROWS + 15) / 16 * 16, COLUMNS * 4));
  memset(copied, 1, BYTES);
  memset(packed, 1, (ROWS + 15) / 16 * 16 * COLUMNS * 4);
  int64_t before = peak_memory(true);
  constant_pack(f->context, f->context, &data, NULL, copied);
  assert_true(peak_memory(false) - before < BYTES / 4);
  assert_memory_equal(copied, numbers, BYTES);
  constant_pack(f->context, f->context, &data, blocks, packed);
  assert_true(peak_memory(false) - before < BYTES / 4);
  for (int i = 0; i < ROWS; i += 37)
    for (int j = 0; j < COLUMNS; j++)
      assert_true(packed[(i / 16 * COLUMNS + j) * 16 + i % 16] == numbers[i * COLUMNS + j]);
  assert_true(packed[((int64_t)(ROWS - 1) / 16 * COLUMNS + 5) * 16 + 15] == 0);
  free(numbers);
  free(copied);
  free(packed);
  unlink(path);
}

// Packs a tensor of distinct numbers in `layout`, looks each up, and unpacks it again.
static void check_packing(Fixture *f, const char *text, const int64_t *extents, int rank,
                          int bytes) {
  const Layout *layout = layout_parse_static(f->context, text, extents, rank);
  int64_t elements = 1, places, index[4] = {0}, offset, seen = 0;
  assert_non_null(layout);
  for (int a = 0; a < rank; a++) elements *= extents[a];
  assert_true(layout_physical_size(layout, &places));
  size_t size = (size_t)(elements * bytes);
  char *from = malloc(size), *back = calloc(size, 1), *to = malloc((size_t)(places * bytes));
  for (size_t i = 0; i < size; i++) from[i] = (char)(1 + i * 7919 % 251);
  memset(to, 0x55, (size_t)(places * bytes));
  layout_pack(f->context, layout, bytes, from, to);
  for (int64_t i = 0; i < elements; i++) {
    for (int64_t a = rank, rest = i; a-- > 0; rest /= extents[a]) index[a] = rest % extents[a];
    assert_true(layout_offset(layout, index, &offset));
    assert_memory_equal(to + offset * bytes, from + i * bytes, bytes);
    memset(to + offset * bytes, 0, (size_t)bytes);
  }
  while (seen < places * bytes && to[seen] == 0) seen++; // padding is zero too
  assert_int_equal(seen, places * bytes);
  layout_pack(f->context, layout, bytes, from, to);
  layout_unpack(f->context, layout, bytes, to, back);
  assert_memory_equal(back, from, size);
  free(from);
  free(back);
  free(to);
}

static void test_packed_elements_are_where_the_layout_says(void **state) {
  static const char *const layouts[] = {"o, i, h, w -> o//16, h, w, i, o%16",
                                        "o, i, h, w -> o//8, i//4, h, w, i%4, o%8",
                                        "o, i, h, w -> i//16, o, h, w, i%16",
                                        "o, i, h, w -> w, h, i, o",
                                        "o, i, h, w -> o, h, w, i",
                                        "o, i, h, w -> o, i, h, w",
                                        "o, i, h, w -> o//16, i, h, w, (o%16) ^ (i%16)"};
  static const int64_t shapes[][4] = {
      {37, 5, 3, 3}, {16, 31, 1, 1}, {1, 67, 2, 1}, {8, 16, 1, 7}, {41, 1, 1, 29}};
  for (int l = 0; l < COUNT_OF(layouts); l++)
    for (int s = 0; s < COUNT_OF(shapes); s++)
      for (int bytes = 1; bytes <= 8; bytes *= 2)
        check_packing(*state, layouts[l], shapes[s], 4, bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_packed_elements_are_where_the_layout_says, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_weights_inside, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_weights_beside, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_the_header_compiles, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_running_only, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_constants_are_not_in_memory_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_writing_is_deterministic, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
