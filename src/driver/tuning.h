// SPDX-License-Identifier: Apache-2.0
// Files of tuning records: schedules of kernels, with the layouts that they give the kernels'
// tensors, as Python text. See tuning.c for the form.
#ifndef PLEAT_DRIVER_TUNING_H
#define PLEAT_DRIVER_TUNING_H

#include "plan/plan.h"

// The records of a file; NULL with diagnostics, which have their place in it.
const Tuning *tuning_read(Context *context, const char *path);
// Writes a record for each kernel of a plan that was scheduled, except for rewrites and calls of
// opaque operators. Reading the file gives the same plan, unless kernels of equal programs have
// different layouts: each such kernel may then take the other's record. `cycles` is the measured
// cost of each kernel of the plan, and a record states the mean of those of equal programs; NULL:
// nothing was measured, and the records must be used.
void tuning_write(const Plan *plan, const char *model, const double *cycles, Text *out);

#endif
