# SPDX-License-Identifier: Apache-2.0
"""The peers of LayoutBench say the questions as the corpus means them: no answer is wrong."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PEERS = ROOT / "bench/layouts/peers.py"
QUERIES = ROOT / "bench/layouts/queries.jsonl"


@pytest.fixture
def small(tmp_path):
    """The first static and symbolic query of every op of three families, on few points."""
    kept = {}
    for line in open(QUERIES):
        q = json.loads(line)
        symbolic = any(isinstance(n, str) for n in q["a"]["shape"])
        points = 1
        for n in q["a"]["shape"]:
            points *= n if isinstance(n, int) else 1
        if points < 400 and q["family"] in ("tags", "odd extents", "not bijective"):
            kept.setdefault((q["op"], q["family"], symbolic), line)
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(kept.values()))
    return file


def outcomes(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
    return [json.loads(line)["outcome"] for line in done.stdout.splitlines()]


def test_enumeration_decides_what_is_static(small):
    got = outcomes([sys.executable, PEERS, "points", small])
    assert got.count("right") > 20
    assert set(got) == {"right", "cannot say"}


def test_the_sample_is_the_same_each_time():
    command = [sys.executable, PEERS, "sample", QUERIES, "--count", "5", "--seed", "3"]
    first = subprocess.run([str(c) for c in command], capture_output=True, check=True).stdout
    assert first == subprocess.run([str(c) for c in command], capture_output=True).stdout
    assert len(first.splitlines()) == 5


def test_isl_is_asked_the_same_questions(small):
    pleat = pathlib.Path(os.environ.get("PLEAT", ROOT / "build/pleat"))
    program = pleat.parent / "bench/layouts/isl_alone"
    if not program.exists():
        pytest.skip("built without isl")
    if "asan" in pleat.resolve().parent.name:
        pytest.skip("its limit of memory is less than sanitizers map")
    got = outcomes([program, small])
    assert got.count("right") > 20
    assert "wrong" not in got
