// SPDX-License-Identifier: Apache-2.0
// Imports operators of the domain ai.onnx.ml that select and convert features.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"
#include "te/te.h"

#include <math.h>

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

// A constant of a number for each feature, or of one for all; NULL after a diagnostic.
static Value *for_features(Import *import, const char *name, const Value *x, DType type) {
  const OnnxAttribute *attribute = import_attribute(import, name);
  int64_t count = attribute ? attribute->floats.count : 0;
  if (x->rank != 2 || (count != 1 && count != import_dim(x, 1))) {
    import_refuse(import, "attribute '%s' has %lld numbers, and it takes [rows, features]", name,
                  (long long)count);
    return NULL;
  }
  double *numbers = arena_array(&import->context->arena, double, count);
  for (int64_t i = 0; i < count; i++) numbers[i] = (double)attribute->floats.items[i];
  return compose_constant(import, type, &count, 1, numbers);
}

static void import_scaler(Import *import) {
  Value *x = import->inputs[0];
  DType type = x->type.bits == 64 && dtype_is_float(x->type) ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
  Value *y = compose_cast(import, x, type);
  if (import_has(import, "offset"))
    y = compose_binary(import, "subtract", y, for_features(import, "offset", x, type));
  if (import_has(import, "scale"))
    y = compose_binary(import, "multiply", y, for_features(import, "scale", x, type));
  import_result(import, 0, compose_cast(import, y, DTYPE_FLOAT32));
}

// Divides each row by its norm, where this is not zero.
static void import_normalizer(Import *import) {
  const char *norm = import_text(import, "norm", "MAX");
  Value *x = compose_cast(import, import->inputs[0], DTYPE_FLOAT32), *size;
  int64_t last = 1;
  if (!x || x->rank != 2) {
    import_refuse(import, "takes [rows, features]");
    return;
  }
  if (strcmp(norm, "L2") == 0)
    size = compose_unary(import, "sqrt", compose_reduce(import, "sum_square", x, &last, 1, true));
  else if (strcmp(norm, "L1") == 0)
    size = compose_reduce(import, "sum", compose_unary(import, "abs", x), &last, 1, true);
  else
    size = compose_reduce(import, "max", x, &last, 1, true);
  Value *one = import_scalar(import, x, 1);
  size = compose_choose(import, compose_number(import, "equal", size, 0), one, size);
  import_result(import, 0, compose_binary(import, "divide", x, size));
}

static void impute_integers(Import *import, Value *x) {
  IntArray instead = import_ints(import, "imputed_value_int64s");
  int64_t count = instead.count, replaced = import_int(import, "replaced_value_int64", 0);
  if (x->rank != 2 || (count != 1 && count != import_dim(x, 1))) {
    import_refuse(import, "attribute 'imputed_value_int64s' has %lld numbers, and it takes "
                          "[rows, features]",
                  (long long)count);
    return;
  }
  Value *numbers = import_const(import, DTYPE_INT64, &count, 1, instead.items);
  Value *wanted = import_filled(import, DTYPE_INT64, &replaced, NULL, 0);
  Value *lacks = compose_binary(import, "equal", x, compose_cast(import, wanted, x->type));
  import_result(import, 0,
                compose_choose(import, lacks, compose_cast(import, numbers, x->type), x));
}

// Replaces a number, which may be NaN, by that of the feature.
static void import_imputer(Import *import) {
  Value *x = import->inputs[0];
  double replaced = import_float(import, "replaced_value_float", 0);
  if (!dtype_is_float(x->type)) {
    impute_integers(import, x);
    return;
  }
  Value *lacks = isnan(replaced) ? compose_unary(import, "isnan", x)
                                 : compose_number(import, "equal", x, replaced);
  Value *instead = for_features(import, "imputed_value_floats", x, x->type);
  import_result(import, 0, compose_choose(import, lacks, instead, x));
}

// A last axis with 1 at the category that a number is equal to, and 0 elsewhere.
static void import_one_hot_encoder(Import *import) {
  Value *x = import->inputs[0];
  IntArray categories = import_ints(import, "cats_int64s");
  int64_t shape[TE_MAX_RANK], count = categories.count;
  if (!count || !import_int(import, "zeros", 1) || x->rank >= TE_MAX_RANK) {
    import_refuse(import, "takes categories that are integers, and 'zeros' 1 (others give zeros)");
    return;
  }
  compose_shape(x, shape);
  shape[x->rank] = 1;
  x = compose_reshape(import, compose_cast(import, x, DTYPE_INT64), shape, x->rank + 1);
  Value *equal = compose_binary(import, "equal", x,
                                import_const(import, DTYPE_INT64, &count, 1, categories.items));
  import_result(import, 0, compose_cast(import, equal, DTYPE_FLOAT32));
}

// Puts the features of all inputs, [rows, features], into one row of floats.
static void import_feature_vectorizer(Import *import) {
  IntArray sizes = import_ints(import, "inputdimensions");
  Value **parts = arena_array(&import->context->arena, Value *, import->input_count);
  for (int i = 0; i < import->input_count; i++) {
    Value *x = parts[i] = import_input(import, i);
    if (!x || x->rank < 1 || x->rank > 2 || sizes.count != import->input_count ||
        sizes.items[i] != import_dim(x, x->rank - 1)) {
      import_refuse(import, "'inputdimensions' are not the features of its inputs");
      return;
    }
    int64_t shape[] = {x->rank == 2 ? import_dim(x, 0) : 1, sizes.items[i]};
    parts[i] = compose_reshape(import, compose_cast(import, x, DTYPE_FLOAT32), shape, 2);
  }
  import_result(import, 0, compose_concat(import, parts, import->input_count, 1));
}

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_feature_rows[] = {
    {"ArrayFeatureExtractor", 2, 2, NULL, import_array_feature_extractor, ML},
    {"Binarizer", 1, 1, "threshold:float", import_binarizer, ML},
    {"FeatureVectorizer", 1, -1, "inputdimensions:ints", import_feature_vectorizer, ML},
    {"Imputer", 1, 1,
     "imputed_value_floats:floats imputed_value_int64s:ints replaced_value_float:float "
     "replaced_value_int64:int",
     import_imputer, ML},
    {"Normalizer", 1, 1, "norm:string", import_normalizer, ML},
    {"OneHotEncoder", 1, 1, "cats_int64s:ints cats_strings:strings zeros:int",
     import_one_hot_encoder, ML},
    {"Scaler", 1, 1, "offset:floats scale:floats", import_scaler, ML},
    {0},
};
