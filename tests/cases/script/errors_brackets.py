# RUN 1: pleat opt %s
# A bracket that is never closed does not hide what comes after.
@T.prim_func
def first(A: T.Buffer((4,), "float32")):
    A[0] = T.max(A[1], (A[2] + 1
    A[1] = 2


@T.prim_func
def second(B: T.Buffer((4,), "float32")):
    B[0] = unknown
    B[1] = """ never
closed
