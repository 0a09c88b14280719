# SPDX-License-Identifier: Apache-2.0
"""The public headers compile without warnings as C11 and C++17, and the tests call each function of
pleat.h, solve.h and tir.h."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "include" / "pleat").glob("*.h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
LANGUAGES = [("gcc", "c", "c11"), ("clang", "c", "c11"), ("g++", "c++", "c++17"),
             ("clang++", "c++", "c++17")]


def test_there_are_headers():
    assert {"pleat.h", "solve.h"} <= {header.name for header in HEADERS}


@pytest.mark.parametrize("compiler, language, standard", LANGUAGES)
@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.name)
def test_headers_compile_alone(compiler, language, standard, header):
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    source = f"#include <pleat/{header.name}>\n#include <pleat/{header.name}>\nint unused_name;\n"
    done = subprocess.run([compiler, f"-std={standard}", "-x", language, *WARNINGS,
                           f"-I{ROOT / 'include'}", "-fsyntax-only", "-"], input=source,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", ["pleat.h", "solve.h", "tir.h"])
def test_each_function_is_called(header):
    text = (ROOT / "include" / "pleat" / header).read_text()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    declared = set(re.findall(r"\b(pleat_\w+)\s*\(", text))
    called = "".join(path.read_text() for path in (ROOT / "tests" / "unit").glob("*.c"))
    assert declared
    assert not [name for name in sorted(declared) if not re.search(rf"\b{name}\b", called)]
