# RUN: pleat plan %s | grep -o "^[0-9]* kernels"
# RUN: pleat plan %s --why d | head -2
# RUN: pleat plan %s --why a
# The group writes its rows in the order of the last view, so that no tensor has its own order.
from pleat.script import relax as R

@R.function
def main(x: R.Tensor((6, 8, 16000), "float32"), w: R.Tensor((16000, 64), "float32")) -> R.Tensor((4, 6, 2, 64), "float32"):
    with R.dataflow():
        a = R.nn.softmax(x, axis=-1)
        b = R.reshape(a, (6, 4, 2, 16000))
        c = R.permute_dims(b, (1, 0, 2, 3))
        d = R.reshape(c, (24, 2, 16000))
        y = R.matmul(d, w)
        R.output(y)
    return y
