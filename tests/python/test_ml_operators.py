# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain ai.onnx.ml, opsets 1 to 4, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

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
    results = pleat.compile(model, threads=1).run({"x": x})
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


@pytest.mark.parametrize("kind, rows, transform, based", [
    (np.float32, 13, "NONE", 0), (np.float64, 1, "SOFTMAX", 1), (np.int64, 5, "LOGISTIC", 0)])
def test_tree_classifier(kind, rows, transform, based):
    every = Trees(rows), lambda leaf: range(3)
    boosted = Trees(rows + 1), lambda leaf: [leaf[0]]  # a tree for each class
    mixed = Trees(rows + 2), lambda leaf: [leaf[1] % 3]  # a row may reach no leaf of a class
    for trees, ids in every, boosted, mixed:
        compare("TreeEnsembleClassifier", rows_of(kind, rows), [INT64, FLOAT],
                classlabels_int64s=[7, 3, 9], post_transform=transform,
                base_values=[0.5, -0.5, 0.1] if based else None,
                **trees.attributes(), **trees.weights("class", ids, -1 if rows > 1 else 0))


@pytest.mark.parametrize("transform, only, low",
                         [("NONE", 0, 0), ("LOGISTIC", 0, -1), ("NONE", 1, -1)])
def test_tree_classifier_of_two(transform, only, low):
    trees = Trees(4 + only)
    compare("TreeEnsembleClassifier", rows_of(np.float32), [INT64, FLOAT],
            classlabels_int64s=[4, 2], post_transform=transform,
            base_values=None if only else [0.125],
            **trees.attributes(), **trees.weights("class", lambda leaf: [only], low))


def test_trees_of_no_rows():
    trees = Trees(2)
    compare("TreeEnsembleClassifier", rows_of(np.float32)[:0], [INT64, FLOAT],
            classlabels_int64s=[4, 2, 1], **trees.attributes(),
            **trees.weights("class", lambda leaf: range(3)))


@pytest.mark.parametrize("changes, words", [
    ({"post_transform": "LOGISTIC"}, "ONNX Runtime ignores where there is one target"),
    ({"nodes_modes": ["BRANCH_LEQ", "SPLIT", "LEAF"]}, "a node has mode 'SPLIT'"),
    ({"nodes_truenodeids": [7, 0, 0]}, "refers to node 7 of tree 0, which does not exist"),
    ({"nodes_truenodeids": [0, 0, 0]}, "begins with a node that another one leads to"),
    ({"nodes_featureids": [3, 0, 0]}, "reads feature 3, and its input has 3"),
    ({"nodes_nodeids": [0, 1, 1]}, "tree 0 has two nodes 1"),
    ({"target_ids": [1, 0]}, "has a weight for 1, expected less than 1"),
    ({"target_nodeids": [1, 1]}, "has two weights for 0"),
    ({"aggregate_function": "MEDIAN"}, "aggregates with 'MEDIAN'"),
    ({"base_values": [1.0, 2.0]}, "has 2 base values, expected 1"),
    ({"target_weights": [1.0]}, "its lists of weights are empty or differ in length"),
])
def test_trees_refused(changes, words):
    attributes = dict(
        nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3,
        nodes_values=[0.5] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
        target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[0.5, 0.25])
    refused("TreeEnsembleRegressor", rows_of(np.float32), [FLOAT], words,
            **{**attributes, **changes})


def refused(op, x, outputs, words, **attributes):
    with pytest.raises(pleat.PleatError) as caught:
        pleat.compile(model_of(op, x, outputs, **attributes))
    assert words in str(caught.value)


@pytest.mark.parametrize("changes, words", [
    ({"classlabels_strings": ["a", "b"], "classlabels_int64s": None}, "its labels are text"),
    ({"post_transform": "SOFTMAX"}, "expected NONE or LOGISTIC where there is one score"),
    ({"base_values": [1.0, 2.0]}, "has 2 base values for two labels"),
    ({"class_ids": None}, "weights of both classes"),
    ({"classlabels_int64s": [1]}, "has 1 labels"),
])
def test_tree_classifier_refused(changes, words):
    trees = Trees(3)
    weights = trees.weights("class", lambda leaf: [0])
    if "class_ids" in changes:
        changes = {"class_ids": [i % 2 for i in range(len(trees.leaves))]}
    refused("TreeEnsembleClassifier", rows_of(np.float32), [INT64, FLOAT], words,
            **{"classlabels_int64s": [4, 2], **trees.attributes(), **weights, **changes})


# ---- Linear models and features ---------------------------------------------------------------

@pytest.mark.parametrize("targets, transform", [(1, "NONE"), (3, "SOFTMAX")])
def test_linear_regressor(targets, transform):
    compare("LinearRegressor", numbers(np.float32), [FLOAT], targets=targets,
            coefficients=numbers(np.float32, targets).ravel(), post_transform=transform,
            intercepts=[0.5, -1.0, 2.0][:targets])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("labels, transform", [([7, 2, 3], "SOFTMAX"), ([5, 4], "LOGISTIC")])
def test_linear_classifier(kind, labels, transform):
    compare("LinearClassifier", numbers(kind), [INT64, FLOAT], classlabels_ints=labels,
            coefficients=numbers(np.float32, len(labels)).ravel(), post_transform=transform,
            intercepts=[0.5, -1.0, 2.0][:len(labels)])


def numbers(kind, rows=5, features=3):
    x = np.random.default_rng(rows).standard_normal((rows, features)) * 3
    x[0] = 0
    return x.astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_features(kind):
    x = numbers(kind)
    compare("Scaler", x, [FLOAT], offset=[0.5, 1.0, -2.0], scale=[2.0, 0.25, 3.0])
    for norm in "MAX", "L1", "L2":
        compare("Normalizer", x, [FLOAT], norm=norm)


@pytest.mark.parametrize("replaced", [np.nan, 3.0])
def test_imputer(replaced):
    compare("Imputer", rows_of(np.float32), [FLOAT], replaced_value_float=replaced,
            imputed_value_floats=[0.5, -1.0, 2.0])


def test_features_refused():
    x = numbers(np.float32)
    refused("Scaler", x, [FLOAT], "attribute 'offset' has 2 numbers", offset=[1.0, 2.0])
    refused("LinearRegressor", x, [FLOAT], "has 2 coefficients", coefficients=[1.0, 2.0])
    refused("LinearRegressor", x[:, :0], [FLOAT], "has 0 coefficients", targets=2**62)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_svm_regressor(kernel):
    compare("SVMRegressor", numbers(np.float32), [FLOAT], kernel_type=kernel, n_supports=7,
            kernel_params=[0.125, 0.5, 3.0], rho=[0.25], coefficients=[1, -2, 0.5, 1, 1, -1, 0.25],
            support_vectors=numbers(np.float32, 7).ravel())


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_one_hot_encoder(kind):
    x = np.arange(6).reshape(2, 3).astype(kind)
    compare("OneHotEncoder", x, [FLOAT], cats_int64s=[4, 1, 0])
    refused("OneHotEncoder", x, [FLOAT], "takes categories that are integers", cats_strings=["a"])


def test_integers():
    x = np.array([[3, -1, 4], [0, 3, 3]], np.int64)
    compare("Imputer", x, [INT64], replaced_value_int64=3, imputed_value_int64s=[7, 8, 9])
    compare("Imputer", x, [INT64], replaced_value_int64=-1, imputed_value_int64s=[5])
    compare("FeatureVectorizer", x, [FLOAT], inputdimensions=[3])
    refused("FeatureVectorizer", x, [FLOAT], "are not the features of its inputs", inputdimensions=[2])


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "SIGMOID"])
@pytest.mark.parametrize("labels", [[5, 4], [7, 2, 3]])
def test_svm_classifier(kernel, labels):
    sizes, random = [3, 4, 2][:len(labels)], np.random.default_rng(5)
    count, pairs = sum(sizes), len(labels) * (len(labels) - 1) // 2
    attributes = dict(
        classlabels_ints=labels, vectors_per_class=sizes, kernel_type=kernel,
        kernel_params=[0.125, 0.5, 3.0], rho=[0.25, -0.5, 0.125][:pairs],
        coefficients=random.standard_normal(count * (len(labels) - 1)).astype(np.float32),
        support_vectors=numbers(np.float32, count).ravel())
    compare("SVMClassifier", numbers(np.float32, 11), [INT64, FLOAT], **attributes)
    for words, change in (("without probabilities", {"prob_a": [1.0] * pairs, "prob_b": [0.5] * pairs}),
                          ("do not fit each other", {"rho": [0.5] * 7}),
                          ("has -1 vectors of a class", {"vectors_per_class": [-1] + sizes[1:]})):
        refused("SVMClassifier", numbers(np.float32), [INT64, FLOAT], words, **{**attributes, **change})


def test_label_encoder():
    x = np.array([[3, -1, 4], [0, 3, 8]], np.int64)
    compare("LabelEncoder", x, [INT64], keys_int64s=[4, 3, 3, 0], values_int64s=[10, 20, 30, 40],
            default_int64=-7)
    compare("LabelEncoder", x, [FLOAT], keys_int64s=[4, 3], values_floats=[0.5, -1.5])
    y = np.array([0.5, np.nan, -2, 7], np.float32)
    compare("LabelEncoder", y, [INT64], keys_floats=[7.0, 0.5], values_int64s=[1, 3])
    # The standard compares bits, so that NaN is a key; ONNX Runtime does not before opset 4.
    model = model_of("LabelEncoder", y, [INT64], keys_floats=[7.0, np.nan], values_int64s=[1, 2])
    assert pleat.compile(model, threads=1).run({"x": y})[0].tolist() == [-1, 2, -1, 1]
    compare("LabelEncoder", y, [FLOAT], keys_floats=[-2.0], values_floats=[1.25], default_float=9.0)
    refused("LabelEncoder", x, [INT64], "its keys are text", keys_strings=["a"], values_int64s=[1])
    refused("LabelEncoder", x, [INT64], "has 2 keys and 1 values", keys_int64s=[1, 2],
            values_int64s=[1])
