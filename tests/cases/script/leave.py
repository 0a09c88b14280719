# RUN: pleat opt %s
# Returns, loops that are left early, allocations and views as statements, sizes in quotes.
from tvm.script import ir as I
from tvm.script import tirx as T

n = TypeVar("n")


@I.ir_module
class Programs:
    @T.prim_func
    def first_negative(A: T.Buffer((17,), "float32")) -> T.int32:
        for i in range(17):
            if A[i] < T.float32(0):
                return i
        return -1

    @T.prim_func
    def sums(A: T.Buffer((17,), "int32"), B: T.Buffer((1,), "int32"), c: T.int32):
        k, m = T.int32(), T.int32()
        for i in range(17):
            if A[i] % 2 == 0:
                continue
            if A[i]:
                B[0] = B[0] + A[i]
            if B[0] > 100:
                T.break_loop()
        while c:
            assert B[0], ("ValueError", ["expected ", "0"])
            B[0] = T.if_then_else(c, 1, B[0])
            break

    @T.prim_func(s_tir=True)
    def storage(A: T.Buffer(("n * 2 + k",), "float32"), B: T.Buffer((n, 4), "float32"), k: T.int64):
        local = T.alloc_local((4,), "float32")
        for i in range(4):
            shared = T.alloc_shared((4, 4))
            flat = shared.view(16)
            local[i] = T.float32(1)
            flat[i] = local[i]
            A[i] = flat[i]
            with T.sblock("copy"):
                C = T.sblock_alloc_buffer((4,))
                C[i] = flat[i]
        low = T.float8_e4m3fn(1.5)
        T.evaluate(T.cast(low, "float32"))

    @T.prim_func
    def launched(A: T.Buffer((32, 128), "float32")):
        bx = T.env_thread("blockIdx.x")
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(bx, 32)
        with T.launch_thread(tx, 128):
            A[bx, tx] = T.float32(0)
        T.attr({"storage": "shared"})
        ty = T.launch_thread("threadIdx.y", 2)
        A[bx, ty] = T.float32(1)
        T.evaluate(T.isnullptr(T.reinterpret(T.handle().ty, T.uint64(0))))

    @T.prim_func
    def sizes(A: T.Buffer(("rows", "columns"), "float32"), B: T.Buffer((rows, columns), "float32")):
        rows, columns = T.int32(), T.int32()
        for i, j in T.grid(rows, columns):
            B[i, j] = A[i, j]
