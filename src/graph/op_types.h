// SPDX-License-Identifier: Apache-2.0
// Checks the element types and extents in an operator's definition (op_types.c), for inference.
#ifndef PLEAT_GRAPH_OP_TYPES_H
#define PLEAT_GRAPH_OP_TYPES_H

#include "te/te.h"

// The first problem with element types or extents in the stages of a definition, which are those
// from `first` on ("takes floating point, got int64"); NULL when there is none.
const char *op_problem(Context *context, const Te *te, int first);

#endif
