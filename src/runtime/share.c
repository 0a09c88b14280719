// SPDX-License-Identifier: Apache-2.0
// Shares constants among compiled programs: those of one model for several sizes mostly have the
// same weights.
#include "runtime/compiled.h"

#include <stdlib.h>

// Holds the constants of a program that shares some.
typedef struct SharedWeights {
  void *own; // the constants that no other program has
  CompiledProgram **others;
  int count;
} SharedWeights;

static void release_shared(void *owner) {
  SharedWeights *shared = owner;
  for (int i = 0; i < shared->count; i++) compiled_program_release(shared->others[i]);
  memory_free(shared->own);
  free(shared->others);
  free(shared);
}

static const void *find_in(const CompiledProgram *other, const CompiledConstant *constant) {
  for (int i = 0; i < other->constant_count; i++) {
    const CompiledConstant *candidate = &other->constants[i];
    if (candidate->bytes == constant->bytes &&
        memcmp(candidate->data, constant->data, (size_t)constant->bytes) == 0)
      return candidate->data;
  }
  return NULL;
}

typedef struct Sharing {
  CompiledProgram *program;
  CompiledProgram *const *others;
  int count;
  const void **found; // by constant; NULL: only this program has it
  bool *used;         // by other program
} Sharing;

// Finds the constants of other programs; returns the bytes of the remaining ones.
static int64_t find_constants(Sharing *s) {
  int64_t own = 0;
  for (int i = 0; i < s->program->constant_count; i++) {
    const CompiledConstant *constant = &s->program->constants[i];
    for (int k = 0; !s->found[i] && k < s->count && constant->bytes; k++)
      s->used[k] |= (s->found[i] = find_in(s->others[k], constant)) != NULL;
    if (!s->found[i]) own += tensor_aligned(constant->bytes);
  }
  return own;
}

static SharedWeights *hold_others(const Sharing *s, int64_t own_bytes) {
  SharedWeights *shared = calloc(1, sizeof *shared);
  if (!shared) return NULL;
  shared->own = memory_alloc((size_t)own_bytes + TENSOR_ALIGNMENT);
  shared->others = calloc((size_t)s->count + 1, sizeof *shared->others);
  if (!shared->own || !shared->others) {
    release_shared(shared);
    return NULL;
  }
  for (int k = 0; k < s->count; k++)
    if (s->used[k]) shared->others[shared->count++] = compiled_program_keep(s->others[k]);
  return shared;
}

// Points all constants to where they are from now on, and frees where they were.
static void move_constants(const Sharing *s, SharedWeights *shared) {
  CompiledProgram *p = s->program;
  char *at = shared->own;
  for (int i = 0; i < p->constant_count; i++) {
    CompiledConstant *constant = &p->constants[i];
    const void *own = constant->data;
    constant->data = s->found[i] ? s->found[i] : at;
    if (s->found[i]) continue;
    memcpy(at, own, (size_t)constant->bytes);
    at += tensor_aligned(constant->bytes);
  }
  weight_pages_free(p->pages);
  if (p->release) p->release(p->owner);
  p->pages = NULL;
  p->weights = NULL;
  p->release = release_shared;
  p->owner = shared;
}

static bool share(Sharing *s) {
  if (!s->found || !s->used) return false;
  int64_t own = find_constants(s);
  bool any = false;
  for (int k = 0; k < s->count; k++) any |= s->used[k];
  if (!any) return true;
  SharedWeights *shared = hold_others(s, own);
  if (shared) move_constants(s, shared);
  return shared != NULL;
}

bool compiled_program_share(CompiledProgram *program, CompiledProgram *const *others, int count) {
  Sharing s = {.program = program, .others = others, .count = count};
  s.found = calloc((size_t)program->constant_count + 1, sizeof *s.found);
  s.used = calloc((size_t)count + 1, sizeof *s.used);
  bool done = share(&s);
  free(s.found);
  free(s.used);
  return done;
}
