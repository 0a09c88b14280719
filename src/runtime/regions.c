// SPDX-License-Identifier: Apache-2.0
// Runs the chunks of a parallel region on the threads of a pool, and reports to a caller that asks
// for it which thread ran which chunk, and when.
#include "runtime/compiled.h"

// The first iteration of a chunk. The first chunks have one iteration more than the others.
static int64_t chunk_begin(const RegionRun *run, int64_t chunk) {
  int64_t size = run->extent / run->chunks, rest = run->extent % run->chunks;
  return chunk * size + MIN_OF(chunk, rest);
}

static void run_chunks(void *env, int64_t first, int64_t end) {
  const RegionRun *run = env;
  code_region_run(&run->code, run->args, chunk_begin(run, first), chunk_begin(run, end));
}

static void run_seen_chunks(void *env, int64_t first, int64_t end) {
  const RegionRun *run = env;
  int64_t start_ns = clock_now_ns();
  run_chunks(env, first, end);
  ChunkSpan span = {run->step, run->region,   chunk_begin(run, first), chunk_begin(run, end),
                    start_ns,  clock_now_ns()};
  run->on_span(run->env, &span);
}

void region_run(const RegionRun *run, ThreadPool *pool) {
  ParallelBody body = run->on_span ? run_seen_chunks : run_chunks;
  if (run->chunks == 1 || code_region_is_whole(&run->code))
    body((void *)run, 0, run->chunks);
  else
    thread_pool_run(pool, body, (void *)run, run->chunks);
}
