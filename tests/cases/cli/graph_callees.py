# Tensor programs that a graph calls, and that call other functions of the module themselves.
# RUN: pleat run %s --func main --fill random --seed 3 --dim n=3 | grep -o "^y.*"
# RUN: pleat verify %s --func main --dim n=3 | sed "s/;.*//"
# RUN: pleat verify %s --func main --dim n=0 | sed "s/;.*//"
# RUN: pleat verify %s --func branches | sed "s/;.*//"
# RUN 1: pleat run %s --func endless --fill random
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def doubled(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, 5), "float32")
        Y = T.match_buffer(y, (n, 5), "float32")
        for i, j in T.grid(n, 5):
            with T.block("doubled"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(2)

    @T.prim_func(private=True)
    def more(x: T.float32) -> T.float32:
        return x + T.float32(1)

    @T.prim_func
    def outer(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, 5), "float32")
        Y = T.match_buffer(y, (n, 5), "float32")
        Z = T.alloc_buffer((n, 5), "float32")
        Module.doubled(X.data, Z.data)
        for i, j in T.grid(n, 5):
            with T.block("outer"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = Module.more(Z[vi, vj])

    @T.prim_func
    def itself(X: T.Buffer((2, 5), "float32"), Y: T.Buffer((2, 5), "float32")):
        Module.itself(X.data, Y.data)

    @R.function
    def main(x: R.Tensor(("n", 5), "float32")):
        n = T.int64()
        cls = Module
        y1 = R.call_tir(cls.outer, (R.nn.relu(x),), out_sinfo=R.Tensor((n, 5), "float32"))
        y = R.add(y1, x)
        return y

    @R.function
    def branches(x: R.Tensor((7, 5), "float32"), c: R.Tensor((), "bool")):
        cls = Module
        if c:
            y = R.call_tir(cls.outer, (x,), out_sinfo=R.Tensor((7, 5), "float32"))
        else:
            y = R.nn.relu(x)
        return y

    @R.function
    def endless(x: R.Tensor((2, 5), "float32")):
        cls = Module
        y = R.call_tir(cls.itself, (x,), out_sinfo=R.Tensor((2, 5), "float32"))
        return y
