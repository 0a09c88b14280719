# RUN: pleat plan %s --cpu avx2 --why q=NC
# A part of a tensor is read in place; the layout that is asked about is no part of its name.
from pleat.script import relax as R

@R.function
def main(x: R.Tensor((8, 32), "float32")):
    a = R.exp(x)
    p, q = R.split(a, 2, axis=1)
    y = R.nn.relu(q)
    return y, p
