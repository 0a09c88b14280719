# A layout by letters for an input that has its channels last already: a warning says what it does.
# RUN: pleat run %s --fill zero --input-layout x=NHWC 2>&1 | grep -A5 warning | grep -v "^plan\|^code\|^channels_last.py *[0-9]"
# RUN: pleat run %s --fill zero --input-layout 'x=n,h,w,c -> n, h, w, c' 2>&1 | grep -c warning || true
# RUN: pleat run %s --fill zero --input-layout w=NHWC 2>&1 | grep -c warning || true
from pleat.script import relax as R


@R.function
def main(x: R.Tensor((1, 6, 5, 3), "float32"), w: R.Tensor((1, 3, 6, 5), "float32")):
    with R.dataflow():
        y = R.exp(x)
        z = R.exp(w)
        R.output(y, z)
    return (y, z)
