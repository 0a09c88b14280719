# Passes keep tensors whose shape is not stated, and what is computed from them, as they are.
# RUN: pleat opt %s --func main --pass Normalize | sed -n "/def main(/,/return/p"
# RUN: pleat opt %s --func main --pass 'ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})' | sed -n "/def main(/,/return/p"
# RUN: pleat opt %s --func main --pass 'DeadCodeElimination,OptimizeLayoutTransform' | grep -c "dead = "; true
# RUN: pleat opt %s --func cast --pass Normalize -o %t/cast.py && sed -n "/def cast(/,/return/p" %t/cast.py && pleat verify %t/cast.py --func cast --dim m=3 --dim n=5 | grep -o "agrees with the interpreter"
# RUN 1: pleat opt %s --func main --pass LegalizeOps
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 9, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
             y: R.Tensor(dtype="float32")):
        with R.dataflow():
            a = R.nn.relu(R.nn.conv2d(x, w))
            b = R.add(y, a)
            c = R.nn.conv2d(y, w)
            d = R.permute_dims(R.permute_dims(y))
            dead = R.add(y, y)
            R.output(b, c, d)
        return (b, c, d)

    @R.function
    def cast(x: R.Tensor(dtype="float32"), w: R.Tensor(("n", 4), "float32")):
        m = T.int64()
        y = R.match_cast(x, R.Tensor((m, 4), "float32"))
        return R.matmul(R.add(y, y), R.permute_dims(w))
