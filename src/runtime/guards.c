// SPDX-License-Identifier: Apache-2.0
// Reads the memory in which the guards of a kernel note accesses out of bounds (ir/ir.h,
// AccessGuards).
#include "runtime/guards.h"

void guards_clear(void *notes, int count) {
  memset(notes, 0, sizeof(GuardNote) * (size_t)count);
}

int guards_find(const void *notes, int count) {
  const GuardNote *note = notes;
  for (int i = 0; i < count; i++)
    if (note[i].extent_and_one) return i;
  return -1;
}

const char *guard_text(Arena *arena, const char *access, int axis, const void *notes, int guard) {
  GuardNote note = ((const GuardNote *)notes)[guard];
  if (axis == GUARD_ASSERT) return access;
  if (axis == GUARD_DIVISION) return arena_printf(arena, "%s is a division by 0", access);
  const char *where = axis < 0 ? "its memory" : arena_printf(arena, "axis %d", axis);
  return arena_printf(arena, "%s is out of bounds: index %lld of %s is outside of [0, %lld)",
                      access, (long long)note.index, where, (long long)note.extent_and_one - 1);
}
