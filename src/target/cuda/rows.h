// SPDX-License-Identifier: Apache-2.0
// Declares the hooks of target cuda for the table of targets.
#ifndef PLEAT_TARGET_CUDA_ROWS_H
#define PLEAT_TARGET_CUDA_ROWS_H

#include "target/target.h"

bool cuda_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
               const char *ending, Text *out);
// Writes NAME.c, or the kernels alone as .cu or .ptx.
bool cuda_write_programs(Context *context, const TargetProgram *programs, int count,
                         const TargetProgramOptions *options, const char *path);
CompiledCode *cuda_load_finish(TargetLoading *loading);
bool cuda_is_present(void); // there is a device, and the compiler for it

#endif
