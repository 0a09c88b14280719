# SPDX-License-Identifier: Apache-2.0
"""The sizes of free dimensions in `run`, `verify` and `bench`, taken from the arrays given."""
import json

import pytest
from command import pleat, save_model, value_info

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def save_array(folder, name, array):
    np.save(folder / f"{name}.npy", array)
    return f"--input={name}={folder / name}.npy"


@pytest.fixture
def product(tmp_path):
    """y = x z with three free dimensions; one of the axes of x has no name."""
    nodes = [helper.make_node("MatMul", ["x", "z"], ["y"])]
    return save_model(tmp_path / "product.onnx", nodes,
                      [value_info("x", [None, "inner"]), value_info("z", ["inner", "columns"])],
                      [value_info("y", [None, None])])


@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 1, 1), (1, 4, 2)])
def test_run_takes_sizes_from_arrays(product, tmp_path, sizes):
    rows, inner, columns = sizes
    x = np.random.default_rng(1).standard_normal((rows, inner), np.float32)
    z = np.random.default_rng(2).standard_normal((inner, columns), np.float32)
    given = [save_array(tmp_path, "x", x), save_array(tmp_path, "z", z)]
    pleat("run", product, *given, "-o", tmp_path / "y.npz")
    assert np.allclose(np.load(tmp_path / "y.npz")["y"], x @ z, atol=1e-5)
    assert "agrees" in pleat("verify", product, *given)
    assert json.loads(pleat("bench", product, *given, "--repeat", 2, "--json"))["runs"] == 2
    pleat("run", product, *given, "--dim", f"inner={inner}", "--input-shape", f"x={rows}x?")


@pytest.mark.parametrize("sizes", [(0, 3), (2, 0), (0, 0)])
def test_no_element(product, tmp_path, sizes):
    rows, inner = sizes
    given = [save_array(tmp_path, "x", np.zeros((rows, inner), np.float32)),
             save_array(tmp_path, "z", np.zeros((inner, 2), np.float32))]
    pleat("run", product, *given, "-o", tmp_path / "y.npz")
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], np.zeros((rows, 2), np.float32))
    assert "agrees" in pleat("verify", product, *given)


def test_a_size_that_no_array_gives_is_asked_for(product, tmp_path):
    given = save_array(tmp_path, "x", np.ones((2, 3), np.float32))
    said = pleat("run", product, given, "--fill", "zero", status=1)
    assert "input 'z' [inner, columns]: dimension 1 is free; give it with --dim columns=1" in said
    said = pleat("run", product, "--fill", "zero", status=1)
    assert "input 'x' [x.0, inner]" in said and "--dim x.0=1 --dim inner=1" in said
    pleat("run", product, given, "--fill", "zero", "--dim", "columns=4")
    pleat("bench", product, given, "--dim", "columns=4", "--repeat", 1)


def test_sizes_that_disagree(product, tmp_path):
    given = [save_array(tmp_path, "x", np.ones((2, 3), np.float32)),
             save_array(tmp_path, "z", np.ones((4, 5), np.float32))]
    for command in ("run", "verify", "bench"):
        said = pleat(command, product, *given, status=1)
        assert "dimension 'inner' has two sizes: 3 from axis 1 of " in said
        assert "x.npy', given for 'x', and 4 from axis 0 of " in said and "z.npy'" in said
    said = pleat("run", product, given[0], "--fill", "zero", "--dim", "inner=5", status=1)
    assert "5 from 'inner=5', and 3 from axis 1" in said


def test_sizes_from_test_data(product, tmp_path):
    x, z = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    for name, array in (("input_0", x), ("input_1", z), ("output_0", x @ z)):
        (tmp_path / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    assert "1 set of test data" in pleat("verify", product, "--test-data", tmp_path)
    said = pleat("verify", product, "--test-data", tmp_path, "--dim", "inner=4", status=1)
    assert "4 from 'inner=4', and 3 from axis 1 of " in said and "input_0.pb" in said


def test_a_layout_leaves_its_array_out(product, tmp_path):
    """With an input's layout its array has the shape of the layout, not that of the model."""
    given = [save_array(tmp_path, "x", np.ones((3, 2), np.float32)),
             save_array(tmp_path, "z", np.ones((3, 4), np.float32))]
    layout = ["--input-layout", "x=lambda i, j: [j, i]"]
    said = pleat("run", product, *given, *layout, status=1)
    assert "input 'x' [x.0, inner]: dimension 0 is free" in said
    pleat("run", product, *given, *layout, "--dim", "x.0=2", "-o", tmp_path / "y.npz")
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], np.full((2, 4), 3, np.float32))


def test_contents_that_must_be_known(tmp_path):
    """An array also gives the values on which a shape depends."""
    nodes = [helper.make_node("Reshape", ["x", "to"], ["y"])]
    model = save_model(tmp_path / "m.onnx", nodes,
                       [value_info("x", ["n", 3]), value_info("to", [2], TensorProto.INT64)],
                       [value_info("y", [None, None])])
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    given = [save_array(tmp_path, "x", x), save_array(tmp_path, "to", np.array([2, -1]))]
    pleat("run", model, *given, "-o", tmp_path / "y.npz")
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], x.reshape(2, 6))
    wrong = save_array(tmp_path, "to", np.array([2, -1], np.int32))
    assert "its input 'to' must be known" in pleat("run", model, given[0], wrong, status=1)


def reshape_model(folder):
    nodes = [helper.make_node("Reshape", ["x", "to"], ["y"])]
    return save_model(folder / "m.onnx", nodes,
                      [value_info("x", ["n", 3]), value_info("to", [2], TensorProto.INT64)],
                      [value_info("y", [None, None])])


def test_what_is_compiled_is_for_the_known_contents(tmp_path):
    model = reshape_model(tmp_path)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    first = save_array(tmp_path, "to", np.array([2, -1]))
    save_array(tmp_path, "x", x)
    pleat("compile", model, first, "--dim", "n=4", "-o", tmp_path / "m.pleat")
    pleat("compile", model, first, "--dim", "n=4", "-o", tmp_path / "m.c")
    header = (tmp_path / "m.h").read_text()
    assert header.count("It must hold the contents with which the model was compiled") == 1
    run = ["run", tmp_path / "m.pleat", f"--input=x={tmp_path / 'x.npy'}"]
    pleat(*run, first, "-o", tmp_path / "y.npz")
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], x.reshape(2, 6))
    other = save_array(tmp_path, "to", np.array([6, 2]))
    assert "input 'to' holds other values than those" in pleat(*run, other, status=1)


def test_contents_that_the_compiler_does_not_need_may_change(product, tmp_path):
    given = [save_array(tmp_path, "x", np.ones((3, 2), np.float32)),
             save_array(tmp_path, "z", np.ones((2, 4), np.float32))]
    pleat("compile", product, *given, "-o", tmp_path / "m.pleat")
    pleat("run", tmp_path / "m.pleat", "--fill", "random")


@pytest.mark.parametrize("command", ["plan", "inspect", "check"])
def test_subcommands_that_run_nothing_take_arrays(tmp_path, command):
    model = reshape_model(tmp_path)
    to = save_array(tmp_path, "to", np.array([2, -1]))
    x = save_array(tmp_path, "x", np.ones((4, 3), np.float32))
    pleat(command, model, to, x)
    if command == "plan":
        assert "dimension 0 is free" in pleat(command, model, to, status=1)
    assert "no such input" in pleat(command, model, "--input=q=" + to.split("=", 2)[2], status=1)


def test_inspect_names_the_free_sizes(product):
    lines = [line.split(maxsplit=2) for line in pleat("inspect", product).splitlines()]
    assert lines[1][:2] == ["x", "input"] and "[x.0, inner]" in lines[1][2]
    assert lines[3][:2] == ["y", "output"] and "[?, ?]" in lines[3][2]
    assert lines[4][2].endswith("--dim x.0=1 --dim inner=1 --dim columns=1")
    said = json.loads(pleat("inspect", product, "--json"))
    assert said["free_sizes"] == ["x.0", "inner", "columns"]
    assert [one["shape"] for one in said["inputs"] + said["outputs"]] == [
        ["x.0", "inner"], ["inner", "columns"], [None, None]]
    given = pleat("inspect", product, "--dim", "x.0=2", "--dim", "inner=3", "--dim", "columns=5")
    assert "MatMul" in given and "2x3" in given
    assert "[2, inner]" in pleat("inspect", product, "--dim", "x.0=2")
