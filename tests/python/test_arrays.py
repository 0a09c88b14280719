# SPDX-License-Identifier: Apache-2.0
"""Arrays, devices and targets under TVM's names, with which programs written for TVM run."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import ir as I, tir as T  # noqa: E402


@I.ir_module
class Double:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 3), "float32")
        B = T.match_buffer(b, (n, 3), "float32")
        for i, j in T.grid(n, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)


@pytest.mark.parametrize("target", [None, "llvm", {"kind": "llvm"}, pleat.target.Target("llvm"),
                                    pleat.target.Target("llvm -mcpu=x86-64-v3 -num-cores 1")])
@pytest.mark.parametrize("rows", [1, 5])
def test_programs_take_arrays_of_any_kind(target, rows):
    a = np.arange(3.0 * rows, dtype="float32").reshape(rows, 3)
    b = pleat.nd.empty(a.shape, "float32", pleat.cpu())
    run = pleat.compile(Double, target=target, cache=False)
    run(pleat.nd.array(a), b)
    assert type(b.numpy()) is np.ndarray and (b.numpy() == 2 * a).all()
    run["main"](a, b)
    assert (b == 2 * a).all()


def test_the_target_of_the_surrounding_block_counts():
    assert pleat.target.opencl() == pleat.target.Target("opencl")
    assert pleat.target.cuda("a100", "sm_80").attrs == {"model": "a100", "arch": "sm_80"}
    with pleat.target.Target("c"):
        assert "void" in pleat.build(Double["main"].specialize({"n": 4}), cache=False).get_source()


def test_entry_name():
    assert pleat.build(Double, cache=False).entry_name == "main"


def test_copies_and_shared_memory():
    a = np.array([[1, 2], [3, 4]], "int64")
    tensor = pleat.runtime.tensor(a)
    a[0, 0] = 9
    assert tensor.numpy().tolist() == [[1, 2], [3, 4]] and tensor.dtype == "int64"
    copy = tensor.copyto(pleat.cpu())
    assert copy.copyfrom(a) is copy and copy[0, 0] == 9 and tensor[0, 0] == 1
    assert tensor.copyto(copy) is copy and copy[0, 0] == 1
    pleat.nd.from_dlpack(tensor)[1, 1] = 7
    assert tensor[1, 1] == 7
    assert pleat.nd.array([1, 2, 3]).shape == (3,) and pleat.nd.array(2.5).shape == ()
    with pytest.raises(ValueError, match=r"has shape \[3\], expected \[2, 2\]"):
        tensor.copyfrom([1, 2, 3])


def test_devices():
    assert pleat.device("cuda:1") == pleat.cuda(1) != pleat.cuda() and str(pleat.cuda(1)) == "cuda:1"
    assert pleat.device(pleat.target.Target("llvm").kind) == pleat.cpu() and pleat.cpu().exist
    assert not pleat.opencl(1).exist
    for make in pleat.nd.array, pleat.nd.empty:
        with pytest.raises(pleat.PleatError, match="there is no rocm:0 that programs can run on"):
            make([1, 2], device=pleat.rocm())
    with pytest.raises(ValueError, match="no device 'gpu'"):
        pleat.device("gpu")


def test_options_of_targets_that_have_no_meaning_are_refused():
    with pytest.raises(pleat.PleatError, match="option 'mattr'.* takes mcpu and num-cores"):
        pleat.build(Double, target="llvm -mattr=+fma")
    with pytest.raises(pleat.PleatError, match="abacus"):
        pleat.build(Double["main"].specialize({"n": 4}), target="llvm -mcpu=abacus")


def test_arrays_are_imported_when_they_are_used():
    code = "import pleat, sys; assert 'numpy' not in sys.modules; pleat.nd.empty((1,))"
    folder = pathlib.Path(pleat.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
