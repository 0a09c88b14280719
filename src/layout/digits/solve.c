// SPDX-License-Identifier: Apache-2.0
// The inverse of a map by propagation. Equations `form over logical axes = form over physical axes`
// start as `output j = p_j`. Each round takes out what is known, separates the digits that are left
// by their weights, and learns floors, residues and XORs of bits, until every axis is known.
//
//   p0 = ⌊c/16⌋, p1 = c mod 16            =>   c = 16·p0 + p1
//   p0 = i, p1 = 8·⌊j/8⌋ + (j%8 ^ i%8)    =>   j = 8·⌊p1/8⌋ + (p1%8 ^ p0%8)
#include "layout/digits/form.h"

enum { MAX_KNOWN = 256, MAX_EQUATIONS = 96, MAX_ROUNDS = 64 };

typedef struct DigitEquation {
  const DigitForm *form;  // logical
  const DigitForm *value; // physical
} DigitEquation;

// ⌊(base + offset)/cut⌋, or that modulo `radix` when it is not 0.
typedef struct Known {
  int base;
  int64_t offset, cut, radix;
  const DigitForm *value;
} Known;

// ⊕ of the bits in the mask.
typedef struct Parity {
  BitMask mask;
  const DigitForm *value;
} Parity;

typedef struct DigitSolver {
  DigitSpace *l, *p;
  DigitEquation equations[MAX_EQUATIONS];
  Known known[MAX_KNOWN];
  Parity parities[MAX_BITS];
  int equation_count, known_count, parity_count;
  bool progress;
} DigitSolver;

// One part of an equation: weight · (digit, or parity), 0 <= part < radix.
typedef struct SolveItem {
  int64_t weight, radix;
  bool reversed, is_parity;
  Digit digit;
  BitMask mask;
} SolveItem;

// ---- What is known -----------------------------------------------------------------------------

static const DigitForm *multiple(DigitSpace *d, const DigitForm *f, int64_t a) {
  return layout_form_linear(d, f, a, NULL, 0);
}

// A known floor whose cut divides this one, so that it says ⌊(base + offset)/cut⌋.
static const Known *find_floor(const DigitSolver *s, int base, int64_t offset, int64_t cut) {
  for (int i = 0; i < s->known_count; i++) {
    const Known *k = &s->known[i];
    if (k->base == base && !k->radix && cut % k->cut == 0 && (offset - k->offset) % k->cut == 0)
      return k;
  }
  return NULL;
}

// A known residue of which that of ⌊(base + offset)/cut⌋ modulo `radix` is a digit.
static const Known *find_residue(const DigitSolver *s, int base, int64_t offset, int64_t cut,
                                 int64_t radix) {
  for (int i = 0; i < s->known_count; i++) {
    const Known *k = &s->known[i];
    if (k->base == base && k->radix && cut % k->cut == 0 && (offset - k->offset) % k->cut == 0 &&
        k->radix % (cut / k->cut) == 0 && k->radix / (cut / k->cut) % radix == 0)
      return k;
  }
  return NULL;
}

// ⌊(base + offset)/cut⌋ where it is known.
static const DigitForm *known_floor(DigitSolver *s, int base, int64_t offset, int64_t cut) {
  const Known *k = find_floor(s, base, offset, cut);
  if (!k) return NULL;
  const DigitForm *at = layout_form_add_const(s->p, k->value, (offset - k->offset) / k->cut);
  return layout_form_divide(s->p, at, cut / k->cut);
}

// That modulo `radix`, from a known residue or floor.
static const DigitForm *known_residue(DigitSolver *s, int base, int64_t offset, int64_t cut,
                                      int64_t radix) {
  const Known *k = find_residue(s, base, offset, cut, radix);
  if (k) {
    int64_t steps = (offset - k->offset) / k->cut;
    const DigitForm *y = steps ? layout_form_add_const(s->p, k->value, steps) : k->value;
    if (steps) y = layout_form_modulo(s->p, y, k->radix);
    return layout_form_modulo(s->p, layout_form_divide(s->p, y, cut / k->cut), radix);
  }
  const DigitForm *floor = known_floor(s, base, offset, cut);
  return floor ? layout_form_modulo(s->p, floor, radix) : NULL;
}

// y mod r where y takes at most r values from y₀ on is y: y = y₀ + (y - y₀) mod r.
static void widen_residue(DigitSolver *s, Known *k) {
  int64_t first = k->offset / k->cut;
  int64_t last = (s->l->bases[k->base].extent - 1 + k->offset) / k->cut;
  if (!k->radix || last - first >= k->radix) return;
  if (last >= k->radix)
    k->value = layout_form_add_const(
        s->p, layout_form_modulo(s->p, layout_form_add_const(s->p, k->value, -first), k->radix),
        first);
  k->radix = 0;
}

static void learn(DigitSolver *s, Known k) {
  widen_residue(s, &k);
  if (!k.value || s->known_count == MAX_KNOWN) return;
  if (find_floor(s, k.base, k.offset, k.cut)) return;
  if (k.radix && find_residue(s, k.base, k.offset, k.cut, k.radix)) return;
  s->known[s->known_count++] = k;
  s->progress = true;
}

// y = ⌊(B + o)/c⌋ from y mod r and ⌊(B + o')/c'⌋ = z with c | c', c | o - o', c'/c <= r:
// y = y₀ + ((y mod r) - y₀) mod r with y₀ = (c'z - o' + o)/c.
static void join(DigitSolver *s, const Known *residue, const Known *floor) {
  int64_t c = residue->cut;
  if (floor->base != residue->base || floor->radix || floor->cut % c ||
      (residue->offset - floor->offset) % c || floor->cut / c > residue->radix ||
      find_floor(s, residue->base, residue->offset, c))
    return;
  const DigitForm *start = layout_form_add_const(s->p, multiple(s->p, floor->value, floor->cut / c),
                                                 (residue->offset - floor->offset) / c);
  const DigitForm *rest = layout_form_modulo(
      s->p, layout_form_linear(s->p, residue->value, 1, start, -1), residue->radix);
  learn(s,
        (Known){residue->base, residue->offset, c, 0, layout_form_linear(s->p, start, 1, rest, 1)});
}

// a = y mod r and b = y mod s give y modulo their least common multiple: a + r·t with
// t = (b - a)/g · (r/g)⁻¹ mod s/g, g = gcd(r, s).
static void join_residues(DigitSolver *s, const Known *x, const Known *y) {
  if (x->base != y->base || x->offset != y->offset || x->cut != y->cut) return;
  int64_t gcd = gcd_of(x->radix, y->radix), step = y->radix / gcd, multiple_of;
  if (gcd == x->radix || step == 1 || !mul_fits(x->radix, step, &multiple_of) ||
      find_residue(s, x->base, x->offset, x->cut, multiple_of))
    return;
  const DigitForm *apart = layout_form_linear(s->p, y->value, 1, x->value, -1);
  const DigitForm *steps = multiple(s->p, layout_form_divide(s->p, apart, gcd),
                                    layout_inverse_modulo(x->radix / gcd, step));
  const DigitForm *value =
      layout_form_linear(s->p, x->value, 1, layout_form_modulo(s->p, steps, step), x->radix);
  learn(s, (Known){x->base, x->offset, x->cut, multiple_of, value});
}

static void join_all(DigitSolver *s) {
  for (int i = 0; i < s->known_count; i++)
    for (int j = 0; j < s->known_count && s->known[i].radix; j++)
      join(s, &s->known[i], &s->known[j]);
  for (int i = 1; i < s->known_count; i++)
    for (int j = 0; j < i && s->known[i].radix; j++)
      if (s->known[j].radix) join_residues(s, &s->known[i], &s->known[j]);
}

static const DigitForm *known_digit(DigitSolver *s, const Digit *g) {
  if (g->open) return known_floor(s, g->base, g->offset, g->cut);
  return known_residue(s, g->base, g->offset, g->cut, g->radix);
}

// The value of a logical form whose digits are all known.
static const DigitForm *known_value(DigitSolver *s, const DigitForm *f) {
  Digit digits[MAX_DIGITS];
  int count;
  if (f->xor_count) return NULL;
  f = layout_form_regroup(s->l, f);
  if (!layout_form_digits(s->l, f, digits, &count)) return NULL;
  const DigitForm *sum = layout_form_const(s->p, f->constant);
  for (int i = 0; i < count && sum; i++)
    sum = layout_form_linear(s->p, sum, 1, known_digit(s, &digits[i]), digits[i].weight);
  return sum;
}

// Derived bases: a known one gives an equation for its form, known parts give the base.
static void relate_bases(DigitSolver *s) {
  for (int i = s->l->axis_count; i < s->l->base_count; i++) {
    const FormBase *base = &s->l->bases[i];
    if (base->kind != BASE_FORM) continue;
    const DigitForm *value = known_value(s, base->args[0]), *known = known_floor(s, i, 0, 1);
    if (value && !known) learn(s, (Known){i, 0, 1, 0, value});
    if (!known || value || s->equation_count == MAX_EQUATIONS) continue;
    bool there = false;
    for (int j = 0; j < s->equation_count; j++)
      there |=
          s->equations[j].value == known || layout_form_same(s->equations[j].form, base->args[0]);
    if (there) continue;
    s->equations[s->equation_count++] = (DigitEquation){base->args[0], known};
    s->progress = true;
  }
}

// ---- Parities ----------------------------------------------------------------------------------

static void add_parity(DigitSolver *s, Parity p) {
  for (int i = 0; i < s->parity_count; i++) {
    BitMask pivot = s->parities[i].mask;
    int at =
        pivot.words[0] ? __builtin_ctzll(pivot.words[0]) : 64 + __builtin_ctzll(pivot.words[1]);
    if (!mask_has(p.mask, at)) continue;
    p.mask = mask_xor(p.mask, pivot);
    p.value = layout_form_bitwise(s->p, LAYOUT_XOR, p.value, s->parities[i].value);
  }
  if (mask_empty(p.mask) || !p.value || s->parity_count == MAX_BITS) return;
  s->parities[s->parity_count++] = p;
  s->progress = true;
}

static BitMask one_bit(int at) {
  BitMask mask = {{0, 0}};
  mask.words[at / 64] = (uint64_t)1 << (at % 64);
  return mask;
}

static int lowest(BitMask m) {
  return m.words[0] ? __builtin_ctzll(m.words[0]) : 64 + __builtin_ctzll(m.words[1]);
}

// Gauss: from the last row up, each pivot is removed from the rows before it.
static void reduce_parities(DigitSolver *s) {
  for (int i = s->parity_count - 1; i > 0; i--) {
    int pivot = lowest(s->parities[i].mask);
    for (int j = 0; j < i; j++) {
      Parity *row = &s->parities[j];
      if (!mask_has(row->mask, pivot)) continue;
      const DigitForm *value =
          layout_form_bitwise(s->p, LAYOUT_XOR, row->value, s->parities[i].value);
      if (!value) continue;
      row->mask = mask_xor(row->mask, s->parities[i].mask);
      row->value = value;
    }
  }
}

// Bits that became known enter the system; single bits leave it as residues.
static void exchange_bits(DigitSolver *s) {
  for (int i = 0; i < s->l->bit_count && s->parity_count; i++) {
    const FormBit *bit = &s->l->bits[i];
    const DigitForm *value = known_residue(s, bit->base, bit->offset, bit->cut, 2);
    if (value) add_parity(s, (Parity){one_bit(i), value});
  }
  reduce_parities(s);
  for (int i = 0; i < s->parity_count; i++) {
    if (mask_count(s->parities[i].mask) != 1) continue;
    const FormBit *bit = &s->l->bits[lowest(s->parities[i].mask)];
    learn(s, (Known){bit->base, bit->offset, bit->cut, 2, s->parities[i].value});
  }
}

// ---- Equations ---------------------------------------------------------------------------------

// Derived bases read as such; the least value on the left is 0 where it has XORs, for their parts
// to read as bits, else there is no constant. False when it does not fit.
static bool prepare(DigitSolver *s, DigitEquation *e) {
  const DigitForm *form = layout_form_regroup(s->l, e->form);
  Bounds b = {form->constant, 0};
  if (form->xor_count && !layout_form_bounds(s->l, form, &b)) return false;
  e->value = layout_form_add_const(s->p, e->value, -b.low);
  e->form = layout_form_add_const(s->l, form, -b.low);
  return e->form && e->value;
}

// Moves known floors to the other side. False when the equation cannot be carried on.
static bool take_out_known(DigitSolver *s, DigitEquation *e) {
  const DigitForm *form = e->form, *value = e->value;
  for (int i = 0; i < e->form->count; i++) {
    const FormTerm *t = &e->form->terms[i];
    const DigitForm *floor = known_floor(s, t->base, t->offset, t->cut);
    if (!floor) continue;
    form = layout_form_linear(s->l, form, 1, &(DigitForm){.terms = t, .count = 1}, -1);
    value = layout_form_linear(s->p, value, 1, floor, -t->coefficient);
  }
  *e = (DigitEquation){form, value};
  return form && value;
}

static bool is_known_bit(const DigitSolver *s, const FormBit *bit) {
  return find_floor(s, bit->base, bit->offset, bit->cut) ||
         find_residue(s, bit->base, bit->offset, bit->cut, 2);
}

// The bits of a mask that are known.
static BitMask known_bits(const DigitSolver *s, BitMask mask) {
  BitMask known = {{0, 0}};
  for (int i = 0; i < s->l->bit_count; i++)
    if (mask_has(mask, i) && is_known_bit(s, &s->l->bits[i])) known = mask_xor(known, one_bit(i));
  return known;
}

// Where the parts of a form occupy separate bits, what is known of its XORs can be XORed away from
// the whole: f ^ Y = f without the known bits, Y = Σ weight·(known bit).
static void take_out_known_bits(DigitSolver *s, DigitEquation *e) {
  const DigitForm *rest = e->form, *taken = layout_form_const(s->l, 0);
  for (int i = 0; i < e->form->xor_count; i++) {
    const FormXor *item = &e->form->xors[i];
    BitMask known = known_bits(s, item->mask);
    if (mask_count(known) != 1) continue;
    BitMask left = mask_xor(item->mask, known);
    int64_t weight = item->coefficient < 0 ? -item->coefficient : item->coefficient;
    taken = layout_form_linear(s->l, taken, 1, layout_form_parity(s->l, known, weight), 1);
    rest = layout_form_linear(s->l, rest, 1, &(DigitForm){.xors = item, .xor_count = 1}, -1);
    rest = layout_form_linear(s->l, rest, 1, layout_form_parity(s->l, left, item->coefficient), 1);
  }
  if (!rest || !taken || rest == e->form || !layout_form_is_placed(s->l, e->form)) return;
  Bounds reach;
  const DigitForm *value = known_value(s, taken);
  if (!value || !layout_form_bounds(s->l, e->form, &reach) || reach.high >= INT64_MAX / 4) return;
  int64_t modulus = 1;
  while (modulus <= reach.high) modulus *= 2;
  value = layout_form_bitwise(s->p, LAYOUT_XOR, layout_form_modulo(s->p, e->value, modulus), value);
  if (!value) return;
  *e = (DigitEquation){rest, value};
  s->progress = true;
}

static void digit_items(const DigitForm *f, const DigitSpace *l, SolveItem *items, int *count) {
  Digit digits[MAX_DIGITS];
  int n;
  *count = 0;
  if (layout_form_digits(l, f, digits, &n)) {
    for (int i = 0; i < n; i++)
      items[(*count)++] =
          (SolveItem){.weight = digits[i].weight, .radix = digits[i].radix, .digit = digits[i]};
    return;
  }
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    int64_t radix = (l->bases[t->base].extent - 1 + t->offset) / t->cut + 1;
    Digit digit = {t->coefficient, t->offset, t->cut, radix, t->base, true};
    items[(*count)++] = (SolveItem){.weight = t->coefficient, .radix = radix, .digit = digit};
  }
}

static void drop_known_items(DigitSolver *s, SolveItem *items, int *count,
                             const DigitForm **value) {
  int kept = 0;
  for (int i = 0; i < *count; i++) {
    const Digit *g = &items[i].digit;
    const DigitForm *known = items[i].is_parity || g->open
                                 ? NULL
                                 : known_residue(s, g->base, g->offset, g->cut, g->radix);
    if (known)
      *value = layout_form_linear(s->p, *value, 1, known, -items[i].weight);
    else
      items[kept++] = items[i];
  }
  *count = kept;
}

// The parts with positive weights, sorted; reversed digits move the constant of *value.
static bool equation_items(DigitSolver *s, const DigitForm *f, SolveItem *items, int *count,
                           const DigitForm **value) {
  if (f->count + f->xor_count > MAX_DIGITS) return false;
  *value = layout_form_add_const(s->p, *value, -f->constant);
  digit_items(f, s->l, items, count);
  for (int i = 0; i < f->xor_count; i++)
    items[(*count)++] = (SolveItem){
        .weight = f->xors[i].coefficient, .radix = 2, .is_parity = true, .mask = f->xors[i].mask};
  drop_known_items(s, items, count, value);
  for (int i = 0; i < *count; i++) {
    int64_t reach;
    if (items[i].weight > 0) continue;
    if (!mul_fits(items[i].weight, items[i].radix - 1, &reach) || reach == INT64_MIN) return false;
    *value = layout_form_add_const(s->p, *value, -reach);
    items[i].weight = -items[i].weight;
    items[i].reversed = true;
  }
  for (int i = 1; i < *count; i++)
    for (int j = i; j && items[j].weight < items[j - 1].weight; j--) {
      SolveItem t = items[j];
      items[j] = items[j - 1];
      items[j - 1] = t;
    }
  return *value != NULL;
}

static void learn_item(DigitSolver *s, const SolveItem *item, const DigitForm *value) {
  if (value && item->reversed)
    value = layout_form_add_const(s->p, multiple(s->p, value, -1), item->radix - 1);
  if (!value) return;
  if (item->is_parity)
    add_parity(s, (Parity){item->mask, layout_form_modulo(s->p, value, 2)});
  else
    learn(s, (Known){item->digit.base, item->digit.offset, item->digit.cut,
                     item->digit.open ? 0 : item->digit.radix, value});
}

static const DigitForm *items_form(DigitSolver *s, const SolveItem *items, int count,
                                   int64_t divisor) {
  const DigitForm *sum = layout_form_const(s->l, 0);
  for (int i = 0; i < count; i++) {
    int64_t sign = items[i].reversed ? -1 : 1, weight = items[i].weight / divisor * sign;
    int64_t constant = items[i].reversed ? -weight * (items[i].radix - 1) : 0;
    Digit digit = items[i].digit;
    FormXor parity = {weight, items[i].mask};
    digit.weight = weight;
    const DigitForm *part =
        items[i].is_parity
            ? &(DigitForm){.xors = arena_copy(s->l->arena, &parity, sizeof parity), .xor_count = 1}
            : layout_form_digit(s->l, &digit);
    sum = layout_form_add_const(s->l, layout_form_linear(s->l, sum, 1, part, 1), constant);
  }
  return sum;
}

// A cluster [begin, end) of the items: value mod `above` (0: no items above), over `gcd`.
static void take_cluster(DigitSolver *s, const SolveItem *items, int begin, int end,
                         const DigitForm *value, int64_t gcd, int64_t above) {
  if (above) value = layout_form_modulo(s->p, value, above);
  value = layout_form_divide(s->p, value, gcd);
  if (end - begin == 1)
    return learn_item(s, &items[begin], layout_form_divide(s->p, value, items[begin].weight / gcd));
  const DigitForm *form = items_form(s, items + begin, end - begin, gcd);
  if (!value || !form || s->equation_count == MAX_EQUATIONS) return;
  s->equations[s->equation_count++] = (DigitEquation){form, value};
  s->progress = true;
}

// Splits the items where those below stay under the gcd of those above. False, with nothing done,
// when they stay together.
static bool separate(DigitSolver *s, const SolveItem *items, int count, const DigitForm *value) {
  int64_t gcds[MAX_DIGITS + 1] = {0}, reach = 0;
  int ends[MAX_DIGITS], clusters = 0;
  for (int i = count - 1; i >= 0; i--) gcds[i] = gcd_of(gcds[i + 1], items[i].weight);
  for (int i = 0; i < count; i++) {
    int64_t part;
    if (!mul_fits(items[i].weight, items[i].radix - 1, &part) || !add_fits(reach, part, &reach))
      return false;
    if (i + 1 == count || reach < gcds[i + 1]) ends[clusters++] = i + 1;
  }
  if (clusters == 1 && count > 1) return false;
  for (int i = 0, begin = 0; i < clusters; begin = ends[i++])
    take_cluster(s, items, begin, ends[i], value, gcds[begin], gcds[ends[i]]);
  return true;
}

static bool learn_from(DigitSolver *s, const DigitEquation *e) {
  SolveItem items[MAX_DIGITS];
  int count;
  const DigitForm *value = e->value;
  return equation_items(s, e->form, items, &count, &value) && separate(s, items, count, value);
}

static void keep(DigitSolver *s, DigitEquation e) {
  if (s->equation_count < MAX_EQUATIONS) s->equations[s->equation_count++] = e;
}

// XORs wait a round, for their bits may become known; digits are read before what is known is taken
// out, which may tear them apart.
static void work(DigitSolver *s, DigitEquation e, bool first_round) {
  if (!prepare(s, &e) || layout_form_is_const(e.form)) return;
  if (e.form->xor_count) take_out_known_bits(s, &e);
  if (!prepare(s, &e) || layout_form_is_const(e.form)) return;
  if (e.form->xor_count && first_round) {
    s->progress = true;
    return keep(s, e);
  }
  if (learn_from(s, &e)) return;
  DigitEquation rest = e;
  if (!take_out_known(s, &rest) || layout_form_is_const(rest.form)) return;
  if (!learn_from(s, &rest)) keep(s, e);
}

// Every bit of an equation whose parts occupy separate bits is a parity.
static bool learn_bits(DigitSolver *s, const DigitEquation *e) {
  BitMask masks[WORD];
  uint64_t negated;
  if (!layout_form_bits(s->l, e->form, masks, &negated)) return false;
  for (int i = 0; i < WORD; i++) {
    if (mask_empty(masks[i])) continue;
    const DigitForm *bit = layout_form_divide(s->p, e->value, (int64_t)1 << i);
    bit = layout_form_modulo(s->p, bit, 2);
    if (negated >> i & 1) bit = layout_form_add_const(s->p, multiple(s->p, bit, -1), 1);
    add_parity(s, (Parity){masks[i], bit});
  }
  return s->progress;
}

// The parts of an equation whose weights overlap.
static bool learn_sum(DigitSolver *s, const DigitEquation *e) {
  SolveItem items[MAX_DIGITS];
  SumPart parts[MAX_DIGITS];
  const DigitForm *found[MAX_DIGITS], *value = e->value;
  int count;
  if (!equation_items(s, e->form, items, &count, &value)) return false;
  for (int i = 0; i < count; i++) parts[i] = (SumPart){items[i].weight, items[i].radix};
  if (!layout_solve_sum(s->p, parts, count, value, found)) return false;
  for (int i = 0; i < count; i++) learn_item(s, &items[i], found[i]);
  return s->progress;
}

// What costs more, and makes longer forms, when nothing else goes on.
static void work_stuck(DigitSolver *s) {
  for (int i = 0; i < s->equation_count; i++)
    if (learn_bits(s, &s->equations[i])) return exchange_bits(s);
  for (int i = 0; i < s->equation_count; i++)
    if (learn_sum(s, &s->equations[i])) return join_all(s);
}

static void work_round(DigitSolver *s, bool first) {
  DigitEquation todo[MAX_EQUATIONS];
  int count = s->equation_count;
  memcpy(todo, s->equations, sizeof *todo * (size_t)count);
  s->equation_count = 0;
  for (int i = 0; i < count; i++) work(s, todo[i], first);
  exchange_bits(s);
  join_all(s);
  relate_bases(s);
}

static bool axes_known(DigitSolver *s, const DigitForm **inverse) {
  bool all = true;
  for (int i = 0; i < s->l->axis_count; i++) {
    inverse[i] = s->l->extents[i] == 1 ? layout_form_const(s->p, 0) : known_floor(s, i, 0, 1);
    all = all && inverse[i];
  }
  return all;
}

static void start(DigitSolver *s, DigitSpace *logical, DigitSpace *physical,
                  const DigitForm *const *outputs, int count) {
  s->l = logical;
  s->p = physical;
  s->equation_count = s->known_count = s->parity_count = 0;
  for (int i = 0; i < count; i++)
    s->equations[s->equation_count++] =
        (DigitEquation){outputs[i], layout_form_floor(physical, i, 0, 1)};
}

static bool propagate(DigitSolver *s, const DigitForm **inverse) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    s->progress = false;
    work_round(s, round == 0);
    if (!s->progress) work_stuck(s);
    if (axes_known(s, inverse)) return true;
    if (!s->progress) return false;
  }
  return false;
}

bool layout_solve_inverse(DigitSpace *logical, DigitSpace *physical,
                          const DigitForm *const *outputs, int count, const DigitForm **inverse) {
  DigitSolver s; // only what is counted is read
  start(&s, logical, physical, outputs, count);
  return propagate(&s, inverse);
}

// The known digit of the axis with the least cut that `from` divides.
static const Known *next_known(const DigitSolver *s, int axis, int64_t from) {
  const Known *next = NULL;
  for (int i = 0; i < s->known_count; i++) {
    const Known *k = &s->known[i];
    bool digit = k->base == axis && k->cut % from == 0 && (!k->offset || (k->cut == 1 && k->radix));
    if (digit && (!next || k->cut < next->cut)) next = k;
  }
  return next;
}

// The axis as the sum of those of its digits that are known, from the lowest up; the others 0.
static Known assumed(DigitSolver *s, int axis) {
  const DigitForm *sum = layout_form_const(s->p, 0);
  int64_t from = 1;
  for (const Known *k; sum && (k = next_known(s, axis, from));) {
    const DigitForm *digit = k->value;
    if (k->offset) digit = layout_form_add_const(s->p, digit, -k->offset);
    if (k->radix) digit = layout_form_modulo(s->p, digit, k->radix);
    sum = layout_form_linear(s->p, sum, 1, digit, k->cut);
    if (!k->radix || !mul_fits(k->cut, k->radix, &from)) break;
  }
  return (Known){axis, 0, 1, 0, sum};
}

bool layout_solve_section(DigitSpace *logical, DigitSpace *physical,
                          const DigitForm *const *outputs, int count, const DigitForm **section) {
  DigitSolver s;
  start(&s, logical, physical, outputs, count);
  while (!propagate(&s, section)) {
    int axis = 0;
    while (section[axis]) axis++;
    int known = s.known_count;
    learn(&s, assumed(&s, axis));
    if (s.known_count == known) return false;
  }
  return true;
}

bool layout_solve_checks(DigitSpace *logical, const DigitSpace *physical,
                         const DigitForm *const *outputs, const DigitForm *const *inverse) {
  for (int i = 0; i < logical->axis_count; i++) {
    const DigitForm *back = layout_form_apply(logical, physical, inverse[i], outputs);
    if (!back || !layout_form_equal(logical, back, layout_form_floor(logical, i, 0, 1)))
      return false;
  }
  return true;
}
