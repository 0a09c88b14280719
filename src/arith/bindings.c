// SPDX-License-Identifier: Apache-2.0
// Checks that the bindings of a block enumerate its domain, each point once. A binding is read as a
// mixed-radix number whose digits are digits of loops, or of fused numbers that are mixed-radix
// themselves (the iteration maps of TVM's `DetectIterMap` play this role):
//   v = io*16 + ii where io*16 + ii < 100        weights 1 and 16, cut to 100 by the predicate
//   v = f // 7, u = f % 7 with f = io*16 + ii    both digits of the fused number f
// Each loop, and each fused number, must be used up by its digits, none of which is used twice. A
// map of another form is enumerated when it is small, and rejected otherwise.
#include "arith/internal.h"

enum { MOST_SOURCES = 64, MOST_USES = 8, MOST_CLAUSES = 16 };

// A loop, or a fused number: an expression that takes the values 0 … extent - 1.
typedef struct Source {
  Expr *e;
  const Form *extent;
  int use_count;
  struct {
    int64_t cut, radix;
  } uses[MOST_USES];
} Source;

typedef struct Clause { // form >= 0
  const Form *form;
  bool used;
} Clause;

typedef struct Check {
  Analyzer *analyzer;
  int source_count, clause_count;
  Source sources[MOST_SOURCES];
  Clause clauses[MOST_CLAUSES];
  const char *reason;
} Check;

static bool refuse(Check *check, const char *format, const char *name) {
  if (!check->reason) check->reason = arena_printf(&check->analyzer->context->arena, format, name);
  return false;
}

static bool same_value(Check *check, const Form *a, const Form *b) {
  return form_zero(check->analyzer, form_sub(check->analyzer, a, b)) == VERDICT_YES;
}

static bool free_of_sources(const Check *check, const Form *f) {
  for (int i = 0; i < check->source_count; i++)
    if (form_uses(f, check->sources[i].e)) return false;
  return true;
}

// ---- Predicates

// The extent of a number of `extent` values after the predicate's upper bounds on it.
static const Form *cut_extent(Check *check, const Form *f, const Form *extent) {
  for (int i = 0; i < check->clause_count; i++) {
    Clause *clause = &check->clauses[i];
    const Form *end =
        form_add_const(check->analyzer, form_add(check->analyzer, clause->form, f), 1);
    if (!end || !free_of_sources(check, end)) continue;
    const Form *spare = form_sub(check->analyzer, extent, end);
    bool cuts = form_nonnegative(check->analyzer, spare);
    clause->used |=
        cuts || form_nonnegative(check->analyzer, form_scale(check->analyzer, spare, -1));
    if (cuts) extent = end;
  }
  return extent;
}

static bool gather_clauses(Check *check, Expr *e) {
  if (expr_is_true(e)) return true;
  if (e->op == EXPR_AND)
    return gather_clauses(check, e->args[0]) && gather_clauses(check, e->args[1]);
  const Form *f;
  bool order = e->op != EXPR_EQ && e->op != EXPR_NE;
  if (check->clause_count == MOST_CLAUSES || !order || !comparison_form(check->analyzer, e, &f))
    return refuse(check, "the predicate has a condition that does not bound an index%s", "");
  check->clauses[check->clause_count++] = (Clause){.form = f};
  return true;
}

// ---- Numbers

static Source *find_source(Check *check, const Expr *e) {
  for (int i = 0; i < check->source_count; i++)
    if (check->sources[i].e == e) return &check->sources[i];
  return NULL;
}

static const Form *number_extent(Check *check, const Form *f);

// The source of a digit: a loop, or a fused number that is added when it is new.
static Source *digit_source(Check *check, Expr *base) {
  Source *source = find_source(check, base);
  if (source) return source;
  const Form *f = form_of(check->analyzer, base);
  if (f->count == 1 && f->terms[0].atom == expr_strip_widening(base)) return NULL;
  const Form *extent = number_extent(check, f);
  if (!extent || check->source_count == MOST_SOURCES) return NULL;
  source = &check->sources[check->source_count++];
  *source = (Source){.e = base, .extent = cut_extent(check, f, extent)};
  return source;
}

// The number of values that a digit takes; NULL when it does not take all of them equally often.
static const Form *digit_extent(Check *check, const Source *source, const ArithDigit *d) {
  Analyzer *analyzer = check->analyzer;
  if (d->radix) return form_const(analyzer, source->extent->type, d->radix);
  if (d->cut == 1) return source->extent;
  const Form *count = form_divide(analyzer, source->extent, d->cut);
  bool whole = count && same_value(check, form_scale(analyzer, count, d->cut), source->extent);
  return whole ? count : NULL;
}

static bool use_digit(Check *check, Source *source, const ArithDigit *d) {
  if (source->use_count == MOST_USES) return false;
  source->uses[source->use_count].cut = d->cut;
  source->uses[source->use_count++].radix = d->radix;
  return true;
}

// Reads m * io with a loop io as the digit io with the weight m.
static ArithDigit move_symbols(Check *check, ArithDigit d) {
  enum { MOST_FACTORS = 8 };
  Expr *factors[MOST_FACTORS];
  if (d.base->op != EXPR_MUL || d.cut != 1 || d.radix || d.cofactor) return d;
  int count = product_factors(d.base, factors, MOST_FACTORS), at = -1;
  for (int i = 0; i < count; i++)
    if (find_source(check, factors[i])) at = at == -1 ? i : -2;
  if (at < 0 || count < 2) return d;
  d.base = factors[at];
  factors[at] = factors[count - 1];
  d.cofactor = product_of(check->analyzer, factors, count - 1);
  return d;
}

typedef struct WeightedDigit {
  const Form *weight, *extent;
} WeightedDigit;

static bool find_places(Check *check, const Form *f, WeightedDigit *places, int *count,
                        const Form **constant) {
  Analyzer *analyzer = check->analyzer;
  const Digits *digits = form_digits(analyzer, f);
  *constant = form_const(analyzer, f->type, digits->constant);
  *count = digits->count;
  for (int i = 0; i < digits->count; i++) {
    const ArithDigit moved = move_symbols(check, digits->items[i]), *d = &moved;
    Source *source = digit_source(check, d->base);
    const Form *extent = source ? digit_extent(check, source, d) : NULL;
    if (!extent || !use_digit(check, source, d)) return false;
    const Form *weight = form_const(analyzer, f->type, d->coef);
    if (d->cofactor) weight = form_mul(analyzer, weight, form_of(analyzer, d->cofactor));
    if (d->coef < 0) { // this digit counts down
      const Form *last = form_add_const(analyzer, extent, -1);
      *constant = form_add(analyzer, *constant, form_mul(analyzer, weight, last));
      weight = form_scale(analyzer, weight, -1);
    }
    if (!*constant || !weight) return false;
    places[i] = (WeightedDigit){weight, extent};
  }
  return true;
}

// The number of values of f when f is a mixed-radix number that starts at 0; NULL otherwise.
static const Form *number_extent(Check *check, const Form *f) {
  Analyzer *analyzer = check->analyzer;
  WeightedDigit places[LONGEST_FORM];
  const Form *constant, *next = form_const(analyzer, f->type, 1);
  int count;
  int64_t zero;
  if (f->count > LONGEST_FORM / 2 || !find_places(check, f, places, &count, &constant)) return NULL;
  if (!form_is_const(constant, &zero) || zero != 0) return NULL;
  while (count) {
    int i = 0;
    while (i < count && !same_value(check, places[i].weight, next)) i++;
    if (i == count) return NULL;
    next = form_mul(analyzer, next, places[i].extent);
    places[i] = places[--count];
    if (!next) return NULL;
  }
  return next;
}

// ---- Sources used up

static int use_at(const Source *source, int64_t cut) {
  int found = -1;
  for (int i = 0; i < source->use_count; i++)
    if (source->uses[i].cut == cut) found = found == -1 ? i : -2;
  return found;
}

// The digits' cuts and radices chain up to the source's extent: 1, 1*r, 1*r*s …
static bool is_used_up(Check *check, const Source *source) {
  int64_t cut = 1, extent;
  for (int used = 0; used < source->use_count; used++) {
    int at = use_at(source, cut);
    if (at < 0) return false;
    if (!source->uses[at].radix) return used == source->use_count - 1;
    if (!mul_fits(cut, source->uses[at].radix, &cut)) return false;
  }
  return form_is_const(source->extent, &extent) && extent == cut;
}

static bool check_sources(Check *check) {
  for (int i = 0; i < check->source_count; i++) {
    const Source *source = &check->sources[i];
    const char *name = source->e->op == EXPR_VAR ? source->e->as.var->name : "(fused)";
    if (source->use_count == 0)
      return refuse(check, "the iterations of loop %s repeat the block", name);
    if (!is_used_up(check, source))
      return refuse(check, "the digits of %s are not each used once", name);
  }
  for (int i = 0; i < check->clause_count; i++)
    if (!check->clauses[i].used) return refuse(check, "the predicate leaves out iterations%s", "");
  return true;
}

// ---- Bindings

static bool check_var(Check *check, const BlockVar *v) {
  Analyzer *analyzer = check->analyzer;
  const char *name = v->var->as.var->name;
  const Form *wanted = form_of_simplified(analyzer, v->extent);
  const Form *f = form_sub(analyzer, form_of_simplified(analyzer, v->binding),
                           form_of_simplified(analyzer, v->min));
  const Form *extent = f ? number_extent(check, f) : NULL;
  if (!extent) return refuse(check, "the binding of %s is not a fused or split loop", name);
  extent = cut_extent(check, f, extent);
  Verdict enough = form_sign(analyzer, form_sub(analyzer, extent, wanted));
  if (enough == VERDICT_NO)
    return refuse(check, "the binding of %s does not reach its whole range", name);
  if (!same_value(check, extent, wanted))
    return refuse(check, "the binding of %s is not proved to end where its range does", name);
  return true;
}

static void add_loops(Check *check, const VarRange *loops, int count) {
  Analyzer *analyzer = check->analyzer;
  for (int i = 0; i < count; i++) {
    analyzer_bind(analyzer, loops[i].var, loops[i].min, loops[i].extent);
    const Form *extent = form_of_simplified(analyzer, loops[i].extent);
    int64_t constant;
    if (form_is_const(extent, &constant) && constant == 1) continue;
    const Form *min = form_of_simplified(analyzer, loops[i].min);
    bool from_zero = form_is_const(min, &constant) && constant == 0;
    if (!from_zero || check->source_count == MOST_SOURCES / 2) {
      refuse(check, "loop %s does not begin at 0", loops[i].var->as.var->name);
      return;
    }
    check->sources[check->source_count++] = (Source){.e = loops[i].var, .extent = extent};
  }
}

static void cut_loops(Check *check) {
  int loops = check->source_count;
  for (int i = 0; i < loops; i++)
    check->sources[i].extent =
        cut_extent(check, form_of(check->analyzer, check->sources[i].e), check->sources[i].extent);
}

static bool check_numbers(Check *check, const Block *block, const VarRange *loops, int count) {
  add_loops(check, loops, count);
  if (check->reason) return false;
  if (!gather_clauses(check, analyzer_simplify(check->analyzer, block->predicate))) return false;
  cut_loops(check);
  for (int i = 0; i < block->var_count; i++)
    if (!check_var(check, &block->vars[i])) return false;
  return check_sources(check);
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
  Check check = {.analyzer = analyzer};
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
