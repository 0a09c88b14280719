#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every source file: a folder includes only folders before it in the order of layers, a file
has at most 1,500 lines and at most 100 columns, each names its licence, and no two types share a
name. The tour of the code in README.md names the folders in the order of layers."""
import argparse
import pathlib
import re
import subprocess
import sys

LAYERS = ("base solve cache layout runtime ir arith interp script te schedule autosched graph offload plan "
          "passes lower target frontend explain query driver report cli api").split()
# The layout algebra has layers of its own. Every layer may include its public header,
# layout/layout.h.
SUBLAYERS = {"layout": "core check points digits symbolic isl proofs answers spellings operations "
                       "certificates".split()}
# Each folder takes its own columns of the table of operations.
EXCEPTIONS = {"core/ops.def"}
# The one header of a sub-folder that the others may include, where it is not called X/X.h.
HEADERS = {"proofs": "goal.h", "certificates": "certificate.h"}
# Functions of later sub-folders that earlier ones may call: the hook of builds that check answers.
HOOKS = {"layout_verify"}
# The files that compiled code needs to run must not include the compiler.
ALLOWED = {"runtime": {"base", "runtime"}, "layout": {"base", "layout"}, "solve": {"base", "solve"},
           "cache": {"base", "cache"},
           "query": {"base", "layout", "runtime", "explain", "query"}}
# Type names with two definitions: of the two kinds of workers one is built.
SHARED_TYPES = {"Workers"}
MOST_LINES, MANY_LINES, MOST_COLUMNS = 1500, 1000, 100
TABLES = {".def"}
SOURCES = {".c", ".h", ".def", ".py", ".sh", ".build"}
FOLDERS = ("src", "include", "tests", "scripts", "bench", "examples", "fuzz", "packaging",
           "python")

def layer_problem(layer, included):
    """Why a file of `layer` may not include one of `included`, or None."""
    if included not in LAYERS:
        return f"'{included}/' is not a layer"
    allowed = ALLOWED.get(layer, set(LAYERS[:LAYERS.index(layer) + 1]))
    return None if included in allowed else f"'{layer}' may not include '{included}'"

def sublayer_problem(path, included):
    """Why a file of a folder's sub-folder may not include the file `included`, or None."""
    layer, parts = path.parts[1], included.split("/")
    order = SUBLAYERS.get(layer)
    if not order or parts[0] != layer or len(parts) < 3 or "/".join(parts[1:]) in EXCEPTIONS:
        return None
    if parts[1] not in order:
        return f"'{layer}/{parts[1]}/' is not a layer of '{layer}'"
    own = path.parts[2] if len(path.parts) > 3 else order[0]
    if parts[1] not in order[:order.index(own) + 1]:
        return f"'{path.parent}' may not include '{included}'"
    header = HEADERS.get(parts[1], parts[1] + ".h")
    if parts[1] != own and parts[2] != header:
        return f"'{included}' is private to its folder; include '{layer}/{parts[1]}/{header}'"
    return None

def check_includes(path, layer, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match or "/" not in match[1] or match[1].startswith("pleat/"):
            continue
        problem = layer_problem(layer, match[1].split("/")[0]) or sublayer_problem(path, match[1])
        if problem:
            yield f"{path}:{number}: {problem}"

def symbols_of(library):
    """(object file, kind, name) of each symbol that an object file of the library has."""
    lines = subprocess.run(["nm", "-g", "-A", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    for line in lines:
        match = re.match(r".*?([^/:]+)\.o:.*\b([A-Z]) (\S+)$", line)
        if match:
            yield match.groups()


def check_symbols(build, layer):
    """No object file of a sub-folder may refer to a function of a later one: the public header
    declares the functions of all sub-folders, so the includes do not show this."""
    order = SUBLAYERS[layer]
    symbols = [(name.split("_")[0], name, kind, symbol) for name, kind, symbol in
               symbols_of(build / "src" / layer / f"libpleat_{layer}.a")]
    rank = {symbol: order.index(folder) for folder, _, kind, symbol in symbols
            if kind != "U" and folder in order}
    for folder, name, kind, symbol in symbols:
        calls = kind == "U" and folder in order and symbol not in HOOKS
        if calls and rank.get(symbol, -1) > order.index(folder):
            yield f"{build}: {name} uses {symbol} of '{layer}/{order[rank[symbol]]}'"


def check_lifetime(path, layer, text):
    """Layouts are cached for the context's lifetime, so their memory must not end with a scope."""
    for number, line in enumerate(text.splitlines(), 1):
        if layer == "layout" and "context->arena" in line:
            yield f"{path}:{number}: layouts live in context->lasting, not in context->arena"

def types_of(text):
    """The names of the types that a C file defines; forward declarations are not definitions."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    names = set(re.findall(r"^(?:struct|union|enum) (\w+) \{", text, re.MULTILINE))
    for match in re.finditer(r"^typedef\b[^{;]*(\{[^{}\n]*\}|\{.*?^\})?[^;]*;", text,
                             re.MULTILINE | re.DOTALL):
        definition = re.sub(r"\{.*\}", "{}", match[0][:-1], flags=re.DOTALL)
        definition = re.sub(r"__attribute__\(\(.*\)\)", "", definition).strip()
        if re.fullmatch(r"typedef (?:struct|union|enum) (\w+) \1", definition):
            continue
        name = (re.search(r"\(\*(\w+)\)\s*\(", definition) or
                re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", definition) or
                re.search(r"(\w+)\s*\([^()]*\)$", definition))
        if name:
            names.add(name[1])
    return names

def check_type_names(root, paths):
    """Each type name of src/ has one definition, but for the listed ones."""
    places = {}
    for path in paths:
        if path.parts[0] == "src" and path.suffix in {".c", ".h"}:
            for name in types_of((root / path).read_text(encoding="utf-8")):
                places.setdefault(name, []).append(path)
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in SHARED_TYPES:
            yield f"{found[1]}: the type '{name}' has the name of one in {found[0]}"

def check_form(path, text):
    lines = text.splitlines()
    if path.suffix not in TABLES and len(lines) > MOST_LINES:
        yield f"{path}: {len(lines)} lines, more than {MOST_LINES}"
    elif path.suffix not in TABLES and len(lines) > MANY_LINES:
        print(f"{path}: {len(lines)} lines: could it be split?", file=sys.stderr)
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield f"{path}: no line 'SPDX-License-Identifier: Apache-2.0' at the top"
    if path.suffix in {".c", ".h"}:
        for number, line in enumerate(lines, 1):
            if len(line) > MOST_COLUMNS:
                yield f"{path}:{number}: {len(line)} columns, more than {MOST_COLUMNS}"

def sources(root):
    """The files to check, without those that building a wheel leaves in python/build."""
    left_out = [root / "tests" / "cases", root / "python" / "build"]
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SOURCES and not any(map(path.is_relative_to, left_out)):
                yield path.relative_to(root)


def tour_problems(root):
    """README's table of the folders must have each layer, in order."""
    rows = re.findall(r"^\| `(\w+)/` \|", (root / "README.md").read_text(encoding="utf-8"), re.M)
    if rows != list(LAYERS):
        yield "README.md: the tour of the code does not name the layers in order: " + \
            " ".join(LAYERS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, help="also check this build's object files")
    build = parser.parse_args().build
    root = pathlib.Path(__file__).resolve().parent.parent
    problems, count = [], 0
    for path in sources(root):
        text = (root / path).read_text(encoding="utf-8")
        problems += check_form(path, text)
        count += 1
        if path.parts[0] == "src" and len(path.parts) > 2:
            if path.parts[1] not in LAYERS:
                problems.append(f"{path}: '{path.parts[1]}' is not a layer")
            else:
                problems += check_includes(path, path.parts[1], text)
                problems += check_lifetime(path, path.parts[1], text)
    problems += check_type_names(root, sources(root))
    problems += tour_problems(root)
    for layer in SUBLAYERS if build else ():
        problems += check_symbols(build, layer)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"layers: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
