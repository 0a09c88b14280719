// SPDX-License-Identifier: Apache-2.0
// Parallel loops on pthreadpool, whose workers take pieces from one another when they run out and
// spin between loops.
#include "runtime/runtime.h"

#include <pthreadpool.h>

// Pieces a thread, so that one that is held up can be relieved.
enum { PIECES_A_THREAD = 4 };

typedef struct Loop {
  ParallelBody body;
  void *env;
} Loop;

static pthreadpool_t inner(void *pool) {
  return pool;
}

ThreadPool *thread_pool_new(int threads) {
  return (ThreadPool *)pthreadpool_create((size_t)MAX_OF(threads, 0));
}

void thread_pool_free(ThreadPool *pool) {
  if (pool) pthreadpool_destroy(inner(pool));
}

int thread_pool_size(const ThreadPool *pool) {
  return pool ? (int)pthreadpool_get_threads_count(inner((void *)pool)) : 1;
}

static void run_piece(void *arg, size_t begin, size_t count) {
  const Loop *loop = arg;
  loop->body(loop->env, (int64_t)begin, (int64_t)(begin + count));
}

void thread_pool_run(void *pool, ParallelBody body, void *env, int64_t count) {
  if (count <= 0) return;
  int threads = thread_pool_size(pool);
  if (threads == 1 || count == 1) {
    body(env, 0, count);
    return;
  }
  Loop loop = {body, env};
  int64_t piece = ceil_div(count, (int64_t)threads * PIECES_A_THREAD);
  pthreadpool_parallelize_1d_tile_1d(inner(pool), run_piece, &loop, (size_t)count, (size_t)piece,
                                     0);
}
