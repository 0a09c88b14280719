# RUN: pleat opt %s
# RUN: for f in blocked cropped swizzled merged stays box; do pleat verify %s --func $f | grep -c "agrees with the interpreter"; done
# RUN: for f in blocked cropped swizzled merged stays box; do pleat plan %s --cpu avx2 --func $f | grep "^fused"; done
# RUN 1: pleat verify %s --func promise
# RUN 1: pleat plan %s --func collides
# RUN 1: pleat plan %s --func too_long
# Layout rewrites as operators. Two that undo one another cancel, also where one pads and the other
# crops; two that do not become one. A crop may state the value of all that it leaves out, so that a
# pad with this value cancels; `verify` finds a statement that is false.
from pleat.script import relax as R, tir as T

@R.function
def blocked(x: R.Tensor((2, 6, 5), "float32")):
    a = R.layout_transform(x, index_map=lambda n, c, h: (n, c // 4, h, c % 4), pad_value=1.5)
    b = R.layout_transform(a, index_map=T.index_map(lambda n, c, h, k: (n, c * 4 + k, h)), pad_value=None)
    c = R.crop(b, start_indices=[0, 0, 0], slice_sizes=[2, 6, 5])
    return R.nn.relu(c)

@R.function
def cropped(y: R.Tensor((1, 7, 3), "float32")):
    x = R.nn.relu(R.pad(y, pad_width=[[0, 0], [1, 1], [2, 0]], pad_value=2.0))
    a = R.crop(x, start_indices=[0, 1, 2], slice_sizes=[1, 7, 3], cropped_value=2)
    b = R.pad(a, pad_width=[[0, 0], [1, 1], [2, 0]], pad_value=2.0)
    return R.sigmoid(b)

@R.function
def swizzled(x: R.Tensor((8, 8), "float32")):
    a = R.layout_transform(x, index_map=lambda i, j: [i, j ^ i])
    b = R.layout_transform(a, index_map=lambda i, j: [i, j ^ i])
    return R.nn.relu(b)

@R.function
def merged(x: R.Tensor((5, 8), "float32")):
    a = R.pad(x, pad_width=[[0, 3], [1, 0]], pad_value=2.0)
    b = R.nn.pad(a, pad_width=[0, 1, 1, 0], pad_value=2.0)
    c = R.permute_dims(b)
    return R.nn.relu(c)

@R.function
def stays(x: R.Tensor((3, 13), "float32")):
    return R.layout_transform(x, index_map="lambda i, j: [j // 4, i, j % 4]", axis_separators=[1], pad_value=-1)

@R.function
def box(x: R.Tensor((3, 13), "float32")):
    a = R.crop(x, start_indices=[1, 2], slice_sizes=[2, 11])
    return R.crop(a, start_indices=[0, 1], slice_sizes=[1, 10])

@R.function
def promise(x: R.Tensor((2, 5), "float32")):
    a = R.crop(x, start_indices=[0, 1], slice_sizes=[2, 4], cropped_value=9)
    return R.nn.relu(R.pad(a, pad_width=[0, 0, 1, 0], pad_value=9))

@R.function
def collides(x: R.Tensor((5, 8), "float32")):
    return R.layout_transform(x, index_map=lambda i, j: [i + j])

@R.function
def too_long(x: R.Tensor((5, 8), "float32")):
    return R.crop(x, start_indices=[0, 1], slice_sizes=[5, 8])
