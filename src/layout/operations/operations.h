// SPDX-License-Identifier: Apache-2.0
// Declares what later folders use of the operations: accesses of lanes to memory, for bank
// conflicts and the swizzles against them. The operations themselves are in layout.h.
#ifndef PLEAT_LAYOUT_OPERATIONS_H
#define PLEAT_LAYOUT_OPERATIONS_H

#include "layout/core/core.h"

// The memory offsets of an access: a layout of one physical axis on (positions …, lane). NULL with
// a reason.
const Layout *layout_access_offsets(Context *context, const Layout *layout,
                                    const LayoutAccess *access, LayoutBanks banks,
                                    const char **reason);
// Whether the offset at (position, lane) is the offset at the position combined by `op` (ADD or
// XOR) with the step of the lane from the origin.
bool layout_access_separates(Context *context, const Layout *at, LayoutOp op);

// The bits that each lane reads, and the number of lanes that are served together.
int64_t layout_access_width(const LayoutAccess *access, LayoutBanks banks);
int64_t layout_access_phase(const LayoutAccess *access, LayoutBanks banks);
extern const char layout_bank_conflict[]; // the reason of a conflict
// layout_bank_conflicts of a layout of symbolic extents with one copy, all of it in memory
// (symbolic_banks.c).
LayoutAnswer layout_symbolic_conflicts(Context *context, const Layout *memory,
                                       const LayoutAccess *access, LayoutBanks banks,
                                       LayoutConflicts *out);

// The static layout in flat memory with its offset as a sum of floors of single axes, read off its
// values along each axis. NO: its offset is no such sum. *out is NULL unless YES.
LayoutAnswer layout_by_floors(Context *context, const Layout *memory, const Layout **out);

// layout_refine of several layouts, each of memory alone (as layout_on_resource gives it) and all
// on one logical shape. weights[k] of a factor is for parts[k].
LayoutAnswer layout_refine_all(Context *context, const Layout *const *parts, int count,
                               LayoutRefinement *out);

#endif
