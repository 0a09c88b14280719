// SPDX-License-Identifier: Apache-2.0
// The interface between the files that read graph functions. As everywhere in the reader, NULL or
// false says that a mistake was reported.
#ifndef PLEAT_SCRIPT_GRAPH_PARSER_H
#define PLEAT_SCRIPT_GRAPH_PARSER_H

#include "script/const_data.h"
#include "script/parse_stmt.h"

enum { MOST_OUTPUTS = 1024 };

// The value that a macro returns.
typedef struct MacroResult {
  Value *value; // NULL: none so far
  bool is_new;  // it has no name yet
} MacroResult;

typedef struct GraphParser {
  Parser *parser;
  GraphFunc *func;
  int *blocks;           // the number of dataflow blocks so far
  int block;             // the one that is being read; 0: none
  MacroResult *returned; // of the macro that is being read; NULL outside of macros
} GraphParser;

// ---- graph_types.c

// The type that `node` states. Sets the shape and element type of `value` where it is a tensor's,
// and its `info` where that does not say all. `otherwise` is the element type of R.Tensor(shape).
bool graph_type(GraphParser *graph, const PyNode *node, Value *value, DType otherwise);
// The value v where the type is written as v.ty or v.struct_info; NULL for other forms.
const Value *graph_typed_value(Parser *parser, const PyNode *node);
GraphTerm *term_of_expr(Parser *parser, Expr *e, bool plain); // plain: a literal
// A type as a term, such as R.Callable((R.Object,), R.Object).
GraphTerm *graph_type_term(GraphParser *graph, const PyNode *node);
// Reads a tuple of extents, or R.shape([…]), as the shape of `value`.
bool graph_shape(Parser *parser, const PyNode *node, Value *value);

// ---- graph_values.c

// Any argument. A call of an operator in it becomes a node of the function.
GraphTerm *graph_term(GraphParser *graph, const PyNode *node);
Value *graph_value(GraphParser *graph, const PyNode *node); // not None
// The call as a node with this number of results.
Node *graph_call(GraphParser *graph, const PyNode *call, int outputs);
Node *graph_add_node(GraphParser *graph, const PyNode *pos, Node *node);

// ---- graph_attributes.c

bool graph_is_attribute(Parser *parser, const PyNode *node); // a constant, an index map, or a list
// An attribute of an operator: as parse_attribute_value, or an index map (a lambda, or
// T.index_map(lambda …)), which becomes a string in its canonical form.
Expr *graph_attribute(Parser *parser, const PyNode *node);

#endif
