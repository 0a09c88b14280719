# RUN: pleat opt %s
# RUN: for f in both one; do pleat verify %s --func $f 2>/dev/null | grep -q "agrees with the interpreter" || echo $f differs; done
# Branches that only print, and functions with effects as parameters.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def both(x: R.Tensor((3, 5), "float32"), c: R.Tensor((), "bool")):
        if c:
            R.print(x, format="a")
        else:
            R.print(x, format="b")
        return x

    @R.function(pure=False)
    def one(x: R.Tensor((3, 5), "float32"), c: R.Tensor((), "bool")):
        if c:
            z = R.print(x, format="a")
            w = R.exp(x)
        else:
            w = R.negative(x)
        return w

    @R.function
    def impure(x: R.Tensor((3, 5), "float32"), f: R.Callable((R.Tensor((3, 5), "float32"),), R.Object, purity=T.bool(False)), g: R.Callable((R.Object,), R.Object, False)):
        return x
