// SPDX-License-Identifier: Apache-2.0
// Defines code in memory as the targets that make it see it: what a target fills in, and how a
// region is started where it is not a C function.
#ifndef PLEAT_TARGET_CODE_H
#define PLEAT_TARGET_CODE_H

#include "target/target.h"

// A region's code on a CPU.
typedef void (*TargetFunction)(void *const *args, int64_t begin, int64_t end);

struct TargetCode { // a target's own struct begins with this
  // A handle of the region `name`, or NULL when there is no such region.
  void *(*find)(TargetCode *code, const char *name);
  void (*free)(TargetCode *code);
  // Runs a chunk of a region; threads call it at the same time. NULL: the handle is the address of
  // a TargetFunction.
  void (*run)(TargetCode *code, void *handle, void *const *args, int64_t begin, int64_t end);
  // `run` is given all iterations of a region at once, by one thread, and shares them out itself.
  bool whole;
};

struct TargetLoading { // likewise
  Context *context;
  const TargetRow *target;
  TargetOptions options;
};

#endif
