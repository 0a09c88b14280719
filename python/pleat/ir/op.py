# SPDX-License-Identifier: Apache-2.0
"""Operations that a program registers, and rules that say what calls of operations mean on a target:

    pleat.ir.register_op_attr("tir.mylog", "TCallEffectKind", pleat.tir.CallEffectKind.Pure)

    def rule(call):                              # an expression, or `call` where there is no rule
        return pleat.tir.call_pure_extern("float32", "logf", call.args[0])
    pleat.ir.register_intrin_lowering("tir.mylog", target="llvm", f=rule)

pleat.build applies the rules of its target, then those of "default", of which the highest level counts."""
import enum
import importlib

from pleat.ir._module import classic_name

_registered = set()
_rules = {}  # (name, target): (level, rule)
CallEffectKind = enum.IntEnum("CallEffectKind", "ExprAnnotation Pure ReadState UpdateState SpecialCallArg "
                              "EmbedInfo ControlJump", start=0)
MOST_ROUNDS = 32  # a rule may give calls that have rules again


def any_registered():
    return bool(_registered)


def is_registered(name):
    return classic_name(name) in _registered


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Registers an operation; without a value, a decorator of one. The attributes of operations say
    nothing in Pleat: a call that has no rule may do anything."""
    _registered.add(classic_name(op_name))
    return (lambda given: given) if value is None else value


def register_intrin_lowering(op_name, target, *, f=None, level=10):
    """Registers a rule for the calls of an operation; without `f`, a decorator. Of several for the
    same target, that of the highest level counts, and of those the last."""
    def register(rule):
        key = classic_name(op_name), target
        if level >= _rules.get(key, (level, None))[0]:
            _rules[key] = level, rule
        return rule
    return register if f is None else register(f)


def _rule_of(name, target):
    return (_rules.get((name, target)) or _rules.get((name, "default")) or (0, None))[1]


def _lowered(body, target):
    functor = importlib.import_module("pleat.tir.stmt_functor")
    for _ in range(MOST_ROUNDS):
        changed = []

        def lower(call):
            rule = _rule_of(str(call.op), target)
            result = call if rule is None else rule(call)
            if result is None or result is call:
                return None
            if result.dtype != call.dtype:
                raise TypeError(f"the rule for {call.op} on {target} gives {result.dtype} for {call.dtype}")
            changed.append(call)
            return result
        body = functor.ir_transform(body, None, lower, ["tir.Call"])
        if not changed:
            return body
    raise ValueError(f"the rules for operations on {target} give calls that have rules, again and again")


def lower_intrinsics(mod, target):
    """The module or function after the rules for a target."""
    made = importlib.import_module("pleat.ir._module")
    names = {name for name, of in _rules if of in (target, "default")}
    text = mod.script() if names else ""
    if not any(name.partition(".")[2] in text for name in names):
        return mod
    if isinstance(mod, made.PrimFunc):
        return mod.with_body(_lowered(mod.body, target))
    mod = mod.clone()
    for name, function in mod.items():
        if isinstance(function, made.PrimFunc):
            mod[name] = function.with_body(_lowered(function.body, target))
    return mod
