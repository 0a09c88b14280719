// SPDX-License-Identifier: Apache-2.0
// Finds the values of a consumer's variable at which it runs below a loop of its producer, where it
// reads several elements beside one another, or an element beside its own.
//
//   for i in 16: B[i] = …                           for i in 16:
//   for i in 14: C[i] = B[i] + B[i + 1] + B[i + 2]    B[i] = …
//                                             =>      if 2 <= i: C[i - 2] = B[i - 2] + … + B[i]
//
// The consumer runs where the last element that it reads is stored. The others were stored before:
// the windows that iterations of the loops complete must follow one another without gaps, from the
// first element that is read to the last one, and these loops must run in order.
#include "schedule/compute_at.h"

// The elements factor * v + first, of which there are `count`, that the consumer reads along an
// axis for the value v of a variable.
typedef struct ReadWindow {
  int var;
  int64_t factor, first, count;
} ReadWindow;

// The part of the axis that an iteration completes: `size` elements from `min` on, which the loops
// `moving` move.
typedef struct Completed {
  Move *move;
  Expr *min;
  int64_t size;
  const VarRange *moving;
  int count;
} Completed;

// The region along axis `d` over all values of reduction variables; false where it has no bounds.
static bool over_reductions(Move *move, const Region *read, int d, Expr **min, Expr **extent) {
  Context *context = move->schedule->context;
  const Block *block = move->moved;
  VarRange *ranges = arena_array(&context->arena, VarRange, block->var_count + 1);
  int count = 0;
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind == ITER_REDUCTION) ranges[count++] = (VarRange){v->var, v->min, v->extent};
  }
  index_region(move->analyzer, &read->min[d], 1, ranges, count, min, extent, NULL);
  if (!*min) return false;
  Expr *more = expr_sub(context, read->extent[d], expr_int(context, read->extent[d]->type, 1));
  *extent = analyzer_simplify(move->analyzer, expr_add(context, *extent, more));
  return true;
}

static bool read_window(Move *move, const Region *read, int d, ReadWindow *out) {
  Context *context = move->schedule->context;
  const Block *block = move->moved;
  Expr *min, *extent, *base;
  Expr **vars = arena_array(&context->arena, Expr *, block->var_count + 1);
  int64_t *factors = arena_array(&context->arena, int64_t, block->var_count + 1);
  for (int i = 0; i < block->var_count; i++) vars[i] = block->vars[i].var;
  if (!over_reductions(move, read, d, &min, &extent) || !expr_as_int(extent, &out->count) ||
      !linear_form(context, min, vars, block->var_count, factors, &base) ||
      !expr_as_int(base, &out->first))
    return false;
  out->var = -1;
  for (int i = 0; i < block->var_count; i++) {
    if (!factors[i]) continue;
    if (out->var >= 0 || block->vars[i].kind != ITER_SPATIAL) return false;
    out->var = i;
    out->factor = factors[i];
  }
  return out->var >= 0 && out->factor > 0 && out->factor <= INT32_MAX && out->count >= 1 &&
         out->count <= INT32_MAX && out->first >= INT32_MIN && out->first <= INT32_MAX;
}

// ---- The order of the iterations ---------------------------------------------------------------

static Expr *plus(Context *context, Expr *e, int64_t number) {
  return expr_add(context, e, expr_int(context, e->type, number));
}

// The first element of the part where the moving loops from number `from` on are in their first or
// last iterations, and that before it in the next one if that is wanted.
static Expr *part_at(const Completed *part, int from, bool last, bool next) {
  Context *context = part->move->schedule->context;
  Map values = map_new(&context->arena);
  for (int i = MAX_OF(from - 1, 0); i < part->count; i++) {
    const VarRange *loop = &part->moving[i];
    Expr *end = plus(context, expr_add(context, loop->min, loop->extent), -1);
    if (i >= from)
      map_put(&values, loop->var, last ? end : loop->min);
    else if (next)
      map_put(&values, loop->var, plus(context, loop->var, 1));
  }
  return substitute_expr(context, part->min, &values);
}

// True when each iteration of the moving loops completes the part behind that of the one before.
static bool follows(const Completed *part) {
  Context *context = part->move->schedule->context;
  for (int i = part->count; i > 0; i--) {
    Expr *end = plus(context, part_at(part, i, true, false), part->size);
    if (!analyzer_prove_equal(part->move->analyzer, part_at(part, i, false, true), end))
      return false;
  }
  return true;
}

// True when the parts of all iterations hold what the consumer reads along the axis.
static bool holds_all(const Completed *part, const ReadWindow *window) {
  Context *context = part->move->schedule->context;
  Analyzer *analyzer = part->move->analyzer;
  const BlockVar *v = &part->move->moved->vars[window->var];
  Expr *factor = expr_int(context, v->var->type, window->factor);
  Expr *top = plus(context, expr_add(context, v->min, v->extent), -1);
  Expr *low = plus(context, expr_mul(context, v->min, factor), window->first);
  Expr *high = plus(context, expr_mul(context, top, factor), window->first + window->count);
  Expr *start = expr_cast(context, low->type, part_at(part, 0, false, false));
  Expr *last = expr_cast(context, low->type, part_at(part, 0, true, false));
  Expr *end = plus(context, last, part->size);
  return analyzer_prove(analyzer, expr_binary(context, EXPR_LE, start, low)) &&
         analyzer_prove(analyzer, expr_binary(context, EXPR_LE, high, end));
}

// The loops that move the part, from the outside in. NULL where all is well, else the reason why
// their iterations are not known to run in order, or to move no other axis.
static const char *find_moving(Completed *part, const Region *written, int d) {
  Schedule *schedule = part->move->schedule;
  Arena *arena = &schedule->context->arena;
  const Path *path = &part->move->loop;
  VarRange *ranges = arena_array(arena, VarRange, path->count + 1);
  part->moving = ranges;
  for (int i = path_scope(path, path->count - 1) + 1; i < path->count; i++) {
    const Stmt *s = path->items[i];
    if (s->kind == STMT_SEQ) continue;
    if (s->kind != STMT_FOR) return "a statement around that loop is no loop";
    const Expr *var = s->as.loop.var;
    if (!expr_uses(part->min, var)) continue;
    if (s->as.loop.kind != LOOP_SERIAL && s->as.loop.kind != LOOP_UNROLLED)
      return arena_printf(arena, "the iterations of loop '%s' do not run in order", loop_name(s));
    for (int k = 0; k < written->buffer->rank; k++)
      if (k != d && (expr_uses(written->min[k], var) || expr_uses(written->extent[k], var)))
        return arena_printf(arena, "loop '%s' moves along axis %d too", loop_name(s), k);
    for (int k = 0; k < part->count; k++)
      if (expr_uses(s->as.loop.min, ranges[k].var) || expr_uses(s->as.loop.extent, ranges[k].var))
        return arena_printf(arena, "the range of loop '%s' is not constant", loop_name(s));
    ranges[part->count++] = loop_range(s);
  }
  return NULL;
}

static bool has_other_writers(const Move *move, const StmtArray *blocks, const Buffer *buffer) {
  for (int i = 0; i < blocks->count; i++) {
    Path path;
    const Block *block = blocks->items[i]->as.block;
    if (!block_touches(block, buffer, true)) continue;
    bool below = false;
    path_to_block(move->schedule, block->name, &path);
    for (int k = 0; k < path.count; k++) below |= path.items[k] == path_end(&move->loop);
    if (!below) return true;
  }
  return false;
}

// ---- The windows -------------------------------------------------------------------------------

// Why what the consumer reads beside the part is not known to be stored before; NULL where it is.
static const char *stored_before(Completed *part, const ReadWindow *window, const Region *written,
                                 int d) {
  Move *move = part->move;
  StmtArray blocks = {0};
  blocks_innermost(&move->schedule->context->arena, move->schedule->func->body, &blocks);
  if (has_other_writers(move, &blocks, written->buffer))
    return "a block outside of that loop writes elements too";
  const char *why = find_moving(part, written, d);
  if (why) return why;
  if (!follows(part)) return "iterations are not proved to complete parts that follow one another";
  return holds_all(part, window) ? NULL
                                 : "the loop is not proved to complete all elements that it reads";
}

// True when an iteration stores all elements of the axis that the window has.
static bool stores_all(Move *move, const Region *written, int d, const Window *w) {
  Context *context = move->schedule->context;
  Expr *end = expr_add(context, written->min[d], written->extent[d]);
  Expr *shape = expr_cast(context, end->type, written->buffer->shape[d]);
  Expr *claimed = expr_cast(context, end->type, expr_add(context, w->min, w->extent));
  return analyzer_prove_equal(move->analyzer, written->extent[d], w->extent) ||
         analyzer_prove(move->analyzer,
                        expr_binary(context, EXPR_LE, expr_min(context, claimed, shape), end));
}

// The first value of the variable for which the last element that is read is at `element` or
// behind it.
static Expr *first_value(Move *move, Expr *element, const ReadWindow *window) {
  Context *context = move->schedule->context;
  int64_t last = window->first + window->count - 1, factor = window->factor;
  int64_t whole = floor_div(last, factor);
  Expr *by = expr_int(context, element->type, factor);
  Expr *up = plus(context, element, factor - 1 - (last - whole * factor));
  return analyzer_simplify(move->analyzer, plus(context, expr_floor_div(context, up, by), -whole));
}

// The values of the variable for which the last element that is read is in the part. Where its size
// is no multiple of the steps, some parts have one value fewer than others.
static Window values_of(Move *move, const Completed *part, const ReadWindow *window) {
  Context *context = move->schedule->context;
  int64_t factor = window->factor, count = (part->size + factor - 1) / factor;
  Expr *min = first_value(move, part->min, window);
  Expr *end = first_value(move, plus(context, part->min, part->size), window);
  bool exact = part->size % factor != 0;
  return (Window){false, min, expr_int(context, min->type, count), exact ? end : NULL, exact};
}

static const char *find_window(Move *move, const Region *read, const Region *written, int d,
                               const ReadWindow *window, Window *out) {
  Window w = window_of(move, written, d);
  Completed part = {.move = move, .min = w.min};
  if (!expr_as_int(w.extent, &part.size) || !stores_all(move, written, d, &w))
    return "the size of the part is not known";
  bool beside = window->count > 1 || block_reads_conditionally(move->moved, read->buffer);
  const char *why = beside ? stored_before(&part, window, written, d) : NULL;
  if (why) return why;
  Window next = values_of(move, &part, window);
  if (!out->whole && (!analyzer_prove_equal(move->analyzer, out->min, next.min) ||
                      out->extent != next.extent || out->end != next.end))
    return "it reads another axis by the same variable, of which another part is complete";
  *out = next;
  return NULL;
}

bool window_of_neighbours(Move *move, const Region *read, const Region *written, int d,
                          Window *windows, const char **why) {
  ReadWindow window;
  *why = NULL;
  if (!read_window(move, read, d, &window)) return false;
  *why = find_window(move, read, written, d, &window, &windows[window.var]);
  return *why == NULL;
}
