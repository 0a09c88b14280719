// SPDX-License-Identifier: Apache-2.0
// The interface between the files of the ONNX import: a node during its import, and the functions
// by which the rows of operators.c read attributes and inputs and add operators of src/graph.
#ifndef PLEAT_FRONTEND_ONNX_IMPORT_H
#define PLEAT_FRONTEND_ONNX_IMPORT_H

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

enum { ONNX_OLDEST_OPSET = 7, ONNX_NEWEST_OPSET = 28 }; // for older ones see older.c

typedef struct Import Import;

// How to import an ONNX operator. An operator whose inputs and attributes mean the same in
// src/graph needs no row here, but only its name in a row of the operator table.
typedef struct OnnxRow {
  const char *name;
  int least_inputs, most_inputs;  // most -1: any number
  const char *attributes;         // those of all opsets: "alpha:float axes:ints mode:string"
  void (*import)(Import *import); // NULL: as in the operator table
  bool lists;                     // accepts sequences and optional values
  const char *domain;             // NULL: the standard's own domain
} OnnxRow;
const OnnxRow *onnx_row_find(const char *domain, const char *name); // NULL: none; "": the standard
bool onnx_domain_has_rows(const char *domain);

// The names that a list of nodes sees. A body of If, Loop or Scan also sees the names around it; a
// function sees only its own.
typedef struct ImportScope ImportScope;
struct ImportScope {
  ImportScope *outer;           // its names are visible too; NULL for the graph and functions
  const ImportScope *caller;    // the scope of the expanded node; NULL for the graph
  const OnnxFunction *function; // the innermost function that is expanded; NULL outside
  const Map *attributes;        // of the function: name (Str) to OnnxAttribute *
  Str path;                     // prefix of the names of its nodes: "", "call/", "loop/3/"
  int depth;
  int64_t opset;
  Map values;   // name (Str) to Value *
  Map poisoned; // names of results that failed; nodes that read them report nothing
  Map absent;   // optional inputs of the function that its caller omits
  Map needed;   // names on which the results of the present list of nodes depend
};
// Rows are in one table for each file of operators; a row without a name ends the table.
extern const OnnxRow onnx_quantized_rows[], onnx_scatter_rows[], onnx_attention_rows[],
    onnx_loss_rows[], onnx_window_rows[], onnx_resize_rows[], onnx_sample_rows[],
    onnx_einsum_rows[], onnx_sequence_rows[], onnx_signal_rows[], onnx_state_rows[],
    onnx_arrange_rows[], onnx_gram_rows[], onnx_optimizer_rows[], onnx_ensemble_rows[],
    onnx_feature_rows[], onnx_linear_rows[], onnx_svm_rows[], onnx_qlinear_rows[],
    onnx_fused_rows[], onnx_fused_attention_rows[], onnx_rotary_rows[], onnx_grouped_rows[],
    onnx_block_rows[], onnx_label_rows[];

typedef struct Importer {
  Context *context;
  OnnxFile *file;
  OnnxModel *model;
  const OnnxOptions *options;
  OnnxImport *result;
  GraphFunc *graph;
  ImportScope *scope;
  Map dims;        // sizes of free dimensions: name (Str) to DimSize *
  Map axis_names;  // names of free dimensions that have none in the model: "x.0"
  Map asked;       // names that a message has asked for
  Text assumed;    // options for the sizes that were assumed: see OnnxOptions.assumed_size
  int expanded;    // number of nodes imported beyond those of the graph
  Map lists;       // contents of sequences and optional values: see sequences.c
  Map named;       // values with a name of the model's graph
  Map followed;    // values to their values for the given inputs (ConstData *), or NULL
  Map inferred;    // outputs of operators by a hash: see infer.c
  bool known_late; // a value that must be known is computed at run time
} Importer;

struct Import {
  Importer *importer;
  Context *context;
  const OnnxNode *node;
  const OnnxRow *row;
  SourcePos pos;
  Str name;     // its name in diagnostics
  Str user_op;  // its operator in the model, when `node` is imported as another one
  int op_count; // number of operators added so far
  int input_count;
  Value **inputs; // NULL entries: optional inputs that are not given
};

// scope.c: names.
ImportScope *scope_new(Importer *importer,
                       Str path); // within the present one, whose names it does not see
Value *scope_value(const ImportScope *scope, Str name); // NULL: unknown, poisoned or absent
bool scope_has(const ImportScope *scope, Str name);     // true also for poisoned and absent names
bool scope_is_absent(const ImportScope *scope, Str name);
void scope_give(Importer *importer, Str name, Value *value); // in the present scope
void scope_poison(Importer *importer, Str name);
// Counts `count` more nodes that the expansion of a node adds. False with a diagnostic when there
// are too many, or the nesting is too deep.
bool scope_expand(Import *import, int count);
// Imports a list of nodes in `scope` for the sake of `results`. False when they have a cycle. A
// node on which no result depends is imported too, but its diagnostics are dropped.
bool scope_nodes(Importer *importer, ImportScope *scope, const OnnxNodes *nodes,
                 const OnnxNames *results);
// True when a result of a node has a name, and a result of the list with the node depends on it.
bool import_result_is_needed(const Import *import, int i);

// open.c: models whose sizes are not all known.
bool importer_may_be_open(const Importer *importer); // were free dimensions allowed to stay open?
// The further line of a message about a free dimension that says why not; "" where there is none.
const char *importer_why_closed(const Importer *importer);
void importer_describe_open(Importer *importer); // sets open_inputs and open_outputs

// sizes.c: the size of a free dimension, or of a dimension as a whole ("2*batch").
typedef struct DimSize {
  int64_t value;
  const char *from; // for messages: "'batch=4'", "axis 0 of 'x.npy', given for 'x'"
} DimSize;
const DimSize *dim_size(const Importer *importer, Str name); // NULL: unknown
void dim_set_size(Importer *importer, Str name, int64_t value, const char *from);
// Evaluates a dimension; false when it is not an expression. *missing becomes a name without a
// size, or NULL. Adds the names that it reads to `names`, which may be NULL.
bool dim_evaluate(const Importer *importer, Str text, int64_t *value, Str *missing,
                  OnnxNames *names);
// Finds the size of the only name without one, from the value of the dimension. False when the
// value does not determine it.
bool dim_solve(const Importer *importer, Str text, Str name, int64_t value, int64_t *size);
// dims.c: true for a dimension without a size; exporters write it with a name, empty, or as -1.
bool onnx_dim_is_free(const OnnxDim *dim);
const char *onnx_dims_text(Context *context, const OnnxDims *dims); // "[batch, 3, ?]"
// Reads the sizes that the user gave; and finds the shape of an input with them, false with
// a diagnostic that says which options to give.
void importer_dims(Importer *importer);
bool importer_shape(Importer *importer, const OnnxValue *input, IntArray *shape);
// True when an option names an input, or a tensor in it; "none" and "empty" are accepted as values.
bool importer_was_given(const Importer *importer, Str name);
// N when name[n - 1] is the last one given.
int importer_held_count(const Importer *importer, Str name);
bool importer_was_said(const Importer *importer, Str name, const char *word);
// inputs.c: the graph's inputs and initializers become parameters and constants.
void importer_inputs(Importer *importer);
void importer_initializers(Importer *importer, const OnnxGraph *graph); // in the present scope
// False when it is too large for any memory.
bool importer_size_ok(Importer *importer, const Value *value);
// order.c: the nodes' numbers in an order of computation. Reports names that occur twice, inputs
// without a producer (which are then poisoned), and a cycle (then {NULL, 0}).
IntArray importer_order(Importer *importer, const OnnxNodes *nodes);
// cut.c: adds a note on the tensors with which the model could end, before the nodes that failed.
void importer_tell_cut(Importer *importer);
// opaque.c: the caller's function for a node; NULL: there is none.
const OpaqueFunction *importer_outside(const Importer *importer, const OnnxNode *node);
void import_outside(Import *import, const OpaqueFunction *function);
// node.c: imports one node; its results get their names in the present scope.
void importer_node(Importer *importer, const OnnxNode *node);
// The names that a node reads, including those that its bodies read from outside of them.
void onnx_node_needs(Arena *arena, const OnnxNode *node, OnnxNames *names);
Str onnx_node_name(const OnnxNode *node); // its own name, or its first result's
Str importer_name(const Importer *importer, const OnnxNode *node); // the same with the scope's path
SourcePos importer_pos(const Importer *importer, Str node); // "" or NULL: a position of the file

// ---- Reading ----------------------------------------------------------------------------------

// Reports that the node cannot be imported; false.
bool import_refuse(Import *import, const char *format, ...) PRINTF_LIKE(2, 3);

bool import_has(const Import *import, const char *attribute);
int64_t import_int(const Import *import, const char *attribute, int64_t otherwise);
double import_float(const Import *import, const char *attribute, double otherwise);
const char *import_text(const Import *import, const char *attribute, const char *otherwise);
const OnnxAttribute *import_attribute(const Import *import, const char *name); // NULL: absent
IntArray import_ints(const Import *import, const char *attribute); // {NULL, 0} when absent
OnnxFloats import_floats(const Import *import, const char *attribute); // likewise
// True when the row has an attribute of this name.
bool import_declares(const OnnxRow *row, const char *attribute);
// Checks the names and kinds of all attributes against the row.
bool import_check_attributes(Import *import);

Value *import_input(const Import *import, int i); // NULL when absent
bool import_wants_output(const Import *import, int i);
int64_t import_dim(const Value *value, int axis);
bool import_same_form(const Value *a, const Value *b); // same shape and element type
// Converts an axis in [-rank, rank) to one from 0; refuses others.
bool import_axis(Import *import, int64_t *axis, int rank);
int64_t import_opset(const Import *import);
// The known value of an input: of a constant, of a model's input whose value the user gave, or
// computed from these; NULL when it is unknown.
ConstData *import_known(Import *import, int i);
// The same; refuses, and says how to give the value, when it is known only at run time.
ConstData *import_constant(Import *import, int i);
// The same for an input whose values determine the number of elements of the result.
ConstData *import_counted(Import *import, int i);
// The same as import_constant for an input of one element.
ConstData *import_constant_scalar(Import *import, int i);
bool import_constant_ints(Import *import, int i, IntArray *values);
// Reads a list of integers which is input `i` in newer opsets and an attribute in older ones.
// *present is false when neither is given.
bool import_list(Import *import, int i, const char *attribute, IntArray *values, bool *present);

int64_t const_count(const ConstData *data);
int64_t const_int(const ConstData *data, int64_t i);
double const_number(const ConstData *data, int64_t i);

// ---- Building ---------------------------------------------------------------------------------

// Begins an operator of src/graph. The caller sets its attributes and then calls import_add.
Node *import_begin(Import *import, const char *op, Value *const *inputs, int count);
void import_set_ints(Import *import, Node *node, const char *key, IntArray values);
// Adds the operator to the graph; returns its first result, NULL after a diagnostic.
Value *import_add(Import *import, Node *node);
// Finds the types and shapes of the node's outputs, as op_infer does.
bool importer_infer(Importer *importer, Node *node);
// Begins and adds an operator without attributes. NULL also when an input is NULL because an
// earlier step failed.
Value *import_op(Import *import, const char *op, Value *a, Value *b);
// The values one after the other along the axis; a single value is returned as it is.
Value *import_concat(Import *import, Value *const *values, int count, int axis);
// A constant scalar of the element type of `like`.
Value *import_scalar(Import *import, const Value *like, double value);
Value *import_cast(Import *import, Value *value, DType type);
// The same elements in another shape; the result of a constant is a constant.
Value *import_reshape(Import *import, Value *value, const int64_t *shape, int rank);
// A constant of `type` and `shape` over `data`.
Value *import_const(Import *import, DType type, const int64_t *shape, int rank, const void *data);
enum { MOST_FILLED_BYTES = 1 << 30 }; // of a constant whose size a few numbers determine
// A constant whose elements are all `element` (NULL: 0); refuses sizes above MOST_FILLED_BYTES.
Value *import_filled(Import *import, DType type, const void *element, const int64_t *shape,
                     int rank);
// The result of the ONNX operator `op` with other inputs and this node's attributes. NULL after a
// diagnostic, and where an input is NULL.
Value *import_through(Import *import, const char *op, Value **inputs, int count);
// Imports `node`, which is made for this one, as the ONNX operator `op`. An input may be NULL:
// absent.
void import_made(Import *import, OnnxNode *node, const char *op, Value **inputs, int count);
// The same with the attributes and results of this node.
void import_instead(Import *import, const char *op, Value **inputs, int count);
// Sets output `i` of the node; NULL says that it failed.
void import_result(Import *import, int i, Value *value);
// Element `at` along an axis, which is removed. The index is a constant tensor instead of an
// attribute, so that kernels which read at different indices are equal.
Value *import_element(Import *import, Value *value, int axis, int64_t at);
// Stacks tensors of one shape along a new axis.
Value *import_stack(Import *import, Value *const *values, int count, int axis);

// indexing.c: operators that are not composed, for the table of operators.c.
void import_arg(Import *import);
void import_cumsum(Import *import);
void import_depth_to_space(Import *import);
void import_expand(Import *import);
void import_group_norm(Import *import);
void import_hardmax(Import *import);
void import_layer_norm(Import *import);
void import_lp_norm(Import *import);
void import_mean_variance_norm(Import *import);
void import_one_hot(Import *import);
void import_slice(Import *import);
void import_space_to_depth(Import *import);
void import_split(Import *import);
void import_tile(Import *import);
void import_trilu(Import *import);

// control.c: If, Loop, Scan.
void import_if(Import *import);
void import_loop(Import *import);
void import_scan(Import *import);
void import_sequence_map(Import *import);
// The single result of a body with one input; NULL after a diagnostic.
Value *import_body_result(Import *import, const char *attribute, Value *value);
// sequences.c: true for a value that is a sequence or an optional value instead of a tensor.
bool value_is_list(const Value *value);
// A list of `items` (Value *) that no node makes; `items` NULL: an optional value that is absent.
Value *importer_list(Importer *importer, Str name, const PtrArray *items);
const PtrArray *importer_items(const Importer *importer, const Value *list); // NULL: absent
Value *import_list_of(Import *import, Value *const *items, int count);
// The values (Value *) of the sequence at input `i`; NULL with a diagnostic when it is no sequence.
const PtrArray *import_sequence(Import *import, int i);
// recurrent.c
void import_recurrent(Import *import);

// functions.c: the model's function that the node calls, or NULL.
const OnnxFunction *importer_function(const Importer *importer, const OnnxNode *node);
void import_call(Import *import, const OnnxFunction *function);
// The node of an expanded function, with the attributes and inputs that the call gives.
const OnnxNode *function_node(Importer *importer, const OnnxNode *node);

// older.c: the node with the attributes that its operator has since opset 7; and the changes that
// older attributes make to the inputs, false with a diagnostic.
const OnnxNode *older_node(Import *import, const OnnxNode *given);
bool older_inputs(Import *import, const OnnxNode *given);

// fold.c: true when the node's result is known at import and was set.
bool import_fold(Import *import);
// Evaluates an operator whose inputs are small constants, so that its outputs become constants.
// False without an effect for other operators.
bool import_compute(Import *import, Node *node);
// A value that is known, or that small tensors determine from the values given for inputs. NULL:
// none.
ConstData *import_follow(Import *import, Value *value);
// The model's inputs that a value is computed from, in the form of values_text. NULL when there are
// none or the value is an input itself.
const char *import_sources(Import *import, Value *value);

#endif
