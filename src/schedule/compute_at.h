// SPDX-License-Identifier: Apache-2.0
// The move of a block under a loop of another nest, for compute_at and the proof that what the
// block reads is stored by then.
#ifndef PLEAT_SCHEDULE_COMPUTE_AT_H
#define PLEAT_SCHEDULE_COMPUTE_AT_H

#include "schedule/internal.h"

// The range of one of the block's variables at its new position: `min` is in terms of the loops
// there, and the extent is constant or symbolic. `whole`: the range is the variable's domain.
// `end`: no reader needs values from there on; NULL when that is not known. `exact`: the block must
// not run from there on, since it does so in another iteration.
typedef struct Window {
  bool whole;
  Expr *min, *extent, *end;
  bool exact;
} Window;

typedef struct Move {
  Schedule *schedule;
  Path block, loop; // the block, and the loop that it moves under
  const Block *moved;
  bool holds_blocks; // the moved block has blocks inside
  PrimFunc *before;
  Analyzer *analyzer; // has the facts of the loops down to the target
  Window *windows;    // of the moved block's variables
  bool keep_unit_loops;
  const char
      *complete; // why the new nest must run over the block's whole domain; NULL: it need not
  bool partial;  // an iteration of the loop reduces a part of the domain
} Move;

// Refuses the move; always false.
bool move_refuse(Move *move, const char *why);
// Refuses when the block would read elements that another block in a loop around both stores only
// later, or has changed. `blocks` are those of the function, and the windows are known.
bool move_inputs_are_stored(Move *move, const StmtArray *blocks);

// ---- move_windows.c ----------------------------------------------------------------------------

// Makes the window of a variable the whole domain when it is at least as large.
void window_settle(Move *move, const BlockVar *v, Window *window);
// The window of axis `d` of a region, with a constant extent where a bound is known.
Window window_of(Move *move, const Region *region, int d);
// The elements along an axis that an execution writes: from v * size + first on for a variable v,
// or down from there where they are mirrored, at most `size` elements.
typedef struct WrittenTile {
  int64_t size, extent;
  Expr *first;
  bool mirrored;
} WrittenTile;
// False where axis `d` of the region is not written so, by constant numbers.
bool written_tile(Move *move, const Region *write, int d, Expr *v, WrittenTile *tile);
// Finds the windows of the moved block, a producer, by the elements of its results that are read
// below the loop. Refuses where none is read, or where the results are written at other indices.
bool producer_windows(Move *move);

// ---- read_windows.c ----------------------------------------------------------------------------

// Finds the window of the variable by which the moved block, a consumer, reads several elements
// along axis `d`, or another one than its own, below a loop that completes the written part. False
// where it does not read so (*why is NULL), or for the reason *why.
bool window_of_neighbours(Move *move, const Region *read, const Region *written, int d,
                          Window *windows, const char **why);

#endif
