// SPDX-License-Identifier: Apache-2.0
// Makes layouts from layouts: direct sums, products, complements, tilings, left division. This is
// the algebra of CuTe's layouts (Cecka, "CuTe Layout Representation and Algebra") for index maps:
// layouts may have padding, XORs and resources, and axes are an ordered list instead of nested
// modes.
#include "layout/operations/memory_order.h"
#include "layout/answers/answers.h"
#include "layout/symbolic/symbolic.h"

// ---- Combining two layouts ---------------------------------------------------------------------

// The facts of both layouts. Where both have a fact about one symbol, both hold.
static LayoutFacts both_facts(Context *context, LayoutFacts a, LayoutFacts b) {
  LayoutFact *items = arena_array(&context->lasting, LayoutFact, a.count + b.count);
  int count = a.count;
  memcpy(items, a.items, sizeof *items * (size_t)a.count);
  for (int i = 0; i < b.count; i++) {
    LayoutFact fact = b.items[i];
    int at = 0;
    while (at < a.count && items[at].symbol != fact.symbol) at++;
    if (at == a.count) {
      items[count++] = fact;
      continue;
    }
    int64_t x = MAX_OF(items[at].multiple, (int64_t)1), y = MAX_OF(fact.multiple, (int64_t)1);
    items[at].min = MAX_OF(items[at].min, fact.min);
    if (fact.max > 0)
      items[at].max = items[at].max > 0 ? MIN_OF(items[at].max, fact.max) : fact.max;
    if (!mul_fits(x / gcd_of(x, y), y, &items[at].multiple)) items[at].multiple = x;
  }
  return (LayoutFacts){items, count};
}

// Two layouts over common logical axes. The result has the physical axes of `first`, then those of
// `second`.
typedef struct PairedLayout {
  const Layout *first, *second;
  const LayoutExpr *first_axes[MAX_RANK], *second_axes[MAX_RANK]; // the logical axes of each
  const LayoutExpr *shape[MAX_RANK];
  Str names[MAX_RANK];
  int rank;
} PairedLayout;

static void put_replicas(Context *context, const Layout *layout, const LayoutExpr **axes,
                         int from) {
  for (int i = 0; i < layout->map->replica_count; i++)
    axes[layout->rank + i] = layout_axis(context, from + i);
}

static void add_outputs(Context *context, const Layout *layout, const LayoutExpr *const *axes,
                        const LayoutExpr **outputs, const LayoutExpr **physical, Str *resources,
                        int *count) {
  for (int i = 0; i < layout->physical_rank; i++) {
    physical[*count] = layout->physical[i];
    resources[*count] = layout->map->resources[i];
    outputs[(*count)++] =
        layout_expr_substitute(context, layout->map->outputs[i], axes, layout_box_rank(layout));
  }
}

static void make_unique(Context *context, Str *names, int count) {
  for (int i = 0; i < count; i++)
    for (int j = 0, suffix = 1; j < i; j++)
      if (names[i] == names[j]) {
        names[i] = str_format(context, "%s%d", names[j], suffix++);
        j = -1;
      }
}

static const Layout *combine(Context *context, PairedLayout *j) {
  const IndexMap *a = j->first->map, *b = j->second->map;
  const LayoutExpr *outputs[2 * MAX_RANK], *physical[2 * MAX_RANK];
  Str resources[2 * MAX_RANK], names[MAX_RANK];
  int64_t replicas[MAX_RANK];
  int count = 0, copies = a->replica_count + b->replica_count;
  if (j->rank + copies > MAX_RANK || a->output_count + b->output_count > MAX_RANK) return NULL;
  put_replicas(context, j->first, j->first_axes, j->rank);
  put_replicas(context, j->second, j->second_axes, j->rank + a->replica_count);
  add_outputs(context, j->first, j->first_axes, outputs, physical, resources, &count);
  add_outputs(context, j->second, j->second_axes, outputs, physical, resources, &count);
  memcpy(names, j->names, sizeof *names * (size_t)j->rank);
  for (int i = 0; i < copies; i++) {
    bool first = i < a->replica_count;
    int at = first ? i : i - a->replica_count;
    names[j->rank + i] = first ? a->inputs[a->input_count + at] : b->inputs[b->input_count + at];
    replicas[i] = first ? a->replicas[at] : b->replicas[at];
  }
  make_unique(context, names, j->rank + copies);
  const IndexMap *map = index_map_replicated(context, j->rank, copies, names, replicas, count,
                                             outputs, resources, NULL, 0);
  return layout_try(context, map, j->shape, physical,
                    both_facts(context, j->first->facts, j->second->facts));
}

// Appends the axes of `layout` to those of the result.
static void append_axes(Context *context, PairedLayout *j, const Layout *layout,
                        const LayoutExpr **axes) {
  for (int i = 0; i < layout->rank && j->rank < MAX_RANK; i++) {
    axes[i] = layout_axis(context, j->rank);
    j->names[j->rank] = layout->map->inputs[i];
    j->shape[j->rank++] = layout->shape[i];
  }
}

const Layout *layout_direct_sum(Context *context, const Layout *a, const Layout *b) {
  PairedLayout j = {.first = a, .second = b};
  if (a->rank + b->rank > MAX_RANK) return NULL;
  append_axes(context, &j, a, j.first_axes);
  append_axes(context, &j, b, j.second_axes);
  return combine(context, &j);
}

// ---- Products ----------------------------------------------------------------------------------

// The logical axes of a product, as functions that give those of the tile and of the tiles.
static bool product_axes(Context *context, const Layout *tile, const Layout *tiles,
                         LayoutProduct kind, PairedLayout *j) {
  if (kind == LAYOUT_PRODUCT_LOGICAL) {
    if (tile->rank + tiles->rank > MAX_RANK) return false;
    append_axes(context, j, tile, j->second_axes);
    append_axes(context, j, tiles, j->first_axes);
    return true;
  }
  if (tile->rank != tiles->rank) return false;
  bool raked = kind == LAYOUT_PRODUCT_RAKED;
  for (int i = 0; i < tile->rank; i++) {
    const LayoutExpr *x = layout_axis(context, i);
    const LayoutExpr *inner = raked ? tiles->shape[i] : tile->shape[i];
    const LayoutExpr *low = layout_binary(context, LAYOUT_MOD, x, inner);
    const LayoutExpr *high = layout_binary(context, LAYOUT_DIV, x, inner);
    j->second_axes[i] = raked ? high : low;
    j->first_axes[i] = raked ? low : high;
    j->names[i] = tile->map->inputs[i];
    j->shape[i] = layout_times(context, tile->shape[i], tiles->shape[i]);
  }
  j->rank = tile->rank;
  return true;
}

const Layout *layout_product(Context *context, const Layout *tile, const Layout *tiles,
                             LayoutProduct kind) {
  PairedLayout j = {.first = tiles, .second = tile};
  return product_axes(context, tile, tiles, kind, &j) ? combine(context, &j) : NULL;
}

// ---- Complements -------------------------------------------------------------------------------

static const char *order_digits(Context *context, const Layout *layout, MemoryOrder *order) {
  static const int64_t zeros[MAX_RANK];
  int64_t size;
  if (!layout_is_plain(layout) || !layout->is_static)
    return "the extents are not all numbers, or a resource other than memory is used";
  if (!layout_logical_size(layout, &size) || size == 0) return "there are no elements";
  if (layout_is_injective(context, layout).verdict != VERDICT_YES)
    return "two elements have the same physical index";
  if (!memory_order_new(context, layout_offset_expr(context, layout), layout->extents, layout->rank,
                        zeros, layout->extents, order) ||
      order->parity_count)
    return "the offset is not a sum of digits in order";
  if (order->start) return "the first element is not at offset 0";
  int64_t digits = 1;
  for (int i = 0; i < order->count; i++) digits *= order->digits[i].high - order->digits[i].low + 1;
  return digits == size ? NULL : "an axis is no whole number of its blocks";
}

LayoutAnswer layout_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                               const Layout **out) {
  MemoryOrder order;
  const LayoutExpr *shape[MAX_RANK], *sum = layout_const(context, 0);
  int64_t reached = 1;
  int rank = 0;
  *out = NULL;
  if (is_const(size) && size->value < 0) return layout_no("the size is negative");
  const char *reason = order_digits(context, layout, &order);
  if (reason) return layout_no(reason);
  for (int i = order.count; i >= 0 && rank < MAX_RANK; i--) {
    const MemoryDigit *g = i ? &order.digits[i - 1] : NULL;
    if (g && g->digit.weight % reached) return layout_no("a gap is no whole number of copies");
    const LayoutExpr *past = layout_by(context, LAYOUT_ADD, size, reached - 1);
    const LayoutExpr *gap = g ? layout_const(context, g->digit.weight / reached)
                              : layout_by(context, LAYOUT_DIV, past, reached);
    if (gap != layout_const(context, 1)) {
      sum = layout_add_product(context, sum, layout_axis(context, rank),
                               layout_const(context, reached));
      shape[rank++] = gap;
    }
    if (g && !mul_fits(g->digit.weight, g->high - g->low + 1, &reached))
      return layout_undecided("the offsets do not fit");
  }
  const IndexMap *map = index_map_new(context, rank, NULL, 1, &sum, NULL, NULL, 0);
  *out = layout_try(context, map, shape, NULL, layout->facts);
  return *out ? layout_yes(LAYOUT_DIGITS) : layout_undecided("no bounds are known");
}

// The offset of a complement at a number, whose digits are the complement's axes, the first axis
// being the least significant.
static const LayoutExpr *at_number(Context *context, const Layout *complement,
                                   const LayoutExpr *n) {
  const LayoutExpr *axes[MAX_RANK], *below = layout_const(context, 1);
  for (int i = 0; i < complement->rank; i++) {
    axes[i] = layout_binary(context, LAYOUT_DIV, n, below);
    if (i + 1 < complement->rank)
      axes[i] = layout_binary(context, LAYOUT_MOD, axes[i], complement->shape[i]);
    below = layout_times(context, below, complement->shape[i]);
  }
  return layout_expr_substitute(context, complement->map->outputs[0], axes, complement->rank);
}

LayoutAnswer layout_product_filled(Context *context, const Layout *tile, const Layout *tiles,
                                   LayoutProduct kind, const Layout **out) {
  PairedLayout j = {.first = tiles, .second = tile};
  int64_t elements, positions, size;
  const Layout *gaps;
  *out = NULL;
  if (!layout_is_plain(tiles) || !layout_physical_size(tiles, &positions) ||
      !layout_logical_size(tile, &elements) || !mul_fits(elements, positions, &size))
    return layout_undecided("the layouts are not static, of memory alone");
  LayoutAnswer answer = layout_complement(context, tile, layout_const(context, size), &gaps);
  if (answer.verdict != VERDICT_YES) return answer;
  if (!product_axes(context, tile, tiles, kind, &j)) return layout_no("the ranks differ");
  const LayoutExpr *inner =
      layout_expr_substitute(context, layout_offset_expr(context, tile), j.second_axes, tile->rank);
  const LayoutExpr *outer = layout_expr_substitute(context, layout_offset_expr(context, tiles),
                                                   j.first_axes, tiles->rank);
  const LayoutExpr *e = layout_binary(context, LAYOUT_ADD, inner, at_number(context, gaps, outer));
  int64_t extents[MAX_RANK];
  for (int i = 0; i < j.rank; i++) extents[i] = j.shape[i]->value;
  e = layout_expr_simplify(context, e, extents, j.rank);
  make_unique(context, j.names, j.rank);
  const IndexMap *map = index_map_new(context, j.rank, j.names, 1, &e, NULL, NULL, 0);
  *out = layout_try(context, map, j.shape, NULL, tile->facts);
  return *out ? layout_yes(LAYOUT_DIGITS) : layout_undecided("no bounds are known");
}

// ---- Tilings -----------------------------------------------------------------------------------

typedef struct AxisTiling {
  const LayoutExpr *axes[MAX_RANK]; // the tensor's axes, as expressions of the new ones
  const LayoutExpr *shape[MAX_RANK];
  Str names[MAX_RANK];
  int rank;
} AxisTiling;

static const LayoutExpr *append_part(Context *context, AxisTiling *t, const Layout *part,
                                     Str name) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < part->rank; i++) {
    axes[i] = layout_axis(context, t->rank);
    t->names[t->rank] = name;
    t->shape[t->rank++] = part->shape[i];
  }
  return layout_expr_substitute(context, layout_offset_expr(context, part), axes, part->rank);
}

// Axis i becomes the tile's axes and those of the rest, whose offsets must fill it exactly.
static LayoutAnswer tile_axis(Context *context, const Layout *layout, int i, const Layout *tiler,
                              AxisTiling *t) {
  const Layout *rest;
  int64_t tile;
  LayoutAnswer answer = layout_complement(context, tiler, layout->shape[i], &rest);
  if (answer.verdict != VERDICT_YES) return answer;
  if (t->rank + tiler->rank + rest->rank > MAX_RANK) return layout_no("too many axes");
  layout_logical_size(tiler, &tile);
  const LayoutExpr *size =
      layout_by(context, LAYOUT_MUL, layout_product_expr(context, rest->shape, rest->rank), tile);
  if (!layout_symbolic_same_extent(context, layout->facts, size, layout->shape[i]))
    return layout_answer_of(layout->is_static ? VERDICT_NO : VERDICT_UNDECIDED, LAYOUT_DIGITS,
                            "the tiles do not fill an axis exactly");
  const LayoutExpr *inside = append_part(context, t, tiler, layout->map->inputs[i]);
  const LayoutExpr *outside = append_part(context, t, rest, layout->map->inputs[i]);
  t->axes[i] = layout_binary(context, LAYOUT_ADD, inside, outside);
  return answer;
}

LayoutAnswer layout_tile(Context *context, const Layout *layout, const Layout *const *tilers,
                         const Layout **out) {
  AxisTiling t = {.rank = 0};
  const LayoutExpr *outputs[MAX_RANK];
  const IndexMap *map = layout->map;
  *out = NULL;
  if (map->replica_count) return layout_undecided("elements are stored more than once");
  for (int i = 0; i < layout->rank; i++) {
    if (tilers[i]) {
      LayoutAnswer answer = tile_axis(context, layout, i, tilers[i], &t);
      if (answer.verdict != VERDICT_YES) return answer;
      continue;
    }
    t.axes[i] = layout_axis(context, t.rank);
    t.names[t.rank] = map->inputs[i];
    t.shape[t.rank++] = layout->shape[i];
  }
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr_substitute(context, map->outputs[i], t.axes, layout->rank);
  make_unique(context, t.names, t.rank);
  map = index_map_new(context, t.rank, t.names, map->output_count, outputs, map->resources,
                      map->separators, map->separator_count);
  *out = layout_try(context, map, t.shape, layout->physical, layout->facts);
  return *out ? layout_yes(LAYOUT_DIGITS) : layout_undecided("no bounds are known");
}

// ---- Left division -----------------------------------------------------------------------------

static bool same_positions(Context *context, const Layout *a, const Layout *b) {
  if (a->physical_rank != b->physical_rank) return false;
  for (int i = 0; i < a->physical_rank; i++)
    if (a->map->resources[i] != b->map->resources[i]) return false;
  return layout_symbolic_same_extents(context, a->facts, a->physical, b->physical,
                                      a->physical_rank);
}

static LayoutAnswer divide_left(Context *context, const Layout *a, const Layout *b,
                                LayoutInverse *out) {
  LayoutInverse inverse;
  const LayoutExpr *outputs[MAX_RANK];
  *out = (LayoutInverse){0};
  if (!same_positions(context, a, b)) return layout_no("the physical shapes differ");
  if (b->map->replica_count) return layout_undecided("elements are stored more than once");
  LayoutAnswer answer = layout_inverse(context, a, &inverse);
  if (answer.verdict != VERDICT_YES) return answer;
  const IndexMap *map = index_map_compose(context, inverse.map, b->map);
  layout_symbolic_simplify(context, b->facts, b->shape, b->rank, map->outputs, map->output_count,
                           outputs);
  out->map = index_map_with_outputs(context, map, outputs);
  if (!inverse.padding) return answer;
  const LayoutExpr *padding =
      layout_expr_substitute(context, inverse.padding, b->map->outputs, b->physical_rank);
  if (b->is_static) padding = layout_expr_simplify(context, padding, b->extents, b->rank);
  out->padding = padding == layout_const(context, 0) ? NULL : padding;
  return answer;
}

LayoutAnswer layout_divide_left(Context *context, const Layout *a, const Layout *b,
                                LayoutInverse *out) {
  LAYOUT_RETURN(context, divide_left(context, a, b, out), LAYOUT_ASK_DIVIDE_LEFT, a, b,
                .inverse = *out);
}
