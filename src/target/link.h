// SPDX-License-Identifier: Apache-2.0
// Makes shared libraries by the system's C compiler (link.c), for the targets c and llvm.
#ifndef PLEAT_TARGET_LINK_H
#define PLEAT_TARGET_LINK_H

#include "base/base.h"

// Makes the bytes of an object file (kind ".o") or of C (".c", compiled with -O2, $CFLAGS and then
// `flags`) a shared library at `path`, with the system's C compiler ($CC, or cc), and adds it to
// `files`. False with a diagnostic.
bool link_shared(Context *context, FileSet *files, const Text *bytes, const char *kind,
                 const char *flags, const char *path);

#endif
