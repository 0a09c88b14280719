// SPDX-License-Identifier: Apache-2.0
// Declares whole programs for LLVM: the kernels, and the values that their entries need.
#ifndef PLEAT_TARGET_LLVM_PROGRAM_H
#define PLEAT_TARGET_LLVM_PROGRAM_H

#include "target/header.h"

typedef struct LlvmPrograms {
  const TargetProgram *programs;
  int count;
  ProgramHeader header;
  bool weights_beside;      // the caller hands them over
  const char *weights_file; // read by the assembler; NULL when the weights are in the text
} LlvmPrograms;

#endif
