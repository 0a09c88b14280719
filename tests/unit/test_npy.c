// SPDX-License-Identifier: Apache-2.0
// Tests reading and writing of .npy files and .npz archives, damaged ones included.
#include "config.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

static int set_up(void **state) {
  *state = context_new();
  return *state == NULL;
}

static int tear_down(void **state) {
  context_free(*state);
  return 0;
}

static const char *temporary_path(Context *context, const char *name) {
  char *folder = arena_printf(&context->arena, "%s/pleat-test-XXXXXX",
                              getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  assert_non_null(mkdtemp(folder));
  return arena_printf(&context->arena, "%s/%s", folder, name);
}

static void remove_path(const char *path) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  unlink(path);
  assert_int_equal(rmdir(folder), 0); // no other file is left in it
}

static Tensor *numbered(const char *type_name, const int64_t *shape, int rank) {
  ElementType type;
  assert_true(element_type_parse(type_name, &type));
  Tensor *tensor = tensor_new(type, shape, rank);
  for (int64_t i = 0; i < tensor_count(tensor); i++)
    element_set(type, tensor_element(tensor, i), (double)(i % 100));
  return tensor;
}

static void assert_same(const Tensor *a, const Tensor *b) {
  assert_int_equal(a->rank, b->rank);
  assert_true(element_type_equal(a->type, b->type));
  for (int i = 0; i < a->rank; i++) assert_int_equal(a->shape[i], b->shape[i]);
  assert_memory_equal(tensor_data(a), tensor_data(b), (size_t)tensor_bytes(a));
}

static void test_every_type_and_rank_returns(void **state) {
  Context *context = *state;
  static const char *const types[] = {"bool",   "int8",    "int16",   "int32",
                                      "int64",  "uint8",   "uint16",  "uint32",
                                      "uint64", "float16", "float32", "float64"};
  const int64_t shape[] = {2, 1, 7, 3};
  const char *path = temporary_path(context, "a.npy");
  for (int i = 0; i < COUNT_OF(types); i++)
    for (int rank = 0; rank <= 4; rank++) {
      Tensor *tensor = numbered(types[i], shape, rank);
      assert_true(npy_write(context, path, tensor));
      Tensor *again = npy_read(context, path);
      assert_non_null(again);
      assert_same(tensor, again);
      tensor_free(tensor);
      tensor_free(again);
    }
  remove_path(path);
}

static void test_what_is_written_is_as_numpy_writes_it(void **state) {
  Context *context = *state;
  const int64_t shape[] = {3};
  Tensor *tensor = numbered("int16", shape, 1);
  Text text = text_new(&context->scratch);
  npy_print(tensor, &text);
  assert_int_equal(text.size, 128 + 6);
  static const char start[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<i2', 'fortran_order': False, "
                              "'shape': (3,), }  ";
  assert_memory_equal(text.data, start, sizeof start - 1);
  assert_memory_equal(text.data + 126, " \n\0\0\1\0\2\0", 8);
  tensor_free(tensor);
}

// A file of the given version around a header and some elements.
static Tensor *parse(Context *context, int version, const char *header, const void *data,
                     size_t size) {
  Text text = text_new(&context->scratch);
  char start[12] = "\x93NUMPY";
  start[6] = (char)version;
  start[8] = (char)strlen(header);
  text_append(&text, start, version == 1 ? 10 : 12);
  text_puts(&text, header);
  text_append(&text, data, size);
  return npy_parse(context, "x.npy", text.data, text.size);
}

static void test_columns_and_byte_orders(void **state) {
  Context *context = *state;
  static const unsigned char data[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 1, 6};
  for (int version = 1; version <= 3; version++) {
    Tensor *tensor = parse(context, version,
                           "{'shape': (2, 3), \"fortran_order\": True, 'descr': '>i2'}", data, 12);
    assert_non_null(tensor);
    static const int16_t expected[] = {1, 3, 5, 2, 4, 262};
    assert_memory_equal(tensor->data, expected, sizeof expected);
    tensor_free(tensor);
  }
}

static void test_bad_files_are_explained(void **state) {
  Context *context = *state;
  static const struct {
    int version;
    const char *header, *message;
  } rows[] = {
      {4, "", "is .npy of version 4; 1 to 3 are known"},
      {1, "", "expected '{' in the header"},
      {1, "{'descr'", "expected ':' in the header"},
      {1, "{'descr", "a string in the header does not end"},
      {1, "{5", "expected a string in the header"},
      {1, "{}", "the header lacks 'descr', 'fortran_order' or 'shape'"},
      {1, "{'descr': '<f4', 'descr': '<f4'}", "'descr' twice"},
      {1, "{'descr': '<c8'}", "element type '<c8' is not supported"},
      {1, "{'descr': [('a', '<i4')]}", "expected a string in the header"},
      {1, "{'fortran_order': 1}", "'fortran_order' is neither True nor False"},
      {1, "{'color': 'red'}", "unknown key 'color' in the header"},
      {1, "{'shape': (-1,)}", "expected an extent in 'shape'"},
      {1, "{'shape': (2 3)}", "expected ')' in the header"},
      {1, "{'shape': (99999999999999999999,)}", "an extent in 'shape' is too large"},
      {1, "{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", "has more than 16 axes"},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
       "is shorter than its shape says: 4 bytes of elements"},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
       "is shorter than its shape says: 4 bytes of elements"},
      {1, "{'descr': '<f4' 'fortran_order': False}", "expected '}' in the header"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    int before = context->diags.count;
    assert_null(parse(context, rows[i].version, rows[i].header, "1234", 4));
    assert_int_equal(context->diags.count, before + 1);
    const Diag *diag = &context->diags.items[before];
    assert_string_equal(diag->message, rows[i].message);
    assert_string_equal(diag->pos.file->name, "x.npy");
  }
  assert_null(npy_parse(context, "x.npy", "\x93NUMPY\1\0\7\7{}", 12));
  assert_null(npy_parse(context, "x.npy", "PK", 2));
  assert_null(npy_read(context, "/nowhere/x.npy"));
}

// Every prefix of a good file, and every change of one byte of its header, is read or refused.
static void test_damaged_files_do_no_harm(void **state) {
  Context *context = *state;
  const int64_t shape[] = {2, 3};
  Tensor *tensor = numbered("float32", shape, 2);
  Text text = text_new(&context->arena);
  npy_print(tensor, &text);
  for (size_t size = 0; size < text.size; size++) {
    char *copy = malloc(size + 1);
    memcpy(copy, text.data, size);
    assert_null(npy_parse(context, "x.npy", copy, size));
    free(copy);
  }
  for (size_t i = 0; i < 128; i++)
    for (int c = 0; c < 256; c += 5) {
      char *copy = arena_copy(&context->scratch, text.data, text.size);
      copy[i] = (char)c;
      tensor_free(npy_parse(context, "x.npy", copy, text.size));
    }
  tensor_free(tensor);
}

static bool write_npz(Context *context, const char *path, const NamedTensor *tensors, int count) {
  FileSet *files = file_set_new(context);
  return file_set_end(files, npz_write(context, files, path, tensors, count));
}

static void test_archives_return(void **state) {
  Context *context = *state;
  if (!PLEAT_HAVE_NPZ) skip();
  const int64_t shape[] = {5, 3}, large[] = {40000};
  NamedTensor tensors[] = {{"output", numbered("float32", shape, 2)},
                           {"a/b:0", numbered("int64", shape, 1)},
                           {"größe", numbered("bool", large, 1)}};
  const char *path = temporary_path(context, "out.npz");
  assert_true(write_npz(context, path, tensors, 3));
  size_t size, size_again;
  char *first = file_read(context, &context->arena, path, &size);
  NamedTensorArray read = {0};
  assert_true(npz_read(context, path, &read));
  assert_int_equal(read.count, 3);
  for (int i = 0; i < 3; i++) {
    assert_string_equal(read.items[i].name, tensors[i].name);
    assert_same(read.items[i].tensor, tensors[i].tensor);
  }
  assert_true(write_npz(context, path, read.items, 3));
  char *second = file_read(context, &context->arena, path, &size_again);
  assert_int_equal(size, size_again);
  assert_memory_equal(first, second, size);
  for (int i = 0; i < 3; i++) tensor_free(tensors[i].tensor), tensor_free(read.items[i].tensor);
  remove_path(path);
}

static void test_bad_archives_are_refused(void **state) {
  Context *context = *state;
  if (!PLEAT_HAVE_NPZ) skip();
  const int64_t shape[] = {5};
  NamedTensor named = {"x", numbered("int8", shape, 1)};
  const char *path = temporary_path(context, "out.npz");
  assert_true(write_npz(context, path, &named, 1));
  size_t size;
  char *data = file_read(context, &context->arena, path, &size);
  for (size_t cut = 0; cut + 22 < size; cut += 7) {
    NamedTensorArray read = {0};
    assert_true(file_write(context, path, data, cut));
    assert_false(npz_read(context, path, &read));
    assert_int_equal(read.count, 0);
  }
  NamedTensorArray read = {0};
  data[35 + 128 + 2] ^= 1; // an element: the check sum no longer fits
  assert_true(file_write(context, path, data, size));
  assert_false(npz_read(context, path, &read));
  assert_string_equal(array_last(&context->diags).message, "member 'x.npy' is damaged");
  assert_false(write_npz(context, "/nowhere/out.npz", &named, 1));
  tensor_free(named.tensor);
  remove_path(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_every_type_and_rank_returns, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_written_is_as_numpy_writes_it, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_columns_and_byte_orders, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bad_files_are_explained, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_damaged_files_do_no_harm, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_archives_return, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bad_archives_are_refused, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
