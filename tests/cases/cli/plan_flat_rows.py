# RUN: pleat verify %s | grep -c "agrees with the interpreter"
# RUN: pleat plan %s --cpu avx2 | grep -o "^[0-9]* kernel[^:]*"
# RUN: pleat plan %s --cpu avx2 --schedules | grep "transform_block_layout\|cache_read"
# The view divides the output's only axis. Its kernel has a loop for each digit, and moves tiles.
from pleat.script import relax as R

@R.function
def main(x: R.Tensor((12, 30, 28), "float32")) -> R.Tensor((10080,), "float32"):
    with R.dataflow():
        a = R.permute_dims(x, (2, 0, 1))
        y = R.reshape(a, (10080,))
        R.output(y)
    return y
