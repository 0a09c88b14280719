# SPDX-License-Identifier: Apache-2.0
"""Saved models and sessions of the Python package."""
import gc
import threading

import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


@pytest.fixture(name="model", scope="module")
def make_model():
    return pleat.compile(DIGITS, threads=1)


@pytest.fixture(name="image")
def make_image():
    return np.random.default_rng(7).random((1, 1, 8, 8), "float32")


def test_saved_models_give_the_same(model, image, tmp_path):
    path = tmp_path / "digits.pleat"
    model.save(path)
    expected = model(image)
    for source in path, str(path), path.read_bytes(), bytearray(path.read_bytes()):
        loaded = pleat.load(source, threads=1)
        assert loaded.inputs == model.inputs and loaded.outputs == model.outputs
        assert (loaded(image) == expected).all()
        assert loaded.messages == []
    assert repr(loaded) == repr(model)
    path.unlink()
    assert (loaded(image) == expected).all()


def test_refused_files(model, tmp_path):
    path = tmp_path / "digits.pleat"
    model.save(path)
    data = bytearray(path.read_bytes())
    with pytest.raises(pleat.PleatError, match="is truncated"):
        pleat.load(data[:-1])
    data[len(data) // 2] ^= 1
    with pytest.raises(pleat.PleatError, match="is damaged") as error:
        pleat.load(data)
    assert error.value.messages[0].code == "file"
    with pytest.raises(pleat.PleatError, match="is not a saved model"):
        pleat.load(DIGITS)
    with pytest.raises(pleat.PleatError, match="is not a saved model"):
        pleat.load(b"")
    with pytest.raises(pleat.PleatError, match="cannot open"):
        pleat.load(tmp_path / "absent.pleat")
    with pytest.raises(pleat.PleatError, match="cannot write"):
        model.save(tmp_path / "absent" / "digits.pleat")


def test_sessions_in_threads(model):
    images = np.random.default_rng(3).random((8, 1, 1, 8, 8), "float32")
    expected = [model(image) for image in images]
    sessions = [model.session(threads=1) for _ in images]
    failures = []

    def work(session, image, result):
        for _ in range(200):
            if not (session(image) == result).all():
                failures.append(image)

    threads = [threading.Thread(target=work, args=task)
               for task in zip(sessions, images, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_session_outlives_its_model(image, tmp_path):
    model = pleat.compile(DIGITS, threads=1)
    expected, session = model(image), model.session()
    model.save(tmp_path / "d.pleat")
    loaded = pleat.load(tmp_path / "d.pleat").session(threads=2)
    del model
    gc.collect()
    assert (session(image) == expected).all()
    assert (loaded.run({"image": image})[0] == expected).all()
    assert repr(session).startswith("Session(image")


def test_options_of_sessions(model):
    with pytest.raises(pleat.PleatError, match="threads: error: is -2"):
        model.session(threads=-2)
    for options, why in (({"threads": "2"}, "threads: expected an integer, not '2'"),
                         ({"most_variants": 1.5}, "most_variants: expected an integer, not 1.5"),
                         ({"cpu": 3}, "cpu: expected a text, not 3")):
        with pytest.raises(TypeError, match=why):
            pleat.compile(DIGITS, **options)
    with pytest.raises(TypeError, match="threads: expected an integer, not 'a'"):
        model.session(threads="a")
    with pytest.raises(OverflowError, match="threads: 4294967296 is too large"):
        model.session(threads=2**32)
