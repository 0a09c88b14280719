// SPDX-License-Identifier: Apache-2.0
// Reads TVMScript into a module and prints modules as TVMScript. Printed text parses back to an
// equal module.
#ifndef PLEAT_SCRIPT_H
#define PLEAT_SCRIPT_H

#include "ir/graph.h"
#include "script/python.h"

typedef struct ScriptOptions {
  bool newer;      // the names of TVM in 2026: T.sblock, tirx
  bool no_imports; // leave out the lines that import the dialects
} ScriptOptions;

// The module in `file`: the class marked @I.ir_module, or the marked functions outside of a class
// (then the module has no name). Both generations of names are read, under the aliases that the
// file imports. All mistakes in the file are reported; NULL when there are any.
Module *script_parse(Context *context, const SourceFile *file);

// Prints the module; `options` may be NULL. Names of functions, statements and expressions are
// unique.
void script_print_module(Context *context, const Module *module, Text *out,
                         const ScriptOptions *options);
void script_print_prim_func(Context *context, const PrimFunc *func, Text *out,
                            const ScriptOptions *options);
void script_print_graph_func(Context *context, const GraphFunc *func, Text *out,
                             const ScriptOptions *options);
void script_print_stmt(Context *context, const Stmt *s, Text *out, const ScriptOptions *options);
// The same as text in the context's arena, for messages.
const char *script_expr_text(Context *context, const Expr *e);
const char *script_buffer_text(Context *context, const Buffer *buffer); // A: T.Buffer((3, 4), …)

#endif
