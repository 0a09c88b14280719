// SPDX-License-Identifier: Apache-2.0
// Tensor programs in files of TVMScript, for the subcommands that take such files too: which one,
// how it is scheduled, and its arguments.
#ifndef PLEAT_CLI_KERNEL_H
#define PLEAT_CLI_KERNEL_H

#include "cli/session.h"

// Row of a subcommand's options: `name` is the member of the struct that takes the function's name.
#define FUNC_OPTION(Struct, name)                                                                  \
  { "func", 0, OPTION_TEXT, "NAME", "kernels: only this function", offsetof(Struct, name) }

typedef struct Kernel {
  PrimFunc *func, *scheduled; // as it is written, and as it is to run
  const char *why_written;    // why these are the same; NULL: the model made the schedule
  KernelChoice choice;        // when it did
  const uint8_t *access;      // prim_func_access
} Kernel;
typedef Array(Kernel) Kernels;

// The tensor programs of a file, or the one called `name` (NULL: all), scheduled for `machine`.
// False with diagnostics.
bool kernels_load(Cli *cli, const Module *module, const char *name, const HostMachine *machine,
                  Kernels *kernels);

// Does each `--input` name a parameter of one of these, and each of `sizes` a free size? False with
// diagnostics.
bool kernels_check_given(Cli *cli, const Kernels *kernels, const StringList *given,
                         const StringList *sizes);

// One argument for each parameter. `tensors[i]` has the memory of args[i]; both are freed with the
// context.
typedef struct KernelArguments {
  InterpTensor *args;
  Tensor **tensors;
} KernelArguments;
// Makes the arguments from `contents`. Sizes that are free in the function's shapes follow from the
// arrays given, or from `sizes` ("n=128"). Buffers that are only written start with zeros; with
// `fill_all` they are filled as inputs are. False with diagnostics.
bool kernel_arguments(Cli *cli, const Kernel *kernel, const InputContents *contents,
                      const StringList *sizes, bool fill_all, KernelArguments *out);

// "A [6, 5] float32, alpha float32 -> C [6, 32] float32"
const char *kernel_signature(Cli *cli, const Kernel *kernel);

// session_begin for a model, or for the tensor program called `name` (NULL: the only one) of a file
// of kernels.
bool session_begin_file(Session *session, const char *path, const char *name,
                        const InputContents *contents);

#endif
