# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code: what a second start takes from it gives the same results bit for bit,
and whatever happens to its folder, a model compiles."""
import json
import os
import pathlib
import subprocess

import pytest

import built

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def pleat(cache, *arguments, status=0, **more):
    """The command's output and messages with this cache."""
    environment = {**os.environ, "TERM": "dumb", "PLEAT_CACHE": str(cache), **more}
    done = subprocess.run([PLEAT, *map(str, arguments)], capture_output=True, text=True,
                          check=False, env=environment)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


def result(cache, out, *arguments, **more):
    """The bytes of the result of a run, and the messages of the command."""
    _, messages = pleat(cache, "run", DIGITS, "--fill", "random", "-o", out, *arguments, **more)
    return out.read_bytes(), messages


def entries(cache, kind="*"):
    return sorted(cache.glob(f"*.{kind}")) if cache.is_dir() else []


def times(cache):
    return {path: path.stat().st_ino for path in entries(cache)}


@pytest.fixture
def expected(tmp_path):
    return result("off", tmp_path / "expected.npz")[0]


def test_second_start(tmp_path, expected):
    cache = tmp_path / "cache"
    for i in range(3):
        assert result(cache, tmp_path / "out.npz") == (expected, "")
        before = before if i else times(cache)
        assert before and times(cache) == before  # nothing is written again


def test_cache_is_off(tmp_path, expected):
    cache = tmp_path / "cache"
    assert result(cache, tmp_path / "out.npz", "--no-cache") == (expected, "")
    assert result(cache, tmp_path / "out.npz", PLEAT_CACHE_SIZE="0") == (expected, "")
    assert not cache.exists()


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "changed":
        data[len(data) // 2] ^= 1
    elif how == "truncated":
        del data[len(data) // 3:]
    elif how == "empty":
        data.clear()
    elif how == "another version":
        data[24] += 1
    else:
        data[:] = os.urandom(len(data))
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["changed", "truncated", "empty", "another version", "foreign"])
def test_damaged_entries_are_made_again(tmp_path, expected, how):
    cache = tmp_path / "cache"
    result(cache, tmp_path / "out.npz")
    sound = {path: path.read_bytes() for path in entries(cache)}
    for path in sound:
        damage(path, how)
    assert result(cache, tmp_path / "out.npz") == (expected, "")
    assert {path: path.read_bytes() for path in entries(cache)} == sound


def run_json(cache, model, *arguments, **more):
    """The object that `run --json` prints, and the results in its output file."""
    out = cache.parent / "result.npz"
    text, _ = pleat(cache, "run", model, "-o", out, "--json", *arguments, **more)
    return json.loads(text), dict(np.load(out))


def is_cached(cache, model, *arguments):
    return run_json(cache, model, "--fill", "random", *arguments)[0]["cached"]


def lines(text):
    """The lines without those that hold times."""
    return [line for line in text.splitlines() if not line.startswith(("code", "latency"))]


def test_what_the_cache_holds(tmp_path):
    cache = tmp_path / "cache"
    result(cache, tmp_path / "out.npz")
    models, kernels = (len(entries(cache, kind)) for kind in ("model", "kernel"))
    said = json.loads(pleat(cache, "cache", "--list", "--json")[0])
    assert (said["models"]["count"], said["kernels"]["count"]) == (models, kernels) == (1, kernels)
    assert said["folder"] == str(cache) and said["bytes"] == sum(e["bytes"] for e in said["entries"])
    assert {e["file"] for e in said["entries"]} == {path.name for path in entries(cache)}
    assert "digits.onnx" in {e["name"] for e in said["entries"]}
    assert f"{models + kernels} entries removed" in pleat(cache, "cache", "--clear")[0]
    assert not entries(cache)


def test_second_start_prints_the_same(tmp_path):
    cache = tmp_path / "cache"
    first, second = (pleat(cache, "run", DIGITS, "--fill", "random")[0] for _ in range(2))
    assert lines(first) == lines(second)
    assert "from the cache" not in first and ", from the cache   " in second
    ours, theirs = (json.loads(pleat(cache, "bench", DIGITS, "--repeat", 3, "--json", *more)[0])
                    for more in ([], ["--no-cache"]))
    for field in ("operations", "bytes", "memory", "cpu", "threads"):
        assert ours[field] == theirs[field]
    assert "kernels" in json.loads(pleat(cache, "run", DIGITS, "--fill", "random", "--profile",
                                         "--json")[0])


@pytest.mark.slow  # the command runs once for each section
def test_every_section_of_a_kept_model_is_checked(tmp_path, expected):
    cache = tmp_path / "cache"
    result(cache, tmp_path / "out.npz")
    path, = entries(cache, "model")
    sound = path.read_bytes()
    for at in range(3, len(sound), len(sound) // 20):
        data = bytearray(sound)
        data[at] ^= 16
        path.write_bytes(data)
        assert result(cache, tmp_path / "out.npz") == (expected, "")
    for size in range(0, len(sound), len(sound) // 5):
        path.write_bytes(sound[:size])
        assert result(cache, tmp_path / "out.npz") == (expected, "")
    assert path.read_bytes() == sound


def linear(path, weights, data=None):
    """A model that multiplies `x` by the weights, which are in the file `data` beside it if given."""
    tensor = numpy_helper.from_array(weights, "w")
    if data:
        (path.parent / data).write_bytes(weights.tobytes())
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=data)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
              for name, shape in (("x", (3, len(weights))), ("y", (3, weights.shape[1])))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1],
                              values[1:], [tensor])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    settle(path.parent)


def settle(folder):
    """Makes the files older than any compilation, which keeps no model of files that just changed."""
    for file in folder.iterdir():
        os.utime(file, (1e9, 1e9))


def test_external_data_belong_to_the_key(tmp_path):
    """Neither other data beside the model nor those of another folder are taken for the kept ones."""
    cache, x = tmp_path / "cache", tmp_path / "x.npy"
    first, second = tmp_path / "first", tmp_path / "second"
    weights = np.arange(35, dtype="float32").reshape(5, 7)
    np.save(x, np.ones((3, 5), "float32"))
    for folder in (first, second):
        folder.mkdir()
        linear(folder / "m.onnx", weights, "w.bin")
    for folder, data, cached in ((first, weights, False), (first, weights, True),
                                 (second, weights, True), (second, weights + 1, False),
                                 (first, weights, False), (first, weights, True)):
        (folder / "w.bin").write_bytes(data.tobytes())
        settle(folder)
        said, results = run_json(cache, folder / "m.onnx", "-i", f"x={x}")
        assert said["cached"] == cached
        assert np.array_equal(results["y"], np.ones((3, 5), "float32") @ data)
    (first / "w.bin").unlink()
    assert "w.bin" in pleat(cache, "run", first / "m.onnx", "--fill", "zero", status=1)[1]


def test_changed_model_and_options(tmp_path):
    cache = tmp_path / "cache"
    (tmp_path / "m").mkdir()
    model = tmp_path / "m" / "m.onnx"
    linear(model, np.ones((5, 7), "float32"))
    for arguments in ([], ["--threads", 1], ["--input-layout", "x=n, c -> c, n"],
                      ["--policy", "forward"], ["--cpu", "baseline"], ["--keep-layout=y"]):
        assert [is_cached(cache, model, *arguments) for _ in range(2)] == [False, True]
    linear(model, np.full((5, 7), 2, "float32"))
    assert [is_cached(cache, model) for _ in range(2)] == [False, True]
    os.utime(model)  # it may still be written: the program is not kept
    linear(model, np.full((5, 7), 3, "float32"))
    os.utime(model, (4e9, 4e9))
    assert [is_cached(cache, model) for _ in range(2)] == [False, False]


def test_values_that_were_used(tmp_path):
    """A program that was compiled for the value of an input is not used for another value."""
    cache, model = tmp_path / "cache", tmp_path / "m" / "m.onnx"
    model.parent.mkdir()
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 6)),
              helper.make_tensor_value_info("shape", TensorProto.INT64, (2,)),
              helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g",
                              values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              model)
    settle(model.parent)
    for shape, fill, cached in (((3, 4), 1, False), ((3, 4), 2, True), ((4, 3), 2, False),
                                ((4, 3), 3, True)):
        np.save(tmp_path / "x.npy", np.full((2, 6), fill, "float32"))
        np.save(tmp_path / "shape.npy", np.array(shape))
        said, results = run_json(cache, model, "-i", f"x={tmp_path / 'x.npy'}", "-i",
                                 f"shape={tmp_path / 'shape.npy'}")
        assert said["cached"] == cached and np.array_equal(results["y"],
                                                           np.full(shape, fill, "float32"))


def test_bad_arguments_of_a_kept_model(tmp_path):
    """An argument that is refused without the cache is refused with it, by the same message."""
    cache = tmp_path / "cache"
    result(cache, tmp_path / "out.npz")
    np.save(tmp_path / "x.npy", np.ones((1, 1, 8, 9), "float32"))
    for arguments in ([], ["-i", "other=x.npy"], ["-i", f"image={tmp_path / 'x.npy'}"],
                      ["-i", f"image={tmp_path / 'absent.npy'}"], ["--fill", "zero", "--dim", "q=3"]):
        with_cache, without = (pleat(place, "run", DIGITS, *arguments, status=1)[1]
                               for place in (cache, "off"))
        assert with_cache == without


def test_options_have_entries_of_their_own(tmp_path):
    """Code for another processor level or another layout is not taken from the cache."""
    cache = tmp_path / "cache"
    counts = [len(entries(cache))]
    for arguments in [[], ["--cpu", "baseline"], ["--policy", "none"]]:
        result(cache, tmp_path / "out.npz", *arguments)
        counts.append(len(entries(cache)))
        assert counts[-1] > counts[-2]


def test_folder_that_cannot_be_used(tmp_path, expected):
    """One warning when the user named the folder; none for the folder of the system."""
    for folder in ("/proc/no/such", "/dev/null"):
        same, messages = result(folder, tmp_path / "out.npz")
        assert same == expected
        assert messages.count("warning:") == 1 and f"'{folder}' of PLEAT_CACHE" in messages
    assert result("", tmp_path / "out.npz", XDG_CACHE_HOME="/proc/no") == (expected, "")
    assert result("", tmp_path / "out.npz", XDG_CACHE_HOME="x", HOME="/proc/no") == (expected, "")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    same, messages = result(shared, tmp_path / "out.npz")
    assert same == expected and "other users may write to it" in messages
    assert not entries(shared)


def test_default_folder(tmp_path, expected):
    assert result("", tmp_path / "out.npz", XDG_CACHE_HOME=str(tmp_path / "a")) == (expected, "")
    assert entries(tmp_path / "a" / "pleat")
    assert (tmp_path / "a" / "pleat").stat().st_mode & 0o777 == 0o700


def test_size_is_bounded(tmp_path, expected):
    cache = tmp_path / "cache"
    assert result(cache, tmp_path / "out.npz", PLEAT_CACHE_SIZE="40K") == (expected, "")
    assert 0 < sum(-(-path.stat().st_size // 4096) * 4096 for path in entries(cache)) <= 40 << 10
    messages = result(cache, tmp_path / "out.npz", PLEAT_CACHE_SIZE="a lot")[1]
    assert "PLEAT_CACHE_SIZE is 'a lot'" in messages


def test_processes_at_once(tmp_path, expected):
    cache = tmp_path / "cache"
    environment = dict(os.environ, PLEAT_CACHE=str(cache))
    for _ in range(2):
        outputs = [tmp_path / f"{i}.npz" for i in range(6)]
        started = [subprocess.Popen([PLEAT, "run", DIGITS, "--fill", "random", "-o", out],
                                    env=environment, stdout=subprocess.DEVNULL)
                   for out in outputs]
        assert [process.wait() for process in started] == [0] * len(started)
        assert all(out.read_bytes() == expected for out in outputs)
    assert sorted(cache.iterdir()) == entries(cache)  # no temporary file is left


def test_folder_disappears(tmp_path, expected):
    """The folder is removed again and again while models compile."""
    cache = tmp_path / "cache"
    environment = dict(os.environ, PLEAT_CACHE=str(cache))
    for _ in range(3):
        process = subprocess.Popen([PLEAT, "run", DIGITS, "--fill", "random", "-o",
                                    tmp_path / "out.npz"], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None:
            subprocess.run(["rm", "-rf", cache], check=False)
        assert process.returncode == 0, process.stderr.read()
        assert (tmp_path / "out.npz").read_bytes() == expected


def test_library(tmp_path, monkeypatch):
    """The library's models from the cache give the same bits, and `cache=False` keeps nothing."""
    built.skip_sanitized()
    import pleat as library

    cache = tmp_path / "cache"
    image = np.linspace(0, 1, 64, dtype="float32").reshape(1, 1, 8, 8)
    expected = library.compile(DIGITS)(image)
    monkeypatch.setenv("PLEAT_CACHE", str(cache))
    assert library.compile(DIGITS, cache=False)(image).tobytes() == expected.tobytes()
    assert not cache.exists()
    for i in range(3):
        assert library.compile(DIGITS)(image).tobytes() == expected.tobytes()
        before = before if i else times(cache)
        assert before and times(cache) == before
    assert len(entries(cache, "model")) == 1
    for kernel in entries(cache, "kernel"):
        kernel.unlink()
    for model in (DIGITS, DIGITS.read_bytes()):  # by the same key, without any kernel
        assert library.compile(model)(image).tobytes() == expected.tobytes()
    assert not entries(cache, "kernel")
    for options in ({"quick": True}, {"threads": 1}, {"input_layouts": {"image": "NHWC"}}):
        count = len(entries(cache, "model"))
        compiled = library.compile(DIGITS, **options)
        assert len(entries(cache, "model")) == count + 1
        again = library.compile(DIGITS, **options)
        assert (again.inputs, again.outputs) == (compiled.inputs, compiled.outputs)
        assert again.messages == compiled.messages
        assert len(again.messages) == ("input_layouts" in options)  # what the layout does
        given = image.reshape(again.inputs[0].shape)
        assert again(given).tobytes() == compiled(given).tobytes()
    for path in entries(cache):
        damage(path, "changed")
    assert library.compile(DIGITS)(image).tobytes() == expected.tobytes()


def test_library_with_known_values(tmp_path, monkeypatch):
    """A kept program has the values that it was compiled for, and refuses others like a new one."""
    built.skip_sanitized()
    import pleat as library

    monkeypatch.setenv("PLEAT_CACHE", str(tmp_path / "cache"))
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 6)),
              helper.make_tensor_value_info("shape", TensorProto.INT64, (2,)),
              helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g",
                              values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.arange(12, dtype="float32").reshape(2, 6)
    for shape in ((3, 4), (4, 3)):
        for _ in range(2):
            compiled = library.compile(model, known={"shape": np.array(shape)})
            assert np.array_equal(compiled(x, np.array(shape)), x.reshape(shape))
            with pytest.raises(library.PleatError, match="other values"):
                compiled(x, np.array((6, 2)))
    with pytest.raises(library.PleatError, match="no such input; did you mean 'shape'"):
        library.compile(model, known={"shap": np.array((3, 4))})
    assert len(entries(tmp_path / "cache", "model")) == 2
