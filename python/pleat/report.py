# SPDX-License-Identifier: Apache-2.0
"""Reports about models as objects: plans, profiles and verifications."""
import dataclasses
import json

from pleat._library import _lib, _text, ffi
from pleat._request import check_status


@dataclasses.dataclass(frozen=True)
class PlanOperand:
    """A tensor that a kernel reads or writes, and its layout there.

    tensor_number: of the tensor in Plan.tensors; two tensors may have one name"""
    tensor: str
    layout: str
    is_written: bool
    tensor_number: int


@dataclasses.dataclass(frozen=True)
class PlanKernel:
    """A kernel of a plan.

    number: from 0, in the order in which kernels run
    is_rewrite: it only changes the layout of a tensor
    operators: the names of the nodes that it computes; by_rows: several reductions row by row
    band_parts: the number of kernels in whose place it runs in bands of rows; 0: it has no bands
    operands: a list of PlanOperand, of which the last is the tensor that it writes
    is_output: this tensor is an output of the model
    readers: the numbers of the kernels that read it
    because_kind, because: why these are not fused with it, in general and with names
    same_as: the number of an earlier kernel whose code it runs, or None
    slow: why it is not vectorised, or None
    function: the name of the function outside of the model that computes it, or None
    record: the place of the tuning record that schedules it, "FILE:12", or None"""
    number: int
    name: str
    is_rewrite: bool
    operators: list
    by_rows: bool
    band_parts: int
    operands: list
    is_output: bool
    readers: list
    because_kind: str
    because: str
    cycles: float
    same_as: int = None
    slow: str = None
    function: str = None
    record: str = None

    @property
    def writes(self):
        """The name of the tensor that the kernel writes."""
        return self.operands[-1].tensor


@dataclasses.dataclass(frozen=True)
class PlanRewrite:
    """A tensor that changes its layout.

    folded: it is constant, and is rewritten while compiling
    bytes: of the larger of the two layouts; cycles: of each run
    kernel: the number of the kernel that does it, or None when folded
    tensor_number: as of a PlanOperand"""
    tensor: str
    source: str
    target: str
    folded: bool
    bytes: int
    cycles: float
    because: str
    tensor_number: int
    kernel: int = None


@dataclasses.dataclass(frozen=True)
class PlanTensor:
    """A tensor of a plan.

    kind: "input", "output", "constant" or "intermediate"
    is_fused: it is computed only inside a kernel, and has no layout
    layouts: in which it is in memory"""
    name: str
    type: str
    shape: tuple
    kind: str
    is_fused: bool
    layouts: list


class Plan(dict):
    """The plan of a model. Printed, it is a table; as a dictionary it has the fields of
    `pleat plan --json`.

    kernels, rewrites, tensors: lists of PlanKernel, PlanRewrite and PlanTensor
    machine, policy: the processor level it was made for, and how layouts were chosen
    cycles: the price of a run; cycles_row_major: with every tensor row-major; cycles_optimal,
            cycles_forward, cycles_backward: by each policy, 0 where not planned; cycles_own_kernels:
            without `offload`, 0 where it was not asked for
    lower_bound, gap, optimal: a bound below the price of every plan, the part of the price that
            may be above the best plan's, and whether it is proved that no plan is better
    cycles_saved_by_bands: by how many cycles less kernels take that run in bands of rows; the
            prices above have these cycles, those of kernels do not
    choices, choices_left_out, layouts_left_out: how much was considered
    fusions_decided: how many operators were fused before layouts were planned
    nodes_in_kernels, nodes_folded, nodes_in_place, nodes_unused: how many nodes of the model are
            computed in kernels, computed while compiling, only move elements which their readers
            read in place, and are not needed"""

    NUMBERS = ("cycles", "cycles_row_major", "cycles_optimal", "cycles_forward", "cycles_backward",
               "cycles_own_kernels", "lower_bound", "gap", "cycles_saved_by_bands", "choices", "choices_left_out",
               "layouts_left_out", "fusions_decided", "nodes_in_kernels", "nodes_folded",
               "nodes_in_place", "nodes_unused")

    def __init__(self, plan):
        super().__init__(json.loads(_text(plan.json)))
        self.text, self.machine, self.policy = map(_text, (plan.text, plan.machine, plan.policy))
        self.optimal = bool(plan.optimal)
        for name in self.NUMBERS:
            setattr(self, name, getattr(plan, name))
        self.kernels = [_plan_kernel(i, plan.kernels[i]) for i in range(plan.kernel_count)]
        self.rewrites = [_plan_rewrite(plan.rewrites[i]) for i in range(plan.rewrite_count)]
        self.tensors = [_plan_tensor(plan.tensors[i]) for i in range(plan.tensor_count)]

    def __str__(self):
        return self.text

    def __repr__(self):
        return (f"Plan({len(self.kernels)} kernels, {len(self.rewrites)} rewrites, "
                f"{self.cycles:.0f} cycles, gap={self.gap:g})")


@dataclasses.dataclass(frozen=True)
class TensorUse:
    """A kernel that reads or writes a tensor: its number, from 0, its name, and the tensor's layout
    there."""
    kernel: int
    name: str
    is_written: bool
    layout: str


@dataclasses.dataclass(frozen=True)
class LayoutPrice:
    """A layout that a tensor could have.

    bytes: of the tensor, with padding
    chosen: the plan writes the tensor in this layout; an input is given in it
    possible: whether a plan has it; cycles: of a run with the best such plan, or None
    because: what forbids it, or the operators and rewrites that then take more or fewer cycles"""
    layout: str
    bytes: int
    chosen: bool
    possible: bool
    cycles: float = None
    because: str = ""


class TensorPlan(dict):
    """A tensor of a plan; made by pleat.plan_tensor. As a dictionary it has the fields of
    `pleat plan --why TENSOR --json`.

    tensor: a PlanTensor
    because: why it is in memory, if kernels write and read it
    uses, prices: lists of TensorUse and LayoutPrice
    no_more_because: why there are no more layouts, if an option or a limit is the reason"""

    def __init__(self, plan):
        super().__init__(json.loads(_text(plan.json)))
        self.tensor, self.because = _plan_tensor(plan.tensor), _text(plan.because)
        self.no_more_because = _text(plan.no_more_because)
        self.uses = [_fields(TensorUse, plan.uses[i], is_written=bool(plan.uses[i].is_written))
                     for i in range(plan.use_count)]
        self.prices = [_layout_price(plan.prices[i]) for i in range(plan.price_count)]

    def __repr__(self):
        return (f"TensorPlan({self.tensor.name}: " +
                ", ".join(f"{price.layout} {price.cycles:.0f}{' (chosen)' * price.chosen}"
                          for price in self.prices if price.possible) + ")")


@dataclasses.dataclass(frozen=True)
class KernelProfile:
    """One kernel of a profile.

    step: its number in the order of the run, from 0
    code: kernels with the same number run the same code
    operations, bytes: floating-point operations, and bytes of all its tensors with padding
    share_of_limit: the part of what this machine can do that it reaches: the larger of operations
            per second, relative to multiply-adds in registers, and bytes per second, relative to
            copies of as many bytes
    slow: why it may be slow, or None"""
    name: str
    step: int
    code: int
    seconds: float
    operations: float
    bytes: int
    share_of_limit: float
    slow: str = None

    @property
    def gflops(self):
        return self.operations * 1e-9 / self.seconds

    @property
    def gbytes_per_second(self):
        return self.bytes * 1e-9 / self.seconds


@dataclasses.dataclass(frozen=True)
class Profile:
    """Where the time of a run goes; made by Model.profile. Printed, it is a table.

    runs, threads: the number of measured runs, and of threads
    median, p10, p90: seconds of the measured runs
    seconds, around: of the run whose kernels are listed, which took about the median, and the part
            of it outside the kernels
    peak_gflops: multiply-adds in registers of all threads; 0 where not known
    kernels: a list of KernelProfile in the order in which they ran"""
    runs: int
    threads: int
    median: float
    p10: float
    p90: float
    seconds: float
    around: float
    peak_gflops: float
    kernels: list = dataclasses.field(repr=False)
    text: str = dataclasses.field(repr=False)

    def __str__(self):
        return self.text

    @property
    def slow(self):
        """The kernels that may be slow, each with the reason in its field `slow`."""
        return [kernel for kernel in self.kernels if kernel.slow]


@dataclasses.dataclass(frozen=True)
class VerifiedTensor:
    """A tensor that was compared.

    function: the tensor program of TVMScript whose parameter it is, or None
    is_given: it was compared with `expected=`
    kernel: the number of the kernel that wrote it, from 0, or None
    elements, differing: how many it has, and how many of them differ
    at_boundaries: elements that agree although they are a rounding step apart; see pleat.verify
    largest: the greatest difference, relative to the largest element
    index, expected, actual, ulp: the element that differs most, and how many numbers of its type
            are between the two; None where all agree"""
    name: str
    function: str
    kernel: int
    is_output: bool
    is_given: bool
    agrees: bool
    shape: tuple
    elements: int
    differing: int
    at_boundaries: int
    largest: float
    index: tuple = None
    expected: float = None
    actual: float = None
    ulp: int = None


@dataclasses.dataclass(frozen=True)
class Verification:
    """The result of pleat.verify, true if everything agrees. Printed, it is a sentence about that.

    reference, tolerance: what was expected, and how close, as texts
    tensors, outputs: lists of VerifiedTensor, in the order in which they were compared
    kernel_count: of the model
    at_boundaries, largest, largest_at: of all tensors, and the name of the one with the greatest
            difference
    differs: the first tensor that differs, or None; then also:
    kernel: the kernel that wrote it, with the layouts of what it reads and writes
    part, part_name: the part of the compiler at fault: "stages", "schedule" with the step, "pass"
            with its name, or "code" with the name of the code generator; None where not known
    rounding: whether the difference is usual for sums in another order, which the part has first
    cause: the last three as a text"""
    agrees: bool
    reference: str
    tolerance: str
    kernel_count: int
    tensors: list = dataclasses.field(repr=False)
    outputs: list = dataclasses.field(repr=False)
    at_boundaries: int
    largest: float
    largest_at: str
    differs: VerifiedTensor
    kernel: str
    part: str
    part_name: str
    rounding: bool
    cause: str
    text: str = dataclasses.field(repr=False)

    def __bool__(self):
        return self.agrees

    def __str__(self):
        return self.text


def _fields(kind, struct, **others):
    """An object of a data class from the fields of a struct of the same names."""
    values = {field.name: getattr(struct, field.name) for field in dataclasses.fields(kind)
              if field.name not in others}
    texts = {name: _text(value) for name, value in values.items()
             if isinstance(value, ffi.CData)}
    return kind(**{**values, **texts, **others})


def _number(value):
    """A number of a kernel, or None."""
    return value if value >= 0 else None


def _plan_kernel(number, kernel):
    operands = [_fields(PlanOperand, kernel.operands[i],
                        is_written=bool(kernel.operands[i].is_written))
                for i in range(kernel.operand_count)]
    return _fields(PlanKernel, kernel, number=number, operands=operands,
                   operators=[_text(kernel.operators[i]) for i in range(kernel.operator_count)],
                   readers=[kernel.readers[i] for i in range(kernel.reader_count)],
                   same_as=_number(kernel.same_as), is_rewrite=bool(kernel.is_rewrite),
                   by_rows=bool(kernel.by_rows), is_output=bool(kernel.is_output))


def _plan_rewrite(rewrite):
    return _fields(PlanRewrite, rewrite, source=_text(getattr(rewrite, "from")),
                   target=_text(rewrite.to), folded=bool(rewrite.folded),
                   kernel=_number(rewrite.kernel))


def _plan_tensor(tensor):
    return _fields(PlanTensor, tensor, shape=tuple(tensor.shape[i] for i in range(tensor.rank)),
                   is_fused=bool(tensor.is_fused),
                   layouts=[_text(tensor.layouts[i]) for i in range(tensor.layout_count)])


def _layout_price(price):
    return _fields(LayoutPrice, price, chosen=bool(price.chosen), possible=bool(price.possible),
                   cycles=price.cycles if price.possible else None)


def tensor_planned(request, tensor):
    """The TensorPlan of a request."""
    result, messages = ffi.new("PleatTensorPlan **"), ffi.new("PleatMessages **")
    status = _lib.pleat_tensor_plan_new(request.struct, tensor.encode(), result, messages)
    check_status(status, messages, request.hooks)
    try:
        return TensorPlan(result[0])
    finally:
        _lib.pleat_tensor_plan_free(result[0])


def planned(request):
    """The Plan of a request."""
    result, messages = ffi.new("PleatPlan **"), ffi.new("PleatMessages **")
    status = _lib.pleat_plan_new(request.struct, result, messages)
    check_status(status, messages, request.hooks)
    try:
        return Plan(result[0])
    finally:
        _lib.pleat_plan_free(result[0])


def measured(function, inputs, count, repeat, seed, hooks, pool):
    """The Profile that a function of the library measures."""
    options = ffi.new("PleatProfileOptions *", {"size": ffi.sizeof("PleatProfileOptions"),
                                                "repeat": repeat, "seed": seed})
    hooks.set_in(options)
    result, messages = ffi.new("PleatProfile **"), ffi.new("PleatMessages **")
    status = function(inputs, count, options, result, messages)
    check_status(status, messages, hooks, pool)
    try:
        profile = result[0]
        kernels = [_fields(KernelProfile, profile.kernels[i])
                   for i in range(profile.kernel_count)]
        return _fields(Profile, profile, kernels=kernels)
    finally:
        _lib.pleat_profile_free(result[0])


def _position(number, shape):
    """The index of the element with this number in row-major order."""
    position = []
    for extent in reversed(shape):
        number, at = divmod(number, extent)
        position.append(at)
    return tuple(reversed(position))


def _verified_tensor(tensor):
    shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    element = {"index": None, "expected": None, "actual": None, "ulp": None}
    if tensor.index >= 0:
        element = {"index": _position(tensor.index, shape), "expected": tensor.expected,
                   "actual": tensor.actual, "ulp": tensor.ulp if tensor.ulp >= 0 else None}
    return _fields(VerifiedTensor, tensor, shape=shape, agrees=bool(tensor.agrees),
                   is_output=bool(tensor.is_output), is_given=bool(tensor.is_given),
                   kernel=_number(tensor.kernel), **element)


def verified(request, options):
    """The Verification of a request, with PleatVerifyOptions."""
    result, messages = ffi.new("PleatVerification **"), ffi.new("PleatMessages **")
    status = _lib.pleat_verify(request.struct, options, result, messages)
    check_status(status, messages, request.hooks)
    try:
        v = result[0]
        tensors = [_verified_tensor(v.tensors[i]) for i in range(v.tensor_count)]
        outputs = [_verified_tensor(v.outputs[i]) for i in range(v.output_count)]
        differs = None if v.differs == ffi.NULL else _verified_tensor(v.differs)
        return _fields(Verification, v, tensors=tensors, outputs=outputs, differs=differs,
                       agrees=bool(v.agrees), rounding=bool(v.rounding))
    finally:
        _lib.pleat_verification_free(result[0])
