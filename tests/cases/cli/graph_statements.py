# RUN: pleat plan %s --why t
# RUN: pleat plan %s --why k
# RUN 1: pleat plan %s --why zz
# RUN: pleat plan %s --verify-each | grep -c kernels
# RUN: pleat verify %s --func main 2>&1 | tail -1 | sed -E "s/is [0-9.]+$/is _/"
# A statement of the user that is false: exp(x) is not 0 where the crop leaves it out. `t` has no
# memory of its own, and `k` is computed while compiling.
from pleat.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        t = R.permute_dims(x, axes=[1, 0])
        a = R.exp(t)
        b = R.crop(a, start_indices=[0, 0], slice_sizes=[5, 4], cropped_value=0)
        c = R.pad(b, pad_width=[0, 3, 0, 0])
        k = R.exp(R.const([1.0, 2.0, 3.0, 4.0], "float32"))
        return R.sum(R.add(c, k), axis=[1])
