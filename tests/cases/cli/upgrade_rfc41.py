# RUN: pleat fmt %s --upgrade -o -
# RFC 41, "Motivation": a block of ten variables in one line, and both completions of loops.
from tvm.script import tir
from tvm.script import tir as T


@tir.prim_func
def lines_can_be_very_long(apad: tir.handle, w: tir.handle, c: tir.handle) -> None:
    Apad = tir.match_buffer(apad, (2, 16, 16, 2, 16, 16), "float16")
    W = tir.match_buffer(w, (3, 3, 2, 4, 16, 16), "float16")
    C = tir.match_buffer(c, (2, 14, 14, 4, 16, 16), "float32")
    with tir.block([2, 14, 14, 4, tir.reduce_axis(0, 2), tir.reduce_axis(0, 3),
                    tir.reduce_axis(0, 3), 16, 16, tir.reduce_axis(0, 16)], "Conv") as \
                    [n, h, w, o, ic, kh, kw, nn, oo, ii]:
        with tir.init():
            C[n, h, w, o, nn, oo] = tir.float32(0)
        C[n, h, w, o, nn, oo] = C[n, h, w, o, nn, oo] \
            + tir.cast(Apad[n, h + kh, w + kw, ic, nn, ii], "float32") \
            * tir.cast(W[kh, kw, ic, o, ii, oo], "float32")


@T.prim_func
def auto_map_trivial_values(A: T.Buffer((16, 16)), B: T.Buffer((16, 16))):
    for i, j in T.grid(16, 16):
        with T.block([16, 16]) as [vi, vj]:
            # T.bind(i, vi) <- auto-completion
            # T.bind(j, vj) <- auto-completion
            B[vi, vj] = A[vi, vj]


@T.prim_func
def auto_generate_nested_loops(A: T.Buffer((16, 16)), B: T.Buffer((16, 16))):
    # for i, j in T.grid(16, 16): <- auto-completion
    with T.block([16, 16]) as [vi, vj]:
        # T.bind(i, vi) <- auto-completion
        # T.bind(j, vj) <- auto-completion
        B[vi, vj] = A[vi, vj]
