// SPDX-License-Identifier: Apache-2.0
// Implements results: the arena of a struct is stored before it.
#include "api/result.h"

typedef struct Result {
  Arena arena;
  _Alignas(16) char value[];
} Result;

void *result_new(Arena *arena, const void *value, size_t size) {
  Result *result = arena_alloc(arena, sizeof *result + size);
  result->arena = *arena;
  result->arena.context = NULL; // which ends with the call
  *arena = (Arena){0};
  return memcpy(result->value, value, size);
}

void result_free(const void *value) {
  if (!value) return;
  Arena arena = ((const Result *)((const char *)value - offsetof(Result, value)))->arena;
  arena_free(&arena);
}
