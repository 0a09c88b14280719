// SPDX-License-Identifier: Apache-2.0
// Accesses of lanes to memory, for bank conflicts and the swizzles against them.
#ifndef PLEAT_LAYOUT_BANKS_H
#define PLEAT_LAYOUT_BANKS_H

#include "layout/core/internal.h"

// The memory offsets of an access: a layout of one physical axis on (positions …, lane). NULL with
// a reason.
const Layout *layout_access_offsets(Context *context, const Layout *layout,
                                    const LayoutAccess *access, LayoutBanks banks,
                                    const char **reason);
// Whether the offset at (position, lane) is that of the position joined by `op` (ADD or XOR) with
// the step of the lane from the origin.
bool layout_access_separates(Context *context, const Layout *at, LayoutOp op);

// Bits that a lane wants, and lanes that are served together.
int64_t layout_access_width(const LayoutAccess *access, LayoutBanks banks);
int64_t layout_access_phase(const LayoutAccess *access, LayoutBanks banks);
// Of a layout of symbolic extents, in memory alone and once (symbolic_banks.c).
LayoutAnswer layout_symbolic_conflicts(Context *context, const Layout *memory,
                                       const LayoutAccess *access, LayoutBanks banks,
                                       LayoutConflicts *out);

#endif
