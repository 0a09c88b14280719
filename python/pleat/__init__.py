# SPDX-License-Identifier: Apache-2.0
"""Pleat: layouts of tensors as objects, exact answers about them, compiled models, and tensor
programs. The parts for tensor programs (script, ir, build, …) are imported when they are first used.
"""
import importlib

from pleat import layout, te, tir
from pleat._library import Message, PleatError, Undecided, version
from pleat.layout import Layout
from pleat.model import (Model, PleatCancelled, PleatFault, Session, compile, load, plan,
                         plan_tensor, verify, write)
from pleat.operators import Operator, operator

__all__ = ["KernelProfile", "Layout", "LayoutPrice", "Message", "Model", "Operator", "Plan", "PlanKernel",
           "PlanOperand", "PlanRewrite", "PlanTensor", "PleatCancelled", "PleatError", "PleatFault",
           "Profile", "Session", "TensorPlan", "TensorUse", "Undecided", "Verification",
           "VerifiedTensor", "compile", "layout", "load", "operator", "plan", "plan_tensor", "te", "tir",
           "verify", "version", "write"]


# Names that are imported when they are first used, and their modules.
_REPORTS = ("KernelProfile", "LayoutPrice", "Plan", "PlanKernel", "PlanOperand", "PlanRewrite",
            "PlanTensor", "Profile", "TensorPlan", "TensorUse", "Verification", "VerifiedTensor")
_LAZY = {**dict.fromkeys(_REPORTS, "pleat.report"),
         "DataType": "pleat.data_type", "DataTypeCode": "pleat.data_type", "IRModule": "pleat.ir", "build": "pleat.runtime", "cl": "pleat.nd", "cpu": "pleat.nd",
         "TVMError": "pleat.error", "arith": None, "container": None, "contrib": None, "cuda": "pleat.nd", "device": "pleat.nd", "driver": None,
         "error": None, "get_global_func": "pleat.registry", "instrument": "pleat.ir", "ir": None, "load_module": "pleat.runtime",
         "lower": "pleat.te.lowering", "metal": "pleat.nd", "nd": None, "opencl": "pleat.nd",
         "register_func": "pleat.registry", "register_global_func": "pleat.registry", "relax": None, "rocm": "pleat.nd", "runtime": None,
         "s_tir": None, "script": None, "target": None, "testing": None, "tirx": None, "topi": None,
         "transform": None, "vulkan": "pleat.nd"}


def __dir__():
    return sorted({*__all__, *_LAZY, "__version__"})


def __getattr__(name):
    if name == "__version__":
        return version()
    if name in _LAZY:
        module = importlib.import_module(_LAZY[name] or f"pleat.{name}")
        return getattr(module, name) if _LAZY[name] else module
    raise AttributeError(f"module 'pleat' has no attribute {name!r}")
