// SPDX-License-Identifier: Apache-2.0
// Answers one line of a batch: a JSON object in, a JSON object out. Each line has a context of its
// own, so that memory does not grow and answers do not depend on earlier lines.
#include <stdlib.h>

#include "query/query.h"

typedef struct RequestLine {
  Context *context;
  const char *text;
  size_t size;
  int64_t number;
  json_t *fields, *out; // owned
  QueryReply reply;
  bool answered, certificates;
} RequestLine;

// ---- Errors -----------------------------------------------------------------------------------

static json_t *diag_json(const Diag *diag) {
  const SourceFile *file = diag->pos.file;
  json_t *object = json_pack("{s:s}", "message", diag->message);
  if (!file) return object;
  json_object_set_new(object, "field", json_string(file->name));
  if (!file->text) return object;
  json_object_set_new(object, "column", json_integer(diag->pos.begin + 1));
  json_object_set_new(object, "end", json_integer(MAX_OF(diag->pos.end, diag->pos.begin + 1)));
  json_object_set_new(object, "text", json_stringn(file->text, file->size));
  return object;
}

// The first diagnostic as JSON, with the others in its "notes".
static json_t *diags_json(const RequestLine *line) {
  json_t *first = NULL, *notes = NULL;
  for (int i = 0; i < line->context->diags.count; i++) {
    json_t *object = diag_json(&line->context->diags.items[i]);
    if (!first) {
      first = object;
      continue;
    }
    if (!notes) json_object_set_new(first, "notes", notes = json_array());
    json_array_append_new(notes, object);
  }
  return first ? first : json_pack("{s:s}", "message", "no answer");
}

static void set_error(RequestLine *line, json_t *error) {
  json_object_set_new(error, "line", json_integer(line->number));
  json_object_set_new(line->out, "error", error);
}

// ---- A line -----------------------------------------------------------------------------------

// Finds the "id" in a line that is not valid JSON.
static json_t *find_id(const RequestLine *line) {
  static const char key[] = "\"id\":";
  const char *at = memmem(line->text, line->size, key, sizeof key - 1);
  if (!at) return NULL;
  at += sizeof key - 1;
  size_t rest = (size_t)(line->text + line->size - at);
  return json_loadb(at, rest, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
}

static void read_fields(RequestLine *line) {
  json_error_t error;
  size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
  line->fields = json_loadb(line->text, line->size, flags, &error);
  json_t *id = line->fields ? json_incref(json_object_get(line->fields, "id")) : find_id(line);
  json_object_set_new(line->out, "id", id ? id : json_null());
  if (line->fields) return;
  set_error(line, json_pack("{s:s, s:s, s:i}", "message", error.text, "field", "json", "column",
                            MAX_OF(error.column, 1)));
}

static void answer_body(void *arg) {
  RequestLine *line = arg;
  line->answered = query_answer(line->context, line->fields, line->certificates, &line->reply);
}

static void answer_line(RequestLine *line) {
  line->out = json_object();
  read_fields(line);
  if (!line->fields) return;
  if (!context_protect(line->context, answer_body, line))
    set_error(line, json_pack("{s:s}", "message", line->context->failure_message));
  else if (!line->answered)
    set_error(line, diags_json(line));
  else
    query_reply_set(&line->reply, line->out);
}

char *query_line(const char *text, size_t size, int64_t number, bool certificates, bool *answered) {
  RequestLine line = {.context = context_new(),
                      .text = text,
                      .size = size,
                      .number = number,
                      .certificates = certificates};
  *answered = false;
  if (!line.context) return NULL;
  answer_line(&line);
  char *reply = json_dumps(line.out, 0);
  *answered = reply && !json_object_get(line.out, "error");
  query_reply_free(&line.reply);
  json_decref(line.out);
  json_decref(line.fields);
  context_free(line.context);
  return reply;
}
