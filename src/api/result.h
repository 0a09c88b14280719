// SPDX-License-Identifier: Apache-2.0
// Results that the library hands out as structs: each is in an arena of its own, with all that it
// points to.
#ifndef PLEAT_API_RESULT_H
#define PLEAT_API_RESULT_H

#include "base/base.h"

// A copy of the struct in the arena, whose memory belongs to the copy from now on: the arena is
// then empty.
void *result_new(Arena *arena, const void *value, size_t size);
void result_free(const void *value); // with its arena; NULL is allowed

#endif
