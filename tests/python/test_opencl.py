# SPDX-License-Identifier: Apache-2.0
"""Programs on an OpenCL device: compared with NumPy, and random ones with the interpreter. Without a
device the tests are left out; scripts/install.sh --opencl installs one that runs on the processor."""
import os
import random
import subprocess

import command
import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te  # noqa: E402
from pleat.script import tir as T  # noqa: E402

HEAD = "from pleat.script import tir as T\n\n"
COPY = HEAD + """@T.prim_func
def f(A: T.Buffer((7,), "float32"), C: T.Buffer((7,), "float32")):
    for i in T.thread_binding(7, "threadIdx.x"):
        C[i] = A[i] * 2.0
"""
ON_DEVICE = ("--target", "opencl", "--no-cache")


@pytest.fixture(scope="module", autouse=True)
def device(tmp_path_factory):
    path = tmp_path_factory.mktemp("opencl") / "copy.py"
    path.write_text(COPY)
    done = subprocess.run([command.PLEAT, "verify", path, *ON_DEVICE], capture_output=True, text=True)
    if "no OpenCL device" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr


def verified(path):
    """Verifies the programs of a file, or a model, on the device; the output of the command."""
    return command.pleat("verify", path, "--device", "opencl", "--no-cache")


def test_wide_vectors_are_several_on_a_device(tmp_path):
    """Loops are vectorized in pieces of at most 16 lanes, the widest vectors of OpenCL. It shifts no scalar by a
    vector, and compares bytes with no int."""
    (tmp_path / "wide.py").write_text(HEAD + """@T.prim_func
def f(A: T.Buffer((3, 58), "float32"), C: T.Buffer((3, 58), "float32")):
    for b in T.thread_binding(3, "blockIdx.x"):
        for i in T.vectorized(58):
            C[b, i] = A[b, i] + 1.0


@T.prim_func
def g(A: T.Buffer((6,), "int32"), B: T.Buffer((6, 8), "uint8"), C: T.Buffer((6, 8), "int32")):
    for b in T.thread_binding(6, "blockIdx.x"):
        for i in T.vectorized(8):
            C[b, i] = T.shift_left(A[b], T.Cast("int32", B[b, 7 - i]) % 8) + T.Cast("int32", T.Cast("bool", B[b, i]))
""")
    assert verified(tmp_path / "wide.py").count(" agrees with the interpreter") == 2


UNSTORED = HEAD + """@T.prim_func
def f(A: T.Buffer((6, 3, 4), "float32"), C: T.Buffer((6, 2), "float32")):
    for b in T.thread_binding(6, "blockIdx.x"):
        if b % 3 < 2:
            C[b, 0:2] = A[b, 0, 0:2]
        else:
            with T.sblock("sums"):
                L = T.alloc_buffer((4,), "float32", scope="local")
                M = T.alloc_buffer((3, 4), "float32", scope="local")
                few = T.Ramp(0, 1, 4) < T.Broadcast(2, 4)
                L[0:4] = T.Select(few, T.Broadcast(T.float32(0), 4), L[0:4])
                for k in range(3):
                    L[0:4] = T.Select(few, L[0:4] + A[b, k, 0:4], L[0:4])
                    M[k, 0:4] = T.Select(few, L[0:4], M[k, 0:4])
                for k in range(3):
                    L[0:4] = T.Select(few, L[0:4] + M[2 - k, 0:4], L[0:4])
                C[b, 0:2] = T.max(L[0:2], T.Broadcast(T.float32(0), 2))
"""


def test_lanes_that_nothing_stores_have_contents(tmp_path):
    """A function that gets a vector without contents makes a compiler leave out the branch around the call."""
    (tmp_path / "unstored.py").write_text(UNSTORED)
    assert " agrees with the interpreter" in verified(tmp_path / "unstored.py")
    command.pleat("compile", tmp_path / "unstored.py", "--target", "opencl", "-o", tmp_path / "k.cl")
    text = (tmp_path / "k.cl").read_text()
    assert "f32x4 L = (f32x4)(0, 0, 0, 0);" in text and "float M[12] = {0};" in text


# ---- Random programs -----------------------------------------------------------------------------

EXTENTS = (1, 2, 3, 4, 5, 7, 11, 13)


class Programs:
    """Programs over a matrix A of (rows, columns), whose rows are given to blocks or parallel
    iterations and whose columns to threads, with stages in shared memory, local memory and
    textures."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rows, self.columns = self.random.choice(EXTENTS), self.random.choice(EXTENTS)

    def value(self, access, depth=2):
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.3:
            return pick([access(), access(), pick(["1.5", "-2.0", "0.25"])])
        a, b = self.value(access, depth - 1), self.value(access, depth - 1)
        return pick([f"({a} + {b})", f"({a} * {b})", f"T.max({a}, {b})", f"T.exp(-T.abs({a}))",
                     f"T.if_then_else({a} > {b}, {a}, {b})"])

    def column(self, extent, t="t"):
        """An index from 0 to extent - 1."""
        k = self.random.randrange(5)
        return self.random.choice([f"({t} + {k}) % {extent}", f"({extent - 1} - {t} % {extent})",
                                   f"{t} % {extent}", str(k % extent)])

    def shared(self, name):
        """Each block fills shared memory, and reads it in another order."""
        size, threads = self.random.choice(EXTENTS), self.random.choice(EXTENTS)
        n, m = self.rows, self.columns
        steps = self.random.choice([1, 3])
        fill = self.value(lambda: f"A[b, {self.column(m, 'u')}]")
        use = self.value(lambda: f"S[{self.column(size)}]")
        return f"""@T.prim_func
def {name}(A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n}, {threads}), "float32")):
    for b in T.thread_binding({n}, "blockIdx.x"):
        for t in T.thread_binding({threads}, "threadIdx.y"):
            with T.sblock("outer"):
                S = T.alloc_buffer(({size},), "float32", scope="shared")
                C[b, t] = 0.0
                for k in range({steps}):
                    for u in T.thread_binding({size}, "threadIdx.x"):
                        S[u] = {fill}
                    C[b, t] = C[b, t] + {use}
"""

    def parallel(self, name):
        n, m = self.rows, self.columns
        lanes = self.random.choice([1, 2, 4, 8])
        value = self.value(lambda: f"A[b, t * {lanes} + v]")
        return f"""@T.prim_func
def {name}(A: T.Buffer(({n}, {m * lanes}), "float32"), C: T.Buffer(({n}, {m * lanes}), "float32")):
    for b in T.parallel({n}):
        for t in range({m}):
            for v in T.vectorized({lanes}):
                C[b, t * {lanes} + v] = {value}
"""

    def texture(self, name):
        n, m = self.rows, self.columns
        first = self.value(lambda: f"A[b, t, {self.random.choice(['v', '3 - v', '0'])}]")
        second = self.value(lambda: f"B[({n - 1} - b), {self.column(m)}, "
                                    f"{self.random.choice(['v', '3 - v', '2'])}]")
        return f"""@T.prim_func
def {name}(A: T.Buffer(({n}, {m}, 4), "float32"), C: T.Buffer(({n}, {m}, 4), "float32")):
    B = T.alloc_buffer(({n}, {m}, 4), "float32", scope="global.texture", axis_separators=[1])
    for b in T.thread_binding({n}, "blockIdx.x"):
        for t in T.thread_binding({m}, "threadIdx.x"):
            for v in T.vectorized(4):
                B[b, t, v] = {first}
    for b in T.thread_binding({n}, "blockIdx.y"):
        for t in T.thread_binding({m}, "threadIdx.z"):
            for v in T.vectorized(4):
                C[b, t, v] = {second}
"""

    def serial(self, name):
        n, m = self.rows, self.columns
        value = self.value(lambda: f"A[b, {self.column(m)}]")
        return f"""@T.prim_func
def {name}(A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n},), "float32")):
    for b in range({n}):
        C[b] = 0.0
        for t in range({m}):
            C[b] = C[b] + {value}
"""


def test_random_programs_agree_with_the_interpreter(tmp_path):
    text, count = HEAD, 0
    for seed in range(10):
        for kind in ("shared", "parallel", "texture", "serial"):
            text += getattr(Programs(1000 * count + seed), kind)(f"{kind}{seed}") + "\n\n"
            count += 1
    path = tmp_path / "programs.py"
    path.write_text(text)
    assert verified(path).count(" agrees with the interpreter") == count


# ---- From Python -----------------------------------------------------------------------------------

@T.prim_func
def transpose(A: T.Buffer((6, 5), "float32"), n: T.int32, C: T.Buffer((5, 6), "float32")):
    for i in T.thread_binding(5, "blockIdx.x"):
        for j in T.thread_binding(6, "threadIdx.x"):
            C[i, j] = A[j, i] * T.Cast("float32", n)


@T.prim_func
def scale(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    for i in T.thread_binding(n, "blockIdx.x"):
        for j in T.thread_binding(3, "threadIdx.x"):
            C[i, j] = A[i, j] * T.float32(2)


def numbers(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("float32")


def test_build_runs_on_the_device():
    module = pleat.build(transpose, target="opencl", cache=False)
    a, c = numbers(6, 5), np.zeros((5, 6), "float32")
    module(a, 3, c)
    assert np.array_equal(c, a.T * np.float32(3))
    assert "__kernel" in module.get_source()


def test_arrays_of_the_device():
    assert pleat.opencl().exist
    run = pleat.build(pleat.script.from_source(COPY), target="opencl", cache=False)
    a = pleat.nd.array(numbers(7), pleat.opencl())
    c = pleat.nd.empty((7,), "float32", pleat.device("opencl", 0))
    run(a, c)
    assert np.array_equal(c.numpy(), 2 * a.numpy()) and type(c.numpy()) is np.ndarray
    assert c[1:].device == pleat.opencl() and c.copyto(pleat.cpu()).device == pleat.cpu()
    run(a.numpy(), c)
    with pytest.raises(ValueError, match="f: argument 'C' is on opencl:0, expected cpu:0"):
        pleat.build(pleat.script.from_source(COPY))(a.numpy(), c)


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_blocks_follow_a_size_of_the_call(n):
    a, c = numbers(n, 3), np.zeros((n, 3), "float32")
    pleat.build(scale, target="opencl", cache=False)(a, c)
    assert np.array_equal(c, 2 * a)


def test_no_such_device():
    """Without a library or a device the message says so, and what to install."""
    run = subprocess.run([command.PLEAT, "run", "-", "--fill", "zero", "--device", "opencl", "--no-cache"], input=COPY,
                         capture_output=True, text=True,
                         env={**os.environ, "OCL_ICD_VENDORS": "/nonexistent"})
    assert run.returncode == 1
    assert "no OpenCL device can be used: no device is installed" in run.stderr
    assert "pocl-opencl-icd" in run.stderr


# ---- RFC 39's texture ----------------------------------------------------------------------------

# "NHWC logical layout to NCHWc physical layout, packed into a 2-d physical layout with NCH in the
# first physical axis and Wc in the second" (the RFC's section on axis separators).
LAY_OUT = """sch.set_scope("x", 0, "global.texture")
sch.transform_layout("x", ("write", 0),
                     lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4], rewrite_loops=True)
n, co, h, w, ci = sch.get_loops("x")
rows = sch.fuse(n, co, h)
sch.bind(rows, "blockIdx.x")
sch.bind(w, "threadIdx.x")
sch.vectorize(ci)
"""
READ = """n, h, w, c = sch.get_loops("C")
sch.bind(n, "blockIdx.y")
sch.bind(h, "blockIdx.x")
sch.bind(w, "threadIdx.x")
co, ci = sch.split(c, [None, 4])
sch.vectorize(ci)
"""
STORED = HEAD + """@T.prim_func
def f(A: T.Buffer((3, 5, 7, 8), "float32"), C: T.Buffer((3, 5, 7, 8), "float32")):
    x = T.alloc_buffer((3, 5, 7, 8), "float32")
    for n, h, w, c in T.grid(3, 5, 7, 8):
        with T.sblock("x"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            x[vn, vh, vw, vc] = A[vn, vh, vw, vc] * T.float32(2)
    for n, h, w, c in T.grid(3, 5, 7, 8):
        with T.sblock("C"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            C[vn, vh, vw, vc] = x[vn, vh, vw, 7 - vc] + x[vn, 4 - vh, vw, vc]
"""


def scheduled(folder, text, steps):
    (folder / "f.py").write_text(text)
    (folder / "f.steps").write_text(steps)
    path = folder / "scheduled.py"
    command.pleat("opt", folder / "f.py", "--schedule", folder / "f.steps", "-o", path)
    return path


def source(path):
    out = path.with_suffix(".cl")
    command.pleat("compile", path, "--target", "opencl", "-o", out)
    return out.read_text()


def test_nhwc_becomes_nchwc_in_a_texture(tmp_path):
    path = scheduled(tmp_path, STORED, LAY_OUT + READ)
    assert "'f' agrees" in verified(path)
    text = source(path)
    assert "__write_only image2d_t x" in text and "__read_only image2d_t x" in text
    assert "write_imagef(x, " in text and "read_imagef(x, " in text


CONVOLUTION = HEAD + """@T.prim_func
def f(A: T.Buffer((1, 9, 7, 8), "float32"), W: T.Buffer((3, 3, 8, 12), "float32"),
      C: T.Buffer((1, 7, 5, 12), "float32")):
    for n, h, w, k, r, s, c in T.grid(1, 7, 5, 12, 3, 3, 8):
        with T.sblock("C"):
            vn, vh, vw, vk, vr, vs, vc = T.axis.remap("SSSSRRR", [n, h, w, k, r, s, c])
            with T.init():
                C[vn, vh, vw, vk] = T.float32(0)
            C[vn, vh, vw, vk] = C[vn, vh, vw, vk] + A[vn, vh + vr, vw + vs, vc] * W[vr, vs, vc, vk]
"""
CONVOLUTION_STEPS = """image = sch.cache_read("C", 0, "global.texture")
sch.transform_layout(image, ("write", 0),
                     lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4], rewrite_loops=True)
n, co, h, w, ci = sch.get_loops(image)
rows = sch.fuse(n, co, h)
sch.bind(rows, "blockIdx.x")
sch.bind(w, "threadIdx.x")
sch.vectorize(ci)
weights = sch.cache_read("C", 1, "global.texture")
sch.set_axis_separator(weights, ("write", 0), [2])
r, s, c, k = sch.get_loops(weights)
taps = sch.fuse(r, s)
sch.bind(taps, "blockIdx.x")
sch.bind(c, "threadIdx.x")
ko, ki = sch.split(k, [None, 4])
sch.vectorize(ki)
n, h, w, k, r, s, c = sch.get_loops("C")
ko, ki = sch.split(k, [None, 4])
sch.reorder(n, h, w, ko, r, s, c, ki)
sch.bind(h, "blockIdx.x")
sch.bind(w, "threadIdx.x")
sch.bind(ko, "threadIdx.y")
sch.vectorize(ki)
"""


def test_convolution_reads_image_and_weights_from_textures(tmp_path):
    path = scheduled(tmp_path, CONVOLUTION, CONVOLUTION_STEPS)
    assert "'f' agrees" in verified(path)
    assert source(path).count("__read_only image2d_t") == 2


@pytest.mark.parametrize("channels, padding", [(3, None), (7, 0.0)])
def test_channels_fill_a_part_of_their_last_texel(channels, padding):
    A = te.placeholder((1, 6, 5, channels), name="A")
    y, x, c = (te.reduce_axis((0, n), name) for n, name in ((3, "y"), (3, "x"), (channels, "c")))
    C = te.compute((1, 4, 3), lambda n, h, w: te.sum(A[n, h + y, w + x, c], axis=[y, x, c]), name="C")
    s = te.create_schedule(C.op)
    image = s.cache_read(A, "global.texture", [C])
    n, co, h, w, ci = s[image].transform_layout(
        lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4], pad_value=padding)
    s[image].bind(s[image].fuse(n, co, h), te.thread_axis("blockIdx.x"))
    s[image].bind(w, te.thread_axis("threadIdx.x"))
    s[image].vectorize(ci)
    n, h, w = C.op.axis
    s[C].bind(h, te.thread_axis("blockIdx.x"))
    s[C].bind(w, te.thread_axis("threadIdx.x"))
    module = pleat.build(s, [A, C], target="opencl")
    assert "write_imagef(" in module.get_source() and "read_imagef(" in module.get_source()
    a, c = numbers(1, 6, 5, channels), np.zeros((1, 4, 3), "float32")
    module(a, c)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), (1, 2))
    assert np.allclose(c, windows.sum((3, 4, 5)), atol=1e-5)


HALVES = HEAD + """@T.prim_func
def f(A: T.Buffer((5, 3, 4), "float16"), C: T.Buffer((5, 3, 4), "float16")):
    B = T.alloc_buffer((5, 3, 4), "float16", scope="global.texture", axis_separators=[1])
    for i in T.thread_binding(5, "blockIdx.x"):
        for j in T.thread_binding(3, "threadIdx.x"):
            for k in T.vectorized(4):
                B[i, j, k] = A[i, j, k] * T.float16(3)
    for i in T.thread_binding(5, "blockIdx.x"):
        for j in T.thread_binding(3, "threadIdx.x"):
            for k in T.vectorized(4):
                C[i, j, k] = B[4 - i, j, k] + B[i, j, 2]
"""


def test_textures_of_float16(tmp_path):
    path = tmp_path / "f.py"
    path.write_text(HALVES)
    assert "'f' agrees" in verified(path)
    assert "write_halves(B, " in source(path) and "read_imageh(image, at)" in source(path)
    module = pleat.build(pleat.script.from_source(HALVES), target="opencl", cache=False)
    a = numbers(5, 3, 4).astype("float16")
    a[0, 0], a[4, 2] = (np.inf, -0.0, 6e-8, 65504), (-np.inf, np.nan, 1e-5, 2049)
    c = np.zeros_like(a)
    module(a, c)
    with np.errstate(over="ignore"):
        b = a * np.float16(3)
    assert np.array_equal(c, b[::-1] + b[:, :, 2:3], equal_nan=True)


# ---- Shared memory and models ----------------------------------------------------------------------

@T.prim_func
def swizzled(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    """The kernel of the RFC's thread: a transposition through shared memory whose columns are
    permuted by XOR, so that neither rows nor columns meet in one bank."""
    for i in T.thread_binding(16, "threadIdx.y"):
        for j in T.thread_binding(16, "threadIdx.x"):
            C[i, j] = T.float32(0)
    for b in T.thread_binding(1, "blockIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((16, 16), "float32", scope="shared")
            for i in T.thread_binding(16, "threadIdx.y"):
                for j in T.thread_binding(16, "threadIdx.x"):
                    S[i, T.bitwise_xor(i, j)] = A[i, j]
            for i in T.thread_binding(16, "threadIdx.y"):
                for j in T.thread_binding(16, "threadIdx.x"):
                    C[i, j] = S[j, T.bitwise_xor(i, j)]


def test_swizzled_shared_memory():
    module = pleat.build(swizzled, target="opencl", cache=False)
    a, c = numbers(16, 16), np.zeros((16, 16), "float32")
    module(a, c)
    assert np.array_equal(c, a.T)
    assert "__local float S[256]" in module.get_source() and "barrier(" in module.get_source()


@pytest.mark.parametrize("m, n, k", [(64, 64, 16), (50, 37, 13), (5, 130, 1)])
def test_threads_fill_shared_memory_together(m, n, k):
    """TVM's schedule of a product for GPUs: tiles in shared memory, which all threads of a block fill."""
    @T.prim_func
    def product(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"),
                C: T.Buffer((m, n), "float32")):
        for i, j, r in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    sch = pleat.tir.Schedule(product)
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    sums = sch.cache_write(block, 0, "local")
    copies = [sch.cache_read(block, at, "shared") for at in (0, 1)]
    by, vy, ty, yi = sch.split(i, [None, 2, 4, 2])
    bx, vx, tx, xi = sch.split(j, [None, 2, 4, 2])
    r_0, r_1 = sch.split(r, [None, 4])
    sch.reorder(by, bx, vy, vx, ty, tx, r_0, r_1, yi, xi)
    for loop, thread in zip((by, bx, vy, vx, ty, tx), ("blockIdx.y", "blockIdx.x", "vthread.y", "vthread.x",
                                                       "threadIdx.y", "threadIdx.x")):
        sch.bind(loop, thread)
    for copy in copies:
        sch.compute_at(copy, r_0, preserve_unit_loops=True)
        _, y, x, _ = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 4, 4, 2])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
    sch.reverse_compute_at(sums, tx, preserve_unit_loops=True)
    sch.decompose_reduction(block, r_0)
    a, b = (np.random.default_rng(m + n).random(s, "float32") for s in ((m, k), (k, n)))
    for target in ("llvm", "opencl"):
        c = np.zeros((m, n), "float32")
        pleat.build(sch.mod, target=target)(a, b, c)
        assert np.allclose(c, a @ b, rtol=1e-5)


def sums_of_rows(n, m, dtype="float32"):
    @T.prim_func
    def sums(A: T.Buffer((n, m), dtype), B: T.Buffer((n,), dtype)):
        for i, k in T.grid(n, m):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.Cast(dtype, 3)
                B[vi] = B[vi] + A[vi, vk]
    return sums


def computes(program, expected, *inputs):
    for target in ("llvm", "opencl"):
        result = np.zeros_like(expected)
        pleat.build(program, target=target)(*inputs, result)
        assert np.allclose(result, expected, rtol=1e-5), target


@pytest.mark.parametrize("n, m, threads", [
    (64, 128, 2), (64, 128, 32), (5, 37, 1), (5, 37, 32), (5, 37, 50), (3, 1, 1), (3, 1, 50)])
def test_threads_reduce_together(n, m, threads):
    """A loop of a reduction is bound to threads: inside of and outside of the other one, beside threads that
    compute other elements, and behind partial results."""
    a = np.random.default_rng(n + m).integers(-9, 9, (n, m)).astype("float32")
    for axes in ("x", "xy", "rfactor") if m > 1 else ("x", "xy"):
        sch = pleat.tir.Schedule(sums_of_rows(n, m))
        i, k = sch.get_loops("B")
        k_0, k_1 = sch.split(k, [None, threads])
        if axes == "xy":
            i, y = sch.split(i, [None, 3])
            sch.bind(y, "threadIdx.y")
        if axes == "rfactor":
            partial = sch.rfactor(k_1, 0)
            i, k_1 = sch.get_loops("B")
            sch.compute_at(partial, k_1)
            sch.set_scope(partial, 0, "local")
        sch.bind(i, "blockIdx.x")
        sch.bind(k_1, "threadIdx.x")
        computes(sch.mod, a.sum(1) + 3, a)
        assert "shared" in pleat.build(sch.mod, target="cuda").get_source() or threads == 1


FIRST = "T.Select(V[vi] >= A[vi, vk], {0}[vi], {1})"
LEAST = "T.Select(V[vi] > A[vi, vk] or V[vi] == A[vi, vk] and I[vi] < X[vi, vk], {0}[vi], {1})"


def largest(index, value):
    return pleat.script.from_source(f"""
from pleat.script import tir as T
@T.prim_func
def largest(X: T.Buffer((5, 37), "int32"), A: T.Buffer((5, 37), "float32"), I: T.Buffer((5,), "int32"),
            V: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 37):
        with T.block("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("float32")
            index = {index.format("I", "X[vi, vk]")}
            value = {value.format("V", "A[vi, vk]")}
            I[vi] = index
            V[vi] = value
""")


@pytest.mark.parametrize("choice, part, threads", [(FIRST, 1, 8), (LEAST, 0, 20)], ids=["first", "least"])
def test_threads_find_the_largest_together(choice, part, threads):
    """Many elements are equal: the first of them counts, or that of the least number."""
    rng = np.random.default_rng(threads)
    a, numbers = rng.integers(0, 4, (5, 37)).astype("float32"), rng.permuted(np.arange(185, dtype="int32"))
    x = numbers.reshape(5, 37)
    equal = a == a.max(1, keepdims=True)
    expected = x[np.arange(5), equal.argmax(1)] if choice == FIRST else np.where(equal, x, 999).min(1)
    sch = pleat.tir.Schedule(largest(choice, choice))
    i, k = sch.get_loops("largest")
    loops = sch.split(k, [None, threads] if part else [threads, None])
    sch.bind(i, "blockIdx.x")
    sch.bind(loops[part], "threadIdx.x")
    for target in ("llvm", "opencl"):
        found, most = np.zeros(5, "int32"), np.zeros(5, "float32")
        pleat.build(sch.mod, target=target)(x, a, found, most)
        assert (found == expected).all() and (most == a.max(1)).all(), target


def test_threads_reduce_two_sums_together():
    @T.prim_func
    def both(A: T.Buffer((6, 21), "float32"), S: T.Buffer((6,), "float32"), M: T.Buffer((6,), "float32")):
        for i, k in T.grid(6, 21):
            with T.block("both"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 5.0
                    M[vi] = 0.0
                S[vi] = S[vi] - A[vi, vk]
                M[vi] = T.max(M[vi], A[vi, vk])
    sch = pleat.tir.Schedule(both)
    sch.bind(sch.get_loops("both")[1], "threadIdx.x")
    a = np.random.default_rng(2).integers(-9, 9, (6, 21)).astype("float32")
    for target in ("llvm", "opencl"):
        total, most = np.zeros(6, "float32"), np.zeros(6, "float32")
        pleat.build(sch.mod, target=target)(a, total, most)
        assert (total == 5 - a.sum(1)).all() and (most == np.maximum(a.max(1), 0)).all(), target


def test_a_softmax_in_one_kernel():
    @T.prim_func
    def softmax(A: T.Buffer((20, 70), "float32"), C: T.Buffer((20, 70), "float32")):
        M = T.alloc_buffer((20,), scope="shared")
        S = T.alloc_buffer((20,), scope="shared")
        for i, k in T.grid(20, 70):
            with T.block("M"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    M[vi] = T.min_value("float32")
                M[vi] = T.max(M[vi], A[vi, vk])
        for i, k in T.grid(20, 70):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
        for i, k in T.grid(20, 70):
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = T.exp(A[vi, vk] - M[vi]) / S[vi]
    sch = pleat.tir.Schedule(softmax)
    i, _ = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.compute_at("S", i)
    sch.compute_at("M", i)
    for block in "MSC":
        _, k_1 = sch.split(sch.get_loops(block)[-1], [None, 32])
        sch.bind(k_1, "threadIdx.x")
    a = np.random.default_rng(1).random((20, 70), "float32")
    e = np.exp(a - a.max(1, keepdims=True))
    computes(sch.mod, e / e.sum(1, keepdims=True), a)


def test_a_reduction_that_stays_in_order_is_refused():
    """Loops of the data inside of the threads' loop need partial results for all elements."""
    sch = pleat.tir.Schedule(sums_of_rows(6, 8))
    i, k = sch.get_loops("B")
    sch.reorder(k, i)
    sch.bind(k, "threadIdx.x")
    with pytest.raises(pleat.PleatError, match="share B"):
        pleat.build(sch.mod, target="opencl")


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_te_schedule_reduces_over_threads(symbolic):
    """TVM's schedule of rfactor, whose partial results are each thread's own: one element, whatever the size."""
    from pleat import te
    n, m = (te.var("n"), te.var("m")) if symbolic else (70, 45)
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.reduce_axis[0], factor=16)
    partial = s.rfactor(B, inner)
    outer, inner = s[B].split(s[B].op.axis[0], factor=32)
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[partial].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    module = pleat.lower(s, [A, B])
    assert f'B_rf = T.alloc_buffer((16, {n}), "float32", scope="local")' in module.script()
    a = np.random.default_rng(2).integers(-9, 9, (70, 45)).astype("float32")
    computes(module, a.sum(1), a)
    assert "float B_rf;" in pleat.build(module, target="cuda").get_source()


def test_model_runs_on_the_device():
    assert "agrees with the interpreter" in verified(ROOT / "examples" / "digits" / "digits.onnx")
