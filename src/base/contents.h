// SPDX-License-Identifier: Apache-2.0
// Declares the contents of large constants, which texts refer to by a name. Contexts and callers
// share them.
#ifndef PLEAT_BASE_CONTENTS_H
#define PLEAT_BASE_CONTENTS_H

#include "base/base.h"
#include "base/digest.h"

enum { CONTENTS_NAME_SIZE = 9 + DIGEST_TEXT_SIZE };

typedef struct Contents {
  _Atomic int references;
  char name[CONTENTS_NAME_SIZE]; // "constant:" and the digest of the bytes
  size_t bytes;
  _Alignas(64) unsigned char data[]; // never changes
} Contents;

// A copy of the bytes, with one reference. NULL when memory is exhausted.
Contents *contents_new(const void *data, size_t bytes);
// One more reference, and one less. `contents` may be NULL.
Contents *contents_keep(Contents *contents);
void contents_release(void *contents);
// The same for a context, which keeps the reference until it is freed. Jumps to the API edge when
// memory is exhausted.
Contents *contents_made(Context *context, const void *data, size_t bytes);
// The context keeps a reference of its own until it is freed.
void contents_hold(Context *context, Contents *contents);

#endif
