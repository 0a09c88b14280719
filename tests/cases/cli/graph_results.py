# RUN: pleat opt %s
# RUN: for f in dataflow nested first scalars; do pleat verify %s --func $f | grep -c "agrees with the interpreter"; done
# Branches that end with a dataflow block or another `if`, one of several results, and a size for
# the last parameter of a program.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def scaled(x: T.handle, y: T.handle, m: T.int64):
        X = T.match_buffer(x, (3, 5))
        Y = T.match_buffer(y, (3, 5))
        for i, j in T.grid(3, 5):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.cast(m, "float32")

    @R.function
    def dataflow(x: R.Tensor((3, 5), "float32"), c: R.Tensor((), "bool")):
        if c:
            with R.dataflow():
                a = R.exp(x)
                out = R.add(a, x)
                R.output(out)
        else:
            out = R.negative(x)
        return out

    @R.function
    def nested(x: R.Tensor((3, 5), "float32"), c: R.Tensor((), "bool"), d: R.Tensor((), "bool")):
        if c:
            if d:
                out = R.exp(x)
            else:
                with R.dataflow():
                    out = R.abs(x)
                    R.output(out)
        else:
            out = R.negative(x)
        return out

    @R.function
    def first(x: R.Tensor((2, 4), "float32")):
        v = R.topk(x, k=2, axis=1)
        return v[0]

    @R.function
    def scalars(x: R.Tensor((3, 5), "float32")):
        cls = Module
        return R.call_tir(cls.scaled, (x,), out_sinfo=R.Tensor((3, 5), "float32"), tir_vars=R.shape([2]))
