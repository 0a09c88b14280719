// SPDX-License-Identifier: Apache-2.0
// Reads expressions as numbers in mixed radix (the iteration maps of TVM's `DetectIterMap` play
// this role). A loop, or a fused number, is a source; each must be used up by its digits, none of
// which is used twice, for an expression to take each of its values once.
#include "arith/mixed_radix.h"

bool radix_refuse(RadixCheck *check, const char *format, const char *name) {
  if (!check->reason) check->reason = arena_printf(&check->analyzer->context->arena, format, name);
  return false;
}

bool radix_same(RadixCheck *check, const Form *a, const Form *b) {
  return form_zero(check->analyzer, form_sub(check->analyzer, a, b)) == VERDICT_YES;
}

static bool free_of_sources(const RadixCheck *check, const Form *f) {
  for (int i = 0; i < check->source_count; i++)
    if (form_uses(f, check->sources[i].e)) return false;
  return true;
}

// ---- Predicates

// The extent of a number of `extent` values after the predicate's upper bounds on it.
const Form *radix_cut_extent(RadixCheck *check, const Form *f, const Form *extent) {
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

bool radix_gather_clauses(RadixCheck *check, Expr *e) {
  if (expr_is_true(e)) return true;
  if (e->op == EXPR_AND)
    return radix_gather_clauses(check, e->args[0]) && radix_gather_clauses(check, e->args[1]);
  const Form *f;
  bool order = e->op != EXPR_EQ && e->op != EXPR_NE;
  if (check->clause_count == MOST_CLAUSES || !order || !comparison_form(check->analyzer, e, &f))
    return radix_refuse(check, "the predicate has a condition that does not bound an index%s", "");
  check->clauses[check->clause_count++] = (Clause){.form = f};
  return true;
}

// ---- Numbers

static Source *find_source(RadixCheck *check, const Expr *e) {
  for (int i = 0; i < check->source_count; i++)
    if (check->sources[i].e == e) return &check->sources[i];
  return NULL;
}

// The source of a digit: a loop, or a fused number that is added when it is new.
static Source *digit_source(RadixCheck *check, Expr *base) {
  Source *source = find_source(check, base);
  if (source) return source;
  const Form *f = form_of(check->analyzer, base);
  if (f->count == 1 && f->terms[0].atom == expr_strip_widening(base)) return NULL;
  const Form *extent = radix_number_extent(check, f);
  if (!extent || check->source_count == MOST_SOURCES) return NULL;
  source = &check->sources[check->source_count++];
  *source = (Source){.e = base, .extent = radix_cut_extent(check, f, extent)};
  return source;
}

// The number of values that a digit takes; NULL when it does not take all of them equally often.
static const Form *digit_extent(RadixCheck *check, const Source *source, const ArithDigit *d) {
  Analyzer *analyzer = check->analyzer;
  if (d->radix) return form_const(analyzer, source->extent->type, d->radix);
  if (d->cut == 1) return source->extent;
  const Form *count = form_divide(analyzer, source->extent, d->cut);
  bool whole = count && radix_same(check, form_scale(analyzer, count, d->cut), source->extent);
  return whole ? count : NULL;
}

static bool use_digit(RadixCheck *check, Source *source, const ArithDigit *d) {
  if (source->use_count == MOST_USES) return false;
  source->uses[source->use_count].cut = d->cut;
  source->uses[source->use_count++].radix = d->radix;
  return true;
}

// Reads m * io with a loop io as the digit io with the weight m.
static ArithDigit move_symbols(RadixCheck *check, ArithDigit d) {
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

bool radix_digits(RadixCheck *check, const Form *f, WeightedDigit *places, int *count,
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
    places[i] = (WeightedDigit){weight, extent, source, d->cut};
  }
  return true;
}

// The number of values of f when f is a mixed-radix number that starts at 0; NULL otherwise.
const Form *radix_number_extent(RadixCheck *check, const Form *f) {
  Analyzer *analyzer = check->analyzer;
  WeightedDigit places[LONGEST_FORM];
  const Form *constant, *next = form_const(analyzer, f->type, 1);
  int count;
  int64_t zero;
  if (f->count > LONGEST_FORM / 2 || !radix_digits(check, f, places, &count, &constant))
    return NULL;
  if (!form_is_const(constant, &zero) || zero != 0) return NULL;
  while (count) {
    int i = 0;
    while (i < count && !radix_same(check, places[i].weight, next)) i++;
    if (i == count) return NULL;
    next = form_mul(analyzer, next, places[i].extent);
    places[i] = places[--count];
    if (!next) return NULL;
  }
  return next;
}

const Form *radix_without_sources(RadixCheck *check, const Form *f) {
  Analyzer *analyzer = check->analyzer;
  const Form *fixed = form_const(analyzer, f->type, 0);
  for (int i = 0; i < f->count; i++) {
    const Form *term = form_term(analyzer, f->type, f->terms[i].coef, f->terms[i].atom);
    if (free_of_sources(check, term)) fixed = form_add(analyzer, fixed, term);
  }
  return fixed;
}

// ---- Sources used up

static int use_at(const Source *source, int64_t cut) {
  int found = -1;
  for (int i = 0; i < source->use_count; i++)
    if (source->uses[i].cut == cut) found = found == -1 ? i : -2;
  return found;
}

// The digits' cuts and radices chain up to the source's extent: 1, 1*r, 1*r*s …
static bool is_used_up(RadixCheck *check, const Source *source) {
  int64_t cut = 1, extent;
  for (int used = 0; used < source->use_count; used++) {
    int at = use_at(source, cut);
    if (at < 0) return false;
    if (!source->uses[at].radix) return used == source->use_count - 1;
    if (!mul_fits(cut, source->uses[at].radix, &cut)) return false;
  }
  return form_is_const(source->extent, &extent) && extent == cut;
}

bool radix_clauses_used(RadixCheck *check) {
  for (int i = 0; i < check->clause_count; i++)
    if (!check->clauses[i].used)
      return radix_refuse(check, "the predicate leaves out iterations%s", "");
  return true;
}

bool radix_sources_used_up(RadixCheck *check) {
  for (int i = 0; i < check->source_count; i++) {
    const Source *source = &check->sources[i];
    const char *name = source->e->op == EXPR_VAR ? source->e->as.var->name : "(fused)";
    if (source->use_count == 0)
      return radix_refuse(check, "the iterations of loop %s repeat the block", name);
    if (!is_used_up(check, source))
      return radix_refuse(check, "the digits of %s are not each used once", name);
  }
  return radix_clauses_used(check);
}

// ---- Loops

void radix_add_loops(RadixCheck *check, const VarRange *loops, int count) {
  Analyzer *analyzer = check->analyzer;
  for (int i = 0; i < count; i++) {
    analyzer_bind(analyzer, loops[i].var, loops[i].min, loops[i].extent);
    const Form *extent = form_of_simplified(analyzer, loops[i].extent);
    int64_t constant;
    if (form_is_const(extent, &constant) && constant == 1) continue;
    const Form *min = form_of_simplified(analyzer, loops[i].min);
    bool from_zero = form_is_const(min, &constant) && constant == 0;
    if (!from_zero || check->source_count == MOST_SOURCES / 2) {
      radix_refuse(check, "loop %s does not begin at 0", loops[i].var->as.var->name);
      return;
    }
    check->sources[check->source_count++] = (Source){.e = loops[i].var, .extent = extent};
  }
}

void radix_cut_loops(RadixCheck *check) {
  int loops = check->source_count;
  for (int i = 0; i < loops; i++)
    check->sources[i].extent = radix_cut_extent(
        check, form_of(check->analyzer, check->sources[i].e), check->sources[i].extent);
}

// ---- Digits that do not overlap

bool radix_digits_apart(RadixCheck *check) {
  for (int i = 0; i < check->source_count; i++) {
    const Source *source = &check->sources[i];
    for (int a = 0; a < source->use_count; a++)
      for (int b = 0; b < source->use_count; b++) {
        if (a == b || source->uses[a].cut > source->uses[b].cut) continue;
        int64_t end = 0, radix = source->uses[a].radix;
        bool ends = radix && mul_fits(source->uses[a].cut, radix, &end);
        if (!ends || end > source->uses[b].cut)
          return radix_refuse(check, "two digits of %s overlap",
                              source->e->op == EXPR_VAR ? source->e->as.var->name : "(fused)");
      }
  }
  return true;
}
