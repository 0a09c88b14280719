// SPDX-License-Identifier: Apache-2.0
// The nodes of pleat_module_nodes, as the files that write and read them share them.
#ifndef PLEAT_API_TIR_NODES_H
#define PLEAT_API_TIR_NODES_H

#include <jansson.h>

#include "ir/ir.h"

// Variables and buffers that several tables share. Their nodes have a number in the field "key",
// which is the same in all of these tables.
typedef struct NodeKeys {
  Map objects; // of a key
  Map keys;    // of an object: its key + 1
} NodeKeys;
NodeKeys node_keys_new(Arena *arena);

// A table that is written, in the context's scratch memory. `keys` may be NULL.
typedef struct Nodes Nodes;
Nodes *nodes_new(Context *context, const NodeKeys *keys);
int nodes_add(Nodes *nodes, const Expr *e);      // the number of its node; -1 for NULL
void nodes_print(const Nodes *nodes, Text *out); // as a JSON list

// A table that is read. Adds its variables and buffers to `keys`, which may be NULL.
typedef struct NodesMaking NodesMaking;
NodesMaking *nodes_read(Context *context, const json_t *nodes, NodeKeys *keys);
// The expression that a field refers to. NULL with a diagnostic when it refers to none.
Expr *nodes_expr(NodesMaking *making, const char *field, const json_t *reference);

// The operations that are nodes of their own; all others have a NULL kind and are calls. A field
// with '*' is a list.
typedef struct ExprRow {
  const char *kind, *fields[3];
  bool has_lanes;
} ExprRow;
extern const ExprRow expr_rows[EXPR_OP_COUNT];

// The statements all of whose fields are pointers; all others have a NULL kind.
typedef enum StmtFieldKind {
  FIELD_VARIABLE,
  FIELD_EXPR,
  FIELD_ATTRIBUTE, // an expression that may be a list
  FIELD_BUFFER,
  FIELD_BODY,
  FIELD_OPTIONAL_BODY,
} StmtFieldKind;
typedef struct StmtField {
  const char *name;
  StmtFieldKind kind;
  size_t offset; // in Stmt
} StmtField;
typedef struct StmtRow {
  const char *kind;
  StmtField fields[3];
} StmtRow;
extern const StmtRow stmt_rows[STMT_ATTR + 1];

// The operations whose payload is the name of a function, and what TVM calls them. NULL: the name
// itself is that of the operation.
typedef struct NamedCall {
  ExprOp op;
  const char *name;
} NamedCall;
extern const NamedCall named_calls[];
extern const int named_call_count;

// TVM's numbers of the types of buffers.
enum { TYPE_DEFAULT = 1, TYPE_AUTO_BROADCAST = 2 };

// TVM's numbers of the types of iteration.
enum {
  ITER_DATA_PARALLEL = 0,
  ITER_THREAD = 1,
  ITER_COMMUTATIVE = 2,
  ITER_ORDERED = 3,
  ITER_OPAQUE_TYPE = 4
};

#endif
