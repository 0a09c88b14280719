// SPDX-License-Identifier: Apache-2.0
// Finds weights in files beside the model. Such a file must be in the model's folder or below it
// after symbolic links and ".." are resolved. Each file is mapped once.
#include "frontend/onnx/onnx_proto.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct ExternalPlace {
  Str location;
  int64_t offset, length; // length -1: not stated
} ExternalPlace;

static bool parse_size(const char *s, int64_t *value) {
  char *end;
  errno = 0;
  long long parsed = strtoll(s, &end, 10);
  *value = parsed;
  return end != s && *end == 0 && errno == 0 && parsed >= 0;
}

static bool read_place(OnnxFile *file, const OnnxTensor *tensor, SourcePos pos,
                       ExternalPlace *place) {
  *place = (ExternalPlace){.location = "", .length = -1};
  for (int i = 0; i < tensor->external_data.count; i++) {
    const OnnxPair *pair = &tensor->external_data.items[i];
    bool ok = true;
    if (strcmp(pair->key, "location") == 0) place->location = pair->value;
    if (strcmp(pair->key, "offset") == 0) ok = parse_size(pair->value, &place->offset);
    if (strcmp(pair->key, "length") == 0) ok = parse_size(pair->value, &place->length);
    if (!ok)
      return diag_error(file->context, pos,
                        "tensor '%s': the %s of its external data is '%s', "
                        "expected a number of bytes",
                        tensor->name, pair->key, pair->value);
  }
  if (*place->location) return true;
  return diag_error(file->context, pos, "tensor '%s': its external data have no location",
                    tensor->name);
}

char *onnx_folder_of(Arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return arena_printf(arena, ".");
  return arena_printf(arena, "%.*s", (int)MAX_OF(slash - path, 1), path);
}

static bool is_inside(const char *folder, const char *path) {
  size_t n = strlen(folder);
  if (strcmp(folder, "/") == 0) return true;
  return strncmp(folder, path, n) == 0 && path[n] == '/';
}

// The resolved path of `location`; NULL with a diagnostic when the folder has no such file.
static Str resolve(OnnxFile *file, const OnnxTensor *tensor, const char *location, SourcePos pos) {
  Context *context = file->context;
  char *folder = onnx_folder_of(&context->arena, file->path);
  char *wanted = arena_printf(&context->arena, "%s/%s", folder, location);
  char *root = realpath(folder, NULL), *found = NULL;
  struct stat info;
  Str path = NULL;
  if (location[0] == '/')
    diag_error(context, pos,
               "tensor '%s': its external data '%s' have an absolute path, expected "
               "one relative to the model's folder",
               tensor->name, location);
  else if (!root || !(found = realpath(wanted, NULL)) || stat(found, &info) != 0)
    diag_error(context, pos, "tensor '%s': cannot open its external data '%s': %s", tensor->name,
               location, strerror(errno));
  else if (!is_inside(root, found))
    diag_error(context, pos, "tensor '%s': its external data '%s' are outside the model's folder",
               tensor->name, location);
  else if (!S_ISREG(info.st_mode))
    diag_error(context, pos, "tensor '%s': its external data '%s' are not a regular file",
               tensor->name, location);
  else
    path = str_intern(context, found);
  free(root);
  free(found);
  return path;
}

static OnnxBytes *map_once(OnnxFile *file, Str path, SourcePos pos) {
  OnnxBytes *bytes = map_find(&file->mapped, path);
  if (bytes) return bytes;
  bytes = arena_new(&file->context->arena, OnnxBytes);
  bytes->data = (const uint8_t *)file_map(file->context, path, pos, &bytes->size);
  map_put(&file->mapped, path, bytes);
  return bytes;
}

OnnxBytes onnx_external_data(OnnxFile *file, const OnnxTensor *tensor, size_t size, SourcePos pos) {
  OnnxBytes none = {0};
  ExternalPlace place;
  if (!read_place(file, tensor, pos, &place)) return none;
  Str path = resolve(file, tensor, place.location, pos);
  if (!path) return none;
  OnnxBytes *bytes = map_once(file, path, pos);
  if (!bytes->data) return none;
  size_t offset = (size_t)place.offset, length = place.length < 0 ? size : (size_t)place.length;
  if (offset <= bytes->size && length <= bytes->size - offset)
    return (OnnxBytes){bytes->data + offset, length};
  diag_error(file->context, pos,
             "tensor '%s': its external data are bytes %zu to %zu of '%s', which has %zu",
             tensor->name, offset, offset + length, place.location, bytes->size);
  return none;
}
