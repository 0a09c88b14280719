// SPDX-License-Identifier: Apache-2.0
// Gives the rules as expressions to the tests, which check each rule on random integers.
#ifndef PLEAT_ARITH_RULES_H
#define PLEAT_ARITH_RULES_H

#include "arith/internal.h"

enum { RULE_SLOTS = 6, RULE_INTEGERS = 3 }; // X Y Z integers, then P Q R conditions
typedef struct RuleExprs {
  const char *text;
  Expr *left, *right, *guard;
} RuleExprs;
int rules_count(void);
// Builds rule `number` over the given slots, without folding.
void rule_exprs(Context *context, int number, Expr *const *slots, RuleExprs *out);

#endif
