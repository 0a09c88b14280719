// SPDX-License-Identifier: Apache-2.0
// Finds the rows of a kernel that runs row by row. The blocks are followed from the output back: an
// element of the output needs elements of the blocks before it, and these need others. The indices
// of the reductions' results that it needs so are the index of its row.
//   m[n, g] = Σ x[…];  y[n, c, h, w] = (x[n, c, h, w] - m[n, c // 8]) …   =>   row (n, c // 8)
#include "autosched/row_axes.h"

#include "ir/index_map.h"

enum { MOST_LOADS = 256 };

typedef struct RowSearch {
  Context *context;
  const Block *const *blocks;
  int count;
  RowAxes *axes;
  const Buffer *output;
  Expr *vars[TE_MAX_RANK]; // the output's indices
  int64_t extents[TE_MAX_RANK];
  const Block *current; // whose value is visited
  bool found;           // a reduction's result was met
  int work;             // loads that may still be followed
  bool ok;
} RowSearch;

static const Stmt *store_of(const Block *block) {
  return block->body->kind == STMT_STORE ? block->body : NULL;
}

static const Block *writer_of(const RowSearch *search, const Buffer *buffer) {
  for (int i = 0; i + 1 < search->count; i++)
    if (store_of(search->blocks[i])->as.store.buffer->data == buffer->data)
      return search->blocks[i];
  return NULL;
}

// Adds the dimension of the output that the index divides. False when the index is no constant and
// no such dimension.
static bool cut_by(const RowSearch *search, const Expr *index, int64_t *cuts) {
  int64_t by = 1;
  const Expr *var = index;
  if (index->op == EXPR_INT) return true;
  if (index->op == EXPR_FLOOR_DIV && expr_as_int(index->args[1], &by)) var = index->args[0];
  for (int d = 0; d < search->output->rank; d++) {
    if (search->vars[d] != var) continue;
    if (by < 1 || search->extents[d] % by || cuts[d]) return false;
    cuts[d] = by;
    return true;
  }
  return false;
}

static int64_t coarser(int64_t a, int64_t b) {
  if (!a || !b) return 0;
  return a % b == 0 ? a : b % a == 0 ? b : 0;
}

static bool note_reduction(RowSearch *search, const Expr *load) {
  int64_t cuts[TE_MAX_RANK] = {0};
  for (int d = 0; d < load->count; d++)
    if (!expr_is_int(load->as.buffer->shape[d], 1) && !cut_by(search, load->args[d], cuts))
      return false;
  for (int d = 0; d < search->output->rank; d++)
    search->axes->cuts[d] = search->found ? coarser(search->axes->cuts[d], cuts[d]) : cuts[d];
  search->found = true;
  return true;
}

static void note_inner(RowSearch *search, const Expr *load) {
  const Expr *inner = search->axes->inner < 0 ? NULL : search->vars[search->axes->inner];
  for (int d = 0; d < load->count && inner; d++)
    if (load->args[d] == inner)
      map_put(&search->axes->inner_of, load->as.buffer->data, (void *)(intptr_t)(d + 1));
}

static bool follow(Visitor *visitor, Expr *e);

// Visits the value of the element that `load` reads.
static void follow_into(RowSearch *search, const Block *block, const Expr *load) {
  const Stmt *store = store_of(block);
  const Block *before = search->current;
  Map vars = map_new(&search->context->scratch);
  for (int i = 0; i < load->count; i++)
    if (store->as.store.indices[i]->op == EXPR_VAR)
      map_put(&vars, store->as.store.indices[i], load->args[i]);
  Visitor visitor = {.env = search, .enter_expr = follow};
  search->current = block;
  visit_expr(&visitor, substitute_expr(search->context, store->as.store.value, &vars));
  search->current = before;
}

static bool follow(Visitor *visitor, Expr *e) {
  RowSearch *search = visitor->env;
  if (e->op != EXPR_LOAD || !search->ok) return true;
  const Block *block = writer_of(search, e->as.buffer);
  note_inner(search, e);
  if (!block || block == search->current) return true;
  search->ok = --search->work > 0;
  if (block_is_reduction(block)) search->ok &= note_reduction(search, e);
  if (search->ok) follow_into(search, block, e);
  return true;
}

// Finds the inner dimension of the results that are read by reductions only, from what they read.
static bool infer_inner(Visitor *visitor, Expr *e) {
  RowSearch *search = visitor->env;
  const Stmt *store = store_of(search->current);
  if (e->op != EXPR_LOAD || e->as.buffer->data == store->as.store.buffer->data) return true;
  int inner = (int)(intptr_t)map_find(&search->axes->inner_of, e->as.buffer->data) - 1;
  for (int d = 0; d < store->as.store.rank && inner >= 0; d++)
    if (store->as.store.indices[d] == e->args[inner])
      map_put(&search->axes->inner_of, store->as.store.buffer->data, (void *)(intptr_t)(d + 1));
  return true;
}

static void infer_inner_of_all(RowSearch *search) {
  for (int i = 0; i + 1 < search->count; i++) {
    const Stmt *store = store_of(search->blocks[i]);
    if (map_find(&search->axes->inner_of, store->as.store.buffer->data)) continue;
    Visitor visitor = {.env = search, .enter_expr = infer_inner};
    search->current = search->blocks[i];
    visit_expr(&visitor, store->as.store.value);
  }
}

// The dimension of the output along which it is contiguous, and how far.
static void find_inner(const RowSearch *search, const Layout *layout) {
  RowAxes *axes = search->axes;
  axes->inner = -1;
  for (int p = (layout ? layout->physical_rank : search->output->rank) - 1; p >= 0; p--) {
    int64_t extent = layout ? layout->physical_extents[p] : search->extents[p];
    if (extent == 1) continue;
    const LayoutExpr *e = layout ? layout->map->outputs[p] : NULL;
    if (e && e->op == LAYOUT_MOD) e = e->args[0];
    if (e && e->op != LAYOUT_AXIS) return;
    axes->inner = e ? (int)e->value : p;
    axes->inner_extent = extent;
    return;
  }
}

bool row_axes_find(Context *context, const Block *const *blocks, int count, const Layout *output,
                   RowAxes *out) {
  *out = (RowAxes){.inner_of = map_new(&context->arena)};
  RowSearch search = {context, blocks, count, out, .work = MOST_LOADS, .ok = true};
  for (int i = 0; i < count; i++)
    if (!store_of(blocks[i])) return false;
  const Stmt *last = store_of(blocks[count - 1]);
  search.output = last->as.store.buffer;
  if (search.output->rank > TE_MAX_RANK || !buffer_static_shape(search.output, search.extents))
    return false;
  memcpy(search.vars, last->as.store.indices, sizeof *search.vars * (size_t)search.output->rank);
  find_inner(&search, output);
  search.current = blocks[count - 1];
  Visitor visitor = {.env = &search, .enter_expr = follow};
  ArenaMark mark = arena_mark(&context->scratch);
  visit_expr(&visitor, last->as.store.value);
  arena_reset(&context->scratch, mark);
  infer_inner_of_all(&search);
  for (int d = 0; d < search.output->rank && !search.found; d++) out->cuts[d] = 1;
  return search.ok;
}

// ---- Physical dimensions

// The digit of a dimension that the physical one follows; of extent 1 when it has one value.
static bool digit_of(Context *context, const Buffer *buffer, const Layout *layout, int physical,
                     LayoutWeightedDigit *out) {
  int64_t shape[TE_MAX_RANK];
  LayoutDigitSum sum;
  if (!buffer_static_shape(buffer, shape)) return false;
  *out = (LayoutWeightedDigit){physical, 1, layout ? 1 : shape[physical], 1};
  if (!layout) return true;
  *out = (LayoutWeightedDigit){0, 1, 1, 1};
  if (layout->physical_extents[physical] == 1) return true;
  if (!layout_expr_digits(context, layout->map->outputs[physical], shape, buffer->rank, &sum) ||
      sum.start || sum.count > 1)
    return false;
  if (sum.count) *out = sum.digits[0];
  out->extent = layout->physical_extents[physical];
  return out->weight == 1;
}

bool row_axes_of_physical(Context *context, const Buffer *buffer, const Layout *layout,
                          const RowAxes *axes, int physical, int64_t *rows, int64_t *within) {
  LayoutWeightedDigit digit;
  if (!digit_of(context, buffer, layout, physical, &digit)) return false;
  int64_t cut = axes->cuts[digit.axis];
  *rows = 1;
  *within = digit.extent;
  if (!cut || digit.extent <= 1) return true;
  int64_t whole = digit.cut * digit.extent;
  if (cut >= whole) return cut % whole == 0 || digit.extent == 1;
  if (cut > digit.cut && (cut % digit.cut || digit.extent % (cut / digit.cut))) return false;
  if (cut < digit.cut && digit.cut % cut) return false;
  *within = cut > digit.cut ? cut / digit.cut : 1;
  *rows = digit.extent / *within;
  return true;
}

bool row_axes_divide(Context *context, const Buffer *buffer, const Layout *layout,
                     const RowAxes *axes) {
  int64_t rows, within;
  for (int p = 0; p < (layout ? layout->physical_rank : buffer->rank); p++)
    if (!row_axes_of_physical(context, buffer, layout, axes, p, &rows, &within)) return false;
  return true;
}

const Layout *row_axes_layout(Context *context, const RowAxes *axes, const Buffer *buffer) {
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  int64_t shape[TE_MAX_RANK], block = axes->inner_extent;
  int count = 0, inner = (int)(intptr_t)map_find(&axes->inner_of, buffer->data) - 1;
  if (inner < 0 || buffer->rank > TE_MAX_RANK || !buffer_static_shape(buffer, shape)) return NULL;
  bool padded = shape[inner] > 1 && shape[inner] % block, moved = false;
  for (int d = 0; d < buffer->rank; d++) {
    if (d == inner) continue;
    moved |= d > inner && shape[d] > 1;
    outputs[count++] = layout_axis(context, d);
  }
  if (!moved && !padded) return NULL;
  const LayoutExpr *e = layout_axis(context, inner), *by = layout_const(context, block);
  if (padded) outputs[count++] = layout_expr(context, LAYOUT_DIV, e, by, NULL);
  outputs[count++] = padded ? layout_expr(context, LAYOUT_MOD, e, by, NULL) : e;
  const IndexMap *map = index_map_new(context, buffer->rank, NULL, count, outputs, NULL, NULL, 0);
  const Layout *layout = layout_static(context, map, shape, buffer->pos);
  return layout ? layout_with_padding(context, layout, (LayoutPadding){LAYOUT_PADDING_ANY, 0})
                : NULL;
}
