# Loops whose iterations are not proved to be independent run, with a warning; --unchecked leaves it out.
# RUN: pleat run %s --fill zero | grep C
# RUN: pleat verify %s --threads 1 | cut -d, -f1
# RUN: pleat compile %s -o %t/scatter.c | grep -c "scatter "
# RUN: pleat run %s --fill zero --unchecked | grep C
from pleat.script import tir as T


@T.prim_func
def scatter(idx: T.Buffer((5,), "int32"), A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.parallel(5):
        if 0 <= idx[i] and idx[i] < 8:
            C[idx[i]] = A[i]
