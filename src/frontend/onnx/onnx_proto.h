// SPDX-License-Identifier: Apache-2.0
// Defines ONNX files as C structs: OnnxModel, OnnxGraph, OnnxNode … with the fields of onnx.proto
// (see onnx.options for their types). Absent text is "". The structs live as long as the context;
// the file stays mapped, and tensors point into it.
#ifndef PLEAT_FRONTEND_ONNX_PROTO_H
#define PLEAT_FRONTEND_ONNX_PROTO_H

#include "frontend/onnx/onnx.pb.h"
#include "ir/ir.h"

enum { ONNX_MAX_NESTING = 100 }; // messages within messages

typedef struct OnnxFile {
  Context *context;
  SourceFile *source;
  const char *path;
  OnnxBytes bytes;  // of the whole file
  OnnxModel *model; // has a graph; NULL for the file of a single tensor
  OnnxTensor *tensor;
  Map mapped; // files of external data: path (Str) to OnnxBytes
} OnnxFile;

// Opens a model; NULL with a located diagnostic when it cannot be read, is truncated, nests too
// deep, or is not ONNX.
OnnxFile *onnx_model_open(Context *context, const char *path);
// The same for a model in memory, called `path` in messages; its external data is in that folder.
// The bytes are not copied. {NULL, 0} gives NULL.
OnnxFile *onnx_model_decode(Context *context, const char *path, OnnxBytes bytes);
// A single TensorProto, such as input_0.pb.
OnnxFile *onnx_tensor_open(Context *context, const char *path);
OnnxFile *onnx_file_open(Context *context, const char *path); // only its bytes, which may be empty

// Decodes a message of type `type` (a generated onnx_*_msg) into `message`, which is zeroed. False
// with the problem in *problem and its byte offset in *at.
bool onnx_decode(Context *context, const pb_msgdesc_t *type, OnnxBytes bytes, void *message,
                 const char **problem, size_t *at);

// A field of a message in the file.
typedef struct OnnxField {
  uint32_t number;
  int wire;                 // its wire type
  OnnxBytes payload, whole; // without tag and length; with them
} OnnxField;
// Takes the first field from *message, which is not empty. NULL, or the problem, which is at
// field->whole.
const char *onnx_next_field(OnnxBytes *message, OnnxField *field);

// The folder part of a path; "." when there is none.
char *onnx_folder_of(Arena *arena, const char *path);

// The values of a tensor: row-major, little-endian, dtype_bytes(type) bytes each, not necessarily
// aligned. They stay in the mapped file unless they are encoded there. NULL with a diagnostic at
// `pos` when dims and data disagree, or external data is unavailable.
ConstData *onnx_tensor_data(OnnxFile *file, const OnnxTensor *tensor, SourcePos pos);
// The values of a sparse tensor in dense form.
ConstData *onnx_sparse_data(OnnxFile *file, const OnnxSparseTensor *tensor, SourcePos pos);
// The `size` bytes of a tensor whose data is in another file. {NULL} with a diagnostic when they
// are missing or outside of the model's folder.
OnnxBytes onnx_external_data(OnnxFile *file, const OnnxTensor *tensor, size_t size, SourcePos pos);

// The element type of an ONNX type code, false when Pleat has none. The names are for messages.
bool onnx_dtype(int32_t code, DType *type);
const char *onnx_type_name(int32_t code);
const char *onnx_type_advice(int32_t code); // advice for a type that Pleat lacks
int32_t onnx_type_code(DType type);         // 0 when ONNX lacks it

#endif
