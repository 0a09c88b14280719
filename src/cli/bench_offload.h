// SPDX-License-Identifier: Apache-2.0
// `bench MODEL --against dnnl`: the model with and without the library, kernel by kernel.
#ifndef PLEAT_CLI_BENCH_OFFLOAD_H
#define PLEAT_CLI_BENCH_OFFLOAD_H

#include <jansson.h>

#include "cli/session.h"

// The operators that calls of the library and kernels around them compute in both programs, and
// the seconds that they take in each.
typedef struct BesideRow {
  const char *operators;
  int calls, kernels; // of the library, of the program without it
  double library, own;
} BesideRow;

typedef struct Beside {
  Session *library; // the model with the library, measured
  const char *name; // "oneDNN 2.6"
  Array(BesideRow) rows;
  double library_rewrites, own_rewrites; // seconds of all kernels that only change layouts
  double apart; // largest difference of the outputs, relative to the largest element
} Beside;

// Builds the session's graph with what `offload` says computed by the library, and measures both
// programs in turns. Sets the latency of `session`. NULL with diagnostics, also when
// the results differ.
Beside *bench_beside(Session *session, const char *offload, const InputContents *contents,
                     int64_t repeat);
void beside_print(const Beside *beside, const Session *session);
json_t *beside_json(const Beside *beside);

#endif
