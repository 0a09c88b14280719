// SPDX-License-Identifier: Apache-2.0
// Reads clocks, summarises samples, and measures the memory of the process and the bandwidth of
// memory.
#include "runtime/runtime.h"

#include <stdlib.h>
#include <time.h>

enum { BANDWIDTH_RUNS = 5, BANDWIDTH_BYTES = 4 << 20 }; // a run moves so many at least

int64_t clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double clock_seconds_since(int64_t start) {
  return (double)(clock_now_ns() - start) * 1e-9;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Between the two samples around the quantile, in proportion.
static double quantile(const double *sorted, int count, double q) {
  double at = q * (count - 1);
  int below = (int)at, above = MIN_OF(below + 1, count - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

Spread spread_of(double *samples, int count) {
  qsort(samples, (size_t)count, sizeof *samples, compare_doubles);
  return (Spread){
      .least = samples[0],
      .p10 = quantile(samples, count, 0.1),
      .median = quantile(samples, count, 0.5),
      .p90 = quantile(samples, count, 0.9),
      .most = samples[count - 1],
  };
}

// Not from getrusage: its figure begins at that of the process which started this one.
int64_t process_peak_bytes(void) {
  FILE *status = fopen("/proc/self/status", "r");
  char line[256];
  long long kibibytes = 0;
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %lld", &kibibytes) == 1) break;
  if (status) fclose(status);
  return kibibytes * 1024;
}

double machine_copy_bandwidth(size_t bytes) {
  char *from = memory_alloc(bytes), *to = memory_alloc(bytes);
  double best = 0, copies = (double)MAX_OF((size_t)1, BANDWIDTH_BYTES / MAX_OF(bytes, (size_t)1));
  if (from && to) {
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    for (int run = 0; run < BANDWIDTH_RUNS; run++) {
      int64_t start = clock_now_ns();
      for (int copy = 0; copy < (int)copies; copy++) {
        memcpy(to, from, bytes);
        __asm__ volatile("" ::: "memory");
      }
      double ns = (double)MAX_OF(1, clock_now_ns() - start);
      best = MAX_OF(best, 2 * copies * (double)bytes / ns);
    }
  }
  memory_free(from);
  memory_free(to);
  return best;
}
