// SPDX-License-Identifier: Apache-2.0
// Finds the nearest of several names by edit distance (Levenshtein), for messages that ask "did you
// mean".
#include "base/base.h"

enum { LONGEST_NAME = 64 };

static int edit_distance(const char *a, const char *b) {
  int row[LONGEST_NAME + 1];
  int n = (int)strlen(b);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int above = row[j];
      int change = diagonal + (a[i - 1] != b[j - 1]);
      row[j] = MIN_OF(change, MIN_OF(above, row[j - 1]) + 1);
      diagonal = above;
    }
  }
  return row[n];
}

const char *nearest_name(const char *word, const char *const *names, int count) {
  const char *best = NULL;
  size_t length = strlen(word);
  int best_distance = (int)length / 2 + 1;
  for (int i = 0; i < count && length <= LONGEST_NAME; i++) {
    if (strlen(names[i]) > LONGEST_NAME) continue;
    int distance = edit_distance(word, names[i]);
    if (distance < best_distance) {
      best = names[i];
      best_distance = distance;
    }
  }
  return best;
}

const char *suggestion_of(Arena *arena, const char *word, const char *const *names, int count) {
  const char *near = nearest_name(word, names, count);
  return near ? arena_printf(arena, "; did you mean '%s'?", near) : "";
}

static bool is_among(const char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

const char *suggestion_or_names(Arena *arena, const char *word, const char *const *names,
                                int count) {
  enum { MOST_SHOWN = 8 };
  if (nearest_name(word, names, count)) return suggestion_of(arena, word, names, count);
  const char *shown[MOST_SHOWN];
  int n = 0, i = 0;
  for (; i < count; i++) {
    if (is_among(shown, n, names[i])) continue;
    if (n == MOST_SHOWN) break;
    shown[n++] = names[i];
  }
  if (n == 0) return "; there is none";
  if (n == 1) return arena_printf(arena, "; there is only '%s'", shown[0]);
  Text text = text_new(arena);
  for (int k = 0; k < n; k++) text_printf(&text, "%s'%s'", k ? ", " : "; there are ", shown[k]);
  if (i < count) text_printf(&text, ", …");
  return text_string(&text);
}
