// SPDX-License-Identifier: Apache-2.0
// Calls of another function of the module (EXPR_CALL_MODULE). A pointer is the data of a buffer, or
// the address of an element; scalars are passed by value. The extents, strides and offsets of the
// callee's buffers that are variables are those of the buffer whose data is passed.
#ifndef PLEAT_IR_CALL_H
#define PLEAT_IR_CALL_H

#include "ir/ir.h"

// The buffers of a function by their data variables. A data variable of several buffers has the one
// that is defined first.
typedef struct CallScope {
  Context *context;
  Map owners; // from the data variable to Buffer*
  Map views;  // from a matched buffer to its MatchBuffer*
} CallScope;
CallScope call_scope(Context *context, const PrimFunc *caller);

// The memory to which a pointer points: `offset` elements of type `element` after the beginning of
// `data`, which is no view. `data` is NULL where the memory is not known.
typedef struct CallPointer {
  Expr *data, *offset;
  const Buffer *buffer; // which has the element, at `indices`; NULL: `offset` is 0
  Expr *const *indices;
} CallPointer;
CallPointer call_pointer(const CallScope *scope, Expr *arg);

typedef enum CallSizeKind { CALL_SIZE_EXTENT, CALL_SIZE_STRIDE, CALL_SIZE_OFFSET } CallSizeKind;

// A variable in the description of a parameter, first in its extent or stride of axis `axis`, with
// its value in terms of the caller.
typedef struct CallSize {
  Expr *var, *value;
  int param;
  CallSizeKind kind;
  int axis;
} CallSize;
typedef Array(CallSize) CallSizes;
// The variables in shapes, strides and offsets of the callee's parameters that are no parameters.
// False with a diagnostic at `pos` when the call gives no value to one.
bool call_sizes(const CallScope *scope, SourcePos pos, const PrimFunc *callee, const Expr *call,
                CallSizes *sizes);

#endif
