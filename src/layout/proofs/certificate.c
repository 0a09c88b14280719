// SPDX-License-Identifier: Apache-2.0
// Certificates of answers, written after the fact: which claim (goal.h) an answer makes.
#include "layout/proofs/equations.h"
#include "layout/proofs/verify.h"
#include "layout/answers/answers.h"

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

static void add_axes(Context *context, Goal *goal, const Layout *a) {
  Str names[2 * MAX_RANK];
  axis_names(context, a, names);
  for (int i = 0; i < layout_box_rank(a); i++)
    goal_add(&goal->axes, (GoalName){.name = names[i], .extent = a->shape[i]});
  goal->copy_count = a->map->replica_count;
  goal->facts = a->facts;
}

// The way of an answer: whether it is a yes, where a no can be seen.
static Goal *new_goal(Context *context, GoalKind kind, const Layout *a,
                      const LayoutAnswer *answer) {
  Goal *goal = arena_new(&context->scratch, Goal);
  goal->kind = kind;
  goal->yes = answer->verdict == VERDICT_YES;
  goal->instance = answer->instance;
  goal->instance_count = answer->instance_count;
  if (!goal->yes) goal->at = answer->witness;
  if (!goal->yes) goal->also = answer->witness2;
  if (kind == GOAL_EQUAL && a->map->replica_count) goal->at = NULL; // of the element alone
  add_axes(context, goal, a);
  return goal;
}

static void add_shape(Context *context, Goal *goal, const char *name, const LayoutExpr *a,
                      const LayoutExpr *b) {
  goal_add(&goal->shapes, (GoalName){str_intern(context, name), NULL, a, b});
}

static void add_number(Context *context, Goal *goal, const char *name, int a, int b) {
  add_shape(context, goal, name, layout_const(context, a), layout_const(context, b));
}

static void add_shapes(Context *context, Goal *goal, const char *word, const LayoutExpr *const *a,
                       int count, const LayoutExpr *const *b, int other_count) {
  if (count != other_count)
    add_number(context, goal, arena_printf(&context->scratch, "%s.rank", word), count, other_count);
  for (int i = 0; i < count && count == other_count; i++)
    add_shape(context, goal, arena_printf(&context->scratch, "%s.%d", word, i), a[i], b[i]);
}

// Separators and resources, where there are any.
static void add_marks(Context *context, Goal *goal, const IndexMap *a, const IndexMap *b) {
  int most = MAX_OF(a->separator_count, b->separator_count);
  if (most) add_number(context, goal, "separators", a->separator_count, b->separator_count);
  for (int i = 0; i < most && a->separator_count == b->separator_count; i++)
    add_number(context, goal, arena_printf(&context->scratch, "separator.%d", i), a->separators[i],
               b->separators[i]);
  for (int i = 0; i < a->output_count && a->output_count == b->output_count; i++) {
    Str x = a->resources[i], y = b->resources[i];
    if (x || y)
      add_number(context, goal, arena_printf(&context->scratch, "place.%d@%s", i, x ? x : y),
                 x != NULL, x == y || !x);
  }
}

// The places of two maps on one box.
static void add_pairs(Context *context, Goal *goal, const IndexMap *a, const IndexMap *b) {
  for (int i = 0; i < a->output_count && a->output_count == b->output_count; i++)
    goal_add(&goal->positions,
             (GoalName){str_format(context, "p%d", i), NULL, a->outputs[i], b->outputs[i]});
}

static Goal *goal_equal(Context *context, const Layout *a, const Layout *b,
                        const LayoutAnswer *answer) {
  Goal *goal = new_goal(context, GOAL_EQUAL, a, answer);
  int replicas = b->map->replica_count;
  add_shapes(context, goal, "extent", a->shape, layout_box_rank(a), b->shape, b->rank + replicas);
  add_shapes(context, goal, "physical", a->physical, a->physical_rank, b->physical,
             b->physical_rank);
  add_marks(context, goal, a->map, b->map);
  if (a->rank == b->rank) add_pairs(context, goal, a->map, b->map);
  return goal;
}

static Goal *goal_identity(Context *context, const Layout *a, const LayoutAnswer *answer) {
  Goal *goal = new_goal(context, GOAL_EQUAL, a, answer);
  add_shapes(context, goal, "physical", a->physical, a->physical_rank, a->shape, a->rank);
  add_pairs(context, goal, a->map, index_map_identity(context, a->rank));
  return goal;
}

static void add_positions(Context *context, Goal *goal, const Layout *a) {
  for (int i = 0; i < a->physical_rank; i++)
    goal_add(&goal->positions,
             (GoalName){str_format(context, "p%d", i), a->physical[i], a->map->outputs[i], NULL});
}

static void add_inverse(Context *context, Goal *goal, const Layout *a) {
  LayoutInverse inverse;
  if (layout_inverse(context, a, &inverse).verdict != VERDICT_YES) return;
  for (int i = 0; i < a->rank && i < goal->axes.count; i++)
    goal->axes.items[i].value = inverse.map->outputs[i];
  if (goal->kind != GOAL_INVERSE) return;
  goal->padding = inverse.padding;
  const Layout *copies = layout_of_copies(context, a);
  if (copies->rank != goal->axes.count) return;
  layout_inverse(context, copies, &inverse);
  for (int i = a->rank; i < copies->rank; i++) goal->axes.items[i].value = inverse.map->outputs[i];
}

// Of "onto": an index for every place, which need not be its only one.
static void add_section(Context *context, Goal *goal, const Layout *a) {
  const LayoutExpr *section[MAX_RANK];
  const Layout *copies = layout_of_copies(context, a);
  bool found = copies->rank == goal->axes.count && layout_section(context, copies, section);
  for (int i = 0; i < goal->axes.count && found; i++) goal->axes.items[i].value = section[i];
  goal->section = found;
}

// Witnesses have the elements; the claim wants their copies too.
static void see_copies(Context *context, Goal *goal, const Layout *a, const LayoutAnswer *answer) {
  int64_t *x = arena_array(&context->scratch, int64_t, 2 * MAX_RANK), *y = x + MAX_RANK;
  bool seen = layout_colliding_copies(a, answer, x, y);
  goal->at = seen ? x : NULL;
  goal->also = seen ? y : NULL;
}

// How many places hold nothing, of a yes.
static const LayoutExpr *padding_count(Context *context, const Layout *a, bool asked) {
  const LayoutExpr *count = NULL;
  if (asked) layout_padding_expr(context, a, &count);
  return count ? count : layout_const(context, 0);
}

static Goal *goal_positions(Context *context, LayoutAsk question, const Layout *a,
                            const LayoutAnswer *answer) {
  static const GoalKind kinds[] = {
      [LAYOUT_ASK_INJECTIVE] = GOAL_INJECTIVE, [LAYOUT_ASK_ONTO] = GOAL_ONTO,
      [LAYOUT_ASK_BIJECTIVE] = GOAL_INJECTIVE, [LAYOUT_ASK_INVERSE] = GOAL_INVERSE,
      [LAYOUT_ASK_PADDING] = GOAL_ONTO,
  };
  bool yes = answer->verdict == VERDICT_YES;
  GoalKind kind = kinds[question];
  if (!yes && question == LAYOUT_ASK_INVERSE) kind = GOAL_INJECTIVE;
  if (!yes && question == LAYOUT_ASK_BIJECTIVE && !answer->witness2) kind = GOAL_ONTO;
  Goal *goal = new_goal(context, kind, a, answer);
  bool counted = kind == GOAL_ONTO || question == LAYOUT_ASK_BIJECTIVE;
  if (yes && counted) goal->except = padding_count(context, a, question == LAYOUT_ASK_PADDING);
  if (goal->also && a->map->replica_count) see_copies(context, goal, a, answer);
  add_positions(context, goal, a);
  if (yes || kind == GOAL_ONTO) add_inverse(context, goal, a);
  bool open = goal->axes.count && !goal->axes.items[0].value;
  if (yes && question == LAYOUT_ASK_ONTO && open) add_section(context, goal, a);
  return goal;
}

static Goal *goal_of(Context *context, LayoutAsk question, const Layout *a, const Layout *b,
                     const LayoutAnswer *answer) {
  if (question == LAYOUT_ASK_EQUAL) return goal_equal(context, a, b, answer);
  if (question == LAYOUT_ASK_IDENTITY) return goal_identity(context, a, answer);
  return goal_positions(context, question, a, answer);
}

// A no at values of the symbols, with their numbers in place of the extents.
static Goal *goal_at_values(Context *context, LayoutAsk question, const Layout *a,
                            const LayoutAnswer *answer) {
  LayoutInstance at;
  if (a->is_static || !answer->instance_count || question == LAYOUT_ASK_EQUAL ||
      !layout_instance_at(context, a, answer->instance, answer->instance_count, &at))
    return NULL;
  Goal *goal = goal_of(context, question, at.layout, NULL, answer);
  goal->facts = a->facts;
  return goal;
}

static const char *certificate_of(Context *context, Goal *goal) {
  return goal && goal_prepare(goal) ? goal_certificate(context, goal, POINTS_LIMIT) : NULL;
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
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS, NULL);
}

// A yes of a layout that falls apart, as a claim of each part; a no as that of one.
static const char *parts_certificate(Context *context, LayoutAsk question, const Layout *a,
                                     Verdict verdict) {
  const LayoutComponents *parts = layout_components(context, a);
  Text text = text_new(&context->lasting);
  for (int i = 0; parts && i < parts->count; i++) {
    const Layout *part = parts->items[i].layout;
    LayoutAnswer answer = ask_part(context, question, part);
    if (answer.verdict != verdict && verdict == VERDICT_NO) continue;
    const char *one = answer.verdict == verdict
                          ? layout_certificate(context, question, part, NULL, &answer)
                          : NULL;
    if (!one || verdict == VERDICT_NO) return one;
    text_puts(&text, one);
  }
  return text.size ? text_string(&text) : NULL;
}

bool layout_section_is_shown(Context *context, const Layout *layout) {
  LayoutAnswer yes = layout_answer_of(VERDICT_YES, LAYOUT_DIGITS, NULL);
  ArenaMark mark = arena_mark(&context->scratch);
  Goal *goal = new_goal(context, GOAL_ONTO, layout, &yes);
  goal->except = layout_const(context, 0);
  add_positions(context, goal, layout);
  add_section(context, goal, layout);
  bool shown = goal->section && certificate_of(context, goal);
  arena_reset(&context->scratch, mark);
  return shown;
}

const char *layout_certificate(Context *context, LayoutAsk question, const Layout *a,
                               const Layout *b, const LayoutAnswer *answer) {
  if (answer->verdict == VERDICT_UNDECIDED || layout_box_rank(a) > MAX_RANK) return NULL;
  ArenaMark mark = arena_mark(&context->scratch);
  Goal *goal = goal_of(context, question, a, b, answer);
  const char *text = certificate_of(context, goal);
  if (!text) text = certificate_of(context, goal_at_values(context, question, a, answer));
  if (text) text = arena_copy(&context->lasting, text, strlen(text) + 1);
  arena_reset(&context->scratch, mark);
  if (!text && !b) text = parts_certificate(context, question, a, answer->verdict);
  bool copies = question == LAYOUT_ASK_EQUAL && (a->map->replica_count || b->map->replica_count);
  return text || !copies ? text : layout_copies_certificate(context, a, b, answer);
}
