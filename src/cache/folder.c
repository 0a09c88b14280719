// SPDX-License-Identifier: Apache-2.0
// Finds the folder of the cache, makes it where it is missing, and decides whether it can be
// trusted: entries are run as code, so nobody but the user may write them.
#include "cache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

// ---- The place

static int64_t limit_of(Context *context) {
  const char *text = getenv("PLEAT_CACHE_SIZE");
  int64_t limit = CACHE_DEFAULT_LIMIT;
  if (text && *text && !bytes_parse(text, &limit))
    diag_warning(
        context, (SourcePos){0},
        "PLEAT_CACHE_SIZE is '%s', which is no size such as 500M or 2G\nthe cache keeps at "
        "most 2 GiB",
        text);
  return limit;
}

// The value of a variable that names a folder, which must be absolute, or NULL.
static const char *absolute(const char *variable) {
  const char *value = getenv(variable);
  return value && value[0] == '/' ? value : NULL;
}

static const char *default_folder(Context *context) {
  const char *caches = absolute("XDG_CACHE_HOME"), *home = absolute("HOME");
  if (caches) return str_format(context, "%s/pleat", caches);
  return home ? str_format(context, "%s/.cache/pleat", home) : NULL;
}

CachePlace cache_place(Context *context) {
  CachePlace place = {.limit = limit_of(context)};
  const char *given = getenv("PLEAT_CACHE");
  if (given && strcmp(given, "off") == 0) {
    place.why = "PLEAT_CACHE is 'off'";
  } else if (place.limit == 0) {
    place.why = "PLEAT_CACHE_SIZE is 0";
  } else {
    place.asked = given && *given;
    place.folder = place.asked ? str_intern(context, given) : default_folder(context);
    if (!place.folder) place.why = "none of PLEAT_CACHE, XDG_CACHE_HOME and HOME names a folder";
  }
  return place;
}

// ---- Opening

bool cache_is_own(const struct stat *info) {
  return info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

// Makes a folder and those above it that are missing. Only the user can read them.
static void make_folders(Context *context, const char *path) {
  char *parent = arena_copy(&context->scratch, path, strlen(path) + 1);
  for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(parent, 0700);
    *slash = '/';
  }
  mkdir(path, 0700);
}

// A link of another user could be pointed to another of the user's folders at any time.
static bool is_foreign_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid != geteuid() &&
         info.st_uid != 0;
}

static const char *distrust(int folder, const char *path) {
  struct stat info;
  if (fstat(folder, &info) != 0) return strerror(errno);
  if (info.st_uid != geteuid() || is_foreign_link(path)) return "it belongs to another user";
  if (!cache_is_own(&info)) return "other users may write to it";
  return NULL;
}

// The descriptor of the folder, or -1 with a reason.
static int open_folder(Context *context, const char *path, const char **why) {
  enum { FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
  int folder = open(path, FLAGS);
  if (folder < 0 && errno == ENOENT) {
    ArenaMark mark = arena_mark(&context->scratch);
    make_folders(context, path);
    arena_reset(&context->scratch, mark);
    folder = open(path, FLAGS);
  }
  *why = folder < 0 ? strerror(errno) : distrust(folder, path);
  if (folder >= 0 && *why) close(folder);
  return *why ? -1 : folder;
}

static void close_cache(void *arg) {
  Cache *cache = arg;
  close(cache->folder);
}

Cache *cache_open_at(Context *context, const CachePlace *place, const char **why) {
  const char *reason = place->why;
  if (!reason && !*cache_own_identity()) reason = "this build has no build id";
  int folder = reason ? -1 : open_folder(context, place->folder, &reason);
  if (why) *why = reason ? str_intern(context, reason) : NULL;
  if (reason) return NULL;
  Cache *cache = arena_new(&context->lasting, Cache);
  cache->folder = folder;
  cache->path = str_intern(context, place->folder);
  cache->limit = place->limit;
  context_at_free(context, close_cache, cache);
  return cache;
}

Cache *cache_open(Context *context) {
  CachePlace place = cache_place(context);
  const char *why;
  Cache *cache = cache_open_at(context, &place, &why);
  if (!cache && place.asked)
    diag_warning(context, (SourcePos){0},
                 "the cache cannot use the folder '%s' of PLEAT_CACHE: %s\nname another folder, or "
                 "switch the cache off with PLEAT_CACHE=off",
                 place.folder, why);
  return cache;
}

const char *cache_folder(const Cache *cache) {
  return cache->path;
}

int64_t cache_limit(const Cache *cache) {
  return cache->limit;
}
