# RUN: pleat opt %s --pass SplitLayoutRewritePreproc --func main | sed -n "/def main(/,/return/p;/def layout_rewrite(/,/^$/p;/def matmul(/,/^$/p"
# RUN: for f in main both chain kept twice; do pleat opt %s --pass HoistLayoutRewrites,RaiseLayoutRewrites --func $f | sed -n "/def $f(/,/return/p"; done
# RUN: for f in main both chain kept twice sized; do pleat run %s --func $f --fill random --seed 5 | grep -o "\[.*values\]" > %t/before; for p in SplitLayoutRewritePreproc HoistLayoutRewrites HoistLayoutRewrites,RaiseLayoutRewrites,OptimizeLayoutTransform; do pleat opt %s --pass $p --func $f -o %t/after.py && pleat run %t/after.py --func $f --fill random --seed 5 | grep -o "\[.*values\]" | cmp - %t/before && grep -c "R.call_tir" %t/after.py; done; done
# RUN: pleat opt %s > %t/a.py; pleat opt %s --pass HoistLayoutRewrites --func stays > %t/b.py; cmp %t/a.py %t/b.py
# The proposal on layout planning in Relax, "Hoist Layout Rewrites Pass": its figure by the
# annotation, and blocks that are found by analysis.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")) -> None:
        B_ = T.alloc_buffer([16, 4, 4], dtype="float32")
        for i0_o, i1_o in T.grid(16, 16):
            with T.block("layout_rewrite"):
                i0, i1 = T.axis.remap("SS", [i0_o, i1_o])
                # optional attribute annotation to identify layout rewrite blocks
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                B_[i1, i0 // 4, i0 % 4] = B[i0, i1]
        for i0, j, k0, i1, k1 in T.grid(4, 16, 4, 4, 4):
            with T.block("matmul"):
                vi = T.axis.spatial(16, i0 * 4 + i1)
                vj = T.axis.spatial(16, j)
                vk = T.axis.reduce(16, k0 * 4 + k1)
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B_[vj, vk // 4, vk % 4]

    # A pad and a transpose before the computation, and a transpose after it.
    @T.prim_func
    def around(A: T.Buffer((5, 7), "float32"), C: T.Buffer((9, 6), "float32")):
        padded = T.alloc_buffer((6, 9))
        turned = T.alloc_buffer((9, 6))
        result = T.alloc_buffer((6, 9))
        for i, j in T.grid(6, 9):
            with T.block("pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                padded[vi, vj] = T.if_then_else(1 <= vi and 2 <= vj, A[vi - 1, vj - 2], T.float32(0))
        for i, j in T.grid(9, 6):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                turned[vi, vj] = padded[vj, vi]
        for i, j in T.grid(6, 9):
            with T.block("exp"):
                vi, vj = T.axis.remap("SS", [i, j])
                result[vi, vj] = T.exp(turned[vj, vi])
        for i, j in T.grid(9, 6):
            with T.block("turn_back"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = result[vj, vi]

    # The source is read beside its rewrite.
    @T.prim_func
    def twofold(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
        turned = T.alloc_buffer((7, 5))
        for i, j in T.grid(7, 5):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                turned[vi, vj] = A[vj, vi]
        for i, j in T.grid(5, 7):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + turned[vj, vi]

    # No block is hoisted: the first repeats elements, the second computes, and what the third reads
    # is changed after it.
    @T.prim_func
    def fixed(A: T.Buffer((5,), "float32"), B: T.Buffer((5, 3), "float32"), C: T.Buffer((5, 3), "float32")):
        spread = T.alloc_buffer((5, 3))
        scaled = T.alloc_buffer((5, 3))
        for i, j in T.grid(5, 3):
            with T.block("spread"):
                vi, vj = T.axis.remap("SS", [i, j])
                spread[vi, vj] = A[vi]
        for i, j in T.grid(5, 3):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                scaled[vi, vj] = spread[vi, vj] * T.float32(2)
        for i, j in T.grid(5, 3):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = scaled[vi, vj]
        for i, j in T.grid(5, 3):
            with T.block("again"):
                vi, vj = T.axis.remap("SS", [i, j])
                scaled[vi, vj] = spread[vi, vj]
        for i, j in T.grid(5, 3):
            with T.block("last"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = scaled[vi, vj] + T.float32(1)

    @T.prim_func
    def any_matmul(a: T.handle, b: T.handle, c: T.handle):
        m, n, k = T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (m, k), "float32")
        B = T.match_buffer(b, (k, n), "float32")
        C = T.match_buffer(c, (m, n), "float32")
        turned = T.alloc_buffer((n, k))
        for i, j in T.grid(n, k):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                turned[vi, vj] = B[vj, vi]
        for i, j, l in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * turned[vj, vk]

    @R.function
    def main(x: R.Tensor((16, 16), "float32"), w: R.Tensor((16, 16), "float32")) -> R.Tensor((16, 16), "float32"):
        gv0 = R.call_tir(Module.matmul, (x, w), out_sinfo=R.Tensor((16, 16), dtype="float32"))
        return gv0

    @R.function
    def both(x: R.Tensor((5, 7), "float32")):
        gv0 = R.call_tir(Module.around, (x,), out_sinfo=R.Tensor((9, 6), dtype="float32"))
        return R.exp(gv0)

    # The block after one program and the block before the next one cancel.
    @R.function
    def chain(x: R.Tensor((5, 7), "float32"), y: R.Tensor((3, 6), "float32")):
        gv0 = R.call_tir(Module.around, (x,), out_sinfo=R.Tensor((9, 6), dtype="float32"))
        gv1 = R.call_tir(Module.any_matmul, (y, R.permute_dims(gv0)), out_sinfo=R.Tensor((3, 9), dtype="float32"))
        return gv1

    @R.function
    def kept(x: R.Tensor((5, 7), "float32")):
        gv0 = R.call_tir(Module.twofold, (x,), out_sinfo=R.Tensor((5, 7), dtype="float32"))
        return gv0

    # Two calls of a program share what is left of it.
    @R.function
    def twice(x: R.Tensor((5, 7), "float32")):
        gv0 = R.call_tir(Module.twofold, (x,), out_sinfo=R.Tensor((5, 7), dtype="float32"))
        gv1 = R.call_tir(Module.twofold, (gv0,), out_sinfo=R.Tensor((5, 7), dtype="float32"))
        return gv1

    @R.function
    def sized(x: R.Tensor((3, 5), "float32"), w: R.Tensor((5, 7), "float32")):
        gv0 = R.call_tir(Module.any_matmul, (x, w), out_sinfo=R.Tensor((3, 7), dtype="float32"))
        return gv0

    @R.function
    def stays(x: R.Tensor((5,), "float32")):
        gv0 = R.call_tir(Module.fixed, (x,), out_sinfo=[R.Tensor((5, 3), dtype="float32"), R.Tensor((5, 3), dtype="float32")])
        return gv0
