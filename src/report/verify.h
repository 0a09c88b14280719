// SPDX-License-Identifier: Apache-2.0
// Verifies compiled code: runs it beside the reference, compares every value of a graph that a
// kernel writes, or every parameter of a tensor program, and locates the part of the compiler at
// fault. The command and the library share these functions.
#ifndef PLEAT_REPORT_VERIFY_H
#define PLEAT_REPORT_VERIFY_H

#include <jansson.h>

#include "driver/reference.h"
#include "pleat/pleat.h"

typedef struct VerifyTask {
  // Set by the caller:
  Context *context;
  Arena *results; // memory of the results; verify_task_new sets it to the context's
  Tolerance tolerance;
  bool definitions; // the reference is unscheduled code, not the interpreter
  bool whole;       // go on after the first difference, to compare all outputs
  ThreadPool *pool; // of the next check, which verify_task_release frees; NULL: the caller's thread
  void (*progress)(void *env, int done, int all); // before each kernel; may be NULL
  void *env;
  // For a model, set by the caller before each check:
  const GraphFunc *graph;
  const PlanConstraints *constraints;
  Program *program;           // whose kernels were kept
  ConstData *const *expected; // by output: contents that others computed; NULL: none
  const char *expected_from;  // names them in messages
  // Likewise, by verify_set_outputs and verify_set_input:
  Tensor **inputs;           // row-major
  Tensor **given, **outputs; // in the caller's layouts
  // Results:
  PleatVerification data; // of all checks so far; complete after verify_finish
  Array(const PleatVerifiedTensor *) tensors;
  const Value *differs; // of a model, the first; NULL: all agree
  Reference reference;  // of the last check of a model
  Executable *executable;
  Map settled; // from the values that were compared to their PleatVerifiedTensor
} VerifyTask;

// A task whose resources are released with the context.
VerifyTask *verify_task_new(Context *context);
// Releases what the last check allocated, but not its results.
void verify_task_release(VerifyTask *task);

// Begins the tensors of a run of the graph, and makes those of the outputs. False with a
// diagnostic.
bool verify_set_outputs(VerifyTask *task);
// Sets an input to a tensor in the caller's layout; to a row-major one; or to random contents.
// False with a diagnostic.
bool verify_give_input(VerifyTask *task, int number, Tensor *given);
bool verify_set_input(VerifyTask *task, int number, Tensor *logical);
bool verify_fill_input(VerifyTask *task, int number, int64_t seed);

// Runs the program and compares. False with diagnostics, or without when something differs:
// task->data.differs is then set.
bool verify_model(VerifyTask *task);
// Likewise for a tensor program, which is function `number` of `code`: compares all parameters, so
// that a write to one that is only read is noticed. Changes the contents of `args`.
bool verify_kernel(VerifyTask *task, const Module *module, const Kernel *kernel, KernelCode *code,
                   int number, InterpTensor *args);

// Adds a tensor that was compared. `about` has its name, shape, function, kernel, and whether it is
// an output.
void verify_note(VerifyTask *task, const PleatVerifiedTensor *about, const Difference *difference);
// True when a file with elements of type `file` can hold those of a value of type `type`: some
// files store bfloat16 as the bits of uint16.
bool verify_type_fits(DType type, DType file);

// Completes task->data except for its text.
void verify_finish(VerifyTask *task);
// The sentences about a tensor that differs.
const char *verify_difference(const VerifyTask *task, const PleatVerifiedTensor *tensor);
SourcePos verify_position(const VerifyTask *task); // of task->differs
// The sentence after "agrees", such as "with the interpreter, exactly: 13 tensors of 13 kernels".
// `sets` is the number of sets of expected contents, 0 for none.
const char *verify_agreement(const VerifyTask *task, int sets);
// The sentence after "agrees" about a tensor program, whose tensors begin with number `first`.
const char *verify_kernel_agreement(const VerifyTask *task, const Kernel *kernel, int first);
json_t *verify_json(const PleatVerification *verification, int sets);

#endif
