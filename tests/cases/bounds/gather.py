# An access whose index depends on data is checked at run time, in each kind of output.
# RUN: pleat check %s
# RUN: pleat opt %s --func gather --pass convert_blocks,simplify_loops,guard_accesses
# RUN: pleat compile %s --func gather -o %t/gather.c > /dev/null && grep -A5 "Returns 2" %t/gather.h
# RUN: pleat compile %s --func gather --unchecked -o %t/plain.c > /dev/null && ! grep -q faults %t/plain.c
# RUN: pleat compile %s --func gather --cpu baseline -o %t/gather.so > /dev/null && python3 %r/tests/cases/bounds/call.py %t/gather.so
# RUN: pleat compile %s --func gather --cpu baseline -o %t/gather.c > /dev/null && cc -std=gnu11 -shared -fPIC -o %t/c.so %t/gather.c && python3 %r/tests/cases/bounds/call.py %t/c.so
# RUN: python3 %r/tests/cases/bounds/index.py %t/in.npy 0 29 3 && pleat run %s --func gather --fill zero --input idx=%t/in.npy | tail -1
# RUN 1: python3 %r/tests/cases/bounds/index.py %t/in.npy 0 30 3 && pleat run %s --func gather --fill zero --input idx=%t/in.npy
# RUN 1: python3 %r/tests/cases/bounds/index.py %t/in.npy 0 -1 3 && pleat run %s --func scatter --fill zero --input idx=%t/in.npy
# RUN: pleat compile %s --func guarded -o %t/guarded.c > /dev/null && ! grep faults %t/guarded.c
# RUN: python3 %r/tests/cases/bounds/index.py %t/in.npy 0 57 3 && pleat run %s --func guarded --fill zero --input idx=%t/in.npy | tail -1
# RUN 1: python3 %r/tests/cases/bounds/index.py %t/in.npy 0 3 1 && pleat run %s --func chain --fill zero --input idx=%t/in.npy --input next=%t/in.npy
# RUN: pleat verify %s --func guarded | sed 's/; at most.*//'
from pleat.script import tir as T


@T.prim_func
def gather(A: T.Buffer((30, 7), "float32"), idx: T.Buffer((3,), "int32"),
           C: T.Buffer((3, 7), "float32")):
    for i, j in T.grid(3, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[idx[vi], vj]


@T.prim_func
def scatter(idx: T.Buffer((3,), "int32"), C: T.Buffer((7, 5), "float32")):
    for i, j in T.grid(3, 5):
        C[idx[i], j] = T.float32(1)


# The test in the program itself is enough: there is no guard.
@T.prim_func
def guarded(A: T.Buffer((30,), "float32"), idx: T.Buffer((3,), "int32"),
            C: T.Buffer((3,), "float32")):
    for i in range(3):
        C[i] = T.if_then_else(0 <= idx[i] and idx[i] < 30, A[idx[i]], T.float32(0))


# The index is loaded at an index that is itself loaded.
@T.prim_func
def chain(idx: T.Buffer((3,), "int32"), next: T.Buffer(("n",), "int32"),
          C: T.Buffer((3,), "int32")):
    n = T.int32()
    for i in range(3):
        C[i] = next[idx[i]]
