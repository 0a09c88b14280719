// SPDX-License-Identifier: Apache-2.0
// Defines the equal operators of a graph once. Large networks repeat few different operators, so
// the stages of most nodes are those of an earlier node with other tensors.
#ifndef PLEAT_SHARED_DEFINITIONS_H
#define PLEAT_SHARED_DEFINITIONS_H

#include "graph/graph.h"

typedef struct SharedDefinitions {
  Te *te;      // of all stages
  Map known;   // by WordKey: Definition
  WordKey key; // of the operator that is looked for
} SharedDefinitions;

SharedDefinitions shared_definitions_new(Te *te);
// Does the same as op_define. The stages of equal operators have the same axes, and share all
// expressions that load no tensor.
bool shared_definitions_define(SharedDefinitions *shared, const Node *node, Buffer *const *inputs);

#endif
