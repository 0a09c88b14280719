// SPDX-License-Identifier: Apache-2.0
// The operator table. An operator is one row and one definition: a function that writes the
// operator as tensor expressions of its inputs. Output shapes and types, the reference answer, the
// loops, what it may be fused with and how layouts flow through it all follow from that definition.
#ifndef PLEAT_GRAPH_H
#define PLEAT_GRAPH_H

#include "ir/graph.h"
#include "te/te.h"

typedef struct OpRow OpRow;

// One call of an operator while it is being defined.
typedef struct OpCall {
  Context *context;
  Te *te;
  const Node *node;
  const OpRow *row;
  int input_count;
  Buffer **inputs; // NULL: an optional input that is absent
} OpCall;

// Adds stages to call->te and its results to call->te->outputs. False after reporting what is wrong
// with the call (op_error).
typedef bool (*OpDefine)(OpCall *call);
// The body of an elementwise operator, of operands already broadcast.
typedef Expr *(*OpBody)(Context *context, const Node *node, Expr *x, Expr *y, Expr *z);

struct OpRow {
  const char *name;           // in TVMScript, after `R.`
  const char *onnx;           // the ONNX operator it stands for, NULL without
  int min_inputs, max_inputs; // max -1: any number
  OpDefine define;
  const char *attrs; // the attributes it knows, separated by spaces
  OpBody body;       // elementwise operators
  DType result;      // elementwise operators: void means the type of the first operand
  int space;         // operators over windows: how many axes follow n and c; 0: any
  bool mixed_types;  // its inputs may have several element types
};

const OpRow *op_find(const char *name);      // NULL when there is none
const OpRow *op_find_onnx(const char *name); // by the ONNX name
int op_count(void);
const OpRow *op_at(int i); // in the order of the table

// Defines `node` on tensors that stand for its inputs. False with diagnostics.
bool op_define(Context *context, Te *te, const Node *node, Buffer *const *inputs);
// Gives the outputs of `node` their shapes and types from its definition (inputs' must be known).
// Creates output values that are NULL. False with diagnostics.
bool op_infer(Context *context, Node *node);
// The same for all nodes of a graph function, and that every constant's contents are here. False
// with diagnostics for each that fails, or that is not as it was stated to be.
bool graph_infer(Context *context, GraphFunc *graph);
// A tensor program of one node, parameters as the node's inputs (absent ones left out) and outputs.
PrimFunc *op_prim_func(Context *context, const Node *node);

// ---- For definitions

bool op_error(const OpCall *call, const char *format, ...) PRINTF_LIKE(2, 3); // returns false
int64_t node_int(const Node *node, const char *key, int64_t otherwise);
double node_float(const Node *node, const char *key, double otherwise);
const char *node_string(const Node *node, const char *key, const char *otherwise);
// A tuple of integers into `out`; its length, 0 when absent, -1 when longer than `most`.
int node_ints(const Node *node, const char *key, int64_t *out, int most);
void node_set_int(Context *context, Node *node, const char *key, int64_t value);
void node_set_float(Context *context, Node *node, const char *key, double value);
void node_set_string(Context *context, Node *node, const char *key, const char *value);
void node_set_ints(Context *context, Node *node, const char *key, const int64_t *values, int count);

void op_output(OpCall *call, Buffer *tensor);
bool op_axis(const OpCall *call, int64_t axis, int rank, int *out); // negative counts from the end
// Adds a reduction axis; an extent of 1 needs none and gives the constant 0.
Expr *op_reduce_axis(OpCall *call, TeReduction *reduction, const char *name, Expr *extent);
// NumPy's broadcasting of the inputs [from, to): the shape, or false with a diagnostic.
bool op_broadcast_shape(const OpCall *call, Buffer *const *inputs, int count, Expr **shape,
                        int *rank);
// The element of `tensor` at broadcast indices.
Expr *op_broadcast_at(OpCall *call, Buffer *tensor, const TeAxes *axes);
Expr *op_number_or_lowest(OpCall *call, Expr *x); // a NaN is as the lowest
Expr *op_lowest(Context *context, DType type);  // minus infinity, or the smallest integer
Expr *op_highest(Context *context, DType type); // the opposite

#endif
