// SPDX-License-Identifier: Apache-2.0
// Opaque operators: those that a function outside of the graph computes. They have no definition,
// so the function states what is otherwise derived: the types of its results, and its *ways*, each
// of which has a layout for each tensor and a cost.
#ifndef PLEAT_GRAPH_OPAQUE_H
#define PLEAT_GRAPH_OPAQUE_H

#include "graph/graph.h"

// Declared in runtime/opaque.h, which the files that make or run code include.
typedef struct OpaqueCode OpaqueCode;
typedef struct ArgumentSpec ArgumentSpec;

// One way in which a function can be called.
typedef struct OpaqueWay {
  const Layout **layouts; // by tensor of the call; NULL: row-major
  double cycles;          // negative: not stated
} OpaqueWay;

// One call of a function.
struct OpaqueCall {
  const OpaqueFunction *function;
  const Node *node; // NULL for a call that replaces several nodes
  Str name;         // of the node, for messages
  int input_count, count;
  Buffer **tensors; // the inputs, then the outputs; NULL: an optional input that is absent
  Array(OpaqueWay) ways;
};

struct OpaqueFunction {
  Str name;
  // Sets the types and shapes of the node's outputs from its inputs, whose shapes are static. False
  // with diagnostics. NULL: they must be declared.
  bool (*infer)(Context *context, const OpaqueFunction *function, Node *node);
  // Adds the ways with opaque_add_way. Without any, all tensors are row-major. False with
  // diagnostics. NULL: there are none.
  bool (*find_ways)(Context *context, OpaqueCall *call);
  // The code of a call in one of its ways, with one reference. `specs` are its tensors as they are
  // in memory, and are copied. NULL with diagnostics.
  OpaqueCode *(*bind)(Context *context, const OpaqueCall *call, int way, const ArgumentSpec *specs);
  const void *env;
};

const OpaqueFunction *opaque_find(const OpaqueFunctions *functions, const char *name);
// Sets the shapes and types of the outputs of a node, unless they are declared and the function
// does not know them. False with diagnostics.
bool opaque_infer(Context *context, Node *node);
// The call of a node, with the ways of its function. `inputs` are its tensors; NULL: new ones. NULL
// with diagnostics.
OpaqueCall *opaque_call_of(Context *context, const Node *node, Buffer *const *inputs);
// The first tensor that has different layouts in the two ways; -1: none.
int opaque_differing_tensor(const OpaqueCall *call, int way, int other);
// Adds a stage for each output: the first one is the call, and the others follow from it. False
// with diagnostics.
bool opaque_define(Context *context, Te *te, const Node *node, Buffer *const *inputs);
// Adds the stages of a call whose ways are known.
void opaque_add_stages(Te *te, const OpaqueCall *call);
// Adds a way with a layout for each tensor as text, in any spelling; NULL: row-major. False with
// diagnostics.
bool opaque_add_way(Context *context, OpaqueCall *call, const char *const *texts, double cycles);
// "input 0 'x'", "output 1"
const char *opaque_tensor_text(Context *context, const OpaqueCall *call, int tensor);
// A tensor program that stands for a node or call in reports. It does not compute anything.
PrimFunc *opaque_prim_func(Context *context, const Node *node);
PrimFunc *opaque_call_func(Context *context, const OpaqueCall *call, const char *name,
                           Buffer *const *params, int count);

#endif
