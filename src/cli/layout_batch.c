// SPDX-License-Identifier: Apache-2.0
// `pleat layout --batch`: a JSON object a line in, one a line out, in order. Each line has a
// context of its own, so that memory does not grow and no answer is remembered from a line before.
// A line is answered before the next is read unless they come from a file.
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/layout_request.h"

typedef struct Line {
  Context *context;
  const char *text;
  size_t size;
  int64_t number;
  json_t *fields, *out; // owned
  LayoutReply reply;
  bool answered, certificates;
} Line;

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

// The first error; whatever else was found stands in its "notes".
static json_t *diags_json(const Line *line) {
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

static void set_error(Line *line, json_t *error) {
  json_object_set_new(error, "line", json_integer(line->number));
  json_object_set_new(line->out, "error", error);
}

// ---- A line -----------------------------------------------------------------------------------

// The id of a line that is not JSON as a whole.
static json_t *find_id(const Line *line) {
  static const char key[] = "\"id\":";
  const char *at = memmem(line->text, line->size, key, sizeof key - 1);
  if (!at) return NULL;
  at += sizeof key - 1;
  size_t rest = (size_t)(line->text + line->size - at);
  return json_loadb(at, rest, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
}

static void read_fields(Line *line) {
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
  Line *line = arg;
  line->answered =
      layout_request_answer(line->context, line->fields, line->certificates, &line->reply);
}

static void answer_line(Line *line) {
  line->out = json_object();
  read_fields(line);
  if (!line->fields) return;
  if (!context_protect(line->context, answer_body, line))
    set_error(line, json_pack("{s:s}", "message", line->context->failure_message));
  else if (!line->answered)
    set_error(line, diags_json(line));
  else
    layout_reply_set(&line->reply, line->out);
}

static const char NO_MEMORY[] = "{\"id\": null, \"error\": {\"message\": \"out of memory\"}}";

char *layout_batch_answer(const char *text, size_t size, int64_t number, bool certificates,
                          bool *answered) {
  Line line = {.context = context_new(),
               .text = text,
               .size = size,
               .number = number,
               .certificates = certificates};
  *answered = false;
  if (!line.context) return strdup(NO_MEMORY);
  answer_line(&line);
  char *reply = json_dumps(line.out, 0);
  *answered = reply && !json_object_get(line.out, "error");
  layout_reply_free(&line.reply);
  json_decref(line.out);
  json_decref(line.fields);
  context_free(line.context);
  return reply ? reply : strdup(NO_MEMORY);
}

static bool is_blank(const char *text, size_t size) {
  return strspn(text, " \t\r\n") >= size;
}

// True when the line was answered.
static bool do_line(const char *text, size_t size, int64_t number, bool certificates) {
  bool answered;
  char *reply = layout_batch_answer(text, size, number, certificates, &answered);
  puts(reply ? reply : NO_MEMORY);
  free(reply);
  return answered;
}

// ---- The file ---------------------------------------------------------------------------------

static bool is_regular(FILE *file) {
  struct stat about;
  return fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode);
}

int layout_batch(Context *context, const char *path, bool certificates) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
  if (!file) {
    diag_error(context, (SourcePos){.file = source_file_new(context, path, NULL, 0)}, "%s",
               strerror(errno));
    return STATUS_BAD;
  }
  bool at_once = !is_regular(file), good = true;
  char *text = NULL;
  size_t capacity = 0;
  ssize_t size;
  for (int64_t number = 1; (size = getline(&text, &capacity, file)) >= 0; number++) {
    if (is_blank(text, (size_t)size)) continue;
    good &= do_line(text, (size_t)size, number, certificates);
    if (at_once) fflush(stdout);
  }
  free(text);
  if (file != stdin) fclose(file);
  return good ? STATUS_DONE : STATUS_BAD;
}

void layout_batch_help(FILE *out) {
  fputs(
      "pleat layout --batch FILE   (or -)\n\n"
      "One JSON object a line in, one a line out, in order:\n"
      "  {\"id\": 7, \"op\": \"divide\", \"a\": LAYOUT, \"b\": LAYOUT}\n"
      "  LAYOUT = {\"layout\": \"NCHW16c\", \"shape\": [1, \"C\", 7, 7], \"physical\": [...],\n"
      "            \"where\": [\"C % 16 == 0\", \"C <= 512\"], \"order\": \"NCHW\", "
      "\"padding\": 0}\n"
      "  (all but \"layout\" may be absent; a shape that neither \"shape\" nor the spelling says\n"
      "   is a name for each axis, NxCxHxW, or, for a \"b\" of the same tensor, that of \"a\")\n\n"
      "  {\"id\", \"answer\", \"witness\", \"certificate\", \"level\", \"ns\"}\n"
      "  answer       as below; \"no\" and \"unknown\" come with a \"reason\" where a word helps\n"
      "  witness      of a \"no\": an index, or a list of two that share a place; onto: a place\n"
      "  values       of the symbols, where the witness is of one instance\n"
      "  certificate  a text that shows the answer, for pleat-check; null: none was found\n"
      "  level        what decided it: digits, isl or points\n"
      "  ns           time of the question alone, without reading its layouts\n"
      "  error        instead of an answer: {\"message\", \"field\", \"column\", \"end\", "
      "\"text\", \"line\"}\n\n",
      out);
  Arena arena = {0};
  Table table = table_new(&arena, "llll");
  table_cell(&table, "op");
  table_cell(&table, "also reads");
  table_cell(&table, "answer");
  table_cell(&table, "is");
  for (int i = 0; i < layout_operation_count; i++) {
    const LayoutOperation *row = &layout_operations[i];
    table_cell(&table, "%s", row->name);
    table_cell(&table, "%s", row->fields);
    table_cell(&table, "%s", row->answer);
    table_cell(&table, "%s", row->help);
  }
  table_print(&table, out);
  arena_free(&arena);
}
