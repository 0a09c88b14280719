# SPDX-License-Identifier: Apache-2.0
"""The networks of examples/models at a reduced size, with every operator in its place: `pleat run`
gives what ONNX Runtime gives."""
import collections
import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("onnxruntime")
from test_models import PLEAT, ROOT, check  # noqa: E402

sys.path.insert(0, str(pathlib.Path(ROOT) / "examples" / "models"))
import build  # noqa: E402
from builder import feeds  # noqa: E402

QUICK = {"resnet50", "bert_base", "lstm"}  # in sanitized runs too
each_model = pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in build.MODELS])


@each_model
def test_architecture(name, tmp_path):
    model = build.build(name, small=True)
    got = check(model, tmp_path, feeds=feeds(model))
    assert all(value.std() > 0.01 for value in got.values())  # nothing was scaled away


@each_model
def test_no_policy_is_cheaper(name, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(build.build(name, small=True).SerializeToString())
    plan = json.loads(subprocess.check_output([PLEAT, "plan", path, "--json"]))
    assert plan["cost"] <= min(plan["cost_forward"], plan["cost_backward"], plan["cost_unplanned"])


@pytest.mark.slow
def test_policies_take_back_what_is_fused_with_what_they_take_back(tmp_path):
    """At full size, the policy "backward" gives up a fusion behind which there is another."""
    path = tmp_path / "model.onnx"
    path.write_bytes(build.build("swin_t").SerializeToString())
    plan = json.loads(subprocess.check_output([PLEAT, "plan", path, "--json"]))
    assert plan["lower_bound"] <= plan["cost"] <= plan["cost_backward"]


def test_the_same_bytes_each_time(tmp_path):
    for path in ("a.onnx", "b.onnx"):
        subprocess.check_call([sys.executable, ROOT / "examples/models/build.py", "mobilenetv3",
                               tmp_path / path, "--small"])
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def inspected(path, *options):
    return json.loads(subprocess.check_output([PLEAT, "inspect", str(path), "--json", "--cpu",
                                               "avx512", *options], stderr=subprocess.PIPE))


def result_layouts(plan, names):
    return {o["name"]: o["outputs"][0]["layout"] for o in plan["operators"] if o["name"] in names}


# The layouts of a plan are those that the options of the same names ask for.
@each_model
def test_printed_layouts_are_read_back(name, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(build.build(name, small=True).SerializeToString())
    plan = inspected(path)
    count = collections.Counter(o["name"] for o in plan["operators"])
    asked = {o["name"]: o["outputs"][0]["layout"] for o in plan["operators"]
             if count[o["name"]] == 1 and len(o["outputs"]) == 1 and
             o["place"].startswith("kernel") and o["outputs"][0]["layout"] != "_"}
    options = [part for node, layout in asked.items()
               for part in ("--desired-layout", f"{node}:output={layout}")]
    for kind in ("input", "output"):
        for value in plan[f"{kind}s"]:
            options += [f"--{kind}-layout", f"{value['name']}={value['layout']}"]
    again = inspected(path, *options)
    seen = {node: layout for node, layout in result_layouts(again, asked).items()
            if layout != "_"}  # others moved to another kernel, because asked tensors stay in memory
    assert 2 * len(seen) > len(asked) and seen.items() <= asked.items()
    assert (again["inputs"], again["outputs"]) == (plan["inputs"], plan["outputs"])
