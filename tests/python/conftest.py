# SPDX-License-Identifier: Apache-2.0
"""Switches the cache off, so that tests neither use nor fill the user's; test_cache.py switches it on.
Leaves out cases for processors that this machine is not."""
import os

import pytest
from command import level_here

os.environ["PLEAT_CACHE"] = "off"

# The files that take the longest begin first, so that no processor is left with one at the end.
SLOWEST = ["test_backend.py", "test_twins.py", "test_wheel.py", "test_groups.py",
           "test_hill_climb.py", "test_opencl.py", "test_integer_program.py", "test_cache.py"]


def pytest_runtest_setup(item):
    """Skips a case whose parameter `cpu` is a level of processor that this machine does not have."""
    cpu = item.callspec.params.get("cpu") if hasattr(item, "callspec") else None
    if isinstance(cpu, str) and not level_here(cpu):
        pytest.skip(f"this machine has no {cpu}")


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, metavar="N",
                     help="run only every N-th case of each test that has parameters")


def pytest_collection_modifyitems(config, items):
    """Keeps the first case of each test, and of the others every N-th. The slowest files come first."""
    every = config.getoption("every")
    cases, kept, left_out = {}, [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] = cases.get(test, -1) + 1
        (left_out if cases[test] % every else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    rank = {name: i for i, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(SLOWEST)))
