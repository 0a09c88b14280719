# SPDX-License-Identifier: Apache-2.0
"""A subcommand that fails with --json prints its diagnostics as data: the same ones with the same
exit status as without the option."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
DIGITS = "examples/digits/digits.onnx"
FIELDS = ["severity", "code", "file", "line", "column", "width", "source", "node", "text", "notes"]
# One call for each place where a subcommand can fail, with the code of its first message.
CALLS = [
    (["run"], "option"),
    (["run", "missing.onnx"], "file"),
    (["run", DIGITS, "--no-such-option"], "option"),
    (["run", DIGITS, "--threads", "0x"], "option"),
    (["run", DIGITS, "--input", "nothing=a.npy"], "file"),
    (["run", DIGITS, "--fill", "zero", "--input-layout", "image=NHW"], "option"),
    (["run", DIGITS], "option"),
    (["run", "tests/cases/cli/check_wrong.py"], "syntax"),
    (["check", "tests/cases/cli/check_wrong.py"], "syntax"),
    (["check", "missing.onnx"], "file"),
    (["inspect", "missing.pleat"], "file"),
    (["inspect", DIGITS, "--dim", "batch=2"], "option"),
    (["plan", DIGITS, "--desired-layout", "Conv=NC"], "option"),
    (["plan", DIGITS, "--why", "nothing"], "option"),
    (["plan", DIGITS, "--html", "/nowhere/plan.html"], "file"),
    (["plan", DIGITS, "--tuning", "examples/kernels/none.py"], "file"),
    (["plan", DIGITS, "--operators", "examples/kernels/none.so"], "file"),
    (["plan", DIGITS, "--tuning", "tests/cases/cli/check_wrong.py"], "syntax"),
    (["plan", DIGITS, "--write-tuning", "/nowhere/tuning.py"], "file"),
    (["plan", DIGITS, "--lp", "/nowhere/plan.lp"], "file"),
    (["verify", DIGITS, "--rtol", "0", "--atol", "0", "--max-ulp", "0"], "fault"),
    (["verify", "missing.onnx"], "file"),
    (["bench", "--op", "nosuch 3x4"], "option"),
    (["bench", "missing.onnx"], "file"),
    (["bench", DIGITS, "--threads", "2", "--write-tuning", "/nowhere/t.py"], "option"),
    (["cache", "--no-such"], "option"),
    (["layout", "n, c -> n, d"], "layout"),
    (["layout"], "option"),
    (["layout", "NCHW16c", "--show", "nosuch"], "option"),
    (["fmt", "missing.py"], "file"),
    (["fmt", "tests/cases/cli/errors_upgrade.py", "--upgrade", "-o", "-"], "syntax"),
    (["fmt", "missing.py", "--newer-names"], "option"),
]


def call(words):
    return subprocess.run([PLEAT, *words], capture_output=True, text=True, cwd=ROOT)


def first_lines(messages):
    for message in messages:
        yield message["severity"], message["text"].split("\n")[0]
        yield from first_lines(message["notes"])


@pytest.mark.parametrize("words, code", CALLS, ids=lambda v: " ".join(v) if isinstance(v, list) else v)
def test_the_messages_are_those_of_the_text(words, code):
    text, data = call(words), call([*words, "--json"])
    assert text.returncode == data.returncode != 0
    assert data.stderr == ""
    messages = json.loads(data.stdout)["messages"]
    assert [list(message) for message in messages] == [FIELDS] * len(messages)
    assert messages[0]["severity"] == "error" and messages[0]["code"] == code
    for severity, line in first_lines(messages):
        assert any(f"{severity}: " in said and line in said for said in text.stderr.splitlines())
    said = re.findall(r"^(?:.*?: )?(?:error|warning|note): ", text.stderr, re.MULTILINE)
    assert len(said) == len(list(first_lines(messages)))


def test_a_place_in_a_file():
    first = json.loads(call(["run", "--json", "tests/cases/cli/check_wrong.py"]).stdout)["messages"][0]
    line = (ROOT / "tests/cases/cli/check_wrong.py").read_text().splitlines()[first["line"] - 1]
    assert first["file"] == "tests/cases/cli/check_wrong.py" and first["source"] == line
    assert line[first["column"] - 1:][:first["width"]] == '"float33"'


def test_warnings_are_in_the_result(tmp_path):
    words = ["run", DIGITS, "--fill", "zero", "--json"]
    environment = {**os.environ, "PLEAT_CACHE": str(ROOT / "README.md")}  # not a folder
    done = subprocess.run([PLEAT, *words], capture_output=True, text=True, cwd=ROOT, env=environment)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr == "" and "latency_ms" in found
    assert [message["severity"] for message in found["messages"]] == ["warning"]
    plain = json.loads(call([*words, "--no-cache"]).stdout)
    assert "latency_ms" in plain and "messages" not in plain


def test_each_subcommand_is_called():
    offered = {name for name in re.findall(r"^  (\w+) ", call(["--help"]).stdout, re.MULTILINE)
               if "--json" in call([name, "-h"]).stdout}
    assert offered == {words[0] for words, _ in CALLS}


def test_a_name_that_is_not_text(tmp_path):
    """JSON has no bytes outside UTF-8."""
    done = subprocess.run([PLEAT.encode(), b"run", b"\xff.onnx", b"--json"], capture_output=True,
                          cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["messages"][0]["file"] == "?.onnx"
