# Conditions become conjunctions of disjunctions where each part has a value everywhere: a load that
# may be out of bounds, a call and a division by what may be 0 stay behind what guards them.
# RUN: pleat opt %s --pass "Simplify(convert_boolean_to_and_of_ors=True)"
# RUN: pleat opt %s --func total --pass "Simplify(convert_boolean_to_and_of_ors=True)" --verify-each | grep -c B
from tvm.script import tir as T


@T.prim_func
def total(A: T.Buffer((4,), "bool"), B: T.Buffer((6,), "bool"), i: T.int32, j: T.int32, k: T.int32):
    B[0] = A[0] or (A[1] and A[2])
    B[1] = (A[0] or A[1]) and (A[1] or (A[0] and A[2] and A[3]))
    B[2] = (i == 0 or j == 10 or k == 20) and (j == 10 or k != 30 or i == 0)
    B[3] = k == 20 and ((i == 0 or j == 10) and k != 30)
    B[4] = i == 20 or j == 0 or i != 30
    if i < 3 or (j < 5 and i < 2):
        B[5] = True


@T.prim_func
def guarded(A: T.Buffer((4,), "bool"), B: T.Buffer((3,), "bool"), i: T.int32, n: T.int32):
    B[0] = i > 3 or (i >= 0 and A[i])
    B[1] = n == 0 or (n > 1 and i // n == 2)
    B[2] = A[0] or (A[1] and T.call_extern("bool", "f", i))
