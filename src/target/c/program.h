// SPDX-License-Identifier: Apache-2.0
// Writes a whole program as C: the interface between what is the same for kernels in C and in the
// language of a device (weights, NAME_run with its checks, NAME_call, the header), and what is not.
#ifndef PLEAT_TARGET_C_PROGRAM_H
#define PLEAT_TARGET_C_PROGRAM_H

#include "target/c/emit.h"
#include "target/header.h"

typedef struct CProgram CProgram;

typedef struct CProgramDialect {
  const char *(*title)(CProgram *program); // lines of comment for the header
  const char *returns;                     // a sentence about the result of NAME_run
  // Makes the kernels, and sets program->made. False with a diagnostic.
  bool (*make)(CProgram *program, CModule *module);
  // The lines of NAME_run that run the steps, with `constants` and `memory`, the arena. False with
  // a diagnostic.
  bool (*steps)(CProgram *program, CEmit *emit);
  void (*code)(CProgram *program, CModule *module, Text *out); // the code before NAME_run
} CProgramDialect;

struct CProgram { // a file that is being written
  Context *context;
  Arena *arena;
  const TargetProgram *programs;
  int count;
  const TargetProgram *program; // the one whose functions are written
  const TargetProgramOptions *options;
  const char *name; // prefix of functions
  const char *base; // the path without ".c"
  FileSet *files;
  const CProgramDialect *dialect;
  void *made;         // of the dialect
  const char **sizes; // the variables of the program's sizes
  int reported;       // kernels
};

// Writes `path`, NAME.c, with its header and weights. False with a diagnostic.
bool c_programs_write(Context *context, const TargetProgram *programs, int count,
                      const TargetProgramOptions *options, const CProgramDialect *dialect,
                      const char *path);
const char *c_program_title(const CProgram *program); // the names of all programs
// The address of an argument in NAME_run.
const char *c_program_place(CProgram *program, const TargetArgument *argument);

#endif
