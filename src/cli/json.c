// SPDX-License-Identifier: Apache-2.0
// Prints the result of `--json`: one object on standard output.
#include "cli/cli.h"

#include <stdlib.h>

#include "report/report.h"

// Jansson returns NULL when memory runs out; this function then raises the usual memory error.
int json_print(Cli *cli, json_t *object) {
  char *text = report_text(object);
  if (!text) bug(cli->context, "no JSON could be made");
  fputs(text, stdout);
  free(text);
  return STATUS_DONE;
}
