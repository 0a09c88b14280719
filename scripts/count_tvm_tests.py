#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how many of TVM's own tests of passes, or of schedules, hold when they run over Pleat's package.

    python3 scripts/count_tvm_tests.py ~/tvm [--schedules | --expressions] [--markdown] [--python build/venv/bin/python]

The argument is a checkout of TVM, of any version. Each file of tests in it that is about one of the passes
below, or about schedules or tensor expressions, runs with `import tvm` meaning `import pleat`
(tests/python/as_tvm.py). A file that cannot be collected counts as one failure."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = ["lower_match_buffer", "lower_init_block", "plan_update_buffer_allocation_location",
          "convert_blocks_to_opaque", "compact_buffer_region", "lower_opaque_block",
          "flatten_buffer", "vectorize", "unroll_loop", "inject_double_buffer",
          "inject_virtual_thread", "inject_software_pipeline", "storage_rewrite",
          "pointer_value_type_rewrite", "convert_ssa",
          "make_packed_api", "lower_thread_all_reduce", "thread_sync", "simplify", "remove_no_op",
          "narrow_datatype", "force_narrow_index_to_i32", "remove_assume", "remove_undef",
          "loop_partition", "hoist_if", "hoist_expression", "rewrite_unsafe_select", "common_subexpr_elim"]
NAME = re.compile(rf"test_(s_)?(tir_)?(transform_)?({'|'.join(PASSES)})\.py")


def files_of(checkout):
    """The test files of each pass, in the order of PASSES."""
    found = [(PASSES.index(match[4]), path) for path in checkout.glob("tests/python/**/test_*.py")
             if (match := NAME.fullmatch(path.name)) and "relay" not in str(path)]
    return [path for _, path in sorted(found)]


def schedule_files_of(checkout):
    """The test files of schedules."""
    return sorted(checkout.glob("tests/python/**/test_tir_schedule_*.py"))


def expression_files_of(checkout):
    """The test files of tensor expressions and their schedules."""
    return sorted(checkout.glob("tests/python/**/test_te_*.py"))


def run(path, python, *options):
    """Runs pytest on a file, in which `import tvm` means `import pleat`."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}"}
    command = [python, "-m", "pytest", "-q", "-p", "as_tvm", "-p", "no:cacheprovider",
               "--noconftest", "-c", os.devnull, "--rootdir", str(path.parent), *options, str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def counts_of(text):
    """The counts that pytest prints at last by their names: passed, failed, ..."""
    pairs = re.findall(r"(\d+) (passed|failed|error|xfailed|xpassed|skipped)",
                       text.strip().rpartition("\n")[2])
    return {name: int(count) for count, name in pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--schedules", action="store_true", help="count the tests of schedules")
    parser.add_argument("--expressions", action="store_true", help="count the tests of tensor expressions")
    parser.add_argument("--markdown", action="store_true", help="print the rows of a table")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    total = [0, 0]
    files = (schedule_files_of if options.schedules else
             expression_files_of if options.expressions else files_of)
    for path in files(options.checkout):
        counts = counts_of(run(path, options.python, "--tb=no").stdout)
        passed = counts.get("passed", 0) + counts.get("xpassed", 0)
        every = sum(counts.values()) - counts.get("skipped", 0) - counts.get("xfailed", 0)
        total = [total[0] + passed, total[1] + every]
        row = "| `{}` | {} of {} |" if options.markdown else "{}: {} of {}"
        print(row.format(path.name, passed, every), flush=True)
    print(f"{total[0]} of {total[1]} tests hold")


if __name__ == "__main__":
    main()
