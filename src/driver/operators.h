// SPDX-License-Identifier: Apache-2.0
// Declares how functions of the caller (PleatOperator in pleat.h) become opaque functions.
#ifndef PLEAT_DRIVER_OPERATORS_H
#define PLEAT_DRIVER_OPERATORS_H

#include "graph/opaque.h"
#include "pleat/pleat.h"

// The functions for these operators, which are copied; NULL when there are none. Each has a name
// and a function `run`.
const OpaqueFunctions *operators_functions(Context *context, const PleatOperator *operators,
                                           int count);

#endif
