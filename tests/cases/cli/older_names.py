# RUN: pleat opt %s
# RUN: pleat verify %s --func indexed
# RUN: pleat fmt %s --upgrade --newer-names -o - | grep -e "^def pointers" -e "^    q:" -e "^    n ="
# Forms of classic TVM: the name of an allocation with indices (0.9), T.Ptr[...], T.let of three
# operands, sizes that say so, operations by their nodes, values that are returned without a type.
import tvm
from tvm.script import tir as T


@T.prim_func
def indexed(A: T.Buffer[(8, 3), "float32"], C: T.Buffer[(8,), "float32"]):
    B = T.allocate([3, 1], "float32", "local")
    K = T.allocate_const([1.5, 2.5, 3.5], "float32", [3])
    for i in range(8):
        for j in range(3):
            B[j, 0] = A[i, j] * K[j]
        with T.allocate([1], "float32x2", "local") as V:
            V[0] = T.broadcast(B[0, 0], 2)
            C[i] = B[1, 0] + B[2, 0]


@T.prim_func
def pointers(p: T.Ptr[T.uint8], A: T.Buffer((4,), "uint8")):
    B = T.decl_buffer((4,), "uint8", data=p)
    q: T.Ptr[T.int32] = T.call_extern("handle", "f", 1)
    C = T.decl_buffer((4,), "int32", data=q)
    D = T.allocate([4], "uint8", "global")
    T.evaluate(T.call_extern("int32", "f", D.data, D[3]))
    A[0] = B[1]
    C[0] = 1


@T.prim_func
def operations(a: T.handle):
    n = T.int64(is_size_var=True)
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        A[i] = T.let(x, A[i], x * x + T.Call("float32", tvm.ir.Op.get("tir.exp"), [x]))


@T.prim_func
def returned(n: T.int32):
    return n + 1


@T.prim_func
def memory_of_a_let(A: T.Buffer((64,), "float32")):
    B = T.Buffer((16,), "float32")
    C = T.Buffer((16,), "int32")
    with T.LetStmt(T.address_of(A[16], dtype="handle"), var=B.data):
        B[3] = T.float32(1)
    D = T.Buffer((16,), "int8")
    T.LetStmt(T.call_extern("handle", "f"), var=C.data)
    with T.let(D.data, T.call_extern("handle", "g")):
        E: T.Buffer = T.buffer_decl([4], dtype="int8", data=D.data)
        E[2] = D[3]
    C[1] = 2
