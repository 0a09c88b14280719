# RUN: pleat opt %s
# RUN: pleat verify %s --func main | grep -c "agrees with the interpreter"
# RUN: pleat opt %s --func main --pass OptimizeLayoutTransform | grep -c layout_transform
# RUN 1: pleat opt %s --func short --pass LegalizeOps
# Index maps for any number of axes, as TVM reads them, are resolved with the rank of the tensor.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((5, 8, 3), "float32")):
        a = R.layout_transform(x, index_map=lambda *i: (i[1] // 3, i[0], i[2], i[1] % 3))
        b = R.layout_transform(R.exp(x), index_map=T.index_map(lambda i, *rest: [*rest, i]))
        c = R.layout_transform(b, index_map=lambda *a: [a[2],
                                                        # a comment
                                                        a[0], a[1]])
        return (a, c)

    @R.function
    def short(x: R.Tensor((5,), "float32")):
        return R.layout_transform(x, index_map=lambda i, j, *rest: [j, i, *rest])

    @R.function
    def other(x: R.Tensor((5,), "float32")):
        return R.layout_transform(x, other=lambda i, *rest: [i, *rest])
