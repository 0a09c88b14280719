# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of x86-64 processors: 16 sums of four products, with VNNI's instruction and without."""
from pleat.tir.schedule import TensorIntrin
from pleat.tir.tensor_intrin.dots import register_dots

_TYPES = "uint8", "int8", "int32"
VNNI_DOT_16x4_INTRIN = register_dots("dot_16x4_vnni", 16, 4, _TYPES)
AVX512_DOT_16x4_INTRIN = register_dots("dot_16x4_avx512", 16, 4, _TYPES, has_byte_dots=False)
dot_product_16x4_u8i8i32_desc = TensorIntrin.get(VNNI_DOT_16x4_INTRIN).desc
