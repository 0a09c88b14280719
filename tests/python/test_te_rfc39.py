# SPDX-License-Identifier: Apache-2.0
"""The figures of RFC 39, "Layout transformations on buffer access", and of its review, as they are typed
there. Each test names the section. Names that a figure leaves open (A, M, the `...` of a definition) are
given before it."""
import re

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402


def numbers(*shape):
    return np.random.default_rng(39).integers(-9, 9, shape).astype("float32")


def flattened(s, args):
    """The text of the program after FlattenBuffer: buffers have their physical rank."""
    passes = [tir.transform.LowerOpaqueBlock(), tir.transform.Simplify(),
              tir.transform.FlattenBuffer(), tir.transform.Simplify()]
    return tir.transform.Sequential(passes)(pleat.lower(s, args)).script()


def allocated(text, name):
    """The shape of the memory of an intermediate tensor."""
    found = re.search(rf"{name}_?\w* = T\.\w+\(\(?\[?([\d, ]*)", text)
    return [int(n) for n in found[1].split(",") if n.strip()]


def loads(text, name):
    """The indices with which the elements of a tensor are read, in order."""
    found = re.findall(rf"= .*?\b{name}\w*\[([^]]*)\]", text)
    return [[eval(part) for part in one.split(",")] for one in found]


# ---- Guide-level explanation ----------------------------------------------------------------------

def test_guide_nhwc_to_nchwc():
    A = te.placeholder((2, 5, 7, 12), name="A")
    # Compute definition, written in terms of NHWC logical axes
    B = te.compute(A.shape, lambda n,h,w,c: A[n,h,w,c])  # noqa: E231
    s = te.create_schedule(B.op)

    def nhwc_to_nchwc(logical_axes):
        n,h,w,c = logical_axes  # noqa: E231
        return [n, c//4, h, w, c%4]  # noqa: E225,E228

    B_nchwc = s[B].transform_layout(nhwc_to_nchwc)

    # Compute definition that would produce an equivalent physical layout
    B_equivalent = te.compute(
        [A.shape[0], A.shape[3]//4, A.shape[1], A.shape[2], 4],
        lambda n, c_outer, h, w, c_inner: A[n, h, w, 4*c_outer+c_inner],
    )
    assert [axis.dom.extent for axis in B_nchwc.op.axis] == list(B_equivalent.shape)
    s[B_nchwc].vectorize(B_nchwc.op.axis[-1])
    a = numbers(2, 5, 7, 12)
    results = [np.zeros([int(e) for e in B_equivalent.shape], "float32") for _ in range(2)]
    pleat.build(s, [A, B], cache=False)(a, results[0])
    pleat.build(te.create_schedule(B_equivalent.op), [A, B_equivalent], cache=False)(a, results[1])
    assert np.array_equal(*results) and results[0].any()


M, N, P, Q = 3, 5, 7, 8
GROUPS = [
    # Default, produces a 1-d allocation with shape (M*N*P*Q,)
    (lambda i: i, [M*N*P*Q]),
    # One separator, produces a 2-d allocation with shape (M*N, P*Q).
    (lambda i: [i[0], i[1], te.AXIS_SEPARATOR, i[2], i[3]], [M*N, P*Q]),
    # Two separators, produces a 3-d allocation with shape (M, N*P, Q).
    (lambda i: [i[0], te.AXIS_SEPARATOR, i[1], i[2], te.AXIS_SEPARATOR, i[3]], [M, N*P, Q]),
    # Can be used along with reorders and splits.
    (lambda i: [i[0], i[3]//4, i[1], te.AXIS_SEPARATOR, i[2], i[3]%4], [M*(Q//4)*N, P*4]),
]


@pytest.mark.parametrize("function, shape", GROUPS, ids=range(len(GROUPS)))
def test_guide_axis_separators(function, shape):
    A = te.placeholder((M, N, P, Q), name="A")
    B = te.compute((M, N, P, Q), lambda m, n, p, q: A[m, n, p, q] + 1.0, name="B")
    m, n, p, q = B.op.axis
    C = te.compute((M, N, P, Q), lambda m, n, p, q: B[m, n, p, q] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].transform_layout(function)
    assert allocated(flattened(s, [A, C]), "B") == shape
    a, c = numbers(M, N, P, Q), numbers(M, N, P, Q)
    pleat.build(s, [A, C], cache=False)(a, c)
    assert np.array_equal(c, (a + 1) * 2)


# ---- Reference-level explanation: Examples --------------------------------------------------------

def element(shape, index):
    """Tensors x, which holds its flat logical index, and val, which is the element at an index."""
    strides = [int(np.prod(shape[k + 1:])) for k in range(len(shape))]
    x = te.compute(shape, lambda *i: sum(
        e * stride for e, stride in zip(i, strides)).astype("float32"), name="x")
    return x, te.compute((1,), lambda _: x(*index), name="val")


def check_element(s, x, val, index, expected):
    assert loads(flattened(s, [val]), "x")[-1] == expected
    out = np.zeros(1, "float32")
    pleat.build(s, [val], cache=False)(out)
    assert out[0] == np.ravel_multi_index(index, [int(e) for e in x.shape])


def test_examples_no_layout():
    x, val = element([12, 17], [10, 15])
    s = te.create_schedule(val.op)
    # In TE schedule, no call to transform_layout.
    check_element(s, x, val, [10, 15], [10*17 + 15])


def test_examples_the_first_index_is_the_fastest():
    x, val = element([12, 17], [10, 15])
    s = te.create_schedule(val.op)
    s[x].transform_layout(lambda i,j: [j,i])  # noqa: E231
    check_element(s, x, val, [10, 15], [15*12 + 10])


def test_examples_nhwc_to_nchwc():
    x, val = element([16, 64, 64, 128], [11, 37, 23, 101])
    s = te.create_schedule(val.op)
    s[x].transform_layout(lambda n,h,w,c: [n, c//4, h, w, c%4])  # noqa: E225,E228,E231
    text = flattened(s, [val])
    assert allocated(text, "x") == [16 * (128//4) * 64 * 64 * 4]
    assert loads(text, "x")[-1] == [(128//4)*64*64*4*11 + 64*64*4*(101//4) + 64*4*37 + 4*23 + 101%4]


def test_examples_texture_memory():
    x, val = element([16, 64, 64, 128], [11, 37, 23, 101])
    s = te.create_schedule(val.op)
    s[x].transform_layout(lambda n,h,w,c: [n, c//4, h, te.AXIS_SEPARATOR, w, c%4])  # noqa: E225,E228,E231
    text = flattened(s, [val])
    assert allocated(text, "x") == [16 * (128//4) * 64, 64 * 4]
    assert loads(text, "x")[-1] == [(128//4)*64*11 + 64*(101//4) + 37, 4*23 + 101%4]


def test_drawbacks_neighbours_are_apart():
    """Locations (0,0,0,3) and (0,0,0,4) of NHWC are not adjacent in [n, c//4, h, w, c%4]."""
    at = tir.IndexMap.from_func(lambda n, h, w, c: [n, c//4, h, w, c%4]).layout((2, 5, 7, 8))
    assert at.offset(0, 0, 0, 4) - at.offset(0, 0, 0, 3) == 5*7*4 - 3


# ---- Review ---------------------------------------------------------------------------------------

def test_review_permuted_layout_of_shared_memory():
    """The functional notation of CUDA's layout, whose last `row` is the second physical axis."""
    A = te.placeholder((32, 64), name="A")
    B = te.compute((64, 32), lambda i, j: A[j, i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    AS = s.cache_read(A, "shared", [B])

    def permuted(i, j):
        row = i // 2
        return [i % 2, (row % 8) ^ (j // 8), j % 8, te.AXIS_SEPARATOR, row]
    s[AS].transform_layout(permuted)
    assert allocated(flattened(s, [A, B]), "A_shared") == [2*8*8, 16]
    a, b = numbers(32, 64), numbers(64, 32)
    pleat.build(s, [A, B], cache=False)(a, b)
    assert np.array_equal(b, a.T + 1)


def test_review_t2_exposes_each_axis():
    X = te.placeholder((7, 12), name="X")
    A = te.compute((7, 12), lambda i, j: X[i, j] * 2.0, name="A")
    s = te.create_schedule(A.op)
    AA = s[A].transform_layout(lambda i, j: [j//4, te.AXIS_SEPARATOR, i, j%4])
    assert [axis.dom.extent for axis in AA.op.axis] == [A.shape[1]//4, A.shape[0], 4]
    s[AA].reorder(AA.op.axis[1], AA.op.axis[0])
    x, a = numbers(7, 12), np.zeros((3, 7, 4), "float32")
    pleat.build(s, [X, A], cache=False)(x, a)
    assert np.array_equal(a, (x * 2).reshape(7, 3, 4).transpose(1, 0, 2))


def test_review_indices_without_names_are_the_identity():
    """With T0, `lambda *indices: indices` would flatten the buffer."""
    A = te.placeholder((3, 5, 7), name="A")
    B = te.compute((3, 5, 7), lambda *i: A(*i) + 1.0, name="B")
    s = te.create_schedule(B.op)
    axes = s[B].transform_layout(lambda *indices: indices)
    assert [axis.dom.extent for axis in axes] == [3, 5, 7]
    pleat.ir.assert_structural_equal(pleat.lower(s, [A, B])["main"], te.create_prim_func([A, B]))


def test_review_a_map_is_valid_on_one_rank():
    """Ambiguously valid: NCHW to NCHWc on what is already of rank 5."""
    A = te.placeholder((2, 8, 5, 7), name="A")
    B = te.compute(A.shape, lambda *i: A(*i), name="B")
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda n,c,h,w: [n, c//4, h, w, c%4])  # noqa: E225,E228,E231
    with pytest.raises(TypeError, match="takes 4 indices, ndim is 5"):
        s[B].transform_layout(lambda n,c,h,w: [n, c//4, h, w, c%4])  # noqa: E225,E228,E231


A_, B_, C_, D_ = 2, 3, 5, 7


@T.prim_func
def normalized(buf: T.Buffer((A_, B_, C_, D_), "float32")):
    acc = T.alloc_buffer((1,), "float32")
    for a in range(A_):
        for b in range(B_):
            with T.block("one"):
                va, vb = T.axis.remap("SS", [a, b])
                acc[0] = T.float32(0)
                for c in range(C_):
                    for d in range(D_):
                        acc[0] += buf[va, vb, c, d]

                for c in range(C_):
                    for d in range(D_):
                        buf[va, vb, c, d] = buf[va, vb, c, d] / acc[0]


def test_review_a_layout_does_not_change_the_computation():
    """Ambiguous computation: normalisation along the same axes whatever the layout."""
    sch = tir.Schedule(normalized)
    sch.transform_layout("one", "buf", lambda n,c,h,w: [n,h,w,c])  # noqa: E231
    data = np.random.default_rng(1).random((A_, B_, C_, D_), "float32")
    moved = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
    pleat.build(sch.mod, cache=False)(moved)
    assert np.allclose(moved.transpose(0, 3, 1, 2), data / data.sum((2, 3), keepdims=True))


@pytest.mark.parametrize("batch", [(3,), (2, 3), (2, 1, 3)])
def test_review_batch_matmul_of_any_rank(batch):
    """"Modifying the compute definition to accept N-d tensors", and both schedules for it. The typing
    errors of the thread (`index` for `other_indices`, a missing colon) are mended."""
    A, B = te.placeholder((*batch, 5, 7), name="A"), te.placeholder((*batch, 7, 11), name="B")
    *other_dim, N, M = A.shape
    k = te.reduce_axis((0, M), "k")
    C = te.compute((*other_dim, N, 11), lambda *indices: te.sum(
        A[(*indices[:-2], indices[-2], k)] * B[(*indices[:-2], k, indices[-1])], axis=k), name="C")

    def flatten_all_but_last_two(*other_indices, i, j):
        batch = 0
        for dim, index in zip(C.shape, other_indices):
            batch = dim*batch + index
        return [batch, i, j]

    a, b = numbers(*batch, 5, 7), numbers(*batch, 7, 11)
    for way in range(2):
        s = te.create_schedule(C.op)
        if way:
            b_, y, x = s[C].transform_layout(flatten_all_but_last_two)
        else:
            *other_axes, y, x = s[C].op.axis
            b_ = s[C].fuse(*other_axes)
        yo, yi = s[C].split(y, 4)
        s[C].reorder(b_, yo, k, yi, x)
        s[C].parallel(b_)
        s[C].vectorize(x)
        c = np.zeros((*batch, 5, 11) if not way else (int(np.prod(batch)), 5, 11), "float32")
        pleat.build(s, [A, B, C], cache=False)(a, b, c)
        assert np.array_equal(c.reshape(*batch, 5, 11), a @ b)
