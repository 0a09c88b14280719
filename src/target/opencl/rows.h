// SPDX-License-Identifier: Apache-2.0
// Declares the hooks of target opencl for the table of targets.
#ifndef PLEAT_TARGET_OPENCL_ROWS_H
#define PLEAT_TARGET_OPENCL_ROWS_H

#include "target/target.h"

bool opencl_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
                 const char *ending, Text *out);
// Writes NAME.c, or the kernels alone as NAME.cl.
bool opencl_write_programs(Context *context, const TargetProgram *programs, int count,
                           const TargetProgramOptions *options, const char *path);
CompiledCode *opencl_load_finish(TargetLoading *loading);
bool opencl_is_present(void); // there is a device

#endif
