# RUN: pleat opt %s --schedule relax_sum.steps
# "Global Layout Planning in Relax" of the proposal on layout planning: a reduction from NCHW to
# NHWC by transform_layout and transform_block_layout.
from pleat.script import tir as T

@T.prim_func
def sum(input: T.Buffer((32, 64, 56, 56), "float32"), output: T.Buffer((32, 64), "float32")) -> None:
    for i0, i1, i2, i3 in T.grid(32, 64, 56, 56):
        with T.block("reduce"):
            ax0, ax1, k2, k3 = T.axis.remap("SSRR", [i0, i1, i2, i3])
            T.reads(input[ax0, ax1, k2, k3])
            T.writes(output[ax0, ax1])
            with T.init():
                output[ax0, ax1] = T.float32(0)
            output[ax0, ax1] = output[ax0, ax1] + input[ax0, ax1, k2, k3]
