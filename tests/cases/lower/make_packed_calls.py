# A packed function has other parameters, and calls of it in the module stay as they are. They are
# refused, also where the callee stands behind; calls that became bodies are not.
# RUN 1: pleat opt %s --pass MakePackedAPI
# RUN: pleat opt %s --pass InlinePrivateFunctions,LowerOpaqueBlock,MakePackedAPI | grep "T.float32(2"
# RUN: pleat opt %s --pass MakePackedAPI --func main | grep "Module.twice"
from pleat.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((7,), "float32")):
        T.func_attr({"global_symbol": "main", "target": T.target("llvm")})
        Module.twice(A.data)

    @T.prim_func
    def twice(A_data: T.handle("float32", "global")):
        T.func_attr({"global_symbol": "twice", "target": T.target("llvm")})
        A = T.decl_buffer((7,), "float32", data=A_data)
        for i in range(7):
            A[i] = A[i] * T.float32(2)
