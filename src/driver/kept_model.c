// SPDX-License-Identifier: Apache-2.0
// Finds and keeps compiled models in the cache. The data of an entry are the things on which it
// depends beside its key, one after the other, each a text:
//   "file DIGEST NAME"          a file with external data, in the model's folder
//   "library SIZE TIME PATH"    the library that made the code
//   "value DIGEST NAME"         the contents of an input that the import used
// then an empty text, then the caller's bytes. The tail is the saved program.
#include "driver/kept_model.h"

#include "base/digest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- Keys

void kept_option(Text *options, const char *name, const char *text) {
  text_printf(options, "%s %zu: %s\n", name, strlen(text), text);
}

void kept_options(Text *options, const char *name, const char *const *texts, int count) {
  for (int i = 0; i < count; i++) kept_option(options, name, texts[i]);
}

void kept_array(Text *options, const OnnxArray *array) {
  kept_option(options, "array", array->name);
  for (int i = 0; i < array->rank; i++) text_printf(options, "%lld ", (long long)array->shape[i]);
  int64_t count = !array->contents ? 0 : array->rank ? array->shape[0] : 1;
  if (count) text_puts(options, "holds ");
  for (int i = 0; i < count; i++) text_printf(options, "%lld ", (long long)array->contents[i]);
}

static const char *digest_text(Context *context, const void *data, size_t size) {
  char *text = arena_alloc(&context->arena, DIGEST_TEXT_SIZE);
  digest_print(digest_of(data, size), text);
  return text;
}

static Str key_of(const KeptModel *kept, const HostMachine *m, const char *options) {
  Text key = text_new(&kept->context->scratch);
  text_printf(&key, "compiled model\npleat %s\n", cache_own_identity());
  text_printf(&key, "processor %s %s %d %d %d %d %d %d\n", m->level_name, m->processor,
              m->vector_bytes, m->vector_registers, m->fma_units, m->fma, m->cores, m->threads);
  text_printf(&key, "caches %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d %d\n",
              m->line_bytes, m->l1_bytes, m->l1_ways, m->l2_bytes, m->l3_bytes, m->mesh, m->halves);
  text_printf(&key, "regions %" PRId64 "\n", m->region_cycles);
  text_printf(&key, "file %s %zu\n%s", digest_text(kept->context, kept->bytes, kept->byte_count),
              kept->byte_count, options);
  return str_intern(kept->context, text_string(&key));
}

static bool is_regular(const char *path, struct stat *info) {
  return stat(path, info) == 0 && S_ISREG(info->st_mode);
}

// A file that cannot be read is reported by the import.
static bool map_model(KeptModel *kept) {
  struct stat info;
  if (!is_regular(kept->path, &info) || access(kept->path, R_OK) != 0) return false;
  kept->bytes = file_map(kept->context, kept->path, (SourcePos){0}, &kept->byte_count);
  return kept->bytes != NULL;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

KeptModel kept_model_begin(Context *context, Cache *cache, const char *path, const void *bytes,
                           size_t byte_count, const HostMachine *machine, const char *options) {
  KeptModel kept = {.context = context,
                    .cache = cache,
                    .path = path,
                    .bytes = bytes,
                    .byte_count = byte_count,
                    .begin_ns = now_ns()};
  if (cache && (bytes || map_model(&kept))) kept.key = key_of(&kept, machine, options);
  if (!kept.key) kept.cache = NULL;
  return kept;
}

// ---- Dependencies

static const char *folder_of(Context *context, const char *path) {
  const char *slash = strrchr(path, '/');
  char *name = slash ? arena_printf(&context->arena, "%.*s", (int)(slash - path + 1), path) : ".";
  char *found = realpath(name, NULL);
  const char *folder = found ? arena_printf(&context->arena, "%s/", found) : NULL;
  free(found);
  return folder;
}

static bool same_file(const KeptModel *kept, const char *digest, const char *name) {
  Context *context = kept->context;
  const char *folder = folder_of(context, kept->path);
  const char *path = folder ? arena_printf(&context->arena, "%s%s", folder, name) : name;
  struct stat info;
  size_t size;
  if (!folder || !is_regular(path, &info)) return false;
  const char *data = file_map(context, path, (SourcePos){0}, &size);
  return data && strcmp(digest, digest_text(context, data, size)) == 0;
}

static const char *library_text(Context *context, const char *path) {
  struct stat info;
  if (!path || stat(path, &info) != 0) return NULL;
  return arena_printf(&context->arena, "library %lld %lld.%09ld %s", (long long)info.st_size,
                      (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, path);
}

static const char *value_text(Context *context, const OnnxBinding *value) {
  const ConstData *data = value->data;
  return arena_printf(&context->arena, "value %s %s", digest_text(context, data->data, data->bytes),
                      value->name);
}

static bool same_value(Context *context, const char *text, const OnnxBinding *values, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(value_text(context, &values[i]), text) == 0) return true;
  return false;
}

enum { DIGITS = DIGEST_TEXT_SIZE - 1 };

static bool is_remark(const char *text) {
  return strncmp(text, "remark ", 7) == 0;
}

static bool holds(const KeptModel *kept, const char *text, const OnnxBinding *values, int count) {
  Context *context = kept->context;
  if (is_remark(text)) return true;
  if (strncmp(text, "value ", 6) == 0) return same_value(context, text, values, count);
  if (strncmp(text, "file ", 5) == 0 && strlen(text) > 5 + DIGITS)
    return same_file(kept, arena_printf(&context->arena, "%.*s", DIGITS, text + 5),
                     text + 5 + DIGITS + 1);
  const char *path = strchr(text, '/'), *now = path ? library_text(context, path) : NULL;
  return now && strcmp(now, text) == 0;
}

// Whether everything on which the entry depends is as it was. Sets *more to the rest of the data.
static bool all_hold(const KeptModel *kept, const CacheEntry *entry, const OnnxBinding *values,
                     int count, Text *more) {
  const char *at = entry->data, *end = at + entry->size;
  for (size_t length; at < end && (length = strnlen(at, (size_t)(end - at))); at += length + 1)
    if (at + length == end || !holds(kept, at, values, count)) return false;
  if (at >= end) return false;
  *more = text_new(&kept->context->arena);
  text_append(more, at + 1, (size_t)(end - at - 1));
  return true;
}

// ---- Finding

// Reports the remarks again that were reported when the model was compiled.
static void repeat_remarks(const KeptModel *kept, const CacheEntry *entry) {
  DiagCode code = diag_code_set(kept->context, DIAG_OPTION);
  for (const char *at = entry->data; *at; at += strlen(at) + 1)
    if (is_remark(at)) diag_remark(kept->context, (SourcePos){0}, "%s", at + 7);
  diag_code_set(kept->context, code);
}

static void release_entry(void *owner) {
  CacheEntry *entry = owner;
  cache_entry_free(entry);
  free(entry);
}

// Reads the saved program, with a context of its own for diagnostics that the user need not see.
static CompiledProgram *adopt(const char *path, CacheEntry *entry) {
  Context *context = context_new();
  CompiledProgram *program =
      context ? saved_adopt(context, path, entry->tail, entry->tail_size, release_entry, entry)
              : NULL;
  context_free(context);
  if (program && entry->mapped) compiled_program_set_mapped(program);
  return program;
}

CompiledProgram *kept_model_find(const KeptModel *kept, const OnnxBinding *values, int value_count,
                                 Text *more) {
  CacheEntry *entry = kept->cache ? calloc(1, sizeof *entry) : NULL;
  CompiledProgram *program = NULL;
  if (!entry || !cache_get(kept->cache, CACHE_MODEL, kept->key, entry)) {
    free(entry);
    return NULL;
  }
  if (all_hold(kept, entry, values, value_count, more)) {
    program = adopt(kept->path, entry);
    if (program)
      repeat_remarks(kept, entry);
    else
      cache_drop(kept->cache, CACHE_MODEL, kept->key);
  }
  if (!program) release_entry(entry);
  return program;
}

// ---- Keeping

// A file that was written in place since the beginning may have been read in two states. The time
// of a file may be some milliseconds behind the clock.
static bool is_unchanged(const KeptModel *kept, const char *path) {
  enum { TICK_NS = 10000000 };
  struct stat info;
  return is_regular(path, &info) &&
         info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec < kept->begin_ns - TICK_NS;
}

static void put(Text *data, const char *text) {
  text_append(data, text, strlen(text) + 1);
}

// Adds the files that the import mapped; false when one is not in the model's folder, or changed.
static bool put_files(const KeptModel *kept, Text *data) {
  Context *context = kept->context;
  const char *folder = folder_of(context, kept->path);
  MappedFiles files = file_mapped(context);
  for (int i = 0; i < files.count; i++) {
    const MappedFile *file = &files.items[i];
    if (!is_unchanged(kept, file->path)) return false;
    if (file->data == kept->bytes) continue;
    if (!folder || strncmp(file->path, folder, strlen(folder)) != 0) return false;
    put(data,
        arena_printf(&context->arena, "file %s %s", digest_text(context, file->data, file->size),
                     file->path + strlen(folder)));
  }
  return true;
}

static bool put_dependencies(const KeptModel *kept, const OnnxBinding *values, const bool *used,
                             int value_count, Text *data) {
  Context *context = kept->context;
  const TargetRow *target = target_for_running();
  const char *library = target && target->library ? target->library() : NULL;
  const char *text = library_text(context, library);
  if (!text || library[0] != '/' || !put_files(kept, data)) return false;
  put(data, text);
  for (int i = 0; i < value_count; i++)
    if (used[i]) put(data, value_text(context, &values[i]));
  for (int i = 0; i < context->diags.count; i++)
    put(data, arena_printf(&context->arena, "remark %s", context->diags.items[i].message));
  put(data, "");
  return true;
}

typedef struct ProgramTail {
  Context *context;
  const CompiledProgram *program;
} ProgramTail;

static bool write_program(void *env, FILE *stream) {
  ProgramTail *w = env;
  return saved_stream(w->context, w->program, stream);
}

static void keep(const KeptModel *kept, const CompiledProgram *program, const Text *data) {
  ProgramTail w = {context_new(), program};
  if (!w.context) return;
  if (cache_put_with_tail(kept->cache, CACHE_MODEL, kept->key, path_file_name(kept->path),
                          data->data, data->size, write_program, &w))
    cache_trim(kept->cache);
  context_free(w.context);
}

// A remark is kept with the model. Any other message is reported by compiling alone.
static bool only_remarks(const Context *context) {
  for (int i = 0; i < context->diags.count; i++)
    if (!context->diags.items[i].alone || context->diags.items[i].pos.file) return false;
  return true;
}

void kept_model_keep(const KeptModel *kept, const OnnxBinding *values, const bool *used,
                     int value_count, const CompiledProgram *program, const char *more,
                     size_t more_size) {
  if (!kept->cache || !only_remarks(kept->context)) return;
  if (!cache_has_room(kept->cache, (size_t)program->weight_bytes)) return;
  Text data = text_new(&kept->context->arena);
  if (!put_dependencies(kept, values, used, value_count, &data)) return;
  text_append(&data, more, more_size);
  keep(kept, program, &data);
}
