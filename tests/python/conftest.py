# SPDX-License-Identifier: Apache-2.0
"""Switches the cache off, so that tests neither use nor fill the user's; test_cache.py switches it on.
Plans for the caches of one processor, so that they are the same on every machine.
Leaves out cases for processors that this machine is not, and half of those of the slowest tests."""
import os
import pathlib

import pytest
from command import half, level_here

os.environ["PLEAT_CACHE"] = "off"
os.environ.setdefault("PLEAT_CACHES", "32K,512K,32M")

# The files that take the longest begin first, so that no processor is left with one at the end.
SLOWEST = ["test_backend.py", "test_twins.py", "test_wheel.py", "test_groups.py",
           "test_hill_climb.py", "test_opencl.py", "test_integer_program.py", "test_cache.py"]

# Files with many alike cases that take a third of a second or more. Of each such test, one commit
# runs the odd cases and another one the even ones; --all runs all, and --every none of them.
HALVED = {"test_bands.py", "test_cuda.py", "test_cut_reductions.py", "test_example_models.py",
          "test_fewer_products.py", "test_groups.py", "test_hill_climb.py", "test_integer_program.py",
          "test_ml_operators.py", "test_models.py", "test_options.py", "test_reference.py",
          "test_rotations.py", "test_shuffles.py", "test_transposed_tiles.py", "test_twins.py",
          "test_windows.py"}


def pytest_runtest_setup(item):
    """Skips a case whose parameter `cpu` is a level of processor that this machine does not have."""
    cpu = item.callspec.params.get("cpu") if hasattr(item, "callspec") else None
    if isinstance(cpu, str) and not level_here(cpu):
        pytest.skip(f"this machine has no {cpu}")


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, metavar="N",
                     help="run only every N-th case of each test that has parameters, and leave out the "
                          "slowest files")
    parser.addoption("--all", action="store_true", help="run all cases of the slowest tests too")


def pytest_collection_modifyitems(config, items):
    """Keeps every N-th case of each test that has parameters, beginning with the first, or half of them. The
    slowest files come first."""
    every, part = config.getoption("every"), half()
    whole = not config.getoption("all") and not config.getoption("keyword") and all(
        pathlib.Path(path).is_dir() for path in config.args)
    cases, kept, left_out = {}, [], []
    for item in items:
        test, _, parameters = item.nodeid.partition("[")
        cases[test] = cases.get(test, -1) + 1
        halved = whole and item.path.name in HALVED
        if halved and (every > 1 or parameters):
            out = every > 1 or cases[test] % 2 != part
        else:
            out = cases[test] % every
        (left_out if out else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    rank = {name: i for i, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(SLOWEST)))
