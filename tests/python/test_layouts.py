# SPDX-License-Identifier: Apache-2.0
"""Layouts that the user asks for: results stay those of ONNX Runtime, the graph's inputs and outputs
have the requested layouts, and padding that the caller fills with anything does no harm."""
import ctypes
import json
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from test_models import (PLEAT, Builder, check, concat_of_two, depthwise,  # noqa: E402
                         odd_channels, own_transpose_rank3, pools, reductions, run_pleat,
                         two_layouts_meet)

SPELLINGS = ["NHWC", "NCHW8c", "NCHW3c", "CHWN", "aBcd16b", "n,c,h,w -> n,h//2,w,c,h%2",
             "lambda n, c, h, w: [h, w, c // 4, n, c % 4]", "n,c,h,w -> n,c//4,h,w^(h%2),c%4",
             "n,c,h,w -> n,(c+3)%128,h,w", "n,c,h,w -> n,2*h,w,c"]


BUILDS = [concat_of_two, depthwise, odd_channels(13), pools, reductions, two_layouts_meet,
          own_transpose_rank3]
PAIRS = [(depthwise, layout) for layout in SPELLINGS]
PAIRS += [(build, SPELLINGS[i % 3]) for i, build in enumerate(BUILDS)]


@pytest.mark.parametrize("build,layout", PAIRS)
def test_desired_layout(build, layout, tmp_path):
    """Whatever convolutions are made to read and write, the answer is the same."""
    check(build(), tmp_path, "--desired-layout", f"Conv={layout}")


@pytest.mark.parametrize("layout", ["OIHW", "HWIO", "OIHW16i16o", "OIHW3i8o", "OHWI4o"])
def test_desired_weights(layout, tmp_path):
    check(odd_channels(17)(), tmp_path, "--desired-layout", f"Conv:weight={layout}")


@pytest.mark.parametrize("policy", ["forward", "backward", "none"])
@pytest.mark.parametrize("build", [concat_of_two, odd_channels(13)])
def test_policy(build, policy, tmp_path):
    check(build(), tmp_path, "--policy", policy)


def two_convs():
    b = Builder(x=[2, 3, 7, 5])
    return b.model(b.conv(b("Relu", b.conv("x", 3, 13)), 13, 6))


def results(tmp_path):
    """The model's path, an input, and what ONNX Runtime makes of it."""
    model = two_convs()
    onnx.save(model, tmp_path / "case.onnx")
    x = np.random.default_rng(3).standard_normal((2, 3, 7, 5)).astype(np.float32)
    session = ort.InferenceSession(str(tmp_path / "case.onnx"), providers=["CPUExecutionProvider"])
    return tmp_path / "case.onnx", x, session.run(None, {"x": x})[0], model.graph.output[0].name


def close(have, want):
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_borders(tmp_path):
    path, x, want, name = results(tmp_path)
    got = run_pleat(path, {"x": np.ascontiguousarray(x.transpose(0, 2, 3, 1))}, tmp_path,
                    "--input-layout", "x=NHWC", "--output-layout",
                    f"{name}=n, c, h, w -> w, n, c, h")[name]
    assert got.shape == (5, 2, 6, 7)
    close(got.transpose(1, 2, 3, 0), want)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_padded_borders(poison, tmp_path):
    """The content of the padding of an input is nowhere in the answer."""
    path, x, want, name = results(tmp_path)
    blocked = np.full((2, 1, 7, 5, 8), poison, np.float32)
    blocked[:, 0, :, :, :3] = x.transpose(0, 2, 3, 1)
    got = run_pleat(path, {"x": blocked}, tmp_path, "--input-layout", "x=NCHW8c",
                    "--output-layout", f"{name}=NCHW4c")[name]
    assert got.shape == (2, 2, 7, 5, 4)
    close(got.transpose(0, 1, 4, 2, 3).reshape(2, 8, 7, 5)[:, :6], want)


def test_input_of_another_shape(tmp_path):
    path, x, _, _ = results(tmp_path)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([PLEAT, "run", str(path), "--input", f"x={tmp_path}/x.npy",
                           "--input-layout", "x=NHWC"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "x" in done.stderr and "7" in done.stderr


def test_verify_takes_layouts(tmp_path):
    path, _, _, name = results(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((2, 7, 5, 3), np.float32))
    subprocess.check_call([PLEAT, "verify", str(path), "--input-layout", "x=NHWC",
                           "--output-layout", f"{name}=NCHW4c", "--input",
                           f"x={tmp_path}/x.npy"])


def test_compiled_borders(tmp_path):
    """The calling convention of a compiled file is the physical one."""
    path, x, want, name = results(tmp_path)
    subprocess.check_call([PLEAT, "compile", str(path), "-o", str(tmp_path / "case.c"),
                           "--input-layout", "x=NHWC", "--output-layout", f"{name}=NHWC"])
    header = (tmp_path / "case.h").read_text()
    assert "[2, 7, 5, 3], NHWC of NCHW [2, 3, 7, 5]" in header
    subprocess.check_call(["cc", "-std=gnu11", "-O1", "-march=native", "-shared", "-fPIC", "-o",
                           str(tmp_path / "case.so"), str(tmp_path / "case.c"), "-lm"])
    library = ctypes.CDLL(str(tmp_path / "case.so"))
    size = int(header.split("CASE_ARENA_BYTES ")[1].split()[0])
    memory = ctypes.create_string_buffer(size + 64)
    arena = (ctypes.addressof(memory) + 63) // 64 * 64
    given = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    got = np.empty((2, 7, 5, 6), np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(given.ctypes.data), (ctypes.c_void_p * 1)(got.ctypes.data)
    assert library.case_run(inputs, outputs, ctypes.c_void_p(arena)) == 0
    close(got.transpose(0, 3, 1, 2), want)


def plan(path, *options):
    done = subprocess.run([PLEAT, "plan", str(path), "--json", *options], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def test_border_saves_the_rewrite(tmp_path):
    """A caller that has the input as the convolution reads it pays for no rewrite."""
    path, _, _, _ = results(tmp_path)
    def rewritten(planned):
        return [(r["from"], r["to"]) for r in planned["rewrites"]
                if r["when"] == "run" and r["tensor"] == "x"]

    asked = plan(path, "--desired-layout", "n3:data=NHWC")
    assert rewritten(asked) == [("NCHW", "NHWC")]
    given = plan(path, "--desired-layout", "n3:data=NHWC", "--input-layout", "x=NHWC")
    assert not rewritten(given)
    assert given["cost"] < asked["cost"]


@pytest.mark.parametrize("build", [concat_of_two, depthwise, odd_channels(13), two_layouts_meet])
def test_policies_against_the_optimum(build, tmp_path):
    onnx.save(build(), tmp_path / "case.onnx")
    best = plan(tmp_path / "case.onnx")
    assert best["optimal"] == (best["fusions_decided"] == 0)
    assert best["cost"] == best["lower_bound"] <= best["cost_unplanned"]
    for policy in ("forward", "backward"):
        other = plan(tmp_path / "case.onnx", "--policy", policy)
        assert other["cost"] >= best["cost"]
        assert other["cost"] == best[f"cost_{policy}"]


def normalised(b, x, channels, size):
    """A normalisation over one group of all channels, as PyTorch exports it."""
    flat = b("Reshape", x, b.constant([0, 1, -1]))
    unit = b("InstanceNormalization", flat, b.constant(np.ones(1, np.float32)),
             b.constant(np.zeros(1, np.float32)))
    back = b("Reshape", unit, b.constant([1, channels, size, size]))
    return b("Add", b("Mul", back, b.weight(channels, 1, 1)), b.weight(channels, 1, 1))


def pooling_network(blocks, channels, size):
    """Blocks of a pooling and of two convolutions, each behind a normalisation (PoolFormer)."""
    b = Builder(x=[1, 3, size, size])
    x = b.conv("x", 3, channels, 3)
    for _ in range(blocks):
        y = normalised(b, x, channels, size)
        pool = b("AveragePool", y, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=0)
        x = b("Add", x, b("Mul", b("Sub", pool, y), b.weight(channels, 1, 1)))
        y = b.conv(normalised(b, x, channels, size), channels, 4 * channels, 1)
        gate = b("Add", b("Erf", b("Mul", y, b.constant(np.float32(0.7)))),
                 b.constant(np.float32(1)))
        y = b.conv(b("Mul", y, gate), 4 * channels, channels, 1)
        x = b("Add", x, b("Mul", y, b.weight(channels, 1, 1)))
    return b.model(x)


def test_policies_against_a_large_problem(tmp_path):
    """Where the search ends before it has found a plan, or a good one, the plan is made from those of
    the policies."""
    onnx.save(pooling_network(12, 64, 14), tmp_path / "case.onnx")
    best = plan(tmp_path / "case.onnx")
    assert best["cost"] <= min(best["cost_forward"], best["cost_backward"])
    assert best["lower_bound"] <= best["cost"] < 0.9 * best["cost_unplanned"]


def test_rewrites_are_shared(tmp_path):
    """Two of three users want one other layout, and one a third: two rewrites, not three."""
    b = Builder(x=[1, 8, 6, 7])
    y = b("Relu", b.conv("x", 8, 24))
    users = [b.conv(y, 24, 5 + i) for i in range(3)]
    onnx.save(b.model(*users), tmp_path / "case.onnx")
    nodes = [node.name for node in b.nodes if node.op_type == "Conv"]
    relu = next(node.name for node in b.nodes if node.op_type == "Relu")
    constraints = [f"{relu}:output=NCHW", f"{nodes[1]}:data=NHWC", f"{nodes[2]}:data=NCHW4c",
              f"{nodes[3]}:data=NHWC"]
    options = [part for constraint in constraints for part in ("--desired-layout", constraint)]
    rewrites = plan(tmp_path / "case.onnx", *options)["rewrites"]
    assert sorted(r["to"] for r in rewrites if r["tensor"] == y and r["when"] == "run") == [
        "NCHW4c", "NHWC"]
    check(b.model(*users), tmp_path, *options)


def test_branches_in_two_layouts_join(tmp_path):
    """A residual sum whose operands have different layouts, neither of which can change."""
    b = Builder(x=[2, 9, 5, 7])
    y = b.conv("x", 9, 21)
    total = b("Add", b.conv(y, 21, 21), y)
    model = b.model(b.conv(total, 21, 6))
    first, second = [node.name for node in b.nodes if node.op_type == "Conv"][:2]
    check(model, tmp_path, "--desired-layout", f"{first}:output=NHWC", "--desired-layout",
          f"{second}:output=NCHW8c", "--keep-layout=Add")
