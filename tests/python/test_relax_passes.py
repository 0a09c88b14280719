# SPDX-License-Identifier: Apache-2.0
"""Passes over graph functions and their arguments, from Python, and beside TVM's."""
import importlib.util
import random
import re
import sys

import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import relax, tir  # noqa: E402
from pleat.script import from_source, tir as T  # noqa: E402

CONV = """
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 9, 7), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
             w2: R.Tensor((5, 4, 3, 3), "float32"), b: R.Tensor((1, 4, 1, 1), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
            c = R.nn.relu(R.add(a, b))
            d = R.nn.max_pool2d(c, pool_size=[2, 2], strides=[2, 2])
            e = R.nn.conv2d(d, w2, padding=[1, 1, 1, 1])
            f = R.nn.softmax(e, axis=1)
            out = R.mean(f, axis=[2])
            R.output(out)
        return out
"""


@T.prim_func
def add(A: T.Buffer((3, 8), "float32"), b: T.Buffer((8,), "float32"),
        C: T.Buffer((3, 8), "float32")):
    scaled = T.alloc_buffer((3, 8))
    for i, j in T.grid(3, 8):
        with T.block("scaled"):
            vi, vj = T.axis.remap("SS", [i, j])
            scaled[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(3, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = scaled[vi, vj] + b[vj]


@T.prim_func
def total(A: T.Buffer((3, 8, 5), "float32"), C: T.Buffer((3, 8), "float32")):
    for i, j, k in T.grid(3, 8, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vj, vk]


def rewrites(module):
    text = module.script()
    return text.count("R.permute_dims") + text.count("R.layout_transform")


def outputs(index_map):
    return str(index_map).partition("->")[2].replace(" ", "")


def test_the_table_and_the_functions_agree():
    for name, (arguments, summary) in relax.transform.passes().items():
        package = relax.transform if hasattr(relax.transform, name) else tir.transform
        assert callable(getattr(package, name)) and summary
        assert name in dir(package)


def test_a_pass_gives_a_new_module():
    module = from_source(CONV)
    before = module.script()
    converted = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(module)
    assert module.script() == before
    text = converted.script()
    assert text.count('data_layout="NHWC"') == 2 and 'layout="NHWC"' in text
    assert "R.nn.softmax" in text and "axis=3" in text and "axis=[1]" in text
    assert rewrites(converted) == 5  # x, both weights, the bias, and the result
    assert relax.transform.OptimizeLayoutTransform()(converted).script() == text


def test_layouts_of_single_calls():
    """A call-back sees each call, and says nothing of most."""
    np = pytest.importorskip("numpy")
    seen = []

    def layouts(call):
        seen.append(str(call.op))
        is_first = seen.count("relax.nn.conv2d") == 1
        return {"relax.nn.conv2d": ["NHWC", "OHWI"]} if is_first else {}

    module = from_source(CONV)
    converted = relax.transform.ConvertLayout({"relax.nn.max_pool2d": ["NHWC"]}, layouts)(module)
    text = converted.script()
    assert seen.count("relax.nn.conv2d") == 2 and "relax.nn.relu" in seen
    assert text.count('kernel_layout="OHWI"') == 1
    assert text.index('kernel_layout="OHWI"') < text.index("w2,")
    inputs = [np.random.default_rng(5).standard_normal(shape).astype(np.float32)
              for shape in ((2, 3, 9, 7), (4, 3, 3, 3), (5, 4, 3, 3), (1, 4, 1, 1))]
    one, other = (pleat.compile(each)(*inputs) for each in (module, converted))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_passes_in_a_sequence():
    module = from_source(CONV)
    steps = pleat.transform.Sequential([
        relax.transform.LegalizeOps(skip_ops=["relax.nn.softmax"]),
        relax.transform.HoistLayoutRewrites(), relax.transform.RaiseLayoutRewrites()])
    text = steps(module).script()
    assert "R.nn.softmax" in text and "R.nn.conv2d" not in text


def test_operators_become_what_functions_make_of_them():
    np = pytest.importorskip("numpy")
    module = from_source("""
@R.function
def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((4, 3, 2, 1), "float32")):
    a = R.add(x, y)
    return R.nn.relu(R.add(a, R.const(1.5, "float32")))
""")
    module = module if isinstance(module, pleat.IRModule) else pleat.IRModule({"main": module})
    seen = []

    def swapped(bb, call):
        seen.append([argument.shape if isinstance(argument, relax.Var) else None for argument in call.args])
        if len(seen) > 1:
            return relax.op.subtract(call.args[0], call.args[1])
        difference = bb.emit_te(pleat.topi.subtract, call.args[1], call.args[0])
        return bb.call_te(pleat.topi.multiply, difference, difference)

    legal = relax.transform.LegalizeOps({"relax.add": swapped}, skip_ops=["relax.nn.relu"])(module)
    text = legal.script()
    assert seen[0] == [(2, 3), (4, 3, 2, 1)] and "R.nn.relu" in text and "R.subtract" not in text
    x, y = (np.random.default_rng(i).standard_normal(s, "float32") for i, s in enumerate(((2, 3), (4, 3, 2, 1))))
    np.testing.assert_allclose(pleat.compile(legal)(x, y), np.maximum((y - x) ** 2 - 1.5, 0), rtol=1e-6)

    def untyped(bb, call):
        return bb.emit_te(pleat.topi.add, bb.emit(relax.op.negative(call.args[0])), call.args[1])
    with pytest.raises(pleat.PleatError, match="is not known while operators are replaced"):
        relax.transform.LegalizeOps({"relax.add": untyped})(module)


def test_alter_op_impl():
    def blocks(n, c):
        return n, c // 4, c % 4

    @T.prim_func
    def add_in_blocks(A: T.Buffer((3, 2, 4), "float32"), b: T.Buffer((2, 4), "float32"),
                      C: T.Buffer((3, 2, 4), "float32")):
        for i, j, k in T.grid(3, 2, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk] = A[vi, vj, vk] * T.float32(2) + b[vj, vk]

    module = from_source("""
from pleat.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 8), "float32"), b: R.Tensor((8,), "float32")):
        return R.add(x, b)
""")
    unchanged = relax.transform.AlterOpImpl({"relax.add": add_in_blocks}, {
        "relax.add": [blocks, lambda c: (c // 4, c % 4), blocks]})(module)
    assert "call_tir" not in unchanged.script()
    module["add"] = add.with_attr("operator_name", "relax.add")
    del module["main"]
    text = module.script() + """
    @R.function
    def main(x: R.Tensor((3, 8), "float32"), b: R.Tensor((8,), "float32")):
        a = R.call_tir(Module.add, (x, b), out_sinfo=R.Tensor((3, 8), "float32"))
        return a
"""
    module = from_source("from pleat.script import relax as R\n" + text)
    altered = relax.transform.AlterOpImpl(
        {"relax.add": add_in_blocks},
        {"relax.add": [blocks, tir.IndexMap.from_func(lambda c: (c // 4, c % 4)), blocks]})(module)
    assert "cls.relax_add_replacement" in altered.script() and rewrites(altered) == 3
    separated = tir.IndexMap.from_func_with_separators(
        lambda c: (c // 4, tir.IndexMap.AXIS_SEPARATOR, c % 4))
    altered = relax.transform.AlterOpImpl(
        {"relax.add": add_in_blocks}, {"relax.add": [None, separated, None]},
        {"relax.add": [[], separated[1], []]}, {"relax.add": None})
    with pytest.raises(pleat.PleatError, match="in this layout is not the tensor A"):
        altered(module)
    altered = relax.transform.AlterOpImpl(
        {"relax.add": add_in_blocks}, {"relax.add": [blocks, separated, blocks]},
        {"relax.add": [[2], separated[1], []]}, {"relax.add": [[], [], [2]]})(module).script()
    assert [altered.count(f" axis_separators=[{i}]") for i in (1, 2)] == [1, 1]
    assert altered.count("input_axis_separators=[2]") == 1


def test_suggested_layouts():
    found = relax.analysis.suggest_layout_transforms(add, [lambda i, j: (i, j // 4, j % 4)])
    assert {block: sorted(maps) for block, (_, maps) in found.items()} == {
        "scaled": ["A", "scaled"], "C": ["C", "b", "scaled"]}
    assert outputs(found["C"][1]["b"]) == "i0//4,i0%4"
    assert outputs(found["C"][0]) == "vi,vj//4,vj%4"
    block, maps = relax.analysis.suggest_layout_transforms(total, [lambda i, j: (j, i)])["C"]
    assert (outputs(block), outputs(maps["A"]), outputs(maps["C"])) == (
        "vj,vi,vk", "i1,i2,i0", "j,i")


def operators_with_defaults():
    """Calls of each operator of op_defaults.def: without attributes, and with all of that file."""
    for op, text in re.findall(r'^DEFAULTS\("([^"]*)", (.*)\)$',
                               (ROOT / "src/ir/op_defaults.def").read_text(), re.M):
        text = text.replace("POOL_DEFAULTS", 'WINDOW_DEFAULTS "ceil_mode=0 count_include_pad=0 out_layout=@layout "')
        text = text.replace("CONV_DEFAULTS", 'WINDOW_DEFAULTS "groups=1 out_layout=@data_layout out_dtype=void "')
        text = text.replace("WINDOW_DEFAULTS", '"strides=1 padding=0 dilation=1 "').replace('"', "")
        stated = dict(pair.split("=") for pair in text.split())
        rank = next((int(digit) for digit in op if digit.isdigit()), 1)
        for key in ("strides", "padding", "dilation", "output_padding"):
            if key in stated:
                stated[key] = str([int(stated[key])] * rank * (1 + (key == "padding")))
        for key, value in stated.items():
            if value.startswith("@"):
                stated[key] = stated[value[1:]]
        keywords = "".join(f", {key}=" + (value if re.match(r"[-\d\[]|None", value) else repr(value))
                           for key, value in stated.items())
        yield op, rank, keywords


def test_attributes_left_out():
    functions = ["", ""]
    for number, (op, rank, keywords) in enumerate(operators_with_defaults()):
        x = [1, 4, 9, 8, 7][:2 + rank]
        w = [4, 4, 3, 2, 2][:2 + rank]
        first = {"nn.max": f", pool_size={[2] * rank}", "nn.avg": f", pool_size={[2] * rank}",
                 "layout": ", index_map=lambda i, j, k: (k, j, i)"}.get(op[:6], "")
        values = {"nn.con": "x, w", "matmul": "x, x", "concat": "(x, x)"}.get(op[:6], "x")
        if op == "matmul":
            x = [3, 4, 4]
        for side, more in enumerate(("", keywords)):
            functions[side] += f"""
    @R.function
    def f{number}(x: R.Tensor({tuple(x)}, "float32"), w: R.Tensor({tuple(w)}, "float32")):
        return R.{op}({values}{first}{more})
"""
    modules = [from_source("from pleat.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:"
                           + texts) for texts in functions]
    assert pleat.ir.structural_equal(*modules)
    assert pleat.ir.structural_hash(modules[0]) == pleat.ir.structural_hash(modules[1])
    legal = [relax.transform.LegalizeOps()(module) for module in modules]
    pleat.ir.assert_structural_equal(*legal)


def test_equal_and_different_attributes():
    def module(call):
        return from_source(f"""
from pleat.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4, 9, 8), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
        return {call}
""")

    equal = [("R.layout_transform(x, index_map=lambda n, c, h, w: (n, c // 4, h, w, c % 4))",
              "R.layout_transform(x, index_map=lambda a, b, c, d: [a, b // 4, c, d, b % 4])"),
             ("R.nn.conv2d(x, w, strides=[2, 2])", "R.nn.conv2d(x, w, strides=[2, 2], padding=[0, 0, 0, 0])"),
             ('R.nn.conv2d(x, w, data_layout="NCHW", out_layout="NCHW")', "R.nn.conv2d(x, w)")]
    different = [("R.layout_transform(x, index_map=lambda n, c, h, w: (n, c, h, w))",
                  "R.layout_transform(x, index_map=lambda n, c, h, w: (c, n, h, w))"),
                 ("R.nn.conv2d(x, w, padding=[1, 1, 1, 1])", "R.nn.conv2d(x, w)"),
                 ("R.nn.conv2d(x, w, strides=[2, 1])", "R.nn.conv2d(x, w, strides=[2, 2])"),
                 ('R.nn.conv2d(x, w, out_layout="NHWC")', "R.nn.conv2d(x, w)"),
                 ("R.sum(x, keepdims=True)", "R.sum(x)"), ("R.sum(x, axis=[0])", "R.sum(x)")]
    for pairs, wanted in ((equal, True), (different, False)):
        for a, b in pairs:
            assert pleat.ir.structural_equal(module(a), module(b)) is wanted, (a, b)
            assert pleat.ir.structural_equal(module(b), module(a)) is wanted, (b, a)


def test_what_is_refused():
    module = from_source(CONV)
    with pytest.raises(pleat.PleatError, match="NHWQ"):
        relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWQ", "OHWI"]})(module)
    with pytest.raises(pleat.PleatError, match="the result is|whose result is 'lv99'"):
        pleat.ir.transform.run_passes(
            module, 'ConvertLayout({}, calls={"main.lv99": ["NHWC", "OHWI"]})')
    with pytest.raises(pleat.PleatError, match="sideways|direction"):
        relax.transform.FlowLayoutRewrites("sideways")(module)
    with pytest.raises(pleat.PleatError, match="layouts"):
        relax.analysis.suggest_layout_transforms(add, [lambda i: i] * 5)
    with pytest.raises(pleat.PleatError, match=r"not proved to be one to one on 'C': no: \[0, 0\] and"):
        relax.analysis.suggest_layout_transforms(add, [lambda i, j: j])
    with pytest.raises(pleat.PleatError, match="number 0 is of 'b', which 'add' does not write"):
        relax.analysis.suggest_layout_transforms(add, [lambda i: i, lambda i, j: (i, j)])
    with pytest.raises(pleat.PleatError, match="ConvertLayout has no argument 'layouts'; it has: desired"):
        pleat.ir.transform.run_passes(module, "ConvertLayout(layouts={})")
    with pytest.raises(TypeError):
        tir.transform.FlattenBuffer(3)


def test_beside_tvm(tmp_path):
    """TVM's ConvertLayout of the same network has as many rewrites and the same attributes."""
    tvm = pytest.importorskip("tvm")
    path = tmp_path / "network.py"
    path.write_text(CONV.replace("from pleat.script import ir as I, relax as R, tir as T",
                                 "from tvm.script import ir as I, relax as R"))
    spec = importlib.util.spec_from_file_location("network", path)
    network = sys.modules["network"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    layouts = {"relax.nn.conv2d": ["NHWC", "OHWI"]}
    theirs = tvm.relax.transform.ConvertLayout(layouts)(network.Module).script()
    ours = relax.transform.ConvertLayout(layouts)(from_source(CONV))
    assert rewrites(ours) == theirs.count("R.permute_dims") + theirs.count("R.layout_transform")
    for word in ('data_layout="NHWC"', 'kernel_layout="OHWI"', 'layout="NHWC", out_layout="NHWC"',
                 "axis=3", "axis=[1]"):
        assert ours.script().count(word) == theirs.count(word) > 0


CHAIN = """
from pleat.script import relax as R
@R.function
def main(x: R.Tensor((2, 3, 9, 7), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
         w2: R.Tensor((5, 8, 3, 3), "float32"), r: R.Tensor((2, 4, 9, 7), "float32")):
    a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
    b = R.nn.relu(R.add(a, r))
    c = R.concat((b, R.exp(a)), axis=1)
    d = R.multiply(c, R.max(c, axis=[2, 3], keepdims=True))
    return R.nn.conv2d(d, w2, padding=[1, 1, 1, 1])
"""


def test_layouts_flow_through_regions():
    """That R.add follows needs as many bytes as it saves; that all nodes after it do needs none."""
    convert = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})
    after = convert(from_source(CHAIN))
    assert rewrites(after) == 5  # the inputs, and the result
    assert re.search(r"R.permute_dims\(r, axes=\[0, 2, 3, 1\]", after.script())


def test_two_transposes_are_one():
    text = """
from pleat.script import relax as R
@R.function
def main(x: R.Tensor((2, 3, 9, 7), "float32")):
    a = R.permute_dims(x, axes=[0, 2, 3, 1])
    return R.permute_dims(a, axes=[3, 2, 1, 0])
"""
    found = relax.transform.OptimizeLayoutTransform()(from_source(text)).script()
    assert found.count("R.permute_dims") == 1 and "axes=[1, 3, 2, 0]" in found


def random_network(random):
    """Convolutions with chains of other operators between them."""
    values, lines = ["x"], []

    def add(text):
        lines.append(f"    v{len(lines)} = {text}\n")
        values.append(f"v{len(lines) - 1}")
    for _ in range(random.randint(4, 14)):
        kind = random.choice(["conv", "add", "relu", "mean", "softmax", "pad", "cat", "flip", "pool"])
        x, y = random.choice(values[-4:]), random.choice(values)
        add({"conv": f"R.nn.conv2d({x}, w, padding=[1, 1, 1, 1])", "relu": f"R.nn.relu({x})",
             "add": f"R.add({x}, {y})", "softmax": f"R.nn.softmax({x}, axis=1)",
             "mean": f"R.subtract({x}, R.mean({y}, axis=[2, 3], keepdims=True))",
             "pad": f"R.strided_slice(R.nn.pad({x}, pad_width=[0, 0, 0, 0, 1, 0, 0, 0]), axes=[2], "
                    "begin=[0], end=[6])",
             "cat": f"R.strided_slice(R.concat(({x}, {y}), axis=1), axes=[1], begin=[2], end=[6])",
             "flip": f"R.flip({x}, axis=3)",
             "pool": f"R.nn.max_pool2d({x}, pool_size=[3, 3], padding=[1, 1, 1, 1])"}[kind])
    return ('from pleat.script import relax as R\n@R.function\ndef main(x: R.Tensor((2, 4, 6, 5), "float32"), '
            'w: R.Tensor((4, 4, 3, 3), "float32")):\n' + "".join(lines) + f"    return {values[-1]}\n")


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_are_the_same_in_other_layouts(seed):
    np = pytest.importorskip("numpy")
    text = random_network(random.Random(seed))
    numbers = np.random.default_rng(seed)
    x, w = (numbers.standard_normal(shape, dtype=np.float32) for shape in [(2, 4, 6, 5), (4, 4, 3, 3)])
    wanted = pleat.compile(text.encode(), cache=False, quick=True)(x, w)
    for layouts in (["NHWC", "OHWI"], ["NCHW2c", "OIHW2o"]):
        module = relax.transform.ConvertLayout({"relax.nn.conv2d": layouts})(from_source(text))
        assert rewrites(module) <= 1 + 2 * text.count("conv2d")
        found = pleat.compile(module, cache=False, quick=True)(x, w)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


FUSED = """
from pleat.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 8), "float32"), w: R.Tensor((8, 5), "float32"), b: R.Tensor((5,), "float32")):
        a = R.nn.relu(R.add(R.matmul(x, w), b))
        c = R.exp(R.permute_dims(a))
        d = R.sigmoid(R.nn.softmax(c, axis=0))
        e = R.cumsum(R.sqrt(R.sum(R.multiply(d, R.const(2.0, "float32")), axis=[1])), axis=0)
        return (d, R.add(e, R.topk(e, k=1, ret_type="values")))
"""


def test_calls_of_programs_are_fused():
    np = pytest.importorskip("numpy")
    module = from_source(FUSED)
    annotated = relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(module))
    patterns = {name: program.attrs["op_pattern"] for name, program in annotated.functions.items()
                if name != "main"}
    assert patterns == {"matmul": 4, "add": 0, "relu": 0, "permute_dims": 2, "exp": 0, "softmax": 4,
                        "sigmoid": 0, "multiply": 0, "sum": 3, "sqrt": 0, "cumsum": 8, "topk": 8, "add1": 0}
    parts = relax.transform.FuseOps()(annotated)
    assert parts.script().count('R.func_attr({"Primitive": True})') == 4
    assert "cls.fused_matmul_add_relu(x, w, b)" in parts.script()
    assert "Primitive" not in relax.transform.FuseOps(0)(annotated).script()
    fused = relax.transform.FuseTIR()(parts)
    names = [name for name in fused.functions if name != "main"]
    assert sorted(names) == ["add1", "cumsum", "fused_matmul_add_relu", "fused_multiply_sum",
                             "fused_permute_dims_exp", "fused_softmax_sigmoid", "sqrt", "topk"]
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(shape, dtype=np.float32) for shape in [(3, 8), (8, 5), (5,)]]
    for found, wanted in zip(pleat.compile(fused, cache=False)(*arrays),
                             pleat.compile(module, cache=False)(*arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def primitive_sizes(script):
    return sorted(part.count("R.call_tir") for part in script.split("@R.function")[1:] if "Primitive" in part)


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_are_fused(seed):
    np = pytest.importorskip("numpy")
    text = random_network(random.Random(seed))
    fused = pleat.ir.transform.run_passes(from_source(text), "LegalizeOps,FuseOps,FuseTIR")
    assert "Primitive" not in fused.script()
    numbers = np.random.default_rng(seed)
    x, w = (numbers.standard_normal(shape, dtype=np.float32) for shape in [(2, 4, 6, 5), (4, 4, 3, 3)])
    wanted = pleat.compile(text.encode(), cache=False, quick=True)(x, w)
    found = pleat.compile(fused, cache=False, quick=True)(x, w)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


def primitive_sizes(script):
    return sorted(part.count("R.call_tir") for part in script.split("@R.function")[1:] if "Primitive" in part)


@pytest.mark.parametrize("seed", range(6))
def test_groups_are_those_of_tvm(seed):
    tvm = pytest.importorskip("tvm")
    signature, *body, end = random_network(random.Random(seed)).splitlines()[2:]
    result = end.split()[1]
    text = "\n".join(["from pleat.script import ir as I, relax as R", "@I.ir_module", "class Module:",
                      "    @R.function", f"    {signature}", "        with R.dataflow():",
                      *[f"        {line}" for line in body], f"            R.output({result})",
                      f"        return {result}", ""])
    legal = pleat.ir.transform.run_passes(from_source(text), "DeadCodeElimination,LegalizeOps")
    module = tvm.script.from_source(legal.script(newer_names=True))
    theirs = tvm.relax.transform.FuseOps()(tvm.relax.transform.AnnotateTIROpPattern()(module))
    assert primitive_sizes(relax.transform.FuseOps()(legal).script()) == primitive_sizes(theirs.script())


@pytest.mark.parametrize("condition", [True, False])
def test_a_condition_of_run_time(condition):
    """Only the elements of the branch that the condition selects are in the result."""
    np = pytest.importorskip("numpy")
    path = ROOT / "tests" / "cases" / "cli" / "graph_casts.py"
    x = np.random.default_rng(5).standard_normal((3, 5)).astype(np.float32)
    model = pleat.compile(path, func="both", threads=1)
    np.testing.assert_allclose(model(np.array(condition), x), 6 * x if condition else x / 2, 1e-6)
