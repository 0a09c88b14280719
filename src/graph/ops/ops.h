// SPDX-License-Identifier: Apache-2.0
// Declares the families of operators (one file each), and the functions that they share.
#ifndef PLEAT_GRAPH_OPS_H
#define PLEAT_GRAPH_OPS_H

#include "graph/graph.h"

#define OP_FAMILY(family)                                                                          \
  extern const OpRow family##_ops[];                                                               \
  extern const int family##_op_count;
OP_FAMILY(elementwise)
OP_FAMILY(conv)
OP_FAMILY(contraction)
OP_FAMILY(pool)
OP_FAMILY(normalization)
OP_FAMILY(reduction)
OP_FAMILY(shape)
OP_FAMILY(select)
OP_FAMILY(resample)
OP_FAMILY(sample)
OP_FAMILY(einsum)
OP_FAMILY(standardize)
OP_FAMILY(quantize)
OP_FAMILY(ordered)
OP_FAMILY(largest)
OP_FAMILY(attention)
OP_FAMILY(arrange)
OP_FAMILY(transform)
OP_FAMILY(creation)
OP_FAMILY(composed)
OP_FAMILY(resize)
#undef OP_FAMILY

enum { OP_MOST_PARTS = 1024 }; // of a split

// A sliding window along one axis: input index = at*stride + tap*dilation - begin.
typedef struct WindowAxis {
  Expr *input, *output; // extents
  int64_t kernel, stride, dilation, begin, end;
} WindowAxis;
// Reads a list of `count` integers from `least` to INT32_MAX; each is `otherwise` when the list is
// absent. One integer stands for all, and half of the 'padding' for both sides.
bool op_window_attr(OpCall *call, const char *key, int64_t otherwise, int64_t least, int64_t *out,
                    int count);
// Sets the windows of the axes 2… of `x` from the node's attributes strides, padding, dilation,
// auto_pad and ceil_mode. The caller has set each window's kernel.
bool op_windows(OpCall *call, Buffer *x, WindowAxis *windows, int count);
// x at (n, c, windows…), or `outside` where a window is beyond the tensor.
Expr *op_window_at(OpCall *call, Buffer *x, Expr *n, Expr *c, const WindowAxis *windows, int count,
                   Expr *const *at, Expr *const *taps, Expr *outside);

// The usual orders of an operator over windows by its number of spatial axes, and the attribute
// that gives another order of the data. `weights` is NULL without weights.
// Defines the operator on tensors in the usual orders, and lets it take and return them in those of
// its attributes (letters.c).
bool op_in_letters(OpCall *call, OpDefine define);

// An element of an index tensor as an index of an axis: a negative one counts from the end, and one
// outside of the axis becomes the nearest inside.
Expr *op_position(Context *context, Expr *index, Expr *extent);
bool op_check_indices(OpCall *call, int input); // checks that input `input` has integers

#endif
