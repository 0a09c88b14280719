// SPDX-License-Identifier: Apache-2.0
// What operators are put together with that are defined by others. Each function gives NULL when
// one of its operands is NULL, which is what an earlier one gave after a diagnostic.
#ifndef PLEAT_FRONTEND_ONNX_COMPOSE_H
#define PLEAT_FRONTEND_ONNX_COMPOSE_H

#include "frontend/onnx/import.h"

Value *compose_unary(Import *import, const char *op, Value *a);
Value *compose_binary(Import *import, const char *op, Value *a, Value *b);
Value *compose_number(Import *import, const char *op, Value *a, double b); // of the type of a
Value *compose_choose(Import *import, Value *condition, Value *a, Value *b);
Value *compose_permute(Import *import, Value *a, const int64_t *axes); // as many as it has
// Over axes counted from 0, all where count is 0.
Value *compose_reduce(Import *import, const char *op, Value *a, const int64_t *axes, int count,
                      bool keep);
Value *compose_slice(Import *import, Value *a, int axis, int64_t begin, int64_t end, int64_t step);
Value *compose_concat(Import *import, Value *const *values, int count, int axis);
// With zeros (or `filler`) before and behind along an axis.
Value *compose_pad(Import *import, Value *a, int axis, int64_t before, int64_t behind,
                   double filler);
Value *compose_cast(Import *import, Value *a, DType type);
Value *compose_reshape(Import *import, Value *a, const int64_t *shape, int rank);
// A constant of these numbers, in row-major order.
Value *compose_constant(Import *import, DType type, const int64_t *shape, int rank,
                        const double *numbers);
void compose_shape(const Value *value, int64_t *shape);

#endif
