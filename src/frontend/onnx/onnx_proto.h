// SPDX-License-Identifier: Apache-2.0
// ONNX files as plain C structs: OnnxModel, OnnxGraph, OnnxNode … (fields as in onnx.proto; see
// onnx.options for their types). Absent text is "". Everything lives as long as the context; the
// file stays mapped, and tensors point into it.
#ifndef PLEAT_FRONTEND_ONNX_PROTO_H
#define PLEAT_FRONTEND_ONNX_PROTO_H

#include "frontend/onnx/onnx.pb.h"
#include "ir/ir.h"

enum { ONNX_MAX_NESTING = 100 }; // messages within messages

typedef struct OnnxFile {
  Context *context;
  SourceFile *source;
  const char *path;
  OnnxBytes bytes;  // the whole
  OnnxModel *model; // has a graph; NULL when the file holds a single tensor
  OnnxTensor *tensor;
  Map mapped; // external data: path (Str) to OnnxBytes
} OnnxFile;

// NULL with a located diagnostic for what cannot be read, is truncated, nests too deep, or is not
// ONNX.
OnnxFile *onnx_model_open(Context *context, const char *path);
// The same of a model in memory, called `path` in messages; external data lie in that folder. The
// bytes are not copied. {NULL, 0} gives NULL.
OnnxFile *onnx_model_decode(Context *context, const char *path, OnnxBytes bytes);
OnnxFile *onnx_tensor_open(Context *context, const char *path); // a TensorProto alone: input_0.pb
OnnxFile *onnx_file_open(Context *context, const char *path);   // its bytes; may be empty

// A message of type `messages` (a generated onnx_*_msg) from memory into `message`, which is
// zeroed. What is wrong goes to *problem, its place in bytes from the start to *at.
bool onnx_decode(Context *context, const pb_msgdesc_t *type, OnnxBytes bytes, void *message,
                 const char **problem, size_t *at);

// A field of a message as it stands in the file.
typedef struct OnnxField {
  uint32_t number;
  int wire;                 // its wire type
  OnnxBytes payload, whole; // without and with tag and length
} OnnxField;
// Takes the first field from *message, which is not empty. NULL, or what is wrong, at field->whole.
const char *onnx_next_field(OnnxBytes *message, OnnxField *field);

// The folder of a file by its path alone; "." when the path names none.
char *onnx_folder_of(Arena *arena, const char *path);

// The values of a tensor: row-major, little-endian, one value in dtype_bytes(type) bytes, data not
// necessarily aligned. They stay in the mapped file unless they are encoded there. NULL with a
// diagnostic at `pos` when dims and data disagree, or external data cannot be had.
ConstData *onnx_tensor_data(OnnxFile *file, const OnnxTensor *tensor, SourcePos pos);
// The same of a sparse tensor, made dense.
ConstData *onnx_sparse_data(OnnxFile *file, const OnnxSparseTensor *tensor, SourcePos pos);
// The bytes of a tensor whose data lie in another file, `size` of them as its dims say.
// {NULL} with a diagnostic when they are missing or outside the folder of the model.
OnnxBytes onnx_external_data(OnnxFile *file, const OnnxTensor *tensor, size_t size, SourcePos pos);

// The element type of an ONNX type code, false when Pleat has none. The name is for messages.
bool onnx_dtype(int32_t code, DType *type);
const char *onnx_type_name(int32_t code);
const char *onnx_type_advice(int32_t code); // what to do about one that Pleat has not
int32_t onnx_type_code(DType type);         // 0 when ONNX has none

#endif
