// SPDX-License-Identifier: Apache-2.0
// Records what each thread ran and when, by call and kernel, and writes it as a file of Chrome's
// trace events, which Perfetto and chrome://tracing read.
#ifndef PLEAT_CLI_TRACE_H
#define PLEAT_CLI_TRACE_H

#include "cli/session.h"

typedef struct Trace Trace;

Trace *trace_new(Session *session); // its code must be ready; released with the context
bool trace_call(Trace *trace);      // runs once; false with diagnostics
// Adds the file to `files`; false with a diagnostic.
bool trace_write(Trace *trace, FileSet *files, const char *path);

#endif
