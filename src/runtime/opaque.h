// SPDX-License-Identifier: Apache-2.0
// Declares code outside of a compiled program that its steps call: a caller's function, or a
// library's kernel.
#ifndef PLEAT_RUNTIME_OPAQUE_H
#define PLEAT_RUNTIME_OPAQUE_H

#include "runtime/runtime.h"

typedef enum OpaqueStatus { OPAQUE_DONE, OPAQUE_FAILED, OPAQUE_CANCELLED } OpaqueStatus;
enum { OPAQUE_MESSAGE_SIZE = 1024, OPAQUE_ABSENT = -1 };

// The parts of a call of a caller's function that a saved program holds. Reading it finds the
// function by its name.
typedef struct OpaqueRecord {
  const struct PleatCall *call;
  int way;
  const char *const *layouts; // by tensor of the call, of that way; NULL: row-major
} OpaqueRecord;

// The code of one call. It does not change once it is made, and several threads run it at the same
// time. The struct of each kind of code begins with this one.
typedef struct OpaqueCode OpaqueCode;
struct OpaqueCode {
  _Atomic int references;
  const char *function, *node; // for messages: the names of the function and of the node
  // The tensors of the call: its inputs, then its outputs. They are as they are in memory, so their
  // shapes are physical. The rank is OPAQUE_ABSENT for an input that the node does not have.
  int input_count, count;
  const ArgumentSpec *specs;
  const OpaqueRecord *record; // NULL: the code is not a caller's function, and cannot be saved
  // Runs it on `count` tensors; those of absent inputs have no data. On failure `message`, of
  // OPAQUE_MESSAGE_SIZE bytes, may say why.
  OpaqueStatus (*run)(const OpaqueCode *code, Tensor *tensors, char *message);
  void (*free)(OpaqueCode *code);
};

OpaqueCode *opaque_code_keep(OpaqueCode *code); // adds a reference
void opaque_code_release(OpaqueCode *code);     // the last reference frees it; NULL is allowed
// Runs it on the memory of the tensors. False with a diagnostic. A cancelled call leaves with
// context_cancel.
bool opaque_code_run(Context *context, const OpaqueCode *code, void *const *data);

#endif
