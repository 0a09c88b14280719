# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: the Python package with libpleat.so, the shared libraries that it needs beyond
the C library, and what cffi finds in the public headers.

The library is built from the sources of this repository in a temporary folder. They are above this
folder, where pip builds in place (since pip 21.3), or in its folder `source`, which an sdist has.

PLEAT_LIBRARY  a libpleat.so to take instead; the libraries that it needs are then not copied
PLEAT_MESON    further options of `meson setup`, such as -Dllvm=disabled
CC, CFLAGS     as usual"""
import importlib.util
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# The files from which the library is built, for an sdist.
SOURCES = ("LICENSE", "include", "meson.build", "meson_options.txt", "scripts/hide_symbols.sh", "src")
# Parts of the C library, and of the compiler's run-time library, which every Linux system has.
C_LIBRARY = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d+|ld-linux.*|linux-vdso.*)")
TOOLS = {"meson": "meson", "ninja": "ninja-build", "readelf": "binutils", "ldd": "libc-bin"}


def sources():
    for folder in (HERE / "source", HERE.parent):
        if (folder / "meson.build").exists() and (folder / "src" / "api").is_dir():
            return folder
    raise SystemExit(
        f"pleat: the sources of the library are neither in {HERE / 'source'} nor in {HERE.parent}. "
        "Older versions of pip copy the folder python/ alone to another place: use pip 21.3 or "
        "later, or an sdist, which has the sources.")


def version():
    text = (sources() / "meson.build").read_text()
    return re.search(r"^  version: '([^']+)'", text, re.MULTILINE)[1]


def declarations():
    """The module pleat._declarations, without the rest of the package."""
    spec = importlib.util.spec_from_file_location("_declarations", HERE / "pleat" / "_declarations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled_library(folder):
    """Builds libpleat.so in `folder`; returns its path. Ends with a message if that fails."""
    missing = [f"{tool} ({package})" for tool, package in TOOLS.items() if not shutil.which(tool)]
    if missing:
        raise SystemExit(f"pleat: building the library needs {', '.join(missing)}; "
                         "scripts/install.sh installs all packages that a build needs (Debian)")
    options = ["-Dpython_package=true", "-Ddebug=false", "-Doptimization=2", "-Db_ndebug=true",
               "-Dverify=off", "-Dwerror=false", "-Donnx=enabled", "-Dllvm=enabled", "-Disl=enabled",
               "-Dnpz=disabled", "-Dtests=disabled"]
    library = f"libpleat.so.{version()}"
    steps = [["meson", "setup", str(folder), str(sources()), *options,
              *shlex.split(os.environ.get("PLEAT_MESON", ""))],
             ["ninja", "-C", str(folder), library]]
    for step in steps:
        found = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if found.returncode:
            print("\n".join(found.stdout.splitlines()[-30:]), file=sys.stderr)
            raise SystemExit(
                f"pleat: `{shlex.join(step[:2])}` failed; its last lines are above. If a package is "
                "missing: scripts/install.sh installs all that a build needs (Debian), and "
                "PLEAT_MESON='-Dllvm=disabled' builds without a part")
    return folder / library


def other_libraries(library):
    """The shared libraries that are needed beyond the C library: their names and files."""
    found = {}
    for line in subprocess.check_output(["ldd", str(library)], text=True).splitlines():
        name, _, rest = line.strip().partition(" => ")
        if C_LIBRARY.fullmatch(pathlib.Path(name.split()[0]).name):
            continue
        if not rest.startswith("/"):
            raise SystemExit(f"pleat: {name}, which the library needs, was not found")
        found[name] = pathlib.Path(rest.split(" (")[0])
    return found


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the package then takes the library of the checkout's build folder
        folder = pathlib.Path(self.build_lib) / "pleat"
        declarations().write_module(sources() / "include" / "pleat", folder / "_interface.py")
        given = os.environ.get("PLEAT_LIBRARY")
        if given and not pathlib.Path(given).exists():
            raise SystemExit(f"pleat: PLEAT_LIBRARY is {given}, which does not exist")
        if given:
            shutil.copyfile(given, folder / "libpleat.so")
            return
        with tempfile.TemporaryDirectory(prefix="pleat-") as temporary:
            library = compiled_library(pathlib.Path(temporary))
            for name, path in {"libpleat.so": library, **other_libraries(library)}.items():
                shutil.copyfile(path, folder / name)


class Wheel(bdist_wheel):
    """The wheel is for one kind of machine and for every Python 3: cffi loads the library."""

    def get_tag(self):
        system = super().get_tag()[2]
        if sys.platform == "linux" and not os.environ.get("PLEAT_LIBRARY"):
            system = f"manylinux_2_{self.c_library()}_{platform.machine()}"
        return "py3", "none", system

    def c_library(self):
        """The minor version of the oldest GNU C library 2 with which the libraries run."""
        folder = pathlib.Path(self.get_finalized_command("build_py").build_lib) / "pleat"
        text = "".join(subprocess.check_output(["readelf", "-V", str(path)], text=True)
                       for path in folder.glob("*.so*"))
        return max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", text))


class SourcesToo(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in SOURCES:
            source, target = sources() / name, pathlib.Path(base_dir) / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=BinaryDistribution,
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": Wheel, "sdist": SourcesToo})
