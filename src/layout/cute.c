// SPDX-License-Identifier: Apache-2.0
// CuTe's layouts: `shape:stride`, whose modes are the logical axes and may nest, the first part of
// a nested mode running fastest; and a swizzle after it, `Swizzle<B,M,S> o offset o shape:stride`.
// Places are offsets on one memory axis.
//
//   (swizzle o offset o layout)(c) = swizzle(offset + layout(c))
//   swizzle(x) = x ^ ((x & Y) >> S), Y the B bits from bit M + S on (S < 0: from bit M, upwards)
#include "layout/parse.h"

#include <ctype.h>

// A nested tuple of numbers, flattened: leaves in order, and the leaf at which each mode ends.
typedef struct Tuple {
  int64_t leaves[MAX_RANK];
  int leaf_count, mode_ends[MAX_RANK], mode_count;
  const char *from;
} Tuple;

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

static bool read_leaf(LayoutReader *r, Tuple *tuple) {
  int64_t value;
  if (!read_number(r, &value)) return false;
  if (tuple->leaf_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d modes", MAX_RANK);
  tuple->leaves[tuple->leaf_count++] = value;
  return true;
}

// mode := number | "(" [mode ("," mode)*] ")"
static bool read_mode(LayoutReader *r, Tuple *tuple) {
  char close = layout_reader_open(r);
  if (!close) return read_leaf(r, tuple);
  if (++r->depth > MAX_NESTING)
    return layout_reader_refuse(r, r->at, r->at, "nested more than %d deep", MAX_NESTING);
  const char stop[2] = {close, 0};
  bool more = !layout_reader_accept(r, stop);
  while (more) more = read_mode(r, tuple) && layout_reader_more(r, close);
  r->depth--;
  return !r->failed;
}

static bool end_mode(LayoutReader *r, Tuple *tuple) {
  if (tuple->mode_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d axes", MAX_RANK);
  tuple->mode_ends[tuple->mode_count++] = tuple->leaf_count;
  return true;
}

// tuple := number | "(" [mode ("," mode)*] ")"; its modes are the logical axes
static bool read_tuple(LayoutReader *r, Tuple *tuple) {
  layout_reader_space(r);
  *tuple = (Tuple){.from = r->at};
  char close = layout_reader_open(r);
  if (!close) return read_leaf(r, tuple) && end_mode(r, tuple);
  const char stop[2] = {close, 0};
  bool more = !layout_reader_accept(r, stop);
  while (more) more = read_mode(r, tuple) && end_mode(r, tuple) && layout_reader_more(r, close);
  return !r->failed;
}

// The coordinate of an axis runs through its leaves, the first fastest.
static const LayoutExpr *mode_offset(LayoutReader *r, const Tuple *shape, const Tuple *strides,
                                     int axis, int64_t *extent) {
  Context *context = r->context;
  const LayoutExpr *sum = layout_const(context, 0);
  int begin = axis ? shape->mode_ends[axis - 1] : 0, end = shape->mode_ends[axis];
  *extent = 1;
  for (int leaf = begin; leaf < end; leaf++) {
    const LayoutExpr *digit = layout_expr(context, LAYOUT_DIV, layout_axis(context, axis),
                                          layout_const(context, MAX_OF(*extent, 1)), NULL);
    if (leaf + 1 < end)
      digit = layout_expr(context, LAYOUT_MOD, digit,
                          layout_const(context, MAX_OF(shape->leaves[leaf], 1)), NULL);
    const LayoutExpr *stride = layout_const(context, strides->leaves[leaf]);
    sum = layout_expr(context, LAYOUT_ADD, sum,
                      layout_expr(context, LAYOUT_MUL, digit, stride, NULL), NULL);
    if (!mul_fits(*extent, shape->leaves[leaf], extent)) {
      layout_reader_refuse(r, shape->from, r->at, "this size does not fit 64 bits");
      return NULL;
    }
  }
  return sum;
}

static bool same_modes(const Tuple *a, const Tuple *b) {
  return a->mode_count == b->mode_count && a->leaf_count == b->leaf_count &&
         !memcmp(a->mode_ends, b->mode_ends, sizeof(int) * (size_t)a->mode_count);
}

static bool is_swizzle(LayoutReader *r) {
  return layout_reader_accept(r, "Swizzle") || layout_reader_accept(r, "Sw");
}

// swizzle := ("Swizzle" | "Sw") "<" bits "," base "," shift ">"
static bool read_swizzle(LayoutReader *r, Swizzle *out) {
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

static bool read_shape_stride(LayoutReader *r, Tuple *shape, Tuple *strides) {
  if (!read_tuple(r, shape)) return false;
  const char *end = r->at;
  if (!layout_reader_expect(r, ":") || !read_tuple(r, strides)) return false;
  if (!same_modes(shape, strides))
    return layout_reader_refuse(r, shape->from, r->at, "shape and strides differ in form");
  for (int i = 0; i < shape->leaf_count; i++)
    if (shape->leaves[i] < 0)
      return layout_reader_error(r, shape->from, end, "a negative extent, %lld",
                                 (long long)shape->leaves[i]);
  return layout_reader_check_rank(r, shape->mode_count);
}

// layout := [swizzle "o" [number "o"]] tuple ":" tuple
bool layout_read_cute(LayoutReader *r, Spelled *out) {
  Tuple shape, strides;
  Context *context = r->context;
  Swizzle swizzle = {0};
  int64_t start = 0;
  LayoutReader ahead = *r;
  if (is_swizzle(&ahead)) {
    if (!read_swizzle(r, &swizzle) || !layout_reader_expect(r, "o")) return false;
    ahead = *r;
    ahead.failed = true; // looks only
    if (read_number(&ahead, &start) && layout_reader_accept(&ahead, "o"))
      r->at = ahead.at;
    else
      start = 0;
  }
  if (!read_shape_stride(r, &shape, &strides)) return false;
  int rank = shape.mode_count;
  const LayoutExpr **extents = arena_array(&context->arena, const LayoutExpr *, rank);
  const LayoutExpr *offset = layout_const(context, 0);
  for (int i = 0; i < rank; i++) {
    int64_t extent;
    const LayoutExpr *part = mode_offset(r, &shape, &strides, i, &extent);
    if (!part) return false;
    extents[i] = layout_const(context, extent);
    offset = layout_expr(context, LAYOUT_ADD, offset, part, NULL);
  }
  offset = layout_expr(context, LAYOUT_ADD, offset, layout_const(context, start), NULL);
  offset = layout_swizzled(context, &swizzle, offset);
  out->shape = extents;
  out->map = index_map_new(context, rank, NULL, 1, &offset, NULL, NULL, 0);
  return true;
}

// ---- Printing ----------------------------------------------------------------------------------

// The modes of one kind of number: radices, or weights. Least significant digit first.
static void put_modes(Text *text, const Layout *layout, const Placement *p, bool strides) {
  text_puts(text, layout->rank == 1 && p->digit_count < 2 ? "" : "(");
  for (int axis = 0, end = 0; axis < layout->rank; axis++) {
    int begin = end;
    while (end < p->digit_count && p->digits[end].axis == axis) end++;
    if (axis) text_puts(text, ",");
    if (end - begin > 1) text_puts(text, "(");
    if (end == begin) text_printf(text, "%lld", strides ? 0LL : (long long)layout->extents[axis]);
    for (int i = end - 1; i >= begin; i--)
      text_printf(text, "%lld%s",
                  (long long)(strides ? p->digits[i].weights[0] : p->digits[i].radix),
                  i > begin ? "," : "");
    if (end - begin > 1) text_puts(text, ")");
  }
  text_puts(text, layout->rank == 1 && p->digit_count < 2 ? "" : ")");
}

static const char *shape_stride(Context *context, const Layout *layout, const Placement *p) {
  Text text = text_new(&context->arena);
  put_modes(&text, layout, p, false);
  text_puts(&text, ":");
  put_modes(&text, layout, p, true);
  return text_string(&text);
}

// A layout without elements: any strides.
static Placement no_digits(Context *context) {
  return (Placement){.output_count = 1, .constants = arena_array(&context->scratch, int64_t, 1)};
}

const char *layout_print_cute(Context *context, const Layout *layout, const char **why) {
  int64_t size;
  Placement p;
  Swizzle swizzle = {0, 4, 3};
  *why = layout_one_memory_axis(context, layout, "CuTe");
  if (*why) return NULL;
  if (layout_logical_size(layout, &size) && !size) {
    p = no_digits(context);
  } else if (!layout_placement(context, layout->extents, layout->rank, layout->map->outputs, 1, &p,
                               why)) {
    const char *no_placement = *why;
    if (!layout_swizzled_placement(context, layout, &swizzle, &p)) return *why = no_placement, NULL;
  }
  const char *text = shape_stride(context, layout, &p);
  if (!swizzle.bits && !p.constants[0]) return text;
  return arena_printf(&context->arena, "Sw<%lld,%lld,%lld> o %lld o %s", (long long)swizzle.bits,
                      (long long)swizzle.base, (long long)swizzle.shift, (long long)p.constants[0],
                      text);
}
