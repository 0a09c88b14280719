// SPDX-License-Identifier: Apache-2.0
// Asks the layout algebra whether two iterations of a loop meet at one element. An access is a map
// from the loop's variable to elements, which has further variables, those of the loops inside, as
// replica axes; that it is injective says that different iterations access different elements.
// Conditions become a further physical axis: where they do not hold, the iteration is on its own.
//
// Two accesses A and B with different indices become one layout of the two elements 0 and 1, whose
// replica axes are all variables of both: (p, q, A(p, ..)) and (p, q, B(q, ..)) with p != q.
#include "lower/races.h"

enum { MOST_AXES = 24 };
static const int64_t most_extent = (int64_t)1 << 20;

// The axes of a layout, and the expressions that they stand for in programs.
typedef struct Space {
  Context *context;
  Expr *vars[MOST_AXES]; // counts from 0
  int64_t extents[MOST_AXES];
  int count;
  bool ok;
} Space;

static Expr *add_axis(Space *space, const char *name, int64_t extent) {
  Expr *var = expr_var(space->context, name, DTYPE_INT64);
  space->ok &= space->count < MOST_AXES && extent > 0 && extent <= most_extent;
  if (!space->ok) return var;
  space->extents[space->count] = extent;
  return space->vars[space->count++] = var;
}

// The variable of a range, as the axis plus the first value.
static void add_range(Space *space, const VarRange *range, Map *values) {
  int64_t min, extent;
  space->ok &=
      range->extent && expr_as_int(range->min, &min) && expr_as_int(range->extent, &extent);
  if (!space->ok) return;
  Expr *axis = add_axis(space, range->var->as.var->name, extent);
  Expr *value = expr_add(space->context, axis, expr_int(space->context, DTYPE_INT64, min));
  map_put(values, range->var, expr_cast(space->context, range->var->type, value));
}

static void add_inner(Space *space, const LoopAccess *access, Map *values) {
  for (int i = 0; i < access->range_count; i++) add_range(space, &access->ranges[i], values);
}

static Map map_copied(Context *context, const Map *map) {
  Map copy = map_new(&context->arena);
  for (int i = 0; i < map->count; i++) map_put(&copy, map->entries[i].key, map->entries[i].value);
  return copy;
}

// 0 where the access happens, and `apart` elsewhere.
static Expr *flag_of(Space *space, const LoopAccess *access, const Map *values, Expr *apart) {
  ExprArray conditions = {0};
  for (int i = 0; i < access->condition_count; i++)
    expr_conjuncts(space->context, access->conditions[i], &conditions);
  Expr *holds = expr_conjunction(space->context, &conditions);
  return expr_select(space->context, substitute_expr(space->context, holds, values),
                     expr_int(space->context, DTYPE_INT64, 0), apart);
}

// Is the layout with these outputs injective, whose axes from `logical` on are replica axes?
static bool is_injective(Space *space, int logical, Expr *const *outputs, int count) {
  Context *context = space->context;
  const LayoutExpr *maps[2 * MOST_AXES], *shape[MOST_AXES];
  for (int i = 0; i < count && space->ok; i++) {
    maps[i] = layout_from_expr(context, outputs[i], space->vars, space->count, false);
    space->ok &= maps[i] != NULL;
  }
  if (!space->ok) return false;
  for (int i = 0; i < space->count; i++) shape[i] = layout_const(context, space->extents[i]);
  int diags = context->diags.count, errors = context->error_count;
  const IndexMap *map = index_map_replicated(context, logical, space->count - logical, NULL,
                                             space->extents + logical, count, maps, NULL, NULL, 0);
  const Layout *layout =
      layout_new(context, map, shape, NULL, (LayoutFacts){0}, (LayoutPadding){0}, (SourcePos){0});
  bool injective = layout && layout_is_injective(context, layout).verdict == VERDICT_YES;
  diag_forget(context, diags, errors);
  return injective;
}

static void add_outer(Space *space, const RaceQuestion *question, Map *values) {
  for (int i = 0; i < question->outer_count; i++) add_range(space, &question->outer[i], values);
}

static bool one_access_apart(const RaceQuestion *question, const LoopAccess *access) {
  Context *context = question->context;
  Space space = {.context = context, .ok = true};
  Map values = map_new(&context->arena);
  VarRange range = loop_range(question->loop);
  add_outer(&space, question, &values);
  add_range(&space, &range, &values);
  int logical = space.count, rank = access->buffer->rank;
  add_inner(&space, access, &values);
  if (!space.ok || logical + rank + 1 > 2 * MOST_AXES) return false;
  Expr *outputs[2 * MOST_AXES], *one = expr_int(context, DTYPE_INT64, 1);
  for (int i = 0; i + 1 < logical; i++) outputs[i] = space.vars[i];
  outputs[logical - 1] =
      flag_of(&space, access, &values, expr_add(context, space.vars[logical - 1], one));
  for (int d = 0; d < rank; d++)
    outputs[logical + d] = substitute_expr(context, access->indices[d], &values);
  return is_injective(&space, logical, outputs, logical + rank);
}

static bool two_accesses_apart(const RaceQuestion *question, const LoopAccess *a,
                               const LoopAccess *b) {
  Context *context = question->context;
  Space space = {.context = context, .ok = true};
  Map values = map_new(&context->arena), others;
  VarRange range = loop_range(question->loop);
  Expr *which = add_axis(&space, "which", 2);
  add_outer(&space, question, &values);
  others = map_copied(context, &values);
  add_range(&space, &range, &values);
  add_range(&space, &range, &others);
  int shared = space.count, rank = a->buffer->rank;
  add_inner(&space, a, &values);
  add_inner(&space, b, &others);
  if (!space.ok || shared + rank > 2 * MOST_AXES) return false;
  Expr *outputs[2 * MOST_AXES], *one = expr_int(context, DTYPE_INT64, 1);
  Expr *own = expr_add(context, which, one);
  Expr *first = expr_binary(context, EXPR_EQ, which, expr_int(context, DTYPE_INT64, 0));
  Expr *same = expr_binary(context, EXPR_EQ, space.vars[shared - 2], space.vars[shared - 1]);
  for (int i = 1; i < shared; i++) outputs[i - 1] = space.vars[i];
  Expr *flag = expr_select(context, first, flag_of(&space, a, &values, own),
                           flag_of(&space, b, &others, own));
  outputs[shared - 1] = expr_select(context, same, own, flag);
  for (int d = 0; d < rank; d++)
    outputs[shared + d] =
        expr_select(context, first, substitute_expr(context, a->indices[d], &values),
                    substitute_expr(context, b->indices[d], &others));
  return is_injective(&space, 1, outputs, shared + rank);
}

bool lower_layouts_keep_apart(const RaceQuestion *question, const LoopAccess *a,
                              const LoopAccess *b) {
  if (a->buffer != b->buffer || a->buffer->strides || a->buffer->broadcasts) return false;
  return a == b ? one_access_apart(question, a) : two_accesses_apart(question, a, b);
}
