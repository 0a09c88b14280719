# RUN: pleat opt %s
# Graph functions beside the tensor programs they call.
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Net:
    I.module_attrs({"opset": 17})

    @R.function
    def main(x: R.Tensor((1, 3, "h", "w"), "float32"), weight: R.Tensor((16, 3, 3, 3), "float32"),
             flat: R.Tensor(("2 * h", 7), dtype="float16"), any: R.Tensor(dtype="int8")):
        R.func_attr({"num_input": 1})
        h = T.int64()
        cls = Net
        with R.dataflow():
            lv = R.nn.conv2d(x, weight, None, strides=[1, 1], padding=[1, 1, 1, 1])
            lv1: R.Tensor((1, 16, h, 5), "float32") = R.nn.relu(lv)
            a, b = R.split(lv1, axis=1, indices=[8])
            parts: R.Tuple(R.Tensor((1, 4), "float32"), R.Tensor((1, 5), "float32")) = R.split(
                lv1, axis=0, indices=None)
            part: R.Tensor((1, 5), "float32") = parts[1]
            unknown = R.split(part, axis=0)
            whole = R.concat(unknown, axis=1)
            third = R.relu(unknown[2])
            c = R.concat((b, third, R.add(a, R.const(1.5, "float32"))), axis=1, eps=1e-05, mode="same")
            d = R.multiply(c, R.const([[1.0, 2.0, 3.0]], "float32"))
            big = R.matmul(d, R.const("layer1.weight", R.Tensor((64, 1000), "float32")))
            gv = R.call_tir(cls.scale, (big,), out_sinfo=R.Tensor((30, 64), dtype="float32"))
            gv1 = R.call_tir(Net.scale, (gv,), (30, 64), dtype="float32")
            R.output(gv1)
        return (gv1, lv)

    @T.prim_func
    def scale(A: T.Buffer((30, 64), "float32"), B: T.Buffer((30, 64), "float32")):
        for i, j in T.grid(30, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * 2.0
