// SPDX-License-Identifier: Apache-2.0
// A target to copy. It writes kernels and programs as a listing in words, and its code for this
// process is run by the interpreter, so that the template is no CPU and yet computes. The tests
// build it; it has no row in target_table.
//
// To make a target of it: copy this folder to src/target/NAME, replace `template` by the name, put
// the files in src/target/meson.build, and move the row of row.c to target_table in target.c.
// - listing.c writes statements and expressions: change what each line says. Statements and
//   expressions that may occur are listed in lower/lower.h and at target_legalize.
// - load.c makes code for this process: hand the text to the device's compiler in `load_finish`,
// and
//   start the compiled region in `run`. A target without it leaves the hooks out of its row.
// - row.c holds the row, and the hook that writes whole programs.
// Then run tests/unit/test_target: it compares every row that loads with the interpreter.
#ifndef PLEAT_TARGET_TEMPLATE_TEMPLATE_H
#define PLEAT_TARGET_TEMPLATE_TEMPLATE_H

#include "target/loading.h"

extern const TargetRow template_target;

// listing.c. The kernels of `unit`, one after the other.
bool template_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
                   const char *ending, Text *out);

// load.c
TargetLoading *template_load_begin(Context *context, const char *name,
                                   const TargetOptions *options);
bool template_load_add(TargetLoading *loading, LowerKernel *kernel);
CompiledCode *template_load_finish(TargetLoading *loading);

#endif
