// SPDX-License-Identifier: Apache-2.0
// Reads index maps: the arrow form and Python lambdas.
#include "layout/spellings/spellings.h"

#include <ctype.h>

typedef struct Outputs {
  Array(const LayoutExpr *) exprs;
  Array(Str) resources;
  Array(int) separators;
} Outputs;

static void push_output(LayoutReader *r, Outputs *out, const LayoutExpr *e, Str resource) {
  array_push(&r->context->scratch, &out->exprs, e);
  array_push(&r->context->scratch, &out->resources, resource);
}

// ---- Inputs ------------------------------------------------------------------------------------

static bool add_axis(LayoutReader *r, const char *from, const char *to, Str name) {
  if (layout_reader_is_reserved(name))
    return layout_reader_error(r, from, to, "`%s` cannot be the name of an axis", name);
  for (int i = 0; i < r->axis_count; i++)
    if (r->names[i] == name)
      return layout_reader_error(r, from, to, "axis `%s` is named twice", name);
  if (r->axis_count == MAX_RANK)
    return layout_reader_error(r, from, to, "more than %d axes", MAX_RANK);
  r->names[r->axis_count++] = name;
  return true;
}

// `*name`: its axes are inserted once the number of the others is known.
static bool parse_star(LayoutReader *r, const char *from) {
  Str name = layout_reader_name(r, "a name after `*`");
  if (!name) return false;
  if (r->star) return layout_reader_error(r, from, r->at, "only one `*` axis is possible");
  if (r->rank < 0)
    return layout_reader_refuse(r, from, r->at, "`*%s` stands for axes that only a shape can tell",
                                name);
  r->star = name;
  r->star_begin = r->axis_count;
  return true;
}

static Str star_axis_name(LayoutReader *r, int i) {
  for (const char *mark = "";; mark = str_format(r->context, "%s_", mark)) {
    Str name = str_format(r->context, "%s%s%d", r->star, mark, i);
    bool taken = false;
    for (int j = 0; j < r->axis_count; j++) taken |= r->names[j] == name;
    if (!taken) return name;
  }
}

static bool insert_star_axes(LayoutReader *r, const char *from) {
  int others = r->axis_count - r->replica_count, count = r->rank - others;
  if (count < 0)
    return layout_reader_refuse(r, from, r->at, "the map has %d %s and more, the tensor %d", others,
                                others == 1 ? "axis" : "axes", r->rank);
  if (r->rank + r->replica_count > MAX_RANK)
    return layout_reader_error(r, from, r->at, "more than %d axes", MAX_RANK);
  Str stars[MAX_RANK];
  for (int i = 0; i < count; i++) stars[i] = star_axis_name(r, i);
  int after = r->axis_count - r->star_begin;
  memmove(&r->names[r->star_begin + count], &r->names[r->star_begin], sizeof(Str) * (size_t)after);
  memcpy(&r->names[r->star_begin], stars, sizeof(Str) * (size_t)count);
  r->axis_count += count;
  r->star_count = count;
  return true;
}

// Reads the `=2` of a replica axis, which is the last name. It is required (`must`) after `;`,
// where all axes are replica axes.
static bool parse_copies(LayoutReader *r, const char *from, bool must) {
  const char *end = r->at;
  Str name = r->names[r->axis_count - 1];
  if (!layout_reader_accept(r, "=")) {
    if (must) return layout_reader_error(r, from, end, "how many copies? write `%s=2`", name);
    if (r->replica_count)
      return layout_reader_error(r, from, end, "axis `%s` stands after a replica axis", name);
    return true;
  }
  int64_t *copies = &r->replicas[r->replica_count++];
  if (!layout_reader_number(r, copies)) return false;
  if (*copies < 1)
    return layout_reader_error(r, from, r->at, "replica axis `%s` needs at least 1 copy", name);
  return true;
}

static bool parse_axis(LayoutReader *r, bool must_copy) {
  layout_reader_space(r);
  const char *from = r->at;
  Str name = layout_reader_word(r);
  if (!name) return layout_reader_missing(r, r->at + (r->at < r->end), "an axis name");
  return add_axis(r, from, r->at, name) && parse_copies(r, from, must_copy);
}

// inputs := [input ("," input)* [","]] [";" copies ("," copies)*] stop
// input := name | "*" name | copies; copies := name "=" number, after all others
static bool parse_inputs(LayoutReader *r, const char *stop) {
  const char *start = r->at;
  bool copies = false;
  for (bool first = true; !layout_reader_accept(r, stop); first = false) {
    bool mark = !copies && layout_reader_accept(r, ";");
    copies |= mark;
    if (!first && !mark && !layout_reader_expect(r, ",")) return false;
    if (!first && layout_reader_accept(r, stop)) break;
    layout_reader_space(r);
    const char *from = r->at;
    if (!copies && layout_reader_accept(r, "*")) {
      if (!parse_star(r, from)) return false;
      continue;
    }
    if (!parse_axis(r, copies)) return false;
  }
  int axes = r->axis_count - r->replica_count;
  if (r->star) return insert_star_axes(r, start);
  if (r->rank >= 0 && axes != r->rank)
    return layout_reader_refuse(r, start, r->at, "the map has %d %s, the tensor %d", axes,
                                axes == 1 ? "axis" : "axes", r->rank);
  return true;
}

// ---- Outputs -----------------------------------------------------------------------------------

static bool accept_separator(LayoutReader *r) {
  const char *back = r->at;
  for (Str word; (word = layout_reader_word(r));) {
    if (!strcmp(word, "AXIS_SEPARATOR")) return true;
    if (!layout_reader_accept(r, ".")) break;
  }
  r->at = back;
  return false;
}

// entry := "*" name | AXIS_SEPARATOR | expr ["@" name]
static bool parse_entry(LayoutReader *r, Outputs *out, bool arrow) {
  if (accept_separator(r)) {
    array_push(&r->context->scratch, &out->separators, out->exprs.count);
    return true;
  }
  if (layout_reader_accept(r, "*")) {
    if (layout_reader_word(r) != r->star || !r->star)
      return layout_reader_error(r, r->at, r->at, "expected the name of the `*` axes after `*`");
    for (int i = 0; i < r->star_count; i++)
      push_output(r, out, layout_axis(r->context, r->star_begin + i), NULL);
    return true;
  }
  const LayoutExpr *e = layout_reader_expr(r, arrow);
  if (!e) return false;
  Str resource = NULL;
  if (layout_reader_accept(r, "@") && !layout_reader_resource(r, false, &resource)) return false;
  push_output(r, out, e, resource);
  return true;
}

static bool at_stop(LayoutReader *r, const char *stop) {
  if (*stop) return layout_reader_accept(r, stop);
  const char *back = r->at;
  if (layout_reader_at_end(r)) return true;
  bool extents = layout_reader_accept(r, "in");
  r->at = back;
  return extents;
}

// entries := [entry ("," entry)* [","]] stop; in arrow form `|` separates entries as commas do
static bool parse_entries(LayoutReader *r, Outputs *out, const char *stop, bool arrow) {
  bool comma = true; // whether an entry may begin
  while (!at_stop(r, stop)) {
    if (arrow && layout_reader_accept(r, "|")) {
      array_push(&r->context->scratch, &out->separators, out->exprs.count);
      comma = true;
      layout_reader_accept(r, ",");
      continue;
    }
    if (!comma) return layout_reader_expect(r, *stop ? stop : ",");
    if (!parse_entry(r, out, arrow)) return false;
    comma = layout_reader_accept(r, ",");
  }
  return true;
}

// Whether the rest of the text is one parenthesised tuple: "(a, b)" or "()", but not "(a + b) //
// 2".
static bool is_tuple(LayoutReader *r) {
  int depth = 0;
  bool comma = false, empty = true;
  const char *p = r->at;
  if (p == r->end || *p != '(') return false;
  for (; p < r->end; p++) {
    if (*p == '(' || *p == '[')
      depth++;
    else if ((*p == ')' || *p == ']') && --depth == 0)
      break;
    else if (depth == 1 && *p == ',')
      comma = true;
    else if (!isspace((unsigned char)*p))
      empty = false;
  }
  if (p == r->end || !(comma || empty)) return false;
  LayoutReader rest = *r;
  rest.at = p + 1;
  return at_stop(&rest, "");
}

static bool parse_body(LayoutReader *r, Outputs *out, bool arrow) {
  layout_reader_space(r);
  if (layout_reader_accept(r, "[")) return parse_entries(r, out, "]", false);
  if (is_tuple(r) && layout_reader_accept(r, "(")) return parse_entries(r, out, ")", false);
  return parse_entries(r, out, "", arrow);
}

// ---- The whole text ----------------------------------------------------------------------------

static bool parse_map(LayoutReader *r, bool arrow, Spelled *out) {
  Outputs outputs = {0};
  if (!parse_inputs(r, arrow ? "->" : ":") || !parse_body(r, &outputs, arrow)) return false;
  if (outputs.exprs.count > MAX_RANK)
    return layout_reader_error(r, r->text, r->end, "more than %d physical axes", MAX_RANK);
  if (outputs.separators.count >= MAX_RANK)
    return layout_reader_error(r, r->text, r->end, "more than %d axis separators", MAX_RANK - 1);
  out->map = index_map_replicated(r->context, r->axis_count - r->replica_count, r->replica_count,
                                  r->names, r->replicas, outputs.exprs.count, outputs.exprs.items,
                                  outputs.resources.items, outputs.separators.items,
                                  outputs.separators.count);
  return true;
}

bool layout_read_arrow(LayoutReader *r, Spelled *out) {
  return parse_map(r, true, out);
}

bool layout_read_lambda(LayoutReader *r, Spelled *out) {
  return layout_reader_expect(r, "lambda") && parse_map(r, false, out);
}
