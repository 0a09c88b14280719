// SPDX-License-Identifier: Apache-2.0
// Writes the C header of a whole program, which is the same for every target that wrote the code.
#ifndef PLEAT_TARGET_HEADER_H
#define PLEAT_TARGET_HEADER_H

#include "target/target.h"

typedef struct ProgramHeader {
  const char *name;         // prefix of the functions, and in capitals of the constants
  const char *title;        // lines of comment that describe the code
  const char *returns;      // a sentence that says what NAME_run returns
  const char *weights_file; // NULL when the weights are in the code
  bool threads;             // the code has NAME_run_parallel
} ProgramHeader;

void target_header(Context *context, const TargetProgram *program, const ProgramHeader *header,
                   Text *out);
// "int NAME_run(…)", as the header declares it.
void target_header_run(const ProgramHeader *header, Text *out);

#endif
