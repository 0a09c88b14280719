# Annotations of software pipelines that are ill-formed, or whose order is not proved to compute the same.
# RUN 1: for f in missing count twice large reordered carried called views; do pleat opt %s --func $f --pass inject_pipelines || code=$?; done; exit $code
from tvm.script import tir as T


@T.prim_func
def missing(A: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1]}):
        A[i] = T.float32(1)
        A[i] = T.float32(2)


@T.prim_func
def count(A: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1, 2], "software_pipeline_order": [0, 1]}):
        A[i] = T.float32(1)
        A[i] = T.float32(2)


@T.prim_func
def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 1]}):
        A[i] = T.float32(1)
        B[i] = T.float32(2)


@T.prim_func
def large(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1000000], "software_pipeline_order": [0, 1]}):
        A[i] = T.float32(1)
        B[i] = T.float32(2)


@T.prim_func
def reordered(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 0], "software_pipeline_order": [1, 0]}):
        B = T.decl_buffer((1,), "float32")
        B[0] = A[i]
        C[i] = B[0]


# C[i + 1] is read two iterations after it was written, but would be read before.
@T.prim_func
def carried(A: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        B = T.decl_buffer((1,), "float32")
        B[0] = A[i] + C[i]
        C[i + 1] = B[0]


@T.prim_func
def called(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        C[i] = A[i]
        T.call_packed("print", i)


@T.prim_func
def views(A: T.Buffer((8, 3), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        with T.block(""):
            B = T.alloc_buffer((3,), "float32")
            with T.block(""):
                V = T.match_buffer(A[i, 0:3], (3,), "float32")
                for j in range(3):
                    B[j] = V[j]
            C[i] = B[2]
