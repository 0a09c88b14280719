// SPDX-License-Identifier: Apache-2.0
// Passes over graph functions, each of which can be run by itself and printed as TVMScript
// (`pleat opt --pass`). Their names are TVM's where TVM has the pass.
#ifndef PLEAT_GRAPH_PASSES_H
#define PLEAT_GRAPH_PASSES_H

#include "graph/graph.h"

// Changes a function whose shapes are inferred. False with diagnostics.
typedef bool (*GraphPassRun)(Context *context, Module *module, GraphFunc *graph);

typedef struct GraphPass {
  const char *name, *summary;
  GraphPassRun run;
} GraphPass;
extern const GraphPass graph_passes[]; // ended by a NULL name

const GraphPass *graph_pass_find(const char *name); // NULL when there is none
// Infers the shapes of the function and runs the pass.
bool graph_pass_run(Context *context, const GraphPass *pass, Module *module, GraphFunc *graph);

bool graph_legalize_ops(Context *context, Module *module, GraphFunc *graph);
bool graph_raise_rewrites(Context *context, Module *module, GraphFunc *graph);
bool graph_optimize_rewrites(Context *context, Module *module, GraphFunc *graph);

// ---- For passes

// Uses `to` in place of `from` in all nodes and results.
void graph_replace_value(GraphFunc *graph, Value *from, Value *to);
// Removes the nodes whose results nothing uses.
void graph_remove_unused(Context *context, GraphFunc *graph);

#endif
