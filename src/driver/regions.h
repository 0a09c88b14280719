// SPDX-License-Identifier: Apache-2.0
// Runs a parallel region of a kernel (lower/lower.h): its iterations are divided among the threads
// of a pool.
#ifndef PLEAT_DRIVER_REGIONS_H
#define PLEAT_DRIVER_REGIONS_H

#include "driver/driver.h"

typedef struct RegionRun {
  CodeRegion code;
  void *const *args;
  int step, region; // reported with each chunk
  OnSpan on_span;   // NULL: no spans are reported
  void *env;
} RegionRun;

// Returns when all iterations 0 <= i < extent are done.
void region_run(const RegionRun *run, ThreadPool *pool, int64_t extent);

#endif
