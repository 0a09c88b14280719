// SPDX-License-Identifier: Apache-2.0
// Makes the arguments of tensor programs of a user's file: given arrays and numbers, or random ones
// and zeros.
#ifndef PLEAT_DRIVER_KERNEL_ARGUMENTS_H
#define PLEAT_DRIVER_KERNEL_ARGUMENTS_H

#include "driver/driver.h"

// Where the contents of a kernel's parameters come from.
typedef struct KernelContents {
  const char *fill; // "random" or "zero" for parameters that are not given; NULL: refused
  int64_t seed;
  bool fill_all;            // fill buffers that are only written, too, instead of zeros
  const char *const *sizes; // "n=128": sizes that are free in the shapes, and scalar parameters
  int size_count;
  // The array that is given for a buffer, and the number for a scalar parameter as a text; NULL
  // when there is none, or with a diagnostic.
  Tensor *(*array)(void *env, const char *name);
  const char *(*file)(void *env, const char *name); // of an array, for messages; NULL: no files
  const char *(*number)(void *env, const char *name);
  void *env;
} KernelContents;

// One argument for each parameter. `tensors[i]` owns the memory of args[i]; both are freed with the
// context.
typedef struct KernelArguments {
  InterpTensor *args;
  Tensor **tensors;
} KernelArguments;
// Sizes that are free in the function's shapes follow from the given arrays, or from the sizes.
// False with diagnostics.
bool kernel_arguments(Context *context, const Kernel *kernel, const KernelContents *contents,
                      KernelArguments *out);
// Is each size one of a kernel's? False with diagnostics.
bool kernels_check_sizes(Context *context, const Kernels *kernels, const char *const *sizes,
                         int count);
// The value of an expression of sizes; false where it uses a variable that has no value.
bool kernel_size_value(Context *context, const InterpSize *sizes, int count, const Expr *e,
                       int64_t *value);
const char *kernel_param_name(const Kernel *kernel, int param);

#endif
