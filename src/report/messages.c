// SPDX-License-Identifier: Apache-2.0
// A context's diagnostics as data, with the fields of PleatMessage in include/pleat/pleat.h.
#include "report/report.h"

#include <stdlib.h>

// A text of `size` bytes. JSON has no bytes outside UTF-8; in such a text each byte that is not
// ASCII becomes a question mark.
static json_t *text_json(const char *text, size_t size) {
  json_t *found = json_stringn(text, size);
  char *copy = found ? NULL : malloc(size);
  if (!copy) return found;
  for (size_t i = 0; i < size; i++) copy[i] = text[i] & 0x80 ? '?' : text[i];
  found = json_stringn(copy, size);
  free(copy);
  return found;
}

static json_t *text_or_null(const char *text) {
  return text ? text_json(text, strlen(text)) : json_null();
}

static json_t *number_or_null(int number) {
  return number ? json_integer(number) : json_null();
}

static json_t *message_json(const Diag *diag) {
  DiagPlace place = diag_place(diag);
  return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:[]}", "severity",
                   diag_severity_name(diag->severity), "code", diag_code_name(diag->code), "file",
                   text_or_null(diag->pos.file ? diag->pos.file->name : NULL), "line",
                   number_or_null(place.line), "column", number_or_null(place.column), "width",
                   number_or_null(place.width), "source",
                   place.source ? text_json(place.source, (size_t)place.source_size) : json_null(),
                   "node", text_or_null(diag->pos.node), "text", text_or_null(diag->message),
                   "notes");
}

static void add(json_t *list, const Diag *diag) {
  json_t *last = json_array_get(list, json_array_size(list) - 1);
  bool is_note = diag->severity == DIAG_NOTE && !diag->alone && last;
  json_array_append_new(is_note ? json_object_get(last, "notes") : list, message_json(diag));
}

json_t *report_messages(const Context *context) {
  json_t *list = json_array();
  for (int i = 0; i < context->diags.count; i++) add(list, &context->diags.items[i]);
  if (context->failure != FAILURE_NONE)
    add(list, &(Diag){.severity = DIAG_ERROR,
                      .code = diag_failure_code(context->failure),
                      .message = context->failure_message});
  return list;
}
