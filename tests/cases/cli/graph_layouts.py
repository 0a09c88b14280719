# RUN: for f in conv blocked pool typed; do pleat run %s --func $f --fill random --seed 7 | grep "^most"; done
# RUN: for f in relay_before relay_after; do pleat verify %s --func $f | grep -c "agrees with the interpreter"; pleat plan %s --func $f --cpu avx2 | grep -o "^[0-9]* kernels"; done
# RUN 1: pleat plan %s --func wrong
# RUN 1: pleat plan %s --func odd
# Attributes of layouts: the result is that of the same operator between transposes, so that the
# largest difference is 0. The last two are the proposal's "Relay Example", before and after.
from pleat.script import relax as R, tir as T

@R.function
def conv(x: R.Tensor((2, 9, 7, 4), "float32"), w: R.Tensor((3, 3, 4, 6), "float32")):
    a = R.nn.conv2d(x, w, strides=[2, 1], padding=[1, 0, 1, 0], data_layout="NHWC", kernel_layout="HWIO", out_layout="NCHW")
    b = R.nn.conv2d(R.permute_dims(x, [0, 3, 1, 2]), R.permute_dims(w, [3, 2, 0, 1]), strides=[2, 1], padding=[1, 0, 1, 0])
    most = R.max(R.abs(R.subtract(a, b)))
    return most

@R.function
def blocked(x: R.Tensor((1, 2, 5, 7, 4), "float32"), w: R.Tensor((2, 8, 3, 3, 4), "float32")):
    a = R.nn.conv2d(x, w, data_layout="NCHW4c", kernel_layout="OIHW4o", out_layout="NHWC")
    y = R.layout_transform(x, index_map=lambda n, c, h, w, k: (n, c * 4 + k, h, w))
    v = R.layout_transform(w, index_map=lambda o, i, h, w, k: (o * 4 + k, i, h, w))
    b = R.permute_dims(R.nn.conv2d(y, v), axes=[0, 2, 3, 1])
    most = R.max(R.abs(R.subtract(a, b)))
    return most

@R.function
def pool(x: R.Tensor((2, 9, 7, 5), "float32")):
    a = R.nn.max_pool2d(x, pool_size=[3, 2], strides=[2, 2], layout="NHWC", out_layout="NHWC")
    b = R.nn.max_pool2d(R.permute_dims(x, [0, 3, 1, 2]), pool_size=[3, 2], strides=[2, 2])
    most = R.max(R.abs(R.subtract(a, R.permute_dims(b, [0, 2, 3, 1]))))
    return most

@R.function
def typed(x: R.Tensor((1, 3, 6, 5), "int8"), w: R.Tensor((4, 3, 3, 3), "int8")):
    a = R.nn.conv2d(x, w, out_dtype="int32")
    b = R.nn.conv2d(R.astype(x, "int32"), R.astype(w, R.dtype("int32")))
    most = R.max(R.abs(R.subtract(a, b)))
    return most

@R.function
def relay_before(x: R.Tensor((2, 8, 14, 14), "float32"), weight: R.Tensor((8, 8, 3, 3), "float32")):
    a = R.nn.conv2d(x, weight, padding=[1, 1, 1, 1])
    return R.sum(a, axis=[2])

@R.function
def relay_after(x: R.Tensor((2, 8, 14, 14), "float32"), weight: R.Tensor((8, 8, 3, 3), "float32")):
    a = R.layout_transform(x, index_map=lambda n, c, h, w: (n, h, w, c))
    b = R.layout_transform(weight, index_map=lambda o, i, h, w: (h, w, i, o))
    c = R.nn.conv2d(a, b, padding=[1, 1, 1, 1], data_layout="NHWC", kernel_layout="HWIO")
    d = R.sum(c, axis=[1])
    return R.layout_transform(d, index_map=lambda n, w, c: (n, c, w))

@R.function
def wrong(x: R.Tensor((2, 9, 7, 4), "float32"), w: R.Tensor((3, 3, 4, 6), "float32")):
    return R.nn.conv2d(x, w, data_layout="NHWQ", kernel_layout="HWIO")

@R.function
def odd(x: R.Tensor((1, 4, 7, 4), "float32"), w: R.Tensor((6, 4, 3, 3), "float32")):
    return R.nn.conv2d(x, w, out_layout="NCHW4c")
