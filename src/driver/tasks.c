// SPDX-License-Identifier: Apache-2.0
// Tasks over threads, with or without a look at which thread ran what and when.
#include "driver/tasks.h"

static void run_piece(void *env, int64_t begin, int64_t end) {
  const TaskPhase *phase = env;
  phase->task(phase->args, begin, end);
}

static void run_seen_piece(void *env, int64_t begin, int64_t end) {
  const TaskPhase *phase = env;
  TaskSpan span = {phase->step, phase->phase, begin, end, clock_now_ns(), 0};
  phase->task(phase->args, begin, end);
  span.end_ns = clock_now_ns();
  phase->on_span(phase->env, &span);
}

void task_phase_run(const TaskPhase *phase, ThreadPool *pool, int64_t count) {
  ParallelBody body = phase->on_span ? run_seen_piece : run_piece;
  if (count == 1)
    body((void *)phase, 0, 1);
  else
    thread_pool_run(pool, body, (void *)phase, count);
}
