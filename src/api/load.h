// SPDX-License-Identifier: Apache-2.0
// Declares a request as the functions of the library that take one work on it: read, with its
// call-backs in place, and with the graph or the kernel that it names.
#ifndef PLEAT_API_LOAD_H
#define PLEAT_API_LOAD_H

#include "api/request.h"
#include "driver/driver.h"
#include "driver/kept_model.h"
#include "driver/operators.h"

// The first member of what a call of the library that takes a request works on.
typedef struct RequestCall {
  const PleatRequest *given;
  PleatRequest request; // with the fields that this version of the library knows
  Context *context;
  int logged;             // number of diagnostics that the caller's log has
  CompileOptions options; // of the request
  const GraphFunc *graph; // NULL: `kernels` is the request's
  const void **known;     // by input: the bytes that its contents must equal; NULL: any contents
  const Module *module;   // of TVMScript
  Kernels kernels;        // one, or with all_kernels all of the file
  bool all_kernels;
  const char *asked; // of a tensor: ConstraintTexts.asked; NULL: nothing
  // Give the sizes of free dimensions, except those of inputs whose layouts are given.
  const OnnxArray *arrays;
  int array_count;
  const OnnxImport *open; // set when sizes stayed open; there is then neither a graph nor a kernel
  bool may_be_open;
  const char *device;     // that code is made for; NULL: the request's target
  bool runs_nothing;      // `cpu` may then be more than this machine has
  bool wants_program;     // the call only needs the compiled program, which the cache may have
  CompiledProgram *found; // in the cache; there is then neither a graph nor a kernel
  KeptModel kept;
  const OpaqueFunctions *functions; // of the request's operators; NULL: none
} RequestCall;

// Lets messages name options as the language of the caller does, NULL: C. False with a diagnostic.
bool caller_read(Context *context, const char *language);
// Reads the request, whose caller the messages then address. False with diagnostics.
bool request_begin(RequestCall *call);
// Reads the request with its options, and its graph with layout constraints, or its kernels. False
// with diagnostics.
bool request_load(RequestCall *call);
// kept.c. Takes the compiled program from the cache; false when it is not there or not wanted.
bool request_find(RequestCall *call);
void request_keep(const RequestCall *call, const CompiledProgram *program);
// The sizes that the request gives to its kernel, one for each of its `shapes`. False with
// diagnostics.
bool request_sizes(RequestCall *call, InterpSize **sizes);
// Lets the context ask the request's call-back whether the call is cancelled.
void request_begin_call_backs(RequestCall *call);
// Hands new messages and the next part of the work to the call-backs.
void request_progress(RequestCall *call, const char *what, int done, int all);
// Runs body(call) inside context_protect and a context of its own. Returns the status of a call
// that succeeded if *done is true afterwards.
int request_run(RequestCall *call, void (*body)(void *call), const bool *done,
                PleatMessages **messages);

#endif
