// SPDX-License-Identifier: Apache-2.0
// Reads and prints TVM's TileLayout, which has shards, replicas and an offset over named axes:
// `S[(8, 4, 2) : (4@lane, 1@lane, 1)] + R[2 : 1@device] + 5@warp`; and TVM's swizzles of memory,
// `ComposeLayout(3, 3, 3, TileLayout(S[(8, 64) : (64, 1)]))`.
//
// The row-major number of an element is cut into digits by the extents of the shards, of which the
// last is the least significant. Each digit times its stride is added to the named axis (without a
// name, to memory). Each replica adds all multiples of its stride. So a layout fits every shape
// with the same number of elements. Physical axes are in the order in which their names appear.
//
// ComposeLayout(M, B, S, tile) is swizzle(tile(x)) with the swizzle of swizzle_spelling.c that has
// B bits from bit M on and shift S, or -S where `swizzle_inner=False`. SwizzleLayout(M, B, S) is
// the swizzle of the row-major number itself.
#include "layout/spellings/spellings.h"

#include <ctype.h>

typedef struct IterStep { // number @ axis
  int64_t value;
  int axis;
} IterStep;

typedef struct IterPieces { // the extents and steps of an S or an R
  int64_t extents[MAX_RANK];
  IterStep steps[MAX_RANK];
  int count;
} IterPieces;

typedef struct TileLayout {
  IterPieces shards, replicas;
  Str axes[MAX_RANK];
  int64_t offsets[MAX_RANK];
  int axis_count;
  bool has_shards, has_replicas;
  XorSwizzle swizzle;
  const char *from; // the text of the shards
} TileLayout;

// ---- Reading -----------------------------------------------------------------------------------

static bool find_axis(LayoutReader *r, TileLayout *s, Str name, int *out) {
  for (*out = 0; *out < s->axis_count; ++*out)
    if (s->axes[*out] == name) return true;
  if (s->axis_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d physical axes", MAX_RANK);
  s->axes[s->axis_count++] = name;
  return true;
}

// step := number ["@" name] | name; modules, `T.`, may precede names
static bool read_step(LayoutReader *r, TileLayout *s, IterStep *out) {
  Str name = NULL;
  layout_reader_space(r);
  bool named = r->at < r->end && (isalpha((unsigned char)*r->at) || *r->at == '_');
  out->value = 1;
  if (!named && !layout_reader_signed(r, &out->value)) return false;
  if (named || layout_reader_accept(r, "@")) {
    while (layout_reader_module(r)) continue;
    if (!layout_reader_resource(r, true, &name)) return false;
  }
  return find_axis(r, s, name, &out->axis);
}

static bool add_extent(LayoutReader *r, IterPieces *p) {
  if (p->count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d extents", MAX_RANK);
  return layout_reader_signed(r, &p->extents[p->count++]);
}

// extents := number ("," number)* | "(" [number ("," number)*] ")"
static bool read_extents(LayoutReader *r, IterPieces *p) {
  bool more;
  char close = layout_reader_open(r, &more);
  if (!close) {
    do
      if (!add_extent(r, p)) return false;
    while (layout_reader_accept(r, ","));
    return true;
  }
  for (; more; more = layout_reader_more(r, close))
    if (!add_extent(r, p)) return false;
  return !r->failed;
}

static bool read_steps(LayoutReader *r, TileLayout *s, IterPieces *p) {
  layout_reader_space(r);
  const char *from = r->at;
  int count = 0;
  bool more;
  char close = layout_reader_open(r, &more);
  while (more) {
    if (count == MAX_RANK) return layout_reader_error(r, from, r->at, "too many strides");
    if (!read_step(r, s, &p->steps[count++])) return false;
    more = close && layout_reader_more(r, close);
  }
  if (r->failed) return false;
  if (count == p->count) return true;
  return layout_reader_refuse(r, from, r->at, "%d stride%s for %d extents", count,
                              count == 1 ? "" : "s", p->count);
}

// The strides of pieces without any: row-major in memory.
static bool default_steps(LayoutReader *r, TileLayout *s, IterPieces *p) {
  int64_t stride = 1;
  for (int i = p->count - 1; i >= 0; i--) {
    p->steps[i].value = stride;
    if (!find_axis(r, s, NULL, &p->steps[i].axis)) return false;
    if (!mul_fits(stride, MAX_OF(p->extents[i], (int64_t)1), &stride))
      return layout_reader_refuse(r, s->from, r->at, "this size does not fit 64 bits");
  }
  return true;
}

// pieces := "[" extents [":" steps] "]"
static bool read_pieces(LayoutReader *r, TileLayout *s, IterPieces *p, bool *there) {
  const char *from = r->at;
  if (*there) return layout_reader_error(r, from, from + 1, "this is given twice");
  *there = true;
  if (!layout_reader_expect(r, "[") || !read_extents(r, p)) return false;
  for (int i = 0; i < p->count; i++)
    if (p->extents[i] < (p == &s->replicas))
      return layout_reader_error(r, from, r->at, "%lld is not an extent", (long long)p->extents[i]);
  bool steps = layout_reader_accept(r, ":");
  return (steps ? read_steps(r, s, p) : default_steps(r, s, p)) && layout_reader_expect(r, "]");
}

static bool add_offset(LayoutReader *r, TileLayout *s) {
  const char *from = r->at;
  IterStep step;
  if (!read_step(r, s, &step)) return false;
  if (!add_fits(s->offsets[step.axis], step.value, &s->offsets[step.axis]))
    return layout_reader_refuse(r, from, r->at, "this offset does not fit 64 bits");
  return true;
}

// term := "S" pieces | "R" pieces | "O" "[" step ("," step)* "]" | step
static bool read_term(LayoutReader *r, TileLayout *s) {
  layout_reader_space(r);
  const char *from = r->at;
  LayoutReader ahead = *r;
  while (layout_reader_module(&ahead)) continue;
  Str word = layout_reader_word(&ahead);
  const char *end = ahead.at;
  if (!word || word[1] || !layout_reader_accept(&ahead, "[")) return add_offset(r, s);
  r->at = end;
  if (*word == 'S') s->from = from;
  if (*word == 'S') return read_pieces(r, s, &s->shards, &s->has_shards);
  if (*word == 'R') return read_pieces(r, s, &s->replicas, &s->has_replicas);
  if (*word != 'O')
    return layout_reader_error(r, from, from + 1, "expected `S[`, `R[` or `O[`, saw `%c[`", *word);
  layout_reader_accept(r, "[");
  bool more = !layout_reader_accept(r, "]");
  while (more) more = add_offset(r, s) && layout_reader_more(r, ']');
  return !r->failed;
}

// terms := term ("+" term)*
static bool read_terms(LayoutReader *r, TileLayout *s) {
  do
    if (!read_term(r, s)) return false;
  while (layout_reader_accept(r, "+"));
  return s->has_shards || layout_reader_error(r, s->from, r->at, "expected shards, `S[...]`");
}

// ---- Objects -----------------------------------------------------------------------------------

// Whether the object is next, after any modules. If so, reads its name and parenthesis.
static bool opens(LayoutReader *r, const char *object) {
  LayoutReader ahead = *r;
  while (layout_reader_module(&ahead)) continue;
  if (!layout_reader_accept(&ahead, object) || !layout_reader_accept(&ahead, "(")) return false;
  r->at = ahead.at;
  return true;
}

// tile := "TileLayout" "(" terms ")" | terms
static bool read_tile(LayoutReader *r, TileLayout *s) {
  if (!opens(r, "TileLayout")) return read_terms(r, s);
  if (!read_terms(r, s)) return false;
  layout_reader_accept(r, ",");
  return layout_reader_expect(r, ")");
}

// The arguments of a swizzle, in order. SwizzleLayout has no tile.
enum { PER_ELEMENT, SWIZZLE_LEN, ATOM_LEN, TILE, SWIZZLE_INNER, ARGUMENTS };
static const char *const argument_names[ARGUMENTS] = {"per_element", "swizzle_len", "atom_len",
                                                      "tile_layout", "swizzle_inner"};

// Reads [name "="] and gives the argument that follows: `next` where there is no name.
static bool read_keyword(LayoutReader *r, int next, int *out) {
  LayoutReader ahead = *r;
  Str word = layout_reader_word(&ahead);
  const char *end = ahead.at;
  *out = next;
  if (!word || !layout_reader_accept(&ahead, "=")) return true;
  for (*out = 0; *out < ARGUMENTS; ++*out)
    if (!strcmp(argument_names[*out], word)) return r->at = ahead.at, true;
  return layout_reader_error(r, end - strlen(word), end, "a swizzle has no `%s`", word);
}

static bool read_flag(LayoutReader *r, bool *out) {
  *out = layout_reader_accept(r, "True");
  return *out || layout_reader_accept(r, "False") || layout_reader_expect(r, "True");
}

static bool read_swizzle(LayoutReader *r, TileLayout *s, const char *from, bool with_tile);

static bool read_argument(LayoutReader *r, TileLayout *s, int which, bool *inner) {
  int64_t *const numbers[] = {&s->swizzle.base, &s->swizzle.bits, &s->swizzle.shift};
  if (which < TILE) return layout_reader_number(r, numbers[which]);
  return which == TILE ? read_tile(r, s) : read_flag(r, inner);
}

// swizzle := argument ("," argument)* ")"; the first three of ComposeLayout may be a SwizzleLayout
static bool read_swizzle(LayoutReader *r, TileLayout *s, const char *from, bool with_tile) {
  bool inner = true, given[ARGUMENTS] = {[TILE] = !with_tile, [SWIZZLE_INNER] = true};
  int next = PER_ELEMENT, which;
  bool object = with_tile && opens(r, "SwizzleLayout");
  if (object && !read_swizzle(r, s, r->at, false)) return false;
  if (object) inner = s->swizzle.shift >= 0;
  if (object) s->swizzle.shift *= inner ? 1 : -1;
  for (int i = PER_ELEMENT; i <= ATOM_LEN && object; i++) given[next++] = true;
  bool more = !object || layout_reader_more(r, ')');
  while (more) {
    if (next == TILE && !with_tile) next++;
    if (!read_keyword(r, next, &which)) return false;
    if (which >= ARGUMENTS || (which == TILE && !with_tile))
      return layout_reader_refuse(r, r->at, r->at, "a swizzle has no argument here");
    if (!read_argument(r, s, which, &inner)) return false;
    given[which] = true;
    next = which + 1;
    more = layout_reader_more(r, ')');
  }
  for (int i = 0; i < ARGUMENTS && !r->failed; i++)
    if (!given[i])
      return layout_reader_error(r, from, r->at, "the swizzle's `%s` is missing",
                                 argument_names[i]);
  if (r->failed || !layout_swizzle_check(r, from, &s->swizzle)) return false;
  if (!inner) s->swizzle.shift = -s->swizzle.shift;
  return true;
}

// layout := "SwizzleLayout" "(" swizzle | "ComposeLayout" "(" swizzle | tile
static bool read_object(LayoutReader *r, TileLayout *s) {
  const char *from = r->at;
  if (opens(r, "ComposeLayout")) return read_swizzle(r, s, from, true);
  if (!opens(r, "SwizzleLayout")) return read_tile(r, s);
  if (!read_swizzle(r, s, from, false)) return false;
  const XorSwizzle *w = &s->swizzle;
  int64_t reach = w->shift < 0 ? -w->shift : w->shift;
  s->shards.count = 1;
  s->shards.extents[0] = (int64_t)1 << (w->base + w->bits + reach);
  return default_steps(r, s, &s->shards);
}

// ---- The map -----------------------------------------------------------------------------------

static bool is_shape(const IterPieces *p, const LayoutExpr *const *shape, int rank) {
  if (rank != p->count) return false;
  for (int i = 0; i < rank && shape; i++)
    if (!is_const(shape[i]) || shape[i]->value != p->extents[i]) return false;
  return true;
}

static const LayoutExpr *row_major(LayoutReader *r, int rank) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = layout_axis(r->context, i);
  return layout_number_expr(r->context, axes, r->shape, rank);
}

// The digits of the shards as digits of the row-major number, where the tensor's shape differs from
// the shards' extents.
static bool cut_shape(LayoutReader *r, const TileLayout *s, const LayoutExpr **digits) {
  Context *context = r->context;
  const IterPieces *p = &s->shards;
  int64_t extents[MAX_RANK], size, total, below = 1;
  if (!r->shape)
    return layout_reader_refuse(r, s->from, r->at,
                                "these are %d shards: a tensor of another rank needs its shape",
                                p->count);
  for (int i = 0; i < r->rank; i++)
    if (!is_const(r->shape[i]))
      return layout_reader_refuse(r, s->from, r->at, "shards need the extents of the tensor");
  for (int i = 0; i < r->rank; i++) extents[i] = r->shape[i]->value;
  if (!layout_box_strides(p->extents, p->count, NULL, &total) ||
      !layout_box_strides(extents, r->rank, NULL, &size) || total != size)
    return layout_reader_refuse(r, s->from, r->at,
                                "the shards do not have as many elements as the tensor");
  const LayoutExpr *flat = row_major(r, r->rank);
  for (int i = p->count - 1; i >= 0; i--) {
    int64_t extent = MAX_OF(p->extents[i], (int64_t)1);
    const LayoutExpr *e = layout_digit_expr(context, flat, below, extent);
    digits[i] = layout_expr_simplify(context, e, extents, r->rank);
    if (!mul_fits(below, extent, &below)) below = INT64_MAX;
  }
  return true;
}

static const IndexMap *sharded_map(LayoutReader *r, const TileLayout *s,
                                   const LayoutExpr *const *digits, int rank) {
  Context *context = r->context;
  const LayoutExpr *outputs[MAX_RANK];
  const IterPieces *p = &s->shards, *q = &s->replicas;
  for (int i = 0; i < s->axis_count; i++) outputs[i] = layout_const(context, 0);
  for (int i = 0; i < p->count + q->count; i++) {
    const IterStep *step = i < p->count ? &p->steps[i] : &q->steps[i - p->count];
    const LayoutExpr *e = i < p->count ? digits[i] : layout_axis(context, rank + i - p->count);
    const LayoutExpr **out = &outputs[step->axis];
    *out = layout_add_product(context, *out, e, layout_const(context, step->value));
  }
  for (int i = 0; i < s->axis_count; i++)
    outputs[i] = layout_by(context, LAYOUT_ADD, outputs[i], s->offsets[i]);
  if (s->swizzle.bits) outputs[0] = layout_swizzled(context, &s->swizzle, outputs[0]);
  return index_map_replicated(context, rank, q->count, NULL, q->extents, s->axis_count, outputs,
                              s->axes, NULL, 0);
}

// The digits of the shards for the tensor's shape. Without a shape the shards are the axes.
static bool find_digits(LayoutReader *r, const TileLayout *s, int rank, const LayoutExpr **digits,
                        Spelled *out) {
  const LayoutExpr *shape[MAX_RANK];
  for (int i = 0; i < s->shards.count; i++) {
    digits[i] = layout_axis(r->context, i);
    shape[i] = layout_const(r->context, s->shards.extents[i]);
  }
  if (!s->has_shards && r->shape) return digits[0] = row_major(r, rank), true;
  if (!is_shape(&s->shards, r->shape, rank)) return cut_shape(r, s, digits);
  out->shape = arena_copy(&r->context->lasting, shape, sizeof *shape * (size_t)rank);
  return true;
}

bool layout_read_tile_layout(LayoutReader *r, Spelled *out) {
  TileLayout *s = arena_new(&r->context->scratch, TileLayout);
  const LayoutExpr *digits[MAX_RANK];
  const char *from = s->from = r->at;
  if (!read_object(r, s)) return false;
  if (s->swizzle.bits && (s->axis_count != 1 || s->axes[0]))
    return layout_reader_refuse(r, from, r->at, "only memory can be swizzled");
  int rank = r->rank < 0 ? s->shards.count : r->rank;
  if (rank + s->replicas.count > MAX_RANK)
    return layout_reader_error(r, s->from, r->at, "more than %d axes", MAX_RANK);
  if (!find_digits(r, s, rank, digits, out)) return false;
  out->map = sharded_map(r, s, digits, rank);
  return true;
}

// ---- Printing ----------------------------------------------------------------------------------

static bool axes_differ(const IndexMap *map) {
  for (int i = 0; i < map->output_count; i++)
    for (int j = 0; j < i; j++)
      if (map->resources[i] == map->resources[j]) return false;
  return true;
}

static void put_step(Text *text, const IndexMap *map, int64_t value, int output) {
  text_printf(text, "%lld", (long long)value);
  if (map->resources[output]) text_printf(text, "@%s", map->resources[output]);
}

static void put_list(Text *text, const IndexMap *map, const LayoutPlacement *p, int begin, int end,
                     bool steps) {
  if (end - begin != 1) text_puts(text, "(");
  for (int i = begin; i < end; i++) {
    const PlacedDigit *g = &p->digits[i];
    int output = MAX_OF(layout_placed_output(p, g), 0);
    if (i > begin) text_puts(text, ", ");
    if (steps)
      put_step(text, map, g->weights[output], output);
    else
      text_printf(text, "%lld", (long long)g->digit.radix);
  }
  if (end - begin != 1) text_puts(text, ")");
}

static void put_pieces(Text *text, const char *kind, const IndexMap *map, const LayoutPlacement *p,
                       int begin, int end) {
  text_printf(text, "%s[", kind);
  put_list(text, map, p, begin, end, false);
  text_puts(text, " : ");
  put_list(text, map, p, begin, end, true);
  text_puts(text, "]");
}

// The number of axes that the digits name in order, from the first one on.
static bool named_in_order(const LayoutPlacement *p) {
  int named = 0;
  for (int i = 0; i < p->digit_count; i++) {
    int output = layout_placed_output(p, &p->digits[i]);
    if (output > named) return false;
    named = MAX_OF(named, output + 1);
  }
  return true;
}

static const char *sharding_text(Context *context, const Layout *layout, const LayoutPlacement *p) {
  Text text = text_new(&context->lasting);
  const IndexMap *map = layout->map;
  int shards = 0;
  bool in_order = named_in_order(p);
  while (shards < p->digit_count && p->digits[shards].digit.base < layout->rank) shards++;
  for (int i = 0; i < p->output_count && !in_order; i++) { // offsets of 0 name the axes in order
    put_step(&text, map, p->constants[i], i);
    text_puts(&text, " + ");
  }
  put_pieces(&text, "S", map, p, 0, shards);
  if (shards < p->digit_count) {
    text_puts(&text, " + ");
    put_pieces(&text, "R", map, p, shards, p->digit_count);
  }
  int named = 0;
  for (int i = 0; i < p->digit_count; i++)
    named = MAX_OF(named, layout_placed_output(p, &p->digits[i]) + 1);
  for (int i = 0; i < p->output_count && in_order; i++) {
    if (!p->constants[i] && i < named) continue;
    text_puts(&text, " + ");
    put_step(&text, map, p->constants[i], i);
  }
  return text_string(&text);
}

// The layout as a swizzle of memory; NULL when it is not one.
static const char *composed_text(Context *context, const Layout *layout) {
  XorSwizzle s;
  LayoutPlacement p;
  if (layout->physical_rank != 1 || layout->map->resources[0] ||
      !layout_swizzled_placement(context, layout, &s, &p))
    return NULL;
  return arena_printf(
      &context->lasting, "ComposeLayout(%lld, %lld, %lld, TileLayout(%s)%s)", (long long)s.base,
      (long long)s.bits, (long long)(s.shift < 0 ? -s.shift : s.shift),
      sharding_text(context, layout, &p), s.shift < 0 ? ", swizzle_inner=False" : "");
}

const char *layout_print_tile_layout(Context *context, const Layout *layout, const char **why) {
  LayoutPlacement p;
  *why = NULL;
  if (!layout->is_static)
    *why = "its extents are symbolic";
  else if (layout->map->separator_count)
    *why = "shards have no axis separators";
  else if (!axes_differ(layout->map))
    *why = "shards have one axis of each name";
  else if (!layout->physical_rank)
    *why = "it has no physical axis";
  if (*why) return NULL;
  // Without elements there are no copies, and the replica axes are left out.
  int rank = layout_is_empty(layout) ? layout->rank : layout_box_rank(layout);
  if (!layout_placement(context, layout->extents, rank, layout->map->outputs, layout->physical_rank,
                        &p, why)) {
    const char *text = composed_text(context, layout);
    return text ? *why = NULL, text : NULL;
  }
  return layout_placed_apart(&p, why) ? sharding_text(context, layout, &p) : NULL;
}
