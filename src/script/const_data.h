// SPDX-License-Identifier: Apache-2.0
// Reads and writes the elements of constants by type, for the parser and the printer.
#ifndef PLEAT_SCRIPT_CONST_DATA_H
#define PLEAT_SCRIPT_CONST_DATA_H

#include "ir/ir.h"

// The element as a constant of its type.
Expr *const_data_load(Context *context, const ConstData *data, int64_t at);
int64_t const_data_count(const ConstData *data); // number of elements, from its shape

#endif
