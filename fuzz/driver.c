// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: on every file of a corpus folder, and then on a number of
// mutants of these files, which are the same in every run. `driver FOLDER COUNT [SEED]`, or `driver
// FILE` for one input. An input that makes the target fail is written to standard error.
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096, MOST_FILES = 1024 };

typedef struct Input {
  uint8_t data[MOST];
  size_t size;
} Input;

static Input *corpus[MOST_FILES], current;
static int corpus_count;
static uint64_t seed = 1;

static size_t below(size_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return n ? (size_t)(seed >> 33) % n : 0;
}

static void on_failure(int signal_number) {
  static const char head[] = "\nthe input was:\n";
  ssize_t done = write(2, head, sizeof head - 1);
  done += write(2, current.data, current.size);
  done += write(2, "\n", 1);
  signal(signal_number, SIG_DFL);
  raise(done < 0 ? SIGABRT : signal_number);
}

static void run(void) {
  LLVMFuzzerTestOneInput(current.data, current.size);
}

static bool load(const char *path, Input *out) {
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  out->size = fread(out->data, 1, MOST, file);
  while (out->size && out->data[out->size - 1] == '\n') out->size--;
  fclose(file);
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load_folder(const char *folder) {
  char *names[MOST_FILES];
  int count = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (*entry->d_name != '.' && count < MOST_FILES) names[count++] = strdup(entry->d_name);
  if (dir) closedir(dir);
  qsort(names, (size_t)count, sizeof *names, by_name);
  for (int i = 0; i < count; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    Input *input = calloc(1, sizeof *input);
    if (load(path, input))
      corpus[corpus_count++] = input;
    else
      free(input);
    free(names[i]);
  }
}

// ---- Mutation ----------------------------------------------------------------------------------

static void replace(size_t at, size_t removed, const void *data, size_t size) {
  size_t tail = current.size - at - removed;
  if (current.size - removed + size > MOST) return;
  uint8_t copy[MOST];
  memcpy(copy, data, size);
  memmove(current.data + at + size, current.data + at + removed, tail);
  memcpy(current.data + at, copy, size);
  current.size = current.size - removed + size;
}

static void insert_token(size_t at) {
  static const char *const tokens[] = {
      "(",    ")",       "[",    "]",      "{",          "}",
      ":",    ",",       ";",    "|",      "@",          "+",
      "-",    "*",       "//",   "%",      "^",          "&",
      "<<",   ">>",      "->",   "=",      "0",          "1",
      "2",    "7",       "63",   "64",     "4294967296", "9223372036854775807",
      "in [", "lambda",  "Sw<",  "S[",     "R[",         "T(",
      "min(", "select(", " if ", " else ", "a",          "b",
      "i",    "r=2",     "of",   "size=",  "stride=",    "_",
      "o",    "@lane",   "16c",  "\n",
  };
  const char *token = tokens[below(sizeof tokens / sizeof *tokens)];
  replace(at, below(2) ? 0 : below(2) && at < current.size, token, strlen(token));
}

static void mutate(void) {
  size_t at = below(current.size + 1), size = below(1 + below(16));
  const Input *other = corpus[below((size_t)corpus_count)];
  if (size > current.size - at) size = current.size - at;
  switch (below(6)) {
  case 0: replace(at, size, "", 0); break;
  case 1: replace(at, 0, current.data + at, size); break;
  case 2: {
    size_t from = below(other->size), length = below(other->size - from + 1);
    replace(at, size, other->data + from, length);
    break;
  }
  case 3: {
    uint8_t byte = (uint8_t)(below(8) ? 32 + below(95) : below(256));
    replace(at, at < current.size, &byte, 1);
    break;
  }
  default: insert_token(at); break;
  }
}

int main(int argc, char **argv) {
  struct stat info;
  if (argc < 2 || stat(argv[1], &info)) {
    fprintf(stderr, "usage: %s FILE | FOLDER COUNT [SEED]\n", argv[0]);
    return 2;
  }
  signal(SIGABRT, on_failure);
  signal(SIGSEGV, on_failure);
  if (!S_ISDIR(info.st_mode)) {
    load(argv[1], &current);
    run();
    return 0;
  }
  load_folder(argv[1]);
  long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
  if (argc > 3) seed = strtoull(argv[3], NULL, 10);
  for (int i = 0; i < corpus_count; i++) {
    current = *corpus[i];
    run();
  }
  for (long i = 0; i < count && corpus_count; i++) {
    current = *corpus[below((size_t)corpus_count)];
    for (size_t steps = 1 + below(4); steps; steps--) mutate();
    run();
  }
  printf("%d inputs, %ld mutants\n", corpus_count, count);
  for (int i = 0; i < corpus_count; i++) free(corpus[i]);
  return corpus_count ? 0 : 1;
}
