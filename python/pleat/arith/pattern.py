# SPDX-License-Identifier: Apache-2.0
"""Linear forms of expressions."""
from pleat.arith.analyzer import Analyzer
from pleat.tir.op import as_expression


def detect_linear_equation(expr, var_list):
    """The coefficients of the variables in an expression, and what is left; nothing where the expression
    is not linear in them with constant coefficients."""
    found = Analyzer().ask("linear", expr=as_expression(expr), vars=list(var_list))
    return [] if found["rest"] is None else [*map(as_expression, found["coefficients"]), found["rest"]]
