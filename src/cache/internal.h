// SPDX-License-Identifier: Apache-2.0
// Declares what the files of the cache share.
#ifndef PLEAT_CACHE_INTERNAL_H
#define PLEAT_CACHE_INTERNAL_H

#include "base/digest.h"
#include "cache/cache.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

struct Cache {
  int folder; // the descriptor
  const char *path;
  int64_t limit;
  atomic_int found, absent, kept, damaged;
  atomic_int written; // entries since the last trim
};

enum { CACHE_FORMAT = 1, CACHE_NAME_SIZE = 48, CACHE_PAGE = 4096 };

// The beginning of a file. The key, the label and zeros follow, then the contents at `offset`, then
// zeros up to a page and the tail if there is one.
typedef struct CacheHeader {
  Digest check; // of the bytes from `magic` to `offset`
  char magic[8];
  uint32_t format;
  uint32_t key_size, label_size;
  uint32_t offset;
  uint64_t size, tail_size;
  uint32_t kind, reserved;
  Digest contents;
} CacheHeader;
_Static_assert(sizeof(CacheHeader) == 80, "the header has no gaps");

// The offset of the tail, or of the end of a file without a tail.
static inline uint64_t cache_tail_offset(const CacheHeader *header) {
  uint64_t end = header->offset + header->size;
  return header->tail_size ? (end + CACHE_PAGE - 1) / CACHE_PAGE * CACHE_PAGE : end;
}

#define CACHE_TEMPORARY "writing-" // the beginning of the name of a file that is being written

// Whether the folder or file belongs to the user, and nobody else may write it.
bool cache_is_own(const struct stat *info);
// The kind of a file by its name, CACHE_KINDS when it is none of the cache.
CacheKind cache_kind_of(const char *name);

#endif
