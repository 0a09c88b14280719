# SPDX-License-Identifier: Apache-2.0
"""The caller's function that runs loops, and the call-backs of loading, for compiled models, saved
models and sessions."""
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

DIGITS = str(ROOT / "examples" / "digits" / "digits.onnx")


@pytest.fixture(scope="module", autouse=True)
def small_regions():
    """Loops as small as those of the digits are given to threads, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLEAT_REGION_CYCLES", "0")
        yield


IMAGES = np.load(ROOT / "examples" / "digits" / "images.npy")[:5, np.newaxis].reshape(5, 1, 1, 8, 8)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "digits.pleat"
    pleat.compile(DIGITS, threads=1).save(path)
    return path


@pytest.fixture(scope="module")
def expected():
    model = pleat.compile(DIGITS, threads=1)
    return [model(image) for image in IMAGES]


class Counted:
    """Runs the iterations one by one, backwards, and counts the loops."""

    def __init__(self):
        self.loops, self.left_out, self.error = 0, 0, None

    def __call__(self, part, count):
        self.loops += 1
        if self.error:
            raise self.error
        for i in reversed(range(self.left_out, count)):
            part(i, i + 1)


MAKERS = {
    "compile": lambda saved, pool: pleat.compile(DIGITS, threads=4, parallel_for=pool),
    "load": lambda saved, pool: pleat.load(saved, threads=4, parallel_for=pool),
    "bytes": lambda saved, pool: pleat.load(saved.read_bytes(), threads=4, parallel_for=pool),
    "session": lambda saved, pool: pleat.load(saved).session(4, pool),
    "session of the model's": lambda saved, pool: pleat.load(saved, parallel_for=pool).session(4),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_function_runs_the_loops(saved, expected, make):
    pool = Counted()
    model = make(saved, pool)
    for image, probabilities in zip(IMAGES, expected):
        np.testing.assert_allclose(model(image), probabilities, atol=1e-6)
    assert pool.loops >= len(IMAGES)
    pool.error = KeyError("of the caller")
    with pytest.raises(KeyError, match="of the caller"):
        model(IMAGES[0])
    pool.error = None
    np.testing.assert_allclose(model(IMAGES[1]), expected[1], atol=1e-6)
    pool.left_out = 1
    with pytest.raises(pleat.PleatError, match="did not run each iteration of a loop once"):
        model(IMAGES[0])
    pool.left_out = 0
    np.testing.assert_allclose(model(IMAGES[2]), expected[2], atol=1e-6)


def test_threads_of_the_caller(saved, expected):
    """Sessions in four threads share a pool of three."""
    with ThreadPoolExecutor(3) as pool:
        used = set()

        def parallel_for(part, count):
            def run(i):
                used.add(threading.get_ident())
                part(i, i + 1)
            list(pool.map(run, range(count)))

        model = pleat.load(saved, threads=3, parallel_for=parallel_for)
        sessions = [model.session() for _ in range(4)]
        with ThreadPoolExecutor(4) as callers:
            found = list(callers.map(lambda s: [s(image) for image in IMAGES], sessions))
    assert threading.get_ident() not in used
    for results in found:
        for result, probabilities in zip(results, expected):
            np.testing.assert_allclose(result, probabilities, atol=1e-6)


@pytest.mark.parametrize("part", [(-1, 1), (0, 1 << 40), (1, 0)])
def test_wrong_parts_are_refused(saved, part):
    model = pleat.load(saved, threads=2, parallel_for=lambda body, count: body(*part))
    with pytest.raises(ValueError, match="of a loop of"):
        model(IMAGES[0])


def test_a_part_after_the_loop_is_refused(saved):
    kept = []
    model = pleat.load(saved, threads=2, parallel_for=lambda body, count: kept.append(body))
    with pytest.raises(pleat.PleatError):
        model(IMAGES[0])
    with pytest.raises(ValueError, match="which has ended"):
        kept[0](0, 1)


def test_free_sizes_with_a_pool():
    onnx = pytest.importorskip("onnx")
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 300])
            for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "g", info[:1], info[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    pool = Counted()
    compiled = pleat.compile(model, threads=4, parallel_for=pool)
    for rows in (1, 501, 2):
        x = np.full((rows, 300), 0.5, "float32")
        np.testing.assert_allclose(compiled(x), np.exp(x), rtol=1e-5)
    assert pool.loops


def test_loading_reports(saved, tmp_path):
    parts, logged = [], []
    pleat.load(saved, log=logged.append, progress=lambda *part: parts.append(part))
    assert parts == [("reading", 0, 1), ("reading", 1, 1)] and not logged
    for stop in (("reading", 0, 1), ("reading", 1, 1)):
        with pytest.raises(pleat.PleatCancelled):
            pleat.load(saved, progress=lambda *part: part != stop)
    with pytest.raises(ZeroDivisionError):
        pleat.load(saved.read_bytes(), progress=lambda *part: 1 // 0)
    (tmp_path / "damaged.pleat").write_bytes(saved.read_bytes()[:5000])
    with pytest.raises(pleat.PleatError):
        pleat.load(tmp_path / "damaged.pleat", log=logged.append)
    assert [message.severity for message in logged] == ["error"]
