// SPDX-License-Identifier: Apache-2.0
// Spellings that are no expressions: named axes (`NCHW16c`), oneDNN tags (`aBcd16b`), and
// shape:strides (`(4, 8):(8, 1)`, nested modes read colexicographically as in CuTe).
#include "layout/parse.h"

#include <ctype.h>

// ---- Named axes and tags -----------------------------------------------------------------------

// One letter of the name: the whole axis (factor 0) or a block of it.
typedef struct NamePart {
  int letter; // 0 .. 25
  bool upper;
  int64_t factor;
  const char *from, *to;
} NamePart;

typedef struct Name {
  NamePart parts[MAX_RANK];
  int count;
  bool is_tag; // letters are a, b, c, …: oneDNN's, whose order is the alphabet
} Name;

static bool read_parts(LayoutReader *r, Name *name) {
  while (r->at < r->end && isalnum((unsigned char)*r->at)) {
    NamePart part = {.from = r->at};
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
      if (!mul_fits(part.factor, 10, &part.factor) ||
          !add_fits(part.factor, *r->at - '0', &part.factor))
        return layout_reader_error(r, part.from, r->at + 1, "this block size does not fit 64 bits");
    part.to = r->at + (r->at < r->end);
    if (r->at == r->end || !isalpha((unsigned char)*r->at))
      return layout_reader_error(r, part.from, part.to,
                                 "a block size needs the letter of its axis");
    if (r->at > part.from && part.factor == 0)
      return layout_reader_error(r, part.from, part.to, "a block of 0 elements");
    part.upper = isupper((unsigned char)*r->at) != 0;
    part.letter = tolower((unsigned char)*r->at++) - 'a';
    if (name->count == MAX_RANK)
      return layout_reader_error(r, part.from, part.to, "more than %d physical axes", MAX_RANK);
    name->parts[name->count++] = part;
  }
  if (!name->count) {
    const char *saw = layout_reader_saw(r);
    return layout_reader_error(r, r->at, r->at + (r->at < r->end), "expected a layout, saw %s",
                               saw);
  }
  return true;
}

static bool has_primal(const Name *name, int letter) {
  for (int i = 0; i < name->count; i++)
    if (name->parts[i].letter == letter && !name->parts[i].factor) return true;
  return false;
}

static int primal_count(const Name *name) {
  int count = 0;
  for (int i = 0; i < name->count; i++) count += !name->parts[i].factor;
  return count;
}

static bool is_tag(const Name *name, const char *order) {
  int count = primal_count(name);
  if (order || !count || count > 26) return false;
  for (int letter = 0; letter < count; letter++)
    if (!has_primal(name, letter)) return false;
  return true;
}

static bool check_part(LayoutReader *r, const Name *name, int at) {
  const NamePart *part = &name->parts[at];
  int size = (int)(part->to - part->from);
  int letter = part->letter + (part->upper ? 'A' : 'a');
  if (part->factor && part->upper)
    return layout_reader_error(r, part->from, part->to,
                               "a block is written in lower case: `%lld%c`",
                               (long long)part->factor, part->letter + 'a');
  if (part->factor && !has_primal(name, part->letter))
    return layout_reader_error(r, part->from, part->to,
                               "`%.*s` is a block of an axis `%c` that is missing", size,
                               part->from, part->letter + 'A');
  if (!part->factor && !part->upper && !name->is_tag)
    return layout_reader_error(r, part->from, part->to,
                               "`%c` in lower case is a block and needs a size", letter);
  for (int i = 0; i < at && !part->factor; i++)
    if (name->parts[i].letter == part->letter && !name->parts[i].factor)
      return layout_reader_error(r, part->from, part->to, "axis `%c` is named twice", letter);
  return true;
}

// Orders used when the letters are just those.
static const char *const usual_orders[] = {"NCHW",  "NCW",   "NCDHW", "OIHW", "OIW",
                                           "OIDHW", "GOIHW", "GOIW",  "HWC",  "HW"};

static bool order_fits(const Name *name, const char *order) {
  if ((int)strlen(order) != primal_count(name)) return false;
  for (const char *p = order; *p; p++)
    if (!isalpha((unsigned char)*p) || !has_primal(name, tolower((unsigned char)*p) - 'a'))
      return false;
  return true;
}

static bool order_repeats(const char *order) {
  for (const char *p = order; *p; p++)
    for (const char *q = p + 1; *q; q++)
      if (tolower((unsigned char)*p) == tolower((unsigned char)*q)) return true;
  return false;
}

// Letters of the logical axes, in order.
static bool logical_order(LayoutReader *r, const Name *name, int *letters) {
  const char *order = r->order;
  int count = 0;
  if (order && (!order_fits(name, order) || order_repeats(order)))
    return layout_reader_error(r, r->text, r->at, "the axes here are not those of `%s`", order);
  for (int i = 0; !order && !name->is_tag && i < COUNT_OF(usual_orders); i++)
    if (order_fits(name, usual_orders[i])) order = usual_orders[i];
  for (const char *p = order; p && *p; p++) letters[count++] = tolower((unsigned char)*p) - 'a';
  for (int i = 0; !order && i < name->count; i++)
    if (!name->parts[i].factor) {
      letters[count] = name->is_tag ? count : name->parts[i].letter;
      count++;
    }
  return true;
}

// Product of the block sizes of the part's axis that stand after it (or all of them, for a primal).
static bool inner_size(const Name *name, int at, int64_t *size) {
  *size = 1;
  for (int i = name->parts[at].factor ? at + 1 : 0; i < name->count; i++)
    if (name->parts[i].letter == name->parts[at].letter && name->parts[i].factor &&
        !mul_fits(*size, name->parts[i].factor, size))
      return false;
  return true;
}

static const LayoutExpr *part_expr(LayoutReader *r, const Name *name, int at, int axis) {
  Context *context = r->context;
  int64_t size;
  if (!inner_size(name, at, &size)) return NULL;
  const LayoutExpr *e = layout_expr(context, LAYOUT_DIV, layout_axis(context, axis),
                                    layout_const(context, size), NULL);
  if (!name->parts[at].factor) return e;
  return layout_expr(context, LAYOUT_MOD, e, layout_const(context, name->parts[at].factor), NULL);
}

bool layout_spelling_named(LayoutReader *r, LayoutSpelling *out) {
  Name name = {0};
  int letters[MAX_RANK] = {0};
  if (!read_parts(r, &name)) return false;
  name.is_tag = is_tag(&name, r->order);
  for (int i = 0; i < name.count; i++)
    if (!check_part(r, &name, i)) return false;
  if (!logical_order(r, &name, letters)) return false;
  int rank = primal_count(&name);
  if (r->rank >= 0 && rank != r->rank)
    return layout_reader_error(r, r->text, r->at, "this layout has %d axes, the tensor %d", rank,
                               r->rank);
  const LayoutExpr *outputs[MAX_RANK];
  Str inputs[MAX_RANK];
  for (int i = 0; i < rank; i++) inputs[i] = str_format(r->context, "%c", 'a' + letters[i]);
  for (int i = 0; i < name.count; i++) {
    int axis = 0;
    while (letters[axis] != name.parts[i].letter) axis++;
    if (!(outputs[i] = part_expr(r, &name, i, axis)))
      return layout_reader_error(r, r->text, r->at, "the blocks of one axis do not fit 64 bits");
  }
  out->map = index_map_new(r->context, rank, inputs, name.count, outputs, NULL, NULL, 0);
  return true;
}

// ---- shape:strides -----------------------------------------------------------------------------

// A nested tuple of numbers, flattened: leaves in order, and the leaf at which each mode ends.
typedef struct Tuple {
  int64_t leaves[MAX_RANK];
  int leaf_count, mode_ends[MAX_RANK], mode_count;
} Tuple;

static bool parse_leaf(LayoutReader *r, Tuple *tuple) {
  bool negative = layout_reader_accept(r, "-");
  int64_t value;
  if (!layout_reader_number(r, &value)) return false;
  if (tuple->leaf_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d modes", MAX_RANK);
  tuple->leaves[tuple->leaf_count++] = negative ? -value : value;
  return true;
}

static char accept_open(LayoutReader *r) {
  return layout_reader_accept(r, "(") ? ')' : layout_reader_accept(r, "[") ? ']' : 0;
}

static bool parse_mode(LayoutReader *r, Tuple *tuple) {
  char close = accept_open(r);
  if (!close) return parse_leaf(r, tuple);
  if (++r->depth > MAX_NESTING)
    return layout_reader_error(r, r->at, r->at, "nested more than %d deep", MAX_NESTING);
  char stop[2] = {close, 0};
  for (bool first = true; !layout_reader_accept(r, stop); first = false) {
    if (!first && !layout_reader_expect(r, ",")) return false;
    if (!first && layout_reader_accept(r, stop)) break;
    if (!parse_mode(r, tuple)) return false;
  }
  r->depth--;
  return true;
}

static bool end_mode(LayoutReader *r, Tuple *tuple) {
  if (tuple->mode_count == MAX_RANK)
    return layout_reader_error(r, r->at, r->at, "more than %d axes", MAX_RANK);
  tuple->mode_ends[tuple->mode_count++] = tuple->leaf_count;
  return true;
}

// tuple := number | "(" [mode ("," mode)*] ")"; its modes are the logical axes
static bool parse_tuple(LayoutReader *r, Tuple *tuple) {
  *tuple = (Tuple){0};
  char close = accept_open(r);
  if (!close) return parse_leaf(r, tuple) && end_mode(r, tuple);
  char stop[2] = {close, 0};
  for (bool first = true; !layout_reader_accept(r, stop); first = false) {
    if (!first && !layout_reader_expect(r, ",")) return false;
    if (!first && layout_reader_accept(r, stop)) break;
    if (!parse_mode(r, tuple) || !end_mode(r, tuple)) return false;
  }
  return true;
}

// The coordinate of axis `axis` runs through its leaves, the first fastest.
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
      layout_reader_error(r, r->text, r->at, "this size does not fit 64 bits");
      return NULL;
    }
  }
  return sum;
}

static bool same_modes(const Tuple *a, const Tuple *b) {
  return a->mode_count == b->mode_count && a->leaf_count == b->leaf_count &&
         !memcmp(a->mode_ends, b->mode_ends, sizeof(int) * (size_t)a->mode_count);
}

bool layout_spelling_strides(LayoutReader *r, LayoutSpelling *out) {
  Tuple shape, strides;
  Context *context = r->context;
  if (!parse_tuple(r, &shape) || !layout_reader_expect(r, ":")) return false;
  if (!parse_tuple(r, &strides)) return false;
  if (!same_modes(&shape, &strides))
    return layout_reader_error(r, r->text, r->at, "shape and strides differ in form");
  int rank = shape.mode_count;
  if (r->rank >= 0 && rank != r->rank)
    return layout_reader_error(r, r->text, r->at, "this layout has %d axes, the tensor %d", rank,
                               r->rank);
  for (int i = 0; i < shape.leaf_count; i++)
    if (shape.leaves[i] < 0) return layout_reader_error(r, r->text, r->at, "a negative extent");
  const LayoutExpr **extents = arena_array(&context->arena, const LayoutExpr *, rank);
  const LayoutExpr *offset = layout_const(context, 0);
  for (int i = 0; i < rank; i++) {
    int64_t extent;
    const LayoutExpr *part = mode_offset(r, &shape, &strides, i, &extent);
    if (!part) return false;
    extents[i] = layout_const(context, extent);
    offset = layout_expr(context, LAYOUT_ADD, offset, part, NULL);
  }
  out->shape = extents;
  out->map = index_map_new(context, rank, NULL, 1, &offset, NULL, NULL, 0);
  return true;
}
