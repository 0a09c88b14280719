# SPDX-License-Identifier: Apache-2.0
"""Takes the built library and the public headers into the package. The library is that of ../build,
or the one that PLEAT_LIBRARY names."""
import os
import pathlib
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = HERE.parent / "include" / "pleat"


def library():
    path = pathlib.Path(os.environ.get("PLEAT_LIBRARY") or HERE.parent / "build" / "libpleat.so")
    if not path.exists():
        raise SystemExit(f"{path} is missing: build Pleat first (make), or say where the library "
                         "is in PLEAT_LIBRARY")
    return path


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        folder = pathlib.Path(self.build_lib) / "pleat"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("pleat.h", "layout.h"):
            shutil.copyfile(HEADERS / name, folder / name)
        shutil.copyfile(library(), folder / "libpleat.so")


class BinaryDistribution(Distribution):
    """The wheel is for one kind of machine: it holds a library."""

    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithLibrary}, distclass=BinaryDistribution)
