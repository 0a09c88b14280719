# SPDX-License-Identifier: Apache-2.0
"""Functions of expressions with TVM's names: each makes a node (pleat.tir.nodes).

Two operands get one type as in TVM: an integer becomes floating-point beside such a number, and the
narrower of two types becomes the wider one."""
import builtins
import functools
import inspect
import math
import re

from pleat import _expression
from pleat.data_type import full_name
from pleat.script._values import Value
from pleat.tir import nodes
from pleat.tir.bounds import bounds_of
from pleat.tir.nodes import KINDS, Node, PrimExpr, const

# The functions of one number.
UNARY = ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp",
         "exp10", "exp2", "floor", "log", "log10", "log1p", "log2", "nearbyint", "popcount", "round",
         "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")
TESTS = ("isnan", "isinf", "isfinite")
BINARY = ("atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "dot_bytes", "dot_words",
          "fmod", "hypot", "nextafter", "power", "shift_left", "shift_right")
# Operations that are called with their operands as they are, and the types of their results, or the numbers of
# the operands that have these.
PLAIN_CALLS = {"anylist_getitem": "handle", "anylist_resetitem": "int32", "anylist_setitem_call_cpacked": "int32",
               "anylist_setitem_call_packed": "int32", "end_profile_intrinsic": "void", "filter": "bool",
               "handle_add_byte_offset": "handle", "ignore_loop_partition": "bool", "isnullptr": "bool",
               "lookup_param": "handle", "masked_store": "void", "q_multiply_shift": "int32",
               "q_multiply_shift_per_axis": "int32", "selector": 0, "start_profile_intrinsic": "void",
               "thread_return": "void", "tvm_bmma_sync": "handle",
               "tvm_fill_fragment": "handle", "tvm_load_matrix_sync": "handle", "tvm_mma_sync": "handle",
               "tvm_stack_make_array": "handle", "tvm_stack_make_shape": "handle",
               "tvm_store_matrix_sync": "handle", "tvm_struct_set": "int32", "tvm_thread_allreduce": "handle",
               "tvm_global_barrier_kinit": "void", "tvm_kernel_replace_point": "void", "tvm_stack_alloca": "handle",
               "tvm_thread_invariant": 0, "tvm_throw_last_error": "handle", "tvm_tuple": "handle",
               "tvm_warp_activemask": "uint32", "tvm_warp_shuffle": 1, "tvm_warp_shuffle_down": 1,
               "tvm_warp_shuffle_up": 1, "tvm_warp_shuffle_xor": 1,
               "TVMBackendAllocWorkspace": "handle", "TVMBackendFreeWorkspace": "int32"}
__all__ = [*UNARY, *TESTS, *BINARY, *PLAIN_CALLS, "Return", "Select", "add", "address_of", "all", "any", "bitwise_not",
           "assume", "call_extern", "call_intrin", "call_llvm_intrin", "call_llvm_pure_intrin", "call_packed",
           "call_pure_extern", "ceildiv", "clz", "const",
           "div", "dp4a", "floordiv", "floormod", "if_then_else", "indexdiv", "indexmod", "infinity", "ldexp",
           "is_buffer_var", "likely", "get_active_lane_mask", "logaddexp", "masked_load", "max", "max_value", "min", "min_value", "multiply",
           "pow", "reinterpret", "ret", "subtract", "truncdiv", "truncmod", "tvm_access_ptr", "tvm_storage_sync",
           "tvm_struct_get", "type_annotation", "undef",
           "vectorcombine", "vectorhigh", "vectorlow", "vscale"]


def _of_script(value):
    return isinstance(value, Value) or (isinstance(value, (tuple, list)) and
                                        builtins.any(map(_of_script, value)))


def _or_in_script(function, name):
    """The function; of expressions of a script that is read, the call of T.NAME in it, and of those of an
    index map, the expression there."""
    of_indices = _expression.FUNCTIONS.get(name)

    @functools.wraps(function)
    def call(*arguments, **named):
        if named:
            arguments = inspect.signature(function).bind(*arguments, **named).args
        if builtins.any(map(_of_script, arguments)):
            return Value(f"T.{name}")(*arguments)
        if of_indices and builtins.any(isinstance(a, _expression.Expr) for a in arguments):
            return of_indices(*arguments)
        return function(*arguments)
    return call


def as_expression(value, dtype=None):
    """A Python number as an expression of a type, where one is given; what becomes an expression
    (an element of a tensor without axes) as that; an expression is returned unchanged."""
    if hasattr(value, "as_expression"):
        value = value.as_expression()
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, (bool, int, float)):
        return const(value, dtype)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return const(value.item(), dtype)
    raise TypeError(f"expected an expression or a number, not {type(value).__name__}")


def same_type(a, b):
    """Two operands as expressions of one type; a number takes the type of the other operand."""
    if not _is_number(a):
        a = as_expression(a)
        b = as_expression(b, _type_of_number(a.dtype, b))
    else:
        b = as_expression(b)
        a = as_expression(a, _type_of_number(b.dtype, a))
    return nodes.matched(a, b)


def _is_number(value):
    return not isinstance(value, Node) and not hasattr(value, "as_expression")


def _type_of_number(dtype, number):
    """The type of a Python number beside an operand of a type."""
    is_fraction = isinstance(number, float) and "float" not in dtype
    return "float32" if is_fraction else dtype


def _unary(name, dtype=None):
    def make(x):
        x = as_expression(x)
        if "int" in x.dtype and name not in ("abs", "popcount", *TESTS):
            x = x.astype("float32")
        return KINDS["Call"](dtype or x.dtype, f"tir.{name}", [x])
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name} of a number."
    return make


def _binary(name):
    operation = {"power": "pow"}.get(name, name)

    def make(x, y):
        x, y = same_type(x, y)
        return KINDS["Call"](x.dtype, f"tir.{operation}", [x, y])
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name} of two numbers."
    return make


def _of_kind(kind, name):
    def make(a, b):
        return KINDS[kind](*same_type(a, b))
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The node {kind} of two operands."
    return make


def _operand(value):
    if isinstance(value, nodes.Buffer):
        return value.data
    return nodes.StringImm(value) if isinstance(value, str) else as_expression(value)


def _plain_call(name, dtype):
    def make(*operands):
        operands = [*map(_operand, operands)]
        return KINDS["Call"](operands[dtype].dtype if isinstance(dtype, int) else dtype, f"tir.{name}", operands)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A call of the operation {name}."
    return make


globals().update({name: _plain_call(name, dtype) for name, dtype in PLAIN_CALLS.items()})
globals().update({name: _unary(name) for name in UNARY})
globals().update({name: _unary(name, "bool") for name in TESTS})
globals().update({name: _binary(name) for name in BINARY})
pow = globals()["power"]  # noqa: A001
for _name, _kind in {"add": "Add", "subtract": "Sub", "multiply": "Mul",
                     "min": "Min", "max": "Max", "floordiv": "FloorDiv", "indexdiv": "FloorDiv",
                     "floormod": "FloorMod", "indexmod": "FloorMod", "truncdiv": "Div",
                     "truncmod": "Mod"}.items():
    globals()[_name] = _of_kind(_kind, _name)


def div(a, b):
    """a / b: of integers, rounded towards zero."""
    return KINDS["Div"](*same_type(a, b))


def ceildiv(a, b):
    """a / b of integers, rounded up where b is positive, as TVM writes it: (a + b - 1) // b."""
    a, b = same_type(a, b)
    return KINDS["FloorDiv"](KINDS["Sub"](KINDS["Add"](a, b), const(1, a.dtype)), b)


def bitwise_not(x):
    """The integer with all bits inverted."""
    return ~as_expression(x)


def clz(x):
    """The number of leading zero bits of an integer, an int32."""
    return KINDS["Call"]("int32", "tir.clz", [as_expression(x)])


def ldexp(x1, x2):
    """x1 * 2**x2, where x2 is an int32."""
    x1 = as_expression(x1)
    return KINDS["Call"](x1.dtype, "tir.ldexp", [x1, as_expression(x2, "int32")])


def reinterpret(dtype, value):
    """The value whose bits are those of another type with as many bits."""
    return KINDS["Call"](dtype, "tir.reinterpret", [as_expression(value)])


def address_of(buffer_load):
    """The address of an element; of a buffer, that of its first one."""
    if isinstance(buffer_load, nodes.Buffer):
        buffer_load = buffer_load[tuple(0 for _ in buffer_load.shape)]
    if type(buffer_load).__name__ != "BufferLoad":
        raise TypeError(f"expected an element of a buffer, not {type(buffer_load).__name__}")
    return KINDS["Call"]("handle", "tir.address_of", [buffer_load])


def _joined(kind, conditions):
    if not conditions:
        raise ValueError("expected at least one condition")
    whole = as_expression(conditions[0])
    for condition in conditions[1:]:
        whole = KINDS[kind](whole, as_expression(condition))
    return whole


def all(*conditions):  # noqa: A001
    """Are all conditions true?"""
    return _joined("And", conditions)


def any(*conditions):  # noqa: A001
    """Is one of the conditions true?"""
    return _joined("Or", conditions)


def if_then_else(cond, t, f):
    """t if the condition is true, otherwise f; only the chosen value is computed."""
    t, f = same_type(t, f)
    return KINDS["Call"](t.dtype, "tir.if_then_else", [as_expression(cond), t, f])


def Select(condition, true_value, false_value):
    """true_value if the condition is true, otherwise false_value; both may be computed."""
    return KINDS["Select"](as_expression(condition), *same_type(true_value, false_value))


def likely(cond):
    """The condition, with the hint that it is mostly true."""
    return KINDS["Call"]("bool", "tir.likely", [as_expression(cond)])


def _argument(value):
    """An argument of a call, which may be a string."""
    return nodes.StringImm(value) if isinstance(value, str) else as_expression(value)


def _call_outside(name, description):
    def make(dtype, func_name, *args):
        return KINDS["Call"](dtype or "void", f"tir.{name}",
                             [nodes.StringImm(func_name), *map(_argument, args)])
    make.__name__ = make.__qualname__ = name
    make.__doc__ = description
    return make


call_extern = _call_outside("call_extern", "A call of a C function.")
call_pure_extern = _call_outside("call_pure_extern", "A call of a C function without side effects.")


def _packed(value):
    """An argument of call_packed: a buffer as the array that the function gets."""
    if not isinstance(value, nodes.Buffer):
        return _argument(value)
    call = KINDS["Call"]
    shape, strides = (globals()["tvm_stack_make_shape"](*sizes) if sizes is not None else const(0)
                      for sizes in (value.shape, value.strides or None))
    return call("handle", "tir.tvm_stack_make_array",
                [value.data, shape, strides, const(len(value.shape)), const(0, value.dtype),
                 as_expression(0 if value.elem_offset is None else value.elem_offset)])


def call_packed(*args):
    """A call of a function that pleat.register_func registers: its name, and the arguments, which are
    buffers, numbers and strings."""
    return KINDS["Call"]("int32", "tir.tvm_call_packed", [*map(_packed, args)])


def call_intrin(dtype, func_name, *args):
    """A call of an operation by its name, "tir.exp"."""
    return KINDS["Call"](dtype, str(getattr(func_name, "name", func_name)), [*map(_argument, args)])


call_llvm_intrin = _call_outside("call_llvm_intrin",
                                 "A call of an intrinsic of LLVM by its name, such as \"llvm.fma\".")
call_llvm_pure_intrin = _call_outside("call_llvm_pure_intrin",
                                      "The same for one without side effects.")


def is_buffer_var(value):
    """Is it a buffer, or the parameter of a program that stands for one?"""
    return isinstance(value, nodes.Buffer) or getattr(value, "buffer", None) is not None


def ret(val):
    """Leaves the program with a value; it stands in an Evaluate."""
    val = as_expression(val)
    return KINDS["Call"](val.dtype, "tir.ret", [val])


def Return(value):
    """The statement that leaves the program with a value."""
    return KINDS["Evaluate"](ret(value))


def assume(cond=None):
    """A condition that passes may rely on; it stands in an Evaluate."""
    return KINDS["Call"]("bool", "tir.assume", [as_expression(True if cond is None else cond)])


def undef():
    """An int32 without a known value."""
    return KINDS["Call"]("int32", "tir.undef", [])


def type_annotation(dtype):
    """A type as an operand."""
    return KINDS["Call"](dtype, "tir.type_annotation", [])


def tvm_access_ptr(ptype, data, offset, extent, rw_mask):
    """A pointer to elements of a type, from an offset on; Buffer.access_ptr makes one of a buffer."""
    ptype = type_annotation(ptype) if isinstance(ptype, str) else ptype
    return KINDS["Call"]("handle", "tir.tvm_access_ptr", [ptype, *map(as_expression, (data, offset, extent, rw_mask))])


def tvm_struct_get(arr, index, field, dtype):
    """A field, by its number, of an array or of an argument."""
    return KINDS["Call"](dtype, "tir.tvm_struct_get", [*map(as_expression, (arr, index, field))])


def tvm_storage_sync(scope):
    """A barrier of the threads of a block ("shared") or a warp ("warp"); it stands in an Evaluate."""
    return KINDS["Call"]("void", "tir.tvm_storage_sync", [nodes.StringImm(scope)])


def get_active_lane_mask(dtype, base, limit):
    """A vector of booleans: whether base + i < limit, for each lane i."""
    return KINDS["Call"](dtype, "tir.get_active_lane_mask", [*same_type(base, limit)])


def masked_load(dtype, buffer, *indices_and_mask):
    """The lanes of a vector of elements of a buffer for which the mask, the last operand, is true."""
    return KINDS["Call"](dtype, "tir.masked_load", [*map(_operand, (buffer, *indices_and_mask))])


def dp4a(vec1, vec2, acc=0):
    """The sum of the products of the bytes of two words, and of a number."""
    return KINDS["Call"]("int32", "tir.dp4a", [as_expression(vec1), as_expression(vec2), as_expression(acc)])


def vscale():
    """The number by which vectors of scalable length are longer than their least length, an int32."""
    return KINDS["Call"]("int32", "tir.vscale", [])


def vectorlow(dtype, vec):
    """The first half of a vector."""
    return KINDS["Call"](dtype, "tir.vectorlow", [as_expression(vec)])


def vectorhigh(dtype, vec):
    """The second half of a vector."""
    return KINDS["Call"](dtype, "tir.vectorhigh", [as_expression(vec)])


def vectorcombine(dtype, vec1, vec2):
    """Two vectors as the halves of one."""
    return KINDS["Call"](dtype, "tir.vectorcombine", [as_expression(vec1), as_expression(vec2)])


def logaddexp(a, b):
    """log(exp(a) + exp(b)), computed from the larger one."""
    a, b = same_type(a, b)
    most, least = max(a, b), min(a, b)
    return most + log1p(exp(least - most))  # noqa: F821


# ---- Types ----------------------------------------------------------------------------------------

def _bounds(dtype):
    found = bounds_of(full_name(dtype))
    if found is None:
        raise TypeError(f"the least and greatest numbers of {dtype} are not known")
    return found


def max_value(dtype):
    """The greatest finite number of a type."""
    return const(_bounds(dtype)[1], dtype)


def min_value(dtype):
    """The least finite number of a type."""
    return const(_bounds(dtype)[0], dtype)


def infinity(dtype):
    """The infinity of a floating-point type."""
    if "float" not in dtype:
        raise TypeError(f"{dtype} has no infinity")
    return const(math.inf, dtype)


globals().update({name: _or_in_script(globals()[name], name) for name in __all__
                  if name not in ("const", "infinity", "max_value", "min_value")})
