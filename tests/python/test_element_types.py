# SPDX-License-Identifier: Apache-2.0
"""Programs over elements of all types, from int2 and float4 to vectors: code of each target agrees with
the interpreter in every bit, on random programs; arrays for elements of several lanes."""
import os
import pathlib
import random
import subprocess

import pytest

np = pytest.importorskip("numpy")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())

SMALL = ("int2", "uint2")
INTEGERS = (*SMALL, "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
          "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn",
          "float6_e2m3fn", "float6_e3m2fn")
SCALE = "float8_e8m0fnu"  # has powers of two alone
FORMS = ("serial", "vectorized", "parallel", "unroll", "split", "guard", "block", "local")


class Program:
    """A random program: C[i] = an expression of A, B and the loops' variables, of three random types."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.types = [self.choose(*INTEGERS, *FLOATS, "bool") for _ in range(3)]
        self.buffers = list(zip("AB", self.types))
        self.index, self.variable = "i", "i"

    def choose(self, *items):
        return self.random.choice(items)

    def number(self, dtype, value=None):
        if dtype == "bool" or dtype in INTEGERS:
            most = 1 if dtype in SMALL or dtype == "bool" else 7
            return f'T.Cast("{dtype}", {self.random.randint(0, most) if value is None else value})'
        values = (0.5, 1.0, 4.0) if dtype == SCALE else (0.0, 0.5, 1.5, -2.0, 3.0)
        return f'T.Cast("{dtype}", T.float32({self.choose(*values)}))'

    def cast(self, e, old, new):
        if old == new:
            return e
        if new == "bool":
            return f"({e} != {self.number(old)})"
        if old in FLOATS and new in INTEGERS:  # a number outside of the type has no value in it
            least = 0 if new[0] == "u" else -1 if new in SMALL else -7
            most = {"int2": 1, "uint2": 3}.get(new, 7)
            e = f'T.max(T.min({self.cast(e, old, "float32")}, T.float32({most})), T.float32({least}))'
        elif new == SCALE:
            e = f'T.max(T.fabs({self.cast(e, old, "float32")}), T.float32(0.25))'
        return f'T.Cast("{new}", {e})'

    def leaf(self, dtype):
        name, own = self.choose(*self.buffers)
        return self.cast(f"{name}[{self.index}]", own, dtype) if self.random.random() < 0.8 \
            else self.number(dtype)

    def condition(self, depth):
        if self.random.random() < 0.3:
            return f"{self.variable} % 3 != {self.random.randint(0, 2)}"
        dtype = self.choose(*[one for one in self.types if one != "bool"] or ["float32"])
        return f'{self.value(dtype, depth)} {self.choose("<", "<=", "==", "!=", ">", ">=")} ' \
            f'{self.value(dtype, depth)}'

    def value(self, dtype, depth):
        if depth <= 0 or self.random.random() < 0.15:
            return self.leaf(dtype)
        kind = self.random.random()
        if kind < 0.25:
            other = self.choose(*self.types)
            return self.cast(self.value(other, depth - 1), other, dtype)
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        if kind < 0.4:
            return f'{self.choose("T.Select", "T.if_then_else")}({self.condition(depth - 1)}, {a}, {b})'
        if dtype == "bool":
            return self.choose(f"T.Not({a})", f"({a} and {b})", f"({a} or {b})")
        operations = ["T.min({}, {})", "T.max({}, {})"]
        if dtype != SCALE:
            operations += ["({} + {})", "({} - {})", "({} * {})"]
        if dtype in INTEGERS:
            divisor = self.number(dtype, 1 if dtype in SMALL else 3)
            operations += ["T.bitwise_and({}, {})", "T.bitwise_xor({}, {})",
                           f"T.floordiv({{}}, {divisor})", f"T.floormod({{}}, {divisor})",
                           f"T.shift_right({{}}, {self.number(dtype, 1)})"]
        return self.choose(*operations).format(a, b)

    def statements(self, form, n):
        out = self.types[2]
        loop = {"unroll": "T.unroll", "vectorized": "T.vectorized", "parallel": "T.parallel"}
        if form == "split":
            width = self.choose(2, 3, 4, 8, 16)
            self.index, self.variable = f"io * {width} + ii", "ii"
            return [f"for io in range({-(-n // width)}):", f"    for ii in T.vectorized({width}):",
                    f"        if {self.index} < {n}:", f"            C[{self.index}] = {self.value(out, 3)}"]
        if form == "guard":
            return [f'for i in {self.choose("range", "T.vectorized")}({n}):', f"    if {self.condition(1)}:",
                    f"        C[i] = {self.value(out, 2)}", "    else:", f"        C[i] = {self.value(out, 2)}"]
        if form == "block":
            self.index = self.variable = "v"
            return [f"for i in range({n}):", '    with T.block("C"):',
                    f"        v = T.axis.spatial({n}, i)", f"        C[v] = {self.value(out, 3)}"]
        if form == "local":
            inner = self.choose(*INTEGERS, *FLOATS)
            first = [f'D = T.decl_buffer(({n},), "{inner}")', f'for i in {self.choose("range", "T.vectorized")}({n}):',
                     f"    D[i] = {self.value(inner, 2)}"]
            self.buffers.append(("D", inner))
            return [*first, f'for i in {self.choose("range", "T.vectorized", "T.unroll")}({n}):',
                    f"    C[i] = {self.value(out, 2)}"]
        return [f'for i in {loop.get(form, "range")}({n}):', f"    C[i] = {self.value(out, 3)}"]

    def text(self):
        n = self.choose(1, 7, 16, 29, 37)
        params = ", ".join(f'{name}: T.Buffer(({n},), "{dtype}")' for name, dtype in zip("ABC", self.types))
        lines = self.statements(self.choose(*FORMS), n)
        return "\n    ".join(["from tvm.script import tir as T\n\n\n@T.prim_func\n"
                              f"def f({params}):", *lines]) + "\n"


def verify(path, text, target, *options):
    path.write_text(text)
    command = [PLEAT, "verify", str(path), "--target", target, "--no-cache", "--max-ulp", "0", "--atol", "0",
               "--rtol", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, text + done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(tmp_path, seed):
    for k in range(4):
        text = Program(seed * 1000 + k).text()
        for target in ("llvm", "c"):
            verify(tmp_path / "f.py", text, target, "--seed", str(k))


VECTORS = '''from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5,), "{t}x{l}"), B: T.Buffer((5,), "{t}x{l}"), P: T.Buffer(({n},), "{t}"),
      Q: T.Buffer(({n},), "{t}")):
    V = T.decl_buffer((5,), "{t}x{l}", data=P.data)
    D = T.decl_buffer((2,), "{t}x{l}", scope="local")
    for i in range(5):
        D[i % 2] = A[4 - i]
        B[i] = T.Select(T.Broadcast(i < 3, {l}), D[i % 2], V[i])
        Q[T.Ramp({n} - 1 - i * {l}, -1, {l})] = V[i]
'''


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "int8", "bool", "bfloat16", "float16", "float8_e4m3fn",
                                   "float8_e5m2", "float4_e2m1fn", "float64"])
def test_vector_elements(tmp_path, dtype):
    for lanes in (2, 8):
        text = VECTORS.format(t=dtype, l=lanes, n=5 * lanes)
        for target in ("llvm", "c"):
            verify(tmp_path / "f.py", text, target)


def test_arrays_of_vectors(tmp_path):
    path = tmp_path / "f.py"
    path.write_text('''from tvm.script import tir as T


@T.prim_func
def f(a: T.handle, B: T.Buffer((3, 5), "float32x4")):
    A = T.match_buffer(a, (3, 5), "float32x4", strides=[7, 1], elem_offset=2)
    for i, j in T.grid(3, 5):
        B[i, j] = A[i, j] * T.Broadcast(T.float32(2), 4)
''')
    values = np.arange(60, dtype="float32").reshape(3, 5, 4)

    def run(command, array, *options):
        np.save(tmp_path / "A.npy", array)
        done = subprocess.run([PLEAT, command, str(path), "-i", f"A={tmp_path / 'A.npy'}", *options],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    assert run("verify", values)[0] == 0
    code, text = run("run", values, "-o", str(tmp_path / "out.npz"))
    assert code == 0, text
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["B"].ravel(), values.ravel() * 2)
    given = f"the array of '{tmp_path / 'A.npy'}' has"
    for wrong, why in ((values[:, :, :3], f"elements of 4 lanes, {given} 3"),
                       (values[0], f"has rank 3 with 4 lanes as last axis, {given} 2"),
                       (values.astype("float64"), f"holds float32x4, {given} float64")):
        code, text = run("verify", np.ascontiguousarray(wrong))
        assert code == 1 and why in text
