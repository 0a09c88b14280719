# Copies that are written and read through one index map are memory of an iteration (P), and those of
# which a part that is read is not written are not (Q).
# RUN: pleat opt %s --pass convert_blocks --verify-each
from tvm.script import tir as T


@T.prim_func
def packed(a: T.handle, c: T.handle):
    m, k = T.int32(), T.int32()
    A = T.match_buffer(a, (k, m))
    C = T.match_buffer(c, (k, m))
    P = T.alloc_buffer(((m + 7) // 8, k, 8))
    Q = T.alloc_buffer(((m + 7) // 8, k, 8))
    for jo in range((m + 7) // 8):
        for i, ji in T.grid(k, 8):
            with T.block("fill"):
                u = T.axis.spatial(k, i)
                v = T.axis.spatial(m, jo * 8 + ji)
                T.where(jo * 8 + ji < m)
                P[v // 8, u, v % 8] = A[u, v]
        for i, ji in T.grid(k, 8):
            with T.block("fill_some"):
                u = T.axis.spatial(k, i)
                v = T.axis.spatial(m, jo * 8 + ji)
                T.where(jo * 8 + ji + 1 < m)
                Q[v // 8, u, v % 8] = A[u, v]
        for i, ji in T.grid(k, 8):
            with T.block("use"):
                r = T.axis.spatial(k, i)
                w = T.axis.spatial(m, jo * 8 + ji)
                T.where(jo * 8 + ji < m)
                C[r, w] = P[w // 8, r, w % 8] + Q[w // 8, r, w % 8]
