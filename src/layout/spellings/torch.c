// SPDX-License-Identifier: Apache-2.0
// Reads and prints PyTorch's strided tensors: `size=(2, 3, 4) stride=(12, 4, 1) storage_offset=5`,
// as people write them, as `x.size()` and `x.stride()` print them, and as arguments of
// `torch.empty_strided` and `torch.as_strided`. Physical indices are offsets in the storage.
#include "layout/spellings/spellings.h"

typedef struct Numbers {
  int64_t items[MAX_RANK];
  int count; // -1: not given
  const char *from, *to;
} Numbers;

typedef struct Strided {
  Numbers size, stride, offset; // offset has one number
} Strided;

// ---- Reading -----------------------------------------------------------------------------------

// numbers := ["torch" "." "Size"] "(" … ")" | number; a list may be wrapped in parentheses
static bool read_numbers(LayoutReader *r, Numbers *out, bool wrapped) {
  layout_reader_space(r);
  *out = (Numbers){.from = r->at};
  bool named = layout_reader_accept(r, "torch") && layout_reader_expect(r, ".");
  if (named && !layout_reader_expect(r, "Size")) return false;
  bool more;
  char close = layout_reader_open(r, &more);
  if (!close) return layout_reader_signed(r, &out->items[out->count++]);
  layout_reader_space(r);
  if (wrapped && close == ')' && r->at < r->end && *r->at == '[')
    return read_numbers(r, out, false) && layout_reader_expect(r, ")");
  for (; more; more = layout_reader_more(r, close)) {
    if (out->count == MAX_RANK)
      return layout_reader_error(r, r->at, r->at, "more than %d axes", MAX_RANK);
    if (!layout_reader_signed(r, &out->items[out->count++])) return false;
  }
  out->to = r->at;
  return !r->failed;
}

static Numbers *field(Strided *s, Str word) {
  static const struct {
    const char *name;
    size_t field;
  } rows[] = {
      {"size", offsetof(Strided, size)},     {"shape", offsetof(Strided, size)},
      {"stride", offsetof(Strided, stride)}, {"strides", offsetof(Strided, stride)},
      {"offset", offsetof(Strided, offset)}, {"storage_offset", offsetof(Strided, offset)},
  };
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (!strcmp(rows[i].name, word)) return (Numbers *)((char *)s + rows[i].field);
  return NULL;
}

static bool is_function(Str word) {
  return !strcmp(word, "empty_strided") || !strcmp(word, "as_strided");
}

// call := name "(" [name ","] numbers "," numbers ["," numbers] ")", after its name
static bool read_call(LayoutReader *r, Strided *s) {
  Numbers *fields[] = {&s->size, &s->stride, &s->offset};
  if (!layout_reader_expect(r, "(")) return false;
  if (layout_reader_word(r) && !layout_reader_expect(r, ",")) return false;
  for (int i = 0; i < COUNT_OF(fields); i++) {
    if (!read_numbers(r, fields[i], false)) return false;
    if (!layout_reader_more(r, ')')) break;
  }
  return !r->failed;
}

static bool unknown_field(LayoutReader *r, const char *end, Str word) {
  static const char *const names[] = {"size", "stride", "storage_offset"};
  const char *near = nearest_name(word, names, COUNT_OF(names));
  return layout_reader_error(r, end - strlen(word), end,
                             "expected `size`, `stride` or `storage_offset`, saw `%s`%s%s%s", word,
                             near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

// entry := [name "."] name ["()"] ("=" | "==" | ":") numbers | numbers
static bool read_entry(LayoutReader *r, Strided *s) {
  const char *back = r->at;
  Str word;
  Numbers *to = s->size.count < 0 ? &s->size : s->stride.count < 0 ? &s->stride : &s->offset;
  bool torch = layout_reader_accept(r, "torch") && layout_reader_accept(r, ".") &&
               layout_reader_accept(r, "Size");
  r->at = back;
  if (!torch && (word = layout_reader_word(r))) {
    const char *end = r->at;
    for (; layout_reader_accept(r, "."); end = r->at)
      if (!(word = layout_reader_word(r))) return layout_reader_expect(r, "stride");
    if (is_function(word)) return read_call(r, s);
    to = field(s, word);
    if (!to) return unknown_field(r, end, word);
    if (layout_reader_accept(r, "(") && !layout_reader_expect(r, ")")) return false;
    if (!layout_reader_accept(r, "==") && !layout_reader_accept(r, "=") &&
        !layout_reader_expect(r, ":"))
      return false;
  }
  if (to->count >= 0) return layout_reader_error(r, back, r->at, "this is given twice");
  return read_numbers(r, to, true);
}

static bool at_end(LayoutReader *r) {
  LayoutReader ahead = *r;
  return layout_reader_at_end(&ahead) || layout_reader_accept(&ahead, "in");
}

static bool check(LayoutReader *r, const Strided *s) {
  if (s->size.count < 0) return layout_reader_refuse(r, r->text, r->at, "the size is missing");
  if (s->stride.count < 0) return layout_reader_refuse(r, r->text, r->at, "the stride is missing");
  if (s->size.count != s->stride.count)
    return layout_reader_refuse(r, s->stride.from, s->stride.to, "%d stride%s for %d axes",
                                s->stride.count, s->stride.count == 1 ? "" : "s", s->size.count);
  for (int i = 0; i < s->size.count; i++) {
    if (s->size.items[i] < 0)
      return layout_reader_error(r, s->size.from, s->size.to, "a negative extent, %lld",
                                 (long long)s->size.items[i]);
    if (s->stride.items[i] < 0)
      return layout_reader_error(r, s->stride.from, s->stride.to,
                                 "a negative stride, %lld, which PyTorch does not have",
                                 (long long)s->stride.items[i]);
  }
  if (s->offset.count > 1)
    return layout_reader_error(r, s->offset.from, s->offset.to, "a storage offset is one number");
  return layout_reader_check_rank(r, s->size.count);
}

// layout := entry ([","] entry)*
bool layout_read_torch(LayoutReader *r, Spelled *out) {
  Context *context = r->context;
  Strided *s = arena_new(&context->scratch, Strided);
  s->size.count = s->stride.count = s->offset.count = -1;
  while (!at_end(r)) {
    if (!read_entry(r, s)) return false;
    layout_reader_accept(r, ",");
  }
  if (!check(r, s)) return false;
  const LayoutExpr *extents[MAX_RANK], *e = layout_const(context, 0);
  for (int i = 0; i < s->size.count; i++) {
    extents[i] = layout_const(context, s->size.items[i]);
    const LayoutExpr *stride = layout_const(context, s->stride.items[i]);
    e = layout_add_product(context, e, layout_axis(context, i), stride);
  }
  e = layout_by(context, LAYOUT_ADD, e, s->offset.count == 1 ? s->offset.items[0] : 0);
  out->shape = arena_copy(&context->lasting, extents, sizeof *extents * (size_t)s->size.count);
  out->map = index_map_new(context, s->size.count, NULL, 1, &e, NULL, NULL, 0);
  return true;
}

// ---- Printing ----------------------------------------------------------------------------------

static void put_tuple(Text *text, const int64_t *items, int count) {
  text_puts(text, "(");
  for (int i = 0; i < count; i++) text_printf(text, "%s%lld", i ? ", " : "", (long long)items[i]);
  text_puts(text, count == 1 ? ",)" : ")");
}

// Prints one stride for each axis, and the offset at the origin.
static bool find_strides(Context *context, const Layout *layout, int64_t *strides, int64_t *start,
                         const char **why) {
  LayoutPlacement p;
  memset(strides, 0, sizeof *strides * (size_t)layout->rank);
  if (!layout_placement(context, layout->extents, layout->rank, layout->map->outputs, 1, &p, why))
    return false;
  *start = p.constants[0];
  for (int i = 0; i < p.digit_count; i++) {
    const PlacedDigit *g = &p.digits[i];
    if (g->digit.cut != 1 || g->digit.radix != layout->extents[g->digit.base])
      *why = "an axis has no one stride";
    else if (g->weights[0] < 0)
      *why = "PyTorch has no negative strides";
    if (*why) return false;
    strides[g->digit.base] = g->weights[0];
  }
  return true;
}

const char *layout_print_torch(Context *context, const Layout *layout, const char **why) {
  int64_t strides[MAX_RANK], start;
  *why = layout_one_memory_axis(context, layout, "PyTorch");
  if (*why || !find_strides(context, layout, strides, &start, why)) return NULL;
  Text text = text_new(&context->lasting);
  text_puts(&text, "size=");
  put_tuple(&text, layout->extents, layout->rank);
  text_puts(&text, " stride=");
  put_tuple(&text, strides, layout->rank);
  if (start) text_printf(&text, " storage_offset=%lld", (long long)start);
  return text_string(&text);
}
