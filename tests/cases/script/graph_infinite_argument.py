# RUN: pleat opt %s
# A number without a finite value has no literal: it is written with its type, and read back as one.
from pleat.script import relax as R


@R.function
def main(x: R.Tensor((3, 2), "float32"), y: R.Prim((1e999, 16), "float32")):
    lv = R.nn.relu(x)
    return lv


# An expression without variables is no text, in which a string would end.
@R.function
def within(y: R.Prim((1e999 % 16), "float32")):
    return y
