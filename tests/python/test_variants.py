# SPDX-License-Identifier: Apache-2.0
"""Models that take the sizes of free dimensions from the arrays of each run."""
import pathlib
import threading

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
onnx = pytest.importorskip("onnx")
pleat = pytest.importorskip("pleat")

FLOAT = onnx.TensorProto.FLOAT


def product_model(weights, rows="rows"):
    """A model x [rows, K] -> y [rows, N] that multiplies by the weights, then adds z [rows, 1]."""
    depth, width = weights.shape
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["p"]),
             onnx.helper.make_node("Add", ["p", "z"], ["y"])]
    infos = [onnx.helper.make_tensor_value_info(name, FLOAT, shape)
             for name, shape in (("x", [rows, depth]), ("z", [rows, 1]), ("y", [rows, width]))]
    graph = onnx.helper.make_graph(nodes, "g", infos[:2], infos[2:],
                                   [onnx.numpy_helper.from_array(weights, "w")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def arrays_of(rows, depth=6):
    random = np.random.default_rng(rows)
    return random.random((rows, depth), "float32"), random.random((rows, 1), "float32")


@pytest.fixture(name="weights", scope="module")
def make_weights():
    return np.random.default_rng(5).random((6, 4), "float32")


@pytest.fixture(name="proto", scope="module")
def make_proto(weights):
    return product_model(weights)


def check(model, weights, rows):
    x, z = arrays_of(rows, len(weights))
    y = model(x, z=z)
    assert y.shape == (rows, weights.shape[1])
    np.testing.assert_allclose(y, x @ weights + z, rtol=1e-3)


def test_sizes_follow_from_arrays(proto, weights):
    model = pleat.compile(proto, threads=1)
    assert [argument.shape for argument in model.inputs] == [(None, 6), (None, 1)]
    assert model.outputs[0].shape == (None, 4)
    assert model.is_open and repr(model).startswith("Model(x [?, 6] float32")
    for rows in (1, 5, 2, 5, 0, 33, 1):
        check(model, weights, rows)
    x, z = arrays_of(3)
    out = np.empty((3, 4), "float32")
    assert model.run({"x": x, "z": z}, outputs=[out])[0] is out
    np.testing.assert_allclose(out, x @ weights + z, rtol=1e-3)
    with pytest.raises(ValueError, match=r"output 'y' needs .* \[2, 4\]"):
        model.run(arrays_of(2), outputs=[out])


def test_given_sizes_are_compiled_at_once(proto, weights, tmp_path):
    model = pleat.compile(proto, threads=1, shapes={"rows": 3})
    assert model.inputs[0].shape == (3, 6) and not model.is_open
    check(model, weights, 3)
    model.save(tmp_path / "m.pleat")
    with pytest.raises(ValueError, match=r"was compiled for \[3, 6\]"):
        check(model, weights, 4)


def test_an_open_model_cannot_be_saved(proto, tmp_path):
    with pytest.raises(pleat.PleatError, match="compile it with all sizes in `shapes`"):
        pleat.compile(proto).save(tmp_path / "m.pleat")
    assert not (tmp_path / "m.pleat").exists()


def test_the_file_may_be_replaced(proto, weights, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    model = pleat.compile(path, threads=1)
    path.unlink()
    path.write_bytes(b"something else")
    check(model, weights, 2)


def test_wrong_arrays(proto, weights):
    model = pleat.compile(proto, threads=1)
    x, z = arrays_of(4)
    with pytest.raises(ValueError, match=r"input 'x' has shape \[4, 5\].* for \[\?, 6\]"):
        model(x[:, :5], z)
    with pytest.raises(ValueError, match=r"input 'x' has shape \[4\]"):
        model(x[:, 0], z)
    both = ("dimension 'rows' has two sizes: 4 from axis 0 of the array given for 'x', and 3 from "
            "axis 0 of the array given for 'z'")
    with pytest.raises(pleat.PleatError, match=both):
        model(x, z[:3])
    with pytest.raises(TypeError, match=r"input 'z' \[\?, 1\] is missing"):
        model(x)
    check(model, weights, 4)


def test_a_wrong_operator_is_refused_at_once(proto):
    wrong = onnx.ModelProto()
    wrong.CopyFrom(proto)
    wrong.graph.node[0].op_type = "Unheard"
    with pytest.raises(pleat.PleatError, match="Unheard"):
        pleat.compile(wrong)


def test_more_sizes_than_are_kept(proto, weights):
    model = pleat.compile(proto, threads=1, most_variants=2)
    for rows in (1, 2, 3, 4, 1, 3, 2, 2, 4):
        check(model, weights, rows)
    with pytest.raises(pleat.PleatError, match="most_variants: error: is -1"):
        pleat.compile(proto, most_variants=-1)


def test_threads_share_variants(proto, weights):
    model = pleat.compile(proto, threads=1, most_variants=3)
    sessions = [model, model] + [model.session(threads=1) for _ in range(4)]
    failures = []

    def work(runner, first):
        try:
            for i in range(20):
                check(runner, weights, 1 + (first + i) % 4)
        except BaseException as error:  # shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(runner, i))
               for i, runner in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def resident():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_variants_share_weights():
    weights = np.random.default_rng(5).random((2048, 4096), "float32")
    model = pleat.compile(product_model(weights), threads=1, cache=False)
    check(model, weights, 21)
    before = resident()
    for rows in range(22, 29):
        check(model, weights, rows)
    # a copy for each would be seven
    assert resident() - before < 2.5 * weights.nbytes


@pytest.mark.parametrize("rows", [1, 5, 17])
def test_outputs_in_a_layout(proto, weights, rows):
    """The shape of such an output is known with the sizes."""
    model = pleat.compile(proto, threads=1, output_layouts={"y": "i, j -> i // 4, j, i % 4"})
    assert model.outputs[0].shape is None
    x, z = arrays_of(rows, len(weights))
    y = model(x, z=z)
    layout = pleat.Layout("i, j -> i // 4, j, i % 4", (rows, 4))
    assert y.shape == layout.physical_shape
    np.testing.assert_allclose(layout.unpack(y), x @ weights + z, rtol=1e-3)


def test_sizes_that_arrays_cannot_give(proto):
    with pytest.raises(pleat.PleatError, match="do not give the sizes: with input_layouts=, they"):
        pleat.compile(proto, input_layouts={"x": "i, j -> j, i"})
    value = onnx.helper.make_tensor_value_info("x", FLOAT, ["n", 3])
    listed = onnx.helper.make_tensor_sequence_value_info("y", FLOAT, ["n", 3])
    graph = onnx.helper.make_graph([onnx.helper.make_node("SequenceConstruct", ["x", "x"], ["y"])],
                                   "g", [value], [listed])
    opset = [onnx.helper.make_opsetid("", 17)]
    with pytest.raises(pleat.PleatError, match="do not give the sizes: 'y' is a sequence"):
        pleat.compile(onnx.helper.make_model(graph, opset_imports=opset))
