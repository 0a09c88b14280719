// SPDX-License-Identifier: Apache-2.0
// Reads and writes one entry: a header with the digests of everything in the file, the key, the
// label, and the contents. No function here uses a context, so that threads may call them.
#include "cache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 1 << 20, LINE = 64, HEAD_LIMIT = 1 << 20 };
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
  if (header.offset > entry->block_size || header.size > entry->block_size ||
      header.tail_size > entry->block_size ||
      cache_tail_offset(&header) + header.tail_size != entry->block_size ||
      sizeof header + header.key_size + header.label_size > header.offset)
    return false;
  if (!digest_equal(header.check, check_of(file, header.offset))) return false;
  if (header.key_size != strlen(key) || memcmp(file + sizeof header, key, header.key_size) != 0)
    return false;
  entry->data = file + header.offset;
  entry->size = header.size;
  entry->tail = file + cache_tail_offset(&header);
  entry->tail_size = header.tail_size;
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

void cache_drop(Cache *cache, CacheKind kind, const char *key) {
  char name[CACHE_NAME_SIZE];
  name_of(kind, key, name);
  atomic_fetch_add(&cache->damaged, 1);
  unlinkat(cache->folder, name, 0);
}

// ---- EntryWriting

typedef struct EntryWriting {
  CacheHeader header;
  const char *key, *label;
  const void *data;
  CacheWriter write_tail; // NULL: there is no tail
  void *env;
} EntryWriting;

static bool put_zeros(FILE *stream, uint64_t count) {
  static const char zeros[CACHE_PAGE];
  return fwrite(zeros, 1, count, stream) == count;
}

// Writes the tail, and then knows its size.
static bool put_tail(EntryWriting *w, FILE *stream) {
  w->header.tail_size = 1;
  uint64_t begin = cache_tail_offset(&w->header);
  if (!put_zeros(stream, begin - w->header.offset - w->header.size)) return false;
  if (!w->write_tail(w->env, stream)) return false;
  off_t end = ftello(stream);
  w->header.tail_size = (uint64_t)end - begin;
  return end > (off_t)begin;
}

// Writes the header, the key, the label and the zeros before the contents.
static bool put_head(EntryWriting *w, FILE *stream) {
  CacheHeader *header = &w->header;
  char *head = calloc(1, header->offset);
  if (!head) return false;
  memcpy(head, header, sizeof *header);
  memcpy(head + sizeof *header, w->key, header->key_size);
  memcpy(head + sizeof *header + header->key_size, w->label, header->label_size);
  header->check = check_of(head, header->offset);
  memcpy(head, header, sizeof *header);
  bool written = fwrite(head, 1, header->offset, stream) == header->offset;
  free(head);
  return written;
}

static bool put_all(EntryWriting *w, FILE *stream) {
  uint64_t size = w->header.size;
  if (!put_head(w, stream) || fwrite(w->data, 1, size, stream) != size) return false;
  if (!w->write_tail) return true;
  return put_tail(w, stream) && fseeko(stream, 0, SEEK_SET) == 0 && put_head(w, stream);
}

static FILE *begin_file(const Cache *cache, char name[CACHE_NAME_SIZE]) {
  static atomic_uint count;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(name, CACHE_NAME_SIZE, CACHE_TEMPORARY "%x-%x-%x", (unsigned)getpid(),
           (unsigned)now.tv_nsec, atomic_fetch_add(&count, 1));
  int file =
      openat(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *stream = file < 0 ? NULL : fdopen(file, "wb");
  if (!stream && file >= 0) {
    close(file);
    unlinkat(cache->folder, name, 0);
  }
  return stream;
}

static bool write_file(Cache *cache, EntryWriting *w) {
  char temporary[CACHE_NAME_SIZE], name[CACHE_NAME_SIZE];
  FILE *stream = begin_file(cache, temporary);
  if (!stream) return false;
  name_of((CacheKind)w->header.kind, w->key, name);
  bool written = put_all(w, stream);
  written &= fclose(stream) == 0;
  written = written && renameat(cache->folder, temporary, cache->folder, name) == 0;
  if (!written) unlinkat(cache->folder, temporary, 0);
  return written;
}

// Where files are limited in size, a longer one is an error like a full disk, and the signal that
// would end the process is taken away.
static bool write_without_signal(Cache *cache, EntryWriting *w) {
  sigset_t limit, before, pending;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  sigemptyset(&pending);
  sigpending(&pending);
  if (pthread_sigmask(SIG_BLOCK, &limit, &before) != 0) return false;
  bool written = write_file(cache, w);
  if (!sigismember(&pending, SIGXFSZ)) sigtimedwait(&limit, NULL, &(struct timespec){0});
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return written;
}

bool cache_has_room(const Cache *cache, size_t size) {
  return size <= (uint64_t)cache->limit / 2;
}

bool cache_put_with_tail(Cache *cache, CacheKind kind, const char *key, const char *label,
                         const void *data, size_t size, CacheWriter write_tail, void *env) {
  size_t key_size = strlen(key), label_size = strlen(label);
  size_t head = sizeof(CacheHeader) + key_size + label_size;
  if (!cache_has_room(cache, size) || head > HEAD_LIMIT) return false;
  EntryWriting w = {.key = key, .label = label, .data = data, .write_tail = write_tail, .env = env};
  w.header = (CacheHeader){.format = CACHE_FORMAT,
                           .kind = kind,
                           .key_size = (uint32_t)key_size,
                           .label_size = (uint32_t)label_size,
                           .offset = (uint32_t)((head + LINE - 1) / LINE * LINE),
                           .size = size,
                           .contents = digest_of(data, size)};
  memcpy(w.header.magic, magic, sizeof magic);
  bool kept = write_without_signal(cache, &w);
  if (kept) atomic_fetch_add(&cache->kept, 1), atomic_fetch_add(&cache->written, 1);
  return kept;
}

bool cache_put(Cache *cache, CacheKind kind, const char *key, const char *label, const void *data,
               size_t size) {
  return cache_put_with_tail(cache, kind, key, label, data, size, NULL, NULL);
}

CacheCounts cache_counts(const Cache *cache) {
  return (CacheCounts){cache->found, cache->absent, cache->kept, cache->damaged};
}
