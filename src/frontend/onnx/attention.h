// SPDX-License-Identifier: Apache-2.0
// Declares the parts of attention and of rotary embedding that operators of several domains share.
#ifndef PLEAT_FRONTEND_ONNX_ATTENTION_H
#define PLEAT_FRONTEND_ONNX_ATTENTION_H

#include "frontend/onnx/compose.h"

typedef struct Attention {
  Import *import;
  bool flat; // inputs of rank 3: [batch, sequence, heads * size]
  int64_t batch, heads, kv_heads, queries, keys, past, size, value_size;
  double scale, softcap; // softcap 0: none
  DType type, wide;
  Value *query, *key, *value; // [batch, heads, sequence, size]
  Value *masked;              // where a query may not see a key; NULL: nowhere
  Value *bias;                // added to the scores; NULL: none
  Value *sink;                // one score for each head that only takes its share; NULL: none
} Attention;

// [batch, sequence, heads * size] as [batch, heads, sequence, size], where the inputs are flat.
Value *attention_by_heads(Attention *a, Value *x, int64_t heads);
// Finds the sizes and types from the query, key and value; false when they do not fit.
bool attention_sizes(Attention *a);
// Adds what the mask of an input, flags or numbers that are added to the scores, hides.
bool attention_take_mask(Attention *a, int input);
// Hides keys by positions: `node` is an nn.attention_mask without its sizes; false on failure.
bool attention_hide(Attention *a, Node *node);
// The result in the form of the query; `steps` become the scores, the capped, the masked scores and
// the probabilities.
Value *attention_result(Attention *a, Value *steps[4]);

// Rotary embedding of a tensor, whose heads' first 2 * half numbers are rotated.
typedef struct Rotary {
  Import *import;
  bool flat; // [batch, sequence, heads, size], otherwise [batch, heads, sequence, size]
  bool interleaved;
  int64_t batch, sequence, heads, size, half;
} Rotary;

// The positions first + 0, first + 1, ... of a sequence, [texts, sequence], for the number of texts
// in `first`, [texts]. NULL: from 0, for one text.
Value *rotary_positions(Rotary *r, Value *first);
// The angles that all heads read: those of a table [position, half] at positions [1 or batch,
// sequence], or all of a table [1 or batch, sequence, half] without positions. NULL after a
// diagnostic.
Value *rotary_angles(Rotary *r, Value *table, Value *positions);
Value *rotary_result(Rotary *r, Value *x, Value *cosine, Value *sine);

#endif
