#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the expressions in TVM's tests of its simplifiers that simplify to what TVM expects.

    PYTHONPATH=python:tests/python python3 scripts/count_tvm_simplifications.py ~/tvm [--show]

The argument is a checkout of TVM 0.27. "same": the result is the expected expression. "equal form": it is what the
expected expression simplifies to, and not longer. "longer": the same, but longer. "other": the rest, which are shown
with --show."""
import argparse
import ast
import collections
import inspect
import pathlib
import re
import sys
import types

CASE = "try: test_case.append(0)\nexcept Exception as e: refuse(e)"


def each_case_alone(source):
    """The tests as a tree in which a case that is refused does not stop the others."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = []
        for statement in node.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else ():
            value = getattr(statement, "value", None)
            called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
            if called == "tvm.testing.parameter":
                body += ast.parse("test_case = []").body
                for case in value.args:
                    body += ast.parse(CASE.replace("append(0)", "extend([0])")).body
                    body[-1].body[0].value.args[0].elts[0] = case
            elif called == "ck.verify":
                body += ast.parse(CASE).body
                body[-1].body = [statement]
            else:
                body.append(statement)
        if body:
            node.body = body
    return ast.fix_missing_locations(tree)


def length(expression):
    return len(re.findall(r"[\w.]+|[-+*/%<>=!]+", str(expression)))


def shown(part):
    try:
        return str(part).partition("\n")[0][:100]
    except TypeError:  # tensors of te in it
        return type(part).__name__


class Count:
    """The verdicts, and the cases with the verdict "other"."""

    def __init__(self):
        self.verdicts, self.others = collections.Counter(), []

    def judge(self, before, expected, condition=True, analyzer=None):
        if inspect.isclass(expected):  # an error
            return
        import pleat
        analyzer, after = analyzer or pleat.arith.Analyzer(), None
        try:
            with analyzer.constraint_scope(condition):
                after = analyzer.simplify(before)
                if isinstance(expected, (int, float)):
                    expected = pleat.tir.const(expected, after.dtype)
                known = analyzer.simplify(expected)
            short = length(after) <= length(expected)
            verdict = "same" if pleat.ir.structural_equal(after, expected) else "other" if \
                not pleat.ir.structural_equal(after, known) else "equal form" if short else "longer"
        except Exception as error:
            verdict, after = "other", error
        self.verdicts[verdict] += 1
        if verdict == "other":
            self.others.append((before, after, expected))

    def refuse(self, error):
        self.verdicts["other"] += 1
        self.others.append(("a case is refused", error, ""))

    def load(self, path):
        module = types.ModuleType(path.stem)
        module.__file__, module.refuse = str(path), self.refuse
        exec(compile(each_case_alone(path.read_text()), str(path), "exec"), vars(module))
        return vars(module)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--show", action="store_true", help="print the cases with another result")
    options = parser.parse_args()
    import as_tvm  # noqa: F401  makes `import tvm` mean `import pleat`
    count, tests = Count(), options.checkout / "tests" / "python" / "arith"
    for one in count.load(tests / "test_arith_rewrite_simplify.py").values():
        for case in getattr(one, "test_case", ()) if inspect.isclass(one) else ():
            count.judge(case.before, case.expected, case.constraint)
    module = count.load(tests / "test_arith_canonical_simplify.py")
    module["CanonicalChecker"].verify = lambda self, data, expected: count.judge(data, expected, True, self.analyzer)
    for name in [name for name in module if name.startswith("test_")]:
        try:
            module[name]()
        except Exception as error:
            count.refuse(error)
    for case in count.others if options.show else ():
        print(*map(shown, case), sep="  |  ")
    print(f"{sum(count.verdicts.values())} expressions: {dict(count.verdicts)}")


if __name__ == "__main__":
    sys.exit(main())
