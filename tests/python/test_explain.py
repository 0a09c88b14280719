# SPDX-License-Identifier: Apache-2.0
"""Explanations that the commands print about models: messages by operator and shape, what a plan fused and what it
could not, the shares of a run. Needs no ONNX Runtime."""
import json

import pytest
from command import make_model, pleat, value_info

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def info(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(3).random(shape, np.float32), name)


def integers(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def save(folder, nodes, inputs, outputs, weights=(), kind=TensorProto.FLOAT):
    graph = helper.make_graph(nodes, "case", inputs, [info(name, None, kind) for name in outputs],
                              list(weights))
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path


def one_node(folder, op, x, weights=(), **attributes):
    names = ["x", *(w.name for w in weights)]
    return save(folder, [helper.make_node(op, names, ["y"], "the_node", **attributes)],
                [info("x", x)], ["y"], weights)


# ---- Mistakes -----------------------------------------------------------------------------------

WRONG = [
    ("Conv", (1, 4, 8, 8), [weight("w", 8, 3, 3, 3)], {}, "its image has 4 channels"),
    ("Conv", (1, 3, 8, 8), [weight("w", 8, 3, 3, 3), weight("b", 7)], {},
     "needs 8 elements on axis 0 of 'b', which has 7"),
    ("MatMul", (2, 5), [weight("w", 6, 3)], {}, "the inner extents differ: 5 and 6"),
    ("Gemm", (2, 5), [weight("w", 3, 5)], {},
     "the inner extents differ: axis 1 of 'x' and axis 0 of 'w'"),
    ("Add", (2, 5), [weight("w", 4)], {}, "shapes [2, 5] and [4] do not broadcast"),
    ("Reshape", (2, 5), [integers("s", [3, 4])], {},
     "10 elements do not fit the shape [3, 4] of 12"),
    ("Concat", (2, 5), [weight("w", 3, 4)], {"axis": 1}, "'w' differs from 'x' on axis 0"),
    ("BatchNormalization", (1, 4, 3, 3),
     [weight("s", 4), weight("b", 5), weight("m", 4), weight("v", 4)], {},
     "'b' must have one number per channel"),
    ("Gather", (1, 4), [integers("i", [30])], {"axis": 1},
     "its index 30 is outside of axis 1, which has 4 elements"),
    ("Gather", (1, 4), [integers("i", [-5])], {"axis": 1}, "its index -5 is outside of axis 1"),
    ("LSTM", (3, 1, 4), [weight("w", 1, 20, 3), weight("r", 1, 20, 5)], {"hidden_size": 5},
     "'w' must have the shape [1, 20, 4]"),
    ("Squeeze", (1, 4), [integers("a", [1])], {}, "axis 1 of [1, 4] does not have the extent 1"),
]


@pytest.mark.parametrize("op, x, weights, attributes, words", WRONG)
def test_mistakes_name_operator_and_inputs(op, x, weights, attributes, words, tmp_path):
    said = pleat("check", one_node(tmp_path, op, x, weights, **attributes), status=1)
    assert f"error: node 'the_node': {op}: " in said and words in said
    assert f"'x' float32 [{', '.join(map(str, x))}]" in said


def test_names_that_clash_or_miss(tmp_path):
    def said(*nodes, weights=()):
        path = save(tmp_path, [helper.make_node(*node) for node in nodes], [info("x", (2,))],
                    ["y"], weights)
        return pleat("check", path, status=1)
    assert "node 'b': its result 'y' has the name of a result of node 'a'" in said(
        ("Relu", ["x"], ["y"], "a"), ("Relu", ["x"], ["y"], "b"))
    assert "its result 'w' has the name of an input or initializer of the graph" in said(
        ("Relu", ["x"], ["w"], "a"), ("Relu", ["w"], ["y"], "b"), weights=[weight("w", 2)])
    assert "its input 'hiden' is missing: no node, input or initializer of the graph has that " \
           "name; did you mean 'hidden'?" in said(
               ("Relu", ["x"], ["hidden"], "a"), ("Relu", ["hiden"], ["y"], "b"))
    assert said(*(("Add", ["x", f"hiden{i}"], [f"hidden{i}"]) for i in range(500))).count(
        "did you mean") == 10
    path = one_node(tmp_path, "MaxPool", (1, 4, 8, 8), kernel_shape=[3])
    assert "MaxPool: 'kernel_shape' needs 2 integers" in pleat("check", path, status=1)


def test_free_dimensions_are_asked_for_once(tmp_path):
    path = save(tmp_path, [helper.make_node("Add", ["x", "z"], ["a"], "add"),
                           helper.make_node("Mul", ["a", "w"], ["y"], "mul")],
                [info("x", ("batch", "seq")), info("z", ("batch", "seq")),
                 info("w", ("batch", "heads"))], ["y"])
    said = pleat("check", path, status=1)
    assert said.count("error: ") == 2
    assert "give them with --dim batch=1 --dim seq=1 or --input-shape x=1x1" in said
    assert "--dim batch=1 --dim heads=1" in said
    pleat("check", path, "--dim", "batch=2", "--dim", "seq=3", "--dim", "heads=3")


def test_edges_of_known_indices_are_taken(tmp_path):
    path = one_node(tmp_path, "Gather", (1, 4), [integers("i", [-4, 3])], axis=1)
    pleat("verify", path)


def test_one_message_for_what_many_nodes_have(tmp_path):
    nodes = [helper.make_node("Odd", [f"t{i}"], [f"t{i + 1}"], f"odd{i}", domain="com.odd")
             for i in range(9)]
    said = pleat("check", save(tmp_path, nodes, [info("t0", (2,))], ["t9"]), status=1)
    assert said.count("operators of domain 'com.odd'") == 1
    assert "the same: 'odd1', 'odd2', 'odd3', 'odd4', 'odd5', 'odd6' and 2 more" in said


def test_long_rows_are_turned_before_a_convolution_walks_channels(tmp_path):
    """Each channel of a long row is far from the next: reading the row once to turn it is cheaper."""
    path = one_node(tmp_path, "Conv", (1, 256, 3199), [weight("w", 256, 256, 3)], strides=[2])
    plan = json.loads(pleat("plan", path, "--cpu", "avx2", "--json"))
    assert ["x", "run"] in [[rewrite["tensor"], rewrite["when"]] for rewrite in plan["rewrites"]]


# ---- What runs together -------------------------------------------------------------------------

def encoder(folder):
    """Attention's softmax after a product, a normalisation, elementwise operators, a transpose, a
    node that nothing needs. The optimal plan of so few elements stores the transpose."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("Add", ["a", "b1"], ["b"], "bias"),
        helper.make_node("Relu", ["b"], ["c"], "relu"),
        helper.make_node("LayerNormalization", ["c", "scale"], ["d"], "norm"),
        helper.make_node("Transpose", ["d"], ["e"], "turn", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["d", "e"], ["f"], "scores"),
        helper.make_node("Softmax", ["f"], ["g"], "soft"),
        helper.make_node("MatMul", ["d", "w1"], ["h"], "values"),
        helper.make_node("MatMul", ["g", "h"], ["y"], "last"),
        helper.make_node("Exp", ["d"], ["z"], "idle"),
    ]
    return save(folder, nodes, [info("x", (1, 7, 16))], ["y"],
                [weight("w1", 16, 16), weight("b1", 16), weight("scale", 16)])


def test_plan_says_what_is_fused_and_what_is_not(tmp_path):
    path = encoder(tmp_path)
    kernels = {k["name"]: k for k in json.loads(pleat("plan", path, "--policy", "forward", "--json"))["joins"]
               if not k["rewrite"]}
    assert kernels["first"]["operators"] == ["first", "bias", "relu"]
    assert kernels["norm"]["by_rows"] and kernels["soft"]["by_rows"]
    assert not kernels["first"]["by_rows"]
    assert kernels["first"]["because"] == "norm works on whole rows, first on tiles"
    assert kernels["norm"]["because"] == "2 operators read it"
    assert kernels["norm"]["read_by"] == sorted(kernels[k]["kernel"] for k in ("scores", "values"))
    assert kernels["soft"]["because"] == "last needs each element 16 times"
    assert kernels["last"]["because"] == "it is an output"
    assert 0 < kernels["first"]["cycles"] < kernels["scores"]["cycles"] * 100
    table = pleat("plan", path, "--policy", "forward", "--fusion")
    assert "first + bias + relu" in table and "soft, row by row" in table
    text = pleat("plan", path, "--policy", "forward")
    assert "2 of them row by row · 1 only move elements, which are read in place" in text
    assert "1 that no output needs" in text
    assert "  its reader works on whole rows (" in text
    assert "in memory: 2 operators read it" in pleat("plan", path, "--policy", "forward", "--why", "d")


def test_why_of_a_concatenation_and_of_an_unused_input(tmp_path):
    """A tensor that is written part by part is in memory, and so is an input that nothing reads."""
    path = tmp_path / "model.onnx"
    nodes = [helper.make_node("Relu", ["x"], ["a"], "first"), helper.make_node("Exp", ["x"], ["b"], "second"),
             helper.make_node("Concat", ["a", "b"], ["y"], axis=0)]
    onnx.save(make_model(nodes, [value_info("x", [2, 64]), value_info("q", [3])], [value_info("y", [4, 64])]), path)
    text = pleat("plan", path, "--why", "y")
    assert "kernel 1 'first', a part" in text and "kernel 2 'second', a part" in text
    assert "nothing reads it" in pleat("plan", path, "--why", "q")
    for name, uses in (("y", 2), ("q", 0)):
        told = json.loads(pleat("plan", path, "--why", name, "--json"))
        assert not told["fused"] and len(told["uses"]) == uses


def test_reasons_against_fusion(tmp_path):
    nodes = [helper.make_node("Softmax", ["x"], ["a"], "soft"),
             helper.make_node("Softmax", ["a"], ["b"], "columns", axis=0),
             helper.make_node("Mul", ["z", "b"], ["d"], "wide"),
             helper.make_node("Cast", ["d"], ["e"], "cast", to=TensorProto.DOUBLE),
             helper.make_node("CumSum", ["e", "axis"], ["f"], "running"),
             helper.make_node("Neg", ["f"], ["y"], "neg")]
    path = save(tmp_path, nodes, [info("x", (5, 700)), info("z", (5, 700))], ["y"],
                [integers("axis", [0])], TensorProto.DOUBLE)
    because = [k["because"] for k in json.loads(pleat("plan", path, "--json"))["joins"]]
    assert "cast works on whole rows, soft on rows of its own" in because
    assert "running writes its elements in an order" in because


def test_reasons_of_reductions_and_repetitions(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["a"], "product"),
             helper.make_node("ReduceSum", ["a", "axis"], ["b"], "sum"),
             helper.make_node("Tile", ["b", "times"], ["y"], "wide")]
    path = save(tmp_path, nodes, [info("x", (5, 7))], ["y"],
                [weight("w1", 7, 7), integers("axis", [1]), integers("times", [3, 1])])
    because = [k["because"] for k in json.loads(pleat("plan", path, "--json"))["joins"]]
    assert "sum is a reduction, which starts a kernel" in because
    assert any("repeats or concatenates its elements" in text for text in because)


def test_inspect_places_every_operator(tmp_path):
    lines = {line.split()[0]: line for line in pleat("inspect", encoder(tmp_path), "--policy", "forward").splitlines()}
    assert " LayerNormalization " in lines["norm"] and "kernel:" in lines["norm"]
    number = lines["scores"].split("kernel:")[1]
    assert lines["turn"].endswith(f"read-by:{number}")
    assert lines["idle"].endswith("unused")


# ---- Layouts under another shape ----------------------------------------------------------------

RESHAPES = [
    ("n,h,w -> n,h,w", "Nx7xW", "N*7xW", "i0//7, i0%7, i1"),
    ("n,c,h,w -> n,c//16,h,w,c%16", "Nx30x7xW", "N*30x7*W",
     "i0//30, i0%30//16, i1//W, i1%W, i0%30%16"),
    ("n,c -> n,c//16,c%16", "Nx48", "Nx3x16", "i0, i1, i2"),
    ("n,c -> n,c//16,c%16", "Nx48", "3x16xN", None),
    ("i,j -> i//4,j,i%4", "8xW", "8*W", None),
    ("n,h,w,c -> c,n,w,h", "Nx7xWx48", "7*N*Wx3x16", None),
    ("n,h,w -> n,h,w^(h%2)", "NxWx8", "N*Wx2x4", None),
    ("i,j -> i,j^(i%8)", "64x64", "4096", "i0//64, i0//8%8*8 + (i0%8 ^ i0//64%8)"),
    ("n,c,h,w -> n,c//16,h,w,c%16", "1x30x7x7", "30x49", "0, i0//16, i1//7, i1%7, i0%16"),
]


@pytest.mark.parametrize("layout, shape, other, short", RESHAPES)
def test_reshaped_layouts_are_short_and_right(layout, shape, other, short):
    """The same place for the same row-major number, for several sizes; the text is the short one."""
    line = pleat("layout", layout, "--shape", shape, "--reshape", other).splitlines()[0]
    text = line.split(" -> ")[1].split(" in ")[0]
    assert short in (None, text)
    names, body = layout.split(" -> ")
    for n, w in ((1, 1), (2, 3), (5, 4), (3, 17)):
        sizes = {"N": n, "W": w}
        # pylint: disable=eval-used
        old = [eval(e, {}, sizes) for e in shape.split("x")]
        new = [eval(e, {}, sizes) for e in other.split("x")]
        before = dict(zip(names.split(","), np.indices(old).reshape(len(old), -1)))
        after = {f"i{d}": v for d, v in enumerate(np.indices(new).reshape(len(new), -1))}
        left, right = eval(body, {}, {**sizes, **before}), eval(text, {}, {**sizes, **after})
        for a, b in zip(left if isinstance(left, tuple) else (left,), right, strict=True):
            assert np.array_equal(np.broadcast_to(a, b.shape if np.ndim(b) else np.shape(a)),
                                  np.broadcast_to(b, np.shape(a)))
