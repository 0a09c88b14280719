# SPDX-License-Identifier: Apache-2.0
"""TVMScript as Python functions and classes: the names that they capture, aliases of the dialects,
macros, and errors at the line of the Python file."""
import inspect
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402
from pleat.script import tir as Renamed  # noqa: E402

HERE = pathlib.Path(__file__)
ROWS, KIND, HALF = 5, "float32", np.float32(0.5)
SHAPE = (5, 7)


def lines_of(function):
    return [line.strip() for line in function.script(no_imports=True).splitlines()]


def test_a_function_is_a_tensor_program():
    @T.prim_func
    def scale(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
        for i, j in T.grid(5, 7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
    assert isinstance(scale, pleat.tir.PrimFunc) and scale.__name__ == "scale"
    expected = pleat.script.from_source(inspect.getsource(test_a_function_is_a_tensor_program)
                                        .split('):\n', 1)[1].split("    assert")[0])
    assert pleat.ir.structural_equal(scale, expected)


def test_decorators_may_be_called_like_functions():
    def double(A: T.Buffer((ROWS,), "float32")):
        for i in range(ROWS):
            A[i] = A[i] * 2

    class Pair:
        @T.prim_func
        def main(A: T.Buffer((3,), "int32")):
            A[2] = 7

    def wrong(A: T.Buffer((3,), "int32")):
        A[0] = missing
    made = T.prim_func(double)
    assert made.__name__ == "double" and "for i in range(5):" in lines_of(made)
    assert I.ir_module(Pair)["main"].script(no_imports=True).strip().endswith("A[2] = 7")
    with pytest.raises(pleat.PleatError) as raised:
        T.prim_func(wrong)
    line = wrong.__code__.co_firstlineno + 1
    assert f"{HERE.name}:{line}:16: error: 'missing' is not defined" in str(raised.value)


def test_the_length_of_a_shape():
    shape = [3, 5, 2]

    @T.prim_func
    def f(A: T.Buffer((3, 5), "int32")):
        for *others, last in T.grid(*A.shape):
            A[others[0], last] = len(A.shape) + len(shape) + shape[-1]
    assert lines_of(f)[-1] == "A[others_0, last] = 7"


def test_the_dialects_of_the_parser():
    from pleat.script.parser import tir
    assert tir is T and T.exp.__name__ == "exp"


def test_operations_are_captured():
    packed = pleat.ir.Op.get("tir.tvm_call_packed")
    assert repr(packed) == 'Op.get("tir.tvm_call_packed")'.replace('"', "'")

    @T.prim_func
    def f():
        T.Call("void", packed, ["dummy"])
    assert lines_of(f)[-1] == 'T.tvm_call_packed("dummy", dtype="")'


def test_numbers_types_tuples_and_functions_are_captured():
    columns = 7

    def relu(x):
        return T.max(x, T.float32(0))
    scale, halve = lambda x, by=2: x * by, lambda x: x * HALF
    settings = {"offset": [1, 2, 3]}

    @T.prim_func
    def f(A: T.Buffer((ROWS, columns), KIND), B: T.Buffer(SHAPE, np.dtype("float32"))):
        for i, j in T.grid(*A.shape):
            B[i, j] = relu(scale(A[i, j], ROWS - 1)) + halve(A[0, columns - settings["offset"][0]])
    lines = lines_of(f)
    assert lines[1] == ('def f(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):')
    assert lines[3] == ("B[i, j] = T.max(A[i, j] * T.float32(4.0), T.float32(0.0)) + "
                        "A[0, 6] * T.float32(0.5)")


def test_names_around_the_functions_around():
    def outer(n):
        def inner(m):
            @T.prim_func
            def f(A: T.Buffer((n, m), "int32")):
                A[n - 1, m - 1] = n * m
            return f
        return inner(7)
    assert lines_of(outer(3))[1:] == ['def f(A: T.Buffer((3, 7), "int32")):', "A[2, 6] = 21"]


def test_closed_over_names_come_before_global_ones():
    def make(ROWS):
        @T.prim_func
        def f(A: T.Buffer((2,), "int32")):
            A[0] = ROWS
        return f
    assert lines_of(make(11))[-1] == "A[0] = 11"


def test_extents_may_have_the_names_of_usual_aliases():
    def zeros(I, R, relax):
        @T.prim_func
        def function(A: T.Buffer((I, R), "int8"), B: T.Buffer((relax,), "int8")):
            for i, r in T.grid(I, R):
                A[i, r] = B[I % relax]
        return function
    assert [extent.value for extent in zeros(3, 5, 2).params[0].shape] == [3, 5]


def test_names_of_the_script_come_before_captured_ones():
    i, A, x = 1, 2, 3  # noqa: F841

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        for i in range(4):
            x = A[i] + 1
            A[i] = x
    assert "A[i] = x" in lines_of(f)


def test_macros():
    factor = 3

    @T.macro
    def hygienic(X, at, value=factor):
        X[at] = value * factor

    @T.macro(hygienic=False)
    def open_macro(value):
        A[i] = A[i] + value  # noqa: F821

    def make():
        factor = 100  # noqa: F841

        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            for i in range(4):
                hygienic(A, i)
                hygienic(X=A, at=3 - i, value=A[i] + 1)
                open_macro(7)
        return f
    assert lines_of(make())[3:] == ["A[i] = 9", "A[3 - i] = (A[i] + 1) * 3", "A[i] = A[i] + 7"]


def test_match_buffer_takes_the_shape_and_type_of_a_region():
    @T.prim_func
    def stated(A: T.Buffer((16, 64), "int8")):
        for i in range(2):
            with T.block("B"):
                vi = T.axis.spatial(2, i)
                B = T.match_buffer(A[vi * 8:vi * 8 + 8, 32:64], (8, 32), "int8")
                B[0, 0] = T.int8(1)

    @T.prim_func
    def derived(A: T.Buffer((16, 64), "int8")):
        for i in range(2):
            with T.block("B"):
                vi = T.axis.spatial(2, i)
                B = T.match_buffer(A[vi * 8:vi * 8 + 8, 32:64])
                B[0, 0] = T.int8(1)
    pleat.ir.assert_structural_equal(stated, derived)
    with pytest.raises(pleat.error.DiagnosticError, match="argument 'shape' is missing"):
        @T.prim_func
        def f(a: T.handle):
            A = T.match_buffer(a, dtype="int32")
            A[0] = 1


def test_a_function_of_python_gives_a_tuple():
    def places(i, j):
        return T.meta_var((i * 4 + j // 2, j % 2))

    @T.prim_func
    def f(A: T.Buffer((16, 2), "int32")):
        for i, j in T.grid(4, 8):
            row, column = places(i, j)
            A[row, column] = 1
    assert "A[i * 4 + j // 2, j % 2] = 1" in lines_of(f)
    with pytest.raises(pleat.PleatError, match="expected 3 values for these names, saw 2"):
        @T.prim_func
        def g(A: T.Buffer((16, 2), "int32")):
            for i, j in T.grid(4, 8):
                row, column, other = places(i, j)
                A[row, column] = other


def test_comparisons_of_nodes_are_captured():
    n = pleat.tir.Var("n", "int32")
    same, other = n + 1 == 2, n != 3

    @T.prim_func
    def f(A: T.Buffer((n,), "bool")):
        A[0] = same
        A[1] = other
    assert lines_of(f)[-2:] == ["A[0] = n + 1 == 2", "A[1] = n != 3"]


def test_a_variable_of_python_is_one_variable_in_a_function():
    n, other = pleat.tir.Var("n", "int32"), pleat.tir.Var("n", "int32")

    @T.prim_func
    def f(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n + 1, other), "float32")):
        for i in range(n):
            B[i, other - 1] = A[i, 0]
    text = f.script()
    assert "A = T.match_buffer(p_A, (n, 4)" in text and "(n + 1, n_1)" in text
    assert "for i in range(n):" in text and "B[i, n_1 - 1] = A[i, 0]" in text
    assert len(f.params) == 2

    from pleat.script import relax as R

    @R.function
    def g(x: R.Tensor((n, 4), "float32"), y: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
        @R.function
        def double(z: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            return R.add(z, z)
        return R.add(x, double(y))
    assert "n_1" not in g.script() and '(("n", 4)' in g.script()
    with pytest.raises(pleat.PleatError, match="variable 'n' is used where it is not defined"):
        @T.prim_func
        def h(A: T.Buffer((4,), "int32")):
            A[0] = n


def test_a_slice_whose_length_follows_from_its_ends():
    m = pleat.runtime.convert(8)
    assert (m.value, m.dtype) == (8, "int32")

    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(8):
            B[i * m:(i + 1) * m] = A[i * m:(i + 1) * m:1]
    assert "B[i * 8:i * 8 + 8] = A[i * 8:i * 8 + 8]" in lines_of(f)


def test_macros_take_any_number_of_arguments():
    @T.macro
    def assign(i, *others, factor=2, **buffers):
        vi, vj, vk = T.axis.remap("SSR", [i, others[0], others[1]])
        buffers["C"][vi, vj] = buffers["C"][vi, vj] + buffers["A"][vi, vk] * factor * len(others)

    @T.macro
    def at(X, /, *index, value):
        X[index] = value + index[-1]

    @T.prim_func
    def f(A: T.Buffer((5, 7), "int32"), C: T.Buffer((5, 3), "int32")):
        for i, j, k in T.grid(5, 3, 7):
            with T.block("sum"):
                assign(i, j, k, A=A, C=C)
        for i in range(5):
            at(A, i, i + 1, value=C[i, 0])
    assert "C[vi, vj] = C[vi, vj] + A[vi, vk] * 2 * 2" in lines_of(f)
    assert "A[i, i + 1] = C[i, 0] + (i + 1)" in lines_of(f)


def test_arguments_that_a_macro_does_not_take():
    @T.macro
    def store(A, *, value):
        A[0] = value

    @T.macro
    def store_any(A, **values):
        A[0] = values["other"]
    with pytest.raises(pleat.PleatError, match="the macro takes 1 arguments, saw 2"):
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            store(A, 2)
    with pytest.raises(pleat.PleatError, match="the macro has no parameter 'amount'"):
        @T.prim_func
        def g(A: T.Buffer((4,), "int32")):
            store(A, value=1, amount=2)
    with pytest.raises(pleat.PleatError, match="argument 'A' is given twice"):
        @T.prim_func
        def h(A: T.Buffer((4,), "int32")):
            store(A, A=A, value=1)
    with pytest.raises(pleat.PleatError):
        @T.prim_func
        def k(A: T.Buffer((4,), "int32")):
            store_any(A, value=1)
    with pytest.raises(ValueError, match="keyword"):
        T.macro(True)


def test_a_macro_may_hold_blocks_and_macros():
    @T.macro
    def add(A, B, i, j):
        A[i, j] = A[i, j] + B[i, j]

    @T.macro
    def body(A, B, i, j):
        with T.block("sum"):
            vi, vj = T.axis.remap("SS", [i, j])
            add(A, B, vi, vj)
    # A block variable is bound to a loop, which the macro gets as its argument.

    @T.prim_func
    def f(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
        for i, j in T.grid(5, 7):
            body(A, B, i, j)
    assert 'vi, vj = T.axis.remap("SS", [i, j])' in lines_of(f)
    assert "A[vi, vj] = A[vi, vj] + B[vi, vj]" in lines_of(f)


def test_values_that_python_chooses():
    is_wide, low = False, 1

    @T.prim_func
    def f(A: T.Buffer((8,), "int32")):
        if is_wide:
            A[0, nowhere] = 1  # noqa: F821
        else:
            A[0] = 2
        for i in range(low, 8, 3):
            if low <= A[i] < 5:
                A[i] = T.meta_var(low + 4)
    assert lines_of(f)[2:] == ["A[0] = 2", "for i in range(3):",
                               "if 1 <= A[i * 3 + 1] and A[i * 3 + 1] < 5:", "A[i * 3 + 1] = 5"]


def test_one_name_for_several_variables():
    @T.prim_func
    def f(A: T.Buffer(SHAPE, "float32"), B: T.Buffer(SHAPE, "float32")):
        for at in T.grid(*SHAPE):
            with T.block("B"):
                v = T.axis.remap("SS", at)
                B[v] = A[v] + A[(*v,)]
    lines = lines_of(f)
    assert "for at_0, at_1 in T.grid(5, 7):" in lines
    assert "B[v_0, v_1] = A[v_0, v_1] + A[v_0, v_1]" in lines


def test_aliases_of_dialects():
    Local = pleat.script.tir

    @Renamed.prim_func
    def f(A: Renamed.Buffer((4,), "float32")):
        A[0] = Local.exp(A[1])
    assert lines_of(f)[-1] == "A[0] = T.exp(A[1])"


def test_dialects_of_the_script_module():
    """The dialects and decorators are reached by tvm.script itself, whatever it is called here."""
    from pleat import script as S

    @S.ir_module
    class Module:
        @S.tir.prim_func
        def main(A: S.tir.Buffer((4,), "float32")):
            for i in S.tir.serial(4):
                A[i] = S.tir.max(A[i], pleat.script.tir.float32(ROWS))

        @pleat.script.relax.function
        def twice(x: S.relax.Tensor((4,), "float32")) -> S.relax.Tensor((4,), "float32"):
            return S.relax.add(x, x)
    assert "A[i] = T.max(A[i], T.float32(5.0))" in lines_of(Module["main"])
    assert "R.add(x, x)" in Module["twice"].script()
    text = """import tvm.script as S
@S.ir_module
class Module:
    @S.tirx.prim_func
    def main(A: tvm.script.tirx.Buffer((4,), "float32")):
        x: S.tirx.float32 = A[1]
        A[0] = S.tirx.exp(x)
"""
    newer = pleat.script.from_source(text)
    assert pleat.ir.structural_equal(newer, pleat.script.from_source(
        text.replace("import tvm.script as S", "from tvm.script import ir as I, tirx as T")
        .replace("S.tirx", "T").replace("S.ir", "I.ir").replace("tvm.script.tirx", "T")))


def test_python_chooses_between_types_and_tuples():
    """Python computes the condition; each branch may be a type, a tuple, or use the program's names."""
    is_wide, shapes = False, [(4, 5), (6,)]

    @T.prim_func
    def f(A: T.Buffer(shapes[0] if is_wide else shapes[1], "float32"), n: T.int64 if is_wide else T.int32):
        for i in T.grid(*(shapes[0] if len(shapes) > 2 else A.shape)):
            A[i] = (T.float64 if is_wide else T.float32)(2) * (A[i, 0] if is_wide else A[i])
    assert lines_of(f)[1:] == ['def f(A: T.Buffer((6,), "float32"), n: T.int32):', "for i in range(6):",
                               "A[i] = T.float32(2.0) * A[i]"]

    @T.macro
    def store(A, i, wide, k=3):
        A[i] = (T.float32 if wide else T.int32)(k) + (A[i] if k > 2 else A[i + 1])

    @T.prim_func
    def g(A: T.Buffer((4,), "float32")):
        store(A, 0, True)
        store(A, 1, False, k=1)
    assert lines_of(g)[-2:] == ["A[0] = T.float32(3.0) + A[0]", "A[1] = T.float32(1.0) + A[2]"]


def test_modules():
    n = 6

    @I.ir_module
    class Module:
        @T.prim_func
        def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in range(n):
                B[i] = A[i] * 2.0

        @R.function
        def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            y = R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
            return y
    assert list(Module) == ["double", "main"]
    assert isinstance(Module["double"], pleat.tir.PrimFunc)
    assert isinstance(Module["main"], pleat.relax.Function)
    assert pleat.ir.structural_equal(Module, pleat.script.from_source(Module.script()))

    @pleat.script.ir_module
    class Dotted:
        @pleat.script.tir.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[0] = 1.0
    assert lines_of(Dotted["main"])[-1] == "A[0] = T.float32(1.0)"


def test_graph_functions():
    shape = (2, 3)

    @R.function
    def f(x: R.Tensor(shape, KIND)) -> R.Tensor(shape, KIND):
        y = R.add(x, x)
        return y
    assert 'x: R.Tensor((2, 3), dtype="float32")' in f.script()


def test_text_with_names():
    f = pleat.script.from_source("@T.prim_func\ndef f(A: T.Buffer((n,), dtype)):\n    A[0] = n\n",
                                 {"n": 3, "dtype": "int32"})
    assert lines_of(f)[-1] == "A[0] = 3"
    module = pleat.script.from_source("@I.ir_module\nclass Empty:\n    pass\n")
    assert isinstance(module, pleat.IRModule) and len(module) == 0


# ---- Errors ---------------------------------------------------------------------------------------

def line_with(text):
    return next(i for i, line in enumerate(HERE.read_text().splitlines(), 1) if text in line)


def expect_error(make, text, *parts):
    """The definition that `make` makes is refused at the line with `text`."""
    with pytest.raises(pleat.PleatError) as error:
        make()
    message = error.value.messages[0]
    assert pathlib.Path(message.file).samefile(HERE)
    assert message.line == line_with(text)
    for part in parts:
        assert part in str(error.value)


def test_errors_are_at_the_python_line():
    def undefined():
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = not_there + 1  # noqa: F821  (1)
    expect_error(undefined, "F821  (1)", "'not_there' is not defined", "^^^^^^^^^")

    def wrong_value():
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = pathlib  # (2)
    expect_error(wrong_value, "= pathlib  # (2)", "a Python object of type module has no value")

    def wrong_type():
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = A[0] + KIND  # (3)
    expect_error(wrong_type, "KIND  # (3)", "^")


def test_exceptions_of_captured_functions_are_the_cause():
    def fail(x):
        raise KeyError("no such thing")
    with pytest.raises(pleat.PleatError, match="KeyError: 'no such thing'") as error:
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = fail(A[1])
    assert isinstance(error.value.__cause__, KeyError)


def test_python_branches_on_constants():
    assert T.bool(True) == True and not T.bool(False) and T.int64(-3) == -3 and T.int32(3) < 4  # noqa: E712
    assert not T.bool(True) != T.bool(True) and T.int8(5) >= 5 and not T.int32(0) and 4 <= T.uint8(4)
    for unknown in (T.vscale() == 1, T.float32(0.5) == 0.5, T.int32(1) + T.int32(2) == 3):
        with pytest.raises(TypeError, match="known only when the program runs"):
            bool(unknown)


def test_python_knows_the_types_of_values():
    """A function of Python may ask for the types of buffers, variables, elements and sums of such."""
    seen = []

    def low_bits(x, at, count):
        seen.extend([x.ty.dtype, x.dtype, (x >> at).dtype, (x.astype("int64") + 1).dtype, at.dtype, (at * 3).dtype])
        assert x.dtype == "int8" and not isinstance((x < at).dtype, str)
        return pleat.tir.Cast("float32", (x >> at) & pleat.tir.const(count, "int8"))

    @T.prim_func
    def f(A: T.Buffer((1, 13), "int8"), B: T.Buffer((1, 13), "float32"), n: T.int8):
        for i in range(13):
            B[0, i] = low_bits(A[0, i - i % 1], n, 3)
    assert seen == ["int8", "int8", "int8", "int64", "int8", "int8"]
    assert "T.Cast(\"float32\", T.bitwise_and(T.shift_right(A[0, i - i % 1], n), T.int8(3)))" in f.script()


def test_python_cannot_branch_on_values_of_the_program():
    def positive(x):
        return x if x > 0 else 0
    with pytest.raises(pleat.PleatError, match="is known only when the program runs"):
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = positive(A[1])


def test_macros_are_statements_and_end():
    @T.macro
    def again(A):
        again(A)
    with pytest.raises(pleat.PleatError, match="levels deep"):
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            again(A)
    with pytest.raises(pleat.PleatError, match="a macro is used as a statement"):
        @T.prim_func
        def g(A: T.Buffer((4,), "int32")):
            A[0] = again(A)


def test_names_that_are_assigned_later():
    with pytest.raises(pleat.PleatError, match="'later' is not defined"):
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = later  # noqa: F821
    later = 1  # noqa: F841


def test_functions_without_source():
    with pytest.raises(pleat.PleatError, match="source text of f is not known"):
        exec("@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    A[0] = 1\n", {"T": T})


def test_import_stays_small():
    code = ("import sys, pleat; "
            "print([m for m in ('pleat.script', 'pleat.ir', 'pleat.runtime', 'numpy', 'cffi', "
            "'inspect_') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(ROOT / "python")})
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_class_is_found_by_its_line(is_first):
    if is_first:
        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                A[0] = 1.0
    else:
        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                A[0] = 2.0
    assert Module["main"].body.value == (1.0 if is_first else 2.0)


def test_a_class_of_a_file_that_is_no_known_module(tmp_path):
    file = tmp_path / "programs.py"
    file.write_text("from pleat.script import ir as I, tir as T\n\n\n@I.ir_module\nclass Module:\n"
                    "    @T.prim_func\n    def main(A: T.Buffer((4,), 'float32')):\n        A[4] = 1.0\n")
    with pytest.raises(pleat.PleatError, match=rf"{file}:8:9: error: A\[4\] is out of bounds"):
        pleat.build(runpy.run_path(str(file))["Module"])


def test_slips_in_python():
    """Decorators on other things, arguments by name, and operations of Python on values of the program."""
    with pytest.raises(TypeError, match="got a lambda"):
        T.prim_func(lambda A: A)
    with pytest.raises(TypeError, match="expected a function made by def.*got 5"):
        T.prim_func(5)
    table = [1.0, 2.0]
    with pytest.raises(pleat.PleatError, match="(?s)^.*'i' has no value; pass what it needs as a parameter"):
        @T.prim_func
        def main(A: T.Buffer((2,), "float32")):
            for i in range(2):
                A[i] = table["x" + str(i)]

    @T.prim_func
    def one(A: T.Buffer((2,), "int32")):
        A[0] = 1
    module = pleat.build(one)
    with pytest.raises(TypeError, match=r"one takes its arguments by position \(A\), not by name: got A"):
        module(A=1)
    with pytest.raises(TypeError, match="is an int, expected an array"):
        module(1)
