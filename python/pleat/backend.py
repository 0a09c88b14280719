# SPDX-License-Identifier: Apache-2.0
"""The ONNX standard's backend interface: onnx.backend.base.Backend over Pleat.

    import onnx, pleat.backend
    outputs = pleat.backend.run_model(onnx.load("model.onnx"), [x])

The interface passes a model first and its arrays later. Some models can be compiled only when the
arrays are known: those with free sizes, those whose compilation depends on values of inputs, and
those that take sequences (lists of arrays) or optional values (None when absent), whose tensors
become separate inputs of the compiled model. Such a model is compiled by the first run, and again
when a run has arrays of other shapes or other values on which compilation depends.
"""
import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from pleat._library import PleatError
from pleat.model import Model, PleatFault, element_of, flattened

__all__ = ["PleatBackend", "PleatRep", "is_compatible", "prepare", "run_model", "run_node",
           "supports_device"]


def unsupported(reason):
    """The interface's exception for a model that the backend does not support."""
    from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
    return BackendIsNotSupposedToImplementIt(str(reason))


def _dim_is_free(value):
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return False  # _lists finds the shapes of sequences and optional values
    return not tensor.HasField("shape") or any(not dim.HasField("dim_value")
                                               for dim in tensor.shape.dim)


class PleatRep(BackendRep):
    """A prepared model."""

    def __init__(self, model, **options):
        self.proto, self.options = model, options
        self.defaults = {tensor.name for tensor in model.graph.initializer}
        self.compiled = None
        self.key = None  # the shapes and values it was compiled for; None: any arrays
        try:
            compiled = Model(model, **options)
            if not compiled.is_open:  # otherwise _compile_for finds whether it needs values
                self.compiled = compiled
        except PleatFault:
            raise
        except PleatError as error:
            if not self._can_wait():
                raise unsupported(error) from None

    def _own_inputs(self):
        return [value for value in self.proto.graph.input if value.name not in self.defaults]

    def _can_wait(self):
        """Can arrays supply what was missing: a size, or the value of an input?"""
        return len(self._own_inputs()) > 0

    def _by_name(self, inputs):
        if isinstance(inputs, dict):
            return dict(inputs)
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        own = self._own_inputs()
        names = own if len(inputs) <= len(own) else self.proto.graph.input
        if len(inputs) > len(names):
            raise TypeError(f"the model has {len(names)} inputs, not {len(inputs)}")
        return {value.name: array for value, array in zip(names, inputs)}

    def _lists(self, given):
        """Pairs of a name and a shape for the tensors of sequences and optional values.

        Instead of a shape, an absent value has "none", and an empty sequence "empty"."""
        for value in self.proto.graph.input:
            if value.type.HasField("tensor_type") or value.name not in given:
                continue
            if given[value.name] is None:
                yield value.name, "none"
            elif isinstance(given[value.name], list) and not given[value.name]:
                yield value.name, "empty"
            for name, array in flattened(value.name, given[value.name]).items():
                if array is not None:
                    yield name, array.shape

    def _compile_for(self, arrays, lists):
        """Compiles with the shapes, and if these do not suffice, the values of the arrays."""
        shapes = {name: array.shape for name, array in arrays.items() if array.ndim}
        scalars = {name: () for name, array in arrays.items() if not array.ndim}
        shape_key = (tuple(sorted((name, array.shape) for name, array in arrays.items())),
                     tuple(lists.items()))
        value_key = shape_key + tuple(array.tobytes() for _, array in sorted(arrays.items()))
        if self.compiled and self.key in (None, shape_key, value_key):
            return self.compiled
        model = self._with_inputs(arrays)
        free = {value.name for value in model.graph.input if _dim_is_free(value)}
        sizes = {name: shape for name, shape in {**shapes, **scalars}.items() if name in free}
        sizes.update(lists)
        try:
            compiled, self.key = Model(model, shapes=sizes, **self.options), shape_key
        except PleatFault:
            raise
        except PleatError:
            known = {name: array for name, array in arrays.items() if element_of(array.dtype)}
            compiled = Model(model, shapes=sizes, known=known, **self.options)
            self.key = value_key
        self.compiled = compiled
        return compiled

    def _with_inputs(self, arrays):
        """The model without the default values of the inputs in `arrays`."""
        if not arrays.keys() & self.defaults:
            return self.proto
        model = onnx.ModelProto()
        model.CopyFrom(self.proto)
        kept = [tensor for tensor in model.graph.initializer if tensor.name not in arrays]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        return model

    def _outputs(self, results):
        """The outputs of the original model: a sequence as a list, an absent value as None."""
        def of(name, kind):
            if kind.HasField("optional_type"):
                held = of(name, kind.optional_type.elem_type)
                return None if isinstance(held, list) and not held else held
            if not kind.HasField("sequence_type"):
                return results.get(name)
            count = 1 + max((int(key[len(name) + 1:].partition("]")[0]) for key in results
                             if key.startswith(f"{name}[")), default=-1)
            return [of(f"{name}[{i}]", kind.sequence_type.elem_type) for i in range(count)]
        return tuple(of(value.name, value.type) for value in self.proto.graph.output)

    def run(self, inputs, **kwargs):
        """The outputs as a tuple of arrays; a sequence is a list of arrays."""
        given = self._by_name(inputs)
        optional = {value.name for value in self.proto.graph.input
                    if value.type.HasField("optional_type")}
        tensors = {key: array for name, value in given.items()
                   for key, array in flattened(name, value).items()
                   if array is not None or name not in optional}
        for name, value in tensors.items():
            if not isinstance(value, (np.ndarray, np.generic)):
                raise unsupported(f"input '{name}' is no tensor")
        arrays = {name: np.asarray(value) for name, value in tensors.items()}
        lists = dict(self._lists(given))
        if arrays.keys() & self.defaults:
            self.compiled = None
        try:
            compiled = self._compile_for(arrays, lists)
            names = [argument.name for argument in compiled.outputs]
            return self._outputs(dict(zip(names, compiled.run(arrays))))
        except PleatFault:
            raise
        except PleatError as error:
            raise unsupported(error) from None


class PleatBackend(Backend):
    """The backend. Its methods pass further keywords to pleat.Model: threads, cpu, shapes."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Can the model be compiled, now or when its arrays are known?"""
        from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
        try:
            cls.prepare(model, device, **kwargs)
        except BackendIsNotSupposedToImplementIt:
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        if not cls.supports_device(device):
            raise unsupported(f"there is no device {device}")
        super().prepare(model, device, **kwargs)
        return PleatRep(model, **kwargs)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = inputs if isinstance(inputs, dict) else dict(zip(
            names, [np.asarray(value) for value in inputs]))
        values = [onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape)
            for name in names]
        results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", values, results)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        return PleatRep(model, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU" or device.startswith("CPU:")


is_compatible = PleatBackend.is_compatible
prepare = PleatBackend.prepare
run_model = PleatBackend.run_model
run_node = PleatBackend.run_node
supports_device = PleatBackend.supports_device
