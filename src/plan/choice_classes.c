// SPDX-License-Identifier: Apache-2.0
// Sorts the choices of two stages into classes that the edge between them cannot tell apart, so
// that its table has an entry for two classes rather than for two choices.
#include "plan/internal.h"

static ChoiceClasses classes_new(Arena *arena, const StageChoices *choices) {
  return (ChoiceClasses){.of = arena_array(arena, int, choices->count),
                         .first = arena_array(arena, const StageChoice *, choices->count)};
}

// Puts choice `number` into the class of the key, which may be a new one.
static void add_choice(ChoiceClasses *classes, Map *known, const WordKey *key,
                       const StageChoices *choices, int number) {
  void **place = map_place(known, key);
  if (!*place) {
    classes->first[classes->count++] = &choices->items[number];
    *place = (void *)(uintptr_t)classes->count;
  }
  classes->of[number] = (int)(uintptr_t)*place - 1;
}

ChoiceClasses planner_writer_classes(Arena *arena, const StageChoices *choices) {
  ChoiceClasses classes = classes_new(arena, choices);
  Map known = map_new(arena);
  WordKey key = word_key_new(arena);
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *c = &choices->items[i];
    unsigned flags = c->in_place | c->tiles << 1 | c->elementwise << 2 | c->inner << 3;
    key.count = 0;
    word_key_add(&key, (uint64_t)(c->output + 1) << 32 | flags);
    word_key_add(&key, (uint64_t)c->by);
    word_key_add(&key, map_key(c->whole));
    word_key_add(&key, c->elementwise ? 0 : (uint64_t)c->row);
    word_key_add(&key, map_key(c->tuned));
    add_choice(&classes, &known, &key, choices, i);
  }
  return classes;
}

// Adds what the cycles of gathering the read depend on.
static void add_gathering(WordKey *key, const StageChoice *c, int read) {
  uint64_t saved = 0;
  if (c->saved) memcpy(&saved, &c->saved[read], sizeof saved);
  word_key_add(key, (uint64_t)c->output);
  word_key_add(key, c->saved != NULL);
  word_key_add(key, saved);
}

ChoiceClasses planner_reader_classes(Arena *arena, const StageChoices *choices, int read) {
  ChoiceClasses classes = classes_new(arena, choices);
  Map known = map_new(arena);
  WordKey key = word_key_new(arena);
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *c = &choices->items[i];
    bool fused = c->fused == read;
    bool gathers = !fused && (c->reads[read] == READ_ANY || bit_set_has(&c->gathers, read));
    unsigned flags = fused | (unsigned)gathers << 1 | c->absent << 2;
    if (fused) flags |= c->wants_tiles << 3 | c->elementwise << 4;
    key.count = 0;
    word_key_add(&key, (uint64_t)(c->reads[read] + 4) << 32 | flags);
    word_key_add(&key, fused ? map_key(c->host) : 0);
    word_key_add(&key, fused && !c->elementwise ? (uint64_t)c->row : 0);
    word_key_add(&key, map_key(c->tuned));
    if (gathers) add_gathering(&key, c, read);
    add_choice(&classes, &known, &key, choices, i);
  }
  return classes;
}
