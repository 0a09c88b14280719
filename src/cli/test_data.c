// SPDX-License-Identifier: Apache-2.0
// Test data beside a model: which folders hold them, and the tensors in their files.
#include "cli/test_data.h"

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
  return diag_error(cli->context, (SourcePos){0}, "--test-data %s: %s", path,
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

static ConstData *read_tensor(Cli *cli, const TestData *data, const char *kind, int number) {
  const char *path = file_name(cli, data, kind, number);
  return exists(path) ? onnx_read_tensor(cli->context, path) : NULL;
}

static bool too_many(Cli *cli, const TestData *data, const char *kind, int count) {
  const char *path = file_name(cli, data, kind, count);
  return exists(path) && !diag_error(cli->context, (SourcePos){0}, "%s: the model has %d %s%s",
                                     path, count, kind, count == 1 ? "" : "s");
}

static bool read_inputs(Cli *cli, const char *path, TestData *data) {
  Str *names;
  int count = onnx_input_names(cli->context, path, &names);
  if (count < 0 || too_many(cli, data, "input", count)) return false;
  data->inputs = arena_array(&cli->context->arena, ConstData *, count);
  for (int i = 0; i < count; i++) {
    array_push(&cli->context->arena, &data->names, names[i]);
    data->inputs[i] = read_tensor(cli, data, "input", i);
  }
  return cli->context->error_count == 0;
}

static const GraphFunc *import(Cli *cli, const char *path, const ModelOptions *options,
                               const TestData *data) {
  int count = 0;
  OnnxBinding *bindings = arena_array(&cli->context->arena, OnnxBinding, data->names.count);
  for (int i = 0; i < data->names.count; i++)
    if (data->inputs[i]) bindings[count++] = (OnnxBinding){data->names.items[i], data->inputs[i]};
  OnnxOptions onnx = {.shapes = options->input_shapes.items,
                      .shape_count = options->input_shapes.count,
                      .dims = options->dims.items,
                      .dim_count = options->dims.count,
                      .values = bindings,
                      .value_count = count};
  return onnx_import(cli->context, path, &onnx)->graph;
}

static bool read_expected(Cli *cli, TestData *data) {
  int count = data->graph->output_count, found = 0;
  data->expected = arena_array(&cli->context->arena, ConstData *, count);
  if (too_many(cli, data, "output", count)) return false;
  for (int i = 0; i < count; i++)
    found += (data->expected[i] = read_tensor(cli, data, "output", i)) != NULL;
  if (!found && !cli->context->error_count)
    diag_error(cli->context, (SourcePos){0}, "%s holds no output_0.pb", data->folder);
  return cli->context->error_count == 0;
}

bool test_data_load(Cli *cli, const char *path, const char *folder, const ModelOptions *options,
                    TestData *data) {
  *data = (TestData){.folder = folder};
  if (!read_inputs(cli, path, data)) return false;
  data->graph = import(cli, path, options, data);
  return data->graph && read_expected(cli, data);
}
#else
bool test_data_load(Cli *cli, const char *path, const char *folder, const ModelOptions *options,
                    TestData *data) {
  return diag_error(cli->context, (SourcePos){0}, "--test-data: this build reads no ONNX");
}
#endif

bool test_data_type_fits(DType type, DType file) {
  return dtype_equal(type, file) ||
         (type.code == TYPE_BFLOAT && file.code == TYPE_UINT && file.bits == 16);
}

Tensor *test_data_tensor(Cli *cli, const TestData *data, const Value *value) {
  for (int i = 0; i < data->names.count; i++) {
    const ConstData *given = data->inputs[i];
    if (!given || strcmp(data->names.items[i], value->name) != 0) continue;
    Tensor *tensor = model_tensor(cli, value);
    if (!tensor) return NULL;
    if (tensor_bytes(tensor) != (int64_t)given->bytes ||
        !test_data_type_fits(value->type, given->type)) {
      diag_error(cli->context, value->pos, "'%s': %s/input_%d.pb has another type or size",
                 value->name, data->folder, i);
      return NULL;
    }
    memcpy(tensor->data, given->data, given->bytes);
    return tensor;
  }
  return NULL;
}
