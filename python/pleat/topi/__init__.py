# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions of common operators, with TVM's names: each takes tensors of pleat.te and gives one.

    A = te.placeholder((m, k), name="A")
    B = topi.nn.softmax(topi.transpose(A))
    program = te.create_prim_func([A, B])

pleat.topi.nn has those of neural networks."""
from pleat.topi import nn, utils
from pleat.topi.elementwise import (abs, acos, acosh, add, asin, asinh, atan, atan2, atanh,  # noqa: A004
                                    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, cast, ceil, clip,
                                    cos, cosh, divide, elemwise_sum, equal, erf, exp, floor, floor_divide, floor_mod,
                                    full, full_like, greater, greater_equal, identity, isinf, isnan,
                                    left_shift, less, less_equal, log, log2, log10, logical_and,
                                    logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply,
                                    negative, not_equal, power, right_shift, round, rsqrt, sigmoid, sign,
                                    sin, sinh, sqrt, subtract, tan, tanh, trunc, where)
from pleat.topi.gather import gather, gather_nd, meshgrid, one_hot, reverse_sequence, sequence_mask, trilu
from pleat.topi.reduction import all, any, argmax, argmin, max, min, prod, sum  # noqa: A004
from pleat.topi.transform import (arange, broadcast_to, concatenate, expand_dims, flip,
                                  matmul, repeat, reshape, split, squeeze, stack, strided_slice, take,
                                  tile, transpose)

__all__ = ["abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "asin", "asinh",
           "atan", "atan2", "atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
           "broadcast_to", "cast", "ceil", "clip", "concatenate", "cos", "cosh", "divide", "elemwise_sum", "equal", "erf",
           "exp", "expand_dims", "flip", "floor", "floor_divide", "floor_mod", "full", "full_like", "gather", "gather_nd",
           "greater", "greater_equal", "identity", "isinf", "isnan", "left_shift",
           "less", "less_equal", "log", "log2", "log10", "logical_and", "logical_not", "logical_or",
           "logical_xor", "matmul", "max", "maximum", "meshgrid", "min", "minimum", "mod", "multiply", "negative",
           "nn", "not_equal", "one_hot", "power", "prod", "repeat", "reshape", "reverse_sequence", "right_shift", "round", "rsqrt",
           "sequence_mask", "sigmoid", "sign", "sin", "sinh", "split", "sqrt", "squeeze", "stack", "strided_slice",
           "subtract", "sum", "take", "tan", "tanh", "tile", "transpose", "trilu", "trunc",
           "utils", "where"]


def __getattr__(name):
    if name in ("cuda", "generic", "x86"):  # schedules, which import more
        import importlib
        return importlib.import_module(f"pleat.topi.{'cuda' if name == 'cuda' else 'generic'}")
    raise AttributeError(f"module 'pleat.topi' has no attribute {name!r}")
