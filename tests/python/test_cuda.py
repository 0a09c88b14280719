# SPDX-License-Identifier: Apache-2.0
"""Kernels in CUDA C++: run on the processor, where g++ compiles them with threads for those of a block,
and compared with the programs that LLVM compiles; and compiled to PTX by NVRTC, where it is installed
(scripts/install.sh --cuda FOLDER)."""
import ctypes
import importlib.util
import pathlib
import re
import subprocess

import numpy as np
import pytest
from built import skip_sanitized
from test_opencl import HEAD, Programs

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir as T  # noqa: E402

HERE = pathlib.Path(__file__).parent


@T.prim_func
def swizzled(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    """A transposition through shared memory whose columns are permuted by XOR, so that neither rows
    nor columns meet in one bank."""
    for b in T.thread_binding(1, thread="blockIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((16, 16), "float32", scope="shared")
            for i in T.thread_binding(16, thread="threadIdx.y"):
                for j in T.thread_binding(16, thread="threadIdx.x"):
                    S[i, T.bitwise_xor(i, j)] = A[i, j]
            for i in T.thread_binding(16, thread="threadIdx.y"):
                for j in T.thread_binding(16, thread="threadIdx.x"):
                    C[i, j] = S[j, T.bitwise_xor(i, j)]


@T.prim_func
def types(A: T.Buffer((60,), "float16"), C: T.Buffer((15, 4), "int32")):
    """Vectors of several types, conversions that leave the range, integers that wrap."""
    for b in T.parallel(15):
        for v in T.vectorized(4):
            C[b, v] = (T.Cast("int32", T.Cast("float32", A[b * 4 + v]) * T.float32(1e9))
                       * T.int32(2147483647)) >> 2


def numbers(*shape, dtype="float32"):
    return np.random.default_rng(5).standard_normal(shape).astype(dtype)


def source(program):
    return pleat.build(program, target="cuda", cache=False).get_source()


def test_source_of_a_module():
    text = source(swizzled)
    assert "__shared__ float S[256]" in text and "__syncthreads();" in text
    assert "(i ^ j)" in text


@T.prim_func
def wide(C: T.Buffer((1025,), "float32")):
    for t in T.thread_binding(1025, thread="threadIdx.x"):
        C[t] = 1.0


def test_what_the_target_cannot_take_is_refused_by_build():
    with pytest.raises(pleat.PleatError, match="has 1025 threads of a block along threadIdx.x; CUDA"):
        pleat.build(wide, target="cuda", cache=False)


# ---- On the processor ------------------------------------------------------------------------------

LAUNCH = re.compile(r"^// (\w+): blocks \(([^)]*)\) of threads \(([^)]*)\)$", re.M)
PARALLEL = re.compile(r"^// (\w+): end - begin threads in blocks of (\d+)", re.M)
KERNEL = re.compile(r"^extern \"C\" __global__ .*\n(\w+)\(([^)]*)\) {", re.M)


def launcher(text, items):
    """Functions run_NAME(addresses) that start the kernels of the text; `items`: the iterations of
    parallel regions."""
    starts = {name: (blocks, threads) for name, blocks, threads in LAUNCH.findall(text)}
    for name, size in PARALLEL.findall(text):
        starts[name] = f"{-(-items // int(size))}, 1, 1", f"{size}, 1, 1"
    wrappers, order = [], []
    for name, parameters in KERNEL.findall(text):
        given = [p.strip().rpartition("__restrict__ ") for p in parameters.split(",")[:-2]]
        arguments = [f"({kind} __restrict__)argument_{variable}" for kind, _, variable in given]
        blocks, threads = starts[name]
        wrappers.append(f"launch({{{blocks}}}, {{{threads}}}, [=] {{ "
                        f"{name}({', '.join(arguments + ['0', str(items)])}); }});")
        order += [variable for _, _, variable in given]
    names = sorted(set(order))
    declared = ", ".join(f"void *argument_{name}" for name in names)
    return names, f'extern "C" void run({declared}) {{ {" ".join(wrappers)} }}\n'


def on_processor(folder, text, items, **arrays):
    names, run = launcher(text, items)
    path, library = folder / "kernels.cpp", folder / "kernels.so"
    path.write_text(f"{text}\n{run}")
    subprocess.run(["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-shared",
                    "-fPIC", "-pthread", "-w", "-include", str(HERE / "cuda_on_processor.h"), "-o",
                    str(library), str(path)], check=True)
    ctypes.CDLL(str(library)).run(*(ctypes.c_void_p(arrays[name].ctypes.data) for name in names))


def aligned(array):
    """A copy at an address of 64 bytes, as memory of tensors has."""
    memory = np.zeros(array.nbytes + 64, "uint8")
    start = -memory.ctypes.data % 64
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def check(folder, program, items, a, c, rtol=0.0):
    expected, a, c = c.copy(), aligned(a), aligned(c)
    pleat.build(program, cache=False)(a, expected)
    on_processor(folder, source(program), items, A=a, C=c)
    np.testing.assert_allclose(c, expected, rtol=rtol, atol=rtol)
    return c


def test_swizzled_shared_memory(tmp_path):
    a = numbers(16, 16)
    assert np.array_equal(check(tmp_path, swizzled, 0, a, np.zeros((16, 16), "float32")), a.T)


def test_types(tmp_path):
    a = numbers(60, dtype="float16")
    a[3], a[7], a[8], a[21] = np.nan, np.inf, -np.inf, 3.0
    check(tmp_path, types, 15, a, np.zeros((15, 4), "int32"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["shared", "parallel", "serial"])
def test_random_programs(tmp_path, kind, seed):
    made = Programs(f"{kind} {seed}")
    module = pleat.script.from_source(HEAD + getattr(made, kind)("f"))
    program = module["f"] if isinstance(module, pleat.IRModule) else module
    shapes = [[int(size) for size in p.shape] for p in pleat.build(program, cache=False)["f"].parameters]
    check(tmp_path, program, made.rows, numbers(*shapes[0]), np.zeros(shapes[1], "float32"), 1e-5)


# ---- NVRTC -----------------------------------------------------------------------------------------

def nvrtc():
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations if found else ():
        for path in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    pytest.skip("nvidia-cuda-nvrtc is not installed; scripts/install.sh --cuda FOLDER installs it")


def ptx(text):
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 2)(b"--gpu-architecture=compute_75", b"--fmad=false")
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"x.cu", 0, None, None) == 0
    status = library.nvrtcCompileProgram(program, len(options), options)
    which = "ProgramLog" if status else "PTX"
    getattr(library, f"nvrtcGet{which}Size")(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{which}")(program, result)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert not status, result.value.decode()
    return result.value.decode()


def test_nvrtc_compiles_the_swizzled_kernel():
    text = ptx(source(swizzled))
    assert "bar.sync" in text and "xor.b32" in text and ".shared .align 64 .b8" in text


def test_nvrtc_compiles_vectors():
    assert "ld.global.nc.v4.u16" in ptx(source(types))


@pytest.mark.parametrize("kind", ["shared", "parallel", "serial"])
def test_nvrtc_compiles_random_programs(kind):
    made = Programs(f"nvrtc {kind}")
    module = pleat.script.from_source(HEAD + getattr(made, kind)("f"))
    assert ".visible .entry f(" in ptx(source(module))
