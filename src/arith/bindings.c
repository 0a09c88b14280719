// SPDX-License-Identifier: Apache-2.0
// Checks that the bindings of a block enumerate its domain, each point once. A binding is read as a
// mixed-radix number whose digits are digits of loops, or of fused numbers that are mixed-radix
// themselves (arith/mixed_radix.h):
//   v = io*16 + ii where io*16 + ii < 100        weights 1 and 16, cut to 100 by the predicate
//   v = f // 7, u = f % 7 with f = io*16 + ii    both digits of the fused number f
// Each loop, and each fused number, must be used up by its digits, none of which is used twice. A
// map of another form is enumerated when it is small, and rejected otherwise.
#include "arith/mixed_radix.h"

// ---- Bindings

static bool check_var(RadixCheck *check, const BlockVar *v) {
  Analyzer *analyzer = check->analyzer;
  const char *name = v->var->as.var->name;
  const Form *wanted = form_of_simplified(analyzer, v->extent);
  const Form *f = form_sub(analyzer, form_of_simplified(analyzer, v->binding),
                           form_of_simplified(analyzer, v->min));
  const Form *extent = f ? radix_number_extent(check, f) : NULL;
  if (!extent) return radix_refuse(check, "the binding of %s is not a fused or split loop", name);
  extent = radix_cut_extent(check, f, extent);
  Verdict enough = form_sign(analyzer, form_sub(analyzer, extent, wanted));
  if (enough == VERDICT_NO)
    return radix_refuse(check, "the binding of %s does not reach its whole range", name);
  if (!radix_same(check, extent, wanted))
    return radix_refuse(check, "the binding of %s is not proved to end where its range does", name);
  return true;
}

static bool check_numbers(RadixCheck *check, const Block *block, const VarRange *loops, int count) {
  radix_add_loops(check, loops, count);
  if (check->reason) return false;
  if (!radix_gather_clauses(check, analyzer_simplify(check->analyzer, block->predicate)))
    return false;
  radix_cut_loops(check);
  for (int i = 0; i < block->var_count; i++)
    if (!check_var(check, &block->vars[i])) return false;
  return radix_sources_used_up(check);
}

// ---- Enumeration of small maps

enum { MOST_POINTS = 1 << 16, MOST_LOOPS = 32 };

typedef struct Box {
  int rank;
  int64_t min[MOST_LOOPS], extent[MOST_LOOPS], size;
} Box;

static bool box_axis(Box *box, Analyzer *analyzer, Expr *min, Expr *extent) {
  int64_t *low = &box->min[box->rank], *count = &box->extent[box->rank];
  if (!form_is_const(form_of_simplified(analyzer, min), low) ||
      !form_is_const(form_of_simplified(analyzer, extent), count) || *count < 0)
    return false;
  box->rank++;
  return mul_fits(box->size, *count, &box->size) && box->size <= MOST_POINTS;
}

static bool box_next(const Box *box, int64_t *values) {
  for (int i = box->rank - 1; i >= 0; i--) {
    if (++values[i] < box->min[i] + box->extent[i]) return true;
    values[i] = box->min[i];
  }
  return false;
}

// The row-major number of the block's point in its domain; -1 when the point is outside or has no
// value.
static int64_t domain_place(const Block *block, const Box *domain, Expr *const *vars,
                            const int64_t *values, int count) {
  int64_t place = 0;
  for (int i = 0; i < block->var_count; i++) {
    int64_t v;
    if (!expr_value(block->vars[i].binding, vars, values, count, &v)) return -1;
    v -= domain->min[i];
    if (v < 0 || v >= domain->extent[i]) return -1;
    place = place * domain->extent[i] + v;
  }
  return place;
}

static bool enumerate(Analyzer *analyzer, const Block *block, const Box *domain, const Box *space,
                      Expr *const *vars) {
  BitSet met = bit_set_new(analyzer->arena, (int)domain->size);
  int64_t values[MOST_LOOPS], runs, count = 0;
  memcpy(values, space->min, sizeof values);
  if (space->size == 0) return domain->size == 0;
  do {
    if (!expr_value(block->predicate, vars, values, space->rank, &runs)) return false;
    if (!runs) continue;
    int64_t place = domain_place(block, domain, vars, values, space->rank);
    if (place < 0 || bit_set_has(&met, (int)place)) return false;
    bit_set_add(&met, (int)place);
    count++;
  } while (box_next(space, values));
  return count == domain->size;
}

static bool check_points(Analyzer *analyzer, const Block *block, const VarRange *loops, int count) {
  Box domain = {.size = 1}, space = {.size = 1};
  Expr *vars[MOST_LOOPS];
  if (count > MOST_LOOPS || block->var_count > MOST_LOOPS) return false;
  for (int i = 0; i < count; i++) {
    vars[i] = loops[i].var;
    if (!box_axis(&space, analyzer, loops[i].min, loops[i].extent)) return false;
  }
  for (int i = 0; i < block->var_count; i++)
    if (!box_axis(&domain, analyzer, block->vars[i].min, block->vars[i].extent)) return false;
  return enumerate(analyzer, block, &domain, &space, vars);
}

const char *bindings_check(Analyzer *analyzer, const Block *block, const VarRange *loops,
                           int loop_count) {
  RadixCheck check = {.analyzer = analyzer};
  int mark = analyzer_mark(analyzer);
  analyzer_enter(analyzer);
  bool good = check_numbers(&check, block, loops, loop_count);
  analyzer_leave(analyzer);
  analyzer_reset(analyzer, mark);
  if (good) return NULL;
  analyzer_enter(analyzer);
  good = check_points(analyzer, block, loops, loop_count);
  analyzer_leave(analyzer);
  if (good) return NULL;
  return check.reason;
}
