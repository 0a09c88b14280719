# RUN: pleat opt %s
# Spellings of the source documents' time: T.Buffer[…], T.buffer_decl, Tensor(…), relax.call_tir,
# functions that stand alone and are called before they are defined.


@R.function
def main(x: Tensor((9, 15), "float32"), w: Tensor((15, 14), "float32")) -> Tensor((9, 14), "float32"):
    gv = relax.call_tir(rewrite, (w,), (14, 15, 1), dtype="float32")
    gv0 = relax.call_tir(matmul, (x, gv), (9, 14), dtype="float32")
    return gv0


@T.prim_func
def matmul(A: T.Buffer[(9, 15), "float"], B: T.Buffer[(14, 15, 1), "float32"],
           C: T.Buffer[(9, 14), "float32"]) -> None:
    for i, j, k0, k1 in T.grid(9, 14, 5, 3):
        with T.block("matmul"):
            vi = T.axis.S(9, i)
            vj = T.axis.S(14, j)
            vk = T.axis.R(15, k0 * 3 + k1)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk, 0]


@T.prim_func
def rewrite(SRC: T.Buffer[(15, 14), "float32"], TGT: T.Buffer[(14, 15, 1), "float32"]):
    for i, j in T.grid(15, 14):
        with T.block("rewrite"):
            vi, vj = T.axis.remap("SS", [i, j])
            TGT[vj, vi, 0] = SRC[vi, vj]


@T.prim_func
def alias(A: T.Buffer[(16,), "float"]):
    vectors = T.buffer_decl([4], "float32x4", data=A.data)
    pairs = T.buffer_decl([8], "float32x2", data=A.data)
    vectors[0] = A[T.ramp(4, 1, 4)] + vectors[2]
    pairs[7] = A[0:2]


# Nodes of calls, types of float8 before 2024, annotations of range, slices of one element, and
# names of buffers as keys.
@T.prim_func
def nodes(A: T.Buffer((128,), "e5m2_float8"), C: T.Buffer((3,), "e4m3_float8"), B: T.Buffer((16,), "float32"), p: T.handle):
    T.func_attr({"constants": {B.name: B}})
    for i in range(5, annotations={"pragma_1": "s"}):
        if T.Call("bool", "tir.isnullptr", [p]):
            T.Call("int32", "tir.tvm_throw_last_error", [])
    for i in range(2, 12, 3, annotations={"pragma_1": "s"}):
        B[i:i + 1:1] = B[i:i + 1] + T.Call("float32", "exp", (B[i],))


# *name for the loops that are left, elements of tuples, len, astype, T.boolean.
@T.prim_func
def more(A: T.Buffer((3, 5, 7), "float32"), b: T.boolean, C: T.Buffer((3, 5, 7), "int32")):
    for *spatial, k in T.grid(*A.shape):
        for i, *none in T.grid(2):
            for *x, y, z in T.grid(2, 3, 4, 5):
                C[spatial[0], spatial[1], k] = A[spatial[0], spatial[1], k].astype("int32") + (k + y).astype("int32") + x[1]
    C[0, 0, 0] = T.call_intrin("int32", "tir.max", C[0, 1, 0], 2)
    C[0, 0, len(A.shape)] = T.Select(b, len((1, 2)), 2)
