// SPDX-License-Identifier: Apache-2.0
// Runs parallel loops where pthreadpool is missing. Each loop is a new generation: workers that see
// it take pieces from one counter until it is used up. A worker spins for a while before it sleeps,
// since the next loop of a model comes within microseconds.
#include "runtime/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPINS = 20000, PIECES_A_THREAD = 4 };

struct ThreadPool {
  int size;    // the caller's own thread included
  int started; // workers that run
  pthread_t *workers;
  ParallelBody body;
  void *env;
  int64_t count, piece;
  atomic_llong next;  // the first iteration that nobody has taken
  atomic_int working; // workers not done with this generation
  atomic_uint generation;
  atomic_int sleepers;
  atomic_bool stop;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
};

static void breathe(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void take_pieces(ThreadPool *pool) {
  int64_t begin;
  while ((begin = atomic_fetch_add(&pool->next, pool->piece)) < pool->count)
    pool->body(pool->env, begin, MIN_OF(begin + pool->piece, pool->count));
}

static bool has_news(ThreadPool *pool, unsigned seen) {
  return atomic_load(&pool->generation) != seen || atomic_load(&pool->stop);
}

static void wait_for_news(ThreadPool *pool, unsigned seen) {
  for (int i = 0; i < SPINS; i++) {
    if (has_news(pool, seen)) return;
    breathe();
  }
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->sleepers, 1);
  while (!has_news(pool, seen)) pthread_cond_wait(&pool->wake, &pool->mutex);
  atomic_fetch_sub(&pool->sleepers, 1);
  pthread_mutex_unlock(&pool->mutex);
}

static void *work(void *arg) {
  ThreadPool *pool = arg;
  unsigned seen = 0;
  for (;;) {
    wait_for_news(pool, seen);
    if (atomic_load(&pool->stop)) return NULL;
    seen++;
    take_pieces(pool);
    atomic_fetch_sub(&pool->working, 1);
  }
}

static void wake_sleepers(ThreadPool *pool) {
  if (atomic_load(&pool->sleepers) == 0) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
}

ThreadPool *thread_pool_new(int threads) {
  ThreadPool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->size = threads > 0 ? threads : machine_probe().cores;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pool->workers = calloc((size_t)pool->size, sizeof *pool->workers);
  while (pool->workers && pool->started < pool->size - 1 &&
         pthread_create(&pool->workers[pool->started], NULL, work, pool) == 0)
    pool->started++;
  pool->size = pool->started + 1;
  return pool;
}

void thread_pool_free(ThreadPool *pool) {
  if (!pool) return;
  atomic_store(&pool->stop, true);
  wake_sleepers(pool);
  for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i], NULL);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->mutex);
  free(pool->workers);
  free(pool);
}

int thread_pool_size(const ThreadPool *pool) {
  return pool ? pool->size : 1;
}

void thread_pool_run(void *arg, ParallelBody body, void *env, int64_t count) {
  ThreadPool *pool = arg;
  if (count <= 0) return;
  if (thread_pool_size(pool) == 1 || count == 1) {
    body(env, 0, count);
    return;
  }
  pool->body = body;
  pool->env = env;
  pool->count = count;
  pool->piece = ceil_div(count, (int64_t)pool->size * PIECES_A_THREAD);
  atomic_store(&pool->next, 0);
  atomic_store(&pool->working, pool->started);
  atomic_fetch_add(&pool->generation, 1);
  wake_sleepers(pool);
  take_pieces(pool);
  for (int i = 0; atomic_load(&pool->working) > 0; i++) i < SPINS ? breathe() : (void)sched_yield();
}
