# RUN: pleat compile %s --cpu avx2 --unchecked -o %t/a.c > %t/log && grep -A1 '// .*<- \|//   ' %t/a.c
# The comments of C name the logical accesses of each statement, all of them.
from tvm.script import tir as T


@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), rows: T.Buffer((4,), "int32"), C: T.Buffer((4, 6), "float32")):
    for i in range(4):
        x: T.float32 = A[i, 5]
        if A[i, 2] > C[i, 1]:
            C[rows[i], 3] = x
        while C[i, 1] < A[i, 2]:
            C[i, 1] = C[i, 1] + A[i, 3]
        T.evaluate(T.call_extern("int32", "use", T.address_of(A[i, 4])))
    for i in range(rows[0]):
        C[i, 2] = A[i, 0] + A[i, 1] * A[3 - i, 2] + A[i, 3] * A[3 - i, 4] + A[i, 4] + A[2, i] * A[1, i] + A[3, i] * C[i, 5] - A[1, 5 - i] - A[2, 5 - i]
