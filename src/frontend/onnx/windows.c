// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators over windows: convolutions, their transposes, pools and MaxUnpool.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

static void set_windows(Import *import, Node *node) {
  static const char *const keys[][2] = {
      {"strides", "strides"}, {"pads", "padding"}, {"dilations", "dilation"}};
  for (int i = 0; i < COUNT_OF(keys); i++)
    if (import_has(import, keys[i][0]))
      import_set_ints(import, node, keys[i][1], import_ints(import, keys[i][0]));
  const char *automatic = import_text(import, "auto_pad", "NOTSET");
  if (*automatic && strcmp(automatic, "NOTSET") != 0)
    node_set_string(import->context, node, "auto_pad", automatic);
}

// The operator for a tensor of this rank: "nn.conv%dd" becomes "nn.conv2d".
static const char *op_of_rank(Import *import, const char *format, int rank) {
  if (rank >= 3 && rank <= 5) return str_format(import->context, format, rank - 2);
  import_refuse(import, "of rank %d is not supported, only of [n, c] and one to three axes", rank);
  return NULL;
}

// ---- Convolutions -----------------------------------------------------------------------------

static bool check_kernel(Import *import, const Value *x, const Value *weight) {
  IntArray kernel = import_ints(import, "kernel_shape");
  if (x->rank != weight->rank)
    return import_refuse(import, "its input has rank %d, its weights have rank %d", x->rank,
                         weight->rank);
  bool agrees = !kernel.count || kernel.count == weight->rank - 2;
  for (int i = 0; agrees && i < kernel.count; i++)
    agrees = kernel.items[i] == import_dim(weight, i + 2);
  return agrees ||
         import_refuse(import, "kernel_shape is not the shape of the weights '%s'", weight->name);
}

static Node *begin_conv(Import *import, const char *format) {
  Value *x = import_input(import, 0), *weight = import_input(import, 1);
  if (!check_kernel(import, x, weight)) return NULL;
  const char *op = op_of_rank(import, format, x->rank);
  if (!op) return NULL;
  Node *node = import_begin(import, op, import->inputs, import->input_count);
  node_set_int(import->context, node, "groups", import_int(import, "group", 1));
  return node;
}

static void import_conv(Import *import) {
  Node *node = begin_conv(import, "nn.conv%dd");
  if (!node) return;
  set_windows(import, node);
  import_result(import, 0, import_add(import, node));
}

// Reads a list of one integer for each axis, all `otherwise` when it is absent. False after a
// diagnostic.
static bool list_of(Import *import, const char *key, int count, int64_t otherwise, int64_t *out) {
  IntArray given = import_ints(import, key);
  if (given.count && given.count != count)
    return import_refuse(import, "attribute '%s' has %d entries, expected %d", key, given.count,
                         count);
  for (int i = 0; i < count; i++) {
    out[i] = given.count ? given.items[i] : otherwise;
    if (out[i] < -INT32_MAX || out[i] > INT32_MAX)
      return import_refuse(import, "attribute '%s' has the value %lld", key, (long long)out[i]);
  }
  return true;
}

// The padding of a transposed convolution. With output_shape or auto_pad, it removes the excess of
// the full result; an odd element is removed at the start, or for SAME_UPPER at the end. A full
// result that is too small is extended at the end.
static bool transposed_padding(Import *import, int space, int64_t *pads) {
  int64_t strides[3], dilations[3], more[3], wanted[3];
  const Value *x = import_input(import, 0), *weight = import_input(import, 1);
  const char *automatic = import_text(import, "auto_pad", "NOTSET");
  bool same = strncmp(automatic, "SAME_", 5) == 0;
  bool shaped = import_ints(import, "output_shape").count > 0;
  if (!list_of(import, "pads", 2 * space, 0, pads)) return false;
  if (!list_of(import, "strides", space, 1, strides) ||
      !list_of(import, "dilations", space, 1, dilations) ||
      !list_of(import, "output_padding", space, 0, more) ||
      !list_of(import, "output_shape", space, 0, wanted))
    return false;
  for (int i = 0; (same || shaped) && i < space; i++) {
    int64_t input = import_dim(x, i + 2), kernel = import_dim(weight, i + 2), total;
    int64_t output = shaped ? wanted[i] : input * strides[i];
    total = strides[i] * (input - 1) + more[i] + (kernel - 1) * dilations[i] + 1 - output;
    int64_t around = MAX_OF(total, 0);
    pads[i] = strcmp(automatic, "SAME_UPPER") == 0 ? around / 2 : around - around / 2;
    pads[i + space] = total - pads[i];
  }
  return true;
}

static void import_conv_transpose(Import *import) {
  static const char *const keys[][2] = {
      {"strides", "strides"}, {"dilations", "dilation"}, {"output_padding", "output_padding"}};
  int64_t pads[6];
  Node *node = begin_conv(import, "nn.conv%dd_transpose");
  if (!node || !transposed_padding(import, node->inputs[0]->rank - 2, pads)) return;
  for (int i = 0; i < COUNT_OF(keys); i++)
    if (import_has(import, keys[i][0]))
      import_set_ints(import, node, keys[i][1], import_ints(import, keys[i][0]));
  node_set_ints(import->context, node, "padding", pads, 2 * (node->inputs[0]->rank - 2));
  import_result(import, 0, import_add(import, node));
}

// ---- Pools ------------------------------------------------------------------------------------

static void copy_int(Import *import, Node *node, const char *key, int64_t otherwise) {
  int64_t value = import_int(import, key, otherwise);
  if (value != otherwise) node_set_int(import->context, node, key, value);
}

static void import_pool(Import *import) {
  static const struct {
    const char *onnx, *op;
  } kinds[] = {
      {"AveragePool", "nn.avg_pool%dd"}, {"LpPool", "nn.lp_pool"}, {"MaxPool", "nn.max_pool%dd"}};
  Value *x = import_input(import, 0);
  const char *op = NULL;
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (strcmp(kinds[i].onnx, import->node->op_type) == 0) op = kinds[i].op;
  if (!import_has(import, "kernel_shape")) {
    import_refuse(import, "attribute 'kernel_shape' is missing");
    return;
  }
  if (!(op = op_of_rank(import, op, x->rank))) return;
  int outputs = import_wants_output(import, 1) ? 2 : 1;
  Node *node = import_begin(import, op, &x, 1);
  node->output_count = outputs;
  node->outputs = arena_array(&import->context->arena, Value *, outputs);
  import_set_ints(import, node, "pool_size", import_ints(import, "kernel_shape"));
  set_windows(import, node);
  copy_int(import, node, "ceil_mode", 0);
  copy_int(import, node, "count_include_pad", 0);
  copy_int(import, node, "storage_order", 0);
  copy_int(import, node, "p", 2);
  bool made = import_add(import, node) != NULL;
  for (int i = 0; i < outputs; i++) import_result(import, i, made ? node->outputs[i] : NULL);
}

static void import_col2im(Import *import) {
  IntArray image, block;
  if (!import_constant_ints(import, 1, &image) || !import_constant_ints(import, 2, &block)) return;
  Node *node = import_begin(import, "nn.col2im", import->inputs, 1);
  import_set_ints(import, node, "image_shape", image);
  import_set_ints(import, node, "pool_size", block);
  set_windows(import, node);
  import_result(import, 0, import_add(import, node));
}

// ---- MaxUnpool --------------------------------------------------------------------------------

// The shape of the pool's input, as far as the windows determine it.
static bool unpooled_shape(Import *import, int64_t *shape, int64_t *elements) {
  const Value *x = import_input(import, 0);
  int space = x->rank - 2;
  int64_t kernel[3], strides[3], pads[6];
  if (space < 1 || space > 3)
    return import_refuse(
        import, "of rank %d is not supported, only of [n, c] and one to three axes", x->rank);
  if (!list_of(import, "kernel_shape", space, 0, kernel) ||
      !list_of(import, "strides", space, 1, strides) ||
      !list_of(import, "pads", 2 * space, 0, pads))
    return false;
  *elements = 1;
  for (int i = 0; i < x->rank; i++) {
    int64_t extent = shape[i] = import_dim(x, i);
    if (i >= 2)
      shape[i] = (extent - 1) * strides[i - 2] - pads[i - 2] - pads[i - 2 + space] + kernel[i - 2];
    if (shape[i] < 0 || !mul_fits(*elements, shape[i], elements) || *elements > INT32_MAX)
      return import_refuse(import, "axis %d would have the extent %lld", i, (long long)shape[i]);
  }
  return true;
}

static Value *flat(Import *import, Value *value) {
  int64_t count = 1;
  for (int i = 0; i < value->rank; i++) count *= import_dim(value, i);
  return import_reshape(import, value, &count, 1);
}

// Indices count over the whole tensor; a larger output_shape adds zeros at the end.
static void import_max_unpool(Import *import) {
  Value *x = import_input(import, 0), *result;
  int64_t shape[5], elements, pads[10] = {0};
  IntArray wanted = {0};
  if (!unpooled_shape(import, shape, &elements)) return;
  if (import_input(import, 2) && !import_constant_ints(import, 2, &wanted)) return;
  if (wanted.count && wanted.count != x->rank) {
    import_refuse(import, "its output_shape has %d extents, expected %d", wanted.count, x->rank);
    return;
  }
  Value *inputs[] = {import_filled(import, x->type, NULL, &elements, 1),
                     flat(import, import_input(import, 1)), flat(import, x)};
  if (!inputs[0] || !inputs[1] || !inputs[2]) return import_result(import, 0, NULL);
  result = import_add(import, import_begin(import, "scatter_elements", inputs, 3));
  result = import_reshape(import, result, shape, x->rank);
  bool grows = false;
  for (int i = 0; i < wanted.count; i++) {
    pads[2 * i + 1] = wanted.items[i] - shape[i];
    grows |= pads[2 * i + 1] != 0;
  }
  if (result && grows) {
    Node *node = import_begin(import, "nn.pad", &result, 1);
    node_set_ints(import->context, node, "pad_width", pads, 2 * x->rank);
    result = import_add(import, node);
  }
  import_result(import, 0, result);
}

#define WINDOW_ATTRIBUTES "kernel_shape:ints strides:ints pads:ints dilations:ints auto_pad:string "

const OnnxRow onnx_window_rows[] = {
    {"AveragePool", 1, 1, WINDOW_ATTRIBUTES "ceil_mode:int count_include_pad:int", import_pool},
    {"Col2Im", 3, 3, "dilations:ints pads:ints strides:ints", import_col2im},
    {"Conv", 2, 3, WINDOW_ATTRIBUTES "group:int", import_conv},
    {"ConvTranspose", 2, 3, WINDOW_ATTRIBUTES "group:int output_padding:ints output_shape:ints",
     import_conv_transpose},
    {"GlobalLpPool", 1, 1, "p:int", NULL},
    {"LRN", 1, 1, "alpha:float beta:float bias:float size:int", NULL},
    {"LpPool", 1, 1, WINDOW_ATTRIBUTES "ceil_mode:int p:int", import_pool},
    {"MaxPool", 1, 1, WINDOW_ATTRIBUTES "ceil_mode:int storage_order:int", import_pool},
    {"MaxUnpool", 2, 3, "kernel_shape:ints pads:ints strides:ints", import_max_unpool},
    {0},
};
