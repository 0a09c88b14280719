# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of Hexagon processors: 32 sums of four products of bytes, or of two products of words."""
from pleat.tir.tensor_intrin.dots import register_dots

VRMPY_u8u8i32_INTRIN = register_dots("dot_32x4_u8u8i32_vrmpy", 32, 4, ("uint8", "uint8", "int32"))
VRMPY_u8i8i32_INTRIN = register_dots("dot_32x4_u8i8i32_vrmpy", 32, 4, ("uint8", "int8", "int32"))
VDMPY_i16i16i32_INTRIN = register_dots("dot_product_32x2_i16i16i32_vdmpy", 32, 2, ("int16", "int16", "int32"))
