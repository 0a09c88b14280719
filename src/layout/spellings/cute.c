// SPDX-License-Identifier: Apache-2.0
// Reads and prints CuTe's layouts: `shape:stride`, whose modes are the logical axes and may nest,
// where the first leaf of a nested mode runs fastest; a swizzle may follow, `Swizzle<B,M,S> o
// offset o shape:stride`. Values are offsets on one memory axis.
//
// A stride `s@p` belongs to a layout of coordinates (the tensors of coordinates that TMA has):
// `(4,8):(1@1,2@0)` is (i, j) -> (2*j, i), and `1@1@0` is number 1 of the tuple that is number 0.
// Each number of the coordinate is a physical axis. The first coordinate may be written before the
// layout, `ArithTuple(0,5) o (4,8):...`.
//
//   (swizzle o offset o layout)(c) = swizzle(offset + layout(c))
//   swizzle(x) = x ^ ((x & Y) >> S), Y the B bits from bit M + S on (S < 0: from bit M, upwards)
#include "layout/spellings/spellings.h"

#include <ctype.h>

enum { MAX_DEPTH = 8 };

// The path to a number of a nested coordinate, from the outside in. Depth 0 is an offset in memory.
typedef struct TuplePath {
  int depth, at[MAX_DEPTH];
} TuplePath;

// A nested tuple of numbers, flattened: its leaves in order, and the leaf at which each mode ends.
typedef struct CuteTuple {
  int64_t leaves[MAX_RANK];
  TuplePath paths[MAX_RANK]; // of strides
  int leaf_count, mode_ends[MAX_RANK], mode_count;
  const char *from;
} CuteTuple;

// The numbers of a coordinate, in order, and the value of each at the origin.
typedef struct Coordinate {
  TuplePath paths[MAX_RANK];
  int64_t start[MAX_RANK];
  int count;
} Coordinate;

// ---- Reading -----------------------------------------------------------------------------------

// number := ["-"] ["_"] digits; `_4` is a constant known at compile time
static bool read_number(LayoutReader *r, int64_t *out) {
  bool negative = layout_reader_accept(r, "-");
  layout_reader_space(r);
  if (r->at + 1 < r->end && *r->at == '_' && isdigit((unsigned char)r->at[1])) r->at++;
  if (!layout_reader_number(r, out)) return false;
  if (negative) *out = -*out;
  return true;
}

// path := ("@" number)*, the innermost first
static bool read_path(LayoutReader *r, TuplePath *path) {
  while (layout_reader_accept(r, "@")) {
    const char *from = r->at;
    int64_t at;
    if (!layout_reader_number(r, &at)) return false;
    if (path->depth == MAX_DEPTH || at >= MAX_RANK)
      return layout_reader_refuse(
          r, from, r->at, "a coordinate of more than %d numbers, or %d deep", MAX_RANK, MAX_DEPTH);
    memmove(path->at + 1, path->at, sizeof(int) * (size_t)path->depth++);
    path->at[0] = (int)at;
  }
  return !r->failed;
}

static bool read_leaf(LayoutReader *r, CuteTuple *tuple) {
  int64_t value;
  TuplePath path = {0};
  if (!read_number(r, &value) || !read_path(r, &path)) return false;
  if (tuple->leaf_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d modes", MAX_RANK);
  tuple->paths[tuple->leaf_count] = path;
  tuple->leaves[tuple->leaf_count++] = value;
  return true;
}

static bool end_mode(LayoutReader *r, CuteTuple *tuple) {
  if (tuple->mode_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d axes", MAX_RANK);
  tuple->mode_ends[tuple->mode_count++] = tuple->leaf_count;
  return true;
}

// mode := number path | "(" [mode ("," mode)*] ")"
static bool read_mode(LayoutReader *r, CuteTuple *tuple, bool is_tuple) {
  bool more;
  char close = layout_reader_open(r, &more);
  if (!close) return read_leaf(r, tuple) && (!is_tuple || end_mode(r, tuple));
  if (++r->depth > MAX_NESTING + 1)
    return layout_reader_refuse(r, r->at, r->at, "nested more than %d deep", MAX_NESTING);
  while (more)
    more = read_mode(r, tuple, false) && (!is_tuple || end_mode(r, tuple)) &&
           layout_reader_more(r, close);
  r->depth--;
  return !r->failed;
}

// tuple := mode; the modes in its parentheses are the logical axes
static bool read_tuple(LayoutReader *r, CuteTuple *tuple) {
  layout_reader_space(r);
  *tuple = (CuteTuple){.from = r->at};
  return read_mode(r, tuple, true);
}

static bool same_path(const TuplePath *a, const TuplePath *b) {
  return a->depth == b->depth && !memcmp(a->at, b->at, sizeof(int) * (size_t)a->depth);
}

// The amount that an axis adds to one number of the coordinate. The axis' index is cut into digits
// by its leaves, the first leaf fastest.
static const LayoutExpr *mode_offset(LayoutReader *r, const CuteTuple *shape,
                                     const CuteTuple *strides, const TuplePath *path, int axis,
                                     int64_t *extent) {
  Context *context = r->context;
  const LayoutExpr *sum = layout_const(context, 0);
  int begin = axis ? shape->mode_ends[axis - 1] : 0, end = shape->mode_ends[axis];
  *extent = 1;
  for (int leaf = begin; leaf < end; leaf++) {
    const LayoutExpr *digit =
        layout_digit_expr(context, layout_axis(context, axis), MAX_OF(*extent, 1),
                          leaf + 1 < end ? MAX_OF(shape->leaves[leaf], 1) : 0);
    bool feeds = same_path(&strides->paths[leaf], path);
    const LayoutExpr *stride = layout_const(context, feeds ? strides->leaves[leaf] : 0);
    sum = layout_add_product(context, sum, digit, stride);
    if (!mul_fits(*extent, shape->leaves[leaf], extent)) {
      layout_reader_refuse(r, shape->from, r->at, "this size does not fit 64 bits");
      return NULL;
    }
  }
  return sum;
}

static bool same_modes(const CuteTuple *a, const CuteTuple *b) {
  return a->mode_count == b->mode_count && a->leaf_count == b->leaf_count &&
         !memcmp(a->mode_ends, b->mode_ends, sizeof(int) * (size_t)a->mode_count);
}

static bool is_swizzle(LayoutReader *r) {
  return layout_reader_accept(r, "Swizzle") || layout_reader_accept(r, "Sw");
}

// swizzle := ("Swizzle" | "Sw") "<" bits "," base "," shift ">"
static bool read_swizzle(LayoutReader *r, XorSwizzle *out) {
  layout_reader_space(r);
  const char *from = r->at;
  if (!is_swizzle(r)) return layout_reader_expect(r, "Swizzle");
  bool good = layout_reader_expect(r, "<") && read_number(r, &out->bits) &&
              layout_reader_expect(r, ",") && read_number(r, &out->base) &&
              layout_reader_expect(r, ",") && read_number(r, &out->shift) &&
              layout_reader_expect(r, ">");
  if (!good) return false;
  return layout_swizzle_check(r, from, out);
}

static bool read_shape_stride(LayoutReader *r, CuteTuple *shape, CuteTuple *strides) {
  if (!read_tuple(r, shape)) return false;
  const char *end = r->at;
  if (!layout_reader_expect(r, ":") || !read_tuple(r, strides)) return false;
  if (!same_modes(shape, strides))
    return layout_reader_refuse(r, shape->from, r->at, "shape and strides differ in form");
  for (int i = 0; i < shape->leaf_count; i++)
    if (shape->paths[i].depth)
      return layout_reader_refuse(r, shape->from, end, "an extent is a number, without `@`");
  for (int i = 0; i < shape->leaf_count; i++)
    if (shape->leaves[i] < 0)
      return layout_reader_error(r, shape->from, end, "a negative extent, %lld",
                                 (long long)shape->leaves[i]);
  return layout_reader_check_rank(r, shape->mode_count);
}

// ---- Coordinates -------------------------------------------------------------------------------

static bool begins(const TuplePath *path, const TuplePath *with) {
  return path->depth >= with->depth &&
         !memcmp(path->at, with->at, sizeof(int) * (size_t)with->depth);
}

static bool add_number(LayoutReader *r, Coordinate *c, const TuplePath *path, int64_t start) {
  if (c->count == MAX_RANK)
    return layout_reader_refuse(r, r->at, r->at, "more than %d physical axes", MAX_RANK);
  c->paths[c->count] = *path;
  c->start[c->count++] = start;
  return true;
}

// The numbers below `path`. `said` has some of them; the numbers between, which no stride feeds,
// are 0.
static bool add_numbers(LayoutReader *r, const Coordinate *said, const TuplePath *path,
                        Coordinate *out) {
  int last = -1, exact = -1;
  for (int i = 0; i < said->count; i++) {
    if (!begins(&said->paths[i], path)) continue;
    if (said->paths[i].depth == path->depth)
      exact = i;
    else
      last = MAX_OF(last, said->paths[i].at[path->depth]);
  }
  if (last < 0) return add_number(r, out, path, exact < 0 ? 0 : said->start[exact]);
  if (exact >= 0)
    return layout_reader_refuse(r, r->text, r->at,
                                path->depth ? "a part of the coordinate is a number and a tuple"
                                            : "all strides have an `@`, or none has");
  for (int i = 0; i <= last; i++) {
    TuplePath below = *path;
    below.at[below.depth++] = i;
    if (!add_numbers(r, said, &below, out)) return false;
  }
  return true;
}

// start := number | "(" [start ("," start)*] ")", whose numbers are those below `path`
static bool read_start(LayoutReader *r, const TuplePath *path, Coordinate *said) {
  int64_t value;
  bool more;
  char close = layout_reader_open(r, &more);
  if (!close) return read_number(r, &value) && add_number(r, said, path, value);
  if (path->depth == MAX_DEPTH)
    return layout_reader_refuse(r, r->at, r->at, "nested more than %d deep", MAX_DEPTH);
  for (int i = 0; more; i++) {
    TuplePath below = *path;
    below.at[below.depth++] = i;
    more = read_start(r, &below, said) && layout_reader_more(r, close);
  }
  return !r->failed;
}

// Adds the numbers that strides feed and sorts all. A coordinate of no tuple is an offset in
// memory.
static bool find_coordinate(LayoutReader *r, const CuteTuple *strides, Coordinate *said,
                            Coordinate *out) {
  for (int i = 0; i < strides->leaf_count; i++) {
    const TuplePath *path = &strides->paths[i];
    bool known = path->depth == 0 && !strides->leaves[i];
    for (int j = 0; j < said->count; j++) known |= same_path(path, &said->paths[j]);
    if (!known && !add_number(r, said, path, 0)) return false;
  }
  return add_numbers(r, said, &(TuplePath){0}, out);
}

// ---- Layouts -----------------------------------------------------------------------------------

// Whether a number or a tuple with an "o" after it is next.
static bool is_origin(const LayoutReader *r) {
  LayoutReader ahead = *r;
  int depth = 0;
  layout_reader_space(&ahead);
  for (; ahead.at < ahead.end && *ahead.at != ':'; ahead.at++) {
    depth += *ahead.at == '(' ? 1 : *ahead.at == ')' ? -1 : 0;
    if (!depth && layout_reader_accept(&ahead, "o")) return true;
  }
  return false;
}

// origin := ["ArithTuple"] start "o"
static bool read_origin(LayoutReader *r, Coordinate *said) {
  bool must = layout_reader_accept(r, "ArithTuple");
  if (!must && !is_origin(r)) return true;
  return read_start(r, &(TuplePath){0}, said) && layout_reader_expect(r, "o");
}

static const IndexMap *coordinate_map(LayoutReader *r, const CuteTuple *shape,
                                      const CuteTuple *strides, const Coordinate *c,
                                      const XorSwizzle *swizzle, const LayoutExpr **extents) {
  Context *context = r->context;
  const LayoutExpr *outputs[MAX_RANK];
  for (int i = 0; i < c->count; i++) {
    outputs[i] = layout_const(context, 0);
    for (int axis = 0; axis < shape->mode_count; axis++) {
      int64_t extent;
      const LayoutExpr *part = mode_offset(r, shape, strides, &c->paths[i], axis, &extent);
      if (!part) return NULL;
      extents[axis] = layout_const(context, extent);
      outputs[i] = layout_binary(context, LAYOUT_ADD, outputs[i], part);
    }
    outputs[i] = layout_by(context, LAYOUT_ADD, outputs[i], c->start[i]);
    outputs[i] = layout_swizzled(context, swizzle, outputs[i]);
  }
  return index_map_new(context, shape->mode_count, NULL, c->count, outputs, NULL, NULL, 0);
}

// layout := [swizzle "o"] [origin "o"] tuple ":" tuple
bool layout_read_cute(LayoutReader *r, Spelled *out) {
  Arena *scratch = &r->context->scratch;
  CuteTuple *shape = arena_new(scratch, CuteTuple), *strides = arena_new(scratch, CuteTuple);
  Coordinate *said = arena_new(scratch, Coordinate), *c = arena_new(scratch, Coordinate);
  XorSwizzle swizzle = {0};
  const char *from = r->at;
  LayoutReader ahead = *r;
  if (is_swizzle(&ahead) && (!read_swizzle(r, &swizzle) || !layout_reader_expect(r, "o")))
    return false;
  if (!read_origin(r, said) || !read_shape_stride(r, shape, strides) ||
      !find_coordinate(r, strides, said, c))
    return false;
  if (swizzle.bits && c->paths[0].depth)
    return layout_reader_refuse(r, from, r->at, "coordinates have no swizzle, offsets have");
  const LayoutExpr **extents = arena_array(&r->context->lasting, const LayoutExpr *, MAX_RANK);
  out->map = coordinate_map(r, shape, strides, c, &swizzle, extents);
  out->shape = extents;
  return out->map != NULL;
}

// ---- Printing ----------------------------------------------------------------------------------

static void put_stride(Text *text, const LayoutPlacement *p, const PlacedDigit *g) {
  int output = MAX_OF(layout_placed_output(p, g), 0);
  text_printf(text, "%lld", (long long)g->weights[output]);
  if (p->output_count > 1 && g->weights[output]) text_printf(text, "@%d", output);
}

// Prints the modes with the radices or with the weights of their digits, least significant first.
static void put_modes(Text *text, const Layout *layout, const LayoutPlacement *p, bool strides) {
  text_puts(text, layout->rank == 1 && p->digit_count < 2 ? "" : "(");
  for (int axis = 0, end = 0; axis < layout->rank; axis++) {
    int begin = end;
    while (end < p->digit_count && p->digits[end].digit.base == axis) end++;
    if (axis) text_puts(text, ",");
    if (end - begin > 1) text_puts(text, "(");
    if (end == begin) text_printf(text, "%lld", strides ? 0LL : (long long)layout->extents[axis]);
    for (int i = end - 1; i >= begin; i--) {
      if (strides)
        put_stride(text, p, &p->digits[i]);
      else
        text_printf(text, "%lld", (long long)p->digits[i].digit.radix);
      text_puts(text, i > begin ? "," : "");
    }
    if (end - begin > 1) text_puts(text, ")");
  }
  text_puts(text, layout->rank == 1 && p->digit_count < 2 ? "" : ")");
}

static const char *shape_stride(Context *context, const Layout *layout, const LayoutPlacement *p) {
  Text text = text_new(&context->lasting);
  put_modes(&text, layout, p, false);
  text_puts(&text, ":");
  put_modes(&text, layout, p, true);
  return text_string(&text);
}

// Whether the digits tell how many numbers a coordinate has, and all numbers are 0 at the origin.
static bool begins_at_0(const LayoutPlacement *p) {
  bool fed = false;
  for (int i = 0; i < p->digit_count; i++) fed |= p->digits[i].weights[p->output_count - 1] != 0;
  for (int i = 0; i < p->output_count; i++) fed &= p->constants[i] == 0;
  return fed;
}

static const char *coordinate_text(Context *context, const Layout *layout,
                                   const LayoutPlacement *p) {
  Text text = text_new(&context->lasting);
  if (!begins_at_0(p)) {
    for (int i = 0; i < p->output_count; i++)
      text_printf(&text, "%s%lld", i ? "," : "(", (long long)p->constants[i]);
    text_puts(&text, ") o ");
  }
  text_puts(&text, shape_stride(context, layout, p));
  return text_string(&text);
}

static const char *print_coordinates(Context *context, const Layout *layout, const char **why) {
  LayoutPlacement p;
  if (!layout_placement(context, layout->extents, layout->rank, layout->map->outputs,
                        layout->physical_rank, &p, why) ||
      !layout_placed_apart(&p, why))
    return NULL;
  return coordinate_text(context, layout, &p);
}

const char *layout_print_cute(Context *context, const Layout *layout, const char **why) {
  LayoutPlacement p;
  XorSwizzle swizzle = {0, 4, 3};
  *why = layout_memory_alone(context, layout, "CuTe");
  if (!*why && layout->physical_rank > 1) return print_coordinates(context, layout, why);
  *why = layout_one_memory_axis(context, layout, "CuTe");
  if (*why) return NULL;
  if (!layout_placement(context, layout->extents, layout->rank, layout->map->outputs, 1, &p, why)) {
    const char *no_placement = *why;
    if (!layout_swizzled_placement(context, layout, &swizzle, &p)) return *why = no_placement, NULL;
  }
  const char *text = shape_stride(context, layout, &p);
  if (!swizzle.bits && !p.constants[0]) return text;
  return arena_printf(&context->lasting, "Sw<%lld,%lld,%lld> o %lld o %s", (long long)swizzle.bits,
                      (long long)swizzle.base, (long long)swizzle.shift, (long long)p.constants[0],
                      text);
}
