// SPDX-License-Identifier: Apache-2.0
// Declares the hooks of the C target for the table of targets.
#ifndef PLEAT_TARGET_C_ROWS_H
#define PLEAT_TARGET_C_ROWS_H

#include "target/target.h"

bool c_target_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
                   const char *ending, Text *out);
// Code for this process by the system's C compiler and the dynamic linker, for tests and for builds
// without LLVM.
CompiledCode *c_load_finish(TargetLoading *loading);

#endif
