// SPDX-License-Identifier: Apache-2.0
// TVMScript: text to module and back. What is printed parses back to an equal module.
#ifndef PLEAT_SCRIPT_H
#define PLEAT_SCRIPT_H

#include "ir/graph.h"
#include "script/python.h"

typedef struct ScriptOptions {
  bool newer;      // the names of 2026: T.sblock, tirx
  bool no_imports; // leave out the lines that import the dialects
} ScriptOptions;

// The module in `file`: the class marked @I.ir_module, or the marked functions that stand alone
// (then the module has no name). Both generations of names are read, under the aliases that the
// file imports. NULL after reporting when something is wrong; all mistakes of the file are told.
Module *script_parse(Context *context, const SourceFile *file);

// `options` may be NULL. Functions, statements and expressions are printed with unique names.
void script_print_module(Context *context, const Module *module, Text *out,
                         const ScriptOptions *options);
void script_print_prim_func(Context *context, const PrimFunc *func, Text *out,
                            const ScriptOptions *options);
void script_print_graph_func(Context *context, const GraphFunc *func, Text *out,
                             const ScriptOptions *options);
void script_print_stmt(Context *context, const Stmt *s, Text *out, const ScriptOptions *options);
void script_print_expr(Context *context, const Expr *e, Text *out);
// The same as text in the context's arena, for messages.
const char *script_expr_text(Context *context, const Expr *e);
const char *script_buffer_text(Context *context, const Buffer *buffer); // A: T.Buffer((3, 4), …)

#endif
