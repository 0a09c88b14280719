// SPDX-License-Identifier: Apache-2.0
// Graph functions: dataflow of operator calls and calls of tensor programs. Values are logical
// tensors; how each lies in memory is decided by src/plan and recorded beside the graph.
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
  Str user_op;      // what the user's model calls it: "Conv"; NULL: the same
  Str name;         // as in the user's model
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
// "float32 [1, 4, 8]"; "'x' float32 [1, 4, 8], 'w' int64 [2]", absent ones left out.
const char *value_type_text(Context *context, const Value *value);
const char *values_text(Context *context, Value *const *values, int count);
const char *node_op_name(const Node *node); // as the user knows it
Node *node_new(Context *context, NodeKind kind, const char *op, const char *name,
               Value *const *inputs, int input_count, int output_count);
// Users of each value, in order: map from Value* to PtrArray* of Node* (a node once per use).
Map graph_users(Arena *arena, const GraphFunc *graph);

#endif
