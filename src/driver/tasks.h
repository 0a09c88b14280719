// SPDX-License-Identifier: Apache-2.0
// One phase of a kernel: its tasks over the threads of a pool.
#ifndef PLEAT_DRIVER_TASKS_H
#define PLEAT_DRIVER_TASKS_H

#include "driver/driver.h"

typedef struct TaskPhase {
  TargetTask task;
  void *const *args;
  int step, phase;
  OnSpan on_span; // NULL: nobody wants to know
  void *env;
} TaskPhase;

void task_phase_run(const TaskPhase *phase, ThreadPool *pool, int64_t count);

#endif
