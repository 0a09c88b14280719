// SPDX-License-Identifier: Apache-2.0
// Prints the result of `--json`: one object on standard output, which has the diagnostics too.
#include "cli/cli.h"

#include <stdlib.h>

#include "report/report.h"

// Jansson returns NULL when memory runs out; this function then raises the usual memory error.
int json_print(Cli *cli, json_t *object) {
  if (!object) bug(cli->context, "no JSON could be made");
  cli->result = object;
  return STATUS_DONE;
}

bool json_end(Cli *cli) {
  const Context *context = cli->context;
  json_t *object = cli->result;
  cli->result = NULL;
  if (context->diags.count || context->failure != FAILURE_NONE) {
    if (!object) object = json_object();
    if (json_object_set_new(object, "messages", report_messages(context))) return false;
  }
  if (!object) return true;
  char *text = report_text(object);
  if (text) fputs(text, stdout);
  free(text);
  return text != NULL;
}
