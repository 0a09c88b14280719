# SPDX-License-Identifier: Apache-2.0
"""The questions of LayoutBench that have a certificate keep it, and `pleat-check` accepts it."""
import collections
import json
import os
import pathlib
import subprocess

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
