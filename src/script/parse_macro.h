// SPDX-License-Identifier: Apache-2.0
// Uses of macros: how the statements of a captured macro are read where it is used.
#ifndef PLEAT_SCRIPT_PARSE_MACRO_H
#define PLEAT_SCRIPT_PARSE_MACRO_H

#include "script/parse_stmt.h"

// The binding of a parameter to an argument that is computed.
typedef Binding MacroArgument(void *env, Parser *parser, const PyNode *argument);

// The names around a use, while the statements of the macro are read.
typedef struct MacroScope {
  Map names;
  int scope, mark;
} MacroScope;

// Binds the parameters of the macro to the arguments of the call, and returns the suite of its
// statements, for which `outer` is filled; NULL where a mistake was reported.
const PyNode *macro_begin(Parser *parser, const PyNode *call, const Captured *macro,
                          MacroArgument *argument, void *env, MacroScope *outer);
void macro_end(Parser *parser, const MacroScope *outer);

#endif
