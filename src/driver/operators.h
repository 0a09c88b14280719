// SPDX-License-Identifier: Apache-2.0
// Declares how functions of the caller (PleatOperator in pleat.h) become opaque functions.
#ifndef PLEAT_DRIVER_OPERATORS_H
#define PLEAT_DRIVER_OPERATORS_H

#include "graph/opaque.h"
#include "pleat/pleat.h"
#include "runtime/compiled.h"

// Sets *functions to the functions of these operators, which are copied; to NULL when there are
// none. False with diagnostics.
bool operators_read(Context *context, const PleatOperator *const *given, size_t count,
                    const OpaqueFunctions **functions);
// Finds the functions that a program which was read calls, and checks that they call the tensors as
// the program has them. False with diagnostics.
bool operators_bind(Context *context, CompiledProgram *program, const OpaqueFunctions *functions);

#endif
