// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of passes.
#ifndef PLEAT_PASSES_ARGUMENTS_H
#define PLEAT_PASSES_ARGUMENTS_H

#include "passes/passes.h"
#include "passes/rewrites.h"
#include "script/script.h"

// A dictionary whose keys are strings. False with a diagnostic for anything else.
bool pass_is_dict(Context *context, const PyNode *node);
const PyNode *pass_dict_find(const PyNode *dict, const char *key); // NULL when absent
// The index map of a lambda, or of a text in any spelling. NULL with a diagnostic.
const IndexMap *pass_index_map(Context *context, const PyNode *node, int rank);
// The tensor program of the module with this name, which may be a string. NULL with a diagnostic.
PrimFunc *pass_program(const PassRun *run, const PyNode *node);
// Is this the name of an operator, with or without "relax." or "R." before it?
bool pass_names_op(const char *text, const char *op);

#endif
