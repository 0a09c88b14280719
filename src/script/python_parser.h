// SPDX-License-Identifier: Apache-2.0
// The interface between the files of the Python parser: the stream of tokens and the functions that
// read it.
#ifndef PLEAT_SCRIPT_PYTHON_PARSER_H
#define PLEAT_SCRIPT_PYTHON_PARSER_H

#include "script/python.h"

typedef struct PyParser {
  Context *context;
  Arena *arena;
  const SourceFile *file;
  PyMode mode;
  TokenArray tokens;
  int at, nesting;
  bool quiet; // the text may be other Python: report nothing
} PyParser;

PyParser py_parser_new(Context *context, Arena *arena, const SourceFile *file, PyMode mode);
const Token *py_token(const PyParser *parser);
bool py_at_kind(const PyParser *parser, TokenKind kind);
bool py_at_name(const PyParser *parser);              // a name that is no keyword
bool py_at(const PyParser *parser, const char *text); // the token is this name or operator
void py_advance(PyParser *parser);
bool py_accept(PyParser *parser, const char *text);
bool py_expect(PyParser *parser, const char *text);
PyNode *py_expected(PyParser *parser, const char *what); // reports a mistake; NULL
// A node from `begin` to the last token read. NULL after a report when the tree becomes too deep.
PyNode *py_node(PyParser *parser, PyKind kind, int32_t begin, PyNode *const *items, int count);
PyNode *py_expression(PyParser *parser);
PyNode *py_expressions(PyParser *parser);

#endif
