// SPDX-License-Identifier: Apache-2.0
// `pleat layout`: the layout algebra with no model.
#include "cli/cli.h"
#include "cli/layout_request.h"

typedef struct LayoutCommand {
  const char *batch, *shape;
  bool help_batch, no_certificates;
} LayoutCommand;

static const Option options[] = {
    {"shape", 0, OPTION_TEXT, "1x30x7x7",
     "logical extents: numbers, names, or with commas "
     "expressions",
     offsetof(LayoutCommand, shape)},
    {"batch", 0, OPTION_TEXT, "FILE", "answer a JSON object on each line; - is standard input",
     offsetof(LayoutCommand, batch)},
    {"no-certificates", 0, OPTION_FLAG, NULL, "leave certificates out of answers",
     offsetof(LayoutCommand, no_certificates)},
    {"help-batch", 0, OPTION_FLAG, NULL, "what the lines of --batch say",
     offsetof(LayoutCommand, help_batch)},
};

static int run(Cli *cli, void *given) {
  const LayoutCommand *command = given;
  if (command->help_batch) return layout_batch_help(stdout), STATUS_DONE;
  if (command->batch) return layout_batch(cli->context, command->batch, !command->no_certificates);
  return STATUS_DONE;
}

const Command command_layout = {
    .name = "layout",
    .arguments = "SPEC",
    .summary = "ask a layout anything: offsets, inverse, padding, strides, pictures",
    .example = "",
    .takes = TAKES_JSON,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(LayoutCommand),
    .least_inputs = 0,
    .most_inputs = 1,
    .run = run,
};
