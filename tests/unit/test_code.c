// SPDX-License-Identifier: Apache-2.0
// Links object files of the system's C compiler in a code image: the functions run, what an image
// cannot hold is refused by a message, and no damaged file is read outside its bytes.
#include "context_support.h"
#include "runtime/code.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Object {
  char *bytes;
  size_t size;
} Object;

// The object file of a C source, in memory of the test.
static Object compile(const char *source) {
  char folder[] = "/tmp/pleat-code-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char *path = arena_printf(&context->arena, "%s/x.c", folder);
  char *made = arena_printf(&context->arena, "%s/x.o", folder);
  assert_true(file_write(context, path, source, strlen(source)));
  const char *command = arena_printf(&context->arena,
                                     "cc -std=c11 -O2 -fPIC -fno-builtin "
                                     "-fno-asynchronous-unwind-tables -c -o %s %s",
                                     made, path);
  assert_int_equal(system(command), 0);
  Object object;
  object.bytes = file_read(context, &context->arena, made, &object.size);
  assert_non_null(object.bytes);
  unlink(made);
  unlink(path);
  rmdir(folder);
  return object;
}

static CompiledCode *link_one(Object object) {
  CodeImage *image = code_image_new(context);
  return code_image_add(image, "test", object.bytes, object.size) ? code_image_finish(image) : NULL;
}

static const char scale_source[] =
    "#include <stdint.h>\n"
    "float sinf(float); void *memset(void *, int, unsigned long);\n"
    "static const float table[] = {0.5f, 3.25f, 7};\n"
    "__attribute__((noinline)) static float pick(int64_t i) { return table[i % 3]; }\n"
    "void scale(void *const *args, int64_t begin, int64_t end) {\n"
    "  float *out = args[0]; const float *in = args[1];\n"
    "  for (int64_t i = begin; i < end; i++) out[i] = sinf(in[i]) * pick(i);\n"
    "}\n"
    "void clear(void *const *args, int64_t begin, int64_t end) {\n"
    "  memset((char *)args[0] + begin, 0, end - begin);\n"
    "}\n";

static void test_functions_run(void **state) {
  (void)state;
  static const float table[] = {0.5f, 3.25f, 7};
  enum { COUNT = 7 };
  float in[COUNT], out[COUNT] = {0};
  for (int i = 0; i < COUNT; i++) in[i] = (float)i * 0.3f;
  CompiledCode *code = link_one(compile(scale_source));
  assert_non_null(code);
  CodeRegion scale = code_region(code, "scale"), clear = code_region(code, "clear");
  assert_non_null(scale.handle);
  assert_null(code_region(code, "pick").handle); // local to the object
  assert_null(code_region(code, "absent").handle);
  code_region_run(&scale, (void *[]){out, in}, 1, COUNT);
  assert_true(out[0] == 0);
  for (int i = 1; i < COUNT; i++) assert_true(out[i] == sinf(in[i]) * table[i % 3]);
  code_region_run(&clear, (void *[]){out}, 0, sizeof out);
  for (int i = 0; i < COUNT; i++) assert_true(out[i] == 0);
  code_free(code);
}

// Many objects, whose functions have names of their own, share the imports of one image. The image
// grows several times.
static void test_many_objects(void **state) {
  (void)state;
  enum { OBJECTS = 40, BYTES = 100000 };
  CodeImage *image = code_image_new(context);
  for (int i = 0; i < OBJECTS; i++) {
    const char *format = "double exp(double);\n"
                         "static const char bulk[%d] = {[%d] = %d};\n"
                         "void f%d(void *const *args, long begin, long end) {\n"
                         "  *(double *)args[0] = exp(end) + bulk[begin];\n}\n";
    const char *source = arena_printf(&context->arena, format, BYTES, BYTES - 1 - i, i + 1, i);
    Object object = compile(source);
    assert_true(code_image_add(image, "test", object.bytes, object.size));
  }
  code_image_add_alias(image, "alias", "f3");
  CompiledCode *code = code_image_finish(image);
  assert_non_null(code);
  for (int i = 0; i < OBJECTS; i++) {
    double result = 0;
    CodeRegion region = code_region(code, arena_printf(&context->arena, "f%d", i));
    code_region_run(&region, (void *[]){&result}, BYTES - 1 - i, 2);
    assert_true(result == exp(2) + i + 1);
  }
  assert_ptr_equal(code_region(code, "alias").handle, code_region(code, "f3").handle);
  code_free(code);
}

static void test_refused_objects(void **state) {
  (void)state;
  static const struct {
    const char *source, *message;
  } rows[] = {
      {"int n; void f(void) { n++; }", "data that is written"},
      {"int n = 5; void f(void) { n++; }", "data that is written"},
      {"void g(void); void (*const table[])(void) = {g};", "data that is written"},
      {"extern int n; int f(void) { return n; } ", "not a function of this process"},
      {"_Thread_local int n; void f(void) { n++; }", "data that is written"},
      {"int absent_function(void); int f(void) { return 1 + absent_function(); }",
       "a kernel calls 'absent_function', which is not a function of this process"},
      {"__attribute__((section(\".text.g\"))) int g(void) { return 1; }\n"
       "__asm__(\".section .rodata\\n.quad g\\n.text\");",
       "relocations of type 1"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    assert_null(link_one(compile(rows[i].source)));
    assert_int_equal(context->diags.count, 1);
    if (!strstr(context->diags.items[0].message, rows[i].message))
      fail_msg("%d: %s", i, context->diags.items[0].message);
    context->diags.count = context->error_count = 0;
  }
}

// Bytes that end with the file, so that the sanitizer finds an access behind them.
static bool link_copy(const char *bytes, size_t size) {
  char *copy = malloc(size + !size);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  CodeImage *image = code_image_new(context);
  bool done = code_image_add(image, "test", copy, size);
  free(copy);
  assert_true(done == !context->error_count);
  context->diags.count = context->error_count = 0;
  return done;
}

static void test_damaged_objects(void **state) {
  (void)state;
  enum { ROUNDS = 4000 };
  Object object = compile(scale_source);
  for (size_t size = 0; size < object.size; size += 1 + size / 50)
    assert_false(link_copy(object.bytes, size));
  uint64_t random = 17;
  int accepted = 0;
  for (int i = 0; i < ROUNDS; i++) {
    random = hash_mix(random, (uint64_t)i);
    size_t at = random % object.size;
    char before = object.bytes[at];
    object.bytes[at] ^= (char)(1 + (random >> 32) % 255);
    accepted += link_copy(object.bytes, object.size);
    object.bytes[at] = before;
  }
  assert_true(accepted > 0 && accepted < ROUNDS);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      TEST(test_functions_run),
      TEST(test_many_objects),
      TEST(test_refused_objects),
      TEST(test_damaged_objects),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
