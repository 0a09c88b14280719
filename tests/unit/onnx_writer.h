// SPDX-License-Identifier: Apache-2.0
// Support for the tests of the ONNX import: a writer of protocol buffers, a folder for one test,
// and a writer of small models from text.
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

// ---- The folder and context of one test -------------------------------------------------------

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
//   in x float 1x3xNx_            an input; N is a free dimension, "_" an empty one; "none" for no
//                                 shape
//   out y [float 1x3]             an output, with or without a type
//   info h float 1x3              the type that the model declares for a value
//   zeros w float 2x3             an initializer
//   ints s 1,-1                   an initializer of int64, rank 1
//   sparse w 2x3 1,5              a sparse one of float: 1, 2, … at these row-major numbers
//   sparse w 2x3 0,1,1,2 rows     the same, a row of indices for each
//   node Conv conv1 x,w y a=1 b=0.5 c=[1,2] d='same'   a node: operator, name, inputs, outputs
//   node f@my.domain:o1 call x y                        of a domain, and of an overload
//   graph g … end                 statements of a graph of its own, for an attribute "@g"
//   function f x,w y a,b … end    a function of domain "my.domain": inputs, outputs, attributes;
//                                 in it "overload o1", "uses 13" (its opset), "default a=0.5", and
//                                 attributes "$a/1" that refer to one of AttributeType 1
// "-" stands for an empty list.

enum { MODEL_MOST_GRAPHS = 16 };

typedef struct ModelText {
  Arena *arena;
  Text graph, file;
  int64_t opset;
  Text around; // the rest of the enclosing graph or function
  const char *name;
  bool is_function;
  int graph_count;
  const char *graph_names[MODEL_MOST_GRAPHS];
  Text graphs[MODEL_MOST_GRAPHS];
} ModelText;

static inline int model_type(const char *name) {
  static const char *const names[] = {"none",  "float", "uint8",  "int8", "uint16",  "int16",
                                      "int32", "int64", "string", "bool", "float16", "double"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (strcmp(names[i], name) == 0) return i;
  return 99;
}

static inline void put_list(Arena *arena, Text *out, int field, const char *list) {
  for (char *rest = arena_printf(arena, "%s", list), *item; (item = strsep(&rest, ","));)
    if (strcmp(item, "-") != 0) put_text(out, field, item);
}

static inline void put_dims(Arena *arena, Text *tensor, const char *dims) {
  Text shape = text_new(arena);
  for (char *rest = arena_printf(arena, "%s", dims), *item; (item = strsep(&rest, "x"));) {
    Text dim = text_new(arena);
    char *end;
    long long value = strtoll(item, &end, 10);
    if (*end && strcmp(item, "_") != 0)
      put_text(&dim, 2, item);
    else if (!*end)
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

static inline Text model_counting(ModelText *model, const char *name, int64_t count) {
  Text tensor = text_new(model->arena);
  put_int(&tensor, 1, count);
  put_int(&tensor, 2, 1);
  put_text(&tensor, 8, name);
  for (int64_t i = 0; i < count; i++) put_float(&tensor, 4, (float)(i + 1));
  return tensor;
}

static inline void model_sparse(ModelText *model, char **words) {
  Text tensor = text_new(model->arena), indices = text_new(model->arena);
  int64_t rank = 0, count = 0;
  for (char *rest = words[2], *item; (item = strsep(&rest, "x")); rank++)
    put_int(&tensor, 3, atoll(item));
  for (char *rest = words[3], *item; (item = strsep(&rest, ",")); count++)
    put_int(&indices, 7, atoll(item));
  if (words[4]) count /= rank;
  put_int(&indices, 1, count);
  if (words[4]) put_int(&indices, 1, rank);
  put_int(&indices, 2, 7);
  Text values = model_counting(model, words[1], count);
  put_message(&tensor, 1, &values);
  put_message(&tensor, 2, &indices);
  put_message(&model->graph, 15, &tensor);
}

static inline const Text *model_graph(const ModelText *model, const char *name) {
  for (int i = 0; i < model->graph_count; i++)
    if (strcmp(model->graph_names[i], name) == 0) return &model->graphs[i];
  fail_msg("no graph '%s'", name);
  return NULL;
}

static inline void model_attribute(ModelText *model, Text *node, int field, char *value) {
  Text attribute = text_new(model->arena);
  put_text(&attribute, 1, strsep(&value, "="));
  if (*value == '@') {
    put_message(&attribute, 6, model_graph(model, value + 1));
    put_int(&attribute, 20, 5);
  } else if (*value == '$') {
    char *name = strsep(&value, "/");
    put_text(&attribute, 21, name + 1);
    put_int(&attribute, 20, atoll(value));
  } else if (*value == '\'') {
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
  put_message(node, field, &attribute);
}

static inline void model_node(ModelText *model, char **words, int count) {
  Text node = text_new(model->arena);
  put_list(model->arena, &node, 1, words[3]);
  put_list(model->arena, &node, 2, words[4]);
  put_text(&node, 3, words[2]);
  put_text(&node, 4, strsep(&words[1], "@"));
  if (words[1]) put_text(&node, 7, strsep(&words[1], ":"));
  if (words[1]) put_text(&node, 8, words[1]);
  for (int i = 5; i < count; i++) model_attribute(model, &node, 5, words[i]);
  put_message(&model->graph, model->is_function ? 7 : 1, &node);
}

static inline void model_open(ModelText *model, char **words, bool is_function) {
  model->around = model->graph;
  model->graph = text_new(model->arena);
  model->name = words[1];
  model->is_function = is_function;
  if (!is_function) return;
  put_text(&model->graph, 1, words[1]);
  put_text(&model->graph, 10, "my.domain");
  put_list(model->arena, &model->graph, 4, words[2]);
  put_list(model->arena, &model->graph, 5, words[3]);
  if (words[4]) put_list(model->arena, &model->graph, 6, words[4]);
}

static inline void model_close(ModelText *model) {
  if (model->is_function) {
    put_message(&model->file, 25, &model->graph);
  } else {
    assert_true(model->graph_count < MODEL_MOST_GRAPHS);
    model->graph_names[model->graph_count] = model->name;
    model->graphs[model->graph_count++] = model->graph;
  }
  model->graph = model->around;
  model->is_function = false;
}

static inline void model_uses(ModelText *model, const char *version) {
  Text opset = text_new(model->arena);
  put_text(&opset, 1, "");
  put_int(&opset, 2, atoll(version));
  put_message(&model->graph, 9, &opset);
}

static inline void model_statement(ModelText *model, char *statement) {
  char *words[16] = {NULL}, *rest = statement, *word;
  int count = 0;
  while (count < 16 && (word = strsep(&rest, " \n")))
    if (*word) words[count++] = word;
  if (!count) return;
  const char *kind = words[0];
  if (strcmp(kind, "opset") == 0) model->opset = atoll(words[1]);
  if (strcmp(kind, "in") == 0)
    model_value(model, 11, words[1], count > 2 ? words[2] : "", count > 3 ? words[3] : "none");
  if (strcmp(kind, "info") == 0) model_value(model, 13, words[1], words[2], words[3]);
  if (strcmp(kind, "zeros") == 0) model_zeros(model, words[1], words[2], words[3]);
  if (strcmp(kind, "sparse") == 0) model_sparse(model, words);
  if (strcmp(kind, "ints") == 0) model_ints(model, words[1], words[2]);
  if (strcmp(kind, "node") == 0) model_node(model, words, count);
  if (strcmp(kind, "graph") == 0) model_open(model, words, false);
  if (strcmp(kind, "function") == 0) model_open(model, words, true);
  if (strcmp(kind, "overload") == 0) put_text(&model->graph, 13, words[1]);
  if (strcmp(kind, "uses") == 0) model_uses(model, words[1]);
  if (strcmp(kind, "default") == 0) model_attribute(model, &model->graph, 11, words[1]);
  if (strcmp(kind, "end") == 0) model_close(model);
  if (strcmp(kind, "out") == 0)
    model_value(model, 12, words[1], count > 2 ? words[2] : "", count > 3 ? words[3] : "none");
}

// Writes the model that `text` describes and returns its path.
static inline const char *world_model(World *world, const char *text) {
  Arena *arena = &world->context->arena;
  ModelText model = {
      .arena = arena, .graph = text_new(arena), .file = text_new(arena), .opset = 17};
  for (char *rest = arena_printf(arena, "%s", text), *item; (item = strsep(&rest, ";"));)
    model_statement(&model, item);
  Text opset = text_new(arena);
  put_int(&opset, 2, model.opset);
  put_int(&model.file, 1, 8);
  put_message(&model.file, 7, &model.graph);
  put_message(&model.file, 8, &opset);
  return world_write(world, "m.onnx", model.file.data, model.file.size);
}

#endif
