// SPDX-License-Identifier: Apache-2.0
// Gives a block's iteration the axes of an index map's outputs, for transform_layout and
// transform_block_layout: new loops in the map's order replace the old ones, the block gets
// variables for them, and the old variables become expressions of the new ones.
//   for c, h: C[vc, vh] = …   by c, h -> c // 4, h, c % 4   =>
//   for c_0, h, c_1: C[vc_0*4 + vc_1, vh] = …   where c_0*4 + c_1 < extent of c
#include "schedule/internal.h"

// ---- Conditions ------------------------------------------------------------------------------

static int loop_of_binding(const Rebinding *rebinding, const BlockVar *v) {
  for (int i = 0; i < rebinding->loop_count; i++)
    if (loop_is_variable(rebinding->loops[i], v)) return i;
  return -1;
}

// True when what stays as it is uses the loop: the bounds of a loop or another variable's binding.
static bool others_use(const Rebinding *rebinding, const Expr *loop_var) {
  const Block *block = rebinding->block;
  for (int i = 0; i < rebinding->loop_count; i++)
    if (expr_uses(rebinding->loops[i]->as.loop.min, loop_var) ||
        expr_uses(rebinding->loops[i]->as.loop.extent, loop_var))
      return true;
  for (int i = 0; i < block->var_count; i++) {
    bool chosen = false;
    for (int k = 0; k < rebinding->count; k++) chosen |= rebinding->chosen[k] == i;
    if (!chosen && expr_uses(block->vars[i].binding, loop_var)) return true;
  }
  return false;
}

bool rebind_begin(Schedule *schedule, const Path *path, const int *chosen, int count,
                  Rebinding *rebinding, const char **why) {
  Arena *arena = &schedule->context->arena;
  *rebinding = (Rebinding){.schedule = schedule,
                           .path = path,
                           .block = path_end(path)->as.block,
                           .chosen = chosen,
                           .count = count,
                           .loop_at = arena_array(arena, int, count)};
  int depth = path->count - 1;
  while (depth > 0 && path->items[depth - 1]->kind == STMT_FOR) depth--;
  rebinding->depth = depth;
  rebinding->loops = path->items + depth;
  rebinding->loop_count = path->count - 1 - depth;
  for (int k = 0; k < count; k++) {
    const BlockVar *v = &rebinding->block->vars[chosen[k]];
    rebinding->loop_at[k] = loop_of_binding(rebinding, v);
    bool unit = expr_is_int(v->extent, 1) && expr_is_int(v->binding, 0);
    *why = arena_printf(arena, "its variable '%s' is not bound to a loop of its own",
                        v->var->as.var->name);
    if (!expr_is_int(v->min, 0) || (rebinding->loop_at[k] < 0 && !unit)) return false;
    if (rebinding->loop_at[k] < 0) continue;
    for (int i = 0; i < k; i++)
      if (rebinding->loop_at[i] == rebinding->loop_at[k]) return false;
    if (others_use(rebinding, rebinding->loops[rebinding->loop_at[k]]->as.loop.var)) return false;
  }
  return true;
}

// ---- Names -----------------------------------------------------------------------------------

static int first_axis(const LayoutExpr *e) {
  if (e->op == LAYOUT_AXIS) return (int)e->value;
  for (int i = 0; i < layout_op_arguments(e->op); i++) {
    int axis = first_axis(e->args[i]);
    if (axis >= 0) return axis;
  }
  return -1;
}

// Names the outputs after their axes: "c_0" and "c_1" for c // 4 and c % 4, "h" for h.
static Str name_of_output(Context *context, const IndexMap *map, int output, Str const *names) {
  int axis = first_axis(map->outputs[output]), before = 0, total = 0;
  if (axis < 0) return str_intern(context, "u");
  for (int i = 0; i < map->output_count; i++) {
    bool same = first_axis(map->outputs[i]) == axis;
    total += same;
    before += same && i < output;
  }
  return total == 1 ? names[axis] : str_format(context, "%s_%d", names[axis], before);
}

// Sets new_vars and new_loops.
static void rebind_names(Rebinding *rebinding, const IndexMap *map) {
  Context *context = rebinding->schedule->context;
  const Block *block = rebinding->block;
  Str *loop_names = arena_array(&context->arena, Str, rebinding->count);
  Str *var_names = arena_array(&context->arena, Str, rebinding->count);
  for (int k = 0; k < rebinding->count; k++) {
    var_names[k] = block->vars[rebinding->chosen[k]].var->as.var->name;
    loop_names[k] = rebinding->loop_at[k] < 0 ? var_names[k]
                                              : loop_name(rebinding->loops[rebinding->loop_at[k]]);
  }
  rebinding->new_vars = arena_array(&context->arena, Expr *, map->output_count);
  rebinding->new_loops = arena_array(&context->arena, Expr *, map->output_count);
  for (int i = 0; i < map->output_count; i++) {
    rebinding->new_vars[i] =
        expr_var(context, name_of_output(context, map, i, var_names), rebinding->extents[i]->type);
    rebinding->new_loops[i] =
        expr_var(context, name_of_output(context, map, i, loop_names), rebinding->extents[i]->type);
  }
}

static Expr *new_min(const Rebinding *rebinding, int k) {
  return expr_int(rebinding->schedule->context, rebinding->extents[k]->type, 0);
}

// ---- The new loops ---------------------------------------------------------------------------

typedef struct Indices {
  Analyzer *analyzer;
} Indices;

static Expr *simplify_load(Rewriter *rewriter, Expr *e) {
  Indices *env = rewriter->env;
  if (e->op != EXPR_LOAD) return dtype_is_bool(e->type) ? analyzer_simplify(env->analyzer, e) : e;
  Expr **indices = arena_array(&rewriter->context->arena, Expr *, e->count);
  for (int i = 0; i < e->count; i++) indices[i] = analyzer_simplify(env->analyzer, e->args[i]);
  return expr_load(rewriter->context, e->as.buffer, indices, e->count);
}

static Stmt *simplify_store(Rewriter *rewriter, Stmt *s) {
  Indices *env = rewriter->env;
  if (s->kind != STMT_STORE) return s;
  Stmt *copy = stmt_copy(rewriter->context, s);
  copy->as.store.indices = arena_array(&rewriter->context->arena, Expr *, s->as.store.rank);
  for (int i = 0; i < s->as.store.rank; i++)
    copy->as.store.indices[i] = analyzer_simplify(env->analyzer, s->as.store.indices[i]);
  return copy;
}

Stmt *stmt_simplify_indices(Context *context, Analyzer *analyzer, Stmt *s) {
  Indices env = {analyzer};
  Rewriter rewriter = {
      .context = context, .env = &env, .expr = simplify_load, .stmt = simplify_store};
  return s ? rewrite_stmt(&rewriter, s) : NULL;
}

static void add_new_vars(const Rebinding *rebinding, Block *copy) {
  for (int k = 0; k < rebinding->new_count; k++)
    copy->vars[copy->var_count++] =
        (BlockVar){rebinding->new_vars[k], new_min(rebinding, k), rebinding->extents[k],
                   rebinding->kinds ? rebinding->kinds[k] : ITER_SPATIAL, rebinding->new_loops[k]};
}

// The new variables stand where the first of the old ones stood; before the others, where a scalar
// is written and none is chosen.
static void rebind_vars(const Rebinding *rebinding, Block *copy) {
  Context *context = rebinding->schedule->context;
  const Block *block = rebinding->block;
  copy->vars = arena_array(&context->arena, BlockVar,
                           block->var_count - rebinding->count + rebinding->new_count);
  copy->var_count = 0;
  if (!rebinding->count) add_new_vars(rebinding, copy);
  for (int i = 0, seen = 0; i < block->var_count; i++) {
    bool chosen = false;
    for (int k = 0; k < rebinding->count; k++) chosen |= rebinding->chosen[k] == i;
    if (!chosen) copy->vars[copy->var_count++] = block->vars[i];
    if (chosen && !seen++) add_new_vars(rebinding, copy);
  }
}

// The values of the old loops' variables in terms of the new loops' variables.
static Map loop_values(const Rebinding *rebinding) {
  Context *context = rebinding->schedule->context;
  Map to_loops = map_new(&context->arena), values = map_new(&context->arena);
  for (int i = 0; i < rebinding->new_count; i++)
    map_put(&to_loops, rebinding->new_vars[i], rebinding->new_loops[i]);
  for (int k = 0; k < rebinding->count; k++)
    if (rebinding->loop_at[k] >= 0)
      map_put(&values, rebinding->loops[rebinding->loop_at[k]]->as.loop.var,
              substitute_expr(context, rebinding->logical[k], &to_loops));
  return values;
}

static Stmt *rebind_loops(const Rebinding *rebinding, Stmt *s) {
  Context *context = rebinding->schedule->context;
  bool *gone = arena_array(&context->arena, bool, rebinding->loop_count);
  int outermost = rebinding->loop_count;
  for (int k = 0; k < rebinding->count; k++)
    if (rebinding->loop_at[k] >= 0) {
      gone[rebinding->loop_at[k]] = true;
      outermost = MIN_OF(outermost, rebinding->loop_at[k]);
    }
  for (int i = rebinding->loop_count; i >= 0; i--) {
    if (i < rebinding->loop_count && !gone[i])
      s = stmt_with_child(context, rebinding->loops[i], 0, s);
    if (i != outermost) continue;
    for (int k = rebinding->new_count - 1; k >= 0; k--) {
      s = stmt_for(context, rebinding->new_loops[k], new_min(rebinding, k), rebinding->extents[k],
                   LOOP_SERIAL, s);
      s->pos = path_end(rebinding->path)->pos;
    }
  }
  return s;
}

void block_substitute(Context *context, Block *block, const Map *vars) {
  Block inside = *block;
  inside.var_count = 0;
  inside.predicate = expr_bool(context, true);
  const Block *after = substitute_stmt(context, stmt_block(context, &inside), vars, NULL)->as.block;
  block->matches = after->matches;
  block->allocs = after->allocs;
  block->init = after->init;
  block->body = after->body;
}

Stmt *rebind_block(const Rebinding *rebinding) {
  Context *context = rebinding->schedule->context;
  Block *copy = block_copy(context, rebinding->block);
  rebind_vars(rebinding, copy);
  Map vars = map_new(&context->arena), values = loop_values(rebinding);
  for (int k = 0; k < rebinding->count; k++)
    map_put(&vars, rebinding->block->vars[rebinding->chosen[k]].var, rebinding->logical[k]);
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, copy);
  block_substitute(context, copy, &vars);
  copy->init = stmt_simplify_indices(context, analyzer, copy->init);
  copy->body = stmt_simplify_indices(context, analyzer, copy->body);
  copy->predicate = substitute_expr(context, copy->predicate, &values);
  if (!expr_is_true(rebinding->valid)) {
    Map to_loops = map_new(&context->arena);
    for (int i = 0; i < rebinding->new_count; i++)
      map_put(&to_loops, rebinding->new_vars[i], rebinding->new_loops[i]);
    copy->predicate = condition_and(context, copy->predicate,
                                    substitute_expr(context, rebinding->valid, &to_loops));
  }
  Stmt *s = stmt_with_block(context, path_end(rebinding->path), block_with_regions(context, copy));
  return rebind_loops(rebinding, s);
}

// ---- transform_block_layout --------------------------------------------------------------------

static bool reads_axis(const LayoutExpr *e, const LayoutExpr *axis) {
  if (e == axis) return true;
  for (int i = 0; i < layout_op_arguments(e->op); i++)
    if (reads_axis(e->args[i], axis)) return true;
  return false;
}

static bool kinds_of_outputs(Rebinding *rebinding, const IndexMap *map) {
  Context *context = rebinding->schedule->context;
  IterKind *kinds = arena_array(&context->arena, IterKind, map->output_count);
  for (int i = 0; i < map->output_count; i++) {
    bool any = false;
    for (int k = 0; k < rebinding->count; k++) {
      const LayoutExpr *probe = layout_axis(context, k);
      if (!reads_axis(map->outputs[i], probe)) continue;
      IterKind kind = rebinding->block->vars[k].kind;
      if (any && kinds[i] != kind) return false;
      kinds[i] = kind;
      any = true;
    }
    if (!any) kinds[i] = ITER_SPATIAL;
  }
  rebinding->kinds = kinds;
  return true;
}

// An axis of extent 1 that the map keeps stays a variable, although its inverse is 0.
static Expr *unit_axis(const Rebinding *rebinding, const Layout *layout, int k) {
  const LayoutExpr *axis = layout_axis(rebinding->schedule->context, k);
  for (int i = 0; i < rebinding->new_count; i++)
    if (layout->map->outputs[i] == axis) return rebinding->new_vars[i];
  return rebinding->logical[k];
}

// The new variables are as wide as the narrowest of the old ones, which then need no casts.
static DType index_type(const Rebinding *rebinding) {
  DType type = DTYPE_INT64;
  for (int k = 0; k < rebinding->count; k++) {
    DType old = rebinding->block->vars[rebinding->chosen[k]].var->type;
    if (old.bits < type.bits) type = old;
  }
  return rebinding->count ? type : DTYPE_INT32;
}

// A layout with an inverse that the block may use: where variables have no values, one in which
// they have many, since on no elements all inverses agree. NULL where that does not fit the map.
static const Layout *invertible(const Rebinding *rebinding, const Layout *layout) {
  enum { MANY = 1 << 20 };
  Context *context = rebinding->schedule->context;
  Expr **extents = arena_array(&context->arena, Expr *, rebinding->count);
  bool is_empty = false;
  for (int k = 0; k < rebinding->count; k++) {
    extents[k] = rebinding->block->vars[rebinding->chosen[k]].extent;
    if (!expr_is_int(extents[k], 0)) continue;
    is_empty = true;
    extents[k] = expr_int(context, extents[k]->type, MANY);
  }
  return is_empty ? layout_of_extents(rebinding->schedule, layout->map, extents, (SourcePos){0})
                  : layout;
}

// Binds a block whose spatial variables have no values to loops of no iterations: 0 stands for each
// value. False where the variables have values, or only those of a reduction have none, whose init
// runs.
static bool rebind_nothing(Rebinding *rebinding) {
  Context *context = rebinding->schedule->context;
  bool is_empty = false;
  for (int k = 0; k < rebinding->count; k++) {
    const BlockVar *v = &rebinding->block->vars[rebinding->chosen[k]];
    is_empty |= v->kind == ITER_SPATIAL && expr_is_int(v->extent, 0);
    rebinding->logical[k] = expr_int(context, v->var->type, 0);
  }
  int at = 0;
  const IterKind *kinds = rebinding->kinds;
  while (at < rebinding->new_count && kinds && kinds[at] != ITER_SPATIAL) at++;
  if (!is_empty || at == rebinding->new_count) return false;
  rebinding->extents[at] = expr_int(context, rebinding->extents[at]->type, 0);
  rebinding->valid = expr_bool(context, true);
  return true;
}

bool rebind_by_map(Rebinding *rebinding, const Layout *layout, const char **why) {
  Context *context = rebinding->schedule->context;
  LayoutAnswer answer;
  Map symbols = schedule_size_symbols(rebinding->schedule);
  rebinding->new_count = layout->physical_rank;
  rebinding->extents = arena_array(&context->arena, Expr *, rebinding->new_count);
  DType type = index_type(rebinding);
  for (int i = 0; i < rebinding->new_count; i++) {
    Expr *extent = expr_from_layout(context, layout->physical[i], NULL, 0, &symbols);
    bool narrow = extent->type.bits < type.bits;
    rebinding->extents[i] = narrow ? expr_cast(context, type, extent) : extent;
  }
  *why = "it runs for no values of these variables, and the map has no inverse for more of them";
  const Layout *given = layout;
  rebind_names(rebinding, layout->map);
  rebinding->logical = arena_array(&context->arena, Expr *, rebinding->count);
  if (!(layout = invertible(rebinding, layout))) return rebind_nothing(rebinding);
  if (!layout_inverse_exprs(context, layout, rebinding->new_vars, &symbols, rebinding->logical,
                            &rebinding->valid, &answer)) {
    if (rebind_nothing(rebinding)) return true;
    if (layout == given) // else its witnesses are no values of the variables
      *why = arena_printf(&context->arena, "the map has no proved inverse: %s",
                          layout_answer_text(context, &answer));
    return false;
  }
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < rebinding->new_count; i++)
    analyzer_bind_kept(analyzer, rebinding->new_vars[i], new_min(rebinding, i),
                       rebinding->extents[i]);
  for (int k = 0; k < rebinding->count; k++) {
    const BlockVar *v = &rebinding->block->vars[rebinding->chosen[k]];
    if (expr_is_int(v->extent, 1)) rebinding->logical[k] = unit_axis(rebinding, layout, k);
    rebinding->logical[k] =
        expr_cast(context, v->var->type, analyzer_simplify(analyzer, rebinding->logical[k]));
  }
  rebinding->valid = analyzer_simplify(analyzer, rebinding->valid);
  return true;
}

bool step_transform_block_layout(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  const Block *block = path_end(&path)->as.block;
  const IndexMap *map = call->args[1].as.map;
  SourcePos pos = path_end(&path)->pos;
  int count = block->var_count;
  if (map->input_count != count)
    return schedule_refuse(schedule, pos, "the map takes %d axes, block '%s' has %d variables",
                           map->input_count, block->name, count);
  int *all = arena_array(&context->arena, int, count);
  Expr **extents = arena_array(&context->arena, Expr *, count);
  for (int i = 0; i < count; i++) {
    all[i] = i;
    extents[i] = block->vars[i].extent;
  }
  Rebinding rebinding;
  const char *why = NULL;
  if (!rebind_begin(schedule, &path, all, count, &rebinding, &why))
    return schedule_refuse(
        schedule, pos,
        "block '%s' cannot be bound to new loops: %s; do this step before its loops "
        "are split or fused",
        block->name, why);
  const Layout *layout = layout_of_extents(schedule, map, extents, schedule->pos);
  if (!layout)
    return schedule_refuse(schedule, pos, "the map does not fit block '%s'", block->name);
  if (!kinds_of_outputs(&rebinding, map))
    return schedule_refuse(
        schedule, pos, "the map mixes spatial and reduction variables of block '%s'", block->name);
  if (!rebind_by_map(&rebinding, layout, &why))
    return schedule_refuse(schedule, pos, "block '%s': %s", block->name, why);
  Stmt *s = rebind_block(&rebinding);
  if (!path_order_survives(schedule, &path, &why) &&
      (rebinding.depth == path.count - 1 ||
       !path_iterations_are_independent(schedule, &path, rebinding.depth, path.count - 2)))
    return schedule_refuse(schedule, pos, "block '%s': %s", block->name, why);
  schedule_set_body(schedule, path_replace(context, &path, rebinding.depth, s));
  return true;
}
