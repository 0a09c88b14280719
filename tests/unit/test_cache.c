// SPDX-License-Identifier: Apache-2.0
// Tests the store of the cache: damage of every kind, folders that cannot be used or trusted, full
// disks, the limit, and processes that write and remove the same entries at once.
#include "cache/cache.h"
#include "cache/internal.h"
#include "context_support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char home[64];  // a folder for the whole test program
static char place[96]; // the folder of the cache in the current test

static int make_home(void **state) {
  (void)state;
  snprintf(home, sizeof home, "/tmp/test_cache.XXXXXX");
  return mkdtemp(home) ? 0 : -1;
}

static void remove_tree(const char *path) {
  char command[160];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  assert_int_equal(system(command), 0);
}

static int remove_home(void **state) {
  (void)state;
  remove_tree(home);
  return 0;
}

static int begin(void **state) {
  static int number;
  snprintf(place, sizeof place, "%s/%d", home, number++);
  return set_up(state);
}

static Cache *open_limited(int64_t limit, const char **why) {
  CachePlace at = {.folder = place, .limit = limit};
  return cache_open_at(context, &at, why);
}

static Cache *open_cache(void) {
  const char *why;
  Cache *cache = open_limited(1 << 30, &why);
  assert_null(why);
  assert_non_null(cache);
  return cache;
}

static const char *path_of(const char *name) {
  return arena_printf(&context->arena, "%s/%s", place, name);
}

// The path of the only entry.
static const char *only_entry(Cache *cache) {
  CacheItems items = cache_items(context, cache, true);
  assert_int_equal(items.count, 1);
  return path_of(items.items[0].name);
}

static void put(Cache *cache, const char *key, const char *contents) {
  assert_true(cache_put(cache, CACHE_KERNEL, key, "a kernel", contents, strlen(contents)));
}

static bool has(Cache *cache, const char *key, const char *contents) {
  CacheEntry entry;
  if (!cache_get(cache, CACHE_KERNEL, key, &entry)) return false;
  assert_int_equal(entry.size, strlen(contents));
  assert_memory_equal(entry.data, contents, entry.size);
  cache_entry_free(&entry);
  return true;
}

// ---- Entries

static void test_entries_are_found_by_key_and_kind(void **state) {
  Cache *cache = open_cache();
  CacheEntry entry;
  assert_false(has(cache, "one", ""));
  put(cache, "one", "first");
  put(cache, "two", "");
  assert_true(has(cache, "one", "first"));
  assert_true(has(cache, "two", ""));
  assert_false(cache_get(cache, CACHE_MODEL, "one", &entry));
  put(cache, "one", "again");
  assert_true(has(open_cache(), "one", "again"));
  CacheCounts counts = cache_counts(cache);
  assert_int_equal(counts.found, 2);
  assert_int_equal(counts.absent, 2);
  assert_int_equal(counts.kept, 3);
  assert_int_equal(counts.damaged, 0);
}

static void test_large_entries_are_mapped(void **state) {
  enum { SIZE = (3 << 20) + 17 };
  Cache *cache = open_cache();
  char *data = malloc(SIZE);
  for (int i = 0; i < SIZE; i++) data[i] = (char)(i % 7919 >> 3);
  assert_true(cache_put(cache, CACHE_MODEL, "key", "", data, SIZE));
  CacheEntry entry;
  assert_true(cache_get(cache, CACHE_MODEL, "key", &entry));
  assert_true(entry.mapped && (uintptr_t)entry.data % 64 == 0);
  assert_int_equal(cache_clear(cache), 1);
  assert_int_equal(entry.size, SIZE);
  assert_memory_equal(entry.data, data, SIZE); // although the file was removed
  cache_entry_free(&entry);
  free(data);
}

static void test_small_entries_are_aligned(void **state) {
  Cache *cache = open_cache();
  CacheEntry entry;
  put(cache, "key", "contents");
  assert_true(cache_get(cache, CACHE_KERNEL, "key", &entry));
  assert_int_equal((uintptr_t)entry.data % 64, 0);
  cache_entry_free(&entry);
}

typedef struct Tail {
  const char *data;
  size_t size;
  bool fails;
} Tail;

static bool write_tail(void *env, FILE *stream) {
  const Tail *tail = env;
  return fwrite(tail->data, 1, tail->size, stream) == tail->size && !tail->fails;
}

static void test_tails_begin_at_a_page(void **state) {
  static char large[2 << 20];
  Cache *cache = open_cache();
  Tail rows[] = {{"short", 5}, {large, sizeof large}, {"", 0}, {"part", 4, true}};
  memset(large, 7, sizeof large);
  for (int i = 0; i < COUNT_OF(rows); i++) {
    CacheEntry entry;
    bool kept = i < 2;
    cache_clear(cache);
    assert_int_equal(
        cache_put_with_tail(cache, CACHE_MODEL, "key", "", "contents", 8, write_tail, &rows[i]),
        kept);
    assert_int_equal(cache_get(cache, CACHE_MODEL, "key", &entry), kept);
    if (!kept) continue;
    assert_int_equal(entry.size, 8);
    assert_memory_equal(entry.data, "contents", 8);
    assert_int_equal(entry.tail_size, rows[i].size);
    assert_memory_equal(entry.tail, rows[i].data, rows[i].size);
    assert_int_equal((uintptr_t)entry.tail % (entry.mapped ? 4096 : 64), 0);
    cache_entry_free(&entry);
  }
  assert_int_equal(cache_items(context, cache, false).count, 0);
}

static char *read_file(const char *path, size_t *size) {
  return file_read(context, &context->arena, path, size);
}

static void write_file(const char *path, const char *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0600), 0);
}

// A damaged entry counts as absent and is removed, and can be made again.
static void check_damage(Cache *cache, const char *path, const char *data, size_t size) {
  int damaged = cache_counts(cache).damaged;
  write_file(path, data, size);
  assert_false(has(cache, "key", ""));
  assert_int_equal(cache_counts(cache).damaged, damaged + 1);
  assert_int_equal(access(path, F_OK), -1);
}

static void test_every_changed_byte_is_noticed(void **state) {
  Cache *cache = open_cache();
  size_t size;
  put(cache, "key", "the contents of the entry");
  const char *path = only_entry(cache);
  char *data = read_file(path, &size);
  for (size_t i = 0; i < size; i++)
    for (int bit = 0; bit < 8; bit += 7) {
      data[i] ^= (char)(1 << bit);
      check_damage(cache, path, data, size);
      data[i] ^= (char)(1 << bit);
    }
  write_file(path, data, size);
  assert_true(has(cache, "key", "the contents of the entry"));
}

static void test_every_other_length_is_noticed(void **state) {
  Cache *cache = open_cache();
  size_t size;
  put(cache, "key", "the contents of the entry");
  const char *path = only_entry(cache);
  char *data = read_file(path, &size), *longer = arena_alloc(&context->arena, size + 64);
  memcpy(longer, data, size);
  for (size_t i = 0; i < size; i++) check_damage(cache, path, longer, i);
  for (size_t i = size + 1; i < size + 64; i += 9) check_damage(cache, path, longer, i);
  put(cache, "key", "made again");
  assert_true(has(cache, "key", "made again"));
}

static void test_an_entry_under_another_name_is_refused(void **state) {
  Cache *cache = open_cache();
  put(cache, "key", "contents");
  const char *path = only_entry(cache);
  put(cache, "other", "other contents");
  CacheItems items = cache_items(context, cache, false);
  const char *first = path_of(items.items[0].name), *second = path_of(items.items[1].name);
  const char *other = strcmp(first, path) == 0 ? second : first;
  assert_int_equal(rename(other, path), 0);
  assert_false(has(cache, "key", ""));
}

static void test_files_that_are_no_entries_are_refused(void **state) {
  Cache *cache = open_cache();
  put(cache, "key", "contents");
  const char *path = only_entry(cache), *elsewhere = path_of("elsewhere");
  assert_int_equal(rename(path, elsewhere), 0);
  assert_int_equal(symlink(elsewhere, path), 0);
  assert_false(has(cache, "key", ""));
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_false(has(cache, "key", ""));
  assert_int_equal(mkdir(path, 0700), 0);
  assert_false(has(cache, "key", ""));
  assert_false(cache_put(cache, CACHE_KERNEL, "key", "", "x", 1));
  assert_int_equal(rmdir(path), 0);
  assert_int_equal(rename(elsewhere, path), 0);
  assert_true(has(cache, "key", "contents"));
}

static void test_entries_that_others_may_write_are_refused(void **state) {
  Cache *cache = open_cache();
  put(cache, "key", "contents");
  const char *path = only_entry(cache);
  assert_int_equal(chmod(path, 0620), 0);
  assert_false(has(cache, "key", ""));
  put(cache, "key", "contents");
  if (geteuid() != 0) return;
  assert_int_equal(chown(path, 65534, 65534), 0);
  assert_false(has(cache, "key", ""));
}

// ---- Folders

static void check_refused(const char *reason) {
  const char *why;
  assert_null(open_limited(1 << 30, &why));
  assert_string_equal(why, reason);
}

static void test_folders_are_made(void **state) {
  char *end = place + strlen(place);
  snprintf(end, sizeof place - (size_t)(end - place), "/a/b");
  put(open_cache(), "key", "contents");
  struct stat info;
  assert_int_equal(stat(place, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
}

static void test_folders_that_cannot_be_made_are_refused(void **state) {
  write_file(place, "", 0);
  check_refused("Not a directory");
  snprintf(place, sizeof place, "/proc/no/such/folder");
  check_refused("No such file or directory");
}

static void test_folders_that_others_may_write_are_refused(void **state) {
  assert_int_equal(mkdir(place, 0700), 0);
  assert_int_equal(chmod(place, 0777), 0);
  check_refused("other users may write to it");
  assert_int_equal(chmod(place, 0770), 0);
  check_refused("other users may write to it");
  assert_int_equal(chmod(place, 0755), 0);
  put(open_cache(), "key", "contents");
  if (geteuid() != 0) skip();
  assert_int_equal(chown(place, 65534, 65534), 0);
  check_refused("it belongs to another user");
}

static void test_links_to_folders(void **state) {
  const char *folder = arena_printf(&context->arena, "%s.folder", place);
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_int_equal(symlink(folder, place), 0);
  put(open_cache(), "key", "contents");
  if (geteuid() != 0) skip();
  assert_int_equal(lchown(place, 65534, 65534), 0);
  check_refused("it belongs to another user");
}

static void test_a_folder_that_is_removed_in_use(void **state) {
  Cache *cache = open_cache();
  put(cache, "key", "contents");
  remove_tree(place);
  assert_false(has(cache, "key", ""));
  assert_false(cache_put(cache, CACHE_KERNEL, "key", "", "x", 1));
  cache_trim(cache);
  assert_int_equal(cache_items(context, cache, true).count, 0);
  assert_int_equal(cache_clear(cache), 0);
  put(open_cache(), "key", "contents");
}

// Runs body(cache) as a user who owns the folder; true when it returns true.
static bool as_nobody(bool (*body)(Cache *cache), mode_t mode) {
  enum { NOBODY = 65534 };
  bool root = geteuid() == 0;
  if (root) assert_int_equal(chmod(home, 0755) | chown(place, NOBODY, NOBODY), 0);
  pid_t child = fork();
  if (!child) {
    if (root && setuid(NOBODY) != 0) _exit(1);
    if (chmod(place, mode) != 0) _exit(1);
    const char *why;
    Cache *cache = open_limited(1 << 30, &why);
    _exit(cache && body(cache) ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool write_one(Cache *cache) {
  return cache_put(cache, CACHE_KERNEL, "key", "", "contents", 8);
}

static bool read_one(Cache *cache) {
  CacheEntry entry;
  bool kept = write_one(cache);
  cache_trim(cache);
  return !kept && cache_get(cache, CACHE_KERNEL, "key", &entry);
}

static void test_a_folder_that_cannot_be_written_is_read(void **state) {
  assert_int_equal(mkdir(place, 0700), 0);
  assert_true(as_nobody(write_one, 0700));
  assert_true(as_nobody(read_one, 0500));
}

// ---- Full disks

static void test_files_limited_in_size(void **state) {
  Cache *cache = open_cache();
  struct rlimit before, few;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  few = (struct rlimit){200, before.rlim_max};
  char data[1000] = {0};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
  bool kept = cache_put(cache, CACHE_KERNEL, "key", "", data, sizeof data);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_false(kept);
  assert_int_equal(cache_items(context, cache, false).count, 0);
}

static int file_count(void) {
  int count = 0;
  DIR *folder = opendir(place);
  while (readdir(folder)) count++;
  closedir(folder);
  return count - 2;
}

static void test_a_full_disk(void **state) {
  assert_int_equal(mkdir(place, 0700), 0);
  if (mount("none", place, "tmpfs", 0, "size=64k,mode=0700") != 0) skip();
  Cache *cache = open_cache();
  char data[20000] = {0};
  int kept = 0;
  for (int i = 0; i < 8; i++) {
    char key[8];
    snprintf(key, sizeof key, "%d", i);
    kept += cache_put(cache, CACHE_KERNEL, key, "", data, sizeof data);
  }
  int files = file_count();
  assert_int_equal(umount2(place, MNT_DETACH), 0);
  assert_in_range(kept, 1, 3);
  assert_int_equal(files, kept); // no part of a file is left
}

// ---- The limit

static void set_use(const char *path, int seconds_ago) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= seconds_ago;
  assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){now, now}, 0), 0);
}

static const char *key_of(int i) {
  return arena_printf(&context->arena, "key %d", i);
}

static bool is_there(Cache *cache, int i) {
  CacheEntry entry;
  bool found = cache_get(cache, CACHE_KERNEL, key_of(i), &entry);
  cache_entry_free(&entry);
  return found;
}

static void test_what_was_not_used_for_long_is_removed(void **state) {
  enum { SIZE = 7000, COUNT = 20 }; // 8 KiB each on the disk
  const char *why;
  Cache *cache = open_limited(10 * 8192, &why);
  char data[SIZE] = {0};
  for (int i = 0; i < COUNT; i++) {
    assert_true(cache_put(cache, CACHE_KERNEL, key_of(i), "", data, SIZE));
    CacheItems items = cache_items(context, cache, false);
    set_use(path_of(items.items[0].name), 5000 - 100 * i);
  }
  assert_true(is_there(cache, 3)); // which is then the one used last
  cache_trim(cache);
  assert_int_equal(cache_items(context, cache, false).count, 8); // an eighth is left free
  for (int i = 0; i < COUNT; i++) assert_int_equal(is_there(cache, i), i == 3 || i >= 13);
  int64_t bytes = 0;
  CacheItems items = cache_items(context, cache, false);
  for (int i = 0; i < items.count; i++) bytes += items.items[i].bytes;
  assert_true(bytes <= cache_limit(cache));
}

static void test_large_contents_are_not_kept(void **state) {
  const char *why;
  Cache *cache = open_limited(10000, &why);
  char data[6000] = {0};
  assert_false(cache_has_room(cache, sizeof data));
  assert_false(cache_put(cache, CACHE_KERNEL, "key", "", data, sizeof data));
  assert_true(cache_put(cache, CACHE_KERNEL, "key", "", data, 5000));
}

static void test_other_files_are_left_alone(void **state) {
  Cache *cache = open_cache();
  put(cache, "key", "contents");
  write_file(path_of("notes.txt"), "mine", 4);
  write_file(path_of("0123456789abcdef0123456789abcdef.txt"), "mine", 4);
  write_file(path_of("writing-1-2-3"), "half", 4);
  write_file(path_of("writing-4-5-6"), "half", 4);
  set_use(path_of("writing-4-5-6"), 7200);
  cache_trim(cache);
  assert_int_equal(access(path_of("writing-1-2-3"), F_OK), 0); // may still be written
  assert_int_equal(access(path_of("writing-4-5-6"), F_OK), -1);
  assert_int_equal(cache_clear(cache), 1);
  assert_int_equal(file_count(), 2);
}

static void test_lists_have_labels(void **state) {
  Cache *cache = open_cache();
  put(cache, "key", "contents");
  set_use(only_entry(cache), 1000);
  assert_true(cache_put(cache, CACHE_MODEL, "model", "resnet50.onnx", "x", 1));
  CacheItems items = cache_items(context, cache, true);
  assert_int_equal(items.count, 2);
  assert_int_equal(items.items[0].kind, CACHE_MODEL);
  assert_string_equal(items.items[0].label, "resnet50.onnx");
  assert_int_equal(items.items[0].bytes, 4096);
  assert_string_equal(items.items[1].label, "a kernel");
  assert_string_equal(cache_kind_name(items.items[1].kind), "kernel");
}

// ---- Processes

// The contents of a key are its text again and again.
static size_t contents_of(int key, char data[40000]) {
  size_t size = (size_t)(100 + key * key * 97 % 39000);
  for (size_t i = 0; i < size; i++) data[i] = (char)(key + (int)i * 31);
  return size;
}

// Writes and reads random entries; true when each that was found had the right contents.
static bool use_at_random(Cache *cache, unsigned seed) {
  static char data[40000];
  bool right = true;
  int found = 0;
  for (int i = 0; i < 400; i++) {
    int key = rand_r(&seed) % 24;
    size_t size = contents_of(key, data);
    CacheEntry entry;
    if (cache_get(cache, CACHE_KERNEL, key_of(key), &entry)) {
      found++;
      right &= entry.size == size && memcmp(entry.data, data, size) == 0;
      cache_entry_free(&entry);
    } else {
      cache_put(cache, CACHE_KERNEL, key_of(key), "", data, size);
    }
    if (rand_r(&seed) % 8 == 0) cache_trim(cache);
    if (rand_r(&seed) % 64 == 0) cache_clear(cache);
  }
  return right && found && cache_counts(cache).damaged == 0;
}

static void test_processes_share_a_folder(void **state) {
  enum { PROCESSES = 8 };
  pid_t children[PROCESSES];
  const char *why;
  for (unsigned i = 0; i < PROCESSES; i++)
    if (!(children[i] = fork())) {
      Cache *cache = open_limited(200000, &why);
      _exit(cache && use_at_random(cache, i + 1) ? 0 : 1);
    }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  Cache *cache = open_limited(200000, &why);
  CacheItems items = cache_items(context, cache, false);
  assert_int_equal(file_count(), items.count); // no temporary file is left
}

// A process that is killed while it writes leaves nothing that a reader would take for an entry.
static void test_a_writer_is_killed(void **state) {
  enum { SIZE = 8 << 20 };
  Cache *cache = open_cache();
  char *data = calloc(1, SIZE);
  for (int i = 1; i < 12; i++) {
    pid_t child = fork();
    if (!child) {
      for (;;) cache_put(cache, CACHE_KERNEL, "key", "", data, SIZE);
    }
    usleep((useconds_t)i * 1500);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CacheEntry entry;
    if (cache_get(cache, CACHE_KERNEL, "key", &entry)) {
      assert_int_equal(entry.size, SIZE);
      cache_entry_free(&entry);
    }
    assert_int_equal(cache_counts(cache).damaged, 0);
    cache_clear(cache);
  }
  free(data);
}

// ---- Settings

static void test_sizes(void **state) {
  static const struct {
    const char *text;
    int64_t bytes; // -1: refused
  } rows[] = {{"0", 0},
              {"300", 300},
              {"2K", 2048},
              {"20M", 20 << 20},
              {"3G", (int64_t)3 << 30},
              {"1.5G", -1},
              {"", -1},
              {"M", -1},
              {"-1", -1},
              {"5MB", -1},
              {"5 M", -1},
              {"1e30", -1},
              {"0x10", -1},
              {"nan", -1},
              {"inf", -1},
              {"9000000000G", -1},
              {"5m", -1}};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    int64_t bytes = -1;
    assert_int_equal(bytes_parse(rows[i].text, &bytes), rows[i].bytes >= 0);
    assert_int_equal(bytes, rows[i].bytes);
  }
}

static void set(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

static void test_the_environment_names_the_folder(void **state) {
  static const struct {
    const char *pleat, *xdg, *home, *folder;
  } rows[] = {
      {"/a/b", "/x", "/h", "/a/b"},
      {"a", "/x", "/h", "a"},
      {NULL, "/x", "/h", "/x/pleat"},
      {"", "/x", "/h", "/x/pleat"},
      {NULL, "x", "/h", "/h/.cache/pleat"},
      {NULL, NULL, "/h", "/h/.cache/pleat"},
      {NULL, "", "", NULL},
      {NULL, NULL, NULL, NULL},
      {"off", "/x", "/h", NULL},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    set("PLEAT_CACHE", rows[i].pleat);
    set("XDG_CACHE_HOME", rows[i].xdg);
    set("HOME", rows[i].home);
    CachePlace found = cache_place(context);
    assert_int_equal(found.limit, CACHE_DEFAULT_LIMIT);
    assert_int_equal(found.why == NULL, rows[i].folder != NULL);
    if (rows[i].folder) assert_string_equal(found.folder, rows[i].folder);
    assert_int_equal(found.asked, i < 2);
  }
  assert_int_equal(context->diags.count, 0);
}

static void test_the_environment_limits_the_size(void **state) {
  set("PLEAT_CACHE", place);
  set("PLEAT_CACHE_SIZE", "3M");
  assert_int_equal(cache_limit(cache_open(context)), 3 << 20);
  set("PLEAT_CACHE_SIZE", "0");
  assert_null(cache_open(context));
  assert_int_equal(context->diags.count, 0);
  set("PLEAT_CACHE_SIZE", "much");
  assert_int_equal(cache_limit(cache_open(context)), CACHE_DEFAULT_LIMIT);
  assert_int_equal(context->diags.count, 1);
  set("PLEAT_CACHE_SIZE", NULL);
  set("PLEAT_CACHE", "/proc/no");
  assert_null(cache_open(context));
  assert_int_equal(context->diags.count, 2);
  assert_int_equal(context->error_count, 0);
  assert_non_null(strstr(context->diags.items[1].message, "the folder '/proc/no' of PLEAT_CACHE"));
  set("PLEAT_CACHE", NULL);
  set("XDG_CACHE_HOME", "/proc/no");
  assert_null(cache_open(context)); // nobody named it, so nobody is told
  assert_int_equal(context->diags.count, 2);
}

static void test_builds_have_identities(void **state) {
  char text[CACHE_IDENTITY_SIZE];
  assert_int_equal(strspn(cache_own_identity(), "0123456789abcdef"), strlen(cache_own_identity()));
  assert_true(strlen(cache_own_identity()) >= 16);
  assert_true(cache_identity((const void *)(uintptr_t)test_sizes, text));
  assert_string_equal(text, cache_own_identity());
  if (cache_identity((const void *)(uintptr_t)strlen, text)) // the C library's
    assert_string_not_equal(text, cache_own_identity());
  int local = 0;
  assert_false(cache_identity(&local, text)); // the stack belongs to no library
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CACHE_TEST(test_entries_are_found_by_key_and_kind),
      CACHE_TEST(test_large_entries_are_mapped),
      CACHE_TEST(test_small_entries_are_aligned),
      CACHE_TEST(test_tails_begin_at_a_page),
      CACHE_TEST(test_every_changed_byte_is_noticed),
      CACHE_TEST(test_every_other_length_is_noticed),
      CACHE_TEST(test_an_entry_under_another_name_is_refused),
      CACHE_TEST(test_files_that_are_no_entries_are_refused),
      CACHE_TEST(test_entries_that_others_may_write_are_refused),
      CACHE_TEST(test_folders_are_made),
      CACHE_TEST(test_folders_that_cannot_be_made_are_refused),
      CACHE_TEST(test_folders_that_others_may_write_are_refused),
      CACHE_TEST(test_links_to_folders),
      CACHE_TEST(test_a_folder_that_is_removed_in_use),
      CACHE_TEST(test_a_folder_that_cannot_be_written_is_read),
      CACHE_TEST(test_files_limited_in_size),
      CACHE_TEST(test_a_full_disk),
      CACHE_TEST(test_what_was_not_used_for_long_is_removed),
      CACHE_TEST(test_large_contents_are_not_kept),
      CACHE_TEST(test_other_files_are_left_alone),
      CACHE_TEST(test_lists_have_labels),
      CACHE_TEST(test_processes_share_a_folder),
      CACHE_TEST(test_a_writer_is_killed),
      CACHE_TEST(test_sizes),
      CACHE_TEST(test_the_environment_names_the_folder),
      CACHE_TEST(test_the_environment_limits_the_size),
      CACHE_TEST(test_builds_have_identities),
  };
  return cmocka_run_group_tests(tests, make_home, remove_home);
}
