// SPDX-License-Identifier: Apache-2.0
// Defines code that is being made as the targets that make it see it.
#ifndef PLEAT_TARGET_LOADING_H
#define PLEAT_TARGET_LOADING_H

#include "target/target.h"

struct TargetLoading { // a target's own struct begins with this
  Context *context;
  const TargetRow *target;
  TargetOptions options;
};

#endif
