// SPDX-License-Identifier: Apache-2.0
// From a kernel's blocks and the layouts of its tensors to a trace of schedule steps, by one model
// of the machine. The steps are those a user can call; the model only chooses their arguments.
#ifndef PLEAT_AUTO_SCHEDULE_H
#define PLEAT_AUTO_SCHEDULE_H

#include "autosched/nest.h"
#include "schedule/schedule.h"

typedef struct KernelParam {
  const Layout *layout; // how the tensor lies; NULL is row-major
  bool constant;        // contents are known at compile time: the model picks the layout
} KernelParam;

typedef struct KernelChoice {
  Schedule *schedule;
  const Layout **layouts; // per parameter: as given, or as picked; NULL is row-major
  bool tiled;             // a register tile was found
  Tile tile;
  const char *slow; // why the kernel is not vectorised; NULL when it is
} KernelChoice;

// The blocks of `func`: at most one reduction (the anchor), elementwise blocks around it.
// False with diagnostics when a step that must be possible was refused.
bool kernel_schedule(Context *context, const HostMachine *machine, PrimFunc *func,
                     const KernelParam *params, KernelChoice *choice);

// The same for a function as a user wrote it, when it says only what to compute: blocks at their
// own serial loops. False, without diagnostics, when it has a schedule of its own or the model
// finds none; *why_not then says so.
bool kernel_schedule_plain(Context *context, const HostMachine *machine, PrimFunc *func,
                           KernelChoice *choice, const char **why_not);

#endif
