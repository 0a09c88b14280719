# SPDX-License-Identifier: Apache-2.0
"""Models: compiled for this machine, run on arrays.

    model = pleat.compile("resnet50.onnx", shapes={"batch": 4})
    logits = model(image)                    # NumPy, or anything with __dlpack__
    a, b = model.run({"x": x, "mask": mask})
    any_size = pleat.compile("bert.onnx")    # free sizes follow from the arrays of each run
    model.save("resnet50.pleat")             # later: model = pleat.load("resnet50.pleat")
    session = model.session(threads=1)       # sessions run at the same time in different threads

Arrays that are contiguous and have the model's type are passed without a copy.
"""
import collections
import contextlib
import functools
import inspect
import os
import sys
import threading

from pleat._library import Lazy, PleatError, _lib, ffi
from pleat._nvrtc import find_nvrtc
from pleat._request import Hooks, Pool, PleatCancelled, PleatFault, check_status, set_numbers, together
from pleat.operators import Operators
from pleat.places import located, title_of

np = Lazy("numpy")
report = Lazy("pleat.report")

__all__ = ["Argument", "Model", "PleatCancelled", "PleatFault", "Session", "compile", "load",
           "plan", "plan_tensor", "verify", "write"]

NUMPY_TYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
               "float16", "float32", "float64"}
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
EXTENDED_CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12,
                  "float8_e5m2fnuz": 13, "float8_e3m4": 7, "float8_e8m0fnu": 14, "float6_e2m3fn": 15,
                  "float6_e3m2fn": 16, "float4_e2m1fn": 17, "int2": 0, "int4": 0, "uint2": 1,
                  "uint4": 1}
NARROW_BITS = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6, "int2": 2, "int4": 4,
               "uint2": 2, "uint4": 4}

Argument = collections.namedtuple("Argument", "name dtype shape is_read", defaults=(False,))
Argument.__doc__ = """An input or output of a model: its name, its NumPy type and its shape;
`is_read` is true for an output of a kernel that reads what the output held before.

A free axis of the shape is None. The shape or type of an output is None when it is known only after
the sizes."""


@functools.lru_cache(maxsize=None)
def dtype_of(name):
    """The NumPy type of Pleat's type `name`; of a vector, a subarray: float32x4 is ("f4", (4,))."""
    base, _, lanes = name.partition("x")
    if lanes:
        return np.dtype((dtype_of(base), (int(lanes),)))
    if name in NUMPY_TYPES:
        return np.dtype(name)
    try:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError) as error:
        raise PleatError(f"arrays of {name} need the package ml_dtypes ({error})") from None


@functools.lru_cache(maxsize=None)  # the name of a NumPy type takes time to find
def element_of(dtype):
    """The fields of a PleatElement; None for a type that Pleat lacks."""
    if dtype.subdtype:
        element = element_of(dtype.base)
        return element and (*element[:2], dtype.shape[0])
    if dtype.name in EXTENDED_CODES:
        bits = NARROW_BITS.get(dtype.name, 8 * dtype.itemsize)
        return EXTENDED_CODES[dtype.name], bits, 1
    if dtype.name in NUMPY_TYPES:
        return CODES[dtype.kind], 8 * dtype.itemsize, 1
    return None


def _describe(tensor, array, keep):
    """Fills a PleatTensor for contiguous arrays with the shape and type of `array`.

    The memory to which the tensor points is added to `keep`."""
    shape = ffi.new("int64_t[]", array.shape or (0,))
    keep.append(shape)
    tensor.device_type, tensor.device_id = 1, 0
    tensor.rank, tensor.shape, tensor.strides = len(array.shape), shape, ffi.NULL
    tensor.type.code, tensor.type.bits, tensor.type.lanes = element_of(array.dtype)
    tensor.byte_offset = 0


def _shape_text(shape):
    if shape is None:
        return "[...]"
    return "[" + ", ".join("?" if extent is None else str(extent) for extent in shape) + "]"


def _fits(shape, expected):
    return len(shape) == len(expected) and all(e in (None, s) for s, e in zip(shape, expected))


def _address(array):
    try:
        return ffi.from_buffer(array)  # a fifth of the time of the interface
    except (TypeError, ValueError, BufferError):  # element types that buffers do not have
        return ffi.cast("void *", array.__array_interface__["data"][0])


def _array_of(value):
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def _shapes_text(shapes):
    if shapes and not hasattr(shapes, "items"):
        raise TypeError(f"expected shapes by name, such as {{'x': (1, 3)}}, not {shapes!r}")
    for name, shape in (shapes or {}).items():
        extents = [shape] if isinstance(shape, (int, np.integer)) else shape
        word = isinstance(shape, str)
        yield f"{name}={shape if word else 'x'.join(str(int(extent)) for extent in extents)}"


def _spelling(layout):
    if callable(layout):  # such as lambda n, c: [c, n]
        from pleat.tir import IndexMap
        layout = IndexMap.from_func_with_separators(layout)[0]
    return layout if isinstance(layout, str) else getattr(layout, "spelling", None) or str(layout)


def _layouts_text(layouts):
    """Texts "NAME=LAYOUT", or "NAME:OPERAND=LAYOUT,…" for a dictionary by operand."""
    if layouts and not hasattr(layouts, "items"):
        raise TypeError(f"expected layouts by name, such as {{'x': 'NHWC'}}, not {layouts!r}")
    for name, layout in (layouts or {}).items():
        if hasattr(layout, "items"):
            yield f"{name}:" + ",".join(f"{operand}={_spelling(one)}"
                                        for operand, one in layout.items())
        else:
            yield f"{name}={_spelling(layout)}"


def _kept(keep):
    """The names whose layouts are kept, as a list; "" stands for all."""
    if isinstance(keep, bool) or keep is None:
        return [""] if keep else []
    return [keep] if isinstance(keep, str) else list(keep)


def flattened(name, value):
    """The arrays of a sequence by the names of the model's inputs: "x[0]", "x[1]" and so on."""
    if not isinstance(value, (list, tuple)):
        return {name: value}
    return {key: array for i, item in enumerate(value)
            for key, array in flattened(f"{name}[{i}]", item).items()}


class _Request:
    """A PleatRequest, together with the memory to which it points."""

    def __init__(self, model, **numbers):
        self.keep = []
        self.struct = ffi.new("PleatRequest *", {"size": ffi.sizeof("PleatRequest")})
        set_numbers(self.struct, **numbers)
        self.hooks = Hooks(None, None)
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if isinstance(model, str) and "\n" in model:  # no path has a second line
            model = model.encode()
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = self.hold(ffi.from_buffer(model if len(model) else b"\0"))
            self.struct.bytes, self.struct.byte_count = data, len(model)
        else:
            self.struct.path = self.text(os.fspath(model))

    def hold(self, data):
        self.keep.append(data)
        return data

    def text(self, text):
        return self.hold(ffi.new("char[]", os.fsencode(text)))

    def set_texts(self, **fields):
        for field, text in fields.items():
            if text is not None and not isinstance(text, (str, bytes, os.PathLike)):
                raise TypeError(f"{field}: expected a text, not {text!r}")
            if text is not None:
                setattr(self.struct, field, self.text(text))

    def add_texts(self, **lists):
        for field, texts in lists.items():
            texts = [self.text(text) for text in texts]
            setattr(self.struct, field + "s", self.hold(ffi.new("char *[]", texts)))
            setattr(self.struct, field + "_count", len(texts))

    def add_contents(self, contents):
        """Contents of constants that the text has by their names."""
        self.keep += contents
        self.struct.contents = self.hold(ffi.new("PleatContents *[]", [one.handle for one in contents]))
        self.struct.content_count = len(contents)

    def add_known(self, known):
        self.struct.known = named = self.hold(ffi.new("PleatNamedTensor[]", len(known)))
        self.struct.known_count = len(known)
        for one, (name, value) in zip(named, known.items()):
            array = np.asarray(_array_of(value), order="C")
            if element_of(array.dtype) is None:
                raise PleatError(f"the known value of '{name}' has type {array.dtype}")
            tensor = self.hold(ffi.new("PleatTensor *"))
            _describe(tensor, array, self.keep)
            tensor.data = _address(self.hold(array))
            one.name, one.tensor = self.text(name), tensor


def _pointed(described, arrays):
    """Copies of the described tensors that point to the data of the arrays."""
    tensors = ffi.new("PleatTensor[]", len(arrays))
    ffi.memmove(tensors, described, ffi.sizeof(tensors))
    for tensor, array in zip(tensors, arrays):
        tensor.data = _address(array)
    return tensors


def _tensors(arrays, keep):
    """PleatTensors that point to the arrays. The memory to which they also point is added to
    `keep`."""
    tensors = ffi.new("PleatTensor[]", len(arrays))
    for tensor, array in zip(tensors, arrays):
        _describe(tensor, array, keep)
        tensor.data = _address(array)
    return tensors


@contextlib.contextmanager
def _locating(model):
    """Errors about the script of a module or function name the places that it came from."""
    try:
        yield
    except PleatError as error:
        if not hasattr(model, "_handle"):
            raise
        raise located(error, model) from None


def _request_of(model, options):
    """The request for a model with the options of Model."""
    return _fill_request(model, **options)


def _fill_request(model, shapes=None, known=None, threads=0, cpu=None, quick=False,
                  input_layouts=None, output_layouts=None, desired_layouts=None, keep_layouts=None,
                  policy=None, cache=True, func=None, log=None, progress=None, most_variants=0,
                  parallel_for=None, unchecked=False, operators=None, accuracy=None,
                  offload=None, target=None, tuning=None):
    title, contents = None, ()
    if hasattr(model, "__script__"):  # a module or function of TVMScript
        if not hasattr(model, "_handle"):
            raise TypeError(f"expected a model, a module or a function, not {model!r}")
        title = title_of(model)
        from pleat.ir._module import printed
        text, contents = printed(model._handle)
        model, func = text.encode(), func or ""
    if target == "cuda":
        find_nvrtc()
    request = _Request(model, threads=threads, quick=quick, no_cache=not cache,
                       most_variants=most_variants, unchecked=unchecked)
    request.set_texts(path=title, cpu=cpu, policy=policy, func=func, language="python",
                      accuracy=None if accuracy is None else str(accuracy), offload=offload,
                      target=target, tuning=tuning)
    request.add_texts(shape=_shapes_text(shapes), input_layout=_layouts_text(input_layouts),
                      output_layout=_layouts_text(output_layouts),
                      desired_layout=_layouts_text(desired_layouts),
                      keep_layout=_kept(keep_layouts))
    request.add_known(known or {})
    request.add_contents(contents)
    request.operators = Operators(operators) if operators else None
    if operators:
        request.operators.fill(request.struct)
    request.hooks = together(Hooks(log, progress), request.operators)
    request.hooks.set_in(request.struct)
    request.pool = together(_pool(parallel_for), request.operators)
    if request.pool:
        request.pool.set_in(request.struct)
    return request


class _Runner:
    """An object that runs on arrays: a model, or a session of one."""

    _program = None  # the module or function that was compiled

    def __repr__(self):
        def row(arguments):
            return ", ".join(f"{a.name} {_shape_text(a.shape)} {a.dtype}" for a in arguments)
        return f"{type(self).__name__}({row(self.inputs)} -> {row(self.outputs)})"

    def __call__(self, *arrays, **named):
        """Runs on arrays in the order of the inputs, or by their names. One output is an array,
        several are a tuple."""
        if len(arrays) > len(self.inputs):
            raise TypeError(f"the model has {len(self.inputs)} inputs, not {len(arrays)}")
        given = {argument.name: array for argument, array in zip(self.inputs, arrays)}
        if given.keys() & named.keys():
            raise TypeError(f"given twice: {', '.join(given.keys() & named.keys())}")
        results = self.run({**given, **named})
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs, outputs=None):
        """Runs the model and returns the outputs as a list.

        `inputs` is a dictionary by name, a sequence of arrays, or the array of the only input.
        `outputs`, if present, are arrays to write to, one for each output, which must overlap neither
        each other nor the inputs. A list of arrays is passed as a sequence, whose tensors are separate
        inputs of the compiled model."""
        inputs = self._by_name(inputs)
        if outputs is None:
            outputs = self._updated(inputs)
        given = self._given(inputs)
        if self._sizes is not None:
            return self._sizes.run(self.inputs, given, outputs)
        results = self._results(outputs, self.outputs, self.inputs, given)
        ins, outs = map(_pointed, self._tensors, (given, results))
        messages = ffi.new("PleatMessages **")
        status = self._run(ins, len(given), outs, len(results), messages)
        if status != _lib.PLEAT_OK or messages[0] != ffi.NULL or self._pool:
            with _locating(self._program):
                check_status(status, messages, self._pool)
        return results

    def profile(self, inputs=None, repeat=10, *, seed=0, progress=None):
        """Where the time of a run goes, as a pleat.Profile; print it to see the table.

        inputs: those of `run`; None: random ones from `seed`, unless sizes are free
        repeat: measured runs, after one that is not measured
        progress: is called with ("measuring", how many runs are done, of how many); the call ends
                with PleatCancelled when it returns False"""
        keep, given = [], []
        if inputs is not None:
            given = self._given(self._by_name(inputs), updated=True)
        return report.measured(self._profile, _tensors(given, keep), len(given), repeat, seed,
                               Hooks(None, progress), self._pool)

    def _by_name(self, inputs):
        """The inputs as a dictionary, with one entry for each tensor of a sequence."""
        if not isinstance(inputs, dict):
            only = len(self.inputs) == 1 and hasattr(inputs, "shape")
            inputs = [inputs] if only else list(inputs)
            if len(inputs) != len(self.inputs):
                raise TypeError(f"the model has {len(self.inputs)} inputs, not {len(inputs)}")
            inputs = {argument.name: array for argument, array in zip(self.inputs, inputs)}
        names = {argument.name for argument in self.inputs}
        if inputs.keys() == names:
            return dict(inputs)
        return {key: array for name, value in inputs.items()
                for key, array in ({name: value} if name in names
                                   else flattened(name, value)).items()}

    def _given(self, inputs, updated=False):
        """The arrays of the inputs in their order. With `updated`, `inputs` may also have the
        contents of outputs, which are left out."""
        given = [self._input(argument, inputs) for argument in self.inputs]
        if len(inputs) == len(given):
            return given
        names = {argument.name for argument in self.inputs}
        if updated:
            names |= {argument.name for argument in self.outputs if argument.is_read}
        unknown = inputs.keys() - names
        if unknown:
            raise TypeError(f"the model has no input {', '.join(sorted(unknown))}; its inputs are "
                            f"{', '.join(argument.name for argument in self.inputs)}")
        return given

    @staticmethod
    def _input(argument, inputs):
        if argument.name not in inputs:
            given = f"; given are {', '.join(map(str, inputs))}" if inputs else ""
            raise TypeError(f"input '{argument.name}' {_shape_text(argument.shape)} is missing{given}")
        value = inputs[argument.name]
        if (type(value) is np.ndarray and value.dtype == argument.dtype
                and value.shape == argument.shape and value.flags.c_contiguous
                and value.flags.aligned):
            return value
        if isinstance(value, (bool, int, float, list, tuple)):
            value = np.array(value, argument.dtype)
        array = _array_of(value)
        if array.dtype != argument.dtype and array.dtype.newbyteorder("=") != argument.dtype:
            raise TypeError(f"input '{argument.name}' is {array.dtype}, the model takes "
                            f"{argument.dtype}")
        if not _fits(array.shape, argument.shape):
            raise ValueError(f"input '{argument.name}' has shape {list(array.shape)}, the model "
                             f"was compiled for {_shape_text(argument.shape)}")
        array = np.asarray(array, argument.dtype, order="C")
        return array if array.flags.aligned else array.copy()

    def _updated(self, inputs):
        """Takes the contents of outputs that are read before they are written from `inputs`, and
        returns arrays for all outputs; None when no output is read."""
        if not any(argument.is_read for argument in self.outputs):
            return None
        results = [self._input(argument, inputs).copy() if argument.is_read
                   else np.empty(argument.shape, argument.dtype) for argument in self.outputs]
        for argument in self.outputs:
            if argument.is_read:
                del inputs[argument.name]
        return results

    @staticmethod
    def _results(outputs, arguments, inputs, given):
        """The arrays for the outputs `arguments`: those of the caller, or new ones. `given` are the arrays
        of `inputs`, which the run reads while it writes the outputs."""
        if outputs is None:
            return [np.empty(argument.shape, argument.dtype) for argument in arguments]
        outputs = list(outputs)
        if len(outputs) != len(arguments):
            raise TypeError(f"the model has {len(arguments)} outputs, not {len(outputs)}")
        for argument, array in zip(arguments, outputs):
            fits = (isinstance(array, np.ndarray) and array.dtype == argument.dtype and
                    array.shape == argument.shape and array.flags.carray)
            if not fits:
                raise ValueError(f"output '{argument.name}' needs a writable compact array of "
                                 f"{argument.dtype} {list(argument.shape)}")
        for i, (argument, array) in enumerate(zip(arguments, outputs)):
            for kind, others in (("input", zip(inputs, given)), ("output", zip(arguments[:i], outputs))):
                for other, memory in others:
                    if np.may_share_memory(array, memory):
                        raise ValueError(f"the memory of output '{argument.name}' overlaps that of {kind} "
                                         f"'{other.name}'")
        return outputs


def _argument(argument):
    """A PleatArgument as an Argument."""
    kind = ffi.string(argument.type).decode()
    shape = tuple(None if argument.shape[i] < 0 else argument.shape[i]
                  for i in range(argument.rank))
    return Argument(ffi.string(argument.name).decode(),
                    None if kind == "unknown" else dtype_of(kind),
                    None if argument.rank < 0 else shape,
                    argument.access == _lib.PLEAT_READ | _lib.PLEAT_WRITTEN)


class _Sizes:
    """Runs a session of a model with free sizes, whose outputs are known only after the inputs."""

    def __init__(self, session, output_count, pool, wait):
        self._session, self._output_count, self._wait = session, output_count, wait
        self._pool = pool
        self._lock = threading.Lock()

    def run(self, inputs, given, outputs):
        if not self._lock.acquire(blocking=self._wait):
            raise PleatError("the session is running in another thread: make a session for each "
                             "thread with Model.session")
        try:
            return self._locked(inputs, given, outputs)
        finally:
            self._lock.release()

    def _locked(self, inputs, given, outputs):
        messages, keep = ffi.new("PleatMessages **"), []
        ins = _tensors(given, keep)
        check_status(_lib.pleat_session_prepare(self._session, ins, len(given), messages), messages)
        results = _Runner._results(outputs, [_argument(_lib.pleat_session_output(self._session, i))
                                             for i in range(self._output_count)], inputs, given)
        outs = _tensors(results, keep)
        check_status(_lib.pleat_session_run(self._session, ins, len(given), outs, len(results),
                                            messages), messages, self._pool)
        return results


def _pool(parallel_for):
    return Pool(parallel_for) if parallel_for else None


def _session_options(threads, *callers):
    options = ffi.new("PleatSessionOptions *", {"size": ffi.sizeof("PleatSessionOptions")})
    set_numbers(options, threads=threads)
    for caller in callers:
        if caller:
            caller.set_in(options)
    return options


def _new_session(model, threads, pool):
    """A session of the library for one of its models."""
    options = _session_options(threads, pool)
    session, messages = ffi.new("PleatSession **"), ffi.new("PleatMessages **")
    check_status(_lib.pleat_session_new(model, options, session, messages), messages)
    return ffi.gc(session[0], _lib.pleat_session_free)


class Model(_Runner):
    """A compiled model.

    `inputs` and `outputs` are lists of Argument; `messages` are the compiler's warnings
    and notes, a list of pleat.Message. Several threads may call a model; their runs follow one another, and
    those of its sessions do not.

    A model whose free sizes were not given with `shapes=` is compiled when it first runs on arrays
    of new shapes, and keeps what it compiled for the last few."""

    def __init__(self, model, *, shapes=None, known=None, threads=0, cpu=None, quick=False,
                 input_layouts=None, output_layouts=None, desired_layouts=None, keep_layouts=None,
                 policy=None, cache=True, func=None, log=None, progress=None, most_variants=0,
                 parallel_for=None, unchecked=False, operators=None, accuracy=None,
                 offload=None, target=None, tuning=None):
        """Compiles a file's path, its bytes, or an onnx.ModelProto; with `func`, when the path ends in
        .py, or for the bytes or the text of a script, a graph or a kernel of TVMScript; or a
        pleat.IRModule or a function of one.

        shapes: sizes that the model leaves free, and that otherwise follow from the arrays of a run:
                shapes of inputs, {"x": (1, 3, 224, 224)}, or sizes of named dimensions,
                {"batch": 4}; for a sequence, the shapes of its tensors, {"x[0]": (2, 3),
                "x[1]": (4,)}, or {"x": "empty"}; {"x": "none"} for an absent optional input
        known:  values of inputs that the compiler must know, such as the target of a Reshape
        threads: 0 is one for each core
        cpu:    a level such as "avx2"; None: all that this machine has
        quick:  compile in less time to slower code, for a model that runs only a few times

        Layouts, each a pleat.Layout or a spelling of one, "NCHW16c" or "n, c -> c, n":
        input_layouts, output_layouts: the layouts in which the caller has inputs and outputs,
                {"image": "NHWC"}, over the letters that the graph tells of its axes; a note in
                `messages` says what each does. `inputs` and `outputs` have the physical shapes
        desired_layouts: the layout of all tensors with as many axes that an operator reads or
                writes, by the operator's kind or name, {"Conv": "NHWC"}; or one layout for each
                operand, {"conv1": {"data": "NCHW8c", "weight": "OIHW16i16o"}}, where operands are
                data, weight, bias, output, input0, output0, …
        keep_layouts: names of tensors and operators whose layouts stay unchanged; True: all
        policy: how all other layouts are chosen: "optimal" (also for None), "forward", "backward"
                or "none"
        cache:  use and keep compiled code in the user's cache folder
        func:   the name of a function of TVMScript; "" for the only one. The inputs of a kernel are
                the parameters that it only reads, its outputs those that it writes
        log:    is called with each pleat.Message soon after it appears
        progress: is called with ("reading" or another part of the work, how many of it are done, of
                how many); the call ends with PleatCancelled when it returns False, and with the
                exception when it raises one
        most_variants: for how many shapes of free sizes compiled code is kept; 0 is 8
        parallel_for: runs the loops of the model in place of threads of its own: parallel_for(part,
                count) calls part(begin, end) for parts of the iterations from 0 to count, in any
                threads, each iteration once, and returns when all are done. Sessions call it in
                several threads at once. `threads` is then how many work on a loop. An exception
                in it ends the run and is raised by it
        unchecked: do not check accesses of a kernel that are not proved to be in bounds; otherwise
                a run in which one is out of bounds raises PleatError
        operators: functions that compute operators which Pleat does not know, by their names:
                {"com.example::Scale": function} for nodes of ONNX, {"name": function} for
                R.call_dps_packed and its like. A pleat.Operator, made by @pleat.operator, also says
                which layouts the function takes and gives, and what it costs. Such a model cannot
                be saved
        accuracy: how much the rounding of sums may grow by computing them with fewer products, as
                Winograd's algorithms do for convolutions and Strassen's for products of matrices:
                "default" (also for None), to 4 times that of the direct sum; "exact", not at all;
                or the most error relative to all results, such as 1e-6
        offload: "dnnl", or "dnnl=Conv,MatMul": what oneDNN computes, if it is installed: convolutions
                and products of matrices with what follows them, of these operators or nodes
        target: "llvm", "c", or for devices "opencl" or "cuda": what makes and runs the code; None: "llvm"
        tuning: the path of a file of schedules of kernels, with the layouts that these need, as
                `pleat plan --write-tuning` writes it
        Raises PleatError with every reason why the model cannot be compiled."""
        self._source = model, {name: value for name, value in locals().items()
                               if name not in ("self", "model")}
        request = _request_of(*self._source)
        request.struct.free_sizes = True
        self._pool, self._operators = request.pool, request.operators
        compiled, messages = ffi.new("PleatModel **"), ffi.new("PleatMessages **")
        status = _lib.pleat_model_compile(request.struct, compiled, messages)
        self._program = model if hasattr(model, "_handle") else None
        with _locating(model):
            self.messages = check_status(status, messages, request.hooks)
        self._take(compiled[0])

    def _take(self, model):
        """Describes a model of the library, which this object owns from now on."""
        self._model = ffi.gc(model, _lib.pleat_model_free)
        self.inputs = [_argument(_lib.pleat_model_input(model, i))
                       for i in range(_lib.pleat_model_input_count(model))]
        self.outputs = [_argument(_lib.pleat_model_output(model, i))
                        for i in range(_lib.pleat_model_output_count(model))]
        self._keep, self._sizes, self._tensors = [], None, None
        arguments = [*self.inputs, *self.outputs]  # outputs may depend on sizes that scalars give
        if any(argument.shape is None or None in argument.shape for argument in arguments):
            self._sizes = _Sizes(_new_session(model, 0, self._pool), len(self.outputs), self._pool,
                                 wait=True)
        else:
            self._tensors = [self._described(arguments)
                             for arguments in (self.inputs, self.outputs)]

    def _described(self, arguments):
        tensors = ffi.new("PleatTensor[]", len(arguments))
        for tensor, argument in zip(tensors, arguments):
            _describe(tensor, argument, self._keep)
        return tensors

    @property
    def is_open(self):
        """Does this model take the sizes of free dimensions from the arrays of each run?"""
        return self._sizes is not None

    def _run(self, *arguments):
        return _lib.pleat_model_run(self._model, *arguments)

    def _profile(self, *arguments):
        return _lib.pleat_model_profile(self._model, *arguments)

    def _again(self):
        if self._source is None:
            raise PleatError("a model that was loaded has only its code: use the model from which "
                             "it was compiled")
        model, options = self._source
        return model, {**options, "log": None, "progress": None}

    def plan(self):
        """The plan of this model; see pleat.plan."""
        model, options = self._again()
        return plan(model, **options)

    def fusion(self):
        """The kernels of this model as a list: which operators each computes, which kernels read
        its result, and why they are not fused."""
        return self.plan()["joins"]

    def verify(self, inputs=None, **how):
        """Compares what this model computes with the definitions of its operators, with other
        inputs than `inputs` random; see pleat.verify."""
        model, options = self._again()
        if inputs is not None:
            inputs = self._by_name(inputs)
        options.update((name, how.pop(name)) for name in ("log", "progress") if name in how)
        return verify(model, inputs, **how, **options)

    def write(self, path, **how):
        """Writes this model as code; see pleat.write."""
        model, options = self._again()
        given = {name: how.pop(name) for name in _WRITING if name in how}
        return _write(model, path, given, {**options, **how})

    def export_library(self, path, *, workspace_dir=None):
        """Writes a model of a graph of an IRModule for load_module; see pleat.relax.Executable."""
        from pleat.relax.vm import executable_of
        executable_of(self).export_library(path, workspace_dir=workspace_dir)

    def session(self, threads=0, parallel_for=None):
        """A session of this model: it shares the weights and the code, has memory of its own, and
        runs at the same time as others. threads: 0 is as many as the model has. parallel_for:
        runs the loops, as for Model; None: that of the model."""
        return Session(self, threads, parallel_for)

    def save(self, path):
        """Writes the compiled model to a file, which pleat.load reads without compiling."""
        messages = ffi.new("PleatMessages **")
        check_status(_lib.pleat_model_save(self._model, os.fsencode(path), messages), messages)


class Session(_Runner):
    """The memory and threads with which a model runs; made by Model.session.

    A session runs in one thread at a time: a second thread gets a PleatError."""

    def __init__(self, model, threads=0, parallel_for=None):
        if not isinstance(model, Model):
            raise TypeError(f"a session runs a pleat.Model, not {model!r}")
        self._pool = together(_pool(parallel_for), model._operators) if parallel_for else model._pool
        self._session = _new_session(model._model, threads, self._pool)
        self._model = model  # for the shapes to which the described tensors point
        self.inputs, self.outputs, self._tensors = model.inputs, model.outputs, model._tensors
        self._sizes = model._sizes and _Sizes(self._session, len(self.outputs), self._pool,
                                              wait=False)

    def _run(self, *arguments):
        return _lib.pleat_session_run(self._session, *arguments)

    def _profile(self, *arguments):
        return _lib.pleat_session_profile(self._session, *arguments)


def _graphs_of(model):
    """The number of graph functions of a pleat.IRModule or a function; None for other models."""
    module = sys.modules.get("pleat.ir._module")
    if module is None or not isinstance(model, (module.IRModule, module.BaseFunc)):
        return None
    if isinstance(model, module.BaseFunc):
        return int(not isinstance(model, module.PrimFunc))
    return sum(not isinstance(function, module.PrimFunc) for function in model.functions.values())


def compile_options(target):
    """The options of Model for a target: its name, a pleat.target.Target, or None."""
    if target is None or isinstance(target, str):
        return {"target": target}
    from pleat.target import Target
    target = Target(target)
    return {**target.build_options(), "target": target.kind.name}


def compile(model, target=None, **options):
    """Compiles a model; the options are those of Model, and the target may be a pleat.target.Target.
    A PrimFunc, or a pleat.IRModule of tensor programs alone, becomes a pleat.runtime.Module, as pleat.build
    makes it and TVM does, and a module of several graph functions a pleat.relax.Executable, unless `func`
    names one of its functions, which then becomes a Model, as does what pleat.Model is called with. A graph of TVMScript may call the functions of
    pleat.register_func."""
    graphs = _graphs_of(model) if options.get("func") is None else None
    if graphs == 0:
        from pleat.runtime import build
        return build(model, target=target, **options)
    if graphs is not None and graphs > 1:
        from pleat.relax import build
        return build(model, target=target, **options)
    if options.get("operators") is None:
        from pleat.registry import operators_in
        options["operators"] = operators_in(model)
    return Model(model, **{**compile_options(target), **options})


def load(model, threads=0, *, log=None, progress=None, parallel_for=None, operators=None):
    """Loads a saved model, from a file's path or its bytes. It needs no compiler and takes
    milliseconds, but the same version of Pleat and a processor that has what the model was
    compiled for. The file may be removed or replaced afterwards, but not be changed in place.
    Load only files that you trust: they hold code.

    threads: of the model's own runs; 0 is one for each core
    log, progress, parallel_for: as for Model
    operators: the functions that the model calls, by the names under which Model got them. Each has
            to call its way with tensors in the same layouts as when the model was saved
    Raises PleatError when a function is missing, and when the file is damaged or was made for
    another version or processor."""
    functions = Operators(operators) if operators else None
    pool, hooks = together(_pool(parallel_for), functions), together(Hooks(log, progress), functions)
    options = _session_options(threads, pool, hooks)
    options.language = language = ffi.new("char[]", b"python")
    if functions:
        functions.fill(options)
    result, messages = ffi.new("PleatModel **"), ffi.new("PleatMessages **")
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = ffi.from_buffer(model if len(model) else b"\0")
        status = _lib.pleat_model_load_bytes(data, len(model), options, result, messages)
    else:
        status = _lib.pleat_model_load(os.fsencode(model), options, result, messages)
    loaded = Model.__new__(Model)
    loaded._source = None
    loaded._pool, loaded._operators = pool, functions
    loaded.messages = check_status(status, messages, hooks)
    loaded._take(result[0])
    return loaded


def plan(model, **options):
    """The plan of a model, without compiling it, as a pleat.Plan: its kernels, rewrites and tensors
    with their layouts, reasons and prices; print it to see a table. It is also a dictionary with
    the fields of `pleat plan --json`, which pleat.h describes. The options are those of Model."""
    with _locating(model):
        return report.planned(_request_of(model, options))


def plan_tensor(model, tensor, **options):
    """A tensor of a plan, as a pleat.TensorPlan: its uses, and what a run would cost with each other
    layout of it, or what forbids the layout. "t=NCHW8c" asks for the price of any layout of t."""
    with _locating(model):
        return report.tensor_planned(_request_of(model, options), tensor)


def _named_tensors(values, keep):
    """PleatNamedTensors of a dictionary; the memory to which they point is added to `keep`."""
    if values is not None and not hasattr(values, "items"):
        raise TypeError(f"expected arrays by name, such as {{'x': array}}, not {type(values).__name__}")
    arrays = {key: np.asarray(_array_of(array), order="C")
              for name, value in (values or {}).items()
              for key, array in flattened(name, value).items()}
    for name, array in arrays.items():
        if element_of(array.dtype) is None:
            raise PleatError(f"the array for '{name}' has type {array.dtype}")
    tensors = _tensors(list(arrays.values()), keep)
    named = ffi.new("PleatNamedTensor[]", len(arrays))
    for i, name in enumerate(arrays):
        keep.append(ffi.new("char[]", name.encode()))
        named[i].name, named[i].tensor = keep[-1], ffi.addressof(tensors, i)
    keep += [tensors, arrays]
    return named


def verify(model, inputs=None, *, seed=0, rtol=0, atol=0, max_ulp=0, exact=False,
           definitions=False, expected=None, **options):
    """Compiles a model, runs it once, and compares every tensor that a kernel writes with what the
    operators' definitions give. Returns a pleat.Verification, which is true if all agree; it says
    which tensors differ, and which kernel and which part of the compiler made the first.

    inputs:  arrays by name; other inputs have random contents from `seed`
    rtol, atol, max_ulp: how close an element must be: |expected - actual| <= atol + rtol *
            |expected|, or at most max_ulp numbers of its type apart; without them 1e-4 relative and
            1e-5 of the largest element, or 2e-2 of both for floats of 16 bits or fewer
    exact:   no difference is allowed
    definitions: expect what the definitions give as code without a schedule, which takes much less
            time than the interpreter
    expected: contents of outputs by name that others computed, which are compared, too
    The other options are those of Model.

    Where a kernel rounds to coarse steps, as quantisation does, numbers that agree can be on both
    sides of a boundary. Then elements also agree when they are between the results for numbers
    before rounding that are lower and higher by the tolerance; `at_boundaries` counts them.

    Of a tensor program with T.call_packed, Python runs the calls, and each compiled part between them is
    compared on the arrays that it gets in this run."""
    from pleat import host
    program = host.program_of(model)
    if program is not None:
        if definitions or expected:
            raise PleatError("a program with T.call_packed is compared with the interpreter alone")
        return host.verify(program, inputs, seed, {"rtol": rtol, "atol": atol, "max_ulp": max_ulp,
                                                 "exact": exact}, options)
    request, keep = _request_of(model, options), []
    given, wanted = _named_tensors(inputs, keep), _named_tensors(expected, keep)
    how = ffi.new("PleatVerifyOptions *", {
        "size": ffi.sizeof("PleatVerifyOptions"), "inputs": given, "input_count": len(given),
        "seed": seed, "rtol": rtol, "atol": atol, "max_ulp": max_ulp, "exact": exact,
        "definitions": definitions, "expected": wanted, "expected_count": len(wanted)})
    with _locating(model):
        return report.verified(request, how)


def write(model, path, *, target=None, weights=None, openmp=False, lowered=False, annotate=False,
          **options):
    """Writes a model, or the kernels of a file of TVMScript, as what the ending of the path says:
    .so, .o, .s, .ll, .c with its header, .cl, .cu and .ptx (which NVRTC makes) with the kernels of a
    device, or .py for TVMScript.

    target:  "llvm", "c", "opencl" or "cuda"; None: by the ending
    weights: "inside" the file of code or "beside" it; None: inside up to 1 MiB
    openmp:  parallel loops of C are written for -fopenmp
    lowered: TVMScript as the code generators read it, not as scheduled
    annotate: .py, .ll and .s have the logical accesses that flat ones came from, as .c has always
    The other options are those of Model. Returns the list of warnings."""
    return _write(model, path, {"target": target, "weights": weights, "openmp": openmp, "lowered": lowered,
                                "annotate": annotate}, options)


_WRITING = ("target", "weights", "openmp", "lowered", "annotate")


def _write(model, path, how, options):
    """As write, where `options` may have a target too: that of the plan."""
    if os.fspath(path).endswith(".ptx") or "cuda" in (how.get("target"), options.get("target")):
        find_nvrtc()
    request = _request_of(model, options)
    fields = {name: ffi.new("char[]", value.encode()) if isinstance(value, str) else value
              for name, value in how.items() if value is not None}
    given = ffi.new("PleatWriteOptions *", {"size": ffi.sizeof("PleatWriteOptions"), **fields})
    messages = ffi.new("PleatMessages **")
    status = _lib.pleat_write(request.struct, given, os.fsencode(path), messages)
    with _locating(model):
        return check_status(status, messages, request.hooks)


compile.__signature__ = inspect.signature(Model)
