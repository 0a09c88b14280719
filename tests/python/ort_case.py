# SPDX-License-Identifier: Apache-2.0
"""Models of operators of com.microsoft, which are compared with ONNX Runtime."""
import numpy as np
import onnx
import onnxruntime as ort
import pleat
import pytest
from onnx import helper, numpy_helper


class Case:
    """A model of several nodes, all of whose results are outputs."""

    def __init__(self, kind=np.uint8, opset=17):
        self.kind, self.opset = np.dtype(kind), opset
        self.random = np.random.default_rng(3)
        self.nodes, self.weights, self.inputs, self.feeds = [], [], [], {}

    def weight(self, value, kind=None):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def given(self, name, value):
        element = helper.np_dtype_to_tensor_dtype(value.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, element, value.shape))
        self.feeds[name] = value
        return name

    def integers(self, name, shape, kind=None):
        info = np.iinfo(kind or self.kind)
        return self.given(name, self.random.integers(info.min, info.max + 1, shape).astype(info.dtype))

    def grid(self, scale, zero=None):
        return [self.weight(scale, np.float32),
                "" if zero is None else self.weight(zero, self.kind)]

    def floats(self, *shape, scale=1):
        return self.weight(scale * self.random.standard_normal(shape), np.float32)

    def node(self, op, *inputs, outputs=(True,), domain="com.microsoft", **attributes):
        name = f"y{len(self.nodes)}_{op}"
        names = [f"{name}_{i}" if wanted else "" for i, wanted in enumerate(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=name, domain=domain,
                                           **attributes))

    def model(self):
        outputs = [onnx.ValueInfoProto(name=name) for node in self.nodes for name in node.output if name]
        graph = helper.make_graph(self.nodes, "case", self.inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()

    def compare(self):
        model = self.model()
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        expected = ort.InferenceSession(model, options).run(None, self.feeds)
        compiled = pleat.compile(model)
        names = [name for node in self.nodes for name in node.output if name]
        for name, want, got in zip(names, expected, compiled.run(self.feeds), strict=True):
            got = np.asarray(got)
            assert got.dtype == want.dtype and got.shape == want.shape, name
            if want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, 1e-5, 1e-5, err_msg=name)
                continue
            apart = np.abs(got.astype(int) - want.astype(int))
            assert apart.max() <= 1 and np.mean(apart) < 0.05, name

    def message(self):
        with pytest.raises(pleat.PleatError) as caught:
            pleat.compile(self.model())
        return str(caught.value)
