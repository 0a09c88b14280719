# SPDX-License-Identifier: Apache-2.0
"""pleat.relax: graph functions with free sizes, BlockBuilder, networks as classes, and how they run."""
import ctypes

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import registry, relax, te, tir  # noqa: E402
from pleat.relax.frontend import nn  # noqa: E402
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


# ---- BlockBuilder -----------------------------------------------------------------------------------

def doubled(A, by=2.0):
    return te.compute(A.shape, lambda *i: A(*i) * by, name="doubled")


def parameters(n):
    return (relax.Var("x", R.Tensor((n, 7), "float32")), relax.Var("w", R.Tensor((5, 7), "float32")),
            relax.Var("b", relax.TensorStructInfo((5,), "float32")))


def test_a_function_is_that_of_the_script():
    bb = relax.BlockBuilder()
    x, w, b = parameters(tir.Var("n", "int64"))
    with bb.function("main", [x, w, b], attrs={"num_input": 1}):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w)) + b)
            z = bb.emit(relax.op.nn.relu(y))
            bb.emit_output(z)
        bb.emit_func_output(z)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 7), "float32"), w: R.Tensor((5, 7), "float32"),
                 b: R.Tensor((5,), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                y = R.add(R.matmul(x, R.permute_dims(w)), b)
                z = R.nn.relu(y)
                R.output(z)
            return z
    pleat.ir.assert_structural_equal(bb.get(), Module)


@pytest.mark.parametrize("size", [T.int64(), tir.Var("n", "int64"), "n", 3])
def test_types_and_tensor_expressions(size):
    bb = relax.BlockBuilder()
    x, w, b = parameters(size)
    with bb.function("main", [x, w, b]):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w)))
            assert y.struct_info.dtype == "float32" and y.shape[1] == 5
            assert size != 3 or y.shape[0] == 3
            z = bb.emit_te(doubled, y + b, by=3.0, primfunc_name_hint="scaled")
            again = bb.emit_te(doubled, z)
            out = bb.emit_output((again, z))
        bb.emit_func_output(out)
    assert {"scaled", "doubled", "main"} == set(bb.get().keys())
    vm = relax.VirtualMachine(pleat.compile(bb.get(), cache=False), pleat.cpu())
    arrays = numbers(3, 7), numbers(5, 7), numbers(5)
    first, second = vm["main"](*arrays)
    expected = 3 * (arrays[0] @ arrays[1].T + arrays[2])
    assert np.allclose(second.numpy(), expected, atol=1e-4)
    assert np.allclose(first.numpy(), 2 * expected, atol=1e-4)


def test_sizes_in_expressions_and_names_that_are_taken():
    bb = relax.BlockBuilder()
    n, m = tir.Var("x", "int64"), tir.Var("x", "int64")  # one name for all of them
    x, y = relax.Var("x", R.Tensor((n, m), "float32")), relax.Var("x", R.Tensor((m * 2,), "float32"))
    with bb.function("main", [x, y]):
        flat = bb.emit(relax.op.reshape(x, (n * m,)))
        bb.emit_func_output((flat, bb.emit(y + R.const(1, "float32"), "x")))
    run = pleat.compile(bb.get(), cache=False)
    a, b = numbers(3, 5), numbers(10)
    flat, more = run(a, b)
    assert np.array_equal(flat, a.reshape(-1)) and np.array_equal(more, b + 1)


def test_types_of_constants_without_one():
    # The types that TVM 0.27 gives.
    written = [(1, "int32"), (True, "bool"), (1.5, "float32"), ([1, 2], "int32"), ([True, 2], "int32"),
               ([[1, 2.5]], "float32"), (np.arange(3), "int32"), (np.ones((1, 2)), "float32"),
               (np.array(3, "int8"), "int8"), (np.array([True, False]), "bool")]
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((1,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output([bb.emit(relax.op.negative(relax.op.astype(relax.const(value), "float32")))
                             for value, _ in written] + [relax.const(value) for value, _ in written])
    results = pleat.compile(bb.get(), cache=False)(numbers(1))[len(written):]
    assert [result.dtype for result in results] == [dtype for _, dtype in written]
    for result, (value, dtype) in zip(results, written):
        assert np.array_equal(result, np.array(value).astype(dtype))


def test_constants_do_not_wrap():
    for value, dtype in (([2**31], None), (np.arange(3) - 2**40, None), (128, "int8"), (np.int64(-1), "uint8")):
        with pytest.raises(ValueError, match="does not fit"):
            relax.const(value, dtype)
    assert relax.const(np.arange(3) + 2**40, "int64").data[2] == 2**40 + 2
    assert str(relax.const([-2**31])) == "R.const([(-2147483648)])"


def test_floats_of_numpy_in_a_script():
    half = np.float64(0.5)

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return R.add(R.multiply(x, R.const(half)), R.const(np.ones(2).sum()))

    assert 'R.const(0.5)' in main.script() or 'R.const(0.5, "float32")' in main.script()
    sch = tir.Schedule(te.create_prim_func([A := te.placeholder((4,)), te.compute((4,), lambda i: A[i] * half)]))
    sch.annotate("compute", "share", half)
    assert "ann_val=0.5" in str(sch.trace) and '"share": 0.5' in sch.mod.script()


def test_index_maps_that_are_captured():
    def blocks(i, j):
        return j, i // 4, i % 4
    rows = lambda j, i, k: (i * 4 + k, j)  # noqa: E731

    @R.function
    def main(x: R.Tensor((8, 6), "float32")):
        a = R.layout_transform(x, index_map=blocks, pad_value=None)
        b = R.layout_transform(a, rows)
        pair = (a, b)
        return pair[0], pair[1] + x

    text = main.script()
    assert "index_map=lambda i, j: [j, i//4, i%4]" in text and "R.layout_transform(a, lambda j, i, k: " in text
    x = numbers(8, 6)
    a, b = pleat.compile(text.encode(), cache=False)(x)
    assert np.array_equal(a, x.T.reshape(6, 2, 4)) and np.array_equal(b, x + x)


@I.ir_module
class Allocated:
    @T.prim_func
    def both(x: T.handle, up: T.handle, down: T.handle, step: T.int64):
        n = T.int64()
        X = T.match_buffer(x, (n, 5), "float32")
        U = T.match_buffer(up, (n, 5), "float32")
        D = T.match_buffer(down, (n, 5), "float32")
        for i, j in T.grid(n, 5):
            with T.block("both"):
                vi, vj = T.axis.remap("SS", [i, j])
                U[vi, vj] = X[vi, vj] + T.cast(step, "float32")
                D[vi, vj] = X[vi, vj] - T.cast(step, "float32")

    @R.function
    def main(x: R.Tensor(("n", 5), "float32")):
        n = T.int64()
        cls = Allocated
        u: R.Tensor((n, 5), "float32") = R.builtin.alloc_tensor(R.shape([n, 5]), R.dtype("float32"), R.prim_value(0))
        d: R.Tensor((n, 5), "float32") = R.builtin.alloc_tensor(R.shape([n, 5]), dtype="float32")
        cls.both(x, u, d, 3)
        return u, R.nn.relu(d)


def test_programs_that_write_allocated_tensors():
    x = numbers(4, 5)
    u, d = pleat.compile(Allocated, cache=False)(x)
    assert np.allclose(u, x + 3) and np.allclose(d, np.maximum(x - 3, 0))
    text = Allocated.script()
    for old, new, message in [("cls.both(x, u, d, 3)", "cls.both(x, x, x, 3)", "writes no tensor that was allocated"),
                              ("R.shape([n, 5]), R.dtype", "R.shape([x, 5]), R.dtype", "needs a shape and an element type"),
                              ("cls.both(x, u, d, 3)", "cls.other(x, u, d, 3)", "there is no function 'other'")]:
        assert old in text
        with pytest.raises(pleat.PleatError, match=message):
            pleat.compile(text.replace(old, new).encode(), cache=False)


@pytest.mark.parametrize("of, storage, free", [
    ("memory", 'R.shape([80]), R.prim_value(0), R.str("global"), R.dtype("float32")', "kill_tensor"),
    ("vm", 'R.shape([80]), R.prim_value(0), R.dtype("float32"), R.str("global")', "kill_object")])
def test_memory_that_is_planned(of, storage, free):
    """TVM makes such calls of R.builtin.alloc_tensor."""
    text = Allocated.script()
    old = 'R.builtin.alloc_tensor(R.shape([n, 5]), R.dtype("float32"), R.prim_value(0))'
    line = next(line for line in text.splitlines() if old in line)
    new = line.replace(old, f'R.{of}.alloc_tensor(s, R.prim_value(0), R.shape([n, 5]), R.dtype("float32"))')
    call = "        cls.both(x, u, d, 3)\n"
    text = text.replace(line, f"        s: R.Object = R.{of}.alloc_storage({storage})\n{new}")
    text = text.replace(call, f"{call}        v = R.nn.relu(u)\n        R.{of}.{free}(s)\n")
    text = text.replace("return (u,", "return (v,").replace("return u,", "return v,")
    x = numbers(4, 5)
    u, d = pleat.compile(text.encode(), cache=False)(x)
    assert np.allclose(u, np.maximum(x + 3, 0)) and np.allclose(d, np.maximum(x - 3, 0))
    for old, new, message in [("(s, R.prim_value(0)", "(s, R.prim_value(4)", "at an offset other than 0"),
                              ("(s, R.prim_value(0)", "(x, R.prim_value(0)", "needs a storage"),
                              (call, f"        R.{of}.{free}(u)\n{call}", "writes no tensor|no tensor")]:
        assert old in text
        with pytest.raises(pleat.PleatError, match=message):
            pleat.compile(text.replace(old, new).encode(), cache=False)


def test_sizes_that_are_numbers():
    @R.function
    def main(x: R.Tensor("float32", ndim=2)):
        n, m = T.int64(), T.int64(6)
        y = R.match_cast(x, R.Tensor((n, m), "float32"))
        return R.nn.relu(y)

    assert "R.Tensor((n, 6), \"float32\")" in main.script()


def test_operators_and_positional_attributes_as_in_tvm():
    text = '''
@R.function
def main(x: R.Tensor((2, 3, 8, 5), "float32"), i: R.Tensor((2, 3), "int32"), c: R.Tensor((5,), "float32"),
         d: R.Tensor((3,), "float32"), q: R.Tensor((2, 4, 3, 5), "float32"), k: R.Tensor((2, 7, 3, 5), "float32")):
    repeated = R.repeat(x, 2, 1)
    flat = R.repeat(i, 3)
    flipped = R.flip(x, 2)
    variance = R.variance(x, [0, -1], True)
    whole = R.variance(x)
    left = R.left_shift(i, R.const(3))
    right = R.right_shift(i, R.const(1))
    sum = R.ewise_fma(x, x, x)
    pooled = R.nn.adaptive_avg_pool2d(x, (3, 5))
    normal = R.nn.batch_norm(x, c, c, c, R.abs(c), 3, 0.01, training=False)
    layer = R.nn.layer_norm(x, d, d, [1], 0.01)
    seen = R.nn.attention(q, k, k, None, 0.5, "BottomRight")
    best = R.topk(x, 2, -1, "values")
    padded = R.nn.pad(x, [[0, 0], [0, 0], [1, 2], [0, 0]], "constant", 2.0)
    edges = R.nn.pad(x, [[0, 0], [0, 0], [1, 2], [0, 0]], "replicate")
    leaky = R.nn.leakyrelu(x, 0.25)
    dropped = R.nn.dropout(x, 0.5)
    most = R.nn.max_pool2d(x, (2, 3), 1, (1, 0))
    product = R.einsum((x, c), subscripts="abcd,d->abc")
    return (repeated, flat, flipped, variance, whole, left, right, sum, pooled, normal[0], layer, seen, best,
            padded, edges, leaky, dropped[0], most, product)
'''
    rng = np.random.default_rng(3)
    x, c, d, q, k = (rng.standard_normal(shape).astype("float32")
                     for shape in ((2, 3, 8, 5), (5,), (3,), (2, 4, 3, 5), (2, 7, 3, 5)))
    i = rng.integers(-9, 9, (2, 3)).astype("int32")
    centred = x - x.mean(1, keepdims=True)
    column = d.reshape(3, 1, 1)
    scores = 0.5 * np.einsum("bqhe,bkhe->bhqk", q, k)
    scores[:, :, np.arange(7)[None] > np.arange(4)[:, None] + 3] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    parts = [x[:, :, a * 8 // 3:-(-(a + 1) * 8 // 3)].mean(2) for a in range(3)]
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)], constant_values=-np.inf)
    expected = {
        "repeated": np.repeat(x, 2, 1), "flat": np.repeat(i, 3), "flipped": x[:, :, ::-1],
        "variance": x.var((0, 3), keepdims=True), "whole": x.var(), "left": i << 3, "right": i >> 1,
        "sum": x * x + x, "pooled": np.stack(parts, 2), "normal": (x - c) / np.sqrt(np.abs(c) + 0.01) * c + c,
        "layer": centred / np.sqrt(x.var(1, keepdims=True) + 0.01) * column + column,
        "seen": np.einsum("bhqk,bkhe->bqhe", weights, k), "best": -np.sort(-x)[..., :2],
        "padded": np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 0)], constant_values=2),
        "edges": np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 0)], "edge"), "leaky": np.where(x < 0, x / 4, x),
        "dropped": x, "most": np.lib.stride_tricks.sliding_window_view(wide, (2, 3), (2, 3)).max((-1, -2)),
        "product": x @ c}
    results = pleat.compile(text.encode(), cache=False)(x, i, c, d, q, k)
    for (name, value), result in zip(expected.items(), results, strict=True):
        assert result.dtype == value.dtype and np.allclose(result, value, rtol=1e-4, atol=1e-5), name


def test_functions_that_are_added_and_called():
    bb = relax.BlockBuilder()
    x, y = (relax.Var(name, R.Tensor((2, 5), "float32")) for name in "xy")
    program = bb.add_func(Free["halves"], "halves")
    other = bb.add_func(Free["halves"], "halves")
    assert (program, other) == ("halves", "halves1")
    with bb.function("first", [x]):
        gv = bb.emit(relax.call_tir(program, [x], out_ty=relax.TensorType((2, 5), "float32")))
        bb.emit_func_output(gv)
    with bb.function("second", [y]):
        gv = bb.emit(relax.call_tir(other, y, R.Tensor((2, 5), "float32")))
        bb.emit_func_output(bb.emit(gv + gv))
    built = pleat.compile(bb.get(), cache=False)
    assert isinstance(built, relax.Executable) and built.names == ["first", "second"]
    vm, a = relax.VirtualMachine(built, pleat.cpu()), numbers(2, 5)
    assert np.array_equal(vm["first"](a), a / 2) and np.array_equal(vm["second"](a), a)
    vm.set_input("first", a)
    vm.invoke_stateful("first")
    assert np.array_equal(vm.get_outputs("first").numpy(), a / 2)
    with pytest.raises(KeyError, match="no graph function 'third'; it has first, second"):
        vm["third"]
    with pytest.raises(pleat.PleatError, match="set_input has not been called"):
        vm.invoke_stateful("second")


def test_what_a_builder_refuses():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 5), "float32"))
    with pytest.raises(pleat.PleatError, match="within `with bb.function"):
        bb.emit(x)
    with pytest.raises(pleat.PleatError, match="'main' has no result: call emit_func_output"), \
            bb.function("main", [x]):
        bb.emit(x)
    with pytest.raises(pleat.PleatError, match="'z'[^$]*return R.nn.relu\\(z\\)"), \
            bb.function("main", [x]):
        bb.emit_func_output(relax.op.nn.relu(relax.Var("z", x.struct_info)))
    with pytest.raises(pleat.PleatError, match="nn.rulu"), bb.function("main", [x]):
        bb.emit(relax.op.nn.rulu(x)).struct_info
    with pytest.raises(pleat.PleatError, match="stands within `with bb.dataflow"), \
            bb.function("main", [x]):
        bb.emit_output(x)
    with pytest.raises(pleat.PleatError, match="'main' has not ended"), bb.function("main", [x]), \
            bb.function("other", [x]):
        pass
    with pytest.raises(pleat.PleatError, match="has no type"):
        relax.Var("y").struct_info
    with pytest.raises(TypeError, match="expected what pleat.compile makes"):
        relax.VirtualMachine(bb.get(), pleat.cpu())
    assert not len(bb.get())


@pytest.mark.parametrize("ending", [".so", ".pleat"])
def test_graphs_are_exported_and_loaded(tmp_path, ending):
    module, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((3, 12), "float32")}})
    arrays = [numbers(3, 12), *(numbers(*p.shape) for _, p in params)]
    model, path = pleat.compile(module, target="llvm", cache=False), tmp_path / ("net" + ending)
    model.export_library(str(path), workspace_dir=str(tmp_path))
    vm = relax.VirtualMachine(pleat.runtime.load_module(str(path)), pleat.cpu())
    assert np.array_equal(vm["forward"](*arrays), model(*arrays))
    if ending == ".so":
        assert ctypes.CDLL(str(path)).net_run
    with pytest.raises(KeyError, match="no graph function 'main'; it has forward"):
        vm["main"]


def test_free_sizes_are_compiled_after_loading(tmp_path):
    path = tmp_path / "free.pleat"
    built = relax.build(Free, cache=False)
    with pytest.raises(pleat.PleatError, match="a .so has one function whose sizes are known"):
        built.export_library(tmp_path / "free.so")
    with pytest.raises(pleat.PleatError, match="expected .pleat or .so"):
        built.export_library(tmp_path / "free.tar")
    closed = pleat.compile(Free, func="main", cache=False, shapes={"n": 3, "m": 2},
                           output_layouts={"z": pleat.Layout("ab", (3, 7))})
    with pytest.raises(TypeError, match="Layout"):
        closed.export_library(path)
    assert not list(tmp_path.glob("free.p*"))
    built.export_library(path)
    loaded = pleat.load_module(path)
    for n in (4, 2):
        x, w, q = numbers(n, 5), numbers(7, 5), numbers(2, 1)
        z, s = loaded["main"](x, w, q)
        assert np.allclose(z, x @ w.T / 2, atol=1e-5) and np.allclose(s, q.sum())
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(pleat.PleatError, match="is not a module that export_library wrote"):
        pleat.load_module(path)


# ---- Functions of Python ----------------------------------------------------------------------------

@pytest.fixture
def registered():
    names = []

    def register(name, function):
        names.append(name)
        return pleat.register_func(name, function)
    yield register
    for name in names:
        registry.remove_global_func(name)


class External(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter((5,))

    def forward(self, x):
        out = nn.Tensor.placeholder((x.shape[0], 5), "float32")
        return nn.relu(nn.extern("test.scaled", [x, self.weight], out=out))


def test_graphs_call_registered_functions(registered):
    kinds = []

    def scaled(x, w, out):
        kinds.append((type(x), x.shape, w.numpy().shape))
        pleat.nd.array(x.numpy() * w.numpy()).copyto(out)
    assert pleat.get_global_func("test.scaled", allow_missing=True) is None
    assert registered("test.scaled", scaled) is scaled is pleat.get_global_func("test.scaled")
    spec = {"x": nn.spec.Tensor(("n", 5), "float32")}
    module, _ = External().export_tvm({"forward": spec})
    for model in (pleat.compile(module, cache=False), relax.build(module, cache=False)):
        vm = relax.VirtualMachine(model, pleat.cpu())
        for n in (3, 1):
            x, w = numbers(n, 5), numbers(5)
            assert np.array_equal(vm["forward"](x, w), np.maximum(x * w, 0))
            assert kinds[-1] == (pleat.nd.Tensor, (n, 5), (5,))


def test_exceptions_in_registered_functions(registered):
    def fails(x, w, out):
        raise ZeroDivisionError("as it should")
    registered("test.scaled", fails)
    module, _ = External().export_tvm({"forward": {"x": nn.spec.Tensor((3, 5), "float32")}})
    vm = relax.VirtualMachine(pleat.compile(module, cache=False), pleat.cpu())
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="as it should"):
            vm["forward"](numbers(3, 5), numbers(5))
    with pytest.raises(ValueError, match="'test.scaled' is registered already"):
        registered("test.scaled", fails)
    with pytest.raises(ValueError, match="no function 'test.other' is registered; there are .*test.scaled"):
        pleat.get_global_func("test.other")
    with pytest.raises(TypeError, match="'test.scaled' is int, expected a function"):
        registered("test.scaled", 3)
    registry.remove_global_func("test.scaled")
    with pytest.raises(pleat.PleatError, match="test.scaled"):
        pleat.compile(module, cache=False)


def test_files_and_texts_call_registered_functions(registered, tmp_path):
    text = '''from pleat.script import relax as R

@R.function
def main(x: R.Tensor((3, 5), "float32")):
    return R.call_dps_packed("test.halved", (x,), out_sinfo=R.Tensor((3, 5), "float32"))
'''
    registered("test.halved", lambda x, out: pleat.nd.array(x.numpy() / 2).copyto(out))
    path, x = tmp_path / "halved.py", numbers(3, 5)
    path.write_text(text)
    for model in (str(path), path, text.encode()):
        assert np.array_equal(pleat.compile(model, cache=False)(x), x / 2)
    registry.remove_global_func("test.halved")
    with pytest.raises(pleat.PleatError, match="give it with operators="):
        pleat.compile(text.encode(), cache=False)


def test_the_text_of_a_script():
    text = Allocated.script()
    x = numbers(4, 5)
    assert np.allclose(pleat.compile(text, cache=False)(x)[0], x + 3)
    assert pleat.plan(text, shapes={"n": 4})["kernels"] >= 1 and pleat.verify(text, shapes={"n": 4})
    with pytest.raises(pleat.PleatError, match="model:2:.*parameter 'x' needs a type"):
        pleat.compile("@R.function\ndef f(x): return y", cache=False)


def test_bytes_that_are_no_script():
    for text, said in ((b"some text", "is not an ONNX file"), (b"", "is empty"), (b"@\0", "is not an ONNX file"),
                       (b"@R.function\ndef f(x): return y", "parameter 'x' needs a type")):
        with pytest.raises(pleat.PleatError, match=said):
            pleat.compile(text, cache=False)


# ---- Networks ---------------------------------------------------------------------------------------

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 7)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(7, 5, bias=False)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


@pytest.mark.parametrize("rows", [3, "n"])
def test_a_network(rows):
    module, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((rows, 12), "float32")}})
    assert [(name, p.shape, p.dtype) for name, p in params] == [
        ("fc1.weight", [7, 12], "float32"), ("fc1.bias", [7], "float32"), ("fc2.weight", [5, 7], "float32")]
    module = relax.get_pipeline("zero")(module)
    vm = relax.VirtualMachine(pleat.compile(module, target="llvm", cache=False), pleat.cpu())
    x, (w1, b1, w2) = numbers(3, 12), (numbers(*p.shape) for _, p in params)
    result = vm["forward"](pleat.nd.array(x), w1, b1, w2).numpy()
    assert np.allclose(result, np.maximum(x @ w1.T + b1, 0) @ w2.T, atol=1e-4)
    with pytest.raises(KeyError, match="no graph function 'main'; it has forward"):
        vm["main"]


class Images(nn.Module):
    def __init__(self):
        self.convolution = nn.Conv2D(2, 3, 3, padding=1)
        self.norm = nn.LayerNorm(5)
        self.parts = nn.ModuleList([nn.GELU(), nn.Identity()])

    def forward(self, x, y):
        x = self.norm(self.convolution(x))
        return nn.tensor_expr_op(doubled, "doubled", [self.parts(x)]) - y * 2.0, -y


def test_layers():
    spec = {"x": nn.spec.Tensor((1, 2, 5, 5), "float32"), "y": nn.spec.Tensor((3, 5, 5), "float32")}
    module, params = Images().export_tvm({"forward": spec})
    assert [name for name, _ in params] == ["convolution.weight", "convolution.bias", "norm.weight",
                                            "norm.bias"]
    arrays = [numbers(*one.shape) for one in (*spec.values(), *(p for _, p in params))]
    first, second = pleat.compile(module, cache=False)(*arrays)

    @R.function
    def main(x: R.Tensor((1, 2, 5, 5), "float32"), y: R.Tensor((3, 5, 5), "float32"),
             w: R.Tensor((3, 2, 3, 3), "float32"), b: R.Tensor((3,), "float32"),
             g: R.Tensor((5,), "float32"), s: R.Tensor((5,), "float32")):
        c = R.add(R.nn.conv2d(x, w, padding=[1, 1, 1, 1]), R.reshape(b, (1, 3, 1, 1)))
        d = R.nn.gelu(R.nn.layer_norm(c, g, s, axes=[-1], epsilon=1e-5))
        return R.subtract(R.add(d, d), R.add(y, y))
    assert np.allclose(first, pleat.compile(main, cache=False)(*arrays), atol=1e-4)
    assert np.array_equal(second, -arrays[1])


def test_graph_functions_get_the_names_of_their_items():
    @R.function
    def doubled(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return R.add(x, x)
    module = pleat.IRModule({"main": doubled, "other": doubled})
    assert list(module) == ["main", "other"] and "def main(x" in module["main"].script()
    vm = relax.VirtualMachine(pleat.compile(module, cache=False), pleat.cpu())
    assert vm["other"](np.ones(3, "float32")).numpy().tolist() == [2, 2, 2]
    assert list(pleat.IRModule({"main": Free["main"]})) == ["main"]


factor = 3.0


@R.macro
def scaled(x, dtype="float32"):
    y = R.add(x, x)
    return R.multiply(y, R.const(factor, dtype))


@R.macro(hygienic=False)
def shifted(*tensors):
    y = scaled(tensors[0])
    return R.add(y, w), y


def test_macros_of_graph_functions():
    @R.function
    def stated(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")):
        with R.dataflow():
            a = scaled(R.nn.relu(x))
            b, c = shifted(a)
            d: R.Tensor((3,), "float32") = scaled(x=c)
            R.output(b, d)
        return b, d

    @R.function
    def written(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")):
        with R.dataflow():
            lv = R.nn.relu(x)
            y = R.add(lv, lv)
            a = R.multiply(y, R.const(3.0, "float32"))
            y_1 = R.add(a, a)
            c = R.multiply(y_1, R.const(3.0, "float32"))
            b = R.add(c, w)
            y_2 = R.add(c, c)
            d: R.Tensor((3,), "float32") = R.multiply(y_2, R.const(3.0, "float32"))
            R.output(b, d)
        return b, d
    pleat.ir.assert_structural_equal(stated, written)


@R.macro
def without_result(x):
    R.add(x, x)


@R.macro
def endless(x):
    return endless(x)


def test_mistakes_with_macros_of_graph_functions():
    def fails(message):
        return pytest.raises(pleat.PleatError, match=message)

    with fails("'y' is not defined"):
        @R.function
        def leaks(x: R.Tensor((3,), "float32")):
            u = scaled(x)  # noqa: F841
            return y  # noqa: F821
    with fails("this macro returns no value"):
        @R.function
        def lacks(x: R.Tensor((3,), "float32")):
            return without_result(x)
    with fails("in a graph function also as the whole value of one"):
        @R.function
        def nests(x: R.Tensor((3,), "float32")):
            return R.add(scaled(x), x)
    with fails("more than 64 levels deep"):
        @R.function
        def repeats(x: R.Tensor((3,), "float32")):
            return endless(x)
    with fails("expected a name"):
        @R.function
        def divides(x: R.Tensor((3,), "float32")):
            a, b = scaled(x)
            return a, b
