# SPDX-License-Identifier: Apache-2.0
"""The command under test ($PLEAT, else build/pleat), and the models that tests write for it."""
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
SECONDS = 300


def level_here(level):
    """Has this machine the level of processor, so that its code runs here?"""
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return {"avx512vnni": "avx512_vnni", "avx512": "avx512f", "avx2": "avx2"}.get(level, "fpu") in flags


def run_pleat(*arguments, status=0, **options):
    """The finished process, with its standard output and its messages as text."""
    done = subprocess.run([PLEAT, *map(str, arguments)], capture_output=True, text=True, check=False,
                          timeout=SECONDS, env=dict(os.environ, TERM="dumb"), **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def pleat(*arguments, status=0, **options):
    """Standard output; the errors where the status says that there are some."""
    done = run_pleat(*arguments, status=status, **options)
    return done.stderr if status else done.stdout


def value_info(name, shape, kind=1):
    """An input or output; kind 1 is float32."""
    from onnx import helper
    return helper.make_tensor_value_info(name, kind, shape)


def make_model(nodes, inputs, outputs, weights=()):
    from onnx import helper
    graph = helper.make_graph(nodes, "case", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def save_model(path, *parts):
    """Saves the model of parts, as make_model takes them, and returns the path."""
    import onnx
    onnx.save(make_model(*parts), path)
    return path


def half():
    """0 or 1, the half of the cases that this commit runs."""
    if not shutil.which("git"):
        return 0
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True,
                           check=False).stdout.strip()
    return int(found[-1:] or "0", 16) % 2
