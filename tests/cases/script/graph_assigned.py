# RUN: pleat opt %s
# Several names for several values, the sign of a tensor, the type of another value, sizes that tensors
# hide, and devices.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def sizes(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n", "m"), "float32")):
        n, m = T.int64(), T.int64()
        a, b = R.exp(x), R.add(x, y)
        c = -a * b
        return R.reshape(c - -y, R.shape([n * m]))

    @R.function
    def same_type(x: R.Tensor((3, 5), "float16"), y: R.Tensor(ndim=2, dtype="float32")):
        a = R.call_dps_packed("f", (x,), out_sinfo=x.ty)
        b = R.call_packed("g", a, y, sinfo_args=[x.struct_info, y.ty])
        return b

    @R.function
    def hidden(x: R.Tensor(("a", "b"), "float32"), y: R.Tensor(("a", "b"), "float32")) -> R.Tensor(("a", "b"), "float32"):
        a = R.add(x, y)
        b: R.Tensor(("a", "b"), "float32") = R.subtract(a, y)
        return b

    @R.function
    def devices(x: R.Tensor((3, 5), "float32")):
        a = R.hint_on_device(x, tvm.cpu())
        b = R.to_vdevice(a, tvm.ir.VDevice("llvm", 0, "global"))
        return R.hint_on_device(R.exp(b), tvm.device("cuda", 0))
