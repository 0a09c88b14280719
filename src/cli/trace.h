// SPDX-License-Identifier: Apache-2.0
// What each thread ran and when, call by call and kernel by kernel, as a file of Chrome's trace
// events, which Perfetto and chrome://tracing open.
#ifndef PLEAT_CLI_TRACE_H
#define PLEAT_CLI_TRACE_H

#include "cli/session.h"

typedef struct Trace Trace;

Trace *trace_new(Session *session); // its code is made; given back with the context
bool trace_call(Trace *trace);      // runs once; false with diagnostics
// Whole or not at all; false with a diagnostic.
bool trace_write(Trace *trace, const char *path);

#endif
