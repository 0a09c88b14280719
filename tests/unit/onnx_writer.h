// SPDX-License-Identifier: Apache-2.0
// What the tests of ONNX import share: a writer of protocol buffers, a folder for one test, and
// small models put together from it.
#ifndef PLEAT_TESTS_ONNX_WRITER_H
#define PLEAT_TESTS_ONNX_WRITER_H

#include "base/base.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

// ---- A writer of protocol buffers -------------------------------------------------------------

static inline void put_varint(Text *out, uint64_t value) {
  for (; value >= 128; value >>= 7) text_append(out, (char[]){(char)(value | 128)}, 1);
  text_append(out, (char[]){(char)value}, 1);
}

static inline void put_int(Text *out, int field, int64_t value) {
  put_varint(out, (uint64_t)field << 3);
  put_varint(out, (uint64_t)value);
}

static inline void put_bytes(Text *out, int field, const void *data, size_t size) {
  put_varint(out, (uint64_t)field << 3 | 2);
  put_varint(out, size);
  text_append(out, data, size);
}

static inline void put_text(Text *out, int field, const char *s) {
  put_bytes(out, field, s, strlen(s));
}

static inline void put_message(Text *out, int field, const Text *message) {
  put_bytes(out, field, message->data ? message->data : "", message->size);
}

static inline void put_float(Text *out, int field, float value) {
  put_varint(out, (uint64_t)field << 3 | 5);
  text_append(out, (const char *)&value, sizeof value);
}

// ---- The world of one test --------------------------------------------------------------------

typedef struct World {
  Context *context;
  char folder[64];
} World;

static inline World world_new(void) {
  World world = {context_new(), "/tmp/pleat-onnx-XXXXXX"};
  assert_non_null(mkdtemp(world.folder));
  return world;
}

static inline void world_free(World *world) {
  char *command = arena_printf(&world->context->arena, "rm -r '%s'", world->folder);
  assert_int_equal(system(command), 0);
  context_free(world->context);
}

static inline const char *world_path(World *world, const char *name) {
  return arena_printf(&world->context->arena, "%s/%s", world->folder, name);
}

static inline const char *world_write(World *world, const char *name, const void *data,
                                      size_t size) {
  const char *path = world_path(world, name);
  assert_true(file_write(world->context, path, data, size));
  return path;
}

static inline void assert_one_error(Context *context, const char *words) {
  if (context->error_count != 1 || !strstr(context->diags.items[0].message, words))
    diag_print_all(context, stderr);
  assert_int_equal(context->error_count, 1);
  assert_non_null(strstr(context->diags.items[0].message, words));
  assert_non_null(context->diags.items[0].pos.file);
}

// ---- Models written as text -------------------------------------------------------------------
//
// Statements separated by ";":
//   opset 13                      (17 when absent)
//   in x float 1x3xN              an input; N is a free dimension, "none" for no shape
//   out y [float 1x3]             an output, with or without a type
//   info h float 1x3              what the model says of a value
//   zeros w float 2x3             an initializer
//   ints s 1,-1                   an initializer of int64, rank 1
//   node Conv conv1 x,w y a=1 b=0.5 c=[1,2] d='same'   a node: operator, name, inputs, outputs

typedef struct ModelText {
  Arena *arena;
  Text graph;
  int64_t opset;
} ModelText;

static inline int model_type(const char *name) {
  static const char *const names[] = {"none",  "float", "uint8", "int8",   "uint16",  "int16",
                                      "int32", "int64", "string", "bool", "float16", "double"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (strcmp(names[i], name) == 0) return i;
  return 99;
}

static inline void put_list(Arena *arena, Text *out, int field, const char *list) {
  for (char *rest = arena_printf(arena, "%s", list), *item; (item = strsep(&rest, ","));)
    put_text(out, field, item);
}

static inline void put_dims(Arena *arena, Text *tensor, const char *dims) {
  Text shape = text_new(arena);
  for (char *rest = arena_printf(arena, "%s", dims), *item; (item = strsep(&rest, "x"));) {
    Text dim = text_new(arena);
    char *end;
    long long value = strtoll(item, &end, 10);
    if (*end)
      put_text(&dim, 2, item);
    else
      put_int(&dim, 1, value);
    if (*item) put_message(&shape, 1, &dim);
  }
  if (strcmp(dims, "none") != 0) put_message(tensor, 2, &shape);
}

static inline void model_value(ModelText *model, int field, const char *name, const char *type,
                               const char *dims) {
  Text value = text_new(model->arena), holder = text_new(model->arena);
  Text tensor = text_new(model->arena);
  put_text(&value, 1, name);
  if (*type) {
    put_int(&tensor, 1, model_type(type));
    put_dims(model->arena, &tensor, dims);
    put_message(&holder, 1, &tensor);
    put_message(&value, 2, &holder);
  }
  put_message(&model->graph, field, &value);
}

static inline void model_zeros(ModelText *model, const char *name, const char *type,
                               const char *dims) {
  Text tensor = text_new(model->arena);
  int64_t count = 1;
  for (char *rest = arena_printf(model->arena, "%s", dims), *item; (item = strsep(&rest, "x"));) {
    put_int(&tensor, 1, atoll(item));
    count *= atoll(item);
  }
  size_t width = strcmp(type, "float") == 0 ? 4 : strcmp(type, "int64") == 0 ? 8 : 1;
  put_int(&tensor, 2, model_type(type));
  put_text(&tensor, 8, name);
  put_bytes(&tensor, 9, arena_alloc(model->arena, (size_t)count * width), (size_t)count * width);
  put_message(&model->graph, 5, &tensor);
}

static inline void model_ints(ModelText *model, const char *name, const char *list) {
  Text tensor = text_new(model->arena), numbers = text_new(model->arena);
  int64_t count = 0;
  for (char *rest = arena_printf(model->arena, "%s", list), *item; (item = strsep(&rest, ","));) {
    put_varint(&numbers, (uint64_t)atoll(item));
    count++;
  }
  put_int(&tensor, 1, count);
  put_int(&tensor, 2, 7);
  put_message(&tensor, 7, &numbers);
  put_text(&tensor, 8, name);
  put_message(&model->graph, 5, &tensor);
}

static inline void model_attribute(ModelText *model, Text *node, const char *name, char *value) {
  Text attribute = text_new(model->arena);
  put_text(&attribute, 1, name);
  if (*value == '\'') {
    put_bytes(&attribute, 4, value + 1, strlen(value) - 2);
    put_int(&attribute, 20, 3);
  } else if (*value == '[') {
    for (char *rest = value + 1, *item; (item = strsep(&rest, ",]"));)
      if (*item) put_int(&attribute, 8, atoll(item));
    put_int(&attribute, 20, 7);
  } else if (strchr(value, '.')) {
    put_float(&attribute, 2, strtof(value, NULL));
    put_int(&attribute, 20, 1);
  } else {
    put_int(&attribute, 3, atoll(value));
    put_int(&attribute, 20, 2);
  }
  put_message(node, 5, &attribute);
}

static inline void model_node(ModelText *model, char **words, int count) {
  Text node = text_new(model->arena);
  put_list(model->arena, &node, 1, words[3]);
  put_list(model->arena, &node, 2, words[4]);
  put_text(&node, 3, words[2]);
  put_text(&node, 4, words[1]);
  for (int i = 5; i < count; i++) {
    char *value = strchr(words[i], '=');
    *value++ = 0;
    model_attribute(model, &node, words[i], value);
  }
  put_message(&model->graph, 1, &node);
}

static inline void model_statement(ModelText *model, char *statement) {
  char *words[16] = {NULL}, *rest = statement, *word;
  int count = 0;
  while (count < 16 && (word = strsep(&rest, " \n")))
    if (*word) words[count++] = word;
  if (!count) return;
  const char *kind = words[0];
  if (strcmp(kind, "opset") == 0) model->opset = atoll(words[1]);
  if (strcmp(kind, "in") == 0) model_value(model, 11, words[1], words[2], words[3]);
  if (strcmp(kind, "info") == 0) model_value(model, 13, words[1], words[2], words[3]);
  if (strcmp(kind, "zeros") == 0) model_zeros(model, words[1], words[2], words[3]);
  if (strcmp(kind, "ints") == 0) model_ints(model, words[1], words[2]);
  if (strcmp(kind, "node") == 0) model_node(model, words, count);
  if (strcmp(kind, "out") == 0)
    model_value(model, 12, words[1], count > 2 ? words[2] : "", count > 3 ? words[3] : "none");
}

// Writes the model that `text` describes; its path.
static inline const char *world_model(World *world, const char *text) {
  Arena *arena = &world->context->arena;
  ModelText model = {arena, text_new(arena), 17};
  for (char *rest = arena_printf(arena, "%s", text), *item; (item = strsep(&rest, ";"));)
    model_statement(&model, item);
  Text file = text_new(arena), opset = text_new(arena);
  put_int(&opset, 2, model.opset);
  put_int(&file, 1, 8);
  put_message(&file, 7, &model.graph);
  put_message(&file, 8, &opset);
  return world_write(world, "m.onnx", file.data, file.size);
}

#endif
