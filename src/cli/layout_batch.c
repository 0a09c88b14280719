// SPDX-License-Identifier: Apache-2.0
// `pleat layout --batch`: reads a JSON object from each line of a file and writes one to each line
// of the output, in order. A line from a pipe is answered before the next one is read.
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/layout_show.h"

static bool is_blank(const char *text, size_t size) {
  return strspn(text, " \t\r\n") >= size;
}

// True when the line was answered.
static bool do_line(const char *text, size_t size, int64_t number, bool certificates) {
  bool answered;
  char *reply = query_line(text, size, number, certificates, &answered);
  puts(reply ? reply : "{\"id\": null, \"error\": {\"message\": \"out of memory\"}}");
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
      "Reads a JSON object from each line, and writes one on a line for it, in order:\n"
      "  {\"id\": 7, \"op\": \"divide\", \"a\": LAYOUT, \"b\": LAYOUT}\n"
      "  LAYOUT = {\"layout\": \"NCHW16c\", \"shape\": [1, \"C\", 7, 7], \"physical\": [...],\n"
      "            \"where\": [\"C % 16 == 0\", \"C <= 512\"], \"order\": \"NCHW\", "
      "\"padding\": 0}\n"
      "  Only \"layout\" is required. Without \"shape\", the shape is the one that the spelling "
      "says,\n"
      "  or for a \"b\" of the same tensor that of \"a\", or a name for each axis: NxCxHxW.\n\n"
      "The reply: {\"id\", \"answer\", \"witness\", \"certificate\", \"level\", \"ns\"}\n"
      "  answer       see below; \"no\" and \"unknown\" may come with a \"reason\"\n"
      "  witness      of a \"no\": an index that refutes it, or two that have one physical index;\n"
      "               of onto: a physical index\n"
      "  values       the values of the symbols at which the witness refutes it\n"
      "  certificate  a text with which pleat-check checks the answer; null: none was found\n"
      "  level        the method that decided: digits, isl or points\n"
      "  ns           the time of the question in nanoseconds, without reading its layouts\n"
      "  error        instead of an answer: {\"message\", \"field\", \"column\", \"end\", "
      "\"text\", \"line\"}\n\n",
      out);
  Arena arena = {0};
  Table table = table_new(&arena, "llll");
  table_cell(&table, "op");
  table_cell(&table, "also reads");
  table_cell(&table, "answer");
  table_cell(&table, "meaning");
  for (int i = 0; i < query_row_count; i++) {
    const QueryRow *row = &query_rows[i];
    table_cell(&table, "%s", row->name);
    table_cell(&table, "%s", row->fields);
    table_cell(&table, "%s", row->answer);
    table_cell(&table, "%s", row->help);
  }
  table_print(&table, out);
  arena_free(&arena);
}
