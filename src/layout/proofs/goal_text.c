// SPDX-License-Identifier: Apache-2.0
// Writes goals as text. The checker's expressions have fewer operations than those of layouts: the
// other operations are written with `?`, `<=` and `==`.
#include "layout/proofs/goal.h"

enum { MAX_EXPR = 1 << 14, MAX_TEXT = 1 << 20 };

// ---- What occurs -------------------------------------------------------------------------------

void goal_add(GoalNames *names, GoalName row) {
  if (names->count < GOAL_NAMES) names->items[names->count] = row;
  names->count += names->count <= GOAL_NAMES;
}

static bool prepare(Goal *goal, const LayoutExpr *e) {
  return !e || (layout_expr_size(e) <= MAX_EXPR &&
                layout_add_symbols(e, goal->symbols, &goal->symbol_count, MAX_RANK));
}

static bool prepare_names(Goal *goal, const GoalNames *names) {
  bool good = names->count <= GOAL_NAMES;
  for (int i = 0; i < names->count && good; i++) {
    const GoalName *n = &names->items[i];
    good = prepare(goal, n->extent) && prepare(goal, n->value) && prepare(goal, n->other);
  }
  return good;
}

bool goal_prepare(Goal *goal) {
  bool good = prepare_names(goal, &goal->axes) && prepare_names(goal, &goal->lets) &&
              prepare_names(goal, &goal->positions) && prepare_names(goal, &goal->shapes) &&
              prepare(goal, goal->padding) && prepare(goal, goal->except) &&
              goal->axes.count + goal->lets.count <= GOAL_NAMES;
  for (int i = 0; i < goal->symbol_count; i++)
    good = good && layout_fact_of(goal->facts, goal->symbols[i]).min >= 0;
  return good;
}

int64_t goal_least(LayoutFact fact) {
  return ceil_div(fact.min, fact.multiple) * fact.multiple;
}

bool goal_instance(const Goal *goal, Str symbol, int64_t *value) {
  for (int i = 0; i < goal->instance_count; i++)
    if (goal->instance[i].symbol == symbol) return *value = goal->instance[i].value, true;
  return false;
}

// ---- Expressions -------------------------------------------------------------------------------

typedef struct GoalWriter {
  Text *text;
  const GoalNames *names, *more; // of LAYOUT_AXIS
  bool failed;
} GoalWriter;

static const struct Pattern {
  int rank;
  const char *text;
} patterns[LAYOUT_OP_COUNT] = {
#define OP(name, arguments, precedence, text, class, commutes, neutral, value, goal_rank, goal,    \
           ...)                                                                                    \
  {goal_rank, goal},
#include "layout/core/ops.def"
#undef OP
};

static void put(GoalWriter *w, const LayoutExpr *e, int limit);

static void put_leaf(GoalWriter *w, const LayoutExpr *e) {
  int count = w->names ? w->names->count : 0;
  if (e->op == LAYOUT_SYMBOL)
    text_puts(w->text, e->symbol);
  else if (e->op == LAYOUT_CONST && e->value < 0)
    text_printf(w->text, "( 0 - %llu )", 0 - (unsigned long long)e->value);
  else if (e->op == LAYOUT_CONST)
    text_printf(w->text, "%lld", (long long)e->value);
  else if (e->value < count)
    text_puts(w->text, w->names->items[e->value].name);
  else if (w->more && e->value - count < w->more->count)
    text_puts(w->text, w->more->items[e->value - count].name);
  else
    w->failed = true;
}

static void put_power(GoalWriter *w, const LayoutExpr *e) {
  w->failed |= !is_const(e) || e->value < 0 || e->value > 61;
  if (!w->failed) text_printf(w->text, "%lld", 1LL << e->value);
}

static void put_operation(GoalWriter *w, const LayoutExpr *e) {
  const struct Pattern *pattern = &patterns[e->op];
  for (const char *p = pattern->text; *p && !w->failed; p++)
    if (*p == 'k')
      put_power(w, e->args[1]);
    else if (*p >= 'a' && *p <= 'c')
      put(w, e->args[*p - 'a'], pattern->rank ? pattern->rank : 9);
    else
      text_append(w->text, p, 1);
}

static void put(GoalWriter *w, const LayoutExpr *e, int limit) {
  bool open = patterns[e->op].rank <= limit;
  w->failed |= w->text->size > MAX_TEXT;
  if (w->failed) return;
  if (!e->args[0]) return put_leaf(w, e);
  if (open) text_puts(w->text, "( ");
  put_operation(w, e);
  if (open) text_puts(w->text, " )");
}

static void put_part(GoalWriter *w, const char *word, const LayoutExpr *e) {
  if (!e) return;
  text_printf(w->text, " %s ", word);
  put(w, e, -1);
}

// ---- Lines -------------------------------------------------------------------------------------

static void put_witness(GoalWriter *w, const Goal *goal, int i) {
  if (goal->at) text_printf(w->text, " at %lld", (long long)goal->at[i]);
  if (goal->also) text_printf(w->text, " also %lld", (long long)goal->also[i]);
}

static void put_rows(GoalWriter *w, const char *word, const GoalNames *names) {
  for (int i = 0; i < names->count; i++) {
    const GoalName *n = &names->items[i];
    text_printf(w->text, "%s %s", word, n->name);
    put_part(w, "=", n->value);
    put_part(w, "other", n->other);
    text_puts(w->text, "\n");
  }
}

static void put_axes(GoalWriter *w, const Goal *goal) {
  for (int i = 0; i < goal->axes.count; i++) {
    const GoalName *n = &goal->axes.items[i];
    text_printf(w->text, "%s %s", i < goal->axes.count - goal->copy_count ? "axis" : "copy",
                n->name);
    put_part(w, "<", n->extent);
    if (goal->kind != GOAL_ONTO) put_witness(w, goal, i);
    text_puts(w->text, "\n");
  }
}

static void put_positions(GoalWriter *w, const Goal *goal) {
  for (int i = 0; i < goal->positions.count; i++) {
    const GoalName *n = &goal->positions.items[i];
    text_printf(w->text, "place %s", n->name);
    put_part(w, "<", n->extent);
    put_part(w, "=", n->value);
    put_part(w, "other", n->other);
    if (goal->kind == GOAL_ONTO) put_witness(w, goal, i);
    text_puts(w->text, "\n");
  }
}

static void put_back(GoalWriter *w, const Goal *goal) {
  for (int i = 0; i < goal->axes.count; i++) {
    const GoalName *n = &goal->axes.items[i];
    if (!n->value) continue;
    text_printf(w->text, "back %s", n->name);
    put_part(w, "=", n->value);
    text_puts(w->text, "\n");
  }
}

static void put_symbols(GoalWriter *w, const Goal *goal) {
  for (int i = 0; i < goal->symbol_count; i++) {
    LayoutFact f = layout_fact_of(goal->facts, goal->symbols[i]);
    int64_t least = goal_least(f), value;
    text_printf(w->text, "symbol %s'", f.symbol);
    if (goal_instance(goal, f.symbol, &value))
      text_printf(w->text, " = %lld", (long long)((value - least) / f.multiple));
    text_printf(w->text, "\nsymbol %s = %lld * %s' + %lld\n", f.symbol, (long long)f.multiple,
                f.symbol, (long long)least);
    if (f.max > 0)
      text_printf(w->text, "symbol %s'' = %lld - %s\n", f.symbol, (long long)f.max, f.symbol);
  }
}

static void put_line(GoalWriter *w, const char *word, const LayoutExpr *e) {
  if (!e) return;
  text_puts(w->text, word);
  put(w, e, -1);
  text_puts(w->text, "\n");
}

bool goal_write(Text *text, const Goal *goal) {
  static const char *const kinds[] = {[GOAL_EQUAL] = "equal",
                                      [GOAL_INJECTIVE] = "injective",
                                      [GOAL_ONTO] = "onto",
                                      [GOAL_INVERSE] = "inverse"};
  GoalWriter w = {.text = text, .names = &goal->axes, .more = &goal->lets};
  text_printf(text, "claim %s %s\n", kinds[goal->kind], goal->yes ? "yes" : "no");
  put_symbols(&w, goal);
  put_axes(&w, goal);
  put_rows(&w, "let", &goal->lets);
  put_positions(&w, goal);
  put_rows(&w, "shape", &goal->shapes);
  w.names = &goal->positions;
  w.more = NULL;
  put_back(&w, goal);
  put_line(&w, "padding ", goal->padding);
  put_line(&w, "except ", goal->except);
  return !w.failed;
}
