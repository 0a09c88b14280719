# SPDX-License-Identifier: Apache-2.0
"""Host programs in C for an OpenCL device, which compile --target opencl writes: built by the system's
compiler, run on the device, and compared with the same program on the processor or with NumPy."""
import ctypes
import subprocess

import command
import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from test_opencl import CONVOLUTION, CONVOLUTION_STEPS, HEAD, device, scheduled  # noqa: E402,F401

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def aligned(array):
    """A copy whose memory is aligned to 64 bytes."""
    memory = np.zeros(array.nbytes + 64, "uint8")
    start = -memory.ctypes.data % 64
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def pointers(arrays):
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))


def number(folder, name, suffix):
    """The constant NAME_SUFFIX of the header."""
    head = (folder / f"{name}.h").read_text()
    return int(head.split(f"#define {name.upper()}_{suffix} ")[1].split()[0])


class Host:
    """The host program of a model or kernel, built as a shared library."""

    def __init__(self, folder, source, *options):
        self.weights = []
        command.pleat("compile", source, "--target", "opencl", "-o", folder / "host.c", *options)
        self.text = (folder / "host.c").read_text()
        subprocess.run(["cc", "-std=gnu11", "-Wall", "-Werror", "-O1", "-shared", "-fPIC",
                        "-o", folder / "host.so", folder / "host.c", "-ldl"], check=True)
        self.library = ctypes.CDLL(str(folder / "host.so"))
        self.arena = aligned(np.full(number(folder, "host", "ARENA_BYTES") + 1, 171, "uint8"))
        if (folder / "host.c.weights").exists():
            self.weights = [aligned(np.fromfile(folder / "host.c.weights", "uint8"))]

    def run(self, inputs, outputs):
        inputs = [aligned(array) for array in inputs]
        results = [aligned(array) for array in outputs]
        weights = [ctypes.c_void_p(array.ctypes.data) for array in self.weights]
        status = self.library.host_run(*weights, pointers(inputs), pointers(results),
                                       ctypes.c_void_p(self.arena.ctypes.data))
        for result, output in zip(results, outputs):
            output[...] = result
        return status


def random_numbers(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_model(tmp_path, weights):
    host = Host(tmp_path, DIGITS, "--emit-weights", weights)
    model = pleat.compile(str(DIGITS), cache=False)
    for seed in range(3):  # the device keeps the weights of the first run
        image = random_numbers(1, 1, 8, 8, seed=seed)
        result = np.zeros((1, 10), "float32")
        assert host.run([image], [result]) == 0
        assert np.allclose(result, model.run({"image": image})[0], 1e-4, 1e-6)


def test_textures_are_images(tmp_path):
    host = Host(tmp_path, scheduled(tmp_path, CONVOLUTION, CONVOLUTION_STEPS))
    a, w = random_numbers(1, 9, 7, 8), random_numbers(3, 3, 8, 12, seed=4)
    c = np.zeros((1, 7, 5, 12), "float32")
    assert host.run([a, w], [c]) == 0
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), (1, 2))
    assert np.allclose(c, np.einsum("nhwcrs,rsck->nhwk", windows, w), 1e-4, 1e-4)
    # Bytes, rows and texels of a row of the two images.
    assert "{2016, 18, 7, 4318}," in host.text and "{3456, 9, 24, 4318}," in host.text


PIECES = """from pleat.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 5, 7, 3), "float32"), y: R.Tensor((1, 2, 7, 3), "float32")):
        a = R.nn.softmax(x, axis=1)
        b = R.nn.softmax(y, axis=1)
        c = R.concat((a, b), axis=1)
        d = R.nn.softmax(c, axis=1)
        return d
"""


def test_tensors_that_are_pieces_of_others(tmp_path):
    """Kernels write parts of a tensor, which another one reads as a whole."""
    (tmp_path / "pieces.py").write_text(PIECES)
    host = Host(tmp_path, tmp_path / "pieces.py")
    x, y = random_numbers(1, 5, 7, 3), random_numbers(1, 2, 7, 3, seed=4)
    result = np.zeros((1, 7, 7, 3), "float32")

    def softmax(t):
        return np.exp(t) / np.exp(t).sum(1, keepdims=True)
    expected = softmax(np.concatenate([softmax(x), softmax(y)], 1))
    assert host.run([x, y], [result]) == 0
    assert np.allclose(result, expected, 1e-4, 1e-6)


GATHER = HEAD + """@T.prim_func
def f(A: T.Buffer((7,), "float32"), I: T.Buffer((5,), "int32"), C: T.Buffer((5,), "float32")):
    for i in T.thread_binding(5, "threadIdx.x"):
        C[i] = A[I[i]]
"""


def test_accesses_out_of_bounds_are_reported(tmp_path):
    (tmp_path / "f.py").write_text(GATHER)
    host = Host(tmp_path, tmp_path / "f.py")
    a, c = random_numbers(7), np.zeros(5, "float32")
    indices = np.array([6, 0, 3, 3, 1], "int32")
    assert host.run([a, indices], [c]) == 0
    assert np.array_equal(c, a[indices])
    assert host.run([a, np.array([6, 0, 7, 3, 1], "int32")], [c]) == 2
    assert host.run([a, indices], [c]) == 0


NESTED = HEAD + """@T.prim_func
def f(A: T.Buffer((4, 30), "float32"), n: T.int32, C: T.Buffer((4, 30), "float32")):
    for s in range(4):
        B = T.alloc_buffer((30,), "float32")
        for b in T.thread_binding(6, "blockIdx.x"):
            for t in T.thread_binding(5, "threadIdx.x"):
                B[b * 5 + t] = A[s, b * 5 + t] * T.Cast("float32", s + 2)
        for b in T.thread_binding(30 - s, "blockIdx.x"):
            C[s, b] = B[29 - b]
        for k in range(s):
            C[s, 29 - k] = T.Cast("float32", k)
            if n > 2:
                for b in T.thread_binding(3, "blockIdx.y"):
                    C[s, b] = C[s, b] + T.float32(1)
            else:
                for b in T.thread_binding(n, "blockIdx.y"):
                    C[s, b] = C[s, b] - T.float32(1)
"""


def nested(a, n):
    c = a[:, ::-1] * np.arange(2, 6, dtype="float32")[:, None]
    for s in range(4):
        c[s, 30 - s:] = np.arange(s)[::-1]
        c[s, :3 if n > 2 else n] += np.float32(s if n > 2 else -s)
    return c


def test_loops_of_the_host(tmp_path):
    """Several kernels in loops and conditions, which get the values of the loops and a scalar."""
    (tmp_path / "f.py").write_text(NESTED)
    host, a = Host(tmp_path, tmp_path / "f.py"), random_numbers(4, 30)
    built = pleat.build(pleat.script.from_source(NESTED), target="opencl", cache=False)
    for n in (0, 2, 3):
        c, d = np.zeros((4, 30), "float32"), np.zeros((4, 30), "float32")
        assert host.run([a, np.array(n, "int32")], [c]) == 0
        built(a, n, d)
        assert np.array_equal(c, nested(a, n)) and np.array_equal(d, c)


@pytest.mark.parametrize("target, ending, word", [("opencl", ".cl", "__kernel"), ("cuda", ".cu", "__global__")])
def test_kernels_alone(tmp_path, target, ending, word):
    path = (tmp_path / "digits").with_suffix(ending)
    command.pleat("compile", DIGITS, "--target", target, "-o", path)
    assert word in path.read_text()
