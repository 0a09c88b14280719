# RUN: pleat opt %s --pass LegalizeOps --pass AnnotateTIROpPattern --pass FuseOps --pass FuseTIR --pass DeadCodeElimination
# RUN: pleat verify %s | grep -c "agrees with the interpreter"
# Kernels of elementwise operators become one, which is called in their place.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 5), "float32"), y: R.Tensor((3, 5), "float32")) -> R.Tensor((3, 5), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            R.output(b)
        return b
