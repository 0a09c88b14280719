# RUN: pleat verify %s | grep -c "agrees with the interpreter"
# RUN: pleat plan %s | grep -o "^[0-9]* kernels"
# A view that uses an axis several times multiplies what is put into it; before there is too much,
# the elements are written to a tensor.
from pleat.script import relax as R

@R.function
def main(x: R.Tensor((5, 3, 7), "float32"), lengths: R.Tensor((3,), "int64")):
    with R.dataflow():
        a = R.reverse_sequence(x, lengths, batch_axis=1, seq_axis=0)
        b = R.reverse_sequence(a, lengths, batch_axis=1, seq_axis=0)
        c = R.reverse_sequence(b, lengths, batch_axis=1, seq_axis=0)
        d = R.reverse_sequence(c, lengths, batch_axis=1, seq_axis=0)
        e = R.reverse_sequence(d, lengths, batch_axis=1, seq_axis=0)
        R.output(e)
    return e
