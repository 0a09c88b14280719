// SPDX-License-Identifier: Apache-2.0
// Views of buffers (T.match_buffer), and the regions that blocks state.
#ifndef PLEAT_IR_VIEW_H
#define PLEAT_IR_VIEW_H

#include "ir/ir.h"

// The body with accesses of the view as accesses of its source. Reports a view that has another
// element type, or more axes.
Stmt *stmt_resolve_view(Context *context, const MatchBuffer *match, Stmt *body);
// The statement, which is a block, with the regions of its reads, writes and views replaced.
typedef Region RegionChange(Context *context, const void *env, const Region *region);
Stmt *stmt_change_regions(Context *context, const Stmt *s, RegionChange *change, const void *env);

#endif
