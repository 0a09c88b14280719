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

// Hooks of rows that make the code of all kernels at once, and so keep the kernels until then.
TargetLoading *target_keep_begin(Context *context, const char *name, const TargetOptions *options);
bool target_keep_add(TargetLoading *loading, LowerKernel *kernel);
TargetUnit target_kept_unit(const TargetLoading *loading); // the kernels that were added

#endif
