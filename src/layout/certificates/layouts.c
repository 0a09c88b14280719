// SPDX-License-Identifier: Apache-2.0
// Writes the goals about one layout (injective, onto, bijective, inverse, padding, identity) and
// about the equality of two.
#include "layout/certificates/certificate.h"

// ---- Names -------------------------------------------------------------------------------------

// Names that no other word of a certificate can be: not p0, q0 or x0, no word of the language.
static bool is_plain_name(Str name) {
  static const char *const words[] = {"new", "by", "of", "over", "at", "also", "other", "rank"};
  for (int i = 0; i < COUNT_OF(words); i++)
    if (!strcmp(words[i], name)) return false;
  for (const char *p = name; *p; p++)
    if (!char_is_letter(*p) && !char_is_digit(*p) && *p != '_') return false;
  return char_is_letter(*name) && !(strchr("pqx", *name) && char_is_digit(name[1]));
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

// ---- Goals about a layout ---------------------------------------------------------------------

// A goal about a layout, which is refuted where the answer is "no".
static void layout_goal(Certificate *c, GoalKind kind, const Layout *a,
                        const LayoutAnswer *answer) {
  Str names[2 * MAX_RANK];
  goal_begin(c, kind, c->facts ? *c->facts : a->facts);
  goal_answered(c, answer);
  axis_names(c->context, a, names);
  for (int i = 0; i < layout_box_rank(a); i++)
    goal_add(&c->goal->axes, (GoalName){.name = names[i], .extent = a->shape[i]});
  c->goal->copy_count = a->map->replica_count;
}

// ---- Equality ----------------------------------------------------------------------------------

static void add_shape(Certificate *c, const char *name, const LayoutExpr *a, const LayoutExpr *b) {
  goal_add(&c->goal->shapes, (GoalName){str_intern(c->context, name), NULL, a, b});
}

static void add_number(Certificate *c, const char *name, int a, int b) {
  add_shape(c, name, goal_number(c, a), goal_number(c, b));
}

static void add_shapes(Certificate *c, const char *word, const LayoutExpr *const *a, int count,
                       const LayoutExpr *const *b, int other_count) {
  Arena *scratch = &c->context->scratch;
  if (count != other_count)
    add_number(c, arena_printf(scratch, "%s.rank", word), count, other_count);
  for (int i = 0; i < count && count == other_count; i++)
    add_shape(c, arena_printf(scratch, "%s.%d", word, i), a[i], b[i]);
}

// Separators and resources, where there are any.
static void add_marks(Certificate *c, const IndexMap *a, const IndexMap *b) {
  Arena *scratch = &c->context->scratch;
  int most = MAX_OF(a->separator_count, b->separator_count);
  if (most) add_number(c, "separators", a->separator_count, b->separator_count);
  for (int i = 0; i < most && a->separator_count == b->separator_count; i++)
    add_number(c, arena_printf(scratch, "separator.%d", i), a->separators[i], b->separators[i]);
  for (int i = 0; i < a->output_count && a->output_count == b->output_count; i++) {
    Str x = a->resources[i], y = b->resources[i];
    if (x || y)
      add_number(c, arena_printf(scratch, "place.%d@%s", i, x ? x : y), x != NULL, x == y || !x);
  }
}

// The physical indices of two maps on one box are equal.
static void add_pairs(Certificate *c, const IndexMap *a, const IndexMap *b) {
  for (int i = 0; i < a->output_count && a->output_count == b->output_count; i++)
    goal_pair(c, "p", i, a->outputs[i], b->outputs[i]);
}

bool equal_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a, *b = q->b;
  bool before = c->refused, copies = a->map->replica_count || b->map->replica_count;
  layout_goal(c, GOAL_EQUAL, a, answer);
  if (a->map->replica_count) c->goal->at = NULL; // the witness has no copies
  add_shapes(c, "extent", a->shape, layout_box_rank(a), b->shape, layout_box_rank(b));
  add_shapes(c, "physical", a->physical, a->physical_rank, b->physical, b->physical_rank);
  add_marks(c, a->map, b->map);
  if (a->rank == b->rank) add_pairs(c, a->map, b->map);
  if (goal_show(c)) return true;
  if (!copies) return false;
  c->refused = before; // the same sets of copies may be listed in another order
  return copies_certificate(c, q, answer);
}

// ---- Indices and physical indices --------------------------------------------------------------

static void add_positions(Certificate *c, const Layout *a) {
  for (int i = 0; i < a->physical_rank; i++)
    goal_add(&c->goal->positions, (GoalName){str_format(c->context, "p%d", i), a->physical[i],
                                             a->map->outputs[i], NULL});
}

// The inverse that was found, or another one.
static void add_inverse(Certificate *c, const LayoutQuestion *q) {
  const Layout *a = q->a, *copies = layout_of_copies(c->context, a);
  LayoutInverse inverse = {0};
  GoalNames *axes = &c->goal->axes;
  if (q->ask == LAYOUT_ASK_INVERSE) inverse = q->inverse;
  if (!inverse.map && layout_inverse(c->context, a, &inverse).verdict != VERDICT_YES) return;
  for (int i = 0; i < a->rank && i < axes->count; i++)
    axes->items[i].value = inverse.map->outputs[i];
  if (c->goal->kind != GOAL_INVERSE) return;
  c->goal->padding = inverse.padding;
  if (copies->rank != axes->count || copies->rank == a->rank) return;
  layout_inverse(c->context, copies, &inverse);
  for (int i = a->rank; i < copies->rank; i++) axes->items[i].value = inverse.map->outputs[i];
}

// An index for every physical index, which need not be its only one.
static void add_section(Certificate *c, const Layout *a) {
  const LayoutExpr *section[MAX_RANK];
  const Layout *copies = layout_of_copies(c->context, a);
  GoalNames *axes = &c->goal->axes;
  bool found = copies->rank == axes->count && layout_section(c->context, copies, section);
  for (int i = 0; i < axes->count && found; i++) axes->items[i].value = section[i];
  c->goal->section = found;
}

// The witnesses are elements, and the goal is about their copies.
static void see_copies(Certificate *c, const Layout *a, const LayoutAnswer *answer) {
  int64_t *x = arena_array(&c->context->scratch, int64_t, 2 * MAX_RANK), *y = x + MAX_RANK;
  bool seen = layout_colliding_copies(a, answer, x, y);
  c->goal->at = seen ? x : NULL;
  c->goal->also = seen ? y : NULL;
}

// How many physical indices have no element, where the question is about that.
static const LayoutExpr *padding_count(Certificate *c, const LayoutQuestion *q) {
  const LayoutExpr *count = q->ask == LAYOUT_ASK_PADDING ? q->value : NULL;
  if (!count && q->ask == LAYOUT_ASK_PADDING) layout_padding_expr(c->context, q->a, &count);
  return count ? count : goal_number(c, 0);
}

static bool show_indices(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  static const GoalKind kinds[] = {
      [LAYOUT_ASK_INJECTIVE] = GOAL_INJECTIVE, [LAYOUT_ASK_ONTO] = GOAL_ONTO,
      [LAYOUT_ASK_BIJECTIVE] = GOAL_INJECTIVE, [LAYOUT_ASK_INVERSE] = GOAL_INVERSE,
      [LAYOUT_ASK_PADDING] = GOAL_ONTO,
  };
  bool yes = answer->verdict == VERDICT_YES;
  GoalKind kind = kinds[q->ask];
  if (!yes && q->ask == LAYOUT_ASK_INVERSE) kind = GOAL_INJECTIVE;
  if (!yes && q->ask == LAYOUT_ASK_BIJECTIVE && !answer->witness2) kind = GOAL_ONTO;
  layout_goal(c, kind, q->a, answer);
  bool counted = kind == GOAL_ONTO || q->ask == LAYOUT_ASK_BIJECTIVE;
  if (yes && counted) c->goal->except = padding_count(c, q);
  if (c->goal->also && q->a->map->replica_count) {
    if (!layout_searches_copies(q->a)) return goal_drop(c);
    see_copies(c, q->a, answer);
  }
  add_positions(c, q->a);
  if (yes || kind == GOAL_ONTO) add_inverse(c, q);
  bool open = c->goal->axes.count && !c->goal->axes.items[0].value;
  if (yes && q->ask == LAYOUT_ASK_ONTO && open) add_section(c, q->a);
  return goal_show(c);
}

// ---- Other ways --------------------------------------------------------------------------------

static bool show_identity(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a;
  layout_goal(c, GOAL_EQUAL, a, answer);
  if (a->map->replica_count) c->goal->at = NULL; // the witness has no copies
  add_shapes(c, "physical", a->physical, a->physical_rank, a->shape, a->rank);
  add_pairs(c, a->map, index_map_identity(c->context, a->rank));
  return goal_show(c);
}

// A "no" at values of the symbols, with their numbers in place of the extents.
static bool show_at_values(Certificate *c, CertificateOf *show, const LayoutQuestion *q,
                           const LayoutAnswer *answer) {
  LayoutInstance at;
  LayoutQuestion instance = *q;
  if (q->a->is_static || !answer->instance_count ||
      !layout_instance_at(c->context, q->a, answer->instance, answer->instance_count, &at))
    return false;
  instance.a = at.layout;
  c->facts = &q->a->facts;
  bool shown = show(c, &instance, answer);
  c->facts = NULL;
  return shown;
}

// Whether what was found is what the layout's components lead to.
static bool is_of_parts(Certificate *c, const LayoutQuestion *q) {
  LayoutQuestion own = {.ask = q->ask, .a = q->a};
  if (q->ask == LAYOUT_ASK_PADDING && q->value)
    return layout_ask(c->context, &own).verdict == VERDICT_YES && own.value == q->value;
  if (q->ask == LAYOUT_ASK_INVERSE && q->inverse.map)
    return layout_ask(c->context, &own).verdict == VERDICT_YES &&
           own.inverse.map == q->inverse.map && own.inverse.padding == q->inverse.padding;
  return true;
}

// The verdict on a layout that consists of independent components: "yes" of every component, "no"
// of one.
static bool show_parts(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *whole) {
  const LayoutComponents *parts = layout_components(c->context, q->a);
  if (whole->verdict == VERDICT_YES && !is_of_parts(c, q)) return false;
  for (int i = 0; parts && i < parts->count; i++) {
    LayoutQuestion part = {.ask = q->ask, .a = parts->items[i].layout};
    LayoutAnswer answer = layout_ask(c->context, &part);
    if (answer.verdict != whole->verdict && whole->verdict == VERDICT_NO) continue;
    if (answer.verdict != whole->verdict || !certificate_add(c, &part, &answer)) return false;
    if (whole->verdict == VERDICT_NO) return true;
  }
  return parts && whole->verdict == VERDICT_YES;
}

// The first of these ways that leads to a certificate.
static bool show_some(Certificate *c, CertificateOf *show, bool has_parts, const LayoutQuestion *q,
                      const LayoutAnswer *answer) {
  bool before = c->refused;
  bool shown = show(c, q, answer) || show_at_values(c, show, q, answer) ||
               (has_parts && show_parts(c, q, answer));
  if (shown) c->refused = before;
  return shown;
}

bool identity_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  return show_some(c, show_identity, false, q, answer);
}

bool indices_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  return show_some(c, show_indices, true, q, answer);
}
