# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain ai.onnx.ml, opsets 1 to 4, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import backend  # noqa: E402

ort = pytest.importorskip("onnxruntime")

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(op, x, outputs, **attributes):
    names = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml",
                            **{k: v for k, v in attributes.items() if v is not None})
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, outputs, strict=True)])
    return helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])


def compare(op, x, outputs, **attributes):
    model = model_of(op, x, outputs, **attributes)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})
    results = backend.PleatRep(model, threads=1).run({"x": x})
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape and result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


# ---- Trees ------------------------------------------------------------------------------------

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


class Trees:
    """Random trees in the form of lists of nodes; the first one may be a single leaf."""

    def __init__(self, seed, features=3, trees=3, depth=2, modes=MODES):
        self.random, self.features, self.modes = np.random.default_rng(seed), features, modes
        self.nodes, self.leaves = [], []
        for tree in range(trees):
            self.first = len(self.nodes)
            self.grow(tree, depth if tree else seed % 3)

    def grow(self, tree, depth):
        at, mine = len(self.nodes) - self.first, len(self.nodes)
        if not depth or (depth < 2 and self.random.random() < 0.3):
            self.nodes.append((tree, at, 0, 0.0, "LEAF", 0, 0, 0))
            self.leaves.append((tree, at))
            return at
        self.nodes.append(None)
        split, feature = float(self.random.integers(1, 4)), self.random.integers(self.features)
        yes, no = self.grow(tree, depth - 1), self.grow(tree, depth - 1)
        self.nodes[mine] = (tree, at, int(feature), split, str(self.random.choice(self.modes)),
                            yes, no, int(self.random.integers(2)))
        return at

    def attributes(self):
        names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                 "falsenodeids", "missing_value_tracks_true"]
        return {f"nodes_{name}": list(values)
                for name, values in zip(names, zip(*self.nodes, strict=True), strict=True)}

    def weights(self, prefix, ids, low=-1.0):
        """A weight of each leaf for each of the ids that `ids` gives for it."""
        rows = [(*leaf, i, float(self.random.uniform(low, 1)))
                for leaf in self.leaves for i in ids(leaf)]
        names = ["treeids", "nodeids", "ids", "weights"]
        return {f"{prefix}_{name}": list(values)
                for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def rows_of(kind, rows=13, features=3):
    x = np.random.default_rng(rows).integers(0, 5, (rows, features)).astype(kind)
    if np.dtype(kind).kind == "f":
        x[x == 4] = np.nan
    return x


@pytest.mark.parametrize("kind, rows, how, targets", [
    (np.float32, 13, "SUM", 1), (np.float32, 1, "AVERAGE", 3), (np.float64, 7, "MIN", 2),
    (np.float64, 1, "MAX", 1)])
def test_tree_regressor(kind, rows, how, targets):
    trees = Trees(rows + targets)
    compare("TreeEnsembleRegressor", rows_of(kind, rows), [FLOAT], n_targets=targets,
            aggregate_function=how, base_values=[0.25 * i - 0.5 for i in range(targets)],
            **trees.attributes(), **trees.weights("target", lambda leaf: range(targets)))


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_tree_regressor_transforms(transform):
    trees = Trees(5, modes=MODES[:1])
    compare("TreeEnsembleRegressor", rows_of(np.float32), [FLOAT], n_targets=3,
            post_transform=transform, **trees.attributes(),
            **trees.weights("target", lambda leaf: [leaf[0] % 2]))
