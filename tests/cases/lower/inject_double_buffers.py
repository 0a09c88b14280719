# A buffer with the attribute double_buffer_scope is filled one iteration ahead and gets an axis of
# two. Where filling reads what the loop writes, or depends on a condition, it stays.
# RUN: pleat opt %s --func f --pass inject_double_buffers --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --func f --pass inject_double_buffers,partition_loops --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --func two --pass inject_double_buffers --verify-each | sed -n "/def two/,/^$/p"
# RUN: pleat opt %s --func f --pass "InjectDoubleBuffer(split_loop=2)" --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --func two --pass "InjectDoubleBuffer(split_loop=2)" --verify-each | sed -n "/def two/,/^$/p"
# RUN: pleat opt %s --func stays --pass inject_double_buffers --verify-each | sed -n "/def stays/,\$p"
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((9, 4), "float32"), C: T.Buffer((9, 4), "float32")):
    for i in range(9):
        B = T.decl_buffer((4,), "float32", scope="shared")
        with T.attr(B.data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[i, j]
        for j in range(4):
            C[i, j] = B[3 - j] + T.float32(1)


# Two buffers of one loop, which begins at 1 and has a symbolic extent.
@T.prim_func
def two(a: T.handle, C: T.Buffer((5, 3), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n, 5, 3), "float32")
    for i in range(1, n):
        B = T.decl_buffer((5, 3), "float32")
        D = T.decl_buffer((1,), "float32", scope="local")
        with T.attr(B.data, "double_buffer_scope", 1):
            for j, k in T.grid(5, 3):
                B[j, k] = A[i, j, k]
        with T.attr(D.data, "double_buffer_scope", 1):
            D[0] = A[i - 1, 2, 1]
        for j, k in T.grid(5, 3):
            C[j, k] = C[j, k] + B[j, k] * D[0]


@T.prim_func
def stays(A: T.Buffer((7, 4), "float32"), C: T.Buffer((7,), "float32")):
    for i in range(7):
        B = T.decl_buffer((4,), "float32")
        with T.attr(B.data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[i, j]
        A[(i + 1) % 7, 0] = B[3]
    for i in range(7):
        D = T.decl_buffer((1,), "float32")
        if i < 5:
            with T.attr(D.data, "double_buffer_scope", 1):
                D[0] = A[i, 2]
            C[i] = D[0]
