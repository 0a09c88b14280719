// SPDX-License-Identifier: Apache-2.0
// Lists the entries of a cache and removes those that exceed its limit. Other processes may add and
// remove entries meanwhile; an entry that is gone already is skipped.
#include "cache/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// A second descriptor of the folder, which has a position of its own, as a stream.
static DIR *read_folder(const Cache *cache) {
  int again = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = again < 0 ? NULL : fdopendir(again);
  if (!folder && again >= 0) close(again);
  return folder;
}

static int64_t disk_bytes(const struct stat *info) {
  return ceil_div(info->st_size, 4096) * 4096;
}

// ---- Trimming

typedef struct Trimmed {
  char name[CACHE_NAME_SIZE];
  int64_t bytes, used_ns;
} Trimmed;

typedef struct TrimList {
  Trimmed *items;
  int count, capacity;
  int64_t bytes;
} TrimList;

static int64_t used_ns(const struct stat *info) {
  return info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static bool add(TrimList *list, const char *name, const struct stat *info) {
  if (list->count == list->capacity) {
    int capacity = MAX_OF(256, list->capacity * 2);
    Trimmed *items = realloc(list->items, (size_t)capacity * sizeof *items);
    if (!items) return false;
    list->items = items;
    list->capacity = capacity;
  }
  Trimmed *item = &list->items[list->count++];
  *item = (Trimmed){.bytes = disk_bytes(info), .used_ns = used_ns(info)};
  memcpy(item->name, name, MIN_OF(strlen(name), sizeof item->name - 1));
  list->bytes += item->bytes;
  return true;
}

// Removes a temporary file that is older than any writing takes.
static void drop_abandoned(const Cache *cache, const char *name, const struct stat *info) {
  enum { SECONDS = 3600 };
  if (time(NULL) - info->st_mtime > SECONDS) unlinkat(cache->folder, name, 0);
}

static bool is_temporary(const char *name) {
  return strncmp(name, CACHE_TEMPORARY, strlen(CACHE_TEMPORARY)) == 0;
}

static bool collect(const Cache *cache, TrimList *list) {
  DIR *folder = read_folder(cache);
  bool complete = folder != NULL;
  for (struct dirent *found; complete && (found = readdir(folder));) {
    const char *name = found->d_name;
    bool entry = cache_kind_of(name) != CACHE_KINDS;
    struct stat info;
    if ((!entry && !is_temporary(name)) ||
        fstatat(cache->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (entry)
      complete = add(list, name, &info);
    else
      drop_abandoned(cache, name, &info);
  }
  if (folder) closedir(folder);
  return complete;
}

static int by_use(const void *a, const void *b) {
  int64_t x = ((const Trimmed *)a)->used_ns, y = ((const Trimmed *)b)->used_ns;
  return x < y ? -1 : x > y;
}

// The number of entries is limited too, so that a trim takes some 20 ms at most.
enum { MOST_ENTRIES = 16384 };

// Leaves an eighth of the limit free, so that not every compilation has to remove something.
static void drop_oldest(const Cache *cache, TrimList *list) {
  if (list->bytes <= cache->limit && list->count <= MOST_ENTRIES) return;
  qsort(list->items, (size_t)list->count, sizeof *list->items, by_use);
  int64_t goal = cache->limit - cache->limit / 8;
  int count = list->count, left = MOST_ENTRIES - MOST_ENTRIES / 8;
  for (int i = 0; i < list->count && (list->bytes > goal || count > left); i++, count--) {
    unlinkat(cache->folder, list->items[i].name, 0);
    list->bytes -= list->items[i].bytes;
  }
}

void cache_trim(Cache *cache) {
  if (!atomic_exchange(&cache->written, 0)) return;
  TrimList list = {0};
  if (collect(cache, &list)) drop_oldest(cache, &list);
  free(list.items);
}

int cache_clear(Cache *cache) {
  DIR *folder = read_folder(cache);
  int removed = 0;
  for (struct dirent *found; folder && (found = readdir(folder));) {
    bool entry = cache_kind_of(found->d_name) != CACHE_KINDS;
    if ((entry || is_temporary(found->d_name)) && unlinkat(cache->folder, found->d_name, 0) == 0)
      removed += entry;
  }
  if (folder) closedir(folder);
  return removed;
}

// ---- Listing

static const char *read_label(Context *context, const Cache *cache, const char *name) {
  enum { MOST = 4096 };
  CacheHeader header;
  const char *label = "";
  int file = openat(cache->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file >= 0 && pread(file, &header, sizeof header, 0) == sizeof header &&
      header.label_size < MOST) {
    char *text = arena_alloc(&context->arena, header.label_size + 1);
    off_t at = (off_t)(sizeof header + header.key_size);
    if (pread(file, text, header.label_size, at) == (ssize_t)header.label_size) label = text;
  }
  if (file >= 0) close(file);
  return label;
}

static int latest_first(const void *a, const void *b) {
  int64_t x = ((const CacheItem *)a)->used_ns, y = ((const CacheItem *)b)->used_ns;
  return x > y ? -1 : x < y;
}

CacheItems cache_items(Context *context, Cache *cache, bool labels) {
  CacheItems items = {0};
  TrimList list = {0};
  collect(cache, &list);
  for (int i = 0; i < list.count; i++) {
    const Trimmed *from = &list.items[i];
    CacheItem item = {.kind = cache_kind_of(from->name),
                      .label = labels ? read_label(context, cache, from->name) : "",
                      .bytes = from->bytes,
                      .used_ns = from->used_ns};
    memcpy(item.name, from->name, sizeof item.name);
    array_push(&context->arena, &items, item);
  }
  free(list.items);
  if (items.count) qsort(items.items, (size_t)items.count, sizeof *items.items, latest_first);
  return items;
}
