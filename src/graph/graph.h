// SPDX-License-Identifier: Apache-2.0
// The operator table, for the importers, TVMScript and the planner. An operator is one row and one
// definition: a function that writes the operator as tensor expressions of its inputs. The
// definition determines the output shapes and types, the reference result, the loops, the operators
// that it may be fused with, and how layouts flow through it.
#ifndef PLEAT_GRAPH_H
#define PLEAT_GRAPH_H

#include "ir/graph.h"
#include "te/te.h"

typedef struct OpRow OpRow;

// One call of an operator during its definition.
typedef struct OpCall {
  Context *context;
  Te *te;
  const Node *node;
  const OpRow *row;
  int input_count;
  Buffer **inputs; // NULL: an optional input that is not given
} OpCall;

// Adds stages to call->te and its results to call->te->outputs. False after an error about the call
// (op_error).
typedef bool (*OpDefine)(OpCall *call);
// The body of an elementwise operator on operands that are broadcast already.
typedef Expr *(*OpBody)(Context *context, const Node *node, Expr *x, Expr *y, Expr *z);

// The usual orders of an operator over windows, by its number of axes after n and c, and the
// attribute that names another order of the first input: see ops/letters.c.
typedef struct OpLetters {
  const char *data_key;
  const char *data[3], *weights[3];
} OpLetters;

enum { OP_RESULT_EACH = -1 }; // an operator has one result for each input

struct OpRow {
  const char *name;           // its name in TVMScript after `R.`
  const char *onnx;           // the ONNX operator with this meaning; NULL: none
  int min_inputs, max_inputs; // max -1: any number
  OpDefine define;
  const char *attrs;       // names of its attributes, separated by spaces
  OpBody body;             // elementwise operators
  DType result;            // for elementwise operators; void: the type of the first operand
  int space;               // for operators over windows: number of axes after n and c; 0: any
  bool mixed_types;        // its inputs may have several element types
  int results;             // of an operator of TVM with a tuple of results; 0: it has one result
  const char *one_without; // an attribute without which it has one result; NULL: none
  // The names of attributes that TVMScript may pass by position after the tensors.
  const char *positional;
  const OpLetters *letters; // of an operator whose attributes name orders; NULL: of none
};

const OpRow *op_find(const char *name);      // NULL when there is none
const OpRow *op_find_onnx(const char *name); // by the ONNX name
int op_count(void);
const OpRow *op_at(int i); // in the order of the table

// Defines `node` on tensors that represent its inputs. False with diagnostics.
bool op_define(Context *context, Te *te, const Node *node, Buffer *const *inputs);
// Makes one flow of operators and calls of tensor programs of a function as it was read: takes
// tuples apart, makes attributes of R.shape and its like, and inlines calls of graph functions.
// False with diagnostics. The other functions here do this first.
bool graph_flatten(Context *context, GraphFunc *graph);
// Sets the shapes and types of the outputs of `node` from its definition; those of the inputs must
// be known. Outputs that are NULL are created. False with diagnostics.
bool op_infer(Context *context, Node *node);
// The same for all nodes of a graph function. False with a diagnostic for each node that fails, and
// for each value whose stated shape or type is wrong or whose constant data is missing.
bool graph_infer(Context *context, GraphFunc *graph);
// The same, but a tensor whose shape is not stated, and what is computed from it, has the rank -1.
bool graph_infer_known(Context *context, GraphFunc *graph);
// The same for one value of a function that is being read, from the values that it is computed from
// by operators without other arguments. The value stays as it is where one of them is not known.
void graph_infer_value(Context *context, Value *value);

// ---- Symbolic sizes ----------------------------------------------------------------------------

enum { GIVEN_OPEN = -1 };
// Reads "1x3x224x224", "1,3,224,224" or "?x3x224x224", where "?" becomes GIVEN_OPEN. False for
// other text.
bool given_extents_read(Context *context, const char *text, IntArray *extents);
// A size or a shape that the user gives.
typedef struct GivenSizes {
  const char *name; // of a size, or of a parameter
  int rank;
  const int64_t *shape;    // GIVEN_OPEN: this extent is not given
  const char *source;      // for messages: "x=1x8"
  bool is_size;            // the name is that of a size
  bool is_array;           // of an array; another name is no error, since others report it
  const int64_t *contents; // of an array of int64 that is row-major; NULL: they are not known
} GivenSizes;
// Reads "n=128", a size from 0 to 2^30. False with a diagnostic.
bool given_size_read(Context *context, const char *text, Str *name, int64_t *value);
// Reads "n=128", or unless `is_size` also "x=1x3x224x224". False with a diagnostic.
bool given_sizes_read(Context *context, const char *text, bool is_size, GivenSizes *given);
// The items of the type of a parameter that is a shape or a size, R.Shape(["n", 2]) or
// R.Prim(value="n"); NULL for another type, which may be NULL.
GraphTerm *const *graph_size_items(const GraphTerm *info, int *count);
// Replaces the symbolic sizes of a graph function whose shapes are not inferred yet. Sizes that are
// not given remain. A parameter that is a shape or a size is no parameter any more where all of its
// sizes are given by their names, and has known contents where they are given otherwise. False with
// a diagnostic when they contradict one another or the function, or have a name that it does not
// have.
bool graph_bind_sizes(Context *context, GraphFunc *graph, const GivenSizes *given, int count);
// The number of symbolic sizes in the shapes of parameters; *names receives their names.
int graph_free_sizes(Context *context, const GraphFunc *graph, Str **names);

// A tensor program of one node, which may be a call of one. Its parameters are the inputs that are
// given and then the outputs. That of an opaque operator writes zeros.
PrimFunc *op_prim_func(Context *context, const Node *node);

// ---- For definitions

bool op_error(const OpCall *call, const char *format, ...) PRINTF_LIKE(2, 3); // returns false
int64_t node_int(const Node *node, const char *key, int64_t otherwise);
double node_float(const Node *node, const char *key, double otherwise);
const char *node_string(const Node *node, const char *key, const char *otherwise);
// Reads a tuple of integers into `out`, or nested tuples of integers as one list; returns its
// length, 0 when it is absent, -1 when it is longer than `most`.
int node_ints(const Node *node, const char *key, int64_t *out, int most);
void node_set_int(Context *context, Node *node, const char *key, int64_t value);
void node_set_float(Context *context, Node *node, const char *key, double value);
void node_set_string(Context *context, Node *node, const char *key, const char *value);
void node_set_ints(Context *context, Node *node, const char *key, const int64_t *values, int count);

void op_output(OpCall *call, Buffer *tensor);
// The attribute as a constant of the type, 0 when it is absent; false with a diagnostic when the
// type does not have it.
bool op_number(const OpCall *call, const char *key, DType type, Expr **out);
// The first result of another operator on these tensors, for operators that are composed of others;
// NULL after a diagnostic. `part` names its stages.
Buffer *op_apply(OpCall *call, const char *op, const char *part, Buffer *const *inputs, int count,
                 Attrs attrs);
// An attribute for op_apply, which is added to `attrs`.
Attrs op_with_int(const OpCall *call, Attrs attrs, const char *key, int64_t value);
Attrs op_with_ints(const OpCall *call, Attrs attrs, const char *key, const int64_t *values,
                   int count);
Attrs op_with_text(const OpCall *call, Attrs attrs, const char *key, const char *value);
// A negative axis counts from the end.
bool op_axis(const OpCall *call, int64_t axis, int rank, int *out);
// Adds a reduction axis and returns its variable; for an extent of 1 returns the constant 0
// instead.
Expr *op_reduce_axis(OpCall *call, TeReduction *reduction, const char *name, Expr *extent);
bool op_same_extent(const Expr *a, const Expr *b); // also as integers of two types
// Broadcasts the shapes of `inputs` as NumPy does; false with a diagnostic when they do not fit.
bool op_broadcast_shape(const OpCall *call, Buffer *const *inputs, int count, Expr **shape,
                        int *rank);
// The element of `tensor` at broadcast indices.
Expr *op_broadcast_at(OpCall *call, Buffer *tensor, const TeAxes *axes);
// The elements of an input of integers that is constant or made of a shape; returns their number,
// -1 when they are not known, or are more than `most`.
int op_known_ints(const OpCall *call, int input, int64_t *out, int most);
Expr *op_number_or_lowest(OpCall *call, Expr *x); // replaces NaN by op_lowest
Expr *op_lowest(Context *context, DType type);    // minus infinity, or the smallest integer
Expr *op_highest(Context *context, DType type);   // plus infinity, or the largest integer

#endif
