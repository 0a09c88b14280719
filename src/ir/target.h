// SPDX-License-Identifier: Apache-2.0
// Targets in attributes, as T.target(…) states them.
#ifndef PLEAT_IR_TARGET_H
#define PLEAT_IR_TARGET_H

#include "ir/ir.h"

// Is the value of an attribute T.target(config, host)?
bool expr_is_target(const Expr *e);

// The dictionary (EXPR_DICT) of all that the target states or implies. It has one entry for each
// key, in any order.
Expr *target_normal_form(Context *context, const Expr *target);

#endif
