// SPDX-License-Identifier: Apache-2.0
// Recognises convolutions and products of matrices by their loops, whatever operator they come
// from and in whatever order their tensors have their axes, for libraries that compute them.
#ifndef PLEAT_OFFLOAD_CONTRACTION_H
#define PLEAT_OFFLOAD_CONTRACTION_H

#include "autosched/nest.h"
#include "graph/stages.h"

enum { CONTRACTION_RANK = 8, MOST_POST_OPS = 4 };

// A tensor with its axes in the order of the library.
typedef struct OffloadOperand {
  Buffer *buffer;
  int rank;
  int axis[CONTRACTION_RANK];     // of the buffer; -1: an axis of extent 1 that it does not have
  int64_t dims[CONTRACTION_RANK]; // extents
} OffloadOperand;

typedef enum PostOpKind { POST_RELU, POST_BIAS, POST_ADD } PostOpKind;
typedef struct PostOp {
  PostOpKind kind;
  Buffer *buffer; // of POST_BIAS, with one element for each output channel, and of POST_ADD
} PostOp;

// out[n, o, y..] = Σ data[n, i, y * stride + k * dilation - before..] * weights[o, i, k..], with
// zeros outside of the data; or a product of matrices, out[b.., m, n] = Σ data[b.., m, k] *
// weights[b.., k, n].
typedef struct Contraction {
  bool is_window;
  OffloadOperand data, weights, output;
  int space; // number of window axes
  int64_t stride[CONTRACTION_RANK], dilation[CONTRACTION_RANK];
  int64_t before[CONTRACTION_RANK], after[CONTRACTION_RANK];
  int channel; // the dimension of the output along which a bias moves, in the library's order
  double points;
  bool constant_weights; // their contents are known at compile time; set by the caller
  PostOp posts[MOST_POST_OPS];
  int post_count;
} Contraction;

// Is the stage one, in float32?
bool contraction_match(Context *context, const Stage *stage, Contraction *out);
// Adds the operations of the stage, which reads the contraction's result so far in place, and
// makes its output the contraction's. False when it computes anything else.
bool contraction_take(Contraction *c, const Stage *follower);

#endif
