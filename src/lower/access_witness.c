// SPDX-License-Identifier: Apache-2.0
// Looks for an iteration in which an index leaves its extent. Loops of few iterations are tried
// completely; of a long loop, the first and last iterations and some between.
#include "lower/pass.h"

enum { MOST_TRIALS = 1 << 12, MOST_LOOPS = 16, ENDS = 2, BETWEEN = 3 };

typedef struct WitnessSearch {
  Context *context;
  const AccessScope *scope;
  Expr *index, *extent;
  AccessWitness *out;
  Expr *vars[MOST_LOOPS];
  int64_t values[MOST_LOOPS];
  int trials;
} WitnessSearch;

// The value of an expression without lets, at the loops that have a value.
static bool value_at(const WitnessSearch *search, int known, Expr *e, int64_t *value) {
  for (int i = search->scope->lets.count - 1; i >= 0; i--) {
    const AccessLet *let = &search->scope->lets.items[i];
    if (expr_uses(e, let->var)) {
      Map values = map_new(&search->context->scratch);
      map_put(&values, let->var, let->value);
      e = substitute_expr(search->context, e, &values);
    }
  }
  return expr_value(e, search->vars, search->values, known, value);
}

static bool all_hold(const WitnessSearch *search, int known, const ExprArray *conditions) {
  for (int i = 0; i < conditions->count; i++) {
    int64_t holds;
    if (!value_at(search, known, conditions->items[i], &holds) || !holds) return false;
  }
  return true;
}

static bool is_outside(WitnessSearch *search) {
  int known = search->scope->loops.count;
  int64_t index, extent;
  search->trials++;
  if (!value_at(search, known, search->index, &index) ||
      !value_at(search, known, search->extent, &extent) || (index >= 0 && index < extent))
    return false;
  if (!all_hold(search, known, &search->scope->conditions) ||
      !all_hold(search, known, &search->scope->inner))
    return false;
  AccessWitness *out = search->out;
  *out = (AccessWitness){.index = index, .extent = extent};
  out->vars = arena_copy(&search->context->arena, search->vars, sizeof(Expr *) * (size_t)known);
  out->values =
      arena_copy(&search->context->arena, search->values, sizeof(int64_t) * (size_t)known);
  out->count = known;
  return true;
}

// The iteration that is tried as number `trial`; false when all were.
static bool iteration(int64_t extent, int trial, int64_t *at) {
  enum { PARTS = BETWEEN + 1 };
  if (extent <= ENDS + BETWEEN) return (*at = trial) < extent;
  int64_t last = extent - 1, part = trial - 1; // last * part may have no int64
  int64_t between = last / PARTS * part + last % PARTS * part / PARTS;
  *at = trial == 0 ? 0 : trial == 1 ? last : between;
  return trial < ENDS + BETWEEN;
}

static bool try_loop(WitnessSearch *search, int loop) {
  if (loop == search->scope->loops.count) return is_outside(search);
  const VarRange *range = &search->scope->loops.items[loop];
  int64_t min, extent, at;
  if (!value_at(search, loop, range->min, &min) || !value_at(search, loop, range->extent, &extent))
    return false;
  for (int trial = 0; search->trials < MOST_TRIALS && iteration(extent, trial, &at); trial++) {
    search->vars[loop] = range->var;
    if (!add_fits(min, at, &search->values[loop])) continue;
    if (try_loop(search, loop + 1)) return true;
  }
  return false;
}

bool access_find_witness(Context *context, const AccessScope *scope, Expr *index, Expr *extent,
                         AccessWitness *out) {
  WitnessSearch search = {context, scope, index, extent, out};
  return scope->loops.count <= MOST_LOOPS && try_loop(&search, 0);
}

const char *access_witness_text(Context *context, const AccessWitness *witness) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < witness->count; i++)
    text_printf(&text, "%s%s = %lld", i ? ", " : " with ", witness->vars[i]->as.var->name,
                (long long)witness->values[i]);
  return text_string(&text);
}
