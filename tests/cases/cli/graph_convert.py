# RUN: for f in network relay; do pleat opt %s --pass 'ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})' --func $f | sed -n "/def $f(/,/return/p"; done
# RUN: pleat opt %s --pass 'ConvertLayout({"relax.nn.conv2d": ["NCHW2c", "OIHW2o"]})' --func network | sed -n "/def network(/,/return/p"
# RUN: pleat opt %s --pass 'ConvertLayout(desired_layouts={"nn.conv2d": ["NHWC", "default", "NCHW"]})' --func grouped | sed -n "/def grouped(/,/return/p"
# RUN: pleat opt %s --pass 'ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})' --func any_batch | sed -n "/def any_batch(/,/return/p"
# RUN: for f in network relay grouped; do pleat run --policy none %s --func $f --fill random --seed 5 | grep -o "\[.*values\]" | sed -E "s/([0-9]\.[0-9]{2})[0-9]*/\1/g" > %t/before; for d in '["NHWC", "OHWI"]' '["NCHW4c", "OIHW4o"]' '["HWNC", "default", "NHWC"]' '["NWHC2c", "IHWO", "CNHW2w"]'; do pleat opt %s --pass "ConvertLayout({'nn.conv2d': $d})" --func $f -o %t/after.py && pleat run --policy none %t/after.py --func $f --fill random --seed 5 | grep -o "\[.*values\]" | sed -E "s/([0-9]\.[0-9]{2})[0-9]*/\1/g" | cmp - %t/before && pleat verify --policy none %t/after.py --func $f | grep -c "agrees with the interpreter" && sed -n "/def $f(/,/return/p" %t/after.py | grep -c "R.permute_dims\|R.layout_transform"; done; done
# RUN: for f in odd other shared; do pleat run --policy none %s --func $f --fill random --seed 5 | grep -o "\[.*values\]" | sed -E "s/([0-9]\.[0-9]{2})[0-9]*/\1/g" > %t/before; for d in '["NHWC", "OHWI"]' '["NCHW4c", "OIHW4o"]' '["HWNC", "default", "NHWC"]' '["NWHC2c", "IHWO", "CNHW2w"]'; do pleat opt %s --pass "ConvertLayout({'nn.conv2d': $d})" --func $f -o %t/after.py && pleat run --policy none %t/after.py --func $f --fill random --seed 5 | grep -o "\[.*values\]" | sed -E "s/([0-9]\.[0-9]{2})[0-9]*/\1/g" | cmp - %t/before && pleat verify --policy none %t/after.py --func $f | grep -c "agrees with the interpreter" && sed -n "/def $f(/,/return/p" %t/after.py | grep -c "R.permute_dims\|R.layout_transform"; done; done
# RUN: pleat run %s --func altered --fill random --seed 5 | grep -o "\[.*values\]" > %t/before; pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4)]})' --func altered -o %t/after.py; sed -n "/def altered(/,/return/p" %t/after.py; pleat run %t/after.py --func altered --fill random --seed 5 | grep -o "\[.*values\]" | cmp - %t/before
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 2, c % 2), lambda n, c: (n, c), lambda n, c: (n, c)]})' --func altered
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c)]})' --func altered
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": no_such}, {"relax.add": []})' --func altered
# RUN: for m in '[lambda i: (i // 4, i % 4), lambda i: (i // 4, i % 4), lambda i: (i // 4, i % 4)]' '[None, None, None]' '[]'; do p=halves; case "$m" in *lambda*) p=wide;; esac; pleat opt %s --pass "AlterOpImpl({'relax.sum': $p}, {'relax.sum': $m})" --func long | sed -n "/def long(/,/return/p"; done
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.sum": wide}, {"relax.sum": []})' --func long
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks})' --func altered
# RUN: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4)]}, {"relax.add": [[], [], []]}, None)' --func altered | grep -c add_in_blocks
# RUN: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4)]}, {"relax.add": [[1], [2], []]}, {"relax.add": [[], None, [1]]}),LegalizeOps' --func altered -o %t/separated.py; grep "axis_separators" %t/separated.py; pleat opt %t/separated.py --pass RaiseLayoutRewrites --func altered | grep -o 'R.layout_transform.*separators.*'; pleat run %t/separated.py --func altered --fill random --seed 5 | grep -o "\[.*values\]" | cmp - %t/before
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4)]}, op_buffer_input_axis_separators={"relax.add": [[2], [1], [4]]})' --func altered
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4)]}, op_buffer_input_axis_separators={"relax.add": [[2], [1]]})' --func altered
# RUN: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, IndexMap.AXIS_SEPARATOR, c // 4, c % 4), lambda n, c: (n, IndexMap.AXIS_SEPARATOR, c // 4, c % 4), lambda n, c: (n, IndexMap.AXIS_SEPARATOR, c // 4, c % 4)]})' --func altered | grep -o 'R.layout_transform.*separators.*'
# RUN 1: pleat opt %s --pass 'AlterOpImpl({"relax.add": add_in_blocks}, {"relax.add": [lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4), lambda n, c: (n, c // 4, c % 4)]}, [[]])' --func altered
# RUN 1: pleat opt %s --pass 'ConvertLayout({"relax.nn.conv2d": ["NHWQ", "OHWI"]})' --func relay
# RUN 1: pleat opt %s --pass 'ConvertLayout({"relax.nn.conv2d": "NHWC"})' --func relay
# RUN 1: pleat opt %s --pass 'ConvertLayout({"relax.sum": ["NHWC"]})' --func relay
# RUN 1: pleat opt %s --pass 'ConvertLayout' --func relay
# "Relay Example" and "Flowing Layout Rewrite through an Operation at Graph-level" of the proposal
# on layout planning in Relax: the attributes of operators follow from their loops.
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((3, 6), "float32"), B: T.Buffer((3, 6), "float32"), C: T.Buffer((3, 6), "float32")):
        T.func_attr({"operator_name": "relax.add"})
        for i, j in T.grid(3, 6):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vi, vj]

    @T.prim_func
    def add_in_blocks(A: T.Buffer((3, 2, 4), "float32"), B: T.Buffer((3, 2, 4), "float32"), C: T.Buffer((3, 2, 4), "float32")):
        for i, j, k in T.grid(3, 2, 4):
            with T.block("add"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk] = A[vi, vj, vk] + B[vi, vj, vk]

    # TVM's programs have extents of int64.
    @T.prim_func
    def long_add(A: T.Buffer((T.int64(8),), "float32"), B: T.Buffer((T.int64(8),), "float32"), C: T.Buffer((T.int64(8),), "float32")):
        T.func_attr({"operator_name": "relax.sum"})
        for i in range(T.int64(8)):
            with T.block("add"):
                vi = T.axis.spatial(T.int64(8), i)
                C[vi] = A[vi] + B[vi]

    @T.prim_func
    def halves(A: T.Buffer((T.int64(8),), "float32"), B: T.Buffer((T.int64(8),), "float32"), C: T.Buffer((T.int64(8),), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.block("add"):
                vi = T.axis.spatial(T.int64(8), i * T.int64(4) + j)
                C[vi] = A[vi] + B[vi]

    @T.prim_func
    def wide(A: T.Buffer((T.int64(2), T.int64(4)), "float32"), B: T.Buffer((T.int64(2), T.int64(4)), "float32"), C: T.Buffer((T.int64(2), T.int64(4)), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vi, vj]

    @R.function
    def long(x: R.Tensor((8,), "float32"), y: R.Tensor((8,), "float32")):
        return R.call_tir(Module.long_add, (x, y), out_sinfo=R.Tensor((8,), "float32"))

    @R.function
    def relay(x: R.Tensor((2, 8, 14, 14), "float32"), weight: R.Tensor((8, 8, 3, 3), "float32")):
        a = R.nn.conv2d(x, weight, padding=[1, 1, 1, 1])
        return R.sum(a, axis=[2])

    @R.function
    def network(x: R.Tensor((2, 3, 13, 11), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), b: R.Tensor((1, 4, 1, 1), "float32"), w2: R.Tensor((4, 4, 3, 2), "float32")):
        a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
        c = R.nn.relu(R.add(a, b))
        d = R.nn.max_pool2d(c, pool_size=[2, 2], strides=[2, 1])
        e = R.nn.conv2d(d, w2)
        f = R.nn.softmax(R.strided_slice(e, axes=[1, 2], begin=[0, 1], end=[4, 3]), axis=1)
        g = R.concat((f, f), axis=1)
        h = R.nn.pad(g, pad_width=[0, 0, 1, 0, 2, 1, 0, 0])
        out = R.mean(h, axis=[2])
        return out

    # The bias is an operand, the groups divide the channels, and the result stays in its layout.
    @R.function
    def grouped(x: R.Tensor((1, 4, 7, 5), "float32"), w: R.Tensor((8, 2, 3, 3), "float32"), b: R.Tensor((8,), "float32")):
        a = R.nn.conv2d(x, w, b, groups=2, strides=[2, 1], padding=[1, 0, 0, 1])
        return R.nn.relu(a)

    # Channels that no block divides: the operators are calls of programs then.
    @R.function
    def odd(x: R.Tensor((1, 5, 7, 5), "float32"), w: R.Tensor((7, 5, 3, 1), "float32")):
        a = R.nn.conv2d(R.exp(x), w, padding=[1, 1, 0, 1])
        b = R.nn.conv2d(R.nn.relu(a), R.permute_dims(w, [1, 0, 2, 3]))
        return R.multiply(b, b)

    # A transpose and a reshape are rewrites, and the layout goes on behind them.
    @R.function
    def other(x: R.Tensor((2, 4, 6, 5), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
        a = R.nn.conv2d(x, w)
        b = R.permute_dims(a, [0, 2, 3, 1])
        c = R.exp(b)
        d = R.reshape(c, (2, 12, 4))
        return R.sum(d, axis=[-1])

    @R.function
    def shared(x: R.Tensor((1, 4, 6, 5), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
        a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
        b = R.add(a, x)
        c = R.nn.conv2d(b, w, padding=[1, 1, 1, 1])
        return R.add(R.add(c, b), R.nn.relu(a))

    @R.function
    def any_batch(x: R.Tensor(("n", 4, 6, 5), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
        n = T.int64()
        a = R.nn.conv2d(x, w)
        b = R.nn.relu(a)
        c = R.nn.conv2d(b, w)
        return c

    @R.function
    def altered(x: R.Tensor((3, 6), "float32"), y: R.Tensor((3, 6), "float32")):
        a = R.call_tir(Module.add, (R.exp(x), y), out_sinfo=R.Tensor((3, 6), "float32"))
        b = R.call_tir(Module.add, (a, y), out_sinfo=R.Tensor((3, 6), "float32"))
        return b
