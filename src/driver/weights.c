// SPDX-License-Identifier: Apache-2.0
// Writes the constants of a program in the layouts in which its kernels read them, and computes
// those that are folded here. Large programs write them in several threads, because most of the
// time is that of the system, which makes the memory when it is first written.
#include "driver/driver.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct WeightFilling {
  const Program *program;
  char *weights;
  const StageCode *code; // of the stages that are computed here; NULL: there are none
  int *stage;            // by slot: the number of its stage; -1: its contents are known
  size_t most_bytes;     // of a tensor that is computed
  atomic_int next;       // the first slot that no thread has taken
  atomic_bool failed;    // a thread ran out of memory
} WeightFilling;

// The same program with another context, whose memory this thread uses.
typedef struct WeightThread {
  WeightFilling *filling;
  Context *context;
  char *computed; // a tensor before it is laid out
} WeightThread;

static void fill_slot(const WeightThread *t, int number) {
  const WeightFilling *f = t->filling;
  const ProgramSlot *slot = &f->program->slots.items[number];
  char *to = f->weights + slot->offset;
  if (slot->kind != SLOT_CONSTANT) return;
  ConstData data = *slot->tensor->data;
  if (f->stage[number] >= 0) {
    ArenaMark mark = arena_mark(&t->context->scratch);
    data.data = t->computed;
    if (!stage_code_run(f->code, t->context, f->stage[number], t->computed))
      bug(t->context, "'%s' is not computed", slot->tensor->buffer->name);
    arena_reset(&t->context->scratch, mark);
  }
  constant_pack(t->context, f->program->context, &data, slot->layout, to);
  memset(to + slot->bytes, 0, (size_t)(tensor_aligned(slot->bytes) - slot->bytes));
}

static void fill_slots(void *arg) {
  WeightThread *thread = arg;
  WeightFilling *f = thread->filling;
  ArenaMark mark = arena_mark(&thread->context->scratch);
  thread->computed = arena_take(&thread->context->scratch, f->most_bytes + TENSOR_ALIGNMENT);
  thread->computed += -(uintptr_t)thread->computed % TENSOR_ALIGNMENT;
  for (int i; (i = atomic_fetch_add(&f->next, 1)) < f->program->slots.count;) fill_slot(thread, i);
  arena_reset(&thread->context->scratch, mark);
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

// Finds the slots whose contents are computed here. Returns their stages.
static PtrArray find_late(const Program *p, WeightFilling *f) {
  PtrArray stages = {0};
  f->stage = arena_array(&p->context->scratch, int, p->slots.count);
  for (int i = 0; i < p->slots.count; i++) {
    const ProgramSlot *slot = &p->slots.items[i];
    f->stage[i] = -1;
    if (slot->kind != SLOT_CONSTANT || slot->tensor->data->data) continue;
    f->stage[i] = stages.count;
    f->most_bytes = MAX_OF(f->most_bytes, slot->tensor->data->bytes);
    array_push(&p->context->scratch, &stages, (void *)slot->tensor->folded);
  }
  return stages;
}

static void fill(const Program *p, WeightFilling *f) {
  WeightThread here = {f, p->context};
  if (fill_in_threads(f)) return;
  f->next = 0;
  fill_slots(&here);
}

bool program_fill_weights(const Program *p, void *weights) {
  WeightFilling filling = {.program = p, .weights = weights};
  context_scope_begin(p->context);
  PtrArray late = find_late(p, &filling);
  StageCode *code =
      late.count ? stage_code_new(p->context, p->plan->stages, late, &p->options) : NULL;
  filling.code = code;
  bool done = code || !late.count;
  if (done) fill(p, &filling);
  stage_code_free(code);
  context_scope_discard(p->context);
  return done;
}
