# SPDX-License-Identifier: Apache-2.0
"""The wheel, built from a copy of the sources without a build folder, in an environment that has
nothing of them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text())[1]
# The packages that the wheel needs, taken from the environment of the tests.
NEEDED = ("numpy", "numpy.libs", "cffi", "_cffi_backend*", "pycparser")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]

pytestmark = [pytest.mark.skipif(not shutil.which("meson"), reason="meson is not installed"),
              pytest.mark.slow]


def copied_sources(folder):
    return shutil.copytree(ROOT, folder / "pleat", symlinks=True, ignore=shutil.ignore_patterns(
        ".git", "build*", "__pycache__", "*.egg-info"))


def environment(**more):
    """Variables of this process without those that say where Pleat is."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PLEAT")}
    kept.pop("PYTHONPATH", None)
    if shutil.which("ccache"):
        kept.setdefault("CC", "ccache cc")
    return {**kept, **more}


def build(python_folder, target, **more):
    # With the same relative paths in each run, ccache finds what an earlier run has compiled. An
    # empty PLEAT_LIBRARY is as good as none.
    more = {"TMPDIR": str(target), "PLEAT_MESON": "-Doptimization=0 -Ddebug=false", "PLEAT_LIBRARY": "", **more}
    return subprocess.run(
        [*PIP, "wheel", "-q", "--no-index", "--no-build-isolation", "--no-deps", "-w", str(target),
         str(python_folder)], env=environment(**more), capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel whose sources are gone."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = copied_sources(folder)
    found = build(sources / "python", folder)
    assert found.returncode == 0, found.stdout + found.stderr
    shutil.rmtree(sources)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel, NumPy and cffi alone."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    interpreter = folder / "venv" / "bin" / "python"
    packages = pathlib.Path(subprocess.check_output(
        [str(interpreter), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        text=True).strip())
    import numpy
    for pattern in NEEDED:
        for path in pathlib.Path(numpy.__file__).parents[1].glob(pattern):
            (packages / path.name).symlink_to(path)
    subprocess.run([*PIP, "--python", str(interpreter), "install", "-q", "--no-index", "--no-deps",
                    str(wheel)], check=True, env=environment())
    return interpreter


def output(python, text, folder):
    return subprocess.check_output([str(python), "-c", text], text=True, cwd=folder,
                                   env=environment(HOME=str(folder)))


def test_the_name_says_where_it_runs(wheel, tmp_path):
    match = re.fullmatch(rf"pleat-{re.escape(VERSION)}-py3-none-manylinux_2_(\d+)_(\w+)\.whl",
                         wheel.name)
    assert match and match[2] == os.uname().machine
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    needs = subprocess.check_output(
        ["readelf", "-V", *map(str, (tmp_path / "pleat").glob("*.so*"))], text=True)
    assert int(match[1]) == max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", needs))


def test_it_has_the_licence_and_no_build_paths(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        library = archive.read("pleat/libpleat.so")
    assert f"pleat-{VERSION}.dist-info/licenses/LICENSE" in names
    assert {"pleat/_interface.py", "pleat/libpleat.so"} <= set(names)
    assert str(ROOT).encode() not in library and str(wheel.parent).encode() not in library


def test_all_libraries_but_the_c_library_come_from_the_wheel(python, tmp_path):
    text = """
import pleat, re
assert pleat.layout.Layout("NCHW16c", (1, 30, 7, 7)).offset(0, 17, 3, 2) == 1153
print("\\n".join(sorted(set(re.findall(r"/\\S+\\.so\\S*", open("/proc/self/maps").read())))))
"""
    loaded = output(python, text, tmp_path).split()
    package = [path for path in loaded if "/pleat/lib" in path]
    assert any(path.endswith("/pleat/libpleat.so") for path in package)
    for name in ("libjansson", "libisl", "libgmp"):
        assert [path for path in loaded if f"/{name}." in path] == [
            path for path in package if f"/{name}." in path] != []
    assert all(str(python.parents[1]) in path for path in package)


def test_no_header_is_read(python, tmp_path):
    """The package `cffi` has the reader of headers, which takes longer than everything else."""
    text = "import pleat, sys; pleat.version(); print('cffi' in sys.modules, sys.modules.keys())"
    assert output(python, text, tmp_path).startswith("False")


def test_a_package_without_its_declarations_says_so(python, tmp_path):
    package = next(python.parents[1].glob("lib/python*/site-packages/pleat"))
    without = shutil.copytree(package, tmp_path / "pleat", ignore=shutil.ignore_patterns("_interface*"))
    found = subprocess.run([str(python), "-c", "import pleat; pleat.version()"], cwd=tmp_path,
                           env=environment(), capture_output=True, text=True)
    assert f"_interface.py is missing in {without}" in found.stderr


def test_a_model_runs(python, tmp_path):
    shutil.copy(ROOT / "examples" / "digits" / "digits.onnx", tmp_path)
    text = """
import numpy as np, pleat
model = pleat.compile("digits.onnx", threads=1)
print(pleat.__version__, float(model(np.ones((1, 1, 8, 8), "float32")).sum().round(3)))
"""
    assert output(python, text, tmp_path).split() == [VERSION, "1.0"]


def test_a_saved_model_runs_in_four_threads(python, tmp_path):
    """The second process loads the model; it opens no compiler."""
    digits = ROOT / "examples" / "digits"
    shutil.copy(ROOT / "examples" / "embed" / "threads.py", tmp_path)
    output(python, f"import pleat; pleat.compile({str(digits / 'digits.onnx')!r})"
                   ".save('digits.pleat')", tmp_path)
    text = f"""
import sys
sys.argv = ["threads.py", "digits.pleat", {str(digits / 'images.npy')!r}]
exec(compile(open("threads.py").read(), "threads.py", "exec"))
assert "libLLVM" not in open("/proc/self/maps").read()
"""
    labels = (digits / "labels.npy").read_bytes()[128:]
    expected = [int.from_bytes(labels[i:i + 8], "little") for i in range(0, len(labels), 8)]
    found = [int(line) for line in output(python, text, tmp_path).split()]
    assert len(found) == len(expected)
    assert sum(a == b for a, b in zip(found, expected)) > 0.95 * len(expected)


def test_an_sdist_has_the_sources(tmp_path):
    """Only its contents: building from it takes the same steps as above."""
    sources = copied_sources(tmp_path)
    subprocess.run([sys.executable, "setup.py", "-q", "sdist", "-d", str(tmp_path)], check=True,
                   cwd=sources / "python", env=environment())
    subprocess.run(["tar", "xf", str(tmp_path / f"pleat-{VERSION}.tar.gz")], check=True, cwd=tmp_path)
    unpacked = tmp_path / f"pleat-{VERSION}"
    subprocess.run(["meson", "setup", str(tmp_path / "configured"), str(unpacked / "source"),
                    "-Dpython_package=true"], check=True, stdout=subprocess.DEVNULL)
    found = subprocess.check_output([sys.executable, "setup.py", "--version"], text=True,
                                    cwd=unpacked, env=environment())
    assert found.strip() == VERSION


def test_a_copy_of_the_folder_alone_is_refused(tmp_path):
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns(
        "build", "*.egg-info", "__pycache__"))
    found = build(tmp_path / "python", tmp_path)
    assert found.returncode and "the sources of the library are neither in" in (
        found.stdout + found.stderr)


def test_a_part_that_is_missing_is_named(tmp_path):
    sources = copied_sources(tmp_path)
    found = build(sources / "python", tmp_path, PKG_CONFIG_LIBDIR=str(tmp_path), CC="cc")
    said = found.stdout + found.stderr
    assert found.returncode and "jansson" in said and "scripts/install.sh" in said


def test_a_given_library_is_taken(tmp_path):
    sources = copied_sources(tmp_path)
    library = tmp_path / "given.so"
    library.write_bytes(b"a library")
    found = build(sources / "python", tmp_path, PLEAT_LIBRARY=str(library))
    assert found.returncode == 0, found.stdout + found.stderr
    made = next(tmp_path.glob("*.whl"))
    assert "linux" in made.name and "manylinux" not in made.name
    with zipfile.ZipFile(made) as archive:
        assert archive.read("pleat/libpleat.so") == b"a library"
    found = build(sources / "python", tmp_path, PLEAT_LIBRARY=str(tmp_path / "none"))
    assert found.returncode and "which does not exist" in found.stdout + found.stderr
