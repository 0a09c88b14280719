// SPDX-License-Identifier: Apache-2.0
// Declares the hooks of the LLVM target for the table of targets, in builds with and without LLVM.
#ifndef PLEAT_TARGET_LLVM_ROWS_H
#define PLEAT_TARGET_LLVM_ROWS_H

#include "target/target.h"

bool llvm_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
               const char *ending, Text *out);
void llvm_load_ahead(void);
TargetLoading *llvm_load_begin(Context *context, const char *name, const TargetOptions *options);
bool llvm_load_add(TargetLoading *loading, LowerKernel *kernel);
CompiledCode *llvm_load_finish(TargetLoading *loading);
const char *llvm_library_path(void);
bool llvm_write_programs(Context *context, const TargetProgram *programs, int count,
                         const TargetProgramOptions *options, const char *path);

#endif
