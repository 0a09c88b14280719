// SPDX-License-Identifier: Apache-2.0
// Replaces the hooks of the LLVM target in builds without LLVM: each reports a diagnostic.
#include "target/llvm/rows.h"

static bool absent(Context *context) {
  return diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                       "target llvm: this build is without LLVM (see `pleat --version`)");
}

bool llvm_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
               const char *ending, Text *out) {
  return absent(context);
}

void llvm_load_ahead(void) {
}

TargetLoading *llvm_load_begin(Context *context, const char *name, const TargetOptions *options) {
  absent(context);
  return NULL;
}

bool llvm_load_add(TargetLoading *loading, LowerKernel *kernel) {
  return false;
}

CompiledCode *llvm_load_finish(TargetLoading *loading) {
  return NULL;
}

bool llvm_write_programs(Context *context, const TargetProgram *programs, int count,
                         const TargetProgramOptions *options, const char *path) {
  return absent(context);
}

const char *llvm_library_path(void) {
  return NULL;
}
