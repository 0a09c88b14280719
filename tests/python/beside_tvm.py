# SPDX-License-Identifier: Apache-2.0
"""Programs that TVM and Pleat both read, for tests that compare the two."""
import importlib.util
import sys


def read_both(folder, name, text):
    """The TVMScript as a module of TVM's and as one of Pleat's; `name` is a part of their names."""
    modules = []
    for package in ("tvm", "pleat"):
        path = folder / f"{package}_{name}.py"
        path.write_text(f"from {package}.script import tirx as T\n{text}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        modules.append(importlib.util.module_from_spec(spec))
        sys.modules[path.stem] = modules[-1]
        spec.loader.exec_module(modules[-1])
    return modules
