// SPDX-License-Identifier: Apache-2.0
// The interface between the files that make software pipelines: software_pipelines.c decides what
// is legal, and pipeline_loops.c writes the loops.
#ifndef PLEAT_LOWER_PIPELINES_H
#define PLEAT_LOWER_PIPELINES_H

#include "lower/races.h"

typedef struct PipelinePart { // a statement of the body
  Stmt *s;
  int stage, order;
  LoopAccesses accesses;
} PipelinePart;

typedef struct PipelineMemory { // that the body allocates
  Buffer *buffer;
  Buffer *wide;         // with an axis for its copies in front; NULL: there is one copy
  const Stmt *allocate; // NULL: a block allocates it
  int versions;
  bool doubled; // two copies are asked for
} PipelineMemory;

typedef struct Pipeline {
  Context *context;
  Stmt *loop;
  Array(PipelinePart) parts; // in the order of the text
  Array(PipelineMemory) memory;
  RaceQuestion question; // about the accesses of all parts
  int last_stage;
  bool in_blocks;    // the body is a block, and so are the results
  Attrs annotations; // of the loop that is left
} Pipeline;

// Does the part write (or read) the memory?
bool part_uses(const PipelinePart *part, const Expr *data, bool writes);

// The loops that run the parts by their stages and orders, with their memory around them.
Stmt *pipeline_stmt(const Pipeline *pipeline);

#endif
