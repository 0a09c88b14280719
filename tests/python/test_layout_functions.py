# SPDX-License-Identifier: Apache-2.0
"""Every function of pleat/layout.h, compared with the JSON questions on random layouts. The
last test checks that no function is missing."""
import json
import random
import re
import subprocess

import pytest
from built import BUILD, ROOT, skip_sanitized
from test_layout_batch import random_layout

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import _library  # noqa: E402

ffi, lib = _library.ffi, _library._lib
HEADER = (ROOT / "include" / "pleat" / "layout.h").read_text()
FUNCTIONS = set(re.findall(r"^[a-z].*?\b(pleat_layout_\w+)\(", HEADER, re.MULTILINE))
VERDICTS = {0: "no", 1: "yes", 2: "unknown"}
called, questions = set(), set()


class Refused(Exception):
    pass


def call(name, *arguments):
    """Calls a function with a place for messages; Refused with their text unless it succeeds."""
    called.add(name)
    messages = ffi.new("PleatMessages **")
    status = getattr(lib, name)(*arguments, messages)
    text = ffi.string(lib.pleat_messages_text(messages[0])).decode()
    lib.pleat_messages_free(messages[0])
    if status:
        assert status == 1 and text
        raise Refused(text)


def text(pointer):
    return None if pointer == ffi.NULL else ffi.string(pointer).decode()


def taken(pointer):
    """Owned text."""
    value = text(pointer)
    lib.pleat_free(pointer)
    return value


def number(value):
    """A PleatValue as JSON has it."""
    assert not value.is_constant or text(value.text) == str(value.number)
    return value.number if value.is_constant else text(value.text)


class Handle:
    """A PleatLayout and the JSON object from which it was made."""

    def __init__(self, fields, pointer=None):
        made = ffi.new("PleatLayout **", pointer or ffi.NULL)
        if pointer is None:
            call("pleat_layout_from_json", json.dumps(fields).encode(), made)
        self.pointer = ffi.gc(made[0], lib.pleat_layout_free)
        self.fields = fields

    @property
    def rank(self):
        called.add("pleat_layout_rank")
        return lib.pleat_layout_rank(self.pointer)

    def ranges(self, rng):
        """A random box, as PleatRange and as the field of a question."""
        box = []
        for i in range(self.rank):
            extent = self.fields["shape"][i]
            start = rng.randrange(extent)
            box.append((start, rng.randint(start + 1, extent), rng.choice([0, 1, 1, 2])))
        return ffi.new("PleatRange[]", box or [(0, 0, 0)]), [
            [start, stop, step or 1] for start, stop, step in box]


def asked(op, a, b=None, **fields):
    questions.add(op)
    return _library.query(op, a=a.fields, b=b.fields if b else None, **fields)


def same(op, function, a, b=None, before=(), results=(), verdict=True, **fields):
    """Asks in both ways. Returns the reply and the places of the results, or None where both refuse.
    The witness, reason, level and certificate must be equal as well."""
    proof = ffi.new("PleatProof **")
    outs = [ffi.new(kind) for kind in results]
    place = [ffi.new("int *")] if verdict else []
    operands = [a.pointer] + ([b.pointer] if b else [])
    try:
        call(function, *operands, *before, *place, *outs, proof)
    except Refused:
        with pytest.raises(pleat.PleatError):
            asked(op, a, b, **fields)
        return None
    reply = asked(op, a, b, certificate=True, **fields)
    compare_proofs(proof[0], reply)
    if verdict:
        said = reply["answer"] if reply["answer"] in ("no", "unknown") else "yes"
        if reply["answer"] is None:
            said = "no"
        if function != "pleat_layout_bank_conflicts":
            assert VERDICTS[place[0][0]] == said
    lib.pleat_free(proof[0])
    return reply, place[0][0] if verdict else 1, outs


def compare_proofs(proof, reply):
    witness = reply.get("witness")
    first = witness[0] if witness and isinstance(witness[0], list) else witness
    assert (proof.witness == ffi.NULL) == (first is None)
    if first is not None:
        assert list(proof.witness[0:proof.witness_rank]) == first
    if first is not witness:
        assert list(proof.second_witness[0:proof.witness_rank]) == witness[1]
    assert text(proof.reason) == reply.get("reason")
    assert text(proof.level) == reply["level"]
    assert text(proof.certificate) == reply["certificate"]


def made_layout(pointer, reply, shape):
    """Checks a layout that a function made against the text of the reply."""
    made = Handle(None, pointer)
    called.update(["pleat_layout_spelling", "pleat_layout_json", "pleat_layout_shape",
                   "pleat_layout_physical_rank", "pleat_layout_physical_shape"])
    assert text(lib.pleat_layout_spelling(made.pointer)) == reply["answer"]
    extents = lib.pleat_layout_shape(made.pointer)
    assert [number(extents[i]) for i in range(made.rank)] == reply.get("shape", shape)
    made.fields = json.loads(text(lib.pleat_layout_json(made.pointer)))
    whole = asked("physical_shape", made)
    physical = lib.pleat_layout_physical_shape(made.pointer)
    count = lib.pleat_layout_physical_rank(made.pointer)
    assert [number(physical[i]) for i in range(count)] == whole["answer"]
    return made


def axis_names(layout):
    called.add("pleat_layout_axis")
    return [text(lib.pleat_layout_axis(layout.pointer, i)) for i in range(layout.rank)]


def digit(value, names, key="cut"):
    return {"axis": names[value.axis] if value.axis >= 0 else "", key: value.cut,
            "extent": number(value.extent)}


def random_handle(rng):
    spelling, shape = random_layout(rng)
    return Handle({"layout": spelling, "shape": shape})


def same_shape(rng, a):
    """Another layout of the tensor of `a`."""
    names = "ijk"[:a.rank]
    order = list(names)
    rng.shuffle(order)
    return Handle({"layout": f"{', '.join(names)} -> {', '.join(order)}",
                   "shape": a.fields["shape"]})


ONE = {"identity": "is_identity", "injective": "is_injective", "onto": "is_onto",
       "bijective": "is_bijective"}
TWO = {"equal": "equal", "same_map": "same_map", "is_reshape": "is_reshape"}


def check_verdicts(rng, a, b):
    for op, name in ONE.items():
        same(op, f"pleat_layout_{name}", a)
    for op, name in TWO.items():
        same(op, f"pleat_layout_{name}", a, b)
        same(op, f"pleat_layout_{name}", a, a)


def check_maps(rng, a, b):
    for op, other in [("inverse", None), ("divide", b), ("left_divide", b)]:
        found = same(op, f"pleat_layout_{op}", a, other, results=["PleatLayout **", "char **"])
        if not found:
            continue
        reply, verdict, (made, padding) = found
        assert taken(padding[0]) == reply.get("padding")
        assert (made[0] != ffi.NULL) == (verdict == 1)
        if verdict == 1:
            made_layout(made[0], reply, None)


def check_made(op, function, a, b=None, before=(), **fields):
    found = same(op, function, a, b, before, ["PleatLayout **"], **fields)
    if found and found[1] == 1:
        return made_layout(found[2][0][0], found[0], a.fields["shape"])


def check_algebra(rng, a, b):
    check_made("compose", "pleat_layout_compose", a, b)
    inner = Handle({"layout": "p -> p, 0" if a.rank == 2 else "p -> p", "shape": [3]})
    check_made("compose", "pleat_layout_compose", a, inner)
    check_made("sum", "pleat_layout_direct_sum", a, b)
    for kind, word in enumerate(["logical", "blocked", "raked"]):
        filled = rng.random() < 0.5
        check_made("product", "pleat_layout_product", a, b, (kind, int(filled)), kind=word,
                   filled=filled)
    size = rng.choice([0, 8, 64, 96, -1])
    check_made("complement", "pleat_layout_complement", a, before=(size,), size=size)
    tilers = [rng.choice([None, Handle({"layout": f"({n}):(1)"})]) for n in (1, 2, 3)][:a.rank]
    pointers = ffi.new("PleatLayout *[]", [t.pointer if t else ffi.NULL for t in tilers] + [ffi.NULL])
    check_made("tile", "pleat_layout_tile", a, before=(pointers,),
               by=[t and t.fields for t in tilers])
    shape = rng.choice([a.fields["shape"][::-1], [1] + a.fields["shape"], [7]])
    check_made("reshape", "pleat_layout_reshape", a, before=(shape, len(shape)), to=shape)


def check_slices(rng, a, b):
    box, field = a.ranges(rng)
    found = same("slice", "pleat_layout_slice", a, before=(box,), box=field,
                 results=["PleatLayout **", "PleatValue **", "PleatValue **"])
    if not found or found[1] != 1:
        return
    reply, _, (made, offset, strides) = found
    made_layout(made[0], reply, None)
    assert number(offset[0][0]) == reply["offset"]
    listed = None if strides[0] == ffi.NULL else [number(strides[0][i]) for i in range(a.rank)]
    assert listed == reply["strides"]
    lib.pleat_free(offset[0])
    lib.pleat_free(strides[0])


def check_offsets(rng, a, b):
    index = [rng.randrange(n) for n in a.fields["shape"]]
    offset, physical = ffi.new("int64_t *"), ffi.new("int64_t[]", 64)
    found = same("offset", "pleat_layout_offset", a, before=(index, offset, physical), at=index,
                 verdict=False)
    assert offset[0] == found[0]["answer"]
    assert list(physical[0:len(found[0]["place"])]) == found[0]["place"]
    map_text = ffi.new("char **")
    call("pleat_layout_offset_map", a.pointer, map_text)
    assert taken(map_text[0]) == asked("offset", a)["answer"]
    at = rng.randrange(64)
    found = same("logical", "pleat_layout_index_at", a, before=(at,), at=at,
                 results=["int64_t[64]"])
    if found and found[1] == 1:
        assert list(found[2][0][0:a.rank]) == found[0]["answer"]
    count = _library.offsets(a.fields, 0)
    out, total = ffi.new("int64_t[]", len(count) + 1), ffi.new("int64_t *")
    call("pleat_layout_offsets", a.pointer, out, len(count), total)
    assert total[0] == len(count) and list(out[0:total[0]]) == list(count)


def check_steps(rng, a, b):
    reply, _, (strides,) = same("strides", "pleat_layout_strides", a, results=["PleatValue **"],
                                verdict=False)
    assert [number(strides[0][i]) for i in range(a.rank)] == reply["answer"]
    lib.pleat_free(strides[0])
    widths = ffi.new("int64_t[]", 64)
    reply, _, _ = same("vector", "pleat_layout_vector_widths", a, before=(widths,), verdict=False)
    assert list(widths[0:a.rank]) == reply["answer"]


def check_order(rng, a, b):
    names = axis_names(a)
    for layout in (a, b):
        order = ffi.new("int[]", 64)
        verdict = ffi.new("int *")
        reply = asked("permutation", layout)
        call("pleat_layout_permutation", layout.pointer, verdict, order, ffi.NULL)
        if verdict[0] == 1:
            assert list(order[0:layout.rank]) == reply["answer"]
        else:
            assert VERDICTS[verdict[0]] == reply["answer"]
    for layout in (a, b):
        reply, verdict, (found,) = same("blocking", "pleat_layout_blocking", layout,
                                        results=["PleatBlocking **"])
        if verdict == 1:
            assert [digit(found[0].blocks[i], names, "block")
                    for i in range(found[0].count)] == reply["answer"]
        lib.pleat_free(found[0])
    reply, verdict, (found,) = same("loop_order", "pleat_layout_loop_order", a,
                                    results=["PleatLoops **"])
    if verdict == 1:
        loops = [found[0].loops[i] for i in range(found[0].count)]
        assert [{"axis": names[one.axis] if one.axis >= 0 else "", "step": one.step,
                 "extent": number(one.extent), "stride": number(one.stride)}
                for one in loops] == reply["answer"]
        assert (text(found[0].index), text(found[0].guard)) == (reply["index"], reply["guard"])
    lib.pleat_free(found[0])
    reply, verdict, (found,) = same("refine", "pleat_layout_refine", a, b,
                                    results=["PleatRefinement **"])
    if verdict == 1:
        factors = [found[0].factors[i] for i in range(found[0].count)]
        assert [{**digit(one.digit, names), "strides": [number(one.strides[0]),
                                                        number(one.strides[1])]}
                for one in factors] == reply["answer"]
        assert bool(found[0].is_xor) == reply["bits"]
    lib.pleat_free(found[0])


def position(value):
    return None if value.resource == ffi.NULL else {"resource": text(value.resource),
                                                    "stride": number(value.stride)}


def check_copies(rng, a, b):
    names = axis_names(a)
    bits = rng.choice([8, 16, 32, 0])
    found = same("copy", "pleat_layout_copy_plan", a, b, (bits,), ["PleatCopy **"],
                 element_bits=bits)
    if not found or found[1] != 1:
        return
    reply, copy = found[0], found[2][0][0]
    moves = [copy.moves[i] for i in range(copy.move_count)]
    assert [{**digit(one.digit, names), "from": position(getattr(one, "from")),
             "to": position(one.to)} for one in moves] == reply["answer"]
    if copy.is_counted:
        assert (copy.copies, copy.still) == (reply["copies"], reply["still"])
        levels = [copy.levels[i] for i in range(copy.level_count)]
        words = {(1, 1): "both", (1, 0): "from", (0, 1): "to"}
        assert [{"resource": text(one.resource), "in": words[one.in_from, one.in_to],
                 "elements": one.elements, "bytes": one.bytes} for one in levels] == reply["levels"]
    lib.pleat_free(copy)


def runs(value):
    return [[value.runs[i].first, value.runs[i].count] for i in range(value.shown)]


def check_memory(rng, a, b):
    reply, verdict, (count, condition) = same(
        "padding", "pleat_layout_padding_count", a, results=["PleatValue **", "char **"])
    if verdict == 1:
        assert number(count[0][0]) == reply["answer"]
        assert taken(condition[0]) == reply.get("padding")
    lib.pleat_free(count[0])
    box, field = a.ranges(rng)
    line = rng.choice([0, 16, 64])
    size = ffi.new("PleatLines *", {"line_bytes": line, "base": 4})
    for op, before, fields in [("padding_runs", (), {}),
                               ("lines", (ffi.NULL, ffi.NULL), {}),
                               ("lines", (box, size), {"box": field, "line": line or 64,
                                                       "base": 4})]:
        found = same(op, f"pleat_layout_{op}", a, before=before, results=["PleatRuns **"], **fields)
        if found and found[1] == 1:
            reply, _, (value,) = found
            assert (value[0].total, value[0].run_count) == (reply["answer"], reply["run_count"])
            assert runs(value[0]) == reply["runs"]
            lib.pleat_free(value[0])


def check_banks(rng, a, b):
    box, field = a.ranges(rng)
    lanes = ffi.new("int64_t[]", [4])
    words = ffi.new("char[]", f"l -> {', '.join(['0'] * a.rank)}".encode())
    accesses = ffi.new("PleatAccess[]", [
        {"ranges": box, "vector": rng.choice([0, 1, 2]), "weight": 3},
        {"map": words, "extents": lanes, "extent_count": 1}])
    fields = [{"ranges": field, "vector": accesses[0].vector, "weight": 3},
              {"map": ffi.string(words).decode(), "extents": [4]}]
    banks = ffi.new("PleatBanks *", {"count": 8, "element_bits": 16})
    options = {"banks": [8, 4], "element_bits": 16}
    conflicts, verdict = ffi.new("PleatConflicts *"), ffi.new("int *")
    for access, one in zip(accesses, fields):
        place = ffi.addressof(access)
        try:
            call("pleat_layout_bank_conflicts", a.pointer, place, banks, verdict, conflicts,
                 ffi.NULL)
        except Refused:
            with pytest.raises(pleat.PleatError):
                asked("conflicts", a, read=one, **options)
            continue
        reply = asked("conflicts", a, read=one, **options)
        if verdict[0] == 2:
            assert reply["answer"] == "unknown"
            continue
        assert {key: getattr(conflicts, key) for key in ("bank", "waves", "words", "phase")} == {
            key: reply[key] for key in ("bank", "waves", "words", "phase")}
        assert conflicts.degree == reply["answer"] and (verdict[0] == 1) == (reply["answer"] <= 1)
    found = same("swizzle", "pleat_layout_best_swizzle", a, before=(accesses, 2, banks),
                 results=["PleatLayout **", "PleatSwizzle **"], reads=fields, **options)
    if found and found[1] == 1:
        reply, _, (made, swizzle) = found
        made_layout(made[0], reply, a.fields["shape"])
        swizzle = swizzle[0]
        assert (bool(swizzle.is_optimal), text(swizzle.offset_map), text(swizzle.name)) == (
            reply["optimal"], reply["offset_map"], reply["swizzle"])
        assert list(swizzle.waves[0:swizzle.count]) == reply["waves"]
        assert list(swizzle.bound[0:swizzle.count]) == reply["bound"]
        lib.pleat_free(swizzle)


def check_texts(rng, a, b):
    for kind in ("index-map", "lambda", "named", "tag", "cute", "xla", "torch", "bases", "nothing"):
        found = same("spell", "pleat_layout_spell", a, before=(kind.encode(),),
                     results=["char **"], **{"as": kind})
        if found:
            reply, verdict, (spelled,) = found
            assert taken(spelled[0]) == (reply["answer"] if verdict == 1 else None)
    svg = ffi.new("char **")
    call("pleat_layout_svg", a.pointer, svg)
    assert taken(svg[0]) == asked("svg", a)["answer"]


CHECKS = [check_verdicts, check_maps, check_algebra, check_slices, check_offsets, check_steps,
          check_order, check_copies, check_memory, check_banks, check_texts]


@pytest.mark.parametrize("check", CHECKS)
def test_functions_answer_as_the_json_questions(check):
    rng = random.Random(check.__name__)
    for _ in range(25):
        a = random_handle(rng)
        check(rng, a, same_shape(rng, a))


def test_layouts_from_texts_are_those_from_json():
    layout = ffi.new("PleatLayout **")
    call("pleat_layout_read", b"NCHW16c", b"1x30x7x7", layout)
    again = Handle({"layout": "NCHW16c", "shape": [1, 30, 7, 7]})
    assert text(lib.pleat_layout_json(layout[0])) == text(lib.pleat_layout_json(again.pointer))
    lib.pleat_layout_free(layout[0])
    spelling, extents = ffi.new("char[]", b"NCHW16c"), ffi.new("int64_t[]", [1, 30, 7, 7])
    source = ffi.new("PleatLayoutSource *", {"spelling": spelling, "extents": extents, "rank": 4})
    source.size = ffi.sizeof("PleatLayoutSource")
    call("pleat_layout_new", source, layout)
    assert text(lib.pleat_layout_json(layout[0])) == text(lib.pleat_layout_json(again.pointer))
    lib.pleat_layout_free(layout[0])
    called.add("pleat_layout_free")


def test_every_function_is_called():
    """And every question of the table has one."""
    called.clear()
    questions.clear()
    rng = random.Random(1)
    for check in CHECKS:
        for _ in range(4):
            a = random_handle(rng)
            check(rng, a, same_shape(rng, a))
    test_layouts_from_texts_are_those_from_json()
    assert FUNCTIONS - called == set() and len(FUNCTIONS) > 40
    listed = subprocess.check_output([str(BUILD / "pleat"), "layout", "--help-batch"], text=True)
    rows = listed.partition("\nop ")[2].splitlines()[1:]
    assert questions == {line.split()[0] for line in rows if line}
