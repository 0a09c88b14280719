# SPDX-License-Identifier: Apache-2.0
"""The builder of statements of before TVMScript: what it makes, runs, and refuses."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402


def test_statements_run():
    A, B = tir.decl_buffer((13,), "float32", name="A"), tir.decl_buffer((13,), "int32", name="B")
    ib = tir.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    count = ib.allocate("int32", 1, name="count", scope="local")
    with ib.for_range(0, 13) as i:
        count[0] = 0
        with ib.while_loop(count[0] < i):
            count[0] += 2
        with ib.if_scope(ib.likely(i % 3 == 0)):
            a[i] = a[i] * 2
        with ib.else_scope():
            half = ib.let("half", a[i] * 0.5)
            a[i] = half + 1
        b[i] = count[0]
    program = tir.PrimFunc([A, B], ib.get())
    values, found = np.arange(13, dtype="float32"), np.zeros(13, "int32")
    expected = np.where(np.arange(13) % 3 == 0, values * 2, values / 2 + 1)
    program(values, found)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(found, [(i + 1) // 2 * 2 for i in range(13)])


def test_one_index_counts_in_row_major_order():
    A, ib = tir.decl_buffer((3, 5, 7), "int32", name="A"), tir.ir_builder.create()
    a = ib.buffer_ptr(A)
    with ib.for_range(2, 105, kind="parallel") as i:
        a[i] = i
    a[0, 0, 1] = 9
    values = np.zeros((3, 5, 7), "int32")
    tir.PrimFunc([A], ib.get())(values)
    np.testing.assert_array_equal(values.ravel(), [0, 9, *range(2, 105)])


def test_threads_and_scopes():
    A, ib = tir.decl_buffer((8,), "float32", name="A"), tir.ir_builder.create()
    a, tx = ib.buffer_ptr(A), te.thread_axis("threadIdx.x")
    with ib.new_scope():
        ib.scope_attr(tx, "thread_extent", 8)
        a[tx] = a[tx] + 1.0
    ib.scope_attr(A.data, "pragma_note", "text")
    ib.emit(tir.Evaluate(0))
    program = tir.PrimFunc([A], ib.get())
    assert 'T.launch_thread("threadIdx.x", 8)' in program.script() and '"pragma_note"' in program.script()
    values = np.zeros(8, "float32")
    program(values)
    assert (values == 1).all()


def test_mistakes():
    A, ib = tir.decl_buffer((8,), "float32", name="A"), tir.ir_builder.create()
    a = ib.buffer_ptr(A)
    with pytest.raises(RuntimeError, match="follow an if_scope"):
        ib.else_scope()
    with pytest.raises(ValueError, match="stored in A, whose elements are float32: cast it"):
        a[0] = tir.const(1, "int32")
    with pytest.raises(ValueError, match="kind 'around'"):
        ib.for_range(0, 4, kind="around")
    with pytest.raises(RuntimeError, match="inside of a scope"):
        with ib.for_range(0, 4):
            ib.get()


def test_select_is_a_kind_and_a_function():
    i = tir.Var("i")
    assert isinstance(tir.Select(i < 3, i, 4), tir.Select) and not isinstance(i, tir.Select)
    assert tir.Select(True, 1, 2) == 1
    ib = tir.ir_builder.create()
    data = ib.pointer("float32", name="data")
    data[0] = 1.0
    assert "data: T.Buffer((1,), \"float32\")" in tir.PrimFunc([data], ib.get()).script()
