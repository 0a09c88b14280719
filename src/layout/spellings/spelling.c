// SPDX-License-Identifier: Apache-2.0
// Holds the table of spellings, one row each: finds the spelling of a text, reads it, and prints a
// layout in a spelling. The text that a printer gives is read back and must be an equal layout, so
// that a printer does not have to prove anything.
#include "layout/spellings/spellings.h"
#include "layout/answers/answers.h"

#include <ctype.h>

// ---- Which spelling ----------------------------------------------------------------------------

static bool has(const LayoutReader *r, const char *part) {
  return memmem(r->at, (size_t)(r->end - r->at), part, strlen(part)) != NULL;
}

static char next(LayoutReader *r) {
  layout_reader_space(r);
  return r->at < r->end ? *r->at : 0;
}

static bool any_of(LayoutReader *r, const char *const *words, int count) {
  for (int i = 0; i < count; i++)
    if (layout_reader_accept(r, words[i])) return true;
  return false;
}

static bool is_lambda(LayoutReader *r) {
  return layout_reader_accept(r, "lambda");
}

// Whether the text is "name: [", "name = [", or a line of the long form. All of it may be written
// in an attribute.
static bool is_bases(LayoutReader *r) {
  if (next(r) == '#') return true;
  if (!layout_reader_accept(r, "-")) layout_reader_accept(r, "{");
  Str word = layout_reader_word(r);
  if (!word) return false;
  if (layout_reader_accept(r, "is")) return true;
  bool equals = layout_reader_accept(r, "=");
  if (!equals && !layout_reader_accept(r, ":")) return false;
  if (equals && isdigit((unsigned char)next(r))) return has(r, "->");
  return layout_reader_accept(r, "[") && (next(r) == '[' || next(r) == ']' || next(r) == '(') &&
         !strstr(word, "siz");
}

static bool is_arrow(LayoutReader *r) {
  return has(r, "->");
}

static bool is_shards(LayoutReader *r) {
  static const char *const marks[] = {"S[", "R[", "O["};
  static const char *const objects[] = {"TileLayout", "SwizzleLayout", "ComposeLayout"};
  while (layout_reader_module(r)) continue;
  if (any_of(r, objects, COUNT_OF(objects))) return true;
  for (int i = 0; i < COUNT_OF(marks); i++) {
    const char *at = memmem(r->at, (size_t)(r->end - r->at), marks[i], 2);
    if (at && (at == r->at || !isalnum((unsigned char)at[-1]))) return true;
  }
  Str word = layout_reader_word(r);
  return word && !word[1] && strchr("SRO", *word) && layout_reader_accept(r, "[");
}

static bool is_xla(LayoutReader *r) {
  if (layout_reader_accept(r, "{")) return true;
  Str word = layout_reader_word(r);
  return word && islower((unsigned char)*word) && layout_reader_accept(r, "[") &&
         (isdigit((unsigned char)next(r)) || strchr("]<?", next(r)));
}

static bool is_torch(LayoutReader *r) {
  static const char *const words[] = {"torch",   "size",           "shape",         "stride",
                                      "strides", "storage_offset", "empty_strided", "as_strided"};
  LayoutReader dotted = *r;
  if (any_of(r, words, COUNT_OF(words))) return true;
  return layout_reader_word(&dotted) && layout_reader_accept(&dotted, ".") &&
         any_of(&dotted, words, COUNT_OF(words));
}

static bool is_cute(LayoutReader *r) {
  static const char *const words[] = {"Swizzle", "Sw", "ArithTuple"};
  char c = next(r);
  if (isdigit((unsigned char)c)) { // "12:3", but not the block "4n"
    while (r->at < r->end && isdigit((unsigned char)*r->at)) r->at++;
    return r->at == r->end || !isalpha((unsigned char)*r->at);
  }
  if (c == '(' || c == '[' || c == '-') return true;
  if (c == '_' && r->at + 1 < r->end && isdigit((unsigned char)r->at[1])) return true;
  return any_of(r, words, COUNT_OF(words));
}

static bool is_named(LayoutReader *r) {
  (void)r;
  return true;
}

// ---- The table ---------------------------------------------------------------------------------

typedef struct SpellingRow {
  const char *name, *example;
  bool (*looks)(LayoutReader *r);
  bool (*read)(LayoutReader *r, Spelled *out);
  LayoutPrinter *print;
} SpellingRow;

static const SpellingRow rows[LAYOUT_SPELLING_COUNT] = {
    [LAYOUT_SPELLING_INDEX_MAP] = {"index-map", "n, c, h, w -> n, c//16, h, w, c%16", is_arrow,
                                   layout_read_arrow, layout_print_arrow},
    [LAYOUT_SPELLING_LAMBDA] = {"lambda", "lambda n, c, h, w: [n, c // 16, h, w, c % 16]",
                                is_lambda, layout_read_lambda, layout_print_lambda},
    [LAYOUT_SPELLING_NAMED] = {"named", "NCHW16c", is_named, layout_read_named, layout_print_named},
    [LAYOUT_SPELLING_TAG] = {"tag", "aBcd16b", is_named, layout_read_named, layout_print_tag},
    [LAYOUT_SPELLING_CUTE] = {"cute", "Sw<3,3,3> o 0 o (8,64):(64,1)", is_cute, layout_read_cute,
                              layout_print_cute},
    [LAYOUT_SPELLING_XLA] = {"xla", "{3,2,1,0:T(8,128)(2,1)}", is_xla, layout_read_xla,
                             layout_print_xla},
    [LAYOUT_SPELLING_TORCH] = {"torch", "size=(2, 3, 4) stride=(12, 4, 1)", is_torch,
                               layout_read_torch, layout_print_torch},
    [LAYOUT_SPELLING_LINEAR_LAYOUT] = {"bases", "register: [[0, 1]], lane: [[0, 2], [1, 0]]",
                                       is_bases, layout_read_linear_layout,
                                       layout_print_linear_layout},
    [LAYOUT_SPELLING_TILE_LAYOUT] = {"shards",
                                     "S[(8, 4, 2) : (4@lane, 1@lane, 1)] + R[2 : 1@device]",
                                     is_shards, layout_read_tile_layout, layout_print_tile_layout},
};

// The order in which spellings are tried; the last one accepts every text.
static const LayoutSpelling tried[] = {
    LAYOUT_SPELLING_LAMBDA,      LAYOUT_SPELLING_LINEAR_LAYOUT, LAYOUT_SPELLING_INDEX_MAP,
    LAYOUT_SPELLING_TILE_LAYOUT, LAYOUT_SPELLING_CUTE,          LAYOUT_SPELLING_TORCH,
    LAYOUT_SPELLING_XLA,         LAYOUT_SPELLING_NAMED,
};

const char *layout_spelling_name(LayoutSpelling spelling) {
  return rows[spelling].name;
}

const char *layout_spelling_example(LayoutSpelling spelling) {
  return rows[spelling].example;
}

bool layout_spelling_find(const char *name, LayoutSpelling *out) {
  static const struct {
    const char *name;
    LayoutSpelling spelling;
  } systems[] = {{"onednn", LAYOUT_SPELLING_TAG},
                 {"pytorch", LAYOUT_SPELLING_TORCH},
                 {"triton", LAYOUT_SPELLING_LINEAR_LAYOUT},
                 {"tvm", LAYOUT_SPELLING_TILE_LAYOUT}};
  for (int i = 0; i < COUNT_OF(systems); i++)
    if (!strcmp(systems[i].name, name)) return *out = systems[i].spelling, true;
  for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++)
    if (!strcmp(rows[i].name, name)) return *out = (LayoutSpelling)i, true;
  return false;
}

static LayoutSpelling spelling_at(const LayoutReader *r) {
  for (int i = 0; i + 1 < COUNT_OF(tried); i++) {
    LayoutReader ahead = *r;
    ahead.failed = true; // a look ahead, which reports nothing
    if (rows[tried[i]].looks(&ahead)) return tried[i];
  }
  return LAYOUT_SPELLING_NAMED;
}

LayoutSpelling layout_spelling_of(Context *context, const LayoutSource *source) {
  LayoutReader r = layout_reader_new(context, source, NULL);
  layout_reader_space(&r);
  LayoutSpelling spelling = spelling_at(&r);
  if (spelling != LAYOUT_SPELLING_NAMED || r.at == r.end) return spelling;
  uint32_t letters = 0; // the letters of whole axes; in tags they are a, b, c, …
  const char *p = r.at;
  for (; p < r.end && isalnum((unsigned char)*p); p++)
    if (isalpha((unsigned char)*p) && (p == r.at || !isdigit((unsigned char)p[-1])))
      letters |= (uint32_t)1 << (tolower((unsigned char)*p) - 'a');
  r.at = p;
  bool tag = (letters & (letters + 1)) == 0 && !layout_reader_accept(&r, "of");
  return tag ? LAYOUT_SPELLING_TAG : spelling;
}

// ---- Reading -----------------------------------------------------------------------------------

LayoutSource layout_source(const char *text, int rank) {
  return (LayoutSource){.text = text, .size = strlen(text), .rank = rank};
}

// extents := "in" "[" [expr ("," expr)*] "]"
static bool read_extents(LayoutReader *r, Spelled *out) {
  Array(const LayoutExpr *) extents = {0};
  if (!layout_reader_expect(r, "[")) return false;
  r->axis_count = 0;
  r->star = NULL;
  for (bool more = !layout_reader_accept(r, "]"); more; more = layout_reader_more(r, ']')) {
    const LayoutExpr *e = layout_reader_expr(r, false);
    if (!e) return false;
    array_push(&r->context->lasting, &extents, e);
  }
  out->physical = extents.items;
  out->physical_count = extents.count;
  return !r->failed;
}

static bool read_all(LayoutReader *r, bool allow_extents, Spelled *out) {
  *out = (Spelled){.physical_count = -1};
  if (r->rank > MAX_RANK)
    return layout_reader_refuse(r, r->text, r->end, "more than %d axes", MAX_RANK);
  if (layout_reader_at_end(r))
    return layout_reader_error(r, r->at, r->at, "expected a layout, saw the end of the text");
  if (!rows[spelling_at(r)].read(r, out)) return false;
  if (allow_extents && layout_reader_accept(r, "in") && !read_extents(r, out)) return false;
  if (layout_reader_at_end(r)) return true;
  const char *saw = layout_reader_saw(r);
  return layout_reader_error(r, r->at, r->at + 1, "unexpected %s after the layout", saw);
}

static bool read_text(Context *context, const LayoutSource *source, const LayoutExpr *const *shape,
                      bool allow_extents, LayoutReader *r, Spelled *out) {
  *r = layout_reader_new(context, source, shape);
  ArenaMark mark = arena_mark(&context->scratch);
  bool good = read_all(r, allow_extents, out) && !r->failed;
  arena_reset(&context->scratch, mark);
  return good;
}

bool layout_spelling_read_plainly(Context *context, const LayoutSource *source,
                                  const LayoutExpr *const *shape, bool allow_extents,
                                  Spelled *out) {
  LayoutReader r;
  return read_text(context, source, shape, allow_extents, &r, out);
}

bool layout_spelling_read(Context *context, const LayoutSource *source,
                          const LayoutExpr *const *shape, bool allow_extents, Spelled *out) {
  LayoutReader r;
  int before = context->diags.count;
  if (read_text(context, source, shape, allow_extents, &r, out)) return true;
  Diag *error = context->diags.count > before ? &array_last(&context->diags) : NULL;
  if (!error || r.hopeless || strstr(error->message, "did you mean")) return false;
  const char *near =
      layout_suggestion(context, source, shape, allow_extents, r.error_from, r.error_to);
  if (near)
    error->message =
        arena_printf(&context->lasting, "%s; did you mean `%s`?", error->message, near);
  return false;
}

bool layout_spelling_try(Context *context, const char *text, int rank, Spelled *out) {
  LayoutSource source = layout_source(text, rank);
  int diags = context->diags.count, errors = context->error_count;
  bool good = layout_spelling_read_plainly(context, &source, NULL, false, out);
  diag_forget(context, diags, errors);
  return good;
}

const IndexMap *index_map_parse(Context *context, const LayoutSource *source) {
  Spelled spelled;
  return layout_spelling_read(context, source, NULL, false, &spelled) ? spelled.map : NULL;
}

// ---- Shapes of texts without one ---------------------------------------------------------------

static bool is_taken(Str name, const Str *axes, int axis_count, const LayoutExpr *const *extents,
                     int extent_count) {
  for (int i = 0; i < axis_count; i++)
    if (axes[i] == name) return true;
  for (int i = 0; i < extent_count; i++)
    if (extents[i]->symbol == name) return true;
  return layout_reader_is_reserved(name);
}

static Str cased(Context *context, Str name, int (*letter)(int)) {
  char *text = arena_copy(&context->scratch, name, strlen(name) + 1);
  for (char *p = text; *p; p++) *p = (char)letter((unsigned char)*p);
  return str_intern(context, text);
}

// A name for the extent of an axis that is neither an axis nor another extent.
static Str extent_name(Context *context, const IndexMap *map, int axis,
                       const LayoutExpr *const *extents) {
  int axes = map->input_count + map->replica_count;
  Str name = cased(context, map->inputs[axis], toupper);
  if (!is_taken(name, map->inputs, axes, extents, axis)) return name;
  name = cased(context, map->inputs[axis], tolower);
  while (is_taken(name, map->inputs, axes, extents, axis)) name = str_format(context, "%s_", name);
  return name;
}

static const LayoutExpr *defined(const LayoutSource *source, const LayoutExpr *symbol) {
  for (int i = 0; i < source->definition_count; i++)
    if (source->definitions[i].symbol == symbol->symbol) return source->definitions[i].value;
  return symbol;
}

const LayoutExpr *const *layout_shape_of(Context *context, const LayoutSource *source, int *rank,
                                         bool *said) {
  LayoutSource any = *source;
  Spelled spelled;
  any.rank = -1;
  any.symbols = true; // a wrong name is reported when the text is read on the shape
  int diags = context->diags.count;
  if (!layout_spelling_read(context, &any, NULL, true, &spelled)) return NULL;
  context->diags.count = diags;
  *rank = spelled.map->input_count;
  *said = spelled.shape || !*rank;
  if (spelled.shape) return spelled.shape;
  const LayoutExpr **symbols = arena_array(&context->lasting, const LayoutExpr *, *rank + 1);
  const LayoutExpr **shape = arena_array(&context->lasting, const LayoutExpr *, *rank + 1);
  for (int i = 0; i < *rank; i++) {
    symbols[i] = layout_symbol(context, extent_name(context, spelled.map, i, symbols));
    shape[i] = defined(source, symbols[i]);
  }
  return shape;
}

// ---- Printing ----------------------------------------------------------------------------------

const Layout *layout_flattened(Context *context, const Layout *layout) {
  int count = layout_group_count(layout), marks[MAX_RANK];
  if (!layout_is_plain(layout)) return layout;
  for (int i = 0; i + 1 < count; i++) marks[i] = i + 1;
  const IndexMap *map = layout->map;
  map = index_map_new(context, map->input_count, map->inputs, count,
                      layout_group_indices(context, layout), NULL, marks, count - 1);
  const Layout *made =
      layout_try(context, map, layout->shape, layout_group_extents(context, layout), layout->facts);
  return made ? layout_with_padding(context, made, layout->padding) : NULL;
}

const char *layout_memory_alone(Context *context, const Layout *layout, const char *who) {
  if (!layout->is_static) return "its extents are symbolic";
  if (!layout_is_plain(layout))
    return str_format(context, "%s has no resources and no replicas", who);
  if (layout->map->separator_count) return str_format(context, "%s has no axis separators", who);
  return NULL;
}

const char *layout_one_memory_axis(Context *context, const Layout *layout, const char *who) {
  const char *why = layout_memory_alone(context, layout, who);
  if (why || layout->physical_rank == 1) return why;
  return str_format(context, "%s has one memory axis, not %d", who, layout->physical_rank);
}

// Whether the text, read on the layout's shape, is an equal layout, which *same says too.
static bool reads_back(Context *context, const Layout *layout, const char *text, bool *same) {
  LayoutSource source = layout_source(text, layout->rank);
  source.symbols = !layout->is_static;
  int diags = context->diags.count, errors = context->error_count;
  const Layout *back = layout_parse(context, &source, layout->shape, layout->rank, layout->facts);
  diag_forget(context, diags, errors);
  *same = back && layout_equal(context, layout, back).verdict == VERDICT_YES;
  return *same;
}

// The text as printed, or with the physical extents after it where that is needed; NULL where
// neither reads back.
static const char *checked(Context *context, const Layout *layout, const char *text) {
  bool same;
  if (reads_back(context, layout, text, &same)) return text;
  text = layout_text_in(context, layout, text);
  return reads_back(context, layout, text, &same) ? text : NULL;
}

// The flattened layout in a spelling of one memory axis, which cannot express the layout itself.
static const char *flat_hint(Context *context, const Layout *layout, LayoutSpelling spelling) {
  const char *why;
  if (!layout->is_static || !layout_is_plain(layout) || layout->map->separator_count ||
      layout->physical_rank < 2)
    return NULL;
  const Layout *flat = layout_flattened(context, layout);
  return flat ? layout_spell(context, flat, spelling, &why) : NULL;
}

const char *layout_spell(Context *context, const Layout *layout, LayoutSpelling spelling,
                         const char **why) {
  ArenaMark mark = arena_mark(&context->scratch);
  const char *text = rows[spelling].print(context, layout, why);
  arena_reset(&context->scratch, mark);
  if (text) text = checked(context, layout, text);
  if (text) return text;
  if (!*why) *why = "it is none of those that this spelling has";
  const char *flat = flat_hint(context, layout, spelling);
  *why = str_format(context, "%s cannot express this layout: %s%s%s%s; as an index map it is `%s`",
                    rows[spelling].name, *why, flat ? "; flattened it is `" : "", flat ? flat : "",
                    flat ? "`" : "", layout_text(context, layout));
  return NULL;
}
