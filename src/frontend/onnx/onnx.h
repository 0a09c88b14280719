// SPDX-License-Identifier: Apache-2.0
// ONNX models to graph functions. Opsets 7 to the newest (and older ones, as far as the operators
// did not change) are brought to one form: the operators of src/graph, attributes where ONNX has
// constant inputs, static shapes. Weights stay in the mapped file.
#ifndef PLEAT_FRONTEND_ONNX_H
#define PLEAT_FRONTEND_ONNX_H

#include "ir/graph.h"

typedef struct OnnxBinding {
  const char *name;
  ConstData *data;
} OnnxBinding;

typedef struct OnnxOptions {
  // "x=1x3x224x224" gives the shape of an input, "batch=4" the size of a free dimension.
  const char *const *shapes;
  int shape_count;
  const char *const *dims; // "batch=4", which can only be a free dimension
  int dim_count;
  // Free dimensions that nobody gave are taken to be of this size, first axes 1; 0: refused.
  int64_t assumed_size;
  // What inputs are going to hold. Used only where an operator must know a value when it is
  // imported, such as the target of Reshape; the function is then right for these values alone.
  const OnnxBinding *values;
  int value_count;
  // The model itself where it is in memory, which must outlive the import's use; `path` then is its
  // name in messages, and external data lie in that folder. NULL: it is the file at `path`.
  const void *bytes;
  size_t byte_count;
} OnnxOptions;

typedef struct OnnxImport {
  Module *module;   // holds `graph`; NULL when the model was refused
  GraphFunc *graph; // "main"; parameters and outputs in the model's order, under its names
  Map operators;    // name of a node as diagnostics have it (Str) to its ONNX operator (Str)
  int64_t opset, ir_version;
  int node_count;
  bool lacks_sizes;    // a free dimension was refused
  const char *assumed; // the options that would have given what was assumed: "--dim batch=1"
} OnnxImport;

// Never NULL. Every reason to refuse the model is a diagnostic, at the node it is about: operators,
// attributes and element types that are not supported, what is missing, wrong or inconsistent.
OnnxImport *onnx_import(Context *context, const char *path, const OnnxOptions *options);

#define ONNX_NOTE_PREFIX "pleat." // of the keys of all notes

typedef struct OnnxNote {
  const char *key, *value;
} OnnxNote;
typedef Array(OnnxNote) OnnxNoteList;

// What is to be noted in a model, each list under keys of its own that differ. What is known of a
// node is the owner's; a node in the body of a loop stands for several of the import.
typedef struct OnnxNotes {
  const OnnxNoteList *model, *otherwise; // of the whole; of nodes that are in neither map
  Map by_name;                           // what is known of nodes as diagnostics name them (Str)
  Map by_output; // of nodes by a result (Str), for those whose name others have too
  const OnnxNoteList *(*make)(void *env, const PtrArray *known);
  void *env;
} OnnxNotes;

// Writes the model at `path` to `output`, which may be the same, with the notes in the
// metadata_props of its nodes and of itself, in place of those of an earlier run; all else is kept
// byte by byte. False with a diagnostic, and nothing written, when that cannot be had: a model with
// external data stays in its folder.
bool onnx_annotate(Context *context, const char *path, const OnnxNotes *notes, const char *output);

// A part of a model: the nodes that lead to a value, `depth` of them at most on any way (more where
// what they need is not a value).
typedef struct OnnxPart {
  Str output;
  int depth;
  const Map *values; // name (Str) to the Value * that the import made of it
} OnnxPart;
typedef struct OnnxPartFound {
  Array(const Value *) inputs; // of the part, in its order: values that it takes from outside
  int nodes;
} OnnxPartFound;
// Writes the part of the model at `path` as a model of its own, with data that lay in other files
// inside. False with a diagnostic.
bool onnx_extract(Context *context, const char *path, const OnnxPart *part, const char *output,
                  OnnxPartFound *found);
// Writes a tensor as a file such as input_0.pb: row-major `data` of the value's type and shape.
bool onnx_write_tensor(Context *context, const char *path, const Value *value, const void *data);

// The value in a file that holds a TensorProto, such as input_0.pb; NULL with a diagnostic.
ConstData *onnx_read_tensor(Context *context, const char *path);

// An input or output of a model, including an input that has an initial value. Files of test data
// are numbered in this order.
typedef struct OnnxBoundaryValue {
  Str name;
  const void *type; // for onnx_read_boundary_value
} OnnxBoundaryValue;
// In the model's order; how many, or -1 with a diagnostic.
int onnx_boundary_values(Context *context, const char *path, bool outputs,
                         OnnxBoundaryValue **boundary);

// What files of test data hold: tensors under the names of the graph function's, "x", and of a
// sequence "x[0]", "x[1]", …
typedef struct OnnxHeld {
  Array(OnnxBinding) tensors;
  Array(const char *) shapes; // as OnnxOptions.shapes, of what is no tensor: "x[0]=2x3", "x=none"
} OnnxHeld;
// Adds what a file such as input_0.pb holds. False with a diagnostic.
bool onnx_read_boundary_value(Context *context, const char *path, const OnnxBoundaryValue *value,
                              OnnxHeld *held);

#endif
