// SPDX-License-Identifier: Apache-2.0
// Computes the greatest common divisor, and finds the nearest of several names by edit distance,
// for messages that ask "did you mean".
#include "base/base.h"

int64_t gcd_of(int64_t a, int64_t b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

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
