# RUN: pleat run %s --func scalar --fill random --seed 5 | grep -o "\[.*values\]" > %t/before; for p in 'FlowLayoutRewrites("forward")' 'LegalizeOps,FlowLayoutRewrites("forward")'; do pleat opt %s --pass "$p" -o %t/after.py && pleat run %t/after.py --func scalar --fill random --seed 5 | grep -o "\[.*values\]" | cmp - %t/before; done; sed -n "/def multiply/,\$p" %t/after.py
# The layout of a scalar with an axis of one element: the block gets a variable, and had none.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def scalar(x: R.Tensor((1,), "float32")):
        v = R.sum(x, axis=[0])
        return R.multiply(v, v)
