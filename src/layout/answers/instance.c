// SPDX-License-Identifier: Apache-2.0
// Makes instances of symbolic layouts, by values of the symbols. A property of all instances is
// refuted by one that does not have it.
#include "layout/answers/answers.h"

enum { MAX_SYMBOLS = 16, LEAST = MAX_INSTANCES - 2, FAR = MAX_INSTANCES - 1 };
static const int64_t MOST_REACH = (int64_t)1 << 20;

// The values of symbols, in multiples above the least value that a symbol may have and up to the
// largest, different for each symbol. Two more instances have the least value of every symbol, and
// long axes.
static const int64_t steps[LEAST] = {0, 1, 2, 4, 6, 10, 16, 3, 5, 12, 17, 40};

static int64_t step_of(int which, int symbol) {
  return which == LEAST ? 0 : steps[(which + 5 * symbol) % COUNT_OF(steps)];
}

static bool collect_all(const Layout *layout, LayoutValue *values, int *count) {
  Str symbols[MAX_SYMBOLS];
  bool good = true;
  *count = 0;
  for (int i = 0; i < layout->rank && good; i++)
    good = layout_add_symbols(layout->shape[i], symbols, count, MAX_SYMBOLS);
  for (int i = 0; i < layout->physical_rank && good; i++)
    good = layout_add_symbols(layout->map->outputs[i], symbols, count, MAX_SYMBOLS) &&
           layout_add_symbols(layout->physical[i], symbols, count, MAX_SYMBOLS);
  for (int i = 0; i < *count; i++) values[i] = (LayoutValue){symbols[i], 0};
  return good;
}

static bool choose(LayoutFacts facts, LayoutValue *value, int64_t step) {
  LayoutFact fact = layout_fact_of(facts, value->symbol);
  int64_t least = ceil_div(fact.min, fact.multiple);
  if (!add_fits(least, step, &least)) return false;
  if (fact.max > 0) least = MIN_OF(least, fact.max / fact.multiple);
  return mul_fits(least, fact.multiple, &value->value) && value->value >= fact.min;
}

bool layout_instance_at(Context *context, const Layout *layout, const LayoutValue *values,
                        int count, LayoutInstance *out) {
  const LayoutExpr *shape[MAX_RANK], *physical[MAX_RANK], *outputs[MAX_RANK];
  const IndexMap *map = layout->map;
  for (int i = 0; i < layout->rank; i++) {
    shape[i] = layout_instantiate(context, layout->shape[i], values, count);
    if (!is_const(shape[i]) || shape[i]->value < 0) return false;
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    outputs[i] = layout_instantiate(context, map->outputs[i], values, count);
    physical[i] = layout_instantiate(context, layout->physical[i], values, count);
    if (!is_const(physical[i]) || physical[i]->value < 0) return false;
  }
  map = index_map_with_outputs(context, map, outputs);
  *out = (LayoutInstance){.count = count};
  out->values = arena_copy(&context->lasting, values, sizeof *values * (size_t)count);
  out->layout =
      layout_new(context, map, shape, physical, (LayoutFacts){0}, layout->padding, (SourcePos){0});
  return out->layout && out->layout->is_static; // not where symbols of the map have no values
}

// A length of an axis beyond which the expression repeats as far as its constants tell: `x//7 &
// 255` begins again at 1792.
static int64_t reach_of(const LayoutExpr *e) {
  int64_t most = 1, own = 1;
  for (int i = 0; i < 3 && e->args[i]; i++) most = MAX_OF(most, reach_of(e->args[i]));
  bool by_const = e->args[0] && e->args[1] && is_const(e->args[1]) && e->args[1]->value > 0;
  if (by_const && (e->op == LAYOUT_DIV || e->op == LAYOUT_MOD)) own = e->args[1]->value;
  if (by_const && (e->op == LAYOUT_AND || e->op == LAYOUT_MIN || e->op == LAYOUT_MAX))
    own = MIN_OF(e->args[1]->value, MOST_REACH) + 1;
  return mul_fits(most, own, &most) ? MIN_OF(most, MOST_REACH) : MOST_REACH;
}

// Chooses every symbol beyond the reach of the constants in the layout.
static bool choose_far(const Layout *layout, LayoutValue *values, int count) {
  int64_t reach = 1;
  for (int i = 0; i < layout->physical_rank; i++) {
    if (layout_expr_size(layout->map->outputs[i]) > MAX_TREE) return false;
    reach = MAX_OF(reach, reach_of(layout->map->outputs[i]));
  }
  if (reach >= MOST_REACH) return false;
  for (int i = 0; i < count; i++) {
    LayoutFact fact = layout_fact_of(layout->facts, values[i].symbol);
    int64_t step = ceil_div(reach + 1, fact.multiple) - ceil_div(fact.min, fact.multiple);
    if (!choose(layout->facts, &values[i], MAX_OF(step, (int64_t)0))) return false;
  }
  return true;
}

bool layout_instance_around(Context *context, const Layout *layout, const LayoutValue *values,
                            int count, LayoutInstance *out) {
  LayoutValue all[MAX_SYMBOLS];
  int total;
  if (!collect_all(layout, all, &total)) return false;
  for (int i = 0; i < total; i++) {
    bool given = false;
    for (int j = 0; j < count; j++) {
      if (values[j].symbol != all[i].symbol) continue;
      all[i] = values[j];
      given = true;
    }
    if (!given && !choose(layout->facts, &all[i], 0)) return false;
  }
  return layout_instance_at(context, layout, all, total, out);
}

bool layout_instance(Context *context, const Layout *layout, int which, LayoutInstance *out) {
  LayoutValue values[MAX_SYMBOLS];
  int count;
  if (!collect_all(layout, values, &count)) return false;
  if (which == FAR && !choose_far(layout, values, count)) return false;
  for (int i = 0; i < count && which != FAR; i++)
    if (!choose(layout->facts, &values[i], step_of(which, i))) return false;
  return layout_instance_at(context, layout, values, count, out);
}

int layout_negative_extent(Context *context, LayoutFacts facts, const LayoutExpr *const *extents,
                           int count, const LayoutValue **values, int *value_count) {
  LayoutValue found[MAX_SYMBOLS];
  Str symbols[MAX_SYMBOLS];
  *value_count = 0;
  for (int i = 0; i < count; i++)
    if (!layout_add_symbols(extents[i], symbols, value_count, MAX_SYMBOLS)) return -1;
  for (int i = 0; i < *value_count; i++) found[i].symbol = symbols[i];
  for (int which = 0; which < MAX_INSTANCES; which++) {
    int64_t extent;
    bool good = true;
    for (int i = 0; i < *value_count && good; i++)
      good = choose(facts, &found[i], step_of(which, i));
    for (int i = 0; i < count && good; i++)
      if (layout_expr_value(extents[i], NULL, found, *value_count, &extent) && extent < 0) {
        *values = arena_copy(&context->lasting, found, sizeof *found * (size_t)*value_count);
        return i;
      }
  }
  return -1;
}
