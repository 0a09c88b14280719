# SPDX-License-Identifier: Apache-2.0
"""The Python package against NumPy: layouts and index maps on arrays, their questions, errors."""
import itertools
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from built import BUILD, ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.layout import Layout  # noqa: E402
from pleat.te import AXIS_SEPARATOR  # noqa: E402
from pleat.tir import IndexMap, Select, const  # noqa: E402

MAPS = [
    (lambda n, c, h, w: [n, c // 4, h, w, c % 4], (2, 5, 3, 7)),
    (lambda i, j: [i, j ^ (i % 8)], (8, 16)),
    (lambda i, j: [j, i], (1, 13)),
    (lambda i: [i // 3, i % 3], (7,)),
    (lambda i, j: [(i * 7 + j) // 4, (i * 7 + j) % 4], (5, 7)),
    (lambda i: [i], (1,)),
    (lambda: [0], ()),
    (lambda i, j: [i * 8 + (j + 3) % 8], (3, 8)),
]


@pytest.mark.parametrize("function, shape", MAPS)
def test_arrays_go_where_the_function_says(function, shape):
    index_map = IndexMap.from_func(function)
    array = np.arange(1, 1 + np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    packed = index_map.map_ndarray(array)
    assert list(packed.shape) == index_map.map_shape(shape)
    expected = np.zeros(packed.shape, "float32")
    for index in np.ndindex(*shape):
        place = tuple(int(e) for e in function(*index))
        assert index_map.map_indices(list(index)) == list(place)
        expected[place] = array[index]
    assert (packed == expected).all()
    assert (index_map.layout(shape).unpack(packed) == array).all()


@pytest.mark.parametrize("function, shape", MAPS)
def test_inverses_lead_back(function, shape):
    index_map = IndexMap.from_func(function)
    back, padding = index_map.non_surjective_inverse(shape)
    places = {tuple(index_map.map_indices(list(i))): i for i in np.ndindex(*shape)}
    names = [str(i) for i in back.initial_indices]
    for place in np.ndindex(*index_map.map_shape(shape)):
        is_padding = bool(int(padding.substitute(dict(zip(names, place)))))
        assert is_padding == (place not in places)
        if not is_padding:
            assert tuple(back.map_indices(list(place))) == places[place]


def test_maps_of_any_number_of_indices():
    packed = IndexMap.from_func(lambda *i, c: [*i, c // 4, c % 4], ndim=3)
    assert str(packed) == "i0, i1, c -> i0, i1, c // 4, c % 4"
    with pytest.raises(TypeError, match="say ndim"):
        IndexMap.from_func(lambda *i: list(i))
    with pytest.raises(TypeError, match="takes 2 indices"):
        IndexMap.from_func(lambda i, j: [i, j], ndim=3)


def test_indices_have_a_type():
    typed = IndexMap.from_func(lambda i: [const(0, i.ty.dtype), i // 8, i % const(8, i.dtype)])
    assert str(typed) == "i -> 0, i // 8, i % 8" and typed.initial_indices[0].dtype == "int64"


def test_separators_are_positions():
    index_map, separators = IndexMap.from_func_with_separators(
        lambda n, c: [n, AXIS_SEPARATOR, c // 4, c % 4])
    assert separators == [1] and len(index_map.final_indices) == 3
    assert str(index_map) == "n, c -> n | c // 4, c % 4"
    with pytest.raises(ValueError, match="with_separators"):
        IndexMap.from_func(lambda n, c: [n, AXIS_SEPARATOR, c])


def test_equivalence_is_proved_for_every_shape():
    def same(f, g):
        return IndexMap.from_func(f).is_equivalent_to(IndexMap.from_func(g))
    assert same(lambda i: [i], lambda x: [x // 4 * 4 + x % 4])
    assert same(lambda i, j: [i * 2 + j], lambda a, b: [b + a + a])
    assert not same(lambda i: [i], lambda i: [i % 8])
    assert not same(lambda i, j: [i, j], lambda i, j: [j, i])
    assert not same(lambda i: [i], lambda i, j: [i, j])
    assert same(lambda i: [i // 4, i % 4], lambda x: [x // 4, x - x // 4 * 4])
    assert same(lambda i: [i - 1], lambda x: [x - 2 + 1])  # places below 0
    assert not same(lambda i: [i - 1], lambda i: [i - 2])
    assert same(lambda i, j: [i ^ 5, j ^ i], lambda i, j: [i ^ 4 ^ 1, i ^ j])


def test_inverse_refuses_with_the_reason():
    with pytest.raises(pleat.PleatError, match=r"\[0, 0\] and \[8, 0\] have the same"):
        IndexMap.from_func(lambda i, j: [i % 8, j]).inverse([64, 32])
    with pytest.raises(pleat.PleatError, match="use non_surjective_inverse"):
        IndexMap.from_func(lambda i: [i // 4, i % 4]).inverse([7])
    given = IndexMap.from_func(lambda i: [i // 4, i % 4], inverse_index_map=lambda a, b: [4 * a + b])
    assert str(given.inverse([16])) == "a, b -> 4 * a + b"
    wrong = IndexMap.from_func(lambda i: [i // 4, i % 4], inverse_index_map=lambda a, b: [4 * b + a])
    with pytest.raises(pleat.PleatError, match="is not the inverse"):
        wrong.inverse([16])
    with pytest.raises(pleat.PleatError, match="use non_surjective_inverse"):
        given.inverse([15])


def test_ranges_begin_at_0():
    class Range:
        def __init__(self, min, extent):
            self.min, self.extent = min, extent
    blocks = IndexMap.from_func(lambda i: [i // 4, i % 4])
    for extent in (16, Range(0, 16), range(16)):
        assert str(blocks.inverse([extent])) == "p0, p1 -> p0 * 4 + p1"
    for extent in (Range(16, 16), range(1, 17), range(0, 16, 2)):
        with pytest.raises(ValueError, match="begins at 0"):
            blocks.non_surjective_inverse([extent])


def test_answers_carry_witnesses():
    answer = Layout("i, j -> i % 8, j", (64, 32)).is_injective()
    assert not answer
    (a, b), shape = answer.witness, (64, 32)
    assert a != b and (a[0] % 8, a[1]) == (b[0] % 8, b[1])
    assert all(0 <= x < n for x, n in zip(a + b, shape + shape))
    assert Layout("NCHW16c", ("N", "C", 7, 7), where="C % 16 == 0").is_onto()
    assert not Layout("NCHW16c", ("N", "C", 7, 7)).is_onto()
    assert "witness" in repr(answer)


def test_numbers():
    layout = Layout("NCHW16c", (1, 30, 7, 7))
    assert layout.physical_shape == (1, 2, 7, 7, 16)
    assert layout.padding_count() == 98
    assert layout.offset(0, 17, 3, 2) == ((1 * 7 + 3) * 7 + 2) * 16 + 1
    assert layout.logical(layout.offset(0, 17, 3, 2)) == (0, 17, 3, 2)
    assert layout.logical(1567) is None
    assert layout.strides()[2:] == (112, 16) and layout.strides()[1] is None
    assert layout.vector_widths()[1] == 16


def test_division_is_the_copy():
    rng = random.Random(7)
    spellings = ["NCHW", "NHWC", "NCHW4c", "NCHW8c", "CNHW2n"]
    for a, b in itertools.permutations(spellings, 2):
        shape = (2, 2 * rng.randint(1, 7), 3, 5)
        first, second = Layout(a, shape, order="NCHW"), Layout(b, shape, order="NCHW")
        array = np.arange(1, 1 + np.prod(shape)).reshape(shape)
        copy, padding = first.divide(second)
        source, out = second.pack(array), np.zeros(first.physical_shape, int)
        for place in np.ndindex(*second.physical_shape):
            if source[place]:
                out[tuple(copy.index_map().map_indices(list(place)))] = source[place]
        assert (out == first.pack(array)).all()


def test_replicas_are_packed_everywhere():
    layout = Layout("i; r=3 -> r, i", (5,))
    packed = layout.pack(np.arange(5))
    assert (packed == np.tile(np.arange(5), (3, 1))).all()
    assert (layout.unpack(packed) == np.arange(5)).all()


def test_elements_that_share_a_place_are_not_packed():
    with pytest.raises(pleat.PleatError, match="same physical index"):
        Layout("i, j -> i % 2, j", (4, 3)).pack(np.zeros((4, 3)))


def test_layouts_of_functions_and_far_elements():
    layout = Layout(lambda *i: [i[-1], IndexMap.AXIS_SEPARATOR, *i[:-1]], (2, 3))
    assert layout.spelling == "i0, i1 -> i1 | i0" and layout.offset(1, 2) == 5
    assert Layout("i -> i//4, i%4", (2**62,)).logical(2**62 - 1) == (2**62 - 1,)


def test_errors_show_where():
    with pytest.raises(pleat.PleatError) as error:
        Layout("n, c -> n, d", (2, 3))
    assert "n, c -> n, d\n" in str(error.value) and "^" in str(error.value)
    with pytest.raises(pleat.PleatError):
        Layout("NCHW16c", (1, -3, 7, 7))
    with pytest.raises(pleat.PleatError, match="symbolic"):
        Layout("NC", ("N", 3), order="NC").pack(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="logical shape"):
        Layout("NC", (2, 3), order="NC").pack(np.zeros((3, 2)))
    with pytest.raises(TypeError, match="no index expression"):
        IndexMap.from_func(lambda i: [i, "x"])
    with pytest.raises(TypeError, match="select"):
        IndexMap.from_func(lambda i: [0 if i < 3 else i])


def test_errors_are_data():
    with pytest.raises(pleat.PleatError) as error:
        Layout("n, c -> n, d", (2, 3))
    first = error.value.messages[0]
    assert (first.severity, first.code, first.file, first.column) == ("error", "layout", "a.layout",
                                                                      12)
    with pytest.raises(pleat.PleatError) as error:
        pleat.compile("no-such-model.onnx")
    assert error.value.messages == [pleat.Message(
        "error", "file", "cannot open: No such file or directory", "no-such-model.onnx")]
    assert str(error.value) == str(error.value.messages[0])
    with pytest.raises(pleat.PleatError) as error:
        pleat.compile(b"")
    assert error.value.messages[0].code == "model"


def test_expressions():
    index_map = IndexMap.from_func(lambda i: [Select(i < 3, i, 6 - i)])
    assert [index_map.map_indices([k])[0] for k in range(7)] == [0, 1, 2, 3, 2, 1, 0]
    assert str(IndexMap.from_func(lambda i, j: [(i + j) * 2 - (i - (j - 1))])) == \
        "i, j -> (i + j) * 2 - (i - (j - 1))"
    assert IndexMap.parse(str(index_map)).map_indices([5]) == [1]
    assert IndexMap.from_func(lambda i, j: [i < j, j]).map_shape([3, 4]) == [2, 4]


def test_pictures_and_spellings():
    layout = Layout("i, j -> i, j ^ (i % 8)", (8, 8))
    assert layout._repr_svg_().startswith("<svg") and "</svg>" in layout.svg()
    assert Layout("(4, 8):(8, 1)", (4, 8)).spell("index-map")
    with pytest.raises(pleat.PleatError):
        layout.spell("xla")


def test_equality_of_spellings():
    assert Layout("NCHW16c", (1, 32, 7, 7)).equal(Layout("aBcd16b", (1, 32, 7, 7)))
    assert not Layout("NCHW16c", (1, 32, 7, 7)).equal(Layout("NCHW8c", (1, 32, 7, 7)))


@pytest.mark.slow
def test_it_installs(tmp_path):
    """With a library that is given; test_wheel.py installs one with a library of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
         "--target", str(tmp_path), str(ROOT / "python")], capture_output=True, text=True,
        env=dict(os.environ, PLEAT_LIBRARY=str(BUILD / "libpleat.so")))
    assert done.returncode == 0, done.stderr
    assert "Deprecated" not in done.stderr
    code = "from pleat.layout import Layout; print(Layout('NCHW4c', (1, 5, 2, 2)).physical_shape)"
    environment = {k: v for k, v in os.environ.items() if k != "PLEAT_LIBRARY"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          cwd=tmp_path, env=dict(environment, PYTHONPATH=str(tmp_path)))
    assert done.stdout.strip() == "(1, 2, 2, 2, 4)", done.stderr
