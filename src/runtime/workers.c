// SPDX-License-Identifier: Apache-2.0
// Runs parallel loops on threads that share the pieces of a loop. Each thread begins with pieces of
// its own, so that it finds in its caches what it wrote in the loop before, and takes those of the
// others when it has none left. A loop ends when all pieces are done, whatever the workers do then:
// where processors are shared, the system may put a waiting worker aside for milliseconds, and the
// caller does its pieces too. Only a worker that is put aside within a piece holds up the loop.
//
// The pieces that a thread has left are one word with the number of their loop, so a worker that
// comes late cannot take a piece of a later loop for one of its own. Workers spin while they wait,
// since the next loop of a model comes within microseconds, and sleep after a while. One that finds
// that it was put aside while it waited sleeps sooner for some time, and gives its processor away
// between loops: a thread that has slept soon gets a processor, and one that has used up its time
// loses it within a piece.
#include "runtime/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
  LINE_BYTES = 64,
  PIECE_BITS = 16,        // of the first piece and of the end
  SPINS = 16,             // between two looks at the clock
  IDLE_NS = 500000,       // that a worker waits before it sleeps
  CROWDED_IDLE_NS = 5000, // the same where it was put aside a while ago
  AWAY_NS = 300000,       // between two looks at the clock: it was put aside
  CROWDED_NS = 100000000, // how long that is remembered
  TURN_NS = 1500000,      // that a worker then keeps a processor, less than the system allows
  LEAST_WAIT_NS = 100000, // that the caller waits for the last pieces before it sleeps
  MOST_WORKERS = 4096,    // whose pieces have numbers of PIECE_BITS
};

// The pieces of a loop that a thread has left, from `first` to before `end`.
typedef struct Share {
  _Alignas(LINE_BYTES) _Atomic uint64_t word; // loop, end, first
} Share;

typedef struct Worker {
  Workers *workers;
  pthread_t thread;
  int number;               // of its share; the caller has share 0
  int64_t since_ns;         // when others last had its processor, as far as it knows
  int64_t crowded_until_ns; // it was put aside a while ago
} Worker;

struct Workers {
  int size;       // the caller's own thread included
  unsigned forks; // of this process when the threads were made
  Worker *others;
  Share *shares; // by thread
  ParallelBody body;
  void *env;
  int64_t count, piece;
  uint64_t loop;                              // its number
  _Alignas(LINE_BYTES) atomic_int unfinished; // pieces
  atomic_bool waits;                          // the caller sleeps until they are done
  _Alignas(LINE_BYTES) atomic_uint news;      // counts the loops, and the end
  atomic_int sleepers;
  atomic_bool stop;
  pthread_mutex_t mutex;
  pthread_cond_t wake, finished;
};

// A process that was forked has copies of the pools, but none of the threads.
static atomic_uint fork_count;
static pthread_once_t forks_are_counted = PTHREAD_ONCE_INIT;

static void note_fork(void) {
  atomic_fetch_add(&fork_count, 1);
}

static void count_forks(void) {
  pthread_atfork(NULL, NULL, note_fork);
}

static bool has_threads(const Workers *workers) {
  return workers->forks == atomic_load_explicit(&fork_count, memory_order_relaxed);
}

static void breathe(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// ---- Pieces

static uint64_t share_word(uint64_t loop, int64_t first, int64_t end) {
  return loop << (2 * PIECE_BITS) | (uint64_t)end << PIECE_BITS | (uint64_t)first;
}

// Takes the first piece of a share, or the last one for a thread that it does not belong to; -1:
// there is none.
static int64_t take_piece(Share *share, bool own) {
  const uint64_t mask = (1u << PIECE_BITS) - 1;
  uint64_t word = atomic_load_explicit(&share->word, memory_order_acquire);
  for (;;) {
    int64_t first = (int64_t)(word & mask), end = (int64_t)(word >> PIECE_BITS & mask);
    if (first >= end) return -1;
    uint64_t loop = word >> (2 * PIECE_BITS);
    uint64_t next = share_word(loop, first + own, end - !own);
    if (atomic_compare_exchange_weak_explicit(&share->word, &word, next, memory_order_acq_rel,
                                              memory_order_acquire))
      return own ? first : end - 1;
  }
}

static void finish_piece(Workers *workers) {
  if (atomic_fetch_sub(&workers->unfinished, 1) > 1 || !atomic_load(&workers->waits)) return;
  pthread_mutex_lock(&workers->mutex);
  pthread_cond_signal(&workers->finished);
  pthread_mutex_unlock(&workers->mutex);
}

// The loop cannot end before a piece that was taken is done, so what is read here belongs to it.
static void run_piece(Workers *workers, int64_t number) {
  int64_t begin = number * workers->piece;
  workers->body(workers->env, begin, MIN_OF(begin + workers->piece, workers->count));
  finish_piece(workers);
}

// Takes pieces until there are none, and returns how many it ran.
static int run_pieces(Workers *workers, int self) {
  int done = 0;
  for (int i = 0; i < workers->size; i++) {
    int from = (self + i) % workers->size;
    int64_t number;
    while ((number = take_piece(&workers->shares[from], i == 0)) >= 0) {
      run_piece(workers, number);
      done++;
    }
  }
  return done;
}

// ---- Workers

static bool has_news(Workers *workers, unsigned seen) {
  return atomic_load(&workers->news) != seen;
}

static void note_absence(Worker *worker, int64_t before, int64_t now) {
  if (now - before <= AWAY_NS) return;
  worker->since_ns = now;
  worker->crowded_until_ns = now + CROWDED_NS;
}

// Waits for a loop without sleeping; false when none came in time.
static bool watch_for_news(Worker *worker, unsigned seen) {
  int64_t start = clock_now_ns(), before = start;
  for (;;) {
    for (int i = 0; i < SPINS; i++) {
      if (has_news(worker->workers, seen)) return true;
      breathe();
    }
    int64_t now = clock_now_ns();
    note_absence(worker, before, now);
    before = now;
    if (now - start > (now < worker->crowded_until_ns ? CROWDED_IDLE_NS : IDLE_NS)) return false;
  }
}

static void wait_for_news(Worker *worker, unsigned seen) {
  Workers *workers = worker->workers;
  if (watch_for_news(worker, seen)) return;
  pthread_mutex_lock(&workers->mutex);
  atomic_fetch_add(&workers->sleepers, 1);
  while (!has_news(workers, seen)) pthread_cond_wait(&workers->wake, &workers->mutex);
  atomic_fetch_sub(&workers->sleepers, 1);
  pthread_mutex_unlock(&workers->mutex);
}

// Lets other programs run between two loops, before the system does so within a piece.
static void give_way(Worker *worker) {
  int64_t now = clock_now_ns();
  if (now >= worker->crowded_until_ns || now - worker->since_ns < TURN_NS) return;
  sched_yield();
  worker->since_ns = clock_now_ns();
  note_absence(worker, now, worker->since_ns);
}

static void *work(void *arg) {
  Worker *worker = arg;
  Workers *workers = worker->workers;
  unsigned seen = 0;
  for (;;) {
    wait_for_news(worker, seen);
    seen = atomic_load(&workers->news); // before `stop`, which is set before its news
    if (atomic_load(&workers->stop)) return NULL;
    run_pieces(workers, worker->number);
    give_way(worker);
  }
}

static void announce(Workers *workers) {
  atomic_fetch_add(&workers->news, 1);
  if (atomic_load(&workers->sleepers) == 0) return;
  pthread_mutex_lock(&workers->mutex);
  pthread_cond_broadcast(&workers->wake);
  pthread_mutex_unlock(&workers->mutex);
}

// ---- The caller

static void make_threads(Workers *workers, int wanted) {
  workers->size = 1;
  workers->others = calloc((size_t)wanted, sizeof *workers->others);
  workers->shares = aligned_alloc(LINE_BYTES, (size_t)wanted * sizeof *workers->shares);
  for (int i = 0; workers->shares && i < wanted; i++) atomic_init(&workers->shares[i].word, 0);
  if (!workers->shares || !workers->others) return;
  int number = 1;
  for (; number < wanted; number++) {
    Worker *worker = &workers->others[number];
    *worker = (Worker){.workers = workers, .number = number};
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) break;
  }
  workers->size = number;
}

Workers *workers_new(int threads) {
  Workers *workers = aligned_alloc(LINE_BYTES, sizeof *workers);
  if (!workers) return NULL;
  memset(workers, 0, sizeof *workers);
  pthread_once(&forks_are_counted, count_forks);
  workers->forks = atomic_load(&fork_count);
  pthread_mutex_init(&workers->mutex, NULL);
  pthread_cond_init(&workers->wake, NULL);
  pthread_cond_init(&workers->finished, NULL);
  make_threads(workers, MIN_OF(threads > 0 ? threads : machine_probe().cores, MOST_WORKERS));
  return workers;
}

static void end_threads(Workers *workers) {
  atomic_store(&workers->stop, true);
  announce(workers);
  for (int i = 1; i < workers->size; i++) pthread_join(workers->others[i].thread, NULL);
  pthread_cond_destroy(&workers->finished);
  pthread_cond_destroy(&workers->wake);
  pthread_mutex_destroy(&workers->mutex);
}

void workers_free(Workers *workers) {
  if (!workers) return;
  if (has_threads(workers)) end_threads(workers);
  free(workers->shares);
  free(workers->others);
  free(workers);
}

int workers_count(const Workers *workers) {
  return workers->size;
}

static bool is_done(Workers *workers) {
  return atomic_load_explicit(&workers->unfinished, memory_order_acquire) == 0;
}

// Waits for pieces that others have taken. One that takes much longer than a piece of the caller's
// has been put aside, perhaps for the caller.
static void wait_for_pieces(Workers *workers, int64_t piece_ns) {
  int64_t start = clock_now_ns();
  do {
    for (int i = 0; i < SPINS; i++) {
      if (is_done(workers)) return;
      breathe();
    }
  } while (clock_now_ns() - start < MAX_OF(LEAST_WAIT_NS, 2 * piece_ns));
  pthread_mutex_lock(&workers->mutex);
  atomic_store(&workers->waits, true);
  while (atomic_load(&workers->unfinished)) pthread_cond_wait(&workers->finished, &workers->mutex);
  atomic_store(&workers->waits, false);
  pthread_mutex_unlock(&workers->mutex);
}

void workers_run(Workers *workers, ParallelBody body, void *env, int64_t count) {
  if (!has_threads(workers)) {
    body(env, 0, count);
    return;
  }
  int size = workers->size;
  int64_t piece = workers_piece(count, size), pieces = ceil_div(count, piece);
  workers->body = body;
  workers->env = env;
  workers->count = count;
  workers->piece = piece;
  workers->loop++;
  atomic_store_explicit(&workers->unfinished, (int)pieces, memory_order_relaxed);
  for (int i = 0; i < size; i++) {
    int64_t first = pieces * i / size, end = pieces * (i + 1) / size;
    atomic_store_explicit(&workers->shares[i].word, share_word(workers->loop, first, end),
                          memory_order_release);
  }
  announce(workers);
  int64_t start = clock_now_ns();
  int done = run_pieces(workers, 0);
  if (!is_done(workers)) wait_for_pieces(workers, (clock_now_ns() - start) / MAX_OF(done, 1));
}
