// SPDX-License-Identifier: Apache-2.0
// The part of Python's grammar that TVMScript and schedule scripts use, as a tree. It is
// independent of tensor programs: src/script/parse_*.c and src/schedule/replay.c interpret the
// tree.
#ifndef PLEAT_SCRIPT_PYTHON_H
#define PLEAT_SCRIPT_PYTHON_H

#include "base/base.h"
#include "layout/layout.h"

// The contents of `items` (NULL for an absent optional one) and `text` for each kind.
typedef enum PyKind {
  // Expressions.
  PY_NAME,        // text
  PY_INT,         // i; text holds the digits when the value is above INT64_MAX (i: its low 64 bits)
  PY_FLOAT,       // f
  PY_STRING,      // text
  PY_BOOL,        // i
  PY_NONE,        //
  PY_ELLIPSIS,    // the value `...`
  PY_ATTRIBUTE,   // [object], text
  PY_CALL,        // [callee, arguments…], keyword arguments as PY_KEYWORD
  PY_KEYWORD,     // [value], text
  PY_SUBSCRIPT,   // [object, indices…]
  PY_SLICE,       // [start?, stop?, step?]
  PY_LIST,        // items
  PY_TUPLE,       // items
  PY_DICT,        // [key, value, key, value, …]
  PY_LAMBDA,      // [parameters…, body]; parameters are PY_NAME or PY_STAR
  PY_STAR,        // [operand?]
  PY_UNARY,       // [operand], text "-", "+", "~", "not"
  PY_BINARY,      // [left, right], text the operator, "and", "or", comparisons
  PY_CONDITIONAL, // [then, condition, else]
  // Statements.
  PY_SUITE,      // statements
  PY_EXPRESSION, // [value]
  PY_ASSIGN,     // [target, value], text "=" or "+=" …
  PY_ANNOTATED,  // [target, annotation, value?]
  PY_FOR,        // [target, iterator, suite]
  PY_WHILE,      // [condition, suite]
  PY_IF,         // [condition, suite, suite?]
  PY_WITH,       // [context, target?, context, target?, …, suite]
  PY_DEF,        // [list of decorators, list of PY_PARAM, result?, suite], text
  PY_PARAM,      // [annotation?, default?], text, i: a PyMark
  PY_CLASS,      // [list of decorators, list of bases, suite], text
  PY_RETURN,     // [value?]
  PY_ASSERT,     // [condition, message?]
  PY_PASS,       //
  PY_LEAVE,      // text "break" or "continue"
  PY_IMPORT, // [alias…]: PY_KEYWORD with text the local name and [name] the dotted name as text
  PY_KIND_COUNT,
} PyKind;

// A parameter's mark: none, `*`, `**`, or `/`, which says that those before it have no names. The
// text of `*` and `/` alone is NULL.
typedef enum PyMark { PY_PLAIN, PY_REST, PY_REST_BY_NAME, PY_POSITIONAL } PyMark;

typedef struct PyNode PyNode;
struct PyNode {
  PyKind kind;
  int count;
  int depth; // height of the tree, limited so that recursion is safe
  bool parenthesized;
  SourcePos pos;
  Str text;
  union {
    int64_t i;
    double f;
  };
  PyNode **items;
};

// PY_STATEMENTS: every statement must follow the grammar above (schedule scripts). PY_DEFINITIONS:
// at the outermost level and in classes that are kept, keeps imports, simple statements that can be
// read, and definitions decorated with `prim_func`, `function` or `ir_module`; other Python is
// skipped.
typedef enum PyMode { PY_STATEMENTS, PY_DEFINITIONS } PyMode;

// The file as a PY_SUITE in `arena`, with the statements that could be read. Mistakes are reported.
PyNode *py_parse_file(Context *context, Arena *arena, const SourceFile *file, PyMode mode);
// The expression that the file consists of (a lambda, a call). NULL after reporting a mistake.
PyNode *py_parse_expression(Context *context, Arena *arena, const SourceFile *file);
// The dotted name of a name or attribute, "T.axis.spatial" (interned); NULL for any other node.
Str py_dotted_name(Context *context, const PyNode *node);
// The map that a lambda or a string writes, with its position in the file; that of a string without
// its quotes. A string with escapes is a text of its own. The text is NULL for any other node.
LayoutSource py_layout_source(const PyNode *node, int rank);
// Is the decorator @tvm.script.tir, which marked functions and classes in TVM 0.8 and before?
bool py_is_oldest_decorator(Context *context, const PyNode *node);
const char *py_kind_name(PyKind kind); // "a call", for messages
// Is it the declaration of a buffer whose memory is the first argument, as RFC 63 also writes it?
bool py_is_memory_first(const PyNode *call);
bool py_is_list(const PyNode *node);            // a list or a tuple; false for NULL
bool py_mentions(const PyNode *node, Str name); // is the name in it? false for NULL
// Does a value of a tuple read what a target before it sets, as in x, y = y, x?
bool py_reads_earlier_target(const PyNode *targets, const PyNode *values);
// Writes an expression as Python, with brackets around each operation. False for a node that is
// not an expression.
bool py_print(const PyNode *node, Text *out);
void py_move(PyNode *node, SourcePos pos); // gives the node and all below it this position

// ---- Arguments of a call ---------------------------------------------------------------------

enum { PY_MOST_ARGUMENTS = 16 };

// Matches a call's arguments to a signature such as "shape dtype? data? *rest": names in order,
// where `?` marks an optional one (NULL in `out`), and a last `*name` takes any number of further
// positional arguments, which start at call->items[*rest]. False after reporting a mismatch.
bool py_arguments(Context *context, const PyNode *call, const char *signature, PyNode **out,
                  int *rest);

bool py_is_keyword(const char *name); // a word of Python's grammar; True, False and None too

// The number of bytes of the letter beyond ASCII with which `s` begins, in UTF-8; 0 for others.
int py_letter_bytes(const char *s);

// ---- Tokens (between the lexer and the parser) -------------------------------------------------

typedef enum TokenKind {
  TOKEN_END,
  TOKEN_NEWLINE,
  TOKEN_INDENT,
  TOKEN_DEDENT,
  TOKEN_NAME, // keywords too
  TOKEN_INT,
  TOKEN_FLOAT,
  TOKEN_STRING, // text is the value
  TOKEN_OPERATOR,
  TOKEN_ERROR, // text: the mistake, for the parser to report; NULL: reported
} TokenKind;

typedef struct Token {
  TokenKind kind;
  int32_t begin, end;
  Str text; // of names, operators, strings; of integers above INT64_MAX
  union {
    int64_t i;
    double f;
  };
} Token;
typedef Array(Token) TokenArray;

// All tokens of the file; the last is TOKEN_END. Brackets and indentation are always balanced.
TokenArray py_tokens(Context *context, Arena *arena, const SourceFile *file);

#endif
