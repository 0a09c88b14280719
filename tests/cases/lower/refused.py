# A pass that needs a fact which the function lacks is refused; the message names the fact and the pass
# that gives it.
# RUN 2: pleat opt %s --print-ir-after flattn
# RUN 1: pleat opt %s --pass vectorise_loops
# RUN 1: pleat opt %s --pass vectorize_loops
# RUN 1: pleat opt %s --pass convert_blocks,vectorize_loops
# RUN 1: pleat opt %s --pass convert_blocks,flatten_buffers,promote_registers
# RUN 1: pleat opt %s --pass convert_blocks,flatten_buffers,unroll_loops,promote_registers
# RUN 1: pleat opt %s --pass convert_blocks,flatten_buffers,hoist_addresses
# RUN 1: pleat opt %s --pass convert_blocks,flatten_buffers,form_parallel_regions,hoist_conditions,hoist_addresses
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, 9), "float32")):
    with T.block("root"):
        for i in T.parallel(8):
            with T.block("row"):
                vi = T.axis.spatial(8, i)
                for j in T.unroll(3):
                    for k in T.vectorized(3):
                        A[vi, j * 3 + k] = T.float32(1)
