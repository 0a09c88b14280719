# RUN: pleat plan %s --cpu avx2 | head -3
# RUN: pleat plan %s --cpu avx2 --why h | head -3
# RUN: pleat plan %s --cpu avx2 --why b=NHWC
# RUN 1: pleat plan %s --cpu avx2 --why bb=NHWC
# Private functions are not taken for the function that is meant. `h` is the result of one, and `b`
# has no memory of its own.
from pleat.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function(private=True)
    def first(x: R.Tensor((1, 8, 4, 4), "float32")):
        return R.nn.relu(x)

    @R.function
    def main(x: R.Tensor((1, 3, 6, 6), "float32"), w: R.Tensor((8, 3, 3, 3), "float32")):
        cls = Module
        a = R.nn.conv2d(x, w)
        b = R.exp(a)
        h = cls.first(b)
        return R.matmul(h, h)

    @R.function(private=True)
    def last(x: R.Tensor((1, 8, 4, 4), "float32")):
        return R.exp(x)
