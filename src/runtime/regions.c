// SPDX-License-Identifier: Apache-2.0
// Runs the chunks of a parallel region on the threads of a pool, and reports to a caller that asks
// for it which thread ran which chunk, and when.
#include "runtime/compiled.h"

static void run_chunk(void *env, int64_t begin, int64_t end) {
  const RegionRun *run = env;
  code_region_run(&run->code, run->args, begin, end);
}

static void run_seen_chunk(void *env, int64_t begin, int64_t end) {
  const RegionRun *run = env;
  ChunkSpan span = {run->step, run->region, begin, end, clock_now_ns(), 0};
  code_region_run(&run->code, run->args, begin, end);
  span.end_ns = clock_now_ns();
  run->on_span(run->env, &span);
}

void region_run(const RegionRun *run, ThreadPool *pool, int64_t extent) {
  ParallelBody body = run->on_span ? run_seen_chunk : run_chunk;
  if (extent == 1 || code_region_is_whole(&run->code))
    body((void *)run, 0, extent);
  else
    thread_pool_run(pool, body, (void *)run, extent);
}
