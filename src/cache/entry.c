// SPDX-License-Identifier: Apache-2.0
// Reads and writes one entry: a header with the digests of everything in the file, the key, the
// label, and the contents. No function here uses a context, so that threads may call them.
#include "cache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 1 << 20, PAGE = 4096, LINE = 64, HEAD_LIMIT = 1 << 20 };
static const char magic[8] = "PLEATCCH";

static const char *const kind_names[CACHE_KINDS] = {
    [CACHE_KERNEL] = "kernel",
    [CACHE_MODEL] = "model",
};

const char *cache_kind_name(CacheKind kind) {
  return kind_names[kind];
}

CacheKind cache_kind_of(const char *name) {
  enum { DIGITS = DIGEST_TEXT_SIZE - 1 };
  if (strspn(name, "0123456789abcdef") != DIGITS || name[DIGITS] != '.') return CACHE_KINDS;
  int kind = 0;
  while (kind < CACHE_KINDS && strcmp(name + DIGITS + 1, kind_names[kind]) != 0) kind++;
  return (CacheKind)kind;
}

static void name_of(CacheKind kind, const char *key, char name[CACHE_NAME_SIZE]) {
  char digits[DIGEST_TEXT_SIZE];
  digest_print(digest_of(key, strlen(key)), digits);
  snprintf(name, CACHE_NAME_SIZE, "%s.%s", digits, kind_names[kind]);
}

static Digest check_of(const char *file, size_t offset) {
  size_t begin = offsetof(CacheHeader, magic);
  return digest_of(file + begin, offset - begin);
}

// ---- Reading

static bool read_all(int file, char *data, size_t size) {
  while (size) {
    ssize_t n = read(file, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}

// Small files are read, which takes less time than to map them.
static bool load(int file, size_t size, CacheEntry *entry) {
  *entry = (CacheEntry){.block_size = size, .mapped = size >= LARGE};
  if (entry->mapped) {
    entry->block = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (entry->block == MAP_FAILED) entry->block = NULL;
  } else {
    entry->block = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);
    if (entry->block && !read_all(file, entry->block, size)) cache_entry_free(entry);
  }
  return entry->block != NULL;
}

void cache_entry_free(CacheEntry *entry) {
  if (entry->mapped && entry->block)
    munmap(entry->block, entry->block_size);
  else
    free(entry->block);
  *entry = (CacheEntry){0};
}

// Whether the file is complete, unchanged, and the one of this key.
static bool is_sound(CacheEntry *entry, const char *key) {
  const char *file = entry->block;
  CacheHeader header;
  memcpy(&header, file, sizeof header);
  if (memcmp(header.magic, magic, sizeof magic) != 0 || header.format != CACHE_FORMAT) return false;
  if (header.offset > entry->block_size || header.size != entry->block_size - header.offset ||
      sizeof header + header.key_size + header.label_size > header.offset)
    return false;
  if (!digest_equal(header.check, check_of(file, header.offset))) return false;
  if (header.key_size != strlen(key) || memcmp(file + sizeof header, key, header.key_size) != 0)
    return false;
  entry->data = file + header.offset;
  entry->size = header.size;
  return digest_equal(header.contents, digest_of(entry->data, entry->size));
}

static bool read_entry(int file, const char *key, const struct stat *info, CacheEntry *entry) {
  if (!S_ISREG(info->st_mode) || !cache_is_own(info)) return false;
  if (info->st_size < (off_t)sizeof(CacheHeader)) return false;
  if (!load(file, (size_t)info->st_size, entry)) return false;
  if (is_sound(entry, key)) return true;
  cache_entry_free(entry);
  return false;
}

// The time of modification is the time of the last use. It is written once a minute at most.
static void mark_used(int file, const struct stat *info) {
  enum { SECONDS = 60 };
  if (time(NULL) - info->st_mtime >= SECONDS || info->st_mtime > time(NULL)) futimens(file, NULL);
}

static bool get(Cache *cache, const char *name, const char *key, CacheEntry *entry) {
  struct stat info;
  int file = openat(cache->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return false;
  bool ok = file >= 0 && fstat(file, &info) == 0 && read_entry(file, key, &info, entry);
  if (ok) {
    mark_used(file, &info);
  } else {
    atomic_fetch_add(&cache->damaged, 1);
    unlinkat(cache->folder, name, 0);
  }
  if (file >= 0) close(file);
  return ok;
}

bool cache_get(Cache *cache, CacheKind kind, const char *key, CacheEntry *entry) {
  char name[CACHE_NAME_SIZE];
  name_of(kind, key, name);
  *entry = (CacheEntry){0};
  bool found = get(cache, name, key, entry);
  atomic_fetch_add(found ? &cache->found : &cache->absent, 1);
  return found;
}

// ---- Writing

static bool write_all(int file, const char *data, size_t size) {
  while (size) {
    ssize_t n = write(file, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}

// The header, the key, the label and the zeros before the contents, or NULL. To be freed.
static char *make_head(const char *key, const char *label, const void *data, size_t size,
                       size_t *head_size) {
  size_t key_size = strlen(key), label_size = strlen(label);
  size_t unit = size >= LARGE ? PAGE : LINE;
  size_t offset = (sizeof(CacheHeader) + key_size + label_size + unit - 1) / unit * unit;
  char *head = offset <= HEAD_LIMIT ? calloc(1, offset) : NULL;
  if (!head) return NULL;
  CacheHeader header = {.format = CACHE_FORMAT,
                        .key_size = (uint32_t)key_size,
                        .label_size = (uint32_t)label_size,
                        .offset = (uint32_t)offset,
                        .size = size,
                        .contents = digest_of(data, size)};
  memcpy(header.magic, magic, sizeof magic);
  memcpy(head, &header, sizeof header);
  memcpy(head + sizeof header, key, key_size);
  memcpy(head + sizeof header + key_size, label, label_size);
  header.check = check_of(head, offset);
  memcpy(head, &header, sizeof header);
  *head_size = offset;
  return head;
}

// A process whose files are limited in size would be ended by a signal for writing more.
static bool may_write(size_t size) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

static int begin_file(const Cache *cache, char name[CACHE_NAME_SIZE]) {
  static atomic_uint count;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(name, CACHE_NAME_SIZE, CACHE_TEMPORARY "%x-%x-%x", (unsigned)getpid(),
           (unsigned)now.tv_nsec, atomic_fetch_add(&count, 1));
  return openat(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static bool write_entry(Cache *cache, const char *name, const char *head, size_t head_size,
                        const void *data, size_t size) {
  char temporary[CACHE_NAME_SIZE];
  int file = may_write(head_size + size) ? begin_file(cache, temporary) : -1;
  if (file < 0) return false;
  bool written = write_all(file, head, head_size) && write_all(file, data, size);
  written &= close(file) == 0;
  written = written && renameat(cache->folder, temporary, cache->folder, name) == 0;
  if (!written) unlinkat(cache->folder, temporary, 0);
  return written;
}

bool cache_has_room(const Cache *cache, size_t size) {
  return size <= (uint64_t)cache->limit / 2;
}

bool cache_put(Cache *cache, CacheKind kind, const char *key, const char *label, const void *data,
               size_t size) {
  char name[CACHE_NAME_SIZE];
  size_t head_size;
  char *head = cache_has_room(cache, size) ? make_head(key, label, data, size, &head_size) : NULL;
  if (!head) return false;
  name_of(kind, key, name);
  bool kept = write_entry(cache, name, head, head_size, data, size);
  free(head);
  if (kept) atomic_fetch_add(&cache->kept, 1), atomic_fetch_add(&cache->written, 1);
  return kept;
}

CacheCounts cache_counts(const Cache *cache) {
  return (CacheCounts){cache->found, cache->absent, cache->kept, cache->damaged};
}
