# SPDX-License-Identifier: Apache-2.0
"""A long sum of products is computed in parts when the rows that it reads do not stay in the second
cache: the sums are in memory between the parts, and what is fused after them runs at the end."""
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from built import skip_sanitized  # noqa: E402
from command import pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

CPUS = ["avx512", *(pytest.param(cpu, marks=pytest.mark.slow) for cpu in ("avx2", "sse2"))]
# Rows that are whole tiles, prime and 1, columns that are no whole panels, several lengths of parts.
SIZES = [(128, 4096, 768), (137, 6144, 96), (197, 3072, 768), (256, 4608, 50), (1, 8192, 64),
         (331, 3072, 48)]


def product(path, rows, steps, columns, fused=True):
    """relu(x · w + bias) + residual, or x · w; returns its inputs and its result."""
    random = np.random.default_rng(rows + steps)
    x = random.standard_normal((rows, steps), np.float32)
    w = random.standard_normal((steps, columns), np.float32)
    bias, residual = (random.standard_normal(s, np.float32) for s in [columns, (rows, columns)])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s" if fused else "y"], name="product"),
             helper.make_node("Add", ["s", "bias"], ["t"]), helper.make_node("Relu", ["t"], ["u"]),
             helper.make_node("Add", ["u", "residual"], ["y"])]
    inputs = {"x": x, "residual": residual} if fused else {"x": x}
    save_model(path, nodes if fused else nodes[:1],
               [value_info(n, v.shape) for n, v in inputs.items()],
               [value_info("y", (rows, columns))],
               [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "bias")][:1 + fused])
    y = x.astype(np.float64) @ w
    return inputs, np.maximum(y + bias, 0) + residual if fused else y


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_results(sizes, fused, threads, cpu, tmp_path):
    path = tmp_path / "product.onnx"
    inputs, y = product(path, *sizes, fused)
    arguments = [path, "--cpu", cpu, "--threads", threads]
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    pleat("run", *arguments, "-o", tmp_path / "y.npz")
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], y, rtol=1e-4, atol=2e-3)


def cut_schedules(path, *options):
    """The schedules of the levels at which this machine gains by parts: the faster its third cache is
    beside its multiplications, the less."""
    levels = [pleat("plan", path, "--schedules", "--cpu", cpu, *options)
              for cpu in ("avx512", "avx2")]
    return [schedule for schedule in levels if "rfactor" in schedule]


def test_a_sum_is_cut_where_its_rows_do_not_stay(tmp_path):
    path = tmp_path / "product.onnx"
    product(path, 64, 20480, 480)  # the rows have 5 MB; so few are no product in blocks
    if not cut_schedules(path):
        pytest.skip("this machine gains at no level")
    product(path, 64, 256, 480)
    assert not cut_schedules(path)


def test_a_sum_whose_panels_alone_leave_the_first_cache_is_whole(tmp_path):
    """Panels come from the second cache while tiles are computed; the sums of parts take longer."""
    path = tmp_path / "product.onnx"
    product(path, 64, 768, 3072, fused=False)
    assert not cut_schedules(path, "--threads", 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_have_panels_of_their_own(threads, tmp_path):
    """The loop over threads is outside of the loop over parts, so that no thread waits between them."""
    path = tmp_path / "product.onnx"
    product(path, 64, 20480, 480, fused=False)
    schedules = cut_schedules(path, "--threads", threads)
    if not schedules:
        pytest.skip("this machine gains at no level")
    assert all(schedule.count("sch.parallel(") == threads - 1 for schedule in schedules)


def test_exact_sums_stay_in_order(tmp_path):
    path = tmp_path / "product.onnx"
    product(path, 64, 20480, 480)
    assert not cut_schedules(path, "--accuracy", "exact")


def row_product(path, steps, columns):
    """relu(x · w + bias) of one row, where w is computed elsewhere; its inputs and its result."""
    random = np.random.default_rng(steps)
    inputs = {name: random.standard_normal(shape, np.float32)
              for name, shape in (("x", (1, steps)), ("w", (steps, columns)), ("bias", (columns,)))}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Add", ["s", "bias"], ["t"]),
             helper.make_node("Relu", ["t"], ["y"])]
    save_model(path, nodes, [value_info(n, v.shape) for n, v in inputs.items()],
               [value_info("y", (1, columns))])
    return inputs, np.maximum(inputs["x"].astype(np.float64) @ inputs["w"] + inputs["bias"], 0)


def test_a_row_adds_few_rows_of_a_tensor_at_a_time(tmp_path):
    path = tmp_path / "row.onnx"
    row_product(path, 1920, 3072)
    assert "rfactor" in pleat("plan", path, "--schedules", "--cpu", "avx2", "--threads", 1)
    skip_sanitized()
    pleat_package = pytest.importorskip("pleat")
    # Columns that are no whole panels, lengths that are prime or leave a part of other sizes.
    for steps, columns in [(1920, 3072), (1200, 2051), (1009, 3001), (2000, 2999)]:
        inputs, y = row_product(path, steps, columns)
        for threads in (1, 2):
            result, = pleat_package.compile(path, threads=threads).run(inputs)
            np.testing.assert_allclose(result, y, rtol=1e-4, atol=2e-3)
