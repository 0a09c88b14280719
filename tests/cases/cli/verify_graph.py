# RUN: pleat verify %s | grep -c "agrees with the interpreter"
# RUN: pleat check %s
# RUN: pleat opt %s
# A graph function needs no shapes but those of its parameters.
@R.function
def main(x: R.Tensor((2, 3, 7, 5), "float32")):
    a = R.nn.conv2d(x, R.const([[[[1.0]], [[2.0]], [[3.0]]], [[[0.5]], [[0.0]], [[-1.0]]]], "float32"))
    b = R.add(a, R.const(1.5, "float32"))
    return R.nn.relu(b)
