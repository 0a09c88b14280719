# Loops over virtual threads move inward, and memory that differs between threads gets an axis. What
# is the same for all threads is done once. Where the order of the threads may matter they run one
# after the other.
# RUN: pleat opt %s --func f --pass inject_virtual_threads --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --func many --pass inject_virtual_threads --verify-each | sed -n "/def many/,/^$/p"
# RUN: pleat opt %s --func meets --pass inject_virtual_threads --verify-each | sed -n "/def meets/,/^$/p"
# RUN: pleat opt %s --func apart --pass inject_virtual_threads,flatten_buffers --verify-each | sed -n "/def apart/,\$p"
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for t in T.thread_binding(2, thread="vthread"):
        B = T.decl_buffer((8,), "float32", scope="local")
        D = T.decl_buffer((3,), "float32", scope="local")
        for i in range(4):
            D[1] = A[i]
            for k in range(8):
                B[k] = A[t * 8 + k + i * 16] + D[1]
            if i > 1:
                for k in range(8):
                    C[t * 8 + k + i * 16] = B[k] + B[7 - k]


# The number of iterations differs, two kinds of threads are nested, and 17 are not written out.
@T.prim_func
def many(A: T.Buffer((3, 17), "float32"), C: T.Buffer((3, 17), "float32")):
    for y in T.thread_binding(3, thread="vthread.y"):
        for x in T.thread_binding(17, thread="vthread.x"):
            B = T.decl_buffer((1,), "float32", scope="local")
            B[0] = T.float32(0)
            for k in range(x + 1):
                B[0] = B[0] + A[y, k]
            C[y, x] = B[0]


# Threads meet in one element, so that their order matters.
@T.prim_func
def meets(A: T.Buffer((5,), "float32"), C: T.Buffer((2,), "float32")):
    for t in T.thread_binding(5, thread="vthread"):
        C[t % 2] = C[t % 2] * T.float32(2) + A[t]


# Elements 2 * i + t of different threads are apart for all i. n is symbolic.
@T.prim_func
def apart(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 2), "float32")
    C = T.match_buffer(c, (n * 2,), "float32")
    for t in T.thread_binding(2, thread="vthread"):
        for i in range(n):
            C[i * 2 + t] = A[i, 1 - t]
