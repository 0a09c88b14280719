// SPDX-License-Identifier: Apache-2.0
// Defines the C types of the fields of ONNX messages: onnx.options assigns them to fields, the
// generated onnx.pb.h uses them, and decode.c fills them.
#ifndef PLEAT_FRONTEND_ONNX_FIELDS_H
#define PLEAT_FRONTEND_ONNX_FIELDS_H

#include "base/base.h"

// A view of bytes in the mapped file. `data` is NULL when the field is absent.
typedef struct OnnxBytes {
  const uint8_t *data;
  size_t size;
} OnnxBytes;

typedef struct _onnx_AttributeProto OnnxAttribute;
typedef struct _onnx_FunctionProto OnnxFunction;
typedef struct _onnx_GraphProto OnnxGraph;
typedef struct _onnx_ModelProto OnnxModel;
typedef struct _onnx_NodeProto OnnxNode;
typedef struct _onnx_OperatorSetIdProto OnnxOpset;
typedef struct _onnx_SparseTensorProto OnnxSparseTensor;
typedef struct _onnx_StringStringEntryProto OnnxPair;
typedef struct _onnx_TensorProto OnnxTensor;
typedef struct _onnx_TensorShapeProto OnnxShape;
typedef struct _onnx_TensorShapeProto_Dimension OnnxDim;
typedef struct _onnx_TypeProto OnnxType;
typedef struct _onnx_TypeProto_Optional OnnxOptionalType;
typedef struct _onnx_TypeProto_Sequence OnnxSequenceType;
typedef struct _onnx_TypeProto_Tensor OnnxTensorType;
typedef struct _onnx_ValueInfoProto OnnxValue;

typedef Array(OnnxAttribute) OnnxAttributes;
typedef Array(OnnxBytes) OnnxBytesList;
typedef Array(OnnxDim) OnnxDims;
typedef Array(float) OnnxFloats;
typedef Array(OnnxFunction) OnnxFunctions;
typedef Array(OnnxGraph) OnnxGraphs;
typedef Array(OnnxNode) OnnxNodes;
typedef Array(OnnxOpset) OnnxOpsets;
typedef Array(OnnxPair) OnnxPairs;
typedef Array(OnnxSparseTensor) OnnxSparseTensors;
typedef Array(OnnxTensor) OnnxTensors;
typedef Array(OnnxValue) OnnxValues;
typedef Array(Str) OnnxNames;

#endif
