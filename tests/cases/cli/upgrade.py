# RUN: pleat fmt %s -o -
# RUN: pleat fmt %s --upgrade -o -
# RUN: pleat fmt %s --upgrade --newer-names -o - | pleat opt - --newer-names
import tvm
from tvm.script import tir   # the dialect
other = [ i for i in range(3) ]

@tvm.script.tir
def matmul(a: ty.handle, b: ty.handle,c: ty.handle) -> None:
    A = tir.match_buffer(a, [5, 7])
    B = tir.match_buffer(b, [7, 3]); C = tir.match_buffer(c, (5,3))
    i = 0
    # TVM adds the loops.
    with tir.block([5, 3, tir.reduce_axis(0, 7)], "C") as [vi, vj, vk]:
      with tir.init():
          C[vi,vj] = tir.float32(0)   # zero


      C[vi, vj] = C[vi, vj] \
            + A[vi, vk]*B[vk, vj] + tir.cast(i, 'float32')

@tir.prim_func
def convolution(Apad: tir.Buffer[(2, 5, 5, 2, 3,3), "float16"], W: tir.Buffer[(3, 3, 2, 4, 3, 3), 'float16'], C: tir.Buffer[(2, 3, 3, 4, 3, 3), "float32"]):
    for n_0, h_0, w_0, o_0, ic_0, kh_0, kw_0, nn_0, oo_0, ii_0 in tir.grid(2, 3, 3, 4, 2, 3, 3, 3, 3, 3):
      with tir.block([2, 3, 3, 4, tir.reduce_axis(0, 2), tir.reduce_axis(0, 3),
           tir.reduce_axis(0, 3), 3, 3, tir.reduce_axis(0, 3)], "Conv") as \
           [n, h, w, o, ic, kh, kw, nn, oo, ii]:
        with tir.init():
            C[n, h, w, o, nn, oo] = tir.float32(0)
        C[n, h, w, o, nn, oo] = C[n, h, w, o, nn, oo] \
            + tir.cast(Apad[n, h + kh, w + kw, ic, nn, ii], "float32") \
            * tir.cast(W[kh, kw, ic, o, ii, oo], "float32")

@tir.prim_func
def bound(A: tir.Buffer[(64,1), "float32"], D: tir.Buffer[(8,), "float32"]):
    B = tir.buffer_decl([64, 1], "float32", data=A.data)
    for i in range(0, 4):
        for j in tir.serial(0, 16):
            for k in tir.serial(1):
                with tir.block([64, (0, 1)], "x") as [vi, vj]:
                    # The arguments stand in either order.
                    tir.bind((i*16)+j, vi)
                    tir.bind(vj, k)  # the second
                    tir.where(i*16+j <62 and True)
                    A[vi,vj] = B[ vi , vj ]+-1.0
    with tir.block([tir.range(2, 8)], "y") as [vi]:
        D[ vi ] = tir.max( - D[vi],2.0 )
    with tir.block(name="z"):
        D[0:2 ] = D[ 2:4]

def untouched( x,y ): return  x
