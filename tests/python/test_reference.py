# SPDX-License-Identifier: Apache-2.0
"""Operators that are put together from others, against the standard's own reference evaluator, with
attributes that its test cases do not have."""
import pytest
from built import skip_sanitized

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import backend  # noqa: E402

FLEX, TRAINING = "ai.onnx.preview", "ai.onnx.preview.training"


def model_of(node, arrays, outputs, domains=()):
    opsets = [helper.make_opsetid("", 26)] if "" not in domains else []
    opsets += [helper.make_opsetid(domain, 1) for domain in domains if domain]
    inputs = [helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    for result in results:
        result.type.tensor_type.ClearField("shape")
    graph = helper.make_graph([node], "case", inputs, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def compare(node, arrays, outputs, domains=(), rtol=1e-5, atol=1e-6):
    model = model_of(node, arrays, outputs, domains)
    expected = ReferenceEvaluator(model).run(None, arrays)
    rep = backend.PleatRep(model, threads=1)
    for one, other in zip(rep.run(arrays), expected, strict=True):
        assert one.shape == other.shape  # the reference's Adam gives float32 for all
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def refused(node, arrays, outputs, words, domains=()):
    with pytest.raises(pleat.PleatError) as caught:
        pleat.compile(model_of(node, arrays, outputs, domains))
    assert words in str(caught.value)


def some(seed, *shape, kind=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


# ---- n-grams ----------------------------------------------------------------------------------

def gram_attributes(random, sizes):
    """Different n-grams of each size from 1 on, numbers from 0 to 4."""
    pool, starts = [], []
    for size, count in enumerate(sizes, 1):
        starts.append(len(pool))
        grams = random.choice(5 ** size, min(count, 5 ** size), replace=False)
        pool += [int(gram) // 5 ** k % 5 for gram in grams for k in range(size)]
    ends = starts[1:] + [len(pool)]
    count = sum((end - start) // size
                for size, (start, end) in enumerate(zip(starts, ends, strict=True), 1))
    return {"pool_int64s": pool, "ngram_counts": starts,
            "ngram_indexes": [int(i) for i in random.permutation(count + 3)[:count]]}


@pytest.mark.parametrize("seed", range(12))
def test_grams(seed):
    random = np.random.default_rng(seed)
    attributes = gram_attributes(random, random.integers(0, 7, 3) + (seed == 0))
    if not attributes["pool_int64s"]:
        return
    width = max(attributes["ngram_indexes"]) + 1
    mode = ["TF", "IDF", "TFIDF"][seed % 3]
    least = int(random.integers(1, 4))
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=least,
        max_gram_length=int(random.integers(least, 4)), max_skip_count=int(random.integers(0, 4)),
        weights=[float(w) for w in random.random(width)], **attributes)
    shape = [(9,), (3, 7), (1, 2), (2, 23)][seed % 4]
    x = random.integers(0, 6, shape).astype([np.int32, np.int64][seed % 2])
    compare(node, {"x": x}, [("y", TensorProto.FLOAT)])


GRAMS = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
         "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 1, 2]}


def test_grams_of_one_column():
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"],
                            **{**GRAMS, "ngram_indexes": [1, 1, 1]})
    compare(node, {"x": np.array([1, 2, 2, 1, 2])}, [("y", TensorProto.FLOAT)])


@pytest.mark.parametrize("changes, words", [
    ({"mode": "many"}, "attribute 'mode' is 'many'"),
    ({"ngram_counts": [0, 3]}, "does not divide the pool: size 2 begins at 3"),
    ({"ngram_counts": [2, 0]}, "does not divide the pool"),
    ({"ngram_indexes": [0, 1]}, "3 n-grams, but 2 columns"),
    ({"ngram_indexes": [0, 1, -1]}, "attribute 'ngram_indexes' has -1"),
    ({"min_gram_length": 3}, "n-grams of 3 to 2 items"),
    ({"mode": "IDF", "weights": [1.0]}, "1 weights for 3 columns"),
    ({"pool_int64s": None, "pool_strings": ["a", "b", "a", "b"]}, "number the words"),
])
def test_grams_refused(changes, words):
    attributes = {key: value for key, value in {**GRAMS, **changes}.items() if value is not None}
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    refused(node, {"x": np.array([1, 2, 3])}, [("y", TensorProto.FLOAT)], words)


# ---- Attention with bodies --------------------------------------------------------------------

def body(name, kind, nodes, constants=()):
    value = helper.make_tensor_value_info
    return helper.make_graph(
        nodes, name, [value("x", kind, ["B", "H", "L", "S"])], [value("y", kind, ["B", "H", "L", "S"])],
        [onnx.numpy_helper.from_array(array, key) for key, array in constants])


@pytest.mark.parametrize("heads, kv_heads", [(4, 4), (6, 2), (3, 1)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_flex_attention(heads, kv_heads, kind):
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    bias = some(5, 1, heads, 5, 7, kind=kind)
    score = body("score", code, [helper.make_node("Tanh", ["x"], ["t"]),
                                 helper.make_node("Add", ["t", "bias"], ["y"])], [("bias", bias)])
    shares = body("shares", code, [helper.make_node("Mul", ["x", "x"], ["y"])])
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=FLEX, scale=0.3,
                            score_mod=score, prob_mod=shares)
    arrays = {"q": some(1, 2, heads, 5, 6, kind=kind), "k": some(2, 2, kv_heads, 7, 6, kind=kind),
              "v": some(3, 2, kv_heads, 7, 3, kind=kind)}
    compare(node, arrays, [("y", code)], [FLEX], rtol=1e-4)


def test_flex_attention_of_other_precision():
    score = body("score", TensorProto.DOUBLE, [helper.make_node("Neg", ["x"], ["y"])])
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=FLEX, score_mod=score,
                            softmax_precision=TensorProto.DOUBLE)
    arrays = {"q": some(1, 1, 2, 3, 4), "k": some(2, 1, 2, 5, 4), "v": some(3, 1, 2, 5, 6)}
    compare(node, arrays, [("y", TensorProto.FLOAT)], [FLEX])


@pytest.mark.parametrize("nodes, words", [
    ([helper.make_node("ReduceMax", ["x"], ["y"])], "'score_mod' changes the shape or type"),
    ([helper.make_node("Greater", ["x", "x"], ["y"])], "'score_mod' changes the shape or type"),
    ([helper.make_node("SequenceConstruct", ["x"], ["y"])], "changes the shape or type"),
])
def test_flex_attention_refused(nodes, words):
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=FLEX,
                            score_mod=body("score", TensorProto.FLOAT, nodes))
    arrays = {"q": some(1, 1, 2, 3, 4), "k": some(2, 1, 2, 5, 4), "v": some(3, 1, 2, 5, 6)}
    refused(node, arrays, [("y", TensorProto.FLOAT)], words, [FLEX])


# ---- Steps of training ------------------------------------------------------------------------

OPTIMIZERS = {
    "Adagrad": (1, {"decay_factor": 0.2, "epsilon": 1e-3, "norm_coefficient": 0.01}),
    "Adam": (2, {"alpha": 0.8, "beta": 0.9, "epsilon": 1e-3, "norm_coefficient": 0.02,
                 "norm_coefficient_post": 0.05}),
    "Momentum": (1, {"alpha": 0.8, "beta": 0.7, "mode": "standard", "norm_coefficient": 0.01}),
    "Nesterov": (1, {"alpha": 0.8, "beta": 0.7, "mode": "nesterov", "norm_coefficient": 0.01}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_optimizers(name, number, kind):
    states, attributes = OPTIMIZERS[name]
    arrays = {"r": np.array(0.1, kind), "t": np.array(number, np.int64)}
    for group in "xg" + "vh"[:states]:
        for i, shape in enumerate([(3, 5), (7,)]):
            made = some(ord(group) + i, *shape, kind=kind)
            arrays[f"{group}{i}"] = np.abs(made) if group in "vh" else made
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    outputs = [f"{group}{i}_new" for group in "x" + "vh"[:states] for i in range(2)]
    node = helper.make_node(name.replace("Nesterov", "Momentum"), list(arrays), outputs,
                            domain=TRAINING, **attributes)
    compare(node, arrays, [(output, code) for output in outputs], ["", TRAINING], rtol=1e-4)


def test_optimizers_refused():
    arrays = {"r": some(0), "t": np.array(0), "x": some(1, 3), "g": some(2, 3), "h": some(3, 4)}
    node = helper.make_node("Adagrad", list(arrays), ["y"], domain=TRAINING)
    refused(node, arrays, [("y", TensorProto.FLOAT)], "input 4 has another shape or type",
            ["", TRAINING])
    del arrays["h"]
    node = helper.make_node("Adagrad", list(arrays), ["y"], domain=TRAINING)
    refused(node, arrays, [("y", TensorProto.FLOAT)], "Adagrad: has", ["", TRAINING])
    node = helper.make_node("Neg", ["x"], ["y"])
    refused(node, {"x": some(1, 3)}, [("y", TensorProto.FLOAT)],
            "the model does not say which opset it uses", ["", TRAINING])


# ---- Normalisation while training -------------------------------------------------------------

@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 7), (3, 2, 1, 5)])
def test_batch_normalization_while_training(shape):
    channels = (shape[1],)
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "p", "q"],
                            training_mode=1, momentum=0.7, epsilon=1e-3)
    arrays = {"x": some(1, *shape) + 2, "s": some(2, *channels), "b": some(3, *channels),
              "m": some(4, *channels), "v": np.abs(some(5, *channels))}
    compare(node, arrays, [(name, TensorProto.FLOAT) for name in "ypq"], rtol=1e-4)


# ---- Trees and features -----------------------------------------------------------------------

ML = "ai.onnx.ml"


class Ensemble:
    """Random trees. Nodes are numbered on the way down, true branches first."""

    def __init__(self, seed, kind, features, targets, trees, depth=4):
        self.random, self.kind, self.features = np.random.default_rng(seed), kind, features
        self.targets, self.nodes, self.leaves, self.members = targets, [], [], []
        self.roots = [self.grow(depth)[0] for _ in range(trees)]

    def grow(self, depth):
        """The number of a new branch, and whether it is a leaf."""
        if depth == 0 or (depth < 4 and self.random.random() < 0.3):
            self.leaves.append((int(self.random.integers(self.targets)), self.random.normal()))
            return len(self.leaves) - 1, 1
        mine, mode = len(self.nodes), int(self.random.integers(7))
        self.nodes.append(None)
        if mode == 6:
            self.members += [float(v) for v in self.random.integers(1, 4, 2)] + [np.nan]
        split, feature = self.random.integers(1, 4), int(self.random.integers(self.features))
        branches = [*self.grow(depth - 1), *self.grow(depth - 1)]
        self.nodes[mine] = (mode, float(split), feature, *branches, int(self.random.integers(2)))
        return mine, 0

    def node(self, **changes):
        def tensor(name, values, kind):
            return onnx.numpy_helper.from_array(np.array(values, kind), name)
        modes, splits, features, yes, yes_leaf, no, no_leaf, missing = zip(*self.nodes, strict=True)
        attributes = {
            "nodes_modes": tensor("m", modes, np.uint8), "nodes_featureids": features,
            "nodes_splits": tensor("s", splits, self.kind), "nodes_truenodeids": yes,
            "nodes_trueleafs": yes_leaf, "nodes_falsenodeids": no, "nodes_falseleafs": no_leaf,
            "nodes_missing_value_tracks_true": missing, "n_targets": self.targets,
            "leaf_targetids": [target for target, _ in self.leaves], "tree_roots": self.roots,
            "leaf_weights": tensor("w", [weight for _, weight in self.leaves], self.kind)}
        if self.members:
            attributes["membership_values"] = tensor("v", self.members, self.kind)
        return helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML,
                                **{**attributes, **changes})


def ml_model(node, arrays, kind, version=5):
    model = model_of(node, arrays, [("y", kind)], ["", ML])
    model.opset_import[0].version = version
    return model


@pytest.mark.parametrize("seed", range(8))
def test_trees(seed):
    kind = [np.float32, np.float64][seed % 2]
    ensemble = Ensemble(seed, kind, 3, 1 + seed % 3, 1 + seed % 4)
    x = np.random.default_rng(seed).integers(0, 5, (13, 3)).astype(kind)
    x[x == 4] = np.nan
    model = ml_model(ensemble.node(aggregate_function=seed // 2 % 4), {"x": x},
                     helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    (result,) = backend.PleatRep(model, threads=1).run({"x": x})
    assert result.shape == expected.shape and result.dtype == kind
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_deep_trees():
    ensemble = Ensemble(2, np.float32, 3, 1, 3, depth=12)
    ensemble.nodes = [(0, *node[1:]) for node in ensemble.nodes]  # all compare in the same way
    ensemble.members = []
    x = np.random.default_rng(2).integers(0, 5, (13, 3)).astype(np.float32)
    model = ml_model(ensemble.node(nodes_missing_value_tracks_true=None), {"x": x},
                     TensorProto.FLOAT)
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    compiled = pleat.compile(model)
    np.testing.assert_allclose(compiled.run({"x": x})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("changes, words", [
    ({"post_transform": 1}, "attribute 'post_transform' is 1, only 0 is supported"),
    ({"tree_roots": [99]}, "tree 0 begins at node 99, which does not exist"),
    ({"nodes_featureids": [0]}, "attribute 'nodes_featureids' has 1 values"),
    ({"aggregate_function": 7}, "aggregates in way 7"),
])
def test_trees_refused(changes, words):
    node = Ensemble(3, np.float32, 3, 2, 2).node(**changes)
    with pytest.raises(pleat.PleatError) as caught:
        pleat.compile(ml_model(node, {"x": some(1, 4, 3)}, TensorProto.FLOAT))
    assert words in str(caught.value)


def test_trees_that_lead_back():
    ensemble = Ensemble(5, np.float32, 3, 2, 1)
    first = ensemble.nodes[0]
    ensemble.nodes[0] = (*first[:3], 0, 0, 0, 0, first[7])
    with pytest.raises(pleat.PleatError) as caught:
        pleat.compile(ml_model(ensemble.node(), {"x": some(1, 4, 3)}, TensorProto.FLOAT))
    assert "have a cycle" in str(caught.value)


@pytest.mark.parametrize("shape, places", [((2, 3, 7), (4,)), ((7,), (3,)), ((2, 7), (1, 2))])
def test_features(shape, places):
    at = np.random.default_rng(1).integers(0, 7, places)
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain=ML)
    arrays = {"x": some(1, *shape), "i": at}
    model = ml_model(node, arrays, TensorProto.FLOAT, 1)
    expected = ReferenceEvaluator(model).run(None, arrays)[0]
    (result,) = backend.PleatRep(model, threads=1).run(arrays)
    np.testing.assert_array_equal(result, expected)
    node = helper.make_node("Binarizer", ["x"], ["y"], domain=ML, threshold=0.25)
    (result,) = backend.PleatRep(ml_model(node, {"x": arrays["x"]}, TensorProto.FLOAT, 1),
                                 threads=1).run([arrays["x"]])
    np.testing.assert_array_equal(result, (arrays["x"] > 0.25).astype(np.float32))
