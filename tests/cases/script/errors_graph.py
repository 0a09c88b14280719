# RUN 1: pleat opt %s
# Mistakes in graph functions.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        B[0] = A[0]

    @R.function
    def main(x: R.Tensor((4,), "float32"), y, z: R.Tensor((-1, "n +"), "float32"),
             w: T.Buffer((4,), "float32"), v: R.Tensor(4, "float32"), u: R.Tensor((1.5,), "int8")):
        with R.dataflow():
            a = R.add(x, q)
            b = R.call_tir(cls.scal, (x,), out_sinfo=R.Tensor((4,), "float32"))
            c = R.call_tir(cls.scale, (x,))
            d = R.relu(x[0])
            e = R.relu(x, alpha=cls.nothing_at_all)
            f, g = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4,), "float32"))
            h = x % x
            i = R.const("weights")
            j = R.const([[1, 2], [3]], "int8")
            k = R.const([1, 2], "handle")
            l = R.call_tir(cls.scale, (x, x), out_sinfo=R.Tensor((4,), "float32"))
            m = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((5,), "float32"))
            n = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4,), "float16"))
            o = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4, 1), "float32"))
            x[0] = R.relu(x)
            for t in range(3):
                pass
            x
            if x:
                p = x
            if x:
                r = x
            else:
                s = x
            R.output(a)
        return

    @R.function
    def nothing(x: R.Tensor((4,), "float32")):
        y = R.relu(x)

    @R.function
    def undefined(x: R.Tensor((4,), "float32")):
        return y


@I.ir_module
class Second:
    pass

@R.function
def computed_in_a_type(x: R.Tensor((3,), "float32"),
                       pair: R.Tuple(R.Tensor((3,), "float32")(value=3), R.Tensor)):
    return x

@R.function
def arguments(x: R.Tensor((3, 4), "float32")):
    y = R.concat((x, x), axis=1, 1)
    z = R.concat((x, x), axis=1, axis=0)
    return x


@R.function
def no_type(x: R.handle((3, 5), "float16"), y: R.Tensor((3, 5), "float16")):
    z: R.Tensro((3, 5), "float16") = R.add(y, y)
    return z
