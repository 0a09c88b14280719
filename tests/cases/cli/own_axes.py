# The letters of axes are read off the loops, also those of a user's own convolution of images with
# their channels last; a layout that is asked for keeps the results.
# RUN: pleat inspect %s --cpu baseline | grep -v '^#' | awk '{print $1, $2, $3, $5}'
# RUN: pleat verify %s --json --input-layout x=NCHW --input-layout w=OIHW --desired-layout relu=NCHW4c 2>&1 | grep 'agrees\|caller'
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def conv(X: T.Buffer((1, 9, 11, 3), "float32"), W: T.Buffer((3, 2, 3, 5), "float32"),
             Y: T.Buffer((1, 7, 10, 5), "float32")):
        for n, h, w, o, p, q, c in T.grid(1, 7, 10, 5, 3, 2, 3):
            with T.block("Y"):
                vn, vh, vw, vo, vp, vq, vc = T.axis.remap("SSSSRRR", [n, h, w, o, p, q, c])
                with T.init():
                    Y[vn, vh, vw, vo] = T.float32(0)
                Y[vn, vh, vw, vo] = (Y[vn, vh, vw, vo]
                                     + X[vn, vh + vp, vw + vq, vc] * W[vp, vq, vc, vo])

    @R.function
    def main(x: R.Tensor((1, 9, 11, 3), "float32"), w: R.Tensor((3, 2, 3, 5), "float32"),
             b: R.Tensor((5,), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 7, 10, 5), "float32"))
            s = R.add(y, b)
            z = R.nn.relu(s)
            R.output(z)
        return z
