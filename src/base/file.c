// SPDX-License-Identifier: Apache-2.0
// Reads files as a whole, and writes files so that they appear completely or not at all.
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static SourcePos place_of(Context *context, const char *path) {
  return (SourcePos){.file = source_file_new(context, path, NULL, 0)};
}

static char *read_stream(Arena *arena, FILE *stream, size_t *size) {
  Text text = text_new(arena);
  char buffer[1 << 14];
  size_t n;
  while ((n = fread(buffer, 1, sizeof buffer, stream)) > 0) text_append(&text, buffer, n);
  *size = text.size;
  if (!text.data) text.data = arena_alloc(arena, 1);
  return ferror(stream) ? NULL : text.data;
}

char *file_read(Context *context, Arena *arena, const char *path, size_t *size) {
  bool standard = strcmp(path, "-") == 0;
  struct stat info;
  FILE *stream = standard ? stdin : fopen(path, "rb");
  if (!stream) {
    diag_error_as(context, DIAG_FILE, place_of(context, path), "cannot open: %s", strerror(errno));
    return NULL;
  }
  char *data = NULL;
  if (!standard && fstat(fileno(stream), &info) == 0 && S_ISDIR(info.st_mode))
    diag_error_as(context, DIAG_FILE, place_of(context, path), "is a folder, expected a file");
  else if (!(data = read_stream(arena, stream, size)))
    diag_error_as(context, DIAG_FILE, place_of(context, path), "cannot read: %s", strerror(errno));
  if (!standard) fclose(stream);
  return data;
}

typedef struct Mapping Mapping;
struct Mapping {
  void *data;
  size_t size;
  Mapping *next;
};

static void unmap(void *arg) {
  Mapping *mapping = arg;
  munmap(mapping->data, mapping->size);
}

// The mapped bytes, or NULL with errno set.
static const char *map_descriptor(Context *context, int descriptor, size_t size) {
  if (size == 0) return "";
  Mapping *mapping = arena_new(&context->lasting, Mapping);
  *mapping =
      (Mapping){mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0), size, context->mappings};
  if (mapping->data == MAP_FAILED) return NULL;
  context->mappings = mapping;
  context_at_free(context, unmap, mapping);
  return mapping->data;
}

void file_forget(Context *context, const void *data, size_t size) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data, end = begin + size;
  for (const Mapping *m = context->mappings; m; m = m->next) {
    uintptr_t from = (uintptr_t)m->data;
    if (begin < from || end > from + m->size) continue;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
    return;
  }
}

const char *file_map(Context *context, const char *path, SourcePos pos, size_t *size) {
  struct stat info;
  if (strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode)))
    return file_read(context, &context->lasting, path, size);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  bool ok = descriptor >= 0 && fstat(descriptor, &info) == 0;
  const char *data = ok ? map_descriptor(context, descriptor, (size_t)info.st_size) : NULL;
  if (!data && pos.file)
    diag_error_as(context, DIAG_FILE, pos, "cannot open '%s': %s", path, strerror(errno));
  else if (!data)
    diag_error_as(context, DIAG_FILE, place_of(context, path), "cannot open: %s", strerror(errno));
  if (descriptor >= 0) close(descriptor);
  *size = data ? (size_t)info.st_size : 0;
  return data;
}

static bool write_all(FILE *stream, const void *data, size_t size) {
  return stream && fwrite(data, 1, size, stream) == size && fflush(stream) == 0;
}

// The path that writing to `path` changes: the target of a link, or else `path` itself.
static const char *link_target(Context *context, const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char *found = realpath(path, NULL);
  const char *target = found ? str_intern(context, found) : path;
  free(found);
  return target;
}

// True for standard output, a device or a pipe, which can be written but not replaced.
static bool is_stream(const char *path) {
  struct stat info;
  return strcmp(path, "-") == 0 ||
         (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

static bool refuse_output(Context *context, const char *path, int reason) {
  if (strcmp(path, "-") == 0)
    return diag_error_as(context, DIAG_FILE, (SourcePos){0}, "cannot write standard output: %s",
                         strerror(reason));
  return diag_error_as(context, DIAG_FILE, place_of(context, path), "cannot write: %s",
                       strerror(reason));
}

// Makes an empty file with the permissions of a new file, beside `path`, or among the temporary
// files when `path` is a stream.
char *file_begin(Context *context, const char *path) {
  const char *folder = getenv("TMPDIR");
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
    return refuse_output(context, path, EISDIR), NULL;
  char *temporary = is_stream(path)
                        ? arena_printf(&context->arena, "%s/pleat.XXXXXX", folder ? folder : "/tmp")
                        : arena_printf(&context->arena, "%s.XXXXXX", link_target(context, path));
  int descriptor = mkstemp(temporary);
  mode_t mask = umask(0);
  umask(mask);
  if (descriptor >= 0 && fchmod(descriptor, 0666 & ~mask) == 0 && close(descriptor) == 0)
    return temporary;
  refuse_output(context, path, errno);
  return NULL;
}

bool file_can_write(Context *context, const char *path) {
  char *temporary = is_stream(path) ? "" : file_begin(context, path);
  if (temporary && *temporary) unlink(temporary);
  return temporary != NULL;
}

static bool write_stream(const char *path, const void *data, size_t size) {
  bool standard = strcmp(path, "-") == 0;
  FILE *stream = standard ? stdout : fopen(path, "wb");
  bool written = write_all(stream, data, size);
  if (stream && !standard) written &= fclose(stream) == 0;
  return written;
}

static bool copy_to_stream(Context *context, const char *path, const char *temporary) {
  size_t size;
  ArenaMark mark = arena_mark(&context->scratch);
  char *data = file_read(context, &context->scratch, temporary, &size);
  bool written = data && write_stream(path, data, size);
  arena_reset(&context->scratch, mark);
  return written;
}

bool file_end(Context *context, const char *path, const char *temporary, bool written) {
  bool stream = is_stream(path);
  if (written && !stream && rename(temporary, link_target(context, path)) == 0) return true;
  written = written && stream && copy_to_stream(context, path, temporary);
  int reason = errno;
  unlink(temporary);
  return written || refuse_output(context, path, reason);
}

bool file_write(Context *context, const char *path, const void *data, size_t size) {
  if (is_stream(path)) return write_stream(path, data, size) || refuse_output(context, path, errno);
  char *temporary = file_begin(context, path);
  if (!temporary) return false;
  FILE *stream = fopen(temporary, "wb");
  bool written = write_all(stream, data, size);
  if (stream) written &= fclose(stream) == 0;
  return file_end(context, path, temporary, written);
}
