// SPDX-License-Identifier: Apache-2.0
// Keeps results of compiling in a folder of the user, so that a later process does not compute them
// again. An entry is a file whose name is the digest of its key; a key is a text that states
// everything on which the contents depend. Processes share the folder without locks: an entry
// appears complete or not at all, is never changed, and may be removed at any time.
//
// The cache never makes a compilation fail. An entry that is damaged or foreign counts as absent
// and is removed; contents that cannot be written are not kept.
#ifndef PLEAT_CACHE_H
#define PLEAT_CACHE_H

#include "base/base.h"

typedef struct Cache Cache;

#define CACHE_DEFAULT_LIMIT ((int64_t)2 << 30)

// Says what an entry holds. The kind is the ending of the file's name.
typedef enum CacheKind { CACHE_KERNEL, CACHE_MODEL, CACHE_KINDS } CacheKind;
const char *cache_kind_name(CacheKind kind); // "kernel"

// Where the cache is, by the environment: $PLEAT_CACHE, $XDG_CACHE_HOME/pleat or ~/.cache/pleat,
// and at most $PLEAT_CACHE_SIZE bytes, which may end in K, M or G. PLEAT_CACHE=off and a size of 0
// switch it off.
typedef struct CachePlace {
  const char *folder; // NULL: off
  int64_t limit;      // bytes of all entries together
  bool asked;         // the user named the folder
  const char *why;    // why it is off
} CachePlace;
// A size that is no number is reported by a warning, and the default is taken.
CachePlace cache_place(Context *context);

// Opens the cache at cache_place, and makes its folder. NULL when it is off or cannot be used: when
// the folder cannot be made or does not belong to the user alone. That is a warning if the user
// named the folder. The cache is closed with the context.
Cache *cache_open(Context *context);
// Likewise at a given place. *why, if `why` is not NULL, says why the result is NULL.
Cache *cache_open_at(Context *context, const CachePlace *place, const char **why);

// The contents of an entry, aligned to 64 bytes. A file of 1 MiB or more is mapped.
typedef struct CacheEntry {
  const char *data;
  size_t size;
  const char *tail; // aligned to a page if the file is mapped; not checked for damage
  size_t tail_size;
  void *block; // the whole file
  size_t block_size;
  bool mapped;
} CacheEntry;

// Finds the entry of a key, and marks it as used. False when there is none. To be freed with
// cache_entry_free. Several threads may use one cache.
bool cache_get(Cache *cache, CacheKind kind, const char *key, CacheEntry *entry);
void cache_entry_free(CacheEntry *entry);
// Keeps contents. False when they were not kept, because the file cannot be written or they take
// more than half of the limit. `label` is shown in lists.
bool cache_put(Cache *cache, CacheKind kind, const char *key, const char *label, const void *data,
               size_t size);
// Works as cache_put. The entry also has a tail, which `write_tail` writes to the stream; the
// reader checks it for damage itself.
typedef bool (*CacheWriter)(void *env, FILE *stream);
bool cache_put_with_tail(Cache *cache, CacheKind kind, const char *key, const char *label,
                         const void *data, size_t size, CacheWriter write_tail, void *env);
// Removes an entry whose tail is damaged.
void cache_drop(Cache *cache, CacheKind kind, const char *key);
// True when contents of this size are small enough for cache_put.
bool cache_has_room(const Cache *cache, size_t size);
// When entries were written since the last call, removes those that were not used for the longest
// time, until the limit is kept, and temporary files that a process left behind.
void cache_trim(Cache *cache);

// The counts of this process.
typedef struct CacheCounts {
  int found, absent, kept;
  int damaged; // entries that were removed
} CacheCounts;
CacheCounts cache_counts(const Cache *cache);

// An entry as a list shows it.
typedef struct CacheItem {
  CacheKind kind;
  char name[48]; // of the file
  const char *label;
  int64_t bytes;   // on the disk
  int64_t used_ns; // when it was last used, in nanoseconds since 1970
} CacheItem;
typedef Array(CacheItem) CacheItems;
// All entries, the latest used first, in context->arena. `labels`: read them from the files.
CacheItems cache_items(Context *context, Cache *cache, bool labels);
const char *cache_folder(const Cache *cache);
int64_t cache_limit(const Cache *cache);
// Removes all entries and temporary files. Returns the number of entries that were removed.
int cache_clear(Cache *cache);

// A text that differs between two builds of the program or library that holds `address`: its GNU
// build id. False when it has none.
enum { CACHE_IDENTITY_SIZE = 65 };
bool cache_identity(const void *address, char text[CACHE_IDENTITY_SIZE]);
// The same of the program or library in which this file is: the version of all of Pleat. "" when it
// has none; nothing may be kept then.
const char *cache_own_identity(void);

#endif
