#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the words of sources and documents: no name that docs/glossary.md replaced by another, and
no comment or docstring that begins as a fragment of a sentence. Checks that the glossary is short
and sorted.

    scripts/check_words.py             the folders that are checked in `make test`
    scripts/check_words.py src/plan    these files and folders only
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

MOST_WORDS = 60  # of the glossary

# Folders whose words are checked, and those which still have such words.
CLEAN = ["README.md", "CONTRIBUTING.md", "bench", "docs", "examples", "fuzz", "include", "python",
         "src/api", "src/arith", "src/autosched", "src/base", "src/cache", "src/cli", "src/driver",
         "src/explain", "src/frontend", "src/graph", "src/interp", "src/ir", "src/layout",
         "src/lower", "src/offload", "src/plan", "src/passes", "src/query", "src/report", "src/runtime", "src/schedule",
         "src/script", "src/solve", "src/target", "src/te", "tests"]
TO_DO = []
SOURCES = {".c", ".h", ".def", ".py", ".md", ".map", ".build"}

# Words that may not stand alone or in a name, with what is said instead.
NAMES = {
    "blame": "locate a miscompile",
    "joinbar": "fusion blocker",
    "timetable": "bank schedule",
    "wish": "constraint",
    "wished": "requested",
    "wishes": "constraints",
}
# Words and phrases that may not stand in prose.
PHRASES = {
    "a no": "a verdict of no",
    "a yes": "a verdict of yes",
    "anybody's": "undefined",
    "joined": "fused",
    "joins": "is fused with",
    "lie": "is stored at, is in",
    "lies": "is stored at, is in",
    "road": "strategy, path",
    "side by side": "contiguous, consecutive",
    "surjective": "onto",
}
# Texts in which a word above is right: names of other systems, and fields of JSON.
ALLOWED = re.compile(r"\"joins\"|IterMapLevel.Surjective|\"surjective\"", re.IGNORECASE)
FRAGMENT = re.compile(r"(Of|What|Those|Nothing|None|Such)\b")


def name_pattern(word):
    """The word in prose, in snake_case or in CamelCase."""
    return rf"(?<![a-zA-Z])(?i:{word})(?![a-z])|{word.capitalize()}(?![a-z])"


PATTERNS = [(re.compile(name_pattern(word)), word, instead) for word, instead in NAMES.items()]
PATTERNS += [(re.compile(rf"\b{word}\b(?![(-])", re.IGNORECASE), word, instead)
             for word, instead in PHRASES.items()]


def check_line(where, line):
    line = ALLOWED.sub("", line)
    for pattern, word, instead in PATTERNS:
        if pattern.search(line):
            yield f"{where}: '{word}'; say '{instead}'"


def comment_of(line, suffix):
    """The text of a line that holds only a comment; else None."""
    mark = r"\s*#\s?(.*)" if suffix in {".py", ".build"} else r"\s*(?://|/\*+|\*)\s?(.*)"
    match = re.match(mark, line)
    return match[1] if match else None


def check_fragments(path, lines):
    """Comments that begin with a word which leaves them without subject or verb."""
    before = None
    for number, line in enumerate(lines, 1):
        text = comment_of(line, path.suffix)
        if text is not None and not before and FRAGMENT.match(text):
            yield f"{path}:{number}: a comment that begins with '{FRAGMENT.match(text)[0]}'"
        before = text


def check_docstrings(path, text):
    """Docstrings of Python that begin with such a word. `None` is a value there."""
    for match in re.finditer(r'"""' + FRAGMENT.pattern, text):
        if match[1] != "None":
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: a docstring that begins with '{match[1]}'"


def check_file(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        yield from check_line(f"{path}:{number}", line)
    if path.suffix in {".c", ".h", ".def", ".py", ".build"}:
        yield from check_fragments(path, lines)
    if path.suffix == ".py":
        yield from check_docstrings(path, text)


def files_of(place):
    path = ROOT / place
    for found in [path] if path.is_file() else sorted(path.rglob("*")):
        if found.is_file() and found.suffix in SOURCES and "build" not in found.parts:
            yield found.relative_to(ROOT)


def unlisted():
    """Folders of sources that neither list names."""
    folders = ["docs", "include", "python"]
    folders += [f"src/{path.name}" for path in (ROOT / "src").iterdir() if path.is_dir()]
    return [f"scripts/check_words.py: '{folder}' is not listed" for folder in sorted(folders)
            if folder not in CLEAN + TO_DO]


def glossary():
    """Words beyond those that a reader learns at one sitting, and words out of order."""
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    words = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][2:]
    if len(words) > MOST_WORDS:
        yield f"docs/glossary.md: {len(words)} words, more than {MOST_WORDS}"
    if words != sorted(words):
        yield "docs/glossary.md: the words are not sorted"


def main():
    problems, count = [*unlisted(), *glossary()], 0
    for place in sys.argv[1:] or CLEAN:
        for path in files_of(place):
            problems += check_file(path)
            count += 1
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"words: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
