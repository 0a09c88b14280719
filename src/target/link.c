// SPDX-License-Identifier: Apache-2.0
// Makes shared libraries by the system's C compiler. The input is written to a temporary folder;
// the compiler's output is read back and written in one piece, as every output is.
#include "target/link.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ARGUMENTS = 64 };

typedef struct LinkCommand {
  const char *words[MAX_ARGUMENTS];
  int count;
} LinkCommand;

static bool fail(Context *context, const char *path, const char *why) {
  return diag_error(context, (SourcePos){NULL}, "%s: %s", path, why);
}

static void add(LinkCommand *command, const char *word) {
  if (command->count + 1 < MAX_ARGUMENTS) command->words[command->count++] = word;
}

static void add_all(LinkCommand *command, Arena *arena, const char *words) {
  char *copy = arena_printf(arena, "%s", words), *rest = NULL;
  for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    add(command, word);
}

static LinkCommand command_for(Arena *arena, const char *input, const char *kind, const char *flags,
                               const char *output) {
  const char *cc = getenv("CC");
  LinkCommand command = {.count = 0};
  add_all(&command, arena, cc && *cc ? cc : "cc");
  add_all(&command, arena, "-shared -fPIC");
  const char *users = getenv("CFLAGS");
  if (!strcmp(kind, ".c")) add_all(&command, arena, "-std=gnu11 -O2 -fno-math-errno -w");
  if (!strcmp(kind, ".c") && users) add_all(&command, arena, users);
  if (!strcmp(kind, ".c")) add_all(&command, arena, flags);
  add(&command, "-o");
  add(&command, output);
  add(&command, input);
  add(&command, "-lm");
  return command;
}

// The exit status of the command, or -1 when it cannot be started.
static int run_command(const LinkCommand *command) {
  pid_t child;
  int status;
  if (posix_spawnp(&child, command->words[0], NULL, NULL, (char *const *)command->words, environ))
    return -1;
  temporary_command(child);
  bool ended = waitpid(child, &status, 0) == child;
  temporary_command(0);
  if (!ended) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool link_in_folder(Context *context, FileSet *files, const Text *bytes, const char *kind,
                           const char *flags, const char *folder, const char *path) {
  Arena *arena = &context->scratch;
  const char *input = temporary_file(context, folder, arena_printf(arena, "unit%s", kind));
  const char *output = temporary_file(context, folder, "unit.so");
  bool done = file_write(context, input, bytes->data, bytes->size);
  LinkCommand command = command_for(arena, input, kind, flags, output);
  int status = done ? run_command(&command) : 1;
  if (done && status < 0) fail(context, path, "no compiler: `cc` (or $CC) cannot be started");
  if (done && status > 0) fail(context, path, "the C compiler failed; what it said is above");
  size_t size;
  char *result = status == 0 ? file_read(context, arena, output, &size) : NULL;
  if (result) done = file_set_write(files, path, result, size);
  temporary_remove(input);
  temporary_remove(output);
  return result && done;
}

bool link_shared(Context *context, FileSet *files, const Text *bytes, const char *kind,
                 const char *flags, const char *path) {
  const char *folder = temporary_folder(context);
  if (!folder) return false;
  bool done = link_in_folder(context, files, bytes, kind, flags, folder, path);
  temporary_remove(folder);
  return done;
}
