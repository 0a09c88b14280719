# Mistakes that users make in graph functions, one in each file that this file is cut into.
# RUN: grep -n "^@R" %s | cut -d: -f1 | while read n; do { echo "from tvm.script import relax as R"; sed -n "$n,/^$/p" %s; } > %t/one.py; pleat check %t/one.py || true; done
from tvm.script import ir as I, relax as R, tir as T


@R.function
def g1(x: R.Tensor((2, 3), "float32")):
    return R.nn.rellu(x)

@R.function
def g2(x: R.Tensor((2, 3), "float32")):
    return y

@R.function
def g3(x: R.Tensor((2, 3), "float32")):
    return R.matmul(x, x)

@R.function
def g4(x: R.Tensor((2, 3), "float32")):
    return R.reshape(x, (5,))

@R.function
def g5(x: R.Tensor((2, 3), "float32")):
    return R.permute_dims(x, [0, 0])

@R.function
def g6(x: R.Tensor((2, 3), "float32")):
    return R.concat([x, x], axis=5)

@R.function
def g7(x: R.Tensor((2, 3), "float32")):
    return R.add(x)

@R.function
def g8(x: R.Tensor((2, 3), "float32")):
    return R.nn.softmax(x, axes=1)

@R.function
def g9(x: R.Tensor((2, 3), "float32")):
    y = R.add(x, x)

@R.function
def g10(x: R.Tensor((2, 3), "floot32")):
    return x

@R.function
def g11(x: R.Tensor((2, 3), "float32")):
    return R.call_tir(nothing, (x,), out_sinfo=R.Tensor((2, 3), "float32"))

@R.function
def g12(x: R.Tensor((2, 3), "float32")):
    return R.layout_transform(x, index_map=lambda a: [a])

@R.function
def g13(x: R.Tensor((2, 3), "float32")):
    return R.layout_transform(x, index_map=lambda a, b: [a])

@R.function
def g14(x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 4), "float32")):
    return R.nn.conv2d(x, w)

@R.function
def g15(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "int32")):
    return R.add(x, y)
