// SPDX-License-Identifier: Apache-2.0
// Says whether code in this process finds the functions that it calls by name.
#ifndef PLEAT_TARGET_FUNCTIONS_H
#define PLEAT_TARGET_FUNCTIONS_H

#include "target/target.h"

// False with a diagnostic at the first call of a function that is not one of this process, which
// code in it would have to call.
bool target_finds_functions(Context *context, const TargetRow *target, const LowerKernel *kernel);

#endif
