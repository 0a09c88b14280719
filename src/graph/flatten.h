// SPDX-License-Identifier: Apache-2.0
// The interface between the files that make one flow of operators of a graph function.
#ifndef PLEAT_GRAPH_FLATTEN_H
#define PLEAT_GRAPH_FLATTEN_H

#include "graph/graph.h"

typedef struct GraphFlattening {
  Context *context;
  GraphFunc *graph; // which receives the nodes
  Array(Node *) nodes;
  Map values;    // from a value to the term that it is
  Map locals;    // from a value to the local function that it is
  Map called;    // from a function around the node to its call; NULL: it has returned
  Map sizes;     // from a size of an inlined function to its value
  bool too_deep; // a call was refused, and no other is looked at
  int depth;     // of calls
  int branches;  // of `if` around the node, of which a run decides on the condition
} GraphFlattening;

// Reports that the node is not supported; returns false.
bool flatten_refuse(GraphFlattening *f, const Node *node, const char *format, ...)
    PRINTF_LIKE(3, 4);
bool term_is_list(const GraphTerm *term);
Value *term_tensor(const GraphTerm *term); // NULL when the term is something else
// The term that the value is, with all values in it replaced by what they are.
GraphTerm *flatten_resolved(GraphFlattening *f, Value *value);
// The value of an attribute that is written as a term; NULL when it is none.
Expr *flatten_attribute(GraphFlattening *f, const GraphTerm *term);

// Adds a node like this one, whose outputs take the place of its outputs.
Node *flatten_add_node(GraphFlattening *f, const Node *like, Value *const *inputs, int count);
// Adds an operator of one result, whose type is not known yet.
Node *flatten_add_new_node(GraphFlattening *f, const Node *like, const char *op,
                           Value *const *inputs, int count);
// Output number `number` of a node, which gets more outputs where it has fewer.
Value *flatten_output(GraphFlattening *f, Node *node, int number);
// Makes the result of `old` the tuple of the outputs of `made`.
void flatten_give_tuple(GraphFlattening *f, const Node *old, Node *made, int count);
// The types of the results as the call states them; NULL when it does not.
GraphTerm *flatten_stated_types(GraphFlattening *f, const Node *node);
void flatten_state_types(GraphFlattening *f, Node *made, const GraphTerm *types, bool many);

// ---- flatten_programs.c

// Is the node a call of a tensor program that was not read as one of tensors alone?
bool is_program_call(const Node *node);
// R.call_tir with numbers among its arguments, R.call_tir_inplace, R.call_tir_with_grad.
bool flatten_program_call(GraphFlattening *f, const Node *node);
// R.builtin.alloc_tensor, whose contents the call of a tensor program writes, f(x, y), and the
// operators R.memory and R.vm that allocate and free memory. *done: the node is one of these.
bool flatten_memory(GraphFlattening *f, const Node *node, bool *done);
bool flatten_writing_call(GraphFlattening *f, const Node *node);
// ---- flatten_shapes.c

// The number that a term is, whose value may follow from sizes; NULL when it is none.
Expr *flatten_number_of(GraphFlattening *f, const GraphTerm *term);
// The number as a tensor without axes.
Value *flatten_number(GraphFlattening *f, const Node *like, Expr *number);
// A shape or a number as a tensor; NULL when the term is neither.
Value *flatten_as_tensor(GraphFlattening *f, const GraphTerm *term);
// The shape that an operator on shapes gives, such as R.shape_of; *shape stays NULL for others.
// False after a diagnostic.
bool flatten_shape(GraphFlattening *f, const Node *node, GraphTerm **shape);
// Gives the sizes that R.Shape(["n", "m"]) names the extents of a shape.
void flatten_name_sizes(GraphFlattening *f, const GraphTerm *shape, const GraphTerm *type);
// Makes a parameter of the type R.Shape(…) or R.Prim(value="n") a tensor of int64, which gives the
// sizes. Returns what reads of it see: the sizes themselves. NULL: it has another type.
GraphTerm *flatten_size_param(GraphFlattening *f, Value *param, const GraphTerm *info);
// Gives the sizes of such a parameter of an inlined function the values of its argument.
void flatten_bind_size_param(GraphFlattening *f, const Value *param, const GraphTerm *given);
// Gives each extent of a parameter of the type R.Tensor(ndim=4) a size of its own, x.0, x.1, …
void flatten_name_extents(GraphFlattening *f, Value *param, const GraphTerm *info);

#endif
