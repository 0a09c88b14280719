// SPDX-License-Identifier: Apache-2.0
// Finds the values of a block's variables at which it runs under another loop: those whose elements
// are read there, for compute_at and reverse_compute_at.
#include "schedule/compute_at.h"

void window_settle(Move *move, const BlockVar *v, Window *window) {
  int64_t extent, domain;
  if (window->exact) return;
  window->whole |= window->min == v->min && window->extent == v->extent;
  bool fixed = !window->whole && expr_as_int(window->extent, &extent);
  if (fixed && expr_as_int(v->extent, &domain) && extent >= domain) window->whole = true;
  if (!window->whole) return;
  window->min = v->min;
  window->extent = v->extent;
}

Window window_of(Move *move, const Region *region, int d) {
  Window w = {false, analyzer_simplify(move->analyzer, region->min[d]),
              analyzer_simplify(move->analyzer, region->extent[d])};
  int64_t low, high;
  if (w.extent->op != EXPR_INT && analyzer_const_bounds(move->analyzer, w.extent, &low, &high))
    w.extent = expr_index(move->schedule->context, high);
  return w;
}

// Do all results of the block have one shape and memory, and does it write them at one index? The
// indices of one then stand for those of all.
static bool writes_alike(const Block *block) {
  const Region *first = &block->writes[0];
  for (int i = 1; i < block->write_count; i++) {
    const Region *other = &block->writes[i];
    if (other->buffer->rank != first->buffer->rank ||
        strcmp(other->buffer->scope, first->buffer->scope) != 0)
      return false;
    for (int d = 0; d < first->buffer->rank; d++)
      if (other->min[d] != first->min[d] || other->extent[d] != first->extent[d] ||
          other->buffer->shape[d] != first->buffer->shape[d])
        return false;
  }
  return true;
}

static bool reads_result(const Move *move, const Access *a) {
  for (int i = 0; i < move->moved->write_count && !a->write; i++)
    if (buffers_alias(a->buffer, move->moved->writes[i].buffer)) return true;
  return false;
}

// The region of the results that is read below the loop; false when none is read.
static bool needed_region(Move *move, const AccessArray *accesses, Region *out) {
  bool any = false;
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (!reads_result(move, a)) continue;
    Region region = {a->buffer, a->min, a->extent};
    *out = any ? region_union(move->analyzer, out, &region) : region;
    any = true;
  }
  return any;
}

// Where only one access reads the elements, and its predicate ends them along axis `d` at a place
// that is the same for all iterations below the loop: that end. NULL otherwise.
static Expr *needed_end(Move *move, const AccessArray *accesses, int d) {
  Context *context = move->schedule->context;
  const Access *only = NULL;
  ExprArray conjuncts = {0};
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (!reads_result(move, a)) continue;
    if (only || a->buffer != move->moved->writes[0].buffer || !a->points) return NULL;
    only = a;
  }
  if (!only || expr_is_true(only->block->predicate)) return NULL;
  expr_conjuncts(context, only->block->predicate, &conjuncts);
  for (int i = 0; i < conjuncts.count; i++) {
    Expr *end = predicate_end(move->analyzer, context, conjuncts.items[i], only->points[d],
                              only->inner, only->inner_count);
    if (end) return end;
  }
  return NULL;
}

bool written_tile(Move *move, const Region *write, int d, Expr *v, WrittenTile *tile) {
  Context *context = move->schedule->context;
  Expr *min = write->min[d], *zero = expr_int(context, v->type, 0);
  Expr *at_one, *again;
  int64_t first, second;
  Map map = map_new(&context->arena);
  if (!expr_uses(min, v) || !expr_as_int(write->extent[d], &tile->extent)) return false;
  map_put(&map, v, zero);
  tile->first = analyzer_simplify(move->analyzer, substitute_expr(context, min, &map));
  map_put(&map, v, expr_int(context, v->type, 1));
  at_one = analyzer_simplify(move->analyzer, substitute_expr(context, min, &map));
  if (!expr_as_int(tile->first, &first) || !expr_as_int(at_one, &second)) return false;
  tile->size = second - first;
  again =
      expr_add(context, expr_mul(context, v, expr_int(context, v->type, tile->size)), tile->first);
  if (!analyzer_prove_equal(move->analyzer, min, again)) return false;
  tile->mirrored = tile->size < 0;
  if (tile->mirrored) tile->size = -tile->size;
  return tile->extent >= 1 && tile->extent <= tile->size;
}

// The values of the variable whose tiles the window has elements of.
static Window tiles_of(Move *move, Window w, const WrittenTile *tile) {
  Context *context = move->schedule->context;
  DType type = w.extent->type;
  int64_t size = tile->size;
  Expr *last = expr_add(context, tile->first, expr_int(context, type, tile->extent));
  Expr *from = tile->mirrored ? expr_sub(context, last, expr_add(context, w.min, w.extent))
                              : expr_sub(context, w.min, tile->first);
  Expr *by = expr_int(context, from->type, size), *zero = expr_int(context, from->type, 0);
  from = analyzer_simplify(move->analyzer, from);
  bool aligned = analyzer_prove_equal(move->analyzer, expr_floor_mod(context, from, by), zero);
  Expr *more = expr_int(context, type, size - (aligned ? 1 : 2));
  Expr *count =
      expr_floor_div(context, expr_add(context, w.extent, more), expr_int(context, type, size));
  if (!aligned) count = expr_add(context, count, expr_int(context, count->type, 1));
  return (Window){false, analyzer_simplify(move->analyzer, expr_floor_div(context, from, by)),
                  analyzer_simplify(move->analyzer, count), NULL};
}

static void set_windows(Move *move, const AccessArray *accesses, const Region *needed) {
  const Region *write = &move->moved->writes[0];
  for (int i = 0; i < move->moved->var_count; i++) {
    const BlockVar *v = &move->moved->vars[i];
    for (int d = 0; v->kind == ITER_SPATIAL && d < write->buffer->rank; d++) {
      WrittenTile tile;
      Window *w = &move->windows[i];
      if (!written_tile(move, write, d, v->var, &tile)) continue;
      if (write->min[d] != v->var) {
        *w = tiles_of(move, window_of(move, needed, d), &tile);
        window_settle(move, v, w);
        continue;
      }
      *w = window_of(move, needed, d);
      if (!move->complete) w->end = needed_end(move, accesses, d);
      window_settle(move, v, w);
    }
  }
}

bool producer_windows(Move *move) {
  AccessArray accesses = {0};
  Region needed;
  if (!writes_alike(move->moved))
    return move_refuse(move, "it writes several buffers that differ in shape, memory or index");
  loop_accesses_of_threads(move->schedule, move->analyzer, &move->loop,
                           move->moved->writes[0].buffer->scope, &accesses);
  if (!needed_region(move, &accesses, &needed))
    return move_refuse(move, "no element of it is read there");
  set_windows(move, &accesses, &needed);
  return true;
}
