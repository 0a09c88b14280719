// SPDX-License-Identifier: Apache-2.0
// Turns a context's diagnostics and failures into the status and the messages that the library
// returns. Messages have a context of their own, which outlives the one they come from.
#include "api/messages.h"

#include <stdlib.h>

typedef Array(PleatMessage) MessageArray;

struct PleatMessages {
  Context *context; // owns everything; NULL: the constant that reports exhausted memory
  MessageArray all; // errors and warnings, each with its notes; notes that stand alone
  const char *text;
};

// The messages of a call for whose own messages there was no memory.
static PleatMessage no_memory_message = {
    .severity = PLEAT_ERROR, .code = "memory", .text = "memory is exhausted"};
static PleatMessages no_memory = {.all = {&no_memory_message, 1, 1},
                                  .text = "error: memory is exhausted\n"};

// ---- Making messages ----------------------------------------------------------------------------

typedef struct Taking {
  const Context *from; // whose diagnostics are taken
  PleatMessages *to;
  MessageArray notes; // of the last message
} Taking;

static PleatMessage message_of(Context *context, const Diag *diag) {
  const SourceFile *file = diag->pos.file;
  PleatMessage message = {.severity = (int)diag->severity,
                          .code = diag_code_name(diag->code),
                          .file = arena_text(&context->arena, file ? file->name : NULL),
                          .node = arena_text(&context->arena, diag->pos.node),
                          .text = arena_text(&context->arena, diag->message)};
  DiagPlace place = diag_place(diag);
  if (!place.source) return message;
  message.line = place.line;
  message.column = place.column;
  message.width = place.width;
  char *line = arena_alloc(&context->arena, (size_t)place.source_size + 1);
  message.source = memcpy(line, place.source, (size_t)place.source_size);
  return message;
}

static void close_notes(Taking *taking) {
  if (!taking->notes.count) return;
  PleatMessage *owner = &array_last(&taking->to->all);
  owner->notes = taking->notes.items;
  owner->note_count = taking->notes.count;
  taking->notes = (MessageArray){0};
}

static void add_message(Taking *taking, PleatMessage message, bool alone) {
  Arena *arena = &taking->to->context->arena;
  bool is_note = message.severity == PLEAT_NOTE && !alone && taking->to->all.count;
  if (!is_note) close_notes(taking);
  array_push(arena, is_note ? &taking->notes : &taking->to->all, message);
}

static void add_diag(Taking *taking, const Diag *diag) {
  add_message(taking, message_of(taking->to->context, diag), diag->alone);
}

// How the call failed, reported like an error.
static void add_failure(Taking *taking, Text *text) {
  const Context *from = taking->from;
  if (from->failure == FAILURE_NONE) return;
  PleatMessage failure = {.severity = PLEAT_ERROR,
                          .code = diag_code_name(diag_failure_code(from->failure)),
                          .text = arena_text(text->arena, from->failure_message)};
  add_message(taking, failure, true);
  text_printf(text, "error: %s\n", from->failure_message);
}

static void take(void *arg) {
  Taking *taking = arg;
  Context *context = taking->to->context;
  Text text = text_new(&context->arena);
  for (int i = 0; i < taking->from->diags.count; i++)
    add_diag(taking, &taking->from->diags.items[i]);
  diag_print_list(taking->from, &text);
  add_failure(taking, &text);
  close_notes(taking);
  taking->to->text = text_string(&text);
}

static PleatMessages *messages_of(const Context *from) {
  if (!from->diags.count && from->failure == FAILURE_NONE) return NULL;
  PleatMessages *messages = calloc(1, sizeof *messages);
  Taking taking = {from, messages, {0}};
  if (messages) messages->context = context_new();
  if (messages && messages->context && context_protect(messages->context, take, &taking))
    return messages;
  pleat_messages_free(messages);
  return &no_memory;
}

static int status_of(const Context *context, bool done) {
  switch (context->failure) {
  case FAILURE_NONE: return done && !context->error_count ? PLEAT_OK : PLEAT_REFUSED;
  case FAILURE_BUG: return PLEAT_FAULT;
  case FAILURE_CANCELLED: return PLEAT_CANCELLED;
  case FAILURE_MEMORY: break;
  }
  return PLEAT_NO_MEMORY;
}

int messages_take(Context *context, bool done, PleatMessages **messages) {
  int status = status_of(context, done);
  if (messages) *messages = messages_of(context);
  context->diags.count = context->error_count = 0;
  return status;
}

int messages_no_memory(PleatMessages **messages) {
  if (messages) *messages = &no_memory;
  return PLEAT_NO_MEMORY;
}

typedef struct Refusal {
  Context *context;
  const char *name, *why;
} Refusal;

static void refuse(void *arg) {
  const Refusal *r = arg;
  SourcePos pos = {.file = source_file_new(r->context, r->name, NULL, 0)};
  diag_error_as(r->context, DIAG_ARGUMENT, pos, "%s", r->why);
}

int messages_refuse(const char *name, const char *why, PleatMessages **messages) {
  Refusal refusal = {context_new(), name, why};
  if (!refusal.context) return messages_no_memory(messages);
  bool done = context_protect(refusal.context, refuse, &refusal);
  int status = messages_take(refusal.context, done, messages);
  context_free(refusal.context);
  return status;
}

typedef struct Logging {
  Context *context, *from;
  int *next;
  void (*log)(void *env, const PleatMessage *message);
  void *env;
} Logging;

static void log_new(void *arg) {
  Logging *l = arg;
  PleatMessages messages = {.context = l->context};
  Taking taking = {l->from, &messages, {0}};
  for (; *l->next < l->from->diags.count; ++*l->next)
    add_diag(&taking, &l->from->diags.items[*l->next]);
  close_notes(&taking);
  for (int i = 0; i < messages.all.count; i++) l->log(l->env, &messages.all.items[i]);
}

void messages_log(const PleatRequest *request, Context *context, int *next) {
  if (!request->log || *next >= context->diags.count) return;
  Logging logging = {context_new(), context, next, request->log, request->hook_env};
  if (logging.context) context_protect(logging.context, log_new, &logging);
  *next = context->diags.count;
  context_free(logging.context);
}

// ---- Reading messages ---------------------------------------------------------------------------

int pleat_messages_count(const PleatMessages *messages) {
  return messages ? messages->all.count : 0;
}

const PleatMessage *pleat_messages_get(const PleatMessages *messages, int i) {
  return i >= 0 && i < pleat_messages_count(messages) ? &messages->all.items[i] : NULL;
}

const char *pleat_messages_text(const PleatMessages *messages) {
  return messages ? messages->text : "";
}

int pleat_check(int status, PleatMessages **messages) {
  if (!messages) return status;
  fputs(pleat_messages_text(*messages), stderr);
  pleat_messages_free(*messages);
  *messages = NULL;
  return status;
}

void pleat_messages_free(PleatMessages *messages) {
  if (!messages || messages == &no_memory) return;
  context_free(messages->context);
  free(messages);
}
