# TVM's hint asks for cuts of a loop that would keep its conditions: that of a long body with few
# conditions, and an unrolled one. The attribute of a loop says the same as its annotation, and no
# hint is left, also of a loop without conditions, but where the variable of its attribute is used. A hint of
# 0 asks for nothing, and no loop is cut for T.ignore_loop_partition, of which the condition stays.
# RUN: pleat opt %s --pass LoopPartition --verify-each
# RUN: pleat opt %s --pass LoopPartition -o %t/once.py && pleat opt %t/once.py --pass LoopPartition | grep -c hint || true
from tvm.script import tir as T


@T.prim_func
def long_body(A: T.Buffer((7,), "float32"), B: T.Buffer((8, 37), "float32")):
    for i in T.serial(8, annotations={"pragma_loop_partition_hint": 1}):
        p: T.float32 = T.if_then_else(i >= 1, A[i - 1], T.float32(0))
        for r in T.unroll(37):
            B[i, r] = p + T.float32(1)


@T.prim_func
def unasked(A: T.Buffer((7,), "float32"), B: T.Buffer((8, 37), "float32")):
    for i in T.serial(8, annotations={"pragma_loop_partition_hint": 0}):
        p: T.float32 = T.if_then_else(i >= 1, A[i - 1], T.float32(0))
        for r in T.unroll(37):
            B[i, r] = p + T.float32(1)


@T.prim_func
def unrolled(A: T.Buffer((7,), "float32"), B: T.Buffer((11,), "float32")):
    for i in T.unroll(11, annotations={"pragma_loop_partition_hint": True}):
        B[i] = T.if_then_else(i >= 2 and i < 9, A[i - 2], T.float32(0))


@T.prim_func
def symbolic(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n * 4,), "float32")
    B = T.match_buffer(b, (n * 4,), "float32")
    i = T.int32()
    with T.attr(T.iter_var(i, None, "DataPar", ""), "pragma_loop_partition_hint", 1):
        for i in range(n):
            for j in range(7):
                if i * 4 + j < n * 4 - 1:
                    B[i * 4 + j] = A[i * 4 + j]


@T.prim_func
def no_conditions(B: T.Buffer((5,), "float32")):
    for i in T.serial(5, annotations={"pragma_loop_partition_hint": 1}):
        B[i] = T.float32(0)


@T.prim_func
def of_another(A: T.Buffer((8,), "float32"), n: T.int32):
    i = T.int32()
    with T.attr(T.iter_var(i, None, "DataPar", ""), "pragma_loop_partition_hint", 1):
        for j in range(n):
            if i + j < 8:
                A[0] = A[0] + T.float32(1)


@T.prim_func
def ignored(A: T.Buffer((12,), "float32"), B: T.Buffer((9,), "float32")):
    for i in T.serial(12, annotations={"pragma_loop_partition_hint": 1}):
        if T.ignore_loop_partition(i < 7):
            A[i] = T.float32(1)
        if i >= 3:
            B[i - 3] = A[i - 3]


@T.prim_func
def no_middle(a: T.Buffer((5, 3), "float32"), b: T.Buffer((5, 3), "float32")):
    for h in T.serial(5):  # all iterations of w are before a middle that is empty
        for w in T.serial(3, annotations={"pragma_loop_partition_hint": 1}):
            for c in range(3):
                if (h * 3 + w) * 3 + c <= 0:
                    a[h, w] = a[h, w] + b[h, c]
                b[h, w] = b[h, w] + T.float32(1)
