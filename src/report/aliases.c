// SPDX-License-Identifier: Apache-2.0
// Reports the alias analysis of a tensor program as text and as JSON.
#include "report/report.h"

#include "schedule/aliases.h"
#include "script/script.h"

typedef struct AliasReport {
  Context *context;
  const AliasStorage *storage;
} AliasReport;

static const char *role_name(AliasRole role) {
  static const char *const names[ALIAS_ROLE_COUNT] = {
      [ALIAS_PARAMETER] = "parameter",
      [ALIAS_ALLOCATION] = "allocation",
      [ALIAS_DECLARATION] = "declaration",
      [ALIAS_VIEW] = "view",
  };
  return names[role];
}

static const char *relation_name(AliasRelation relation) {
  static const char *const names[ALIAS_RELATION_COUNT] = {
      [ALIAS_SAME] = "same",       [ALIAS_CONTAINS] = "contains", [ALIAS_WITHIN] = "within",
      [ALIAS_OVERLAP] = "overlap", [ALIAS_DISJOINT] = "disjoint", [ALIAS_UNDECIDED] = "undecided",
  };
  return names[relation];
}

static const Buffer *buffer_at(const AliasReport *r, int i) {
  return r->storage->buffers.items[i].buffer;
}

static void put_index(const AliasReport *r, Expr *const *index, int rank, Text *out) {
  text_puts(out, "[");
  for (int i = 0; i < rank; i++)
    text_printf(out, "%s%s", i ? ", " : "", script_expr_text(r->context, index[i]));
  text_puts(out, rank ? "]" : "()]");
}

// "B[i] is A[i // 6, i % 6]"; NULL where this is not known.
static const char *elements_text(const AliasReport *r, const AliasPair *pair) {
  if (!pair->index) return NULL;
  Text text = text_new(&r->context->arena);
  const Buffer *inner = buffer_at(r, pair->inner), *outer = buffer_at(r, pair->outer);
  text_puts(&text, inner->name);
  put_index(r, pair->vars, inner->rank, &text);
  text_puts(&text, " is ");
  if (pair->parts > 1)
    text_printf(&text, "part %s of the %d of ", script_expr_text(r->context, pair->part),
                pair->parts);
  if (pair->elements > 1) text_printf(&text, "the %d elements from ", pair->elements);
  text_puts(&text, outer->name);
  put_index(r, pair->index, outer->rank, &text);
  if (pair->elements > 1) text_puts(&text, " on");
  return text_string(&text);
}

static const char *region_text(const AliasReport *r, const Region *region) {
  Text text = text_new(&r->context->arena);
  text_printf(&text, "%s[", region->buffer->name);
  for (int i = 0; i < region->buffer->rank; i++) {
    text_printf(&text, "%s%s", i ? ", " : "", script_expr_text(r->context, region->min[i]));
    Expr *end = expr_add(r->context, region->min[i], region->extent[i]);
    if (!expr_is_int(region->extent[i], 1))
      text_printf(&text, ":%s", script_expr_text(r->context, end));
  }
  text_puts(&text, "]");
  return text_string(&text);
}

// ---- Text ---------------------------------------------------------------------------------------

static void put_pair(const AliasReport *r, const AliasPair *pair, Text *out) {
  const char *a = buffer_at(r, pair->a)->name, *b = buffer_at(r, pair->b)->name;
  char bytes[40] = "bytes";
  if (pair->bytes >= 0)
    snprintf(bytes, sizeof bytes, "%lld byte%s", (long long)pair->bytes,
             pair->bytes == 1 ? "" : "s");
  switch (pair->relation) {
  case ALIAS_SAME: text_printf(out, "    %s and %s are the same %s", a, b, bytes); break;
  case ALIAS_CONTAINS: text_printf(out, "    %s has all %s of %s", a, bytes, b); break;
  case ALIAS_WITHIN: text_printf(out, "    %s has all %s of %s", b, bytes, a); break;
  case ALIAS_OVERLAP: text_printf(out, "    %s and %s have %s in common", a, b, bytes); break;
  case ALIAS_DISJOINT: text_printf(out, "    %s and %s have no byte in common", a, b); break;
  case ALIAS_UNDECIDED:
    if (pair->shared_for)
      text_printf(out,
                  "    %s and %s have bytes in common for some sizes, such as %s, and none for "
                  "%s",
                  a, b, pair->shared_for, pair->apart_for);
    else
      text_printf(out, "    %s and %s: it is not decided which bytes they have in common", a, b);
    break;
  case ALIAS_RELATION_COUNT: break;
  }
  const char *elements = elements_text(r, pair);
  text_printf(out, "%s%s\n", elements ? "; " : "", elements ? elements : "");
}

static void put_storage(const AliasReport *r, Text *out) {
  const AliasStorage *storage = r->storage;
  for (int i = 0; i < storage->buffers.count; i++) {
    const AliasBuffer *b = &storage->buffers.items[i];
    text_printf(out, "%s%s, %s", i ? "    " : "  ", script_buffer_text(r->context, b->buffer),
                role_name(b->role));
    if (b->region) text_printf(out, " of %s", region_text(r, b->region));
    text_puts(out, "\n");
  }
  for (int i = 0; i < storage->pairs.count; i++) put_pair(r, &storage->pairs.items[i], out);
  if (storage->obstacle)
    text_printf(out, "    the layout cannot change: %s\n", storage->obstacle);
  else if (storage->buffers.count > 1)
    text_puts(out, "    transform_layout of one changes all of them\n");
}

void report_aliases_text(Context *context, const PrimFunc *func, Text *out) {
  AliasStorages storages = aliases_analyze(context, func);
  text_printf(out, "%s\n", func->name);
  for (int i = 0; i < storages.count; i++)
    put_storage(&(AliasReport){context, &storages.items[i]}, out);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t *expression(const AliasReport *r, Expr *e) {
  int64_t value;
  return expr_as_int(e, &value) ? json_integer(value)
                                : json_string(script_expr_text(r->context, e));
}

static json_t *expressions(const AliasReport *r, Expr *const *items, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(list, expression(r, items[i]));
  return list;
}

static json_t *buffer_json(const AliasReport *r, const AliasBuffer *b) {
  const Buffer *buffer = b->buffer;
  return json_pack("{s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:s}", "name", buffer->name, "role",
                   role_name(b->role), "view_of", b->region ? region_text(r, b->region) : NULL,
                   "dtype", dtype_name(r->context, buffer->type), "shape",
                   expressions(r, buffer->shape, buffer->rank), "strides",
                   buffer->strides ? expressions(r, buffer->strides, buffer->rank) : json_null(),
                   "elem_offset", expression(r, buffer->offset), "scope", buffer->scope);
}

static json_t *pair_json(const AliasReport *r, const AliasPair *pair) {
  return json_pack("{s:s, s:s, s:s, s:o, s:s?, s:s*, s:s*}", "a", buffer_at(r, pair->a)->name, "b",
                   buffer_at(r, pair->b)->name, "relation", relation_name(pair->relation), "bytes",
                   pair->bytes < 0 ? json_null() : json_integer(pair->bytes), "elements",
                   elements_text(r, pair), "shared_for", pair->shared_for, "apart_for",
                   pair->apart_for);
}

json_t *report_aliases(Context *context, PrimFunc *func) {
  AliasStorages storages = aliases_analyze(context, func);
  json_t *list = json_array();
  for (int i = 0; i < storages.count; i++) {
    AliasReport r = {context, &storages.items[i]};
    json_t *buffers = json_array(), *pairs = json_array();
    for (int k = 0; k < r.storage->buffers.count; k++)
      json_array_append_new(buffers, buffer_json(&r, &r.storage->buffers.items[k]));
    for (int k = 0; k < r.storage->pairs.count; k++)
      json_array_append_new(pairs, pair_json(&r, &r.storage->pairs.items[k]));
    json_array_append_new(list, json_pack("{s:o, s:o, s:s?}", "buffers", buffers, "pairs", pairs,
                                          "layout_obstacle", r.storage->obstacle));
  }
  return list;
}
