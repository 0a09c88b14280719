#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what comments and documents name exists: files by their path or name, folders of this
repository, and the functions and types in backticks. Also that each file of src/ begins with a
comment that says what it does.

    scripts/check_references.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("bench", "docs", "examples", "fuzz", "include", "packaging", "python", "scripts", "src",
           "tests")
C_FILES = {".c", ".h", ".def"}
FILE = re.compile(r"(?<![\w./<%-])((?:[\w*-]+/)*[\w*-]+\."
                  r"(?:c|h|def|py|md|options|build))\b(?![\w(])")
FOLDER = re.compile(rf"(?<![\w./-])((?:{'|'.join(FOLDERS)})/(?:[\w-]+/)*)(?![\w*.])")
WORD = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b|\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
# Placeholders, such as NAME.h and test_X.c, and files that the user's commands read or write.
PLACEHOLDER = re.compile(r"NAME|FOLDER|_X\.|/X\.")
OTHER_FILES = {"LinearLayout.h", "config.h", "kernel.py", "matmul.h", "steps.py", "stdint.h"}
# Names of other systems, and of things that are made while building.
OTHER_NAMES = {"BackendTest", "DetectIterMap", "DynamicQuantizeLSTM", "EmbeddingBag",
               "fuzz_onnx_models", "fuzz_scripts", "libpleat_layout", "libpleat_solve",
               "max_total_time", "quantize_dynamic"}


def repository_files():
    listed = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file()]
    listed += [p for p in ROOT.iterdir() if p.is_file()]
    return [p.relative_to(ROOT) for p in listed if "__pycache__" not in p.parts]


def comment_of(line):
    """The comment in a line of C, or None. A line whose comment stands in a text has none."""
    before, mark, after = line.partition("//")
    return after if mark and '"' not in before else None


def is_path(name, paths):
    """Whether the name is the end of the path of a file, or of several for one with stars."""
    pattern = re.escape(name).replace(r"\*", "[^/]*")
    return re.search(rf"/{pattern}$", paths, re.MULTILINE) is not None


def check_files(where, text, paths):
    for name in FILE.findall(text):
        if not PLACEHOLDER.search(name) and name not in OTHER_FILES and not is_path(name, paths):
            yield f"{where}: no file '{name}'"
    for name in FOLDER.findall(text):
        if not PLACEHOLDER.search(name) and not (ROOT / name).is_dir():
            yield f"{where}: no folder '{name}'"


def check_names(where, line, names, paths):
    """Names in backticks; one of a formula has a last part of one letter or digit."""
    for quoted in re.findall(r"`([^`]+)`", line):
        if re.fullmatch(r"(?:[\w-]+/)+", quoted) and f"/{quoted}" not in paths:
            yield f"{where}: no folder '{quoted}'"
        for name in WORD.findall(quoted):
            formula = len(name.rpartition("_")[2]) == 1
            if name not in names and name not in OTHER_NAMES and not formula:
                yield f"{where}: no function, type or field '{name}'"


def check_head(path, lines):
    if path.parts[0] == "src" and not (len(lines) > 1 and lines[1].startswith("//")):
        yield f"{path}:2: no comment that says what the file does"


def main():
    files = repository_files()
    paths = "\n".join(f"/{path}" for path in files)
    texts = {path: (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in files
             if path.suffix in C_FILES | {".py", ".md"}}
    names = set(re.findall(r"\w+", paths))
    for path, text in texts.items():
        if path.suffix != ".md" and path.name != pathlib.Path(__file__).name:
            names.update(re.findall(r"\w+", re.sub(r"//.*", "", text)))
    problems = []
    for path, text in texts.items():
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            comment = comment_of(line) if path.suffix in C_FILES else ""
            comment = line if path.suffix == ".md" else comment
            problems += check_files(f"{path}:{number}", comment or "", paths)
            problems += check_names(f"{path}:{number}", comment or "", names, paths)
        problems += check_head(path, lines) if path.suffix in C_FILES else []
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"references: {len(texts)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
