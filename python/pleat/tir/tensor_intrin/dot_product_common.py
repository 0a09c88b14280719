# SPDX-License-Identifier: Apache-2.0
"""Sums of four products of bytes, which several kinds of devices have as an instruction."""
from pleat.tir.tensor_intrin.dots import register_dot4

DP4A_S8S8S32_INTRIN = register_dot4("dp4a_s8s8s32", ("int8", "int8", "int32"))
DP4A_U8S8S32_INTRIN = register_dot4("dp4a_u8s8s32", ("uint8", "int8", "int32"))
DP4A_S8U8S32_INTRIN = register_dot4("dp4a_s8u8s32", ("int8", "uint8", "int32"))
DP4A_U8U8U32_INTRIN = register_dot4("dp4a_u8u8u32", ("uint8", "uint8", "uint32"))
