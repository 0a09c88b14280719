// SPDX-License-Identifier: Apache-2.0
// Loads test data that accompanies a model: finds its folders, and reads the tensors in their
// files.
#include "cli/test_data.h"

#include "report/verify.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "config.h"

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"
#endif

// ---- Folders ----------------------------------------------------------------------------------

static const char set_prefix[] = "test_data_set_";

static int by_number(const void *a, const void *b) {
  long x = strtol(*(const char *const *)a + strlen(set_prefix), NULL, 10);
  long y = strtol(*(const char *const *)b + strlen(set_prefix), NULL, 10);
  return (x > y) - (x < y);
}

static bool no_folder(Cli *cli, const char *path) {
  bool absent = errno == ENOENT;
  return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0}, "--test-data %s: %s", path,
                       absent ? "there is no such folder" : strerror(errno));
}

bool test_data_folders(Cli *cli, const char *path, StringList *folders) {
  Arena *arena = &cli->context->arena;
  DIR *folder = opendir(path);
  if (!folder) return no_folder(cli, path);
  for (struct dirent *entry; (entry = readdir(folder));)
    if (strncmp(entry->d_name, set_prefix, strlen(set_prefix)) == 0)
      array_push(arena, folders, str_intern(cli->context, entry->d_name));
  closedir(folder);
  if (folders->count) qsort(folders->items, (size_t)folders->count, sizeof(char *), by_number);
  for (int i = 0; i < folders->count; i++)
    folders->items[i] = arena_printf(arena, "%s/%s", path, folders->items[i]);
  if (!folders->count) array_push(arena, folders, path);
  return true;
}

#if PLEAT_HAVE_ONNX
// ---- Files ------------------------------------------------------------------------------------

static const char *file_name(Cli *cli, const TestData *data, const char *kind, int number) {
  return arena_printf(&cli->context->arena, "%s/%s_%d.pb", data->folder, kind, number);
}

static bool exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

static bool too_many(Cli *cli, const TestData *data, const char *kind, int count) {
  const char *path = file_name(cli, data, kind, count);
  return exists(path) && !diag_error(cli->context, (SourcePos){0}, "%s: the model has %d %s%s",
                                     path, count, kind, count == 1 ? "" : "s");
}

// Reads the files of the inputs; data->files receives the file of each input's tensor.
static bool read_inputs(Cli *cli, const char *path, TestData *data, OnnxHeld *held) {
  Arena *arena = &cli->context->arena;
  OnnxBoundaryValue *values;
  int count = onnx_boundary_values(cli->context, path, false, &values);
  if (count < 0 || too_many(cli, data, "input", count)) return false;
  for (int i = 0; i < count; i++) {
    const char *file = file_name(cli, data, "input", i);
    if (exists(file) && !onnx_read_boundary_value(cli->context, file, &values[i], held))
      return false;
    while (data->files.count < held->tensors.count) array_push(arena, &data->files, file);
  }
  data->inputs = arena_array(arena, ConstData *, held->tensors.count);
  for (int i = 0; i < held->tensors.count; i++) {
    array_push(arena, &data->names, held->tensors.items[i].name);
    data->inputs[i] = held->tensors.items[i].data;
  }
  return true;
}

// The arrays of the data, and those that the user gives besides; all of them have to agree.
static void add_data(Cli *cli, const TestData *data, const OnnxHeld *held, OnnxOptions *onnx) {
  Arena *arena = &cli->context->arena;
  int given = onnx->array_count, count = held->tensors.count;
  OnnxArray *arrays = arena_array(arena, OnnxArray, given + count);
  OnnxBinding *values = arena_array(arena, OnnxBinding, onnx->value_count + count);
  for (int i = 0; i < count; i++) {
    const ConstData *tensor = held->tensors.items[i].data;
    arrays[i] = (OnnxArray){.name = held->tensors.items[i].name,
                            .shape = tensor->shape,
                            .rank = tensor->rank,
                            .source = data->files.items[i]};
    values[i] = held->tensors.items[i];
  }
  for (int i = 0; i < given; i++) arrays[count + i] = onnx->arrays[i];
  for (int i = 0; i < onnx->value_count; i++) values[count + i] = onnx->values[i];
  onnx->arrays = arrays;
  onnx->array_count += count;
  onnx->values = values;
  onnx->value_count += count;
}

// Imports the model for the data's shapes.
static const GraphFunc *import(Cli *cli, const char *path, const ModelOptions *options,
                               const TestData *data, const OnnxHeld *held) {
  OnnxOptions onnx;
  StringList shapes = {0};
  for (int i = 0; i < options->input_shapes.count; i++)
    array_push(&cli->context->arena, &shapes, options->input_shapes.items[i]);
  for (int i = 0; i < held->shapes.count; i++)
    array_push(&cli->context->arena, &shapes, held->shapes.items[i]);
  if (!model_import_options(cli, options, &onnx)) return NULL;
  onnx.shapes = shapes.items;
  onnx.shape_count = shapes.count;
  add_data(cli, data, held, &onnx);
  return onnx_import(cli->context, path, &onnx)->graph;
}

// Is `name` the name of an output, or "NAME[3]" for one of the tensors that it holds?
static bool belongs_to(const char *name, Str output) {
  size_t length = strlen(output);
  return !strncmp(name, output, length) && (!name[length] || name[length] == '[');
}

static bool place_expected(Cli *cli, TestData *data, const char *file,
                           const OnnxBoundaryValue *value, const OnnxHeld *held) {
  int given = 0, found = 0;
  for (int i = 0; i < data->graph->output_count; i++) {
    const Value *output = data->graph->outputs[i];
    given += belongs_to(output->name, value->name);
    for (int k = 0; k < held->tensors.count; k++) {
      if (strcmp(held->tensors.items[k].name, output->name)) continue;
      data->expected[i] = held->tensors.items[k].data;
      found++;
    }
  }
  return (given == held->tensors.count && found == given) ||
         diag_error(cli->context, (SourcePos){0},
                    "%s holds %d tensor%s, the model gives %d for '%s'", file, held->tensors.count,
                    held->tensors.count == 1 ? "" : "s", given, value->name);
}

static bool read_expected(Cli *cli, const char *path, TestData *data) {
  OnnxBoundaryValue *values;
  int count = onnx_boundary_values(cli->context, path, true, &values), found = 0;
  data->expected = arena_array(&cli->context->arena, ConstData *, data->graph->output_count);
  if (count < 0 || too_many(cli, data, "output", count)) return false;
  for (int i = 0; i < count; i++) {
    const char *file = file_name(cli, data, "output", i);
    OnnxHeld held = {0};
    if (!exists(file)) continue;
    if (!onnx_read_boundary_value(cli->context, file, &values[i], &held) ||
        !place_expected(cli, data, file, &values[i], &held))
      return false;
    found++;
  }
  return found || diag_error(cli->context, (SourcePos){0}, "%s holds no output_0.pb", data->folder);
}

bool test_data_load(Cli *cli, const char *path, const char *folder, const ModelOptions *options,
                    TestData *data) {
  *data = (TestData){.folder = folder};
  OnnxHeld held = {0};
  if (!read_inputs(cli, path, data, &held)) return false;
  data->graph = import(cli, path, options, data, &held);
  return data->graph && read_expected(cli, path, data);
}
#else
bool test_data_load(Cli *cli, const char *path, const char *folder, const ModelOptions *options,
                    TestData *data) {
  return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                       "--test-data: this build cannot read ONNX");
}
#endif

Tensor *test_data_tensor(Cli *cli, const TestData *data, const Value *value) {
  for (int i = 0; i < data->names.count; i++) {
    const ConstData *given = data->inputs[i];
    if (strcmp(data->names.items[i], value->name) != 0) continue;
    Tensor *tensor = value_tensor(cli->context, value, NULL);
    if (!tensor) return NULL;
    if (tensor_bytes(tensor) != (int64_t)given->bytes ||
        !verify_type_fits(value->type, given->type)) {
      diag_error(cli->context, value->pos, "'%s': %s has another type or size", value->name,
                 data->files.items[i]);
      return NULL;
    }
    memcpy(tensor->data, given->data, given->bytes);
    return tensor;
  }
  return NULL;
}
