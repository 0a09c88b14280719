# SPDX-License-Identifier: Apache-2.0
"""`pleat layout --batch` against index maps evaluated at every point by NumPy."""
import itertools
import json
import os
import random
import re
import subprocess

import numpy as np
import pytest

PLEAT = os.environ.get("PLEAT", "build/pleat")
SEED, LINES = 20260, 3000


def batch(lines, status=None):
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    done = subprocess.run([PLEAT, "layout", "--no-certificates", "--batch", "-"], input=text,
                          capture_output=True, text=True, timeout=300)
    if status is not None:
        assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


FUNCTIONS = {"min": np.minimum, "max": np.maximum, "select": np.where}
SCALARS = {"min": min, "max": max, "select": lambda condition, yes, no: yes if condition else no}


def evaluate(text, values, count):
    """The values of an expression at `count` points: of all at once, unless it has `or` or `and`,
    which arrays do not have."""
    code = compile(text, "<expression>", "eval")
    if not re.search(r"\b(or|and|not)\b", text):
        return np.broadcast_to(eval(code, dict(FUNCTIONS), values), count)
    points = ({name: int(value[i]) for name, value in values.items()} for i in range(count))
    return np.array([int(eval(code, dict(SCALARS), point)) for point in points])


def places(layout, shape):
    """Physical indices of all elements, row by row."""
    names, outputs = (side.strip() for side in layout.split(" in [")[0].split("->"))
    names = [name.strip() for name in names.split(",")] if names else []
    grid = np.indices(shape, dtype=np.int64).reshape(len(shape), -1) if shape else []
    values = dict(zip(names, grid))
    count = int(np.prod(shape))
    parts = [part for part in split_outputs(outputs)]
    columns = [evaluate(part, values, count) for part in parts]
    return np.array(columns).T.reshape(count, len(parts))


def split_outputs(text):
    depth, part = 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += c
    if part.strip():
        yield part.strip()


def random_layout(rng):
    """A map made of pieces that split, fuse, reverse, rotate, mix and lose elements."""
    rank = rng.randint(1, 3)
    shape = [rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 16]) for _ in range(rank)]
    names = "ijk"[:rank]
    outputs = []
    for name, extent in zip(names, shape):
        block = rng.choice([2, 3, 4, 5])
        kind = rng.randrange(7)
        if kind < 3:
            outputs += [f"{name}//{block}", f"{name}%{block}"]
        elif kind == 3:
            outputs += [f"{extent - 1} - {name}"]
        elif kind == 4:
            outputs += [f"({name} + {block}) % {max(extent, 1)}"]
        elif kind == 5:
            outputs += [f"{name}%{block}"]
        else:
            outputs += [f"{name} ^ ({names[0]} % 4)" if name != names[0] else name]
    if rng.random() < 0.3 and len(outputs) > 1:
        last = outputs.pop()
        outputs[-1] = f"({outputs[-1]})*{rng.choice([3, 8, 16])} + {last}"
    rng.shuffle(outputs)
    return f"{', '.join(names)} -> {', '.join(outputs)}", shape


class Truth:
    def __init__(self, layout, shape, physical):
        self.shape, self.physical = shape, physical
        self.places = places(layout, shape)
        self.offsets = (np.ravel_multi_index(tuple(self.places.T), physical)
                        if len(self.places) else np.zeros(0, int))

    def element(self, index):
        return int(np.ravel_multi_index(index, self.shape)) if self.shape else 0


def check(op, truth, fields, reply):
    answer, distinct = reply["answer"], set(truth.offsets.tolist())
    size = int(np.prod(truth.physical))
    injective, onto = len(distinct) == len(truth.offsets), len(distinct) == size
    if op in ("injective", "onto", "bijective"):
        holds = {"injective": injective, "onto": onto, "bijective": injective and onto}[op]
        assert answer == ("yes" if holds else "no")
        if op == "injective" and not holds:
            a, b = reply["witness"]
            assert a != b and truth.offsets[truth.element(a)] == truth.offsets[truth.element(b)]
        if op == "onto" and not holds and reply["witness"] is not None:
            assert np.ravel_multi_index(reply["witness"], truth.physical) not in distinct
    elif op == "padding":
        assert answer == size - len(distinct)
    elif op == "offset":
        assert answer == truth.offsets[truth.element(fields["at"])]
    elif op == "logical":
        if answer is None:
            assert fields["at"] not in distinct
        else:
            assert truth.offsets[truth.element(answer)] == fields["at"]
    elif op == "identity":
        same = truth.shape == truth.physical and (
            truth.offsets == np.arange(len(truth.offsets))).all()
        assert answer == ("yes" if same else "no")
    elif op == "strides":
        check_strides(truth, answer)
    elif op == "inverse":
        check_inverse(truth, injective, answer, reply)


def check_strides(truth, answer):
    offsets = truth.offsets.reshape(truth.shape)
    for axis, extent in enumerate(truth.shape):
        steps = set(np.diff(offsets, axis=axis).ravel().tolist())
        if extent > 1:
            assert answer[axis] == (steps.pop() if len(steps) == 1 else None)


def check_inverse(truth, injective, answer, reply):
    if answer == "unknown":
        return
    assert (answer != "no") == injective
    if answer == "no":
        return
    back = places(answer, reply["shape"])
    for element, offset in enumerate(truth.offsets):
        assert list(back[offset]) == list(np.unravel_index(element, truth.shape))
    names = [name.strip() for name in answer.split("->")[0].split(",")]
    grid = np.indices(reply["shape"]).reshape(len(reply["shape"]), -1)
    padding = evaluate(reply["padding"] or "False", dict(zip(names, grid)),
                       grid.shape[1]).astype(bool)
    assert set(np.flatnonzero(~padding).tolist()) == set(truth.offsets.tolist())


def test_thousands_of_lines():
    rng = random.Random(SEED)
    layouts = [random_layout(rng) for _ in range(LINES)]
    shapes = batch(({"id": i, "op": "physical_shape", "a": {"layout": text, "shape": shape}}
                    for i, (text, shape) in enumerate(layouts)), 0)
    ops = ["injective", "onto", "bijective", "identity", "padding", "offset", "logical", "strides",
           "inverse"]
    lines, truths = [], []
    for i, ((text, shape), reply) in enumerate(zip(layouts, shapes)):
        assert reply["id"] == i
        op, physical = ops[i % len(ops)], reply["answer"]
        line = {"id": i, "op": op, "a": {"layout": text, "shape": shape, "physical": physical}}
        if op == "offset":
            line["at"] = [rng.randrange(extent) for extent in shape]
        if op == "logical":
            line["at"] = rng.randrange(int(np.prod(physical)))
        lines.append(line)
        truths.append(Truth(text, shape, physical))
    for line, truth, reply in zip(lines, truths, batch(lines, 0)):
        assert reply["id"] == line["id"] and "error" not in reply, reply
        try:
            check(line["op"], truth, line, reply)
        except AssertionError:
            raise AssertionError(f"{line}\n{reply}")


def test_equal_and_divide():
    rng = random.Random(SEED + 1)
    lines, expected = [], []
    for i in range(600):
        text, shape = random_layout(rng)
        other = random_layout(rng)[0] if rng.random() < 0.3 else text.replace("%", " % ")
        if text.split("->")[0] != other.split("->")[0]:
            other = text
        lines.append({"id": i, "op": "equal", "a": {"layout": text, "shape": shape},
                      "b": {"layout": other, "shape": shape}})
        expected.append((text, other, shape))
    for (a, b, shape), reply in zip(expected, batch(lines)):
        if "error" in reply:
            continue  # the other map leaves its places on this shape
        x, y = places(a, shape), places(b, shape)
        same = x.shape == y.shape and bool((x == y).all())
        if reply["answer"] == "yes":
            assert same
        elif reply["witness"] is not None:
            at = int(np.ravel_multi_index(reply["witness"], shape))
            assert list(x[at]) != list(y[at])


WRONG = ["{", "[]", "null", "7", '{"id": 1}', '{"id": 1, "op": 3}', '{"id": 1, "op": "eqal"}',
         '{"id": 1, "op": "onto"}', '{"id": 1, "op": "onto", "a": []}', '{"id": 1, "id": 2}',
         '{"id": 1, "op": "onto", "a": {"layout": "i->", "shape": [3, 4]}}',
         '{"id": 1, "op": "onto", "a": {"layout": "i -> i", "shape": [-3]}}',
         '{"id": 1, "op": "onto", "a": {"layout": "i -> i", "shape": [1.5]}}',
         '{"id": 1, "op": "onto", "a": {"layout": "i -> i//0", "shape": [3]}}',
         '{"id": 1, "op": "onto", "a": {"layout": "i -> i", "shape": [3], "physical": [2]}}',
         '{"id": 1, "op": "onto", "a": {"layout": "i -> i", "shape": [3], "phisical": [2]}}',
         '{"id": 1, "op": "onto", "a": {"layout": "i -> i", "shape": ["N"], "where": "N % 0 == 0"}}',
         '{"id": 1, "op": "offset", "at": [3], "a": {"layout": "i -> i", "shape": [3]}}',
         '{"id": 1, "op": "offset", "at": [99999999999999999999], "a": {}}', "\x01\x02", '"\\u0000"']


@pytest.mark.parametrize("line", WRONG)
def test_wrong_lines(line):
    good = {"id": "after", "op": "onto", "a": {"layout": "i -> i", "shape": [3]}}
    replies = batch([line, good], 1)
    assert len(replies) == 2 and set(replies[0]) == {"id", "error"}
    assert replies[0]["error"]["message"] and replies[0]["error"]["line"] == 1
    assert replies[1]["id"] == "after" and replies[1]["answer"] == "yes"


def test_lines_are_answered_as_they_come():
    process = subprocess.Popen([PLEAT, "layout", "--batch", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, bufsize=1)
    for extent in (2, 3, 5, 2**61):
        line = {"id": extent, "op": "offset", "at": [extent - 1],
                "a": {"layout": "i -> i", "shape": [extent]}}
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["answer"] == extent - 1
    process.stdin.close()
    assert process.wait(10) == 0


def test_the_offset_of_a_scalar_has_a_certificate():
    line = {"id": 1, "op": "offset", "at": [], "a": {"layout": " -> 0", "shape": []}}
    done = subprocess.run([PLEAT, "layout", "--batch", "-"], input=json.dumps(line) + "\n",
                          capture_output=True, text=True, check=True)
    reply = json.loads(done.stdout)
    assert reply["answer"] == 0 and "place offset0 = 0 other 0" in reply["certificate"]


def test_c_code_packs_as_the_layout(tmp_path):
    cases = [("NCHW16c", "2x30x3x7", [2, 30, 3, 7]), ("OIHW4i16o4i", "20x18x3x1", [20, 18, 3, 1]),
             ("i, j -> (j - i + 7)//3, i, (j - i + 7)%3", "7x8", [7, 8])]
    for layout, text, shape in cases:
        done = subprocess.run([PLEAT, "layout", layout, "--shape", text, "--show", "c", "--type",
                               "int32_t", "--name", "it"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        count = int(np.prod(shape))
        source = done.stdout + f"""
#include <stdio.h>
static int32_t from[{count}], to[1 << 16], back[{count}];
int main(void) {{
  for (int i = 0; i < {count}; i++) from[i] = i + 1;
  it_pack(from, to);
  it_unpack(to, back);
  for (int i = 0; i < {count}; i++) if (back[i] != from[i]) return 1;
  for (int64_t i = 0; i < it_size(); i++) printf("%d\\n", to[i]);
}}
"""
        (tmp_path / "it.c").write_text(source)
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "it.c", "-o", "it"],
                       cwd=tmp_path, check=True)
        seen = [int(x) for x in subprocess.run([tmp_path / "it"], capture_output=True, text=True,
                                               check=True).stdout.split()]
        arrow = subprocess.run([PLEAT, "layout", layout, "--shape", text, "--json"],
                               capture_output=True, text=True)
        about = json.loads(arrow.stdout)
        expected = np.zeros(int(np.prod(about["physical"])), int)
        truth = Truth(about["map"], shape, about["physical"])
        expected[truth.offsets] = np.arange(count) + 1
        assert seen == expected.tolist(), layout
