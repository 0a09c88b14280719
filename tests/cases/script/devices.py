# RUN: pleat opt %s
# The numbers of threads, and functions of one kind of device, whose namespaces are open.
from tvm.script import tirx as T


@T.prim_func
def numbers(A: T.Buffer((2,), "float32"), source: T.Buffer((1,), "bfloat16")):
    T.attr({"tirx.device_entry": T.bool(True)})
    bx, by = T.cta_id_in_cluster([2, 3], preferred=[2, 1])
    tx = T.thread_id([32], dtype="uint32")
    warp = T.warp_id()
    if tx == T.uint32(0) and bx == by:
        T.ptx.neg(A[1], A[0], "", "f32", "")
        T.cuda.iket.mark("start")
        token: T.let[T.uint32] = T.cuda.iket.range_start("first")
        T.cuda.iket.range_end(token)
        x: T.let[T.bfloat16] = T.cuda.ldg(source.data, "bfloat16")
        T.nki.load(A.data, x, warp, mode="a", sizes=[1, 7])
        A[0] = T.cuda.fdividef(A[0], A[1])


@T.prim_func
def three(A: T.Buffer((24,), "int32"), n: T.int32):
    x, y, z = T.cta_id([2, 3, n])
    A[x + y] = z


# Calls whose result type is a keyword argument, and of kernels by name.
@T.prim_func
def called(A: T.Buffer((32,), "float32")):
    p: T.handle = T.cuda.func_call("moved", T.address_of(A[0]), 8, source_code="...", return_type=T.handle().ty)
    T.evaluate(T.isnullptr(p))
    T.call_ffi_kernel("main_kernel", A.data, 32, launch_params=["threadIdx.x"], ret_ty="int32")
