// SPDX-License-Identifier: Apache-2.0
// Reads the queries of queries.jsonl, for the programs of this folder.
#ifndef PLEAT_BENCH_QUERY_H
#define PLEAT_BENCH_QUERY_H

#include <jansson.h>

#include "layout/layout.h"

enum { MAX_AXES = 64 };

double now_ns(void); // processor time of this thread
// The time since a reading, minus the time that a reading takes.
double ns_since(double start);
// {"layout", "shape", "where"}; NULL after a diagnostic.
const Layout *read_layout(Context *context, const json_t *object);

#endif
