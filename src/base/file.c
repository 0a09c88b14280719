// SPDX-License-Identifier: Apache-2.0
// Reads files as a whole, and writes files so that they appear completely or not at all.
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

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
    diag_error_as(context, DIAG_FILE, source_file_pos(context, path), "cannot open: %s",
                  strerror(errno));
    return NULL;
  }
  char *data = NULL;
  if (!standard && fstat(fileno(stream), &info) == 0 && S_ISDIR(info.st_mode))
    diag_error_as(context, DIAG_FILE, source_file_pos(context, path),
                  "is a folder, expected a file");
  else if (!(data = read_stream(arena, stream, size)))
    diag_error_as(context, DIAG_FILE, source_file_pos(context, path), "cannot read: %s",
                  strerror(errno));
  if (!standard) fclose(stream);
  return data;
}

typedef struct Mapping Mapping;
struct Mapping {
  const char *path;
  void *data;
  size_t size;
  Mapping *next;
};

static void unmap(void *arg) {
  Mapping *mapping = arg;
  munmap(mapping->data, mapping->size);
}

// The mapped bytes, or NULL with errno set.
static const char *map_descriptor(Context *context, const char *path, int descriptor, size_t size) {
  if (size == 0) return "";
  Mapping *mapping = arena_new(&context->lasting, Mapping);
  *mapping =
      (Mapping){str_intern(context, path), mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0),
                size, context->mappings};
  if (mapping->data == MAP_FAILED) return NULL;
  context->mappings = mapping;
  context_at_free(context, unmap, mapping);
  return mapping->data;
}

MappedFiles file_mapped(Context *context) {
  MappedFiles files = {0};
  for (const Mapping *m = context->mappings; m; m = m->next)
    array_push(&context->arena, &files, ((MappedFile){m->path, m->data, m->size}));
  return files;
}

void file_forget(const Context *context, const void *data, size_t size) {
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
  const char *data = ok ? map_descriptor(context, path, descriptor, (size_t)info.st_size) : NULL;
  if (!data && pos.file)
    diag_error_as(context, DIAG_FILE, pos, "cannot open '%s': %s", path, strerror(errno));
  else if (!data)
    diag_error_as(context, DIAG_FILE, source_file_pos(context, path), "cannot open: %s",
                  strerror(errno));
  if (descriptor >= 0) close(descriptor);
  *size = data ? (size_t)info.st_size : 0;
  return data;
}

// ---- Why a file cannot be written --------------------------------------------------------------

static const char *folder_of(Context *context, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : str_intern_n(context, path, (size_t)(slash - path));
}

const char *path_file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static const char *full_disk(Context *context, const char *folder) {
  struct statvfs info;
  if (statvfs(folder, &info) != 0)
    return arena_printf(&context->arena, "the disk that holds folder '%s' is full", folder);
  return arena_printf(&context->arena,
                      "the disk that holds folder '%s' is full: %llu bytes of it are free", folder,
                      (unsigned long long)info.f_bavail * info.f_frsize);
}

static const char *used_quota(Context *context, const char *folder) {
  return arena_printf(&context->arena, "your quota on the disk that holds folder '%s' is used up",
                      folder);
}

static const char *large_file(Context *context, const char *folder) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return arena_printf(&context->arena,
                        "this process may write files of at most %llu bytes (see 'ulimit -f')",
                        (unsigned long long)limit.rlim_cur);
  return arena_printf(&context->arena, "the disk that holds folder '%s' takes no file so large",
                      folder);
}

// Errors for which the system's own words do not say enough.
static const struct {
  int reason;
  const char *(*text)(Context *context, const char *folder);
} reasons[] = {{ENOSPC, full_disk}, {EDQUOT, used_quota}, {EFBIG, large_file}};

static const char *reason_text(Context *context, const char *path, int reason) {
  struct stat info;
  bool stream = stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  for (int i = 0; i < COUNT_OF(reasons) && !stream; i++)
    if (reasons[i].reason == reason) return reasons[i].text(context, folder_of(context, path));
  return strerror(reason);
}

// `size` is the number of bytes that were to be written, 0 when it is not known.
static bool refuse_output(Context *context, const char *path, size_t size, int reason) {
  if (strcmp(path, "-") == 0)
    return diag_error_as(context, DIAG_FILE, (SourcePos){0}, "cannot write standard output: %s",
                         strerror(reason));
  const char *why = reason_text(context, path, reason);
  if (!size)
    return diag_error_as(context, DIAG_FILE, source_file_pos(context, path), "cannot write: %s",
                         why);
  return diag_error_as(context, DIAG_FILE, source_file_pos(context, path),
                       "cannot write %zu bytes: %s", size, why);
}

// ---- Temporary files ---------------------------------------------------------------------------

static const char temporary_ending[] = ".pleat-part";

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

// Locks a new file for as long as it is open. False when another process has taken it for a file
// that a killed process left.
static bool lock(int descriptor) {
  struct stat info;
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &info) == 0 &&
         info.st_nlink > 0;
}

// Removes a temporary file of this user that no running process has locked: its writer was killed.
static void remove_abandoned(const char *temporary) {
  struct stat info;
  int descriptor = open(temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    unlink(temporary);
  close(descriptor);
}

// Opens NAME.pleat-part. -1 when that name is taken by a running process.
static int open_named(const char *temporary) {
  remove_abandoned(temporary);
  int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0 || lock(descriptor)) return descriptor;
  close(descriptor);
  errno = EEXIST;
  return -1;
}

static int open_unique(char *temporary) {
  int descriptor = mkostemp(temporary, O_CLOEXEC);
  mode_t mask = umask(0);
  umask(mask);
  if (descriptor >= 0) fchmod(descriptor, 0666 & ~mask);
  return descriptor;
}

// Opens an empty file with the permissions of a new file, beside `path`, or among the temporary
// files when `path` is a stream. -1 with errno.
static int open_temporary(Context *context, const char *path, char **temporary) {
  const char *folder = getenv("TMPDIR");
  if (is_stream(path)) {
    *temporary = arena_printf(&context->lasting, "%s/pleat.XXXXXX", folder ? folder : "/tmp");
    return open_unique(*temporary);
  }
  *temporary =
      arena_printf(&context->lasting, "%s%s", link_target(context, path), temporary_ending);
  int descriptor = open_named(*temporary);
  if (descriptor >= 0 || errno != EEXIST) return descriptor;
  *temporary = arena_printf(&context->lasting, "%s.XXXXXX", *temporary);
  return open_unique(*temporary);
}

// ---- Sets of files -----------------------------------------------------------------------------

typedef struct OutputFile {
  const char *path;
  char *temporary; // NULL once it is renamed or removed
  int descriptor;
} OutputFile;

struct FileSet {
  Context *context;
  Array(OutputFile) files;
  bool failed;
};

static void remove_temporary(OutputFile *file) {
  if (file->temporary) temporary_remove(file->temporary);
  if (file->temporary) close(file->descriptor);
  file->temporary = NULL;
}

static void remove_temporaries(void *arg) {
  FileSet *set = arg;
  for (int i = 0; i < set->files.count; i++) remove_temporary(&set->files.items[i]);
}

FileSet *file_set_new(Context *context) {
  FileSet *set = arena_new(&context->lasting, FileSet);
  *set = (FileSet){.context = context};
  context_at_free(context, remove_temporaries, set);
  return set;
}

static bool refuse_file(FileSet *set, const char *path, size_t size, int reason) {
  set->failed = true;
  return refuse_output(set->context, path, size, reason);
}

static bool refuse_second(FileSet *set, const char *path) {
  set->failed = true;
  return diag_error_as(set->context, DIAG_FILE, source_file_pos(set->context, path),
                       "is named for two outputs; expected a file for each");
}

static OutputFile *add_file(FileSet *set, const char *path, size_t size) {
  struct stat info;
  OutputFile file = {.path = str_intern(set->context, link_target(set->context, path))};
  for (int i = 0; i < set->files.count; i++)
    if (set->files.items[i].path == file.path) return refuse_second(set, path), NULL;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
    return refuse_file(set, path, 0, EISDIR), NULL;
  file.descriptor = open_temporary(set->context, path, &file.temporary);
  if (file.descriptor < 0) return refuse_file(set, path, size, errno), NULL;
  temporary_note(file.temporary);
  array_push(&set->context->lasting, &set->files, file);
  return &set->files.items[set->files.count - 1];
}

const char *file_set_begin(FileSet *set, const char *path) {
  const OutputFile *file = add_file(set, path, 0);
  return file ? file->temporary : NULL;
}

bool file_set_fail(FileSet *set, const char *path, int reason) {
  return refuse_file(set, path, 0, reason ? reason : EIO);
}

static bool write_all(int descriptor, const void *data, size_t size) {
  const char *at = data;
  while (size) {
    ssize_t n = write(descriptor, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

bool file_set_write(FileSet *set, const char *path, const void *data, size_t size) {
  const OutputFile *file = add_file(set, path, size);
  if (!file) return false;
  if (write_all(file->descriptor, data, size)) return true;
  int reason = errno;
  remove_temporary(&set->files.items[set->files.count - 1]); // so that its bytes are free again
  return refuse_file(set, path, size, reason);
}

// Writes a device, a pipe or standard output, behind what was printed before.
static bool write_stream(Context *context, const char *path, const void *data, size_t size) {
  bool standard = strcmp(path, "-") == 0;
  int descriptor = standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
  bool written =
      descriptor >= 0 && (!standard || fflush(stdout) == 0) && write_all(descriptor, data, size);
  int reason = errno;
  if (!standard && descriptor >= 0 && close(descriptor) != 0 && written)
    written = false, reason = errno;
  return written || refuse_output(context, path, size, reason);
}

static bool copy_to_stream(FileSet *set, OutputFile *file) {
  size_t size;
  ArenaMark mark = arena_mark(&set->context->scratch);
  char *data = file_read(set->context, &set->context->scratch, file->temporary, &size);
  bool written = data && write_stream(set->context, file->path, data, size);
  arena_reset(&set->context->scratch, mark);
  remove_temporary(file);
  return written;
}

static bool rename_file(FileSet *set, OutputFile *file) {
  int failed = rename(file->temporary, file->path) != 0;
  if (failed) return refuse_file(set, file->path, 0, errno);
  temporary_forget(file->temporary);
  close(file->descriptor);
  file->temporary = NULL;
  return true;
}

bool file_set_end(FileSet *set, bool written) {
  bool done = written && !set->failed;
  for (int i = 0; i < set->files.count && done; i++)
    if (is_stream(set->files.items[i].path)) done = copy_to_stream(set, &set->files.items[i]);
  for (int i = 0; i < set->files.count && done; i++)
    if (set->files.items[i].temporary) done = rename_file(set, &set->files.items[i]);
  remove_temporaries(set);
  set->files.count = 0;
  return done;
}

bool file_can_write(Context *context, const char *path) {
  if (is_stream(path)) return true;
  FileSet *set = file_set_new(context);
  bool can = file_set_begin(set, path) != NULL;
  file_set_end(set, false);
  return can;
}

bool file_write(Context *context, const char *path, const void *data, size_t size) {
  if (is_stream(path)) return write_stream(context, path, data, size);
  FileSet *set = file_set_new(context);
  return file_set_end(set, file_set_write(set, path, data, size));
}
