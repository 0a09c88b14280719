# SPDX-License-Identifier: Apache-2.0
"""Intrinsics for tensorize by TVM's names, and the loops of a block by those of a description."""
import numpy
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir.schedule import analysis  # noqa: E402
from pleat.tir.schedule.transform import tile_with_tensor_intrin  # noqa: E402
from pleat.tir.tensor_intrin import arm_cpu, cuda, hexagon, rocm, x86  # noqa: E402


def packed_matmul(m, n, k, types, lanes, depth):
    """Rows of X by rows of W, which is stored in tiles of lanes x depth."""
    X = te.placeholder((m, k), types[0], name="X")
    W = te.placeholder((n // lanes, k // depth, lanes, depth), types[1], name="W")
    r = te.reduce_axis((0, k), "r")
    return te.create_prim_func([X, W, te.compute((m, n), lambda i, j: te.sum(
        X[i, r].astype(types[2]) * W[j // lanes, r // depth, j % lanes, r % depth].astype(types[2]), r), "C")])


def random_of(dtype, shape, random):
    limits = numpy.iinfo(dtype)
    return random.choice([limits.min, limits.max, 0, 1, -1 if limits.min else 3, 77], shape).astype(dtype)


@pytest.mark.parametrize("name, lanes, depth, types", [
    (x86.VNNI_DOT_16x4_INTRIN, 16, 4, ("uint8", "int8", "int32")),
    (x86.AVX512_DOT_16x4_INTRIN, 16, 4, ("uint8", "int8", "int32")),
    (arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN, 4, 4, ("int8", "int8", "int32")),
    (arm_cpu.ARM_DOT_4x4_u8_UDOT_INTRIN, 4, 4, ("uint8", "uint8", "uint32")),
    (hexagon.VDMPY_i16i16i32_INTRIN, 32, 2, ("int16", "int16", "int32"))])
def test_dot_products(name, lanes, depth, types):
    sch = tir.Schedule(packed_matmul(3, 2 * lanes, 3 * depth, types, lanes, depth))
    block = sch.get_block("C")
    inner = tile_with_tensor_intrin(sch, block, name)
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    sch.tensorize(inner, name)
    random = numpy.random.default_rng(5)
    x, w = random_of(types[0], (3, 3 * depth), random), random_of(types[1], (2, 3, lanes, depth), random)
    out = numpy.zeros((3, 2 * lanes), types[2])
    pleat.build(sch.mod, cache=False)(x, w, out)
    rows = w.transpose(0, 2, 1, 3).reshape(2 * lanes, 3 * depth).astype("int64")
    assert (out == (x.astype("int64") @ rows.T).astype(types[2])).all()


def test_steps_beside_blocks_that_declare_buffers():
    """A declared buffer inside of a view is a part of its region, and another one may access all of the memory."""
    @T.prim_func
    def main(X: T.Buffer((3, 8), "int32"), C: T.Buffer((3, 8), "int32")):
        for i, j in T.grid(3, 8):
            with T.block("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = 0
        for i in range(3):
            with T.block("update"):
                vi = T.axis.remap("S", [i])
                T.reads(X[vi, 0:8], C[vi, 0:8])
                T.writes(C[vi, 0:8])
                A = T.match_buffer(X[vi, 0:8], (8,), "int32", offset_factor=1)
                row = T.decl_buffer((8,), "int32", data=A.data, elem_offset=A.elem_offset)
                C[vi, 0:8] = C[vi, 0:8] + row[0:8]
        for i in range(3):
            with T.block("whole"):
                vi = T.axis.remap("S", [i])
                T.reads(X[vi, 0:8], C[vi, 0:8])
                T.writes(C[vi, 0:8])
                flat = T.decl_buffer((24,), "int32", data=X.data)
                C[vi, 0:8] = C[vi, 0:8] + flat[0:8]
    sch = tir.Schedule(main)
    sch.vectorize(sch.get_loops("init")[1])
    assert "row = T.decl_buffer(" in sch.mod.script()
    x, c = numpy.arange(24, dtype="int32").reshape(3, 8), numpy.ones((3, 8), "int32")
    pleat.build(sch.mod, cache=False)(x, c)
    assert (c == x + x[0]).all()


@pytest.mark.parametrize("name", [rocm.AMDGPU_SDOT4_INTRIN, arm_cpu.DP4A_S8S8S32_INTRIN, arm_cpu.DP4A_S8U8S32_INTRIN,
                                  arm_cpu.DP4A_U8S8S32_INTRIN, arm_cpu.DP4A_U8U8U32_INTRIN,
                                  arm_cpu.ARM_DOT_4x4_i8_NEON_INTRIN, arm_cpu.ARM_DOT_4x4_u8_HDOT_INTRIN,
                                  hexagon.VRMPY_u8u8i32_INTRIN, hexagon.VRMPY_u8i8i32_INTRIN])
def test_descriptions_are_tensorized(name):
    sch = tir.Schedule(tir.TensorIntrin.get(name).desc)
    sch.tensorize(sch.get_loops("update")[0], name)  # runs both functions, and compares
    assert "T.dot_" in sch.func.script()


def matmul(n, m, k, dtype):
    A, B = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), "r")
    return tir.Schedule(te.create_prim_func([A, B, te.compute((n, m), lambda i, j: te.sum(
        A[i, r].astype("float32") * B[r, j].astype("float32"), r), "C")]))


def test_loops_that_correspond_to_those_of_a_description():
    name = cuda.WMMA_SYNC_16x16x16_f16f16f32_INTRIN
    desc, sch = tir.TensorIntrin.get(name).desc, matmul(32, 48, 16, "float16")
    sch.reorder(*reversed(sch.get_loops("C")))
    block = sch.get_block("C")
    found = analysis.get_tensorize_loop_mapping(sch, block, desc)
    assert [(place.stmt.loop_var.name, loop.loop_var.name) for place, loop in found.loop_map.items()] == [
        ("i", "i"), ("j", "j"), ("r", "k")] and found.block_iter_paddings is None
    odd = matmul(17, 32, 30, "float16")
    theirs = odd.get_block("C")
    assert analysis.get_tensorize_loop_mapping(odd, theirs, desc) is None
    padded = analysis.get_tensorize_loop_mapping(odd, theirs, desc, allow_padding=True)
    assert padded.block_iter_paddings == [16, 1, 16]
    assert tile_with_tensor_intrin(odd, theirs, name) is None
    mapped = analysis.get_auto_tensorize_mapping_info(odd, theirs, desc).mappings
    assert [str(one) for one in mapped] == [str(tir.IndexMap.from_func(lambda v_i, v_j, v_r: (v_i, v_j, v_r)))]
    assert analysis.is_output_block(odd, theirs) and analysis.has_block(odd, "C") and not analysis.has_block(odd, "D")


def test_layout_in_the_order_of_the_loops():
    i, j = tir.Var("i", ty="int32"), tir.Var("j", "int32")
    loops = [tir.For(var, 0, extent, 0, tir.Evaluate(0)) for var, extent in ((i, 32), (j, 64))]

    def suggested(shape, *indices):
        return analysis.suggest_index_map(tir.decl_buffer(shape), list(indices), loops)
    tiles = suggested([8, 256], i // 16 * 4 + j // 16, i % 16 * 16 + j % 16)
    assert tiles.is_equivalent_to(tir.IndexMap.from_func(lambda x, y: (x // 4, y // 16, x % 4, y % 16)))
    assert suggested([64], j).is_equivalent_to(tir.IndexMap.from_func(lambda x: x))
    assert suggested([100], i + j) is None and suggested([128], j * 2) is None
