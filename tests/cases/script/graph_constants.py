# RUN: pleat opt %s
# Constants without a type have the one that their numbers tell.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Constants:
    @R.function
    def kinds(x: R.Tensor((3,), "int32")):
        with R.dataflow():
            b = R.add(x, R.const(1))
            d = R.where(R.const([True, False, True]), b, R.const([1, 2, -3]))
            e = R.astype(R.add(d, R.const([True, 2, 3])), "float32")
            f = R.add(R.add(e, R.const([1, 2.5, 3])), R.const(-2.0))
            g = R.where(R.const(True), f, R.const(1, "float32"))
            R.output(g)
        return g

    @R.function
    def stated(x: R.Tensor((3,), "int64")):
        return R.add(x, R.const(T.int64(3)))

    @R.function
    def shapes(x: R.Tensor((2, 1), "float32"), y: R.Tensor((0, 3), "int8")):
        a = R.add(x, R.const([[1.0], [2.0]]))
        b = R.add(y, R.const([], R.Tensor((0, 3), "int8")))
        c = R.const([[], []])
        d = R.add(R.const([]), R.const([2], R.Tensor((1,), dtype="float32")))
        return (a, b, c, d)

    @R.function
    def differences(x: R.Tensor((3,), "float32")):
        return R.add(x, R.const([1e999 - 1e999, -1e999, 2.5 - 1], "float32"))
