// SPDX-License-Identifier: Apache-2.0
#ifndef PLEAT_GRAPH_OP_TYPES_H
#define PLEAT_GRAPH_OP_TYPES_H

#include "te/te.h"

// What is wrong with the element types and extents that meet in the stages of a definition, which
// are those from `first` on ("takes floating point, got int64"); NULL when nothing is.
const char *op_problem(Context *context, const Te *te, int first);

#endif
