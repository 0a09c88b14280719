# SPDX-License-Identifier: Apache-2.0
"""The intrinsic of AMD's devices: a sum of four products of signed bytes."""
from pleat.tir.tensor_intrin.dots import register_dot4

AMDGPU_SDOT4_INTRIN = register_dot4("sdot4", ("int8", "int8", "int32"))
