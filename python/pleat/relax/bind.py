# SPDX-License-Identifier: Apache-2.0
"""Graph functions with constants in the place of parameters and sizes, and without values that are computed
twice."""
import ast

from pleat._library import PleatError
from pleat.ir._module import Function, IRModule
from pleat.relax.expr import Call, GlobalVar, TensorStructInfo, Var, const
from pleat.relax.graph_text import GraphText
from pleat.relax.nodes import Constant, If, LocalFunction
from pleat.script._parse import from_source
from pleat.script._values import Value, text_of


class _Sizes(ast.NodeTransformer):
    """Replaces sizes by numbers in a function, also in the texts of its types, and removes their declarations."""

    def __init__(self, numbers):
        self.numbers, self.seen, self.in_type = numbers, set(), False

    def visit_Name(self, node):
        if node.id not in self.numbers:
            return node
        self.seen.add(node.id)
        return ast.copy_location(ast.Constant(self.numbers[node.id]), node)

    def visit_Assign(self, node):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in self.numbers:
            self.seen.add(target.id)
            return None
        return self.generic_visit(node)

    def visit_Call(self, node):
        before = self.in_type
        self.in_type = isinstance(node.func, ast.Attribute) and node.func.attr in ("Tensor", "Shape")
        node = self.generic_visit(node)
        self.in_type = before
        return node

    def visit_keyword(self, node):
        return node if node.arg == "dtype" else self.generic_visit(node)

    def visit_Tuple(self, node):
        if self.in_type:
            node.elts = [self._extent(one) for one in node.elts]
        return self.generic_visit(node)

    visit_List = visit_Tuple

    def _extent(self, node):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return node
        made = ast.parse(node.value, mode="eval").body
        if not any(isinstance(one, ast.Name) and one.id in self.numbers for one in ast.walk(made)):
            return node
        made = self.visit(made)
        names = any(isinstance(one, ast.Name) and one.id != "T" for one in ast.walk(made))
        return ast.copy_location(ast.Constant(ast.unparse(made)) if names else made, node)


def with_sizes(module, numbers, func_name=None):
    """The module with numbers in the place of sizes: a dictionary from their names or variables, in one function
    or in all that have them."""
    numbers = {str(key) if isinstance(key, Value) else str(getattr(key, "name", key)): int(value)
               for key, value in numbers.items()}
    tree, seen = ast.parse(module.script()), set()
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef) and func_name in (None, one.name) and \
                any(ast.unparse(d).startswith("R.") for d in one.decorator_list):
            sizes = _Sizes(numbers)
            sizes.generic_visit(one)
            seen |= sizes.seen
    missing = [name for name in numbers if name not in seen]
    if missing:
        raise PleatError(f"BindSymbolicVars: no function has a size '{missing[0]}'")
    made = from_source(ast.unparse(tree) + "\n")
    return made if isinstance(made, IRModule) else IRModule({module.keys()[0]: made})


def with_constants(module, name, params):
    """The module with constants in the place of parameters of a function: a dictionary from their names or variables
    to arrays."""
    known, arrays, sizes = {one.name_hint: one._struct_info for one in GraphText(module, name).params}, {}, {}
    for key, value in params.items():
        key = getattr(key, "name_hint", key)
        if key not in known:
            raise PleatError(f"BindParams: '{name}' has no parameter '{key}'; it has {', '.join(known) or 'none'}")
        value = value.data if isinstance(value, Constant) else value
        arrays[key] = value.numpy() if hasattr(value, "numpy") and not isinstance(value, Value) else value
        _check(key, known[key], arrays[key], sizes)
    text = GraphText(with_sizes(module, sizes, name) if sizes else module, name)
    for key, value in arrays.items():
        text.bind(key, const(value, str(value.dtype)))
    return _without_operands(text.module(), name, [i for i, key in enumerate(known) if key in arrays])


def _without_operands(module, name, gone):
    """The module in which calls of a function leave out these operands."""
    def kept(call):
        return Call(call.op, [one for i, one in enumerate(call.args) if i not in gone], call.attrs)
    for caller in [str(one) for one, function in module.items() if isinstance(function, Function)] if gone else ():
        text, changed = GraphText(module, caller), False
        for bound in text.bindings:
            if isinstance(bound.value, Call) and isinstance(bound.value.op, GlobalVar) and bound.value.op == name:
                bound.value, bound.lines, changed = kept(bound.value), None, True
        module = text.module() if changed else module
    return module


def _check(name, info, value, sizes):
    """Raises for an array that is no value of a parameter, and adds the sizes that its extents give."""
    if not isinstance(info, TensorStructInfo) or isinstance(value, Value) or not hasattr(value, "dtype"):
        raise PleatError(f"BindParams: '{name}' is {info}, and its value {value!r}: expected a tensor and an array")
    if info.dtype not in ("", str(value.dtype)):
        raise PleatError(f"BindParams: '{name}' is {info.dtype}, and its value {value.dtype}")
    extents = value.shape if info.shape is None else info.shape
    fits = len(extents) == len(value.shape) and info.ndim in (-1, len(value.shape))
    for stated, extent in zip(extents, value.shape):
        stated = stated if isinstance(stated, int) else str(stated)
        fits = fits and (isinstance(stated, int) or stated.isidentifier())
        fits = fits and extent == (stated if isinstance(stated, int) else sizes.setdefault(stated, extent))
    if not fits:
        raise PleatError(f"BindParams: '{name}' has the shape {info}, and its value {tuple(value.shape)}: expected a "
                         "tensor with these extents, which are numbers or sizes")


def without_repetitions(module, call_only=False):
    """The module with each value of a dataflow block computed once."""
    for name in [str(name) for name, function in module.items() if isinstance(function, Function)]:
        text, changed = GraphText(module, name), False
        for block in text.blocks:
            known = {}
            for bound in block.bindings if block.outputs is not None else ():
                if isinstance(bound.value, (If, LocalFunction, Var)) or call_only and not isinstance(bound.value, Call):
                    continue
                first = known.setdefault(_with_names(bound.value, known), bound.var)
                if first is not bound.var:
                    bound.value, bound.lines, changed = first, None, True
                    known[bound.var.name_hint] = first
        module = text.module() if changed else module
    return module


def _with_names(value, known):
    """The text of a value, with the first of equal variables in the place of each."""
    if not isinstance(value, Call):
        return text_of(value)
    args = [known.get(one.name_hint, one) if isinstance(one, Var) else one for one in value.args]
    return text_of(Call(value.op, args, value.attrs))
