# SPDX-License-Identifier: Apache-2.0
"""Kernels in CUDA C++: run through the functions of CUDA's driver, in whose place a library stands that
runs them on the processor (cuda_mock.cpp), and compared with the interpreter; and compiled to PTX by
NVRTC, where it is installed (scripts/install.sh --cuda FOLDER)."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import command
import pytest
from built import skip_sanitized
from test_opencl import HEAD, Programs
from test_opencl_host import NESTED

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


@T.prim_func
def first(n: T.int32, C: T.Buffer((7,), "float32")):
    for i in T.thread_binding(n, "blockIdx.y"):
        for j in T.thread_binding(3, "threadIdx.x"):
            if i * 3 + j < 7:
                C[i * 3 + j] = T.float32(1)


@T.prim_func
def scale(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    for i in T.thread_binding(n, "blockIdx.y"):
        for j in T.thread_binding(3, "threadIdx.x"):
            C[i, j] = A[i, j] * T.float32(2)


def source(program):
    return pleat.build(program, target="cuda", cache=False).get_source()


def test_names_of_functions_of_cuda():
    """A kernel named as a function of CUDA C++ would be another instance of it with "C" linkage."""
    module = pleat.IRModule({"exp10": swizzled, "rsqrtf": swizzled, "mine": swizzled})
    text = pleat.build(module, target="cuda", cache=False).get_source()
    assert re.findall(r"\b(exp10|rsqrtf|mine)\(", text) == ["mine"]


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


# ---- Runs: on the processor, through a driver and a compiler that stand for CUDA's ------------------

@pytest.fixture(scope="module")
def mock(tmp_path_factory):
    """The folder of libcuda.so.1 and libnvrtc.so.13."""
    folder = tmp_path_factory.mktemp("cuda")
    compiler = ["g++", "-std=c++17", "-O1", "-fPIC", "-Wall", "-Werror",
                f'-DCUDA_ON_PROCESSOR="{HERE / "cuda_on_processor.h"}"', "-c", "-o", folder / "mock.o"]
    subprocess.run([*compiler, HERE / "cuda_mock.cpp"], check=True)
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        subprocess.run(["g++", "-shared", f"-Wl,-soname,{name}", "-o", folder / name, folder / "mock.o",
                        "-ldl"], check=True)
    return folder


class Mock:
    def __init__(self, folder, scratch):
        self.log = scratch / "log"
        self.environment = {**os.environ, "TERM": "dumb", "LD_LIBRARY_PATH": str(folder),
                            "CUDA_MOCK_LOG": str(self.log), "CUDA_MOCK_FOLDER": str(scratch)}

    def run(self, *command, **more):
        """Runs a command whose environment has these variables too; the finished process."""
        return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              env={**self.environment, **more}, check=False, timeout=300)

    def verified(self, path):
        done = self.run(command.PLEAT, "verify", path, "--target", "cuda", "--no-cache")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, path, *options, verb="verify", **more):
        done = self.run(command.PLEAT, verb, path, "--target", "cuda", "--no-cache", *options, **more)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    def calls(self):
        return self.log.read_text().splitlines()


@pytest.fixture
def cuda(mock, tmp_path):
    return Mock(mock, tmp_path)


def written(folder, text):
    path = folder / "program.py"
    path.write_text(text)
    return path


def test_calls_of_a_run(cuda, tmp_path):
    """Each region copies its tensors in, runs, and copies back what it wrote; all memory is freed."""
    path = written(tmp_path, HEAD + """@T.prim_func
def f(A: T.Buffer((7, 3), "float32"), n: T.int32, C: T.Buffer((5, 2), "float64")):
    for b in T.thread_binding(5, "blockIdx.y"):
        for t in T.thread_binding(2, "threadIdx.z"):
            C[b, t] = T.Cast("float64", A[b, t] * T.Cast("float32", n))
""")
    done = cuda.run(command.PLEAT, "run", path, "--fill", "random", "--target", "cuda", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert cuda.calls() == [
        "retain", "compile --gpu-architecture=compute_75 --fmad=false", "load", "function k0", "allocate 84", "copy in 84", "allocate 80", "copy in 80",
        "launch (1, 5, 1) of (1, 1, 2)", "synchronize", "copy out 80", "free", "free", "unload", "release"]


def test_swizzled_shared_memory(cuda, tmp_path):
    text = pleat.IRModule({"swizzled": swizzled}).script()
    assert "'swizzled' agrees with the interpreter" in cuda.verified(written(tmp_path, text))


def test_types(cuda, tmp_path):
    text = pleat.IRModule({"types": types}).script()
    assert "'types' agrees with the interpreter" in cuda.verified(written(tmp_path, text))


@pytest.mark.parametrize("kind", ["shared", "parallel", "serial"])
def test_random_programs(cuda, tmp_path, kind):
    text = HEAD + "\n\n".join(getattr(Programs(f"{kind} {seed}"), kind)(f"f{seed}")
                              for seed in range(6))
    assert cuda.verified(written(tmp_path, text)).count(" agrees with the interpreter") == 6


PARALLEL = HEAD + """@T.prim_func
def f(A: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")):
    for i in T.parallel(n):
        C[i] = A[i] + T.float32(1)
"""


@pytest.mark.parametrize("n, blocks", [(2, 1), (127, 1), (128, 1), (129, 2), (1000, 8)])
def test_blocks_of_a_parallel_loop(cuda, tmp_path, n, blocks):
    cuda.verified(written(tmp_path, PARALLEL.replace("(n", f"({n}")))
    assert f"launch ({blocks}, 1, 1) of (128, 1, 1)" in cuda.calls()


RUN = """import sys
sys.path[:0] = {paths!r}
import built, numpy as np, pleat
from test_cuda import first, scale
for n in (0, 1, 7):
    a, c = np.arange(3 * n, dtype="float32").reshape(n, 3), np.zeros((n, 3), "float32")
    pleat.build(scale, target="cuda", cache=False)(a, c)
    assert np.array_equal(c, 2 * a)
a, built = np.zeros(7, "float32"), pleat.build(first, target="cuda", cache=False)
for n in (65535, 65536):
    try:
        built(n, a)
    except pleat.PleatError as error:
        print(n, error)
assert np.all(a == 1)
assert "// code: " in built.get_source("ptx")
"""


def test_build_runs_on_the_device(cuda, mock, tmp_path):
    """Blocks follow a size of the call, none of them are started for none, and there are most of them.
    The compiler is that of a Python package."""
    (tmp_path / "nvidia/cu13/lib").mkdir(parents=True)
    shutil.copy(mock / "libnvrtc.so.13", tmp_path / "nvidia/cu13/lib")
    (tmp_path / "lib").mkdir()
    shutil.copy(mock / "libcuda.so.1", tmp_path / "lib")
    done = cuda.run(sys.executable, "-c", RUN.format(paths=[str(tmp_path), str(HERE)]),
                    LD_LIBRARY_PATH=tmp_path / "lib")
    assert done.returncode == 0, done.stderr
    assert [line for line in cuda.calls() if "launch" in line] == [
        f"launch (1, {n}, 1) of (3, 1, 1)" for n in (1, 7, 65535)]
    assert done.stdout.startswith("65536 ") and "more blocks along an axis than the device can start" in done.stdout


@pytest.mark.parametrize("failing, message", [
    ("Init,1,100", "the driver finds no device"),
    ("DeviceGet,1,101", "the driver finds no device"),
    ("DevicePrimaryCtxRetain,1,2", "the device does not start"),
    ("ModuleLoadData,1,222", "older than NVRTC, whose PTX it does not know (error 222)"),
    ("ModuleGetFunction,1,500", "'k0' is not in the device's program"),
    ("MemAlloc,2,2", "the CUDA device has not enough memory"),
    ("MemcpyHtoD,1,1", "the CUDA device failed"),
    ("LaunchKernel,1,701", "needs more registers or shared memory than the CUDA device has"),
    ("CtxSynchronize,1,700", "accessed memory of the CUDA device that is not its own"),
    ("MemcpyDtoH,1,702", "ran longer than the CUDA device allows"),
    ("CtxPushCurrent,4,201", "the CUDA device failed"),
])
def test_errors_of_the_driver(cuda, tmp_path, failing, message):
    path = written(tmp_path, PARALLEL.replace("(n", "(5"))
    assert message in cuda.refused(path, CUDA_MOCK_FAIL=failing)
    calls = cuda.calls() if cuda.log.exists() else []
    assert sum("allocate" in call for call in calls) == calls.count("free")
    for first, last in (("load", "unload"), ("retain", "release")):
        assert failing.startswith(("Module", "DevicePrimary")) or calls.count(first) == calls.count(last)


def test_errors_of_the_compiler(cuda, tmp_path):
    path = written(tmp_path, PARALLEL.replace("(n", "(5"))
    assert "NVRTC refuses the code" in cuda.refused(path, CUDA_MOCK_FAIL="CompileProgram,1,6")
    assert "makes no code for devices of compute capability 8.6" in \
        cuda.refused(path, CUDA_MOCK_ARCH="90,100")


@pytest.mark.parametrize("known, chosen", [("75,80,86,90", 86), ("80,75,90", 80), ("75", 75)])
def test_architecture_of_the_device(cuda, tmp_path, known, chosen):
    """A run compiles for the last architecture that the device has, a file for the first one of all."""
    path = written(tmp_path, PARALLEL.replace("(n", "(5"))
    for arguments in (("verify", path), ("compile", path, "-o", tmp_path / "x.ptx")):
        done = cuda.run(command.PLEAT, *arguments, "--target", "cuda", "--no-cache", CUDA_MOCK_ARCH=known)
        assert done.returncode == 0, done.stderr
    assert [call for call in cuda.calls() if "compile" in call] == [
        f"compile --gpu-architecture=compute_{number} --fmad=false" for number in (chosen, 75)]


def test_no_driver(tmp_path):
    """Without a driver, or a compiler, the message says which, and what to install."""
    path = written(tmp_path, PARALLEL.replace("(n", "(5"))
    nothing = Mock(tmp_path, tmp_path)
    message = nothing.refused(path, "--fill", "zero", verb="run")
    if "libcuda.so.1" not in message:
        pytest.skip("this machine has a driver")
    assert "no CUDA device can be used: libcuda.so.1" in message and "install.sh --cuda" in message


# ---- Programs in C ---------------------------------------------------------------------------------

CALL = """import sys
sys.path[:0] = {paths!r}
import ctypes, numpy as np
from test_opencl_host import aligned, nested, pointers, random_numbers
library, a = ctypes.CDLL({library!r}), aligned(random_numbers(4, 30))
arena = aligned(np.zeros(4096, "uint8"))
for n in (0, 2, 3):
    c, scalar = aligned(np.zeros((4, 30), "float32")), aligned(np.array([n], "int32"))
    status = library.host_run(pointers([a, scalar]), pointers([c]), ctypes.c_void_p(arena.ctypes.data))
    print(status, np.array_equal(c, nested(a, n)))
"""


def host_program(folder, environment):
    """Writes the program and builds it as a library, whose text it returns."""
    written(folder, NESTED)
    for command_line in ([command.PLEAT, "compile", folder / "program.py", "--target", "cuda",
                          "-o", folder / "host.c"],
                         ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
                          folder / "host.so", folder / "host.c", "-ldl"]):
        subprocess.run([str(part) for part in command_line], env=environment, check=True)
    return (folder / "host.c").read_text()


def test_program_in_c(cuda, tmp_path):
    """The program has PTX where NVRTC is there, else it compiles its kernels itself. Kernels start in
    the host's loops, and only tensors are copied."""
    (tmp_path / "old").mkdir()  # a library without functions is no compiler
    subprocess.run(["cc", "-shared", "-o", tmp_path / "old/libnvrtc.so.13", "-xc", "/dev/null"], check=True)
    text = host_program(tmp_path, {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "old")})
    assert "nvrtcCompileProgram" in text and "libnvrtc.so.13" in (tmp_path / "host.h").read_text()
    call = CALL.format(paths=[str(HERE)], library=str(tmp_path / "host.so"))
    done = cuda.run(sys.executable, "-c", call)
    assert done.stdout == "0 True\n" * 3, done.stdout + done.stderr
    calls = cuda.calls()
    first = calls.index("copy out 480")
    assert [calls[:first].count(c) for c in ("copy in 480", "launch (6, 1, 1) of (5, 1, 1)",
                                             "launch (27, 1, 1) of (1, 1, 1)")] == [1, 4, 1]
    assert calls.count("load") == 1 and sum("compile" in c for c in calls) == 1
    assert "nvrtcCompileProgram" not in host_program(tmp_path, cuda.environment)
    for failing, lines in (("LaunchKernel,5,700", ["5 False", "0 True", "0 True"]),
                           ("MemAlloc,2,2", ["4 False", "0 True", "0 True"])):
        done = cuda.run(sys.executable, "-c", call, CUDA_MOCK_FAIL=failing)
        assert done.stdout.split("\n")[:3] == lines, done.stdout + done.stderr


# ---- NVRTC -----------------------------------------------------------------------------------------

def ptx(folder, text):
    """The PTX that `compile` writes, where NVRTC is installed."""
    out = folder / "x.ptx"
    done = subprocess.run([command.PLEAT, "compile", written(folder, text), "--target", "cuda", "-o", out],
                          capture_output=True, text=True, env=wheel_environment(), check=False)
    if "NVRTC is not installed" in done.stderr:
        assert "install.sh --cuda" in done.stderr and not out.exists()
        pytest.skip("nvidia-cuda-nvrtc is not installed; scripts/install.sh --cuda FOLDER installs it")
    assert done.returncode == 0, done.stderr
    return out.read_text()


def wheel_environment():
    found = importlib.util.find_spec("nvidia")
    folders = [str(path) for folder in (found.submodule_search_locations if found else ())
               for path in sorted(pathlib.Path(folder).glob("*/lib"))]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders + [os.environ.get("LD_LIBRARY_PATH", "")])}


def test_nvrtc_compiles_the_swizzled_kernel(tmp_path):
    text = ptx(tmp_path, pleat.IRModule({"swizzled": swizzled}).script())
    assert "bar.sync" in text and "xor.b32" in text and ".shared .align 64 .b8" in text
    assert text.startswith("// swizzled: CUDA C++") and "// swizzled: blocks (1, 1, 1) of threads (16, 16, 1)" in text


def test_nvrtc_compiles_vectors(tmp_path):
    assert "ld.global.nc.v4.u16" in ptx(tmp_path, pleat.IRModule({"types": types}).script())


@pytest.mark.parametrize("kind", ["shared", "parallel", "serial"])
def test_nvrtc_compiles_random_programs(tmp_path, kind):
    text = HEAD + getattr(Programs(f"nvrtc {kind}"), kind)("f")
    assert ".visible .entry f(" in ptx(tmp_path, text)
