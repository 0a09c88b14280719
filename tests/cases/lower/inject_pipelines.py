# Loops with stages overlap their iterations, and memory of their bodies gets a copy for each iteration
# under way: loops, blocks, three stages, another order, a symbolic extent, and nested pipelines.
# RUN: pleat opt %s --pass inject_pipelines --verify-each
# RUN: pleat opt %s --pass InjectSoftwarePipeline -o %t/once.py && pleat opt %t/once.py --pass inject_pipelines | diff %t/once.py -
# RUN: pleat opt %s --pass inject_pipelines,lower --verify-each > %t/lowered.py
from tvm.script import tir as T


@T.prim_func
def plain(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1], "kept": 1}):
        B = T.decl_buffer((4,), "float32")
        for j in range(4):
            B[j] = A[i, j]
        C[i] = B[3] + B[0]


# The reader runs before the writer of the next iteration: one copy suffices.
@T.prim_func
def one_copy(A: T.Buffer((8, 4), "float32"), C: T.Buffer((10,), "float32")):
    for i in T.serial(2, 7, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 0]}):
        B = T.decl_buffer((1,), "float32")
        B[0] = A[i, 2]
        C[i + 1] = B[0] + T.float32(1)


@T.prim_func
def free_extent(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i in T.serial(n, annotations={"software_pipeline_stage": [0, 1, 2], "software_pipeline_order": [2, 0, 1]}):
        B = T.decl_buffer((1,), "int32")
        D = T.decl_buffer((1,), "int32")
        B[0] = A[i] * 2
        D[0] = B[0] + 1
        C[i] = D[0] * B[0]


# Fewer iterations than stages, in blocks.
@T.prim_func
def short(A: T.Buffer((5, 3), "float32"), D: T.Buffer((5, 3), "float32")):
    for t in T.parallel(5):
        for i in T.serial(2, annotations={"software_pipeline_stage": [0, 3], "software_pipeline_order": [0, 1]}):
            with T.block("body"):
                B = T.alloc_buffer((3,), "float32")
                for j in range(3):
                    with T.block("fill"):
                        T.reads(A[t, j])
                        T.writes(B[j])
                        B[j] = A[t, j] * T.float32(2)
                with T.block("use"):
                    T.reads(B[i])
                    T.writes(D[t, i])
                    D[t, i] = B[i] + T.float32(1)


# Statements of both loops overlap; double_buffer_scope asks for two copies.
@T.prim_func
def nested(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    for i in T.serial(6, annotations={"software_pipeline_stage": [0, 0, 1, 1], "software_pipeline_order": [0, 2, 1, 3]}):
        with T.block(""):
            S = T.alloc_buffer((1, 7), "float32", scope="shared")
            for j in range(7):
                with T.block(""):
                    T.block_attr({"double_buffer_scope": 0})
                    S[0, j] = A[i, j]
            for j in T.serial(7, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
                with T.block(""):
                    B = T.alloc_buffer((1,), "float32", scope="shared")
                    B[0] = S[0, j] * T.float32(2)
                    C[i, j] = B[0] + T.float32(1)
