# RUN: for f in scalar cropped sliced channel swizzled first; do pleat run --policy none %s --func $f --fill random --seed 5 | grep -o "\[.*values\]" > %t/before; for p in 'FlowLayoutRewrites("forward")' 'FlowLayoutRewrites("backward")' 'LegalizeOps,FlowLayoutRewrites("forward")' 'LegalizeOps,RaiseLayoutRewrites,OptimizeLayoutTransform' OptimizeLayoutTransform 'ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})' 'ConvertLayout({"nn.conv2d": ["NCHW4c", "OIHW4o"]})'; do pleat opt %s --pass "$p" --func $f -o %t/after.py && pleat verify --policy none %t/after.py --func $f | grep -c "agrees with the interpreter" && pleat run --policy none %t/after.py --func $f --fill random --seed 5 | grep -o "\[.*values\]" | cmp - %t/before; done; done | sort | uniq -c
# RUN: pleat opt %s --pass 'FlowLayoutRewrites("forward")' --func scalar | sed -n "/def scalar/,/return/p"
# RUN: pleat opt %s --pass OptimizeLayoutTransform --func cropped | sed -n "/def cropped/,/return/p"
# RUN: pleat opt %s --pass LegalizeOps,RaiseLayoutRewrites,OptimizeLayoutTransform --func sliced | sed -n "/def sliced/,/return/p"
# RUN: pleat opt %s --pass 'ConvertLayout({"nn.conv2d": ["NCHW4c", "OIHW4o"]})' --func channel | sed -n "/def channel/,/return/p"
# RUN: pleat opt %s --pass 'FlowLayoutRewrites("forward")' --func swizzled | sed -n "/def swizzled/,/return/p"
# RUN 1: pleat opt %s --pass 'FlowLayoutRewrites("forward", value="y")' --func swizzled
# Axes of one element: a reduction of them is a rewrite, a slice that leaves them is none, and a
# layout that pads them is undone on the part of the memory that it fills.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def scalar(x: R.Tensor((1,), "float32")):
        v = R.sum(x, axis=[0])
        return R.multiply(v, v)

    @R.function
    def cropped(x: R.Tensor((3, 7), "float32")):
        y = R.permute_dims(x, axes=[1, 0])
        return R.crop(y, start_indices=[6, 0], slice_sizes=[1, 1])

    @R.function
    def sliced(x: R.Tensor((5, 7), "float32")):
        v = R.strided_slice(x, axes=[1], begin=[6], end=[7])
        return R.expand_dims(v, axis=[0])

    @R.function
    def channel(x: R.Tensor((1, 1, 8, 7), "float32"), w: R.Tensor((1, 1, 3, 3), "float32")):
        y = R.nn.conv2d(R.nn.softmax(x, axis=2), w)
        return R.strided_slice(y, axes=[3], begin=[4], end=[5])

    # The mean over an axis that the map swizzles by another has no layout that can be undone.
    @R.function
    def swizzled(x: R.Tensor((2, 4, 6), "float32")):
        y = R.layout_transform(x, index_map=lambda a, b, c: (a, b ^ (c % 2), c))
        return R.mean(y, axis=[1])

    # Only the first one of the two results of an operator is used.
    @R.function
    def first(x: R.Tensor((2, 4), "float32")):
        v = R.topk(x, k=2, axis=1)
        return v[0]
