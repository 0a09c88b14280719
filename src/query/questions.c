// SPDX-License-Identifier: Apache-2.0
// The table of the questions that `pleat layout` answers, one row each. A row's function reads the
// question's own fields, measures the time, and writes the answer as JSON.
#include <inttypes.h>

#include "query/query.h"
#include "explain/explain.h"
#include "runtime/runtime.h"

static const LayoutAnswer ANSWERED = {.verdict = VERDICT_YES, .level = LAYOUT_DIGITS};

// Replies with the value when the verdict is yes, and with the verdict otherwise.
static bool value_reply(QueryReply *reply, json_t *value) {
  if (reply->proof.verdict == VERDICT_YES) return reply->answer = value, true;
  json_decref(value);
  return query_reply_verdict(reply);
}

// ---- Yes or no --------------------------------------------------------------------------------

static bool run_verdict(QueryRequest *r, QueryReply *reply) {
  LayoutQuestion question = {r->row->ask, r->a.layout, r->b.layout,
                             .map = r->b.layout ? r->b.layout->map : NULL};
  QUERY_ASK(reply, layout_ask(r->context, &question));
  if (r->certificates)
    reply->certificate = layout_certificate(r->context, &question, &reply->proof);
  return query_reply_verdict(reply);
}

// ---- Maps -------------------------------------------------------------------------------------

static bool makes_layout(Context *context, const IndexMap *map, const LayoutExpr *const *extents,
                         LayoutFacts facts) {
  return layout_try(context, map, extents, NULL, facts) != NULL;
}

// The map of an inverse or a quotient on a box of these extents, as a layout can have it: where
// padding would have negative indices, with 0 there.
static const IndexMap *total_map(Context *context, const LayoutInverse *inverse,
                                 const LayoutExpr *const *extents, LayoutFacts facts) {
  const IndexMap *map = inverse->map;
  if (!inverse->padding || makes_layout(context, map, extents, facts)) return map;
  const LayoutExpr **outputs = arena_array(&context->arena, const LayoutExpr *, map->output_count);
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr(context, LAYOUT_SELECT, inverse->padding, layout_const(context, 0),
                             map->outputs[i]);
  const IndexMap *total = index_map_with_outputs(context, map, outputs);
  return makes_layout(context, total, extents, facts) ? total : map;
}

bool query_reply_inverse(QueryRequest *request, QueryReply *reply, const LayoutInverse *inverse,
                         const LayoutExpr *const *shape, int rank, LayoutFacts facts) {
  Context *context = request->context;
  const IndexMap *map = total_map(context, inverse, shape, facts);
  reply->answer = json_string(index_map_text(context, map));
  query_reply_more(reply, "padding", json_condition(context, map, inverse->padding));
  query_reply_more(reply, "shape", json_expressions(context, shape, rank));
  return true;
}

// Replies with a map on the physical shape of `domain`.
static bool positions_reply(QueryRequest *r, QueryReply *reply, const LayoutInverse *inverse,
                            const Layout *domain) {
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  return query_reply_inverse(r, reply, inverse, domain->physical, domain->physical_rank,
                             domain->facts);
}

static bool run_inverse(QueryRequest *r, QueryReply *reply) {
  LayoutInverse inverse;
  QUERY_ASK(reply, layout_inverse(r->context, r->a.layout, &inverse));
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_INVERSE, r->a.layout, .inverse = inverse);
  return positions_reply(r, reply, &inverse, r->a.layout);
}

static bool same_shape(const Layout *a, const Layout *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return false;
  return true;
}

static bool run_divide(QueryRequest *r, QueryReply *reply) {
  LayoutInverse inverse;
  if (!same_shape(r->a.layout, r->b.layout))
    return query_field_error(r->context, "b.shape", "not the shape of \"a\"");
  QUERY_ASK(reply, layout_divide(r->context, r->a.layout, r->b.layout, &inverse));
  if (reply->proof.verdict == VERDICT_NO)
    QUERY_CERTIFY(r, reply, LAYOUT_ASK_DIVIDE, r->a.layout, r->b.layout);
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  layout_divide_simplify(r->context, r->a.layout, r->b.layout, &inverse);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_DIVIDE, r->a.layout, r->b.layout, .inverse = inverse);
  return positions_reply(r, reply, &inverse, r->b.layout);
}

static const Layout *compose(QueryRequest *r) {
  const Layout *a = r->a.layout, *b = r->b.layout;
  const IndexMap *map = index_map_compose(r->context, a->map, b->map);
  return layout_new(r->context, map, b->shape, a->physical, b->facts, a->padding, (SourcePos){0});
}

static bool run_compose(QueryRequest *r, QueryReply *reply) {
  const Layout *a = r->a.layout, *b = r->b.layout;
  if (a->rank != b->physical_rank)
    return query_field_error(r->context, "a", "%d logical axes, and \"b\" has %d physical ones",
                             a->rank, b->physical_rank);
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->physical[i])
      return query_field_error(r->context, "a",
                               "logical axis %d has %s elements, physical axis %d of \"b\" %s", i,
                               layout_expr_text(r->context, a->shape[i], NULL, 0), i,
                               layout_expr_text(r->context, b->physical[i], NULL, 0));
  int64_t start_ns = clock_now_ns();
  const Layout *made = compose(r);
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = ANSWERED;
  if (!made) return false;
  made = layout_simplified(r->context, made);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_COMPOSE, a, b, .made = made);
  return query_reply_layout(r, reply, made);
}

// ---- Offsets and elements ----------------------------------------------------------------------

// A number, or the expression in the replica axes when copies have different values.
static json_t *copies_json(Context *context, const LayoutExpr *e, const IndexMap *map) {
  if (e->op == LAYOUT_CONST || !map->replica_count) return json_expression(context, e);
  return json_string(
      layout_expr_text(context, e, map->inputs, map->input_count + map->replica_count));
}

static const LayoutExpr *expression_at(Context *context, const LayoutExpr *e,
                                       const IntArray *index) {
  const LayoutExpr **axes = arena_array(&context->arena, const LayoutExpr *, index->count + 1);
  for (int i = 0; i < index->count; i++) axes[i] = layout_const(context, index->items[i]);
  return layout_expr_substitute(context, e, axes, index->count);
}

static json_t *position_json(Context *context, const Layout *layout, const IntArray *index) {
  json_t *position = json_array();
  for (int i = 0; i < layout->physical_rank; i++)
    json_array_append_new(
        position,
        copies_json(context, expression_at(context, layout->map->outputs[i], index), layout->map));
  return position;
}

// Replies with the offset of every element as a map, for a question without an index.
static bool offset_map(QueryRequest *r, QueryReply *reply) {
  const Layout *a = r->a.layout;
  const IndexMap *map = a->map;
  int64_t start_ns = clock_now_ns();
  const LayoutExpr *offset = layout_offset_expr(r->context, a);
  if (a->is_static && !map->replica_count)
    offset = layout_expr_simplify(r->context, offset, a->extents, a->rank);
  map = index_map_replicated(r->context, map->input_count, map->replica_count, map->inputs,
                             map->replicas, 1, &offset, NULL, NULL, 0);
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = ANSWERED;
  reply->answer = json_string(index_map_text(r->context, map));
  return true;
}

static bool run_offset(QueryRequest *r, QueryReply *reply) {
  IntArray index;
  const Layout *a = r->a.layout;
  if (!query_has(r, "at")) return offset_map(r, reply);
  if (!query_integers(r, "at", &index) || !query_check_index(r, "at", &index)) return false;
  int64_t offset = 0, start_ns = clock_now_ns();
  bool found = layout_offset(a, index.items, &offset);
  const LayoutExpr *e = found ? NULL : layout_offset_expr(r->context, a);
  if (e) e = expression_at(r->context, e, &index);
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = ANSWERED;
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_OFFSET, a, .index = index.items,
                .value = found ? layout_const(r->context, offset) : e);
  reply->answer = found ? json_integer(offset) : json_expression(r->context, e);
  query_reply_more(reply, "place", position_json(r->context, a, &index));
  return true;
}

static bool run_logical(QueryRequest *r, QueryReply *reply) {
  int64_t offset, positions;
  const Layout *a = r->a.layout;
  if (!query_integer(r, "at", &offset)) return false;
  if (offset < 0 || (layout_physical_size(a, &positions) && offset >= positions))
    return query_field_error(r->context, "at", "%" PRId64 " is not an offset of this layout",
                             offset);
  int64_t *index = arena_array(&r->context->arena, int64_t, a->rank + 1);
  QUERY_ASK(reply, layout_at_offset(r->context, a, offset, index));
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_AT_OFFSET, a, .index = index,
                .value = layout_const(r->context, offset));
  if (reply->proof.verdict == VERDICT_NO) return reply->answer = json_null(), true;
  return value_reply(reply, json_integers(index, a->rank));
}

static bool run_physical_shape(QueryRequest *r, QueryReply *reply) {
  reply->proof = ANSWERED;
  const Layout *a = r->a.layout;
  reply->answer = json_expressions(r->context, a->physical, a->physical_rank);
  reply->more = json_pack("{s:o}", "shape", json_expressions(r->context, a->shape, a->rank));
  return true;
}

static bool run_padding(QueryRequest *r, QueryReply *reply) {
  const LayoutExpr *count = NULL;
  LayoutInverse inverse = {0};
  const Layout *a = r->a.layout;
  int64_t start_ns = clock_now_ns();
  LayoutAnswer answer = layout_padding_expr(r->context, a, &count);
  bool one_to_one = layout_inverse(r->context, a, &inverse).verdict == VERDICT_YES;
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = (LayoutAnswer){answer.verdict, answer.level, answer.reason};
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_PADDING, a, .value = count);
  if (one_to_one)
    query_reply_more(reply, "padding", json_condition(r->context, inverse.map, inverse.padding));
  if (!count) return query_reply_verdict(reply);
  reply->answer = json_expression(r->context, count);
  return true;
}

// ---- Steps ------------------------------------------------------------------------------------

static bool run_strides(QueryRequest *r, QueryReply *reply) {
  const Layout *a = r->a.layout;
  const LayoutExpr **strides = arena_array(&r->context->arena, const LayoutExpr *, a->rank + 1);
  reply->proof = ANSWERED;
  int64_t start_ns = clock_now_ns();
  for (int i = 0; i < a->rank; i++) {
    LayoutAnswer answer = layout_stride(r->context, a, i, &strides[i]);
    if (answer.verdict != VERDICT_YES) strides[i] = NULL;
    if (answer.level != LAYOUT_DIGITS) reply->proof.level = answer.level;
    if (answer.verdict == VERDICT_UNDECIDED) reply->proof.reason = answer.reason;
  }
  reply->ns = clock_now_ns() - start_ns;
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_STRIDES, a, .strides = strides);
  reply->answer = json_expressions(r->context, strides, a->rank);
  return true;
}

static bool run_vector(QueryRequest *r, QueryReply *reply) {
  const Layout *a = r->a.layout;
  int64_t axis = -1;
  if (query_has(r, "axis") && !query_integer(r, "axis", &axis)) return false;
  if (query_has(r, "axis") && (axis < 0 || axis >= a->rank))
    return query_field_error(r->context, "axis", "%" PRId64 " is not one of the %d logical axes",
                             axis, a->rank);
  int64_t *widths = arena_array(&r->context->arena, int64_t, a->rank + 1); // 0: none given
  int64_t start_ns = clock_now_ns();
  for (int i = 0; i < a->rank; i++)
    if (axis < 0 || axis == i) widths[i] = layout_vector_width(r->context, a, i);
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = ANSWERED;
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_VECTOR, a, .widths = widths);
  reply->answer = axis < 0 ? json_integers(widths, a->rank) : json_integer(widths[axis]);
  return true;
}

// ---- Pictures ---------------------------------------------------------------------------------

static bool run_svg(QueryRequest *r, QueryReply *reply) {
  PictureOptions options = {.axis = -1};
  Picture picture;
  int64_t start_ns = clock_now_ns();
  if (!layout_picture(r->context, r->a.layout, &options, &picture)) return false;
  reply->answer = json_string(picture_svg(r->context, &picture));
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = ANSWERED;
  return true;
}

// ---- The table --------------------------------------------------------------------------------

#define VERDICT "yes, no, unknown"

const QueryRow query_rows[] = {
    {"equal", "b", VERDICT, "same map, logical and physical extents, and axis separators",
     run_verdict, LAYOUT_ASK_EQUAL, QUERY_OTHER_SAME_SHAPE,
     .no = "the physical indices of %s differ"},
    {"same_map", "b", VERDICT, "same map; the physical extents may differ", run_verdict,
     LAYOUT_ASK_SAME_MAP, QUERY_OTHER_SAME_SHAPE},
    {"identity", "", VERDICT,
     "every physical index is the logical index, and the extents are the same", run_verdict,
     LAYOUT_ASK_IDENTITY, .no = "the physical indices of %s differ"},
    {"injective", "", VERDICT, "no two elements have the same physical index", run_verdict,
     LAYOUT_ASK_INJECTIVE},
    {"onto", "", VERDICT, "every physical index holds an element: there is no padding", run_verdict,
     LAYOUT_ASK_ONTO, .no = "no element is stored at %s"},
    {"bijective", "", VERDICT, "injective and onto", run_verdict, LAYOUT_ASK_BIJECTIVE,
     .no = "no element is stored at %s"},
    {"inverse", "", "map, no, unknown",
     "from physical to logical indices; \"padding\": the physical indices without an element",
     run_inverse},
    {"compose", "b", "layout", "a after b: the physical indices of b are the logical ones of a",
     run_compose, .other = QUERY_OTHER_OUTER},
    {"divide", "b", "map, no, unknown",
     "from the physical indices of b to those of a, of the same elements; \"padding\": of b",
     run_divide, .other = QUERY_OTHER_DIVIDED},
    {"offset", "at?", "number, or map without at",
     "offset of the logical index `at`; \"place\": its physical index", run_offset},
    {"logical", "at", "index, null on padding", "logical index at the offset `at`", run_logical},
    {"physical_shape", "", "extents",
     "extents of the physical axes; \"shape\": of the logical ones", run_physical_shape},
    {"padding", "", "number",
     "how many physical indices hold no element; \"padding\": the condition for them", run_padding},
    {"strides", "", "list", "stride of the offset along each logical axis, null where it varies",
     run_strides},
    {"vector", "axis?", "list, or number with axis",
     "widest contiguous aligned vector along each logical axis", run_vector},
    {"slice", "box?", "layout, no",
     "layout of a box: \"c=0:16, h=2:5\" or [[0, 1], [0, 16], ...]; \"strides\": in memory, or "
     "null",
     query_run_slice},
    {"reshape", "to", "layout, no", "the same offsets under the logical shape `to`",
     query_run_reshape},
    {"is_reshape", "b", VERDICT, "a is b under another logical shape", query_run_is_reshape},
    {"permutation", "", "order, no, unknown",
     "row-major over the whole axes in some order: outermost first", query_run_permutation,
     .print = QUERY_PRINTS_ORDER},
    {"blocking", "", "blocks, no, unknown", "row-major over blocks of the axes: outermost first",
     query_run_blocking, .print = QUERY_PRINTS_BLOCKS},
    {"loop_order", "", "loops, no, unknown",
     "the loop nest that visits memory in sequence, outermost first", query_run_loop_order},
    {"padding_runs", "", "number",
     "how many offsets hold no element; \"runs\": [first, count] of them", query_run_padding_runs},
    {"lines", "box? line? base? element_bits?", "number",
     "cache lines (or pages) that a box touches; \"runs\" of them", query_run_lines},
    {"conflicts", "read banks? vector? element_bits?", "number",
     "distinct words that the busiest bank serves at once: 1 is no conflict", query_run_conflicts},
    {"swizzle", "reads banks? vector? element_bits?", "layout, no, unknown",
     "the layout under the linear swizzle with the fewest conflicts for all `reads`",
     query_run_swizzle},
    {"sum", "b", "layout", "direct sum: (x, y) -> (a(x), b(y))", query_run_sum},
    {"product", "b kind? filled?", "layout, no, unknown",
     "copies of a arranged as b: kind logical, blocked (default), raked; filled: in the gaps of a",
     query_run_product},
    {"complement", "size", "layout, no, unknown",
     "the offsets at which copies of a fill its gaps up to `size`", query_run_complement},
    {"tile", "by", "layout, no, unknown",
     "axes split into tiles: `by` has a layout of indices along each axis, or null",
     query_run_tile},
    {"left_divide", "b", "map, no, unknown",
     "from the logical index of b to that of a with the same physical index", query_run_left_divide,
     .other = QUERY_OTHER_SAME_SHAPE},
    {"refine", "b", "digits, no, unknown",
     "the coarsest digits of the axes of which both offsets are sums", query_run_refine,
     .other = QUERY_OTHER_SAME_SHAPE, .print = QUERY_PRINTS_DIGITS},
    {"copy", "b element_bits?", "digits, no, unknown",
     "a to b: where each digit goes; \"levels\": bytes that stay or move, by resource",
     query_run_copy, .other = QUERY_OTHER_SAME_SHAPE, .print = QUERY_PRINTS_DIGITS},
    {"spell", "as", "text, no", "the layout in another spelling: cute, xla, named, ...",
     query_run_spell},
    {"svg", "", "text", "a picture of the tensor and of memory", run_svg},
};
const int query_row_count = COUNT_OF(query_rows);

const QueryRow *query_row_find(const char *name) {
  for (int i = 0; i < query_row_count; i++)
    if (strcmp(query_rows[i].name, name) == 0) return &query_rows[i];
  return NULL;
}
