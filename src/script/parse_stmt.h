// SPDX-License-Identifier: Apache-2.0
// The interface between the files that read statements (parse_stmt.c, parse_scope.c,
// parse_block.c).
#ifndef PLEAT_SCRIPT_PARSE_STMT_H
#define PLEAT_SCRIPT_PARSE_STMT_H

#include "script/parser.h"

// A statement whose body is the rest of the suite, which will be stored in *hole.
typedef struct OpenStmt {
  Stmt *stmt, **hole;
  int first;
} OpenStmt;

typedef struct Sequence {
  Array(Stmt *) items;
  Array(OpenStmt) open;
} Sequence;

void sequence_add(Parser *parser, Sequence *sequence, const PyNode *node, Stmt *s); // s may be NULL
void sequence_open(Parser *parser, Sequence *sequence, const PyNode *node, Stmt *s, Stmt **hole);
void parse_statement(Parser *parser, Sequence *sequence, const PyNode *node);
Stmt *parse_store(Parser *parser, const PyNode *node, Buffer *buffer, Expr **indices,
                  Operand value);
// The value of a definition, of the type that it states; void states none.
Expr *parse_stated_value(Parser *parser, const PyNode *node, DType type);
// Makes the call T.Ptr(T.uint8) of an older annotation T.Ptr[T.uint8].
void parse_call_pointer(Parser *parser, PyNode *annotation);
bool parse_is_variable(Parser *parser, const PyNode *value); // T.int64() or T.var(…)
// A name that stands for several variables, such as that of `for indices in T.grid(30, 64)`: binds
// it to the tuple of `count` new names, and returns these.
const PyNode *const *parse_split_name(Parser *parser, const PyNode *target, int count);
// stop - start when it is evident: both are constants, or stop is written as start + extent.
Expr *parse_difference(Parser *parser, Expr *start, Expr *stop);
Stmt *stmt_assert(Parser *parser, Expr *condition, Expr *message, Stmt *body);

// Reads a call that is a statement: alone, assigned to names, or after `with` (parse_block.c,
// parse_scope.c). False when `member` is not the name of one.
bool parse_statement_call(Parser *parser, Sequence *sequence, const PyNode *node, Str member);
bool parse_assigned_call(Parser *parser, Sequence *sequence, const PyNode *node, Str member);
bool parse_is_scope(const char *member); // T.block and others that only `with` may open
void parse_with(Parser *parser, Sequence *sequence, const PyNode *node);

// A row of the tables of these calls. `node` is the whole statement, `call` the call in it.
typedef struct StatementCall {
  const char *name;
  void (*parse)(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call);
} StatementCall;
extern const StatementCall block_statements[], block_assignments[]; // ended by a NULL name
// Reads the block of `with T.block("name"):`.
void parse_block(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call,
                 const PyNode *suite);
void parse_init(Parser *parser, const PyNode *node, const PyNode *suite);
// False with an error where memory that is allocated in the function's own lines has the name of a
// parameter.
bool parse_hides_no_parameter(Parser *parser, const PyNode *target);
// Puts the statements of a macro in the place of its call (parse_macro.c).
void parse_macro(Parser *parser, Sequence *sequence, const PyNode *call, const Captured *macro);

#endif
