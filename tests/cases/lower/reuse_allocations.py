# Allocations that are never in use at the same time share the memory of the largest one, also where
# their shapes differ. Loops around them do not matter, loops inside do.
# RUN: pleat opt %s --func chain --pass reuse_allocations --verify-each | sed -n "/def chain/,/^$/p"
# RUN: pleat opt %s --func loops --pass reuse_allocations --verify-each | sed -n "/def loops/,/^$/p"
# RUN: pleat opt %s --func carried --pass reuse_allocations --verify-each | sed -n "/def carried/,/^$/p"
# RUN: pleat opt %s --func together --pass reuse_allocations --verify-each | sed -n "/def together/,/^$/p"
# RUN: pleat opt %s --func threads --pass reuse_allocations --verify-each | sed -n "/def threads/,/^$/p"
# RUN: pleat opt %s --func sizes --pass reuse_allocations --verify-each | sed -n "/def sizes/,/^$/p"
# RUN: pleat opt %s --func in_place --pass reuse_allocations --verify-each | sed -n "/def in_place/,/^$/p"
# RUN: pleat opt %s --func needed --pass reuse_allocations --verify-each | sed -n "/def needed/,/^$/p"
# RUN: pleat opt %s --func moved --pass reuse_allocations --verify-each | sed -n "/def moved/,\$p"
# RUN: pleat opt %s --pass reuse_allocations -o %t/once.py && pleat opt %t/once.py --pass reuse_allocations | diff %t/once.py -
# RUN: pleat opt %s --func chain --pass lower,reuse_allocations --verify-each | sed -n "/def chain/,/^$/p"
from tvm.script import tir as T


# B and D are in use together, A is free when D begins, and B when E begins. F has another type.
@T.prim_func
def chain(X: T.Buffer((5, 7), "float32"), Y: T.Buffer((5, 7), "float32")):
    A = T.decl_buffer((5, 7), "float32")
    B = T.decl_buffer((7, 5), "float32")
    D = T.decl_buffer((35,), "float32")
    E = T.decl_buffer((3, 13), "float32")
    F = T.decl_buffer((2,), "int32")
    for i, j in T.grid(5, 7):
        A[i, j] = X[i, j] + T.float32(1)
    for i, j in T.grid(5, 7):
        B[j, i] = A[i, j] * T.float32(2)
    for i, j in T.grid(5, 7):
        D[i * 7 + j] = B[j, i] - T.float32(3)
    for i, j in T.grid(3, 13):
        if i * 13 + j < 35:
            E[i, j] = D[i * 13 + j]
    F[1] = 3
    for i, j in T.grid(5, 7):
        Y[i, j] = E[(i * 7 + j) // 13, (i * 7 + j) % 13] + T.Cast("float32", F[1])


# Two loops, each with an allocation in each iteration: one moves out of both.
@T.prim_func
def loops(X: T.Buffer((11, 4), "float32"), Y: T.Buffer((11, 4), "float32")):
    for i in range(11):
        A = T.decl_buffer((3,), "float32", scope="local")
        A[0] = X[i, 0]
        X[i, 1] = A[0]
    for i in range(11):
        if i > 3:
            B = T.decl_buffer((1, 4), "float32", scope="local")
            for j in range(4):
                B[0, j] = X[i, j]
            for j in range(4):
                Y[i, j] = B[0, 3 - j]


# A stays in use in the whole loop, because the next iteration reads it.
@T.prim_func
def carried(Y: T.Buffer((9,), "float32")):
    A = T.decl_buffer((1,), "float32")
    A[0] = T.float32(1)
    for i in range(9):
        B = T.decl_buffer((1,), "float32")
        Y[i] = A[0]
        B[0] = Y[i] * T.float32(2)
        A[0] = B[0]


# Iterations that run together share nothing with what is outside.
@T.prim_func
def together(Y: T.Buffer((9,), "float32")):
    A = T.decl_buffer((2,), "float32")
    A[0] = T.float32(1)
    Y[0] = A[0]
    for i in T.parallel(8):
        B = T.decl_buffer((2,), "float32")
        B[0] = T.float32(3)
        Y[i + 1] = B[0]


# Symbolic sizes must be equal, and known where the memory moves.
@T.prim_func
def threads(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    # A thread may write D while another one reads S.
    for x in T.thread_binding(16, thread="threadIdx.x"):
        S = T.decl_buffer((16,), scope="shared")
        D = T.decl_buffer((16,), scope="shared")
        S[x] = A[x]
        T.tvm_storage_sync("shared")
        D[x] = S[15 - x]
        B[x] = D[x]


@T.prim_func
def sizes(y: T.handle):
    n = T.int32()
    Y = T.match_buffer(y, (n,), "float32")
    for k in range(2):
        A = T.decl_buffer((n,), "float32")
        for i in range(n):
            A[i] = T.Cast("float32", i)
        for i in range(n):
            Y[i] = A[n - 1 - i]
    for k in range(1, 3):
        B = T.decl_buffer((n,), "float32")
        D = T.decl_buffer((n * k,), "float32")
        for i in range(n):
            B[i] = Y[i]
        for i in range(n):
            Y[i] = B[n - 1 - i]
        for i in range(n):
            D[i] = Y[i]
        for i in range(n):
            Y[i] = D[n - 1 - i]


# Each of B, C and D is stored over the elements of the one before, of which none is read later.
@T.prim_func
def in_place(X: T.Buffer((6, 7), "float32"), Y: T.Buffer((42,), "float32")):
    B = T.decl_buffer((6, 7), "float32")
    C = T.decl_buffer((6, 7), "float32")
    D = T.decl_buffer((6, 7), "float32")
    for i, j in T.grid(6, 7):
        B[i, j] = X[i, j] + T.float32(1)
    for f in T.parallel(42):
        C[f // 7, f % 7] = B[f // 7, f % 7] * T.float32(2)
    for i in range(6):
        for j in T.vectorized(7):
            if i < 5:
                t: T.float32 = T.exp(C[i, j])
                D[i, j] = t + X[i, 6 - j]
            else:
                D[i, j] = C[i, j]
    for i in range(42):
        Y[i] = D[i // 7, i % 7]


# The old elements are needed: by a later iteration, by another one of an inner loop, and by the
# statement after the store.
@T.prim_func
def needed(X: T.Buffer((7,), "float32"), Y: T.Buffer((3, 7), "float32")):
    B = T.decl_buffer((7,), "float32")
    C = T.decl_buffer((7,), "float32")
    D = T.decl_buffer((7,), "float32")
    E = T.decl_buffer((7,), "float32")
    for i in range(7):
        B[i] = X[i]
    for i in range(7):
        C[i] = B[6 - i]
    for i, k in T.grid(7, 3):
        D[i] = C[i] + X[k]
    for i in range(7):
        E[i] = D[i] * T.float32(2)
        Y[0, i] = D[i]
    for i in range(7):
        Y[1, i] = E[i]


# Memory leaves loops whose iterations run in order, unless they change its size, and goes where
# nothing accesses it.
@T.prim_func
def moved(X: T.Buffer((8, 9), "float32")):
    U = T.decl_buffer((8,), "float32")
    V = T.decl_buffer((4,), "float32", data=U.data)
    for i in T.parallel(8):
        for j in range(9):
            if j > 2:
                A = T.decl_buffer((3,), "float32")
                A[0] = X[i, j]
                X[i, 0] = A[0] + T.float32(1)
    for i in range(1, 8):
        for j in range(9):
            B = T.decl_buffer((i,), "float32")
            B[0] = X[i, j] * T.float32(2)
            X[i, 0] = B[0]
