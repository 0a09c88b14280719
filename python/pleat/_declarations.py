# SPDX-License-Identifier: Apache-2.0
"""The declarations of pleat.h, layout.h and tir.h for cffi.

Reading the headers takes cffi about 60 ms, so the build writes what cffi finds in them as a module,
`_interface.py`: a wheel has it in the package, and a build folder in `python/`. A module that was
made from other headers is not used.

    python _declarations.py HEADER_FOLDER TARGET [PYTHON]

writes the module, by means of the interpreter PYTHON if this one has no cffi. If neither has it, no
module is written, and the package reads the headers when it is used.
"""
import os
import pathlib
import re
import sys

HEADERS = ("pleat.h", "layout.h", "tir.h")
NAME = "_interface"


def header_text(folder):
    """The text of the headers, or None where the folder does not have them."""
    paths = [pathlib.Path(folder) / name for name in HEADERS]
    if not all(path.exists() for path in paths):
        return None
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def cffi_interface(text):
    """The cffi.FFI that declares what the headers' text declares."""
    import cffi
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    ffi = cffi.FFI()
    ffi.cdef(re.sub(r"^#(?!define PLEAT_VERSION_NUMBER).*$", "", text, flags=re.MULTILINE))
    return ffi


def write_module(folder, target):
    """Writes the module for the headers of a folder. Processes may write the same file at once."""
    text, target = header_text(folder), pathlib.Path(target)
    ffi = cffi_interface(text)
    ffi.set_source(NAME, None)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}")
    ffi.emit_python_code(str(part))
    found = part.read_text(encoding="utf-8")
    part.write_text(f"# SPDX-License-Identifier: Apache-2.0\n{found}\nHEADERS = {text!r}\n",
                    encoding="utf-8")
    part.replace(target)


def main():
    try:
        import cffi  # noqa: F401
    except ImportError:
        pathlib.Path(sys.argv[2]).unlink(missing_ok=True)
        if len(sys.argv) > 3 and os.path.exists(sys.argv[3]):
            os.execv(sys.argv[3], [sys.argv[3], *sys.argv[:3]])
        return
    write_module(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
