// SPDX-License-Identifier: Apache-2.0
// Calls of every operator that is not elementwise and not a reduction (those two families have
// cases made from their rows): the shapes of its inputs, and attributes as TVMScript writes them.
//   "1x13x7x5 4:int64@-3~2"   two tensors; the second is int64 with values from -3 to 2
//   "-" is a tensor of rank 0
#ifndef PLEAT_TESTS_OPERATOR_CASES_H
#define PLEAT_TESTS_OPERATOR_CASES_H

typedef struct OperatorCase {
  const char *op, *inputs, *attrs;
  int results; // 0: one
} OperatorCase;

static const OperatorCase operator_cases[] = {
    {"nn.conv2d", "1x3x7x5 17x3x3x2 17", "padding=[1, 0, 2, 1]"},
    {"nn.conv2d", "2x1x5x1 1x1x1x1", ""},
    {"nn.conv2d", "1x13x6x7 13x1x3x3", "groups=13, strides=[2, 1], padding=[1, 1, 1, 1]"},
    {"nn.conv2d", "1x6x9x8 10x3x2x3 10", "groups=2, dilation=[2, 3], padding=[2, 3, 2, 3]"},
    {"nn.conv2d", "1x20x5x4 19x20x3x3", "auto_pad=\"SAME_LOWER\", strides=[2, 2]"},
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
    {"nn.batch_norm", "2x13x5x3 13 13 13 13@0.5~2", "epsilon=0.001"},
    {"nn.batch_norm", "7x3 3 3 3 3@0.5~2", ""},
    {"nn.softmax", "3x17x5", "axis=1"},
    {"nn.softmax", "7x1", ""},
    {"nn.softmax", "2x3x5x7", "axis=2, all_behind=1"},
    {"nn.log_softmax", "5x13", ""},
    {"nn.max_pool2d", "1x3x9x7", "pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 1]"},
    {"nn.max_pool2d", "2x17x8x5", "pool_size=[2, 2], strides=[3, 2], ceil_mode=1"},
    {"nn.avg_pool2d", "1x13x7x5", "pool_size=[3, 3], padding=[1, 1, 1, 1]"},
    {"nn.avg_pool2d", "1x3x8x7",
     "pool_size=[2, 3], strides=[2, 2], padding=[0, 1, 1, 1], count_include_pad=1"},
    {"nn.global_avg_pool2d", "2x13x5x7", ""},
    {"nn.global_max_pool2d", "1x1x3x1", ""},
    {"strided_slice", "7x13x5", "axes=[0, 2], begin=[1, -1], end=[6, -6], strides=[2, -2]"},
    {"split", "3x17", "axis=1, sizes=[5, 1, 11]", 3},
    {"broadcast_to", "13x1", "shape=[3, 13, 5]"},
    {"tile", "3x5x1", "repeats=[2, 1, 3]"},
    {"triu", "2x7x5", "k=1"},
    {"tril", "5x7", "k=-1"},
    {"take", "7x13 3x2:int64@-13~12", "axis=1"},
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
    {"nn.layer_norm", "3x5x17 17 17", ""},
    {"nn.layer_norm", "3x5x17 5x17", "axis=1"},
    {"nn.rms_norm", "7x13 13", ""},
    {"nn.instance_norm", "2x13x5x3 13 13", ""},
    {"quantize", "3x7x5 7:float32@0.25~2 7:uint8@0~255", "axis=1"},
    {"quantize", "5x7 -:float32@0.0625~2", "dtype=\"int4\""},
    {"quantize", "5x13 5x4:float32@0.25~2 5x4:int16@-9~9", "axis=1, block_size=4, dtype=\"int16\""},
    {"quantize", "1x17 1:float16@0.25~2", "dtype=\"float8_e4m3\", precision=\"float16\""},
    {"dequantize", "3x7x5 7:float32@0.25~2", "axis=1"},
    {"dequantize", "5x13:int4@-8~7 -:float16@0.25~2 -:int4@-8~7", ""},
    {"dequantize", "13x5:uint8@0~255 4x5:float32@0.25~2 4x5:uint8@0~255",
     "axis=0, block_size=4, dtype=\"float16\""},
};

#endif
