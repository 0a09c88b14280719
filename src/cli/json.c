// SPDX-License-Identifier: Apache-2.0
// Prints the result of `--json`: one object on standard output, with its fields in the order in
// which they were set.
#include "cli/cli.h"

#include <jansson.h>
#include <stdlib.h>

// Jansson returns NULL when memory runs out; this function then raises the usual memory error.
int json_print(Cli *cli, json_t *object) {
  char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(object);
  if (!text) bug(cli->context, "no JSON could be made");
  puts(text);
  free(text);
  return STATUS_DONE;
}
