# RUN: pleat opt %s --pass lower --verify-each
# Storage whose buffer has another shape or fills only a part of it; a load that is left when the
# expression around it folds.
@T.prim_func
def f(A: T.Buffer((3, 5), "int32"), n: T.int32):
    data = T.allocate([3, 4], "int32", "local")
    W = T.decl_buffer((12,), "int32", data=data)
    for i in range(6):
        W[i] = A[0, 1] * 1 + n
    A[1, 1] = W[5]
    part = T.allocate([64], "int32", "global")
    V = T.decl_buffer((2, 3), "int32", data=part)
    U = T.decl_buffer((64,), "int32", data=part)
    U[60] = 7
    V[1, 2] = A[2, 2] + 0
    A[0, 0] = V[1, 2] + U[60]
