#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes queries.jsonl: questions about layouts with their answers, one JSON object a line.

    {"id", "family", "op", "a": {"layout", "shape", "where"?}, "b"?, "at"?, "truth"}

The fields before "truth" are those of `pleat layout --batch`. The truth is computed here with
numpy, by evaluating the map's Python text at every point, without any code of Pleat. With symbols
it is taken from instances: a statement that fails on one is "no", and one that holds on all of them
holds by construction. Truths of maps are samples: [position, index or null on padding], with the
symbols' values.

The same seed gives the same bytes."""
import ast
import functools
import itertools
import json
import math
import pathlib
import random
import re

import numpy as np

HERE = pathlib.Path(__file__).parent
rng = random.Random(20240817)
SAMPLES = 4


# ---- Layouts ------------------------------------------------------------------------------------

class Layout:
    """`axes` and `outputs` are Python text; `text` is the spelling that is asked about."""

    def __init__(self, axes, outputs, shape, where=(), text=None):
        self.axes, self.outputs = list(axes), list(outputs)
        self.shape, self.where = list(shape), list(where)
        parts = [f"({e})" if "|" in e else e for e in self.outputs]  # a bare | separates axes
        self.text = text or f"{', '.join(self.axes)} -> {', '.join(parts)}"
        self.symbols = sorted({name for e in self.shape + self.outputs if isinstance(e, str)
                               for name in re.findall(r"[A-Z][A-Za-z0-9]*", e)})

    def json(self):
        fields = {"layout": self.text, "shape": self.shape}
        if self.where:
            fields["where"] = self.where
        return fields


FUNCTIONS = {"min": np.minimum, "max": np.maximum, "select": np.where}


def extents(shape, values):
    return [int(eval(e, {}, dict(values))) if isinstance(e, str) else e for e in shape]


def size_of(shape):
    return int(np.prod([int(e) for e in shape], dtype=object)) if shape else 1


def span(node, env):
    """Bounds of an expression by the three fixed rules and interval arithmetic."""
    if isinstance(node, ast.Constant):
        return node.value, node.value
    if isinstance(node, ast.Name):
        return env[node.id]
    if isinstance(node, ast.Compare):
        return 0, 1
    if isinstance(node, ast.UnaryOp):
        low, high = span(node.operand, env)
        return -high, -low
    if isinstance(node, ast.Call):
        args = [span(a, env) for a in node.args]
        if node.func.id == "select":
            return min(args[1][0], args[2][0]), max(args[1][1], args[2][1])
        pick = min if node.func.id == "min" else max
        return pick(args[0][0], args[1][0]), pick(args[0][1], args[1][1])
    (a, b), (c, d) = span(node.left, env), span(node.right, env)
    op = type(node.op)
    if op is ast.Add:
        return a + c, b + d
    if op is ast.Sub:
        return a - d, b - c
    if op is ast.Mult:
        ends = [a * c, a * d, b * c, b * d]
        return min(ends), max(ends)
    if op is ast.FloorDiv:
        return a // c, b // c
    if op is ast.Mod:
        return 0, c - 1
    if op is ast.BitAnd and c == d:
        return 0, c
    if op is ast.BitAnd:
        return 0, min(b, d)
    if op in (ast.BitXor, ast.BitOr):
        return 0, (1 << max(int(b).bit_length(), int(d).bit_length())) - 1
    if op is ast.RShift:
        return a >> c, b >> c
    if op is ast.LShift:
        return a << c, b << c
    raise ValueError(ast.dump(node))


class Instance:
    """A layout with numbers for its symbols, and its places at all points."""

    def __init__(self, layout, values):
        self.values = values
        self.shape = extents(layout.shape, values)
        env = {s: (v, v) for s, v in values.items()}
        env.update({x: (0, n - 1) for x, n in zip(layout.axes, self.shape)})
        bodies = [ast.parse(e, mode="eval").body for e in layout.outputs]
        self.physical = [span(b, env)[1] + 1 for b in bodies]
        grid = np.indices(self.shape).reshape(len(self.shape), -1) if self.shape else \
            np.zeros((0, 1), dtype=np.int64)
        self.index = grid
        env = dict(values)
        env.update(zip(layout.axes, grid))
        count = grid.shape[1]
        self.places = np.array(
            [np.broadcast_to(eval(e, dict(FUNCTIONS), env), (count,)) for e in layout.outputs],
            dtype=np.int64).reshape(len(layout.outputs), count)
        if count:
            high = self.places.max(axis=1)
            assert (self.places >= 0).all(), (layout.text, values)
            assert all(h < n for h, n in zip(high, self.physical)), (layout.text, values)
        weight, offset = 1, np.zeros(count, dtype=np.int64)
        for row, n in zip(self.places[::-1], self.physical[::-1]):
            offset = offset + row * weight
            weight *= int(n)
        self.offset, self.size, self.total = offset, count, weight

    @functools.cached_property
    def filled(self):
        if self.total > 1 << 24:
            return set(self.offset.tolist())
        found = np.zeros(int(self.total), dtype=bool)
        found[self.offset] = True
        return found

    @functools.cached_property
    def image(self):
        return len(self.filled) if isinstance(self.filled, set) else int(self.filled.sum())

    def holds(self, offset):
        return offset in self.filled if isinstance(self.filled, set) else bool(self.filled[offset])

    def injective(self):
        return self.image == self.size

    def onto(self):
        return self.image == self.total

    def identity(self):
        return (self.shape == self.physical and np.array_equal(self.places, self.index))

    def equal(self, other):
        return (self.shape == other.shape and self.physical == other.physical and
                np.array_equal(self.places, other.places))

    def strides(self):
        grid = self.offset.reshape(self.shape)
        out = []
        for axis, n in enumerate(self.shape):
            step = np.unique(np.diff(grid, axis=axis)) if n > 1 else [0]
            out.append(int(step[0]) if len(step) == 1 else None)
        return out

    def vector(self, axis):
        grid = np.moveaxis(self.offset.reshape(self.shape), axis, 0)
        n, best = self.shape[axis], 1
        adjacent = np.all(np.diff(grid, axis=0).reshape(n - 1, -1) == 1, axis=1) if n > 1 else []
        breaks = math.gcd(*[x for x in range(1, n) if not adjacent[x - 1]])
        for w in range(2, n + 1):
            if breaks % w == 0 and np.all(grid[::w] % w == 0):
                best = w
        return best


@functools.lru_cache(maxsize=600)
def instance_of(layout, values):
    return Instance(layout, dict(values))


def at(layout, values):
    return instance_of(layout, tuple(values.items()))


def fact_values(symbol, where):
    multiple, least, most = 1, 1, None
    for claim in where:
        name, op, number = claim.replace("== 0", "").split()[:3]
        if name != symbol:
            continue
        if op == "%":
            multiple = int(number)
        elif op == ">=":
            least = int(number)
        elif op == "<=":
            most = int(number)
    first = -(-least // multiple)
    steps = [0, 1, 2, 3, 4, 6, 7, 12, 14, 15, 16, 17, 23, 31, 32, 47, 63]
    values = [multiple * (first + s) for s in steps]
    return [v for v in values if most is None or v <= most]


def instances(layouts, count=32, most_points=4000):
    """Values of the symbols: the least first, then one or two of them anywhere and the others
    small."""
    symbols = sorted({s for l in layouts for s in l.symbols})
    where = [w for l in layouts for w in l.where]
    choices = {s: fact_values(s, where) for s in symbols}
    picks = random.Random(str(symbols) + layouts[0].text)
    made, seen = [], set()
    for tries in range(400):
        wide = picks.sample(symbols, min(len(symbols), 1 + tries % 2))
        values = {s: choices[s][0 if tries == 0 else picks.randrange(
            min(len(choices[s]), len(choices[s]) if s in wide else 3))] for s in symbols}
        key = tuple(values.items())
        points = size_of(extents(layouts[0].shape, values))
        if key in seen or points > most_points * (16 if tries < 3 else 1):
            continue
        seen.add(key)
        made.append(values)
        if len(made) == count:
            break
    assert made, layouts[0].text
    return made


# ---- Queries ------------------------------------------------------------------------------------

queries, known = [], set()


def emit(family, op, truth, a, b=None, at=None):
    body = {"op": op, "a": a.json()}
    if b:
        body["b"] = b.json()
    if at is not None:
        body["at"] = at
    key = json.dumps(body)
    if key in known:
        return
    known.add(key)
    queries.append({"family": family, **body, "truth": truth})


VERDICTS = {
    "identity": Instance.identity,
    "injective": Instance.injective,
    "onto": Instance.onto,
    "bijective": lambda i: i.injective() and i.onto(),
}


def unravel(offset, shape):
    out = []
    for n in reversed(shape):
        out.append(int(offset % n))
        offset //= n
    return out[::-1]


def places_of(i, columns):
    return [[int(v) for v in i.places[:, c]] for c in columns]


def pick(count, wanted):
    return sorted(rng.sample(range(count), min(count, wanted)))


def inverse_samples(b, a=None):
    """[b's place, logical index (or a's place), or null on padding]."""
    columns = pick(b.size, SAMPLES)
    results = a.places if a else b.index
    out = [[p, [int(v) for v in results[:, c]]]
           for p, c in zip(places_of(b, columns), columns)]
    for _ in range(SAMPLES if b.total > b.size else 0):
        o = rng.randrange(b.total)
        if not b.holds(o):
            out.append([unravel(o, b.physical), None])
    return out


def ask_inverse(family, b, a=None, op="inverse"):
    """Asks for the inverse of b, or for a divided by b."""
    pair = [b] + ([a] if a else [])
    made, verdict = [], "yes"
    static = not any(l.symbols for l in pair)
    for values in [{}] if static else instances(pair):
        bi = at(b, values)
        if not bi.injective():
            verdict = "no"
            break
        ai = at(a, values) if a else None
        samples = inverse_samples(bi, ai)
        made.append({"values": values, "samples": samples} if values else {"samples": samples})
    truth = {"answer": verdict}
    if verdict == "yes":
        truth["at"] = made[:1] + made[-2:] if len(made) > 2 else made
    if a:
        emit(family, op, truth, a, b)
    else:
        emit(family, op, truth, b)


def ask_compose(family, a, b):
    made = []
    for values in [{}] if not (a.symbols or b.symbols) else instances([b, a], 3):
        bi, ai = at(b, values), at(a, values)
        if ai.shape != bi.physical:
            return
        grid = ai.places.reshape([len(ai.physical)] + ai.shape)
        columns = pick(bi.size, SAMPLES)
        samples = [[[int(v) for v in bi.index[:, c]],
                    [int(v) for v in grid[(slice(None),) + tuple(bi.places[:, c])]]]
                   for c in columns]
        made.append({"values": values, "samples": samples} if values else {"samples": samples})
    emit(family, "compose", {"answer": "yes", "at": made}, a, b)


def verdict_of(test, layouts):
    for values in instances(layouts) if any(l.symbols for l in layouts) else [{}]:
        if not test(*[at(l, values) for l in layouts]):
            return "no"
    return "yes"


def ask(family, op, a, b=None):
    if op == "equal":
        return emit(family, op, verdict_of(Instance.equal, [a, b]), a, b)
    if op in VERDICTS:
        return emit(family, op, verdict_of(VERDICTS[op], [a]), a)
    if op == "inverse":
        return ask_inverse(family, a)
    if op == "divide":
        return ask_inverse(family, b, a, "divide")
    if op == "compose":
        return ask_compose(family, a, b)
    if a.symbols:
        return ask_symbolic(family, op, a)
    i = at(a, {})
    if op == "padding":
        return emit(family, op, int(i.total - i.image), a)
    if op == "physical_shape":
        return emit(family, op, [int(n) for n in i.physical], a)
    if op == "strides":
        return emit(family, op, i.strides(), a)
    if op == "vector":
        return emit(family, op, [i.vector(x) for x in range(len(i.shape))], a)
    if op == "offset":
        c = rng.randrange(i.size)
        return emit(family, op, int(i.offset[c]), a, at=[int(v) for v in i.index[:, c]])
    if op == "logical":
        o = rng.randrange(i.total)
        found = np.flatnonzero(i.offset == o)
        if len(found) < 2:
            emit(family, op, [int(v) for v in i.index[:, found[0]]] if len(found) else None, a,
                 at=o)
        return None
    raise ValueError(op)


def ask_symbolic(family, op, a):
    """physical_shape and offset at instances."""
    made = []
    for values in instances([a], 3):
        i = at(a, values)
        if op == "physical_shape":
            made.append({"values": values, "is": [int(n) for n in i.physical]})
        elif op == "offset":
            made.append({"values": values,
                         "samples": [[[int(v) for v in i.index[:, c]], int(i.offset[c])]
                                     for c in pick(i.size, SAMPLES)]})
    emit(family, op, {"answer": "yes", "at": made}, a)


UNARY = ["identity", "injective", "onto", "bijective", "inverse"]
NUMBERS = ["padding", "physical_shape", "strides", "vector", "offset", "logical"]


def ask_all(family, layout, ops=None, some=None):
    """`some` of the ops, drawn."""
    ops = ops or (UNARY + (["physical_shape", "offset"] if layout.symbols else NUMBERS))
    for op in ops if some is None else sorted(rng.sample(ops, min(some, len(ops)))):
        ask(family, op, layout)


# ---- Tags ---------------------------------------------------------------------------------------

def tag_layout(tag, shape, where=()):
    """oneDNN: letters are axes in order; blocks from left to right, the last innermost."""
    axes = [chr(ord("a") + i) for i in range(len(shape))]
    parts = re.findall(r"[A-Za-z]|\d+[a-z]", tag)
    blocks = [(p[-1], int(p[:-1])) for p in parts if len(p) > 1]
    below = []
    for at, (axis, size) in enumerate(blocks):
        inner = 1
        for later, n in blocks[at + 1:]:
            inner *= n if later == axis else 1
        below.append(inner)
    whole = {}
    for axis, size in blocks:
        whole[axis] = whole.get(axis, 1) * size
    outputs = []
    for part in parts:
        axis = part[-1].lower()
        if len(part) == 1:
            outputs.append(f"{axis}//{whole[axis]}" if axis in whole else axis)
            continue
        inner = below.pop(0)
        e = axis if inner == 1 else f"({axis}//{inner})"
        outputs.append(f"{e}%{part[:-1]}")
    return Layout(axes, outputs, shape, where, tag)


TAGS = {
    2: "ab ba BA16a16b AB16b16a BA8a8b Ab8a aB16b BA16a64b Ba4a AB4b16a4b aB32b BA16a32b".split(),
    3: "abc acb bac cba aBc4b aBc8b aBc16b Abc16a ABc16b16a ABc16a16b ABc4b16a4b Acb8a".split(),
    4: ("abcd acdb abdc bacd cdba bcda aBcd4b aBcd8b aBcd16b aBcd32b Abcd16a Acdb16a Acdb8a "
        "ABcd16b16a ABcd16a16b ABcd8b8a ABcd8a8b ABcd4b4a ABcd8b16a2b ABcd4b16a4b ABcd2b8a8b2a "
        "ABcd16b32a ABcd16b64a").split(),
    5: ("abcde acdeb bacde cdeba aBcde4b aBcde8b aBcde16b Abcde16a ABcde16b16a ABcde16a16b "
        "ABcde4b16a4b Acdeb16a ABcde8b8a").split(),
}
SHAPES = {
    2: [(1000, 64), (128, 768), (91, 250)],
    3: [(2, 30, 100), (8, 64, 197), (3, 13, 91)],
    4: [(1, 64, 28, 28), (64, 3, 7, 7), (2, 30, 13, 9), (128, 256, 1, 1), (1, 91, 13, 14),
        (30, 100, 3, 3)],
    5: [(1, 30, 4, 7, 9), (32, 16, 3, 3, 3), (2, 13, 3, 5, 7)],
}
SYMBOLIC = {
    2: [(["M", "N"], []), (["M", 768], ["M % 16 == 0"])],
    3: [(["N", "C", 100], []), (["N", "C", "W"], ["C % 16 == 0", "N % 16 == 0"])],
    4: [(["N", "C", "H", "W"], []), (["N", "C", "H", "W"], ["C % 16 == 0"]),
        (["O", "I", 3, 3], ["O % 64 == 0", "I % 16 == 0"]), ([1, "C", "H", "W"], ["C >= 17"])],
    5: [(["N", "C", 2, "H", "W"], []), (["O", "I", 3, 3, 3], ["O % 16 == 0", "I % 16 == 0"])],
}


def tag_families():
    assert sum(map(len, TAGS.values())) == 60
    for rank, tags in TAGS.items():
        for n, (x, y) in enumerate(itertools.permutations(tags, 2)):
            shape = SHAPES[rank][n % len(SHAPES[rank])]
            ask("tags", "divide", tag_layout(x, shape), tag_layout(y, shape))
            if n % 6 == 0:
                ask("tags", "equal", tag_layout(x, shape), tag_layout(y, shape))
            if n % 2 == 0:
                shape, where = SYMBOLIC[rank][n // 2 % len(SYMBOLIC[rank])]
                ask("tags", "divide", tag_layout(x, shape, where), tag_layout(y, shape, where))
            if n % 6 == 1:
                shape, where = SYMBOLIC[rank][n // 6 % len(SYMBOLIC[rank])]
                ask("tags", "equal", tag_layout(x, shape, where), tag_layout(y, shape, where))
        for n, tag in enumerate(tags):
            ask_all("tags", tag_layout(tag, SHAPES[rank][n % len(SHAPES[rank])]), some=3)
            for shape, where in SYMBOLIC[rank]:
                ask_all("tags", tag_layout(tag, shape, where), some=4)


# ---- Tiles --------------------------------------------------------------------------------------

def tile_layout(axes, shape, tiles, where=()):
    """XLA: tiles of the last axes; each further tile is of the tile before it."""
    outputs = list(axes)
    for n, tile in enumerate(tiles):
        k = len(tile)
        kept, last = outputs[:-k], outputs[-k:]
        high = [f"{paren(e)}//{t}" if t > 1 else e for e, t in zip(last, tile)]
        low = [f"{paren(e)}%{t}" for e, t in zip(last, tile)]
        outputs = kept + high + low
    return Layout(axes, outputs, shape, where)


def paren(e):
    return e if re.fullmatch(r"\w+", e) else f"({e})"


def tile_families():
    tiles = [[(8, 128)], [(8, 128), (2, 1)], [(16, 128), (2, 1)], [(4, 128)], [(8, 128), (4, 1)],
             [(2, 128)], [(128,)], [(256,), (2,)], [(8, 8)], [(32, 128), (4, 1)]]
    shapes = [(100, 250), (1000, 128), (3, 9, 130), (7, 13, 91), (256, 512), (30, 8, 128)]
    names = ["i", "j", "k"]
    for n, (tile, shape) in enumerate(itertools.product(tiles, shapes)):
        axes = names[:len(shape)]
        layout = tile_layout(axes, shape, tile)
        ask_all("tiles", layout, some=3)
        other = tile_layout(axes, shape, tiles[(n + 3) % len(tiles)])
        ask("tiles", "divide", layout, other)
        if n % 3 == 0:
            ask("tiles", "equal", layout, other)
        for facts in [[], ["M % 8 == 0", "N % 128 == 0"]][n % 2:n % 2 + 1]:
            sym = ["M", "N"] if len(shape) == 2 else ["B", "M", "N"]
            layout = tile_layout(axes, sym, tile, facts)
            ask_all("tiles", layout, some=2)
            if n % 3 == 1:
                ask("tiles", "divide", layout, tile_layout(axes, sym, tiles[(n + 1) % 10], facts))


# ---- CuTe and Triton ----------------------------------------------------------------------------

def flat(x):
    return [y for e in x for y in flat(e)] if isinstance(x, tuple) else [x]


def cute_layout(shape, stride, columns=None):
    """shape:stride, each top mode one logical axis whose first part runs fastest; `columns`: the
    offset is cut into (offset // columns, offset % columns)."""
    names = ["i", "j", "k", "l"]
    terms, extent = [], []
    for axis, (n, d) in enumerate(zip(shape, stride)):
        inner = 1
        ns, ds = flat(n), flat(d)
        for m, w in zip(ns, ds):
            e = names[axis] if inner == 1 else f"{names[axis]}//{inner}"
            e = e if m == ns[-1] and inner * m == size_of(ns) else f"{paren(e)}%{m}"
            if m > 1 and w:
                terms.append(f"{paren(e)}*{w}" if w != 1 else paren(e))
            inner *= m
        extent.append(inner)
    total = " + ".join(terms) or "0"
    outputs = [total] if not columns else [f"({total})//{columns}", f"({total})%{columns}"]
    return Layout(names[:len(shape)], outputs, extent)


# (thread, value) -> place in the tile of well-known tensor-core instructions
FRAGMENTS = [
    ("16x8 accumulator", ((4, 8), (2, 2)), ((32, 1), (16, 8))),
    ("16x16 operand", ((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))),
    ("8x16 operand", ((4, 8), (2, 2)), ((16, 1), (8, 64))),
    ("8x8 transposed", ((4, 8), 2), ((16, 1), 8)),
    ("16x8x8 operand", ((4, 8), (2, 2)), ((32, 1), (16, 8))),
    ("64x128 accumulator", ((4, 8, 4), (2, 2, 16)), ((128, 1, 16), (64, 8, 512))),
    ("64x16 shared", ((8, 8), (8, 2)), ((8, 64), (1, 512))),
    ("4-byte quad", ((2, 2, 8), (4,)), ((16, 64, 1), (8,))),
    ("copy 16 bytes", ((8, 16), 8), ((8, 64), 1)),
    ("copy 4 bytes", ((32, 4), 2), ((2, 64), 1)),
    ("broadcast", ((4, 8), (2, 2)), ((0, 1), (8, 16))),
    ("overlap", (8, 4), (1, 2)),
    ("column major", (128, 64), (1, 128)),
    ("row major", (128, 64), (64, 1)),
    ("padded rows", (32, 33), (34, 1)),
    ("odd", (9, 7), (7, 1)),
    ("lattice", (3, 5), (2, 3)),
    ("lattice, injective", (3, 2), (2, 3)),
]


def bits_layout(names, sizes, bases, shape_of):
    """GF(2) bases: bases[name][bit] is the place that this bit of the input XORs in."""
    texts = []
    for o in range(len(shape_of)):
        terms = []
        for name in names:
            for bit, base in enumerate(bases[name]):
                if base[o]:
                    e = f"(({name} >> {bit}) & 1)" if bit else f"({name} & 1)"
                    terms.append(f"{e}*{base[o]}" if base[o] > 1 else e)
        texts.append(" ^ ".join(terms) or "0")
    return Layout(names, texts, sizes)


def blocked_bases(order, per, lanes, warps, reps):
    """Triton's blocked layouts: registers, lanes and warps tile the tensor, fastest along order."""
    at = [1] * len(per)
    out = {"r": [], "l": [], "w": []}
    for name, tile in (("r", per), ("l", lanes), ("w", warps), ("r", reps)):
        for axis in order:
            n = tile[axis]
            while n > 1:
                base = [0] * len(per)
                base[axis] = at[axis]
                out[name].append(base)
                at[axis] *= 2
                n //= 2
    return out, at


def kernel_families():
    for name, shape, stride in FRAGMENTS:
        layout = cute_layout(shape, stride)
        ask_all("cute", layout, UNARY + ["padding", "offset", "logical"])
        one = cute_layout(shape, stride)
        one.text = one.outputs[0] = f"({one.outputs[0]})//2*2 + ({one.outputs[0]})%2"
        one.text = f"{', '.join(one.axes)} -> {one.text}"
        ask("cute", "equal", layout, one)
        columns = {"row major": 64, "column major": 128}.get(name, 8)
        ask_all("cute", cute_layout(shape, stride, columns), some=4)
    for order, per, lanes, warps, reps in [
            ((1, 0), (1, 4), (8, 4), (4, 1), (2, 2)), ((0, 1), (4, 1), (4, 8), (1, 4), (1, 2)),
            ((1, 0), (2, 2), (16, 2), (2, 2), (1, 1)), ((1, 0), (1, 8), (4, 8), (8, 1), (2, 1)),
            ((0, 1), (8, 1), (2, 16), (2, 1), (2, 4))]:
        bases, tile = blocked_bases(order, per, lanes, warps, reps)
        sizes = [1 << len(bases[x]) for x in "rlw"]
        layout = bits_layout(["r", "l", "w"], sizes, bases, tile)
        ask_all("triton", layout)
        other, _ = blocked_bases(order[::-1], per, lanes, warps, reps)
        ask("triton", "divide", layout, bits_layout(["r", "l", "w"], sizes, other, tile))
        ask("triton", "equal", layout, bits_layout(["r", "l", "w"], sizes, other, tile))
        mixed = {k: [list(b) for b in v] for k, v in bases.items()}
        for k in range(min(3, len(mixed["l"]))):  # a swizzle: lanes move columns too
            mixed["l"][k][1] ^= 1 << k
        ask_all("triton", bits_layout(["r", "l", "w"], sizes, mixed, tile))


# ---- Swizzles -----------------------------------------------------------------------------------

def swizzle_families():
    for rows, cols in [(8, 8), (16, 16), (32, 32), (64, 64), (8, 64), (64, 8), (100, 64), (30, 32),
                       (128, 128), (256, 256)]:
        width = min(cols, 8)
        a = Layout("ij", ["i", f"j ^ (i % {width})"], [rows, cols])
        b = Layout("ij", ["i", f"j//{width}*{width} + ((j % {width}) ^ (i % {width}))"],
                   [rows, cols])
        flat_a = Layout("ij", [f"i*{cols} + (j ^ (i % {width}))"], [rows, cols])
        ops = UNARY + NUMBERS
        ask_all("swizzles", a, ops)
        ask_all("swizzles", flat_a, ops, some=6)
        ask("swizzles", "divide", a, Layout("ij", ["i", "j"], [rows, cols]))
        ask("swizzles", "divide", flat_a, a)
        if width < cols:
            ask("swizzles", "equal", a, b)
        ask("swizzles", "equal", a, Layout("ij", ["i", f"j ^ ((i + 1) % {width})"], [rows, cols]))
    for bits, base, shift in [(1, 4, 3), (2, 4, 3), (3, 4, 3), (3, 3, 3), (2, 3, 3), (3, 2, 4)]:
        mask = ((1 << bits) - 1) << (base + shift)
        for n in (1024, 4096):
            a = Layout("x", [f"x ^ ((x & {mask}) >> {shift})"], [n])
            ask_all("swizzles", a)
            ask("swizzles", "compose", a, a)
        rows = Layout("ij", [f"(i*64 + j) ^ (((i*64 + j) & {mask}) >> {shift})"], [64, 64])
        ask_all("swizzles", rows, some=5)
        ask("swizzles", "divide", rows, Layout("ij", ["i*64 + j"], [64, 64]))
    # too large to enumerate here: true by construction, samples only
    for n in (512, 1024, 2048, 4096):
        for width in (8, 32):
            a = Layout("ij", ["i", f"j ^ (i % {width})"], [n, n])
            for op in ("injective", "onto", "bijective"):
                emit("swizzles", op, "yes", a)
            emit("swizzles", "identity", "no", a)
            emit("swizzles", "padding", 0, a)
            points = [[rng.randrange(n), rng.randrange(n)] for _ in range(SAMPLES)]
            samples = [[[i, j ^ i % width], [i, j]] for i, j in points]
            emit("swizzles", "inverse", {"answer": "yes", "at": [{"samples": samples}]}, a)
            full = Layout("ij", ["i", "j ^ i"], [n, n])
            emit("swizzles", "bijective", "yes", full)
            emit("swizzles", "equal", "no", a, full)
    for n, facts in [(64, []), (32, ["H % 8 == 0"]), ("W", ["W % 8 == 0"]),
                     ("W", ["W % 32 == 0", "H % 32 == 0"]), ("W", ["W % 64 == 0"])]:
        for width in (2, 4, 8):
            a = Layout("ij", ["i", f"j ^ (i % {width})"], ["H", n], facts) if n != "W" else None
            b = Layout("ij", ["i", f"j//{width}*{width} + ((j % {width}) ^ (i % {width}))"],
                       ["H", n], facts)
            c = Layout("ij", ["i", f"j//{width}", f"(j % {width}) ^ (i % {width})"], ["H", n],
                       facts)
            for layout in [x for x in (a, b, c) if x]:
                ask_all("swizzles", layout, UNARY + ["offset"])
            if a:
                ask("swizzles", "equal", a, b)
            ask("swizzles", "divide", c, Layout("ij", ["i", "j"], ["H", n], facts))


# ---- Non-powers of two --------------------------------------------------------------------------

ODD = [3, 7, 9, 13, 30, 91, 100, 250, 1000]


def odd_families():
    for n in ODD:
        for block in (2, 3, 4, 6, 8, 16):
            a = Layout("x", [f"x//{block}", f"x%{block}"], [n])
            ask_all("odd extents", a, some=3)
            back = Layout("x", [f"x//{block}*{block} + x%{block}"], [n])
            ask("odd extents", "identity", back)
        ask_all("odd extents", Layout("x", ["x//4", "x%6"], [n]), some=3)
        ask_all("odd extents", Layout("x", ["x%6//4", "x//6", "x%2", "x//2%2"], [n]), some=2)
        m = ODD[(ODD.index(n) + 4) % len(ODD)]
        for cut in (4, 10, 16, m):
            a = Layout("xy", [f"(x*{m} + y)//{cut}", f"(x*{m} + y)%{cut}"], [n, m])
            ask_all("odd extents", a, some=3)
            ask("odd extents", "equal", a,
                Layout("xy", [f"({m}*x + y)//{cut}", f"(y + x*{m})%{cut}"], [n, m]))
        ask_all("odd extents", Layout("xy", ["x", f"(y + x) % {m}"], [n, m]), some=3)


def symbolic_blocks():
    for block in (2, 3, 4, 8, 16, 32):
        for facts in ([], [f"C % {block} == 0"], ["C >= 20"], ["C <= 40"],
                      [f"C % {block} == 0", f"C >= {4 * block}"]):
            a = Layout("ncx", ["n", f"c//{block}", "x", f"c%{block}"], ["N", "C", "X"], facts)
            ask_all("blocks", a, some=4)
            row = Layout("ncx", ["n", "c", "x"], ["N", "C", "X"], facts)
            ask("blocks", "divide", a, row)
            ask("blocks", "divide", row, a)
            one = Layout("c", [f"c//{block}*{block} + c%{block}"], ["C"], facts)
            ask("blocks", "injective", one)
            fused = Layout("nc", [f"(n*C + c)//{block}", f"(n*C + c)%{block}"], ["N", "C"], facts)
            ask_all("blocks", fused, some=3)
            if facts and "%" in facts[0]:
                ask("blocks", "equal", fused,
                    Layout("nc", [f"n*(C//{block}) + c//{block}", f"c%{block}"], ["N", "C"], facts))
            two = Layout("c", [f"c//{2 * block}", f"c//{block}%2", f"c%{block}"], ["C"], facts)
            ask_all("blocks", two, some=3)
            ask("blocks", "divide", two, Layout("c", [f"c//{block}", f"c%{block}"], ["C"], facts))
    for inner in (["W"], ["H", "W"], ["D", "H", "W"]):
        names = "nchwd"[:1 + len(inner)]
        flat_text, sizes = names[0], ["N"] + inner
        for x, n in zip(names[1:], inner):
            flat_text = f"({flat_text})*{n} + {x}"
        whole = Layout(names, [flat_text], sizes)
        ask_all("blocks", whole)
        size = "*".join(inner)
        cut = Layout(names, [f"({flat_text})//({size})", f"({flat_text})%({size})"], sizes)
        ask_all("blocks", cut)
        last = Layout(names, [f"({flat_text})//{inner[-1]}", f"({flat_text})%{inner[-1]}"], sizes)
        ask_all("blocks", last)
        ask("blocks", "divide", whole, cut)
        ask("blocks", "divide", cut, whole)
        ask("blocks", "divide", last, cut)


# ---- Offsets, reversals, skews, windows ---------------------------------------------------------

def moved_families():
    for n in (8, 13, 30, 100):
        for k in (1, 3, 5):
            for text in (f"x + {k}", f"{n - 1 + k} - x", f"(x + {k})//4", f"(x + {k}) % {n}",
                         f"({n - 1} - x)//3", f"(x + {k}) % 8", f"({n - 1} - x) % 5"):
                ask_all("offsets, reversals", Layout("x", [text], [n]), some=2)
            for pair in ([f"(x + {k})//4", f"(x + {k})%4"], [f"({n - 1} - x)//4",
                         f"({n - 1} - x)%4"], [f"(x + {k})//3", f"x%3"]):
                ask_all("offsets, reversals", Layout("x", pair, [n]), some=3)
            ask("offsets, reversals", "equal", Layout("x", [f"(x + {k})//4", f"(x + {k})%4"], [n]),
                Layout("x", [f"({k} + x)//4", f"({k} + x - 4)%4"], [n]))
        for m in (3, 5, 8):
            for outs in (["i", f"(i + j) % {m}"], ["i + j", "j"], [f"i + {m - 1} - j", "j"],
                         ["i + j"], [f"i*{m} + j + 2"], ["i + j", "i"], ["2*i + j"],
                         ["i//2 + j", "i%2", "j//2"], [f"(i + 2*j) % {n}", "j"]):
                ask_all("skews, windows", Layout("ij", outs, [n, m]), some=2)
            for s in (1, 2, 3):
                ask_all("skews, windows", Layout("oki", [f"o*{s} + k", "i"], [n, m, 4]), some=2)
    for facts in ([], ["N % 4 == 0"], ["N >= 8"]):
        for text in ("x + 3", "N - 1 - x", "(x + 4)//4", "(N - 1 - x)//1", "x + N", "2*N - 1 - x"):
            ask_all("offsets, reversals", Layout("x", [text], ["N"], facts), some=4)
        for pair in (["(N - 1 - x)//4", "(N - 1 - x)%4"], ["(x + 4)//4", "x%4"],
                     ["(x + 1)//4", "(x + 1)%4"], ["(N + 2 - x)//4", "(N + 2 - x)%4"],
                     ["(x + 2)//4", "(x + 2)%4"]):
            ask_all("offsets, reversals", Layout("x", pair, ["N"], facts), some=4)
        ask("offsets, reversals", "equal",
            Layout("x", ["(N - 1 - x)//4", "(N - 1 - x)%4"], ["N"], facts),
            Layout("x", ["(N + 3 - x)//4 - 1", "(N + 3 - x)%4"], ["N"], facts))
        for outs in (["i", "i + j"], ["i + j", "j"], ["i + j"], ["i", "(i + j) % M"],
                     ["i + M - 1 - j", "j"], ["i*M + j"], ["j*N + i"], ["i*(M + 2) + j"],
                     ["2*i + j", "j"], ["i*M + j + 5"], ["2*(i*M + j)"], ["2*i", "j"],
                     ["i", "M - 1 - j"], ["j", "(N - 1 - i)//2", "(N - 1 - i)%2"]):
            ask_all("skews, windows", Layout("ij", outs, ["N", "M"], facts), some=4)
        for s in (1, 2, 3):
            for k in (1, 2, 3):
                a = Layout("ok", [f"o*{s} + k"], ["N", k], facts)
                ask_all("skews, windows", a, some=2)


# ---- Maps that are not bijective, and the asked cases -------------------------------------------

def other_families():
    kinds = ["x%2", "x//2", "x*2", "0", "min(x, 5)", "max(x, 3)", "x & 5", "x | 3", "x*3 + 1",
             "x%3 + x//3", "x//3*2 + x%3", "x - x%4", "x ^ (x//2)", "x ^ (x >> 1) ^ (x >> 2)",
             "(x & 12) >> 2", "x & 6", "select(x < 4, x, x + 3)", "max(x - 3, 0)", "x % 8 ^ x // 8",
             "x//2 + x%2", "(x%4)*4 + x//4%4", "min(x, 1000)", "select(x < 3, 0, x)"]
    for n in (1, 2, 3, 8, 16, 30, 91):
        for text in kinds:
            ask_all("not bijective", Layout("x", [text], [n]), some=2)
    pairs = [["i%2", "j"], ["i", "j//2"], ["i + j", "i"], ["i", "0"], ["j"], ["i", "i"], ["2*i + 3*j"], ["i*3 + j*5"], ["i//2", "i%2 + j"], ["i ^ j"], ["i & j"],
             ["i", "i ^ j"], ["i | j", "i & j"], ["min(i, j)", "max(i, j)"], ["i*4 + j*5 + (j//2)"],
             ["i + 4*j"], ["min(i, 3)", "j"], ["4*i + 6*j"]]
    for shape in ((2, 3), (4, 4), (7, 9), (16, 13), (3, 2), (5, 1)):
        for outs in pairs:
            ask_all("not bijective", Layout("ij", outs, list(shape)), some=3)
    ask_all("asked cases", Layout("i", ["0"], [1]))
    ask_all("asked cases", Layout("", ["0"], []), UNARY + ["offset"])
    for shape in ((4, 6), (5, 3), (2, 1)):
        for outs in (["i % 2", "j"], ["i//2", "i%2", "j"], ["j//4", "i", "j%4"],
                     [f"(i*{shape[1]} + j)//4", f"(i*{shape[1]} + j)%4"]):
            ask_all("asked cases", Layout("ij", outs, list(shape)))
    for width in (2, 4, 8, 16, 32):
        rows = Layout("ij", [f"i*{width} + (j ^ i % {width})"], [32, width])
        ask_all("asked cases", rows)
        ask_all("asked cases", Layout("ij", ["i", f"j ^ i//2 % {width}"], [32, width]), some=4)
    for facts in ([], ["N >= 4"], ["N % 2 == 0"], ["N >= 8", "N <= 100"]):
        for text in ("x%2", "x//2", "x*2", "0", "min(x, 5)", "x & 5", "x & 7", "x*3 + 1",
                     "x - x%4", "max(x, 3)", "x//3*2 + x%3", "(x & 12) >> 2", "min(x, N)",
                     "max(x - N, 0)", "select(x < N, x, 0)", "x%N", "x//N", "min(x, N - 1)",
                     "x >> 1", "x//2 + x%2"):
            ask_all("not bijective", Layout("x", [text], ["N"], facts), some=3)
        for outs in (["i%2", "j"], ["i", "j//2"], ["i"], ["j"], ["i", "0"], ["2*i + 3*j"],
                     ["i//2", "i%2", "j"], ["j//4", "i", "j%4"], ["i", "i"], ["i", "i + j"],
                     ["(i*M + j)//4", "(i*M + j)%4"], ["i*4 + j%4", "j//4"], ["i", "j & 3"],
                     ["i", "min(j, 3)"], ["i", "j//4", "(j%4) ^ (i%4)"], ["i%4", "j", "i//4"],
                     ["i%4 ^ j%4", "j%4", "i//4", "j//4"]):
            ask_all("not bijective", Layout("ij", outs, ["N", "M"], facts), some=3)


def is_symbolic(query):
    return any(isinstance(e, str) for e in query["a"]["shape"])


def balanced():
    """As many static queries as symbolic ones: every pair of tags, of the others a draw."""
    pairs = [q for q in queries if q["family"] == "tags" and q["op"] == "divide"]
    paired = {id(q) for q in pairs}
    rest = [q for q in queries if not is_symbolic(q) and id(q) not in paired]
    fixed = sum(not is_symbolic(q) for q in pairs)
    wanted = sum(map(is_symbolic, queries)) - fixed
    drawn = {id(q) for q in rng.sample(rest, min(len(rest), wanted))}
    return [q for q in queries if is_symbolic(q) or id(q) in paired or id(q) in drawn]


def main():
    tag_families()
    tile_families()
    kernel_families()
    swizzle_families()
    odd_families()
    symbolic_blocks()
    moved_families()
    other_families()
    kept = balanced()
    with open(HERE / "queries.jsonl", "w") as out:
        for n, q in enumerate(kept):
            out.write(json.dumps({"id": n, **q}, separators=(",", ":")) + "\n")
    print(f"{len(kept)} queries, {sum(map(is_symbolic, kept))} symbolic")


if __name__ == "__main__":
    main()
