// SPDX-License-Identifier: Apache-2.0
// Makes layouts: a map on a shape with its physical extents. The rules by which extents are derived
// let a reader predict them from the text: `e % m` spans m, `e & m` spans m + 1, `^` and `|` reach
// the next power of two, the rest is interval arithmetic. An empty axis has the interval [0, -1].
#include "layout/answers/answers.h"
#include "layout/symbolic/symbolic.h"

// ---- Interval arithmetic over static extents ---------------------------------------------------

// The operation for which no interval is known, and the reason.
typedef struct Doubt {
  const LayoutExpr *at;
  const char *why;
} Doubt;

static const char *why_no_interval(LayoutOp op, Interval b) {
  if (op == LAYOUT_DIV && b.low <= 0 && b.high >= 0) return "its divisor may be 0";
  if (op == LAYOUT_MOD && b.low <= 0) return "its divisor may be 0 or less";
  return "it does not fit 64 bits";
}

static bool expr_interval(const LayoutExpr *e, const int64_t *extents, Interval *out,
                          Doubt *doubt) {
  if (is_const(e)) return *out = (Interval){e->value, e->value}, true;
  if (e->op == LAYOUT_AXIS) return *out = (Interval){0, extents[e->value] - 1}, true;
  if (e->op == LAYOUT_SYMBOL) return *doubt = (Doubt){e, "it has no value here"}, false;
  Interval v[3] = {0};
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!expr_interval(e->args[i], extents, &v[i], doubt)) return false;
  if (e->op == LAYOUT_AND && is_const(e->args[1]) && v[1].low >= 0)
    return *out = (Interval){0, v[1].high}, true;
  if (layout_op_interval(e->op, v[0], v[1], v[2], out)) return true;
  return *doubt = (Doubt){e, why_no_interval(e->op, v[1])}, false;
}

// ---- Construction ------------------------------------------------------------------------------

// Whether the map uses symbols of which facts are known. Others are mistakes.
static bool uses_known_symbols(const Layout *layout) {
  Str symbols[MAX_RANK];
  int count = 0;
  for (int i = 0; i < layout->physical_rank && layout->facts.count; i++)
    if (!layout_add_symbols(layout->map->outputs[i], symbols, &count, MAX_RANK)) return false;
  for (int i = 0; i < count; i++) {
    bool known = false;
    for (int k = 0; k < layout->facts.count; k++)
      known |= layout->facts.items[k].symbol == symbols[i];
    if (!known) return false;
  }
  return count > 0;
}

static bool all_const(const LayoutExpr *const *exprs, int count) {
  for (int i = 0; i < count; i++)
    if (!is_const(exprs[i])) return false;
  return true;
}

static const int64_t *const_values(Context *context, const LayoutExpr *const *exprs, int count) {
  int64_t *values = arena_array(&context->lasting, int64_t, count);
  for (int i = 0; i < count; i++) values[i] = exprs[i]->value;
  return values;
}

static const LayoutExpr *const *const_exprs(Context *context, const int64_t *values, int count) {
  const LayoutExpr **exprs = arena_array(&context->lasting, const LayoutExpr *, count);
  for (int i = 0; i < count; i++) exprs[i] = layout_const(context, values[i]);
  return exprs;
}

static const char *expr_text(Context *context, const IndexMap *map, const LayoutExpr *e) {
  return layout_expr_text(context, e, map->inputs, map->input_count + map->replica_count);
}

static const char *output_text(Context *context, const IndexMap *map, int i) {
  return expr_text(context, map, map->outputs[i]);
}

// Derives the physical extents of a static layout. *proved says whether no index leaves them.
static bool derive_static(Context *context, const Layout *layout, const int64_t *given,
                          int64_t *physical, bool *proved, SourcePos pos) {
  const IndexMap *map = layout->map;
  for (int i = 0; i < map->output_count; i++) {
    Interval range;
    Doubt doubt = {map->outputs[i], "it does not fit 64 bits"};
    bool known =
        expr_interval(map->outputs[i], layout->extents, &range, &doubt) && range.high < INT64_MAX;
    if (!known && !given)
      return diag_error(context, pos, "no bounds are known for physical axis %d, `%s`: %s%s%s%s", i,
                        output_text(context, map, i), doubt.at == map->outputs[i] ? "" : "of `",
                        doubt.at == map->outputs[i] ? "" : expr_text(context, map, doubt.at),
                        doubt.at == map->outputs[i] ? "" : "`, ", doubt.why);
    physical[i] = given ? given[i] : MAX_OF(range.high + 1, 0);
    *proved = *proved && known && range.low >= 0 && range.high < physical[i];
  }
  return true;
}

static bool check_extents(Context *context, const char *kind, const int64_t *extents, int count,
                          SourcePos pos) {
  int64_t size;
  for (int i = 0; i < count; i++)
    if (extents[i] < 0)
      return diag_error(context, pos, "%s extent %d is %lld", kind, i, (long long)extents[i]);
  if (!layout_box_strides(extents, count, NULL, &size))
    return diag_error(context, pos, "the %s size does not fit 64 bits", kind);
  return true;
}

static bool build_static(Context *context, Layout *layout, const LayoutExpr *const *physical,
                         SourcePos pos) {
  bool proved = true;
  int64_t *extents = arena_array(&context->lasting, int64_t, layout->physical_rank);
  layout->extents = const_values(context, layout->shape, layout_box_rank(layout));
  layout->physical_extents = extents;
  if (!check_extents(context, "logical", layout->extents, layout->rank, pos)) return false;
  if (!check_extents(context, "replicated", layout->extents, layout_box_rank(layout), pos))
    return false;
  const int64_t *given = physical ? const_values(context, physical, layout->physical_rank) : NULL;
  if (!derive_static(context, layout, given, extents, &proved, pos)) return false;
  if (!check_extents(context, "physical", extents, layout->physical_rank, pos)) return false;
  layout->physical = const_exprs(context, extents, layout->physical_rank);
  layout->is_static = true;
  return proved || layout_prove_inside(context, layout, pos);
}

// ---- Consing -----------------------------------------------------------------------------------

static uint64_t padding_bits(LayoutPadding padding) {
  uint64_t bits = 0;
  if (padding.kind == LAYOUT_PADDING_CONSTANT) memcpy(&bits, &padding.value, sizeof bits);
  return bits;
}

static uint64_t layout_hash(const Layout *layout) {
  uint64_t h = hash_mix(layout->map->id, layout->padding.kind);
  h = hash_mix(h, padding_bits(layout->padding));
  for (int i = 0; i < layout->rank; i++) h = hash_mix(h, layout->shape[i]->id);
  return h;
}

static bool same_facts(LayoutFacts a, LayoutFacts b) {
  if (a.count != b.count) return false;
  for (int i = 0; i < a.count; i++)
    if (a.items[i].symbol != b.items[i].symbol || a.items[i].min != b.items[i].min ||
        a.items[i].max != b.items[i].max || a.items[i].multiple != b.items[i].multiple)
      return false;
  return true;
}

static bool same_exprs(const LayoutExpr *const *a, const LayoutExpr *const *b, int count) {
  for (int i = 0; i < count; i++)
    if (a[i] != b[i]) return false;
  return true;
}

static bool layout_same(const Layout *a, const Layout *b, const LayoutExpr *const *physical) {
  return a->map == b->map && same_exprs(a->shape, b->shape, a->rank) &&
         a->padding.kind == b->padding.kind &&
         padding_bits(a->padding) == padding_bits(b->padding) && same_facts(a->facts, b->facts) &&
         a->cache->extents_given == (physical != NULL) &&
         (!physical || same_exprs(a->physical, physical, a->physical_rank));
}

static const Layout *find_layout(const LayoutTable *table, uint64_t hash, const Layout *layout,
                                 const LayoutExpr *const *physical) {
  const Layout *found = map_get(&table->layouts, hash);
  while (found && !layout_same(found, layout, physical)) found = found->cache->next;
  return found;
}

static bool build_symbolic(Context *context, Layout *layout, const LayoutExpr *const *physical,
                           SourcePos pos) {
  const LayoutExpr **extents =
      arena_array(&context->lasting, const LayoutExpr *, layout->physical_rank);
  int bad = layout_symbolic_extents(context, layout, physical, extents);
  layout->physical = extents;
  if (bad < 0) return true;
  return diag_error(context, pos, "no bounds are proved for physical axis %d, `%s`%s", bad,
                    bad < layout->physical_rank ? output_text(context, layout->map, bad) : "",
                    physical ? "" : "; ` in [...]` after the layout says its physical extents");
}

static bool build(Context *context, Layout *layout, const LayoutExpr *const *physical,
                  SourcePos pos) {
  if (!layout_map_is_small(layout->map))
    return diag_error(context, pos, "an index of this map has more than %d operations", MAX_TREE);
  bool is_static = all_const(layout->shape, layout->rank) && !uses_known_symbols(layout) &&
                   (!physical || all_const(physical, layout->physical_rank));
  if (is_static) return build_static(context, layout, physical, pos);
  return build_symbolic(context, layout, physical, pos);
}

static const LayoutExpr *const *box_shape(Context *context, const IndexMap *map,
                                          const LayoutExpr *const *shape) {
  int rank = map->input_count;
  const LayoutExpr **box =
      arena_array(&context->lasting, const LayoutExpr *, rank + map->replica_count);
  for (int i = 0; i < rank; i++) box[i] = shape[i];
  for (int i = 0; i < map->replica_count; i++)
    box[rank + i] = layout_const(context, map->replicas[i]);
  return box;
}

const Layout *layout_new(Context *context, const IndexMap *map, const LayoutExpr *const *shape,
                         const LayoutExpr *const *physical, LayoutFacts facts,
                         LayoutPadding padding, SourcePos pos) {
  Layout layout = {.rank = map->input_count,
                   .physical_rank = map->output_count,
                   .map = map,
                   .shape = shape,
                   .facts = facts,
                   .padding = padding};
  LayoutTable *table = layout_table(context);
  uint64_t hash = layout_hash(&layout);
  const Layout *found = find_layout(table, hash, &layout, physical);
  if (found) return found;
  Arena *arena = &context->lasting;
  Layout *made = arena_copy(arena, &layout, sizeof layout);
  made->shape = box_shape(context, map, shape);
  made->facts.items = arena_copy(arena, facts.items, sizeof *facts.items * (size_t)facts.count);
  made->cache = arena_new(arena, LayoutCache);
  made->cache->extents_given = physical != NULL;
  if (!build(context, made, physical, pos)) return NULL;
  made->cache->next = map_get(&table->layouts, hash);
  map_set(&table->layouts, hash, made);
  return made;
}

const Layout *layout_try(Context *context, const IndexMap *map, const LayoutExpr *const *shape,
                         const LayoutExpr *const *physical, LayoutFacts facts) {
  int diags = context->diags.count, errors = context->error_count;
  const Layout *layout =
      layout_new(context, map, shape, physical, facts, (LayoutPadding){0}, (SourcePos){0});
  diag_forget(context, diags, errors);
  return layout;
}

const Layout *layout_flat(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                          const LayoutExpr *offset) {
  const LayoutExpr *size = layout_product_expr(context, layout->physical, layout->physical_rank);
  const IndexMap *map =
      index_map_new(context, layout->rank, layout->map->inputs, 1, &offset, NULL, NULL, 0);
  return layout_try(context, map, shape, &size, layout->facts);
}

const Layout *layout_static(Context *context, const IndexMap *map, const int64_t *shape,
                            SourcePos pos) {
  const LayoutExpr *extents[MAX_RANK];
  for (int i = 0; i < map->input_count; i++) extents[i] = layout_const(context, shape[i]);
  return layout_new(context, map, extents, NULL, (LayoutFacts){0}, (LayoutPadding){0}, pos);
}

const Layout *layout_row_major(Context *context, int rank, const int64_t *shape) {
  return layout_static(context, index_map_identity(context, rank), shape, (SourcePos){0});
}

const Layout *layout_with_padding(Context *context, const Layout *layout, LayoutPadding padding) {
  return layout_new(context, layout->map, layout->shape,
                    layout->cache->extents_given ? layout->physical : NULL, layout->facts, padding,
                    (SourcePos){0});
}

const Layout *layout_with_names(Context *context, const Layout *layout, const Str *names) {
  const IndexMap *map = layout->map;
  const IndexMap *renamed = index_map_replicated(
      context, map->input_count, map->replica_count, names, map->replicas, map->output_count,
      map->outputs, map->resources, map->separators, map->separator_count);
  return layout_new(context, renamed, layout->shape,
                    layout->cache->extents_given ? layout->physical : NULL, layout->facts,
                    layout->padding, (SourcePos){0});
}
