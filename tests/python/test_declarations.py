# SPDX-License-Identifier: Apache-2.0
"""The declarations of the headers for cffi: the module that the build makes from them is used while it belongs
to them, and only then."""
import os
import shutil
import subprocess
import sys

import pytest
from built import BUILD, ROOT, skip_sanitized

skip_sanitized()
pytest.importorskip("cffi")

USE = """
import pleat, sys
print(pleat.version(), "cffi" in sys.modules, hasattr(pleat._library._lib, "pleat_layout_offsets"))
"""


@pytest.fixture
def checkout(tmp_path):
    """A copy of the Python package and of the headers, whose build folder has the library alone."""
    shutil.copytree(ROOT / "python" / "pleat", tmp_path / "python" / "pleat",
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "include", tmp_path / "include")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "libpleat.so").symlink_to(BUILD / "libpleat.so")
    return tmp_path


def make_module(checkout):
    subprocess.run([sys.executable, str(checkout / "python" / "pleat" / "_declarations.py"),
                    str(checkout / "include" / "pleat"),
                    str(checkout / "build" / "python" / "_interface.py")], check=True)


def add_to_header(checkout, old, new):
    header = checkout / "include" / "pleat" / "pleat.h"
    text = header.read_text()
    assert text.count(old) == 1
    header.write_text(text.replace(old, new))


def use(checkout, text=USE):
    kept = {key: value for key, value in os.environ.items() if key != "PLEAT_LIBRARY"}
    return subprocess.run([sys.executable, "-W", "default::ImportWarning", "-c", text],
                          capture_output=True, text=True, cwd=checkout,
                          env={**kept, "PYTHONPATH": str(checkout / "python")})


def test_the_module_of_the_build_is_used(checkout):
    make_module(checkout)
    found = use(checkout)
    assert found.stdout.split()[1:] == ["False", "True"] and not found.stderr, found.stderr


def test_without_it_the_headers_are_read(checkout):
    found = use(checkout)
    assert found.stdout.split()[1:] == ["True", "True"] and not found.stderr, found.stderr


def test_a_module_of_other_headers_is_not_used(checkout):
    make_module(checkout)
    add_to_header(checkout, "int pleat_version_number(void);",
                  "int pleat_version_number(void);\nint pleat_solver_version(void);")
    found = use(checkout, USE + "pleat._library._lib.pleat_solver_version")
    assert found.stdout.split()[1:3] == ["True", "True"]
    assert "was made from other headers" in found.stderr
    assert "pleat_solver_version" in found.stderr.splitlines()[-1]  # declared, but not in the library
    make_module(checkout)
    assert use(checkout).stdout.split()[1:] == ["False", "True"]


def test_an_older_library_is_refused(checkout):
    add_to_header(checkout, "#define PLEAT_VERSION_NUMBER 100", "#define PLEAT_VERSION_NUMBER 203")
    make_module(checkout)
    found = use(checkout)
    assert found.returncode and "is version 0.1.0 of Pleat, and this package needs 0.2.3 or a later " \
        "version 0" in found.stderr


def test_the_build_makes_it_again(checkout):
    """An interpreter without cffi removes the old module, and takes the other interpreter."""
    target = checkout / "build" / "python" / "_interface.py"
    target.parent.mkdir()
    target.write_text("old")
    command = [sys.executable, "-S", str(checkout / "python" / "pleat" / "_declarations.py"),
               str(checkout / "include" / "pleat"), str(target)]
    subprocess.run([*command, str(checkout / "no-python")], check=True)
    assert not target.exists()
    subprocess.run([*command, sys.executable], check=True)
    assert "HEADERS = " in target.read_text()
