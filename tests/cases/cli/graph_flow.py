# RUN: for f in elementwise broadcast reduction; do pleat opt %s --pass 'FlowLayoutRewrites("backward")' --func $f | sed -n "/def $f(/,/return/p;/def .*1(/,/^$/p"; done
# RUN: pleat opt %s --pass 'FlowLayoutRewrites(direction="backward")' --func fused | sed -n "/def fused(/,/return/p;/def scale_exp1(/,/^$/p"
# RUN: pleat opt %s --pass 'FlowLayoutRewrites("forward")' --func forward | sed -n "/def forward(/,/return/p"
# RUN: pleat opt %s --pass 'FlowLayoutRewrites("forward"),OptimizeLayoutTransform' --func running | sed -n "/def running(/,/return/p"
# RUN: pleat opt %s --pass 'FlowLayoutRewrites("backward", value="t2"),OptimizeLayoutTransform' --func running | sed -n "/def running(/,/return/p"
# RUN: for f in fused forward running views padded window swizzled shared; do pleat run --policy none %s --func $f --fill random --seed 5 | grep -o "\[.*values\]" > %t/before; for d in backward forward; do pleat opt %s --pass "FlowLayoutRewrites('$d')" --func $f -o %t/after.py && pleat verify --policy none %t/after.py --func $f | grep -c "agrees with the interpreter" && pleat run --policy none %t/after.py --func $f --fill random --seed 5 | grep -o "\[.*values\]" | cmp - %t/before && grep -c "R.call_tir" %t/after.py; done; done
# RUN: pleat opt %s --pass 'FlowLayoutRewrites("backward")' --func padded | sed -n "/def padded(/,/return/p;/def exp(/,/^$/p"
# RUN: for f in views parts; do pleat opt %s --pass 'FlowLayoutRewrites' --func $f | sed -n "/def $f(/,/return/p"; done
# RUN 1: pleat opt %s --pass 'FlowLayoutRewrites("sideways")' --func fused
# RUN 1: pleat opt %s --pass 'FlowLayoutRewrites("backward", value="s2")' --func shared
# RUN 1: pleat opt %s --pass 'FlowLayoutRewrites("forward", value="a")' --func padded
# RUN 1: pleat opt %s --pass 'FlowLayoutRewrites(way="backward")'
# RUN 1: pleat opt %s --pass 'OptimizeLayoutTransform(3)'
# RUN 1: pleat opt %s --pass 'simplify_loops(3)'
# RUN 2: pleat opt %s --pass 'FlowLayoutRewrites("backward"'
# The proposal on layout planning in Relax, "Flowing Layout Rewrite through an Operation at
# TIR-level": each figure by itself, and the graph of its section "Example".
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    # "Elementwise Operations."
    @T.prim_func
    def relu(input: T.Buffer((32, 3, 224, 224), "float32"), output: T.Buffer((32, 3, 224, 224), "float32")):
        for i0, i1, i2, i3 in T.grid(32, 3, 224, 224):
            with T.block("compute"):
                i0_1, i1_1, i2_1, i3_1 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(input[i0_1, i1_1, i2_1, i3_1])
                T.writes(output[i0_1, i1_1, i2_1, i3_1])
                output[i0_1, i1_1, i2_1, i3_1] = T.max(input[i0_1, i1_1, i2_1, i3_1], T.float32(0))

    # "Broadcast Operations."
    @T.prim_func
    def add(input: T.Buffer((32, 256, 213, 213), "float32"), bias: T.Buffer((256, 1, 1), "float32"), output: T.Buffer((32, 256, 213, 213), "float32")):
        for i0, i1, i2, i3 in T.grid(32, 256, 213, 213):
            with T.block("T_add"):
                ax0, ax1, ax2, ax3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(input[ax0, ax1, ax2, ax3], bias[ax1, 0, 0])
                T.writes(output[ax0, ax1, ax2, ax3])
                output[ax0, ax1, ax2, ax3] = input[ax0, ax1, ax2, ax3] + bias[ax1, 0, 0]

    # "Reduction Operations."
    @T.prim_func
    def sum(input: T.Buffer((32, 256, 213, 213), "float32"), output: T.Buffer((32, 256), "float32")):
        for i0, i1, i2, i3 in T.grid(32, 256, 213, 213):
            with T.block("rxplaceholder_red"):
                ax0, ax1, k2, k3 = T.axis.remap("SSRR", [i0, i1, i2, i3])
                T.reads(input[ax0, ax1, k2, k3])
                T.writes(output[ax0, ax1])
                with T.init():
                    output[ax0, ax1] = T.float32(0)
                output[ax0, ax1] = output[ax0, ax1] + input[ax0, ax1, k2, k3]

    # "Fused Operations.": a series of blocks.
    @T.prim_func
    def scale_exp(A: T.Buffer((2, 8, 5), "float32"), s: T.Buffer((8,), "float32"), B: T.Buffer((2, 8, 5), "float32")):
        scaled = T.alloc_buffer((2, 8, 5))
        for i, j, k in T.grid(2, 8, 5):
            with T.block("scaled"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                scaled[vi, vj, vk] = A[vi, vj, vk] * s[vj]
        for i, j, k in T.grid(2, 8, 5):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = T.exp(scaled[vi, vj, vk])

    @R.function
    def elementwise(x: R.Tensor((32, 3, 224, 224), "float32")):
        a = R.call_tir(Module.relu, (x,), out_sinfo=R.Tensor((32, 3, 224, 224), "float32"))
        b = R.layout_transform(a, index_map=lambda N, C, H, W: (N, C // 4, H, W, C % 4))
        return b

    @R.function
    def broadcast(x: R.Tensor((32, 256, 213, 213), "float32"), bias: R.Tensor((256, 1, 1), "float32")):
        a = R.call_tir(Module.add, (x, bias), out_sinfo=R.Tensor((32, 256, 213, 213), "float32"))
        b = R.layout_transform(a, index_map=lambda N, C, H, W: (N, C // 4, H, W, C % 4))
        return b

    @R.function
    def reduction(x: R.Tensor((32, 256, 213, 213), "float32")):
        a = R.call_tir(Module.sum, (x,), out_sinfo=R.Tensor((32, 256), "float32"))
        b = R.layout_transform(a, index_map=lambda N, C: (N, C // 4, C % 4))
        return b

    @R.function
    def fused(x: R.Tensor((2, 8, 5), "float32"), s: R.Tensor((8,), "float32")):
        a = R.call_tir(Module.scale_exp, (x, s), out_sinfo=R.Tensor((2, 8, 5), "float32"))
        b = R.layout_transform(a, index_map=lambda n, c, w: (n, c // 4, w, c % 4))
        return b

    @R.function
    def forward(x: R.Tensor((2, 5, 8), "float32"), s: R.Tensor((8,), "float32")):
        a = R.permute_dims(x, [0, 2, 1])
        b = R.call_tir(Module.scale_exp, (a, s), out_sinfo=R.Tensor((2, 8, 5), "float32"))
        c = R.nn.softmax(b, axis=1)
        d = R.sum(c, axis=[1], keepdims=True)
        e = R.add(d, b)
        return e

    # "Example": conv-->add-->conv, whose convolutions are frozen to NCHWc.
    @R.function
    def running(x: R.Tensor((1, 8, 6, 6), "float32"), f: R.Tensor((8, 8, 3, 3), "float32"), bias: R.Tensor((1, 8, 1, 1), "float32")):
        tx = R.layout_transform(x, index_map=lambda n, c, h, w: (n, c // 4, h, w, c % 4))
        conv = R.nn.conv2d(tx, f, padding=[1, 1, 1, 1], data_layout="NCHW4c")
        t1 = R.layout_transform(conv, index_map=lambda n, c, h, w, k: (n, c * 4 + k, h, w))
        added = R.add(t1, bias)
        t2 = R.layout_transform(added, index_map=lambda n, c, h, w: (n, c // 4, h, w, c % 4))
        conv2 = R.nn.conv2d(t2, f, padding=[1, 1, 1, 1], data_layout="NCHW4c")
        out = R.layout_transform(conv2, index_map=lambda n, c, h, w, k: (n, c * 4 + k, h, w))
        return out

    # A transpose, a reshape, a slice and a concatenation are passed like any operator.
    @R.function
    def views(x: R.Tensor((3, 8, 5), "float32"), y: R.Tensor((5, 4, 3), "float32")):
        a = R.concat([R.permute_dims(R.exp(x), [2, 1, 0]), y], axis=1)
        b = R.strided_slice(a, axes=[2], begin=[1], end=[3])
        c = R.exp(b)
        d = R.layout_transform(c, index_map=lambda i, j, k: (j // 4, k, i, j % 4))
        return d

    # Padding: 6 channels in blocks of 4 have 2 that hold the pad's value, on the way back too.
    @R.function
    def padded(x: R.Tensor((2, 6, 5), "float32")):
        a = R.layout_transform(R.exp(x), index_map=lambda n, c, w: (n, c // 4, w, c % 4), pad_value=7)
        b = R.exp(a)
        return b

    # A window moves along h and w: the layout that cuts neither follows.
    @R.function
    def window(x: R.Tensor((1, 4, 7, 9), "float32")):
        a = R.nn.max_pool2d(x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 0])
        b = R.layout_transform(a, index_map=lambda n, c, h, w: (w, n, h, c))
        return b

    @R.function
    def swizzled(x: R.Tensor((8, 4), "float32"), y: R.Tensor((4, 8), "float32")):
        a = R.add(R.exp(x), R.permute_dims(y))
        b = R.layout_transform(a, index_map=lambda i, j: (i, j ^ (i % 4)))
        return b

    @R.function
    def shared(x: R.Tensor((3, 4), "float32")):
        s1 = R.exp(x)
        s2 = R.permute_dims(s1)
        s3 = R.add(s1, s1)
        return s2, s3

    @R.function
    def symbolic(x: R.Tensor(("n", 8, 5), "float32"), s: R.Tensor((1, 8, 1), "float32")):
        n = T.int64()
        a = R.multiply(R.exp(x), s)
        b = R.layout_transform(a, index_map=lambda n, c, w: (n, c // 4, w, c % 4))
        return b

    # No operator gives the parts back from [i0, i2*5 + i3]: its result's extents would not be known.
    @R.function
    def parts(x: R.Tensor((6, 1, "n", 5), "float32")):
        n = T.int64()
        s = R.split(x, 3, axis=0)
        a = R.add(s[0], R.multiply(s[1], s[2]))
        b = R.reshape(a, R.shape([2, n * 5]))
        return b
