# RUN: pleat opt %s --func main --pass RaiseLayoutRewrites | sed -n "/def main(/,/return/p"
# RUN: pleat opt %s --func main --pass 'RaiseLayoutRewrites,FlowLayoutRewrites("backward", value="t2")' | sed -n "/def main(/,/return/p"
# RUN: pleat opt %s --func main --pass 'RaiseLayoutRewrites,FlowLayoutRewrites("backward", value="t2"),OptimizeLayoutTransform' | sed -n "/def main(/,/return/p"
# RUN: pleat opt %s --func main --pass 'RaiseLayoutRewrites,FlowLayoutRewrites("backward", value="t2"),OptimizeLayoutTransform,FoldConstant' | sed -n "/def main(/,/return/p"
# RUN: pleat run %s --func main --fill random --seed 5 | grep -o "\[.*values\]" | sed -E "s/([0-9]\.[0-9]{2})[0-9]*/\1/g" > %t/before; for p in RaiseLayoutRewrites 'RaiseLayoutRewrites,FlowLayoutRewrites("backward", value="t2"),OptimizeLayoutTransform,FoldConstant' 'LegalizeOps,RaiseLayoutRewrites,FlowLayoutRewrites,OptimizeLayoutTransform,FoldConstant'; do pleat opt %s --func main --pass "$p" -o %t/after.py && pleat run %t/after.py --func main --fill random --seed 5 | grep -o "\[.*values\]" | sed -E "s/([0-9]\.[0-9]{2})[0-9]*/\1/g" | cmp - %t/before && pleat verify %t/after.py --func main | grep -c "agrees with the interpreter"; done
# RUN: pleat opt %s --func plain --pass 'ConvertLayout({"nn.conv2d": ["NCHW4c"]}),FoldConstant' | sed -n "/def plain(/,/return/p"
# The whole chain of the proposal on layout planning in Relax: the rewrites around the frozen
# convolutions as programs ("PrimFunc Representation") and as operators ("Compact Layout
# Representation"); the figures of "Example" with "Direction of Flowing Layout Rewrites" F1; then
# "Folding adjacent layout rewrites" and "Folding layout rewrite into a constant". The last command
# begins at "Tune Layout-Critical Operations & Freeze Layouts" with a layout that the user states.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def to_blocks(arg: T.Buffer((1, 8, 6, 6), "float32"), out: T.Buffer((1, 2, 6, 6, 4), "float32")):
        for i0, i1, i2, i3, i4 in T.grid(1, 2, 6, 6, 4):
            with T.block("T_layout_trans"):
                ax0, ax1, ax2, ax3, ax4 = T.axis.remap("SSSSS", [i0, i1, i2, i3, i4])
                out[ax0, ax1, ax2, ax3, ax4] = arg[ax0, ax1 * 4 + ax4, ax2, ax3]

    @T.prim_func
    def from_blocks(arg: T.Buffer((1, 2, 6, 6, 4), "float32"), out: T.Buffer((1, 8, 6, 6), "float32")):
        for i0, i1, i2, i3 in T.grid(1, 8, 6, 6):
            with T.block("T_layout_trans"):
                ax0, ax1, ax2, ax3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                out[ax0, ax1, ax2, ax3] = arg[ax0, ax1 // 4, ax2, ax3, ax1 % 4]

    @R.function
    def main(x: R.Tensor((1, 8, 6, 6), "float32"), f: R.Tensor((8, 8, 3, 3), "float32")):
        tx = R.call_tir(Module.to_blocks, (x,), out_sinfo=R.Tensor((1, 2, 6, 6, 4), "float32"))
        conv = R.nn.conv2d(tx, f, padding=[1, 1, 1, 1], data_layout="NCHW4c")
        t1 = R.call_tir(Module.from_blocks, (conv,), out_sinfo=R.Tensor((1, 8, 6, 6), "float32"))
        added = R.add(t1, R.const([[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]], [[6.0]], [[7.0]], [[8.0]]]], "float32"))
        t2 = R.call_tir(Module.to_blocks, (added,), out_sinfo=R.Tensor((1, 2, 6, 6, 4), "float32"))
        conv2 = R.nn.conv2d(t2, f, padding=[1, 1, 1, 1], data_layout="NCHW4c")
        out = R.call_tir(Module.from_blocks, (conv2,), out_sinfo=R.Tensor((1, 8, 6, 6), "float32"))
        return out

    @R.function
    def plain(x: R.Tensor((1, 8, 6, 6), "float32"), f: R.Tensor((8, 8, 3, 3), "float32")):
        conv = R.nn.conv2d(x, f, padding=[1, 1, 1, 1])
        added = R.add(conv, R.const([[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]], [[6.0]], [[7.0]], [[8.0]]]], "float32"))
        out = R.nn.conv2d(added, f, padding=[1, 1, 1, 1])
        return out
