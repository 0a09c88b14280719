# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of Arm processors: four sums of four products, with dot product instructions and without."""
from pleat.tir.tensor_intrin.dot_product_common import (  # noqa: F401 (TVM has the names here)
    DP4A_S8S8S32_INTRIN, DP4A_S8U8S32_INTRIN, DP4A_U8S8S32_INTRIN, DP4A_U8U8U32_INTRIN)
from pleat.tir.tensor_intrin.dots import register_dots

ARM_DOT_4x4_i8_SDOT_INTRIN = register_dots("dot_4x4_i8i8s32_sdot", 4, 4, ("int8", "int8", "int32"))
ARM_DOT_4x4_i8_NEON_INTRIN = register_dots("dot_4x4_i8i8s32_neon", 4, 4, ("int8", "int8", "int32"),
                                           has_byte_dots=False)
ARM_DOT_4x4_u8_UDOT_INTRIN = register_dots("dot_4x4_u8u8u32_udot", 4, 4, ("uint8", "uint8", "uint32"))
ARM_DOT_4x4_u8_HDOT_INTRIN = register_dots("dot_4x4_u8u8i32_hdot", 4, 4, ("uint8", "uint8", "int32"))
