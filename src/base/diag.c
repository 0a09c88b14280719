// SPDX-License-Identifier: Apache-2.0
// Keeps diagnostics on the context in the order in which they were found, and prints them with the
// source line. A message that applies to several nodes is printed once, with the names of the
// others.
#include "base/base.h"

enum { MOST_DIAGS = 1000 };

SourceFile *source_file_new(Context *context, const char *name, const char *text, size_t size) {
  SourceFile *file = arena_new(&context->lasting, SourceFile);
  *file = (SourceFile){.name = str_intern(context, name), .text = text, .size = size};
  return file;
}

SourceFile *source_file_copy(Context *context, const char *name, const char *text, size_t size) {
  return source_file_new(context, name, arena_copy(&context->lasting, text, size), size);
}

SourcePos source_file_pos(Context *context, const char *path) {
  return (SourcePos){.file = source_file_new(context, path, NULL, 0)};
}

static void line_column(const SourceFile *file, int32_t offset, int *line, int *column) {
  *line = 1 + file->lines_before;
  *column = 1;
  for (int32_t i = 0; i < offset && (size_t)i < file->size; i++) {
    if (file->text[i] == '\n') {
      ++*line;
      *column = 1;
    } else {
      ++*column;
    }
  }
}

const char *diag_severity_name(DiagSeverity severity) {
  static const char *const names[] = {"error", "warning", "note"};
  return names[severity];
}

const char *diag_code_name(DiagCode code) {
  static const char *const names[] = {
#define DIAG_CODE_WORD(name, word) word,
      DIAG_CODES(DIAG_CODE_WORD)
#undef DIAG_CODE_WORD
  };
  return names[code];
}

DiagCode diag_code_set(Context *context, DiagCode code) {
  DiagCode before = context->diag_code;
  context->diag_code = code;
  return before;
}

static void add(Context *context, DiagSeverity severity, DiagCode code, SourcePos pos,
                const char *format, va_list args) {
  if (severity == DIAG_ERROR) context->error_count++;
  if (context->diags.count >= MOST_DIAGS) return;
  Diag diag = {severity, code, pos, arena_vprintf(&context->lasting, format, args)};
  array_push(&context->lasting, &context->diags, diag);
}

#define DEFINE_REPORT(name, severity)                                                              \
  bool name(Context *context, SourcePos pos, const char *format, ...) {                            \
    va_list args;                                                                                  \
    va_start(args, format);                                                                        \
    add(context, severity, context->diag_code, pos, format, args);                                 \
    va_end(args);                                                                                  \
    return false;                                                                                  \
  }
DEFINE_REPORT(diag_error, DIAG_ERROR)
DEFINE_REPORT(diag_warning, DIAG_WARNING)
DEFINE_REPORT(diag_note, DIAG_NOTE)

bool diag_remark(Context *context, SourcePos pos, const char *format, ...) {
  va_list args;
  int before = context->diags.count;
  va_start(args, format);
  add(context, DIAG_NOTE, context->diag_code, pos, format, args);
  va_end(args);
  if (context->diags.count > before) array_last(&context->diags).alone = true;
  return false;
}

void diag_only_warn(Context *context, int first, int errors) {
  for (int i = first; i < context->diags.count; i++) {
    Diag *diag = &context->diags.items[i];
    if (diag->severity == DIAG_ERROR) diag->severity = DIAG_WARNING;
  }
  context->error_count = errors;
}

void diag_forget(Context *context, int first, int errors) {
  context->diags.count = first;
  context->error_count = errors;
}

bool diag_error_as(Context *context, DiagCode code, SourcePos pos, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(context, DIAG_ERROR, code, pos, format, args);
  va_end(args);
  return false;
}

DiagPlace diag_place(const Diag *diag) {
  const SourceFile *file = diag->pos.file;
  DiagPlace place = {0};
  if (!file || !file->text) return place;
  int32_t begin = MIN_OF(diag->pos.begin, (int32_t)file->size), start = begin, end = begin;
  while (start > 0 && file->text[start - 1] != '\n') start--;
  while ((size_t)end < file->size && file->text[end] != '\n') end++;
  line_column(file, begin, &place.line, &place.column);
  place.width = MAX_OF(1, MIN_OF(diag->pos.end, end) - begin);
  place.source = file->text + start;
  place.source_size = end - start;
  return place;
}

DiagCode diag_failure_code(FailureKind failure) {
  static const DiagCode codes[] = {[FAILURE_BUG] = DIAG_INTERNAL,
                                   [FAILURE_MEMORY] = DIAG_MEMORY,
                                   [FAILURE_CANCELLED] = DIAG_CANCELLED};
  return codes[failure];
}

static void print_place(const Diag *diag, Text *out) {
  if (!diag->pos.file) return;
  DiagPlace place = diag_place(diag);
  text_printf(out, "%s:", diag->pos.file->name);
  if (place.source) text_printf(out, "%d:%d:", place.line, place.column);
  text_puts(out, " ");
}

static bool begins_character(char c) {
  return (c & 0xc0) != 0x80; // in UTF-8, the other bytes of a character are 10xxxxxx
}

// Prints spaces as wide as a part of a line. Tabs stay, so that what follows is below its text.
static void pad_like(const char *text, int size, Text *out) {
  for (int i = 0; i < size; i++)
    if (begins_character(text[i])) text_pad(out, text[i] == '\t' ? '\t' : ' ', 1);
}

// The line of source that holds the position, its number, and carets below the range. A long line
// is cut around the position.
static void print_excerpt(const Diag *diag, Text *out) {
  enum { MOST_BEFORE = 80, MOST_AFTER = 120 };
  DiagPlace place = diag_place(diag);
  if (!place.source) return;
  int at = place.column - 1, from = 0, to = place.source_size;
  if (to > MOST_BEFORE + MOST_AFTER) {
    from = MAX_OF(0, at - MOST_BEFORE);
    to = MIN_OF(to, at + MOST_AFTER);
  }
  while (from > 0 && !begins_character(place.source[from])) from--;
  while (to < place.source_size && !begins_character(place.source[to])) to++;
  const char *cut = from ? "…" : "";
  text_printf(out, "%5d | %s%.*s%s\n      | %s", place.line, cut, to - from, place.source + from,
              to < place.source_size ? "…" : "", from ? " " : "");
  pad_like(place.source + from, at - from, out);
  int width = 0;
  for (int i = at; i < MIN_OF(at + place.width, to); i++)
    width += begins_character(place.source[i]);
  text_pad(out, '^', MAX_OF(1, width));
  text_puts(out, "\n");
}

static void print_message(const char *message, Text *out) {
  const char *first_end = strchr(message, '\n');
  text_append(out, message, first_end ? (size_t)(first_end - message) : strlen(message));
  text_puts(out, "\n");
}

static void print_rest(const char *message, Text *out) {
  for (const char *p = strchr(message, '\n'); p; p = strchr(p + 1, '\n')) {
    const char *end = strchr(p + 1, '\n');
    text_printf(out, "   %.*s\n", (int)(end ? end - p - 1 : (ptrdiff_t)strlen(p + 1)), p + 1);
  }
}

void diag_print(const Diag *diag, Text *out) {
  print_place(diag, out);
  text_printf(out, "%s: ", diag_severity_name(diag->severity));
  if (diag->pos.node) text_printf(out, "node '%s': ", diag->pos.node);
  print_message(diag->message, out);
  print_excerpt(diag, out);
  print_rest(diag->message, out);
}

static bool is_like(const Diag *a, const Diag *b) {
  return a->pos.node && b->pos.node && a->severity == b->severity &&
         !strcmp(a->message, b->message);
}

static bool was_printed(const Context *context, int number) {
  const Diag *items = context->diags.items;
  for (int i = 0; i < number; i++)
    if (is_like(&items[i], &items[number])) return true;
  return false;
}

// Lists the other nodes that have the same message.
static void print_others(const Context *context, int number, Text *out) {
  enum { SHOWN = 6 };
  const Diag *items = context->diags.items;
  int count = 0;
  for (int i = number + 1; i < context->diags.count; i++) {
    if (!is_like(&items[i], &items[number])) continue;
    if (++count <= SHOWN)
      text_printf(out, "%s'%s'", count == 1 ? "   the same: " : ", ", items[i].pos.node);
  }
  if (count > SHOWN) text_printf(out, " and %d more", count - SHOWN);
  if (count) text_puts(out, "\n");
}

void diag_print_list(const Context *context, Text *out) {
  for (int i = 0; i < context->diags.count; i++) {
    if (was_printed(context, i)) continue;
    diag_print(&context->diags.items[i], out);
    print_others(context, i, out);
  }
}

void diag_print_all(Context *context, FILE *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  Text text = text_new(&context->scratch);
  diag_print_list(context, &text);
  fputs(text_string(&text), out);
  arena_reset(&context->scratch, mark);
}
