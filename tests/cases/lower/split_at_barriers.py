# Loops over threads are split at barriers: values and private memory that live in several phases get an
# element for each thread, loops and conditions around a barrier move outward. Each program computes what the
# interpreter does, which runs all threads up to a barrier before any goes on.
# RUN: pleat opt %s --pass split_at_barriers
# RUN: pleat opt %s --pass split_at_barriers -o %t/once.py && pleat opt %t/once.py --pass split_at_barriers | diff %t/once.py -
# RUN: for f in tree turned private nested uniform shuffled groups predicated rows; do pleat verify %s --func $f --verify-each; done
# RUN: pleat verify %s --func symbolic --verify-each --dim m=7 --dim n=3
from pleat.script import tir as T


# A tree in a loop over strides; 13 threads.
@T.prim_func
def tree(A: T.Buffer((13,), "int32"), B: T.Buffer((1,), "int32")):
    S = T.decl_buffer((13,), "int32", scope="shared")
    for x in T.thread_binding(13, thread="threadIdx.x"):
        S[x] = A[x]
        T.tvm_storage_sync("shared")
        for k in range(4):
            if x + T.shift_right(8, k) < 13 and x < T.shift_right(8, k):
                S[x] = S[x] + S[x + T.shift_right(8, k)]
            T.tvm_storage_sync("shared")
        if x == 0:
            B[0] = S[0]


# Transposition of tiles of 3 x 5.
@T.prim_func
def turned(A: T.Buffer((9, 10), "float32"), B: T.Buffer((10, 9), "float32")):
    for by in T.thread_binding(3, thread="blockIdx.y"):
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for y in T.thread_binding(3, thread="threadIdx.y"):
                for x in T.thread_binding(5, thread="threadIdx.x"):
                    S = T.decl_buffer((3, 5), scope="shared")
                    S[y, x] = A[by * 3 + y, bx * 5 + x]
                    T.tvm_storage_sync("shared")
                    n: T.int32 = y * 5 + x
                    B[bx * 5 + n // 3, by * 3 + n % 3] = S[n % 3, n // 3]


# An accumulator and a value that live across barriers, and one that does not.
@T.prim_func
def private(A: T.Buffer((6, 7), "float32"), B: T.Buffer((7,), "float32")):
    for x in T.thread_binding(7, thread="threadIdx.x"):
        S = T.decl_buffer((7,), scope="shared")
        R = T.decl_buffer((2,), scope="local")
        R[0] = T.float32(0)
        R[1] = T.float32(1)
        for k in range(6):
            v: T.float32 = A[k, x]
            w: T.float32 = v + T.float32(1)
            S[x] = w
            T.tvm_storage_sync("shared")
            R[k % 2] = R[k % 2] + S[6 - x] * v
            T.tvm_storage_sync("shared")
        B[x] = R[0] - R[1]


# Statements of the outer threads, before and after those of the inner ones.
@T.prim_func
def nested(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
    for y in T.thread_binding(3, thread="threadIdx.y"):
        first: T.int32 = A[y, 0]
        S = T.decl_buffer((3,), "int32", scope="shared")
        S[y] = first
        T.tvm_storage_sync("shared")
        for i in range(2):
            for x in T.thread_binding(4, thread="threadIdx.x"):
                B[y, x] = A[y, x] + S[(y + 1 + i) % 3] + first
                T.tvm_storage_sync("shared")
                if x == 0:
                    S[y] = B[2 - y, 3]
                T.tvm_storage_sync("shared")


# A condition and a while that are the same for all threads.
@T.prim_func
def uniform(A: T.Buffer((8,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        S = T.decl_buffer((8,), "int32", scope="shared")
        step = T.decl_buffer((1,), "int32", scope="local")
        step[0] = 4
        S[x] = A[x]
        T.tvm_storage_sync("shared")
        if N[0] > 0:
            while step[0] > 0:
                if x < step[0]:
                    S[x] = T.max(S[x], S[x + step[0]])
                T.tvm_storage_sync("shared")
                step[0] = step[0] // 2
        else:
            T.tvm_storage_sync("shared")
            B[x] = S[7 - x]
            T.tvm_storage_sync("shared")
        B[x] = S[0]


@T.prim_func
def symbolic(A: T.Buffer(("m", "n"), "float32"), B: T.Buffer((5,), "float32")):
    m, n = T.int32(), T.int32()
    for x in T.thread_binding(5, thread="threadIdx.x"):
        S = T.decl_buffer((5,), scope="shared")
        S[x] = T.float32(0)
        for i in range(m):
            T.tvm_storage_sync("shared")
            v: T.float32 = S[(x + 1) % 5]
            T.tvm_storage_sync("shared")
            S[x] = v + (A[i, x] if x < n else T.float32(0))
        B[x] = S[x]


# Shuffles in 37 threads, whose second warp is not whole.
@T.prim_func
def shuffled(A: T.Buffer((37,), "int32"), B: T.Buffer((4, 37), "int32"), M: T.Buffer((37,), "uint32")):
    for x in T.thread_binding(37, thread="threadIdx.x"):
        mask: T.uint32 = T.tvm_warp_activemask()
        M[x] = mask
        B[0, x] = T.tvm_warp_shuffle(mask, A[x], x * 3, 8, 32)
        B[1, x] = A[x] - T.tvm_warp_shuffle_up(mask, A[x], 3, 16, 32)
        d: T.int32 = T.tvm_warp_shuffle_down(mask, A[x] + 1, x % 5, 32, 32)
        B[2, x] = d + T.tvm_warp_shuffle_xor(mask, T.tvm_warp_shuffle(mask, A[x], 1, 2, 32), 6, 4, 32)
        B[3, x] = d


# A sum of each group of 8 threads; warps go over both axes.
@T.prim_func
def groups(A: T.Buffer((5, 24), "int32"), B: T.Buffer((5, 24), "int32")):
    for y in T.thread_binding(5, thread="threadIdx.y"):
        for x in T.thread_binding(24, thread="threadIdx.x"):
            R = T.decl_buffer((1,), "int32", scope="local")
            R[0] = A[y, x]
            for k in range(3):
                R[0] = R[0] + T.tvm_warp_shuffle_down(T.uint32(255), R[0], T.shift_right(4, k), 8, 32)
            B[y, x] = T.tvm_warp_shuffle(T.uint32(255), R[0], 0, 8, 32)


# The first threads alone exchange values.
@T.prim_func
def predicated(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32")):
    for x in T.thread_binding(40, thread="threadIdx.x"):
        v: T.int32 = A[x]
        if A[x] * 0 + x < 8:
            w: T.int32 = v + T.tvm_warp_shuffle_xor(T.tvm_warp_activemask(), v, 1, 2, 32)
            B[x] = w + T.tvm_warp_shuffle_xor(T.uint32(255), w, 2, 4, 32)
        else:
            B[x] = v


# An attribute and an assertion around barriers.
@T.prim_func
def rows(A: T.Buffer((3, 5), "int32"), B: T.Buffer((3, 5), "int32")):
    for y in T.thread_binding(3, thread="threadIdx.y"):
        for x in T.thread_binding(5, thread="threadIdx.x"):
            R = T.decl_buffer((1,), "int32", scope="local")
            S = T.decl_buffer((3, 5), "int32", scope="shared")
            S[y, x] = A[y, x]
            T.tvm_storage_sync("shared")
            with T.attr(0, "a_hint", x):
                R[0] = S[2 - y, 4 - x]
                T.tvm_storage_sync("shared")
            assert R[0] != 123456789, "values are small"
            B[y, x] = R[0]
