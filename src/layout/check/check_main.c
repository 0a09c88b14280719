// SPDX-License-Identifier: Apache-2.0
// pleat-check [FILE...] checks certificates, one in each file, or one on standard input. It needs
// no other part of Pleat.
#include "layout/check/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ACCEPTED = 0, REJECTED = 1, MISUSE = 2, MOST_BYTES = 1 << 24 };

static const char help[] =
    "usage: pleat-check [FILE...]\n"
    "\n"
    "check certificates of answers about layouts, one in each file\n"
    "\n"
    "  FILE          a certificate; - is standard input, which is also read when no file is named\n"
    "  -h, --help    this text\n"
    "\n"
    "exit status\n"
    "  0             every certificate is accepted\n"
    "  1             a certificate is rejected; a line FILE:LINE: gives the reason\n"
    "  2             a file cannot be read, or an option is not known\n"
    "\n"
    "example:\n"
    "  $ pleat-check injective.cert\n"
    "  injective.cert: accepted\n";

static int refuse(const char *name, const char *why) {
  fprintf(stderr, "pleat-check: cannot read '%s': %s\n", name, why);
  return MISUSE;
}

static int check_text(const char *name, const char *text, size_t size) {
  int line = 1;
  if (size >= MOST_BYTES) return refuse(name, "it is longer than 16 MiB, the most that is checked");
  if (memchr(text, 0, size)) return refuse(name, "it holds a zero byte, so it is no text");
  const char *wrong = layout_check(text, &line);
  if (wrong) printf("%s:%d: rejected: %s\n", name, line, wrong);
  if (!wrong) printf("%s: accepted\n", name);
  return wrong ? REJECTED : ACCEPTED;
}

static int check_file(const char *path) {
  static char text[MOST_BYTES + 1];
  int standard = !strcmp(path, "-");
  const char *name = standard ? "<stdin>" : path;
  struct stat info;
  FILE *file = standard ? stdin : fopen(path, "r");
  if (!file) return refuse(name, strerror(errno));
  size_t size = fread(text, 1, MOST_BYTES, file);
  text[size] = 0;
  int failed = ferror(file) ? errno : 0;
  if (!standard && fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) failed = EISDIR;
  if (!standard) fclose(file);
  return failed ? refuse(name, strerror(failed)) : check_text(name, text, size);
}

// The number of files; -1 for an option that is not known. `--` ends the options.
static int read_arguments(int count, char **arguments, const char **files) {
  int files_count = 0, options = 1;
  for (int i = 1; i < count; i++) {
    const char *word = arguments[i];
    if (options && !strcmp(word, "--")) {
      options = 0;
    } else if (options && word[0] == '-' && word[1]) {
      fprintf(stderr, "pleat-check: unknown option '%s'\n'pleat-check --help' says more\n", word);
      return -1;
    } else {
      files[files_count++] = word;
    }
  }
  return files_count;
}

static int asks_for_help(int count, char **arguments) {
  for (int i = 1; i < count && strcmp(arguments[i], "--"); i++)
    if (!strcmp(arguments[i], "--help") || !strcmp(arguments[i], "-h")) return 1;
  return 0;
}

static int close_output(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  fprintf(stderr, "pleat-check: cannot write standard output: %s\n", strerror(errno));
  return MISUSE;
}

int main(int argc, char **argv) {
  int worst = ACCEPTED;
  if (asks_for_help(argc, argv)) return fputs(help, stdout), close_output(ACCEPTED);
  const char **files = (const char **)argv; // the words are read before they are overwritten
  int count = read_arguments(argc, argv, files);
  if (count < 0) return MISUSE;
  if (!count) files[count++] = "-";
  for (int i = 0; i < count; i++) {
    int status = check_file(files[i]);
    if (status > worst) worst = status;
  }
  return close_output(worst);
}
