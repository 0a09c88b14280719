// SPDX-License-Identifier: Apache-2.0
// Graph functions: a dataflow of operator calls and calls of tensor programs. Values are logical
// tensors; src/plan decides the layout of each value in memory and records it beside the graph.
#ifndef PLEAT_IR_GRAPH_H
#define PLEAT_IR_GRAPH_H

#include "ir/ir.h"

typedef struct Value Value;
typedef struct Node Node;

// An argument or a type that is written in place: R.shape([n, 4]), (x, y), "global", R.Object.
typedef enum GraphTermKind {
  TERM_NONE,
  TERM_EXPR,  // e
  TERM_VALUE, // value
  TERM_NAME,  // text, such as "R.Object"
  TERM_FUNC,  // text: the name of a function of the module
  TERM_LIST,  // items
  TERM_TUPLE, // items
  TERM_DICT,  // items, with their keys
  TERM_CALL,  // text, such as "R.shape", and items; keys[i] is NULL for a positional argument
} GraphTermKind;

struct GraphTerm {
  GraphTermKind kind;
  bool plain; // of TERM_EXPR: a number of Python's, which has no type
  Str text;
  Expr *e;
  Value *value;
  int count;
  GraphTerm **items;
  Str *keys;
};

struct Value {
  Str name;
  DType type;
  int rank; // -1: not known yet
  Expr **shape;
  Node *producer;  // NULL for parameters and constants
  int output;      // which output of the producer
  ConstData *data; // for constants
  // For a parameter: the contents that it always has, because the import computed shapes and the
  // like from them. NULL: any contents.
  const ConstData *known;
  GraphTerm *term; // for a value that is written in place and is no tensor: a shape, a tuple, …
  GraphTerm *info; // its type as it is stated, unless it is a tensor's shape and type
  bool is_named;   // listed by R.output(…) of its dataflow block
  SourcePos pos;
  uint32_t id;
};

typedef struct OpaqueFunction OpaqueFunction; // graph/opaque.h
typedef struct OpaqueFunctions {
  const OpaqueFunction *const *items;
  int count;
} OpaqueFunctions;

// The kinds after NODE_OPAQUE exist until graph_flatten (src/graph) has removed them.
typedef enum NodeKind {
  NODE_OP,       // R.<op>(inputs…, attrs…)
  NODE_CALL_TIR, // R.call_tir(callee, inputs, outputs' shapes)
  NODE_OPAQUE,   // function(inputs…), which is outside of the program
  NODE_CALL,     // inputs[0](inputs[1], …), which is a function of the module, or a local one
  NODE_ITEM,     // inputs[0][item]
  NODE_IF,       // bodies[0] if inputs[0], else bodies[1]
  NODE_FUNC,     // the local function bodies[0]
} NodeKind;

struct Node {
  NodeKind kind;
  Str op;           // a row of the operator table (src/graph): "nn.conv2d", "add"; for NODE_OP
  Str user_op;      // the name in the user's model: "Conv"; NULL: the same as op
  Str name;         // the node's own name in the user's model
  PrimFunc *callee; // for NODE_CALL_TIR
  const OpaqueFunction *function; // for NODE_OPAQUE
  int input_count, output_count;
  Value **inputs; // NULL entries: optional inputs that are absent
  Value **outputs;
  Attrs attrs;
  GraphTerm *keywords; // a TERM_DICT of the keyword arguments that are no attributes; NULL: none
  int item;            // for NODE_ITEM
  GraphFunc *bodies[2];
  int block;  // the number of its dataflow block, from 1; 0: outside of blocks
  bool alone; // a statement without a target
  SourcePos pos;
  uint32_t id;
};

// A selection of one of the results of two branches: the first one where the condition holds.
typedef struct GraphChoice {
  Value *condition, *results[2];
} GraphChoice;

// R.assert_op of a condition on sizes.
typedef struct GraphAssertion {
  Expr *condition;
  SourcePos pos;
} GraphAssertion;

struct GraphFunc {
  Str name;
  int param_count, output_count;
  Value **params;
  Value **outputs;
  Array(Node *) nodes;              // in topological order
  Array(GraphChoice) choices;       // of each `if` that a run decides
  Array(GraphAssertion) assertions; // about sizes, which are checked when these are given
  Array(Expr *) sizes;              // of parameters that are shapes or sizes
  Attrs attrs;
  Attrs options;   // of its decorator: private, pure
  Value *result;   // what it returns, which may be a tuple of tuples; NULL: its outputs
  GraphTerm *info; // the type of the result; NULL: not stated
  bool is_written; // as it was read: it may have what graph_flatten removes
  Module *module;  // whose functions it calls; NULL: none
  const OpaqueFunctions *functions; // that it may call by name; NULL: none
  SourcePos pos;
};

GraphFunc *graph_func_new(Context *context, const char *name);
Value *value_new(Context *context, const char *name, DType type, Expr *const *shape, int rank);
Value *value_of_term(Context *context, GraphTerm *term);
GraphTerm *term_new(Context *context, GraphTermKind kind, const char *text);
bool term_is(const GraphTerm *term, const char *name); // a call of this name
// The element type of a number of this type: R.Prim("float32"), R.Prim(value=3) or T.float32.
// False for other types.
bool term_number_type(const GraphTerm *info, DType *type);
// `items` has room for `count` items; keys may be NULL.
GraphTerm *term_of_items(Context *context, GraphTermKind kind, const char *text,
                         GraphTerm *const *items, const Str *keys, int count);
GraphTerm *term_of_value(Context *context,
                         Value *value); // its own term when it is written in place
Value *value_constant(Context *context, ConstData *data);
Expr *value_size(const Value *value); // the variable "n" of R.Prim(value="n"); NULL: it is no such
bool value_static_shape(const Value *value, int64_t *shape);
int64_t value_static_bytes(const Value *value); // -1 when not static or too large for int64
const char *extents_text(Context *context, Expr *const *extents, int count); // "[1, n]"
// "float32 [1, 4, 8]", and for several values "'x' float32 [1, 4, 8], 'w' int64 [2]" without the
// absent ones.
const char *value_type_text(Context *context, const Value *value);
const char *values_text(Context *context, Value *const *values, int count);
const char *node_op_name(const Node *node); // the operator's name in the user's model
SourcePos node_pos(const Node *node);       // for messages: with the node's name
// Has the attribute the value that an operator has without it (op_defaults.def)?
bool op_attribute_is_default(const Node *node, const char *key, const Expr *value);
// In the first dataflow block.
Node *node_new(Context *context, NodeKind kind, const char *op, const char *name,
               Value *const *inputs, int input_count, int output_count);
// The users of each value, in order: a map from Value* to PtrArray* of Node*, which holds a node
// once for each use.
Map graph_users(Arena *arena, const GraphFunc *graph);

#endif
