// SPDX-License-Identifier: Apache-2.0
// Says which memories a target has, by scope and rank.
#ifndef PLEAT_TARGET_MEMORIES_H
#define PLEAT_TARGET_MEMORIES_H

#include "target/target.h"

// The memory of this scope, or NULL when the target has none.
const TargetMemory *target_memory(const TargetRow *target, const char *scope);
// False with a diagnostic at each buffer of the kernel whose memory the target does not have.
bool target_takes_kernel(Context *context, const TargetRow *target, const LowerKernel *kernel);

#endif
