// SPDX-License-Identifier: Apache-2.0
// Gives parts of a graph to libraries of kernels. A part is found by its loops, annotated with what
// the library is to do, merged with the operations that follow, and replaced by one call, whose
// ways are those that the library prefers. The planner decides on layouts around it as around any
// opaque operator.
#ifndef PLEAT_OFFLOAD_H
#define PLEAT_OFFLOAD_H

#include "base/machine.h"
#include "graph/opaque.h"
#include "offload/contraction.h"

// A library: one row of the table in offload.c.
typedef struct OffloadLibrary {
  const char *name;
  // Loads it. NULL with a diagnostic that begins with `option`. What it returns is for `add_ways`.
  void *(*open)(Context *context, const char *option, const HostMachine *machine);
  // Makes `call` the library's for the contraction: sets its function and adds its ways. False,
  // without diagnostics, when the library cannot compute it.
  bool (*add_ways)(void *library, const Contraction *contraction, OpaqueCall *call);
} OffloadLibrary;
extern const OffloadLibrary offload_dnnl;

// Replaces the stages that `text` names: "dnnl" for all that the library can compute, or
// "dnnl=Conv,MatMul" for those of these operators or nodes. `option` is the option's name, for
// messages. False with diagnostics.
bool offload_stages(StageGraph *stages, const HostMachine *machine, const char *option,
                    const char *text);

#endif
