// SPDX-License-Identifier: Apache-2.0
// Shared libraries: the object goes to a temporary folder, the linker's output is read back and
// written as every output is.
#include "target/link.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool fail(Context *context, const char *path, const char *why) {
  return diag_error(context, (SourcePos){NULL}, "%s: %s", path, why);
}

// The linker's exit status; -1 when it cannot be started.
static int run_linker(const char *object, const char *output) {
  const char *cc = getenv("CC");
  if (!cc || !*cc) cc = "cc";
  const char *arguments[] = {cc, "-shared", "-o", output, object, "-lm", NULL};
  pid_t child;
  int status;
  if (posix_spawnp(&child, cc, NULL, NULL, (char *const *)arguments, environ)) return -1;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool link_in_folder(Context *context, const Text *object, const char *folder,
                           const char *path) {
  Arena *arena = &context->scratch;
  const char *input = arena_printf(arena, "%s/unit.o", folder);
  const char *output = arena_printf(arena, "%s/unit.so", folder);
  bool done = file_write(context, input, object->data, object->size);
  int status = done ? run_linker(input, output) : 1;
  if (done && status < 0) fail(context, path, "no linker: `cc` (or $CC) cannot be started");
  if (done && status > 0) fail(context, path, "the linker failed; what it said is above");
  size_t size;
  char *bytes = status == 0 ? file_read(context, arena, output, &size) : NULL;
  if (bytes) done = file_write(context, path, bytes, size);
  unlink(input);
  unlink(output);
  return bytes && done;
}

bool link_shared(Context *context, const Text *object, const char *path) {
  const char *place = getenv("TMPDIR");
  char *folder = arena_printf(&context->scratch, "%s/pleat-XXXXXX", place ? place : "/tmp");
  if (!mkdtemp(folder)) return fail(context, folder, "cannot be made");
  bool done = link_in_folder(context, object, folder, path);
  rmdir(folder);
  return done;
}
