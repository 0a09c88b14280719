# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def helper(x: T.float32):
    T.evaluate(x)


@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), args: T.handle):
    T.tvm_struct_get(args, 0, 12)
    T.tvm_storage_sink("shared")
    T.tvm_thread_allreduce(T.uint32(1), A[0])
    T.vscale(4)
    T.call_packed("f", width=3)
    T.evaluate(T.exp(A[0], dtype="float16"))
    T.call_extern("int32")
    T.attr(T.comm_reducer(lambda x: x, [T.float32(0)]), "reduce_scope", 0)
    T.attr(T.target(), "target", 0)
    T.func_attr({"a": {1: 2}})
    helper(1, 2)
    T.call_pure_extern("float32", f, A[0])
