// SPDX-License-Identifier: Apache-2.0
// Loads libraries of devices and finds their functions.
#include "target/device/library.h"

#include <dlfcn.h>

LibraryFound device_library(const char *const *files, const char *const *names, void *functions) {
  void *library = NULL;
  for (int i = 0; files[i] && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
  if (!library) return LIBRARY_MISSING;
  for (int i = 0; names[i]; i++) {
    void *address = dlsym(library, names[i]);
    if (!address) return LIBRARY_OLD;
    memcpy((char *)functions + (size_t)i * sizeof address, &address, sizeof address);
  }
  return LIBRARY_COMPLETE;
}
