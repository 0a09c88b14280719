# RUN: pleat opt %s
# The devices and meshes of a module, which types and operators name.
from pleat.script import ir as I, relax as R


@I.ir_module
class Module:
    I.module_attrs({"version": 3})
    I.module_global_infos({
        "vdevice": [I.vdevice("llvm"), I.vdevice({"kind": "cuda", "arch": "sm_80"}, 1, "global")],
        "mesh": [R.device_mesh((2, 2), I.Range(0, 4))],
    })

    @R.function
    def f(x: R.Tensor((3, 5), "float32", "llvm"), y: R.Tensor(("n",), "float32", "cuda:1")) -> R.Tensor((3, 5), "float32", "llvm:0:global"):
        n = T.int64()
        a: R.Tensor((n,), "float32", vdevice="llvm") = R.to_vdevice(y, "llvm")
        b = R.hint_on_device(x, R.device(1, 0))
        return b
