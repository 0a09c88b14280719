// SPDX-License-Identifier: Apache-2.0
// The interface between the files that turn the Python tree into a module. Every function reports a
// mistake as a diagnostic and returns NULL (or false); its callers return without another report,
// so that each mistake is reported once.
#ifndef PLEAT_SCRIPT_PARSER_H
#define PLEAT_SCRIPT_PARSER_H

#include "ir/graph.h"
#include "script/python.h"
#include "script/script.h"

typedef enum Dialect { DIALECT_NONE, DIALECT_TIR, DIALECT_GRAPH, DIALECT_MODULE } Dialect;

typedef enum BindingKind {
  BOUND_NOTHING, // its definition was wrong: uses are not reported
  BOUND_EXPR,
  BOUND_BUFFER,
  BOUND_VALUE,
} BindingKind;

typedef struct Binding {
  Str name;
  BindingKind kind;
  Expr *expr;
  bool is_literal;    // of BOUND_EXPR: a Python number, which takes the type of its context
  Expr *min, *extent; // of BOUND_EXPR that is a loop's variable
  Buffer *buffer;
  Value *value;
  int hidden; // the binding that this one hides, as index + 1
} Binding;

// The block whose heading (axes, regions, allocations) may be written at the current position.
typedef struct BlockBuilder {
  Array(BlockVar) vars;
  Array(Region) reads, writes;
  Array(Buffer *) allocs;
  Array(MatchBuffer) matches;
  Expr *predicate;
  Stmt *init;
  Attrs annotations;
  bool is_function; // the implicit root block
  bool states_reads, states_writes;
} BlockBuilder;

typedef struct Parser {
  Context *context;
  Arena *arena; // for the parser's own lists
  Module *module;
  Map dialects; // alias to Dialect
  Str class_name;
  Array(Binding) bindings;
  Map names;           // name to the index + 1 of its visible binding
  BlockBuilder *block; // NULL inside loops and branches
  int depth;
  int errors_before; // the context's count before reading began
  bool has_blocks;
  Array(Buffer *) matched; // the function's buffer of each parameter
  Array(Expr *) params;
  Attrs func_attrs;
} Parser;

#define REPORT(parser, node, ...) diag_error((parser)->context, (node)->pos, __VA_ARGS__)

// ---- Names (names.c)

// The member of a dialect that `node` names, such as "axis.spatial" for T.axis.spatial; otherwise
// NULL.
Str parser_member(Parser *parser, const PyNode *node, Dialect dialect);
Str parser_called(Parser *parser, const PyNode *node, Dialect dialect); // of a call's callee
Binding *parser_bind(Parser *parser, Str name, BindingKind kind);
void parser_bind_expr(Parser *parser, Str name, Expr *e);
void parser_bind_buffer(Parser *parser, Str name, Buffer *buffer);
// Binds every name in a target (a name, or tuples of names) to BOUND_NOTHING.
void parser_bind_nothing(Parser *parser, const PyNode *target);
Binding *parser_find(Parser *parser, Str name);
Binding *parser_lookup(Parser *parser, const PyNode *name); // reports an undefined name
int parser_mark(const Parser *parser);
void parser_reset(Parser *parser, int mark);
// "; did you mean 'x'?" or "".
const char *parser_suggestion(Parser *parser, const char *word, const char *const *names,
                              int count);
const char *parser_type_name(Parser *parser, DType type); // for messages

// ---- Expressions (parse_expr.c, parse_call.c)

// An expression under construction; `is_literal` marks Python's own numbers, which have no type
// yet.
typedef struct Operand {
  Expr *e; // NULL: a mistake that is reported already
  bool is_literal;
} Operand;

Operand parse_operand(Parser *parser, const PyNode *node);
Operand parse_call(Parser *parser, const PyNode *node);
Operand parse_binary(Parser *parser, const PyNode *node, ExprOp op, Operand a, Operand b);
Operand parse_unary(Parser *parser, const PyNode *node, ExprOp op, Operand a);
Expr *parse_value(Parser *parser, const PyNode *node);                // literals: int32, float32
Expr *parse_value_as(Parser *parser, const PyNode *node, DType type); // literals take `type`
Expr *parse_condition(Parser *parser, const PyNode *node);            // of boolean type
Expr *operand_as(Parser *parser, const PyNode *node, Operand operand, DType type);
bool parse_same_type(Parser *parser, const PyNode *node, Operand *a, Operand *b);
bool parse_int(Parser *parser, const PyNode *node, const char *what, int64_t *out);
Str parse_string(Parser *parser, const PyNode *node, const char *what);
bool parse_dtype(Parser *parser, const PyNode *node, DType *out);
Expr *parse_attribute_value(Parser *parser, const PyNode *node);
bool parse_attributes(Parser *parser, const PyNode *node, Attrs *attrs); // a dictionary

// ---- Buffers (parse_buffer.c)

Buffer *parse_buffer_name(Parser *parser, const PyNode *node);
// The indices of A[i, j:j + 4], with Ramps for slices; `out` must have room for the buffer's rank.
Expr **parse_indices(Parser *parser, const PyNode *node, Buffer *buffer);
bool parse_region(Parser *parser, const PyNode *node, Region *out);
bool parse_shape(Parser *parser, const PyNode *node, Expr ***out, int *rank);
// T.Buffer(…), T.alloc_buffer(…), T.decl_buffer(…), T.match_buffer(source, …), or T.Buffer[…]. The
// source is returned in *source. A buffer without `data` gets its own data variable.
Buffer *parse_buffer(Parser *parser, const PyNode *node, Str name, PyNode **source);

// ---- Statements and functions

Stmt *parse_suite(Parser *parser, const PyNode *suite);
Stmt *parse_body(Parser *parser, const PyNode *suite); // in the scope of the caller's names
Stmt *block_builder_finish(Parser *parser, BlockBuilder *builder, Str name, Stmt *body);
// A list (of lists) of numbers as constant data, flattened. `extents` NULL: the shape of the list.
ConstData *parse_const_data(Parser *parser, const PyNode *data, const PyNode *dtype,
                            const PyNode *extents);
PrimFunc *parse_prim_func(Parser *parser, const PyNode *def);
GraphFunc *parse_graph_func(Parser *parser, const PyNode *def);
// Proves that each binding stays in the domain of its block variable; false with an error at each
// binding that is not proved to.
bool prim_func_check_domains(Context *context, const PrimFunc *func);

#endif
