// SPDX-License-Identifier: Apache-2.0
// Reads and prints XLA's layouts: `{1,0:T(8,128)(2,1)}` has the axes from minor to major (the axis
// whose neighbours are closest in memory first), then tiles. A shape may precede it,
// `f32[2,3]{1,0}`.
//
// A tile of n numbers cuts the last n axes: an axis d becomes d//t in its old position, and d%t
// after all others. The next tile cuts the axes of the tile before it. `*` merges an axis with the
// next one. Offsets are row-major over the resulting axes, each rounded up. `L(n)` rounds their
// number up to a multiple of n; a layout with it has one memory axis.
#include "layout/spellings/spellings.h"

#include <ctype.h>
#include <stdlib.h>

enum { MAX_TILES = 16, MERGED = -1 };

typedef struct XlaTile {
  int64_t sizes[MAX_RANK];
  int count;
} XlaTile;

typedef struct XlaTiling {
  int order[MAX_RANK]; // logical axes, the major one first
  int rank;
  XlaTile tiles[MAX_TILES];
  int tile_count;
  int64_t tail; // the n of L(n), which divides the physical size; 0: not given
} XlaTiling;

// ---- The map -----------------------------------------------------------------------------------

typedef struct XlaAxes {
  const LayoutExpr *exprs[MAX_RANK], *extents[MAX_RANK]; // extents may be NULL: not known
  int count;
} XlaAxes;

// Applies the `*` of a tile: merges axes, so that as many are left as the tile has numbers.
static bool merge_axes(Context *context, XlaAxes *axes, XlaTile *tile) {
  int begin = axes->count - tile->count, to = begin, kept = 0;
  for (int i = 0; i < tile->count; i++) {
    int at = begin + i;
    const LayoutExpr *e = axes->exprs[at], *extent = axes->extents[at];
    for (; tile->sizes[i] == MERGED; i++) {
      const LayoutExpr *inner = axes->extents[begin + i + 1];
      if (!inner || !extent) return false;
      e = layout_binary(context, LAYOUT_ADD, layout_times(context, e, inner),
                        axes->exprs[begin + i + 1]);
      extent = layout_times(context, extent, inner);
    }
    axes->exprs[to] = e;
    axes->extents[to++] = extent;
    tile->sizes[kept++] = tile->sizes[i];
  }
  axes->count = to;
  tile->count = kept;
  return true;
}

static const LayoutExpr *blocks(Context *context, const LayoutExpr *extent,
                                const LayoutExpr *size) {
  if (!extent) return NULL;
  const LayoutExpr *up = layout_by(context, LAYOUT_ADD, extent, size->value - 1);
  return layout_binary(context, LAYOUT_DIV, up, size);
}

static bool apply_tile(Context *context, XlaAxes *axes, XlaTile tile) {
  if (!merge_axes(context, axes, &tile)) return false;
  int begin = axes->count - tile.count;
  for (int i = 0; i < tile.count; i++) {
    const LayoutExpr *size = layout_const(context, tile.sizes[i]), *e = axes->exprs[begin + i];
    axes->exprs[axes->count] = layout_binary(context, LAYOUT_MOD, e, size);
    axes->extents[axes->count++] = size;
    axes->exprs[begin + i] = layout_binary(context, LAYOUT_DIV, e, size);
    axes->extents[begin + i] = blocks(context, axes->extents[begin + i], size);
  }
  return true;
}

// False when a merged axis has no known extent.
static bool tiled_axes(Context *context, const XlaTiling *tiling, const LayoutExpr *const *shape,
                       XlaAxes *out) {
  *out = (XlaAxes){.count = tiling->rank};
  for (int i = 0; i < tiling->rank; i++) {
    out->exprs[i] = layout_axis(context, tiling->order[i]);
    out->extents[i] = shape ? shape[tiling->order[i]] : NULL;
  }
  for (int i = 0; i < tiling->tile_count; i++)
    if (!apply_tile(context, out, tiling->tiles[i])) return false;
  return true;
}

static const IndexMap *axes_map(Context *context, const XlaAxes *axes, int rank) {
  return index_map_new(context, rank, NULL, axes->count, axes->exprs, NULL, NULL, 0);
}

// Whether the physical extents must be given: a tile of a tile of 1 leaves an index of 0 whose
// extent is another one, and `L` rounds the whole up.
static void say_extents(Context *context, const XlaAxes *axes, bool say, Spelled *out) {
  for (int i = 0; i < axes->count; i++) {
    if (!axes->extents[i]) return;
    say |=
        is_const(axes->exprs[i]) && !(is_const(axes->extents[i]) && axes->extents[i]->value == 1);
  }
  if (!say) return;
  out->physical_count = axes->count;
  out->physical =
      arena_copy(&context->lasting, axes->extents, sizeof *axes->extents * (size_t)axes->count);
}

// ---- Reading -----------------------------------------------------------------------------------

// extent := ["<="] number; of a dynamic axis it is the bound, for which memory is laid out
static bool read_extent(LayoutReader *r, int64_t *out) {
  layout_reader_accept(r, "<=");
  layout_reader_space(r);
  if (r->at < r->end && *r->at == '?')
    return layout_reader_refuse(r, r->at, r->at + 1,
                                "an axis without a bound has no extent in memory");
  return layout_reader_number(r, out);
}

// shape := type "[" [extent ("," extent)*] "]"
static bool read_shape(LayoutReader *r, Spelled *out, int *rank) {
  *rank = -1;
  layout_reader_space(r);
  const char *from = r->at;
  if (!layout_reader_word(r)) return true;
  const LayoutExpr *extents[MAX_RANK];
  *rank = 0;
  if (!layout_reader_expect(r, "[")) return false;
  for (bool more = !layout_reader_accept(r, "]"); more; more = layout_reader_more(r, ']')) {
    int64_t extent;
    if (!read_extent(r, &extent)) return false;
    if (*rank == MAX_RANK)
      return layout_reader_error(r, from, r->at, "more than %d axes", MAX_RANK);
    extents[(*rank)++] = layout_const(r->context, extent);
  }
  out->shape = arena_copy(&r->context->lasting, extents, sizeof *extents * (size_t)*rank);
  return !r->failed;
}

// order := [number ("," number)*], a permutation of the axes, minor to major
static bool read_order(LayoutReader *r, XlaTiling *tiling) {
  bool seen[MAX_RANK] = {false};
  int closest[MAX_RANK];
  const char *from = r->at;
  layout_reader_space(r);
  while (r->at < r->end && isdigit((unsigned char)*r->at)) {
    const char *at = r->at;
    int64_t axis;
    if (!layout_reader_number(r, &axis)) return false;
    if (tiling->rank == MAX_RANK || axis >= MAX_RANK)
      return layout_reader_error(r, at, r->at, "more than %d axes", MAX_RANK);
    if (seen[axis]) return layout_reader_refuse(r, at, r->at, "axis %d is named twice", (int)axis);
    seen[axis] = true;
    closest[tiling->rank++] = (int)axis;
    if (!layout_reader_accept(r, ",")) break;
    layout_reader_space(r);
  }
  for (int i = 0; i < tiling->rank; i++)
    if (!seen[i])
      return layout_reader_refuse(r, from, r->at, "axis %d is missing from the order of %d axes", i,
                                  tiling->rank);
  for (int i = 0; i < tiling->rank; i++) tiling->order[i] = closest[tiling->rank - 1 - i];
  return true;
}

// tile := "(" (number | "*") ("," (number | "*"))* ")"
static bool read_tile(LayoutReader *r, XlaTiling *tiling, int axes) {
  const char *from = r->at;
  if (!layout_reader_expect(r, "(")) return false;
  if (tiling->tile_count == MAX_TILES)
    return layout_reader_error(r, from, r->at, "more than %d tiles", MAX_TILES);
  XlaTile *tile = &tiling->tiles[tiling->tile_count++];
  for (bool more = true; more; more = layout_reader_more(r, ')')) {
    int64_t *size = &tile->sizes[tile->count++];
    layout_reader_space(r);
    const char *at = r->at;
    if (layout_reader_accept(r, "*"))
      *size = MERGED;
    else if (!layout_reader_number(r, size))
      return false;
    if (*size == 0) return layout_reader_refuse(r, at, r->at, "a tile of 0 elements");
    if (tile->count > axes || tile->count == MAX_RANK)
      return layout_reader_refuse(r, from, r->at, "a tile of more axes than there are, %d", axes);
  }
  if (r->failed) return false;
  if (tile->sizes[tile->count - 1] == MERGED)
    return layout_reader_refuse(r, from, r->at,
                                "`*` merges an axis with the next, the last has none");
  return true;
}

// A word with parentheses after it that does not change the offset of an element, or that is
// refused because it means that elements have no offset.
typedef struct XlaProperty {
  const char *word, *means;
  bool refused;
} XlaProperty;

#define SPARSE " of a sparse tensor, which does not store every element"
static const XlaProperty properties[] = {
    {"S", "the memory space", false},
    {"E", "the bits of an element", false},
    {"SC", "splits an axis over several memories", true},
    {"M", "puts bytes before the elements, which are not counted in elements", true},
    {"P", "is the shape of the parts" SPARSE, true},
    {"#", "is the type of the indices" SPARSE, true},
    {"*", "is the type of the pointers" SPARSE, true},
};

// Reads "(" number ")".
static bool read_count(LayoutReader *r, int64_t *out) {
  return layout_reader_expect(r, "(") && layout_reader_number(r, out) &&
         layout_reader_expect(r, ")");
}

// Skips "(" … ")".
static bool skip_parentheses(LayoutReader *r) {
  int depth = 1;
  if (!layout_reader_expect(r, "(")) return false;
  for (; r->at < r->end && depth; r->at++) depth += *r->at == '(' ? 1 : *r->at == ')' ? -1 : 0;
  return !depth || layout_reader_expect(r, ")");
}

static bool read_property(LayoutReader *r) {
  layout_reader_space(r);
  const char *from = r->at;
  for (int i = 0; i < COUNT_OF(properties); i++) {
    const XlaProperty *p = &properties[i];
    if (!layout_reader_accept(r, p->word)) continue;
    if (p->refused ? !skip_parentheses(r) : !read_count(r, &(int64_t){0})) return false;
    int size = (int)(r->at - from);
    if (p->refused) return layout_reader_refuse(r, from, r->at, "`%.*s` %s", size, from, p->means);
    layout_reader_left_out(r, from, p->means);
    return true;
  }
  return layout_reader_missing(r, r->at + (r->at < r->end), "`}`");
}

// levels := "D" "(" level ("," level)* ")"; a level is D, dense, or one of the sparse ones, with
// marks `+` and `~` after it
static bool read_levels(LayoutReader *r, const XlaTiling *tiling) {
  static const struct {
    const char *word, *means;
  } sparse[] = {{"C", "compressed"}, {"S", "a singleton"}, {"H", "compressed with gaps"}};
  int count = 0;
  const char *from = r->at;
  if (!layout_reader_expect(r, "(")) return false;
  for (bool more = true; more; more = layout_reader_more(r, ')'), count++) {
    layout_reader_space(r);
    const char *at = r->at;
    for (int i = 0; i < COUNT_OF(sparse); i++)
      if (layout_reader_accept(r, sparse[i].word))
        return layout_reader_refuse(r, at, r->at,
                                    "axis %d is %s: a sparse tensor does not store "
                                    "every element",
                                    count, sparse[i].means);
    if (!layout_reader_expect(r, "D")) return false;
    while (layout_reader_accept(r, "+") || layout_reader_accept(r, "~")) continue;
  }
  if (r->failed || count == tiling->rank) return !r->failed;
  return layout_reader_refuse(r, from, r->at, "%d level%s for %d axes", count,
                              count == 1 ? "" : "s", tiling->rank);
}

static bool read_tiles(LayoutReader *r, XlaTiling *tiling) {
  int axes = tiling->rank;
  if (tiling->tile_count) return layout_reader_error(r, r->at - 1, r->at, "this is given twice");
  do {
    if (!read_tile(r, tiling, axes)) return false;
    const XlaTile *tile = &tiling->tiles[tiling->tile_count - 1];
    for (int i = 0; i < tile->count; i++) axes += tile->sizes[i] != MERGED ? 1 : -1;
    if (axes > MAX_RANK)
      return layout_reader_error(r, r->text, r->at, "more than %d physical axes", MAX_RANK);
    layout_reader_space(r);
  } while (r->at < r->end && *r->at == '(');
  return true;
}

static bool read_tail(LayoutReader *r, XlaTiling *tiling) {
  const char *from = r->at;
  if (!read_count(r, &tiling->tail)) return false;
  return tiling->tail || layout_reader_refuse(r, from, r->at, "a multiple of 0 elements");
}

static bool read_part(LayoutReader *r, XlaTiling *tiling) {
  if (layout_reader_accept(r, "D")) return read_levels(r, tiling);
  if (layout_reader_accept(r, "T")) return read_tiles(r, tiling);
  return layout_reader_accept(r, "L") ? read_tail(r, tiling) : read_property(r);
}

// All physical axes as one, whose extent `tail` divides.
static bool flatten(LayoutReader *r, const XlaTiling *tiling, const char *from, XlaAxes *axes) {
  Context *context = r->context;
  const LayoutExpr *tail = layout_const(context, tiling->tail);
  for (int i = 0; i < axes->count; i++)
    if (!axes->extents[i])
      return layout_reader_refuse(r, from, r->at,
                                  "`L` needs the shape of the tensor: write it before the layout");
  const LayoutExpr *size = layout_product_expr(context, axes->extents, axes->count);
  axes->exprs[0] = layout_number_expr(context, axes->exprs, axes->extents, axes->count);
  axes->count = 1;
  axes->extents[0] = layout_times(context, blocks(context, size, tail), tail);
  return true;
}

// layout := [shape] ["{" order [":" part*] "}"]
// part := "D" levels | "T" tile+ | "L" "(" number ")" | property
bool layout_read_xla(LayoutReader *r, Spelled *out) {
  XlaTiling *tiling = arena_new(&r->context->scratch, XlaTiling);
  const char *from = r->at;
  int rank;
  if (!read_shape(r, out, &rank)) return false;
  if (rank >= 0 && (layout_reader_space(r), r->at == r->end || *r->at != '{')) {
    for (int i = 0; i < rank; i++) tiling->order[i] = i;
    tiling->rank = rank;
  } else {
    if (!layout_reader_expect(r, "{") || !read_order(r, tiling)) return false;
    bool parts = layout_reader_accept(r, ":");
    while (!layout_reader_accept(r, "}"))
      if (parts ? !read_part(r, tiling) : !layout_reader_expect(r, "}")) return false;
  }
  if (rank >= 0 && rank != tiling->rank)
    return layout_reader_refuse(r, from, r->at, "the shape has %d axes, the layout %d", rank,
                                tiling->rank);
  if (!layout_reader_check_rank(r, tiling->rank)) return false;
  XlaAxes axes;
  if (!tiled_axes(r->context, tiling, out->shape ? out->shape : r->shape, &axes))
    return layout_reader_refuse(r, from, r->at,
                                "`*` needs the shape of the tensor: write it before the layout");
  if (tiling->tail > 1 && !flatten(r, tiling, from, &axes)) return false;
  out->map = axes_map(r->context, &axes, tiling->rank);
  say_extents(r->context, &axes, tiling->tail > 1, out);
  return true;
}

// ---- Printing ----------------------------------------------------------------------------------

// The extent of an axis before a tile of `size` made it `extent`. The text tells it where the tile
// does not divide it, as in x%2//4, or where it was cut by 1.
static int64_t extent_before(const LayoutExpr *e, int64_t extent, int64_t size) {
  const LayoutExpr *inner = e->op == LAYOUT_DIV ? e->args[0] : e;
  if (is_const(e) && extent == 1) return 1;
  if (inner->op == LAYOUT_MOD && is_const(inner->args[1]) && inner->args[1]->value > 0 &&
      ceil_div(inner->args[1]->value, size) == extent)
    return inner->args[1]->value;
  return mul_fits(extent, size, &extent) ? extent : 0;
}

// Reverts the last tile of `count` numbers, whose sizes are the last extents.
static bool undo_tile(const IndexMap *map, int64_t *left, int *axes, int count, XlaTile *tile) {
  int begin = *axes - 2 * count;
  if (begin < 0) return false;
  tile->count = count;
  for (int i = 0; i < count; i++) {
    tile->sizes[i] = left[*axes - count + i];
    if (tile->sizes[i] < 1) return false;
    left[begin + i] = extent_before(map->outputs[begin + i], left[begin + i], tile->sizes[i]);
  }
  *axes -= count;
  return true;
}

// The tiles with counts[0], counts[1], … numbers, from the physical extents.
static bool guess_tiles(const Layout *layout, const int *counts, int tiles, XlaTiling *out) {
  int64_t left[MAX_RANK];
  int axes = layout->physical_rank;
  memcpy(left, layout->physical_extents, sizeof *left * (size_t)axes);
  out->tile_count = tiles;
  for (int i = tiles - 1; i >= 0; i--)
    if (!undo_tile(layout->map, left, &axes, counts[i], &out->tiles[i])) return false;
  return axes == layout->rank;
}

static const char *tiling_text(Context *context, const XlaTiling *tiling) {
  Text text = text_new(&context->lasting);
  text_puts(&text, "{");
  for (int i = tiling->rank - 1; i >= 0; i--)
    text_printf(&text, "%d%s", tiling->order[i], i ? "," : "");
  for (int i = 0; i < tiling->tile_count; i++) {
    const XlaTile *tile = &tiling->tiles[i];
    text_puts(&text, i ? "(" : ":T(");
    for (int j = 0; j < tile->count; j++)
      text_printf(&text, "%s%lld", j ? "," : "", (long long)tile->sizes[j]);
    text_puts(&text, ")");
  }
  if (tiling->tail)
    text_printf(&text, "%sL(%lld)", tiling->tile_count ? "" : ":", (long long)tiling->tail);
  text_puts(&text, "}");
  return text_string(&text);
}

// The logical axis with which physical axis i of a layout begins, whole or as the operand of `//`.
static int leading_axis(const LayoutExpr *e) {
  while (e->op == LAYOUT_DIV || e->op == LAYOUT_MOD) e = e->args[0];
  return e->op == LAYOUT_AXIS ? (int)e->value : -1;
}

// The order of the axes, from the first physical axes. Axes of one element, whose index may have
// become 0, take the positions that are left.
static bool read_axes(Context *context, const Layout *layout, XlaTiling *out) {
  bool seen[MAX_RANK] = {false};
  out->rank = layout->rank;
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    out->order[i] = leading_axis(e);
    if (out->order[i] < 0)
      out->order[i] = leading_axis(layout_expr_simplify(context, e, layout->extents, layout->rank));
    if (out->order[i] >= 0 && seen[out->order[i]]) return false;
    if (out->order[i] >= 0) seen[out->order[i]] = true;
  }
  for (int i = 0, axis = 0; i < layout->rank; i++) {
    while (axis < layout->rank && seen[axis]) axis++;
    if (out->order[i] < 0) out->order[i] = axis, seen[axis] = true;
  }
  return true;
}

// Tries all ways to divide `left` numbers among tiles, tiles with more numbers first.
static bool share_numbers(Context *context, const Layout *layout, int left, int *counts, int tiles,
                          XlaTiling *out) {
  if (!left) {
    if (!guess_tiles(layout, counts, tiles, out)) return false;
    XlaAxes axes;
    if (!tiled_axes(context, out, layout->shape, &axes)) return false;
    const IndexMap *map = axes_map(context, &axes, layout->rank);
    return layout_maps_equal(context, layout, map).verdict == VERDICT_YES;
  }
  if (tiles == MAX_TILES) return false;
  for (int count = left; count; count--) {
    counts[tiles] = count;
    if (share_numbers(context, layout, left - count, counts, tiles + 1, out)) return true;
  }
  return false;
}

static bool find_tiling(Context *context, const Layout *layout, XlaTiling *out) {
  int counts[MAX_TILES], numbers = layout->physical_rank - layout->rank;
  return numbers >= 0 && numbers <= 12 && read_axes(context, layout, out) &&
         share_numbers(context, layout, numbers, counts, 0, out);
}

static int heavier(const void *a, const void *b) {
  int64_t x = ((const PlacedDigit *)a)->weights[0], y = ((const PlacedDigit *)b)->weights[0];
  return (x < y) - (x > y);
}

// The layout whose physical axes are the digits of the one memory axis, by descending weight, after
// the axes of one element. NULL where the digits leave gaps.
static const Layout *unflattened(Context *context, const Layout *layout) {
  const char *why;
  LayoutPlacement p;
  const LayoutExpr *outputs[MAX_RANK];
  int count = 0;
  int64_t size = 1;
  if (layout->physical_rank != 1 ||
      !layout_placement(context, layout->extents, layout->rank, layout->map->outputs, 1, &p, &why))
    return NULL;
  if (p.constants[0] || p.digit_count + layout->rank > MAX_RANK) return NULL;
  for (int axis = 0; axis < layout->rank; axis++)
    if (layout->extents[axis] == 1) outputs[count++] = layout_axis(context, axis);
  if (p.digit_count) qsort(p.digits, (size_t)p.digit_count, sizeof *p.digits, heavier);
  for (int i = 0; i < p.digit_count; i++) {
    const Digit *g = &p.digits[i].digit;
    bool top = g->cut * g->radix >= layout->extents[g->base];
    outputs[count++] =
        layout_digit_expr(context, layout_axis(context, g->base), g->cut, top ? 0 : g->radix);
  }
  for (int i = p.digit_count - 1; i >= 0; size *= p.digits[i--].digit.radix)
    if (p.digits[i].weights[0] != size) return NULL;
  const IndexMap *map =
      index_map_new(context, layout->rank, layout->map->inputs, count, outputs, NULL, NULL, 0);
  return layout_static(context, map, layout->extents, (SourcePos){0});
}

const char *layout_print_xla(Context *context, const Layout *layout, const char **why) {
  XlaTiling *tiling = arena_new(&context->scratch, XlaTiling);
  const Layout *axes;
  if ((*why = layout_memory_alone(context, layout, "XLA"))) return NULL;
  if (find_tiling(context, layout, tiling)) return tiling_text(context, tiling);
  if ((axes = unflattened(context, layout)) && find_tiling(context, axes, tiling)) {
    tiling->tail = layout->physical_extents[0];
    return tiling_text(context, tiling);
  }
  return *why = "its physical axes are not the axes in some order, cut by tiles", NULL;
}
