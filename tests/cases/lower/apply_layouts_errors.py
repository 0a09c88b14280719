# RUN 1: pleat opt %s --func collides --pass apply_layouts
# RUN 1: pleat opt %s --func no_map --pass apply_layouts
# RUN 1: pleat opt %s --func another_rank --pass apply_layouts
# RUN 1: pleat opt %s --func not_accessed --pass apply_layouts
# RUN 1: pleat opt %s --func address --pass apply_layouts
# RUN 1: pleat opt %s --func no_dictionary --pass apply_layouts
# RUN 1: pleat opt %s --func not_linear --pass apply_layouts
from tvm.script import tir as T


@T.prim_func
def collides(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {A: [T.index_map(lambda i, j: [i + j])]}})
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(2)


@T.prim_func
def no_map(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {A: ["ij->ji"]}})
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(2)


@T.prim_func
def another_rank(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {A: [T.index_map(lambda i: [i])]}})
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(2)


@T.prim_func
def not_accessed(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {"B": [T.index_map(lambda i, j: [j, i])]}})
    for i, j in T.grid(5, 7):
        A[i, j] = T.float32(2)


@T.prim_func
def address(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {A: [T.index_map(lambda i, j: [j, i])]}})
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(2)
    T.evaluate(T.call_extern("int32", "f", A.data))


@T.prim_func
def no_dictionary(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": 1})
    A[0, 0] = T.float32(1)


@T.prim_func
def not_linear(A: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {A: T.index_map(lambda i, j: [i * j])}})
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(2)
