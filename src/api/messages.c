// SPDX-License-Identifier: Apache-2.0
// Turns a context's diagnostics and failures into the status and the text that the library returns.
#include "api/messages.h"

#include <stdlib.h>

#include "pleat/pleat.h"

static int status_of(const Context *context, bool done) {
  switch (context->failure) {
  case FAILURE_NONE: return done && !context->error_count ? PLEAT_OK : PLEAT_REFUSED;
  case FAILURE_BUG: return PLEAT_FAULT;
  case FAILURE_MEMORY: break;
  }
  return PLEAT_NO_MEMORY;
}

typedef struct Report {
  Context *context;
  const char *failure; // NULL: none
  char *text;          // owned
} Report;

static void write_text(void *arg) {
  Report *report = arg;
  Context *context = report->context;
  ArenaMark mark = arena_mark(&context->scratch);
  Text text = text_new(&context->scratch);
  for (int i = 0; i < context->diags.count; i++) diag_print(&context->diags.items[i], &text);
  if (report->failure) text_printf(&text, "%s\n", report->failure);
  if (text.size) report->text = strdup(text_string(&text));
  arena_reset(&context->scratch, mark);
}

int messages_take(Context *context, bool done, char **messages) {
  int status = status_of(context, done);
  Report report = {context, context->failure == FAILURE_NONE ? NULL : context->failure_message};
  if (messages && !context_protect(context, write_text, &report)) report.text = NULL;
  if (messages) *messages = report.text;
  if (messages && !report.text && status != PLEAT_OK) *messages = strdup("out of memory\n");
  context->diags.count = context->error_count = 0;
  return status;
}
