// SPDX-License-Identifier: Apache-2.0
// Implements merge, which runs the bodies of loops of neighbouring nests one after the other in one
// loop.
//   for i: for j: B[i, j] = …            for i_m:
//   for i: for j: C[i, j] = …      =>      for j: B[i_m, j] = …
//                                          for j: C[i_m, j] = …
// The loops around the given ones, up to the sequence of the nests, are merged too. Loops over the
// same threads may be merged like loops that run in order.
#include "schedule/internal.h"

typedef struct Merge {
  Schedule *schedule;
  int count;  // of the nests
  int depth;  // of the sequence of the nests
  int levels; // loops from there to the given ones
  Path *paths;
} Merge;

static bool refuse_places(const Merge *m) {
  return schedule_refuse(
      m->schedule, path_end(&m->paths[0])->pos,
      "the loops are not at one depth of nests that follow one another, given in "
      "their order");
}

// Finds the sequence in which the nests follow one another.
static bool find_sequence(Merge *m) {
  const Path *first = &m->paths[0];
  m->depth = -1;
  for (int i = 0; i < first->count - 1; i++) {
    bool common = true;
    for (int k = 1; k < m->count; k++)
      common &= i < m->paths[k].count - 1 && m->paths[k].items[i] == first->items[i];
    if (!common) break;
    m->depth = i;
  }
  if (m->depth < 0 || first->items[m->depth]->kind != STMT_SEQ) return refuse_places(m);
  m->levels = first->count - 1 - m->depth;
  for (int k = 0; k < m->count; k++)
    if (m->paths[k].count != first->count ||
        m->paths[k].child[m->depth] != first->child[m->depth] + k)
      return refuse_places(m);
  return true;
}

static Stmt *loop_at(const Merge *m, int nest, int level) {
  return m->paths[nest].items[m->depth + 1 + level];
}

static bool runs_as(const Stmt *loop, const Stmt *first) {
  if (loop_is_plain(loop)) return loop_is_plain(first);
  return loop->as.loop.kind == LOOP_THREAD && first->as.loop.kind == LOOP_THREAD &&
         !strcmp(loop->as.loop.thread, first->as.loop.thread) && !loop->as.loop.annotations.count &&
         !first->as.loop.annotations.count;
}

static bool check_loops(const Merge *m) {
  Analyzer *analyzer = path_analyzer(m->schedule, &m->paths[0], m->depth);
  for (int k = 0; k < m->count; k++)
    for (int i = 0; i < m->levels; i++) {
      const Stmt *loop = loop_at(m, k, i), *first = loop_at(m, 0, i);
      if (loop->kind != STMT_FOR) return refuse_places(m);
      if (!runs_as(loop, first))
        return schedule_refuse(m->schedule, loop->pos,
                               "loop '%s' is annotated, or does not run in order or over the "
                               "threads of '%s'",
                               loop_name(loop), loop_name(first));
      if (!analyzer_prove_equal(analyzer, loop->as.loop.min, first->as.loop.min) ||
          !analyzer_prove_equal(analyzer, loop->as.loop.extent, first->as.loop.extent))
        return schedule_refuse(m->schedule, loop->pos,
                               "loops '%s' and '%s' are not proved to have the same iterations",
                               loop_name(first), loop_name(loop));
      for (int outer = 0; outer < i; outer++)
        if (loop_bounds_use(loop, loop_at(m, k, outer)->as.loop.var))
          return schedule_refuse(m->schedule, loop->pos,
                                 "the extent of loop '%s' depends on loop '%s'", loop_name(loop),
                                 loop_name(loop_at(m, k, outer)));
    }
  return true;
}

// ---- The merged nest -------------------------------------------------------------------------

static Stmt *merged_nest(const Merge *m, Expr **vars) {
  Context *context = m->schedule->context;
  Stmt **bodies = arena_array(&context->arena, Stmt *, m->count);
  for (int i = 0; i < m->levels; i++) {
    const Expr *var = loop_at(m, 0, i)->as.loop.var;
    vars[i] =
        expr_var(context, arena_printf(&context->arena, "%s_m", var->as.var->name), var->type);
  }
  for (int k = 0; k < m->count; k++) {
    Map to = map_new(&context->arena);
    for (int i = 0; i < m->levels; i++) {
      Expr *var = loop_at(m, k, i)->as.loop.var;
      map_put(&to, var, expr_cast(context, var->type, vars[i]));
    }
    Stmt *body = loop_at(m, k, m->levels - 1)->as.loop.body;
    bodies[k] = substitute_stmt(context, body, &to, NULL);
  }
  Stmt *s = stmt_seq(context, bodies, m->count);
  for (int i = m->levels - 1; i >= 0; i--) {
    const Stmt *loop = loop_at(m, 0, i);
    s = loop_like(context, loop, vars[i], loop->as.loop.min, loop->as.loop.extent, s);
  }
  return s;
}

static void replace_nests(const Merge *m, Stmt *merged) {
  Context *context = m->schedule->context;
  const Path *first = &m->paths[0];
  const Stmt *seq = first->items[m->depth];
  int begin = first->child[m->depth], count = 0;
  Stmt **items = arena_array(&context->arena, Stmt *, seq->as.seq.count);
  for (int i = 0; i < seq->as.seq.count; i++)
    if (i <= begin || i >= begin + m->count)
      items[count++] = i == begin ? merged : seq->as.seq.items[i];
  schedule_set_body(m->schedule,
                    path_replace(context, first, m->depth, stmt_seq(context, items, count)));
}

// ---- Legality --------------------------------------------------------------------------------

// True when `a` writes what `b` reads or writes.
static bool writes_into(const Block *a, const Block *b) {
  for (int i = 0; i < a->write_count; i++)
    if (block_touches(b, a->writes[i].buffer, true) || block_touches(b, a->writes[i].buffer, false))
      return true;
  return false;
}

// True when no nest writes what another one reads or writes.
static bool share_nothing(const Merge *m) {
  Arena *arena = &m->schedule->context->arena;
  for (int k = 0; k < m->count; k++)
    for (int n = 0; n < k; n++) {
      StmtArray a = {0}, b = {0};
      blocks_all(arena, loop_at(m, k, 0), &a);
      blocks_all(arena, loop_at(m, n, 0), &b);
      for (int i = 0; i < a.count; i++)
        for (int j = 0; j < b.count; j++)
          if (writes_into(a.items[i]->as.block, b.items[j]->as.block) ||
              writes_into(b.items[j]->as.block, a.items[i]->as.block))
            return false;
    }
  return true;
}

// Gives the accesses of an iteration of a nest, its loops down to a level fixed, in terms of the
// loops of the first nest.
static AccessArray accesses_at(const Merge *m, int nest, int level) {
  Context *context = m->schedule->context;
  Map to = map_new(&context->arena);
  AccessArray found = {0};
  int depth = m->depth + level + 2;
  for (int i = 0; i <= level; i++) {
    Expr *var = loop_at(m, nest, i)->as.loop.var, *first = loop_at(m, 0, i)->as.loop.var;
    map_put(&to, var, expr_cast(context, var->type, first));
  }
  stmt_accesses_below(m->schedule, path_analyzer(m->schedule, &m->paths[nest], depth),
                      loop_at(m, nest, level)->as.loop.body, &found);
  for (int i = 0; i < found.count; i++) {
    Access *a = &found.items[i];
    for (int d = 0; d < a->buffer->rank; d++) {
      a->min[d] = substitute_expr(context, a->min[d], &to);
      a->extent[d] = substitute_expr(context, a->extent[d], &to);
    }
  }
  return found;
}

static bool at_most(Context *context, Analyzer *analyzer, Expr *a, Expr *b) {
  return analyzer_prove(analyzer, expr_binary(context, EXPR_LE, a, b));
}

// True when along an axis, the box of `a` in any later iteration of the loop is beyond that of `b`
// in this one, since it only rises or only falls.
static bool moves_away(Context *context, Analyzer *analyzer, Expr *var, const Access *a,
                       const Access *b, int axis) {
  Map next = map_new(&context->arena);
  map_put(&next, var, expr_add(context, var, expr_int(context, var->type, 1)));
  Expr *begin = b->min[axis], *end = expr_add(context, begin, b->extent[axis]);
  Expr *low = a->min[axis], *high = expr_add(context, low, a->extent[axis]);
  if (expr_reads_memory(begin) || expr_reads_memory(end) || expr_reads_memory(low) ||
      expr_reads_memory(high))
    return false;
  Expr *next_low = substitute_expr(context, low, &next);
  Expr *next_high = substitute_expr(context, high, &next);
  return (at_most(context, analyzer, low, next_low) && at_most(context, analyzer, end, next_low)) ||
         (at_most(context, analyzer, next_high, high) &&
          at_most(context, analyzer, next_high, begin));
}

// True when access `a` of a nest and `b` of a later one keep their order in the merged nest.
static bool keep_order(const Merge *m, Analyzer *analyzer, int level, const Access *a,
                       const Access *b) {
  if ((!a->write && !b->write) || !buffers_alias(a->buffer, b->buffer)) return true;
  Expr *var = loop_at(m, 0, level)->as.loop.var;
  for (int d = 0; d < a->buffer->rank && a->buffer == b->buffer; d++)
    if (moves_away(m->schedule->context, analyzer, var, a, b, d)) return true;
  return false;
}

// True when an iteration of a nest uses of what an earlier nest uses only elements that are of this
// iteration of the loop, or of one before it: a window that slides over rows of the earlier nest.
static bool follows(const Merge *m, int level) {
  Analyzer *analyzer = path_analyzer(m->schedule, &m->paths[0], m->depth + level + 2);
  if (!loop_is_plain(loop_at(m, 0, level))) return false;
  for (int k = 1; k < m->count; k++) {
    AccessArray later = accesses_at(m, k, level);
    for (int n = 0; n < k; n++) {
      AccessArray earlier = accesses_at(m, n, level);
      for (int i = 0; i < earlier.count; i++)
        for (int j = 0; j < later.count; j++)
          if (!keep_order(m, analyzer, level, &earlier.items[i], &later.items[j])) return false;
    }
  }
  return true;
}

// In the merged nest, an iteration's elements are its own, or the nests follow one another: then
// each part sees what it saw before.
static bool check_merged(const Merge *m, Expr *const *vars, const bool *ordered) {
  for (int i = 0; i < m->levels; i++) {
    if (ordered[i]) continue;
    Path path;
    const char *why = NULL;
    path_to_loop(m->schedule, vars[i], &path);
    if (!loops_independent(m->schedule, &path, path.count - 1, 0, &why))
      return schedule_refuse(
          m->schedule, path_end(&m->paths[0])->pos,
          "the nests are not proved to use what they share in the same iterations "
          "of '%s': %s",
          loop_name(loop_at(m, 0, i)), why);
  }
  return true;
}

bool step_merge(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  const StepValue *loops = &call->args[0];
  Merge m = {.schedule = schedule, .count = loops->as.list.count};
  if (m.count < 2)
    return schedule_refuse(schedule, schedule->func->pos, "two loops or more are merged");
  m.paths = arena_array(&context->arena, Path, m.count);
  for (int k = 0; k < m.count; k++)
    if (!schedule_find_loop(schedule, loops->as.list.items[k].as.loop, &m.paths[k])) return false;
  if (!find_sequence(&m) || !check_loops(&m)) return false;
  for (int k = 0; k < m.count; k++)
    if (stmt_has_loose_stores(loop_at(&m, k, 0)))
      return schedule_refuse(schedule, loop_at(&m, k, 0)->pos,
                             "there are statements outside of blocks below loop '%s'",
                             loop_name(loop_at(&m, k, 0)));
  bool apart = share_nothing(&m), *ordered = arena_array(&context->arena, bool, m.levels);
  for (int i = 0; i < m.levels; i++) ordered[i] = !apart && follows(&m, i);
  Expr **vars = arena_array(&context->arena, Expr *, m.levels);
  replace_nests(&m, merged_nest(&m, vars));
  if (!apart && !check_merged(&m, vars, ordered)) return false;
  step_result(schedule, call, value_loop(vars[m.levels - 1]));
  return true;
}
