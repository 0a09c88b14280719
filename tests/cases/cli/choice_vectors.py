# A kernel whose value is chosen by a residue has vectors over its last loops together where the last
# one alone is shorter than a vector, and each copy computes one of the values.
# RUN: pleat compile %s --cpu avx2 --lowered -o %t/f.py > /dev/null && grep " = " %t/f.py | grep -v decl_buffer
# RUN: pleat verify %s --cpu avx2 > /dev/null
from pleat.script import tir as T

@T.prim_func
def choose(p: T.Buffer((4, 5, 24), "float32"), q: T.Buffer((4, 5, 24), "float32"),
           o: T.Buffer((8, 5, 3, 2, 2, 2), "float32")):
    for y, x, a, b, c, d in T.grid(8, 5, 3, 2, 2, 2):
        with T.block("o"):
            vy, vx, va, vb, vc, vd = T.axis.remap("SSSSSS", [y, x, a, b, c, d])
            o[vy, vx, va, vb, vc, vd] = T.Select(
                vy % 2 == 0,
                p[vy // 2, vx, va * 8 + vb * 4 + vc * 2 + vd] + T.float32(1),
                q[vy // 2, vx, va * 8 + vb * 4 + vc * 2 + vd] * T.float32(2))
