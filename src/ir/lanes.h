// SPDX-License-Identifier: Apache-2.0
// Stores of vectors as loops over their lanes.
#ifndef PLEAT_LANES_H
#define PLEAT_LANES_H

#include "ir/ir.h"

// The store of a vector as a vectorised loop that stores the lanes for which `condition`, of as
// many lanes, is true (NULL: all of them). NULL where a lane of the value is no operation on the
// same lane of its operands.
Stmt *stmt_lane_loop(Context *context, Stmt *store, Expr *condition);

#endif
