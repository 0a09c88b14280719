// SPDX-License-Identifier: Apache-2.0
// Sums of products of integers of 8 bits, and the stages that compute four products at a time. See
// byte_products.c.
#ifndef PLEAT_BYTE_PRODUCTS_H
#define PLEAT_BYTE_PRODUCTS_H

#include "graph/stages.h"

// A factor (number - zero) * scale of a product, where the number has 8 bits and is an element of a
// tensor, or is computed for each of its elements. Outside of the tensor the factor is 0.
typedef struct ByteFactor {
  StageTensor *tensor;
  Expr *const *indices; // over the axes of the stage
  const Stage *source;  // the stage whose `number` it is; NULL: the element of the tensor
  Expr *number;         // over the axes of the source
  bool is_signed;       // the number is from -128 to 127; otherwise from 0 to 255
  Expr *zero;           // int32, over the axes of the stage
  Expr *scale;          // float32, over the axes of the stage; NULL: 1
  Expr *inside;         // where the index is in the tensor; NULL: everywhere
  int packed;           // the dimension along which numbers are packed
  int lanes;            // numbers in an element
  Expr *rest;           // its index without the packed axis, a multiple of `lanes`
  int64_t limit;        // elements of the dimension that are packed
  // The part that the stage reads, along each other dimension. It reaches out of the tensor where
  // `inside` is false.
  int64_t first[TE_MAX_RANK], extent[TE_MAX_RANK];
} ByteFactor;

// The numbers in an element of a packed tensor.
enum { WORDS = 2, BYTES = 4 };

// A stage output[…] = Σ factors[0] * factors[1] in int32, or in float32 where factors have scales.
typedef struct ByteProduct {
  Stage *stage;
  ByteFactor factors[2]; // bytes of the first are unsigned, those of the second signed
  int lanes;             // BYTES or WORDS
  int axis;              // of the reduction, of which so many steps are one
  double reuse;          // products for each element of the first factor
} ByteProduct;

// False when the stage is no such sum. With `floats`, sums in float32 are found too: they are
// computed in int32 and scaled once, in another order of operations.
bool byte_product_of(StageGraph *stages, Stage *stage, int lanes, bool floats, ByteProduct *out);

// Stores the numbers of a factor as a tensor of their own where several stages need them, or where
// they are made of what another stage computes. False when there is no such factor; otherwise the
// products of the graph have to be found again.
bool stage_graph_store_bytes(StageGraph *stages, const ByteProduct *product);

// The tensors of packed bytes that were made, which several products may read.
typedef struct PackedBytes {
  Buffer *packed;
  ByteFactor factor;
  Expr *padding;    // NULL: the tensor has none
  Expr *subtracted; // NULL: nothing
} PackedBytes;
typedef Array(PackedBytes) PackedTensors;

// Puts stages in the place of the product's stage, which compute the same output.
void stage_graph_use_bytes(StageGraph *stages, const ByteProduct *product, PackedTensors *packed);

#endif
