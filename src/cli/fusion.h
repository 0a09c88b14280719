// SPDX-License-Identifier: Apache-2.0
// Shows which operators are fused and which are not, for `plan`: as a few lines, or as a table of
// all kernels.
#ifndef PLEAT_CLI_FUSION_H
#define PLEAT_CLI_FUSION_H

#include "cli/plan_view.h"

void fusion_print_summary(const View *view);
void fusion_print(const View *view);

#endif
