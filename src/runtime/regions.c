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

// Runs all iterations at once.
static const char *run_whole(const RegionRun *run) {
  if (!run->on_span) return code_region_run(&run->code, run->args, 0, run->extent);
  int64_t start_ns = clock_now_ns();
  const char *failure = code_region_run(&run->code, run->args, 0, run->extent);
  ChunkSpan span = {run->step, run->region, 0, run->extent, start_ns, clock_now_ns()};
  run->on_span(run->env, &span);
  return failure;
}

// Code that shares its iterations out by itself runs as one chunk.
const char *region_run(const RegionRun *run, ThreadPool *pool) {
  if (run->chunks == 1 || code_region_is_whole(&run->code)) return run_whole(run);
  thread_pool_run(pool, run->on_span ? run_seen_chunks : run_chunks, (void *)run, run->chunks);
  return NULL;
}
