// SPDX-License-Identifier: Apache-2.0
// Temporary files and folders. They are removed when they are no longer needed, when their context
// is freed, and, in a process that asks for it, before a signal ends the process. A signal handler
// may read memory of this file alone, so the paths that exist are noted in a table of the process.
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_NOTED = 64 };

// A path that finds no room is not removed by signals, but in all other cases.
static _Atomic(const char *) noted[MOST_NOTED];
static atomic_int running_command;
static atomic_int owner; // the process that asked: a copy of it must not remove its files

void temporary_note(const char *path) {
  for (int i = 0; i < MOST_NOTED; i++) {
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&noted[i], &none, path)) return;
  }
}

void temporary_forget(const char *path) {
  for (int i = 0; i < MOST_NOTED; i++) {
    const char *same = path;
    if (atomic_compare_exchange_strong(&noted[i], &same, NULL)) return;
  }
}

void temporary_remove(const char *path) {
  if (unlink(path) != 0) rmdir(path);
  temporary_forget(path);
}

static void remove_path(void *path) {
  temporary_remove(path);
}

const char *temporary_folder(Context *context) {
  const char *place = getenv("TMPDIR");
  char *folder = arena_printf(&context->lasting, "%s/pleat-XXXXXX", place ? place : "/tmp");
  if (!mkdtemp(folder)) {
    diag_error_as(context, DIAG_FILE, (SourcePos){NULL}, "%s: cannot be made: %s", folder,
                  strerror(errno));
    return NULL;
  }
  temporary_note(folder);
  context_at_free(context, remove_path, folder);
  return folder;
}

const char *temporary_file(Context *context, const char *folder, const char *name) {
  char *path = arena_printf(&context->lasting, "%s/%s", folder, name);
  temporary_note(path);
  context_at_free(context, remove_path, path);
  return path;
}

void temporary_command(int process) {
  atomic_store(&running_command, process);
}

static void remove_noted(int (*remove_one)(const char *path)) {
  for (int i = 0; i < MOST_NOTED; i++) {
    const char *path = atomic_load(&noted[i]);
    if (path) remove_one(path);
  }
}

// Calls only functions that a signal handler may call. The signal ends the process on return, since
// its action is the default again.
static void end_by_signal(int number) {
  int command = atomic_load(&running_command);
  if (getpid() == atomic_load(&owner)) {
    if (command > 0) kill(command, number);
    remove_noted(unlink);
    remove_noted(rmdir);
  }
  raise(number);
}

void temporary_remove_on_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  atomic_store(&owner, getpid());
  for (int i = 0; i < COUNT_OF(numbers); i++) {
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(numbers[i], &action, NULL);
  }
}
