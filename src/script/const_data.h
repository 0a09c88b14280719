// SPDX-License-Identifier: Apache-2.0
// Reads and writes the elements of constants by type, for the parser, the printer
// and the tables of nodes.
#ifndef PLEAT_SCRIPT_CONST_DATA_H
#define PLEAT_SCRIPT_CONST_DATA_H

#include "base/contents.h"
#include "ir/ir.h"

// Whether elements of the type can be stored: all types but handles and void.
bool const_data_storable(DType type);
// Stores element number `at`: `real` for a floating-point type, `integer` for another.
void const_data_store(void *data, DType type, int64_t at, double real, int64_t integer);
// The element as a constant of its type.
Expr *const_data_load(Context *context, const ConstData *data, int64_t at);
int64_t const_data_count(const ConstData *data); // number of elements, from its shape
// Do nested lists of the elements tell the shape? Those of (0, 3) are the empty list.
bool const_data_nests(const ConstData *data);

// The contents to which texts refer by their name. They are copied where they are the context's
// own, so that others can share them.
Contents *const_data_share(Context *context, ConstData *data);
// Makes the contents, which may be NULL, those of the constant. False when their size differs.
bool const_data_take(Context *context, ConstData *data, Contents *contents);

#endif
