// SPDX-License-Identifier: Apache-2.0
// Saves a compiled model, loads it and compares the results. A file that is truncated, changed in
// any byte, or made by another version or for another processor is refused, and so is one whose
// digests are right but whose description is not.
#include "driver/driver.h"
#include "frontend/onnx/onnx.h"
#include "runtime/saved.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct Fixture {
  Context *context;
  Tensor *input, *expected;
  CompiledProgram *program;
  char *bytes; // of the saved program
  size_t size;
  char folder[32];
} Fixture;

static Tensor *tensor_for(const ArgumentSpec *spec) {
  return tensor_new(spec->type, spec->shape, spec->rank);
}

static CompiledProgram *compile(Context *context, const char *target) {
  const char *path = SOURCE_ROOT "/examples/digits/digits.onnx";
  const GraphFunc *graph = onnx_import(context, path, NULL)->graph;
  CompileOptions options = {.machine = machine_probe(), .run_only = true};
  options.target = target ? target_find(target) : NULL;
  Program *program = program_build(context, graph, &options);
  assert_non_null(program);
  CompiledProgram *compiled = program_compile(program, NULL);
  assert_non_null(compiled);
  return compiled;
}

static void run(Context *context, CompiledProgram *program, Tensor *input, Tensor *output) {
  Executable *executable = executable_of(context, program);
  assert_non_null(executable);
  assert_true(executable_run(executable, NULL, &input, &output));
  executable_free(executable);
}

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  Context *compiling = context_new();
  f->context = context_new();
  f->program = compile(compiling, NULL);
  context_free(compiling); // the compiled program does not need it
  f->input = tensor_for(&f->program->inputs[0]);
  f->expected = tensor_for(&f->program->outputs[0]);
  tensor_fill_random(f->input, 3);
  run(f->context, f->program, f->input, f->expected);
  f->bytes = saved_print(f->context, f->program, &f->size);
  assert_non_null(f->bytes);
  strcpy(f->folder, "/tmp/pleat-saved-XXXXXX");
  return mkdtemp(f->folder) ? 0 : -1;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  rmdir(f->folder);
  tensor_free(f->input);
  tensor_free(f->expected);
  compiled_program_release(f->program);
  memory_free(f->bytes);
  context_free(f->context);
  free(f);
  return 0;
}

static void check_results(Fixture *f, CompiledProgram *program) {
  Tensor *output = tensor_for(&program->outputs[0]);
  run(f->context, program, f->input, output);
  assert_memory_equal(output->data, f->expected->data, (size_t)tensor_bytes(output));
  tensor_free(output);
}

// ---- What is loaded runs ------------------------------------------------------------------------

static void test_a_file_gives_the_same_results(void **state) {
  Fixture *f = *state;
  char path[64];
  snprintf(path, sizeof path, "%s/digits.pleat", f->folder);
  assert_true(saved_write(f->context, f->program, path));
  CompiledProgram *loaded = saved_read(f->context, path);
  assert_non_null(loaded);
  assert_string_equal(loaded->inputs[0].name, f->program->inputs[0].name);
  assert_int_equal(loaded->step_count, f->program->step_count);
  unlink(path); // the pages stay
  check_results(f, loaded);
  size_t size;
  char *again = saved_print(f->context, loaded, &size);
  assert_int_equal(size, f->size);
  assert_memory_equal(again, f->bytes, size);
  memory_free(again);
  compiled_program_release(loaded);
}

static void test_bytes_give_the_same_results(void **state) {
  Fixture *f = *state;
  char *copy = malloc(f->size + 1);
  memcpy(copy + 1, f->bytes, f->size); // at any address
  CompiledProgram *loaded = saved_parse(f->context, "bytes", copy + 1, f->size);
  free(copy);
  assert_non_null(loaded);
  check_results(f, loaded);
  compiled_program_release(loaded);
}

// Constants in several places are put together again.
static void test_scattered_constants_are_gathered(void **state) {
  Fixture *f = *state;
  CompiledProgram *p = f->program;
  const void *weights = p->weights;
  CompiledConstant before[64];
  assert_true(p->constant_count > 1 && p->constant_count < COUNT_OF(before));
  for (int i = 0; i < p->constant_count; i++) {
    before[i] = p->constants[i];
    void *copy = malloc((size_t)before[i].bytes + 1);
    p->constants[i].data = memcpy(copy, before[i].data, (size_t)before[i].bytes);
  }
  p->weights = NULL;
  size_t size;
  void *bytes = saved_print(f->context, p, &size);
  CompiledProgram *loaded = saved_parse(f->context, "gathered", bytes, size);
  assert_non_null(loaded);
  check_results(f, loaded);
  compiled_program_release(loaded);
  memory_free(bytes);
  for (int i = 0; i < p->constant_count; i++) {
    free((void *)p->constants[i].data);
    p->constants[i] = before[i];
  }
  p->weights = (void *)weights;
}

static void test_saving_needs_an_image(void **state) {
  Fixture *f = *state;
  size_t size;
  CompiledProgram *program = compile(f->context, "c");
  assert_null(saved_print(f->context, program, &size));
  assert_non_null(strstr(array_last(&f->context->diags).message, "target 'llvm'"));
  compiled_program_release(program);
}

// ---- What is refused ----------------------------------------------------------------------------

static void expect_refused(Fixture *f, const char *bytes, size_t size, const char *message) {
  Context *context = f->context;
  CompiledProgram *loaded = saved_parse(context, "x.pleat", bytes, size);
  assert_null(loaded);
  assert_int_equal(context->error_count > 0, 1);
  if (message && !strstr(array_last(&context->diags).message, message))
    fail_msg("expected '%s', got '%s'", message, array_last(&context->diags).message);
  context->diags.count = context->error_count = 0;
}

static void test_truncated_files_are_refused(void **state) {
  Fixture *f = *state;
  expect_refused(f, f->bytes, 0, "not a saved model");
  for (size_t size = 8; size < f->size; size += 1 + size / 20)
    expect_refused(f, f->bytes, size, "is truncated");
  expect_refused(f, f->bytes, f->size - 1, "is truncated");
  char *longer = calloc(1, f->size + 1);
  memcpy(longer, f->bytes, f->size);
  expect_refused(f, longer, f->size + 1, "followed by other bytes");
  free(longer);
}

static void test_changed_bytes_are_refused(void **state) {
  Fixture *f = *state;
  enum { ROUNDS = 800 };
  uint64_t random = 5;
  for (size_t i = 0; i < 200 + ROUNDS; i++) {
    random = hash_mix(random, i);
    size_t at = i < 200 ? i : random % f->size;
    f->bytes[at] ^= (char)(1 << (random >> 40) % 8);
    expect_refused(f, f->bytes, f->size, NULL);
    f->bytes[at] ^= (char)(1 << (random >> 40) % 8);
  }
  compiled_program_release(saved_parse(f->context, "unchanged", f->bytes, f->size));
  assert_int_equal(f->context->error_count, 0);
}

// Makes the digests of the header and the description right again.
static void renew_digests(char *bytes) {
  SavedHeader *header = (SavedHeader *)bytes;
  header->description = digest_of(bytes + sizeof *header, header->description_bytes);
  header->header = digest_of(header, offsetof(SavedHeader, header));
}

static void test_other_versions_and_processors(void **state) {
  Fixture *f = *state;
  SavedHeader *header = (SavedHeader *)f->bytes, before = *header;
  header->format++;
  expect_refused(f, f->bytes, f->size, "compile the model again");
  *header = before;
  strcpy(header->library, "9.9.9");
  renew_digests(f->bytes);
  expect_refused(f, f->bytes, f->size, "was saved by version 9.9.9 of Pleat");
  *header = before;
  strcpy(header->cpu, "avx9000");
  renew_digests(f->bytes);
  expect_refused(f, f->bytes, f->size, "was compiled for processors with avx9000, and this one");
  *header = before;
  memset(header->cpu, 'x', sizeof header->cpu);
  renew_digests(f->bytes);
  expect_refused(f, f->bytes, f->size, "has no processor");
  *header = before;
  expect_refused(f, "\x89PNG\r\n\x1a\n.............", 20, "is not a saved model");
}

// A description whose digest is right is read without an access outside its bytes, whatever it
// holds. It may be accepted, and is then not run.
static void test_wrong_descriptions(void **state) {
  Fixture *f = *state;
  enum { ROUNDS = 1500 };
  static const int64_t values[] = {-1, 0, 1, 7, 64, 4096, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 20};
  SavedHeader before = *(SavedHeader *)f->bytes;
  char *description = f->bytes + sizeof before;
  size_t used = before.description_bytes;
  while (used > 1 && !description[used - 1]) used--;
  char *kept = malloc(used);
  memcpy(kept, description, used);
  uint64_t random = 23;
  int accepted = 0;
  for (int i = 0; i < ROUNDS; i++) {
    random = hash_mix(random, (uint64_t)i);
    size_t at = i % 2 ? random % used : random % (used / 8) * 8;
    int64_t value = values[(random >> 33) % COUNT_OF(values)];
    memcpy(description + at, &value, MIN_OF(used - at, sizeof value));
    renew_digests(f->bytes);
    CompiledProgram *loaded = saved_parse(f->context, "x.pleat", f->bytes, f->size);
    assert_true((loaded != NULL) == (f->context->error_count == 0));
    accepted += loaded != NULL;
    compiled_program_release(loaded);
    f->context->diags.count = f->context->error_count = 0;
    memcpy(description, kept, used);
  }
  assert_true(accepted < ROUNDS / 2);
  free(kept);
}

static void test_sizes_of_the_header(void **state) {
  Fixture *f = *state;
  SavedHeader *header = (SavedHeader *)f->bytes, before = *header;
  uint64_t *const sizes[] = {&header->description_bytes, &header->code_bytes,
                             &header->weight_bytes};
  static const uint64_t values[] = {0, 1, 4096, UINT64_MAX, UINT64_MAX - 4095, (uint64_t)1 << 62};
  for (int i = 0; i < COUNT_OF(sizes); i++)
    for (int k = 0; k < COUNT_OF(values); k++) {
      *header = before;
      if (*sizes[i] == values[k]) continue;
      *sizes[i] = values[k];
      header->header = digest_of(header, offsetof(SavedHeader, header));
      expect_refused(f, f->bytes, f->size, NULL);
    }
  *header = before;
}

static void test_absent_files(void **state) {
  Fixture *f = *state;
  assert_null(saved_read(f->context, "/nonexistent/x.pleat"));
  assert_null(saved_read(f->context, f->folder));
  assert_null(saved_read(f->context, "/dev/null"));
  assert_false(saved_write(f->context, f->program, "/nonexistent/x.pleat"));
  assert_false(saved_write(f->context, f->program, f->folder));
  assert_int_equal(f->context->error_count, 5);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_file_gives_the_same_results, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bytes_give_the_same_results, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_scattered_constants_are_gathered, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_saving_needs_an_image, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_truncated_files_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_changed_bytes_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_other_versions_and_processors, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_wrong_descriptions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sizes_of_the_header, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_absent_files, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
