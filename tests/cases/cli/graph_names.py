# A block or a value may have the name that the root block of programs has, and functions that call
# one another are refused at once.
# RUN: pleat verify %s --func main | grep -o "agrees with the interpreter"
# RUN: pleat verify %s --func relu | grep -o "agrees with the interpreter"
# RUN 1: pleat plan %s --func first
# RUN 1: pleat plan %s --func unknown
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def relu(data: T.Buffer((4, 6), "float32"), out: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.block("root"):
                vi, vj = T.axis.remap("SS", [i, j])
                out[vi, vj] = T.max(data[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        root = R.exp(x)
        y = R.call_tir(Module.relu, (root,), R.Tensor((4, 6), "float32"))
        root_1 = R.sum(y, axis=[0])
        return root_1

    @R.function
    def first(x: R.Tensor((4, 6), "float32")) -> R.Tensor((4, 6), "float32"):
        return Module.second(Module.second(Module.second(x)))

    @R.function
    def second(x: R.Tensor((4, 6), "float32")) -> R.Tensor((4, 6), "float32"):
        return Module.first(Module.first(Module.third(x)))

    @R.function
    def third(x: R.Tensor((4, 6), "float32")) -> R.Tensor((4, 6), "float32"):
        return Module.second(Module.third(Module.third(x)))

    @R.function
    def unknown(x: R.Tensor((4, 6), "float32")):
        return R.vision.something(x, "text", 3)
