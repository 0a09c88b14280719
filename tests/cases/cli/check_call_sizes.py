# RUN 1: pleat check %s
# Calls of which the tensors never fit, whatever n is, in the second graph function of a module.
from tvm.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 8), "float32")
        B = T.match_buffer(b, (n, 8), "float32")
        for i, j in T.grid(n, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    @R.function
    def fits(x: R.Tensor(("n", 8), "float32"), y: R.Tensor(("n + 1", 8), "float32")):
        n = T.int64()
        z = R.call_tir(Module.copy, (y,), out_sinfo=R.Tensor((n + 1, 8), "float32"))
        return R.call_tir(Module.copy, (R.concat((x, z)),), out_sinfo=R.Tensor((n * 2 + 1, 8), "float32"))

    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        n = T.int64()
        return R.call_tir(Module.copy, (x,), out_sinfo=R.Tensor((n + 1, 8), "float32"))
