// SPDX-License-Identifier: Apache-2.0
// Claims with what shows them: a proof found by src/layout/proof*.c, the witness, or "by points".
// What the checker does not accept is not given out. docs/layouts.md has the text form.
#include "layout/proofs/goal.h"

#include "layout/check/check.h"
#include "layout/proofs/proof_lower.h"

enum { MAX_SPLITS = 6, MAX_WORK = 20000 };

typedef struct Proving {
  Context *context;
  const Claim *claim;
  Prover prover;
  Digits digits;
  Walk walk;
  WalkSymbol symbols[MAX_RANK];
  const ProofPoly *box[CLAIM_NAMES]; // the atoms of the axes, or of the places
  WalkValue now[2 * CLAIM_NAMES];
  ProofMark before; // what is about the symbols alone
} Proving;

// ---- What is to be shown -----------------------------------------------------------------------

static bool show_equal(Prover *s, const ProofPoly *a, const ProofPoly *b) {
  return proof_same(a, b) || (proof_need(s, proof_linear(s, a, 1, b, -1)) &&
                              proof_need(s, proof_linear(s, b, 1, a, -1)));
}

static bool show_inside(Prover *s, const ProofPoly *p, const ProofPoly *extent) {
  const ProofPoly *last = proof_linear(s, extent, 1, proof_const(s, 1), -1);
  return proof_need(s, p) && proof_need(s, proof_linear(s, last, 1, p, -1));
}

static bool show_pairs(Proving *c, const ClaimNames *names) {
  for (int i = 0; i < names->count; i++) {
    const ClaimName *n = &names->items[i];
    WalkValue x = walk_expr(&c->walk, n->value), y;
    if (!x.p) return false;
    if (n->value == n->other && !c->prover.wanted) continue;
    y = walk_expr(&c->walk, n->other);
    if (!y.p || !show_equal(&c->prover, x.p, y.p)) return false;
  }
  return true;
}

static bool show_maps_equal(Proving *c) {
  return show_pairs(c, &c->claim->places);
}

// What the names stand for, as the walk stands now.
static bool walk_values(Proving *c, const ClaimNames *names, WalkValue *out) {
  for (int i = 0; i < names->count; i++)
    if (!names->items[i].value || !(out[i] = walk_expr(&c->walk, names->items[i].value)).p)
      return false;
  return true;
}

static bool show_all_inside(Proving *c, const ClaimNames *names, const WalkValue *values) {
  for (int i = 0; i < names->count; i++) {
    WalkValue extent = walk_expr(&c->walk, names->items[i].extent);
    if (!extent.p || !show_inside(&c->prover, values[i].p, extent.p)) return false;
  }
  return true;
}

// The values of the names, with what the axes of their expressions stand for, are the atoms.
static bool show_back(Proving *c, const ClaimNames *names, int count) {
  for (int i = 0; i < count; i++) {
    WalkValue back = walk_expr(&c->walk, names->items[i].value);
    if (!back.p || !show_equal(&c->prover, back.p, c->box[i])) return false;
  }
  return true;
}

static bool is_false(WalkValue v) {
  int64_t k;
  return v.p && proof_is_const(v.p, &k) && !k;
}

// The way back leads to the index, the map stays in its box, no index is on a padding place.
static bool show_inverse(Proving *c) {
  const Claim *claim = c->claim;
  WalkValue places[CLAIM_NAMES];
  const WalkValue *now = c->walk.now;
  bool stays = claim->yes && (claim->kind > CLAIM_INJECTIVE || claim->except);
  bool good = walk_values(c, &claim->places, places) &&
              (!stays || show_all_inside(c, &claim->places, places));
  c->walk.now = places;
  good = good && show_back(c, &claim->axes, claim->axes.count - claim->copy_count);
  if (good && claim->kind == CLAIM_INVERSE && claim->padding)
    good = is_false(walk_expr(&c->walk, claim->padding));
  c->walk.now = now;
  return good;
}

// What is no padding is the place of an index.
static bool show_places(Proving *c) {
  const Claim *claim = c->claim;
  WalkValue indices[CLAIM_NAMES];
  const WalkValue *now = c->walk.now;
  WalkValue padding = {0};
  if (claim->padding && !(padding = walk_expr(&c->walk, claim->padding)).p) return false;
  if (claim->padding && !is_false(padding)) return true;
  bool good = walk_values(c, &claim->axes, indices) && show_all_inside(c, &claim->axes, indices);
  c->walk.now = indices;
  good = good && show_back(c, &claim->places, claim->places.count);
  c->walk.now = now;
  return good;
}

// ---- Cases -------------------------------------------------------------------------------------

typedef bool Show(Proving *c);
static bool show_with_cases(Proving *c, Show *show, int depth);

// The proof where p >= 0.
static bool show_case(Proving *c, Show *show, int depth, const ProofPoly *p, const char *line,
                      Nesting nesting) {
  Prover *s = &c->prover;
  ProofMark mark = proof_mark(s);
  int fact = proof_assume(s, p);
  s->facts.items[fact].of_case = true;
  proof_line(s, line, 1, 0, nesting);
  bool good = show_with_cases(c, show, depth + 1);
  proof_close(s, mark);
  return good;
}

// Nothing is left to show: of the symbols, that is said as all of it is.
static bool show_nothing(Proving *c) {
  if (!c->walk.axes)
    proof_line(&c->prover, c->claim->section ? "places" : "indices", 0, 0, NEST_NONE);
  return true;
}

static bool show_with_cases(Proving *c, Show *show, int depth) {
  Prover *s = &c->prover;
  s->wanted = NULL;
  if (show(c)) return true;
  const ProofPoly *p = s->wanted, *absurd = proof_const(s, -1);
  const ProofPoly *other = proof_linear(s, absurd, 1, p, -1);
  if (depth && proof_need(s, absurd)) return show_nothing(c);
  if (!other || depth == MAX_SPLITS) return false;
  const char *line = arena_printf(s->arena, "split %s", proof_text(s, p));
  if (!show_case(c, show, depth, p, line, NEST_OPEN) ||
      !show_case(c, show, depth, other, "else", NEST_AGAIN))
    return false;
  proof_assume(s, absurd);
  proof_line(s, "end", 1, 0, NEST_CLOSE);
  return show_nothing(c);
}

// ---- Boxes -------------------------------------------------------------------------------------

static void begin_symbols(Proving *c) {
  Prover *s = &c->prover;
  const Claim *claim = c->claim;
  for (int i = 0; i < claim->symbol_count; i++) {
    LayoutFact f = claim->symbols[i];
    const char *name = arena_printf(s->arena, "%s'", f.symbol);
    const ProofPoly *t = proof_variable(s, proof_add_variable(s, name, true));
    int64_t value;
    bool known = claim_instance(claim, f.symbol, &value);
    const ProofPoly *p = known ? proof_const(s, value)
                               : proof_linear(s, t, f.multiple, proof_const(s, claim_least(f)), 1);
    c->symbols[i] = (WalkSymbol){f.symbol, p};
    proof_line(s, NULL, 0, 2, NEST_NONE);
    if (f.max <= 0 || !p) continue;
    proof_assume(s, proof_linear(s, proof_const(s, f.max), 1, p, -1));
    proof_line(s, NULL, 1, 0, NEST_NONE);
  }
  c->walk = (Walk){.s = s, .symbols = c->symbols, .symbol_count = claim->symbol_count};
}

static bool show_extent(Proving *c, const LayoutExpr *e) {
  WalkValue extent = e ? walk_expr(&c->walk, e) : (WalkValue){0};
  bool counted = c->claim->except != NULL;
  return !e || (extent.p && (!counted || proof_need(&c->prover, extent.p)));
}

// Quotients of symbols, as extents have them; what is about the symbols alone.
static bool show_extents(Proving *c) {
  const Claim *claim = c->claim;
  for (int i = 0; i < claim->axes.count; i++)
    if (!show_extent(c, claim->axes.items[i].extent)) return false;
  for (int i = 0; i < claim->places.count; i++)
    if (!show_extent(c, claim->places.items[i].extent)) return false;
  return (!claim->except || walk_expr(&c->walk, claim->except).p) && show_pairs(c, &claim->shapes);
}

// The extents as numbers, where they are and no axis is empty.
static bool box_extents(const ClaimNames *names, int64_t *extents) {
  for (int i = 0; i < names->count; i++) {
    const LayoutExpr *e = names->items[i].extent;
    if (!is_const(e) || e->value <= 0) return false;
    extents[i] = e->value;
  }
  return names->count <= MAX_RANK;
}

// Atoms for the axes of a box, after the line that enters it.
static bool begin_box(Proving *c, const char *line, Nesting nesting, const ClaimNames *names) {
  Prover *s = &c->prover;
  int64_t extents[CLAIM_NAMES];
  WalkValue sizes[CLAIM_NAMES];
  c->walk.d = NULL;
  for (int i = 0; i < names->count; i++)
    if (!(sizes[i] = walk_expr(&c->walk, names->items[i].extent)).p) return false;
  for (int i = 0; i < names->count; i++) {
    c->box[i] = proof_variable(s, proof_add_variable(s, names->items[i].name, false));
    proof_add_range(s, c->box[i], sizes[i].p);
  }
  proof_line(s, line, 2 * names->count, 1, nesting);
  c->walk.axes = c->box;
  c->walk.now = c->now;
  bool digits = box_extents(names, extents);
  if (digits) {
    c->digits = layout_digits_new(c->context, extents, names->count);
    c->walk.d = &c->digits;
  }
  for (int i = 0; i < names->count; i++)
    c->now[i] = (WalkValue){c->box[i], digits ? layout_form_floor(&c->digits, i, 0, 1) : NULL};
  return true;
}

// A box without points: everything is true of them.
static bool show_box(Proving *c, const ClaimNames *names, Show *show) {
  for (int i = 0; i < names->count; i++)
    if (is_const(names->items[i].extent) && !names->items[i].extent->value)
      return proof_need(&c->prover, proof_const(&c->prover, -1));
  return walk_values(c, &c->claim->lets, c->now + names->count) && show_with_cases(c, show, 0);
}

// Of all points of a box.
static bool show_all(Proving *c, const char *line, const ClaimNames *names, Show *show) {
  bool good = begin_box(c, line, NEST_OPEN, names) && show_box(c, names, show);
  proof_close(&c->prover, c->before);
  proof_line(&c->prover, NULL, 0, 0, NEST_CLOSE);
  c->walk.axes = NULL;
  return good;
}

static bool show_claim(Proving *c) {
  const Claim *claim = c->claim;
  Show *indices = claim->kind == CLAIM_EQUAL ? show_maps_equal : show_inverse;
  bool places = claim->section || claim->kind == CLAIM_INVERSE;
  c->before = proof_mark(&c->prover);
  return (claim->section || show_all(c, "indices", &claim->axes, indices)) &&
         (!places || show_all(c, "places", &claim->places, show_places));
}

// The extents, which may ask for cases of the symbols, and with them the claim.
static bool show_for_symbols(Proving *c) {
  if (!show_extents(c)) return false;
  bool good = show_claim(c);
  if (!good) c->prover.wanted = NULL; // that was of an index
  if (!good) c->prover.work = 0;
  return good;
}

// The lines of a proof of the claim. NULL: not found.
static const char *prove(Proving *c) {
  Prover *s = &c->prover;
  *s = (Prover){.context = c->context, .arena = &c->context->scratch, .work = MAX_WORK};
  begin_symbols(c);
  if (!show_with_cases(c, show_for_symbols, 0)) return NULL;
  proof_line(s, "qed", 0, 0, NEST_NONE);
  return proof_print(s);
}

// ---- Certificates ------------------------------------------------------------------------------

static bool few_points(const ClaimNames *names, int64_t limit) {
  int64_t count = 1;
  for (int i = 0; i < names->count; i++) {
    const LayoutExpr *e = names->items[i].extent;
    if (e && (!is_const(e) || !mul_fits(count, e->value, &count))) return false;
  }
  return count <= limit;
}

// The claim in a way, when the checker accepts it.
static const char *accepted(Context *context, const Claim *claim, const char *way,
                            const char *proof) {
  int line;
  Text text = text_new(&context->scratch);
  if (!proof || !claim_write(&text, claim)) return NULL;
  text_printf(&text, "by %s\n%s", way, proof);
  return layout_check(text_string(&text), &line) ? NULL : text_string(&text);
}

static const char *by_proof(Context *context, const Claim *claim) {
  Proving *c = arena_new(&context->scratch, Proving);
  c->context = context;
  c->claim = claim;
  return accepted(context, claim, claim->section ? "section" : "proof", prove(c));
}

const char *claim_certificate(Context *context, const Claim *claim, int64_t points) {
  bool seen = !claim->yes && claim->kind != CLAIM_ONTO;
  if (seen) return accepted(context, claim, "witness", "");
  if (!claim->yes && !claim->at) return accepted(context, claim, "count", "");
  bool reversible = claim->kind == CLAIM_EQUAL || claim->axes.count == claim->copy_count ||
                    claim->axes.items[0].value;
  const char *text = reversible && !claim->instance_count ? by_proof(context, claim) : NULL;
  if (text || !few_points(&claim->axes, points) || !few_points(&claim->places, 4 * points))
    return text;
  return accepted(context, claim, "points", "");
}
