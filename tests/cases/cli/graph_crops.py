# RUN: pleat verify %s --func sizes --dim n=7 --dim m=1 | sed 's/, within.*//'
# RUN: pleat verify %s --func sizes --dim n=3 --dim m=3 | sed 's/, within.*//'
# RUN 1: pleat plan %s --func sizes --dim n=2 --dim m=3
# RUN: pleat opt %s --pass OptimizeLayoutTransform --func undefined | sed -n "/def undefined/,/return/p"
# RUN: pleat verify %s --func filled | sed 's/, within.*//'
# Crops to sizes that are known when the function is compiled, and values that may be anything. The rule
# of the proposal ("Folding/Fusing Layout Rewrites"): a pad undoes a crop when all the cropped values are
# T.undef() or the values being padded.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def sizes(x: R.Tensor(("n", 5), "float32"), y: R.Tensor(("m", 5), "float32")):
        n, m = T.int64(), T.int64()
        a = R.crop(x, start_indices=[n - m, 1], slice_sizes=[m, 4])
        return R.add(a, R.crop(y, start_indices=[0, 0], slice_sizes=[m, 4]))

    @R.function
    def undefined(x: R.Tensor((7, 9), "float32")):
        a = R.crop(x, start_indices=[1, 0], slice_sizes=[5, 9], cropped_value=T.undef())
        out1 = R.pad(a, pad_width=[1, 1, 0, 0], pad_value=3)
        b = R.crop(x, start_indices=[1, 0], slice_sizes=[5, 9], cropped_value=2)
        out2 = R.pad(b, pad_width=[1, 1, 0, 0], pad_value=3)
        out3 = R.pad(b, pad_width=[1, 1, 0, 0], pad_value=T.undef())
        c = R.crop(a, start_indices=[0, 2], slice_sizes=[5, 7], cropped_value=2)
        out4 = R.pad(c, pad_width=[1, 1, 2, 0], pad_value=2)
        out5 = R.pad(c, pad_width=[1, 1, 2, 0], pad_value=3)
        return (out1, out2, out3, out4, out5)

    @R.function
    def filled(x: R.Tensor((7, 9), "float32")):
        return R.nn.relu(R.layout_transform(x, index_map=lambda i, j: (i, j // 4, j % 4), pad_value=T.undef()))
