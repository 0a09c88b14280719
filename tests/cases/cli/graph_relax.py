# RUN: for f in tuples positional calls local branches known cast taken deep; do pleat verify %s --func $f | grep -c "agrees with the interpreter"; done
# RUN: pleat run %s --func symbolic --dim n=3 --fill zero | grep -c latency
# RUN: pleat verify %s --func symbolic --dim n=5 | grep -c "agrees with the interpreter"
# RUN: pleat compile %s --func calls -o %t/calls.c >%t/log && cc -Wall -Wextra -Werror -c %t/calls.c -o %t/calls.o
# RUN 1: pleat plan %s --func packed
# RUN 1: pleat plan %s --func recursive
# RUN 1: pleat plan %s --func object
# RUN 1: pleat plan %s --func number
# Graph functions as TVM prints them, compiled: tuples, arguments by position, calls, branches.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def tuples(pair: R.Tuple(R.Tensor((3, 5), "float32"), R.Tuple(R.Tensor((3, 5), "float32"), R.Tensor((5,), "float32")))) -> R.Tuple(R.Tensor, R.Tuple(R.Tensor, R.Tensor)):
        a = pair[0]
        b = pair[1]
        c = (R.add(a, b[0]), b[1])
        return (c[0], (R.multiply(a, c[1]), b[0]))

    @R.function
    def positional(x: R.Tensor((2, 6, 5), "float32")):
        a = R.reshape(x, R.shape([3, 4, 5]))
        b = R.permute_dims(a, axes=[1, 0, 2])
        c = R.expand_dims(b, [0])
        d = R.strided_slice(c, (R.prim_value(1), 2), (R.prim_value(0), R.prim_value(1)), (R.prim_value(4), R.prim_value(3)), assume_inbound=False)
        e = R.clip(R.astype(d, R.dtype("float64")), R.prim_value(-0.25), R.prim_value(T.float64(0.5)))
        return R.split(e, indices_or_sections=[1, 3], axis=1)

    @R.function(private=True)
    def twice(x: R.Tensor(("n", 4), "float32"), y: R.Tuple(R.Tensor, R.Tensor)) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        a: R.Tensor((n, 4), dtype="float32") = R.add(x, y[1])
        return R.reshape(a, R.shape([4, n]))

    @R.function
    def calls(x: R.Tensor((3, 4), "float32"), y: R.Tensor((7, 4), "float32")):
        cls = Module
        a = cls.twice(x, (y, x))
        b = cls.twice(y, (x, y))
        return R.concat([a, b], axis=1)

    @R.function
    def local(x: R.Tensor((3, 4), "float32")):
        @R.function
        def inner(y: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
            return R.subtract(y, R.exp(x))

        a = inner(x)
        return inner(a)

    @R.function
    def branches(x: R.Tensor((3, 4), "float32"), some: R.Tensor((), "bool")):
        if some:
            a = R.exp(x)
            out = (a, x)
        else:
            out = (x, R.negative(x))
        return R.add(out[0], out[1])

    @R.function
    def known(x: R.Tensor((3, 4), "float32")):
        if R.const(False, "bool"):
            out = R.exp(x)
        else:
            out = R.negative(x)
        return out * x

    @R.function
    def cast(x: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            a = R.match_cast(x, R.Tensor((3, 4), "float32"))
            b = R.builtin.stop_lift_params(a)
            c: R.Tensor(ndim=2, dtype="float32") = R.nn.relu(b)
            R.output(c)
        return c

    @R.function
    def taken(x: R.Tensor((5, 7), "float32")):
        a = R.split(x, 7, axis=1)
        b = (a[0], a[6])
        return R.concat(b, axis=0)

    @R.function
    def deep(x: R.Tensor((5, 7), "float32")):
        cls = Module
        return cls.local(R.reshape(R.strided_slice(x, [0, 1], [0, 0], [3, 4]), R.shape([3, -1])))

    @R.function
    def symbolic(x: R.Tensor(("n", 6), "float32"), y: R.Tensor(("n * 2", 3), "float32")):
        n = T.int64()
        a = R.reshape(x, R.shape([n * 2, 3]))
        return R.add(a, y)

    @R.function
    def packed(x: R.Tensor((5, 7), "float32")):
        return R.call_dps_packed("custom", (x,), out_sinfo=R.Tensor((5, 7), "float32"))

    @R.function
    def recursive(x: R.Tensor((5, 7), "float32")):
        cls = Module
        return cls.recursive(x)

    @R.function
    def object(x: R.Tensor((5, 7), "float32"), y: R.Object):
        return R.add(x, y)

    @R.function
    def number(x: R.Tensor((5, 7), "float32")):
        return R.exp(x, R.prim_value(3))
