// SPDX-License-Identifier: Apache-2.0
// Builds, adds and compares forms, finds their bounds, and reads them as digits, for every question
// that normal forms answer. docs/layouts.md has the proofs.
#include "layout/digits/form.h"

DigitSpace layout_digits_new(Context *context, const int64_t *extents, int axis_count) {
  Arena *arena = &context->scratch;
  DigitSpace d = {.context = context,
                  .arena = arena,
                  .extents = extents,
                  .axis_count = axis_count,
                  .base_count = axis_count,
                  .bases = arena_array(arena, FormBase, axis_count + 8)};
  for (int i = 0; i < axis_count; i++)
    d.bases[i] = (FormBase){.kind = BASE_AXIS, .axis = i, .extent = extents[i]};
  return d;
}

// ---- Building ----------------------------------------------------------------------------------

// A form with room for so many terms and XORs behind it.
static DigitForm *new_form(DigitSpace *d, int64_t constant, int terms, int xors) {
  size_t behind = sizeof(FormTerm) * (size_t)terms;
  DigitForm *f = arena_take(d->arena, sizeof *f + behind + sizeof(FormXor) * (size_t)xors);
  *f = (DigitForm){constant, (FormTerm *)(f + 1), (FormXor *)((char *)(f + 1) + behind), 0, 0};
  return f;
}

// The terms and XORs of f, which need not live in the arena, with another constant.
static const DigitForm *copy_form(DigitSpace *d, int64_t constant, const DigitForm *f) {
  DigitForm *copy = new_form(d, constant, f->count, f->xor_count);
  copy->count = f->count;
  copy->xor_count = f->xor_count;
  if (f->count) memcpy((FormTerm *)copy->terms, f->terms, sizeof(FormTerm) * (size_t)f->count);
  if (f->xor_count) memcpy((FormXor *)copy->xors, f->xors, sizeof(FormXor) * (size_t)f->xor_count);
  return copy;
}

const DigitForm *layout_form_const(DigitSpace *d, int64_t value) {
  return new_form(d, value, 0, 0);
}

bool layout_form_is_const(const DigitForm *f) {
  return !f->count && !f->xor_count;
}

// Picks one of the many spellings that a floor has which steps only once on its base. For
// comparisons only, since the result does not show the digit.
static void canonical_step(int64_t extent, int64_t *offset, int64_t *cut) {
  int64_t step = *cut - *offset;
  if (*offset == 0 || extent - 1 + *offset >= 2 * *cut) return;
  bool plain = extent - 1 < 2 * step;
  *cut = plain ? step : extent - step;
  *offset = plain ? 0 : extent - 2 * step;
}

const DigitForm *layout_form_floor(DigitSpace *d, int base, int64_t offset, int64_t cut) {
  const FormBase *b = &d->bases[base];
  int64_t whole = 0, last;
  if (offset < 0 || offset >= cut) {
    whole = floor_div(offset, cut);
    offset -= whole * cut;
  }
  if (b->extent > INT64_MAX / 4 || cut > INT64_MAX / 4) return NULL;
  last = b->extent - 1 + offset;
  if (last < cut) return layout_form_const(d, whole);
  if (b->extent == 2) { // the only floor that varies is the base itself
    offset = 0;
    cut = 1;
  }
  if (cut == 1 && b->kind == BASE_FORM) return layout_form_add_const(d, b->args[0], whole);
  DigitForm *f = new_form(d, whole, 1, 0);
  *(FormTerm *)f->terms = (FormTerm){1, offset, cut, base};
  f->count = 1;
  return f;
}

static int compare_terms(const FormTerm *a, const FormTerm *b) {
  if (a->base != b->base) return a->base < b->base ? -1 : 1;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return (a->cut > b->cut) - (a->cut < b->cut);
}

static int compare_xors(const FormXor *a, const FormXor *b) {
  for (int i = 0; i < 2; i++)
    if (a->mask.words[i] != b->mask.words[i]) return a->mask.words[i] < b->mask.words[i] ? -1 : 1;
  return 0;
}

static bool merge_terms(DigitForm *out, const DigitForm *x, int64_t a, const DigitForm *y,
                        int64_t b) {
  FormTerm *terms = (FormTerm *)out->terms;
  for (int i = 0, j = 0; i < x->count || j < y->count;) {
    int order = i == x->count ? 1 : j == y->count ? -1 : compare_terms(&x->terms[i], &y->terms[j]);
    FormTerm term = order <= 0 ? x->terms[i] : y->terms[j];
    if (!linear_fits(order <= 0 ? x->terms[i].coefficient : 0, a,
                     order >= 0 ? y->terms[j].coefficient : 0, b, &term.coefficient))
      return false;
    i += order <= 0;
    j += order >= 0;
    if (term.coefficient) terms[out->count++] = term;
  }
  return true;
}

static bool merge_xors(DigitForm *out, const DigitForm *x, int64_t a, const DigitForm *y,
                       int64_t b) {
  FormXor *xors = (FormXor *)out->xors;
  for (int i = 0, j = 0; i < x->xor_count || j < y->xor_count;) {
    int order = i == x->xor_count   ? 1
                : j == y->xor_count ? -1
                                    : compare_xors(&x->xors[i], &y->xors[j]);
    FormXor item = order <= 0 ? x->xors[i] : y->xors[j];
    if (!linear_fits(order <= 0 ? x->xors[i].coefficient : 0, a,
                     order >= 0 ? y->xors[j].coefficient : 0, b, &item.coefficient))
      return false;
    i += order <= 0;
    j += order >= 0;
    if (item.coefficient) xors[out->xor_count++] = item;
  }
  return true;
}

const DigitForm *layout_form_linear(DigitSpace *d, const DigitForm *x, int64_t a,
                                    const DigitForm *y, int64_t b) {
  static const DigitForm zero = {0};
  if (!x || (b && !y)) return NULL;
  if (!b) y = &zero;
  if (a == 1 && layout_form_is_const(y)) {
    int64_t moved;
    return mul_fits(y->constant, b, &moved) ? layout_form_add_const(d, x, moved) : NULL;
  }
  int64_t constant;
  if (!linear_fits(x->constant, a, y->constant, b, &constant)) return NULL;
  if (b == 1 && layout_form_is_const(x)) return copy_form(d, constant, y);
  DigitForm *out = new_form(d, constant, x->count + y->count, x->xor_count + y->xor_count);
  return merge_terms(out, x, a, y, b) && merge_xors(out, x, a, y, b) ? out : NULL;
}

const DigitForm *layout_form_times(DigitSpace *d, const DigitForm *x, int64_t a) {
  return layout_form_linear(d, x, a, NULL, 0);
}

const DigitForm *layout_form_add_const(DigitSpace *d, const DigitForm *x, int64_t value) {
  if (!x || !value) return x;
  DigitForm *out = arena_copy(d->arena, x, sizeof *x);
  return add_fits(x->constant, value, &out->constant) ? out : NULL;
}

bool layout_form_same(const DigitForm *a, const DigitForm *b) {
  if (a->constant != b->constant || a->count != b->count || a->xor_count != b->xor_count)
    return false;
  for (int i = 0; i < a->count; i++)
    if (a->terms[i].coefficient != b->terms[i].coefficient ||
        compare_terms(&a->terms[i], &b->terms[i]))
      return false;
  for (int i = 0; i < a->xor_count; i++)
    if (a->xors[i].coefficient != b->xors[i].coefficient || compare_xors(&a->xors[i], &b->xors[i]))
      return false;
  return true;
}

int layout_base_add(DigitSpace *d, FormBase base) {
  if (d->base_count == MAX_BASES) return -1;
  int capacity = d->axis_count + 8;
  while (capacity < d->base_count) capacity *= 2;
  if (d->base_count == capacity) {
    FormBase *bases = arena_array(d->arena, FormBase, capacity * 2);
    memcpy(bases, d->bases, sizeof *bases * (size_t)d->base_count);
    d->bases = bases;
  }
  d->bases[d->base_count] = base;
  return d->base_count++;
}

int layout_base_of_form(DigitSpace *d, const DigitForm *f, int64_t extent) {
  if (f->count == 1 && !f->xor_count && !f->constant && f->terms[0].coefficient == 1 &&
      f->terms[0].cut == 1)
    return f->terms[0].base;
  for (int i = d->axis_count; i < d->base_count; i++)
    if (d->bases[i].kind == BASE_FORM && layout_form_same(d->bases[i].args[0], f)) return i;
  return layout_base_add(d, (FormBase){.kind = BASE_FORM, .extent = extent, .args = {f}});
}

// ---- Digits ------------------------------------------------------------------------------------

static int group_end(const DigitForm *f, int begin) {
  int end = begin + 1;
  while (end < f->count && f->terms[end].base == f->terms[begin].base &&
         f->terms[end].offset == f->terms[begin].offset)
    end++;
  return end;
}

// Reads the terms of one base and offset with cuts c1 | c2 | … as digits: Σ aᵢFᵢ = Σ wᵢdᵢ with
// dᵢ = Fᵢ - rᵢFᵢ₊₁, so wᵢ = aᵢ + rᵢ₋₁wᵢ₋₁.
static bool group_digits(const DigitSpace *d, const FormTerm *terms, int n, Digit *out) {
  int64_t last = d->bases[terms[0].base].extent - 1 + terms[0].offset;
  for (int i = 0; i < n; i++) {
    Digit *digit = &out[i];
    bool open = i + 1 == n;
    *digit = (Digit){terms[i].coefficient, terms[i].offset, terms[i].cut, 0, terms[i].base, open};
    if (!open && terms[i + 1].cut % terms[i].cut) return false;
    digit->radix = open ? last / terms[i].cut + 1 : terms[i + 1].cut / terms[i].cut;
    int64_t carried = 0;
    if (i && (!mul_fits(out[i - 1].weight, out[i - 1].radix, &carried) ||
              !add_fits(digit->weight, carried, &digit->weight)))
      return false;
  }
  return true;
}

static int find_term(const DigitForm *f, const FormTerm *like) {
  for (int i = 0; i < f->count; i++)
    if (compare_terms(&f->terms[i], like) == 0) return i;
  return -1;
}

// f - q·B + q·⌊B/1⌋ for a derived base B of which f contains every term q times: then the floors of
// B read as digits of B. NULL when f does not contain them.
static const DigitForm *regroup_base(DigitSpace *d, const DigitForm *f, int base) {
  const DigitForm *b = d->bases[base].args[0];
  if (!b->count || b->xor_count) return NULL;
  int at = find_term(f, &b->terms[0]);
  int64_t q = at < 0 ? 0 : f->terms[at].coefficient / b->terms[0].coefficient;
  if (!q) return NULL;
  const DigitForm *rest = layout_form_linear(d, f, 1, b, -q);
  if (!rest || rest->count + b->count != f->count) return NULL;
  FormTerm whole = {q, 0, 1, base};
  return layout_form_linear(d, rest, 1, &(DigitForm){.terms = &whole, .count = 1}, 1);
}

static const DigitForm *regroup_bases(DigitSpace *d, const DigitForm *f) {
  if (!f->count || f->terms[f->count - 1].base < d->axis_count) return f;
  const DigitForm *out = f;
  for (int i = 0; i < f->count; i++) {
    int base = f->terms[i].base;
    if (d->bases[base].kind != BASE_FORM || (i && f->terms[i - 1].base == base)) continue;
    const DigitForm *better = regroup_base(d, out, base);
    if (better) out = better;
  }
  return out;
}

// The largest offset of the base of term `at` that is the term's own modulo its cut.
static int64_t other_offset(const DigitForm *f, int at) {
  const FormTerm *t = &f->terms[at];
  int64_t offset = t->offset;
  for (int i = at; i < f->count && f->terms[i].base == t->base; i++)
    if ((f->terms[i].offset - t->offset) % t->cut == 0) offset = f->terms[i].offset;
  return offset;
}

// Rewrites floors of x + p as floors of x + o by ⌊(x + p)/c⌋ = ⌊(x + o)/c⌋ - (o - p)/c where c
// divides o - p, so that they read as digits of x + o.
static const DigitForm *regroup_offsets(DigitSpace *d, const DigitForm *f) {
  const DigitForm *out = f;
  bool any = false;
  for (int i = 0; i < f->count; i++) any |= f->terms[i].offset != 0;
  if (!any) return f;
  for (int i = 0; i < f->count && out; i++) {
    const FormTerm *t = &f->terms[i];
    int64_t o = other_offset(f, i), constant;
    if (o == t->offset || !mul_fits(-t->coefficient, (o - t->offset) / t->cut, &constant)) continue;
    FormTerm moved = *t;
    moved.offset = o;
    out = layout_form_linear(d, out, 1, &(DigitForm){.terms = t, .count = 1}, -1);
    out = layout_form_linear(d, out, 1, &(DigitForm){constant, &moved, NULL, 1, 0}, 1);
  }
  return out ? out : f;
}

const DigitForm *layout_form_regroup(DigitSpace *d, const DigitForm *f) {
  return regroup_offsets(d, regroup_bases(d, f));
}

bool layout_form_equal(DigitSpace *d, const DigitForm *a, const DigitForm *b) {
  const DigitForm *difference = layout_form_linear(d, a, 1, b, -1), *sum = difference;
  for (int i = 0; sum && i < difference->count; i++) {
    const FormTerm *t = &difference->terms[i];
    FormTerm same = *t;
    canonical_step(d->bases[t->base].extent, &same.offset, &same.cut);
    if (same.cut == t->cut) continue;
    sum = layout_form_linear(d, sum, 1, &(DigitForm){.terms = t, .count = 1}, -1);
    const DigitForm *step = layout_form_floor(d, same.base, same.offset, same.cut);
    sum = layout_form_linear(d, sum, 1, step, same.coefficient);
  }
  return sum && layout_form_is_const(sum) && sum->constant == 0;
}

bool layout_form_digits(const DigitSpace *d, const DigitForm *f, Digit *digits, int *count) {
  *count = 0;
  if (f->count > MAX_DIGITS) return false;
  for (int begin = 0, end; begin < f->count; begin = end) {
    end = group_end(f, begin);
    if (!group_digits(d, &f->terms[begin], end - begin, &digits[*count])) return false;
    int kept = *count;
    for (int i = *count; i < *count + end - begin; i++)
      if (digits[i].weight) digits[kept++] = digits[i];
    *count = kept;
  }
  return true;
}

const DigitForm *layout_form_digit(DigitSpace *d, const Digit *digit) {
  const DigitForm *low = layout_form_floor(d, digit->base, digit->offset, digit->cut);
  int64_t cut, weight;
  if (digit->open) return layout_form_times(d, low, digit->weight);
  if (!digit_end(digit, &cut) || !mul_fits(-digit->weight, digit->radix, &weight)) return NULL;
  return layout_form_linear(d, low, digit->weight,
                            layout_form_floor(d, digit->base, digit->offset, cut), weight);
}

// ---- Bounds ------------------------------------------------------------------------------------

static bool widen(Interval *b, int64_t weight, int64_t last) {
  int64_t end;
  return mul_fits(weight, last, &end) &&
         interval_add_fits(*b, (Interval){MIN_OF(end, 0), MAX_OF(end, 0)}, b);
}

// The exact bounds of one chain, from the lowest digit up. Since every offset is less than its cut,
// the digits of the lowest value are 0. `tight` is the range of the digits so far where all digits
// above them equal those of the highest value, `loose` is their range otherwise.
static bool chain_bounds(const DigitSpace *d, const Digit *digits, int n, Interval *out) {
  int64_t last = d->bases[digits[0].base].extent - 1 + digits[0].offset, at_last;
  Interval loose = {0, 0}, tight = {0, 0};
  for (int i = 0; i < n; i++) {
    int64_t high = digit_value(&digits[i], last), w = digits[i].weight;
    Interval less = loose;
    if (!mul_fits(w, high, &at_last) ||
        !interval_add_fits(tight, (Interval){at_last, at_last}, &tight))
      return false;
    if (high > 0) {
      if (!widen(&less, w, high - 1)) return false;
      tight = interval_hull(tight, less);
    }
    if (!widen(&loose, w, digits[i].radix - 1)) return false;
  }
  *out = tight;
  return true;
}

// Bounds term by term, for cuts that are no chain.
static bool loose_bounds(const DigitSpace *d, const FormTerm *terms, int n, Interval *out) {
  *out = (Interval){0, 0};
  for (int i = 0; i < n; i++) {
    int64_t last = d->bases[terms[i].base].extent - 1 + terms[i].offset;
    if (!widen(out, terms[i].coefficient, last / terms[i].cut)) return false;
  }
  return true;
}

static bool group_bounds(const DigitSpace *d, const FormTerm *terms, int n, Interval *out) {
  Digit digits[MAX_DIGITS];
  if (n == 1 || n > MAX_DIGITS || !group_digits(d, terms, n, digits))
    return loose_bounds(d, terms, n, out);
  return chain_bounds(d, digits, n, out);
}

static bool sum_of_bounds(const DigitSpace *d, const DigitForm *f, Interval *out) {
  *out = (Interval){f->constant, f->constant};
  for (int begin = 0, end; begin < f->count; begin = end) {
    Interval group;
    end = group_end(f, begin);
    if (!group_bounds(d, &f->terms[begin], end - begin, &group)) return false;
    if (!interval_add_fits(*out, group, out)) return false;
  }
  for (int i = 0; i < f->xor_count; i++)
    if (!widen(out, f->xors[i].coefficient, 1)) return false;
  return true;
}

bool layout_form_bounds(DigitSpace *d, const DigitForm *f, Interval *out) {
  const DigitForm *grouped = regroup_bases(d, f), *moved = regroup_offsets(d, grouped);
  Interval other;
  if (!sum_of_bounds(d, grouped, out)) return false;
  if (moved != grouped && sum_of_bounds(d, moved, &other)) *out = interval_meet(*out, other);
  return true;
}

bool layout_form_is_plain(const DigitSpace *d, const DigitForm *f) {
  for (int i = 0; i < f->count; i++)
    if (d->bases[f->terms[i].base].kind != BASE_AXIS || f->terms[i].offset) return false;
  return !f->xor_count;
}
