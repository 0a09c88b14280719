// SPDX-License-Identifier: Apache-2.0
// Imports ONNX models as graph functions. Opsets from 7 on (and older ones, as far as the operators
// did not change) are converted to one form: the operators of src/graph, with attributes in place
// of constant inputs, and with static shapes. Weights stay in the mapped file.
#ifndef PLEAT_FRONTEND_ONNX_H
#define PLEAT_FRONTEND_ONNX_H

#include "ir/graph.h"

typedef struct OnnxBinding {
  const char *name;
  ConstData *data;
} OnnxBinding;

// The shape of an array that is given for an input, or for a tensor of an input that is a list:
// "x[0]".
typedef struct OnnxArray {
  const char *name;
  const int64_t *shape;
  int rank;
  const char *source;      // for messages, such as its file; NULL: "the array given for …"
  const int64_t *contents; // of an input that is a size or a shape; NULL: they are not known
} OnnxArray;

typedef struct OnnxOptions {
  // "x=1x3x224x224" is the shape of an input, in which "?" leaves an axis open; "batch=4" may also
  // be the size of a free dimension.
  const char *const *shapes;
  int shape_count;
  const char *const *dims; // "batch=4", for free dimensions only
  int dim_count;
  // Free dimensions take their sizes from these arrays, which must agree with one another, with the
  // options above and with the model.
  const OnnxArray *arrays;
  int array_count;
  // The size that is assumed for free dimensions without one (1 for first axes); 0: they are
  // refused.
  int64_t assumed_size;
  // Free dimensions without a size are not refused, if all inputs and outputs are tensors: the
  // import then has no graph, and describes the inputs and outputs.
  bool open_sizes;
  // Why the caller does not leave sizes open though its user asks for that, as a sentence for the
  // message about a free dimension; NULL: the user does not ask.
  const char *why_closed;
  // The values of inputs. They are used only where an operator must know a value at import, such as
  // the target of Reshape; the imported function is then correct for these values only.
  const OnnxBinding *values;
  int value_count;
  bool *used; // for each value, set when it was looked at; NULL: this is not asked for
  // The model's bytes when it is in memory; they must outlive all uses of the import. `path` is
  // then its name in messages, whose folder has the external data. NULL: the model is the file at
  // `path`.
  const void *bytes;
  size_t byte_count;
  const OpaqueFunctions *functions; // that compute operators; NULL: none
} OnnxOptions;

// An input or output of a model whose sizes are not all known.
enum { ONNX_OPEN = -1 };
typedef struct OnnxArgument {
  const char *name;
  DType type;
  bool has_type;        // false only for outputs that the model does not describe
  int rank;             // ONNX_OPEN only for outputs that the model does not describe
  const int64_t *shape; // ONNX_OPEN: not known
  // The name or expression of each axis that is not known; NULL entries: it has none. NULL: the
  // model does not describe the argument.
  const char *const *names;
  bool is_sizes; // its contents are sizes on which other shapes depend
} OnnxArgument;
typedef Array(OnnxArgument) OnnxArguments;

typedef struct OnnxImport {
  Module *module;   // has `graph`; NULL when the model was refused
  GraphFunc *graph; // "main"; parameters and outputs in the model's order, under its names
  Map operators;    // a node's name in diagnostics (Str) to its ONNX operator (Str)
  int64_t opset, ir_version;
  int node_count;
  bool lacks_sizes; // a free dimension was refused, or with open_sizes left open
  OnnxArguments open_inputs, open_outputs; // in the model's order, when sizes were left open
  Array(const char *) open_sizes;          // the names by which they can be given
  const char *assumed;                     // options for the assumed sizes: "--dim batch=1"
} OnnxImport;

// Never NULL. Every reason to refuse the model is a diagnostic at the node that it is about: an
// unsupported operator, attribute or element type, and missing, wrong or inconsistent parts.
OnnxImport *onnx_import(Context *context, const char *path, const OnnxOptions *options);

#define ONNX_NOTE_PREFIX "pleat." // prefix of the keys of all notes

typedef struct OnnxNote {
  const char *key, *value;
} OnnxNote;
typedef Array(OnnxNote) OnnxNoteList;

// The notes for a model, as lists of pairs of key and value. The caller describes a node by an
// object of its own; several imported nodes may come from one node in the body of a loop, and
// `make` combines their objects.
typedef struct OnnxNotes {
  const OnnxNoteList *model, *otherwise; // for the model; for nodes that are in neither map
  Map by_name;                           // objects of nodes, by their names in diagnostics (Str)
  Map by_output;                         // by a result (Str), for nodes whose name is not unique
  const OnnxNoteList *(*make)(void *env, const PtrArray *known);
  void *env;
} OnnxNotes;

// Copies the model at `path` to `output`, which may be the same file, with the notes in the
// metadata_props of its nodes and of the model. Notes of an earlier run are replaced; all other
// bytes are kept. False with a diagnostic and without a file when this is impossible: a model with
// external data must stay in its folder.
bool onnx_annotate(Context *context, const char *path, const OnnxNotes *notes, FileSet *files,
                   const char *output);

// A part of a model: the nodes within `depth` steps of a value (more where a step needs a value
// that cannot be an input).
typedef struct OnnxPart {
  Str output;
  int depth;
  const Map *values; // name (Str) to the Value * of its import
} OnnxPart;
typedef struct OnnxPartFound {
  Array(const Value *) inputs; // the values that the part takes from outside, in its order
  int nodes;
} OnnxPartFound;
// Writes the part as a model of its own that includes the data from other files. False with a
// diagnostic.
bool onnx_extract(Context *context, const char *path, const OnnxPart *part, FileSet *files,
                  const char *output, OnnxPartFound *found);
// Writes a tensor into a file such as input_0.pb: `data` is row-major and has the value's type and
// shape.
bool onnx_write_tensor(Context *context, FileSet *files, const char *path, const Value *value,
                       const void *data);

// The value in a file with a TensorProto, such as input_0.pb; NULL with a diagnostic.
ConstData *onnx_read_tensor(Context *context, const char *path);

// An input or output of a model; inputs with an initial value are included. Files of test data are
// numbered in this order.
typedef struct OnnxBoundaryValue {
  Str name;
  const void *type; // for onnx_read_boundary_value
} OnnxBoundaryValue;
// The values in the model's order; returns their number, or -1 with a diagnostic.
int onnx_boundary_values(Context *context, const char *path, bool outputs,
                         OnnxBoundaryValue **boundary);

// The contents of files of test data: tensors under their names in the graph function, "x", and for
// a sequence "x[0]", "x[1]", …
typedef struct OnnxHeld {
  Array(OnnxBinding) tensors;
  Array(const char *) shapes; // as OnnxOptions.shapes, for lists: "x[0]=2x3", "x=none"
} OnnxHeld;
// Adds the contents of a file such as input_0.pb. False with a diagnostic.
bool onnx_read_boundary_value(Context *context, const char *path, const OnnxBoundaryValue *value,
                              OnnxHeld *held);

#endif
