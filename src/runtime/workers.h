// SPDX-License-Identifier: Apache-2.0
// Declares the threads of a thread pool.
#ifndef PLEAT_RUNTIME_WORKERS_H
#define PLEAT_RUNTIME_WORKERS_H

#include "runtime/runtime.h"

typedef struct Workers Workers;
Workers *workers_new(int threads); // the caller's own thread included; 0: one for each core
void workers_free(Workers *workers);
int workers_count(const Workers *workers);
// Works as thread_pool_run; there are several workers, and `count` is at least 2.
void workers_run(Workers *workers, ParallelBody body, void *env, int64_t count);
// How many of `count` iterations a thread takes at once: each thread gets four to eight pieces, so
// that one that is held up can be relieved, and as many iterations as the others if that is
// possible.
int64_t workers_piece(int64_t count, int threads);

#endif
