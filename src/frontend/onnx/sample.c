// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators that sample at computed coordinates, and CenterCropPad.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

// Up to opset 19 "linear" and "cubic" are named for two axes.
static void import_grid_sample(Import *import) {
  const char *mode = import_text(import, "mode", "linear");
  if (strcmp(mode, "bilinear") == 0) mode = "linear";
  if (strcmp(mode, "bicubic") == 0) mode = "cubic";
  Value *x = import_input(import, 0);
  DType type = x->type;
  if (!dtype_is_float(type)) x = import_cast(import, x, DTYPE_FLOAT32);
  if (!x) return import_result(import, 0, NULL);
  Node *node =
      import_begin(import, "image.grid_sample", (Value *[]){x, import_input(import, 1)}, 2);
  node_set_string(import->context, node, "mode", mode);
  node_set_string(import->context, node, "padding_mode",
                  import_text(import, "padding_mode", "zeros"));
  node_set_int(import->context, node, "align_corners", import_int(import, "align_corners", 0));
  import_result(import, 0, import_cast(import, import_add(import, node), type));
}

// The size is [n, c, …].
static void import_affine_grid(Import *import) {
  IntArray size;
  const Value *theta = import_input(import, 0);
  if (!import_constant_ints(import, 1, &size)) return;
  if (size.count < 4 || size.count > 5 || size.items[0] != import_dim(theta, 0)) {
    import_refuse(import, "its size has %d extents, expected n as its transforms and 3 or 4 others",
                  size.count);
    return;
  }
  Node *node = import_begin(import, "image.affine_grid", import->inputs, 1);
  node_set_ints(import->context, node, "size", size.items + 2, size.count - 2);
  node_set_int(import->context, node, "align_corners", import_int(import, "align_corners", 0));
  node_set_int(import->context, node, "coordinates_last", 1);
  import_result(import, 0, import_add(import, node));
}

// Up to opset 15 coordinates are not moved by half an element.
static void import_roi_align(Import *import) {
  static const char *const keys[] = {"output_height", "output_width", "sampling_ratio"};
  bool old = import->importer->result->opset < 16;
  const char *mode = import_text(import, "coordinate_transformation_mode",
                                 old ? "output_half_pixel" : "half_pixel");
  bool half = strcmp(mode, "half_pixel") == 0;
  if (!half && strcmp(mode, "output_half_pixel") != 0) {
    import_refuse(import, "coordinate_transformation_mode '%s' is not supported", mode);
    return;
  }
  Node *node = import_begin(import, "vision.roi_align", import->inputs, 3);
  for (int i = 0; i < COUNT_OF(keys); i++)
    node_set_int(import->context, node, keys[i], import_int(import, keys[i], i < 2));
  node_set_string(import->context, node, "mode", import_text(import, "mode", "avg"));
  node_set_float(import->context, node, "spatial_scale", import_float(import, "spatial_scale", 1));
  node_set_int(import->context, node, "half_pixel", half);
  import_result(import, 0, import_add(import, node));
}

static void import_deform_conv(Import *import) {
  static const char *const lists[][2] = {
      {"strides", "strides"}, {"pads", "padding"}, {"dilations", "dilation"}};
  Node *node = import_begin(import, "nn.deform_conv2d", import->inputs, import->input_count);
  for (int i = 0; i < COUNT_OF(lists); i++)
    if (import_has(import, lists[i][0]))
      import_set_ints(import, node, lists[i][1], import_ints(import, lists[i][0]));
  node_set_int(import->context, node, "groups", import_int(import, "group", 1));
  node_set_int(import->context, node, "offset_groups", import_int(import, "offset_group", 1));
  import_result(import, 0, import_add(import, node));
}

// Crops larger axes to their middle, and pads smaller ones with zeros on both sides; an odd zero is
// at the end.
static void import_center_crop_pad(Import *import) {
  Value *x = import_input(import, 0);
  IntArray shape, axes = import_ints(import, "axes");
  int64_t begin[12] = {0}, end[12], all[12], pads[24] = {0};
  bool crops = false, grows = false;
  if (!import_constant_ints(import, 1, &shape)) return;
  if (x->rank > COUNT_OF(begin) || shape.count != (axes.count ? axes.count : x->rank)) {
    import_refuse(import, "has %d extents for %d axes", shape.count,
                  axes.count ? axes.count : x->rank);
    return;
  }
  for (int i = 0; i < x->rank; i++) all[i] = i, end[i] = import_dim(x, i);
  for (int i = 0; i < shape.count; i++) {
    int64_t axis = axes.count ? axes.items[i] : i;
    if (!import_axis(import, &axis, x->rank)) return;
    int64_t less = import_dim(x, (int)axis) - shape.items[i], half = (less < 0 ? -less : less) / 2;
    if (less > 0) begin[axis] = half, end[axis] = half + shape.items[i];
    if (less < 0) pads[2 * axis] = half, pads[2 * axis + 1] = -less - half;
    crops |= less > 0;
    grows |= less < 0;
  }
  if (crops) {
    Node *node = import_begin(import, "strided_slice", &x, 1);
    node_set_ints(import->context, node, "axes", all, x->rank);
    node_set_ints(import->context, node, "begin", begin, x->rank);
    node_set_ints(import->context, node, "end", end, x->rank);
    x = import_add(import, node);
  }
  if (x && grows) {
    Node *node = import_begin(import, "nn.pad", &x, 1);
    node_set_ints(import->context, node, "pad_width", pads, 2 * x->rank);
    x = import_add(import, node);
  }
  import_result(import, 0, x);
}

const OnnxRow onnx_sample_rows[] = {
    {"AffineGrid", 2, 2, "align_corners:int", import_affine_grid},
    {"CenterCropPad", 2, 2, "axes:ints", import_center_crop_pad},
    {"DeformConv", 3, 5,
     "dilations:ints group:int kernel_shape:ints offset_group:int pads:ints strides:ints",
     import_deform_conv},
    {"GridSample", 2, 2, "align_corners:int mode:string padding_mode:string", import_grid_sample},
    {"RoiAlign", 3, 3,
     "coordinate_transformation_mode:string mode:string output_height:int output_width:int "
     "sampling_ratio:int spatial_scale:float",
     import_roi_align},
    {0},
};
