// SPDX-License-Identifier: Apache-2.0
// Declares the notes that the code of a kernel writes where an access is out of bounds, where a
// division has the divisor 0, or where an assertion fails.
#ifndef PLEAT_RUNTIME_GUARDS_H
#define PLEAT_RUNTIME_GUARDS_H

#include "base/base.h"

// In place of an axis: the index is that of all elements of the memory, of which the buffer is an
// alias; or the access is a division of integers, whose divisor is 0; or it is the message of an
// assertion.
typedef enum GuardKind { GUARD_MEMORY = -1, GUARD_DIVISION = -2, GUARD_ASSERT = -3 } GuardKind;

// The note of a guard: extent_and_one is 0 while no access was out of bounds.
typedef struct GuardNote {
  int64_t index, extent_and_one;
} GuardNote;
void guards_clear(void *notes, int count);
int guards_find(const void *notes, int count); // the first guard that noted something; -1: none
// The message for it.
const char *guard_text(Arena *arena, const char *access, int axis, const void *notes, int guard);

#endif
