// SPDX-License-Identifier: Apache-2.0
// Keeps the facts of an analysis in scopes, and remembers the results that were found under them. A
// result is stamped with the latest fact at the time it was found and becomes invalid when that
// fact is dropped. A new fact about an expression that was met before raises a barrier, behind
// which older results are not used.
#include "arith/internal.h"

// ---- The store

Analyzer *analyzer_new_in(Context *context, Arena *arena) {
  Analyzer *analyzer = arena_new(arena, Analyzer);
  analyzer->context = context;
  analyzer->arena = arena;
  analyzer->infos = map_new(arena);
  array_push(arena, &analyzer->serials, ++analyzer->serial);
  return analyzer;
}

Analyzer *analyzer_new(Context *context) {
  return analyzer_new_in(context, &context->arena);
}

enum { FIRST_PASSING = 1 << 10, LARGEST_PASSING = 64 << 10 };

static Passing *passing_block(Analyzer *analyzer, size_t at_least) {
  size_t size = analyzer->current ? 2 * analyzer->current->size : FIRST_PASSING;
  size = MAX_OF(MIN_OF(size, (size_t)LARGEST_PASSING), at_least);
  Passing *block = arena_alloc(analyzer->arena, sizeof *block + size);
  block->size = size;
  return block;
}

void *passing_alloc(Analyzer *analyzer, size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (!analyzer->nesting)
    bug(analyzer->context, "a form is made outside of the questions that keep its memory");
  if (!analyzer->passing) analyzer->passing = analyzer->current = passing_block(analyzer, size);
  while (analyzer->current->size - analyzer->used < size) {
    if (!analyzer->current->next) analyzer->current->next = passing_block(analyzer, size);
    analyzer->current = analyzer->current->next;
    analyzer->used = 0;
  }
  void *p = analyzer->current->data + analyzer->used;
  analyzer->used += size;
  return p;
}

PassingMark passing_mark(const Analyzer *analyzer) {
  return (PassingMark){analyzer->current, analyzer->used};
}

void passing_reset(Analyzer *analyzer, PassingMark mark) {
  analyzer->current = mark.block ? mark.block : analyzer->passing;
  analyzer->used = mark.used;
}

void analyzer_enter(Analyzer *analyzer) {
  analyzer->nesting++;
}

void analyzer_leave(Analyzer *analyzer) {
  if (--analyzer->nesting) return;
  analyzer->current = analyzer->passing;
  analyzer->used = 0;
}

Info *analyzer_info(Analyzer *analyzer, Expr *e) {
  Info *info = map_find(&analyzer->infos, e);
  if (info) return info;
  info = arena_new(analyzer->arena, Info);
  map_put(&analyzer->infos, e, info);
  return info;
}

bool stamp_holds(const Analyzer *analyzer, Stamp stamp) {
  return stamp.serial && stamp.depth <= analyzer->facts.count && stamp.depth >= analyzer->barrier &&
         analyzer->serials.items[stamp.depth] == stamp.serial;
}

Stamp stamp_now(const Analyzer *analyzer) {
  return (Stamp){analyzer->facts.count, array_last(&analyzer->serials)};
}

int analyzer_mark(const Analyzer *analyzer) {
  return analyzer->facts.count;
}

static void count_fact(Analyzer *analyzer, const Fact *fact, int step) {
  analyzer->sign_count += fact->kind == FACT_SIGN ? step : 0;
  analyzer->truth_count += fact->kind == FACT_TRUTH ? step : 0;
  analyzer->named_count += fact->kind == FACT_NAMED ? step : 0;
  analyzer->divisor_count += fact->kind == FACT_RANGE && fact->divisor > 1 ? step : 0;
  analyzer->range_count += fact->kind == FACT_RANGE && (fact->first || fact->last) ? step : 0;
}

void analyzer_reset(Analyzer *analyzer, int mark) {
  while (analyzer->facts.count > mark) {
    Fact *fact = analyzer->facts.items[--analyzer->facts.count];
    analyzer->serials.count--;
    analyzer->barrier = fact->barrier;
    count_fact(analyzer, fact, -1);
    if (fact->atom) analyzer_info(analyzer, fact->atom)->fact = fact->shadowed;
  }
}

// Reuses the memory of a dropped fact when there is one.
static Fact *next_fact(Analyzer *analyzer) {
  int depth = analyzer->facts.count;
  if (depth < analyzer->most_facts) {
    analyzer->facts.count++;
    return analyzer->facts.items[depth];
  }
  array_push(analyzer->arena, &analyzer->facts, arena_new(analyzer->arena, Fact));
  analyzer->most_facts = analyzer->facts.count;
  return array_last(&analyzer->facts);
}

static void push_fact(Analyzer *analyzer, Fact fact) {
  Fact *kept = next_fact(analyzer);
  *kept = fact;
  kept->first = form_keep(analyzer, fact.first);
  kept->last = form_keep(analyzer, fact.last);
  kept->form = form_keep(analyzer, fact.form);
  kept->barrier = analyzer->barrier;
  bool fresh = false;
  if (kept->atom) {
    Info *info = analyzer_info(analyzer, kept->atom);
    fresh = kept->atom->op == EXPR_VAR && !info->fact && !info->seen_serial;
    kept->shadowed = info->fact;
    info->fact = kept;
  }
  array_push(analyzer->arena, &analyzer->serials, ++analyzer->serial);
  if (!fresh) analyzer->barrier = analyzer->facts.count;
  count_fact(analyzer, kept, 1);
}

void analyzer_fence(Analyzer *analyzer) {
  push_fact(analyzer, (Fact){.kind = FACT_FENCE});
}

// ---- Ranges and values

static const Fact no_range = {.kind = FACT_RANGE, .bounds = {NO_LOW, NO_HIGH}, .divisor = 1};

// A copy of the known range of the atom, for the caller to narrow.
static Fact range_of(Analyzer *analyzer, Expr *atom) {
  Fact *fact = analyzer_info(analyzer, atom)->fact;
  Fact copy = fact && fact->kind == FACT_RANGE ? *fact : no_range;
  copy.atom = atom;
  return copy;
}

static const Form *unless_const(const Form *f) {
  return f && f->count ? f : NULL;
}

// c * atom + k >= 0 is a bound of the atom.
static void narrow(Analyzer *analyzer, const Form *f) {
  int64_t coef = f->terms[0].coef;
  Fact fact = range_of(analyzer, f->terms[0].atom);
  int64_t bound = coef > 0 ? ceil_div(-f->constant, coef) : floor_div(f->constant, -coef);
  if (coef > 0)
    fact.bounds.low = MAX_OF(fact.bounds.low, bound);
  else
    fact.bounds.high = MIN_OF(fact.bounds.high, bound);
  push_fact(analyzer, fact);
}

static void assume_sign(Analyzer *analyzer, const Form *f);

// The only product in a sum, which has a positive coefficient; -1 without one.
static int only_product(const Form *f) {
  int found = -1;
  for (int i = 0; i < f->count; i++) {
    if (f->terms[i].atom->op != EXPR_MUL) continue;
    if (found >= 0 || f->terms[i].coef <= 0) return -1;
    found = i;
  }
  return found;
}

// a * b * ... > 0, with no factor that may be negative: each of them is at least 1. The other terms
// of the sum, such as -i in a * b - i - 1 >= 0, have their largest values.
static void assume_factors(Analyzer *analyzer, const Form *f) {
  enum { MOST_FACTORS = 4 };
  Expr *factors[MOST_FACTORS];
  const Form *rest[MOST_FACTORS];
  int at = only_product(f);
  if (at < 0) return;
  const Form *product = form_of(analyzer, f->terms[at].atom);
  const Form *others = form_add_scaled(analyzer, f, product, -f->terms[at].coef);
  if (!others || form_bounds(analyzer, others).high >= 0) return; // NO_HIGH is not below 0
  int count = product_factors(f->terms[at].atom, factors, MOST_FACTORS);
  for (int i = 0; i < count; i++) {
    rest[i] = form_of(analyzer, factors[i]);
    if (!form_nonnegative(analyzer, rest[i])) return;
  }
  for (int i = 0; count > 1 && i < count; i++)
    assume_sign(analyzer, form_add_const(analyzer, rest[i], -1));
}

// Takes `f >= 0` for a fact in what follows.
static void assume_sign(Analyzer *analyzer, const Form *f) {
  if (!f || f->count == 0) return;
  Fact *known = analyzer_info(analyzer, f->terms[0].atom)->fact;
  if (f->count == 1 && (!known || known->kind == FACT_RANGE)) narrow(analyzer, f);
  push_fact(analyzer, (Fact){.kind = FACT_SIGN, .form = f});
  assume_factors(analyzer, f);
}

// As assume_sign, and takes what x // c >= k says of x for a fact too.
static void assume_sign_of_base(Analyzer *analyzer, const Form *f) {
  const Form *base = form_drop_division(analyzer, f);
  assume_sign(analyzer, f);
  if (base != f) assume_sign(analyzer, base);
}

static void bind_range(Analyzer *analyzer, Expr *var, const Form *first, const Form *last,
                       bool kept) {
  Fact fact = no_range;
  fact.atom = var;
  fact.kept = kept;
  if (first) fact.bounds.low = form_bounds(analyzer, first).low;
  if (last) fact.bounds.high = form_bounds(analyzer, last).high;
  fact.first = unless_const(first);
  fact.last = unless_const(last);
  push_fact(analyzer, fact);
  const Form *steps = form_sub(analyzer, last, first);
  if (unless_const(steps)) assume_sign(analyzer, steps); // else the loop does not run
}

static void bind_form(Analyzer *analyzer, Expr *atom, const Form *value) {
  push_fact(analyzer, (Fact){.kind = FACT_VALUE, .atom = atom, .form = value});
}

// The extent of a loop that has an iteration: max(n - 2, 0) is n - 2 then. NULL: as it is written.
static Expr *running_extent(Expr *extent) {
  int64_t least;
  for (int i = 0; extent->op == EXPR_MAX && i < 2; i++)
    if (expr_as_int(extent->args[i], &least) && least <= 0) return extent->args[1 - i];
  return NULL;
}

// Regions keep the extent as it is written, which is not negative.
static void assume_running(Analyzer *analyzer, Expr *var, const Form *first, Expr *extent) {
  Expr *running = running_extent(extent);
  if (!running) return;
  const Form *steps = form_add_const(analyzer, form_of_simplified(analyzer, running), -1);
  const Form *left = form_sub(analyzer, form_add(analyzer, first, steps), form_of(analyzer, var));
  if (!left) return;
  if (unless_const(steps)) assume_sign(analyzer, steps);
  push_fact(analyzer, (Fact){.kind = FACT_SIGN, .form = left, .of_range = true});
}

void analyzer_bind(Analyzer *analyzer, Expr *var, Expr *min, Expr *extent) {
  if (!dtype_is_index(var->type)) return;
  analyzer_enter(analyzer);
  const Form *first = form_of_simplified(analyzer, min);
  const Form *count = form_of_simplified(analyzer, extent);
  if (count->count == 0 && count->constant == 1)
    bind_form(analyzer, var, form_typed(analyzer, first, var->type));
  else
    bind_range(analyzer, var, first, form_add_const(analyzer, form_add(analyzer, first, count), -1),
               false);
  assume_running(analyzer, var, first, extent);
  analyzer_leave(analyzer);
}

void analyzer_bind_kept(Analyzer *analyzer, Expr *var, Expr *min, Expr *extent) {
  if (!dtype_is_index(var->type)) return;
  analyzer_enter(analyzer);
  const Form *first = form_of_simplified(analyzer, min);
  const Form *end = form_add(analyzer, first, form_of_simplified(analyzer, extent));
  bind_range(analyzer, var, first, form_add_const(analyzer, end, -1), true);
  assume_running(analyzer, var, first, extent);
  analyzer_leave(analyzer);
}

static bool is_memory(const Expr *e) {
  return op_table[e->op].class == OP_MEMORY || expr_is_call(e);
}

static bool enter_memory(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= is_memory(e);
  return true;
}

bool expr_reads_memory(Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = enter_memory}, e);
  return found;
}

static bool is_partial(const Expr *e) {
  return (e->op == EXPR_LOAD && e->count) || expr_may_divide_by_zero(e);
}

static bool has_effect(const Expr *e) {
  return op_table[e->op].flags & OP_EFFECT;
}

// The answers are remembered, because operands are shared.
bool analyzer_has_trait(Analyzer *analyzer, Expr *e, Trait trait) {
  static bool (*const is_own[])(const Expr *) = {
      [TRAIT_PARTIAL] = is_partial, [TRAIT_MEMORY] = is_memory, [TRAIT_EFFECT] = has_effect};
  if (!e->count) return is_own[trait](e);
  Memo *memo = &analyzer_info(analyzer, e)->traits[trait];
  if (*memo != MEMO_NONE) return *memo == MEMO_YES;
  bool has = is_own[trait](e);
  for (int i = 0; i < e->count && !has; i++) has = analyzer_has_trait(analyzer, e->args[i], trait);
  *memo = has ? MEMO_YES : MEMO_NO;
  return has;
}

// The facts that hold for the value hold for the variable too, whenever the value is read.
static void bind_range_of(Analyzer *analyzer, Expr *var, Expr *value, const Form *form) {
  Fact fact = no_range;
  fact.atom = var;
  fact.bounds = form_bounds(analyzer, form);
  form_modular(analyzer, form, &fact.divisor, &fact.rest);
  if (fact.divisor == 0) fact.divisor = 1, fact.rest = 0; // a constant has equal bounds instead
  if (!expr_reads_memory(value)) fact.first = fact.last = unless_const(form);
  push_fact(analyzer, fact);
}

// A boolean variable, whose truth tells that of the condition that is its value.
static bool bind_condition(Analyzer *analyzer, Expr *var, Expr *value) {
  if (!dtype_is_bool(var->type) || var->type.lanes != 1) return false;
  if (!expr_reads_memory(value))
    push_fact(analyzer, (Fact){.kind = FACT_NAMED, .atom = var, .condition = value});
  return true;
}

void analyzer_bind_value(Analyzer *analyzer, Expr *var, Expr *value) {
  if (bind_condition(analyzer, var, value)) return;
  if (!dtype_is_index(var->type) || !dtype_is_index(value->type)) return;
  analyzer_enter(analyzer);
  const Form *form = form_of_simplified(analyzer, value);
  if (expr_reads_memory(value))
    bind_range_of(analyzer, var, value, form);
  else
    bind_form(analyzer, var, form_typed(analyzer, form, var->type));
  analyzer_leave(analyzer);
}

void analyzer_bind_named(Analyzer *analyzer, Expr *var, Expr *value) {
  if (bind_condition(analyzer, var, value)) return;
  if (!dtype_is_index(var->type) || !dtype_is_index(value->type)) return;
  analyzer_enter(analyzer);
  bind_range_of(analyzer, var, value, form_of_simplified(analyzer, value));
  analyzer_leave(analyzer);
}

// ---- Assumptions

static void assume_one(Analyzer *analyzer, Expr *condition);

static void assume_truth(Analyzer *analyzer, Expr *condition, bool truth) {
  const Fact *known = analyzer_info(analyzer, condition)->fact;
  Expr *value = known && known->kind == FACT_NAMED ? known->condition : NULL;
  push_fact(analyzer, (Fact){.kind = FACT_TRUTH, .atom = condition, .truth = truth});
  if (value) assume_one(analyzer, truth ? value : expr_unary(analyzer->context, EXPR_NOT, value));
}

// The term whose variable f == 0 gives in terms of the others: the variable that was created last.
// -1 without one.
static int solvable_term(Analyzer *analyzer, const Form *f) {
  int best = -1;
  for (int i = 0; i < f->count; i++) {
    const Term *t = &f->terms[i];
    bool unit = (t->coef == 1 || t->coef == -1) && t->atom->op == EXPR_VAR;
    Fact *known = unit ? analyzer_info(analyzer, t->atom)->fact : NULL;
    if (!unit || (known && known->kind != FACT_RANGE)) continue;
    const Form *others = form_add_scaled(analyzer, f, form_of(analyzer, t->atom), -t->coef);
    if (others && !form_uses(others, t->atom)) best = i;
  }
  return best;
}

// x - c * (x // c) == r gives the residue of x modulo c.
static bool assume_rest(Analyzer *analyzer, const Form *f) {
  const Digits *digits = form_digits(analyzer, f);
  const ArithDigit *d = &digits->items[0];
  if (digits->count != 1 || d->cut != 1 || !d->radix || d->cofactor) return false;
  if (d->coef == -1) return assume_rest(analyzer, form_scale(analyzer, f, -1));
  if (d->coef != 1 || form_of(analyzer, d->base)->terms[0].atom != d->base) return false;
  Fact fact = range_of(analyzer, d->base);
  if (d->radix % fact.divisor) return false;
  fact.divisor = d->radix;
  fact.rest = floor_mod(-digits->constant, d->radix);
  push_fact(analyzer, fact);
  return true;
}

void analyzer_keep_names(Analyzer *analyzer) {
  analyzer->keeps_names = true;
}

// Makes both ends of the range of a variable a value.
static void narrow_to(Analyzer *analyzer, Fact range, const Form *value) {
  range.bounds = interval_meet(range.bounds, form_bounds(analyzer, value));
  range.first = range.last = unless_const(value);
  range.kept = true;
  push_fact(analyzer, range);
}

// Gives a variable a value that it is known to have; its range becomes assumptions on the value.
static void assume_value(Analyzer *analyzer, Expr *var, const Form *value) {
  Fact range = range_of(analyzer, var);
  if (analyzer->keeps_names)
    narrow_to(analyzer, range, form_typed(analyzer, value, var->type));
  else
    bind_form(analyzer, var, form_typed(analyzer, value, var->type));
  const Form *first = fact_range_end(analyzer, &range, false);
  const Form *last = fact_range_end(analyzer, &range, true);
  if (first) assume_sign(analyzer, form_sub(analyzer, value, first));
  if (last) assume_sign(analyzer, form_sub(analyzer, last, value));
}

static void assume_zero(Analyzer *analyzer, const Form *f) {
  int i = solvable_term(analyzer, f);
  if (i >= 0) {
    Term t = f->terms[i];
    const Form *rest = form_add_scaled(analyzer, f, form_of(analyzer, t.atom), -t.coef);
    rest = form_scale(analyzer, rest, -t.coef);
    if (rest) assume_value(analyzer, t.atom, rest);
    return;
  }
  assume_rest(analyzer, f);
  for (int sign = 1; sign >= -1; sign -= 2) {
    const Form *side = form_scale(analyzer, f, sign);
    if (side) assume_sign_of_base(analyzer, side);
  }
}

// f != 0 narrows f >= 0 to f >= 1, and f <= 0 to f <= -1.
static void assume_nonzero(Analyzer *analyzer, const Form *f) {
  for (int sign = 1; sign >= -1; sign -= 2) {
    const Form *side = form_scale(analyzer, f, sign);
    const Form *next = side ? form_add_const(analyzer, side, -1) : NULL;
    if (next && form_sign(analyzer, side) == VERDICT_YES) assume_sign(analyzer, next);
  }
}

// A number as a condition is the number != 0.
static Expr *as_comparison(Analyzer *analyzer, Expr *condition) {
  bool is_number = condition->op == EXPR_CAST && dtype_is_index(condition->args[0]->type);
  if (!is_number) return condition;
  Expr *zero = expr_int(analyzer->context, condition->args[0]->type, 0);
  return expr_binary(analyzer->context, EXPR_NE, condition->args[0], zero);
}

static void assume_comparison(Analyzer *analyzer, Expr *condition) {
  const Form *f;
  Expr *compared = as_comparison(analyzer, condition);
  if (compared->op == EXPR_NE && comparison_form(analyzer, compared, &f) && f->count)
    assume_nonzero(analyzer, f);
  if (condition->op != EXPR_NE && comparison_form(analyzer, condition, &f) && f->count) {
    if (condition->op == EXPR_EQ)
      assume_zero(analyzer, f);
    else
      assume_sign_of_base(analyzer, f);
    return;
  }
  assume_truth(analyzer, condition, true);
}

static void assume_falsehood(Analyzer *analyzer, Expr *condition) {
  Expr *compared = as_comparison(analyzer, condition);
  assume_truth(analyzer, condition, false);
  if (compared != condition)
    assume_one(analyzer,
               expr_binary(analyzer->context, EXPR_EQ, compared->args[0], compared->args[1]));
}

static void assume_one(Analyzer *analyzer, Expr *condition) {
  if (condition->op == EXPR_AND) {
    assume_one(analyzer, condition->args[0]);
    assume_one(analyzer, condition->args[1]);
    return;
  }
  Expr *stated = condition;
  condition = analyzer_simplify(analyzer, condition);
  if (condition->op == EXPR_INT) return;
  if (condition->op == EXPR_AND)
    assume_one(analyzer, condition);
  else if (condition->op == EXPR_NOT)
    assume_falsehood(analyzer, condition->args[0]);
  else
    assume_comparison(analyzer, condition);
  if (stated->op == EXPR_NOT && condition->op == EXPR_OR) // the opposite may stand elsewhere
    assume_truth(analyzer, stated->args[0], false);
}

void analyzer_assume(Analyzer *analyzer, Expr *condition) {
  if (!dtype_is_bool(condition->type) || condition->type.lanes != 1) return;
  analyzer_enter(analyzer);
  assume_one(analyzer, condition);
  analyzer_leave(analyzer);
}

void analyzer_assume_runs(Analyzer *analyzer, Expr *extent) {
  if (expr_as_int(extent, &(int64_t){0}) || expr_reads_memory(extent)) return;
  Expr *none = expr_int(analyzer->context, extent->type, 0);
  analyzer_assume(analyzer, expr_lt(analyzer->context, none, extent));
}

void analyzer_assume_sizes(Analyzer *analyzer, const PrimFunc *func) {
  Context *context = analyzer->context;
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    for (int d = 0; buffer && d < buffer->rank; d++) {
      Expr *extent = buffer->shape[d], *none = expr_int(context, extent->type, 0);
      if (!expr_as_int(extent, &(int64_t){0}))
        analyzer_assume(analyzer, expr_binary(context, EXPR_LE, none, extent));
    }
  }
}
