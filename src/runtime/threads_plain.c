// SPDX-License-Identifier: Apache-2.0
// Runs parallel loops where pthreadpool is missing. Each loop is a new generation: workers that see
// it take pieces from one counter until it is used up. A worker spins for a while before it sleeps,
// since the next loop of a model comes within microseconds.
#include "runtime/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPINS = 20000 };

struct Workers {
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

static void take_pieces(Workers *workers) {
  int64_t begin;
  while ((begin = atomic_fetch_add(&workers->next, workers->piece)) < workers->count)
    workers->body(workers->env, begin, MIN_OF(begin + workers->piece, workers->count));
}

static bool has_news(Workers *workers, unsigned seen) {
  return atomic_load(&workers->generation) != seen || atomic_load(&workers->stop);
}

static void wait_for_news(Workers *workers, unsigned seen) {
  for (int i = 0; i < SPINS; i++) {
    if (has_news(workers, seen)) return;
    breathe();
  }
  pthread_mutex_lock(&workers->mutex);
  atomic_fetch_add(&workers->sleepers, 1);
  while (!has_news(workers, seen)) pthread_cond_wait(&workers->wake, &workers->mutex);
  atomic_fetch_sub(&workers->sleepers, 1);
  pthread_mutex_unlock(&workers->mutex);
}

static void *work(void *arg) {
  Workers *workers = arg;
  unsigned seen = 0;
  for (;;) {
    wait_for_news(workers, seen);
    if (atomic_load(&workers->stop)) return NULL;
    seen++;
    take_pieces(workers);
    atomic_fetch_sub(&workers->working, 1);
  }
}

static void wake_sleepers(Workers *workers) {
  if (atomic_load(&workers->sleepers) == 0) return;
  pthread_mutex_lock(&workers->mutex);
  pthread_cond_broadcast(&workers->wake);
  pthread_mutex_unlock(&workers->mutex);
}

Workers *workers_new(int threads) {
  Workers *workers = calloc(1, sizeof *workers);
  if (!workers) return NULL;
  workers->size = threads > 0 ? threads : machine_probe().cores;
  pthread_mutex_init(&workers->mutex, NULL);
  pthread_cond_init(&workers->wake, NULL);
  workers->workers = calloc((size_t)workers->size, sizeof *workers->workers);
  while (workers->workers && workers->started < workers->size - 1 &&
         pthread_create(&workers->workers[workers->started], NULL, work, workers) == 0)
    workers->started++;
  workers->size = workers->started + 1;
  return workers;
}

void workers_free(Workers *workers) {
  if (!workers) return;
  atomic_store(&workers->stop, true);
  wake_sleepers(workers);
  for (int i = 0; i < workers->started; i++) pthread_join(workers->workers[i], NULL);
  pthread_cond_destroy(&workers->wake);
  pthread_mutex_destroy(&workers->mutex);
  free(workers->workers);
  free(workers);
}

int workers_count(const Workers *workers) {
  return workers->size;
}

void workers_run(Workers *workers, ParallelBody body, void *env, int64_t count) {
  workers->body = body;
  workers->env = env;
  workers->count = count;
  workers->piece = workers_piece(count, workers->size);
  atomic_store(&workers->next, 0);
  atomic_store(&workers->working, workers->started);
  atomic_fetch_add(&workers->generation, 1);
  wake_sleepers(workers);
  take_pieces(workers);
  for (int i = 0; atomic_load(&workers->working) > 0; i++)
    i < SPINS ? breathe() : (void)sched_yield();
}
