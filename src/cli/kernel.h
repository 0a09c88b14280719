// SPDX-License-Identifier: Apache-2.0
// Tensor programs in TVMScript files, for the subcommands that accept such files besides models:
// selection, scheduling, arguments.
#ifndef PLEAT_CLI_KERNEL_H
#define PLEAT_CLI_KERNEL_H

#include "cli/session.h"
#include "driver/kernel_arguments.h"

// Does each `--input` name a parameter of one of the kernels, and each of `sizes` a free size?
// False with diagnostics.
bool kernels_check_given(Cli *cli, const Kernels *kernels, const StringList *given,
                         const StringList *sizes);

// Makes the arguments from `contents`, with the sizes of --dim (driver/kernel_arguments.h). False
// with diagnostics.
bool kernel_make_arguments(Cli *cli, const Kernel *kernel, const InputContents *contents,
                           const StringList *sizes, bool fill_all, KernelArguments *out);

// The kernel's parameters and results: "A [6, 5] float32, alpha float32 -> C [6, 32] float32".
const char *kernel_signature(Cli *cli, const Kernel *kernel);

// Begins a session for a model, or for the function of a TVMScript file that --func names (or else
// the only graph function, or the only tensor program).
bool session_begin_file(Session *session, const char *path, const InputContents *contents);

#endif
