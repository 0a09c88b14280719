// SPDX-License-Identifier: Apache-2.0
// Reads ONNX files: messages, tensor values, external data, and all kinds of damage. The tests
// write the files byte by byte.
#include "frontend/onnx/onnx_proto.h"
#include "onnx_writer.h"

#include <sys/stat.h>
#include <unistd.h>

// Writes a single tensor to a file and opens it.
static OnnxFile *open_tensor(World *world, const Text *tensor) {
  return onnx_tensor_open(world->context,
                          world_write(world, "tensor.pb", tensor->data, tensor->size));
}

static ConstData *tensor_values(World *world, const Text *tensor) {
  OnnxFile *file = open_tensor(world, tensor);
  assert_non_null(file);
  return onnx_tensor_data(file, file->tensor, (SourcePos){.file = file->source});
}

static Text tensor_start(World *world, int type, const int64_t *dims, int rank) {
  Text tensor = text_new(&world->context->arena);
  for (int i = 0; i < rank; i++) put_int(&tensor, 1, dims[i]);
  put_int(&tensor, 2, type);
  put_text(&tensor, 8, "w");
  return tensor;
}

// x [1, 3, "n"] -> Conv(x, w) -> y, with attributes of several types.
static Text small_model(World *world) {
  Arena *arena = &world->context->arena;
  Text model = text_new(arena), graph = text_new(arena), node = text_new(arena);
  Text pads = text_new(arena), alpha = text_new(arena), mode = text_new(arena);
  Text opset = text_new(arena), weights = tensor_start(world, 1, (int64_t[]){2, 3}, 2);
  put_text(&pads, 1, "pads");
  put_int(&pads, 20, 7);
  for (int i = 0; i < 4; i++) put_int(&pads, 8, i - 1);
  put_text(&alpha, 1, "alpha");
  put_int(&alpha, 20, 1);
  put_float(&alpha, 2, 0.5f);
  put_text(&mode, 1, "auto_pad");
  put_int(&mode, 20, 3);
  put_text(&mode, 4, "SAME_UPPER");
  put_text(&node, 1, "x");
  put_text(&node, 1, "w");
  put_text(&node, 2, "y");
  put_text(&node, 3, "conv1");
  put_text(&node, 4, "Conv");
  put_message(&node, 5, &pads);
  put_message(&node, 5, &alpha);
  put_message(&node, 5, &mode);
  float values[6] = {0, 1, 2, 3, 4, 5};
  put_bytes(&weights, 9, values, sizeof values);
  Text type = text_new(arena), tensor = text_new(arena), shape = text_new(arena);
  Text dims[3] = {text_new(arena), text_new(arena), text_new(arena)};
  put_int(&dims[0], 1, 1);
  put_int(&dims[1], 1, 3);
  put_text(&dims[2], 2, "n");
  for (int i = 0; i < 3; i++) put_message(&shape, 1, &dims[i]);
  put_int(&tensor, 1, 1);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  Text x = text_new(arena), y = text_new(arena);
  put_text(&x, 1, "x");
  put_message(&x, 2, &type);
  put_text(&y, 1, "y");
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "small");
  put_message(&graph, 5, &weights);
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  put_int(&opset, 2, 17);
  put_int(&model, 1, 8);
  put_text(&model, 2, "a test");
  put_message(&model, 7, &graph);
  put_message(&model, 8, &opset);
  put_text(&model, 200, "a field of the future");
  return model;
}

// ---- What is right ------------------------------------------------------------------------------

static void test_model_is_read(void **state) {
  (void)state;
  World world = world_new();
  Text text = small_model(&world);
  OnnxFile *file =
      onnx_model_open(world.context, world_write(&world, "m.onnx", text.data, text.size));
  assert_non_null(file);
  OnnxModel *model = file->model;
  assert_int_equal(model->ir_version, 8);
  assert_string_equal(model->producer_name, "a test");
  assert_string_equal(model->producer_version, "");
  assert_int_equal(model->opset_import.count, 1);
  assert_int_equal(model->opset_import.items[0].version, 17);
  assert_string_equal(model->opset_import.items[0].domain, "");
  OnnxNode *node = &model->graph->node.items[0];
  assert_string_equal(node->op_type, "Conv");
  assert_ptr_equal(node->input.items[1], str_intern(world.context, "w"));
  assert_string_equal(node->output.items[0], "y");
  assert_int_equal(node->attribute.count, 3);
  assert_int_equal(node->attribute.items[0].ints.count, 4);
  assert_int_equal(node->attribute.items[0].ints.items[0], -1);
  assert_int_equal(node->attribute.items[0].ints.items[3], 2);
  assert_true(node->attribute.items[1].has_f);
  assert_float_equal(node->attribute.items[1].f, 0.5f, 0);
  assert_int_equal(node->attribute.items[2].s.size, 10);
  assert_memory_equal(node->attribute.items[2].s.data, "SAME_UPPER", 10);
  OnnxValue *x = &model->graph->input.items[0];
  OnnxDims *dims = &x->type->tensor_type->shape->dim;
  assert_int_equal(dims->count, 3);
  assert_int_equal(dims->items[1].dim_value, 3);
  assert_false(dims->items[2].has_dim_value);
  assert_string_equal(dims->items[2].dim_param, "n");
  assert_null(model->graph->output.items[0].type);
  world_free(&world);
}

static void test_weights_stay_in_the_file(void **state) {
  (void)state;
  World world = world_new();
  Text text = small_model(&world);
  OnnxFile *file =
      onnx_model_open(world.context, world_write(&world, "m.onnx", text.data, text.size));
  OnnxTensor *tensor = &file->model->graph->initializer.items[0];
  ConstData *data = onnx_tensor_data(file, tensor, (SourcePos){.file = file->source});
  assert_ptr_equal(data->data, tensor->raw_data.data);
  assert_int_equal(data->bytes, 24);
  float last;
  memcpy(&last, (const char *)data->data + 20, 4);
  assert_float_equal(last, 5, 0);
  assert_true(dtype_equal(data->type, DTYPE_FLOAT32));
  assert_int_equal(data->shape[1], 3);
  world_free(&world);
}

typedef struct TypedCase {
  int type, field;
  int64_t values[3];
  DType dtype;
  uint8_t bytes[24];
} TypedCase;

static const TypedCase typed_cases[] = {
    {2, 5, {0, 200, 255}, {TYPE_UINT, 8, 1}, {0, 200, 255}},
    {3, 5, {-128, -1, 127}, {TYPE_INT, 8, 1}, {128, 255, 127}},
    {4, 5, {1, 2, 65535}, {TYPE_UINT, 16, 1}, {1, 0, 2, 0, 255, 255}},
    {5, 5, {-2, 0, 3}, {TYPE_INT, 16, 1}, {254, 255, 0, 0, 3, 0}},
    {6, 5, {-2, 0, 1 << 24}, {TYPE_INT, 32, 1}, {254, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1}},
    {7,
     7,
     {-1, 5, 256},
     {TYPE_INT, 64, 1},
     {255, 255, 255, 255, 255, 255, 255, 255, 5, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
    {9, 5, {1, 0, 1}, {TYPE_BOOL, 8, 1}, {1, 0, 1}},
    {10, 5, {0x3c00, 0, 0x8000}, {TYPE_FLOAT, 16, 1}, {0, 0x3c, 0, 0, 0, 0x80}},
    {12, 11, {1, 0, 4294967295}, {TYPE_UINT, 32, 1}, {1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255}},
    {13, 11, {1, 2, 3}, {TYPE_UINT, 64, 1}, {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3}},
    {16, 5, {0x3f80, 0, 1}, {TYPE_BFLOAT, 16, 1}, {0x80, 0x3f, 0, 0, 1, 0}},
    {17, 5, {0x38, 0, 255}, {TYPE_FLOAT8_E4M3, 8, 1}, {0x38, 0, 255}},
};

// Packed, or each number on its own: both are allowed.
static Text typed_tensor(World *world, const TypedCase *c, bool packed) {
  Text tensor = tensor_start(world, c->type, (int64_t[]){3}, 1);
  Text numbers = text_new(&world->context->arena);
  for (int i = 0; i < 3; i++)
    packed ? put_varint(&numbers, (uint64_t)c->values[i])
           : put_int(&tensor, c->field, c->values[i]);
  if (packed) put_message(&tensor, c->field, &numbers);
  return tensor;
}

static void test_typed_fields(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(typed_cases) * 2; i++) {
    const TypedCase *c = &typed_cases[i / 2];
    World world = world_new();
    Text tensor = typed_tensor(&world, c, i % 2);
    ConstData *data = tensor_values(&world, &tensor);
    diag_print_all(world.context, stderr);
    assert_non_null(data);
    assert_true(dtype_equal(data->type, c->dtype));
    assert_int_equal(data->bytes, 3 * c->dtype.bits / 8);
    assert_memory_equal(data->data, c->bytes, data->bytes);
    world_free(&world);
  }
}

static void test_floats_and_halves_of_bytes(void **state) {
  (void)state;
  World world = world_new();
  Text alone = tensor_start(&world, 1, (int64_t[]){2}, 1);
  put_float(&alone, 4, 1.5f);
  put_float(&alone, 4, -2.0f);
  ConstData *data = tensor_values(&world, &alone);
  assert_memory_equal(data->data, ((float[]){1.5f, -2.0f}), 8);
  Text packed = tensor_start(&world, 11, (int64_t[]){1, 2}, 2);
  put_bytes(&packed, 10, (double[]){3.25, 4}, 16);
  data = tensor_values(&world, &packed);
  assert_memory_equal(data->data, ((double[]){3.25, 4}), 16);
  Text four_bits = tensor_start(&world, 22, (int64_t[]){3}, 1);
  put_bytes(&four_bits, 9, (uint8_t[]){0xf1, 0x07}, 2); // 1, -1, 7
  data = tensor_values(&world, &four_bits);
  assert_memory_equal(data->data, ((int8_t[]){1, -1, 7}), 3);
  Text none = tensor_start(&world, 1, (int64_t[]){0, 5}, 2);
  data = tensor_values(&world, &none);
  assert_int_equal(data->bytes, 0);
  Text scalar = tensor_start(&world, 1, NULL, 0);
  put_float(&scalar, 4, 7);
  data = tensor_values(&world, &scalar);
  assert_int_equal(data->rank, 0);
  assert_int_equal(data->bytes, 4);
  assert_int_equal(world.context->error_count, 0);
  world_free(&world);
}

// ---- What is wrong ------------------------------------------------------------------------------

typedef struct BadTensor {
  int type, rank;
  int64_t dims[3];
  int field; // 9: raw_data of `size` zero bytes; 5, 7: packed zeros
  size_t size;
  const char *message;
} BadTensor;

static const BadTensor bad_tensors[] = {
    {1, 2, {2, 3}, 9, 23, "takes 24 bytes, but its data are 23"},
    {1, 2, {2, 3}, 9, 0, "takes 24 bytes, but its data are 0"},
    {1, 2, {2, 3}, 5, 6, "are not the 6 values of type float"},
    {7, 2, {2, 3}, 7, 5, "are not the 6 values of type int64"},
    {7, 2, {2, 3}, 7, 7, "are not the 6 values of type int64"},
    {1, 1, {-4}, 9, 4, "dimension 0 is negative (-4)"},
    {1, 3, {3, INT64_C(1) << 60, 5}, 9, 4, "is larger than any memory"},
    {1, 3, {INT64_C(1) << 30, INT64_C(1) << 30, INT64_C(1) << 30}, 7, 4, "larger than any memory"},
    {2, 1, {INT64_C(1) << 40}, 5, 9, "are not the 1099511627776 values of type uint8"},
    {8, 1, {2}, 9, 4, "type string (8), which is not supported"},
    {14, 1, {2}, 9, 4, "type complex64 (14), which is not supported"},
    {0, 1, {2}, 9, 4, "type undefined (0), which is not supported"},
    {99, 1, {2}, 9, 4, "type of an unknown number (99), which is not supported"},
};

static void test_bad_tensors(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(bad_tensors); i++) {
    const BadTensor *c = &bad_tensors[i];
    World world = world_new();
    Text tensor = tensor_start(&world, c->type, c->dims, c->rank);
    put_bytes(&tensor, c->field, (char[32]){0}, c->size);
    assert_null(tensor_values(&world, &tensor));
    assert_one_error(world.context, c->message);
    world_free(&world);
  }
}

static void test_values_must_fit(void **state) {
  (void)state;
  World world = world_new();
  TypedCase c = {3, 5, {0, 128, 1}};
  Text tensor = typed_tensor(&world, &c, true);
  assert_null(tensor_values(&world, &tensor));
  assert_one_error(world.context, "are not the 3 values of type int8");
  world_free(&world);
}

static void test_files_that_are_not_models(void **state) {
  (void)state;
  static const struct {
    const char *data;
    size_t size;
    const char *message;
  } cases[] = {
      {"", 0, "is empty"},
      {"hello, world\n", 13, "is not an ONNX file, or is truncated"},
      {"\x7f"
       "ELF\x02\x01\x01\x00",
       8, "is not an ONNX file, or is truncated"},
      {"\x08\x08", 2, "it has no graph"},
      {"\x3a\x05\x0a\x03\x0a\x01", 6, "a field is cut off"},
      {"\x3d\x05\x0a\x03\x0a", 5, "a field has the wrong type (byte 1"},
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, "a field is cut off"},
      {"\x00\x00", 2, "a field has no valid tag"},
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "a field is cut off"},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    World world = world_new();
    assert_null(onnx_model_open(world.context,
                                world_write(&world, "m.onnx", cases[i].data, cases[i].size)));
    assert_one_error(world.context, cases[i].message);
    world_free(&world);
  }
  World world = world_new();
  assert_null(onnx_model_open(world.context, world_path(&world, "absent.onnx")));
  assert_one_error(world.context, "cannot open: No such file");
  world_free(&world);
}

static void test_deep_nesting(void **state) {
  (void)state;
  World world = world_new();
  Text graph = text_new(&world.context->arena);
  put_text(&graph, 2, "innermost");
  for (int i = 0; i < 300; i++) { // graph in attribute in node in graph
    Text attribute = text_new(&world.context->arena), node = text_new(&world.context->arena);
    Text outer = text_new(&world.context->arena);
    put_message(&attribute, 6, &graph);
    put_message(&node, 5, &attribute);
    put_message(&outer, 1, &node);
    graph = outer;
  }
  Text model = text_new(&world.context->arena);
  put_message(&model, 7, &graph);
  assert_null(
      onnx_model_open(world.context, world_write(&world, "m.onnx", model.data, model.size)));
  assert_one_error(world.context, "nest too deep");
  world_free(&world);
}

// ---- External data ------------------------------------------------------------------------------

static void put_pair(Text *tensor, Arena *arena, const char *key, const char *value) {
  Text pair = text_new(arena);
  put_text(&pair, 1, key);
  put_text(&pair, 2, value);
  put_message(tensor, 13, &pair);
}

static ConstData *external_values(World *world, const char *location, const char *offset,
                                  const char *length) {
  Text tensor = tensor_start(world, 1, (int64_t[]){3}, 1);
  Arena *arena = &world->context->arena;
  put_int(&tensor, 14, 1);
  if (location) put_pair(&tensor, arena, "location", location);
  if (offset) put_pair(&tensor, arena, "offset", offset);
  if (length) put_pair(&tensor, arena, "length", length);
  return tensor_values(world, &tensor);
}

static void test_external_data_are_mapped(void **state) {
  (void)state;
  World world = world_new();
  world_write(&world, "w.bin", (float[]){1, 2, 3, 4, 5}, 20);
  assert_int_equal(mkdir(world_path(&world, "below"), 0700), 0);
  assert_int_equal(symlink("../w.bin", world_path(&world, "below/link")), 0);
  ConstData *data = external_values(&world, "w.bin", "8", "12");
  assert_memory_equal(data->data, ((float[]){3, 4, 5}), 12);
  data = external_values(&world, "w.bin", NULL, NULL);
  assert_memory_equal(data->data, ((float[]){1, 2, 3}), 12);
  data = external_values(&world, "below/link", "4", "12");
  assert_memory_equal(data->data, ((float[]){2, 3, 4}), 12);
  assert_int_equal(world.context->error_count, 0);
  world_free(&world);
}

static void test_bad_external_data(void **state) {
  (void)state;
  static const struct {
    const char *location, *offset, *length, *message;
  } cases[] = {
      {"absent.bin", NULL, NULL, "cannot open its external data 'absent.bin': No such file"},
      {"../%s/escape.bin", NULL, NULL, "outside the model's folder"},
      {"link", NULL, NULL, "outside the model's folder"},
      {"/etc/hostname", NULL, NULL, "an absolute path"},
      {"below", NULL, NULL, "not a regular file"},
      {"w.bin", "12", "12", "bytes 12 to 24 of 'w.bin', which has 20"},
      {"w.bin", "9223372036854775807", "12", "which has 20"},
      {"w.bin", "-1", "12", "is '-1', expected a number of bytes"},
      {"w.bin", "99999999999999999999", "12", "expected a number of bytes"},
      {"w.bin", "0", "8", "takes 12 bytes, but its data are 8"},
      {NULL, "0", "8", "have no location"},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    World world = world_new(), outside = world_new();
    world_write(&world, "w.bin", (float[]){1, 2, 3, 4, 5}, 20);
    assert_int_equal(mkdir(world_path(&world, "below"), 0700), 0);
    const char *secret = world_write(&outside, "escape.bin", (float[]){1, 2, 3}, 12);
    assert_int_equal(symlink(secret, world_path(&world, "link")), 0);
    const char *location = cases[i].location, *name = outside.folder + strlen("/tmp/");
    if (location && strchr(location, '%'))
      location = arena_printf(&world.context->arena, "../%s/escape.bin", name);
    assert_null(external_values(&world, location, cases[i].offset, cases[i].length));
    assert_one_error(world.context, cases[i].message);
    world_free(&outside);
    world_free(&world);
  }
}

// ---- Damage -------------------------------------------------------------------------------------

static void open_and_read_all(void *arg) {
  World *world = arg;
  OnnxFile *file = onnx_model_open(world->context, world_path(world, "mutant.onnx"));
  if (!file) return;
  OnnxTensors *tensors = &file->model->graph->initializer;
  for (int i = 0; i < tensors->count; i++)
    onnx_tensor_data(file, &tensors->items[i], (SourcePos){.file = file->source});
}

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

// Every cut of the file, then a thousand files with up to four wrong bytes: a diagnostic or a
// model, never a fault, and never more than a little memory.
static void test_damaged_files(void **state) {
  (void)state;
  World world = world_new();
  Text model = small_model(&world);
  uint32_t seed = 1;
  int refused = 0;
  for (int i = 0; i < 1000 + (int)model.size; i++) {
    bool cut = i < (int)model.size;
    char *bytes = arena_copy(&world.context->arena, model.data, model.size);
    for (uint32_t k = 0; !cut && k <= next_random(&seed) % 4; k++)
      bytes[next_random(&seed) % model.size] = (char)next_random(&seed);
    World mutant = world;
    mutant.context = context_new();
    mutant.context->memory_limit = 4 << 20;
    world_write(&mutant, "mutant.onnx", bytes, cut ? (size_t)i : model.size);
    assert_true(context_protect(mutant.context, open_and_read_all, &mutant));
    refused += mutant.context->error_count > 0;
    context_free(mutant.context);
  }
  assert_true(refused > (int)model.size / 2);
  world_free(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model_is_read),
      cmocka_unit_test(test_weights_stay_in_the_file),
      cmocka_unit_test(test_typed_fields),
      cmocka_unit_test(test_floats_and_halves_of_bytes),
      cmocka_unit_test(test_bad_tensors),
      cmocka_unit_test(test_values_must_fit),
      cmocka_unit_test(test_files_that_are_not_models),
      cmocka_unit_test(test_deep_nesting),
      cmocka_unit_test(test_external_data_are_mapped),
      cmocka_unit_test(test_bad_external_data),
      cmocka_unit_test(test_damaged_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
