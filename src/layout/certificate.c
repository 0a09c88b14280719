// SPDX-License-Identifier: Apache-2.0
// Certificates of answers, written after the fact: the claim, then a proof found over again by
// src/layout/proof*.c, or a witness, or "by points". What the checker does not accept is not given
// out. docs/layouts.md has the text form.
#include "config.h"
#include "layout/check.h"
#include "layout/proof_walk.h"

enum {
  MAX_SPLITS = 6,
  MAX_WORK = 20000,
  MAX_CLAIM = 1 << 12,
  POINTS_LIMIT = 1 << 22,
  VERIFY_LIMIT = 1 << 12
};

typedef struct Certificate {
  Context *context;
  Prover prover;
  Digits digits;
  Walk walk;
  LayoutAsk question;
  const Layout *a;
  const IndexMap *other;                                        // the map that a's is compared with
  const LayoutExpr *const *other_shape, *const *other_physical; // NULL: not compared
  int other_rank;
  LayoutInverse inverse;
  const LayoutAnswer *answer;
  int axis_count;
  Str names[MAX_RANK], places[MAX_RANK];
  WalkSymbol symbols[MAX_RANK];
  LayoutFact facts[MAX_RANK];
  const ProofPoly *box[MAX_RANK]; // the atoms of the axes
  WalkValue now[MAX_RANK];
  ProofMark before; // what is about the symbols alone
  int symbol_count;
  int64_t point_limit;
} Certificate;

static const char *const claim_names[] = {
    [LAYOUT_ASK_EQUAL] = "equal",         [LAYOUT_ASK_IDENTITY] = "equal",
    [LAYOUT_ASK_INJECTIVE] = "injective", [LAYOUT_ASK_ONTO] = "onto",
    [LAYOUT_ASK_BIJECTIVE] = "bijective", [LAYOUT_ASK_INVERSE] = "inverse",
    [LAYOUT_ASK_PADDING] = "padding",
};

// ---- Names -------------------------------------------------------------------------------------

// Names that no other word of a certificate can be: not p0 or q0, no word of the language.
static bool is_plain_name(const Certificate *c, Str name) {
  static const char *const words[] = {"or", "and", "not",  "min", "max", "select",
                                      "by", "of",  "over", "if",  "else"};
  bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');
  for (int i = 0; i < COUNT_OF(words); i++)
    if (!strcmp(words[i], name)) return false;
  for (const char *p = name; *p; p++)
    if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
          *p == '_'))
      return false;
  for (int i = 0; i < c->symbol_count; i++)
    if (c->symbols[i].symbol == name) return false;
  return letter && !((*name == 'p' || *name == 'q') && name[1] >= '0' && name[1] <= '9');
}

static void choose_names(Certificate *c) {
  bool plain = true;
  for (int i = 0; i < c->axis_count; i++) {
    Str name = c->a->map->inputs[i];
    plain = plain && is_plain_name(c, name);
    for (int j = 0; j < i; j++) plain = plain && c->a->map->inputs[j] != name;
  }
  for (int i = 0; i < c->axis_count; i++)
    c->names[i] = plain ? c->a->map->inputs[i] : str_format(c->context, "i%d", i);
  for (int i = 0; i < c->a->physical_rank; i++) c->places[i] = str_format(c->context, "p%d", i);
}

// ---- Symbols -----------------------------------------------------------------------------------

static bool add_symbols(Certificate *c, const LayoutExpr *e) {
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!add_symbols(c, e->args[i])) return false;
  if (e->op != LAYOUT_SYMBOL) return true;
  for (int i = 0; i < c->symbol_count; i++)
    if (c->symbols[i].symbol == e->symbol) return true;
  if (c->symbol_count == MAX_RANK) return false;
  LayoutFact fact = {.symbol = e->symbol, .min = 1, .multiple = 1};
  for (int i = 0; i < c->a->facts.count; i++)
    if (c->a->facts.items[i].symbol == e->symbol) fact = c->a->facts.items[i];
  fact.multiple = MAX_OF(fact.multiple, (int64_t)1);
  c->facts[c->symbol_count] = fact;
  c->symbols[c->symbol_count++].symbol = e->symbol;
  return fact.min >= 0;
}

static bool add_all_symbols(Certificate *c, const LayoutExpr *const *exprs, int count) {
  for (int i = 0; i < count; i++)
    if (!add_symbols(c, exprs[i])) return false;
  return true;
}

static bool collect_symbols(Certificate *c) {
  return add_all_symbols(c, c->a->shape, c->axis_count) &&
         add_all_symbols(c, c->a->physical, c->a->physical_rank) &&
         add_all_symbols(c, c->a->map->outputs, c->a->physical_rank) &&
         (!c->other || add_all_symbols(c, c->other->outputs, c->other->output_count)) &&
         (!c->other_physical || add_all_symbols(c, c->other_physical, c->other->output_count)) &&
         (!c->other_shape || add_all_symbols(c, c->other_shape, c->other_rank));
}

// ---- The claim ---------------------------------------------------------------------------------

static void write_list(Certificate *c, Text *text, const char *word, const LayoutExpr *const *exprs,
                       int count, const Str *names, int name_count) {
  text_puts(text, word);
  for (int i = 0; i < count; i++)
    text_printf(text, "%s%s", i ? ", " : " ",
                layout_expr_text(c->context, exprs[i], names, name_count));
  text_puts(text, "\n");
}

static void write_names(Text *text, const char *word, const Str *names, int count) {
  text_puts(text, word);
  for (int i = 0; i < count; i++) text_printf(text, "%s%s", i ? ", " : " ", names[i]);
  text_puts(text, "\n");
}

static void write_numbers(Text *text, const char *word, const int64_t *values, int count) {
  if (!values) return;
  text_puts(text, word);
  for (int i = 0; i < count; i++) text_printf(text, "%s%lld", i ? ", " : " ", (long long)values[i]);
  text_puts(text, "\n");
}

static void write_tags(Text *text, const IndexMap *map) {
  text_puts(text, "tags");
  for (int i = 0, at = 0; i <= map->output_count; i++) {
    for (; at < map->separator_count && map->separators[at] == i; at++) text_puts(text, " |");
    if (i < map->output_count)
      text_printf(text, " %s", map->resources[i] ? map->resources[i] : "memory");
  }
  if (map->replica_count) text_printf(text, ", %d replica axes", map->replica_count);
  text_puts(text, "\n");
}

static void write_symbols(Certificate *c, Text *text) {
  for (int i = 0; i < c->symbol_count; i++) {
    LayoutFact f = c->facts[i];
    text_printf(text, "symbol %s %lld %lld %lld", f.symbol, (long long)f.min, (long long)f.max,
                (long long)f.multiple);
    for (int j = 0; j < c->answer->instance_count; j++)
      if (c->answer->instance[j].symbol == f.symbol)
        text_printf(text, " = %lld", (long long)c->answer->instance[j].value);
    text_puts(text, "\n");
  }
}

static void write_other(Certificate *c, Text *text) {
  if (!c->other) return;
  if (c->question == LAYOUT_ASK_EQUAL && c->other_physical) write_tags(text, c->other);
  write_list(c, text, "map2", c->other->outputs, c->other->output_count, c->names, c->axis_count);
  if (c->other_physical)
    write_list(c, text, "physical2", c->other_physical, c->other->output_count, NULL, 0);
  if (c->other_shape) write_list(c, text, "extents2", c->other_shape, c->other_rank, NULL, 0);
}

static void write_claim(Certificate *c, Text *text, int64_t count) {
  const Layout *a = c->a;
  bool yes = c->answer->verdict == LAYOUT_YES;
  text_printf(text, "pleat certificate 1\nclaim %s %s\n", claim_names[c->question],
              yes ? "yes" : "no");
  write_symbols(c, text);
  write_names(text, "axes", c->names, c->axis_count);
  if (a->map->replica_count) text_printf(text, "replicas %d\n", a->map->replica_count);
  write_list(c, text, "extents", a->shape, c->axis_count, NULL, 0);
  if (c->question > LAYOUT_ASK_IDENTITY) write_names(text, "places", c->places, a->physical_rank);
  write_list(c, text, "physical", a->physical, a->physical_rank, NULL, 0);
  if (c->question == LAYOUT_ASK_EQUAL && c->other_physical) write_tags(text, a->map);
  write_list(c, text, "map", a->map->outputs, a->physical_rank, c->names, c->axis_count);
  write_other(c, text);
  if (c->inverse.map)
    write_list(c, text, "inverse", c->inverse.map->outputs, c->inverse.map->output_count, c->places,
               a->physical_rank);
  if (c->inverse.padding)
    write_list(c, text, "padding", &c->inverse.padding, 1, c->places, a->physical_rank);
  if (c->question == LAYOUT_ASK_PADDING) text_printf(text, "count %lld\n", (long long)count);
  if (yes) return;
  write_numbers(text, "witness", c->answer->witness, c->answer->witness_rank);
  write_numbers(text, "witness2", c->answer->witness2, c->answer->witness_rank);
}

// ---- What is to be shown -----------------------------------------------------------------------

static bool walk_all(Certificate *c, const LayoutExpr *const *exprs, int count, WalkValue *out) {
  for (int i = 0; i < count; i++)
    if (!(out[i] = walk_expr(&c->walk, exprs[i])).p) return false;
  return true;
}

static bool show_equal(Prover *s, const ProofPoly *a, const ProofPoly *b) {
  return proof_same(a, b) || (proof_need(s, proof_linear(s, a, 1, b, -1)) &&
                              proof_need(s, proof_linear(s, b, 1, a, -1)));
}

static bool show_inside(Prover *s, const ProofPoly *p, const ProofPoly *extent) {
  const ProofPoly *last = proof_linear(s, extent, 1, proof_const(s, 1), -1);
  return proof_need(s, p) && proof_need(s, proof_linear(s, last, 1, p, -1));
}

static bool show_maps_equal(Certificate *c) {
  WalkValue x, y;
  for (int i = 0; i < c->a->physical_rank; i++) {
    if (c->a->map->outputs[i] == c->other->outputs[i] && !c->prover.wanted) {
      if (!walk_expr(&c->walk, c->a->map->outputs[i]).p) return false;
      continue;
    }
    x = walk_expr(&c->walk, c->a->map->outputs[i]);
    y = walk_expr(&c->walk, c->other->outputs[i]);
    if (!x.p || !y.p || !show_equal(&c->prover, x.p, y.p)) return false;
  }
  return true;
}

// The conditions that a place is none of the padding, as expressions that are at least 0.
static int denied(Certificate *c, const LayoutExpr *e, const ProofPoly **out, int count) {
  Prover *s = &c->prover;
  if (count < 0 || count > MAX_RANK * 2) return -1;
  if (e->op == LAYOUT_EITHER) return denied(c, e->args[1], out, denied(c, e->args[0], out, count));
  if (e->op != LAYOUT_LT && e->op != LAYOUT_LE && e->op != LAYOUT_NE) return -1;
  const ProofPoly *a = walk_expr(&c->walk, e->args[0]).p, *b = walk_expr(&c->walk, e->args[1]).p;
  const ProofPoly *excess = proof_linear(s, a, 1, b, -1);
  if (!excess) return -1;
  out[count++] = e->op == LAYOUT_LE   ? proof_linear(s, excess, 1, proof_const(s, 1), -1)
                 : e->op == LAYOUT_NE ? proof_linear(s, excess, -1, proof_const(s, 0), 0)
                                      : excess;
  if (e->op == LAYOUT_NE) out[count++] = excess;
  return count;
}

static bool is_inside_asked(const Certificate *c) {
  return c->answer->verdict == LAYOUT_YES && c->question > LAYOUT_ASK_INJECTIVE;
}

// inverse ∘ map is the identity, the map stays in its box, no index is on a padding place.
static bool show_inverse(Certificate *c) {
  Prover *s = &c->prover;
  const Layout *a = c->a;
  WalkValue places[MAX_RANK], extents[MAX_RANK], back;
  const WalkValue *now = c->walk.now;
  bool good = walk_all(c, a->map->outputs, a->physical_rank, places);
  if (good && is_inside_asked(c)) {
    good = walk_all(c, a->physical, a->physical_rank, extents);
    for (int i = 0; i < a->physical_rank && good; i++)
      good = show_inside(s, places[i].p, extents[i].p);
  }
  c->walk.now = places;
  for (int i = 0; i < a->rank && good; i++) {
    back = walk_expr(&c->walk, c->inverse.map->outputs[i]);
    good = back.p && show_equal(s, back.p, c->box[i]);
  }
  const ProofPoly *conditions[2 * MAX_RANK + 2];
  if (good && c->question == LAYOUT_ASK_INVERSE && c->inverse.padding) {
    int n = denied(c, c->inverse.padding, conditions, 0);
    good = n >= 0;
    for (int i = 0; i < n && good; i++) {
      good = proof_need(s, conditions[i]);
      if (good) continue;
    }
  }
  c->walk.now = now;
  return good;
}

// What is no padding is the place of an index: map ∘ inverse is the identity there.
static bool show_places(Certificate *c) {
  Prover *s = &c->prover;
  const Layout *a = c->a;
  WalkValue indices[MAX_RANK], extent, there;
  const WalkValue *now = c->walk.now;
  bool good = walk_all(c, c->inverse.map->outputs, a->rank, indices);
  for (int i = 0; i < a->rank && good; i++)
    good = (extent = walk_expr(&c->walk, a->shape[i])).p && show_inside(s, indices[i].p, extent.p);
  c->walk.now = indices;
  for (int i = 0; i < a->physical_rank && good; i++) {
    there = walk_expr(&c->walk, a->map->outputs[i]);
    good = there.p && show_equal(s, there.p, c->box[i]);
  }
  c->walk.now = now;
  return good;
}

// ---- Proofs ------------------------------------------------------------------------------------

static bool show_with_cases(Certificate *c, bool (*show)(Certificate *), int depth);

// The proof where p >= 0.
static bool show_case(Certificate *c, bool (*show)(Certificate *), int depth, const ProofPoly *p,
                      const char *line, Nesting nesting) {
  Prover *s = &c->prover;
  ProofMark mark = proof_mark(s);
  proof_assume(s, p);
  proof_line(s, line, 1, nesting);
  bool good = show_with_cases(c, show, depth + 1);
  proof_close(s, mark);
  return good;
}

static bool show_with_cases(Certificate *c, bool (*show)(Certificate *), int depth) {
  Prover *s = &c->prover;
  s->wanted = NULL;
  if (show(c)) return true;
  const ProofPoly *p = s->wanted, *absurd = proof_const(s, -1);
  const ProofPoly *other = proof_linear(s, absurd, 1, p, -1);
  if (depth && proof_need(s, absurd)) return true;
  if (!other || depth == MAX_SPLITS) return false;
  const char *line = arena_printf(s->arena, "split %s", proof_text(s, p));
  if (!show_case(c, show, depth, p, line, NEST_OPEN) ||
      !show_case(c, show, depth, other, "else", NEST_AGAIN))
    return false;
  proof_assume(s, absurd);
  proof_line(s, "end", 1, NEST_CLOSE);
  return true;
}

// Quotients of symbols, as physical extents have them.
static bool show_extents(Certificate *c) {
  WalkValue sizes[MAX_RANK];
  const IndexMap *other = c->other_physical ? c->other : NULL;
  return walk_all(c, c->a->shape, c->axis_count, sizes) &&
         walk_all(c, c->a->physical, c->a->physical_rank, sizes) &&
         (!other || walk_all(c, c->other_physical, other->output_count, sizes)) &&
         (!c->other_shape || walk_all(c, c->other_shape, c->other_rank, sizes));
}

static void begin_symbols(Certificate *c) {
  Prover *s = &c->prover;
  for (int i = 0; i < c->symbol_count; i++) {
    LayoutFact f = c->facts[i];
    const char *name = arena_printf(s->arena, "%s'", f.symbol);
    const ProofPoly *t = proof_variable(s, proof_add_variable(s, name, true));
    int64_t start = ceil_div(f.min, f.multiple), least;
    const ProofPoly *p = mul_fits(start, f.multiple, &least)
                             ? proof_linear(s, t, f.multiple, proof_const(s, least), 1)
                             : NULL;
    for (int j = 0; j < c->answer->instance_count; j++)
      if (c->answer->instance[j].symbol == f.symbol)
        p = proof_const(s, c->answer->instance[j].value);
    c->symbols[i].p = p;
    if (f.max <= 0 || c->answer->instance_count || !p) continue;
    proof_assume(s, proof_linear(s, proof_const(s, f.max), 1, p, -1));
    proof_line(s, NULL, 1, NEST_NONE);
  }
  c->walk = (Walk){.s = s, .symbols = c->symbols, .symbol_count = c->symbol_count};
}

// Atoms for the axes of a box, after the line that enters it.
static bool begin_box(Certificate *c, const char *line, Nesting nesting, const Str *names,
                      const LayoutExpr *const *shape, const int64_t *extents, int rank) {
  Prover *s = &c->prover;
  WalkValue sizes[MAX_RANK];
  c->walk.d = NULL;
  if (!walk_all(c, shape, rank, sizes)) return false;
  for (int i = 0; i < rank; i++) {
    c->box[i] = proof_variable(s, proof_add_variable(s, names[i], false));
    proof_add_range(s, c->box[i], sizes[i].p);
  }
  proof_line(s, line, 2 * rank, nesting);
  c->walk.axes = c->box;
  c->walk.now = c->now;
  bool digits = extents != NULL;
  for (int i = 0; i < rank && digits; i++) digits = extents[i] > 0;
  if (digits) {
    c->digits = layout_digits_new(c->context, extents, rank);
    c->walk.d = &c->digits;
  }
  for (int i = 0; i < rank; i++)
    c->now[i] = (WalkValue){c->box[i], digits ? layout_form_floor(&c->digits, i, 0, 1) : NULL};
  return true;
}

static bool show_nothing(Certificate *c) {
  return proof_need(&c->prover, proof_const(&c->prover, -1));
}

// A box without points: everything is true of them.
static bool show_indices(Certificate *c, bool (*show)(Certificate *)) {
  for (int i = 0; i < c->axis_count; i++)
    if (is_const(c->a->shape[i]) && !c->a->shape[i]->value) return show_nothing(c);
  return show_with_cases(c, show, 0);
}

static bool begin_places(Certificate *c) {
  Prover *s = &c->prover;
  const Layout *a = c->a;
  const ProofPoly *conditions[2 * MAX_RANK + 2];
  proof_close(s, c->before);
  if (!begin_box(c, "places", NEST_AGAIN, c->places, a->physical,
                 a->is_static ? a->physical_extents : NULL, a->physical_rank))
    return false;
  if (!c->inverse.padding || is_const(c->inverse.padding)) return true;
  int n = denied(c, c->inverse.padding, conditions, 0);
  for (int i = 0; i < n; i++) proof_assume(s, conditions[i]);
  if (n >= 0) proof_line(s, "assume", n, NEST_NONE);
  return n >= 0;
}

// The lines of a proof of the claim. NULL: not found.
static const char *prove(Certificate *c) {
  Prover *s = &c->prover;
  const Layout *a = c->a;
  *s = (Prover){.context = c->context, .arena = &c->context->scratch, .work = MAX_WORK};
  bool by_inverse = c->question > LAYOUT_ASK_IDENTITY;
  if (by_inverse && !c->inverse.map) return NULL;
  begin_symbols(c);
  if (!show_extents(c)) return NULL;
  c->before = proof_mark(s);
  if (!begin_box(c, "indices", NEST_OPEN, c->names, a->shape, a->is_static ? a->extents : NULL,
                 c->axis_count) ||
      !show_indices(c, by_inverse ? show_inverse : show_maps_equal))
    return NULL;
  if (c->question == LAYOUT_ASK_INVERSE &&
      (!begin_places(c) || !show_with_cases(c, show_places, 0)))
    return NULL;
  proof_line(s, "qed", 0, NEST_NONE);
  return arena_printf(s->arena, "by proof\n%s", proof_print(s));
}

// ---- Certificates ------------------------------------------------------------------------------

static bool few_points(const Layout *a, int64_t limit) {
  int64_t elements, places;
  return a->is_static && layout_logical_size(a, &elements) && elements <= limit &&
         layout_physical_size(a, &places) && places <= 4 * limit;
}

static bool is_small(const Layout *a, const IndexMap *b) {
  for (int i = 0; i < a->physical_rank; i++)
    if (layout_expr_size(a->map->outputs[i]) > MAX_CLAIM) return false;
  for (int i = 0; b && i < b->output_count; i++)
    if (layout_expr_size(b->outputs[i]) > MAX_CLAIM) return false;
  return true;
}

// The claim with a way of proof, when the checker accepts it.
static const char *accepted(Certificate *c, int64_t count, const char *way) {
  char message[160];
  Text text = text_new(&c->context->scratch);
  if (!way) return NULL;
  write_claim(c, &text, count);
  text_puts(&text, way);
  const char *whole = text_string(&text);
  return layout_check(whole, message, sizeof message) != CHECK_REJECTED ? whole : NULL;
}

static const char *show_no(Certificate *c) {
  const LayoutAnswer *answer = c->answer;
  bool reached =
      c->question == LAYOUT_ASK_ONTO || (c->question == LAYOUT_ASK_BIJECTIVE && !answer->witness2);
  if (!reached) return accepted(c, 0, "by witness\n");
  if (!answer->witness) return accepted(c, 0, "by count\n");
  const char *text = c->answer->instance_count ? NULL : accepted(c, 0, prove(c));
  if (text || !few_points(c->a, c->point_limit)) return text;
  return accepted(c, 0, "by points\n");
}

static const char *show_yes(Certificate *c) {
  int64_t count = 0;
  if (c->question == LAYOUT_ASK_PADDING) layout_padding_count(c->context, c->a, &count);
  const char *text = accepted(c, count, prove(c));
  if (!text && few_points(c->a, c->point_limit)) text = accepted(c, count, "by points\n");
  return text || c->answer->level != LAYOUT_ISL ? text : accepted(c, count, "by isl\n");
}

static void set_other(Certificate *c, const Layout *b) {
  c->other = b->map;
  c->other_shape = b->shape;
  c->other_physical = b->physical;
  c->other_rank = b->rank + b->map->replica_count;
}

static void set_identity(Certificate *c) {
  c->other = index_map_identity(c->context, c->a->rank);
  c->other_physical = c->a->shape;
}

static const char *certify(Certificate *c, const Layout *b) {
  bool no_inverse = c->question == LAYOUT_ASK_INVERSE && c->answer->verdict == LAYOUT_NO;
  if (no_inverse) c->question = LAYOUT_ASK_INJECTIVE;
  if (c->question == LAYOUT_ASK_EQUAL) set_other(c, b);
  if (c->question == LAYOUT_ASK_IDENTITY) set_identity(c);
  if (c->question > LAYOUT_ASK_IDENTITY && c->answer->verdict != LAYOUT_UNDECIDED &&
      layout_inverse(c->context, c->a, &c->inverse).verdict != LAYOUT_YES)
    c->inverse = (LayoutInverse){0};
  if (!is_small(c->a, c->other) || !collect_symbols(c)) return NULL;
  choose_names(c);
  return c->answer->verdict == LAYOUT_NO ? show_no(c) : show_yes(c);
}

static const char *certificate(Context *context, LayoutAsk question, const Layout *a,
                               const Layout *b, const LayoutAnswer *answer, int64_t limit) {
  if (answer->verdict == LAYOUT_UNDECIDED) return NULL;
  ArenaMark mark = arena_mark(&context->scratch);
  Certificate *c = arena_new(&context->scratch, Certificate);
  c->context = context;
  c->question = question;
  c->a = a;
  c->answer = answer;
  c->point_limit = limit;
  c->axis_count = a->rank + a->map->replica_count;
  const char *text = certify(c, b);
  if (text) text = arena_copy(&context->arena, text, strlen(text) + 1);
  arena_reset(&context->scratch, mark);
  return text;
}

const char *layout_certificate(Context *context, LayoutAsk question, const Layout *a,
                               const Layout *b, const LayoutAnswer *answer) {
  return certificate(context, question, a, b, answer, POINTS_LIMIT);
}

// The checker's shifts are by constants, as those of the algebra are.
static bool shifts_by_variable(const LayoutExpr *e) {
  bool found = (e->op == LAYOUT_SHL || e->op == LAYOUT_SHR) && !is_const(e->args[1]);
  for (int i = 0; i < 3 && e->args[i]; i++) found = found || shifts_by_variable(e->args[i]);
  return found;
}

static bool has_variable_shift(const Layout *layout) {
  bool found = false;
  for (int i = 0; layout && i < layout->physical_rank; i++)
    found = found || shifts_by_variable(layout->map->outputs[i]);
  return found;
}

// Witnesses of indices always have one; a yes, and a place that nothing reaches, where few points
// can be visited. (Places of copies are sets, which the claim cannot say.)
static bool is_certifiable(LayoutAsk question, const Layout *a, const Layout *b,
                           const LayoutAnswer *answer) {
  if (a->map->replica_count || (b && b->map->replica_count) || !is_small(a, b ? b->map : NULL) ||
      has_variable_shift(a) || has_variable_shift(b))
    return false;
  if (answer->verdict == LAYOUT_NO && question != LAYOUT_ASK_ONTO)
    return answer->witness && a->is_static;
  return answer->verdict != LAYOUT_UNDECIDED && few_points(a, VERIFY_LIMIT) &&
         (answer->verdict == LAYOUT_YES || answer->witness);
}

void layout_verify_answer(Context *context, LayoutAsk question, const Layout *a, const Layout *b,
                          const LayoutAnswer *answer) {
  LayoutTable *table = layout_table(context);
  if (!PLEAT_VERIFY_EACH || table->verifying || !is_certifiable(question, a, b, answer)) return;
  table->verifying = true;
  const char *text = certificate(context, question, a, b, answer, VERIFY_LIMIT);
  table->verifying = false;
  if (!text)
    bug(context, "the checker does not accept \"%s\" of question %d on %s",
        layout_answer_text(context, answer), (int)question, layout_text(context, a));
}
