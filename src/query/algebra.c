// SPDX-License-Identifier: Apache-2.0
// Answers questions that make a layout from two layouts, or compare two layouts digit by digit.
#include "query/query.h"
#include "runtime/runtime.h"

// Replies with the made layout and its extents, or with "no" when there is none.
static bool made_reply(QueryRequest *r, QueryReply *reply, const Layout *made) {
  if (!made || reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  return query_reply_layout(r, reply, made);
}

static LayoutAnswer made_or_not(const Layout *made) {
  return (LayoutAnswer){.verdict = made ? VERDICT_YES : VERDICT_NO,
                        .reason = made ? NULL : "too many axes, or no bounds are known"};
}

bool query_run_sum(QueryRequest *r, QueryReply *reply) {
  const Layout *made = NULL;
  QUERY_ASK(reply, made_or_not(made = layout_direct_sum(r->context, r->a.layout, r->b.layout)));
  return made_reply(r, reply, made);
}

bool query_run_product(QueryRequest *r, QueryReply *reply) {
  static const char *const kinds[] = {[LAYOUT_PRODUCT_LOGICAL] = "logical",
                                      [LAYOUT_PRODUCT_BLOCKED] = "blocked",
                                      [LAYOUT_PRODUCT_RAKED] = "raked"};
  const json_t *kind = json_object_get(r->fields, "kind");
  const char *word = kind ? json_string_value(kind) : "blocked";
  bool filled = json_is_true(json_object_get(r->fields, "filled"));
  const Layout *made = NULL;
  int row = 0;
  while (word && row < COUNT_OF(kinds) && strcmp(kinds[row], word) != 0) row++;
  if (!word || row == COUNT_OF(kinds))
    return query_field_error(r->context, "kind", "expected logical, blocked or raked");
  if (row != LAYOUT_PRODUCT_LOGICAL && r->a.layout->rank != r->b.layout->rank)
    return query_field_error(r->context, "b", "%d logical axes, and \"a\" has %d",
                             r->b.layout->rank, r->a.layout->rank);
  if (filled)
    QUERY_ASK(reply, layout_product_filled(r->context, r->a.layout, r->b.layout, (LayoutProduct)row,
                                           &made));
  else
    QUERY_ASK(reply, made_or_not(made = layout_product(r->context, r->a.layout, r->b.layout,
                                                       (LayoutProduct)row)));
  return made_reply(r, reply, made);
}

bool query_run_complement(QueryRequest *r, QueryReply *reply) {
  int64_t size;
  const Layout *made = NULL;
  if (!query_integer(r, "size", &size)) return false;
  if (size < 0) return query_field_error(r->context, "size", "a negative size");
  QUERY_ASK(reply,
            layout_complement(r->context, r->a.layout, layout_const(r->context, size), &made));
  return made_reply(r, reply, made);
}

// Reads the tilers of axes: a list with a layout, or null, for each logical axis.
static bool read_tilers(QueryRequest *r, const Layout **tilers) {
  const json_t *list = json_object_get(r->fields, "by");
  if (!json_is_array(list) || (int)json_array_size(list) != r->a.layout->rank)
    return query_field_error(r->context, "by",
                             "expected a list of layouts or null, one for each of the %d logical "
                             "axes",
                             r->a.layout->rank);
  for (int i = 0; i < r->a.layout->rank; i++) {
    const json_t *item = json_array_get(list, (size_t)i);
    const char *name = arena_printf(&r->context->arena, "by[%d]", i);
    QueryOperand tiler;
    if (json_is_null(item)) continue;
    if (!query_operand_read(r->context, item, name, NULL, &tiler)) return false;
    tilers[i] = tiler.layout;
  }
  return true;
}

bool query_run_tile(QueryRequest *r, QueryReply *reply) {
  const Layout **tilers = arena_array(&r->context->arena, const Layout *, r->a.layout->rank + 1);
  const Layout *made = NULL;
  if (!read_tilers(r, tilers)) return false;
  QUERY_ASK(reply, layout_tile(r->context, r->a.layout, tilers, &made));
  return made_reply(r, reply, made);
}

bool query_run_left_divide(QueryRequest *r, QueryReply *reply) {
  LayoutInverse map = {0};
  QUERY_ASK(reply, layout_divide_left(r->context, r->a.layout, r->b.layout, &map));
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_DIVIDE_LEFT, r->a.layout, r->b.layout, .inverse = map);
  return query_reply_inverse(r, reply, &map, r->b.layout->shape, r->b.layout->rank,
                             r->b.layout->facts);
}

bool query_run_refine(QueryRequest *r, QueryReply *reply) {
  LayoutRefinement found = {0};
  QUERY_ASK(reply, layout_refine(r->context, r->a.layout, r->b.layout, &found));
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_REFINE, r->a.layout, r->b.layout, .refinement = found);
  reply->answer = json_array();
  for (int i = 0; i < found.count; i++) {
    const LayoutFactor *factor = &found.factors[i];
    json_t *digit =
        query_digit(r, factor->digit.axis, "cut", factor->digit.cut, factor->digit.extent);
    json_object_set_new(digit, "strides", json_expressions(r->context, factor->weights, 2));
    json_array_append_new(reply->answer, digit);
  }
  query_reply_more(reply, "bits", json_boolean(found.bits));
  return true;
}

// ---- Copies -----------------------------------------------------------------------------------

static const char *resource_name(Str resource) {
  return resource ? resource : "memory";
}

static json_t *levels_json(const LayoutCopyPlan *plan) {
  json_t *list = json_array();
  for (int i = 0; i < plan->level_count; i++) {
    const LayoutCopyLevel *level = &plan->levels[i];
    const char *where = level->in_from && level->in_to ? "both" : level->in_from ? "from" : "to";
    json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "resource",
                                          resource_name(level->resource), "in", where, "elements",
                                          (json_int_t)level->elements, "bytes",
                                          (json_int_t)level->bytes));
  }
  return list;
}

static json_t *position_json(Context *context, LayoutDigitPosition position) {
  if (!position.stride) return json_null();
  return json_pack("{s:s, s:o}", "resource", resource_name(position.resource), "stride",
                   json_expression(context, position.stride));
}

static json_t *moves_json(const QueryRequest *r, const LayoutCopyPlan *plan) {
  json_t *list = json_array();
  for (int i = 0; i < plan->move_count; i++) {
    const LayoutMove *move = &plan->moves[i];
    json_t *digit = query_digit(r, move->digit.axis, "cut", move->digit.cut, move->digit.extent);
    json_object_set_new(digit, "from", position_json(r->context, move->from));
    json_object_set_new(digit, "to", position_json(r->context, move->to));
    json_array_append_new(list, digit);
  }
  return list;
}

// Describes the copy from a to b. Elements and bytes are counted when all extents are numbers.
bool query_run_copy(QueryRequest *r, QueryReply *reply) {
  LayoutCopyPlan plan = {0};
  Str order[] = {str_intern(r->context, "device"), str_intern(r->context, "warp"),
                 str_intern(r->context, "lane"), str_intern(r->context, "register")};
  int64_t bits = 32;
  if (!query_optional(r, "element_bits", &bits)) return false;
  if (bits < 1) return query_field_error(r->context, "element_bits", "expected at least 1");
  QUERY_ASK(reply, layout_copy_plan(r->context, r->a.layout, r->b.layout, order, COUNT_OF(order),
                                    bits, &plan));
  if (reply->proof.verdict == VERDICT_NO || (!plan.counted && !plan.move_count))
    return query_reply_verdict(reply);
  reply->answer = moves_json(r, &plan);
  if (!plan.counted) return true;
  query_reply_more(reply, "copies", json_integer(plan.copies));
  query_reply_more(reply, "still", json_integer(plan.still));
  query_reply_more(reply, "levels", levels_json(&plan));
  return true;
}
