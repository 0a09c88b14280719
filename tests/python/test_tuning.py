# SPDX-License-Identifier: Apache-2.0
"""Tuning records: files of schedules of kernels, with the layouts that they give the kernels' tensors.
What `plan --write-tuning` writes gives the same plan again, the planner prices records as stated, and
records that do not fit are refused at their place."""
import json
import re
import shutil
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from built import skip_sanitized  # noqa: E402
from command import PLEAT, pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

HEAD = "from pleat.script import tir as T\n"
# The image of the second convolution in blocks of 5 channels of 13, which the planner does not propose.
IN_BLOCKS = '''
@tuning.record("second"{})
def blocks(sch):
    b = sch.get_block("conv2d")
    sch.transform_layout(b, ("read", 0), lambda n, c, h, w: [n, c // 5, h, w, c % 5])
    sch.transform_layout(b, ("write", 0), lambda n, c, h, w: [n, h, w, c])
'''


@pytest.fixture(name="net")
def net_of(tmp_path):
    """Two convolutions with a Relu after the first one: 3, 13 and 7 channels of 9 x 5."""
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.standard_normal(shape).astype("float32"), name)
               for name, shape in (("w", (13, 3, 3, 3)), ("v", (7, 13, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["b"], "relu"),
             helper.make_node("Conv", ["b", "v"], ["y"], "second")]
    return save_model(tmp_path / "net.onnx", nodes, [value_info("x", [2, 3, 9, 5])],
                      [value_info("y", [2, 7, 9, 5])], weights)


def plan_of(net, *options):
    """The plan as JSON, and as a list of its kernels, with their layouts as `plan` prints them."""
    plan = json.loads(pleat("plan", net, "--json", *options))
    heads = re.findall("# kernel ([0-9]+) '.*': (.*)\n", pleat("plan", net, "--schedules", *options))
    kernels = plan["joins"]
    for kernel in kernels:
        found = [text for number, text in heads if int(number) == kernel["kernel"]]
        kernel["layouts"] = [part.split(" ", 1)[1] for part in re.split(", | -> ", found[0])] \
            if found else None
    return plan, kernels


def records(tmp_path, text):
    path = tmp_path / "records.py"
    path.write_text(HEAD + text)
    return path


def steps_of(net, *options):
    """The steps of all kernels; the notes beside them, such as why one has no vectors, may differ."""
    lines = pleat("plan", net, "--schedules", *options).splitlines()
    return [line for line in lines if not line.startswith("# not vectorised")]


def round_trip(net, tmp_path):
    """The plan, its records, and how many kernels have one."""
    path = tmp_path / "written.py"
    _, plain = plan_of(net, "--write-tuning", path)
    if "@tuning.record" not in path.read_text():
        return 0
    _, tuned = plan_of(net, "--tuning", path, "--write-tuning", tmp_path / "again.py")
    assert (tmp_path / "again.py").read_text() == path.read_text()
    assert [k["layouts"] for k in tuned] == [k["layouts"] for k in plain]
    assert steps_of(net, "--tuning", path) == steps_of(net)
    pleat("verify", net, "--tuning", path)
    return sum("record" in kernel for kernel in tuned)


def test_measured_cycles(net, tmp_path):
    """`bench` writes the records of `plan`, with the cycles of each kernel, at which the planner then
    prices them. Fewer of the loops are parallel for one thread."""
    def lines_of(text):
        return [line for line in text.splitlines()[3:] if "sch.parallel(" not in line]

    pleat("plan", net, "--write-tuning", tmp_path / "plain.py")
    path = tmp_path / "measured.py"
    pleat("bench", net, "--threads", "1", "--repeat", "3", "--write-tuning", path)
    cycles = [int(n) for n in re.findall(r"@tuning.record\(program_\d+, cycles=(\d+)\)", path.read_text())]
    without = re.sub(r", cycles=\d+", "", path.read_text())
    assert lines_of(without) == lines_of((tmp_path / "plain.py").read_text())
    _, tuned = plan_of(net, "--tuning", path)
    assert len(cycles) == 2 and all(0 < n < 1e9 for n in cycles)
    assert all("record" not in k or k["cycles"] in cycles for k in tuned)
    pleat("verify", net, "--tuning", path)


def test_cycles_are_those_of_one_core(net, tmp_path):
    path = tmp_path / "measured.py"
    message = pleat("bench", net, "--threads", "2", "--write-tuning", path, status=1)
    assert "measure with --threads 1" in message and not path.exists()


def test_round_trip(net, tmp_path):
    assert round_trip(net, tmp_path) == 2
    assert "tuned: 2 of 2 kernels by records of " in pleat("plan", net, "--tuning",
                                                           tmp_path / "written.py")


def test_round_trip_of_digits(tmp_path):
    assert round_trip("examples/digits/digits.onnx", tmp_path) == 13


# With the records of seed 9, a plan is found that costs 675 cycles in place of 677.
@pytest.mark.parametrize("seed", [*range(1, 9), *range(10, 14)])
def test_round_trip_of_random_graphs(seed, tmp_path):
    import random_onnx
    model = random_onnx.random_model(seed)
    if model is not None:
        onnx.save(model, tmp_path / "case.onnx")
        round_trip(tmp_path / "case.onnx", tmp_path)


def test_requirement(net, tmp_path):
    """A record without cycles is used: the layouts of the tensors around its kernel are its own."""
    path = records(tmp_path, IN_BLOCKS.format(""))
    for policy in ("optimal", "forward", "backward", "none"):
        _, kernels = plan_of(net, "--tuning", path, "--policy", policy)
        kernel = next(k for k in kernels if k["name"] == "second")
        assert kernel["record"] == f"{path}:3"
        assert kernel["layouts"] == ["NCHW5c", "OIHW", "NHWC"]
        pleat("verify", net, "--tuning", path, "--policy", policy)
    assert "second has a tuning record with another layout" in pleat(
        "plan", net, "--tuning", path, "--why", "y=NHCW")


@pytest.mark.parametrize("cycles, used", [(10, True), (1e9, False)])
def test_price(net, tmp_path, cycles, used):
    """A record with cycles is used where the plan is cheaper with it, at that price. Where half vectors
    cost less, the plan with the record's rewrites is dearer at any price."""
    path, cpu = records(tmp_path, IN_BLOCKS.format(f", cycles={cycles}")), ("--cpu", "avx2")
    plan, kernels = plan_of(net, "--tuning", path, *cpu)
    kernel = next(k for k in kernels if k["name"] == "second")
    assert (kernel.get("record") == f"{path}:3") == used
    assert used == (kernel["cycles"] == 10)
    plain, _ = plan_of(net, *cpu)
    assert plan["cost"] < plain["cost"] if used else plan["cost"] == plain["cost"]
    pleat("verify", net, "--tuning", path, *cpu)


def test_the_cheaper_of_two_records(net, tmp_path):
    path = records(tmp_path, IN_BLOCKS.format(", cycles=2000") +
                   IN_BLOCKS.format(", cycles=15").replace("// 5", "// 4").replace("% 5", "% 4"))
    kernel = next(k for k in plan_of(net, "--tuning", path)[1] if k["name"] == "second")
    assert kernel["cycles"] == 15 and kernel["layouts"][0] == "NCHW4c"


def test_whole_kernel(net, tmp_path):
    """A record for fused operators is used with all of them or with none, and `last` cuts them off."""
    body = "def fused(sch):\n    pass\n"
    for cycles, kernels in (("", 2), (", cycles=1", 2)):
        path = records(tmp_path, f'@tuning.record("first"{cycles})\n{body}')
        found = [k for k in plan_of(net, "--tuning", path)[1] if not k["rewrite"]]
        assert found[0]["operators"] == ["first", "relu"] and found[0]["record"]
        assert len(found) == kernels
        pleat("verify", net, "--tuning", path)
    path = records(tmp_path, f'@tuning.record("first", last="first")\n{body}')
    _, found = plan_of(net, "--tuning", path)
    assert [k["operators"] for k in found if not k["rewrite"]][:2] == [["first"], ["relu"]]
    pleat("verify", net, "--tuning", path)


def test_another_model_with_the_same_kernel(net, tmp_path):
    """Records of programs are for every kernel of that structure, whatever its name."""
    path = tmp_path / "written.py"
    pleat("plan", net, "--write-tuning", path)
    model = onnx.load(net)
    for node in model.graph.node:
        node.name = "other_" + node.name
    model.graph.node.append(helper.make_node("Exp", ["y"], ["z"], "exp"))
    model.graph.output[0].name = "z"
    onnx.save(model, tmp_path / "other.onnx")
    _, found = plan_of(tmp_path / "other.onnx", "--tuning", path)
    assert [k["name"] for k in found if "record" in k] == ["other_first", "other_second"]
    pleat("verify", tmp_path / "other.onnx", "--tuning", path)


@pytest.mark.skipif(not shutil.which("cbc"), reason="CBC is not installed")
def test_another_solver_agrees(net, tmp_path):
    import test_integer_program
    text = IN_BLOCKS.format(", cycles=10") + '@tuning.record("first", cycles=77)\ndef f(sch):\n    pass\n'
    path = records(tmp_path, text)
    for options in ((), ("--desired-layout", "second:data=NHWC")):
        assert test_integer_program.agree(onnx.load(net), tmp_path, "--tuning", str(path), *options)


STEP = ("    b = sch.get_block('conv2d')\n"
        "    sch.transform_layout(b, ('{}', {}), lambda {}: [{}]{})\n")
MAP = ("n, c, h, w", "n, c // 4, h, w, c % 4")
WRONG = [
    ('@tuning.record("secnd")\ndef s(sch):\n    pass\n', "2:2", "did you mean 'second'?"),
    ('@tuning.record("first", last="second")\ndef s(sch):\n    pass\n', "2:2",
     "these can be fused: 'first', 'relu'"),
    ('@tuning.record("second")\ndef s(sch):\n    sch.get_block("conv")\n', "4:5",
     "no block 'conv'"),
    ('@tuning.record("second")\ndef s(sch):\n    sch.no_such(1)\n', "4:5", "no step 'no_such'"),
    ('@tuning.record("second", cycles="3")\ndef s(sch):\n    pass\n', "2:33", "number of cycles"),
    ('@tuning.record("second", cycles=1e300)\ndef s(sch):\n    pass\n', "2:33", "at most 1e15"),
    ('@tuning.record("second", seconds=3)\ndef s(sch):\n    pass\n', "2:26", "seconds"),
    ('@tuning.record("second", last=3)\ndef s(sch):\n    pass\n', "2:31", "as a string"),
    ("@tuning.record(program)\ndef s(sch):\n    pass\n", "2:16", "no program 'program'"),
    ("@tuning.record(3)\ndef s(sch):\n    pass\n", "2:16", "or a program"),
    ("@tuning.record\ndef s(sch):\n    pass\n", "2:2", "expected @tuning.record"),
    ('@tuning.record("second")\ndef s(sch, more):\n    pass\n', "3:1", "one argument"),
    ("def s(sch):\n    pass\n", "2:1", "marked @tuning.record"),
    ("x = 3\n", "2:1", "marked @tuning.record"),
    ("", "1:1", "no record"),
    ('@tuning.record("second"\n', "2:15", "never closed"),
    ('@tuning.record("second")\ndef s(sch):\n' + STEP.format("read", 0, *MAP, ", pad_value=0"), "2:2",
     "relies on padding of 0 in 'b'"),
    ('@tuning.record("second")\ndef s(sch):\n' + STEP.format("read", 1, *MAP, ", pad_value=3"), "2:2",
     "relies on padding of 3 in 'v'"),
    ('@tuning.record("second")\ndef s(sch):\n' + STEP.format("read", 0, MAP[0], "n, c // 4, h, w, c % 2", ""),
     "5:5", "not injective"),
]


@pytest.mark.parametrize("text, place, message", WRONG)
def test_refused_at_its_place(net, tmp_path, text, place, message):
    path = records(tmp_path, text)
    errors = pleat("plan", net, "--tuning", path, status=1)
    assert f"{path}:{place}: error: " in errors and message in errors


@pytest.mark.parametrize("options, message", [
    (["--desired-layout", "second:data=NHWC"], "a layout is asked for that its schedule does not have"),
    (["--keep-layout=b"], "'b' keeps its layout")])
def test_other_constraints(net, tmp_path, options, message):
    path = records(tmp_path, IN_BLOCKS.format(""))
    assert message in pleat("plan", net, "--tuning", path, *options, status=1)


def test_two_requirements_for_one_stage(net, tmp_path):
    """Kernels that share a stage and are both required: the stages after the shared one decide."""
    text = ('@tuning.record("first", last="first")\ndef s(sch):\n    pass\n'
            '@tuning.record("relu", last="relu")\ndef t(sch):\n    pass\n'
            '@tuning.record("first")\ndef u(sch):\n    pass\n')
    _, kernels = plan_of(net, "--tuning", records(tmp_path, text))
    places = [k["record"].split(":")[-1] for k in kernels if "record" in k]
    assert places in (["2", "5"], ["8"])


def test_written_code(net, tmp_path):
    """A saved model and C have the schedule of the record; `run` gives the same with and without."""
    path = records(tmp_path, IN_BLOCKS.format(""))
    np.save(tmp_path / "x.npy", np.random.default_rng(2).standard_normal((2, 3, 9, 5), "float32"))
    given = ("--input", f"x={tmp_path / 'x.npy'}", "-o")
    pleat("run", net, *given, tmp_path / "plain.npz")
    pleat("run", net, "--tuning", path, *given, tmp_path / "tuned.npz")
    pleat("compile", net, "--tuning", path, "-o", tmp_path / "net.pleat")
    pleat("run", tmp_path / "net.pleat", *given, tmp_path / "saved.npz")
    want = np.load(tmp_path / "plain.npz")["y"]
    for name in ("tuned", "saved"):
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npz")["y"], want, rtol=1e-5, atol=1e-5)
    done = subprocess.run([PLEAT, "run", str(tmp_path / "net.pleat"), "--tuning", str(path)],
                          capture_output=True, text=True)
    assert done.returncode and "--tuning" in done.stderr


def test_python(net, tmp_path):
    skip_sanitized()
    own = pytest.importorskip("pleat")
    path = records(tmp_path, IN_BLOCKS.format(""))
    plan = own.plan(net, tuning=path)
    assert [kernel.record for kernel in plan.kernels if kernel.name == "second"] == [f"{path}:3"]
    x = np.random.default_rng(3).standard_normal((2, 3, 9, 5), "float32")
    np.testing.assert_allclose(own.compile(net, tuning=str(path), cache=False).run({"x": x})[0],
                               own.compile(net, cache=False).run({"x": x})[0], rtol=1e-5, atol=1e-5)
    assert own.verify(net, tuning=path).agrees
    with pytest.raises(own.PleatError, match="did you mean 'second'"):
        own.compile(net, tuning=records(tmp_path, WRONG[0][0]))
    with pytest.raises(own.PleatError, match="nothing.py"):
        own.plan(net, tuning=tmp_path / "nothing.py")
