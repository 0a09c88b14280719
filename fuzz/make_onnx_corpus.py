# SPDX-License-Identifier: Apache-2.0
"""Writes the small models that fuzz_onnx_models mutates: make_onnx_corpus.py fuzz/corpus/onnx"""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL,
         "j": TensorProto.INT32, "h": TensorProto.FLOAT16, "u": TensorProto.UINT8,
         "s": TensorProto.INT8}
RANDOM = np.random.default_rng(1)


def info(text):
    """"x:f2x3" as a value; "x" alone has neither type nor shape."""
    name, _, rest = text.partition(":")
    if not rest:
        return ValueInfoProto(name=name)
    dims = [int(d) if d.isdigit() else d for d in rest[1:].split("x") if d]
    return helper.make_tensor_value_info(name, KINDS[rest[0]], dims)


def weight(text):
    """"w:f2x3" with random numbers, "w:i=1,2" with these."""
    name, _, rest = text.partition(":")
    dtype = helper.tensor_dtype_to_np_dtype(KINDS[rest[0]])
    if "=" in rest:
        array = np.array([float(v) for v in rest[2:].split(",")], dtype)
    else:
        shape = [int(d) for d in rest[1:].split("x") if d]
        array = (RANDOM.standard_normal(shape) * 4).astype(dtype)
    return numpy_helper.from_array(array, name)


def node(text, **attributes):
    """"Op a,b y,z"."""
    op, inputs, outputs = text.split(" ")
    op, _, domain = op.partition("@")
    return helper.make_node(op, inputs.split(",") if inputs != "-" else [], outputs.split(","),
                            domain=domain, **attributes)


def graph(nodes, inputs, outputs, weights=()):
    return helper.make_graph(nodes, "g", [info(i) for i in inputs], [info(o) for o in outputs],
                             [weight(w) for w in weights])


def single(text, inputs, weights=(), **attributes):
    outputs = [name for name in text.split(" ")[2].split(",") if name]
    return graph([node(text, **attributes)], inputs, outputs, weights)


BODY = graph([node("Identity c d"), node("Add v,x w"), node("Identity w t")],
             ["i:i", "c:b", "v:f3"], ["d:b", "w:f3", "t:f3"])
STEP = graph([node("Add s,e t"), node("Tanh t o")], ["s:f3", "e:f3"], ["t:f3", "o:f3"])
YES = graph([node("Neg x r")], [], ["r"])
NO = graph([node("Abs x r")], [], ["r"])

GRAPHS = {
    "add": single("Add x,z y", ["x:f2x3", "z:f3"]),
    "argmax": single("ArgMax x y", ["x:f2x5"], axis=1),
    "average_pool": single("AveragePool x y", ["x:f1x3x7x7"], kernel_shape=[3, 2],
                           strides=[2, 1], pads=[1, 0, 1, 1]),
    "batch_norm": single("BatchNormalization x,s,b,m,v y", ["x:f1x3x4x4"],
                         ["s:f3", "b:f3", "m:f3", "v:f=1,2,3"]),
    "cast": single("Cast x y", ["x:f2x3"], to=7),
    "clip": single("Clip x,lo,hi y", ["x:f7"], ["lo:f=-1", "hi:f=1"]),
    "concat": single("Concat x,z,x y", ["x:f2x3", "z:f2x1"], axis=1),
    "conv": single("Conv x,w,b y", ["x:f1x4x8x8"], ["w:f6x2x3x3", "b:f6"], group=2,
                   pads=[1, 1, 1, 1], strides=[2, 1], dilations=[1, 2]),
    "conv_1d": single("Conv x,w y", ["x:f1x3x9"], ["w:f4x3x3"], auto_pad="SAME_UPPER"),
    "conv_integer": single("ConvInteger x,w,p y", ["x:u1x2x5x5"], ["w:u3x2x3x3", "p:u=3"]),
    "conv_relu_pool": graph([node("Conv x,w a"), node("Relu a b"),
                             node("MaxPool b c", kernel_shape=[2, 2], strides=[2, 2]),
                             node("GlobalAveragePool c d"), node("Flatten d e"),
                             node("Gemm e,v,u f"), node("Softmax f y")],
                            ["x:f1x3x8x8"], ["y"], ["w:f8x3x3x3", "v:f8x5", "u:f5"]),
    "conv_transpose": single("ConvTranspose x,w y", ["x:f1x3x4x4"], ["w:f3x2x3x3"],
                             strides=[2, 2]),
    "cumsum": single("CumSum x,a y", ["x:f3x4"], ["a:i=1"], reverse=1),
    "depth_to_space": single("DepthToSpace x y", ["x:f1x8x2x3"], blocksize=2),
    "dequantize": single("DequantizeLinear x,s,z y", ["x:u3x4"], ["s:f=0.5", "z:u=7"]),
    "div_int": single("Div x,z y", ["x:i2x3", "z:i3"]),
    "dropout": single("Dropout x y,m", ["x:f3x4"]),
    "dynamic_quantize": single("DynamicQuantizeLinear x y,s,z", ["x:f3x4"]),
    "einsum": single("Einsum x,z y", ["x:f2x3x4", "z:f2x4x5"], equation="bij,bjk->bik"),
    "expand": single("Expand x,s y", ["x:f3x1"], ["s:i=2,3,4"]),
    "gather": single("Gather x,i y", ["x:f5x4", "i:i2x2"], axis=0),
    "gather_elements": single("GatherElements x,i y", ["x:f3x4", "i:i2x4"], axis=0),
    "gather_nd": single("GatherND x,i y", ["x:f3x4", "i:i2x1"]),
    "gemm": single("Gemm x,w,b y", ["x:f3x4"], ["w:f5x4", "b:f5"], transB=1, alpha=0.5),
    "gru": single("GRU x,w,r,b y,h", ["x:f3x2x4"], ["w:f2x9x4", "r:f2x9x3", "b:f2x18"],
                  hidden_size=3, direction="bidirectional", linear_before_reset=1),
    "hardmax": single("Hardmax x y", ["x:f3x4"]),
    "if_known": graph([node("If c y", then_branch=YES, else_branch=NO)], ["x:f3"], ["y"],
                      ["c:b=1"]),
    "if_unknown": graph([node("If c y", then_branch=YES, else_branch=NO)], ["x:f3", "c:b"], ["y"]),
    "instance_norm": single("InstanceNormalization x,s,b y", ["x:f2x3x4x4"], ["s:f3", "b:f3"]),
    "layer_norm": single("LayerNormalization x,s,b y", ["x:f2x3x8"], ["s:f8", "b:f8"]),
    "loop": graph([node("Loop n,,x y,z", body=BODY)], ["x:f3"], ["y", "z"], ["n:i=3"]),
    "lrn": single("LRN x y", ["x:f1x5x3x3"], size=3),
    "lstm": single("LSTM x,w,r,b,l y,h,c", ["x:f3x2x4", "l:j2"],
                   ["w:f1x12x4", "r:f1x12x3", "b:f1x24"], hidden_size=3, clip=1.5,
                   activations=["Sigmoid", "Tanh", "Elu"], activation_alpha=[0.5]),
    "matmul": single("MatMul x,z y", ["x:f2x3x4", "z:f4x5"]),
    "max_pool": single("MaxPool x y", ["x:f1x3x9"], kernel_shape=[3], strides=[2], ceil_mode=1),
    "mod": single("Mod x,z y", ["x:j5", "z:j5"]),
    "one_hot": single("OneHot i,d,v y", ["i:i4"], ["d:i=5", "v:f=0,1"]),
    "pad": single("Pad x,p y", ["x:f3x4"], ["p:i=1,0,2,1"], mode="reflect"),
    "pow": single("Pow x,z y", ["x:f3", "z:i3"]),
    "prelu": single("PRelu x,s y", ["x:f2x3x4"], ["s:f3x1"]),
    "quantize": single("QuantizeLinear x,s,z y", ["x:f3x4"], ["s:f=0.5", "z:u=7"]),
    "qlinear_matmul": single("QLinearMatMul x,a,b,w,c,d,e,f y", ["x:u3x4"],
                             ["a:f=0.5", "b:u=3", "w:u4x5", "c:f=0.25", "d:u=1", "e:f=2", "f:u=9"]),
    "range": graph([node("Range a,b,c r"), node("Add x,r y")], ["x:i5"], ["y"],
                   ["a:i=0", "b:i=10", "c:i=2"]),
    "reduce_sum": single("ReduceSum x,a y", ["x:f2x3x4"], ["a:i=0,2"], keepdims=0),
    "reduce_log_sum_exp": single("ReduceLogSumExp x y", ["x:f2x3x4"]),
    "reshape": graph([node("Shape x s"), node("Gather s,i d"), node("Concat d,m t", axis=0), node("Reshape x,t y")],
                     ["x:f2x3x4"], ["y"], ["i:i=0", "m:i=-1"]),
    "resize": single("Resize x,,s y", ["x:f1x2x3x4"], ["s:f=1,1,2,1.5"], mode="linear"),
    "rnn": single("RNN x,w,r y,h", ["x:f3x2x4"], ["w:f1x3x4", "r:f1x3x3"], hidden_size=3,
                  direction="reverse"),
    "scan": graph([node("Scan z,x y,w", body=STEP, num_scan_inputs=1)], ["z:f3", "x:f4x3"],
                  ["y", "w"]),
    "scatter_elements": single("ScatterElements x,i,u y", ["x:f3x4", "i:i1x4", "u:f1x4"]),
    "scatter_nd": single("ScatterND x,i,u y", ["x:f3x4", "i:i2x1", "u:f2x4"]),
    "slice": single("Slice x,s,e,a,t y", ["x:f5x6"],
                    ["s:i=4,1", "e:i=-9,5", "a:i=0,1", "t:i=-1,2"]),
    "softmax": single("Softmax x y", ["x:f3x4"], axis=0),
    "space_to_depth": single("SpaceToDepth x y", ["x:f1x2x4x6"], blocksize=2),
    "split": single("Split x,s y,z", ["x:f5x4"], ["s:i=2,3"]),
    "squeeze": single("Squeeze x,a y", ["x:f3x1x4"], ["a:i=1"]),
    "tile": single("Tile x,r y", ["x:f2x3"], ["r:i=2,3"]),
    "top_k": single("TopK x,k y,i", ["x:f3x5"], ["k:i=2"]),
    "transpose": single("Transpose x y", ["x:f2x3x4"], perm=[2, 0, 1]),
    "trilu": single("Trilu x y", ["x:f4x5"], upper=0),
    "where": single("Where c,x,z y", ["c:b3x1", "x:f3x4", "z:f4"]),
}


def function_model():
    nodes = [helper.make_node("HardSigmoid", ["x"], ["h"])]
    for name in ("alpha", "beta"):
        reference = helper.make_attribute(name, 0.5)
        reference.ref_attr_name = name
        nodes[0].attribute.append(reference)
    nodes[0].attribute[1].ClearField("f")
    nodes.append(node("Add h,w y"))
    function = helper.make_function("local", "Gate", ["x", "w"], ["y"], nodes,
                                    [helper.make_opsetid("", 17)], ["alpha"],
                                    [helper.make_attribute("beta", 0.25)])
    main = graph([node("Gate@local x,x h", alpha=0.75), node("Gate@local h,x y", alpha=0.5)],
                 ["x:f5"], ["y"])
    model = model_of(main)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(function)
    return model


def sparse_model():
    main = graph([node("Add x,w y")], ["x:f2x3"], ["y"])
    values, indices = weight("w:f=1,2"), weight("w_indices:i=1,4")
    main.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    return model_of(main)


def preview_model(main, domain):
    model = model_of(main)
    model.opset_import.append(helper.make_opsetid(domain, 1))
    return model


SCORES = graph([node("Add s,s t")], ["s"], ["t"])
FLEX = single("FlexAttention@ai.onnx.preview q,k,v y", ["q:f1x4x3x2", "k:f1x2x5x2", "v:f1x2x5x3"],
              scale=0.5, score_mod=SCORES, prob_mod=SCORES)
GRAMS = graph([node("TfIdfVectorizer x y", mode="TFIDF", min_gram_length=1, max_gram_length=2,
                    max_skip_count=1, ngram_counts=[0, 2], ngram_indexes=[2, 0, 4],
                    pool_int64s=[1, 2, 0, 1], weights=[0.5, 1.0, 2.0, 3.0, 4.0])],
              ["x:i2x5"], ["y"])
STEPS = {
    "adagrad": single("Adagrad@ai.onnx.preview.training r,t,x,g,h y,k",
                      ["r:f", "t:i", "x:f3", "g:f3", "h:f3"], decay_factor=0.1),
    "adam": single("Adam@ai.onnx.preview.training r,t,x,z,g,f,v,u,h,k a,b,c,d,e,l",
                   ["r:f", "t:i"] + [f"{name}:f{size}" for names in ("xgvh", "zfuk")
                                     for name, size in zip(names, [3] * 4)]),
    "momentum": single("Momentum@ai.onnx.preview.training r,t,x,g,v y,w",
                       ["r:f", "t:i", "x:f3", "g:f3", "v:f3"], mode="nesterov"),
}
TREES = single("TreeEnsemble@ai.onnx.ml x y", ["x:f5x2"], n_targets=2, tree_roots=[0, 1],
               nodes_modes=weight("m:u=0,6,3"), nodes_splits=weight("p:f=1,0,2"),
               nodes_featureids=[0, 1, 0], nodes_truenodeids=[1, 0, 2],
               nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 3],
               nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 1, 0],
               leaf_weights=weight("w:f=1,2,3,4"), membership_values=weight("v:f=1,3,nan"),
               nodes_missing_value_tracks_true=[1, 0, 0])
SPLIT = single("SplitToSequence x y", ["x:f3x5"], axis=1, keepdims=0)


def model_of(main):
    return helper.make_model(main, opset_imports=[helper.make_opsetid("", 18)], ir_version=9,
                             producer_name="")


def write():
    folder = pathlib.Path(sys.argv[1])
    models = {name: model_of(main) for name, main in GRAPHS.items()}
    models |= {"function": function_model(), "sparse": sparse_model()}
    models |= {"flex_attention": preview_model(FLEX, "ai.onnx.preview"), "grams": model_of(GRAMS),
               "split_to_sequence": model_of(SPLIT), "trees": preview_model(TREES, "ai.onnx.ml")}
    models |= {name: preview_model(main, "ai.onnx.preview.training")
               for name, main in STEPS.items()}
    for name, model in models.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


write()
