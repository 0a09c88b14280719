# SPDX-License-Identifier: Apache-2.0
"""Standard streams that are closed, full or left early by their reader."""
import os
import pathlib
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LISTS = [("plan", DIGITS), ("plan", DIGITS, "--json"), ("check", DIGITS, "--json"), ("--help",),
         ("--version",), ("opt", "--list"), ("run", "--help"), ("layout", "NCHW8c"),
         ("inspect", DIGITS)]


@pytest.mark.parametrize("words", LISTS, ids=lambda words: " ".join(map(str, words[-2:])))
@pytest.mark.parametrize("output", ["full", "closed"])
def test_output_that_cannot_be_written(words, output):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PLEAT, *map(str, words)], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False,
                              preexec_fn=(lambda: os.close(1)) if output == "closed" else None)
    assert done.returncode == 1
    why = "No space left on device" if output == "full" else ""
    assert done.stderr.count(f"cannot write standard output: {why}") == 1


def test_a_closed_output_is_not_given_to_a_file(tmp_path):
    """The first file that is opened must not become standard output."""
    subprocess.run([PLEAT, "opt", str(ROOT / "examples" / "kernels" / "matmul.py"), "-o",
                    str(tmp_path / "out.py")], check=False, stderr=subprocess.DEVNULL,
                   preexec_fn=lambda: (os.close(0), os.close(1), os.close(2)))
    assert (tmp_path / "out.py").read_text().startswith("from pleat.script import")


def test_a_reader_that_leaves_ends_the_command_quietly():
    done = subprocess.Popen([PLEAT, "plan", str(DIGITS), "--programs"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, restore_signals=True)
    done.stdout.close()
    assert done.stderr.read() == b"" and done.wait() == -signal.SIGPIPE
