// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators that write elements in an order, and selections of the largest or the
// nonzero elements, whose number must be known at import.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

static void set_reduction(Import *import, Node *node) {
  if (import_has(import, "reduction"))
    node_set_string(import->context, node, "reduction", import_text(import, "reduction", "none"));
}

static void import_scatter_elements(Import *import) {
  Node *node = import_begin(import, "scatter_elements", import->inputs, 3);
  node_set_int(import->context, node, "axis", import_int(import, "axis", 0));
  set_reduction(import, node);
  import_result(import, 0, import_add(import, node));
}

static void import_scatter_nd(Import *import) {
  Node *node = import_begin(import, "scatter_nd", import->inputs, 3);
  set_reduction(import, node);
  import_result(import, 0, import_add(import, node));
}

static void import_tensor_scatter(Import *import) {
  const char *mode = import_text(import, "mode", "linear");
  if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0) {
    import_refuse(import, "attribute 'mode' is '%s', expected circular or linear", mode);
    return;
  }
  Node *node = import_begin(import, "cache_update", import->inputs, import->input_count);
  node_set_int(import->context, node, "axis", import_int(import, "axis", -2));
  if (strcmp(mode, "circular") == 0) node_set_int(import->context, node, "circular", 1);
  import_result(import, 0, import_add(import, node));
}

// Up to opset 9 `k` is an attribute.
static void import_topk(Import *import) {
  Value *x = import_input(import, 0);
  IntArray k = {0};
  int64_t attribute = import_int(import, "k", -1);
  if (import_input(import, 1) && !import_constant_ints(import, 1, &k)) return;
  if (!k.count && attribute >= 0) array_push(&import->context->arena, &k, attribute);
  if (k.count != 1) {
    import_refuse(import, "takes one number of elements, got %d", k.count);
    return;
  }
  Node *node = import_begin(import, "topk", &x, 1);
  node->output_count = 2;
  node->outputs = arena_array(&import->context->arena, Value *, 2);
  node_set_int(import->context, node, "axis", import_int(import, "axis", -1));
  node_set_int(import->context, node, "k", k.items[0]);
  node_set_string(import->context, node, "dtype", "int64");
  if (!import_int(import, "largest", 1)) node_set_int(import->context, node, "largest", 0);
  bool made = import_add(import, node) != NULL;
  for (int i = 0; i < 2; i++) import_result(import, i, made ? node->outputs[i] : NULL);
}

// ---- Nonzero elements -------------------------------------------------------------------------

// Counts the input's nonzero elements when it is known; otherwise -1 after a diagnostic.
static int64_t count_nonzero(Import *import, int input) {
  ConstData *data = import_counted(import, input);
  if (!data) return -1;
  int64_t count = 0;
  for (int64_t i = 0; i < const_count(data); i++) count += const_number(data, i) != 0;
  return count;
}

static Value *nonzero(Import *import, Value *x, int64_t count) {
  if (!x || count < 0) return NULL;
  Node *node = import_begin(import, "nonzero", &x, 1);
  node_set_int(import->context, node, "count", count);
  return import_add(import, node);
}

static void import_nonzero(Import *import) {
  import_result(import, 0, nonzero(import, import->inputs[0], count_nonzero(import, 0)));
}

// Selects the slices along an axis, or all elements in order, for which the condition is true.
// Elements after the end of a shorter condition are not selected.
static void import_compress(Import *import) {
  Value *x = import_input(import, 0), *condition = import_input(import, 1);
  bool flat = !import_has(import, "axis");
  int64_t axis = import_int(import, "axis", 0), count = count_nonzero(import, 1), all = 1;
  if (count < 0) return;
  for (int i = 0; i < x->rank; i++) all *= import_dim(x, i);
  if (flat) x = import_reshape(import, x, &all, 1);
  if (!x || !import_axis(import, &axis, x->rank)) return;
  if (import_dim(condition, 0) > import_dim(x, (int)axis)) {
    import_refuse(import, "its condition is longer than the axis");
    return;
  }
  Value *places = import_reshape(import, nonzero(import, condition, count), &count, 1);
  if (!places) return;
  Node *node = import_begin(import, "take", (Value *[]){x, places}, 2);
  node_set_int(import->context, node, "axis", axis);
  import_result(import, 0, import_add(import, node));
}

const OnnxRow onnx_scatter_rows[] = {
    {"Compress", 2, 2, "axis:int", import_compress},
    {"NonZero", 1, 1, NULL, import_nonzero},
    {"Scatter", 3, 3, "axis:int", import_scatter_elements},
    {"ScatterElements", 3, 3, "axis:int reduction:string", import_scatter_elements},
    {"ScatterND", 3, 3, "reduction:string", import_scatter_nd},
    {"TensorScatter", 2, 3, "axis:int mode:string", import_tensor_scatter},
    {"TopK", 1, 2, "axis:int k:int largest:int sorted:int", import_topk},
    {0},
};
