// SPDX-License-Identifier: Apache-2.0
// Imports LabelEncoder of the domain ai.onnx.ml between numbers.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

#include <math.h>

// A list of keys or values: `name`_tensor, `name`_int64s or `name`_floats. NULL after a diagnostic.
static Value *numbers_of(Import *import, const char *name) {
  const char *texts = str_format(import->context, "%s_strings", name);
  const char *tensor = str_format(import->context, "%s_tensor", name);
  IntArray ints = import_ints(import, str_format(import->context, "%s_int64s", name));
  OnnxFloats floats = import_floats(import, str_format(import->context, "%s_floats", name));
  const OnnxAttribute *given = import_attribute(import, tensor);
  int64_t count = MAX_OF(ints.count, floats.count);
  if (given && given->t) {
    ConstData *data = onnx_tensor_data(import->importer->file, given->t, import->pos);
    count = data ? const_count(data) : 0;
    return data ? import_const(import, data->type, &count, 1, data->data) : NULL;
  }
  if (ints.count) return import_const(import, DTYPE_INT64, &count, 1, ints.items);
  if (floats.count) return import_const(import, DTYPE_FLOAT32, &count, 1, floats.items);
  if (import_has(import, texts) || import_has(import, "classes_strings"))
    import_refuse(import,
                  "its %s are text, which cannot be computed with: make numbers of it outside of "
                  "the model",
                  name);
  else
    import_refuse(import, "has no %s", name);
  return NULL;
}

// The value of a number that is no key, as a tensor of one element.
static Value *otherwise(Import *import, DType type) {
  const OnnxAttribute *given = import_attribute(import, "default_tensor");
  int64_t one = 1;
  if (given && given->t) {
    ConstData *data = onnx_tensor_data(import->importer->file, given->t, import->pos);
    if (!data || const_count(data) != 1)
      return import_refuse(import, "'default_tensor' is not one number"), NULL;
    return compose_cast(import, import_const(import, data->type, &one, 1, data->data), type);
  }
  double number = dtype_is_float(type) ? import_float(import, "default_float", -0.0)
                                       : (double)import_int(import, "default_int64", -1);
  return compose_constant(import, type, &one, 1, &number);
}

// Is each number of [..., 1] the key? NaN is a key like others.
static Value *is_key(Import *import, Value *x, Value *keys) {
  Value *equal = compose_binary(import, "equal", x, keys);
  if (!dtype_is_float(x->type)) return equal;
  Value *both = compose_binary(import, "logical_and", compose_unary(import, "isnan", x),
                               compose_unary(import, "isnan", keys));
  return compose_binary(import, "logical_or", equal, both);
}

// The position of the first key that is equal selects the value; that of none, the default.
static void import_label_encoder(Import *import) {
  Value *x = import->inputs[0], *keys = numbers_of(import, "keys");
  Value *values = keys ? numbers_of(import, "values") : NULL;
  if (!values) return;
  int64_t shape[TE_MAX_RANK], count = import_dim(keys, 0), last = x->rank;
  if (count != import_dim(values, 0) || x->rank >= TE_MAX_RANK ||
      dtype_is_float(x->type) != dtype_is_float(keys->type)) {
    import_refuse(import, "has %lld keys and %lld values, for numbers of %s", (long long)count,
                  (long long)import_dim(values, 0), dtype_name(import->context, x->type));
    return;
  }
  compose_shape(x, shape);
  shape[last] = 1;
  Value *all = compose_positions(import, count);
  Value *none = all ? import_scalar(import, all, (double)count) : NULL;
  Value *wide = compose_reshape(import, x, shape, x->rank + 1);
  Value *same = wide ? is_key(import, wide, compose_cast(import, keys, x->type)) : NULL;
  Value *at = compose_choose(import, same, all, none);
  Value *place = compose_reduce(import, "min", at, &last, 1, false);
  Value *table[] = {values, otherwise(import, values->type)};
  import_result(import, 0,
                compose_binary(import, "take", compose_concat(import, table, 2, 0), place));
}

const OnnxRow onnx_label_rows[] = {
    {"LabelEncoder", 1, 1,
     "classes_strings:strings default_float:float default_int64:int default_string:string "
     "default_tensor:tensor keys_floats:floats keys_int64s:ints keys_strings:strings "
     "keys_tensor:tensor values_floats:floats values_int64s:ints values_strings:strings "
     "values_tensor:tensor",
     import_label_encoder, .domain = "ai.onnx.ml"},
    {0},
};
