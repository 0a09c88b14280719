// SPDX-License-Identifier: Apache-2.0
// Makes and frees contexts, and implements the way by which internal faults and exhausted memory
// leave inner code: a jump to the API edge that `context_protect` sets up.
#include "base/base.h"

#include <stdlib.h>

void interner_create(Context *context);
NO_RETURN void context_out_of_memory(Context *context, size_t wanted);

typedef struct Release {
  void (*release)(void *arg);
  void *arg;
  struct Release *next;
} Release;

typedef struct ArenaScope {
  Arena arena; // the context's `arena` before the scope began
  struct ExprTable *exprs, *exprs_below;
  struct ArenaScope *outer;
} ArenaScope;

void context_at_free(Context *context, void (*release)(void *arg), void *arg) {
  Release *entry = arena_new(&context->lasting, Release);
  *entry = (Release){release, arg, context->releases};
  context->releases = entry;
}

static void create_parts(void *arg) {
  interner_create(arg);
}

Context *context_new(void) {
  Context *context = calloc(1, sizeof *context);
  if (!context) return NULL;
  arena_init(&context->arena, context);
  arena_init(&context->lasting, context);
  arena_init(&context->scratch, context);
  if (context_protect(context, create_parts, context)) return context;
  context_free(context);
  return NULL;
}

void context_free(Context *context) {
  if (!context) return;
  for (Release *r = context->releases; r; r = r->next) r->release(r->arg);
  while (context->scope) context_scope_discard(context);
  arena_free(&context->scratch);
  arena_free(&context->arena);
  arena_free(&context->lasting);
  arena_free_spare(context);
  free(context);
}

void context_scope_begin(Context *context) {
  ArenaScope *scope = arena_new(&context->lasting, ArenaScope);
  *scope = (ArenaScope){context->arena, context->exprs, context->exprs_below, context->scope};
  arena_init(&context->arena, context);
  if (context->exprs) context->exprs_below = context->exprs;
  context->exprs = NULL;
  context->scope = scope;
}

void context_scope_discard(Context *context) {
  ArenaScope *scope = context->scope;
  arena_recycle(&context->arena);
  context->arena = scope->arena;
  context->exprs = scope->exprs;
  context->exprs_below = scope->exprs_below;
  context->scope = scope->outer;
}

size_t context_used_bytes(const Context *context) {
  size_t bytes =
      context->arena.used_bytes + context->lasting.used_bytes + context->scratch.used_bytes;
  for (const ArenaScope *s = context->scope; s; s = s->outer) bytes += s->arena.used_bytes;
  return bytes;
}

bool context_protect(Context *context, void (*body)(void *arg), void *arg) {
  jmp_buf edge;
  jmp_buf *volatile outer = context->edge;
  ArenaScope *volatile scope = context->scope;
  volatile DiagCode code = context->diag_code;
  context->failure = FAILURE_NONE;
  context->edge = &edge;
  if (setjmp(edge) == 0) body(arg);
  context->edge = outer;
  context->diag_code = code;
  while (context->scope != scope) context_scope_discard(context);
  return context->failure == FAILURE_NONE;
}

NO_RETURN static void leave(Context *context, FailureKind kind, const char *message) {
  if (!context || !context->edge) {
    fprintf(stderr, "pleat: %s\n", message);
    abort();
  }
  context->failure = kind;
  context->failure_message = message;
  longjmp(*context->edge, 1);
}

NO_RETURN void context_out_of_memory(Context *context, size_t wanted) {
  (void)wanted;
  leave(context, FAILURE_MEMORY, "out of memory");
}

void context_cancel(Context *context) {
  leave(context, FAILURE_CANCELLED, "the call was cancelled by its call-back");
}

void context_poll(Context *context) {
  if (context->cancels && context->edge && context->cancels(context->cancels_env))
    context_cancel(context);
}

void bug_at(Context *context, const char *file, int line, const char *format, ...) {
  static _Thread_local char message[2048];
  const char *pass = context && context->current_pass ? context->current_pass : "none";
  int n = snprintf(message, sizeof message, "internal fault (%s:%d, pass %s): ", file, line, pass);
  va_list args;
  va_start(args, format);
  vsnprintf(message + n, sizeof message - (size_t)n, format, args);
  va_end(args);
  leave(context, FAILURE_BUG, message);
}

uint32_t context_next_id(Context *context) {
  return ++context->next_id;
}
