# Loops over threads become functions of their own, whose bodies take the place of the calls again.
# RUN: pleat opt %s --pass SplitHostDevice
# RUN: pleat opt %s --pass SplitHostDevice -o %t/once.py && pleat opt %t/once.py --pass SplitHostDevice | diff %t/once.py -
# RUN: pleat opt %s --pass SplitHostDevice -o %t/split.py && pleat opt %t/split.py --func main --pass InlinePrivateFunctions,Simplify | sed -n "/def main(/,/^$/p"
# RUN: pleat opt %s --func main --pass LowerOpaqueBlock,SplitHostDevice,ThreadSync | grep -c storage_sync
from tvm.script import ir as I, tir as T

@I.ir_module
class M:
    @T.prim_func
    def main(A: T.Buffer(("n", 16), "float32"), B: T.Buffer(("n", 16), "float32"), k: T.int32):
        n = T.int32()
        C = T.decl_buffer((n, 16), "float32")
        A_1 = T.decl_buffer((n * 16,), data=A.data)
        for b in T.thread_binding(n, thread="blockIdx.x"):
            for x in T.thread_binding(16, thread="threadIdx.x"):
                S = T.decl_buffer((16,), scope="shared")
                S[x] = A_1[b * 16 + x]
                T.tvm_storage_sync("shared")
                C[b, x] = S[15 - x] + A[b, x] * T.Cast("float32", k)
        for i in range(n):
            for b in T.thread_binding(3, thread="blockIdx.x"):
                for x in T.thread_binding(16, thread="threadIdx.x"):
                    if b == 0:
                        B[i, x] = C[i, x] + 1.0
