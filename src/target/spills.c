// SPDX-License-Identifier: Apache-2.0
// Counts the instructions in inner loops that move vectors to or from the stack, which show that
// the vectors of a loop do not fit the registers. A loop is a label and a later jump back to it; an
// innermost loop has no other one between the two. The input is assembly as LLVM and GCC print it
// for x86-64 (AT&T syntax).
#include "target/target.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct AssemblyLine {
  const char *text;
  int size;
} AssemblyLine;

typedef struct AssemblyLines {
  AssemblyLine *items;
  int count;
} AssemblyLines;

static AssemblyLines split(const char *assembly) {
  AssemblyLines lines = {NULL};
  int capacity = 0;
  for (const char *at = assembly; *at;) {
    int size = (int)strcspn(at, "\n");
    if (lines.count == capacity) {
      AssemblyLine *more =
          realloc(lines.items, sizeof(AssemblyLine) * (size_t)(capacity = 2 * capacity + 64));
      if (!more) break;
      lines.items = more;
    }
    lines.items[lines.count++] = (AssemblyLine){at, size};
    at += size + (at[size] == '\n');
  }
  return lines;
}

static bool has(AssemblyLine line, const char *word) {
  return memmem(line.text, (size_t)line.size, word, strlen(word)) != NULL;
}

// The label to which this line jumps, or NULL.
static const char *jump_target(AssemblyLine line, int *size) {
  int at = 0;
  while (at < line.size && isspace((unsigned char)line.text[at])) at++;
  if (at == line.size || line.text[at] != 'j') return NULL;
  while (at < line.size && !isspace((unsigned char)line.text[at])) at++;
  while (at < line.size && isspace((unsigned char)line.text[at])) at++;
  const char *label = line.text + at;
  *size = 0;
  while (at + *size < line.size && !isspace((unsigned char)label[*size])) ++*size;
  return *size && label[0] == '.' ? label : NULL;
}

// The line of the label to which line `jump` goes back, or -1.
static int loop_begin(const AssemblyLines *lines, int jump) {
  int size;
  const char *label = jump_target(lines->items[jump], &size);
  for (int i = label ? jump - 1 : -1; i >= 0; i--) {
    AssemblyLine line = lines->items[i];
    if (line.size > size && line.text[size] == ':' && !memcmp(line.text, label, (size_t)size))
      return i;
    if (has(line, ".cfi_startproc")) return -1;
  }
  return -1;
}

static bool is_vector_stack_move(AssemblyLine line) {
  bool vector = has(line, "%xmm") || has(line, "%ymm") || has(line, "%zmm");
  return vector && has(line, "(%rsp");
}

int target_count_spills(const char *assembly) {
  AssemblyLines lines = split(assembly);
  int spills = 0, last_begin = -1;
  for (int i = 0; i < lines.count; i++) {
    int begin = loop_begin(&lines, i);
    if (begin < 0 || begin <= last_begin)
      continue; // not a loop, or one around a loop that was counted
    last_begin = begin;
    for (int k = begin; k <= i; k++) spills += is_vector_stack_move(lines.items[k]);
  }
  free(lines.items);
  return spills;
}
