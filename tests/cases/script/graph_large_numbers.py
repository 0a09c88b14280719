# RUN: pleat opt %s
# Numbers beyond int32 in types.
from pleat.script import relax as R


@R.function
def main(x: R.Tensor((2147483648, 2), dtype="int8"), y: R.DTensor((2147483648, 16), "float32")):
    lv = R.nn.relu(x)
    return lv
