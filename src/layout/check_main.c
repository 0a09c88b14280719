// SPDX-License-Identifier: Apache-2.0
// pleat-check FILE…: checks certificates, one a file (`-`: standard input). Needs no part of it.
#include "layout/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 24 };

static int check_file(const char *name) {
  char message[200], *text = malloc(MAX_TEXT + 1);
  FILE *file = strcmp(name, "-") ? fopen(name, "r") : stdin;
  if (!file || !text) {
    fprintf(stderr, "pleat-check: %s cannot be read\n", name);
    free(text);
    return 2;
  }
  size_t size = fread(text, 1, MAX_TEXT, file);
  text[size] = 0;
  CheckVerdict verdict = layout_check(text, message, sizeof message);
  printf("%s: %s\n", name, message);
  if (file != stdin) fclose(file);
  free(text);
  return verdict != CHECK_ACCEPTED;
}

int main(int count, char **names) {
  int worst = count < 2 ? 2 : 0;
  if (count < 2) fprintf(stderr, "usage: pleat-check FILE ... (`-`: standard input)\n");
  for (int i = 1; i < count; i++) {
    int result = check_file(names[i]);
    if (result > worst) worst = result;
  }
  return worst;
}
