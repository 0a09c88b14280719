# SPDX-License-Identifier: Apache-2.0
"""Files that the command writes: those of one call appear all or none, older ones stay as they are
on failure, and the message says what was missing."""
import fcntl
import os
import resource
import signal
import subprocess

import pytest
from built import skip_sanitized
from command import PLEAT, ROOT, pleat

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
MATMUL = ROOT / "examples" / "kernels" / "matmul.py"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(name="small_disk")
def make_small_disk(tmp_path):
    """Mounts a folder of 64 KiB: the code of digits fits, and its weights beside it do not."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)],
                             capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))


@pytest.mark.parametrize("ending", [".c", ".so"])
def test_a_full_disk_leaves_older_files(small_disk, ending):
    for name in ("digits" + ending, f"digits{ending}.weights"):
        (small_disk / name).write_bytes(b"old")
    (small_disk / "large").write_bytes(bytes(28 << 10))
    before = contents(small_disk)
    said = pleat("compile", DIGITS, "-o", small_disk / ("digits" + ending), "--emit-weights",
                 "beside", status=1)
    assert f"the disk that holds folder '{small_disk}' is full: " in said
    assert "cannot write " in said and " bytes: " in said
    assert contents(small_disk) == before


def test_a_limit_of_file_size_is_named(tmp_path):
    said = pleat("compile", DIGITS, "-o", tmp_path / "digits.c", "--emit-weights", "beside",
                 status=1, preexec_fn=limit_files)
    assert "this process may write files of at most 30000 bytes" in said
    assert contents(tmp_path) == {}


def test_all_files_appear(tmp_path):
    pleat("compile", DIGITS, "-o", tmp_path / "digits.c", "--emit-weights", "beside")
    assert sorted(contents(tmp_path)) == ["digits.c", "digits.c.weights", "digits.h"]


def test_results_and_trace_appear_together(tmp_path):
    said = pleat("run", MATMUL, "--fill", "random", "--trace", tmp_path / "trace.json", "-o",
                 tmp_path / "out.npz", status=1, preexec_fn=limit_files)
    assert "out.npz:error: " in said or "out.npz: error: " in said
    assert contents(tmp_path) == {}


def test_one_path_for_two_files_is_refused(tmp_path):
    said = pleat("run", MATMUL, "--fill", "random", "--trace", tmp_path / "out", "-o",
                 tmp_path / "out", status=1)
    assert "is named for two outputs" in said and contents(tmp_path) == {}


def test_a_killed_writer_leaves_no_file_for_long(tmp_path):
    """A temporary file is removed by the next writer, unless its own writer still runs."""
    abandoned = tmp_path / "digits.h.pleat-part"
    abandoned.write_bytes(b"half")
    in_use = tmp_path / "digits.c.pleat-part"
    with open(in_use, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        pleat("compile", DIGITS, "-o", tmp_path / "digits.c")
        assert sorted(contents(tmp_path)) == ["digits.c", "digits.c.pleat-part", "digits.h"]


def test_output_to_a_device_that_is_full():
    said = pleat("opt", MATMUL, "-o", "/dev/full", status=1)
    assert "/dev/full" in said and "No space left on device" in said


# ---- Headers


def test_a_header_says_what_it_declares(tmp_path):
    """Code in C and native code have different interfaces; the one header NAME.h is for the last."""
    pleat("compile", DIGITS, "-o", tmp_path / "digits.c")
    header = tmp_path / "digits.h"
    assert header.read_text().startswith("// Written by pleat: the interface of digits.c.\n")
    done = subprocess.run([PLEAT, "compile", DIGITS, "-o", tmp_path / "digits.o"],
                          capture_output=True, text=True, check=True)
    assert "declared 'digits.c', whose interface differs, and now declares 'digits.o'" in done.stderr
    done = subprocess.run([PLEAT, "compile", DIGITS, "-o", tmp_path / "digits.s"],
                          capture_output=True, text=True, check=True)
    assert done.stderr == "" and "the interface of digits.s.\n" in header.read_text()


def test_a_header_of_the_user_stays(tmp_path):
    (tmp_path / "digits.h").write_text("int mine;\n")
    said = pleat("compile", DIGITS, "-o", tmp_path / "digits.c", status=1)
    assert "is not a header that pleat wrote" in said
    assert contents(tmp_path) == {"digits.h": b"int mine;\n"}


def test_each_file_of_code_keeps_its_weights(tmp_path):
    """Files of one name share a header, and a header that says the same of both is not warned of."""
    apart = ["--emit-weights", "beside"]
    pleat("compile", DIGITS, "-o", tmp_path / "digits.c", *apart, "--cpu", "sse2")
    first = (tmp_path / "digits.c.weights").read_bytes()
    pleat("compile", DIGITS, "-o", tmp_path / "digits.so", *apart)
    assert sorted(contents(tmp_path)) == ["digits.c", "digits.c.weights", "digits.h", "digits.so",
                                          "digits.so.weights"]
    assert (tmp_path / "digits.c.weights").read_bytes() == first
    assert "digits.so.weights, aligned" in (tmp_path / "digits.h").read_text()
    again = subprocess.run([PLEAT, "compile", DIGITS, "-o", tmp_path / "digits.o", *apart],
                           capture_output=True, text=True, check=True)
    assert again.stderr == "" and "digits.o.weights" in (tmp_path / "digits.h").read_text()


# Signals the command that started it, and waits to be stopped with half of an output written.
COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo half > "$2"
kill -{} $PPID
exec sleep 60
"""


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_removes_temporary_files(tmp_path, name):
    folder, temporary, compiler = tmp_path / "out", tmp_path / "tmp", tmp_path / "cc"
    folder.mkdir()
    temporary.mkdir()
    (folder / "matmul.so").write_bytes(b"old")
    compiler.write_text(COMPILER.format(name))
    compiler.chmod(0o755)
    number = getattr(signal, "SIG" + name)
    # Programs that are started in the background of a shell ignore SIGINT.
    done = subprocess.run([PLEAT, "compile", MATMUL, "-o", folder / "matmul.so"],
                          env={**os.environ, "TMPDIR": str(temporary), "CC": str(compiler)},
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
                          capture_output=True, check=False)
    assert done.returncode == -number
    assert contents(folder) == {"matmul.so": b"old"}
    assert not list(temporary.iterdir())


def test_a_file_for_a_device_has_its_plan(tmp_path):
    """A program that was built for the processor is planned for the device whose file it is written to."""
    skip_sanitized()
    package = pytest.importorskip("pleat")
    model = package.Model(str(MATMUL), cache=False, quick=True)
    model.write(tmp_path / "a.cl")
    pleat("compile", MATMUL, "-o", tmp_path / "b.cl")
    assert (tmp_path / "a.cl").read_text() == (tmp_path / "b.cl").read_text()
    with pytest.raises(package.PleatError, match="opencl: this target does not write files like .*a.so"):
        model.write(tmp_path / "a.so", target="opencl")
