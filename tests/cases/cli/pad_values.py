# RUN 1: pleat verify %s --func above
# RUN 1: pleat verify %s --func between
# RUN 1: pleat verify %s --func below
# RUN 1: pleat verify %s --func logical
# RUN: pleat verify %s --func exact | grep -c "agrees with the interpreter"
# Padding values that the type of the tensor does not have are refused.
from pleat.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def above(x: R.Tensor((2, 3), "int8")):
        return R.nn.pad(x, [[0, 0], [1, 1]], pad_value=300)

    @R.function
    def between(x: R.Tensor((2, 3), "int8")):
        return R.pad(x, pad_width=[[0, 0], [1, 1]], pad_value=1.5)

    @R.function
    def below(x: R.Tensor((2, 3), "uint8")):
        return R.layout_transform(x, index_map=lambda i, j: [i, j // 2, j % 2], pad_value=-1)

    @R.function
    def logical(x: R.Tensor((2, 3), "bool")):
        return R.crop(x, start_indices=[0, 0], slice_sizes=[1, 1], cropped_value=2)

    @R.function
    def exact(x: R.Tensor((2, 3), "int64")):
        y = R.nn.pad(x, [[0, 0], [1, 1]], pad_value=9007199254740993)
        return R.equal(y, R.const(9007199254740993, "int64"))
