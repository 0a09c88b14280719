// SPDX-License-Identifier: Apache-2.0
// Implements arenas, which are lists of memory chunks whose sizes double up to a limit. Memory is
// zeroed when it is handed out, not before, so that a reset chunk can be used again. The context
// keeps some of the chunks that its arenas free for those that they need next: the system would
// make each page of a new chunk anew.
#include "base/base.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // since Linux 5.14; an older one refuses it, which changes nothing
#endif

enum {
  FIRST_CHUNK = 16 << 10,
  LARGEST_CHUNK = 4 << 20,
  MOST_SPARE = 64 << 20,    // bytes of the chunks that a context keeps
  LARGEST_SPARE = 32 << 20, // such as the tables of a solver, which it makes again and again
  ALIGNMENT = 16
};

NO_RETURN void context_out_of_memory(Context *context, size_t wanted);
size_t context_used_bytes(const Context *context);

void arena_init(Arena *arena, Context *context) {
  *arena = (Arena){.context = context};
}

static void chunk_free(Context *context, ArenaChunk *chunk) {
  if (!context || chunk->size > LARGEST_SPARE || context->spare_bytes + chunk->size > MOST_SPARE) {
    free(chunk);
    return;
  }
  ASAN_POISON_MEMORY_REGION(chunk->data, chunk->size);
  chunk->previous = context->spare;
  context->spare = chunk;
  context->spare_bytes += chunk->size;
}

// The smallest of the chunks that the context keeps and that are large enough, which it then keeps
// no longer; NULL: there is none.
static ArenaChunk *take_spare(Context *context, size_t size) {
  ArenaChunk **best = NULL;
  for (ArenaChunk **at = &context->spare; *at; at = &(*at)->previous)
    if ((*at)->size >= size && (!best || (*at)->size < (*best)->size)) best = at;
  if (!best) return NULL;
  ArenaChunk *chunk = *best;
  *best = chunk->previous;
  context->spare_bytes -= chunk->size;
  return chunk;
}

void arena_free_spare(Context *context) {
  while (context->spare) free(take_spare(context, 0));
}

// Gives the chunks to `keeper`, or to the system where it is NULL.
static void free_until(Arena *arena, ArenaChunk *stop, Context *keeper) {
  while (arena->chunk != stop) {
    ArenaChunk *previous = arena->chunk->previous;
    arena->used_bytes -= arena->chunk->size;
    chunk_free(keeper, arena->chunk);
    arena->chunk = previous;
  }
}

void arena_free(Arena *arena) {
  free_until(arena, NULL, NULL);
}

void arena_recycle(Arena *arena) {
  free_until(arena, NULL, arena->context);
}

static bool allocation_refused(const Arena *arena, size_t size) {
  Context *context = arena->context;
  if (!context) return false;
  if (context->fail_after && --context->fail_after == 0) return true;
  return context->memory_limit && context_used_bytes(context) + size > context->memory_limit;
}

// A chunk for one large array, which is written as a whole, is in huge pages as far as there are.
// A chunk of the usual largest size is not: it would have one huge page on average, because it
// begins anywhere, and to find and clear one takes the system longer than the small pages in its
// place. The system makes its pages at once, which takes less time than one after the other.
static ArenaChunk *chunk_new(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  ArenaChunk *chunk = malloc(sizeof *chunk + size);
  if (!chunk || size < LARGEST_CHUNK) return chunk;
  char *first = (char *)(((uintptr_t)chunk + page - 1) / page * page);
  int advice = size > LARGEST_CHUNK ? MADV_HUGEPAGE : MADV_POPULATE_WRITE;
  madvise(first, size / page * page - page, advice);
  return chunk;
}

static void chunk_add(Arena *arena, size_t at_least) {
  size_t size = arena->chunk ? MIN_OF(arena->chunk->size * 2, (size_t)LARGEST_CHUNK) : FIRST_CHUNK;
  size = MAX_OF(size, at_least);
  if (allocation_refused(arena, size)) context_out_of_memory(arena->context, size);
  ArenaChunk *chunk = arena->context ? take_spare(arena->context, size) : NULL;
  if (chunk) size = chunk->size;
  if (!chunk) chunk = chunk_new(size);
  if (!chunk) context_out_of_memory(arena->context, size);
  *chunk = (ArenaChunk){.previous = arena->chunk, .size = size};
  ASAN_POISON_MEMORY_REGION(chunk->data, size);
  arena->chunk = chunk;
  arena->used_bytes += size;
}

void *arena_take_from_new_chunk(Arena *arena, size_t size) {
  if (arena->context) context_poll(arena->context);
  if (size > (size_t)1 << 46) context_out_of_memory(arena->context, size);
  chunk_add(arena, (size + ARENA_GAP + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return arena_take(arena, size);
}

ArenaMark arena_mark(Arena *arena) {
  return (ArenaMark){arena->chunk, arena->chunk ? arena->chunk->used : 0, arena->used_bytes};
}

void arena_reset(Arena *arena, ArenaMark mark) {
  free_until(arena, mark.chunk, arena->context);
  if (!arena->chunk) return;
  arena->chunk->used = mark.used;
  ASAN_POISON_MEMORY_REGION(arena->chunk->data + mark.used, arena->chunk->size - mark.used);
}

ObjectPool object_pool_of_size(Arena *arena, size_t size) {
  return (ObjectPool){arena, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, NULL, 0, 0};
}

// The blocks double, so that few objects take little memory.
void *object_pool_take(ObjectPool *pool) {
  enum { FIRST_BLOCK = 8, LARGEST_BLOCK = 1024 };
  if (!pool->left) {
    pool->block = MIN_OF(MAX_OF(pool->block * 2, FIRST_BLOCK), LARGEST_BLOCK);
    pool->left = pool->block;
    pool->next = arena_take(pool->arena, pool->size * (size_t)pool->block);
  }
  void *object = memset(pool->next, 0, pool->size);
  pool->next += pool->size;
  pool->left--;
  return object;
}

void *arena_copy(Arena *arena, const void *data, size_t size) {
  void *copy = arena_take(arena, size);
  return size ? memcpy(copy, data, size) : copy;
}

const char *arena_text(Arena *arena, const char *text) {
  return text ? arena_copy(arena, text, strlen(text) + 1) : NULL;
}

char *arena_vprintf(Arena *arena, const char *format, va_list args) {
  enum { LIKELY = 256 };
  char likely[LIKELY];
  va_list again;
  va_copy(again, args);
  size_t size = text_format(likely, sizeof likely, format, again);
  va_end(again);
  char *s = arena_take(arena, size + 1);
  if (size < sizeof likely)
    memcpy(s, likely, size + 1);
  else
    text_format(s, size + 1, format, args);
  return s;
}

char *arena_printf(Arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *s = arena_vprintf(arena, format, args);
  va_end(args);
  return s;
}

void array_reserve(Arena *arena, void **items, int *capacity, int needed, size_t item_size) {
  if (needed <= *capacity) return;
  int grown = MAX_OF(needed, *capacity ? *capacity * 2 : 4);
  size_t size = (size_t)grown * item_size, filled = (size_t)*capacity * item_size;
  char *copy = arena_take(arena, size);
  if (filled) memcpy(copy, *items, filled);
  memset(copy + filled, 0, size - filled);
  *items = copy;
  *capacity = grown;
}
