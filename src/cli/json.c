// SPDX-License-Identifier: Apache-2.0
// `--json`: one object on standard output, its fields in the order in which they were set.
#include "cli/cli.h"

#include <jansson.h>
#include <stdlib.h>

// Jansson reports exhausted memory by NULL; here it leaves as everywhere else.
int json_print(Cli *cli, json_t *object) {
  char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(object);
  if (!text) bug(cli->context, "no JSON could be made");
  puts(text);
  free(text);
  return STATUS_DONE;
}
