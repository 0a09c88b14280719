// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators that select or move elements, and the normalisations, where they
// differ from the operators of src/graph.
#include "frontend/onnx/import.h"

#include "graph/graph.h"
#include "interp/interp.h"

// ---- Slices, splits, repetitions --------------------------------------------------------------

static IntArray counting(Import *import, int count) {
  IntArray axes = {0};
  for (int i = 0; i < count; i++) array_push(&import->context->arena, &axes, i);
  return axes;
}

void import_slice(Import *import) {
  IntArray starts, ends, axes, steps;
  bool has_starts, has_ends, has_axes, has_steps;
  if (!import_list(import, 1, "starts", &starts, &has_starts) ||
      !import_list(import, 2, "ends", &ends, &has_ends) ||
      !import_list(import, 3, "axes", &axes, &has_axes) ||
      !import_list(import, 4, "steps", &steps, &has_steps))
    return;
  if (!has_starts || !has_ends) {
    import_refuse(import, "its starts and ends are missing");
    return;
  }
  Node *node = import_begin(import, "strided_slice", import->inputs, 1);
  import_set_ints(import, node, "axes", has_axes ? axes : counting(import, starts.count));
  import_set_ints(import, node, "begin", starts);
  import_set_ints(import, node, "end", ends);
  if (has_steps) import_set_ints(import, node, "strides", steps);
  import_result(import, 0, import_add(import, node));
}

void import_split(Import *import) {
  IntArray sizes;
  bool present;
  int parts = import->node->output.count;
  if (!import_list(import, 1, "split", &sizes, &present)) return;
  if (present && sizes.count != parts) {
    import_refuse(import, "has %d sizes for %d results", sizes.count, parts);
    return;
  }
  Node *node = import_begin(import, "split", import->inputs, 1);
  node->output_count = parts;
  node->outputs = arena_array(&import->context->arena, Value *, parts);
  node_set_int(import->context, node, "axis", import_int(import, "axis", 0));
  if (present)
    import_set_ints(import, node, "sizes", sizes);
  else
    node_set_int(import->context, node, "parts", import_int(import, "num_outputs", parts));
  bool made = import_add(import, node) != NULL;
  for (int i = 0; i < parts; i++) import_result(import, i, made ? node->outputs[i] : NULL);
}

// Adds an operator of one tensor and a list of integers that must be known.
static void with_list(Import *import, const char *op, const char *key) {
  IntArray values;
  if (!import_constant_ints(import, 1, &values)) return;
  Node *node = import_begin(import, op, import->inputs, 1);
  import_set_ints(import, node, key, values);
  import_result(import, 0, import_add(import, node));
}

void import_expand(Import *import) {
  with_list(import, "broadcast_to", "shape");
}
void import_tile(Import *import) {
  with_list(import, "tile", "repeats");
}

// Reads one integer from input `i`, which must be known; `otherwise` when the input is absent.
static bool known_integer(Import *import, int i, int64_t otherwise, int64_t *out) {
  *out = otherwise;
  if (!import_input(import, i)) return true;
  ConstData *data = import_constant_scalar(import, i);
  if (!data) return false;
  *out = dtype_is_float(data->type) ? (int64_t)const_number(data, 0) : const_int(data, 0);
  return true;
}

void import_trilu(Import *import) {
  int64_t k;
  if (!known_integer(import, 1, 0, &k)) return;
  Node *node =
      import_begin(import, import_int(import, "upper", 1) ? "triu" : "tril", import->inputs, 1);
  node_set_int(import->context, node, "k", k);
  import_result(import, 0, import_add(import, node));
}

void import_cumsum(Import *import) {
  int64_t axis;
  if (!known_integer(import, 1, 0, &axis)) return;
  Node *node = import_begin(import, op_find_onnx(import->node->op_type)->name, import->inputs, 1);
  node_set_int(import->context, node, "axis", axis);
  node_set_int(import->context, node, "exclusive", import_int(import, "exclusive", 0));
  node_set_int(import->context, node, "reverse", import_int(import, "reverse", 0));
  import_result(import, 0, import_add(import, node));
}

// ---- Argmax, running sums, one-hot, hardmax ---------------------------------------------------

void import_arg(Import *import) {
  Node *node = import_begin(import, op_find_onnx(import->node->op_type)->name, import->inputs, 1);
  node_set_int(import->context, node, "axis", import_int(import, "axis", 0));
  node_set_int(import->context, node, "keepdims", import_int(import, "keepdims", 1));
  node_set_int(import->context, node, "select_last_index",
               import_int(import, "select_last_index", 0));
  import_result(import, 0, import_add(import, node));
}

static Value *one_hot(Import *import, Value *indices, Value *values, int64_t depth, int64_t axis) {
  if (!indices || !values) return NULL;
  Node *node = import_begin(import, "one_hot", (Value *[]){indices, values}, 2);
  node_set_int(import->context, node, "depth", depth);
  node_set_int(import->context, node, "axis", axis);
  return import_add(import, node);
}

// OneHot: indices may be floats; the values are [off, on].
void import_one_hot(Import *import) {
  int64_t depth;
  Value *indices = import_input(import, 0);
  if (!known_integer(import, 1, 0, &depth)) return;
  if (!dtype_is_int(indices->type)) indices = import_cast(import, indices, DTYPE_INT64);
  import_result(
      import, 0,
      one_hot(import, indices, import_input(import, 2), depth, import_int(import, "axis", -1)));
}

// Hardmax: 1 at the first maximum along the axis, and 0 elsewhere. Up to opset 12 the axis and all
// later ones are flattened into one.
void import_hardmax(Import *import) {
  Value *x = import_input(import, 0);
  bool old = import_opset(import) < 13;
  int64_t axis = import_int(import, "axis", old ? 1 : -1), whole[TE_MAX_RANK], flat[] = {1, 1};
  if (!import_axis(import, &axis, x->rank)) return;
  for (int i = 0; i < x->rank; i++) {
    whole[i] = import_dim(x, i);
    flat[i >= axis] *= whole[i];
  }
  Value *from = old ? import_reshape(import, x, flat, 2) : x;
  if (!from) return import_result(import, 0, NULL);
  Node *node = import_begin(import, "argmax", &from, 1);
  node_set_int(import->context, node, "axis", old ? 1 : axis);
  char *values = arena_alloc(&import->context->arena, 16);
  number_store(x->type, values + dtype_bytes(x->type), 1);
  Value *off_on = import_const(import, x->type, (const int64_t[]){2}, 1, values);
  Value *hot = one_hot(import, import_add(import, node), off_on, old ? flat[1] : whole[axis],
                       old ? 1 : axis);
  import_result(import, 0, old ? import_reshape(import, hot, whole, x->rank) : hot);
}

// ---- SpaceToDepth and DepthToSpace ------------------------------------------------------------

static Value *permuted(Import *import, Value *x, const int64_t *perm, int rank) {
  if (!x) return NULL;
  Node *node = import_begin(import, "permute_dims", &x, 1);
  node_set_ints(import->context, node, "axes", perm, rank);
  return import_add(import, node);
}

static bool space_arguments(Import *import, int64_t *block) {
  Value *x = import_input(import, 0);
  *block = import_int(import, "blocksize", 0);
  if (x->rank != 4) return import_refuse(import, "takes a tensor of rank 4, got %d", x->rank);
  if (*block < 1 || *block > INT32_MAX)
    return import_refuse(import, "attribute 'blocksize' is %lld", (long long)*block);
  return true;
}

void import_depth_to_space(Import *import) {
  int64_t b;
  if (!space_arguments(import, &b)) return;
  Value *x = import_input(import, 0);
  int64_t n = import_dim(x, 0), c = import_dim(x, 1), h = import_dim(x, 2), w = import_dim(x, 3);
  if (c % (b * b)) {
    import_refuse(import, "%lld channels do not divide by %lld", (long long)c, (long long)(b * b));
    return;
  }
  bool crd = strcmp(import_text(import, "mode", "DCR"), "CRD") == 0;
  c /= b * b;
  int64_t dcr_shape[] = {n, b, b, c, h, w}, crd_shape[] = {n, c, b, b, h, w};
  static const int64_t dcr_perm[] = {0, 3, 4, 1, 5, 2}, crd_perm[] = {0, 1, 4, 2, 5, 3};
  Value *blocks = import_reshape(import, x, crd ? crd_shape : dcr_shape, 6);
  Value *moved = permuted(import, blocks, crd ? crd_perm : dcr_perm, 6);
  import_result(import, 0, import_reshape(import, moved, (int64_t[]){n, c, h * b, w * b}, 4));
}

void import_space_to_depth(Import *import) {
  int64_t b;
  if (!space_arguments(import, &b)) return;
  Value *x = import_input(import, 0);
  int64_t n = import_dim(x, 0), c = import_dim(x, 1), h = import_dim(x, 2), w = import_dim(x, 3);
  if (h % b || w % b) {
    import_refuse(import, "%lldx%lld does not divide by %lld", (long long)h, (long long)w,
                  (long long)b);
    return;
  }
  static const int64_t orders[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
  const int64_t *perm = orders[strcmp(import_text(import, "mode", "DCR"), "CRD") == 0];
  Value *blocks = import_reshape(import, x, (int64_t[]){n, c, h / b, b, w / b, b}, 6);
  int64_t shape[] = {n, c * b * b, h / b, w / b};
  import_result(import, 0, import_reshape(import, permuted(import, blocks, perm, 6), shape, 4));
}

// ---- Normalisations ---------------------------------------------------------------------------

// stash_type needs no code, because statistics are computed in float32 or wider anyway.
void import_layer_norm(Import *import) {
  bool rms = strcmp(import->node->op_type, "RMSNormalization") == 0;
  Node *node = import_begin(import, rms ? "nn.rms_norm" : "nn.layer_norm", import->inputs,
                            import->input_count);
  int outputs = rms ? 1 : MAX_OF(import->node->output.count, 1);
  node->output_count = outputs;
  node->outputs = arena_array(&import->context->arena, Value *, outputs);
  node_set_int(import->context, node, "axis", import_int(import, "axis", -1));
  node_set_float(import->context, node, "epsilon", import_float(import, "epsilon", 1e-5));
  bool made = import_add(import, node) != NULL;
  for (int i = 0; i < outputs; i++) import_result(import, i, made ? node->outputs[i] : NULL);
}

// Instance normalisation of [n, groups, elements], then scale and bias: one number for each group
// up to opset 20, and for each channel later.
void import_group_norm(Import *import) {
  Value *x = import_input(import, 0), *y, *affine[2];
  int64_t groups = import_int(import, "num_groups", 0), whole[TE_MAX_RANK], elements = 1;
  if (x->rank < 3 || groups < 1 || import_dim(x, 1) % groups) {
    import_refuse(import, "takes [n, channels, …] with channels that divide by num_groups");
    return;
  }
  for (int i = 0; i < x->rank; i++) elements *= i ? whole[i] = import_dim(x, i) : 1;
  whole[0] = import_dim(x, 0);
  int64_t grouped[] = {whole[0], groups, elements / groups};
  y = import_reshape(import, x, grouped, 3);
  if (!y) return import_result(import, 0, NULL);
  Node *node = import_begin(import, "nn.instance_norm", &y, 1);
  node_set_float(import->context, node, "epsilon", import_float(import, "epsilon", 1e-5));
  y = import_add(import, node);
  bool by_group = import_dim(import_input(import, 1), 0) == groups && groups != whole[1];
  if (!by_group) y = import_reshape(import, y, whole, x->rank);
  for (int i = 0; i < 2; i++) {
    int64_t shape[TE_MAX_RANK];
    for (int k = 0; k < x->rank; k++) shape[k] = k ? 1 : by_group ? groups : whole[1];
    affine[i] =
        import_reshape(import, import_input(import, i + 1), shape, by_group ? 2 : x->rank - 1);
    y = y && affine[i] ? import_op(import, i ? "add" : "multiply", y, affine[i]) : NULL;
  }
  import_result(import, 0, by_group ? import_reshape(import, y, whole, x->rank) : y);
}

static Value *mean_over(Import *import, Value *x, IntArray axes) {
  if (!x) return NULL;
  Node *node = import_begin(import, "mean", &x, 1);
  import_set_ints(import, node, "axis", axes);
  node_set_int(import->context, node, "keepdims", 1);
  return import_add(import, node);
}

// Computes (x - mean) / (deviation + 1e-9).
void import_mean_variance_norm(Import *import) {
  IntArray axes = import_ints(import, "axes");
  static const int64_t images[] = {0, 2, 3};
  if (!import_has(import, "axes")) axes = (IntArray){(int64_t *)images, 3, 3};
  Value *x = import_input(import, 0), *mean = mean_over(import, x, axes);
  Value *centred = mean ? import_op(import, "subtract", x, mean) : NULL;
  Value *square = centred ? import_op(import, "multiply", centred, centred) : NULL;
  Value *deviation = import_op(import, "sqrt", mean_over(import, square, axes), NULL);
  Value *below = deviation
                     ? import_op(import, "add", deviation, import_scalar(import, deviation, 1e-9))
                     : NULL;
  import_result(import, 0, below ? import_op(import, "divide", centred, below) : NULL);
}

// Divides by the norm along an axis; elements with the norm 0 stay 0.
void import_lp_norm(Import *import) {
  Value *x = import_input(import, 0);
  int64_t p = import_int(import, "p", 2), axis = import_int(import, "axis", -1);
  if (p != 1 && p != 2) {
    import_refuse(import, "attribute 'p' is %lld, expected 1 or 2", (long long)p);
    return;
  }
  Node *node = import_begin(import, p == 1 ? "norm1" : "norm2", &x, 1);
  node_set_ints(import->context, node, "axis", &axis, 1);
  node_set_int(import->context, node, "keepdims", 1);
  Value *norm = import_add(import, node), *zero = norm ? import_scalar(import, norm, 0) : NULL;
  Value *none = zero ? import_op(import, "equal", norm, zero) : NULL;
  Value *inputs[] = {none, none ? import_scalar(import, norm, 1) : NULL, norm};
  Value *safe = none ? import_add(import, import_begin(import, "where", inputs, 3)) : NULL;
  import_result(import, 0, safe ? import_op(import, "divide", x, safe) : NULL);
}
