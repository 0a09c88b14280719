// SPDX-License-Identifier: Apache-2.0
// `pleat cache`: shows what the user's cache of compiled code holds, and removes it.
#include "cli/cli.h"

#include <jansson.h>
#include <time.h>

typedef struct CacheOptions {
  bool list, clear;
} CacheOptions;

static const Option options[] = {
    {"list", 0, OPTION_FLAG, NULL, "list the entries, the latest used first",
     offsetof(CacheOptions, list)},
    {"clear", 0, OPTION_FLAG, NULL, "remove all entries", offsetof(CacheOptions, clear)},
};

typedef struct KindSize { // by the entries of one kind
  int count;
  int64_t bytes;
} KindSize;

static KindSize held(const CacheItems *items, CacheKind kind) {
  KindSize sum = {0};
  for (int i = 0; i < items->count; i++) {
    if (items->items[i].kind != kind) continue;
    sum.count++;
    sum.bytes += items->items[i].bytes;
  }
  return sum;
}

static int64_t all_bytes(const CacheItems *items) {
  int64_t bytes = 0;
  for (int i = 0; i < items->count; i++) bytes += items->items[i].bytes;
  return bytes;
}

static const char *time_text(Arena *arena, int64_t ns) {
  char *text = arena_alloc(arena, 32);
  time_t seconds = (time_t)(ns / 1000000000);
  struct tm parts;
  if (localtime_r(&seconds, &parts)) strftime(text, 32, "%Y-%m-%d %H:%M", &parts);
  return text;
}

static void show_entries(Cli *cli, const CacheItems *items) {
  static const char *const heads[] = {"last used", "kind", "bytes", "name"};
  Arena *arena = &cli->context->arena;
  Table table = table_new(arena, "llrl");
  for (int i = 0; i < COUNT_OF(heads) && items->count; i++) table_cell(&table, "%s", heads[i]);
  for (int i = 0; i < items->count; i++) {
    const CacheItem *item = &items->items[i];
    table_cell(&table, "%s", time_text(arena, item->used_ns));
    table_cell(&table, "%s", cache_kind_name(item->kind));
    table_cell(&table, "%s", show_bytes(arena, item->bytes));
    table_cell(&table, "%s", item->label);
  }
  table_print(&table, stdout);
}

static void show_text(Cli *cli, const Cache *cache, const CacheItems *items) {
  Arena *arena = &cli->context->arena;
  printf("folder          %s\n", cache_folder(cache));
  printf("size            %s of at most %s\n", show_bytes(arena, all_bytes(items)),
         show_bytes(arena, cache_limit(cache)));
  for (int kind = CACHE_KINDS - 1; kind >= 0; kind--) {
    KindSize sum = held(items, (CacheKind)kind);
    printf("%ss%*s%d, %s\n", cache_kind_name((CacheKind)kind),
           15 - (int)strlen(cache_kind_name((CacheKind)kind)), "", sum.count,
           show_bytes(arena, sum.bytes));
  }
}

static int show_json(Cli *cli, const Cache *cache, const CacheItems *items, bool list) {
  json_t *object = json_pack("{s:s, s:I, s:I}", "folder", cache_folder(cache), "limit_bytes",
                             (json_int_t)cache_limit(cache), "bytes", (json_int_t)all_bytes(items));
  for (int kind = CACHE_KINDS - 1; object && kind >= 0; kind--) {
    KindSize sum = held(items, (CacheKind)kind);
    json_object_set_new(
        object, arena_printf(&cli->context->arena, "%ss", cache_kind_name((CacheKind)kind)),
        json_pack("{s:i, s:I}", "count", sum.count, "bytes", (json_int_t)sum.bytes));
  }
  json_t *entries = list ? json_array() : NULL;
  for (int i = 0; entries && i < items->count; i++) {
    const CacheItem *item = &items->items[i];
    json_array_append_new(entries, json_pack("{s:s, s:s, s:s, s:I, s:f}", "file", item->name,
                                             "kind", cache_kind_name(item->kind), "name",
                                             item->label, "bytes", (json_int_t)item->bytes,
                                             "last_used", (double)item->used_ns * 1e-9));
  }
  if (object && entries) json_object_set_new(object, "entries", entries);
  return json_print(cli, object);
}

static int clear(Cli *cli, Cache *cache, const CacheItems *items) {
  int removed = cache_clear(cache);
  if (cli->json)
    return json_print(
        cli, json_pack("{s:i, s:I}", "removed", removed, "bytes", (json_int_t)all_bytes(items)));
  printf("%d %s removed, %s\n", removed, removed == 1 ? "entry" : "entries",
         show_bytes(&cli->context->arena, all_bytes(items)));
  return STATUS_DONE;
}

static int run(Cli *cli, void *given) {
  const CacheOptions *o = given;
  const GivenOption rows[] = {{"--list", o->list}, {"--clear", o->clear}};
  if (!cli_only_one(cli, rows, COUNT_OF(rows))) return STATUS_MISUSE;
  const char *why;
  CachePlace place = cache_place(cli->context);
  Cache *cache = cache_open_at(cli->context, &place, &why);
  if (!cache) {
    diag_error(cli->context, (SourcePos){0}, "the cache%s%s%s is not used: %s",
               place.folder ? " in '" : "", place.folder ? place.folder : "",
               place.folder ? "'" : "", why);
    return STATUS_BAD;
  }
  CacheItems items = cache_items(cli->context, cache, o->list);
  if (o->clear) return clear(cli, cache, &items);
  if (cli->json) return show_json(cli, cache, &items, o->list);
  show_text(cli, cache, &items);
  if (o->list) show_entries(cli, &items);
  return STATUS_DONE;
}

const Command command_cache = {
    .name = "cache",
    .arguments = "",
    .summary = "show or clear the user's cache of compiled code",
    .example = "  $ pleat cache\n"
               "  folder          /home/ada/.cache/pleat\n"
               "  size            98.8 MiB of at most 2.0 GiB\n"
               "  models          1, 98.6 MiB\n"
               "  kernels         31, 176 KiB\n",
    .takes = TAKES_JSON,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(CacheOptions),
    .least_inputs = 0,
    .most_inputs = 0,
    .run = run,
};
