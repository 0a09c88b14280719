// SPDX-License-Identifier: Apache-2.0
// The processes, the corpus and the command line of fuzz targets that take whole files.
#include "files.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { LIMIT_ADDRESSES = 0 }; // a sanitizer's shadow memory takes terabytes
#else
enum { LIMIT_ADDRESSES = 1 };
#endif

enum { MOST_FILES = 4096, MOST_FILE_BYTES = 64 << 10, SECONDS = 10, EXIT_FAULT = 3 };
static const size_t MEMORY = (size_t)2 << 30;

// ---- One file ---------------------------------------------------------------------------------

typedef struct Trial {
  Context *context;
  const char *path;
} Trial;

static void try_file(void *arg) {
  Trial *trial = arg;
  fuzz_try(trial->context, trial->path);
}

static bool file_is_handled(const char *path) {
  Trial trial = {context_new(), path};
  trial.context->memory_limit = MEMORY;
  bool ok = context_protect(trial.context, try_file, &trial);
  if (!ok) fprintf(stderr, "%s\n", trial.context->failure_message);
  context_free(trial.context);
  return ok;
}

void fuzz_fault(Context *context, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  diag_print_all(context, stderr);
  bug(context, "the file is handled wrongly");
}

static bool run_apart(const char *path) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit memory = {MEMORY, MEMORY}, core = {0, 0};
    if (LIMIT_ADDRESSES) setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS});
    alarm(20 * SECONDS); // of real time, on a busy machine
    _exit(file_is_handled(path) ? 0 : EXIT_FAULT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFSIGNALED(status))
    fprintf(stderr, "signal %d: %s\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return false;
}

// ---- The corpus -------------------------------------------------------------------------------

typedef struct Corpus {
  Context *context;
  FuzzFile files[MOST_FILES];
  int count;
} Corpus;

static void add_file(Corpus *corpus, const char *path, off_t bytes) {
  size_t size, ending = strlen(fuzz_ending), length = strlen(path);
  if (bytes > MOST_FILE_BYTES || length < ending || corpus->count == MOST_FILES) return;
  if (strcmp(path + length - ending, fuzz_ending) != 0) return;
  char *data = file_read(corpus->context, &corpus->context->arena, path, &size);
  if (data) corpus->files[corpus->count++] = (FuzzFile){data, size};
}

// Adds the files of the folder and of the folders in it, in the order of their names.
static void add_folder(Corpus *corpus, const char *folder, int depth) {
  enum { MOST_DEPTH = 8 };
  struct dirent **entries;
  int count = depth < MOST_DEPTH ? scandir(folder, &entries, NULL, alphasort) : -1;
  for (int i = 0; i < count; i++) {
    struct stat info;
    const char *name = entries[i]->d_name;
    const char *path = arena_printf(&corpus->context->arena, "%s/%s", folder, name);
    bool is_seen = *name != '.' && stat(path, &info) == 0;
    if (is_seen && S_ISDIR(info.st_mode)) add_folder(corpus, path, depth + 1);
    if (is_seen && S_ISREG(info.st_mode)) add_file(corpus, path, info.st_size);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

// ---- Mutants ----------------------------------------------------------------------------------

size_t fuzz_below(Mutator *mutator, size_t n) {
  mutator->seed = mutator->seed * 6364136223846793005u + 1442695040888963407u;
  return n ? (size_t)(mutator->seed >> 33) % n : 0;
}

static bool try_bytes(Context *context, const char *path, const char *data, size_t size,
                      const char *kept) {
  bool ok = file_write(context, path, data, size) && run_apart(path);
  if (!ok && kept) file_write(context, kept, data, size);
  if (!ok) fprintf(stderr, "failed: %s\n", kept ? kept : path);
  return ok;
}

// File i of the corpus, or behind them a mutant.
static bool try_number(const Corpus *corpus, long i, uint64_t seed, const char *path,
                       const char *keep) {
  Context *context = context_new();
  Mutator mutator = {&context->arena, seed * 1000003 + (uint64_t)i, corpus->files, corpus->count};
  fuzz_below(&mutator, 2);
  bool whole = i < corpus->count;
  FuzzFile file = corpus->files[whole ? (size_t)i : fuzz_below(&mutator, (size_t)corpus->count)];
  Text mutant = {.data = (char *)file.data, .size = file.size};
  if (!whole) mutant = fuzz_mutant(&mutator, file);
  const char *kept = keep ? arena_printf(&context->arena, "%s/%llu-%ld%s", keep,
                                         (unsigned long long)seed, i, fuzz_ending)
                          : NULL;
  bool ok = try_bytes(context, path, mutant.data ? mutant.data : "", mutant.size, kept);
  context_free(context);
  return ok;
}

static int fuzz(const char *folder, long count, uint64_t seed, const char *keep) {
  static Corpus corpus;
  char place[] = "/tmp/pleat-fuzz-XXXXXX";
  corpus.context = context_new();
  add_folder(&corpus, folder, 0);
  if (!corpus.count || !mkdtemp(place))
    return fprintf(stderr, "no files *%s in %s\n", fuzz_ending, folder), 2;
  const char *path = arena_printf(&corpus.context->arena, "%s/m%s", place, fuzz_ending);
  int failed = 0;
  for (long i = 0; i < corpus.count + count; i++)
    failed += !try_number(&corpus, i, seed, path, keep);
  printf("%d files, %ld mutants, %d failed\n", corpus.count, count, failed);
  unlink(path);
  rmdir(place);
  context_free(corpus.context);
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  if (argc == 2) return file_is_handled(argv[1]) ? 0 : 1;
  if (argc < 3) return fprintf(stderr, "%s FOLDER COUNT [SEED [KEEP]] | FILE\n", argv[0]), 2;
  return fuzz(argv[1], atol(argv[2]), argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
              argc > 4 ? argv[4] : NULL);
}
