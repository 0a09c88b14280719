// SPDX-License-Identifier: Apache-2.0
// Computes the labels and transformed scores of classifiers of the domain ai.onnx.ml.
#include "frontend/onnx/classes.h"

#include "graph/graph.h"

// ---- Labels -----------------------------------------------------------------------------------

bool class_labels(Import *import, const char *attribute, ClassLabels *labels) {
  const OnnxAttribute *texts = import_attribute(import, "classlabels_strings");
  IntArray numbers = import_ints(import, attribute);
  *labels = (ClassLabels){numbers.items, numbers.count};
  if (texts && texts->strings.count) *labels = (ClassLabels){NULL, texts->strings.count};
  if (labels->count < 2) return import_refuse(import, "has %d labels", labels->count);
  return labels->items || !import_result_is_needed(import, 0) ||
         import_refuse(import, "its labels are text, which cannot be computed with: train with "
                               "numbers as labels, or take only the scores as output");
}

static Value *constant(Import *import, const int64_t *items, int64_t count) {
  return import_const(import, DTYPE_INT64, &count, items ? 1 : 0, items);
}

Value *class_of_greatest(Import *import, const ClassLabels *labels, Value *scores) {
  if (!scores || !labels->items) return NULL;
  Node *node = import_begin(import, "argmax", &scores, 1);
  node_set_int(import->context, node, "axis", 1);
  return compose_binary(import, "take", constant(import, labels->items, labels->count),
                        import_add(import, node));
}

Value *class_above(Import *import, const ClassLabels *labels, Value *score, double bound) {
  if (!score || !labels->items) return NULL;
  int64_t rows = import_dim(score, 0);
  Value *above = compose_number(import, "greater", compose_reshape(import, score, &rows, 1), bound);
  return compose_choose(import, above, constant(import, labels->items + 1, 1),
                        constant(import, labels->items, 1));
}

// ---- Scores -----------------------------------------------------------------------------------

bool class_transform_is(const Import *import, const char *name) {
  return strcmp(import_text(import, "post_transform", "NONE"), name) == 0;
}

// Softmax over the scores that are not zero. ONNX Runtime multiplies the others, up to 1e-7, with
// exp(-greatest).
static Value *softmax_of_nonzero(Import *import, Value *scores) {
  int64_t last = 1;
  Value *greatest = compose_reduce(import, "max", scores, &last, 1, true);
  Value *powers =
      compose_unary(import, "exp", compose_binary(import, "subtract", scores, greatest));
  Value *small =
      compose_binary(import, "multiply", scores,
                     compose_unary(import, "exp", compose_unary(import, "negative", greatest)));
  Value *counts =
      compose_number(import, "greater", compose_unary(import, "abs", scores), 0.0000001);
  Value *zero = scores ? import_scalar(import, scores, 0) : NULL;
  Value *sum =
      compose_reduce(import, "sum", compose_choose(import, counts, powers, zero), &last, 1, true);
  return compose_binary(import, "divide", compose_choose(import, counts, powers, small), sum);
}

Value *class_transform(Import *import, Value *scores) {
  scores = compose_cast(import, scores, DTYPE_FLOAT32);
  if (!scores || class_transform_is(import, "NONE")) return scores;
  if (class_transform_is(import, "LOGISTIC")) return compose_unary(import, "sigmoid", scores);
  if (class_transform_is(import, "SOFTMAX_ZERO")) return softmax_of_nonzero(import, scores);
  if (class_transform_is(import, "SOFTMAX")) {
    Node *node = import_begin(import, "nn.softmax", &scores, 1);
    node_set_int(import->context, node, "axis", 1);
    return import_add(import, node);
  }
  import_refuse(import,
                "attribute 'post_transform' is '%s', which is not supported: leave it out, "
                "and transform the scores with other operators",
                import_text(import, "post_transform", ""));
  return NULL;
}

void class_results(Import *import, const ClassLabels *labels, Value *label, Value *scores) {
  if (labels->items && import_wants_output(import, 0)) import_result(import, 0, label);
  if (import_wants_output(import, 1)) import_result(import, 1, scores);
}
