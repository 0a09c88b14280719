# SPDX-License-Identifier: Apache-2.0
"""Graph functions with free sizes."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


@I.ir_module
class Free:
    @T.prim_func
    def halves(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, 5), "float32")
        Y = T.match_buffer(y, (n, 5), "float32")
        for i, j in T.grid(n, 5):
            with T.block("halves"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(0.5)

    @R.function
    def main(x: R.Tensor(("n", 5), "float32"), w: R.Tensor((7, 5), "float32"),
             q: R.Tensor(("m * 2", "m"), "float32")):
        n = T.int64()
        cls = Free
        with R.dataflow():
            y = R.call_tir(cls.halves, (x,), out_sinfo=R.Tensor((n, 5), "float32"))
            z = R.matmul(y, R.permute_dims(w))
            s = R.sum(q)
            R.output(z, s)
        return z, s


@pytest.mark.parametrize("n", [3, 1, 0, 7])
def test_free_sizes_follow_from_the_arrays(n):
    model = pleat.compile(Free, cache=False)
    assert "x [?, 5] float32" in repr(model) and "z [?, 7]" in repr(model)
    for m in (2, 3):
        x, w, q = numbers(n, 5), numbers(7, 5), numbers(2 * m, m)
        z, s = model(x, w, q)
        assert np.allclose(z, x @ w.T / 2, atol=1e-5) and np.allclose(s, q.sum(), atol=1e-5)


def test_free_sizes_of_a_file(tmp_path):
    path = tmp_path / "free.py"
    path.write_text(Free.script())
    model = pleat.compile(path, func="main", cache=False)
    path.unlink()  # it stays mapped
    x, w, q = numbers(4, 5), numbers(7, 5), numbers(2, 1)
    for rows in (4, 2):
        assert np.allclose(model(x[:rows], w, q)[0], x[:rows] @ w.T / 2, atol=1e-5)
    with pytest.raises(pleat.PleatError, match="free"):
        model.save(tmp_path / "free.pleat")


def test_arrays_that_do_not_fit_the_sizes():
    model = pleat.compile(Free, cache=False)
    x, w, q = numbers(3, 5), numbers(7, 5), numbers(6, 3)
    with pytest.raises(pleat.PleatError, match="'q' has extent 6 and not 5"):
        model(x, w, q[:5])
    with pytest.raises((pleat.PleatError, ValueError), match=r"'w' has shape \[7, 3\]"):
        model(x, w[:, :3].copy(), q)
    with pytest.raises(pleat.PleatError, match="does not give a value for the size 'n'"):
        pleat.plan(Free)
    assert np.allclose(model(x, w, q)[0], x @ w.T / 2, atol=1e-5)
