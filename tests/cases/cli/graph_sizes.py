# Symbolic sizes of graph functions, and files with several functions. The sizes come from options
# and from arrays; --func names a graph function or a tensor program.
# RUN: pleat run %s --func main --fill random --dim n=2 --dim h=3 | grep -o "^sym.*\|^y.*\|^twice.*values"
# RUN: pleat run %s --func main --fill random --dim n=2 --input-shape x=?x5x3 | grep -o "^twice.*values"
# RUN: pleat run %s --func main --fill zero --dim n=2 --dim h=3 -o %t/out.npz > /dev/null && python3 -c "import zipfile; print(sorted(zipfile.ZipFile('%t/out.npz').namelist()))"
# RUN: printf '\223NUMPY\001\000\106\000%-69s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 5, 2), }" > %t/x.npy && head -c 40 /dev/zero >> %t/x.npy && pleat run %s --func main --input x=%t/x.npy --fill zero | grep -o "^twice.*"
# RUN: pleat verify %s --func main --dim n=7 --dim h=1 | sed 's/; at most.*//'
# RUN: pleat verify %s --func scale | sed 's/; at most.*//'
# RUN: pleat plan %s --func other
# RUN: pleat run %s --func product --dim n=40 --fill random --cpu avx2 | grep slow
# RUN: pleat opt %s --pass LegalizeOps -o %t/legal.py && pleat verify %t/legal.py --func flat --dim n=7 | grep -c agrees
# RUN: pleat inspect %s --func main --dim n=2 --dim h=3 | grep output
# RUN: pleat check %s --dim n=2
# RUN: pleat compile %s --func scale -o %t/scale.c > /dev/null && grep -o "outputs.*row-major" %t/scale.h
# RUN 1: pleat run %s --fill zero
# RUN 1: pleat run %s --func main --fill zero
# RUN 1: pleat run %s --func main --fill zero --dim n=2 --dim h=3 --input-shape x=2x5x4
# RUN 1: pleat run %s --func main --fill zero --dim n=2 --dim h=3 --input-shape y=7x5
# RUN 1: pleat run %s --func main --fill zero --dim hh=2
# RUN 1: pleat run %s --func main --fill zero --dim n=2x3
# RUN 1: pleat run %s --func main --fill zero --input-shape x=2x5
# RUN 1: pleat run %s --func main --fill zero --input-shape n=2x5
# RUN 1: pleat plan %s --func scale
# RUN 1: pleat plan %s --func scales
# RUN 1: pleat plan %s --func q
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor(("n", 5, "h"), "float32"), y: R.Tensor(("2 * h", 5), "float32")):
        n = T.int64()
        h = T.int64()
        with R.dataflow():
            up: R.Tensor((n, 5, h), "float32") = R.exp(x)
            twice = R.add(y, y)
            R.output(up, twice)
        return (up, twice)

    @R.function
    def other(x: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            up = R.exp(x)
            R.output(up)
        return up

    @R.function
    def flat(x: R.Tensor(("n", 5), "float32")):
        n = T.int64()
        with R.dataflow():
            line = R.exp(R.reshape(x, R.shape([n * 5])))
            R.output(line)
        return line

    @R.function
    def product(x: R.Tensor(("n", 20), "float32"), w: R.Tensor((20, 32), "float32")):
        return R.matmul(x, w)

    @T.prim_func
    def scale(A: T.Buffer((3, 7), "float32"), B: T.Buffer((3, 7), "float32")):
        for i, j in T.grid(3, 7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
