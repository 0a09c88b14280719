// SPDX-License-Identifier: Apache-2.0
// Declares a request as the functions of the library that take one work on it: read, with its
// call-backs in place, and with the graph or the kernel that it names.
#ifndef PLEAT_API_LOAD_H
#define PLEAT_API_LOAD_H

#include "api/request.h"
#include "driver/driver.h"

// The first member of what a call of the library that takes a request works on.
typedef struct RequestCall {
  const PleatRequest *given;
  PleatRequest request; // with the fields that this version of the library knows
  Context *context;
  int logged;             // number of diagnostics that the caller's log has
  CompileOptions options; // of the request
  const GraphFunc *graph; // NULL: `kernels` is the request's
  const void **known;     // by input: the bytes that its contents must equal; NULL: any contents
  Kernels kernels;        // one, or with all_kernels all of the file
  bool all_kernels;
} RequestCall;

// Reads the request's options, and its graph with layout constraints, or its kernels. False with
// diagnostics.
bool request_load(RequestCall *call);
// Hands new messages and the next part of the work to the call-backs.
void request_progress(RequestCall *call, const char *what, int done, int all);
// Runs body(call) inside context_protect and a context of its own. Returns the status of a call
// that succeeded if *done is true afterwards.
int request_run(RequestCall *call, void (*body)(void *call), const bool *done,
                PleatMessages **messages);

#endif
