# RUN: pleat opt %s
# RFC 41, "Guide-level explanation": the complete form, the sugar for trivial bindings, a mixed format.
from tvm.script import tir as T


@T.prim_func
def complete_form(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), C: T.Buffer((512, 512))):
    for i, j, k in T.grid(512, 512, 512):
        with T.block("name"):
            vi = T.axis.spatial((0, 512), i)
            # (0, 512) for the block var iter_dom, can be write as 512 if starts from 0
            vj = T.axis.spatial(512, j)
            # vj = T.axis.S(512, j) <- we can use `S` for spatial.
            vk = T.axis.reduce(512, k)
            # vk = T.axis.R(512, k) <- we can use `R` for reduce.
            T.reads(A[vi, vk], B[vk, vj], C[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def a_sugar_for_trivial_bindings(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), C: T.Buffer((512, 512))):
    for i, j, k in T.grid(512, 512, 512):
        with T.block("name"):
            # SSR means [spatial, spatial, reduce] for three vars
            # Only trivial bindings are allowed here since we need to detect iter_dom from the loops
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def a_mixed_format(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), C: T.Buffer((512, 512))):
    for io, ii, j, k in T.grid(16, 32, 512, 512):
        with T.block("name"):
            vi = T.axis.S(512, io * 32 + ii)
            vj, vk = T.axis.remap("SR", [j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


# "Reference-level explanation", with loops that stay in the domains: the block variables of A are
# vi, vj, vk, those of B are vi, vk, vj.
@T.prim_func
def reference_level(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), C: T.Buffer((512, 512))):
    for i, jo, ji, k in T.grid(512, 32, 16, 512):
        with T.block("A"):
            vi = T.axis.S(512, i)
            vj = T.axis.S(512, jo * 16 + ji)
            vk = T.axis.R(512, k)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, jo, ji, k in T.grid(512, 32, 16, 512):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            vj = T.axis.S(512, jo * 16 + ji)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


# "Future possibilities": the domains are those of the affine bindings.
@T.prim_func
def future_possibilities(A: T.Buffer((512, 512)), B: T.Buffer((512, 512))):
    for io, ii, j in T.grid(16, 32, 512):
        with T.block("name"):
            vi = T.axis.S(io * 32 + ii)
            vj = T.axis.S(511 - j)
            B[vi, vj] = A[vi, vj]


@T.prim_func
def domains_left_out(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n * 5, 13))
    B = T.match_buffer(b, (n * 5, 13))
    for i, j in T.grid(n, 5):
        with T.block("outer"):
            vo = T.axis.S(i)
            vj = T.axis.S(binding=j)
            for k in range(3, 13):
                with T.block("inner"):
                    vi = T.axis.S(vo * 5 + vj)
                    vk = T.axis.S(12 - k)
                    one = T.axis.S(binding=0)
                    B[vi, vk + one] = A[vi, vk]


# Each residue and quotient of values in succession, and values of all points of constant loops.
@T.prim_func
def domains_of_digits(A: T.Buffer((64, 64)), B: T.Buffer((64, 64)), n: T.int32):
    for i, j, k in T.grid(6, 16, n):
        with T.block("name"):
            vi = T.axis.S(j % 8)
            vj = T.axis.S((i * 16 + j + 3) // 5 - 1)
            vk = T.axis.S((k + 4) // 3)
            vl = T.axis.S((j + 32) % 24)
            vm = T.axis.S(T.min(i * 2 // 3, 2) + j)
            vn = T.axis.S((j - 3) % 5 + 2)
            B[vi + vl, vj + vn] = A[vm, 0] + T.Cast("float32", vk)
