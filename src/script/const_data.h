// SPDX-License-Identifier: Apache-2.0
// Access to the elements of constants, by type.
#ifndef PLEAT_SCRIPT_CONST_DATA_H
#define PLEAT_SCRIPT_CONST_DATA_H

#include "ir/ir.h"

bool const_data_storable(DType type); // false for handles and void
void const_data_store(void *data, DType type, int64_t at, double real, int64_t integer);
// The element as a constant of its type.
Expr *const_data_load(Context *context, const ConstData *data, int64_t at);
int64_t const_data_count(const ConstData *data); // number of elements, from its shape

#endif
