// SPDX-License-Identifier: Apache-2.0
// Gives allocated buffers the strides that blocks ask for with the annotation "buffer_dim_align"
// (the step storage_align). Each of its items is [buffer index, axis, factor, offset]: the stride
// of this axis of that written buffer is to be `offset` more than a multiple of `factor`.
//
//   T.block_attr({"buffer_dim_align": [[0, 0, 32, 1]]})    B: shape (7, 30), strides (33, 1)
#include "lower/pass.h"

typedef struct AlignSearch {
  Context *context;
  Map found; // data variable → tuple of items
} AlignSearch;

static bool item_numbers(const Expr *item, int64_t *numbers) {
  if (item->op != EXPR_TUPLE || item->count != 4) return false;
  for (int i = 0; i < 4; i++)
    if (!expr_as_int(item->args[i], &numbers[i])) return false;
  return numbers[2] > 0;
}

static void note_item(AlignSearch *search, const Block *block, Expr *item) {
  int64_t numbers[4];
  if (!item_numbers(item, numbers) || numbers[0] < 0 || numbers[0] >= block->write_count) return;
  const Buffer *buffer = block->writes[numbers[0]].buffer;
  const Expr *before = map_find(&search->found, buffer->data);
  int count = before ? before->count : 0;
  Expr **items = arena_array(&search->context->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) items[i] = before->args[i];
  items[count] = item;
  map_put(&search->found, buffer->data, expr_tuple(search->context, items, count + 1));
}

static bool note_block(Visitor *visitor, Stmt *s) {
  if (s->kind != STMT_BLOCK) return true;
  const Expr *items = attrs_get(&s->as.block->annotations, "buffer_dim_align");
  for (int i = 0; items && items->op == EXPR_TUPLE && i < items->count; i++)
    note_item(visitor->env, s->as.block, items->args[i]);
  return true;
}

// The strides of a view are taken from its source before the source's allocation is made, so that a
// buffer with views keeps its rows together.
static bool forget_views(Visitor *visitor, Stmt *s) {
  AlignSearch *search = visitor->env;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    map_put(&search->found, s->as.block->matches[i].source.buffer->data, NULL);
  return true;
}

Map lower_find_aligned_axes(Context *context, Stmt *body) {
  AlignSearch search = {context, map_new(&context->arena)};
  Visitor visitor = {.env = &search, .enter_stmt = note_block};
  visit_stmt(&visitor, body);
  Visitor views = {.env = &search, .enter_stmt = forget_views};
  if (search.found.count) visit_stmt(&views, body);
  return search.found;
}

static int64_t aligned(const Expr *items, int axis, int64_t stride) {
  for (int i = 0; i < items->count; i++) {
    int64_t numbers[4];
    if (!item_numbers(items->args[i], numbers) || numbers[1] != axis) continue;
    int64_t factor = numbers[2], rest = (numbers[3] - stride % factor) % factor;
    stride += rest < 0 ? rest + factor : rest;
  }
  return stride;
}

Expr **lower_aligned_strides(Context *context, const Buffer *buffer, const Expr *items) {
  Expr **strides = arena_array(&context->arena, Expr *, buffer->rank);
  int64_t stride = 1, dense = 1;
  bool padded = false;
  for (int i = buffer->rank - 1; i >= 0; i--) {
    int64_t extent;
    if (!expr_as_int(buffer->shape[i], &extent)) return NULL;
    stride = aligned(items, i, stride);
    padded |= stride != dense;
    strides[i] = expr_index(context, stride);
    if (!mul_fits(stride, MAX_OF(extent, 1), &stride)) return NULL;
    dense *= MAX_OF(extent, 1);
  }
  return padded ? strides : NULL;
}
