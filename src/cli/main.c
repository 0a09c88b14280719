// SPDX-License-Identifier: Apache-2.0
// `pleat <subcommand>`: finds the subcommand's row, reads the options, runs it inside
// context_protect, and prints the diagnostics. Exit status: 0 done; 1 the check failed or the input
// is bad; 2 wrong use; 3 an internal error, or memory ran out.
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void help_print(FILE *out) {
  fprintf(out, "usage: pleat SUBCOMMAND [OPTIONS] FILE\n"
               "       pleat SUBCOMMAND -h     its options and a worked example\n"
               "       pleat --version         the version and the optional parts\n\n");
  for (int i = 0; i < COMMAND_COUNT; i++)
    fprintf(out, "  %-10s %s\n", command_table[i]->name, command_table[i]->summary);
}

static int unknown_word(const char *word) {
  const char *names[COMMAND_COUNT + 2];
  for (int i = 0; i < COMMAND_COUNT; i++) names[i] = command_table[i]->name;
  names[COMMAND_COUNT] = "--version";
  names[COMMAND_COUNT + 1] = "--help";
  const char *nearest = nearest_name(word, names, COMMAND_COUNT + 2);
  const char *kind = word[0] == '-' ? "option" : "subcommand";
  fprintf(stderr, "pleat: unknown %s '%s'", kind, word);
  if (nearest) fprintf(stderr, "; did you mean '%s'?", nearest);
  fprintf(stderr, "\n'pleat --help' lists the subcommands\n");
  return STATUS_MISUSE;
}

typedef struct Call {
  Cli *cli;
  const char *const *arguments;
  int count, status;
} Call;

static void call_command(void *arg) {
  Call *call = arg;
  Cli *cli = call->cli;
  bool help = false;
  const Command *command = cli->command;
  void *options = arena_alloc(&cli->context->arena, command->options_size + 1);
  if (command->defaults) memcpy(options, command->defaults, command->options_size);
  if (!options_parse(cli, call->arguments, call->count, options, &help)) {
    call->status = STATUS_MISUSE;
  } else if (help) {
    command_help(command, stdout);
  } else if (cli->output && !file_can_write(cli->context, cli->output)) {
    call->status = STATUS_BAD; // before any work is done
  } else {
    call->status = command->run(cli, options);
    if (call->status == STATUS_DONE && cli->context->error_count) call->status = STATUS_BAD;
  }
}

static bool terminal_shows_colour(void) {
  const char *term = getenv("TERM");
  return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

// Standard output may be a full disk, or closed. Returns 0, or the reason why it is not written.
// The reason of an earlier write that failed is no longer known: one more write fails for it too.
static int output_failure(void) {
  errno = 0;
  bool failed = fflush(stdout) != 0 || ferror(stdout);
  if (failed && !errno) {
    fputc('\n', stdout);
    fflush(stdout);
  }
  return !failed ? 0 : errno ? errno : EIO;
}

// Reports on standard error when the output could not be written.
static int end_of_text(void) {
  int reason = output_failure();
  if (!reason) return STATUS_DONE;
  fprintf(stderr, "pleat: cannot write standard output: %s\n", strerror(reason));
  return STATUS_BAD;
}

// Takes the numbers of standard streams that are closed, so that no file of the command gets one of
// them; writing to them still fails. A file that grows over its limit is reported, as other errors.
static void prepare_process(void) {
  for (int i = 0; i <= STDERR_FILENO; i++)
    if (fcntl(i, F_GETFD) < 0) open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  signal(SIGXFSZ, SIG_IGN);
  temporary_remove_on_signals();
}

// Prints the diagnostics: with --json in the object on standard output, else on standard error.
static void print_diagnostics(Cli *cli) {
  const Context *context = cli->context;
  if (cli->json && json_end(cli)) return;
  diag_print_all(cli->context, stderr);
  if (context->failure != FAILURE_NONE) fprintf(stderr, "pleat: %s\n", context->failure_message);
}

static int run_command(const Command *command, const char *const *arguments, int count) {
  Cli cli = {.context = context_new(), .command = command, .color = terminal_shows_colour()};
  if (!cli.context) return STATUS_FAULT;
  Call call = {&cli, arguments, count, STATUS_DONE};
  bool done = context_protect(cli.context, call_command, &call);
  print_diagnostics(&cli);
  if (end_of_text() == STATUS_BAD && call.status == STATUS_DONE) call.status = STATUS_BAD;
  context_free(cli.context);
  return done ? call.status : STATUS_FAULT;
}

int main(int argc, char **argv) {
  prepare_process();
  if (argc < 2) return help_print(stderr), STATUS_MISUSE;
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0) return version_print(stdout), end_of_text();
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
    return help_print(stdout), end_of_text();
  const Command *command = command_find(word);
  if (!command) return unknown_word(word);
  return run_command(command, (const char *const *)argv + 2, argc - 2);
}
