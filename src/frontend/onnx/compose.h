// SPDX-License-Identifier: Apache-2.0
// Declares functions for ONNX operators that are composed of several operators of src/graph. Each
// returns NULL when an operand is NULL, which says that an earlier step failed and reported it.
#ifndef PLEAT_FRONTEND_ONNX_COMPOSE_H
#define PLEAT_FRONTEND_ONNX_COMPOSE_H

#include "frontend/onnx/import.h"

Value *compose_unary(Import *import, const char *op, Value *a);
Value *compose_binary(Import *import, const char *op, Value *a, Value *b);
Value *compose_number(Import *import, const char *op, Value *a, double b); // `b` in the type of a
Value *compose_choose(Import *import, Value *condition, Value *a, Value *b);
// An axis for each of its axes.
Value *compose_permute(Import *import, Value *a, const int64_t *axes);
// Reduces over axes counted from 0; over all axes when count is 0.
Value *compose_reduce(Import *import, const char *op, Value *a, const int64_t *axes, int count,
                      bool keep);
Value *compose_slice(Import *import, Value *a, int axis, int64_t begin, int64_t end, int64_t step);
Value *compose_concat(Import *import, Value *const *values, int count, int axis);
// Pads an axis with zeros (or `filler`) before and after the elements.
Value *compose_pad(Import *import, Value *a, int axis, int64_t before, int64_t behind,
                   double filler);
Value *compose_cast(Import *import, Value *a, DType type);
Value *compose_reshape(Import *import, Value *a, const int64_t *shape, int rank);
// A constant of these numbers in row-major order.
Value *compose_constant(Import *import, DType type, const int64_t *shape, int rank,
                        const double *numbers);
// The integers from 0 on, in int64.
Value *compose_positions(Import *import, int64_t count);
void compose_shape(const Value *value, int64_t *shape);

#endif
