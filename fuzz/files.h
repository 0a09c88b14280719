// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on whole files and on mutants of them. Each file has a process of its own,
// with limits of ten seconds and 2 GB.
//   TARGET FOLDER COUNT [SEED [KEEP]]   the files under a folder, then COUNT mutants of them, which
//                                       are the same in every run; what fails is written into the
//                                       folder KEEP
//   TARGET FILE                         one file, in this process
#ifndef PLEAT_FUZZ_FILES_H
#define PLEAT_FUZZ_FILES_H

#include "base/base.h"

typedef struct FuzzFile {
  const char *data;
  size_t size;
} FuzzFile;

typedef struct Mutator {
  Arena *arena;
  uint64_t seed;
  const FuzzFile *files; // the corpus
  int file_count;
} Mutator;

// A number from 0 to n - 1; 0 where n is 0.
size_t fuzz_below(Mutator *mutator, size_t n);

// Each target defines these: how the names of its files end, a damaged copy of a file, and whether
// the work on a file is done or refused with a diagnostic. A fault of the work is reported by
// `bug` (a failure of the context), or by what `fuzz_fault` prints.
extern const char *const fuzz_ending;
Text fuzz_mutant(Mutator *mutator, FuzzFile file);
void fuzz_try(Context *context, const char *path);

// Says that the file is handled wrongly, and ends the trial.
void fuzz_fault(Context *context, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
