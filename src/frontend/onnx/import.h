// SPDX-License-Identifier: Apache-2.0
// Inside the ONNX import: one node on its way in, and what the rows of operators.c use to read its
// attributes and inputs and to build operators of src/graph from it.
#ifndef PLEAT_FRONTEND_ONNX_IMPORT_H
#define PLEAT_FRONTEND_ONNX_IMPORT_H

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

enum { ONNX_OLDEST_OPSET = 7, ONNX_NEWEST_OPSET = 28 }; // older: see older.c

typedef struct Import Import;

// What an ONNX operator becomes. Operators whose inputs and attributes mean the same in src/graph
// need no row here: the row of the operator table that names them is enough.
typedef struct OnnxRow {
  const char *name;
  int least_inputs, most_inputs;  // most -1: any number
  const char *attributes;         // all that any opset has: "alpha:float axes:ints mode:string"
  void (*import)(Import *import); // NULL: as it is in the operator table
  bool lists;                     // takes sequences and optional values, not only tensors
  const char *domain;             // NULL: the standard's own
} OnnxRow;
const OnnxRow *onnx_row_find(const char *domain, const char *name); // NULL: none; "": the standard
bool onnx_domain_has_rows(const char *domain);

// The names that a list of nodes sees. Bodies of If, Loop and Scan see those around them too;
// functions see only their own.
typedef struct Scope Scope;
struct Scope {
  Scope *outer;                 // whose names are seen as well; NULL for the graph and functions
  const Scope *caller;          // that of the node which is expanded here; NULL for the graph
  const OnnxFunction *function; // that is expanded here, or around; NULL outside of functions
  const Map *attributes;        // of the function: name (Str) to OnnxAttribute *
  Str path;                     // in front of the names of its nodes: "", "call/", "loop/3/"
  int depth;
  int64_t opset;
  Map values;   // name (Str) to Value *
  Map poisoned; // names of results that could not be made; their users are not complained about
  Map absent;   // optional inputs of the function that its caller leaves out
};
// Rows stand in a table for each file of families; a name of NULL ends one.
extern const OnnxRow onnx_quantized_rows[], onnx_scatter_rows[], onnx_attention_rows[],
    onnx_loss_rows[], onnx_window_rows[], onnx_resize_rows[], onnx_sample_rows[],
    onnx_einsum_rows[], onnx_sequence_rows[], onnx_signal_rows[], onnx_state_rows[],
    onnx_arrange_rows[], onnx_gram_rows[], onnx_optimizer_rows[], onnx_tree_rows[];

typedef struct Importer {
  Context *context;
  OnnxFile *file;
  OnnxModel *model;
  const OnnxOptions *options;
  OnnxImport *result;
  GraphFunc *graph;
  Scope *scope;
  Map dims;        // sizes of free dimensions: name (Str) to int64_t *
  Map asked;       // names of those that a message has asked for
  Text assumed;    // options for those that nobody gave: see OnnxOptions.assumed_size
  int expanded;    // nodes imported beyond those of the graph itself
  Map lists;       // what sequences and optional values hold: see sequences.c
  Map named;       // values that have a name of the model's graph
  Map followed;    // values to what follows for them from given inputs (ConstData *), or NULL
  bool known_late; // something that must be known is computed only when the model runs
} Importer;

struct Import {
  Importer *importer;
  Context *context;
  const OnnxNode *node;
  const OnnxRow *row;
  SourcePos pos;
  Str name;     // as diagnostics have it
  int op_count; // operators built so far
  int input_count;
  Value **inputs; // NULL entries: optional inputs that are absent
};

// scope.c: names.
Scope *scope_new(Importer *importer,
                 Str path); // within the present one, whose names it does not see
Value *scope_value(const Scope *scope, Str name); // NULL: unknown, poisoned or absent
bool scope_has(const Scope *scope, Str name);     // something is known of the name
bool scope_is_absent(const Scope *scope, Str name);
void scope_give(Importer *importer, Str name, Value *value); // in the present scope
void scope_poison(Importer *importer, Str name);
// Counts `count` more nodes that come from expanding one. False with a diagnostic when they are too
// many, or nest too deep.
bool scope_expand(Import *import, int count);
// Imports a list of nodes in `scope`. False when they hold a cycle.
bool scope_nodes(Importer *importer, Scope *scope, const OnnxNodes *nodes);

// dims.c: the sizes of free dimensions that the user gave, and the shape of an input by them. False
// with a diagnostic that says what to give.
void importer_dims(Importer *importer);
bool importer_shape(Importer *importer, const OnnxValue *input, IntArray *shape);
// Did the user say something of an input, or of a tensor in it? "none" and "empty" are words.
bool importer_was_given(const Importer *importer, Str name);
int importer_held_count(const Importer *importer, Str name); // n where name[n - 1] is the last
bool importer_was_said(const Importer *importer, Str name, const char *word);
// inputs.c: the graph's inputs and initializers become parameters and constants.
void importer_inputs(Importer *importer);
void importer_initializers(Importer *importer, const OnnxGraph *graph); // in the present scope
bool importer_size_ok(Importer *importer, const Value *value);          // fits some memory
// order.c: the nodes' numbers in an order of computation. Reports names given twice, inputs that
// nothing gives (they are poisoned then), and a cycle ({NULL, 0} after that).
IntArray importer_order(Importer *importer, const OnnxNodes *nodes);
// cut.c: a note which tensors the model could end with, where what is behind them is refused.
void importer_tell_cut(Importer *importer);
// node.c: one node, its results to the present scope.
void importer_node(Importer *importer, const OnnxNode *node);
// The names that a node reads, those that its bodies read from around them included.
void onnx_node_needs(Arena *arena, const OnnxNode *node, OnnxNames *names);
Str onnx_node_name(const OnnxNode *node); // its own, or that of its first result
Str importer_name(const Importer *importer, const OnnxNode *node); // the same behind the path
SourcePos importer_pos(const Importer *importer, Str node);        // "" or NULL: of the file

// ---- Reading ----------------------------------------------------------------------------------

// Reports that the node cannot be imported. Returns false.
bool import_refuse(Import *import, const char *format, ...) PRINTF_LIKE(2, 3);

bool import_has(const Import *import, const char *attribute);
int64_t import_int(const Import *import, const char *attribute, int64_t otherwise);
double import_float(const Import *import, const char *attribute, double otherwise);
const char *import_text(const Import *import, const char *attribute, const char *otherwise);
const OnnxAttribute *import_attribute(const Import *import, const char *name); // NULL: absent
IntArray import_ints(const Import *import, const char *attribute); // {NULL, 0} when absent
// Checks kinds and names of all attributes against the row.
bool import_check_attributes(Import *import);

Value *import_input(const Import *import, int i); // NULL when absent
bool import_wants_output(const Import *import, int i);
int64_t import_dim(const Value *value, int axis);
bool import_same_form(const Value *a, const Value *b); // tensors of one shape and element type
// Axis from -rank to rank - 1 made to count from 0; refuses others.
bool import_axis(Import *import, int64_t *axis, int rank);
int64_t import_opset(const Import *import);
// The known value of an input, or NULL: a constant, what an input of the model is going to hold, or
// what follows from that.
ConstData *import_known(Import *import, int i);
// The same; refuses (and says how to give it) when it is only known at run time.
ConstData *import_constant(Import *import, int i);
// As that, where the number of elements of the result follows from the input's values.
ConstData *import_counted(Import *import, int i);
// As the first, of one element alone.
ConstData *import_constant_scalar(Import *import, int i);
bool import_constant_ints(Import *import, int i, IntArray *values);
// A list of integers that newer opsets have as input `i`, older ones as an attribute. *present is
// false when there is neither.
bool import_list(Import *import, int i, const char *attribute, IntArray *values, bool *present);

int64_t const_count(const ConstData *data);
int64_t const_int(const ConstData *data, int64_t i);
double const_number(const ConstData *data, int64_t i);

// ---- Building ---------------------------------------------------------------------------------

// An operator of src/graph to be added with import_add, its attributes set in between.
Node *import_begin(Import *import, const char *op, Value *const *inputs, int count);
void import_set_ints(Import *import, Node *node, const char *key, IntArray values);
// Adds it to the graph; its first result, NULL after a diagnostic.
Value *import_add(Import *import, Node *node);
// Both in one, without attributes. NULL also when an input is NULL because an earlier step failed.
Value *import_op(Import *import, const char *op, Value *a, Value *b);
// A constant scalar of the element type of `like`.
Value *import_scalar(Import *import, const Value *like, double value);
Value *import_cast(Import *import, Value *value, DType type);
// The same elements in another shape; a constant stays one.
Value *import_reshape(Import *import, Value *value, const int64_t *shape, int rank);
// A constant of `type` and `shape` over `data`.
Value *import_const(Import *import, DType type, const int64_t *shape, int rank, const void *data);
enum { MOST_FILLED_BYTES = 1 << 30 }; // of a constant that a few numbers ask for
// A constant whose elements are all `element`, or 0 where that is NULL; refuses absurd sizes.
Value *import_filled(Import *import, DType type, const void *element, const int64_t *shape,
                     int rank);
// The result of the ONNX operator `op`, of other inputs, with the attributes of this node. NULL
// after a diagnostic.
Value *import_through(Import *import, const char *op, Value **inputs, int count);
// `value` becomes output `i` of the node; NULL: the node failed.
void import_result(Import *import, int i, Value *value);
// Element `at` along an axis, which goes. The place is a constant tensor, not an attribute, so that
// kernels which read at different places are one.
Value *import_element(Import *import, Value *value, int axis, int64_t at);
// Tensors of one shape along a new axis.
Value *import_stack(Import *import, Value *const *values, int count, int axis);

// indexing.c: operators of their own, for the table of operators.c.
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
// The one result of a body that takes one value; NULL after a diagnostic.
Value *import_body_result(Import *import, const char *attribute, Value *value);
// sequences.c: a value that is a sequence or an optional one, not a tensor.
bool value_is_list(const Value *value);
// A list of `items` (Value *), that is not a node's; NULL: an optional value that is not there.
Value *importer_list(Importer *importer, Str name, const PtrArray *items);
const PtrArray *importer_items(const Importer *importer, const Value *list); // NULL: not there
Value *import_list_of(Import *import, Value *const *items, int count);
// The values (Value *) in the sequence that is input `i`; NULL with a diagnostic when it is none.
const PtrArray *import_sequence(Import *import, int i);
// recurrent.c
void import_recurrent(Import *import);

// functions.c: the function of the model that the node calls, or NULL.
const OnnxFunction *importer_function(const Importer *importer, const OnnxNode *node);
void import_call(Import *import, const OnnxFunction *function);
// The node as it stands in a function that is expanded: what it takes from attributes and inputs of
// the call is put in.
const OnnxNode *function_node(Importer *importer, const OnnxNode *node);

// older.c: a node with the attributes that its operator has since opset 7, and what the older ones
// say of its inputs. False with a diagnostic.
const OnnxNode *older_node(Import *import, const OnnxNode *given);
bool older_inputs(Import *import, const OnnxNode *given);

// fold.c: what is known at import. True when the node's result is known and was set.
bool import_fold(Import *import);
// Computes an operator whose inputs are small constants: its outputs become constants. False, with
// nothing done, for any other.
bool import_compute(Import *import, Node *node);
// A value that is known, or follows from what inputs are going to hold by small tensors.
// NULL: none.
ConstData *import_follow(Import *import, Value *value);
// The model's inputs that a value is computed from, as values_text has them. NULL: it is one, or is
// computed from none.
const char *import_sources(Import *import, Value *value);

#endif
