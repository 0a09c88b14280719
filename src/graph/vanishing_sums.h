// SPDX-License-Identifier: Apache-2.0
// Which sums need results that are exactly 0, or accurate relative to themselves: vanishing_sums.c.
#ifndef PLEAT_VANISHING_SUMS_H
#define PLEAT_VANISHING_SUMS_H

#include "graph/stages.h"

// Where the sum that the stage computes is 0, does a stage that depends on it divide by a number
// near 0, take its logarithm, or ask whether it is 0? Then a small error there becomes a large one.
// True also when too many stages depend on the sum. Needs StageTensor.constant.
bool vanishing_sum_matters(StageGraph *stages, const Stage *sum);

#endif
