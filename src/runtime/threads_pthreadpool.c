// SPDX-License-Identifier: Apache-2.0
// Runs parallel loops on pthreadpool, whose workers take pieces from one another when they run out.
// Its workers spin between loops, so that the next begins at once, and a loop ends when each of
// them has reported. Where the processors are shared, a spinning worker uses up its time and is put
// aside, and each loop waits for it to come back: a hundred times the loop's own time. So the time
// from the last piece to the end of the loop is watched: after a stall workers sleep between loops,
// which keeps them welcome to the scheduler, for a while that doubles with each further stall.
#include "runtime/workers.h"

#include <pthreadpool.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
  STALL_NS = 500000,
  FEWEST_SLEEPY_LOOPS = 256,
  MOST_SLEEPY_LOOPS = 1 << 16,
};

struct Workers {
  pthreadpool_t inner;
  int sleepy_loops; // left
  int penalty;      // how many the next stall brings
};

typedef struct ThreadLoop {
  ParallelBody body;
  void *env;
  atomic_llong last_piece_ns;
} ThreadLoop;

Workers *workers_new(int threads) {
  Workers *workers = calloc(1, sizeof *workers);
  if (!workers) return NULL;
  workers->inner = pthreadpool_create((size_t)MAX_OF(threads, 0));
  workers->penalty = FEWEST_SLEEPY_LOOPS;
  return workers;
}

void workers_free(Workers *workers) {
  if (!workers) return;
  if (workers->inner) pthreadpool_destroy(workers->inner);
  free(workers);
}

int workers_count(const Workers *workers) {
  return workers->inner ? (int)pthreadpool_get_threads_count(workers->inner) : 1;
}

static void run_piece(void *arg, size_t begin, size_t count) {
  ThreadLoop *loop = arg;
  loop->body(loop->env, (int64_t)begin, (int64_t)(begin + count));
  atomic_store_explicit(&loop->last_piece_ns, clock_now_ns(), memory_order_relaxed);
}

static void watch_for_stalls(Workers *workers, const ThreadLoop *loop) {
  if (workers->sleepy_loops) {
    workers->sleepy_loops--;
    return;
  }
  if (clock_now_ns() - loop->last_piece_ns < STALL_NS) return;
  workers->sleepy_loops = workers->penalty;
  workers->penalty = MIN_OF(2 * workers->penalty, MOST_SLEEPY_LOOPS);
}

void workers_run(Workers *workers, ParallelBody body, void *env, int64_t count) {
  ThreadLoop loop = {.body = body, .env = env};
  int64_t piece = workers_piece(count, workers_count(workers));
  pthreadpool_parallelize_1d_tile_1d(workers->inner, run_piece, &loop, (size_t)count, (size_t)piece,
                                     workers->sleepy_loops ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0);
  watch_for_stalls(workers, &loop);
}
