# SPDX-License-Identifier: Apache-2.0
"""Another exact solver, CBC, agrees with the planner's own about the least cost of a plan. `plan
--lp` states the problem for it in other variables, and with all choices of each operator, of which
the planner drops some."""
import json
import shutil
import subprocess

import pytest

onnx = pytest.importorskip("onnx")
from built import BUILD, skip_sanitized  # noqa: E402

skip_sanitized()
import hill_climb  # noqa: E402
import random_onnx  # noqa: E402
import twins  # noqa: E402

if not shutil.which("cbc"):
    pytest.skip("CBC is not installed", allow_module_level=True)

PAIRS = {name: models for name, *models in twins.pairs()}


def planned(model, folder, *options):
    onnx.save(model, folder / "model.onnx")
    done = subprocess.run([BUILD / "pleat", "plan", "model.onnx", "--json", "--lp", "model.lp",
                           *options], cwd=folder, capture_output=True, text=True)
    return json.loads(done.stdout) if not done.returncode else None


def optimum(folder):
    """The objective value that CBC proves to be the least."""
    subprocess.run(["cbc", "model.lp", "sec", "60", "solve", "solution", "model.out"], cwd=folder,
                   capture_output=True, check=True)
    first = (folder / "model.out").read_text().splitlines()[0]
    assert first.startswith("Optimal"), first
    return float(first.split()[-1])


def agree(model, folder, *options):
    """True where the planner's solver ended within its time, and CBC finds the same; else CBC's
    optimum is between the solver's bound and its plan."""
    plan = planned(model, folder, *options)
    if not plan:
        return False
    best, least, cost = optimum(folder), plan["lower_bound"], plan["cost_optimal"]
    assert least == cost or not plan["optimal"]
    assert least - 0.5 <= best <= cost + 0.5
    return least == cost


@pytest.mark.parametrize("first", range(1, 61, 20))
def test_random_graphs(first, tmp_path):
    models = (random_onnx.random_model(seed) for seed in range(first, first + 10))
    assert sum(agree(model, tmp_path) for model in models if model is not None) > 5


@pytest.mark.parametrize("first", range(111, 131, 10))
def test_random_requests(first, tmp_path):
    """Layouts that are asked for, of which each plan has one more than the plan before."""
    agreed = 0
    for seed in range(first, first + 10):
        model = random_onnx.random_model(seed)
        if model is None:
            continue
        climb = hill_climb.Climb(model, seed=seed, most=6, combinations=0)
        asked = []
        for _, request in climb.feasible:
            option, text = request
            if option == "desired_layouts":
                asked += ["--desired-layout", text]
                agreed += agree(climb.model, tmp_path, *asked)
    assert agreed > 5


SLOW = {"residual", "branches", "pooled", "shuffled", "inception"}  # CBC takes more than ten seconds for these


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in SLOW])
def test_twins(name, tmp_path):
    assert all(agree(model, tmp_path) for model in filter(None, PAIRS[name]))


@pytest.mark.parametrize("name", ["bert_base"])
def test_networks(name, tmp_path):
    import build
    assert agree(build.build(name, small=True), tmp_path)


@pytest.mark.parametrize("policy", ["forward", "backward"])
def test_other_policies_have_the_same_problem(policy, tmp_path):
    model = PAIRS["pooled"][0]
    assert agree(model, tmp_path, "--policy", policy)
    assert planned(model, tmp_path, "--policy", policy)["cost"] >= optimum(tmp_path)


def test_the_program_has_all_choices(tmp_path):
    plan = planned(PAIRS["residual"][0], tmp_path)
    lines = (tmp_path / "model.lp").read_text().split("Binary\n")[1].splitlines()
    assert len(lines) - 1 == plan["choices"] and lines[-1] == "End"


def test_a_wrong_cost_is_seen(tmp_path):
    """CBC's optimum moves with the costs in the file."""
    plan = planned(PAIRS["flat_and_back"][0], tmp_path)
    path = tmp_path / "model.lp"
    head, rest = path.read_text().split("Subject To\n")
    lines = [f"+ {int(words[1]) + 7} {words[2]}" if words[0] == "+" and words[2][0] == "x" else line
             for line in head.splitlines() if (words := line.split() + [""])]
    path.write_text("\n".join(lines) + "\nSubject To\n" + rest)
    stages = len({line.split("_")[0] for line in rest.split("Binary\n")[1].splitlines()[:-1]})
    assert optimum(tmp_path) == pytest.approx(plan["cost_optimal"] + 7 * stages, abs=0.5)
