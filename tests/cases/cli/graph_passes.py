# RUN: pleat opt %s --pass RaiseLayoutRewrites --func main | sed -n "/R.function/,\$p"
# RUN: pleat opt %s --pass RaiseLayoutRewrites,OptimizeLayoutTransform --func main | sed -n "/R.function/,\$p"
# RUN: pleat opt %s --pass OptimizeLayoutTransform --func chains | sed -n "/def chains/,/return/p"
# RUN: pleat opt %s --pass LegalizeOps --func legal | sed -n "/def permute_dims/,\$p"
# RUN: for p in RaiseLayoutRewrites OptimizeLayoutTransform LegalizeOps LegalizeOps,RaiseLayoutRewrites,OptimizeLayoutTransform; do for f in main chains legal; do pleat opt %s --pass $p --func $f -o %t/after.py && pleat verify --policy none %t/after.py --func $f | grep -c "agrees with the interpreter"; done; done
# RUN: for f in main chains legal; do pleat run --policy none %s --func $f --fill random --seed 3 | grep -o "\[.*values\]" > %t/before; pleat opt %s --pass LegalizeOps,RaiseLayoutRewrites,OptimizeLayoutTransform --func $f -o %t/after.py && pleat run --policy none %t/after.py --func $f --fill random --seed 3 | grep -o "\[.*values\]" | cmp - %t/before && grep -c values %t/before; done
# RUN: pleat opt %s --pass FoldConstant --func folded | sed -n "/def folded/,/return/p"; pleat run %s --func folded --fill random --seed 3 | grep values > %t/before; pleat opt %s --pass FoldConstant --func folded -o %t/after.py && pleat run %t/after.py --func folded --fill random --seed 3 | grep values | cmp - %t/before
# RUN: pleat opt %s --pass Normalize --func folded | sed -n "/def folded/,/return/p"
# RUN: pleat opt %s --pass RaiseLayoutRewrites --func blocks | sed -n "/def blocks/,/return/p"; pleat opt %s --pass OptimizeLayoutTransform --func folds | sed -n "/def folds/,/return/p"
# RUN: for f in blocks folds; do pleat run --policy none %s --func $f --fill random --seed 3 | grep -o "\[.*values\]" > %t/before; for p in RaiseLayoutRewrites,OptimizeLayoutTransform OptimizeLayoutTransform 'FlowLayoutRewrites("forward")' FlowLayoutRewrites; do pleat opt %s --pass $p --func $f -o %t/after.py && pleat run --policy none %t/after.py --func $f --fill random --seed 3 | grep -o "\[.*values\]" | cmp - %t/before && grep -c values %t/before; done; done | uniq -c
# RUN 1: pleat opt %s --pass NoSuchPass
# The passes of the proposal on layout planning in Relax, each by itself ("PrimFunc Representation",
# "Compact Layout Representation", "Folding/Fusing Layout Rewrites").
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def layout_transform(arg: T.Buffer((2, 6, 5, 3), "float32"), out: T.Buffer((2, 2, 5, 3, 4), "float32")):
        for i0, i1, i2, i3, i4 in T.grid(2, 2, 5, 3, 4):
            with T.block("T_layout_trans"):
                v0, v1, v2, v3, v4 = T.axis.remap("SSSSS", [i0, i1, i2, i3, i4])
                out[v0, v1, v2, v3, v4] = T.if_then_else(v1 * 4 + v4 < 6, arg[v0, v1 * 4 + v4, v2, v3], T.float32(0))

    @T.prim_func
    def back(arg: T.Buffer((2, 2, 5, 3, 4), "float32"), out: T.Buffer((2, 8, 5, 3), "float32")):
        for i0, i1, i2, i3 in T.grid(2, 8, 5, 3):
            with T.block("rewrite"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                out[v0, v1, v2, v3] = arg[v0, v1 // 4, v2, v3, v1 % 4]

    @T.prim_func
    def part(arg: T.Buffer((2, 3, 4), "float32"), out: T.Buffer((3, 7), "float32")):
        for i0, i1 in T.grid(3, 7):
            with T.block("part"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                out[v0, v1] = arg[v1 // 4, v0, v1 % 4]

    @T.prim_func
    def crop(arg: T.Buffer((2, 8, 5, 3), "float32"), out: T.Buffer((2, 6, 5, 3), "float32")):
        for i0, i1, i2, i3 in T.grid(2, 6, 5, 3):
            with T.block("crop"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                out[v0, v1, v2, v3] = arg[v0, v1, v2, v3]

    @T.prim_func
    def pad(arg: T.Buffer((2, 6, 5, 3), "float32"), out: T.Buffer((2, 6, 7, 3), "float32")):
        for i0, i1, i2, i3 in T.grid(2, 6, 7, 3):
            with T.block("pad"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                out[v0, v1, v2, v3] = T.if_then_else(1 <= v2 and v2 < 6, arg[v0, v1, v2 - 1, v3], T.float32(2))

    @T.prim_func
    def swapped(B: T.Buffer((16, 12), "float32"), out: T.Buffer((12, 4, 4), "float32")):
        for i, j in T.grid(16, 12):
            with T.block("layout_rewrite"):
                i0, i1 = T.axis.remap("SS", [i, j])
                out[i1, i0 // 4, i0 % 4] = B[i0, i1]

    @T.prim_func
    def no_rewrite(B: T.Buffer((12, 4, 4), "float32"), out: T.Buffer((12, 4, 4), "float32")):
        for i, j, k in T.grid(12, 4, 4):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                out[vi, vj, vk] = B[vi, 0, vk]

    # Each block rewrites what the one before it wrote.
    @T.prim_func
    def turned(a: T.Buffer((3, 4), "float32"), o: T.Buffer((12,), "float32")):
        t = T.alloc_buffer((4, 3))
        for i, j in T.grid(4, 3):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = a[vj, vi]
        for i in range(12):
            with T.block("o"):
                vi = T.axis.spatial(12, i)
                o[vi] = t[vi // 3, vi % 3]

    @T.prim_func
    def padded(a: T.Buffer((3, 7), "float32"), o: T.Buffer((2, 3, 4), "float32")):
        t = T.alloc_buffer((3, 8))
        for i, j in T.grid(3, 8):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = T.if_then_else(vj < 7, a[vi, vj], T.float32(2))
        for i, j, k in T.grid(2, 3, 4):
            with T.block("o"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                o[vi, vj, vk] = t[vj, vi * 4 + vk]

    # The second block adds: it is no rewrite.
    @T.prim_func
    def added(a: T.Buffer((3, 4), "float32"), o: T.Buffer((4, 3), "float32")):
        t = T.alloc_buffer((4, 3))
        for i, j in T.grid(4, 3):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = a[vj, vi]
        for i, j in T.grid(4, 3):
            with T.block("o"):
                vi, vj = T.axis.remap("SS", [i, j])
                o[vi, vj] = t[vi, vj] + T.float32(1)

    @R.function
    def blocks(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 7), "float32")):
        a = R.call_tir(Module.turned, (x,), out_sinfo=R.Tensor((12,), "float32"))
        b = R.call_tir(Module.padded, (y,), out_sinfo=R.Tensor((2, 3, 4), "float32"))
        c = R.call_tir(Module.added, (x,), out_sinfo=R.Tensor((4, 3), "float32"))
        d = R.call_tir(Module.part, (R.exp(b),), out_sinfo=R.Tensor((3, 7), "float32"))
        return a, b, c, d

    # "A relax.crop operation can always be folded into a prior relax.pad operation", and a pad into a
    # prior crop whose cropped value it has; both also where a layout_transform pads.
    @R.function
    def folds(x: R.Tensor((4, 5), "float32")):
        a = R.layout_transform(x, index_map=lambda i, j: (i, j // 4, j % 4), pad_value=1)
        a1 = R.layout_transform(a, index_map=lambda i, j, k: (i, j * 4 + k))
        out1 = R.crop(a1, start_indices=[0, 0], slice_sizes=[4, 5])
        b = R.pad(x, pad_width=[1, 2, 1, 3])
        out2 = R.crop(b, start_indices=[0, 1], slice_sizes=[6, 6])
        out3 = R.crop(b, start_indices=[2, 0], slice_sizes=[3, 7])
        out4 = R.crop(b, start_indices=[5, 0], slice_sizes=[2, 9])
        c = R.crop(R.pad(x, pad_width=[0, 0, 0, 3]), start_indices=[0, 0], slice_sizes=[4, 6], cropped_value=0)
        out5 = R.layout_transform(c, index_map=lambda i, j: (i, j // 4, j % 4), pad_value=0)
        d = R.crop(R.pad(x, pad_width=[0, 0, 0, 3], pad_value=2), start_indices=[0, 0], slice_sizes=[4, 7], cropped_value=2)
        out6 = R.layout_transform(d, index_map=lambda i, j: (j // 4, i, j % 4), pad_value=2)
        out7 = R.layout_transform(d, index_map=lambda i, j: (j // 4, i, j % 4), pad_value=1)
        e = R.exp(R.pad(x, pad_width=[0, 0, 0, 3]))
        e1 = R.crop(e, start_indices=[0, 0], slice_sizes=[4, 5], cropped_value=1)
        out8 = R.layout_transform(e1, index_map=lambda i, j: (i, j // 4, j % 4), pad_value=1)
        return (out1, out2, out3, out4, out5, out6, out7, out8)

    @R.function
    def main(x: R.Tensor((2, 6, 5, 3), "float32"), w: R.Tensor((16, 12), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.layout_transform, (x,), out_sinfo=R.Tensor((2, 2, 5, 3, 4), "float32"))
            b = R.call_tir(cls.back, (a,), out_sinfo=R.Tensor((2, 8, 5, 3), "float32"))
            c = R.call_tir(cls.crop, (b,), out_sinfo=R.Tensor((2, 6, 5, 3), "float32"))
            d = R.call_tir(cls.pad, (c,), out_sinfo=R.Tensor((2, 6, 7, 3), "float32"))
            out = R.nn.relu(d)
            e = R.call_tir(cls.swapped, (w,), out_sinfo=R.Tensor((12, 4, 4), "float32"))
            out2 = R.call_tir(cls.no_rewrite, (e,), out_sinfo=R.Tensor((12, 4, 4), "float32"))
            R.output(out, out2)
        return (out, out2)

    @R.function
    def chains(x: R.Tensor((8, 8), "float32"), y: R.Tensor((5, 6), "float32")):
        a = R.layout_transform(x, index_map=lambda i, j: [i, j ^ i])
        b = R.layout_transform(a, index_map=lambda i, j: [i, j ^ i])
        c = R.layout_transform(b, index_map=lambda i, j: [j // 4, i, j % 4])
        d = R.layout_transform(c, index_map=lambda a, b, c: [b, a * 4 + c])
        e = R.layout_transform(d, index_map=lambda i, j: [i + j * 8])
        out1 = R.exp(e)
        f = R.layout_transform(y, index_map=lambda i, j: [i // 4, i % 4, j], pad_value=1)
        g = R.layout_transform(f, index_map=lambda a, b, j: [a, b, j // 4, j % 4], pad_value=1)
        out2 = R.exp(g)
        h = R.pad(R.pad(y, pad_width=[1, 0, 0, 2], pad_value=3), pad_width=[[0, 1], [1, 0]], pad_value=3)
        k = R.crop(R.crop(h, start_indices=[1, 0], slice_sizes=[6, 9]), start_indices=[0, 1], slice_sizes=[5, 6])
        out3 = R.exp(k)
        m = R.crop(y, start_indices=[1, 2], slice_sizes=[3, 4], cropped_value=0)
        n = R.pad(m, pad_width=[1, 1, 2, 0], pad_value=1)
        out4 = R.exp(n)
        p = R.layout_transform(R.permute_dims(y), index_map=lambda i, j: [j, i])
        q = R.reshape(R.permute_dims(x), (4, 2, 8))
        r = R.layout_transform(R.permute_dims(x), index_map=lambda i, j: [j, i // 3, i % 3], pad_value=2)
        out5 = R.exp(p)
        return (out1, out2, out3, out4, out5, q, r)

    @R.function
    def legal(x: R.Tensor((3, 5), "float32"), y: R.Tensor((5, 3), "float32")):
        a = R.permute_dims(x)
        b = R.layout_transform(R.add(a, y), index_map=lambda i, j: [j, i])
        out = R.permute_dims(b)
        return out

    # "Folding layout rewrite into a constant"
    @R.function
    def folded(x: R.Tensor((2, 2, 2), "float32")):
        bias = R.layout_transform(R.const([1, 2, 3, 4], "float32"), index_map=lambda c: (c // 2, c % 2))
        out = R.add(x, R.multiply(bias, R.const(2, "float32")))
        return out
