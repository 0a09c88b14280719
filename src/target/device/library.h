// SPDX-License-Identifier: Apache-2.0
// Declares how the libraries of devices are loaded, so that nothing depends on them where a build
// is made.
#ifndef PLEAT_TARGET_DEVICE_LIBRARY_H
#define PLEAT_TARGET_DEVICE_LIBRARY_H

#include "base/base.h"

typedef enum LibraryFound {
  LIBRARY_COMPLETE,
  LIBRARY_MISSING, // no file is there
  LIBRARY_OLD,     // it lacks a function
} LibraryFound;

// Loads the first of the files that is there, and stores the addresses of the functions at
// `functions`, in the order of their names. Both lists end with NULL. The library stays loaded,
// because devices have threads that run in it.
LibraryFound device_library(const char *const *files, const char *const *names, void *functions);

#endif
