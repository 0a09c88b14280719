# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts into a folder: the headers, and libraries that link from there."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve().parent


def build_option(name):
    options = json.loads(subprocess.check_output(
        ["meson", "introspect", "--buildoptions", str(BUILD)], text=True))
    return next(option["value"] for option in options if option["name"] == name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    if not shutil.which("meson") or build_option("b_sanitize") != "none":
        pytest.skip("installed libraries of sanitized builds need the sanitizer's own")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "--no-rebuild", "--quiet", "-C", str(BUILD), "--destdir",
                    str(folder)], check=True)
    return folder / pathlib.Path(build_option("prefix")).relative_to("/")


def compiled(installed, tmp_path, source, library):
    program = tmp_path / "program"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{installed / 'include'}",
                    str(source), "-o", str(program), str(library), "-lm"], check=True)
    return program


def test_solver_links_from_its_installed_files(installed, tmp_path):
    library = next(installed.rglob("libpleat_solve.a"))
    program = compiled(installed, tmp_path, ROOT / "examples" / "solver" / "registers.c", library)
    assert subprocess.check_output([program], text=True).endswith("cost 4, proved least\n")


def test_solver_shows_only_its_own_symbols(installed):
    library = next(installed.rglob("libpleat_solve.a"))
    names = subprocess.check_output(["nm", "-g", "--defined-only", str(library)], text=True).split()
    shown = [name for name in names if "_" in name and not name.startswith("libpleat")]
    assert shown and all(name.startswith("pleat_pbqp_") for name in shown)
