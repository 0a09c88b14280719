// SPDX-License-Identifier: Apache-2.0
#ifndef PLEAT_TARGET_LINK_H
#define PLEAT_TARGET_LINK_H

#include "base/base.h"

// Makes the object file's bytes a shared library at `path`, with the system's C compiler as the
// linker ($CC, or cc). The file appears whole or not at all. False with a diagnostic.
bool link_shared(Context *context, const Text *object, const char *path);

#endif
