// SPDX-License-Identifier: Apache-2.0
// Reads and prints named axes (`NCHW16c`, `NHWC of NCHW`) and oneDNN tags (`aBcd16b`). Both write
// the order of the logical axes, and blocks that nest from left to right.
#include "layout/spellings/spellings.h"

#include <ctype.h>

// ---- Named axes and tags -----------------------------------------------------------------------

// One letter of the name stands for the whole axis (factor 0) or for a block of it.
typedef struct NamePart {
  int letter; // 0 .. 25
  bool upper;
  int64_t factor;
  const char *from, *to;
} NamePart;

typedef struct AxisName {
  NamePart parts[MAX_RANK];
  int count;
  bool is_tag; // a tag of oneDNN: its letters are a, b, c, … in the order of the axes
} AxisName;

static bool read_parts(LayoutReader *r, AxisName *name) {
  while (r->at < r->end && isalnum((unsigned char)*r->at)) {
    NamePart part = {.from = r->at};
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
      if (!mul_fits(part.factor, 10, &part.factor) ||
          !add_fits(part.factor, *r->at - '0', &part.factor))
        return layout_reader_refuse(r, part.from, r->at + 1,
                                    "this block size does not fit 64 bits");
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
  return name->count || layout_reader_missing(r, r->at + (r->at < r->end), "a layout");
}

static bool has_primal(const AxisName *name, int letter) {
  for (int i = 0; i < name->count; i++)
    if (name->parts[i].letter == letter && !name->parts[i].factor) return true;
  return false;
}

static int primal_count(const AxisName *name) {
  int count = 0;
  for (int i = 0; i < name->count; i++) count += !name->parts[i].factor;
  return count;
}

static bool order_fits(const AxisName *name, const char *order) {
  if ((int)strlen(order) != primal_count(name)) return false;
  for (const char *p = order; *p; p++)
    if (!isalpha((unsigned char)*p) || !has_primal(name, tolower((unsigned char)*p) - 'a'))
      return false;
  return true;
}

static bool is_tag(const AxisName *name, const char *order) {
  int count = primal_count(name);
  if ((order && order_fits(name, order)) || !count || count > 26) return false;
  for (int letter = 0; letter < count; letter++)
    if (!has_primal(name, letter)) return false;
  return true;
}

static bool check_part(LayoutReader *r, const AxisName *name, int at) {
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

// The orders that are used when the letters of a name are exactly these.
static const char *const usual_orders[] = {"NCHW",  "NCW",   "NCDHW", "OIHW", "OIW",
                                           "OIDHW", "GOIHW", "GOIW",  "HWC",  "HW"};

static bool order_repeats(const char *order) {
  for (const char *p = order; *p; p++)
    for (const char *q = p + 1; *q; q++)
      if (tolower((unsigned char)*p) == tolower((unsigned char)*q)) return true;
  return false;
}

// The letters of the logical axes, in order.
static bool logical_order(LayoutReader *r, const AxisName *name, int *letters) {
  const char *order = r->order;
  int count = 0;
  if (name->is_tag) order = NULL;
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

// The product of the block sizes of the axis that follow this letter (of all its block sizes, for
// the letter of the whole axis).
static bool inner_size(const AxisName *name, int at, int64_t *size) {
  *size = 1;
  for (int i = name->parts[at].factor ? at + 1 : 0; i < name->count; i++)
    if (name->parts[i].letter == name->parts[at].letter && name->parts[i].factor &&
        !mul_fits(*size, name->parts[i].factor, size))
      return false;
  return true;
}

static const LayoutExpr *part_expr(LayoutReader *r, const AxisName *name, int at, int axis) {
  Context *context = r->context;
  int64_t size;
  if (!inner_size(name, at, &size)) return NULL;
  return layout_digit_expr(context, layout_axis(context, axis), size, name->parts[at].factor);
}

// Named axes may give the order of the logical axes: `NHWC16c of NCHW`.
static bool read_order(LayoutReader *r) {
  if (!layout_reader_accept(r, "of")) return true;
  r->order = layout_reader_name(r, "the logical axes after `of`");
  return r->order != NULL;
}

bool layout_read_named(LayoutReader *r, Spelled *out) {
  AxisName name = {0};
  int letters[MAX_RANK] = {0};
  if (!read_parts(r, &name) || !read_order(r)) return false;
  name.is_tag = is_tag(&name, r->order);
  for (int i = 0; i < name.count; i++)
    if (!check_part(r, &name, i)) return false;
  if (!logical_order(r, &name, letters)) return false;
  int rank = primal_count(&name);
  if (!layout_reader_check_rank(r, rank)) return false;
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

// ---- Printing ----------------------------------------------------------------------------------

// Reads an output that is written as `(axis // cut) % radix`, without nested quotients.
static bool read_part(Context *context, const LayoutExpr *e, Digit *part) {
  return layout_axis_digit(e, part) &&
         e == layout_digit_expr(context, layout_axis(context, part->base), part->cut, part->radix);
}

// Whether the blocks of every axis nest from left to right and the axis' own letter covers exactly
// them.
static bool parts_nest(const Digit *parts, int count, int rank) {
  for (int axis = 0; axis < rank; axis++) {
    int64_t size = 1;
    int primals = 0;
    for (int i = count - 1; i >= 0; i--) {
      if (parts[i].base != axis || parts[i].open) continue;
      if (parts[i].cut != size || !digit_end(&parts[i], &size)) return false;
    }
    for (int i = 0; i < count; i++)
      if (parts[i].base == axis && parts[i].open) {
        if (parts[i].cut != size) return false;
        primals++;
      }
    if (primals != 1) return false;
  }
  return true;
}

static bool axis_letters(const IndexMap *map, const char *order, char *letters) {
  if (order && (int)strlen(order) != map->input_count) return false;
  for (int i = 0; i < map->input_count; i++) {
    if (!order && map->inputs[i][1]) return false;
    letters[i] = (char)toupper((unsigned char)(order ? order[i] : map->inputs[i][0]));
    if (!isupper((unsigned char)letters[i])) return false;
    for (int j = 0; j < i; j++)
      if (letters[j] == letters[i]) return false;
  }
  return true;
}

static const char *parts_text(Context *context, const Digit *parts, int count,
                              const char *letters) {
  Text text = text_new(&context->lasting);
  for (int i = 0; i < count; i++) {
    char letter = letters[parts[i].base];
    if (parts[i].open)
      text_printf(&text, "%c", letter);
    else
      text_printf(&text, "%lld%c", (long long)parts[i].radix, tolower(letter));
  }
  return text_string(&text);
}

const char *index_map_name(Context *context, const IndexMap *map, const char *order) {
  Digit parts[MAX_RANK];
  char letters[MAX_RANK];
  if (map->separator_count || map->replica_count || !map->input_count) return NULL;
  if (!axis_letters(map, order, letters)) return NULL;
  for (int i = 0; i < map->output_count; i++)
    if (map->resources[i] || !read_part(context, map->outputs[i], &parts[i])) return NULL;
  if (!parts_nest(parts, map->output_count, map->input_count)) return NULL;
  return parts_text(context, parts, map->output_count, letters);
}

// The letters of the outputs, as they are written or else in normal form.
static bool components_of(Context *context, const Layout *layout, Digit *parts) {
  for (int i = 0; i < layout->physical_rank; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    if (read_part(context, e, &parts[i])) continue;
    if (!layout->is_static) return false;
    if (!read_part(context, layout_expr_simplify(context, e, layout->extents, layout->rank),
                   &parts[i]))
      return false;
  }
  return parts_nest(parts, layout->physical_rank, layout->rank);
}

static bool named_parts(Context *context, const Layout *layout, Digit *parts, const char **why) {
  *why = NULL;
  if (!layout_is_plain(layout))
    *why = "named axes have no resources and no replicas";
  else if (layout->map->separator_count)
    *why = "named axes have no axis separators";
  else if (!layout->rank)
    *why = "a scalar has no axes to name";
  else if (!components_of(context, layout, parts))
    *why = "its physical axes are not whole axes and nested blocks of them";
  return !*why;
}

// The order is written where a reader would assume another one.
const char *layout_print_named(Context *context, const Layout *layout, const char **why) {
  Digit parts[MAX_RANK];
  char letters[MAX_RANK + 1] = {0};
  if (!named_parts(context, layout, parts, why)) return NULL;
  if (!axis_letters(layout->map, NULL, letters)) {
    *why = "its axes are not named by single letters";
    return NULL;
  }
  const char *text = parts_text(context, parts, layout->physical_rank, letters);
  Spelled spelled;
  if (layout_spelling_try(context, text, layout->rank, &spelled) &&
      !memcmp(spelled.map->inputs, layout->map->inputs, sizeof(Str) * (size_t)layout->rank))
    return text;
  return arena_printf(&context->lasting, "%s of %s", text, letters);
}

const char *layout_print_tag(Context *context, const Layout *layout, const char **why) {
  Digit parts[MAX_RANK];
  char letters[MAX_RANK];
  if (!named_parts(context, layout, parts, why)) return NULL;
  if (layout->rank > 26) {
    *why = "tags have 26 letters";
    return NULL;
  }
  for (int i = 0; i < layout->rank; i++) letters[i] = (char)('a' + i);
  for (int i = 0; i < layout->physical_rank; i++)
    if (!parts[i].open) letters[parts[i].base] = (char)('A' + parts[i].base);
  return parts_text(context, parts, layout->physical_rank, letters);
}
