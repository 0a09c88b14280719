# SPDX-License-Identifier: Apache-2.0
"""Tensor programs that run: pleat.build makes them, load_module loads them from a file.

    scale = pleat.build(module)              # or a PrimFunc
    scale(a, b)                              # all parameters in order; results are written in place
    scale.time_evaluator(number=100)(a, b).median
    scale.export_library("scale.so")         # later: pleat.runtime.load_module("scale.so")

Arguments are arrays of NumPy, of PyTorch, or of anything with DLPack, and Python numbers for scalar
parameters. They are passed without a copy where they are compact.
"""
import builtins
import ctypes
import functools
import json
import os
import pathlib
import re
import statistics
import tempfile
import time
import zipfile

from pleat._library import Lazy, PleatError, _lib, ffi
from pleat._request import check_status
from pleat.ir._module import BaseFunc, IRModule, load_json, print_handle, save_json
from pleat.ir.op import lower_intrinsics
from pleat.places import located, warn_of
from pleat.script._parse import parse
from pleat.tir.lowering import with_added_passes

np = Lazy("numpy")
nd = Lazy("pleat.nd")

DEVICES = ("opencl", "cuda")
TARGETS = ("llvm", "c", *DEVICES)
CODE_OF = {"llvm": "ll", "c": "c", "opencl": "cl", "cuda": "cu"}  # the ending of files of code
LOADED = (".pleat", ".so", ".o")  # files that have what load_module reads; it comes through a linker
SCALARS = "depend on values that only a run has"  # a message of driver/kernel_program.c
RACES = "it is not decided whether iterations of the"  # a warning of lower/check_accesses.c
UNKNOWN_EXTENT = re.compile(r"the extent of axis \d+ of .* is not given")  # interp/compare.c: of scalar arguments
PACKED = "packed"  # the result of a function that MakePackedAPI made: its kind and its value
DLPACK_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


def __getattr__(name):
    """The arrays and devices of pleat.nd, which since 2026 have their names here in TVM; files of arrays, types
    as objects, and `convert`, which makes expressions of Python numbers and strings."""
    if name in ("Device", "NDArray", "Tensor", "cpu", "cuda", "device", "empty", "from_dlpack", "opencl",
                "tensor"):
        return getattr(nd, name)
    if name in ("load_param_dict", "load_param_dict_from_file", "save_param_dict", "save_param_dict_to_file"):
        from pleat import param_dict
        return getattr(param_dict, name)
    if name in ("DataType", "DataTypeCode"):
        from pleat import data_type
        return getattr(data_type, name)
    if name == "convert":
        from pleat.tir.nodes import converted
        return converted
    raise AttributeError(f"module 'pleat.runtime' has no attribute {name!r}")


# ---- Parameters -----------------------------------------------------------------------------------

class Parameter:
    """A parameter of a tensor program: `name`, `dtype`, and `shape`, whose extents are numbers, the
    names of sizes that follow from the arguments, or None for other expressions. `shape` is None
    for a scalar. `strides`, in elements, and `offset`, the elements before the first one, are of the
    same kinds; `strides` is None where rows have no gaps."""

    def __init__(self, name, dtype, shape, strides=None, offset=0):
        self.name, self.dtype = name, dtype
        self.shape = None if shape is None else tuple(shape)
        self.strides, self.offset = strides and tuple(strides), offset

    def __repr__(self):
        extents = "" if self.shape is None else f" {_shape_text(self.shape)}"
        return f"{self.name}{extents} {self.dtype}"


def _shape_text(shape):
    return "[" + ", ".join("?" if extent is None else str(extent) for extent in shape) + "]"


def _extent(node):
    from pleat.tir.nodes import IntImm, Var
    if isinstance(node, IntImm):
        return node.value
    return node.name if isinstance(node, Var) else None


def _parameters(node):
    result = []
    for param in node.params:
        buffer = node.buffer_map.get(param)
        if buffer is None:
            result.append(Parameter(param.name, param.dtype, None))
        else:
            result.append(Parameter(buffer.name, buffer.dtype, tuple(map(_extent, buffer.shape)),
                                    tuple(map(_extent, buffer.strides)) or None,
                                    _extent(buffer.elem_offset)))
    return result[:-1] if "packed_result" in node.attrs else result


# ---- Arguments ------------------------------------------------------------------------------------

class _Capsule:
    """The tensor of a DLPack capsule, which is freed with this object."""

    def __init__(self, owner):
        self._capsule = owner.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self.tensor = ffi.cast("PleatTensor *", get(self._capsule, b"dltensor"))


def _without_lanes(array, strides, lanes):
    """The shape and strides of an array whose last axis is the lanes of its elements."""
    rows = array.shape[-1:] == (lanes,) and strides[-1] == 1
    if not rows or any(stride % lanes for stride in strides[:-1]):
        raise ValueError(f"has shape {list(array.shape)} and strides of {list(strides)} elements, "
                         f"expected a last axis with the {lanes} lanes of each element")
    return array.shape[:-1], [stride // lanes for stride in strides[:-1]]


def _numpy_tensor(parameter, array, keep):
    from pleat.model import dtype_of, element_of
    tensor = ffi.new("PleatTensor *")
    element = element_of(array.dtype)
    if not array.dtype.isnative:
        raise TypeError(f"has element type {array.dtype}, whose bytes are in the order of other processors: "
                        f"convert it with .astype('{array.dtype.newbyteorder('=')}')")
    if element is None:
        raise TypeError(f"has element type {array.dtype}, which arrays of programs do not have")
    item = array.dtype.itemsize
    if any(stride % item for stride in array.strides):
        raise ValueError(f"has strides of {array.strides} bytes, which are not multiples of its "
                         f"elements' {item} bytes")
    extents, steps = array.shape, [stride // item for stride in array.strides]
    wanted = dtype_of(parameter.dtype)
    if wanted.subdtype and wanted.base == array.dtype:
        element = element_of(wanted)
        extents, steps = _without_lanes(array, steps, element[2])
    shape, strides = ffi.new("int64_t[]", extents or (0,)), ffi.new("int64_t[]", steps or (0,))
    keep += [array, shape, strides]
    address = array.__array_interface__["data"][0]
    tensor.byte_offset = _bytes_before(parameter, array, address)
    tensor.data = ffi.cast("void *", address - tensor.byte_offset)
    tensor.device_type, tensor.rank, tensor.shape, tensor.strides = 1, len(extents), shape, strides
    tensor.type.code, tensor.type.bits, tensor.type.lanes = element
    return tensor


def _bytes_before(parameter, array, address):
    """The bytes of the array's memory before its first element, for parameters with an offset that
    is not free."""
    if parameter.offset == 0 or isinstance(parameter.offset, str):
        return 0
    base = array.base if isinstance(array.base, np.ndarray) else array
    begin = base.__array_interface__["data"][0]
    begin += sum(min(stride * (extent - 1), 0) for stride, extent in zip(base.strides, base.shape))
    return max(address - begin, 0)


def _tensor_of(parameter, value, keep):
    """The PleatTensor of an argument. `keep` gets the objects that own its memory."""
    if parameter.shape is None and isinstance(value, np.generic):
        value = value.item()  # of any width, as a number of Python
    if parameter.shape is None and isinstance(value, (bool, int, float)):
        from pleat.model import dtype_of
        if isinstance(value, float) and "float" not in parameter.dtype:
            raise TypeError(f"is the float {value}, expected {parameter.dtype}")
        try:
            with np.errstate(over="ignore"):  # a float becomes infinite, as when C converts it
                value = np.array(value, dtype_of(parameter.dtype))
        except OverflowError:
            raise OverflowError(f"is {value}, which {parameter.dtype} does not hold") from None
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return _numpy_tensor(parameter, value, keep)
    if hasattr(value, "__dlpack__"):
        keep.append(_Capsule(value))
        return keep[-1].tensor
    expected = "an array: of NumPy, of PyTorch, or with DLPack" if parameter.shape is not None else \
        f"a number of type {parameter.dtype}"
    kind = type(value).__name__
    raise TypeError(f"is {'an' if kind[0] in 'aeiou' else 'a'} {kind}, expected {expected}")


def _strides(tensor):
    """The strides of a tensor in elements."""
    if tensor.strides != ffi.NULL:
        return [tensor.strides[axis] for axis in range(tensor.rank)]
    result, step = [], 1
    for axis in reversed(range(tensor.rank)):
        result.insert(0, step)
        step *= tensor.shape[axis]
    return result


def _item_bytes(tensor):
    return -(-tensor.type.bits // 8) * tensor.type.lanes


def _span(tensor):
    """The first address of a tensor and the one after its last; equal for one without elements."""
    first = last = int(ffi.cast("uintptr_t", tensor.data)) + tensor.byte_offset
    item = _item_bytes(tensor)
    for axis, stride in enumerate(_strides(tensor)):
        reach = (tensor.shape[axis] - 1) * stride * item
        if tensor.shape[axis] == 0:
            return first, first
        first, last = first + min(reach, 0), last + max(reach, 0)
    return first, last + item


MOST_CHECKED = 64  # kinds of arguments that a function keeps
NUMBERS = {"bool": "_Bool *", "float32": "float *", "float64": "double *",  # C converts them as NumPy does
           **{f"{kind}{bits}": f"{kind}{bits}_t *" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}}


class _Checked:
    """The result of checking arguments, for others of the same types, shapes and strides: the model, the
    tensors but for their addresses, and the bytes that each takes before and after its address."""

    def __init__(self, model, inputs, outputs, tensors, keep):
        self.model, self.inputs, self.outputs = model, inputs, outputs
        self.ins, self.outs = _array_of(tensors, inputs), _array_of(tensors, outputs)
        addresses = [int(ffi.cast("uintptr_t", tensor.data)) for tensor in tensors]
        self.spans = [(low - address, high - address)
                      for address, (low, high) in zip(addresses, map(_span, tensors))]
        self._keep = [one for one in keep if not isinstance(one, np.ndarray)]  # shapes and strides

    @staticmethod
    def addresses(parameters, values, memory):
        """The addresses of arrays, and of numbers, which get new memory."""
        result = []
        for parameter, value in zip(parameters, values):
            if parameter.shape is None:
                number = value.item() if isinstance(value, np.generic) else value
                memory.append(ffi.new(NUMBERS[parameter.dtype], number))
                result.append(int(ffi.cast("uintptr_t", memory[-1])))
            else:
                result.append(value.__array_interface__["data"][0])
        return result

    @staticmethod
    def at(addresses, numbers, known):
        """Tensors like the known ones, with other addresses."""
        array = ffi.new("PleatTensor[]", len(numbers))
        ffi.memmove(array, known, len(numbers) * ffi.sizeof("PleatTensor"))
        for i, number in enumerate(numbers):
            array[i].data = ffi.cast("void *", addresses[number])
        return array


def _type_text(element):
    code = DLPACK_CODES.get(element.code, f"type {element.code} of ")
    lanes = f"x{element.lanes}" if element.lanes > 1 else ""
    return ("bool" if code == "bool" else f"{code}{element.bits}") + lanes


def _check_device(value, target):
    """Raises for an array of another device than the one for which the target makes programs."""
    if isinstance(value, nd.Tensor) and value.device.device_type not in (1, nd.DEVICE_TYPES[target]):
        raise ValueError(f"is on {value.device}, expected {nd.Device(nd.DEVICE_TYPES[target])}")


def _check(parameter, tensor, sizes):
    """Raises for a tensor that does not fit, and adds the sizes that it gives."""
    if tensor.device_type != 1:
        raise ValueError(f"is on device type {tensor.device_type}, expected the memory of this "
                         "processor")
    expected_rank = 0 if parameter.shape is None else len(parameter.shape)
    shape = [tensor.shape[i] for i in range(tensor.rank)]
    if tensor.rank != expected_rank:
        raise ValueError(f"has {tensor.rank} axes, {shape}, expected {expected_rank}, "
                         f"{_shape_text(parameter.shape or ())}")
    from pleat.model import dtype_of, element_of
    found = tensor.type.code, tensor.type.bits, tensor.type.lanes
    if found != element_of(dtype_of(parameter.dtype)):
        raise TypeError(f"has element type {_type_text(tensor.type)}, expected {parameter.dtype}")
    for axis, (expected, extent) in enumerate(zip(parameter.shape or (), shape)):
        if isinstance(expected, str):
            expected = sizes.setdefault(expected, extent)
        if expected is not None and extent != expected:
            raise ValueError(f"has extent {extent} in axis {axis}, expected {expected}: its shape "
                             f"is {shape}, expected {_shape_text(parameter.shape)}")
    _check_strides(parameter, tensor, sizes)


def _check_strides(parameter, tensor, sizes):
    """Raises for a tensor with other strides or another offset, and adds the sizes they give."""
    found = _strides(tensor) if parameter.strides else ()
    for axis, (expected, stride) in enumerate(zip(parameter.strides or (), found)):
        if isinstance(expected, str):
            expected = sizes.setdefault(expected, stride)
        if expected not in (None, stride) and tensor.shape[axis] > 1:
            raise ValueError(f"has stride {stride} in axis {axis}, expected {expected}: its strides "
                             f"are {found} elements, expected {_shape_text(parameter.strides)}")
    if parameter.offset == 0:
        return  # the address counts alone
    offset, expected = divmod(tensor.byte_offset, _item_bytes(tensor)), parameter.offset
    if isinstance(expected, str):
        expected = sizes.setdefault(expected, offset[0])
    if offset[1] or expected not in (None, offset[0]):
        raise ValueError(f"begins {tensor.byte_offset} bytes after its memory does, expected "
                         f"{'a multiple of an element' if offset[1] else f'{expected} elements'}")


# ---- Functions ------------------------------------------------------------------------------------

class Function:
    """A compiled tensor program; calling it runs it. `parameters` is the list of its parameters, and
    `result` the type of the value that a call gives back; None: it gives none.

    Free sizes, strides and offsets follow from the arguments: for new ones the program is compiled
    once more, and what was compiled is kept. Calls in several threads follow one another."""

    target, _result_dtype = "llvm", None

    def __init__(self, name, parameters, compiled, at_once=True, result=None):
        self.name, self.parameters, self.result = name, parameters, result
        self._compile, self._models, self._numbers, self._checked = compiled, {}, [], {}
        self._asks_numbers = bool(self._integers())  # whether iterations share elements
        self._keeps_checks = all(
            p.dtype in NUMBERS if p.shape is None else p.offset == 0 for p in parameters)
        if at_once and not any(isinstance(size, str) for p in parameters
                   for size in (*(p.shape or ()), *(p.strides or ()), p.offset)):
            self._model({})

    def __repr__(self):
        given = f" -> {self.result}" if self.result else ""
        return f"Function({self.name}: {', '.join(map(repr, self.parameters))}{given})"

    def _model(self, sizes, values=()):
        """The compiled model for these sizes, and the order of its arguments. Where the work depends on
        scalar arguments, or these decide whether iterations share elements, their values are sizes too."""
        given = {**sizes, **{self.parameters[i].name: int(values[i]) for i in self._numbers if values}}
        key = tuple(sorted(given.items()))
        if key not in self._models:
            try:
                model = self._compile(given)
            except PleatError as error:
                if self._numbers or not (SCALARS in str(error) or UNKNOWN_EXTENT.search(str(error))):
                    raise
                self._numbers, self._asks_numbers = self._integers(), False
                if not self._numbers:
                    raise
                return self._model(sizes, values) if values else (None, None)
            self._models[key] = model, _order(model, self.parameters)
            numbers = self._numbers
            self._decide_numbers(model)
            if self._numbers is numbers or not self._numbers:
                warn_of(model.messages, model._program)
            if self._numbers is not numbers and values:
                return self._model(sizes, values)
        return self._models[key]

    def _decide_numbers(self, model):
        """Makes the values of scalars sizes where the model is undecided without them, and keeps them so where
        they decide for one loop at least that its iterations share no element."""
        doubts = sum(RACES in message.text for message in model.messages)
        if self._asks_numbers and self._numbers:
            self._asks_numbers = False
            self._numbers = self._numbers if doubts < self._doubts else []
        elif self._asks_numbers and doubts:
            self._numbers, self._doubts = self._integers(), doubts

    def _integers(self):
        return [i for i, one in enumerate(self.parameters) if one.shape is None and "int" in one.dtype]

    def _arguments(self, values, keep):
        if len(values) != len(self.parameters):
            raise TypeError(f"{self.name} takes {len(self.parameters)} arguments ("
                            f"{', '.join(map(repr, self.parameters))}), got {len(values)}")
        tensors, sizes = [], {}
        for parameter, value in zip(self.parameters, values):
            try:
                _check_device(value, self.target)
                tensors.append(_tensor_of(parameter, value, keep))
                _check(parameter, tensors[-1], sizes)
            except (TypeError, ValueError, OverflowError, BufferError) as error:
                raise type(error)(f"{self.name}: argument '{parameter.name}' {error}") from None
        return tensors, sizes

    def _check_outputs(self, values, spans, outputs):
        for i in outputs:
            for other in range(len(spans)):
                if other != i and spans[i][0] < spans[other][1] and spans[other][0] < spans[i][1]:
                    raise ValueError(
                        f"{self.name}: the memory of argument '{self.parameters[i].name}', which "
                        f"the program writes, overlaps that of '{self.parameters[other].name}'")
            if isinstance(values[i], np.ndarray) and not values[i].flags.writeable:
                raise ValueError(f"{self.name}: argument '{self.parameters[i].name}' is read-only, "
                                 "and the program writes it")

    def _bind(self, values):
        """A function of no arguments that runs the program and gives its value, and what its memory
        belongs to."""
        kinds = self._kinds(values)
        checked = self._checked.get(kinds) if kinds else None
        if checked:
            try:
                return self._bind_checked(values, checked)
            except (TypeError, OverflowError):
                pass  # a number that C does not convert: the checks below convert it, or say why not
        keep = []
        tensors, sizes = self._arguments(values, keep)
        model, (inputs, outputs) = self._model(sizes, values)
        value = self._memory_of_result()
        given = values
        if value is not None:
            values = *values, value
            tensors.append(_tensor_of(Parameter("result", value.dtype.name, value.shape), value, keep))
        self._check_outputs(values, [_span(tensor) for tensor in tensors], outputs)
        ins, outs = _array_of(tensors, inputs), _array_of(tensors, outputs)
        if kinds:
            kinds = self._kinds(given)  # the first compilation tells which numbers are sizes
            if len(self._checked) >= MOST_CHECKED:
                self._checked.clear()
            self._checked[kinds] = _Checked(model, inputs, outputs, tensors, keep)
        return self._runner(model, ins, outs, value), keep + [model]

    def _kinds(self, values):
        """The types, shapes, strides and devices of arrays of NumPy, and the numbers that are sizes. All checks
        but those of addresses and of other numbers depend on them. None for other arguments."""
        if not self._keeps_checks or len(values) != len(self.parameters):
            return None
        kinds = []
        for i, (parameter, value) in enumerate(zip(self.parameters, values)):
            if parameter.shape is None:
                if not isinstance(value, (bool, int, float, np.number, np.bool_)):
                    return None
                kinds.append((type(value), value if i in self._numbers else None))
                continue
            if type(value) is np.ndarray:
                device = 1
            elif type(value) is nd.Tensor:
                device = value.device.device_type
            else:
                return None
            kinds.append((value.dtype, value.shape, value.strides, device))
        return tuple(kinds)

    def _bind_checked(self, values, checked):
        memory = []
        addresses = checked.addresses(self.parameters, values, memory)
        value = self._memory_of_result()
        if value is not None:
            values = *values, value
            addresses.append(value.__array_interface__["data"][0])
        spans = [(address + low, address + high) for address, (low, high) in zip(addresses, checked.spans)]
        self._check_outputs(values, spans, checked.outputs)
        ins = checked.at(addresses, checked.inputs, checked.ins)
        outs = checked.at(addresses, checked.outputs, checked.outs)
        return self._runner(checked.model, ins, outs, value), [values, checked, memory]

    def _runner(self, model, ins, outs, value):
        """A function that runs the model and gives the value that it stored in `value`."""
        messages, in_count, out_count = ffi.new("PleatMessages **"), len(ins), len(outs)

        def run():
            status = model._run(ins, in_count, outs, out_count, messages)
            try:
                check_status(status, messages, model._pool)
            except PleatError as error:
                raise _of_kind(located(error, model._program) if model._program else error) from None
            return self._value(value)
        return run

    def _memory_of_result(self):
        if self.result is None:
            return None
        if self._result_dtype is None:
            from pleat.model import dtype_of
            self._result_dtype = np.dtype("int64") if self.result == PACKED else dtype_of(self.result)
        return np.zeros(2 if self.result == PACKED else 1, self._result_dtype)

    def _value(self, memory):
        """The value that a run has stored."""
        if self.result != PACKED:
            return None if memory is None else memory.item()
        kind, value = memory
        return {0: None, 1: int(value), 2: bool(value), 3: value.view("float64").item()}[int(kind)]

    def __call__(self, *values):
        run, _ = self._bind(values)
        return run()

    def time_evaluator(self, number=10, repeat=1, min_repeat_ms=0, cooldown_interval_ms=0,
                       repeats_to_cooldown=1, cache_flush_bytes=0):
        """A function of the arguments that measures runs: `repeat` times the mean of `number` runs,
        or of so many that they take min_repeat_ms. After each repeats_to_cooldown of them it waits for
        cooldown_interval_ms, and before each it writes cache_flush_bytes of other memory."""
        if min(number, repeat, repeats_to_cooldown) < 1:
            raise ValueError(f"number={number}, repeat={repeat} and repeats_to_cooldown={repeats_to_cooldown} "
                             "must be at least 1")
        other = np.zeros(cache_flush_bytes, "uint8")

        def measure(*values):
            run, _keep = self._bind(values)
            run()
            results = []
            for i in range(repeat):
                if i and i % repeats_to_cooldown == 0:
                    time.sleep(cooldown_interval_ms / 1000)
                other[:] = i % 256
                results.append(_measure(run, number, min_repeat_ms / 1000))
            return Timing(results)
        return measure


def _of_kind(error):
    """The error of a run, which is also of the kind that a failed assertion states: ValueError, TypeError, …"""
    found = re.search(r": (\w+Error): ", str(error))
    kind = getattr(builtins, found[1], None) if found else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or isinstance(error, kind):
        return error
    return type(kind.__name__, (type(error), kind), {})(str(error), error.messages)


class HostFunction(Function):
    """A tensor program that calls functions of Python (pleat.host)."""

    check = None  # called before each compiled part runs

    def __init__(self, name, parameters, compiled, result=None):
        super().__init__(name, parameters, compiled, False, result)

    def find_functions(self, function):
        """Raises PleatError where a function that the program calls is not registered."""
        from pleat.host import HostProgram
        HostProgram(self.name, function, {}).find_functions()

    def _model(self, sizes):
        key = tuple(sorted(sizes.items()))
        if key not in self._models:
            self._models[key] = self._compile(sizes), None
        return self._models[key]

    def _bind(self, values):
        keep = []
        _, sizes = self._arguments(values, keep)
        program, _ = self._model(sizes)
        program.check = self.check
        arrays = [value if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__")
                  else np.from_dlpack(value) for value in values]
        return lambda: program.run(arrays), [keep, arrays]


class Timing:
    """Measured times in seconds: `results`, and their mean, median, min, max and std."""

    def __init__(self, results):
        self.results = tuple(results)
        self.mean, self.median = statistics.fmean(results), statistics.median(results)
        self.min, self.max, self.std = min(results), max(results), statistics.pstdev(results)

    def __repr__(self):
        return (f"Timing(median {self.median * 1e6:.3g} us, {self.min * 1e6:.3g} to "
                f"{self.max * 1e6:.3g} us, {len(self.results)} results)")


def _measure(run, number, least):
    while True:
        begin = time.perf_counter()
        for _ in range(number):
            run()
        seconds = time.perf_counter() - begin
        if seconds >= least:
            return seconds / number
        number = int(number * min(10, 1.2 * least / max(seconds, 1e-9))) + 1


def _order(model, parameters):
    """The numbers of the parameters that are the model's inputs, and its outputs, in its order. The
    output that gets the value that a program returns comes after all parameters."""
    number = {parameter.name: i for i, parameter in enumerate(parameters)}
    return ([number[argument.name] for argument in model.inputs],
            [number.get(argument.name, len(parameters)) for argument in model.outputs])


def _array_of(tensors, numbers):
    array = ffi.new("PleatTensor[]", len(numbers))
    for one, number in zip(array, numbers):
        ffi.memmove(ffi.addressof(one), tensors[number], ffi.sizeof("PleatTensor"))
    return array


# ---- Modules --------------------------------------------------------------------------------------

class Module:
    """Compiled tensor programs by their names. Calling the module calls its only program, or the one
    called "main"."""

    def __init__(self, functions, program, target, options):
        self._functions, self._program = functions, program  # a function that gives the IRModule or PrimFunc
        self.target, self._options = target, options
        for function in functions.values():
            function.target = target

    def __getitem__(self, name):
        if name not in self._functions:
            raise KeyError(f"the module has no program '{name}'; it has "
                           f"{', '.join(self._functions)}")
        return self._functions[name]

    get_function = __getitem__

    def __iter__(self):
        return iter(self._functions)

    def __len__(self):
        return len(self._functions)

    @property
    def entry_name(self):
        """The name of the program that a call of the module runs."""
        return next(iter(self._functions)) if len(self._functions) == 1 else "main"

    @property
    def entry(self):
        """The program that a call of the module runs."""
        return self[self.entry_name]

    def __call__(self, *values, **named):
        if named:
            names = ", ".join(parameter.name for parameter in self.entry.parameters)
            raise TypeError(f"{self.entry.name} takes its arguments by position ({names}), not by name: "
                            f"got {', '.join(named)}")
        return self.entry(*values)

    def __repr__(self):
        return f"Module({', '.join(map(repr, self._functions.values()))})"

    def time_evaluator(self, func_name=None, dev=None, number=10, repeat=1, min_repeat_ms=0,
                       limit_zero_time_iterations=100, cooldown_interval_ms=0, repeats_to_cooldown=1,
                       cache_flush_bytes=0, f_preproc=""):
        """Measures a program: see Function.time_evaluator. `dev` is that of the target, and `f_preproc`
        must be empty. limit_zero_time_iterations: unused, since the clock tells any two runs apart"""
        if f_preproc:
            raise ValueError(f"f_preproc={f_preproc!r}: there are no functions that prepare arguments; "
                             "cache_flush_bytes clears the cache")
        function = self.entry if func_name is None else self[func_name]
        return function.time_evaluator(number, repeat, min_repeat_ms, cooldown_interval_ms,
                                       repeats_to_cooldown, cache_flush_bytes)

    def get_source(self, fmt=None):
        """The code of the module as text: "c", "ll" (LLVM), "s" or "asm" (assembler), "cl" (OpenCL), "cu" (CUDA), "ptx"
        (which NVRTC makes), or "py" (TVMScript); None: that of the target."""
        return _source_of(self._program(), {"asm": "s"}.get(fmt, fmt) or CODE_OF[self.target], self._options)

    inspect_source = get_source

    @property
    def imported_modules(self):
        """The modules with the code of devices; TVM has them apart from the code that starts them."""
        return [self] if self.target in DEVICES else []

    imports = imported_modules

    @property
    def mod(self):
        """The module itself; TVM's compile gives an object around it."""
        return self

    def jit(self, **_):
        """The module itself, which is compiled already. TVM's options of linking change nothing."""
        return self

    def export_library(self, path, *, workspace_dir=None):
        """Writes the module to a file. The ending of its name says how: load_module reads ".pleat" and
        ".so"; .so, .o, .s, .ll, .c and .py are for other programs (see pleat.write). For load_module the
        file also has the module's source, which is compiled again for sizes that it was not compiled
        for before. workspace_dir: unused, since no temporary files are made beside the result"""
        path = pathlib.Path(path)
        for function in self._functions.values():
            if isinstance(function, HostFunction) and path.suffix != ".pleat":
                raise PleatError(f"{function.name} calls functions of Python, which only a .pleat file can "
                                 "name")
        if path.suffix != ".pleat":
            from pleat.model import write
            write(self._program(), path, func="", **self._options)
        if path.suffix in LOADED and self.target not in DEVICES:
            _save(self, path)

    def write_to_file(self, path, fmt=""):
        """Writes the module to a file, as export_library does. fmt: the ending that says how, where the name of
        the file has another one"""
        path = pathlib.Path(path)
        if not fmt or path.suffix == f".{fmt}":
            return self.export_library(path)
        with tempfile.TemporaryDirectory(prefix="pleat-") as folder:
            made = pathlib.Path(folder) / f"module.{fmt}"
            self.export_library(made)
            path.write_bytes(made.read_bytes())

    save = write_to_file


def _models(module):
    for name, function in module._functions.items():
        if isinstance(function, HostFunction):
            continue
        for sizes, (model, _) in function._models.items():
            yield name, function, dict(sizes), model


def _save(module, path):
    """Writes what load_module reads: a table of the programs, a saved model for each, and their source."""
    table, models = [], []
    for name, _, sizes, model in _models(module):
        table.append({"name": name, "sizes": sizes})
        models.append(model)
    rows = {name: [[p.name, p.dtype, p.shape, p.strides, p.offset] for p in function.parameters]
            for name, function in module._functions.items()}
    write_archive(path, models, {
        "format": "pleat.runtime", "table": table, "parameters": rows, "target": module.target,
        "results": {name: one.result for name, one in module._functions.items() if one.result},
        "hosts": [name for name, one in module._functions.items() if isinstance(one, HostFunction)],
        "options": module._options, "source": save_json(module._program())})


def write_archive(path, models, table):
    """Writes saved models and a table about them as a zip archive. It follows the code in a file that
    holds code already, which linkers and loaders do not look at."""
    with tempfile.TemporaryDirectory(prefix="pleat-") as folder:
        made = pathlib.Path(folder) / "archive"
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("programs.json", json.dumps(table))
            for i, model in enumerate(models):
                file = pathlib.Path(folder) / str(i)
                model.save(file)
                archive.write(file, f"{i}.model")
        data = made.read_bytes()
    if path.suffix != ".pleat":
        with open(path, "ab") as file:
            file.write(data)
        return
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


def copy_programs(files, path):
    """Adds to a linked file what load_module reads, where one of the files that were linked has it."""
    exported = [file for file in files if zipfile.is_zipfile(file)]
    if len(exported) != 1:
        return
    with zipfile.ZipFile(exported[0]) as source, zipfile.ZipFile(path, "a") as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))


def enabled(target):
    """Can programs be built for the target with this name, and run here? For a device, its library must be
    there; there are no other targets."""
    if target not in DEVICES:
        return target in ("cpu", *TARGETS)
    try:
        return bool(nd.device_library(target))
    except OSError:
        return False


def load_module(path, threads=0):
    """Loads what export_library wrote as ".pleat" or ".so": a Module, or of graph functions a
    pleat.relax.Executable. Load only files that you trust: they hold code."""
    from pleat.model import load
    try:
        with zipfile.ZipFile(path) as archive:
            saved = json.loads(archive.read("programs.json"))
            models = [load(archive.read(f"{i}.model"), threads) for i in range(len(saved["table"]))]
        saved["options"]["threads"] = threads or saved["options"].get("threads", 0)
        if saved["format"] == "pleat.relax":
            from pleat.relax.vm import loaded
            return loaded(saved, models)
        return _loaded(saved, models)
    except PleatError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise PleatError(f"{os.fspath(path)} is not a module that export_library wrote as .pleat or .so: "
                         f"{error}") from error


def _loaded(saved, models):
    keys = [(row["name"], tuple(sorted(row["sizes"].items()))) for row in saved["table"]]
    models, options = dict(zip(keys, models)), saved["options"]
    program = functools.cache(lambda: load_json(saved["source"]))
    results = saved.get("results", {})
    functions = {name: _loaded_function(name, [Parameter(*fields) for fields in rows], models, program,
                                        options, results.get(name))
                 for name, rows in saved["parameters"].items()}
    hosts = saved.get("hosts", ())
    programs = _functions(print_handle(program()._handle), options, False) if hosts else {}
    for name in hosts:
        functions[name] = programs[name]
        functions[name].find_functions(IRModule(handle=program()._handle)[name])
    return Module(functions, program, saved["target"], options)


def _loaded_function(name, parameters, models, program, options, result):
    def find(sizes):
        key = name, tuple(sorted(sizes.items()))
        if key not in models:
            models[key] = _functions(print_handle(program()._handle), options, False)[name]._compile(sizes)
        return models[key]
    return Function(name, parameters, find, False, result)


def _callees(node, names):
    """The functions of the module with these names that a program calls."""
    from pleat.tir.stmt_functor import post_order_visit
    called = set()
    post_order_visit(node.body, lambda part: called.add(str(getattr(part, "op", ""))))
    return called & names


def _is_helper(function, node):
    """Can only other programs of the module call the program?"""
    return "private" in function.attrs or _result(node) is not None


def _result(node):
    """The type of the value that a program returns; None: it returns none."""
    if "packed_result" in node.attrs:
        return PACKED
    return None if node.ret_type in (None, "", "void") else str(node.ret_type)


def _compiler(module, name, calls, options, origins):
    def compiled(sizes):
        from pleat.model import Model
        function = module[name].specialize(sizes) if sizes else module[name]
        function._origins = origins
        if not calls:
            return Model(function, **options)
        whole = module.clone()
        whole[name] = function
        whole._origins = origins
        return Model(whole, func=name, **options)
    return compiled


def _functions(text, options, at_once, origin=None):
    """The programs of a printed module that can be called, by their names. With `at_once`, those whose
    sizes are known are compiled now. `origin` is the handle of the module that was printed; None: it is not
    known."""
    from pleat.tir.node_table import function_nodes
    title = "script of the module"
    origins = [(title, origin)] if origin is not None else []
    printed = IRModule(handle=parse(text, title))  # with the names that are printed
    nodes = function_nodes(printed._handle)
    if any("calling_conv" in node.attrs for node in nodes.values()):
        from pleat.tir.transform import UnpackApi
        unpacked = UnpackApi()(printed)._handle
        origins.insert(0, ("script of the unpacked module", unpacked))
        printed = IRModule(handle=parse(print_handle(unpacked), origins[0][0]))
        nodes = function_nodes(printed._handle)
    if not nodes:
        raise PleatError("the module has no tensor program; pleat.compile compiles graphs")
    hosts = {name for name, node in nodes.items() if _calls_python(printed[name], node)}
    calls = {name: _callees(node, nodes.keys()) for name, node in nodes.items()}
    called = set().union(*calls.values())
    return {name: _function(printed, name, node, calls[name], options, at_once, name in hosts, origins)
            for name, node in nodes.items()
            if name not in called or not _is_helper(printed[name], node)}


def _calls_python(function, node):
    from pleat.host import calls_python
    return "call_packed(" in function.script() and calls_python(node)


def _function(module, name, node, calls, options, at_once, calls_python, origins):
    if not calls_python:
        return Function(name, _parameters(node), _compiler(module, name, calls, options, origins), at_once,
                        _result(node))
    from pleat.host import HostProgram
    if calls:
        raise PleatError(f"{name} has T.call_packed, and calls {', '.join(sorted(calls))}: apply "
                         "InlinePrivateFunctions before")

    def compiled(sizes):
        function = module[name].specialize(sizes) if sizes else module[name]
        return HostProgram(name, function, options)
    return HostFunction(name, _parameters(node), compiled, _result(node))


def _source_of(model, ending, options):
    """The code of a module or function as a file with this ending has it."""
    from pleat.model import write
    with tempfile.TemporaryDirectory(prefix="pleat-") as folder:
        path = pathlib.Path(folder) / f"module.{ending}"
        write(model, path, func="", **options)
        return path.read_text()


def _with_bounds(mod):
    """The program with buffers for its parameters that point to elements, whose arrays tell how many there are."""
    from pleat.ir.transform import run_passes
    if not re.search(r'^ *(def .*)?\w+: T\.handle\("', mod.script(), re.MULTILINE):
        return mod
    return run_passes(mod, "bind_pointers")


def build(mod, args=None, target=None, *, name="main", threads=0, cpu=None, quick=False, cache=True,
          unchecked=False, pipeline="default", tir_pipeline="default"):
    """Compiles the tensor programs of an IRModule, or a PrimFunc, for this machine; or a te.Schedule
    with its arguments `args`, tensors and scalar variables, as a program of this name.

    target: "llvm", or "c": the programs run as LLVM compiles them, and get_source gives C; or
            "opencl": they run on an OpenCL device; or
            "cuda": they run on an NVIDIA device, which is looked for when one is called, and get_source
            gives the kernels, also without a device.
            Also a pleat.target.Target, or what makes one, whose mcpu and num-cores are `cpu` and
            `threads`. None: the target of the `with` around this, else "llvm"
    pipeline, tir_pipeline: of TVM; "default", None, or a pass that runs first
    The other options are those of pleat.Model. A program without a schedule runs as the
    auto-scheduler schedules it. Calls of other programs of the module become their bodies; private
    programs, and those that return a value, are left out where others call them. Returns a
    Module."""
    from pleat.target import Target
    if isinstance(args, (str, dict, Target)):
        args, target = None, args
    target = Target(target or Target.current() or "llvm")
    stated, target = target.build_options(), target.kind.name
    if args is not None or type(mod).__module__ == "pleat.te.schedule":
        from pleat.te.double_buffers import filled_ahead
        from pleat.te.lowering import program_of
        mod = filled_ahead(program_of(mod, args, name))
    if not isinstance(mod, (IRModule, BaseFunc)):
        raise TypeError(f"expected an IRModule or a PrimFunc, not {type(mod).__name__}")
    for one in (pipeline, tir_pipeline):
        mod = one(mod) if callable(one) else mod
        if isinstance(one, str) and one != "default":
            raise PleatError(f"the pipeline is {one!r}, expected 'default' or a pass")
    if target not in TARGETS:
        raise PleatError(f"the target is {target!r}, expected one of {', '.join(TARGETS)}")
    mod = lower_intrinsics(with_added_passes(mod), target)
    mod = _with_bounds(mod)
    text = print_handle(mod._handle)
    options = {"threads": threads or stated.get("threads", 0), "cpu": cpu or stated.get("cpu"),
               "quick": quick, "cache": cache, "unchecked": unchecked}
    if target in DEVICES:
        options["target"] = target
    try:
        functions = _functions(text, options, target != "cuda", mod._handle)
        if target == "cuda":
            _source_of(mod, "cu", options)  # refuses what the target cannot take
    except PleatError:
        if target != "cuda":
            _source_of(mod, CODE_OF[target], options)  # names this target, and places in kernels
        raise
    kept = mod.clone() if isinstance(mod, IRModule) else mod  # the caller may change the module
    return Module(functions, lambda: kept, target, options)
