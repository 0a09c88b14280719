# RUN: pleat opt %s --pass DeadCodeElimination
# RUN: pleat opt %s --pass 'DeadCodeElimination(["other"])'
# RUN 1: pleat opt %s --pass 'DeadCodeElimination(["nothing"])'
# RUN 1: pleat opt %s --pass 'DeadCodeElimination("main")'
# Values and functions that nothing needs.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(A: T.Buffer((3, 5), "float32"), B: T.Buffer((3, 5), "float32")):
        for i, j in T.grid(3, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @T.prim_func(private=True)
    def unused(A: T.Buffer((3, 5), "float32"), B: T.Buffer((3, 5), "float32")):
        for i, j in T.grid(3, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)

    @R.function
    def main(x: R.Tensor((3, 5), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.call_tir(Module.scale, (x,), out_sinfo=R.Tensor((3, 5), "float32"))
            c = R.call_tir(Module.unused, (a,), out_sinfo=R.Tensor((3, 5), "float32"))
            R.output(b)
        return b

    @R.function
    def other(x: R.Tensor((3, 5), "float32")):
        return R.negative(x)
