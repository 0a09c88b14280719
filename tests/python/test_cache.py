# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code: what a second start takes from it gives the same results bit for bit,
and whatever happens to its folder, a model compiles."""
import os
import pathlib
import subprocess

import pytest

import built

np = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def pleat(cache, *arguments, **more):
    """Standard error of the command with this cache; its text goes to standard output."""
    done = subprocess.run([PLEAT, *map(str, arguments)], capture_output=True, text=True,
                          env=dict(os.environ, TERM="dumb", PLEAT_CACHE=str(cache), **more))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def result(cache, out, *arguments, **more):
    """The bytes of the result of a run, and the messages of the command."""
    messages = pleat(cache, "run", DIGITS, "--fill", "random", "-o", out, *arguments, **more)
    return out.read_bytes(), messages


def entries(cache, kind="kernel"):
    return sorted(cache.glob(f"*.{kind}")) if cache.is_dir() else []


def times(cache):
    return {path: path.stat().st_ino for path in entries(cache)}


@pytest.fixture
def expected(tmp_path):
    return result("off", tmp_path / "expected.npy")[0]


def test_second_start(tmp_path, expected):
    cache = tmp_path / "cache"
    for i in range(3):
        assert result(cache, tmp_path / "out.npy") == (expected, "")
        before = before if i else times(cache)
        assert before and times(cache) == before  # nothing is written again


def test_cache_is_off(tmp_path, expected):
    cache = tmp_path / "cache"
    assert result(cache, tmp_path / "out.npy", "--no-cache") == (expected, "")
    assert result(cache, tmp_path / "out.npy", PLEAT_CACHE_SIZE="0") == (expected, "")
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
    result(cache, tmp_path / "out.npy")
    sound = {path: path.read_bytes() for path in entries(cache)}
    for path in sound:
        damage(path, how)
    assert result(cache, tmp_path / "out.npy") == (expected, "")
    assert {path: path.read_bytes() for path in entries(cache)} == sound


def test_options_have_entries_of_their_own(tmp_path):
    """Code for another processor level or another layout is not taken from the cache."""
    cache = tmp_path / "cache"
    counts = [len(entries(cache))]
    for arguments in [[], ["--cpu", "baseline"], ["--policy", "none"]]:
        result(cache, tmp_path / "out.npy", *arguments)
        counts.append(len(entries(cache)))
        assert counts[-1] > counts[-2]


def test_folder_that_cannot_be_used(tmp_path, expected):
    """One warning when the user named the folder; none for the folder of the system."""
    for folder in ("/proc/no/such", "/dev/null"):
        same, messages = result(folder, tmp_path / "out.npy")
        assert same == expected
        assert messages.count("warning:") == 1 and f"'{folder}' of PLEAT_CACHE" in messages
    assert result("", tmp_path / "out.npy", XDG_CACHE_HOME="/proc/no") == (expected, "")
    assert result("", tmp_path / "out.npy", XDG_CACHE_HOME="x", HOME="/proc/no") == (expected, "")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    same, messages = result(shared, tmp_path / "out.npy")
    assert same == expected and "other users may write to it" in messages
    assert not entries(shared)


def test_default_folder(tmp_path, expected):
    assert result("", tmp_path / "out.npy", XDG_CACHE_HOME=str(tmp_path / "a")) == (expected, "")
    assert entries(tmp_path / "a" / "pleat")
    assert (tmp_path / "a" / "pleat").stat().st_mode & 0o777 == 0o700


def test_size_is_bounded(tmp_path, expected):
    cache = tmp_path / "cache"
    assert result(cache, tmp_path / "out.npy", PLEAT_CACHE_SIZE="40K") == (expected, "")
    assert 0 < sum(-(-path.stat().st_size // 4096) * 4096 for path in entries(cache)) <= 40 << 10
    messages = result(cache, tmp_path / "out.npy", PLEAT_CACHE_SIZE="a lot")[1]
    assert "PLEAT_CACHE_SIZE is 'a lot'" in messages


def test_processes_at_once(tmp_path, expected):
    cache = tmp_path / "cache"
    environment = dict(os.environ, PLEAT_CACHE=str(cache))
    for _ in range(2):
        outputs = [tmp_path / f"{i}.npy" for i in range(6)]
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
                                    tmp_path / "out.npy"], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None:
            subprocess.run(["rm", "-rf", cache], check=False)
        assert process.returncode == 0, process.stderr.read()
        assert (tmp_path / "out.npy").read_bytes() == expected


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
    for i in range(2):
        assert library.compile(DIGITS)(image).tobytes() == expected.tobytes()
        before = before if i else times(cache)
        assert before and times(cache) == before
