# SPDX-License-Identifier: Apache-2.0
"""Models and arrays that are damaged, absurd or hostile, through the command: each meets a located
message and exit status 1, at once, in little memory, and leaves no file behind."""
import os
import pathlib
import resource
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
SECONDS = 60
MEMORY = 400 << 20  # of address space beyond what any model needs; code generation is not reached
SANITIZED = b"__asan_init" in pathlib.Path(PLEAT).read_bytes()


def limit_memory():
    if not SANITIZED:  # the address sanitizer reserves terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def refused(folder, *arguments):
    """The message of a refusal, after which the folder holds the same files."""
    before = sorted(path.name for path in folder.rglob("*"))
    done = subprocess.run([PLEAT, *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=SECONDS, preexec_fn=limit_memory, cwd=folder)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert "error: " in done.stderr and done.stdout == ""
    assert sorted(path.name for path in folder.rglob("*")) == before
    return done.stderr


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "case", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def fused(op, shapes, kinds, weights=(), **attributes):
    """A model of one node of com.microsoft, of inputs whose types are `kinds` or float32."""
    def build():
        inputs = [info(name, shapes[name], kinds.get(name, TensorProto.FLOAT)) for name in shapes]
        names = [*shapes, *(w.name for w in weights)]
        made = model([node(op, names, domain="com.microsoft", **attributes)], inputs,
                     [info("y", None)], weights)
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return made
    return build


def node(op, inputs, output="y", name="the_node", **attributes):
    return helper.make_node(op, inputs, [output], name, **attributes)


def weight(name, shape, **fields):
    tensor = numpy_helper.from_array(np.zeros(shape, np.float32), name)
    for key, value in fields.items():
        if key == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, key, value)
    return tensor


def external(name, shape, **pairs):
    tensor = weight(name, shape)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in pairs.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def attribute_of_wrong_type():
    bad = node("Conv", ["x", "w"])
    bad.attribute.extend([helper.make_attribute("strides", "two")])
    return model([bad], [info("x", [1, 3, 8, 8])], [info("y", None)], [weight("w", (4, 3, 3, 3))])


def attribute_of_a_wrong_length():
    bad = node("Conv", ["x", "w"], strides=[1, 1, 1])
    return model([bad], [info("x", [1, 3, 8, 8])], [info("y", None)], [weight("w", (4, 3, 3, 3))])


def conv(**attributes):
    return lambda: model([node("Conv", ["x", "w"], **attributes)], [info("x", [1, 3, 8, 8])],
                         [info("y", None)], [weight("w", (4, 3, 3, 3))])


def relu(shape, kind=TensorProto.FLOAT):
    return lambda: model([node("Relu", ["x"])], [info("x", shape, kind)], [info("y", None)])


def deep_chain():
    """Not nested: only long; what is refused is its last node."""
    nodes = [node("Relu", [f"t{i}"], f"t{i + 1}", f"n{i}") for i in range(3000)]
    return model(nodes + [node("NonZero", ["t3000"])], [info("t0", [1, 4])],
                 [info("y", None, TensorProto.INT64)])


def varint(value):
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def field(number, payload):
    """A field of a protocol buffer whose payload has its length before it."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


class DeepNesting:
    """An `If` in an `If` in an `If`, deeper than protobuf's own library would write."""

    @staticmethod
    def SerializeToString():  # noqa: N802, as protobuf has it
        graph = field(2, b"leaf")
        for _ in range(5000):
            attribute = field(1, b"then_branch") + varint(20 << 3) + varint(5) + field(6, graph)
            graph = field(1, field(4, b"If") + field(3, b"the_node") + field(5, attribute))
        return varint(1 << 3) + varint(8) + field(7, graph) + field(8, varint(2 << 3) + varint(17))


def reshape(target):
    return lambda: model([node("Reshape", ["x", "s"])], [info("x", [2, 6])], [info("y", None)],
                         [numpy_helper.from_array(np.array(target, np.int64), "s")])


def with_weight(tensor):
    return lambda: model([node("Add", ["x", "w"])], [info("x", [2, 3])], [info("y", None)],
                         [tensor()])


def pads_that_overflow():
    big = 1 << 62
    return model([node("Conv", ["x", "w"], pads=[big, big, big, big])], [info("x", [1, 3, 8, 8])],
                 [info("y", None)], [weight("w", (4, 3, 3, 3))])


CASES = {
    "cycle": (lambda: model([node("Relu", ["b"], "a", "first"), node("Relu", ["a"], "b", "second")],
                            [info("x", [2])], [info("b", [2])]), "cycle"),
    "missing input": (lambda: model([node("Add", ["x", "absent"])], [info("x", [2])],
                                    [info("y", [2])]), "absent"),
    "too few inputs": (lambda: model([node("Conv", ["x"])], [info("x", [1, 3, 8, 8])],
                                     [info("y", None)]), "the_node"),
    "output that nothing writes": (lambda: model([node("Relu", ["x"], "z")], [info("x", [2])],
                                                 [info("y", [2])]), "'y'"),
    "wrong type": (lambda: model([node("Add", ["x", "i"])],
                                 [info("x", [2]), info("i", [2], TensorProto.INT64)],
                                 [info("y", None)]), "the_node"),
    "wrong shape": (lambda: model([node("MatMul", ["x", "w"])], [info("x", [2, 3])],
                                  [info("y", None)], [weight("w", (4, 5))]), "the_node"),
    "shapes that do not broadcast": (lambda: model([node("Add", ["x", "z"])],
                                                   [info("x", [2, 3]), info("z", [2, 4])],
                                                   [info("y", None)]), "the_node"),
    "absurd dimension": (relu([1 << 60]), "'x'"),
    "product that overflows": (relu([1 << 40, 1 << 40]), "'x'"),
    "absurd output": (lambda: model([node("MatMul", ["x", "z"])],
                                    [info("x", [1 << 24, 1]), info("z", [1, 1 << 24])],
                                    [info("y", None)]), "the_node"),
    "absurd length to rotate": (
        fused("RotaryEmbedding", {"x": [1, 1 << 33, 8], "p": [1], "c": [16, 4], "s": [16, 4]},
              {"p": TensorProto.INT64}), "8589934592 positions"),
    "absurd number of keys": (
        fused("Attention", {"x": [1, 1 << 33, 8], "w": [8, 24], "b": [24], "m": [1]},
              {"m": TensorProto.INT32}, num_heads=2), "8589934592 positions"),
    "absurd length of a cache": (
        fused("GroupQueryAttention",
              {"q": [1, 1, 8], "k": [1, 1, 8], "v": [1, 1, 8], "pk": [1, 2, 1 << 33, 4],
               "pv": [1, 2, 1 << 33, 4], "l": [1]}, {"l": TensorProto.INT32},
              [numpy_helper.from_array(np.array(5, np.int32), "t")], num_heads=2, kv_num_heads=2),
        "8589934592 positions"),
    "negative dimension": (relu([-3, 2]), "'x'"),
    "type without a meaning": (relu([2], 99), "'x'"),
    "strings": (relu([2], TensorProto.STRING), "'x'"),
    "negative size of a weight": (with_weight(lambda: weight("w", (2, 3), dims=[-2, 3])), "'w'"),
    "weight of an absurd size": (with_weight(lambda: weight("w", (2, 3), dims=[1 << 60])), "'w'"),
    "weight whose size overflows": (with_weight(
        lambda: weight("w", (2, 3), dims=[1 << 32, 1 << 32])), "'w'"),
    "weight with too little data": (with_weight(lambda: weight("w", (2, 3), dims=[2, 300])), "'w'"),
    "weight with too much data": (with_weight(lambda: weight("w", (20, 3), dims=[2, 3])), "'w'"),
    "negative stride": (conv(strides=[-1, 1]), "the_node"),
    "stride 0": (conv(strides=[0, 1]), "the_node"),
    "dilation 0": (conv(dilations=[0, 1]), "the_node"),
    "negative group": (conv(group=-2), "the_node"),
    "group 0": (conv(group=0), "the_node"),
    "negative pads": (conv(pads=[-9, 0, 0, 0]), "the_node"),
    "window outside": (conv(dilations=[100, 100]), "the_node"),
    "pads that overflow": (pads_that_overflow, "the_node"),
    "attribute of a wrong type": (attribute_of_wrong_type, "the_node"),
    "attribute of a wrong length": (attribute_of_a_wrong_length, "the_node"),
    "deep nesting": (DeepNesting, "deep"),
    "long chain": (deep_chain, "NonZero"),
    "reshape to another size": (reshape([5, 5]), "the_node"),
    "reshape twice unknown": (reshape([-1, -1]), "the_node"),
    "reshape to a negative size": (reshape([-2, 6]), "the_node"),
    "reshape to an absurd size": (reshape([1 << 40, 1 << 40]), "the_node"),
    "external data absent": (with_weight(
        lambda: external("w", (2, 3), location="absent.bin", offset=0, length=24)), "absent.bin"),
    "external data outside": (with_weight(
        lambda: external("w", (2, 3), location="../" * 12 + "etc/passwd", length=24)), "outside"),
    "external data at an absolute path": (with_weight(
        lambda: external("w", (2, 3), location="/etc/passwd", length=24)), "absolute"),
    "external data past the end": (with_weight(
        lambda: external("w", (2, 3), location="m.onnx", offset=1 << 40, length=24)), "'w'"),
    "external data of a negative offset": (with_weight(
        lambda: external("w", (2, 3), location="m.onnx", offset=-8, length=24)), "'w'"),
    "external data that overflow": (with_weight(
        lambda: external("w", (2, 3), location="m.onnx", offset=(1 << 63) - 4, length=24)), "'w'"),
    "external data of another length": (with_weight(
        lambda: external("w", (2, 3), location="m.onnx", offset=0, length=23)), "'w'"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("command", ["run", "compile"])
def test_model(name, command, tmp_path):
    build, words = CASES[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(build().SerializeToString())
    options = ["--fill", "random", "-o", "out.npz"] if command == "run" else ["-o", "out.c"]
    said = refused(tmp_path, command, path.name, *options)
    assert "m.onnx: error: " in said and words in said
    assert said.count("error: ") == 1


def test_not_onnx(tmp_path):
    for name, data in {"text.onnx": b"import numpy\n" * 9, "zip.onnx": b"PK\3\4" + bytes(99),
                       "empty.onnx": b"", "zeros.onnx": bytes(4096),
                       "length.onnx": b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(9)}.items():
        (tmp_path / name).write_bytes(data)
        assert f"{name}: error: " in refused(tmp_path, "run", name, "--fill", "zero")
    for command in ("inspect", "verify", "bench", "plan"):
        assert "text.onnx: error: " in refused(tmp_path, command, "text.onnx")


def test_no_file(tmp_path):
    assert "absent.onnx: error: " in refused(tmp_path, "run", "absent.onnx", "--fill", "zero")
    assert "error: " in refused(tmp_path, "run", ".", "--fill", "zero")


def test_every_truncation(tmp_path):
    """No prefix of a model crashes the command or is taken for the whole."""
    whole = conv()().SerializeToString()
    for size in range(0, len(whole), 13):
        (tmp_path / "cut.onnx").write_bytes(whole[:size])
        refused(tmp_path, "run", "cut.onnx", "--fill", "zero", "-o", "out.npz")


ARRAYS = {
    "another shape": np.zeros((3, 2), np.float32),
    "another rank": np.zeros(6, np.float32),
    "another type": np.zeros((2, 3), np.float64),
    "text": np.array([["a"] * 3] * 2),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array(name, tmp_path):
    (tmp_path / "m.onnx").write_bytes(relu([2, 3])().SerializeToString())
    np.save(tmp_path / "x.npy", ARRAYS[name])
    said = refused(tmp_path, "run", "m.onnx", "--input", "x=x.npy", "-o", "out.npz")
    assert "x.npy" in said


def test_array_of_an_absurd_size(tmp_path):
    (tmp_path / "m.onnx").write_bytes(relu([2, 3])().SerializeToString())
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 3), }"
    header += b" " * (117 - len(header)) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header + bytes(24))
    assert "x.npy: error: " in refused(tmp_path, "run", "m.onnx", "--input", "x=x.npy")


def test_free_size_that_is_absurd(tmp_path):
    (tmp_path / "m.onnx").write_bytes(relu(["batch", 3])().SerializeToString())
    for size in ("1152921504606846976", "-1", "many", "9999999999999999999999"):
        refused(tmp_path, "run", "m.onnx", "--fill", "zero", "--input-shape", f"batch={size}")


SIZES = """
from pleat.script import relax as R, tir as T
@R.function
def main(x: R.Tensor(("n", 4), "float32"), s: R.Shape(["n", "m", 3])):
    n, m = T.int64(), T.int64()
    return R.full(R.shape([n, m]), R.const(2.0, "float32"))
"""


@pytest.mark.parametrize("sizes", [[5], [], 5, [[5, 2, 3]], [5, 2, 4], [6, 2, 3], [5, -2, 3], [5, 2, 3, 1]])
def test_sizes_of_a_function(sizes, tmp_path):
    (tmp_path / "m.py").write_text(SIZES)
    np.save(tmp_path / "x.npy", np.zeros((5, 4), np.float32))
    np.save(tmp_path / "s.npy", np.array(sizes, np.int64))
    said = refused(tmp_path, "run", "m.py", "--input", "x=x.npy", "--input", "s=s.npy")
    assert "s.npy: " in said or "by s.npy" in said
    assert np.ndim(sizes) == 1 and len(sizes) == 3 or "by s.npy" not in said


def test_choice_of_boxes_known_only_at_run_time(tmp_path):
    nodes = [node("Sigmoid", ["x"], "scores", "a"), node("Neg", ["x"], "boxes", "b"),
             node("Greater", ["scores", "half"], "kept", "c"),
             *(node("NonZero", ["kept"], f"places{i}", f"n{i}") for i in range(9)),
             node("GatherND", ["boxes", "places0"], "y", "d"),
             node("Identity", ["boxes"], "z", "e")]
    half = numpy_helper.from_array(np.array(0.5, np.float32), "half")
    onnx.save(model(nodes, [info("x", [3, 4])], [info("y", None), info("z", None)], [half]),
              tmp_path / "m.onnx")
    said = refused(tmp_path, "run", "m.onnx", "--fill", "zero").replace("m.onnx: ", "")
    assert said == (
        "error: node 'n0': NonZero: how many elements it gives must be known when the model is "
        "compiled: give the values from which that follows with --input, "
        "or known= in Python, or end the model before it\n"
        "   it follows from 'x' float32 [3, 4]\n"
        "note: 4 of 14 operators need none of that: the model can end with these tensors "
        "(onnx.utils.extract_model)\n"
        "   'kept' bool [3, 4]\n   'boxes' float32 [3, 4]\n   'z' float32 [3, 4]\n")


KERNELS = {
    "absurd buffer": 'A: T.Buffer((1152921504606846976,), "float32")',
    "overflowing buffer": 'A: T.Buffer((1099511627776, 1099511627776), "float32")',
    "negative buffer": 'A: T.Buffer((-4,), "float32")',
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name, tmp_path):
    text = ("from pleat.script import tir as T\n\n@T.prim_func\ndef f(%s):\n"
            "    for i in range(4):\n        with T.block(\"b\"):\n"
            "            vi = T.axis.spatial(4, i)\n            A[%s] = T.float32(1)\n")
    index = "vi, vi" if "overflowing" in name else "vi"
    (tmp_path / "k.py").write_text(text % (KERNELS[name], index))
    refused(tmp_path, "run", "k.py", "--fill", "zero", "-o", "out.npz")


def test_kernel_that_nests_without_end(tmp_path):
    deep = "(" * 100000 + "1" + ")" * 100000
    (tmp_path / "k.py").write_text(
        "from pleat.script import tir as T\n\n@T.prim_func\n"
        f"def f(A: T.Buffer((4,), \"int32\")):\n    A[0] = {deep}\n")
    assert "k.py:5:" in refused(tmp_path, "run", "k.py", "--fill", "zero")
