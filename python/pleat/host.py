# SPDX-License-Identifier: Apache-2.0
"""Runs tensor programs that call functions of Python:

    for i in range(5):                                         Python runs this loop
        T.evaluate(T.call_packed("my.scale", A, i))            a function that pleat.register_func registers
        for j in range(7):                                     a program of its own, which is compiled
            B[i, j] = A[i, j] + T.float32(1)

The statements around calls run here, one after the other. The largest statements without a call are
programs of their own, whose parameters are the buffers and variables that they use; so are expressions,
whose values such a program stores. In an expression with calls the operands are computed from the left to
the right, and the second ones of `and`, `or` and T.if_then_else only where they count. A bare pointer, such
as A.data, is a ctypes.c_void_p for the function."""
import ctypes
import importlib
import json

from pleat import registry
from pleat._library import Lazy, PleatError

np = Lazy("numpy")

CALL, ARRAY = "tir.tvm_call_packed", "tir.tvm_stack_make_array"
JUMPS = {"tir.ret": "return", "tir.break_loop": "break", "tir.continue_loop": "continue"}
PLAIN_LOOPS = (0, 1, 2, 3)  # serial, parallel, vectorized, unrolled


def _tir():
    return importlib.import_module("pleat.tir.nodes")


def _is_call(node):
    return type(node).__name__ == "Call" and node.op == CALL


def _parts(node):
    functor = importlib.import_module("pleat.tir.stmt_functor")
    found = []
    functor.post_order_visit(node, found.append)
    return found


def calls_python(node):
    """Does a program have a T.call_packed?"""
    return any(map(_is_call, _parts(node.body)))


def _refuse(name, why):
    raise PleatError(f"{name}: {why}")


class MissingFunction(PleatError):
    """A function that a program calls is not registered."""


class _Jump(Exception):
    """Leaves a loop, its iteration or the program."""

    def __init__(self, kind, value=None):
        super().__init__(kind)
        self.kind, self.value = kind, value


def _host_parts(body):
    """The numbers (id) of the parts that Python runs: those with calls, and those that jump out of
    themselves."""
    functor = importlib.import_module("pleat.tir.stmt_functor")
    found, leaves = set(), {}
    for part in functor.post_ordered([body], functor._children):
        kinds = set()
        for child in functor._children(part):
            kinds |= leaves[id(child)]
            if id(child) in found:
                found.add(id(part))
        if type(part).__name__ == "Call" and part.op in JUMPS:
            kinds.add(JUMPS[part.op])
        if type(part).__name__ in ("For", "While"):
            kinds -= {"break", "continue"}
        leaves[id(part)] = kinds
        if kinds or _is_call(part):
            found.add(id(part))
    return found


class _Segment:
    """A compiled part of a program, and the buffers and variables that it takes, in their order.
    `source` is the part as a program of its own."""

    def __init__(self, function, source, buffers, variables):
        self.function, self.source = function, source
        self.buffers, self.variables = buffers, variables


def _prepared(name, function):
    """The function as loops alone where Python runs loops around blocks, or blocks with T.match_buffer: the
    compiled parts are programs of their own, in which the domains of such loops are not known."""
    on_host = _host_parts(function.node.body)
    around = [part for part in _parts(function.node.body) if id(part) in on_host
              and (type(part).__name__ == "For" or getattr(part, "match_buffers", None))]
    if not any(type(part).__name__ == "Block" for loop in around for part in _parts(loop)):
        return function
    transform = importlib.import_module("pleat.tir.transform")
    module = importlib.import_module("pleat.ir").IRModule({name: function})
    return transform.LowerOpaqueBlock()(module)[name]


class HostProgram:
    """A program whose sizes are known, run as Python statements and compiled parts."""

    def __init__(self, name, function, options, check=None):
        """check: called before each compiled part runs, with the segment and its arguments"""
        function = _prepared(name, function)
        self.name, self.options, self.node = name, options, function.node
        self.check, self.text = check, function.script()
        self.keep, self.segments, self.splits = [self.node], {}, {}
        self.on_host = _host_parts(self.node.body)

    def _place(self, name):
        """Where the printed program first calls a function."""
        for number, line in enumerate(self.text.splitlines(), 1):
            column = line.find(f"call_packed({json.dumps(name, ensure_ascii=False)}")
            if column >= 0:
                return f"script of {self.name}:{number}:{line.rfind('T.', 0, column) + 1}: error: "
        return f"{self.name}: "

    def packed(self, name):
        """The function that is registered under a name."""
        function = registry.get_global_func(name, allow_missing=True)
        if function is None:
            raise MissingFunction(f"{self._place(name)}no function '{name}' is registered; "
                             f"pleat.register_func({name!r}) registers one")
        return function

    def find_functions(self):
        """Raises PleatError where a function that the program calls is not registered."""
        for part in _parts(self.node.body):
            if _is_call(part):
                self.packed(part.args[0].value)

    # ---- Running --------------------------------------------------------------------------------

    def run(self, arrays):
        """Runs the program on its arguments: arrays and numbers, in the order of the parameters."""
        state = _Run(self)
        for param, value in zip(self.node.params, arrays):
            buffer = self.node.buffer_map.get(param)
            if buffer is None:
                state.scalars[param] = value
            else:
                state.add_memory(buffer, value)
        try:
            state.statement(self.node.body)
        except _Jump as jump:
            return jump.value
        return None

    def split(self, node):
        """The node with a variable in the place of each operand, and these with their operands."""
        if id(node) not in self.splits:
            nodes, parts = _tir(), []

            def named(value):
                if isinstance(value, list):
                    return [named(one) for one in value]
                constant = isinstance(value, (nodes.IntImm, nodes.FloatImm, nodes.StringImm, nodes.Var))
                if not isinstance(value, nodes.PrimExpr) or constant:
                    return value
                if nodes.lanes_of(value.dtype) != 1:
                    _refuse(self.name, "T.call_packed stands in an expression of several lanes")
                parts.append((nodes.Var(f"value{len(parts)}", value.dtype), value))
                return parts[-1][0]
            changes = {name: named(value) for name, value in node.fields.items()
                       if not isinstance(value, nodes.Buffer)}
            self.splits[id(node)] = node.with_fields(**changes), parts
            self.keep.append(node)
        return self.splits[id(node)]

    def segment(self, key, make):
        """The compiled part for a key. It is compiled when it first runs."""
        if key not in self.segments:
            self.segments[key] = make()
        return self.segments[key]


class _Run:
    """One run: the values of variables, and the arrays of buffers, so far."""

    def __init__(self, program):
        self.program, self.name = program, program.name
        self.scalars = {}
        self.owners = {}   # data variable: the buffer that has all of its memory
        self.arrays = {}   # those buffers: arrays
        self.aliases = {}  # other buffers: their data variable

    def add_memory(self, buffer, array):
        self.owners[buffer.data], self.arrays[buffer] = buffer, array

    # ---- Statements

    def statement(self, s):
        if id(s) not in self.program.on_host:
            self.compiled(s)
            return
        kind = type(s).__name__
        run = getattr(self, f"run_{kind}", None)
        if run is None:
            _refuse(self.name, f"T.call_packed stands in a statement of the kind {kind}, which only "
                               "compiled code runs")
        run(s)

    def compiled(self, s):
        self.run_segment(self.program.segment(id(s), lambda: self.compile(s, s)))

    def run_segment(self, segment, *more):
        arguments = [*(self.arrays[b] for b in segment.buffers),
                     *(self.scalars[v] for v in segment.variables), *more]
        if self.program.check:
            self.program.check(segment, arguments)
        segment.function(*arguments)

    def run_SeqStmt(self, s):
        for one in s.seq:
            self.statement(one)

    def run_For(self, s):
        if int(s.kind) not in PLAIN_LOOPS:
            _refuse(self.name, f"T.call_packed stands in the loop '{s.loop_var.name}' over threads of a "
                               "device")
        first = self.value(s.min)
        for i in range(first, first + self.value(s.extent)):
            self.scalars[s.loop_var] = i
            if not self.iteration(s.body):
                break

    def run_While(self, s):
        while self.value(s.condition) and self.iteration(s.body):
            pass

    def iteration(self, body):
        """Runs the body of a loop. Does the loop go on?"""
        try:
            self.statement(body)
        except _Jump as jump:
            if jump.kind == "return":
                raise
            return jump.kind == "continue"
        return True

    def run_BufferStore(self, s):
        plain, parts = self.program.split(s)
        self.set_parts(parts)
        self.compiled(plain)

    def run_IfThenElse(self, s):
        chosen = s.then_case if self.value(s.condition) else s.else_case
        if chosen is not None:
            self.statement(chosen)

    def run_LetStmt(self, s):
        if s.var.dtype == "handle" and _is_call(s.value):
            self.scalars[s.var] = self.call(s.value)
            self.statement(s.body)
            return
        if s.var.dtype == "handle":
            _refuse(self.name, f"the pointer '{s.var.name}' is used around T.call_packed; declare a buffer")
        self.scalars[s.var] = self.value(s.value)
        self.statement(s.body)

    def run_AttrStmt(self, s):
        self.statement(s.body)

    def run_AssertStmt(self, s):
        if not self.value(s.condition):
            _refuse(self.name, f"assertion failed: {s.message}")
        if s.body is not None:
            self.statement(s.body)

    def run_DeclBuffer(self, s):
        if s.buffer.data in self.owners:
            self.aliases[s.buffer] = s.buffer.data
        else:
            self.allocate(s.buffer)
        self.statement(s.body)

    def run_Allocate(self, s):
        nodes = _tir()
        self.allocate(nodes.decl_buffer(s.extents, s.dtype, f"{s.buffer_var.name}_memory", data=s.buffer_var))
        self.statement(s.body)

    def run_AllocBuffer(self, s):
        self.allocate(s.buffer)
        self.statement(s.body.body)

    def run_BlockRealize(self, s):
        block = s.block
        values = [self.value(value) for value in s.iter_values]
        self.scalars.update({one.var: value for one, value in zip(block.iter_vars, values)})
        if not self.value(s.predicate):
            return
        for buffer in block.alloc_buffers:
            self.allocate(buffer)
        begins = all(self.scalars[one.var] == self.value(one.dom.min) for one in block.iter_vars
                     if int(one.iter_type) == 2)
        if block.init is not None and begins:
            self.statement(block.init)
        self.statement(block.body)

    def run_Evaluate(self, s):
        if _is_call(s.value):
            self.call(s.value)
        elif getattr(s.value, "op", None) in JUMPS:
            kind = JUMPS[s.value.op]
            raise _Jump(kind, self.value(s.value.args[0]) if kind == "return" else None)
        else:
            self.value(s.value)

    def call(self, e):
        """Calls the function of a T.call_packed, and gives its result."""
        name, *arguments = e.args
        function = self.program.packed(name.value)
        return function(*map(self.argument, arguments))

    def allocate(self, buffer):
        from pleat.model import dtype_of
        shape = tuple(map(self.value, buffer.shape))
        if buffer.strides or self.value(buffer.elem_offset):
            _refuse(self.name, f"{buffer.name} is allocated with strides or an elem_offset around "
                               "T.call_packed")
        self.add_memory(buffer, np.zeros(shape, dtype_of(buffer.dtype)))

    # ---- Arguments

    def argument(self, node):
        nodes = _tir()
        if isinstance(node, nodes.StringImm):
            return node.value
        if isinstance(node, nodes.Call) and node.op == "T.metadata":
            _refuse(self.name, f"the text of the program does not hold the string {node.args[0].value}: print it with "
                               "script(show_meta=True)")
        if isinstance(node, nodes.Call) and node.op == ARRAY:
            return self.array(*node.args)
        if node.dtype == "handle":
            return self.pointer(node)
        return _number(node.dtype, self.value(node))

    def pointer(self, node):
        """The argument for a pointer: the result of another call, or an address."""
        nodes = _tir()
        if _is_call(node):
            return self.call(node)
        if isinstance(node, nodes.Var) and node in self.scalars:
            return self.scalars[node]
        if isinstance(node, nodes.Var) and node in self.owners:
            return self.address(node, 0, 0)
        if isinstance(node, nodes.Call) and node.op == "tir.address_of":
            return self.address_of_element(node.args[0])
        if isinstance(node, nodes.Call) and node.op == "tir.tvm_access_ptr":
            dtype, data, first, count, _ = node.args
            item = self.item_bytes(dtype.dtype)
            return self.address(data, self.value(first) * item, self.value(count) * item)
        return _refuse(self.name, "a pointer that is an argument of T.call_packed is not that of a buffer "
                                  "around it")

    def item_bytes(self, dtype):
        from pleat.model import dtype_of
        return dtype_of(dtype).itemsize

    def address_of_element(self, load):
        """The address of an element that is in bounds."""
        buffer = load.buffer
        indices, shape = ([self.value(one) for one in list_] for list_ in (load.indices, buffer.shape))
        if not all(0 <= index < extent for index, extent in zip(indices, shape)):
            _refuse(self.name, f"the element {indices} of {buffer.name}, whose address is an argument of "
                               f"T.call_packed, is outside of its shape {shape}")
        steps = [self.value(one) for one in buffer.strides]
        if not steps:
            steps = [int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape))]
        item = self.item_bytes(buffer.dtype)
        first = self.value(buffer.elem_offset) + sum(i * step for i, step in zip(indices, steps))
        return self.address(buffer.data, first * item, item)

    def address(self, data, first, count):
        """The address of the bytes [first, first + count) of the memory that a variable points to."""
        if data not in self.owners:
            _refuse(self.name, f"the memory '{data.name}' of an argument of T.call_packed is not that of a "
                               "buffer around it")
        owner = self.owners[data]
        array = self.arrays[owner]
        before = self.value(owner.elem_offset) * array.itemsize
        low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else \
            np.byte_bounds(array)
        begin = array.__array_interface__["data"][0] - before
        if count and not low <= begin + first <= begin + first + count <= high:
            _refuse(self.name, f"an argument of T.call_packed points to the bytes [{first}, {first + count}) "
                               f"of {owner.name}, which are not all in its memory")
        return ctypes.c_void_p(begin + first)

    def array(self, data, shape, strides, rank, element, offset):
        """The array that T.tvm_stack_make_array describes, over the memory of a buffer."""
        from pleat.model import dtype_of
        from pleat.nd import Tensor
        nodes = _tir()
        if data not in self.owners:
            _refuse(self.name, f"the memory '{data.name}' of an argument of T.call_packed is not that of a "
                               "buffer around it")
        owner = self.owners[data]
        whole, dtype = self.arrays[owner], dtype_of(element.dtype)
        extents = tuple(map(self.value, shape.args))
        steps = tuple(map(self.value, strides.args)) if isinstance(strides, nodes.Call) else None
        first = self.value(offset)
        if _is_whole(owner, element.dtype, shape.args, strides, offset) or (
                not owner.strides and steps is None and not first and whole.shape == extents
                and whole.dtype == dtype):
            return whole.view(Tensor)
        if not whole.flags.c_contiguous or owner.strides:
            _refuse(self.name, f"a part of {owner.name}, whose rows have gaps, is given to T.call_packed")
        memory = whole.reshape(-1).view(np.uint8)
        if steps is None:
            steps = tuple(int(np.prod(extents[i + 1:], dtype=np.int64)) for i in range(len(extents)))
        reach = [(extent - 1) * step for extent, step in zip(extents, steps)]
        low, high = (first + sum(f(part, 0) for part in reach) for f in (min, max))
        if 0 in extents:
            return np.empty(extents, dtype).view(Tensor)
        if low < 0 or (high + 1) * dtype.itemsize > memory.size:
            _refuse(self.name, f"an argument of T.call_packed takes the elements {low} to {high} of "
                               f"{owner.name}, whose memory has {memory.size // dtype.itemsize}")
        memory = memory[:memory.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return np.lib.stride_tricks.as_strided(memory[first:], extents,
                                               [step * dtype.itemsize for step in steps],
                                               writeable=whole.flags.writeable).view(Tensor)

    # ---- Values

    def value(self, e):
        """The value of an expression: of a constant or a variable at once, of others by compiled code, or
        here where it has calls."""
        nodes = _tir()
        if isinstance(e, (bool, int, float)):
            return e
        if isinstance(e, (nodes.IntImm, nodes.FloatImm)):
            return e.value
        if isinstance(e, nodes.Var):
            if e not in self.scalars:
                _refuse(self.name, f"the value of '{e.name}' is not known around T.call_packed")
            return self.scalars[e]
        if id(e) in self.program.on_host:
            return self.value_with_calls(e)
        from pleat.model import dtype_of
        made = self.program.segment(("value", id(e)), lambda: self.compile_value(e))
        result = np.zeros((1,), dtype_of(e.dtype))
        self.run_segment(made, result)
        return result[0].item()

    def value_with_calls(self, e):
        kind = type(e).__name__
        if _is_call(e):
            return self.result(e, self.call(e))
        if kind in ("And", "Or"):
            first = self.value(e.a)
            return first if bool(first) == (kind == "Or") else self.value(e.b)
        if kind == "Call" and e.op == "tir.if_then_else":
            return self.value(e.args[1 if self.value(e.args[0]) else 2])
        if kind == "Let":
            self.scalars[e.var] = self.value(e.value)
            return self.value(e.body)
        plain, parts = self.program.split(e)
        self.set_parts(parts)
        return self.value(plain)

    def set_parts(self, parts):
        for variable, part in parts:
            self.scalars[variable] = self.value(part)

    def result(self, e, value):
        """The number that a function returned, of the type of the call."""
        numbers = (bool, int, np.integer, np.bool_)
        if "float" in e.dtype:
            numbers += float, np.floating
        if not isinstance(value, numbers):
            _refuse(self.name, f"the function '{e.args[0].value}' returned {value!r}, expected a number of "
                               f"type {e.dtype}")
        from pleat.model import dtype_of
        dtype = dtype_of(e.dtype)
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                _refuse(self.name, f"the function '{e.args[0].value}' returned {value}, which is outside of "
                                   f"the numbers of type {e.dtype}")
        return _number(e.dtype, np.array(value, dtype).item())

    # ---- Compiling

    def compile_value(self, e):
        nodes = _tir()
        result = nodes.decl_buffer([1], e.dtype, "result")
        self.program.keep.append(e)
        return self.compile(e, nodes.BufferStore(result, e, [0]), [result])

    def compile(self, used, body, more=()):
        """Compiles a statement. `used`: what its buffers and variables are looked for in."""
        nodes = _tir()
        buffers, variables, aliases = self.uses(used)
        for alias in reversed(aliases):
            body = nodes.DeclBuffer(alias, body)
        name = f"{self.name}_part{len(self.program.segments)}"
        tir = importlib.import_module("pleat.tir")
        function = tir.PrimFunc([*buffers, *variables, *more], body, attrs={"global_symbol": name})
        from pleat.runtime import build
        options = {key: value for key, value in self.program.options.items() if key != "target"}
        built = build(function, target=self.program.options.get("target", "llvm"), **options)
        return _Segment(built[name], function, buffers, variables)

    def uses(self, part):
        """The buffers with memory, the variables and the aliases of such memory that a part uses."""
        nodes = _tir()
        buffers, variables, aliases = {}, {}, {}

        def add(thing):
            if isinstance(thing, nodes.Buffer):
                if thing in self.aliases:
                    aliases[thing] = True
                    for size in (*thing.shape, *thing.strides, thing.elem_offset):
                        for one in _parts(size):
                            add(one)
                elif thing not in self.arrays and thing.data not in self.owners:
                    return
                buffers[self.owners[thing.data]] = True
            elif isinstance(thing, nodes.Var):
                if thing in self.owners:
                    buffers[self.owners[thing]] = True
                elif thing in self.scalars:
                    variables[thing] = True
        for one in _parts(part):
            add(one)
            for buffer in _buffers_of(one):
                add(buffer)
        return list(buffers), list(variables), list(aliases)


def _number(dtype, value):
    return float(value) if "float" in dtype else bool(value) if dtype == "bool" else int(value)


def _buffers_of(node):
    """The buffers in the fields of a node."""
    nodes = _tir()
    found = [value for value in node.fields.values() if isinstance(value, nodes.Buffer)]
    for name in ("reads", "writes"):
        found += [region.buffer for region in getattr(node, name, None) or ()
                  if hasattr(region, "buffer")]
    return found + [match.source.buffer for match in getattr(node, "match_buffers", None) or ()]


def _is_whole(owner, dtype, shape, strides, offset):
    """Does an argument describe the whole buffer as it is declared?"""
    same = importlib.import_module("pleat.ir").structural_equal
    stated = strides.args if hasattr(strides, "args") else []
    pairs = [*zip(shape, owner.shape), *zip(stated, owner.strides), (offset, owner.elem_offset)]
    return (dtype == owner.dtype and len(shape) == len(owner.shape) and len(stated) == len(owner.strides)
            and all(same(a, b) for a, b in pairs))


# ---- Verifying ------------------------------------------------------------------------------------

def program_of(thing):
    """The tensor program that is, or is the only one of, a PrimFunc or an IRModule, if it has a
    T.call_packed; None otherwise."""
    if not hasattr(thing, "_handle") or "call_packed(" not in thing.script():
        return None
    ir = importlib.import_module("pleat.ir._module")
    functions = list(thing.functions.values()) if isinstance(thing, ir.IRModule) else [thing]
    program = functions[0] if len(functions) == 1 and isinstance(functions[0], ir.PrimFunc) else None
    return program if program is not None and calls_python(program.node) else None


def _extent(program, one, sizes):
    if one is None or isinstance(one, str) and one not in sizes:
        _refuse(program, f"the size '{one}' is not known: give its value in shapes={{...}}")
    return sizes[one] if isinstance(one, str) else one


def _arguments(function, inputs, sizes, seed):
    """An array or number for each parameter: that in `inputs` by its name, or a random one."""
    from pleat.model import dtype_of
    random, arguments = np.random.default_rng(seed), []
    for param in function.parameters:
        dtype = dtype_of(param.dtype)
        if param.name in inputs:
            value = np.array(inputs[param.name], dtype)
        else:
            shape = [_extent(function.name, one, sizes) for one in param.shape or ()]
            value = np.asarray(random.random(shape) if np.issubdtype(dtype, np.inexact)
                               else random.integers(0, 5, shape)).astype(dtype)
        arguments.append(value if param.shape is not None else value.item())
    return arguments


def verify(function, inputs, seed, how, options):
    """Runs a program once, and compares each compiled part with the interpreter on the arrays that it
    gets there. Returns the Verification of all parts, or of the first that differs."""
    from pleat import model, runtime
    found, sizes = [], options.pop("shapes", None) or {}

    def check(segment, arguments):
        params = segment.function.parameters
        given = {param.name: np.array(value, model.dtype_of(param.dtype))
                 for param, value in zip(params, arguments)}
        taken = {one.name for one in model.Model(segment.source, **options).inputs}
        found.append(model.verify(segment.source, {name: given[name] for name in taken}, seed=seed, **how,
                                  **options))
        if not found[-1]:
            raise _Differs

    host = runtime.build(function, **options).entry
    host.check = check
    try:
        host(*_arguments(host, inputs or {}, sizes, seed))
    except _Differs:
        return found[-1]
    if not found:
        _refuse(host.name, "nothing stands around its calls of T.call_packed")
    return _together(found)


class _Differs(Exception):
    """Ends a run, since a part differs."""


def _together(found):
    import dataclasses
    largest = max(found, key=lambda one: one.largest)
    return dataclasses.replace(
        largest, kernel_count=sum(one.kernel_count for one in found),
        tensors=[tensor for one in found for tensor in one.tensors],
        outputs=found[-1].outputs, at_boundaries=sum(one.at_boundaries for one in found),
        text=f"{len(found)} runs of the parts around calls; of the one that differs most: {largest.text}")
