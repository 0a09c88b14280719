// SPDX-License-Identifier: Apache-2.0
// Allocates memory for elements: whole cache lines, and huge pages for large allocations, which
// saves translations of addresses. Memory whose contents are undefined can be poisoned, which shows
// whether a result depends on it.
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const size_t line = 64, huge_page = HUGE_PAGE_BYTES;

void *memory_alloc(size_t bytes) {
  bool large = bytes >= 2 * huge_page;
  size_t alignment = large ? huge_page : line;
  if (bytes > SIZE_MAX - alignment) return NULL;
  size_t whole = MAX_OF((bytes + alignment - 1) / alignment, 1) * alignment;
  void *data = NULL;
  if (posix_memalign(&data, alignment, large ? whole : MAX_OF(bytes, line))) return NULL;
  if (large) madvise(data, whole, MADV_HUGEPAGE);
  return data;
}

bool memory_poisons(void) {
  const char *given = getenv("PLEAT_POISON");
  return given && strcmp(given, "1") == 0;
}

void memory_poison(void *data, int64_t bytes) {
  if (bytes > 0 && memory_poisons()) memset(data, 0xff, (size_t)bytes);
}

void memory_free(void *data) {
  free(data);
}
