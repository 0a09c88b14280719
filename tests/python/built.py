# SPDX-License-Identifier: Apache-2.0
"""Where Pleat was built ($PLEAT, else build/pleat); makes `import pleat` find the package and library."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve().parent
os.environ.setdefault("PLEAT_LIBRARY", str(BUILD / "libpleat.so"))
sys.path.insert(0, str(ROOT / "python"))


def skip_sanitized():
    """Skips the module or test: a library with sanitizers needs a process with them."""
    if "asan" in BUILD.name:
        pytest.skip("a library with sanitizers needs a process with them", allow_module_level=True)
