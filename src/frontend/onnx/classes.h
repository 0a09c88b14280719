// SPDX-License-Identifier: Apache-2.0
// Declares the results that classifiers of the domain ai.onnx.ml share: labels and scores.
#ifndef PLEAT_FRONTEND_ONNX_CLASSES_H
#define PLEAT_FRONTEND_ONNX_CLASSES_H

#include "frontend/onnx/compose.h"

// The labels of a classifier; `items` is NULL where they are text and nothing needs them.
typedef struct ClassLabels {
  const int64_t *items;
  int count;
} ClassLabels;

// Reads an attribute of integers, or classlabels_strings. False with a diagnostic when there are
// fewer than two, or text is needed.
bool class_labels(Import *import, const char *attribute, ClassLabels *labels);
// The label of the first greatest score of each row of [rows, classes].
Value *class_of_greatest(Import *import, const ClassLabels *labels, Value *scores);
// The second label where the only score of [rows, 1] is greater than the bound, else the first.
Value *class_above(Import *import, const ClassLabels *labels, Value *score, double bound);
// True when the attribute post_transform has this value.
bool class_transform_is(const Import *import, const char *name);
// Applies the attribute post_transform to scores of [rows, targets], in float32.
Value *class_transform(Import *import, Value *scores);
// Sets the outputs; a label that is text is left out.
void class_results(Import *import, const ClassLabels *labels, Value *label, Value *scores);

#endif
