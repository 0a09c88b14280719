# RUN 1: pleat opt %s
# Mistakes in constants.
from pleat.script import relax as R


@R.function
def main(x: R.Tensor((3,), "int8")):
    a = R.const(300, "int8")
    b = R.const([[1, 2], [-3, 4]], "uint8")
    c = R.const([1, 5000000000])
    d = R.const([1, 1.5], "int8")
    e = R.const([1, x])
    f = R.const(2, "bool")
    return x
