// SPDX-License-Identifier: Apache-2.0
// Moves the weights of a program that was read from a file into huge pages. Files are mapped in
// small pages, for which a processor holds too few translations of addresses: ResNet-50 takes 8 %
// longer. To copy all weights when a file is read would take longer than to read it, so a program
// that is run a few times copies them in a thread of its own. The copy then takes the addresses of
// the original, in one step for all threads that are running.
#include "runtime/weight_pages.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/runtime.h"

enum {
  RUNS_BEFORE = 3,     // without a copy
  LEAST_PAGES = 8,     // of the weights, below which the small pages do not count
  SHARE_OF_MEMORY = 8, // of the machine, which the copy may take at most
};
static const size_t huge_page = HUGE_PAGE_BYTES;

struct WeightPages {
  char *weights; // begins and ends at the border of a huge page
  size_t bytes;
  atomic_int runs;
  bool started;
  pthread_t thread;
};

static bool has_huge_pages(void) {
  char text[64] = "[never]";
  int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[MAX_OF(size, 0)] = '\0';
  return size > 0 && !strstr(text, "[never]");
}

static char *next_huge_page(const char *at) {
  return (char *)(((uintptr_t)at + huge_page - 1) / huge_page * huge_page);
}

WeightPages *weight_pages_new(const void *weights, size_t bytes) {
  const char *end = (const char *)weights + bytes;
  char *first = next_huge_page(weights);
  size_t size = end > first ? (size_t)(end - first) / huge_page * huge_page : 0;
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (size < LEAST_PAGES * huge_page || (double)size * SHARE_OF_MEMORY > memory ||
      !has_huge_pages())
    return NULL;
  WeightPages *pages = calloc(1, sizeof *pages);
  if (pages) *pages = (WeightPages){.weights = first, .bytes = size};
  return pages;
}

// Does the system hold the file in huge pages already? Newer ones do when the file was written in
// one piece.
static bool are_huge(const WeightPages *pages) {
  FILE *maps = fopen("/proc/self/smaps", "re");
  char line[512];
  bool here = false;
  size_t huge = 0;
  while (maps && fgets(line, sizeof line, maps)) {
    uintptr_t first, last;
    size_t kilobytes;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2)
      here = first <= (uintptr_t)pages->weights && (uintptr_t)pages->weights < last;
    else if (here && sscanf(line, "FilePmdMapped: %zu kB", &kilobytes) == 1)
      huge += kilobytes << 10;
  }
  if (maps) fclose(maps);
  return huge >= pages->bytes / 2;
}

// Where nothing can be moved, the weights stay in the pages of the file.
static void *move(void *env) {
  const WeightPages *pages = env;
  if (are_huge(pages)) return NULL;
  size_t room = pages->bytes + huge_page;
  char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  char *copy = next_huge_page(memory), *end = copy + pages->bytes;
  munmap(end, (size_t)(memory + room - end));
  if (copy > memory) munmap(memory, (size_t)(copy - memory));
  bool moved = madvise(copy, pages->bytes, MADV_HUGEPAGE) == 0;
  if (moved) {
    memcpy(copy, pages->weights, pages->bytes);
    mprotect(copy, pages->bytes, PROT_READ);
    moved = mremap(copy, pages->bytes, pages->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   pages->weights) != MAP_FAILED;
  }
  if (!moved) munmap(copy, pages->bytes);
  return NULL;
}

void weight_pages_note_run(WeightPages *pages) {
  if (!pages || atomic_load_explicit(&pages->runs, memory_order_relaxed) > RUNS_BEFORE) return;
  if (atomic_fetch_add(&pages->runs, 1) == RUNS_BEFORE)
    pages->started = pthread_create(&pages->thread, NULL, move, pages) == 0;
}

void weight_pages_free(WeightPages *pages) {
  if (pages && pages->started) pthread_join(pages->thread, NULL);
  free(pages);
}
