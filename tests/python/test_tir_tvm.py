# SPDX-License-Identifier: Apache-2.0
"""Python functions with captured names mean the same to TVM: the programs that both read are equal, and
their nodes have the same fields. Needs apache-tvm; skipped without."""
import pathlib

import pytest
from beside_tvm import read_both
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
tvm = pytest.importorskip("tvm")
CASES = pathlib.Path(__file__).with_name("tir_cases.py")
NAMES = ["captured", "chosen", "shapes", "loops", "reduction"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The cases as TVM and as Pleat read them."""
    return read_both(tmp_path_factory.mktemp("cases"), "cases", CASES.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_equal(both, name):
    theirs, ours = (module.CASES[name]() for module in both)
    pleat.ir.assert_structural_equal(pleat.script.from_source(theirs.script()), ours)
    tvm.ir.assert_structural_equal(tvm.script.from_source(ours.script(newer_names=True)), theirs)


def same(ours, theirs):
    """Compares a node of Pleat's with TVM's by all fields. TVM's buffers are variables since 2026."""
    from pleat.tir import nodes
    if isinstance(ours, nodes.Buffer):
        assert (ours.name, ours.dtype) == (theirs.name, str(theirs.dtype))
        same(ours.shape, theirs.shape)
    elif isinstance(ours, nodes.Node):
        kind = type(theirs).__name__.replace("Tensor", "Buffer")
        assert nodes.KINDS[kind] is type(ours)
        for field in ours.fields.keys() - {"annotations", "thread_tag", "dtype"}:
            name = "source" if field == "buffer" and not isinstance(ours, nodes.BufferStore) else field
            same(getattr(ours, field), getattr(theirs, name))
        if isinstance(ours, nodes.PrimExpr):
            assert ours.ty == str(theirs.ty)
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", NAMES)
def test_nodes_have_the_same_fields(both, name):
    theirs, ours = (module.CASES[name]() for module in both)
    same(ours.body, theirs.body)
