# SPDX-License-Identifier: Apache-2.0
"""Operators that are computed by functions of Python.

    @pleat.operator(infer=lambda x, **_: x,
                    ways=[{"inputs": ["NHWC"], "outputs": ["NHWC"], "cycles": 2e4}, {"cycles": 5e4}])
    def scale(x, alpha=1.0):
        return x * np.float32(alpha)

    model = pleat.compile("model.onnx", operators={"com.example::Scale": scale})
"""
import collections
import inspect
import threading

from pleat._library import Lazy, _lib, ffi

np = Lazy("numpy")

Call = collections.namedtuple("Call", "function node inputs outputs attributes way")
Call.__doc__ = """One call of a function: its name, the name of the node, the inputs and outputs as a
list of pleat.model.Argument with their logical shapes (None for an absent input), the attributes as
a dictionary, and the number of the way, which is None while compiling."""


class Operator:
    """A function that computes an operator, and what the planner is told about it.

    run(*arrays, **attributes): computes the outputs and returns an array, or a tuple of arrays. The
            arrays have the shapes of the way's layouts, and are read-only; an absent input is None.
            With a parameter `call` it gets a Call, and with a parameter `out` a list of arrays to
            write to, and then returns nothing. Sessions call it in several threads
    infer(*arguments, **attributes): returns the (shape, dtype) of the output, or a list of them; an
            argument has `shape` and `dtype`, and may be returned in place of the pair. None: the
            file has to declare the types
    ways:   a list of the ways in which the function can be called, or a function of the arguments
            and attributes that returns one: dictionaries with "inputs" and "outputs", lists of
            layouts (texts, functions, IndexMaps or Layouts), where None is row-major, and "cycles", the price. Without any, all tensors are
            row-major. An exception in one of these functions is raised by the call that ran it"""

    def __init__(self, run, infer=None, ways=None):
        self.run, self.infer, self.ways = run, infer, ways
        parameters = inspect.signature(run).parameters if callable(run) else {}
        self.extra = [name for name in ("call", "out") if name in parameters]

    def __call__(self, *arrays, **attributes):
        return self.run(*arrays, **attributes)


def operator(run=None, *, infer=None, ways=None):
    """Makes an Operator of a function; to be used as a decorator."""
    if run is None:
        return lambda function: Operator(function, infer, ways)
    return Operator(run, infer, ways)


def _text(pointer):
    return ffi.string(pointer).decode()


def _attribute(one):
    if one.text != ffi.NULL:
        return _text(one.text)
    numbers = one.integers if one.integers != ffi.NULL else one.numbers
    values = [numbers[i] for i in range(one.count)]
    return values if one.is_list else values[0]


def _call(call, way=None):
    from pleat.model import Argument, dtype_of

    def argument(one):
        if one.rank < 0:
            return None
        return Argument(_text(one.name), dtype_of(_text(one.type)),
                        tuple(one.shape[d] for d in range(one.rank)))
    return Call(_text(call.function), _text(call.node),
                [argument(call.inputs[i]) for i in range(call.input_count)],
                [argument(call.outputs[i]) for i in range(call.output_count)],
                {_text(a.name): _attribute(a) for a in
                 (call.attributes[i] for i in range(call.attribute_count))}, way)


def _array(tensor, argument, writable):
    if argument is None:
        return None
    shape = tuple(tensor.shape[d] for d in range(tensor.rank))
    size = int(np.prod(shape, dtype=np.int64)) * argument.dtype.itemsize
    if not size:
        return np.empty(shape, argument.dtype)
    array = np.frombuffer(ffi.buffer(tensor.data, size), argument.dtype).reshape(shape)
    array.flags.writeable = writable
    return array


def _list_of(values, count, what):
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(values) != count:
        raise ValueError(f"{what} {len(values)} of {count} outputs")
    return values


def _store(results, outs):
    for i, (result, out) in enumerate(zip(_list_of(results, len(outs), "the function returned"),
                                          outs)):
        result = np.asarray(result)
        if result.shape != out.shape or result.dtype != out.dtype:
            raise ValueError(f"output {i} is {result.dtype} {list(result.shape)}, expected "
                             f"{out.dtype} {list(out.shape)}")
        out[...] = result


def _layouts(layouts, count, what):
    from pleat.model import _spelling
    if layouts is None:
        return [None] * count
    layouts = list(layouts) if isinstance(layouts, (list, tuple)) else [layouts]
    if len(layouts) != count:
        raise ValueError(f"a way has {len(layouts)} layouts for {count} {what}")
    return [None if layout is None else _spelling(layout) for layout in layouts]


class Operators:
    """The functions of a request as the library calls them."""

    def __init__(self, functions):
        self._raised, self._keep = threading.local(), []
        self._pointers = ffi.new("PleatOperator *[]", [self._describe(name, function) for
                                                       name, function in functions.items()])

    def fill(self, struct):
        struct.operators, struct.operator_count = self._pointers, len(self._pointers)

    def set_in(self, struct):
        """Sessions need nothing of these functions."""

    @property
    def error(self):
        """The exception of this thread's call, which is then forgotten."""
        return self._raised.__dict__.pop("error", None)

    def _hold(self, value):
        self._keep.append(value)
        return value

    def _describe(self, name, function):
        op = function if isinstance(function, Operator) else Operator(function)
        if not callable(op.run):
            raise TypeError(f"the operator '{name}' is {type(op.run).__name__}, not a function")
        struct = self._hold(ffi.new("PleatOperator *", {"size": ffi.sizeof("PleatOperator")}))
        struct.name = self._hold(ffi.new("char[]", name.encode()))

        def call_back(type_name, body, failure):
            def guarded(*arguments):
                try:
                    return body(op, *arguments[1:])
                except BaseException as error:  # the call raises it again
                    self._raised.error = error
                    text = f"{type(error).__name__}: {error}".encode()[:_lib.PLEAT_CALL_MESSAGE - 1]
                    ffi.memmove(arguments[-1], text + b"\0", len(text) + 1)
                    return failure
            return self._hold(ffi.callback(type_name, guarded, error=failure))
        struct.run = call_back("int(void *, const PleatCall *, int, const PleatTensor *, "
                               "PleatTensor *, char *)", self._run, _lib.PLEAT_REFUSED)
        if op.infer:
            struct.infer = call_back("int(void *, const PleatCall *, PleatTensorType *, char *)",
                                     self._infer, _lib.PLEAT_REFUSED)
        if op.ways is not None:
            struct.way = call_back("int(void *, const PleatCall *, int, PleatWay *, char *)",
                                   self._way, -1)
        return struct

    @staticmethod
    def _run(op, call, way, inputs, outputs, _):
        call = _call(call, way)
        arrays = [_array(inputs[i], a, False) for i, a in enumerate(call.inputs)]
        outs = [_array(outputs[i], a, True) for i, a in enumerate(call.outputs)]
        extra = {name: {"call": call, "out": outs}[name] for name in op.extra}
        results = op.run(*arrays, **call.attributes, **extra)
        if results is not None or "out" not in op.extra:
            _store(results, outs)
        return _lib.PLEAT_OK

    @staticmethod
    def _infer(op, call, types, _):
        from pleat.model import element_of
        call = _call(call)
        found = op.infer(*call.inputs, **call.attributes)
        single = hasattr(found, "shape") or (isinstance(found, tuple) and len(found) == 2
                                             and not hasattr(found[0], "shape"))
        found = _list_of([found] if single else found, len(call.outputs), "infer gave the types of")
        for type_, one in zip((types[i] for i in range(len(found))), found):
            shape, dtype = (one.shape, one.dtype) if hasattr(one, "shape") else one
            element = element_of(np.dtype(dtype))
            if element is None:
                raise TypeError(f"Pleat has no type {dtype}")
            type_.element.code, type_.element.bits, type_.element.lanes = element
            type_.rank = len(shape)
            for d, extent in enumerate(shape):
                type_.shape[d] = extent
        return _lib.PLEAT_OK

    def _way(self, op, call, number, way, _):
        call = _call(call)
        ways = op.ways(*call.inputs, **call.attributes) if callable(op.ways) else op.ways
        ways = list(ways)
        if number >= len(ways):
            return 0
        one = dict(ways[number])
        unknown = one.keys() - {"inputs", "outputs", "cycles"}
        if unknown:
            raise TypeError(f"a way has inputs, outputs and cycles, and no {sorted(unknown)[0]}")
        way.cycles = one.get("cycles", 0)
        for field in ("inputs", "outputs"):
            texts = [ffi.NULL if text is None else self._hold(ffi.new("char[]", text.encode()))
                     for text in _layouts(one.get(field), len(getattr(call, field)), field)]
            setattr(way, field, self._hold(ffi.new("char *[]", texts)))
        return 1
