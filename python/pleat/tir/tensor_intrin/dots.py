# SPDX-License-Identifier: Apache-2.0
"""Sums of products of small integers: C[i] += A[0] * B[i, 0] + A[1] * B[i, 1] + …, exact modulo 2^32.

Where hardware has an instruction for four bytes, the implementation is T.dot_bytes, of unsigned numbers by signed
ones; where it has one for two words, T.dot_words. Both run on every target."""
from pleat.script import tir as T
from pleat.tir.schedule import TensorIntrin

_TOP_BITS, _ONES = 0x80808080 - (1 << 32), 0x01010101


def _replicated(number, lanes):
    return T.int32(number) if lanes == 1 else T.broadcast(T.int32(number), lanes)


def _by_bytes(a, b, signed_a, signed_b, lanes):
    """The sum of four products for each pair of numbers. A byte of the other sign, s, is s + 128 - 128, of which
    s + 128 has another top bit than s."""
    flip, ones = _replicated(_TOP_BITS, lanes), _replicated(_ONES, lanes)
    if signed_a and not signed_b:
        return T.dot_bytes(b, a)
    if signed_a:
        return T.dot_bytes(a ^ flip, b) - T.dot_bytes(ones, b) * _replicated(128, lanes)
    if not signed_b:
        return T.dot_bytes(a, b ^ flip) + T.dot_bytes(a, ones) * _replicated(128, lanes)
    return T.dot_bytes(a, b)


def _words_of(number, signed, lanes, is_high):
    """The low or the high byte of each 16 bits, as words."""
    words = T.reinterpret(f"{'' if signed else 'u'}int16x{2 * lanes}", number)
    eight = T.broadcast(T.Cast("int16" if signed else "uint16", 8), 2 * lanes)
    word = words >> eight if is_high else (words << eight) >> eight
    return T.reinterpret("int32" if lanes == 1 else f"int32x{lanes}", word)


def _by_words(a, b, signed_a, signed_b, lanes):
    low, high = (T.dot_words(_words_of(a, signed_a, lanes, k), _words_of(b, signed_b, lanes, k)) for k in (0, 1))
    return low + high


def _summed(a, b, types, lanes, has_byte_dots):
    if types[0].endswith("16"):
        return T.dot_words(a, b)
    signed = [not dtype.startswith("u") for dtype in types[:2]]
    total = (_by_bytes if has_byte_dots else _by_words)(a, b, *signed, lanes)
    return total if types[2] == "int32" else T.Cast(types[2] if lanes == 1 else f"{types[2]}x{lanes}", total)


def _loops(lanes, depth, types, scope):
    @T.prim_func
    def description(A: T.Buffer((depth,), types[0], offset_factor=1, scope=scope),
                    B: T.Buffer((lanes, depth), types[1], offset_factor=1, scope=scope),
                    C: T.Buffer((lanes,), types[2], offset_factor=1, scope=scope)):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:depth], B[0:lanes, 0:depth])
            T.writes(C[0:lanes])
            for i, k in T.grid(lanes, depth):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.Cast(types[2], A[vk]) * T.Cast(types[2], B[vi, vk])
    return description


def _vectors(lanes, depth, types, scope, has_byte_dots):
    def products(a, b):
        every = T.broadcast(T.reinterpret("int32", a), lanes)
        return _summed(every, T.reinterpret(f"int32x{lanes}", b), types, lanes, has_byte_dots)

    @T.prim_func
    def implementation(A: T.Buffer((depth,), types[0], offset_factor=1, scope=scope), b: T.handle,
                       C: T.Buffer((lanes,), types[2], offset_factor=1, scope=scope)):
        offset = T.int32()
        B = T.match_buffer(b, (lanes, depth), types[1], elem_offset=offset, scope=scope)
        with T.block("root"):
            T.reads(C[0:lanes], A[0:depth], B[0:lanes, 0:depth])
            T.writes(C[0:lanes])
            rows = T.decl_buffer((lanes * depth,), types[1], data=B.data, elem_offset=offset, scope=scope)
            C[0:lanes] = C[0:lanes] + products(A[0:depth], rows[0:lanes * depth])
    return implementation


def register_dots(name, lanes, depth, types, scope="global", has_byte_dots=True):
    """Registers the sums of `lanes` times `depth` products; `types` are those of A, B and C. Returns the name."""
    TensorIntrin.register(name, _loops(lanes, depth, types, scope),
                          _vectors(lanes, depth, types, scope, has_byte_dots), override=True)
    return name


def _one_loop(types):
    @T.prim_func
    def description(A: T.Buffer((4,), types[0], offset_factor=1, align=4, scope="shared"),
                    B: T.Buffer((4,), types[1], offset_factor=1, align=4, scope="shared"),
                    C: T.Buffer((1,), types[2], offset_factor=1, align=4, scope="local")):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for k in range(4):
                with T.block("update"):
                    vk = T.axis.remap("R", [k])
                    C[0] = C[0] + T.Cast(types[2], A[vk]) * T.Cast(types[2], B[vk])
    return description


def _one_sum(types):
    def products(a, b):
        return _summed(T.reinterpret("int32", a), T.reinterpret("int32", b), types, 1, True)

    @T.prim_func
    def implementation(A: T.Buffer((4,), types[0], offset_factor=1, align=4, scope="shared"),
                       B: T.Buffer((4,), types[1], offset_factor=1, align=4, scope="shared"),
                       C: T.Buffer((1,), types[2], offset_factor=1, align=4, scope="local")):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + products(A[0:4], B[0:4])
    return implementation


def register_dot4(name, types):
    """Registers the sum of four products of bytes in shared memory, added to a number in local memory."""
    TensorIntrin.register(name, _one_loop(types), _one_sum(types), override=True)
    return name
