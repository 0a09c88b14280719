# RUN: pleat opt %s
# Calls that are read and printed with their types, and calls among functions of a module.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Programs:
    @T.prim_func(private=True)
    def scaled(x: T.int32, A: T.Buffer((8,), "float32")) -> T.int32:
        A[x] = A[x] * T.float32(2)

    @T.prim_func
    def types(A: T.Buffer((8,), "float32"), args: T.handle):
        T.func_attr({"target": T.target({"kind": "llvm", "keys": ["cpu"], "num-cores": 4}, host="c"),
                     "nested": {"list": [1, 2.5, None], "flag": True, "wide": T.int64(4)}})
        T.evaluate(T.tvm_struct_get(args, 0, 12, dtype="int32") + 1)
        T.evaluate(T.tvm_struct_get(args, 1, 12, "handle"))
        T.tvm_call_packed("test.function", 1, A.data)
        T.call_packed("test.function", [1, 2], None)
        A[1] = T.call_llvm_pure_intrin("float32", "llvm.sqrt", T.uint32(1), A[0])
        A[2] = T.exp(A[1], dtype="float32") + T.call_pure_extern("sinf", A[0], dtype="float32")
        T.call_extern("finish", T.reinterpret(T.uint64(0), dtype="handle"), dtype="")
        A[3] = T.Cast("float32", T.clz(7) + T.popcount(T.int32(7)) + T.shift_left(1, 3, dtype="int32"))
        if T.likely(A[0] < 1, dtype="bool"):
            T.assume(A[0] > T.float32(0))
        T.tvm_storage_sync("shared", dtype="int32")
        cls.scaled(3, A.data)
        T.evaluate(Programs.scaled(4, T.address_of(A[0])) + 1)

    @T.prim_func
    def threads(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32")):
        for i in T.thread_binding(32, thread="threadIdx.x"):
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope",
                        T.reinterpret("handle", T.uint64(0))):
                T.tvm_thread_allreduce(T.uint32(1), A[i], T.bool(True), B.data, i)
            T.attr(T.comm_reducer(lambda i0, v0, i1, v1: (T.if_then_else(v0 < v1, i1, i0), T.max(v0, v1)),
                                  [-1, T.min_value("float32")]), "reduce_scope", 0)
            T.attr(T.iter_var(i, T.Range(0, 32), "ThreadIndex", "threadIdx.x"), "thread_extent", 32)
            A[i] = T.tvm_warp_shuffle_down(T.tvm_warp_activemask(), A[i], 16, 32, 32)
            T.ptx_mma("float32", "m16n8k8", "row", "col", "fp16", "fp16", "fp32", A.data, 0, A.data, 0,
                      B.data, 0, False)
            T.attr(0, "layout", T.index_map(lambda a, b: (a // 4, b, a % 4)))
            T.evaluate(T.atan2(A[0], A[1]) + T.fmod(A[0], T.float32(2)) + T.round(A[3]) + T.exp10(A[0]))
