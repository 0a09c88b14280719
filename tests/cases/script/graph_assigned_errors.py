# RUN 1: pleat opt %s
# Assignments and types that cannot be read.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def exchanged(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
        x, y = y, x
        return R.subtract(x, y)

    @R.function
    def numbers(x: R.Tensor((3,), "float32")):
        a, b, c = R.exp(x), R.log(x)
        return a

    @R.function
    def signs(x: R.Tensor((3,), "float32")):
        return ~x

    @R.function
    def unstated(x: R.Tensor((3,), "float32")):
        a = R.exp(x)
        b = R.call_packed("g", a, sinfo_args=[a.ty])
        return b

    @R.function
    def limit(x: R.Tensor((3,), "float32")):
        return R.add(x, R.full(R.shape([3]), R.const(np.finfo(np.float32).max, "float32")))
