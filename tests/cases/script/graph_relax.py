# RUN: pleat opt %s
# Everything that TVM's graph functions have beside operators on tensors: types, tuples, arguments
# that are no tensors, calls among functions, local functions, branches, packed functions.
from typing import TypeVar
from pleat.script import ir as I, relax as R, tir as T

n = TypeVar("n")

@I.ir_module
class Module:
    I.module_attrs({"opset": 17})

    @R.function(private=True, pure=False)
    def main(x: R.Tensor((n, 16), "float32"), pair: R.Tuple(R.Tensor(("n",), "int64"), R.Tensor(ndim=2, dtype="float32")),
             s: R.Shape(["n", 4]), f: R.Callable((R.Tensor, R.Object), R.Tensor((), "float32")),
             size: T.int64, any: R.Any, shape: R.Shape(ndim=3)) -> R.Tuple(R.Tensor((n, 16), "float32"), R.Shape):
        cls = Module
        R.func_attr({"num_input": 1})
        first: R.Tensor((n,), dtype="int64") = pair[0]
        R.print(x, format=R.str("x = {}"))
        m = T.int64()
        with R.dataflow():
            a: R.Tensor((m, 16), dtype="float32") = R.match_cast(x, R.Tensor((m, 16), dtype="float32"))
            b = R.reshape(a, R.shape([m * 4, 4]))
            c = R.astype(b + b, R.dtype("float16"))
            both = (b, c)
            R.output(b)
        with R.dataflow():
            d = cls.helper(both[0], R.prim_value(T.int64(3)))
            e = R.call_pure_packed("sum", d, (x, d), sinfo_args=(R.Tensor((n, 4), "float32"),))
            g = R.call_dps_packed("mul", (d, e), out_sinfo=[R.Tensor((n, 4), dtype="float32"), R.Tensor((n, 4), dtype="float32")])
            h = g[1]
            R.output(h, d)

        @R.function
        def inner(y: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            z = R.add(y, h)
            return z

        k = inner(h)
        if any:
            t = R.add(k, k)
            out: R.Tensor((n, 4), "float32") = R.exp(t)
        else:
            out: R.Tensor((n, 4), "float32") = k
        w = R.call_tir(cls.scale, (h,), R.shape([n]), out_sinfo=R.Tensor((n, 4), dtype="float32"))
        u: R.Object = R.builtin.alloc_tensor(R.shape([n, 4]), R.dtype("float32"), 0, R.str("global"))
        v = R.strided_slice(out, (R.prim_value(0),), [0], [T.int64(2)], assume_inbound=False)
        q = R.call_packed("custom", w, None, kwargs={"axis": 1, "of": [1.5, 2]}, where=R.Object)
        return ((v, q), R.tuple(), s, R.shape([1, n]), u)

    @R.function(private=True)
    def helper(x: R.Tensor(("m", 4), "float32"), y: R.Prim(value=3)) -> R.Tensor(("m", 4), "float32"):
        return x

    @R.function(private=True)
    def sized(s: R.Prim("int64"), x: R.Tensor(["s", 4], "float32"), t: T.int64, k: R.Prim(value="t")) -> R.Tensor([s, "t"], "float32"):
        return R.add(x, R.zeros(R.shape([s, 4]), "float32"))

    @T.prim_func
    def scale(A: T.buffer((30, 64), "float32"), B: T.Buffer((30, 64), "float32"), k: T.int64):
        for i, j in T.grid(30, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
