# RUN 1: pleat check %s
# A graph function with mistakes that only the operators' definitions know.
@R.function
def main(x: R.Tensor((1, 3, 8, 8), "float32"), any: R.Tensor(dtype="float32"), s: R.Shape(["n"])):
    n = T.int64()
    a = R.unknown(x)
    b = R.add(a, x)
    c: R.Tensor((1, 3, 8, 9), "float32") = R.add(x, R.const(1.5, "float32"))
    d = R.multiply(x, R.const("scale", R.Tensor((3, 1, 1), "float32")))
    e = R.add(x, any)
    f = R.nn.conv2d(x, R.const([[[[1.0]], [[2.0]]]], "float32"))
    g = R.strided_slice(x, axes=[2], begin=[n], end=[1], strides=[-1])
    h = R.arange(0, 8, n, "float32")
    return (b, c, d, e, f, g, h)
