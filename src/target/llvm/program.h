// SPDX-License-Identifier: Apache-2.0
// Declares a whole program for LLVM: the kernels, and the values that the entry needs.
#ifndef PLEAT_TARGET_LLVM_PROGRAM_H
#define PLEAT_TARGET_LLVM_PROGRAM_H

#include "target/target.h"

typedef struct LlvmProgram {
  const TargetProgram *program;
  const char *name;         // prefix of its functions
  bool weights_beside;      // the caller hands them over
  const char *weights_file; // read by the assembler; NULL when the weights are in the text
} LlvmProgram;

#endif
