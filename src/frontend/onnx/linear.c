// SPDX-License-Identifier: Apache-2.0
// Imports linear models of the domain ai.onnx.ml. They compute in float32, as ONNX Runtime does.
#include "frontend/onnx/classes.h"

#include "graph/graph.h"

// The products of the rows with `count` rows of coefficients, plus the intercepts: [rows, count].
static Value *linear_scores(Import *import, int64_t count) {
  Value *x = import_input(import, 0);
  OnnxFloats weights = import_floats(import, "coefficients"),
             bias = import_floats(import, "intercepts");
  int64_t width = x->rank == 2 ? import_dim(x, 1) : 0, shape[] = {width, count};
  if (x->rank != 2 || count < 1 || weights.count < 1 || weights.count % count ||
      weights.count / count != width || (bias.count && bias.count != count)) {
    import_refuse(import, "has %d coefficients and %d intercepts, and takes [rows, features]",
                  weights.count, bias.count);
    return NULL;
  }
  double *turned = arena_array(&import->context->arena, double, weights.count);
  double *added = arena_array(&import->context->arena, double, count);
  for (int i = 0; i < weights.count; i++)
    turned[i % width * count + i / width] = (double)weights.items[i];
  for (int i = 0; i < bias.count; i++) added[i] = (double)bias.items[i];
  Value *scores = compose_binary(import, "matmul", compose_cast(import, x, DTYPE_FLOAT32),
                                 compose_constant(import, DTYPE_FLOAT32, shape, 2, turned));
  if (!bias.count) return scores;
  return compose_binary(import, "add", scores,
                        compose_constant(import, DTYPE_FLOAT32, &count, 1, added));
}

static void import_linear_regressor(Import *import) {
  int64_t targets = import_int(import, "targets", 1);
  if (targets == 1 && !class_transform_is(import, "NONE"))
    import_refuse(import, "attribute 'post_transform' is '%s', expected NONE for one target",
                  import_text(import, "post_transform", ""));
  else
    import_result(import, 0, class_transform(import, linear_scores(import, targets)));
}

static void import_linear_classifier(Import *import) {
  ClassLabels labels;
  if (!class_labels(import, "classlabels_ints", &labels)) return;
  Value *scores = linear_scores(import, labels.count);
  Value *label = class_of_greatest(import, &labels, scores);
  class_results(import, &labels, label, class_transform(import, scores));
}

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_linear_rows[] = {
    {"LinearClassifier", 1, 1,
     "classlabels_ints:ints classlabels_strings:strings coefficients:floats intercepts:floats "
     "multi_class:int post_transform:string",
     import_linear_classifier, ML},
    {"LinearRegressor", 1, 1,
     "coefficients:floats intercepts:floats post_transform:string targets:int",
     import_linear_regressor, ML},
    {0},
};
