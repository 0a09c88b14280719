// SPDX-License-Identifier: Apache-2.0
// Writes the C header of a whole program, which is the same for every target that wrote the code.
#ifndef PLEAT_TARGET_HEADER_H
#define PLEAT_TARGET_HEADER_H

#include "target/target.h"

typedef struct ProgramHeader {
  const char *code;         // name of the file that holds the code: "digits.c"
  const char *name;         // prefix of all names, in capitals of those of constants
  const char *title;        // lines of comment that describe the code
  const char *returns;      // a sentence that says what NAME_run returns
  const char *weights_file; // NULL when the weights are in the code
  bool threads;             // the code has NAME_run_parallel
  Arena *arena;
} ProgramHeader;

// The prefix of the functions of a program: that of the header, and after it the program's own name
// where the file has several.
const char *target_program_name(const ProgramHeader *header, const TargetProgram *program);
// Adds the header of the code at `path` to `files`, as NAME.h beside it. It replaces an older
// header that Pleat wrote, with a warning where that one declares another interface for another
// file of code; a file that Pleat did not write is refused. False with a diagnostic.
bool target_header_write(Context *context, FileSet *files, const TargetProgram *programs, int count,
                         const ProgramHeader *header, const char *path);
// "int NAME_run(…)", "int NAME_call(…)" and "int64_t NAME_arena_bytes(…)", as the header declares
// them.
void target_header_run(const ProgramHeader *header, const TargetProgram *program, Text *out);
void target_header_call(const ProgramHeader *header, const TargetProgram *program, Text *out);
void target_header_host(const TargetProgram *program, Text *out);
bool target_has_host(const TargetProgram *programs, int count); // has any of them one?
void target_header_arena(const ProgramHeader *header, const TargetProgram *program, Text *out);

#endif
