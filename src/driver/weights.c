// SPDX-License-Identifier: Apache-2.0
// Writes the constants of a program in the layouts in which its kernels read them. Large programs
// write them in several threads, because most of the time is that of the system, which makes the
// memory when it is first written.
#include "driver/driver.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct WeightFilling {
  const Program *program;
  char *weights;
  atomic_int next;    // the first slot that no thread has taken
  atomic_bool failed; // a thread ran out of memory
} WeightFilling;

// The same program with another context, whose memory this thread uses.
typedef struct WeightThread {
  WeightFilling *filling;
  Context *context;
} WeightThread;

static void fill_slot(Context *context, const WeightFilling *f, const ProgramSlot *slot) {
  char *to = f->weights + slot->offset;
  if (slot->kind != SLOT_CONSTANT) return;
  constant_pack(context, f->program->context, slot->tensor->data, slot->layout, to);
  memset(to + slot->bytes, 0, (size_t)(tensor_aligned(slot->bytes) - slot->bytes));
}

static void fill_slots(void *arg) {
  const WeightThread *thread = arg;
  WeightFilling *f = thread->filling;
  for (int i; (i = atomic_fetch_add(&f->next, 1)) < f->program->slots.count;)
    fill_slot(thread->context, f, &f->program->slots.items[i]);
}

static void *fill_in_thread(void *arg) {
  WeightThread thread = {arg, context_new()};
  if (!thread.context || !context_protect(thread.context, fill_slots, &thread))
    thread.filling->failed = true;
  if (thread.context) context_free(thread.context);
  return NULL;
}

// Fills the weights in threads. False when some are not filled.
static bool fill_in_threads(WeightFilling *f) {
  enum { MOST_THREADS = 8, BYTES_A_THREAD = 4 << 20 };
  pthread_t threads[MOST_THREADS];
  int64_t wanted = MIN_OF(f->program->weight_bytes / BYTES_A_THREAD, MOST_THREADS);
  int count = (int)MIN_OF(machine_probe().cores, wanted), started = 0;
  if (count < 2) return false;
  while (started < count && !pthread_create(&threads[started], NULL, fill_in_thread, f)) started++;
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  return started && !f->failed;
}

void program_fill_weights(const Program *p, void *weights) {
  WeightFilling filling = {.program = p, .weights = weights};
  if (fill_in_threads(&filling)) return;
  for (int i = 0; i < p->slots.count; i++) fill_slot(p->context, &filling, &p->slots.items[i]);
}
