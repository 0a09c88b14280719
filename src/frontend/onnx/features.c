// SPDX-License-Identifier: Apache-2.0
// Imports operators of the domain ai.onnx.ml that select and convert features.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

// Selects the elements of the last axis whose indices the second input has.
static void import_array_feature_extractor(Import *import) {
  Value *x = import->inputs[0], *at = import->inputs[1];
  int64_t count = 1;
  for (int i = 0; i < at->rank; i++) count *= import_dim(at, i);
  if (x->rank < 1 || !dtype_is_int(at->type)) {
    import_refuse(import, "takes a tensor with axes, and integers");
    return;
  }
  if (x->rank == 1) x = import_reshape(import, x, (int64_t[]){1, import_dim(x, 0)}, 2);
  Value *inputs[] = {x, compose_reshape(import, at, &count, 1)};
  if (!inputs[0] || !inputs[1]) return;
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", x->rank - 1);
  import_result(import, 0, import_add(import, node));
}

static void import_binarizer(Import *import) {
  Value *x = import->inputs[0];
  Value *above = compose_number(import, "greater", x, import_float(import, "threshold", 0));
  import_result(import, 0, compose_cast(import, above, x->type));
}

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_feature_rows[] = {
    {"ArrayFeatureExtractor", 2, 2, NULL, import_array_feature_extractor, ML},
    {"Binarizer", 1, 1, "threshold:float", import_binarizer, ML},
    {0},
};
