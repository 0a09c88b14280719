// SPDX-License-Identifier: Apache-2.0
// Calls of tensor programs in graph functions: `R.call_tir(program, (x, y), out_sinfo=…)`. Where
// the loops of the program can be read as stages, the call is taken apart like an operator, so that
// it is fused and takes part in layout planning. Any other program is one stage, which runs it as
// it is on row-major tensors.
#ifndef PLEAT_GRAPH_CALL_PROGRAM_H
#define PLEAT_GRAPH_CALL_PROGRAM_H

#include "graph/graph.h"

// The program with the shapes of the call in place of its symbolic sizes. NULL with a diagnostic
// when the call does not fit.
PrimFunc *call_prim_func(Context *context, const Node *node);
// Adds the stages of the call to te->stages and its results to te->outputs, as op_define does.
bool call_define(Context *context, Te *te, const Node *node, Buffer *const *inputs);

// read_program.c: adds a stage for each block of `func`, whose first parameters are `inputs`, and
// its other parameters to te->outputs. False, and nothing is added, where the loops of a block do
// not compute each element of one tensor once; *why (may be NULL) then tells which.
bool program_read_stages(Te *te, const PrimFunc *func, Buffer *const *inputs, int input_count,
                         const char **why);

#endif
