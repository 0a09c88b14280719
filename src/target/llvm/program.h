// SPDX-License-Identifier: Apache-2.0
// A whole program for LLVM: what its entry needs beside the kernels.
#ifndef PLEAT_TARGET_LLVM_PROGRAM_H
#define PLEAT_TARGET_LLVM_PROGRAM_H

#include "target/target.h"

typedef struct LlvmProgram {
  const TargetProgram *program;
  const char *name;         // prefix of its functions
  bool weights_beside;      // handed over by the caller
  const char *weights_file; // to be taken in by the assembler; NULL: written into the text
} LlvmProgram;

#endif
