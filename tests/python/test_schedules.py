# SPDX-License-Identifier: Apache-2.0
"""The schedules that `pleat plan --schedules` prints can be replayed: on the kernels of `--programs`
they give the programs that are compiled."""
import re
import subprocess
import sys

import pytest
from command import ROOT, pleat, save_model, value_info


def by_kernel(text):
    """The parts of what `plan` prints of all kernels, without their heads."""
    return [part.split("\n", 1)[1] for part in re.split(r"^# kernel (?=\d+ ')", text, flags=re.M)[1:]]


def renamed(text):
    """Names in order of occurrence, and one space for any: equal for programs of equal structure."""
    names = {}
    text = re.sub(r"^def \w+\(", "def 0(", text)
    text = re.sub(r"(?<![\w.\"])(?!T\b)[A-Za-z_]\w*", lambda m: names.setdefault(m[0], f"x{len(names)}"),
                  text)
    return re.sub(r"\s+", " ", text).strip()


def functions(text):
    """The functions of a module, with names by order. Steps name blocks after buffers, whose names
    have no dots once they were printed."""
    text = re.sub(r'T\.block\("[^"]*"\)', lambda m: m[0].replace(".", "_").replace("_", ".", 1), text)
    return [renamed(part) for part in re.split(r"^@T\.prim_func\n", text, flags=re.M)[1:]]


def model(name, folder):
    if name == "digits":
        return ROOT / "examples" / "digits" / "digits.onnx"
    pytest.importorskip("onnx")
    path = folder / f"{name}.onnx"
    subprocess.check_call([sys.executable, ROOT / "examples/models/build.py", name, path, "--small"])
    return path


@pytest.mark.parametrize("name", ["digits", "mobilenetv2"])
def test_traces_replay(name, tmp_path):
    path = model(name, tmp_path)
    programs = by_kernel(pleat("plan", path, "--programs"))
    schedules = by_kernel(pleat("plan", path, "--schedules"))
    pleat("compile", path, "-o", tmp_path / "compiled.py")
    compiled = functions((tmp_path / "compiled.py").read_text())
    assert len(programs) == len(schedules) == len(compiled) > 5
    for program, schedule, expected in zip(programs, schedules, compiled):
        (tmp_path / "kernel.py").write_text(program)
        (tmp_path / "steps.py").write_text(schedule)
        replayed = pleat("opt", tmp_path / "kernel.py", "--schedule", tmp_path / "steps.py")
        assert functions(replayed) == [expected]


@pytest.mark.parametrize("name", ["mobilenetv2"])
def test_programs_parse_back(name, tmp_path):
    """All kernels together are one file of TVMScript, whatever their nodes are called."""
    (tmp_path / "all.py").write_text(pleat("plan", model(name, tmp_path), "--programs"))
    printed = pleat("opt", tmp_path / "all.py")
    (tmp_path / "again.py").write_text(printed)
    assert pleat("opt", tmp_path / "again.py") == printed
    names = re.findall(r"^def (\w+)\(", printed, flags=re.M) or \
        re.findall(r"^    def (\w+)\(", printed, flags=re.M)
    assert len(names) == len(set(names)) > 5


@pytest.mark.parametrize("channels, into", [(256, 512), (320, 128)])
def test_full_tiles_stay_in_registers(channels, into, tmp_path):
    """A tile that fills the registers of AVX-512 keeps its accumulators there. Where two iterations
    were written out, the weights of the second pushed all of them to memory."""
    onnx = pytest.importorskip("onnx")
    numpy = pytest.importorskip("numpy")
    weights = numpy.zeros((into, channels, 1, 1), numpy.float32)
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, count, 14, 14])
              for name, count in (("x", channels), ("y", into))]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Conv", ["x", "w"], ["y"])], "conv",
                                   values[:1], values[1:],
                                   [onnx.numpy_helper.from_array(weights, "w")])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)],
                                     ir_version=9), tmp_path / "conv.onnx")
    pleat("compile", tmp_path / "conv.onnx", "--cpu", "avx512", "-o", tmp_path / "conv.s")
    text = (tmp_path / "conv.s").read_text()
    assert text.count("vfmadd") > 20
    assert not re.findall(r"\tvmov[au]ps\t.*%zmm\d+, -?\d+\(%rsp\)", text)


ROWS = {  # shapes of x and of b, which is added to it, and how the loops of the sum run
    "flat": ((546, 15), (546, 15), ["fuse", "vectorize", "parallel"]),
    "flat within": ((5, 7, 3), (5, 1, 1), ["fuse", "vectorize"]),
    "one column": ((117, 1), (1,), ["fuse", "vectorize", "parallel"]),
    "divides": ((11, 32), (11, 32), ["split", "vectorize", "parallel"]),
    "short rows": ((13, 7), (7,), ["vectorize", "parallel"]),
    "two": ((13, 2), (2,), ["vectorize", "parallel"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_loops_of_short_rows(name, tmp_path):
    """Where the last axis does not divide into vectors, axes along which all tensors are contiguous
    run as one loop; else a short row is one vector."""
    onnx = pytest.importorskip("onnx")
    shape, other, steps = ROWS[name]
    path = save_model(tmp_path / "sum.onnx", [onnx.helper.make_node("Add", ["x", "b"], ["y"])],
                      [value_info("x", shape), value_info("b", other)], [value_info("y", None)])
    text = pleat("plan", path, "--schedules", "--cpu", "avx512")
    assert "not vectorised" not in text
    made = re.findall(r"sch\.(\w+)", text)
    assert ("fuse" in made) == ("fuse" in steps)
    assert [step for step in made if step in steps] == steps
    assert "agrees" in pleat("verify", path)


def test_parts_of_tensors_run_by_rows(tmp_path):
    """A part of another tensor that is written in place is not contiguous across its rows."""
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node
    path = save_model(tmp_path / "parts.onnx",
                      [node("Exp", ["x"], ["e"], "exp"), node("Neg", ["x"], ["n"], "neg"),
                       node("Concat", ["e", "n"], ["y"], "both", axis=1)],
                      [value_info("x", (13, 37))], [value_info("y", None)])
    text = pleat("plan", path, "--schedules")
    assert "'both'" not in text and "fuse" not in text
    assert "agrees" in pleat("verify", path)


def test_reductions_to_one_number_run_in_vectors(tmp_path):
    """Several axes, none of them left: vectors run along the contiguous one."""
    path = tmp_path / "most.py"
    path.write_text('from pleat.script import relax as R\n@R.function\n'
                    'def main(x: R.Tensor((7, 5, 131), "float32")):\n    with R.dataflow():\n'
                    '        y = R.max(x, axis=[0, 1, 2], keepdims=False)\n        R.output(y)\n    return y\n')
    assert "slow paths      none" in pleat("compile", path, "-o", tmp_path / "most.s")
    assert "agrees with the interpreter" in pleat("verify", path)


def test_a_sum_runs_along_what_is_contiguous(tmp_path):
    """A sum runs over heads and their columns. The columns are innermost, which are contiguous in the
    layout of the input."""
    np, onnx = pytest.importorskip("numpy"), pytest.importorskip("onnx")
    node, values = onnx.helper.make_node, onnx.numpy_helper.from_array
    path = save_model(tmp_path / "heads.onnx",
                      [node("Transpose", ["x"], ["t"], perm=[0, 2, 1, 3]),
                       node("Reshape", ["t", "s"], ["u"]),
                       node("MatMul", ["u", "w"], ["y"], name="product")],
                      [value_info("x", (1, 12, 64, 64))], [value_info("y", (64, 768))],
                      [values(np.ones((768, 768), np.float32), "w"),
                       values(np.array([64, 768]), "s")])
    out = tmp_path / "heads.py"
    pleat("compile", path, "--input-layout", "x=acbd", "--cpu", "avx2", "-o", out)
    text = out.read_text()
    assert re.search(r"for rk_out in range\(12\)", text) and re.search(r"for rk_in in T.serial\(64", text)


def test_vectors_of_a_tile_do_not_share_sets_of_the_cache(tmp_path):
    """Blocks of 4096 bytes follow one another, and so do the rows of 28 KB: 14 vectors of a tile would
    start in the same set of a cache that has 8 or 12 lines in each."""
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node
    path = save_model(tmp_path / "rows.onnx",
                      [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
                       node("MatMul", ["a", "t"], ["y"], name="product")],
                      [value_info("a", (4, 1, 128)), value_info("x", (4, 56, 128))],
                      [value_info("y", (4, 1, 56))])
    options = ["--input-layout", "x=aBc8b", "--cpu", "avx2"]
    text = pleat("plan", path, "--schedules", *options)
    assert "factors=[None, 7, 8]" in text and "factors=[None, 2]" not in text
    assert "agrees" in pleat("verify", path, *options)
