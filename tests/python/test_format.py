# SPDX-License-Identifier: Apache-2.0
"""pleat fmt: files in place, --check, standard input; and that formatting any script of the tests
changes neither its program nor itself a second time."""
import json
import os
import pathlib
import subprocess

import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pytest.importorskip("pleat")
from pleat import PleatError, script  # noqa: E402

PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
MESSY = """from tvm.script import tir as T
x = [i for i in ( 1,2 )]
@T.prim_func
def f( A:T.Buffer( (4,),'int8') ):
  # double
  for i in range( 4 ):

        A[ i ]=A[i]*2 # twice
"""
TIDY = """from tvm.script import tir as T
x = [i for i in ( 1,2 )]
@T.prim_func
def f(A: T.Buffer((4,), "int8")):
    # double
    for i in range(4):

        A[i] = A[i] * 2  # twice
"""


def fmt(*arguments, status=0, **options):
    done = subprocess.run([PLEAT, "fmt", *map(str, arguments)], capture_output=True, text=True,
                          check=False, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


def scripts():
    for path in sorted((ROOT / "tests" / "cases").rglob("*.py")):
        if "prim_func" in path.read_text() or "R.function" in path.read_text():
            yield path


def test_files_change_in_place(tmp_path):
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text(MESSY)
    second.write_text(TIDY)
    done = subprocess.run([PLEAT, "fmt", "--check", str(first), str(second)], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout) == (1, f"would change {first}\n")
    assert first.read_text() == MESSY
    assert fmt(first, second) == f"formatted {first}\n"
    assert first.read_text() == second.read_text() == TIDY
    assert fmt("--check", first, second) == ""
    assert json.loads(fmt("--json", first))["files"] == [{"file": str(first), "changed": False}]


def test_standard_input_and_output(tmp_path):
    assert fmt("-", input=MESSY) == TIDY
    path = tmp_path / "a.py"
    path.write_text(MESSY)
    assert fmt(path, "-o", tmp_path / "b.py") == ""
    assert (path.read_text(), (tmp_path / "b.py").read_text()) == (MESSY, TIDY)


def test_a_file_with_a_mistake_stays(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(MESSY)
    bad.write_text(MESSY.replace("range( 4 )", "range( 4"))
    before = bad.read_text()
    assert f"{bad}:6:17: error" in fmt(bad, good, status=1)
    assert (bad.read_text(), good.read_text()) == (before, TIDY)


@pytest.mark.parametrize("text", ["", "\n", "x = 1", "# only a comment",
                                  "\ufeffx = 1\n"])
def test_other_python_stays(text):
    assert script.format(text) == text


def test_line_ends_stay(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(MESSY.replace("\n", "\r\n").encode())
    fmt(path)
    assert path.read_bytes() == TIDY.replace("\n", "\r\n").encode()


def test_comments_and_strings_keep_their_lines():
    text = TIDY + '    T.evaluate(T.call_extern("int32", "f",  # the name\n               1))\n'
    assert script.format(text) == text
    indented = text.replace("        A[i]", '        """A\n text"""\n        A[i]')
    assert script.format(indented) == indented


def test_library_refuses():
    with pytest.raises(PleatError, match="newer_names.*upgrade"):
        script.format("", newer_names=True)
    with pytest.raises(PleatError, match=r"k\.py:3:7: error"):
        script.format("import x\n@T.prim_func\ndef f(:\n  pass\n", file="k.py")


@pytest.mark.parametrize("path", list(scripts()), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_formatting_keeps_programs(path):
    text = path.read_text()
    try:
        formatted = script.format(text)
    except PleatError as error:
        assert path.with_suffix(".py.err").exists() or "errors" in path.name, error
        return
    assert script.format(formatted) == formatted

    def printed(source):
        done = subprocess.run([PLEAT, "opt", "-"], input=source, capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout
    assert printed(formatted) == printed(text)
    if printed(text)[0] == 0:
        try:
            upgraded = script.format(text, upgrade=True, newer_names=True)
        except PleatError as error:
            assert "a value reads a name that is set before it" in str(error)
            return
        assert printed(upgraded) == printed(text)


def test_tuples_are_upgraded_to_statements():
    text = """from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((5, 7), "float32")):
    n, m = A.shape
    for i, j in T.grid(n, m):
        [u, v] = [(i + 1) * 2, (j)]  # both
        k, l = T.int32(), T.int32()
        A[i, j] = T.float32(u - v); r, s = 1, 2
"""
    upgraded = script.format(text, upgrade=True, newer_names=True)
    for line in ("n: T.let = A.shape[0]", "m: T.let = A.shape[1]", "u: T.let = (i + 1) * 2", "v: T.let = j  # both",
                 "k, l = T.int32(), T.int32()", "A[i, j] = T.float32(u - v); r: T.let = 1; s: T.let = 2"):
        assert line in [each.strip() for each in upgraded.splitlines()]
    with pytest.raises(PleatError, match=r"k\.py:5:5: error: a value reads a name that is set before it"):
        script.format(text.replace("n, m = A.shape", "n, m = m, n"), upgrade=True, newer_names=True, file="k.py")
