# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/ are run, and give the outputs that they show.

python tests/python/test_notebooks.py rewrites the outputs."""
import ast
import contextlib
import io
import json

import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
NOTEBOOKS = sorted(ROOT.glob("examples/*/*.ipynb"))


def shown(value):
    """The output of a cell's last value, as Jupyter keeps it; None where there is none."""
    if value is None:
        return None
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_svg_"):
        data["image/svg+xml"] = value._repr_svg_().splitlines(keepends=True)
    return {"output_type": "execute_result", "metadata": {}, "data": data}


def outputs_of(source, names, number):
    """Runs a cell among names; its outputs."""
    tree, last, printed = ast.parse(source), None, io.StringIO()
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = eval(compile(last, f"cell {number}", "eval"), names) if last else None
    outputs, text = [], printed.getvalue()
    if text:
        outputs.append({"output_type": "stream", "name": "stdout",
                        "text": text.splitlines(keepends=True)})
    result = shown(value)
    return outputs + ([{**result, "execution_count": number}] if result else [])


def run(notebook):
    """The code cells of a notebook with the outputs that they give."""
    names, cells = {}, []
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        try:
            made = outputs_of("".join(cell["source"]), names, number)
        except pleat.PleatError as error:  # a cell for a device keeps its outputs where there is none
            if "opencl" not in cell["metadata"].get("tags", []) or "no OpenCL device" not in str(error):
                raise
            made = cell["outputs"]
        cells.append({**cell, "execution_count": number, "outputs": made})
    return cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path):
    notebook = json.loads(path.read_text())
    kept = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert kept
    for cell, again in zip(kept, run(notebook)):
        assert cell["outputs"] == again["outputs"], "".join(cell["source"])


def main():
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        code = iter(run(notebook))
        notebook["cells"] = [next(code) if cell["cell_type"] == "code" else cell
                             for cell in notebook["cells"]]
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
