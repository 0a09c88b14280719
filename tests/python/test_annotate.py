# SPDX-License-Identifier: Apache-2.0
"""`pleat plan --onnx`: the plan in a model's metadata, and nothing else of the model changed."""
import os
import pathlib
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))


def annotate(model, output, *options, status=0):
    done = subprocess.run([PLEAT, "plan", str(model), "--onnx", str(output), *options],
                          capture_output=True, text=True, check=False,
                          env=dict(os.environ, TERM="dumb"))
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr


def make_model():
    """Two convolutions under one name, a transpose, an operator of several kernels, a node of no
    name; notes of somebody else and of an earlier run."""
    random = np.random.default_rng(5)

    def weight(name, *shape):
        return numpy_helper.from_array(np.float32(random.standard_normal(shape)), name)

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [helper.make_node("Conv", ["x", "w1"], ["a"], "conv", pads=[1, 1, 1, 1]),
             helper.make_node("Conv", ["a", "w2"], ["b"], "conv"),
             helper.make_node("Relu", ["b"], ["c"], "relu"),
             helper.make_node("Transpose", ["c"], ["t"], "turn", perm=[0, 2, 3, 1]),
             helper.make_node("Softmax", ["t"], ["y"], "soft", axis=1),
             helper.make_node("Neg", ["y"], ["z"]),
             helper.make_node("GRU", ["s", "gates", "again"], ["steps"], "unit", hidden_size=4)]
    graph = helper.make_graph(nodes, "case", [value("x", [1, 3, 11, 13]), value("s", [2, 1, 3])],
                              [value("z", [1, 11, 13, 19]), value("steps", [2, 1, 1, 4])],
                              [weight("w1", 37, 3, 3, 3), weight("w2", 19, 37, 1, 1),
                               weight("gates", 1, 12, 3), weight("again", 1, 12, 4)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"author": "somebody", "pleat.kernels": "of another plan"})
    return model


def notes_of(item):
    return {entry.key: entry.value for entry in item.metadata_props}


def all_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from all_nodes(attribute.g)


def without_notes(model):
    for item in (model, *all_nodes(model.graph)):
        kept = [entry for entry in item.metadata_props if not entry.key.startswith("pleat.")]
        del item.metadata_props[:]
        item.metadata_props.extend(kept)
    return model.SerializeToString()


@pytest.fixture(name="plain")
def make_plain(tmp_path):
    onnx.save(make_model(), tmp_path / "plain.onnx")
    return tmp_path / "plain.onnx"


def test_notes(plain, tmp_path):
    annotate(plain, tmp_path / "noted.onnx")
    model = onnx.load(tmp_path / "noted.onnx")
    onnx.checker.check_model(model, full_check=True)
    first, second, relu, _, _, last, unit = map(notes_of, model.graph.node)
    assert first["pleat.kernel"] != second["pleat.kernel"], "nodes of one name are told apart"
    assert second["pleat.kernel"] == relu["pleat.kernel"]
    assert "x " in first["pleat.reads"] and "w1 " in first["pleat.reads"]
    assert "w1 OIHW -> " in first["pleat.rewrites"]
    count = len(unit["pleat.kernel"].split("\n"))
    assert count > 1
    assert all(len(unit[key].split("\n")) == count
               for key in ("pleat.reads", "pleat.writes", "pleat.cycles"))
    assert last["pleat.writes"].startswith("z ")
    totals = notes_of(model)
    assert totals["author"] == "somebody"
    assert int(totals["pleat.kernels"]) >= int(last["pleat.kernel"].split("\n")[-1])


def test_the_rest_is_kept(plain, tmp_path):
    annotate(plain, tmp_path / "noted.onnx")
    assert without_notes(onnx.load(tmp_path / "noted.onnx")) == without_notes(onnx.load(plain))


def test_again_in_place(plain, tmp_path):
    annotate(plain, tmp_path / "noted.onnx")
    once = (tmp_path / "noted.onnx").read_bytes()
    annotate(tmp_path / "noted.onnx", tmp_path / "noted.onnx")
    assert (tmp_path / "noted.onnx").read_bytes() == once


def make_bodies():
    """A loop of three steps with a condition in it that is known when it runs."""
    def value(name, shape, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, shape)

    def branch(op, name):
        return helper.make_graph([helper.make_node(op, ["sum"], [name], f"{name}_node")], name, [],
                                 [value(name, [8, 8])])

    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "w"], ["product"], "0/product"),
         helper.make_node("Add", ["product", "state"], ["sum"], "sum"),
         helper.make_node("If", ["choose"], ["next"], "pick", then_branch=branch("Exp", "yes"),
                          else_branch=branch("Neg", "no")),
         helper.make_node("Identity", ["on"], ["on_out"], "on")], "body",
        [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL),
         value("state", [8, 8])],
        [value("on_out", [], TensorProto.BOOL), value("next", [8, 8])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", "", "x"], ["y"], "loop", body=body)], "case",
        [value("x", [8, 8]), value("choose", [], TensorProto.BOOL)], [value("y", [8, 8])],
        [numpy_helper.from_array(np.array(3), "count"),
         numpy_helper.from_array(np.ones((8, 8), np.float32), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_bodies(tmp_path):
    onnx.save(make_bodies(), tmp_path / "plain.onnx")
    annotate(tmp_path / "plain.onnx", tmp_path / "noted.onnx")
    model = onnx.load(tmp_path / "noted.onnx")
    notes = {node.name: notes_of(node) for node in all_nodes(model.graph)}
    product = notes["0/product"]["pleat.kernel"].split("\n")
    assert len(product) == len(set(product)) == 3, "one kernel a step"
    assert set(product) == set(notes["sum"]["pleat.kernel"].split("\n"))
    assert len(notes["0/product"]["pleat.reads"].split("\n")) == 3
    assert notes["yes_node"]["pleat.kernel"] and notes["no_node"]["pleat.kernel"]
    assert "none" not in notes["yes_node"]["pleat.kernel"]
    onnx.checker.check_model(model, full_check=True)
    assert without_notes(model) == without_notes(onnx.load(tmp_path / "plain.onnx"))
    once = (tmp_path / "noted.onnx").read_bytes()
    annotate(tmp_path / "noted.onnx", tmp_path / "noted.onnx")
    assert (tmp_path / "noted.onnx").read_bytes() == once


def test_nodes_without_a_kernel_say_why(tmp_path):
    nodes = [helper.make_node("Transpose", ["x"], ["t"], "turn", perm=[1, 0]),
             helper.make_node("MatMul", ["z", "t"], ["y"], "product"),
             helper.make_node("Exp", ["x"], ["idle"], "idle")]
    graph = helper.make_graph(nodes, "case",
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [5, 7])
                               for name in ("x", "z")],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 5])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              tmp_path / "plain.onnx")
    annotate(tmp_path / "plain.onnx", tmp_path / "noted.onnx")
    turn, product, idle = (notes_of(node)["pleat.kernel"]
                           for node in onnx.load(tmp_path / "noted.onnx").graph.node)
    assert turn == "none: only moves elements, which are read in place"
    assert idle == "none: no output needs it" and product.isdigit()


def test_rewrite_at_run_time(plain, tmp_path):
    annotate(plain, tmp_path / "noted.onnx", "--input-layout", "x=NHWC", "--desired-layout",
             "Conv=NCHW")
    first = notes_of(onnx.load(tmp_path / "noted.onnx").graph.node[0])
    assert "x NHWC -> NCHW, at each run: " in first["pleat.rewrites"]


def test_runs_as_before(plain, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model = make_model()
    model.graph.node[1].name = "last"  # which the runtime wants
    onnx.save(model, plain)
    annotate(plain, tmp_path / "noted.onnx")
    random = np.random.default_rng(6)
    inputs = {"x": random.standard_normal((1, 3, 11, 13), np.float32),
              "s": random.standard_normal((2, 1, 3), np.float32)}
    before, after = (runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
                     .run(None, inputs) for path in (plain, tmp_path / "noted.onnx"))
    assert len(before) == 2 and all(map(np.array_equal, before, after))


def test_external_data(tmp_path):
    onnx.save(make_model(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin",
              size_threshold=64)
    annotate(tmp_path / "m.onnx", tmp_path / "noted.onnx")
    model = onnx.load(tmp_path / "noted.onnx")
    assert without_notes(model) == without_notes(onnx.load(tmp_path / "m.onnx"))
    onnx.checker.check_model(str(tmp_path / "noted.onnx"))
    (tmp_path / "other").mkdir()
    said = annotate(tmp_path / "m.onnx", tmp_path / "other" / "noted.onnx", status=1)
    assert "write it to the model's folder" in said
    assert not list((tmp_path / "other").iterdir())


def test_where_nothing_can_be_written(plain, tmp_path):
    assert "cannot write" in annotate(plain, tmp_path / "none" / "noted.onnx", status=1)


def test_script(tmp_path):
    (tmp_path / "m.py").write_text("""\
from pleat.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 7), "float32")) -> R.Tensor((3, 7), "float32"):
        with R.dataflow():
            y: R.Tensor((3, 7), "float32") = R.tanh(x)
            R.output(y)
        return y
""")
    assert "is not an ONNX model" in annotate(tmp_path / "m.py", tmp_path / "n.onnx", status=1)
    assert not (tmp_path / "n.onnx").exists()
