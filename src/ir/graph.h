// SPDX-License-Identifier: Apache-2.0
// Graph functions: a dataflow of operator calls and calls of tensor programs. Values are logical
// tensors; src/plan decides the layout of each value in memory and records it beside the graph.
#ifndef PLEAT_IR_GRAPH_H
#define PLEAT_IR_GRAPH_H

#include "ir/ir.h"

typedef struct Value Value;
typedef struct Node Node;

struct Value {
  Str name;
  DType type;
  int rank; // -1: not known yet
  Expr **shape;
  Node *producer;  // NULL for parameters and constants
  int output;      // which output of the producer
  ConstData *data; // for constants
  SourcePos pos;
  uint32_t id;
};

typedef enum NodeKind { NODE_OP, NODE_CALL_TIR } NodeKind;

// `R.<op>(inputs…, attrs…)` or `R.call_tir(callee, inputs, outputs' shapes)`.
struct Node {
  NodeKind kind;
  Str op;           // a row of the operator table (src/graph): "nn.conv2d", "add"; for NODE_OP
  Str user_op;      // the name in the user's model: "Conv"; NULL: the same as op
  Str name;         // the node's own name in the user's model
  PrimFunc *callee; // for NODE_CALL_TIR
  int input_count, output_count;
  Value **inputs; // NULL entries: optional inputs that are absent
  Value **outputs;
  Attrs attrs;
  SourcePos pos;
  uint32_t id;
};

struct GraphFunc {
  Str name;
  int param_count, output_count;
  Value **params;
  Value **outputs;
  Array(Node *) nodes; // in topological order
  Attrs attrs;
  SourcePos pos;
};

GraphFunc *graph_func_new(Context *context, const char *name);
Value *value_new(Context *context, const char *name, DType type, Expr *const *shape, int rank);
Value *value_constant(Context *context, ConstData *data);
bool value_static_shape(const Value *value, int64_t *shape);
int64_t value_static_bytes(const Value *value); // -1 when not static or too large for int64
const char *extents_text(Context *context, Expr *const *extents, int count); // "[1, n]"
// "float32 [1, 4, 8]", and for several values "'x' float32 [1, 4, 8], 'w' int64 [2]" without the
// absent ones.
const char *value_type_text(Context *context, const Value *value);
const char *values_text(Context *context, Value *const *values, int count);
const char *node_op_name(const Node *node); // the operator's name in the user's model
Node *node_new(Context *context, NodeKind kind, const char *op, const char *name,
               Value *const *inputs, int input_count, int output_count);
// The users of each value, in order: a map from Value* to PtrArray* of Node*, which holds a node
// once for each use.
Map graph_users(Arena *arena, const GraphFunc *graph);

#endif
