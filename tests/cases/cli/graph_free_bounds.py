# Slices and sequences whose bounds follow from free sizes: their shapes, and the loops that they
# have without values for the sizes, against those with values. Bounds are clamped, and negative
# ones count from the end.
# RUN: pleat check %s
# RUN: pleat opt %s --pass Normalize | sed -n "/    a:/,/    e:/p"
# RUN: pleat opt %s --pass LegalizeOps -o %t/loops.py && for s in "9 3" "2 9" "1 0" "8 4"; do set -- $s; for f in %s %t/loops.py; do pleat run $f --dim n=$1 --dim m=$2 --fill random | grep "^[a-e] " > %t/$(basename $f).txt; done; cmp %t/graph_free_bounds.py.txt %t/loops.py.txt && cut -c 1-60 %t/loops.py.txt; done
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Slices:
    @R.function
    def main(x: R.Tensor(("n", 7), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.strided_slice(x, axes=[0], begin=[0], end=[n // 2])
            b = R.strided_slice(x, axes=[0, 1], begin=[1, -3], end=[-1, 9], strides=[2, 1])
            c = R.strided_slice(y, axes=[0], begin=[m - 5], end=[m - 1])
            d = R.add(y, R.arange(R.prim_value(m), dtype="float32"))
            e = R.multiply(R.arange(n, 0, -1), R.const(1, "int64"))
            R.output(a, b, c, d, e)
        return (a, b, c, d, e)
