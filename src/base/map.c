// SPDX-License-Identifier: Apache-2.0
// Implements the hash map, which keeps the insertion order so that iteration never depends on a
// hash; keys of several words; interned strings; and bit sets.
#include "base/base.h"

uint64_t hash_bytes(const void *data, size_t size) {
  const unsigned char *p = data;
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return hash_mix(h, size);
}

// ---- Map

// A map of few entries has no slots: the entries are searched.
enum { FEW_ENTRIES = 8 };

Map map_new(Arena *arena) {
  return (Map){.arena = arena};
}

Map map_for(Arena *arena, int count) {
  Map map = map_new(arena);
  if (count <= FEW_ENTRIES) return map;
  map.slot_count = 4 * FEW_ENTRIES;
  while (map.slot_count < 2 * count) map.slot_count *= 2;
  map.slots = arena_array(arena, int32_t, map.slot_count);
  array_reserve(arena, (void **)&map.entries, &map.capacity, count, sizeof *map.entries);
  return map;
}

void map_clear(Map *map) {
  if (map->slots) memset(map->slots, 0, sizeof *map->slots * (size_t)map->slot_count);
  map->count = 0;
}

static int32_t *slot_of(const Map *map, uint64_t key) {
  uint64_t i = hash_mix(0, key) & (uint64_t)(map->slot_count - 1);
  while (map->slots[i] && map->entries[map->slots[i] - 1].key != key)
    i = (i + 1) & (uint64_t)(map->slot_count - 1);
  return &map->slots[i];
}

static MapEntry *entry_of(const Map *map, uint64_t key) {
  if (map->slot_count) {
    int32_t slot = *slot_of(map, key);
    return slot ? &map->entries[slot - 1] : NULL;
  }
  for (int i = 0; i < map->count; i++)
    if (map->entries[i].key == key) return &map->entries[i];
  return NULL;
}

static void grow(Map *map) {
  map->slot_count = map->slot_count ? map->slot_count * 2 : 4 * FEW_ENTRIES;
  map->slots = arena_array(map->arena, int32_t, map->slot_count);
  for (int i = 0; i < map->count; i++) *slot_of(map, map->entries[i].key) = i + 1;
}

void map_set(Map *map, uint64_t key, void *value) {
  int32_t *slot = map->slot_count ? slot_of(map, key) : NULL;
  MapEntry *known = !slot ? entry_of(map, key) : *slot ? &map->entries[*slot - 1] : NULL;
  if (known) {
    known->value = value;
    return;
  }
  if (map->count >= FEW_ENTRIES && map->count * 2 >= map->slot_count) {
    grow(map);
    slot = slot_of(map, key);
  }
  array_reserve(map->arena, (void **)&map->entries, &map->capacity, map->count + 1,
                sizeof *map->entries);
  map->entries[map->count++] = (MapEntry){key, value};
  if (slot) *slot = map->count;
}

Map map_copy(Arena *arena, const Map *map) {
  Map copy = map_new(arena);
  for (int i = 0; i < map->count; i++) map_set(&copy, map->entries[i].key, map->entries[i].value);
  return copy;
}

void *map_get(const Map *map, uint64_t key) {
  const MapEntry *entry = entry_of(map, key);
  return entry ? entry->value : NULL;
}

bool map_has(const Map *map, uint64_t key) {
  return entry_of(map, key) != NULL;
}

// ---- Keys of several words

typedef struct WordEntry {
  int count;
  const uint64_t *words;
  void *value;
  struct WordEntry *next; // with the same hash
} WordEntry;

WordKey word_key_new(Arena *arena) {
  return (WordKey){arena_take(arena, sizeof(uint64_t) * WORD_KEY_MOST), 0, true};
}

void **map_place(Map *map, const WordKey *key) {
  size_t bytes = sizeof *key->items * (size_t)key->count;
  uint64_t hash = (uint64_t)key->count;
  for (int i = 0; i < key->count; i++) hash = hash_mix(hash, key->items[i]);
  WordEntry *first = map_get(map, hash), *entry = first;
  while (entry && (entry->count != key->count || memcmp(entry->words, key->items, bytes)))
    entry = entry->next;
  if (entry) return &entry->value;
  entry = arena_new(map->arena, WordEntry);
  *entry = (WordEntry){key->count, arena_copy(map->arena, key->items, bytes), NULL, first};
  map_set(map, hash, entry);
  return &entry->value;
}

// ---- Interned strings

// A string and what tells it from most others without reading it.
typedef struct InternedString {
  const char *text; // NULL: the slot is free
  uint64_t hash;
  size_t size;
} InternedString;

typedef struct Interner {
  InternedString *slots;
  size_t count, capacity; // a power of two
} Interner;

void interner_create(Context *context) {
  Interner *strings = arena_new(&context->lasting, Interner);
  strings->capacity = 256;
  strings->slots = arena_array(&context->lasting, InternedString, strings->capacity);
  context->strings = strings;
}

// The slot of a string with the same characters, or a free one.
static InternedString *string_slot(const Interner *strings, const InternedString *like) {
  for (uint64_t i = like->hash;; i++) {
    InternedString *slot = &strings->slots[i & (strings->capacity - 1)];
    if (!slot->text) return slot;
    if (slot->hash == like->hash && slot->size == like->size &&
        !memcmp(slot->text, like->text, like->size))
      return slot;
  }
}

static void strings_grow(Context *context, Interner *strings) {
  Interner old = *strings;
  strings->capacity *= 2;
  strings->slots = arena_array(&context->lasting, InternedString, strings->capacity);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.slots[i].text) *string_slot(strings, &old.slots[i]) = old.slots[i];
}

Str str_intern_n(Context *context, const char *s, size_t n) {
  const void *zero = memchr(s, 0, n);
  if (zero) n = (size_t)((const char *)zero - s);
  Interner *strings = context->strings;
  InternedString key = {s, hash_bytes(s, n), n};
  InternedString *slot = string_slot(strings, &key);
  if (slot->text) return slot->text;
  char *copy = arena_alloc(&context->lasting, n + 1);
  memcpy(copy, s, n);
  *slot = (InternedString){copy, key.hash, key.size};
  if (++strings->count * 2 > strings->capacity) strings_grow(context, strings);
  return copy;
}

Str str_intern(Context *context, const char *s) {
  return str_intern_n(context, s, strlen(s));
}

Str str_format(Context *context, const char *format, ...) {
  ArenaMark mark = arena_mark(&context->scratch);
  va_list args;
  va_start(args, format);
  Str s = str_intern(context, arena_vprintf(&context->scratch, format, args));
  va_end(args);
  arena_reset(&context->scratch, mark);
  return s;
}

// ---- Bit set

BitSet bit_set_new(Arena *arena, int size) {
  return (BitSet){arena_array(arena, uint64_t, (size + 63) / 64), size};
}
void bit_set_add(BitSet *set, int i) {
  set->words[i / 64] |= (uint64_t)1 << (i % 64);
}
void bit_set_remove(BitSet *set, int i) {
  set->words[i / 64] &= ~((uint64_t)1 << (i % 64));
}
bool bit_set_has(const BitSet *set, int i) {
  return set->words[i / 64] >> (i % 64) & 1;
}
