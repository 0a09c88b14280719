// SPDX-License-Identifier: Apache-2.0
// Finds what shows a proof goal: a proof by the files proof*.c, a witness, or "by points". A text
// is given out only if the checker accepts it. docs/layouts.md has the text form.
#include "layout/proofs/goal.h"
#include "layout/proofs/proof_lower.h"
#include "layout/check/check.h"

enum { MAX_SPLITS = 6, MAX_WORK = 20000 };

typedef struct Proving {
  Context *context;
  const Goal *goal;
  Prover prover;
  DigitSpace digits;
  ProofLowering walk;
  LoweredSymbol symbols[MAX_RANK];
  Poly box[GOAL_NAMES]; // the atoms of the axes, or of the positions
  LoweredValue now[2 * GOAL_NAMES];
  ProofMark before; // the facts and quotients of the symbols alone
} Proving;

// ---- What is to be shown -----------------------------------------------------------------------

static bool show_equal(Prover *s, Poly a, Poly b) {
  return poly_same(a, b) || (proof_need(s, proof_linear(s, a, 1, b, -1)) &&
                             proof_need(s, proof_linear(s, b, 1, a, -1)));
}

static bool show_inside(Prover *s, Poly p, Poly extent) {
  Poly last = proof_linear(s, extent, 1, poly_const(1), -1);
  return proof_need(s, p) && proof_need(s, proof_linear(s, last, 1, p, -1));
}

static bool show_pairs(Proving *c, const GoalNames *names) {
  for (int i = 0; i < names->count; i++) {
    const GoalName *n = &names->items[i];
    LoweredValue x = proof_lower_expr(&c->walk, n->value), y;
    if (!poly_fits(x.p)) return false;
    if (n->value == n->other && !poly_fits(c->prover.wanted)) continue;
    y = proof_lower_expr(&c->walk, n->other);
    if (!poly_fits(y.p) || !show_equal(&c->prover, x.p, y.p)) return false;
  }
  return true;
}

static bool show_maps_equal(Proving *c) {
  return show_pairs(c, &c->goal->positions);
}

// Lowers the values of the names, over the current values of the axes.
static bool walk_values(Proving *c, const GoalNames *names, LoweredValue *out) {
  for (int i = 0; i < names->count; i++)
    if (!names->items[i].value ||
        !poly_fits((out[i] = proof_lower_expr(&c->walk, names->items[i].value)).p))
      return false;
  return true;
}

static bool show_all_inside(Proving *c, const GoalNames *names, const LoweredValue *values) {
  for (int i = 0; i < names->count; i++) {
    LoweredValue extent = proof_lower_expr(&c->walk, names->items[i].extent);
    if (!poly_fits(extent.p) || !show_inside(&c->prover, values[i].p, extent.p)) return false;
  }
  return true;
}

// The values of the names, over the current values of the axes, are the atoms of the box.
static bool show_back(Proving *c, const GoalNames *names, int count) {
  for (int i = 0; i < count; i++) {
    LoweredValue back = proof_lower_expr(&c->walk, names->items[i].value);
    if (!poly_fits(back.p) || !show_equal(&c->prover, back.p, c->box[i])) return false;
  }
  return true;
}

static bool is_false(LoweredValue v) {
  int64_t k;
  return poly_fits(v.p) && poly_is_const(v.p, &k) && !k;
}

// The way back leads to the index, the map stays in the physical shape, and no index has a physical
// index that is padding.
static bool show_inverse(Proving *c) {
  const Goal *goal = c->goal;
  LoweredValue positions[GOAL_NAMES];
  const LoweredValue *now = c->walk.now;
  bool stays = goal->yes && (goal->kind > GOAL_INJECTIVE || goal->except);
  bool good = walk_values(c, &goal->positions, positions) &&
              (!stays || show_all_inside(c, &goal->positions, positions));
  c->walk.now = positions;
  good = good && show_back(c, &goal->axes, goal->axes.count - goal->copy_count);
  if (good && goal->kind == GOAL_INVERSE && goal->padding)
    good = is_false(proof_lower_expr(&c->walk, goal->padding));
  c->walk.now = now;
  return good;
}

// Every physical index that is not padding is that of an index.
static bool show_positions(Proving *c) {
  const Goal *goal = c->goal;
  LoweredValue indices[GOAL_NAMES];
  const LoweredValue *now = c->walk.now;
  LoweredValue padding = {0};
  if (goal->padding && !poly_fits((padding = proof_lower_expr(&c->walk, goal->padding)).p))
    return false;
  if (goal->padding && !is_false(padding)) return true;
  bool good = walk_values(c, &goal->axes, indices) && show_all_inside(c, &goal->axes, indices);
  c->walk.now = indices;
  good = good && show_back(c, &goal->positions, goal->positions.count);
  c->walk.now = now;
  return good;
}

// ---- Cases -------------------------------------------------------------------------------------

typedef bool Show(Proving *c);
static bool show_with_cases(Proving *c, Show *show, int depth);

// The proof where p >= 0.
static bool show_case(Proving *c, Show *show, int depth, Poly p, const char *line,
                      ProofNesting nesting) {
  Prover *s = &c->prover;
  ProofMark mark = proof_mark(s);
  int fact = proof_assume(s, p);
  s->facts.items[fact].of_case = true;
  proof_line(s, line, 1, 0, nesting);
  bool good = show_with_cases(c, show, depth + 1);
  proof_close(s, mark);
  return good;
}

// Every goal holds in this case. A case of the symbols says so for the whole proof.
static bool show_nothing(Proving *c) {
  if (!c->walk.axes)
    proof_line(&c->prover, c->goal->section ? "places" : "indices", 0, 0, NEST_NONE);
  return true;
}

static bool show_with_cases(Proving *c, Show *show, int depth) {
  Prover *s = &c->prover;
  s->wanted = POLY_NONE;
  if (show(c)) return true;
  Poly p = s->wanted, absurd = poly_const(-1);
  Poly other = proof_linear(s, absurd, 1, p, -1);
  if (depth && proof_need(s, absurd)) return show_nothing(c);
  if (!poly_fits(other) || depth == MAX_SPLITS) return false;
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
  const Goal *goal = c->goal;
  for (int i = 0; i < goal->symbol_count; i++) {
    LayoutFact f = layout_fact_of(goal->facts, goal->symbols[i]);
    const char *name = arena_printf(s->arena, "%s'", f.symbol);
    Poly t = proof_variable(s, proof_add_variable(s, name, true));
    int64_t value;
    bool known = goal_instance(goal, f.symbol, &value);
    Poly p =
        known ? poly_const(value) : proof_linear(s, t, f.multiple, poly_const(goal_least(f)), 1);
    c->symbols[i] = (LoweredSymbol){f.symbol, p};
    proof_line(s, NULL, 0, 2, NEST_NONE);
    if (f.max <= 0 || !poly_fits(p)) continue;
    proof_assume(s, proof_linear(s, poly_const(f.max), 1, p, -1));
    proof_line(s, NULL, 1, 0, NEST_NONE);
  }
  c->walk = (ProofLowering){.s = s, .symbols = c->symbols, .symbol_count = goal->symbol_count};
}

static bool show_extent(Proving *c, const LayoutExpr *e) {
  LoweredValue extent = e ? proof_lower_expr(&c->walk, e) : (LoweredValue){0};
  bool counted = c->goal->except != NULL;
  return !e || (poly_fits(extent.p) && (!counted || proof_need(&c->prover, extent.p)));
}

// Shows what is about the symbols alone: the quotients in the extents, and the shapes.
static bool show_extents(Proving *c) {
  const Goal *goal = c->goal;
  for (int i = 0; i < goal->axes.count; i++)
    if (!show_extent(c, goal->axes.items[i].extent)) return false;
  for (int i = 0; i < goal->positions.count; i++)
    if (!show_extent(c, goal->positions.items[i].extent)) return false;
  return (!goal->except || poly_fits(proof_lower_expr(&c->walk, goal->except).p)) &&
         show_pairs(c, &goal->shapes);
}

// The extents as numbers. False where one is not a number, or an axis is empty.
static bool box_extents(const GoalNames *names, int64_t *extents) {
  for (int i = 0; i < names->count; i++) {
    const LayoutExpr *e = names->items[i].extent;
    if (!is_const(e) || e->value <= 0) return false;
    extents[i] = e->value;
  }
  return names->count <= MAX_RANK;
}

// Atoms for the axes of a box, after the line that enters it.
static bool begin_box(Proving *c, const char *line, ProofNesting nesting, const GoalNames *names) {
  Prover *s = &c->prover;
  int64_t extents[GOAL_NAMES];
  LoweredValue sizes[GOAL_NAMES];
  c->walk.d = NULL;
  for (int i = 0; i < names->count; i++)
    if (!poly_fits((sizes[i] = proof_lower_expr(&c->walk, names->items[i].extent)).p)) return false;
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
    c->now[i] = (LoweredValue){c->box[i], digits ? layout_form_floor(&c->digits, i, 0, 1) : NULL};
  return true;
}

// Shows the goal on the box; where the box is empty, a contradiction.
static bool show_box(Proving *c, const GoalNames *names, Show *show) {
  for (int i = 0; i < names->count; i++)
    if (is_const(names->items[i].extent) && !names->items[i].extent->value)
      return proof_need(&c->prover, poly_const(-1));
  return walk_values(c, &c->goal->lets, c->now + names->count) && show_with_cases(c, show, 0);
}

// Shows the goal at all points of a box.
static bool show_all(Proving *c, const char *line, const GoalNames *names, Show *show) {
  bool good = begin_box(c, line, NEST_OPEN, names) && show_box(c, names, show);
  proof_close(&c->prover, c->before);
  proof_line(&c->prover, NULL, 0, 0, NEST_CLOSE);
  c->walk.axes = NULL;
  return good;
}

static bool show_goal(Proving *c) {
  const Goal *goal = c->goal;
  Show *indices = goal->kind == GOAL_EQUAL ? show_maps_equal : show_inverse;
  bool positions = goal->section || goal->kind == GOAL_INVERSE;
  c->before = proof_mark(&c->prover);
  return (goal->section || show_all(c, "indices", &goal->axes, indices)) &&
         (!positions || show_all(c, "places", &goal->positions, show_positions));
}

// Shows the extents, which may need cases of the symbols, and then the goal.
static bool show_for_symbols(Proving *c) {
  if (!show_extents(c)) return false;
  bool good = show_goal(c);
  if (!good)
    c->prover.wanted = POLY_NONE; // a comparison of an index decides no case of the symbols
  if (!good) c->prover.work = 0;
  return good;
}

// The lines of a proof of the goal. NULL: none was found.
static const char *prove(Proving *c) {
  Prover *s = &c->prover;
  *s = (Prover){.context = c->context, .arena = &c->context->scratch, .work = MAX_WORK};
  begin_symbols(c);
  if (!show_with_cases(c, show_for_symbols, 0)) return NULL;
  proof_line(s, "qed", 0, 0, NEST_NONE);
  return proof_print(s);
}

// ---- Certificates ------------------------------------------------------------------------------

static bool few_points(const GoalNames *names, int64_t limit) {
  int64_t count = 1;
  for (int i = 0; i < names->count; i++) {
    const LayoutExpr *e = names->items[i].extent;
    if (e && (!is_const(e) || !mul_fits(count, e->value, &count))) return false;
  }
  return count <= limit;
}

// The text of the goal, shown in this way. NULL where the checker does not accept it.
static const char *accepted(Context *context, const Goal *goal, const char *way,
                            const char *proof) {
  int line;
  Text text = text_new(&context->scratch);
  if (!proof || !goal_write(&text, goal)) return NULL;
  text_printf(&text, "by %s\n%s", way, proof);
  return layout_check(text_string(&text), &line) ? NULL : text_string(&text);
}

static const char *by_proof(Context *context, const Goal *goal) {
  Proving *c = arena_new(&context->scratch, Proving);
  c->context = context;
  c->goal = goal;
  return accepted(context, goal, goal->section ? "section" : "proof", prove(c));
}

const char *goal_certificate(Context *context, const Goal *goal, int64_t points) {
  bool seen = !goal->yes && goal->kind != GOAL_ONTO;
  if (seen) return accepted(context, goal, "witness", "");
  if (!goal->yes && !goal->at) return accepted(context, goal, "count", "");
  bool reversible =
      goal->kind == GOAL_EQUAL || goal->axes.count == goal->copy_count || goal->axes.items[0].value;
  bool few = few_points(&goal->axes, points) && few_points(&goal->positions, 4 * points);
  const char *text = few && goal->points_first ? accepted(context, goal, "points", "") : NULL;
  if (!text && reversible && !goal->instance_count) text = by_proof(context, goal);
  return text || !few || goal->points_first ? text : accepted(context, goal, "points", "");
}
