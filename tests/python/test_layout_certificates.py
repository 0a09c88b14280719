# SPDX-License-Identifier: Apache-2.0
"""The questions of LayoutBench that have a certificate keep it, and `pleat-check` accepts it."""
import collections
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLEAT = pathlib.Path(os.environ.get("PLEAT", "build/pleat")).resolve()
CHECK = PLEAT.parent / "src" / "layout" / "pleat-check"
# Questions of each kind, and how many of them have a certificate. The others are restatements of the
# map (physical shapes, the offset and the strides of any index) and vectors of one element.
CERTIFIED = {
    "bijective": (496, 496), "compose": (6, 6), "divide": (1579, 1579), "equal": (336, 336),
    "identity": (494, 494), "injective": (498, 498), "inverse": (503, 503), "logical": (136, 136),
    "offset": (489, 141), "onto": (483, 483), "padding": (160, 160), "physical_shape": (438, 0),
    "strides": (131, 85), "vector": (153, 149),
}


def questions():
    """The lines of LayoutBench without their answers."""
    for line in (ROOT / "bench" / "layouts" / "queries.jsonl").read_text().splitlines():
        yield {key: value for key, value in json.loads(line).items()
               if key not in ("truth", "family", "id")}


@pytest.mark.slow
def test_every_certificate_is_given_and_accepted():
    asked = list(questions())
    done = subprocess.run([PLEAT, "layout", "--batch", "-"], capture_output=True, text=True,
                          input="".join(json.dumps(line) + "\n" for line in asked), check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(replies) == len(asked)
    counts = collections.defaultdict(lambda: (0, 0))
    for question, reply in zip(asked, replies):
        total, certified = counts[question["op"]]
        counts[question["op"]] = (total + 1, certified + bool(reply["certificate"]))
    assert dict(counts) == CERTIFIED
    certificates = [reply["certificate"] for reply in replies if reply["certificate"]]
    for text in certificates[::37]:
        checked = subprocess.run([CHECK], input=text, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + text


# ---- The command pleat-check

CERTIFICATE = """claim inverse yes
axis c < 5
place p0 < 2 = c // 4
place p1 < 4 = c % 4
back c = p0 * 4 + p1
padding 5 <= p0 * 4 + p1
by proof
indices
floor c by 4 = new q1
fact q1 by 1 of 0 1 of 4 over 4
fact 0 - q1 + 1 by 1 of 1 1 of 3 over 4
places
split p1 + 4 * p0 - 5
else
fact p1 + 4 * p0 by 4 of 0 1 of 2 over 1
floor p1 + 4 * p0 by 4 = p0
end
qed
"""


def check(folder, *arguments, text=None):
    done = subprocess.run([CHECK, *arguments], input=text, capture_output=True, text=True,
                          cwd=folder, check=False)
    return done.returncode, done.stdout, done.stderr


def test_check_reads_the_files_that_are_named(tmp_path):
    (tmp_path / "good").write_text(CERTIFICATE)
    (tmp_path / "bad").write_text(CERTIFICATE.replace("by 4 = new q1", "by 3 = new q1"))
    (tmp_path / "-x").write_text(CERTIFICATE)
    (tmp_path / "zero").write_bytes(CERTIFICATE.encode() + b"\0")
    (tmp_path / "long").write_bytes(b" " * (1 << 24))
    assert check(tmp_path, "good", text="nothing") == (0, "good: accepted\n", "")
    assert check(tmp_path, "--", "-x") == (0, "-x: accepted\n", "")
    assert check(tmp_path, text=CERTIFICATE) == (0, "<stdin>: accepted\n", "")
    assert check(tmp_path, "good", "-", text=CERTIFICATE)[:2] == (
        0, "good: accepted\n<stdin>: accepted\n")
    status, said, _ = check(tmp_path, "bad", "good")
    assert status == 1 and said.startswith("bad:11: rejected: ") and "good: accepted" in said
    for name, why in (("zero", "zero byte"), ("long", "longer than 16 MiB"), (".", "directory"),
                      ("absent", "No such file")):
        status, said, refused = check(tmp_path, name, "good")
        assert status == 2 and f"pleat-check: cannot read '{name}': " in refused
        assert why in refused and said == "good: accepted\n"


def test_check_has_a_help_and_knows_its_options(tmp_path):
    status, said, _ = check(tmp_path, "--help")
    assert status == 0 and "usage: pleat-check [FILE...]" in said and "exit status" in said
    status, said, refused = check(tmp_path, "--halp", "good")
    assert status == 2 and said == "" and "unknown option '--halp'" in refused
    with open("/dev/full", "w") as full:
        done = subprocess.run([CHECK, "-"], input=CERTIFICATE, stdout=full, text=True,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and "cannot write standard output" in done.stderr
