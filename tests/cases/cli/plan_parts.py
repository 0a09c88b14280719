# An elementwise stage whose only reader takes a part of its elements, each once, is computed by the
# reader: rewrites with padding vanish around it, and what a slice leaves out is not computed. A
# reader that takes an element twice reads it from memory.
# RUN: pleat plan %s --func padded --fusion --cpu avx2
# RUN: pleat verify %s --func padded
# RUN: pleat plan %s --func sliced --fusion --cpu avx2
# RUN: pleat verify %s --func sliced
# RUN: pleat plan %s --func twice --fusion --cpu avx2
# A tensor whose parts are computed differently, such as keys that are padded to a power of two, may
# have a kernel for each part, although no part is a tensor of its own.
# RUN: pleat plan %s --func keys --fusion --cpu avx2
# RUN: pleat verify %s --func keys
from pleat.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def padded(x: R.Tensor((5, 30), "float32")):
        with R.dataflow():
            a = R.layout_transform(x, index_map=lambda i, j: (i, j // 8, j % 8), pad_value=0)
            b = R.nn.relu(a)
            c = R.layout_transform(b, index_map=lambda i, j, k: (i, j * 8 + k))
            y = R.strided_slice(c, axes=[1], begin=[0], end=[30])
            R.output(y)
        return y

    @R.function
    def sliced(x: R.Tensor((7, 13), "float32"), z: R.Tensor((13,), "float32")):
        with R.dataflow():
            a = R.exp(R.add(x, z))
            b = R.strided_slice(a, axes=[0, 1], begin=[1, 12], end=[6, 2], strides=[2, -3])
            y = R.multiply(b, b)
            R.output(y)
        return y

    @R.function
    def twice(x: R.Tensor((13,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.strided_slice(a, axes=[0], begin=[1], end=[13])
            c = R.strided_slice(a, axes=[0], begin=[0], end=[12])
            y = R.subtract(b, c)
            R.output(y)
        return y

    @R.function
    def keys(x: R.Tensor((3, 16, 8, 3), "float32")):
        with R.dataflow():
            y = R.topk(x, 2, axis=3, ret_type="values", largest=True)
            R.output(y)
        return y
