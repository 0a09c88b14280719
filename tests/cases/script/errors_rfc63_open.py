# RUN 1: pleat opt %s
# RFC 63, "Removing pre-flattened buffer", without the bracket that its text forgets.
from tvm.script import tir as T


@T.prim_func
def fn(X: T.Buffer([2, 3], "float32"):
    X_flattened = T.buffer_decl(X.data, [6], "float32")
    for i in grid(6):
        X_flattened[i] = ....
