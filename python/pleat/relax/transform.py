# SPDX-License-Identifier: Apache-2.0
"""Passes over graph functions, with TVM's names and arguments where TVM has the pass. `passes()`
lists them."""
import importlib

from pleat._library import _lib, ffi
from pleat.ir._module import Function, PrimFunc
from pleat.ir.transform import Pass, PassContext, Sequential, function_pass, module_pass, pass_text, run_passes
from pleat.relax.expr import Call

__all__ = ["AlterOpImpl", "AnnotateTIROpPattern", "BindParams", "BindSymbolicVars", "CanonicalizeBindings",
           "ConvertLayout", "DeadCodeElimination", "EliminateCommonSubexpr", "FlowLayoutRewrites",
           "FoldConstant", "FuseOps", "FuseOpsByPattern", "FuseTIR", "FusionPattern", "HoistLayoutRewrites",
           "LegalizeOps", "MergeCompositeFunctions", "Normalize", "OptimizeLayoutTransform", "Pass",
           "PassContext", "PatternCheckContext", "RaiseLayoutRewrites", "RunCodegen", "Sequential",
           "SplitLayoutRewritePreproc", "function_pass", "module_pass", "passes"]


def passes():
    """The names of the passes, and of each the names of its arguments and a sentence about it."""
    found, i = {}, 0
    while _lib.pleat_graph_pass_name(i) != ffi.NULL:
        texts = (_lib.pleat_graph_pass_arguments(i), _lib.pleat_graph_pass_summary(i))
        found[ffi.string(_lib.pleat_graph_pass_name(i)).decode()] = \
            tuple(ffi.string(text).decode() for text in texts)
        i += 1
    return found


def _pass(name, **arguments):
    return Pass(name, lambda module, _: run_passes(module, pass_text(name, arguments)))


def LegalizeOps(customize_legalize_map=None, skip_ops=None, enable_warning=False):
    """Makes calls of tensor programs of all operators but those of the list skip_ops.

    customize_legalize_map: by the name of an operator, a function of a BlockBuilder and a relax.Call that
        gives the expression which takes the place of the call, such as bb.call_te(…)"""
    if not customize_legalize_map:
        return _pass("LegalizeOps", skip_ops=skip_ops)

    def run(module, context):
        from pleat.relax.legalize import legalized_by
        skipped = {str(name) for name in skip_ops or ()}
        rules = {str(name): rule for name, rule in customize_legalize_map.items() if str(name) not in skipped}
        return _pass("LegalizeOps", skip_ops=skip_ops)(legalized_by(Normalize()(module), rules))
    return Pass("LegalizeOps", run)


def Normalize():
    """Binds each value to a variable, with its shape and type."""
    return _pass("Normalize")


def RaiseLayoutRewrites():
    """Makes layout_transform, pad and crop of programs that only rewrite their tensor."""
    return _pass("RaiseLayoutRewrites")


def OptimizeLayoutTransform():
    """Cancels and merges rewrites that follow one another."""
    return _pass("OptimizeLayoutTransform")


def FlowLayoutRewrites(direction="backward", value=None):
    """Moves rewrites through the operators and programs before ("backward") or after ("forward")
    them. value: the name of the result of the only rewrite that moves."""
    return _pass("FlowLayoutRewrites", direction=direction, value=value)


def FoldConstant():
    """Computes operators and programs whose operands are all constants."""
    return _pass("FoldConstant")


def DeadCodeElimination(entry_functions=None):
    """Removes values that no result needs, and functions that none of entry_functions calls; without
    them, private functions that no other function calls."""
    return _pass("DeadCodeElimination", entry_functions=entry_functions)


def AnnotateTIROpPattern():
    """Gives programs the attribute "op_pattern": how their results depend on their inputs."""
    return _pass("AnnotateTIROpPattern")


def FuseOps(fuse_opt_level=-1):
    """Makes private functions, with the attribute "Primitive", of calls of programs that one program
    can compute. At level 0 there are none."""
    return _pass("FuseOps", fuse_opt_level=fuse_opt_level)


def FuseTIR():
    """Makes one program of each function that FuseOps made."""
    return _pass("FuseTIR")


def BindParams(func_name, params):
    """Makes constants of parameters of a function: a dictionary from their names, or variables, to arrays. The sizes
    that are extents of these parameters become numbers."""
    def run(module, _):
        from pleat.relax.bind import with_constants
        return with_constants(module, str(func_name), params)
    return Pass("BindParams", run)


def BindSymbolicVars(binding_map, func_name=None):
    """Makes numbers of sizes: a dictionary from their names, or variables, to numbers. func_name: the function;
    without it all that have these sizes"""
    def run(module, _):
        from pleat.relax.bind import with_sizes
        return with_sizes(module, binding_map, func_name)
    return Pass("BindSymbolicVars", run)


def CanonicalizeBindings():
    """Removes variables that are other ones, and items of tuples whose fields are known. Every module that was
    read is so already."""
    return Pass("CanonicalizeBindings", lambda module, _: module)


def EliminateCommonSubexpr(call_only=False):
    """Computes equal values of a dataflow block once. call_only: only calls, and no tuples and items"""
    def run(module, _):
        from pleat.relax.bind import without_repetitions
        return without_repetitions(module, call_only)
    return Pass("EliminateCommonSubexpr", run)


def HoistLayoutRewrites():
    """Moves blocks that only rewrite out of tensor programs, to their callers."""
    return _pass("HoistLayoutRewrites")


def SplitLayoutRewritePreproc():
    """The same for blocks with the annotation meta_schedule.layout_rewrite_preproc."""
    return _pass("SplitLayoutRewritePreproc")


def ConvertLayout(desired_layouts, layout_cb=None):
    """Gives operators layouts, such as {"relax.nn.conv2d": ["NHWC", "OHWI"]}: of the data, the
    weights and the result. The other operators follow.

    layout_cb: a function of a call (relax.Call) that gives such a dictionary for the operator of this
        call, or an empty one. desired_layouts has no meaning then, as in TVM"""
    if layout_cb is None:
        return _pass("ConvertLayout", desired_layouts=desired_layouts)

    def run(module, context):
        return _pass("ConvertLayout", desired_layouts={},
                     calls=_layouts_of_calls(module, layout_cb))(module)
    return Pass("ConvertLayout", run)


def _layouts_of_calls(module, layout_cb):
    """{"function.result": what layout_cb says of the call} of the operators of all functions."""
    found = {}
    for name in module:
        function = module[name]
        if not isinstance(function, Function):
            continue
        for binding in (b for block in function.body.blocks for b in block.bindings):
            call = getattr(binding, "value", None)
            if isinstance(call, Call):
                layouts = layout_cb(call).get(str(call.op))
                if layouts:
                    found[f"{name}.{binding.var.name_hint}"] = list(layouts)
    return found


def AlterOpImpl(op_impl_map, op_buffer_transforms, op_buffer_axis_separators=None,
                op_buffer_input_axis_separators=None):
    """Replaces programs that have the attribute "operator_name".

    op_impl_map: by this name the new program, or the name of one of the module
    op_buffer_transforms: by this name the layouts of its parameters: functions or IndexMaps, also as the
        pair that IndexMap.from_func_with_separators gives
    op_buffer_axis_separators: by this name, for each parameter, the axis separators of what the rewrite of
        the parameter gives, and op_buffer_input_axis_separators those of what the rewrite reads"""
    layouts = {key: [layout[0] if isinstance(layout, (tuple, list)) else layout for layout in layouts]
               for key, layouts in op_buffer_transforms.items()}

    def run(module, context):
        module, names = module.clone(), {}
        for key, program in op_impl_map.items():
            names[key] = program if isinstance(program, str) else _added(module, program, key)
        return _pass("AlterOpImpl", op_impl_map=names,
                     op_buffer_transforms=layouts,
                     op_buffer_axis_separators=op_buffer_axis_separators,
                     op_buffer_input_axis_separators=op_buffer_input_axis_separators)(module)
    return Pass("AlterOpImpl", run)


def _added(module, program, operator):
    """Adds a program in place of those of an operator, whose program it is then; returns its name."""
    if not isinstance(program, PrimFunc):
        raise TypeError(f"expected a PrimFunc, not {type(program).__name__}")
    base = name = operator.replace(".", "_") + "_replacement"
    number = 0
    while name in module:
        number += 1
        name = f"{base}_{number}"
    module[name] = program.without_attr("global_symbol").with_attr("operator_name", operator)
    return name


def __getattr__(name):
    if name in ("FuseOpsByPattern", "FusionPattern", "MergeCompositeFunctions", "PatternCheckContext", "RunCodegen"):
        return getattr(importlib.import_module("pleat.relax.composite"), name)
    raise AttributeError(f"module 'pleat.relax.transform' has no attribute {name!r}")
