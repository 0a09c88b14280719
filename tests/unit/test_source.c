// SPDX-License-Identifier: Apache-2.0
// Emits whole models as C source, compiles it without warnings by every compiler on this machine,
// runs it, and compares the results with the same program run in this process.
#include "driver/driver.h"
#include "frontend/onnx/onnx.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define MODEL SOURCE_ROOT "/examples/digits/digits.onnx"

typedef int Run(const void *const *inputs, void *const *outputs, void *arena);
typedef int RunBeside(const void *weights, const void *const *inputs, void *const *outputs,
                      void *arena);

typedef struct Fixture {
  Context *context;
  Program *program;
  HostMachine machine;
  Tensor *input, *output, *expected;
  char folder[64];
} Fixture;

static Tensor *tensor_for(const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  assert_true(value_static_shape(value, shape));
  ElementType type;
  assert_true(element_type_parse("float32", &type));
  return tensor_new(type, shape, value->rank);
}

static int set_up(void **state) {
  Fixture *f = calloc(1, sizeof *f);
  f->context = context_new();
  f->machine = machine_probe();
  f->machine.region_cycles = 150; // so that chunks have one iteration or several
  strcpy(f->folder, "/tmp/pleat-source-XXXXXX");
  if (!mkdtemp(f->folder)) return -1;
  OnnxOptions options = {0};
  OnnxImport *import = onnx_import(f->context, MODEL, &options);
  CompileOptions compile = {.machine = f->machine};
  f->program = import->graph ? program_build(f->context, import->graph, &compile) : NULL;
  if (!f->program) diag_print_all(f->context, stderr);
  if (!f->program) return -1;
  f->input = tensor_for(import->graph->params[0]);
  f->output = tensor_for(import->graph->outputs[0]);
  f->expected = tensor_for(import->graph->outputs[0]);
  tensor_fill_random(f->input, 5);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", f->folder);
  int status = system(command);
  tensor_free(f->input);
  tensor_free(f->output);
  tensor_free(f->expected);
  context_free(f->context);
  free(f);
  return status;
}

static bool run_in_process(Fixture *f) {
  Executable *executable = executable_new(f->program, NULL);
  if (!executable) return false;
  ThreadPool *pool = thread_pool_new(1);
  bool ran = executable_run(executable, pool, &f->input, &f->expected);
  thread_pool_free(pool);
  executable_free(executable);
  return ran;
}

static void *compile(Fixture *f, const char *compiler, const char *flags) {
  char command[512], library[128];
  snprintf(library, sizeof library, "%s/%s.so", f->folder, compiler);
  snprintf(command, sizeof command,
           "%s -std=gnu11 -O2 %s %s -Wall -Wextra -Werror -shared -fPIC -o %s %s/digits.c -lm",
           compiler, target_level_flags(target_find("c"), &f->machine), flags, library, f->folder);
  if (system(command)) fail_msg("%s", command);
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); // OpenMP threads stay
  if (!handle) fail_msg("%s", dlerror());
  return handle;
}

static void check_output(Fixture *f) {
  const float *expected = f->expected->data, *output = f->output->data;
  double largest = 0;
  for (int64_t i = 0; i < tensor_bytes(f->output) / 4; i++) {
    assert_true(isfinite(output[i]));
    largest = fmax(largest, fabs((double)(output[i] - expected[i])));
  }
  if (largest > 1e-4) fail_msg("differs by %g", largest);
}

static bool has_compiler(const char *name) {
  char command[64];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
  return system(command) == 0;
}

static void run_compiled(Fixture *f, const char *compiler, bool beside, bool openmp) {
  TargetProgramOptions options = {
      .target.machine = &f->machine, .weights_beside = beside, .openmp = openmp};
  char path[128];
  snprintf(path, sizeof path, "%s/digits.c", f->folder);
  assert_true(program_write(f->program, target_find("c"), &options, path));
  void *handle = compile(f, compiler, openmp ? "-fopenmp" : "");
  union {
    void *data;
    Run *run;
    RunBeside *run_beside;
  } found = {dlsym(handle, "digits_run")};
  assert_non_null(found.data);
  char *arena = memory_alloc((size_t)f->program->arena_bytes + 64), *weights = NULL;
  const void *inputs[] = {f->input->data};
  void *outputs[] = {f->output->data};
  memset(f->output->data, 0xff, (size_t)tensor_bytes(f->output));
  if (beside) {
    size_t size;
    snprintf(path, sizeof path, "%s/digits.c.weights", f->folder);
    char *bytes = file_read(f->context, &f->context->arena, path, &size);
    assert_int_equal(size, f->program->weight_bytes);
    weights = memory_alloc(size);
    memcpy(weights, bytes, size);
    assert_int_equal(found.run_beside(weights + 1, inputs, outputs, arena), 1);
    assert_int_equal(found.run_beside(weights, inputs, outputs, arena), 0);
  } else {
    assert_int_equal(found.run(inputs, outputs, arena + 4), 1);
    assert_int_equal(found.run(inputs, outputs, arena), 0);
  }
  check_output(f);
  memory_free(arena);
  memory_free(weights);
  dlclose(handle);
}

static void test_model(void **state) {
  Fixture *f = *state;
  static const char *const compilers[] = {"gcc", "clang"};
  if (!run_in_process(f)) {
    print_message("no target runs code in this process: nothing to compare with\n");
    skip();
  }
  for (int i = 0; i < COUNT_OF(compilers); i++) {
    if (!has_compiler(compilers[i])) {
      print_message("no %s here\n", compilers[i]);
      continue;
    }
    run_compiled(f, compilers[i], i == 1, i == 0);
  }
}

static void test_same_bytes_twice(void **state) {
  Fixture *f = *state;
  TargetProgramOptions options = {.target.machine = &f->machine};
  char path[128];
  const char *texts[2];
  size_t sizes[2];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/twice.c", f->folder);
    assert_true(program_write(f->program, target_find("c"), &options, path));
    texts[i] = file_read(f->context, &f->context->arena, path, &sizes[i]);
  }
  assert_int_equal(sizes[0], sizes[1]);
  assert_string_equal(texts[0], texts[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_model, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_same_bytes_twice, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
