# SPDX-License-Identifier: Apache-2.0
"""BindParams, which makes constants of parameters."""
import pytest

np = pytest.importorskip("numpy")
pleat = pytest.importorskip("pleat")
from pleat.relax.transform import BindParams  # noqa: E402
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), w0: R.Tensor((3, 4), "float32"), w1: R.Tensor((3, 4), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.matmul(x, w0)
            b = R.nn.relu(a)
            w = R.add(w1, w1)
            c = R.matmul(x, w)
            d = R.nn.gelu(R.add(R.const(0.5, "float32"), c))
            e = R.nn.relu(R.matmul(R.concat((b, d), axis=0), R.permute_dims(w)))
            out = R.add(R.matmul(e, w), R.sum(a))
            R.output(out)
        return out


ARRAYS = [np.random.default_rng(i).uniform(-1, 1, shape).astype("float32")
          for i, shape in enumerate([(5, 3), (3, 4), (3, 4)])]
EXPECTED = pleat.compile(Net)(*ARRAYS)


def test_parameters_become_constants():
    module = BindParams("main", {"w1": ARRAYS[2]})(Net)
    assert [one.name for one in module["main"].params] == ["x", "w0"]
    np.testing.assert_allclose(pleat.compile(module)(*ARRAYS[:2]), EXPECTED, 1e-5, 1e-6)
    assert [one.name for one in Net["main"].bind_params({Net["main"].params[1]: ARRAYS[1]}).params] == ["x", "w1"]
    for params, message in (({"w2": ARRAYS[2]}, "no parameter 'w2'"), ({"w1": ARRAYS[0]}, "the shape"),
                            ({"w1": ARRAYS[2].astype("float64")}, "is float32"), ({"x": ARRAYS[0]}, "are numbers")):
        with pytest.raises(pleat.PleatError, match=message):
            BindParams("main", params)(Net)
