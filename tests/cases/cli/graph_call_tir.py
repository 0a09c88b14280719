# RUN: for f in elementwise broadcast reduction fused rewrites hoisted symbolic tiled opaque together; do pleat verify %s --func $f | grep -c "agrees with the interpreter"; done
# RUN: for f in elementwise broadcast reduction fused rewrites hoisted symbolic tiled opaque together; do pleat plan %s --func $f --keep-layout | grep "^fused"; done
# RUN: for f in hoisted opaque; do pleat compile %s --func $f -o %t/$f.c >%t/log && cc -Wall -Wextra -Werror -c %t/$f.c -o %t/$f.o && echo $f.c; pleat compile %s --func $f -o %t/lib$f.so >%t/log && echo lib$f.so; pleat compile %s --func $f -o %t/$f.pleat >%t/log && pleat run %t/$f.pleat --fill random | grep -c latency; done
# RUN: for f in relu matmul shuffle largest; do pleat verify %s --func $f --seed 3 | grep -c "agrees with the interpreter"; done
# RUN 1: pleat plan %s --func writes
# RUN 1: pleat plan %s --func misfits
# RUN: pleat opt %s > %t/a.py && pleat opt %t/a.py > %t/b.py && cmp %t/a.py %t/b.py && grep -c call_tir %t/b.py
# Calls of tensor programs in graphs, by the sections of the proposal on layout planning in Relax.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    # "Elementwise Operations"
    @T.prim_func
    def relu(A: T.Buffer((2, 3, 5, 7), "float32"), B: T.Buffer((2, 3, 5, 7), "float32")):
        for i0, i1, i2, i3 in T.grid(2, 3, 5, 7):
            with T.block("compute"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                B[v0, v1, v2, v3] = T.max(A[v0, v1, v2, v3], T.float32(0))

    # "Broadcast Operations"
    @T.prim_func
    def add_bias(A: T.Buffer((2, 8, 5, 7), "float32"), bias: T.Buffer((8, 1, 1), "float32"), B: T.Buffer((2, 8, 5, 7), "float32")):
        for i0, i1, i2, i3 in T.grid(2, 8, 5, 7):
            with T.block("T_add"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                B[v0, v1, v2, v3] = A[v0, v1, v2, v3] + bias[v1, 0, 0]

    # "Reduction Operations"
    @T.prim_func
    def total(A: T.Buffer((2, 16, 5, 7), "float32"), B: T.Buffer((2, 16), "float32")):
        for i0, i1, i2, i3 in T.grid(2, 16, 5, 7):
            with T.block("red"):
                v0, v1, k2, k3 = T.axis.remap("SSRR", [i0, i1, i2, i3])
                with T.init():
                    B[v0, v1] = T.float32(0)
                B[v0, v1] = B[v0, v1] + A[v0, v1, k2, k3]

    # "Fused Operations"
    @T.prim_func
    def chain(A: T.Buffer((13, 17), "float32"), B: T.Buffer((13, 17), "float32")):
        scaled = T.alloc_buffer((13, 17))
        for i, j in T.grid(13, 17):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                scaled[vi, vj] = A[vi, vj] * T.float32(0.5)
        for i, j in T.grid(13, 17):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(scaled[vi, vj])

    # "PrimFunc Representation": a rewrite to blocks of 4 channels, and back.
    @T.prim_func
    def to_blocks(A: T.Buffer((1, 8, 5, 3), "float32"), B: T.Buffer((1, 2, 5, 3, 4), "float32")):
        for i0, i1, i2, i3, i4 in T.grid(1, 2, 5, 3, 4):
            with T.block("rewrite"):
                v0, v1, v2, v3, v4 = T.axis.remap("SSSSS", [i0, i1, i2, i3, i4])
                B[v0, v1, v2, v3, v4] = A[v0, v1 * 4 + v4, v2, v3]

    @T.prim_func
    def from_blocks(A: T.Buffer((1, 2, 5, 3, 4), "float32"), B: T.Buffer((1, 8, 5, 3), "float32")):
        for i0, i1, i2, i3, i4 in T.grid(1, 2, 5, 3, 4):
            with T.block("rewrite"):
                v0, v1, v2, v3, v4 = T.axis.remap("SSSSS", [i0, i1, i2, i3, i4])
                B[v0, v1 * 4 + v4, v2, v3] = A[v0, v1, v2, v3, v4]

    # "Hoist Layout Rewrites Pass": both functions after it.
    @T.prim_func
    def layout_rewrite(B: T.Buffer((16, 16), "float32"), B_: T.Buffer((16, 4, 4), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("layout_rewrite"):
                i0, i1 = T.axis.remap("SS", [i, j])
                B_[i1, i0 // 4, i0 % 4] = B[i0, i1]

    @T.prim_func
    def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 4, 4), "float32"), C: T.Buffer((16, 16), "float32")):
        for i0, j, k0, i1, k1 in T.grid(4, 16, 4, 4, 4):
            with T.block("matmul"):
                vi = T.axis.spatial(16, i0 * 4 + i1)
                vj = T.axis.spatial(16, j)
                vk = T.axis.reduce(16, k0 * 4 + k1)
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk // 4, vk % 4]

    @T.prim_func
    def any_matmul(a: T.handle, b: T.handle, c: T.handle):
        m = T.int64()
        n = T.int64()
        k = T.int64()
        A = T.match_buffer(a, (m, k), "float32")
        B = T.match_buffer(b, (k, n), "float32")
        C = T.match_buffer(c, (m, n), "float32")
        for i, j, l in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def in_tiles(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")):
        for io in T.parallel(4):
            for ii in T.vectorized(8):
                with T.block("B"):
                    T.where(io * 8 + ii < 30)
                    v = T.axis.spatial(30, io * 8 + ii)
                    B[29 - v] = A[v] * T.float32(2)

    # Its loops are no stages: it runs as it is.
    @T.prim_func
    def shuffle(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32"), D: T.Buffer((7,), "int32")):
        for i in range(7):
            B[i] = A[6 - i]
            if A[i] > T.float32(0):
                D[i] = 1
            else:
                D[i] = i

    # One block with two results, of which one depends on the other.
    @T.prim_func
    def largest(A: T.Buffer((5, 13), "float32"), at: T.Buffer((5,), "int32"), most: T.Buffer((5,), "float32"), half: T.Buffer((5,), "float32")):
        kept = T.alloc_buffer((5,))
        for i, k in T.grid(5, 13):
            with T.block("largest"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    at[vi] = -1
                    most[vi] = T.float32(-1000)
                at[vi] = T.Select(A[vi, vk] > most[vi], vk, at[vi])
                most[vi] = T.max(most[vi], A[vi, vk])
        for i in range(5):
            with T.block("kept"):
                vi = T.axis.spatial(5, i)
                kept[vi] = most[vi] * T.float32(0.5)
        for i in range(5):
            with T.block("half"):
                vi = T.axis.spatial(5, i)
                half[vi] = kept[4 - vi]

    @T.prim_func
    def in_place(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            A[i] = T.float32(0)
            B[i] = A[i]

    @R.function
    def elementwise(x: R.Tensor((2, 3, 5, 7), "float32")):
        a = R.call_tir(Module.relu, (R.sigmoid(x),), out_sinfo=R.Tensor((2, 3, 5, 7), "float32"))
        return R.exp(a)

    @R.function
    def broadcast(x: R.Tensor((2, 4, 7, 9), "float32"), w: R.Tensor((8, 4, 3, 3), "float32"), b: R.Tensor((8, 1, 1), "float32")):
        a = R.nn.conv2d(x, w)
        return R.call_tir(Module.add_bias, (a, b), out_sinfo=R.Tensor((2, 8, 5, 7), "float32"))

    @R.function
    def reduction(x: R.Tensor((2, 4, 7, 9), "float32"), w: R.Tensor((16, 4, 3, 3), "float32")):
        a = R.nn.conv2d(x, w)
        return R.call_tir(Module.total, (a,), out_sinfo=R.Tensor((2, 16), "float32"))

    @R.function
    def fused(x: R.Tensor((13, 17), "float32")):
        a = R.call_tir(Module.chain, (R.nn.relu(x),), out_sinfo=R.Tensor((13, 17), "float32"))
        return R.nn.softmax(a)

    @R.function
    def rewrites(x: R.Tensor((1, 8, 5, 3), "float32")):
        a = R.call_tir(Module.to_blocks, (x,), out_sinfo=R.Tensor((1, 2, 5, 3, 4), "float32"))
        b = R.call_tir(Module.from_blocks, (a,), out_sinfo=R.Tensor((1, 8, 5, 3), "float32"))
        return R.nn.relu(b)

    @R.function
    def hoisted(x: R.Tensor((16, 16), "float32"), w: R.Tensor((16, 16), "float32")):
        a = R.call_tir(Module.layout_rewrite, (w,), out_sinfo=R.Tensor((16, 4, 4), "float32"))
        return R.call_tir(Module.matmul, (x, a), out_sinfo=R.Tensor((16, 16), "float32"))

    @R.function
    def symbolic(x: R.Tensor((13, 7), "float32"), w: R.Tensor((7, 17), "float32")):
        a = R.call_tir(Module.any_matmul, (x, w), out_sinfo=R.Tensor((13, 17), "float32"))
        b = R.call_tir(Module.any_matmul, (w, R.permute_dims(a)), out_sinfo=R.Tensor((7, 13), "float32"))
        return R.nn.relu(b)

    @R.function
    def tiled(x: R.Tensor((30,), "float32")):
        a = R.call_tir(Module.in_tiles, (x,), out_sinfo=R.Tensor((30,), "float32"))
        return R.nn.relu(a)

    @R.function
    def opaque(x: R.Tensor((7,), "float32")):
        a = R.call_tir(Module.shuffle, (R.nn.relu(x),), out_sinfo=[R.Tensor((7,), "float32"), R.Tensor((7,), "int32")])
        b = R.sigmoid(a[0])
        return (b, a[1])

    @R.function
    def together(x: R.Tensor((5, 13), "float32")):
        a = R.call_tir(Module.largest, (R.sigmoid(x),), out_sinfo=[R.Tensor((5,), "int32"), R.Tensor((5,), "float32"), R.Tensor((5,), "float32")])
        return (a[0], R.exp(a[1]), a[2])

    @R.function
    def writes(x: R.Tensor((7,), "float32")):
        return R.call_tir(Module.in_place, (x,), out_sinfo=R.Tensor((7,), "float32"))

    @R.function
    def misfits(x: R.Tensor((13, 7), "float32"), w: R.Tensor((8, 17), "float32")):
        return R.call_tir(Module.any_matmul, (x, w), out_sinfo=R.Tensor((13, 17), "float32"))
