// SPDX-License-Identifier: Apache-2.0
// Shows colour and progress for all subcommands, on terminals only.
#include "cli/cli.h"

#include <unistd.h>

enum { PROGRESS_PERIOD_NS = 100000000 };

const char *cli_paint(const Cli *cli, Colour colour) {
  static const char *const codes[] = {
      [COLOUR_NONE] = "\033[0m",  [COLOUR_BOLD] = "\033[1m",   [COLOUR_DIM] = "\033[2m",
      [COLOUR_RED] = "\033[31m",  [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
      [COLOUR_CYAN] = "\033[36m",
  };
  return cli->color ? codes[colour] : "";
}

// ---- Progress --------------------------------------------------------------------------------

Progress progress_begin(const char *what, int64_t total) {
  return (Progress){.what = what, .total = total, .shown = isatty(STDERR_FILENO)};
}

void progress_step(Progress *progress, int64_t done) {
  if (!progress->shown || clock_now_ns() < progress->next_ns) return;
  progress->next_ns = clock_now_ns() + PROGRESS_PERIOD_NS;
  fprintf(stderr, "\r\033[K%s %lld/%lld", progress->what, (long long)done,
          (long long)progress->total);
}

void progress_end(Progress *progress) {
  if (progress->shown && progress->next_ns) fputs("\r\033[K", stderr);
}
