// SPDX-License-Identifier: Apache-2.0
// Certificates of answers, written after the fact: which claim (goal.h) an answer makes.
#include "layout/proofs/equations.h"
#include "layout/answers/components.h"

enum { POINTS_LIMIT = 1 << 22 };

// ---- Names -------------------------------------------------------------------------------------

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Names that no other word of a certificate can be: not p0, q0 or x0, no word of the language.
static bool is_plain_name(Str name) {
  static const char *const words[] = {"new", "by", "of", "over", "at", "also", "other", "rank"};
  for (int i = 0; i < COUNT_OF(words); i++)
    if (!strcmp(words[i], name)) return false;
  for (const char *p = name; *p; p++)
    if (!is_letter(*p) && !is_digit(*p) && *p != '_') return false;
  return is_letter(*name) && !(strchr("pqx", *name) && is_digit(name[1]));
}

static bool is_symbol(const Layout *a, Str name) {
  bool found = false;
  for (int i = 0; i < a->facts.count; i++) found |= a->facts.items[i].symbol == name;
  return found;
}

// The names of the axes, or i0, i1, … where some would be mistaken.
static void axis_names(Context *context, const Layout *a, Str *out) {
  int count = layout_box_rank(a);
  bool plain = true;
  for (int i = 0; i < count; i++) {
    Str name = a->map->inputs[i];
    plain = plain && is_plain_name(name) && (a->is_static || !is_symbol(a, name));
    for (int j = 0; j < i; j++) plain = plain && a->map->inputs[j] != name;
  }
  for (int i = 0; i < count; i++)
    out[i] = plain ? a->map->inputs[i] : str_format(context, "i%d", i);
}

// ---- Claims about a layout ---------------------------------------------------------------------

static void add_axes(Context *context, Claim *claim, const Layout *a) {
  Str names[2 * MAX_RANK];
  axis_names(context, a, names);
  for (int i = 0; i < layout_box_rank(a); i++)
    claim_add(&claim->axes, (ClaimName){.name = names[i], .extent = a->shape[i]});
  claim->copy_count = a->map->replica_count;
  claim->facts = a->facts;
}

// The way of an answer: whether it is a yes, where a no can be seen.
static Claim *new_claim(Context *context, ClaimKind kind, const Layout *a,
                        const LayoutAnswer *answer) {
  Claim *claim = arena_new(&context->scratch, Claim);
  claim->kind = kind;
  claim->yes = answer->verdict == LAYOUT_YES;
  claim->instance = answer->instance;
  claim->instance_count = answer->instance_count;
  if (!claim->yes) claim->at = answer->witness;
  if (!claim->yes) claim->also = answer->witness2;
  if (kind == CLAIM_EQUAL && a->map->replica_count) claim->at = NULL; // of the element alone
  add_axes(context, claim, a);
  return claim;
}

static void add_shape(Context *context, Claim *claim, const char *name, const LayoutExpr *a,
                      const LayoutExpr *b) {
  claim_add(&claim->shapes, (ClaimName){str_intern(context, name), NULL, a, b});
}

static void add_number(Context *context, Claim *claim, const char *name, int a, int b) {
  add_shape(context, claim, name, layout_const(context, a), layout_const(context, b));
}

static void add_shapes(Context *context, Claim *claim, const char *word, const LayoutExpr *const *a,
                       int count, const LayoutExpr *const *b, int other_count) {
  if (count != other_count)
    add_number(context, claim, arena_printf(&context->scratch, "%s.rank", word), count,
               other_count);
  for (int i = 0; i < count && count == other_count; i++)
    add_shape(context, claim, arena_printf(&context->scratch, "%s.%d", word, i), a[i], b[i]);
}

// Separators and resources, where there are any.
static void add_marks(Context *context, Claim *claim, const IndexMap *a, const IndexMap *b) {
  int most = MAX_OF(a->separator_count, b->separator_count);
  if (most) add_number(context, claim, "separators", a->separator_count, b->separator_count);
  for (int i = 0; i < most && a->separator_count == b->separator_count; i++)
    add_number(context, claim, arena_printf(&context->scratch, "separator.%d", i), a->separators[i],
               b->separators[i]);
  for (int i = 0; i < a->output_count && a->output_count == b->output_count; i++) {
    Str x = a->resources[i], y = b->resources[i];
    if (x || y)
      add_number(context, claim, arena_printf(&context->scratch, "place.%d@%s", i, x ? x : y),
                 x != NULL, x == y || !x);
  }
}

// The places of two maps on one box.
static void add_pairs(Context *context, Claim *claim, const IndexMap *a, const IndexMap *b) {
  for (int i = 0; i < a->output_count && a->output_count == b->output_count; i++)
    claim_add(&claim->places,
              (ClaimName){str_format(context, "p%d", i), NULL, a->outputs[i], b->outputs[i]});
}

static Claim *claim_equal(Context *context, const Layout *a, const Layout *b,
                          const LayoutAnswer *answer) {
  Claim *claim = new_claim(context, CLAIM_EQUAL, a, answer);
  int replicas = b->map->replica_count;
  add_shapes(context, claim, "extent", a->shape, layout_box_rank(a), b->shape, b->rank + replicas);
  add_shapes(context, claim, "physical", a->physical, a->physical_rank, b->physical,
             b->physical_rank);
  add_marks(context, claim, a->map, b->map);
  if (a->rank == b->rank) add_pairs(context, claim, a->map, b->map);
  return claim;
}

static Claim *claim_identity(Context *context, const Layout *a, const LayoutAnswer *answer) {
  Claim *claim = new_claim(context, CLAIM_EQUAL, a, answer);
  add_shapes(context, claim, "physical", a->physical, a->physical_rank, a->shape, a->rank);
  add_pairs(context, claim, a->map, index_map_identity(context, a->rank));
  return claim;
}

static void add_places(Context *context, Claim *claim, const Layout *a) {
  for (int i = 0; i < a->physical_rank; i++)
    claim_add(&claim->places,
              (ClaimName){str_format(context, "p%d", i), a->physical[i], a->map->outputs[i], NULL});
}

static void add_inverse(Context *context, Claim *claim, const Layout *a) {
  LayoutInverse inverse;
  if (layout_inverse(context, a, &inverse).verdict != LAYOUT_YES) return;
  for (int i = 0; i < a->rank && i < claim->axes.count; i++)
    claim->axes.items[i].value = inverse.map->outputs[i];
  if (claim->kind != CLAIM_INVERSE) return;
  claim->padding = inverse.padding;
  const Layout *copies = layout_of_copies(context, a);
  if (copies->rank != claim->axes.count) return;
  layout_inverse(context, copies, &inverse);
  for (int i = a->rank; i < copies->rank; i++) claim->axes.items[i].value = inverse.map->outputs[i];
}

// Of "onto": an index for every place, which need not be its only one.
static void add_section(Context *context, Claim *claim, const Layout *a) {
  const LayoutExpr *section[MAX_RANK];
  const Layout *copies = layout_of_copies(context, a);
  bool found = copies->rank == claim->axes.count && layout_section(context, copies, section);
  for (int i = 0; i < claim->axes.count && found; i++) claim->axes.items[i].value = section[i];
  claim->section = found;
}

// Witnesses have the elements; the claim wants their copies too.
static void see_copies(Context *context, Claim *claim, const Layout *a,
                       const LayoutAnswer *answer) {
  int64_t *x = arena_array(&context->scratch, int64_t, 2 * MAX_RANK), *y = x + MAX_RANK;
  bool seen = layout_colliding_copies(a, answer, x, y);
  claim->at = seen ? x : NULL;
  claim->also = seen ? y : NULL;
}

// How many places hold nothing, of a yes.
static const LayoutExpr *padding_count(Context *context, const Layout *a, bool asked) {
  const LayoutExpr *count = NULL;
  if (asked) layout_padding_expr(context, a, &count);
  return count ? count : layout_const(context, 0);
}

static Claim *claim_places(Context *context, LayoutAsk question, const Layout *a,
                           const LayoutAnswer *answer) {
  static const ClaimKind kinds[] = {
      [LAYOUT_ASK_INJECTIVE] = CLAIM_INJECTIVE, [LAYOUT_ASK_ONTO] = CLAIM_ONTO,
      [LAYOUT_ASK_BIJECTIVE] = CLAIM_INJECTIVE, [LAYOUT_ASK_INVERSE] = CLAIM_INVERSE,
      [LAYOUT_ASK_PADDING] = CLAIM_ONTO,
  };
  bool yes = answer->verdict == LAYOUT_YES;
  ClaimKind kind = kinds[question];
  if (!yes && question == LAYOUT_ASK_INVERSE) kind = CLAIM_INJECTIVE;
  if (!yes && question == LAYOUT_ASK_BIJECTIVE && !answer->witness2) kind = CLAIM_ONTO;
  Claim *claim = new_claim(context, kind, a, answer);
  bool counted = kind == CLAIM_ONTO || question == LAYOUT_ASK_BIJECTIVE;
  if (yes && counted) claim->except = padding_count(context, a, question == LAYOUT_ASK_PADDING);
  if (claim->also && a->map->replica_count) see_copies(context, claim, a, answer);
  add_places(context, claim, a);
  if (yes || kind == CLAIM_ONTO) add_inverse(context, claim, a);
  bool open = claim->axes.count && !claim->axes.items[0].value;
  if (yes && question == LAYOUT_ASK_ONTO && open) add_section(context, claim, a);
  return claim;
}

static Claim *claim_of(Context *context, LayoutAsk question, const Layout *a, const Layout *b,
                       const LayoutAnswer *answer) {
  if (question == LAYOUT_ASK_EQUAL) return claim_equal(context, a, b, answer);
  if (question == LAYOUT_ASK_IDENTITY) return claim_identity(context, a, answer);
  return claim_places(context, question, a, answer);
}

// A no at values of the symbols, with their numbers in place of the extents.
static Claim *claim_at_values(Context *context, LayoutAsk question, const Layout *a,
                              const LayoutAnswer *answer) {
  Instance at;
  if (a->is_static || !answer->instance_count || question == LAYOUT_ASK_EQUAL ||
      !layout_instance_at(context, a, answer->instance, answer->instance_count, &at))
    return NULL;
  Claim *claim = claim_of(context, question, at.layout, NULL, answer);
  claim->facts = a->facts;
  return claim;
}

static const char *certificate_of(Context *context, Claim *claim) {
  return claim && claim_prepare(claim) ? claim_certificate(context, claim, POINTS_LIMIT) : NULL;
}

static LayoutAnswer ask_part(Context *context, LayoutAsk question, const Layout *part) {
  LayoutInverse inverse;
  int64_t count;
  switch (question) {
  case LAYOUT_ASK_INJECTIVE: return layout_is_injective(context, part);
  case LAYOUT_ASK_ONTO: return layout_is_onto(context, part);
  case LAYOUT_ASK_BIJECTIVE: return layout_is_bijective(context, part);
  case LAYOUT_ASK_INVERSE: return layout_inverse(context, part, &inverse);
  case LAYOUT_ASK_PADDING: return layout_padding_count(context, part, &count);
  case LAYOUT_ASK_EQUAL:
  case LAYOUT_ASK_IDENTITY: break;
  }
  return layout_said(LAYOUT_UNDECIDED, LAYOUT_DIGITS, NULL);
}

// A yes of a layout that falls apart, as a claim of each part; a no as that of one.
static const char *parts_certificate(Context *context, LayoutAsk question, const Layout *a,
                                     LayoutVerdict verdict) {
  const LayoutParts *parts = layout_parts(context, a);
  Text text = text_new(&context->lasting);
  for (int i = 0; parts && i < parts->count; i++) {
    const Layout *part = parts->items[i].layout;
    LayoutAnswer answer = ask_part(context, question, part);
    if (answer.verdict != verdict && verdict == LAYOUT_NO) continue;
    const char *one = answer.verdict == verdict
                          ? layout_certificate(context, question, part, NULL, &answer)
                          : NULL;
    if (!one || verdict == LAYOUT_NO) return one;
    text_puts(&text, one);
  }
  return text.size ? text_string(&text) : NULL;
}

bool layout_section_is_shown(Context *context, const Layout *layout) {
  LayoutAnswer yes = layout_said(LAYOUT_YES, LAYOUT_DIGITS, NULL);
  ArenaMark mark = arena_mark(&context->scratch);
  Claim *claim = new_claim(context, CLAIM_ONTO, layout, &yes);
  claim->except = layout_const(context, 0);
  add_places(context, claim, layout);
  add_section(context, claim, layout);
  bool shown = claim->section && certificate_of(context, claim);
  arena_reset(&context->scratch, mark);
  return shown;
}

const char *layout_certificate(Context *context, LayoutAsk question, const Layout *a,
                               const Layout *b, const LayoutAnswer *answer) {
  if (answer->verdict == LAYOUT_UNDECIDED || layout_box_rank(a) > MAX_RANK) return NULL;
  ArenaMark mark = arena_mark(&context->scratch);
  Claim *claim = claim_of(context, question, a, b, answer);
  const char *text = certificate_of(context, claim);
  if (!text) text = certificate_of(context, claim_at_values(context, question, a, answer));
  if (text) text = arena_copy(&context->lasting, text, strlen(text) + 1);
  arena_reset(&context->scratch, mark);
  if (!text && !b) text = parts_certificate(context, question, a, answer->verdict);
  bool copies = question == LAYOUT_ASK_EQUAL && (a->map->replica_count || b->map->replica_count);
  return text || !copies ? text : layout_copies_certificate(context, a, b, answer);
}
