#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks other tools the questions of layoutbench.

    peers.py sample QUERIES --count 200 --seed 1   a sample of the queries, one JSON object a line
    peers.py points SAMPLE                         plain enumeration in NumPy
    peers.py tvm SAMPLE                            TVM's IndexMap and analyzer, where installed

points and tvm print {"id", "peer", "outcome", "ns"} a line; the outcome is right, undecided, wrong
or "cannot say". The measured processor time is that of the question alone, once, with the
layouts read before; for points it includes the evaluation of the map at every point."""
import argparse
import json
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from make_queries import Instance, Layout, VERDICTS, tag_layout  # noqa: E402

MOST_POINTS = 1 << 22  # of plain enumeration


class CannotSay(Exception):
    pass


class Undecided(Exception):
    pass


def read_layout(fields):
    """A Layout of make_queries, from a query's JSON."""
    text, shape, where = fields["layout"], fields["shape"], fields.get("where", ())
    if "->" not in text:
        return tag_layout(text, shape, where)
    axes, outputs = text.split("->")
    parts, depth, part = [], 0, ""
    for c in outputs + ",":
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return Layout([a.strip() for a in axes.split(",")], parts, shape, where)


# ---- Plain enumeration --------------------------------------------------------------------------

def samples(query):
    return [(at["values"] if "values" in at else {}, place, want)
            for at in query["truth"]["at"] for place, want in at["samples"]]


def enumerated(layout):
    points = 1
    for n in layout.shape:
        points *= n
    if points > MOST_POINTS:
        raise Undecided
    return Instance(layout, {})


def logical(instance, offset):
    found = (instance.offset == offset).nonzero()[0]
    return [int(v) for v in instance.index[:, found[0]]] if len(found) else None


def table_of(b, results):
    """Whether b is injective, and the element at each physical index."""
    if not b.injective():
        return "no", None
    table = dict(zip(b.offset.tolist(), results.T.tolist()))
    return "yes", lambda place: table.get(offset_of(place, b.physical))


def offset_of(place, physical):
    out = 0
    for x, n in zip(place, physical):
        out = out * n + x
    return out


class Points:
    name = "points"

    def prepare(self, query):
        self.layouts = [read_layout(query[k]) for k in "ab" if k in query]
        if any(l.symbols for l in self.layouts):
            raise CannotSay

    def ask(self, query):
        op = query["op"]
        made = [enumerated(l) for l in self.layouts]
        a, b = made[0], made[-1]
        if op in VERDICTS:
            return "yes" if VERDICTS[op](a) else "no"
        if op == "equal":
            return "yes" if a.equal(b) else "no"
        if op in ("inverse", "divide"):
            return table_of(b, a.places if op == "divide" else a.index)
        if op == "compose":
            grid = a.places.reshape([len(a.physical)] + a.shape)
            table = dict(zip(map(tuple, b.index.T.tolist()),
                             grid[(slice(None),) + tuple(b.places)].T.tolist()))
            return "yes", lambda index: table[tuple(index)]
        return {"padding": lambda: int(a.total - a.image),
                "physical_shape": lambda: [int(n) for n in a.physical],
                "strides": a.strides,
                "vector": lambda: [a.vector(x) for x in range(len(a.shape))],
                "offset": lambda: int(offset_of(a.places[:, self.column(a, query["at"])],
                                                a.physical)),
                "logical": lambda: logical(a, query["at"])}[op]()

    @staticmethod
    def column(instance, at):
        return offset_of(at, instance.shape)

    def right(self, query, answer):
        truth = query["truth"]
        if not isinstance(answer, tuple):
            return answer == truth
        verdict, value = answer
        return verdict == truth["answer"] and (
            verdict == "no" or all(value(place) == want for _, place, want in samples(query)))


# ---- TVM ----------------------------------------------------------------------------------------

class Tvm:
    """Verdicts: is_equivalent_to is yes or no; an inverse that is found is yes, one that is refused
    is undecided. A symbol that is a multiple of m is m times a variable."""
    name = "tvm"
    OPS = ("equal", "identity", "injective", "bijective", "inverse", "divide", "compose")

    def __init__(self):
        import tvm
        self.tvm = tvm
        self.tir = tvm.tirx if hasattr(tvm, "tirx") else tvm.tir  # the name has changed
        self.IndexMap, self.Var = self.tir.IndexMap, self.tir.Var
        self.functions = {"min": self.tir.min, "max": self.tir.max, "select": self.tir.Select}
        self.Analyzer = (tvm.sym if hasattr(tvm, "sym") else tvm.arith).Analyzer

    def prepare(self, query):
        if query["op"] not in self.OPS:
            raise CannotSay
        self.analyzer, self.symbols, self.variables = self.Analyzer(), {}, {}
        layouts = [read_layout(query[k]) for k in "ab" if k in query]
        for layout in layouts:
            for symbol in layout.symbols:
                self.add_symbol(symbol, [w for l in layouts for w in l.where])
        try:
            self.maps = [self.map_of(l) for l in layouts]
            self.shapes = [[self.value(e, {}) if isinstance(e, str) else e for e in l.shape]
                           for l in layouts]
        except Exception as refused:
            raise CannotSay from refused

    def add_symbol(self, symbol, where):
        if symbol in self.symbols:
            return
        multiple, least, most = 1, 1, 1 << 31
        for claim in where:
            name, op, number = re.match(r"(\w+) (\S+) (\d+)", claim).groups()
            if name == symbol:
                multiple = int(number) if op == "%" else multiple
                least = int(number) if op == ">=" else least
                most = int(number) if op == "<=" else most
        variable = self.Var(symbol, "int64")
        low = -(-least // multiple)
        self.analyzer.bind(variable, self.tvm.ir.Range(low, most // multiple + 1))
        self.variables[symbol] = variable, multiple
        self.symbols[symbol] = variable * multiple if multiple > 1 else variable

    def value(self, text, axes):
        got = eval(text, dict(self.functions), {**self.symbols, **axes})
        return self.tir.IntImm("int64", got) if isinstance(got, int) else got

    def map_of(self, layout):
        axes = {a: self.Var(a, "int64") for a in layout.axes}
        return self.IndexMap(list(axes.values()), [self.value(e, axes) for e in layout.outputs],
                             None)

    def bind_axes(self, index_map, shape):
        for variable, extent in zip(index_map.initial_indices, shape):
            self.analyzer.bind(variable, self.tvm.ir.Range(0, extent))

    def same_shape(self, a, b):
        return len(a) == len(b) and all(self.analyzer.can_prove_equal(x, y) for x, y in zip(a, b))

    def equal(self, a, shape_a, b, shape_b):
        self.bind_axes(a, shape_a)
        return "yes" if (self.same_shape(shape_a, shape_b) and
                         self.same_shape(a.map_shape(shape_a), b.map_shape(shape_b)) and
                         a.is_equivalent_to(b, self.analyzer)) else "no"

    def ask(self, query):
        """An error of TVM is a refusal."""
        try:
            return self.answer(query)
        except self.tvm.error.InternalError as refused:
            raise Undecided from refused

    def answer(self, query):
        op, a, shape = query["op"], self.maps[0], self.shapes[0]
        b, shape_b = self.maps[-1], self.shapes[-1]
        if op == "equal":
            return self.equal(a, shape, b, shape_b)
        if op == "identity":
            same = self.IndexMap(a.initial_indices, a.initial_indices, None)
            return self.equal(a, shape, same, shape)
        if op == "compose":
            return self.IndexMap(b.initial_indices, a.map_indices(b.final_indices), None), None
        if op == "bijective":
            b.inverse(shape_b, self.analyzer)
            return "yes"
        inverse, padding = b.non_surjective_inverse(shape_b, self.analyzer)
        if op == "injective":
            return "yes"
        if op == "divide":
            inverse = self.IndexMap(inverse.initial_indices, a.map_indices(inverse.final_indices),
                                    None)
        return inverse, padding

    def number(self, e, values):
        at = self.IndexMap(list(values), [e], None).map_indices(list(values.values()))
        return int(self.Analyzer().simplify(at[0]))

    def values_of(self, values):
        return {self.variables[s][0]: self.tir.IntImm("int64", v // self.variables[s][1])
                for s, v in values.items() if s in self.variables}

    def sample_holds(self, made, padding, values, place, want):
        at = self.values_of(values)
        at.update({v: self.tir.IntImm("int64", x)
                   for v, x in zip(made.initial_indices, place)})
        one, zero = self.tir.IntImm("int64", 1), self.tir.IntImm("int64", 0)
        if padding is not None and self.number(self.tir.Select(padding, one, zero), at):
            return want is None
        return [self.number(e, at) for e in made.final_indices] == want

    def right(self, query, answer):
        truth = query["truth"]
        if isinstance(answer, str):
            return answer == truth
        return truth["answer"] == "yes" and all(
            self.sample_holds(*answer, *sample) for sample in samples(query))


# ---- One query ----------------------------------------------------------------------------------

def asked(peer, query):
    start = None
    try:
        peer.prepare(query)
        start = time.thread_time_ns()
        answer = peer.ask(query)
        ns = time.thread_time_ns() - start
        return ("right" if peer.right(query, answer) else "wrong"), ns
    except CannotSay:
        return "cannot say", 0
    except Undecided:
        return "undecided", time.thread_time_ns() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sample", "points", "tvm"])
    parser.add_argument("queries")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    lines = open(args.queries).read().splitlines()
    if args.what == "sample":
        random.Random(args.seed).shuffle(lines)
        print("\n".join(lines[:args.count]))
        return
    try:
        peer = Points() if args.what == "points" else Tvm()
    except ImportError:
        print(json.dumps({"peer": args.what, "outcome": "not installed"}))
        return
    for query in map(json.loads, lines):
        outcome, ns = asked(peer, query)
        print(json.dumps({"id": query["id"], "peer": peer.name, "outcome": outcome, "ns": ns}))


if __name__ == "__main__":
    main()
