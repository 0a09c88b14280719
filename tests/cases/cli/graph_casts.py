# Types that R.match_cast states, and `if` with a condition that is not known until run time. A cast
# that does not hold is an error, as it is one at run time in TVM; a size that it names has a value.
# RUN: for f in good named both; do pleat verify %s --func $f | grep -o "agrees with the interpreter"; done; pleat verify %s --func renamed --dim n=3 | grep -o "agrees with the interpreter"
# RUN: pleat verify %r/tests/cases/script/graph_assigned.py --func sizes --dim n=3 --dim m=5 | grep -o "agrees with the interpreter"
# RUN 1: pleat run %s --func extent --fill random
# RUN 1: pleat run %s --func element_type --fill random
# RUN 1: pleat run %s --func rank --fill random
# RUN 1: pleat run %s --func in_tuple --fill random
# RUN 1: pleat run %s --func twice --fill random
# RUN 1: pleat run %s --func sized --dim n=3 --dim m=5 --fill random
# RUN: pleat run %s --func sized --dim n=3 --dim m=4 --fill random | grep -c "values\]"
# RUN 1: pleat run %s --func other_shape --fill random
# RUN 1: pleat run %s --func broadcast --fill random
# RUN 1: pleat run %s --func many --fill random
# RUN: for f in "twice_known --dim n=4" "no_rank --dim n=4" "no_rank --input-shape x=4x8" "no_extents --dim n=3 --dim m=4" "no_extents --dim x.0=3 --dim x.1=4" "sizes_hold --dim n=32" "objects"; do pleat verify %s --func $f | grep -o "agrees with the interpreter"; done
# RUN 1: pleat verify %s --func no_extents --dim n=3 --dim m=4 --dim x.0=5
# RUN 1: pleat verify %s --func sizes_hold --dim n=33
# RUN: pleat verify %s --func restated --dim n=4 --dim m=4 | grep -o "agrees with the interpreter"; pleat verify %s --func doubled --dim n=4 --dim m=8 | grep -o "agrees with the interpreter"
# RUN: { grep "^from" %s; echo "@R.function"; sed -n "/def restated/,/return/s/^    //p" %s; } > %t/m.py; pleat check %t/m.py | grep -o "operators, supported"
# RUN 1: pleat verify %s --func restated --dim n=4 --dim m=5
# RUN 1: pleat verify %s --func restated --dim n=1 --dim m=4
# RUN 1: pleat verify %s --func doubled --dim n=4 --dim m=4
# RUN: pleat plan %s --func both | grep -o "fused: .*"
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def good(x: R.Tensor((3, 5))):
        a = R.exp(x)
        b = R.match_cast(a, R.Tensor((3, 5)))
        c = R.match_cast(b, R.Tensor(ndim=2, dtype="float32"))
        return R.add(c, b)

    @R.function
    def named(x: R.Tensor((3, 5), "float32")):
        k = T.int64()
        a = R.match_cast(R.exp(x), R.Tensor((k, 5), "float32"))
        b = R.ones(R.shape([k, 5]), "float32")
        c = R.match_cast(R.reshape(a, R.shape([k * 5])), R.Tensor((15,), "float32"))
        return (R.add(a, b), c)

    @R.function
    def renamed(x: R.Tensor(("n", 5), "float32")):
        n = T.int64()
        k = T.int64()
        a = R.match_cast(R.exp(x), R.Tensor((k, 5), "float32"))
        b = R.reshape(a, R.shape([k * 5]))
        return R.match_cast(b, R.Tensor((n * 5,), "float32"))

    @R.function
    def extent(x: R.Tensor((3, 5), "float32")):
        a = R.match_cast(x, R.Tensor((3, 4), "float32"))
        return a

    @R.function
    def element_type(x: R.Tensor((3, 5), "float32")):
        a = R.match_cast(x, R.Tensor((3, 5), "float16"))
        return a

    @R.function
    def rank(x: R.Tensor((3, 5), "float32")):
        a = R.match_cast(R.exp(x), R.Tensor((15,), "float32"))
        return a

    @R.function
    def in_tuple(x: R.Tensor((3, 5), "float32")):
        a = R.match_cast((x, x), R.Tuple(R.Tensor((3, 5), "float32"), R.Tensor((3, 4), "float32")))
        return a

    @R.function
    def twice(x: R.Tensor((3, 5), "float32")):
        k = T.int64()
        a = R.match_cast(x, R.Tensor((k, k), "float32"))
        return a

    @R.function
    def sized(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        a = R.match_cast(x, R.Tensor((n, 4), "float32"))
        return R.add(a, a)

    @R.function
    def both(c: R.Tensor((), "bool"), x: R.Tensor((3, 5), "float32")):
        if c:
            a = R.add(x, x)
            y = R.multiply(a, R.const(3.0, "float32"))
        else:
            y = R.divide(x, R.const(2.0, "float32"))
        return y

    @R.function
    def other_shape(c: R.Tensor((), "bool"), x: R.Tensor((3, 5), "float32")):
        if c:
            y = R.add(x, x)
        else:
            y = R.permute_dims(x)
        return y

    @R.function
    def broadcast(c: R.Tensor((), "bool"), x: R.Tensor((3, 5), "float32"), z: R.Tensor((1, 5), "float32")):
        if c:
            y = R.add(x, x)
        else:
            y = R.negative(z)
        return y

    @R.function
    def many(c: R.Tensor((5,), "bool"), x: R.Tensor((3, 5), "float32")):
        if c:
            y = R.add(x, x)
        else:
            y = R.negative(x)
        return y

    @R.function
    def twice_known(x: R.Tensor(ndim=2, dtype="float32"), z: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        a = R.match_cast(x, R.Tensor((n + 1, 2), "float32"))
        return (R.add(a, a), z)

    @R.function
    def no_rank(x: R.Tensor(dtype="float32")):
        n = T.int64()
        a = R.match_cast(x, R.Tensor((n, 2 * n), "float32"))
        return R.add(a, a)

    @R.function
    def no_extents(x: R.Tensor(ndim=2, dtype="float32")):
        n = T.int64()
        m = T.int64()
        a = R.match_cast(x, R.Tensor((n, m), "float32"))
        return R.add(a, a)

    @R.function
    def sizes_hold(x: R.Tensor(("n", 5), "float32")):
        n = T.int64()
        _ = R.assert_op(n % 16 == 0)
        if R.prim_value(n % 3 == 0):
            y = R.add(x, x)
        else:
            y = R.negative(x)
        return y

    @R.function
    def objects(c: R.Tensor((), "bool"), effect: R.Any, x: R.Tensor((3, 5), "float32")):
        if c:
            n = R.prim_value(5)
        else:
            n = R.prim_value(10)
        return (n, R.exp(x), (effect, R.null_value()))

    @R.function
    def restated(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        k = T.int64()
        a = R.match_cast(y, R.Tensor((k,), "float32"))
        b = R.match_cast(R.exp(a), R.Tensor((n,), "float32"))
        return R.add(R.add(x, R.reshape(b, R.shape([1, n]))), b)

    @R.function
    def doubled(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        a = R.match_cast((y, y), R.Tuple(R.Tensor((n * 2,), "float32"), R.Tensor((2 * n,), "float32")))
        return R.add(R.concat([x, x]), R.add(a[0], a[1]))
