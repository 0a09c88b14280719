// SPDX-License-Identifier: Apache-2.0
// Finds the domain of a block variable that a script leaves out: the values that its binding takes,
// where it takes each value from the least to the greatest.
//   vi = T.axis.spatial(io * 32 + ii)   by the digits of the index
//   vi = T.axis.spatial(j % 8)          each residue, where j takes 8 values in succession
//   vi = T.axis.spatial(i * 3 // 2)     by all values, where the loops have constant extents
#include <stdlib.h>

#include "arith/arith.h"
#include "script/parser.h"

typedef struct DomainSearch {
  Context *context;
  Analyzer *analyzer;
  const VarRange *loops;
  int loop_count;
} DomainSearch;

typedef struct DomainRange {
  Expr *min, *extent;
} DomainRange;

static bool values_of(const DomainSearch *search, Expr *e, DomainRange *out);

static bool proves(const DomainSearch *search, ExprOp op, Expr *a, Expr *b) {
  return analyzer_prove(search->analyzer, expr_binary(search->context, op, a, b));
}

static Expr *last_of(const DomainSearch *search, DomainRange values) {
  Expr *end = expr_add(search->context, values.min, values.extent);
  return expr_sub(search->context, end, expr_int(search->context, end->type, 1));
}

static bool set_between(const DomainSearch *search, Expr *first, Expr *last, DomainRange *out) {
  Expr *size = expr_sub(search->context, last, first);
  size = expr_add(search->context, size, expr_int(search->context, size->type, 1));
  out->min = analyzer_simplify_deep(search->analyzer, first);
  out->extent = analyzer_simplify_deep(search->analyzer, size);
  return true;
}

// Values in succession have quotients in succession, and residues too where none is divisible in
// between; as many values as the divisor have all residues.
static bool values_of_division(const DomainSearch *search, const Expr *e, DomainRange *out) {
  Context *context = search->context;
  Expr *divisor = e->args[1];
  DomainRange values;
  if (!proves(search, EXPR_LT, expr_int(context, divisor->type, 0), divisor)) return false;
  if (!values_of(search, e->args[0], &values)) return false;
  Expr *last = last_of(search, values);
  Expr *first_quotient = expr_floor_div(context, values.min, divisor);
  Expr *last_quotient = expr_floor_div(context, last, divisor);
  if (e->op == EXPR_FLOOR_DIV) return set_between(search, first_quotient, last_quotient, out);
  if (proves(search, EXPR_LE, divisor, values.extent)) {
    *out = (DomainRange){expr_int(context, e->type, 0), divisor};
    return true;
  }
  return analyzer_prove_equal(search->analyzer, first_quotient, last_quotient) &&
         set_between(search, expr_floor_mod(context, values.min, divisor),
                     expr_floor_mod(context, last, divisor), out);
}

static bool is_free(const DomainSearch *search, Expr *e) {
  for (int i = 0; i < search->loop_count; i++)
    if (expr_uses(e, search->loops[i].var)) return false;
  return !expr_reads_memory(e);
}

// x + c and x - c
static bool values_of_sum(const DomainSearch *search, const Expr *e, DomainRange *out) {
  int constant = is_free(search, e->args[1]) ? 1 : is_free(search, e->args[0]) ? 0 : -1;
  if (constant < 0 || (e->op == EXPR_SUB && !constant)) return false;
  if (!values_of(search, e->args[!constant], out)) return false;
  out->min = expr_binary(search->context, e->op, out->min, e->args[constant]);
  out->min = analyzer_simplify_deep(search->analyzer, out->min);
  return true;
}

static bool values_of(const DomainSearch *search, Expr *e, DomainRange *out) {
  bool exact;
  index_region(search->analyzer, &e, 1, search->loops, search->loop_count, &out->min, &out->extent,
               &exact);
  if (exact) return true;
  if (e->op == EXPR_FLOOR_DIV || e->op == EXPR_FLOOR_MOD) return values_of_division(search, e, out);
  return (e->op == EXPR_ADD || e->op == EXPR_SUB) && values_of_sum(search, e, out);
}

// ---- All values ---------------------------------------------------------------------------------

enum { MOST_POINTS = 1 << 16, MOST_LOOPS = 16 };

typedef struct LoopPoints {
  const DomainSearch *search;
  int64_t min[MOST_LOOPS], extent[MOST_LOOPS], at[MOST_LOOPS], count;
} LoopPoints;

static bool points_of(const DomainSearch *search, LoopPoints *points) {
  *points = (LoopPoints){.search = search, .count = 1};
  if (search->loop_count > MOST_LOOPS) return false;
  for (int i = 0; i < search->loop_count; i++) {
    if (!expr_as_int(search->loops[i].min, &points->min[i]) ||
        !expr_as_int(search->loops[i].extent, &points->extent[i]) || points->extent[i] < 1 ||
        !mul_fits(points->count, points->extent[i], &points->count) || points->count > MOST_POINTS)
      return false;
    points->at[i] = points->min[i];
  }
  return true;
}

static bool combine(ExprOp op, int64_t a, int64_t b, int64_t *out) {
  *out = op == EXPR_MIN ? MIN_OF(a, b) : MAX_OF(a, b);
  if (op == EXPR_ADD) return add_fits(a, b, out);
  if (op == EXPR_SUB) return sub_fits(a, b, out);
  if (op == EXPR_MUL) return mul_fits(a, b, out);
  if (op == EXPR_FLOOR_DIV) return floor_div_fits(a, b, out);
  if (op == EXPR_FLOOR_MOD) *out = b ? floor_mod(a, b) : 0;
  return op == EXPR_FLOOR_MOD ? b != 0 : op == EXPR_MIN || op == EXPR_MAX;
}

// The value of an index at a point; false: it is not known, or does not fit its type.
static bool value_at(const LoopPoints *points, const Expr *e, int64_t *out) {
  if (expr_as_int(e, out)) return true;
  for (int i = 0; i < points->search->loop_count; i++)
    if (e == points->search->loops[i].var) {
      *out = points->at[i];
      return true;
    }
  int64_t a, b, limit = (int64_t)1 << (e->type.bits - 1);
  return e->count == 2 && e->type.bits < 64 && value_at(points, e->args[0], &a) &&
         value_at(points, e->args[1], &b) && combine(e->op, a, b, out) && *out >= -limit &&
         *out < limit;
}

static bool next_point(LoopPoints *points) {
  for (int i = points->search->loop_count - 1; i >= 0; i--) {
    if (++points->at[i] < points->min[i] + points->extent[i]) return true;
    points->at[i] = points->min[i];
  }
  return false;
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static bool values_by_points(const DomainSearch *search, const Expr *e, DomainRange *out) {
  LoopPoints points;
  if (!points_of(search, &points)) return false;
  int64_t *values = arena_array(&search->context->scratch, int64_t, points.count), count = 0;
  do {
    if (!value_at(&points, e, &values[count++])) return false;
  } while (next_point(&points));
  qsort(values, (size_t)count, sizeof *values, by_value);
  for (int64_t i = 1; i < count; i++)
    if (values[i] > values[i - 1] + 1) return false;
  *out = (DomainRange){expr_int(search->context, e->type, values[0]),
                       expr_int(search->context, e->type, values[count - 1] - values[0] + 1)};
  return true;
}

// ---- The binding --------------------------------------------------------------------------------

// The loops whose variables the binding uses.
static int loops_of(Parser *parser, const Expr *binding, VarRange **loops) {
  int count = 0;
  *loops = arena_array(parser->arena, VarRange, parser->bindings.count);
  for (int i = 0; i < parser->bindings.count; i++) {
    const Binding *b = &parser->bindings.items[i];
    if (b->kind == BOUND_EXPR && b->extent && expr_uses(binding, b->expr))
      (*loops)[count++] = (VarRange){b->expr, b->min, b->extent};
  }
  return count;
}

bool parser_find_domain(Parser *parser, BlockVar *var) {
  VarRange *loops;
  int count = loops_of(parser, var->binding, &loops);
  DomainRange found;
  if (count == 1 && var->binding == loops->var) {
    var->min = loops->min;
    var->extent = loops->extent;
    return true;
  }
  DomainSearch search = {parser->context, analyzer_new(parser->context), loops, count};
  for (int i = 0; i < count; i++) analyzer_assume_runs(search.analyzer, loops[i].extent);
  if (!values_of(&search, var->binding, &found) && !values_by_points(&search, var->binding, &found))
    return false;
  var->min = found.min;
  var->extent = found.extent;
  return true;
}
