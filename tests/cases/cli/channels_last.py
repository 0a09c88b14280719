# Layouts of inputs and outputs: a line for each says what it does. x, which is transposed before
# the convolution, has the axes N, H, W, C of its own; nothing tells the axes of v.
# RUN: pleat inspect %s --cpu baseline | grep -v '^#' | awk '{print $1, $2, $3, $5}'
# RUN: pleat inspect %s --cpu baseline --input-layout x=NHWC --output-layout y=NHWC 2>&1 | grep "note\|^x\|^y"
# RUN: pleat inspect %s --cpu baseline --input-layout x=NCHW4c --input-layout v=NHWC 2>&1 | grep "note\|^x\|^v"
# RUN: pleat inspect %s --cpu baseline --input-layout x=ACDB --input-layout v=ACDB 2>&1 | grep "note\|^x\|^v"
# RUN: pleat inspect %s --cpu baseline --input-layout 'v=n,h,w,c -> n, h, w, c' --output-layout z=NHWC 2>&1 | grep "note\|^v\|^z"
# RUN: pleat inspect %s --cpu baseline --input-layout 'v=i,j,k,l -> i, j, k, l in [1, 8, 5, 3]' --desired-layout multiply=NHWC 2>&1 | grep "note\|^v"
# RUN: pleat inspect %s --cpu baseline --desired-layout conv2d=NHWC | awk '$2 == "nn.conv2d" {print $5}'
# RUN: pleat inspect %s --cpu baseline --input-layout x=OIHW --output-layout 'y=NHWC8c in [1, 8, 10, 1, 8]' 2>&1 | grep "note\|^x\|output"
# RUN 1: pleat inspect %s --input-layout 'x=i,j,k,l; r=2 -> i, j, k, l, r' 2>&1
# RUN: pleat verify %s --input-layout x=NCHW4c --input-layout v=NHWC --output-layout y=NCHW --json 2>/dev/null | grep agrees
from pleat.script import relax as R


@R.function
def main(x: R.Tensor((1, 9, 11, 3), "float32"), w: R.Tensor((5, 3, 3, 2), "float32"),
         v: R.Tensor((1, 6, 5, 3), "float32")):
    with R.dataflow():
        t = R.permute_dims(x, axes=[0, 3, 1, 2])
        c = R.nn.conv2d(t, w)
        y = R.permute_dims(c, axes=[0, 2, 3, 1])
        z = R.multiply(v, v)
        R.output(y, z)
    return (y, z)
