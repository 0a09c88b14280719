# SPDX-License-Identifier: Apache-2.0
"""Links code that Module.export_library wrote, with the C compiler of this machine."""
import os
import shutil
import subprocess

from pleat._library import PleatError


def get_cc():
    """The path of the C compiler: that of the variable CC, or the first of cc, gcc and clang. None
    where there is none."""
    names = filter(None, (os.environ.get("CC"), "cc", "gcc", "clang"))
    return next(filter(None, map(shutil.which, names)), None)


def create_shared(output, objects, options=None, cc=None):
    """Links object files, or C files, to a shared library. load_module loads it where one of the files, and
    no other, was exported from a module.

    options: further words for the compiler; cc: its path"""
    from pleat import runtime
    cc = cc or get_cc()
    if cc is None:
        raise PleatError("there is no C compiler: install one, or say in the variable CC where it is")
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    words = [cc, "-shared", "-fPIC", "-o", output, *objects, *(options or [])]
    found = subprocess.run(list(map(os.fspath, words)), capture_output=True, text=True, check=False)
    if found.returncode:
        raise PleatError(f"{cc} cannot link {os.fspath(output)}:\n{found.stderr}")
    runtime.copy_programs(objects, output)
