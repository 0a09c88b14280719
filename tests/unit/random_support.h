// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same in each run. A test begins with a seed of its own:
//   static uint64_t seed = 7;
#ifndef PLEAT_RANDOM_SUPPORT_H
#define PLEAT_RANDOM_SUPPORT_H

#include <stdint.h>

static uint64_t seed;

// A number from 0 to n - 1.
static inline int random_below(int n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int)((seed >> 33) % (uint64_t)n);
}

#endif
