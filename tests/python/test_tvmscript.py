# SPDX-License-Identifier: Apache-2.0
"""TVM's own scripts mean the same after `pleat opt`, as TVM sees it. Needs apache-tvm; skipped without."""
import os
import pathlib
import subprocess

import pytest

tvm = pytest.importorskip("tvm")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))


def through_pleat(text):
    done = subprocess.run([PLEAT, "opt", "-", "--newer-names"], input=text, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_module(text):
    read = tvm.script.from_source(text)
    return read if isinstance(read, tvm.IRModule) else tvm.IRModule({"main": read})


def check(script):
    tvm.ir.assert_structural_equal(as_module(script), as_module(through_pleat(script)))


def conv2d():
    te, tirx = tvm.te, tvm.tirx
    x = te.placeholder((1, 3, 14, 15), name="X")
    w = te.placeholder((8, 3, 3, 3), name="W")
    padded = te.compute((1, 3, 16, 17), lambda n, c, h, w: tirx.if_then_else(
        tirx.all(h >= 1, h < 15, w >= 1, w < 16), x[n, c, h - 1, w - 1], tirx.const(0.0, "float32")))
    c, i, j = te.reduce_axis((0, 3)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
    out = te.compute((1, 8, 14, 15), lambda n, f, y, z: te.sum(
        padded[n, c, y + i, z + j] * w[f, c, i, j], axis=[c, i, j]), name="conv")
    return te.create_prim_func([x, w, out])


def test_reduction_with_padding():
    check(conv2d().script())


def test_symbolic_sizes():
    n = tvm.te.var("n")
    x = tvm.te.placeholder((n, 7), name="X")
    y = tvm.te.compute((n, 7), lambda i, j: tvm.tirx.exp(x[i, j]) * 2.0
                       + tvm.tirx.Cast("float32", i), name="Y")
    check(tvm.te.create_prim_func([x, y]).script())


def test_scheduled_program():
    schedule = tvm.s_tir.Schedule(conv2d())
    block = schedule.get_sblock("conv")
    schedule.split(schedule.get_loops(block)[1], [None, 4])
    schedule.annotate(schedule.get_loops(block)[0], "pragma_auto_unroll_max_step", 16)
    schedule.bind(schedule.get_loops(block)[0], "blockIdx.x")
    schedule.bind(schedule.get_loops(block)[1], "threadIdx.x")
    schedule.transform_layout("conv", ("write", 0), lambda n, c, h, w: [n, c // 4, h, w, c % 4])
    schedule.cache_read(block, 1, "shared")
    schedule.decompose_reduction(block, schedule.get_loops(block)[3])
    check(schedule.mod.script())


def graph():
    relax = tvm.relax
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, 14, 15), "float32"))
    w = relax.Var("w", relax.TensorType((8, 3, 3, 3), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            conv = builder.emit(relax.op.nn.conv2d(x, w, strides=[1, 1], padding=[1, 1, 1, 1]))
            parts = builder.emit(relax.op.split(builder.emit(relax.op.nn.relu(conv)), 2, axis=1))
            both = builder.emit(relax.op.concat([parts[0], parts[1]], axis=1))
            out = builder.emit_output(relax.op.add(both, relax.const(1.5, "float32")))
        builder.emit_func_output(out)
    return builder.get()


def test_graph():
    check(graph().script())


def test_graph_beside_its_programs():
    check(tvm.relax.transform.LegalizeOps()(graph()).script())
