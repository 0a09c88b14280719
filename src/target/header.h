// SPDX-License-Identifier: Apache-2.0
// The C header of a whole program, the same whichever target wrote its code.
#ifndef PLEAT_TARGET_HEADER_H
#define PLEAT_TARGET_HEADER_H

#include "target/target.h"

typedef struct ProgramHeader {
  const char *name;         // prefix of the functions; in capitals, of the constants
  const char *title;        // lines of comment: what the code is
  const char *returns;      // what NAME_run returns, as a sentence
  const char *weights_file; // NULL: weights are in the code
  bool threads;             // there is NAME_run_parallel too
} ProgramHeader;

void target_header(Context *context, const TargetProgram *program, const ProgramHeader *header,
                   Text *out);
// "int NAME_run(…)", as the header declares it.
void target_header_run(const ProgramHeader *header, Text *out);
const char *target_upper(Arena *arena, const char *name);

#endif
