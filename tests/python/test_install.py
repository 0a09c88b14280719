# SPDX-License-Identifier: Apache-2.0
"""The files that `ninja install` installs. Every test uses a copy of the installed files elsewhere,
so that no path of the build or of the prefix is needed."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve().parent
VERSION = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text())[1]
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror"]

PROGRAM = r"""
#include <pleat/pleat.h>
#include <stdio.h>
int main(void) {
  char *reply = pleat_layout_query(
      "{\"op\": \"offset\", \"a\": {\"layout\": \"NCHW16c\", \"shape\": [1, 30, 7, 7]},"
      " \"at\": [0, 17, 3, 2]}", 0);
  puts(reply);
  pleat_free(reply);
  return 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(pleat {version} REQUIRED)
find_package(pleat REQUIRED)
foreach(name pleat pleat_static)
  add_executable(with_${{name}} program.c)
  target_link_libraries(with_${{name}} PRIVATE pleat::${{name}})
endforeach()
add_executable(with_solve {solver})
target_link_libraries(with_solve PRIVATE pleat::solve)
"""


def build_option(name):
    options = json.loads(subprocess.check_output(
        ["meson", "introspect", "--buildoptions", str(BUILD)], text=True))
    return next(option["value"] for option in options if option["name"] == name)


def optional_parts():
    """The optional parts of the build, as `pleat --version` lists them."""
    text = subprocess.check_output([str(BUILD / "pleat"), "--version"], text=True)
    return {name: said == "yes" for name, said in re.findall(r"^  (\w+) +(yes|no)", text,
                                                             re.MULTILINE)}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the installed files; the folder into which they were installed is gone."""
    if not shutil.which("meson") or build_option("b_sanitize") != "none":
        pytest.skip("installed libraries of sanitized builds need the sanitizer's own")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "--no-rebuild", "--quiet", "-C", str(BUILD), "--destdir",
                    str(folder / "destination")], check=True)
    prefix = pathlib.Path(build_option("prefix")).relative_to("/")
    shutil.copytree(folder / "destination" / prefix, folder / "copy", symlinks=True)
    shutil.rmtree(folder / "destination")
    return folder / "copy"


def environment(installed):
    """Variables with which tools find the copy and no other installation."""
    library = next(installed.rglob("libpleat.so")).parent
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8",
            "PKG_CONFIG_PATH": str(library / "pkgconfig"), "LD_LIBRARY_PATH": str(library),
            "CMAKE_PREFIX_PATH": str(installed)}


def flags(installed, *arguments):
    return subprocess.check_output(["pkg-config", *arguments], text=True,
                                   env=environment(installed)).split()


def output(installed, *command):
    return subprocess.check_output([str(part) for part in command], text=True,
                                   env=environment(installed))


def example(installed, name):
    return installed / "share" / "doc" / "pleat" / "examples" / name


def needed(path):
    """The shared libraries that a file names as needed."""
    lines = subprocess.check_output(["readelf", "-d", str(path)], text=True).splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


def test_pkg_config_builds_a_program_with_the_shared_library(installed, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    assert output(installed, "pkg-config", "--modversion", "pleat").strip() == VERSION
    subprocess.run(["cc", *STRICT, str(tmp_path / "program.c"), "-o", str(tmp_path / "program"),
                    *flags(installed, "--cflags", "--libs", "pleat")], check=True)
    assert json.loads(output(installed, tmp_path / "program"))["answer"] == 1153
    assert needed(tmp_path / "program").count("libpleat.so.0") == 1


def test_pkg_config_builds_a_program_with_the_static_library(installed, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    libraries = next(installed.rglob("libpleat.a"))
    private = [flag for flag in flags(installed, "--static", "--libs", "pleat")
               if flag != "-lpleat"]
    subprocess.run(["cc", *STRICT, str(tmp_path / "program.c"), "-o", str(tmp_path / "program"),
                    *flags(installed, "--cflags", "pleat"), str(libraries), *private], check=True)
    assert json.loads(output(installed, tmp_path / "program"))["answer"] == 1153
    assert "libpleat.so.0" not in needed(tmp_path / "program")


def test_pkg_config_builds_a_program_with_the_solver(installed, tmp_path):
    source = example(installed, "solver/registers.c")
    subprocess.run(["cc", *STRICT, str(source), "-o", str(tmp_path / "program"),
                    *flags(installed, "--cflags", "--libs", "pleat_solve")], check=True)
    assert output(installed, tmp_path / "program").endswith("cost 4, proved least\n")


def test_layout_example(installed, tmp_path):
    source = example(installed, "layouts/transform.c")
    subprocess.run(["cc", *STRICT, str(source), "-o", str(tmp_path / "program"),
                    *flags(installed, "--cflags", "--libs", "pleat")], check=True)
    assert output(installed, tmp_path / "program").splitlines() == [
        "from NCHW  p0, p1, p2, p3 -> 0, p1//16, p2, p3, p1%16", "padding    98 elements",
        "loop       2 of axis c, stride 784", "loop       7 of axis h, stride 112",
        "loop       7 of axis w, stride 16", "loop       16 of axis c, stride 1",
        "guard      l0*16 + l3 < 30"]


def saved_and_run(installed, folder, tmp_path):
    """Saves the digits model with one program, and classifies images in four threads of another."""
    digits = example(installed, "digits")
    if not optional_parts()["onnx"] or not optional_parts()["llvm"]:
        pytest.skip("this build makes no models to save")
    output(installed, folder / "save", digits / "digits.onnx", tmp_path / "digits.pleat")
    return output(installed, folder / "threads", tmp_path / "digits.pleat", digits / "images.npy")


def right_digits(text):
    """The share of images that were classified as their labels say."""
    labels = (ROOT / "examples" / "digits" / "labels.npy").read_bytes()[128:]
    expected = [int.from_bytes(labels[i:i + 8], "little") for i in range(0, len(labels), 8)]
    found = [int(line) for line in text.split()]
    assert len(found) == len(expected)
    return sum(a == b for a, b in zip(found, expected)) / len(expected)


@pytest.mark.parametrize("library", ["shared", "static"])
def test_a_saved_model_runs_in_four_threads(installed, tmp_path, library):
    for name in ("save", "threads"):
        libraries = flags(installed, "--libs", "pleat")
        if library == "static":
            libraries = [str(next(installed.rglob("libpleat.a")))] + [
                flag for flag in flags(installed, "--static", "--libs", "pleat")
                if flag != "-lpleat"]
        subprocess.run(["cc", "-pthread", *STRICT, str(example(installed, f"embed/{name}.c")), "-o",
                        str(tmp_path / name), *flags(installed, "--cflags", "pleat"), *libraries],
                       check=True)
    assert right_digits(saved_and_run(installed, tmp_path, tmp_path)) > 0.95


def test_a_damaged_saved_model_is_refused(installed, tmp_path):
    subprocess.run(["cc", "-pthread", *STRICT, str(example(installed, "embed/threads.c")), "-o",
                    str(tmp_path / "threads"),
                    *flags(installed, "--cflags", "--libs", "pleat")], check=True)
    (tmp_path / "damaged").write_bytes(b"damaged" * 100)
    for name in ("damaged", "missing"):
        found = subprocess.run(
            [str(tmp_path / "threads"), str(tmp_path / name),
             str(example(installed, "digits/images.npy"))], capture_output=True, text=True,
            env=environment(installed))
        assert found.returncode == 1 and name in found.stderr and found.stdout == ""


def test_cmake_builds_the_examples(installed, tmp_path):
    shutil.copytree(example(installed, "embed"), tmp_path / "embed")
    for step in (["-S", str(tmp_path / "embed"), "-B", str(tmp_path / "build")],
                 ["--build", str(tmp_path / "build")]):
        subprocess.run(["cmake", *step], check=True, env=environment(installed),
                       stdout=subprocess.DEVNULL)
    assert right_digits(saved_and_run(installed, tmp_path / "build", tmp_path)) > 0.95


def configure(installed, tmp_path, version):
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(
        version=version, solver=example(installed, "solver/registers.c")))
    return subprocess.run(["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build")],
                          capture_output=True, text=True, env=environment(installed))


def test_cmake_builds_programs_with_each_target(installed, tmp_path):
    found = configure(installed, tmp_path, VERSION)
    assert found.returncode == 0, found.stderr
    subprocess.run(["cmake", "--build", str(tmp_path / "build")], check=True,
                   env=environment(installed), stdout=subprocess.DEVNULL)
    for name in ("pleat", "pleat_static"):
        program = tmp_path / "build" / f"with_{name}"
        assert json.loads(output(installed, program))["answer"] == 1153
        assert ("libpleat.so.0" in needed(program)) == (name == "pleat")
    assert "proved least" in output(installed, tmp_path / "build" / "with_solve")


@pytest.mark.parametrize("version", ["0.0", "1", "0.99"])
def test_cmake_refuses_other_versions(installed, tmp_path, version):
    found = configure(installed, tmp_path, version)
    assert found.returncode != 0 and f"version: {VERSION}" in found.stderr


@pytest.mark.parametrize("library", ["libpleat.a", "libpleat_solve.a"])
def test_static_libraries_show_only_functions_of_the_headers(installed, library):
    found = subprocess.check_output(["nm", "-g", "--defined-only", str(next(
        installed.rglob(library)))], text=True)
    names = [line.split()[2] for line in found.splitlines() if len(line.split()) == 3]
    headers = "".join(path.read_text() for path in installed.rglob("*.h"))
    assert names and all(name.startswith("pleat_") for name in names)
    assert [name for name in names if not re.search(rf"\b{name}\(", headers)] == []


def test_static_and_shared_libraries_have_the_same_functions(installed):
    def names(*command):
        lines = subprocess.check_output(["nm", *map(str, command)], text=True).splitlines()
        return {line.split()[2] for line in lines if len(line.split()) == 3}
    shared = names("-D", "--defined-only", next(installed.rglob("libpleat.so")))
    assert shared == names("-g", "--defined-only", next(installed.rglob("libpleat.a")))


def test_python_takes_the_library_of_the_system(installed, tmp_path):
    """The Python package without a library opens the installed one by its name."""
    pytest.importorskip("cffi")
    package = tmp_path / "pleat"
    shutil.copytree(ROOT / "python" / "pleat", package,
                    ignore=shutil.ignore_patterns("*.so*", "__pycache__"))
    subprocess.run([sys.executable, str(package / "_declarations.py"),
                    str(installed / "include" / "pleat"), str(package / "_interface.py")], check=True)
    text = ("from pleat import layout; print(layout.Layout('NC4c', (2, 6)).physical_shape, "
            "open('/proc/self/maps').read().count('/copy/lib'))")
    found = subprocess.check_output([sys.executable, "-c", text], text=True, cwd=tmp_path,
                                    env={**environment(installed), "PYTHONPATH": str(tmp_path)})
    assert found.startswith("(2, 2, 4)") and not found.endswith(" 0\n")


def test_links_of_the_installed_documents(installed):
    folder = installed / "share" / "doc" / "pleat"
    assert (folder / "LICENSE").exists()
    documents = sorted((folder / "docs").glob("*.md"))
    assert len(documents) > 5
    for document in documents:
        for link in re.findall(r"\]\(([\w./-]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_installed_command_runs_from_the_copy(installed, tmp_path):
    answer = subprocess.check_output(
        [str(installed / "bin" / "pleat"), "layout", "NCHW16c", "--shape", "1x30x7x7", "--at",
         "0,17,3,2"], text=True, cwd=tmp_path, env=environment(installed))
    assert "1153" in answer
    for path in [installed / "bin" / "pleat", next(installed.rglob("libpleat.so"))]:
        dynamic = subprocess.check_output(["readelf", "-d", str(path)], text=True)
        assert "RPATH" not in dynamic and "RUNPATH" not in dynamic


def test_headers_compile_alone_as_c_and_cplusplus(installed, tmp_path):
    headers = sorted((installed / "include" / "pleat").iterdir())
    assert [path.name for path in headers] == ["layout.h", "pleat.h", "solve.h", "tir.h"]
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
    for header in headers:
        source = tmp_path / "user.c"
        source.write_text(f"#include <pleat/{header.name}>\n#include <pleat/{header.name}>\n"
                          "int used;\n")
        for language in (["-xc", "-std=c11", "-Wstrict-prototypes"], ["-xc++", "-std=c++17"]):
            subprocess.run(["cc", *language, *warnings, "-fsyntax-only", str(source),
                            f"-I{installed / 'include'}"], check=True)


# ---- Manual pages and completions -------------------------------------------------------------

def subcommands():
    text = subprocess.check_output([str(BUILD / "pleat"), "--help"], text=True)
    return re.findall(r"^  ([a-z]+) ", text, re.MULTILINE)


def options(subcommand):
    text = subprocess.check_output([str(BUILD / "pleat"), subcommand, "--help"], text=True)
    return re.findall(r"^  (?:-., |    )--([a-z-]+)", text, re.MULTILINE)


def test_each_subcommand_has_a_manual_page_with_its_options(installed):
    pages = {path.name: path for path in (installed / "share" / "man" / "man1").iterdir()}
    assert set(pages) == {"pleat.1", *(f"pleat-{name}.1" for name in subcommands())}
    for name in subcommands():
        text = subprocess.check_output(["mandoc", "-T", "utf8", str(pages[f"pleat-{name}.1"])],
                                       text=True)
        text = re.sub(".\b", "", text)
        shown = re.findall(r"^ {5,7}(?:-., )?--([a-z-]+)",
                           text.partition("EXAMPLES")[0], re.MULTILINE)
        assert shown == options(name)
        assert f"$ pleat {name}" in text
    check = pages["pleat-check.1"].read_text()
    assert "SH THE PROGRAM pleat\\-check" in check and "usage: pleat\\-check" in check
    main = re.sub(".\b", "", subprocess.check_output(
        ["mandoc", "-T", "utf8", str(pages["pleat.1"])], text=True))
    assert all(f"pleat-{name}(1)" in main for name in subcommands())


def test_manual_pages_have_no_faults(installed):
    pages = sorted((installed / "share" / "man" / "man1").iterdir())
    found = subprocess.run(["mandoc", "-T", "lint", *map(str, pages)], capture_output=True,
                           text=True)
    assert found.stdout == ""


def completed_by_bash(installed, words):
    """The words that the completion offers for the last word. Bash splits words at =, as here."""
    script = ('source "$1"; compopt() { :; }; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_pleat; printf "%s\\n" "${COMPREPLY[@]}"')
    file = installed / "share" / "bash-completion" / "completions" / "pleat"
    found = subprocess.check_output(["bash", "-c", script, "bash", str(file), *words], text=True)
    return found.split("\n")[:-1]


def test_bash_completes_subcommands_and_options(installed):
    assert completed_by_bash(installed, ["pleat", ""]) == [*subcommands(), "--help", "--version"]
    for name in subcommands():
        assert completed_by_bash(installed, ["pleat", name, "-"]) == [
            f"--{option}" for option in options(name)]
    assert completed_by_bash(installed, ["pleat", "nothing", ""]) == [""]


@pytest.mark.parametrize("words, expected", [
    (["run", "--cpu", "a"], ["avx512vnni", "avx512", "avx2"]),
    (["run", "--cpu", "=", "a"], ["avx512vnni", "avx512", "avx2"]),
    (["run", "--policy", "="], ["optimal", "forward", "backward", "none"]),
    (["opt", "--pass", "conv"], ["convert_blocks"]), (["layout", "--show", "sv"], ["svg"]),
    (["run", "a "], ["a model.onnx"]), (["run", "--input", "x", "=", "x"], ["x.npy"]),
    (["run", "--input", "="], [""]), (["run", "--seed", ""], [""]),
    (["run", "-o", "x"], ["x.npy"]), (["verify", "--reduce", ""], ["folder"]),
    (["run", "--keep-layout", "x"], ["x.npy"]), (["run", "--keep-layout", "=", "x"], [""]),
    (["layout", "x"], [""])])
def test_bash_completes_values(installed, tmp_path, monkeypatch, words, expected):
    (tmp_path / "a model.onnx").touch()
    (tmp_path / "x.npy").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert completed_by_bash(installed, ["pleat", *words]) == expected


class Zsh:
    """A zsh on a terminal of its own, with the completion of the installed command."""

    def __init__(self, installed, folder):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "LC_ALL": "C"})
        functions = installed / "share" / "zsh" / "site-functions"
        os.write(self.terminal, f"fpath=({functions} $fpath); autoload -U compinit; "
                                f"compinit -u -D; PS1='re''ady '\n".encode())
        self.read_until("ready ")

    def read_until(self, text):
        """The output of the shell up to `text`, within a time that a busy machine needs."""
        seen, end = "", time.monotonic() + 60
        while text not in seen and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.2)[0]:
                seen += os.read(self.terminal, 65536).decode()
        assert text in seen, seen
        return seen

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@pytest.mark.parametrize("typed, shown", [
    ("pleat insp\t", "ect "), ("pleat run --prof\t", "--profile "),
    ("pleat run --cpu avx512v\t", "avx512vnni "), ("pleat run --policy=back\t", "backward "),
    ("pleat run a\t", "a\\ model.onnx "), ("pleat verify --input x=x\t", "x=x.npy "),
    ("pleat opt -p conv\t", "convert_blocks "), ("pleat layout --show sv\t", "svg "),
    ("pleat compile --target \t\t", "c       cuda    llvm    opencl")])
def test_zsh_completes(installed, tmp_path, typed, shown):
    (tmp_path / "a model.onnx").touch()
    (tmp_path / "x.npy").touch()
    shell = Zsh(installed, tmp_path)
    os.write(shell.terminal, typed.encode())
    try:
        shell.read_until(shown)
    finally:
        shell.close()
