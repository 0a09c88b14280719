// SPDX-License-Identifier: Apache-2.0
// Writes a report as text: with its fields in the order in which they were set, and numbers with
// nine digits.
#include "report/report.h"

#include <stdlib.h>

char *report_text(json_t *object) {
  char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(object);
  size_t size = text ? strlen(text) : 0;
  char *line = text ? realloc(text, size + 2) : NULL;
  if (line)
    memcpy(line + size, "\n", 2);
  else
    free(text);
  return line;
}
