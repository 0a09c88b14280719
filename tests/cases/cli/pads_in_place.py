# RUN: pleat plan %s --func alone --cpu avx2 --fusion
# RUN: pleat verify %s --func alone --cpu avx2
# RUN: pleat verify %s --func several --cpu avx2 | sed 's/: [0-9]* tensors of .*, at/: all, at/'
# RUN: pleat plan %s --func pooled --cpu avx2 --fusion; for k in 3 4; do pleat plan %s --func pooled --cpu avx2 --schedules --kernel $k | grep "^# kernel\|not vectorised\|predicate_reduction\|sch.vectorize"; done; pleat verify %s --func pooled --cpu avx2
# The padding of a convolution has a value that products cannot skip: the convolution before it writes
# the inside of the padded tensor in place, and each side is filled by a kernel of its own.
from pleat.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def alone(x: R.Tensor((1, 3, 11, 13), "float32"), v: R.Tensor((8, 3, 1, 1), "float32"),
              w: R.Tensor((16, 8, 3, 3), "float32")):
        a = R.nn.relu(R.nn.conv2d(x, v))
        p = R.nn.pad(a, pad_width=[0, 0, 0, 0, 1, 2, 0, 1], pad_value=1.5)
        return R.nn.conv2d(p, w)

    # Pools take the value in their windows, and vectors compute it there.
    @R.function
    def pooled(x: R.Tensor((1, 3, 11, 13), "float32"), v: R.Tensor((11, 3, 1, 1), "float32")):
        a = R.nn.relu(R.nn.conv2d(x, v))
        p = R.nn.pad(a, pad_width=[0, 0, 0, 0, 1, 2, 0, 1], pad_value=1.5)
        q = R.nn.pad(a, pad_width=[0, 0, 0, 0, 1, 0, 1, 1])
        return (R.nn.avg_pool2d(p, pool_size=[3, 3], strides=[2, 1]), R.nn.max_pool2d(q, pool_size=[3, 2]))

    @R.function
    def several(x: R.Tensor((2, 3, 11, 13), "float32"), v: R.Tensor((8, 3, 1, 1), "float32"),
                w: R.Tensor((16, 8, 3, 3), "float32")):
        a = R.nn.conv2d(x, v)
        p = R.nn.pad(a, pad_width=[0, 1, 0, 0, 1, 2, 0, 1], pad_value=-0.5)
        q = R.nn.pad(R.nn.relu(p), pad_width=[0, 0, 0, 0, 2, 0, -1, 1], pad_value=2)
        c = R.concat((p, R.nn.pad(R.sigmoid(a), pad_width=[1, 0, 0, 0, 0, 3, 1, 0], pad_value=3)), axis=1)
        return (R.nn.conv2d(q, w), R.nn.avg_pool2d(c, pool_size=[3, 3]), R.sum(a, axis=[1]))
