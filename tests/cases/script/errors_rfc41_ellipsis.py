# RUN: pleat fmt %s --check
# RUN 1: pleat opt %s
# RFC 41, "Guide-level explanation", with the dots of the text, which are formatted and do not run:
# "Complete Form", "A sugar for trivial bindings", "A Mixed format".
from tvm.script import tir as T


@T.prim_func
def complete_form():
    for i, j, k in T.grid(512, 512, 512):
        with T.block("name"):
            vi = T.axis.spatial((0, 512), i)
            # (0, 512) for the block var iter_dom, can be write as 512 if starts from 0
            vj = T.axis.spatial(512, j)
            # vj = T.axis.S(512, j) <- we can use `S` for spatial.
            vk = T.axis.reduce(512, k)
            # vk = T.axis.R(512, k) <- we can use `R` for reduce.
            T.reads(...)  # <- access region still can be detected.
            T.writes(...)
            ...


@T.prim_func
def a_sugar_for_trivial_bindings():
    for i, j, k in T.grid(512, 512, 512):
        with T.block("name"):
            # SSR means [spatial, spatial, reduce] for three vars
            # Only trivial bindings are allowed here since we need to detect iter_dom from the loops
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            ...


@T.prim_func
def a_mixed_format():
    for io, ii, j, k in T.grid(16, 32, 512, 512):
        with T.block("name"):
            vi = T.axis.S(512, io * 32 + ii)
            vj, vk = T.axis.remap("SR", [j, k])
            ...
