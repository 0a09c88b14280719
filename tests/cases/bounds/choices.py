# An access out of bounds in a value that T.Select does not choose: the message says what to write, and the pass does.
# RUN 1: pleat run %s --fill zero
# RUN: pleat opt %s --pass RewriteUnsafeSelect -o %t/guarded.py > /dev/null; pleat run %t/guarded.py --fill zero | grep "^B"
from tvm.script import tir as T


@T.prim_func
def shifted(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(9):
        B[i] = T.Select(i > 0, A[i - 1], T.float32(1))
