// SPDX-License-Identifier: Apache-2.0
// Code in memory, as the targets that make it see it.
#ifndef PLEAT_TARGET_CODE_H
#define PLEAT_TARGET_CODE_H

#include "target/target.h"

struct TargetCode { // a target's own struct begins with this
  void *(*find)(TargetCode *code, const char *name); // NULL when there is no such region
  void (*free)(TargetCode *code);
};

struct TargetLoading { // likewise
  Context *context;
  const TargetRow *target;
  TargetOptions options;
};

#endif
