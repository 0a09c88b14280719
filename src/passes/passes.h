// SPDX-License-Identifier: Apache-2.0
// Passes over graph functions, each of which can be run by itself and printed as TVMScript
// (`pleat opt --pass`). Their names and arguments are TVM's where TVM has the pass.
#ifndef PLEAT_PASSES_H
#define PLEAT_PASSES_H

#include "graph/graph.h"
#include "script/python.h"

// ---- Lists of passes ---------------------------------------------------------------------------

// A pass as the user names it: `Name` or `Name(arguments)`.
typedef struct PassCall {
  Str name;
  const PyNode *call; // NULL: no arguments are given
  SourcePos pos;
} PassCall;
typedef Array(PassCall) PassCalls;
// Appends the passes of a list such as `A,B(x=1)`. False with diagnostics.
bool pass_calls_read(Context *context, const char *text, PassCalls *calls);
// Matches the arguments of the call to the signature of the pass (py_arguments). A missing
// argument, and a name that is not in the signature, are refused with the names that are in it.
bool pass_call_arguments(Context *context, const PassCall *call, const char *signature,
                         PyNode **out);

// ---- The table ---------------------------------------------------------------------------------

typedef struct PassRun {
  Context *context;
  Module *module;
  GraphFunc *graph;                // its shapes are inferred
  PyNode *args[PY_MOST_ARGUMENTS]; // in the order of the signature; NULL: absent
} PassRun;

// Changes run->graph, and adds functions to run->module. False with diagnostics.
typedef bool (*GraphPassRun)(PassRun *run);

typedef struct GraphPass {
  const char *name, *signature; // the arguments, for py_arguments
  const char *summary;
  GraphPassRun run;
  bool any_shapes; // run->graph may have tensors of unknown shape, with the rank -1
  bool on_module;  // it runs once on the module as it was read, and run->graph is NULL
} GraphPass;
extern const GraphPass graph_passes[]; // ended by a NULL name

const GraphPass *graph_pass_find(const char *name); // NULL when there is none
// Runs the pass on the graph functions of the module, or on the one named `function` (NULL: all).
bool graph_pass_run(Context *context, const GraphPass *pass, const PassCall *call, Module *module,
                    const char *function);

bool graph_legalize_ops(PassRun *run);
bool graph_raise_rewrites(PassRun *run);
bool graph_optimize_rewrites(PassRun *run);
bool graph_flow_rewrites(PassRun *run);
bool graph_hoist_rewrites(PassRun *run);
bool graph_split_preproc(PassRun *run);
bool graph_alter_op_impl(PassRun *run);
bool graph_convert_layout(PassRun *run);
bool graph_fold_constants(PassRun *run);
bool graph_remove_dead(PassRun *run);
bool graph_split_host_device(PassRun *run);
bool graph_annotate_patterns(PassRun *run);
bool graph_fuse_ops(PassRun *run);
bool graph_fuse_programs(PassRun *run);

// ---- Patterns of programs ----------------------------------------------------------------------

// TVM's patterns, from special to general, with TVM's numbers.
typedef enum OpPattern {
  OP_PATTERN_ELEMENTWISE,
  OP_PATTERN_BROADCAST,
  OP_PATTERN_INJECTIVE, // an element depends on elements at indices that follow from its own
  OP_PATTERN_REDUCE,    // a reduction of whole axes
  OP_PATTERN_FUSABLE,   // any other reduction, whose result elementwise programs can take
  OP_PATTERN_OPAQUE = 8,
} OpPattern;
// Opaque where the blocks of the program cannot be read as stages.
OpPattern program_op_pattern(Context *context, const PrimFunc *func);

// ---- For passes --------------------------------------------------------------------------------

// Uses `to` in place of `from` in all nodes and results.
void graph_replace_value(GraphFunc *graph, Value *from, Value *to);
// Are the shapes of the node's tensors known?
bool node_is_known(const Node *node);
// How often nodes and results use a value.
int graph_user_count(const GraphFunc *graph, const Value *value);
// Removes the nodes whose results nothing uses.
void graph_remove_unused(Context *context, GraphFunc *graph);

// Does RaiseLayoutRewrites make operators of the call?
bool graph_raises(Context *context, const Node *call);
// A name that no function of the module has; it begins with `base`.
Str graph_free_name(Context *context, const Module *module, const char *base);
// Adds a program to the module, whose name begins with `base`, or gives the equal one that it has.
PrimFunc *graph_add_program(PassRun *run, PrimFunc *func, const char *base);
// Removes a program from the module if no graph function calls it.
void graph_drop_program(PassRun *run, const PrimFunc *func);
// A call of a program, whose results have the shapes of its last parameters.
Node *graph_call_of(Context *context, PrimFunc *func, Value *const *inputs, int input_count,
                    const char *name);

#endif
