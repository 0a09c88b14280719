// SPDX-License-Identifier: Apache-2.0
// A thread pool: either threads of its own, or those of a caller, who hands over a function that
// runs loops. It counts what that function has done, because a loop that ran in part would leave
// wrong results.
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/workers.h"

struct ThreadPool {
  Workers *workers;    // NULL: the caller's
  ParallelFor foreign; // NULL: own threads
  void *env;
  int size;
  bool failed; // a loop of the caller's did not do each iteration once
};

ThreadPool *thread_pool_new(int threads) {
  ThreadPool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->workers = workers_new(threads);
  if (pool->workers) {
    pool->size = workers_count(pool->workers);
    return pool;
  }
  free(pool);
  return NULL;
}

ThreadPool *thread_pool_foreign(ParallelFor run, void *env, int threads) {
  ThreadPool *pool = calloc(1, sizeof *pool);
  if (pool) *pool = (ThreadPool){.foreign = run, .env = env, .size = threads};
  return pool;
}

void thread_pool_free(ThreadPool *pool) {
  if (!pool) return;
  if (pool->workers) workers_free(pool->workers);
  free(pool);
}

int thread_pool_size(const ThreadPool *pool) {
  return pool ? pool->size : 1;
}

bool thread_pool_take_failure(ThreadPool *pool) {
  bool failed = pool && pool->failed;
  if (failed) pool->failed = false;
  return failed;
}

int64_t workers_piece(int64_t count, int threads) {
  enum { FEWEST_PIECES = 4, MOST_PIECES = 8, TRIED = 8 };
  int64_t most = ceil_div(count, (int64_t)threads * FEWEST_PIECES), best = most,
          shortest = INT64_MAX;
  int64_t least = MAX_OF(ceil_div(count, (int64_t)threads * MOST_PIECES), most - TRIED);
  for (int64_t piece = most; piece >= least; piece--) {
    int64_t longest = ceil_div(ceil_div(count, piece), threads) * piece; // of the busiest thread
    if (longest < shortest) best = piece;
    shortest = MIN_OF(longest, shortest);
  }
  return best;
}

typedef struct ForeignLoop {
  ParallelBody body;
  void *env;
  int64_t count;
  atomic_llong done; // iterations
  atomic_bool wrong; // a part was not in the loop
} ForeignLoop;

static void run_part(void *env, int64_t begin, int64_t end) {
  ForeignLoop *loop = env;
  if (begin < 0 || begin > end || end > loop->count) {
    atomic_store(&loop->wrong, true);
    return;
  }
  if (begin < end) loop->body(loop->env, begin, end);
  atomic_fetch_add(&loop->done, end - begin);
}

static void run_foreign(ThreadPool *pool, ParallelBody body, void *env, int64_t count) {
  ForeignLoop loop = {.body = body, .env = env, .count = count};
  pool->foreign(pool->env, run_part, &loop, count);
  if (atomic_load(&loop.wrong) || atomic_load(&loop.done) != count) pool->failed = true;
}

void thread_pool_run(void *arg, ParallelBody body, void *env, int64_t count) {
  ThreadPool *pool = arg;
  if (count <= 0) return;
  if (thread_pool_size(pool) == 1 || count == 1)
    body(env, 0, count);
  else if (pool->foreign)
    run_foreign(pool, body, env, count);
  else
    workers_run(pool->workers, body, env, count);
}
