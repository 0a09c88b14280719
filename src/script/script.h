// SPDX-License-Identifier: Apache-2.0
// Reads TVMScript into a module and prints modules as TVMScript. Printed text parses back to an
// equal module.
#ifndef PLEAT_SCRIPT_H
#define PLEAT_SCRIPT_H

#include "base/contents.h"
#include "ir/graph.h"
#include "script/python.h"

// Where a function or statement begins in the printed text, and where it came from.
typedef struct ScriptPlace {
  size_t offset;
  SourcePos pos;
} ScriptPlace;
typedef Array(ScriptPlace) ScriptPlaces;

typedef struct ScriptOptions {
  bool newer;           // the names of TVM in 2026: T.sblock, tirx
  bool no_imports;      // leave out the lines that import the dialects
  bool annotate;        // write the logical accesses of flat ones as comments
  ScriptPlaces *places; // gets those of functions and statements, in their order; NULL: none
  // A constant with more elements is printed by the name of its contents, which are handed to
  // `contents`. 0: all constants are printed with their elements.
  int64_t most_elements;
  void (*contents)(void *env, Contents *contents);
  void *contents_env;
} ScriptOptions;

// A script may use names of the program around it, such as the Python function that it is in.
//
// A name that the script does not define is *captured*. `find` is asked for the value of an
// expression that uses captured names: an expression of captured names alone, or a call, subscript
// or attribute of a captured name. Its answer is the text of an expression, in which the names that
// the script defines may occur, or the definition of a macro.
typedef enum CapturedKind {
  CAPTURED_UNKNOWN, // no such name: the parser reports it as undefined
  CAPTURED_VALUE,   // text: an expression
  CAPTURED_MACRO,   // file: a function definition, whose statements replace the call
  CAPTURED_REFUSED, // text: why there is no value
} CapturedKind;

typedef struct Captured {
  CapturedKind kind;
  const char *text;
  const SourceFile *file;
  int scope;       // of a macro's own captured names
  bool sees_names; // the macro sees the names that the script defines where it is used
} Captured;

typedef struct ScriptCapture {
  // NULL: nothing is captured. `scope` is 0 for the script, or that of the macro which holds the
  // expression; `names` are the names in it that the script defines, and `types` the element types
  // of those that are buffers or variables, otherwise NULL.
  Captured (*find)(void *env, Context *context, int scope, const char *expression,
                   const char *const *names, const char *const *types, int name_count);
  // Finds the type of a value that an operator computes. NULL, or left as it is: not known.
  void (*infer)(Context *context, Value *value);
  void *env;
  const SourceFile *imports; // import statements that stand before the script; NULL: none
  // Gives the contents of a constant whose name is in the script; NULL: they are not known.
  Contents *(*contents)(void *env, const char *name);
  void *contents_env;
} ScriptCapture;

// Reads as script_parse does, with what `capture` (may be NULL) gives.
Module *script_parse_captured(Context *context, const SourceFile *file,
                              const ScriptCapture *capture);

// The module in `file`: the class marked @I.ir_module, or the marked functions outside of a class
// (then the module has no name). Both generations of names are read, under the aliases that the
// file imports. All mistakes in the file are reported; NULL when there are any.
Module *script_parse(Context *context, const SourceFile *file);

// The names of the classes marked @I.ir_module in a file, any of which SourceFile.module may be.
// The last one is "" where there are several, and marked functions outside of them. 0 where the
// text cannot be read. Reports nothing: script_parse reports the mistakes.
int script_module_names(Context *context, const SourceFile *file, const Str **names);

// True for keywords of Python and for names that the reader gives a meaning, such as T.
bool script_is_reserved(const char *name);

// Prints the module; `options` may be NULL. Names of functions, statements and expressions are
// unique.
void script_print_module(Context *context, const Module *module, Text *out,
                         const ScriptOptions *options);
void script_print_prim_func(Context *context, const PrimFunc *func, Text *out,
                            const ScriptOptions *options);
void script_print_graph_func(Context *context, const GraphFunc *func, Text *out,
                             const ScriptOptions *options);
void script_print_stmt(Context *context, const Stmt *s, Text *out, const ScriptOptions *options);
// The logical accesses that the flat ones of a statement came from, "C[i, j] <- A[j, i], B[i]", or
// "". In the scratch arena.
const char *script_logical_text(Context *context, const Stmt *s);
// The same as text in the context's arena, for messages.
const char *script_expr_text(Context *context, const Expr *e);
const char *script_buffer_text(Context *context, const Buffer *buffer); // A: T.Buffer((3, 4), …)

// Proves that the extents, strides and offsets which T.match_buffer states are those of its
// regions. False after reporting one that is not proved.
bool prim_func_check_views(Context *context, const PrimFunc *func);

#endif
