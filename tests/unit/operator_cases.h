// SPDX-License-Identifier: Apache-2.0
// Calls of every operator except the elementwise operators and the reductions (the tests make cases
// for these from their rows): the shapes of the inputs, and the attributes as in TVMScript.
//   "1x13x7x5 4:int64@-3~2"   two tensors; the second is int64 with values from -3 to 2
//   "-" is a tensor of rank 0
#ifndef PLEAT_TESTS_OPERATOR_CASES_H
#define PLEAT_TESTS_OPERATOR_CASES_H

#include "graph/graph.h"
#include "interp/interp.h"
#include "script/script.h"

#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

typedef struct OperatorCase {
  const char *op, *inputs, *attrs;
  int results; // 0: one result
} OperatorCase;

static const OperatorCase operator_cases[] = {
    {"nn.conv2d", "1x3x7x5 17x3x3x2 17", "padding=[1, 0, 2, 1]"},
    {"nn.conv2d", "2x1x5x1 1x1x1x1", ""},
    {"nn.conv2d", "1x13x6x7 13x1x3x3", "groups=13, strides=[2, 1], padding=[1, 1, 1, 1]"},
    {"nn.conv2d", "1x6x9x8 10x3x2x3 10", "groups=2, dilation=[2, 3], padding=[2, 3, 2, 3]"},
    {"nn.conv2d", "1x20x5x4 19x20x3x3", "auto_pad=\"SAME_LOWER\", strides=[2, 2]"},
    {"nn.conv2d", "2x7x9x4 3x3x4x8", "data_layout=\"NHWC\", kernel_layout=\"HWIO\""},
    {"nn.conv2d", "1x2x5x7x4 8x2x1x3x4",
     "data_layout=\"NCHW4c\", kernel_layout=\"OIHW4i\", out_layout=\"NHWC\", padding=[0, 1, 0, 1]"},
    {"nn.conv2d", "1x4x5x7:int8@-9~9 8x4x3x3:int8@-9~9",
     "out_dtype=\"int32\", out_layout=\"NCHW4c\""},
    {"nn.conv1d_transpose", "2x7x3 3x5x3", "data_layout=\"NWC\", strides=[2]"},
    {"nn.max_pool2d", "2x9x7x5", "pool_size=[3, 2], strides=[2, 1], layout=\"NHWC\""},
    {"nn.avg_pool2d", "2x2x9x7x4", "pool_size=[3, 2], layout=\"NCHW4c\", out_layout=\"NCHW2c\""},
    {"split", "3x17", "axis=1, indices_or_sections=[5, 6]", 3},
    {"split", "3x18", "axis=1, indices_or_sections=3", 3},
    {"nn.conv1d", "2x3x11 5x3x4 5", "padding=[2, 1], strides=[3]"},
    {"nn.conv1d", "1x8x13 6x4x3", "groups=2, dilation=[2]"},
    {"nn.conv3d", "1x3x5x4x7 7x3x2x3x3 7", "padding=[1, 0, 1, 0, 1, 2], strides=[1, 2, 2]"},
    {"nn.conv3d", "1x4x3x5x4 4x1x3x1x2", "groups=4, dilation=[1, 1, 2]"},
    {"nn.conv1d_transpose", "1x3x7 3x5x4 5", "strides=[3], padding=[2, 1]"},
    {"nn.conv1d_transpose", "2x4x5 4x3x3", "strides=[4], dilation=[6], output_padding=[1]"},
    {"nn.conv1d_transpose", "1x1x1 1x1x1", "strides=[5], padding=[0, -3]"},
    {"nn.conv2d_transpose", "1x17x5x3 17x13x3x3 13", "padding=[1, 1, 1, 1]"},
    {"nn.conv2d_transpose", "1x6x4x5 6x5x3x2 10",
     "groups=2, strides=[2, 3], dilation=[3, 2], padding=[1, 2, 0, 1], output_padding=[1, 2]"},
    {"nn.conv2d_transpose", "2x7x3x4 7x1x2x5", "groups=7, strides=[3, 2]"},
    {"nn.conv3d_transpose", "1x3x2x4x3 3x5x2x3x3 5",
     "strides=[2, 1, 2], padding=[0, 1, 1, 0, 1, 0], output_padding=[1, 0, 1]"},
    {"nn.col2im", "2x12x20", "image_shape=[5, 7], pool_size=[2, 3]"},
    {"nn.col2im", "1x15x6",
     "image_shape=[8, 9], pool_size=[3, 5], strides=[4, 2], padding=[1, 0, 2, 1], dilation=[2, 1]"},
    {"matmul", "7x13 13x17", ""},
    {"matmul", "3x1x5x11 2x11x1", ""},
    {"matmul", "13 13", ""},
    {"matmul", "5 3x5x19", ""},
    {"matmul", "1x1 1x1", ""},
    {"gemm", "7x5 5x19 19", ""},
    {"gemm", "5x7 19x5 7x1", "transpose_a=1, transpose_b=1, alpha=2.0, beta=0.5"},
    {"gemm", "1x37 37x1", ""},
    {"maximum", "3x17 1 3x1", ""},
    {"minimum", "3x17 1 3x1", ""},
    {"add_n", "5x7 5x7 7", ""},
    {"clip", "3x19", "min=-0.5, max=0.25"},
    {"clip", "3x19 - -", ""},
    {"nn.dropout", "3x19", ""},
    {"nn.batch_norm", "2x13x5x3 13 13 13 13@0.5~2", "epsilon=0.001, training=0"},
    {"nn.batch_norm", "2x5x3x13 13 13 13 13@0.5~2", "axis=3, scale=0, training=0"},
    {"nn.batch_norm", "7x3x1 1 1 1 1@0.5~2", "axis=-1, center=0, training=0"},
    {"nn.batch_norm", "7x3 3 3 3 3@0.5~2", ""},
    {"nn.batch_norm", "2x3x5 5 5 5 5@0.5~2", "axis=2, momentum=0.25, center=0", 3},
    {"nn.prelu", "2x3x5 3", ""},
    {"nn.prelu", "2x3x5 5", "axis=-1"},
    {"nn.prelu", "2x3x5 3x1", ""},
    {"image.grid_sample", "2x3x5x4 2x2x7x3@-1.2~1.2", "method=\"bicubic\""},
    {"image.affine_grid", "2x2x3", "size=[5, 3]"},
    {"take", "5x3 7:int64@-9~9", "axis=0, mode=\"wrap\""},
    {"take", "5x3 7:int64@-9~9", "axis=0, mode=\"clip\""},
    {"one_hot", "3x2:int64@-1~5 -", "depth=4, axis=0, off_value=-2.5"},
    {"cumsum", "3x5:int32@-9~9", "dtype=\"int64\", exclusive=1"},
    {"flatten", "3x1x5", ""},
    {"argmax", "3x1x5", "keepdims=1"},
    {"nn.softmax", "3x17x5", "axis=1"},
    {"nn.softmax", "7x1", ""},
    {"nn.softmax", "2x3x5x7", "axis=2, all_behind=1"},
    {"nn.log_softmax", "5x13", ""},
    {"nn.max_pool2d", "1x3x9x7", "pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 1]"},
    {"nn.max_pool2d", "2x17x8x5", "pool_size=[2, 2], strides=[3, 2], ceil_mode=1"},
    {"nn.max_pool1d", "2x5x13", "pool_size=[4], strides=[3], dilation=[2], padding=[2, 3]", 2},
    {"nn.max_pool2d", "2x3x7x5", "pool_size=[3, 2], padding=[1, 1, 1, 0], storage_order=1", 2},
    {"nn.max_pool3d", "1x17x3x5x4", "pool_size=[2, 3, 1], strides=[1, 2, 3], ceil_mode=1", 2},
    {"nn.avg_pool1d", "1x7x11", "pool_size=[3], strides=[2], dilation=[3], padding=[1, 2]"},
    {"nn.avg_pool3d", "2x3x4x5x3",
     "pool_size=[2, 2, 3], strides=[2, 1, 2], padding=[1, 0, 1, 0, 1, 1], ceil_mode=1"},
    {"nn.lp_pool", "1x5x7x9", "pool_size=[3, 2], strides=[2, 1], padding=[1, 1, 0, 1]"},
    {"nn.lp_pool", "1x3x11", "pool_size=[5], p=3, ceil_mode=1, strides=[3]"},
    {"nn.global_lp_pool", "2x13x5x3", "p=1"},
    {"nn.lrn", "1x13x3x5", "size=5, alpha=0.1, beta=0.5, bias=2.0"},
    {"nn.lrn", "2x3x7", "size=8"},
    {"nn.avg_pool2d", "1x13x7x5", "pool_size=[3, 3], padding=[1, 1, 1, 1]"},
    {"nn.avg_pool2d", "1x3x8x7",
     "pool_size=[2, 3], strides=[2, 2], padding=[0, 1, 1, 1], count_include_pad=1"},
    {"nn.adaptive_avg_pool2d", "2x3x8x6", "output_size=[4, 2]"},
    {"nn.adaptive_avg_pool2d", "1x7x5x11", "output_size=[3, 7]"},
    {"nn.adaptive_avg_pool2d", "2x5x4x3", "output_size=7, layout=\"NHWC\""},
    {"nn.adaptive_avg_pool2d", "1x3x1x5", ""},
    {"nn.global_avg_pool2d", "2x13x5x7", ""},
    {"nn.global_max_pool2d", "1x1x3x1", ""},
    {"image.resample", "2x3x5x4 7x2:int32@-5~4 7x2", "axes=[2]"},
    {"image.resample", "1x17x5x3 7x2:int64@0~4 7x2 4x1:int64@0~2 4x1", "axes=[2, 3]"},
    {"image.grid_sample", "2x3x5x7 2x4x3x2:float32@-2~2", "mode=\"linear\""},
    {"image.grid_sample", "1x17x6x5 1x3x7x2:float32@-2~2",
     "mode=\"cubic\", padding_mode=\"reflection\", align_corners=1"},
    {"image.grid_sample", "1x3x4x5x3 1x2x3x5x3:float32@-2~2",
     "mode=\"nearest\", padding_mode=\"border\""},
    {"image.affine_grid", "2x2x3", "size=[5, 7]"},
    {"image.affine_grid", "1x3x4", "size=[3, 1, 5], align_corners=1"},
    {"vision.roi_align", "2x3x9x8 5x4@0~9 5:int64@0~1",
     "output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.75"},
    {"vision.roi_align", "1x17x5x7 2x4@-3~9 2:int64@0~0",
     "output_height=1, output_width=4, sampling_ratio=3, mode=\"max\", half_pixel=0"},
    {"nn.deform_conv2d", "1x4x6x5 6x2x3x2 1x24x4x4 6 1x12x4x4", "groups=2, offset_groups=2"},
    {"nn.deform_conv2d", "2x3x7x5 5x3x2x3 2x12x4x3", "strides=[2, 1], padding=[1, 0, 1, 0]"},
    {"einsum", "3x7x13 3x13x5", "equation=\"bij,bjk->bik\""},
    {"einsum", "2x1x5x7 3x11x7", "equation=\"...ij,...kj->...ki\""},
    {"einsum", "2x3 3x5", "subscripts=\"ij,jk->ik\""},
    {"einsum", "5x5x3", "equation=\"iij->ji\""},
    {"einsum", "7 7x1 13", "equation=\"i,ij,k\""},
    {"strided_slice", "7x13x5", "axes=[0, 2], begin=[1, -1], end=[6, -6], strides=[2, -2]"},
    {"split", "3x17", "axis=1, sizes=[5, 1, 11]", 3},
    {"broadcast_to", "13x1", "shape=[3, 13, 5]"},
    {"tile", "3x5x1", "repeats=[2, 1, 3]"},
    {"tile", "3x5", "repeats=[2]"},
    {"tile", "3x1:int8", "repeats=[2, 1, 1, 3]"},
    {"nn.conv2d", "1x3x7x5 4x3x3x3", "padding=1, strides=2"},
    {"nn.conv2d", "1x3x7x5 4x3x3x2", "padding=[2, 1], strides=[2], dilation=2"},
    {"nn.conv1d", "1x3x11 5x3x4", "padding=[2]"},
    {"nn.max_pool2d", "1x3x9x7", "pool_size=3, padding=[1, 0]"},
    {"repeat", "3x1x5", "repeats=3, axis=-1"},
    {"repeat", "3x5:int8", "repeats=2"},
    {"repeat", "-", "repeats=4"},
    {"repeat", "7x0", "repeats=2"},
    {"repeat", "7x3", "repeats=0, axis=0"},
    {"flip", "3x5x1", "axis=1"},
    {"flip", "3x5x7:int8", "axis=[0, -1]"},
    {"triu", "2x7x5", "k=1"},
    {"tril", "5x7", "k=-1"},
    {"take", "7x13 3x2:int64@-13~12", "axis=1"},
    {"take", "7x5 3:int32@0~6", "axis=0, mode=\"fast\""},
    {"gather_elements", "5x7 5x3:int32@-7~6", "axis=1"},
    {"gather_nd", "2x3x5x7 2x4x2:int64@0~2", "batch_dims=1"},
    {"one_hot", "3x5:int64@-7~8 2", "depth=7, axis=1"},
    {"reshape", "6x35", "shape=[2, 21, 5]"},
    {"reshape", "3x1x7", "shape=[-1]"},
    {"flatten", "3x5x7", "axis=2"},
    {"squeeze", "3x1x5x1", "axis=[1]"},
    {"expand_dims", "3x5", "axis=[0, -1]"},
    {"permute_dims", "3x5x1x7", "axes=[2, 0, 3, 1]"},
    {"permute_dims", "13x17", ""},
    {"concat", "3x5x2 3x1x2 3x7x2", "axis=1"},
    {"concat", "13 4", "axis=0"},
    {"nn.pad", "3x5x7", "pad_width=[0, 1, 2, 0, 3, 0], pad_value=0.5"},
    {"nn.pad", "5x7", "pad_width=[2, 1, 1, 3], pad_mode=\"reflect\""},
    {"nn.pad", "5x7", "pad_width=[2, 1, 1, 3], pad_mode=\"edge\""},
    {"nn.pad", "7x5", "pad_width=[2, -1, -2, 3], pad_mode=\"wrap\""},
    {"pad", "5x1x7", "pad_width=[[0, 2], [1, 0], [0, 0]], pad_value=-1.5"},
    {"crop", "5x13x3", "start_indices=[1, 0, 2], slice_sizes=[3, 13, 1]"},
    {"crop", "7", "start_indices=[7], slice_sizes=[0], cropped_value=1"},
    {"layout_transform", "2x17x5", "index_map=lambda n, c, h: [n, c // 8, h, c % 8], pad_value=3"},
    {"layout_transform", "8x16", "index_map=lambda i, j: [j, i ^ (j % 8)], axis_separators=[1]"},
    {"layout_transform", "1x12:int32", "index_map=lambda i, j: [j // 4, i, 3 - j % 4]"},
    {"std", "3x5x7", "axis=[0, 2], keepdims=1"},
    {"sort", "3x13", "axis=1"},
    {"argsort", "13x3", "axis=0, descending=1, dtype=\"int64\""},
    {"bucketize", "3x5 7", "right=1, out_int32=1"},
    {"nn.group_norm", "2x6x5x1 6 6", "num_groups=3, channel_axis=1, axes=[2, 3]"},
    {"nn.group_norm", "2x5x4 4 4", "num_groups=2, channel_axis=-1, axes=[1], scale=0"},
    {"nn.instance_norm", "2x3x5x7 3 3", "channel_axis=1, axes=[2, 3]"},
    {"nn.batch_flatten", "3x5x1x2", ""},
    {"outer", "5 7", ""},
    {"stack", "3x5 3x5 3x5", "axis=1"},
    {"nn.pixel_shuffle", "2x12x3x1", "upscale_factor=2"},
    {"collapse_sum_like", "2x3x5 3x1", ""},
    {"collapse_sum_to", "2x3x5", "shape=[1, 5]"},
    {"slice_scatter", "13x3 4x3", "start=1, end=-2, step=3, axis=0"},
    {"nn.cross_entropy_with_logits", "3x5 3x5", ""},
    {"nn.nll_loss", "3x5x2 3x2:int64@0~4 5", "ignore_index=2"},
    {"nn.nll_loss", "5 -:int32@0~4", "reduction=\"sum\""},
    {"eye", "", "n=5, m=3, k=-1"},
    {"eye_like", "3x7", "k=2, dtype=\"int32\""},
    {"image.resize2d", "2x3x5x4", "size=[7, 3]"},
    {"image.resize2d", "1x5x1x3", "size=[4, 1], method=\"nearest_neighbor\", layout=\"NHWC\""},
    {"image.resize2d", "1x3x5x7",
     "size=[3, 13], method=\"cubic\", coordinate_transformation_mode=\"align_corners\""},
    {"image.resize3d", "1x2x3x5x4",
     "size=[5, 2, 7], coordinate_transformation_mode=\"asymmetric\""},
    {"shape_to_tensor", "", "shape=[3, 1, 5]"},
    {"full", "", "shape=[3, 5], fill_value=2.5, dtype=\"float16\""},
    {"zeros", "", "shape=[3, 1, 5], dtype=\"int8\""},
    {"ones", "", "shape=[7], dtype=\"float16\""},
    {"full", "-", "shape=[3, 5]"},
    {"zeros_like", "3x5", ""},
    {"ones_like", "3x1", "dtype=\"float64\""},
    {"full_like", "3x5 1", "dtype=\"int32\""},
    {"arange", "", "start=3, end=20, step=4"},
    {"arange", "", "start=7, dtype=\"float32\""},
    {"matmul", "3x7:int8@-9~9 7x5:int8@-9~9", "out_dtype=\"int32\""},
    {"nn.layer_norm", "3x5x7 5x7 5x7", "axes=[-2, -1], epsilon=0.001"},
    {"nn.batch_norm", "2x5x3 5 5 5 5@0.5~2", "axis=1, momentum=0.1", 3},
    {"nn.layer_norm", "3x5x17 17 17", ""},
    {"nn.layer_norm", "3x5x7 5 5", "axes=[1]"},
    {"nn.layer_norm", "3x5x7 7x3 7x3", "axes=[-1, 0], scale=0"},
    {"nn.rms_norm", "3x5x7 3x5", "axes=[0, 1]"},
    {"nn.attention", "2x3x5x7 2x4x5x7 2x4x5x6", ""},
    {"nn.attention", "1x5x2x3 1x5x2x3 1x5x2x3 1x2x1x5", "scale=0.5, causal_mask=\"TopLeft\""},
    {"nn.attention", "1x3x1x4 1x7x1x4 1x7x1x1", "causal_mask=\"BottomRight\""},
    {"nn.layer_norm", "3x5x17 5x17", "axis=1"},
    {"nn.rms_norm", "7x13 13", ""},
    {"nn.instance_norm", "2x13x5x3 13 13", ""},
    {"quantize", "3x7x5 7:float32@0.25~2 7:uint8@0~255", "axis=1"},
    {"quantize", "5x7 -:float32@0.0625~2", "dtype=\"int4\""},
    {"quantize", "5x13 5x4:float32@0.25~2 5x4:int16@-9~9", "axis=1, block_size=4, dtype=\"int16\""},
    {"quantize", "1x17 1:float16@0.25~2", "dtype=\"float8_e4m3\", precision=\"float16\""},
    {"quantize", "1x37 -:float32@0.03125~2", "dtype=\"float8_e5m2fnuz\", saturate=0"},
    {"quantize", "3x5 -:float32@0.0625~2 -:uint2@0~3", "dtype=\"uint2\""},
    {"quantize", "3x17 -:float32@0.0625~2", "dtype=\"float4_e2m1\""},
    {"dequantize", "5x13:float8_e4m3fnuz -:float32", ""},
    {"dequantize", "5x13:float4_e2m1 -:float32", ""},
    {"dequantize", "5x13:int2@-2~1 -:float32", ""},
    {"dequantize", "3x7x5 7:float32@0.25~2", "axis=1"},
    {"scatter_elements", "5x7x3 4x7x3:int64@-5~4 4x7x3", "axis=0"},
    {"scatter_elements", "5x7 3x11:int32@-9~9 3x11", "axis=1, reduction=\"add\""},
    {"scatter_elements", "13 29:int64@-13~12 29", "reduction=\"max\""},
    {"scatter_nd", "5x7x3 11x2:int64@-5~4 11x3", ""},
    {"scatter_nd", "13 2x17x1:int64@-13~12 2x17", "reduction=\"mul\""},
    {"scatter_nd", "3x5 2:int64@0~2 -", "reduction=\"min\""},
    {"cache_update", "3x2x7x5 3x2x4x5 3:int64@0~6", "axis=2, circular=1"},
    {"cache_update", "2x11x3 2x1x3", "axis=1"},
    {"cumsum", "3x17x5", "axis=1, exclusive=1"},
    {"cumsum", "7x2x13", "axis=-1, reverse=1"},
    {"cumprod", "1x5", "axis=1"},
    {"cumprod", "5x3", "axis=0, exclusive=1, reverse=1"},
    {"nn.attention_mask", "3:int64@0~7", "queries=5, keys=7, after=0, rank=5"},
    {"nn.attention_mask", "2:int32@0~4", "queries=1, keys=3, before=1, after=2"},
    {"bitcast", "5x7:float32", "dtype=\"int32\""},
    {"bitcast", "1x13:uint16", "dtype=\"float16\""},
    {"bitcast", "3x5", "dtype=\"uint8\""},
    {"reverse_sequence", "5x3x7 3:int64@0~5", "batch_axis=1, seq_axis=0"},
    {"reverse_sequence", "3x13 3:int32@0~13", "batch_axis=0, seq_axis=1"},
    {"linalg.det", "3x5x2x2", ""},
    {"meshgrid", "5 - 3", "", 3},
    {"meshgrid", "5 3:int32@0~9 7", "indexing=\"xy\"", 3},
    {"index_tensor", "5x3x7 2x1:int64@-5~4 4:int32@-3~2", ""},
    {"index_tensor", "5x3 1:int64@-5~4", ""},
    {"index_put", "5x3x7 2x1:int64@-5~5 4:int32@-3~2 4x1", ""},
    {"index_put", "13x3 17:int64@-13~12 17x3", "accumulate=1"},
    {"index_put", "13 -:int64@0~12 -", ""},
    {"nn.adaptive_avg_pool1d", "2x3x11", "output_size=[4]"},
    {"nn.adaptive_avg_pool1d", "2x12x3", "output_size=4, layout=\"NWC\""},
    {"nn.adaptive_avg_pool3d", "1x3x5x4x7", "output_size=[2, 4, 3]"},
    {"nn.avg_pool2d", "1x3x5x7:int32@-99~99", "pool_size=[2, 3], padding=[1, 0, 1, 0]"},
    {"nn.attention_bias", "1x5x2x3 1x7x2x3 1x7x2x3 1x1x5x7", "scale=0.5"},
    {"median", "3x5x7", "axis=[1]", 2},
    {"wrap_param", "5x7:float64", "dtype=\"float16\""},
    {"median", "4x6", ""},
    {"hamming_window", "", "window_size=11, periodic=0"},
    {"vision.roi_align", "2x9x7x3 3x5@0~1", "pooled_size=[3, 2], sample_ratio=2, layout=\"NHWC\""},
    {"linalg.det", "7x3x3", ""},
    {"linalg.det", "4x4", ""},
    {"linalg.det", "1x1", ""},
    {"topk", "3x17x5", "axis=1, k=4", 2},
    {"topk", "5x131", "k=2, largest=0", 2},
    {"topk", "1x1", "k=1", 2},
    {"topk", "3x17", "k=3, ret_type=\"values\""},
    {"topk", "3x17", "k=3, ret_type=\"indices\""},
    {"nonzero", "3x5x7@0~2", "count=41"},
    {"nonzero", "17", "count=17"},
    {"dequantize", "5x13:int4@-8~7 -:float16@0.25~2 -:int4@-8~7", ""},
    {"unpack_bits", "3x7:uint8@0~255", "bits=4"},
    {"unpack_bits", "2x3x5:uint8@0~255", "bits=2"},
    {"dequantize", "13x5:uint8@0~255 4x5:float32@0.25~2 4x5:uint8@0~255",
     "axis=0, block_size=4, dtype=\"float16\""},
};

typedef struct Definition { // one call of an operator on tensors of given types
  Context *context;
  GraphFunc *graph;
  PrimFunc *func;
  InterpRange ranges[8];
  const char *text;
  double rtol;
} Definition;

// One tensor of a case's inputs: "3x5:int64@-3~2" → its annotation; its range into *range.
static inline const char *tensor_text(Context *context, const char *spec, const char *type,
                                      InterpRange *range) {
  char own[32];
  double low = 0, high = 0;
  const char *colon = strchr(spec, ':'), *at = strchr(spec, '@');
  if (colon && sscanf(colon, ":%31[a-z0-9_]", own) == 1) type = own;
  if (at) sscanf(at, "@%lf~%lf", &low, &high);
  *range = (InterpRange){low, high};
  Text shape = text_new(&context->arena);
  for (const char *p = spec; *p && *p != ':' && *p != '@' && *p != '-'; p++)
    text_append(&shape, *p == 'x' ? ", " : p, *p == 'x' ? 2 : 1);
  const char *comma = shape.size ? "," : "";
  return arena_printf(&context->arena, "R.Tensor((%s%s), \"%s\")", text_string(&shape), comma,
                      type);
}

static inline const char *call_text(Definition *d, const OperatorCase *c, const char *type) {
  Context *context = d->context;
  Text params = text_new(&context->arena), args = text_new(&context->arena);
  char *copy = arena_printf(&context->arena, "%s", c->inputs), *rest = NULL;
  int count = 0;
  for (char *spec = strtok_r(copy, " ", &rest); spec; spec = strtok_r(NULL, " ", &rest)) {
    const char *tensor = tensor_text(context, spec, type, &d->ranges[count]);
    text_printf(&params, "%sx%d: %s", count ? ", " : "", count, tensor);
    text_printf(&args, "%sx%d", count ? ", " : "", count);
    count++;
  }
  const char *results = c->results == 3 ? "y0, y1, y2" : c->results == 2 ? "y0, y1" : "y";
  return arena_printf(
      &context->arena,
      "@R.function\ndef main(%s):\n    with R.dataflow():\n        %s = R.%s(%s%s%s)"
      "\n        R.output(%s)\n    return %s%s%s\n",
      text_string(&params), results, c->op, text_string(&args), *c->attrs && count ? ", " : "",
      c->attrs, results, c->results ? "(" : "", results, c->results ? ")" : "");
}

static inline double tolerance_of(DType type) {
  if (!dtype_is_float(type)) return 0;
  return type.code == TYPE_BFLOAT ? 4e-2 : type.bits == 16 ? 5e-3 : type.bits == 32 ? 1e-5 : 1e-12;
}

static inline bool define(Definition *d, const OperatorCase *c, const char *type) {
  Context *context = d->context;
  d->text = call_text(d, c, type);
  SourceFile *file = source_file_new(context, "call.py", d->text, strlen(d->text));
  Module *module = script_parse(context, file);
  if (!module) {
    diag_print_all(context, stderr);
    fail_msg("%s", d->text);
  }
  d->graph = module->funcs.items[0].graph;
  return graph_infer(context, d->graph) &&
         (d->func = op_prim_func(context, d->graph->nodes.items[0])) != NULL;
}

#endif
