# SPDX-License-Identifier: Apache-2.0
"""Classes that look at, or replace, the calls of a graph function, with TVM's names:

    @mutator
    class Rewriter(PyExprMutator):
        def visit_call_(self, call):
            if call.op.name == "relax.nn.relu":
                return relax.op.nn.gelu(call.args[0])
            return super().visit_call_(call)

    rewriter = Rewriter(module)
    new = rewriter.visit_expr(module["main"])

They work on the text of the function. A `Call` has the operator or the function `op`, the operands `args`,
which are expressions of the script (pleat.relax.expr), and `attrs`, a dictionary of the other arguments."""
import ast

from pleat._library import PleatError
from pleat.ir._module import IRModule, Op
from pleat.relax.expr import Call, GlobalVar
from pleat.script._parse import from_source
from pleat.script._values import Value, text_of

__all__ = ["Call", "PyExprMutator", "PyExprVisitor", "mutator", "visitor"]

# The names in R that are no operators.
_NO_OPERATORS = {"Any", "Callable", "Object", "Prim", "Shape", "Tensor", "Tuple", "const", "dataflow", "dtype",
                 "func_attr", "function", "output", "prim_value", "shape", "str", "tuple"}


def _dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []


def _called(node):
    """The operator or function that a call in the text calls; None for other calls."""
    name = _dotted(node.func)
    if len(name) > 1 and name[0] == "R" and name[1] not in _NO_OPERATORS:
        return Op(f"relax.{'.'.join(name[1:])}")
    return GlobalVar(name[1]) if len(name) == 2 and name[0] == "cls" else None


def _expression(text):
    return ast.parse(text, mode="eval").body


class _Calls(ast.NodeTransformer):
    """Gives the calls in statements to `visit`, whose results, unless they are None, replace them."""

    def __init__(self, owner):
        self.owner = owner

    def visit_Call(self, node):
        op = _called(node)
        if op is None:
            return self.generic_visit(node)
        operands = [_operand(argument) for argument in node.args]
        attrs = {one.arg: _operand(one.value) for one in node.keywords}
        result = self.owner.visit_call_(Call(op, operands, attrs))
        return node if result is None else _expression(text_of(result))

    def visit_FunctionDef(self, node):  # a local function
        return self._with_body(node)

    def visit_With(self, node):
        return self._with_body(node)

    def visit_If(self, node):
        node.test = self.visit(node.test)
        node.orelse = self._statements(node.orelse)
        return self._with_body(node)

    def visit_Expr(self, node):  # R.func_attr and R.output
        return node

    def _with_body(self, node):
        node.body = self._statements(node.body)
        return node

    def _statements(self, statements):
        result = []
        for one in statements:
            done = self.visit(one)
            result += [ast.parse(line).body[0] for line in self.owner._taken_lines()] + [done]
        return result


def _operand(node):
    return _Operand(ast.unparse(node), _called(node) is not None if isinstance(node, ast.Call) else False)


class _Operand(Value):
    """An operand of a call."""

    def __init__(self, text, is_call):
        super().__init__(text)
        self.is_call = is_call

    @property
    def struct_info(self):
        raise PleatError(f"the type of `{self}` is not known here; apply relax.transform.Normalize, and look "
                         "at the printed types")


def _definition(tree, name):
    """The function of this name in a script, and the list that it is in."""
    for body in (tree.body, *(one.body for one in tree.body if isinstance(one, ast.ClassDef))):
        for i, one in enumerate(body):
            if isinstance(one, ast.FunctionDef) and one.name == name:
                return body, i
    raise PleatError(f"there is no graph function '{name}'")


class _Functor:
    def __init__(self, mod=None):
        self.mod, self._lines, self._number = mod, [], 0

    def _taken_lines(self):
        lines, self._lines = self._lines, []
        return lines

    def visit_expr(self, expr):
        """Visits a graph function, or the call that an operand is."""
        if isinstance(expr, Value):
            return self._visit_operand(expr)
        module = self.mod if self.mod is not None and expr.__name__ in self.mod else None
        text = (module or IRModule({expr.__name__: expr})).script()
        tree = ast.parse(text)
        body, i = _definition(tree, expr.__name__)
        body[i] = _Calls(self)._with_body(body[i])
        return self._result(expr, tree)

    def _visit_operand(self, expr):
        node = _expression(text_of(expr))
        if isinstance(node, ast.Call) and _called(node) is not None:
            return _Operand(ast.unparse(_Calls(self).visit(node)), True)
        return expr

    def visit_call_(self, call):
        """The replacement of a call: the same call of its operands after visiting them."""
        return Call(call.op, [self.visit_expr(argument) if isinstance(argument, Value) else argument
                              for argument in call.args], call.attrs)


class PyExprVisitor(_Functor):
    """Visits the calls of graph functions: visit_call_ is called with each."""

    def _result(self, expr, tree):
        return None

    def visit_call_(self, call):
        super().visit_call_(call)


class _Builder:
    """The module that a mutator builds."""

    def __init__(self, owner, mod):
        self._owner, self._mod = owner, mod.clone() if mod is not None else IRModule()

    def update_func(self, gv, updated_func):
        self._mod[str(gv)] = updated_func

    def get(self):
        return self._mod

    finalize = get

    def emit(self, expr, name_hint="gv"):
        """A variable with the value of an expression, which is computed before the call that is visited."""
        owner = self._owner
        owner._number += 1
        name = f"{name_hint}_emitted{owner._number}"
        owner._lines.append(f"{name} = {text_of(expr)}")
        return _Operand(name, False)


class PyExprMutator(_Functor):
    """Replaces calls of graph functions: the result of visit_call_ takes the place of the call. `builder_`
    has the module, with update_func and get, and emit adds a binding before the call."""

    def __init__(self, mod=None):
        super().__init__(mod)
        self.builder_ = _Builder(self, mod)

    def _result(self, expr, tree):
        made = from_source(ast.unparse(tree) + "\n")
        return made[expr.__name__] if isinstance(made, IRModule) else made


def mutator(cls):
    """TVM's decorator of a PyExprMutator; it changes nothing."""
    return cls


def visitor(cls):
    """TVM's decorator of a PyExprVisitor; it changes nothing."""
    return cls
