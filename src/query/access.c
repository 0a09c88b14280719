// SPDX-License-Identifier: Apache-2.0
// Answers questions about boxes, lanes and loops over a layout, and reads the texts of ranges and
// accesses.
#include <inttypes.h>

#include "query/query.h"
#include "runtime/runtime.h"

enum { MOST_AXES = 64, RUNS_SHOWN = 16, MOST_READS = 8 };

// ---- Ranges -----------------------------------------------------------------------------------

typedef struct Ranges { // the indices low[i] + step[i]·x for 0 <= x < extent[i]
  const LayoutExpr *low[MOST_AXES], *extent[MOST_AXES];
  int64_t step[MOST_AXES];
} Ranges;

typedef struct RangeText {
  QueryRequest *request;
  const char *field, *at;
  SourcePos pos;
  const char *begin;
  Ranges *ranges;
  bool rest_single; // axes without a range have the range 0:1, not the whole axis
} RangeText;

static bool range_error(RangeText *t, const char *from, const char *to, const char *what) {
  SourcePos pos = t->pos;
  pos.begin = (int32_t)(from - t->begin);
  pos.end = (int32_t)(to - t->begin);
  return diag_error(t->request->context, pos, "%s", what);
}

static bool unknown_axis(RangeText *t, const char *from, const char *to) {
  Arena *arena = &t->request->context->arena;
  const Layout *layout = t->request->a.layout;
  const char *name = arena_printf(arena, "%.*s", (int)(to - from), from);
  const char *names = suggestion_or_names(arena, name, layout->map->inputs, layout->rank);
  return range_error(t, from, to,
                     arena_printf(arena, "the layout has no axis '%s'%s", name, names));
}

static const LayoutExpr *part_expr(RangeText *t, const char *from, const char *to) {
  LayoutSource source = layout_source("", -1);
  source.text = from;
  source.size = (size_t)(to - from);
  source.pos = t->pos;
  source.pos.begin = (int32_t)(from - t->begin);
  source.definitions = t->request->a.conditions.definitions;
  source.definition_count = t->request->a.conditions.definition_count;
  return layout_extent_parse(t->request->context, &source);
}

static bool is_empty(const char *from, const char *to) {
  return from + strspn(from, " \t") >= to;
}

// The number of indices from `start` up to but excluding `stop`, by `step`; `stop` is in the
// direction of the step.
static const LayoutExpr *extent_between(Context *context, const LayoutExpr *start,
                                        const LayoutExpr *stop, int64_t step) {
  bool down = step < 0;
  int64_t by = down ? -step : step;
  const LayoutExpr *size =
      layout_expr(context, LAYOUT_SUB, down ? start : stop, down ? stop : start, NULL);
  if (by == 1) return size;
  size = layout_expr(context, LAYOUT_ADD, size, layout_const(context, by - 1), NULL);
  return layout_expr(context, LAYOUT_DIV, size, layout_const(context, by), NULL);
}

// range := expr | [expr] ":" [expr] [":" number], as in Python's slices, but without indices that
// count from the end.
static bool read_range(RangeText *t, int axis, const char *from, const char *to) {
  Context *context = t->request->context;
  const char *first = memchr(from, ':', (size_t)(to - from));
  const char *second = first ? memchr(first + 1, ':', (size_t)(to - first - 1)) : NULL;
  const char *high_end = second ? second : to;
  Ranges *r = t->ranges;
  const LayoutExpr *size = t->request->a.layout->shape[axis], *step = layout_const(context, 1);
  if (second && !(step = part_expr(t, second + 1, to))) return false;
  if (step->op != LAYOUT_CONST || step->value == 0 || step->value == INT64_MIN)
    return range_error(t, second + 1, to, "a step is a number, and not 0");
  bool down = step->value < 0, starts = !is_empty(from, first ? first : to) || !first;
  const LayoutExpr *before = layout_const(context, -1);
  const LayoutExpr *start =
      down ? layout_expr(context, LAYOUT_ADD, size, before, NULL) : layout_const(context, 0);
  const LayoutExpr *stop = down ? before : size;
  if (starts) start = part_expr(t, from, first ? first : to);
  if (first && !is_empty(first + 1, high_end)) stop = part_expr(t, first + 1, high_end);
  if (!start || !stop) return false;
  r->low[axis] = start;
  r->step[axis] = step->value;
  r->extent[axis] =
      first ? extent_between(context, start, stop, step->value) : layout_const(context, 1);
  return true;
}

// item := [axis name "="] range
static bool read_item(RangeText *t, int position, const char *from, const char *to) {
  const Layout *layout = t->request->a.layout;
  const char *equals = memchr(from, '=', (size_t)(to - from));
  int axis = position;
  from += strspn(from, " \t");
  if (equals) {
    const char *end = equals;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t')) end--;
    size_t size = (size_t)(end - from);
    for (axis = layout->rank - 1; axis >= 0; axis--)
      if (strlen(layout->map->inputs[axis]) == size &&
          strncmp(layout->map->inputs[axis], from, size) == 0)
        break;
    if (axis < 0) return unknown_axis(t, from, end);
    from = equals + 1;
  }
  if (axis >= layout->rank) return range_error(t, from, to, "more ranges than logical axes");
  return read_range(t, axis, from, to);
}

static void default_ranges(QueryRequest *request, Ranges *ranges, bool single) {
  const Layout *layout = request->a.layout;
  for (int i = 0; i < layout->rank; i++) {
    ranges->low[i] = layout_const(request->context, 0);
    ranges->extent[i] = single ? layout_const(request->context, 1) : layout->shape[i];
    ranges->step[i] = 1;
  }
}

// Reads ranges by name, "i=0:8, j=0:8:4", or by position, ":, 0:16".
static bool read_ranges(QueryRequest *request, const char *field, const char *text, bool single,
                        Ranges *ranges) {
  size_t size = strlen(text);
  text = arena_copy(&request->context->arena, text, size + 1); // diagnostics keep it
  SourcePos pos = {.file = source_file_new(request->context, field, text, size)};
  RangeText t = {request, field, text, pos, text, ranges, single};
  default_ranges(request, ranges, single);
  if (is_empty(text, text + size)) return true;
  for (int position = 0;; position++) {
    const char *comma = strchr(t.at, ',');
    if (!read_item(&t, position, t.at, comma ? comma : text + size)) return false;
    if (!comma) return true;
    t.at = comma + 1;
  }
}

// The list [[0, 1], [0, 16, 2], ":"] as a text of ranges.
static const char *list_text(QueryRequest *request, const json_t *list) {
  Text text = text_new(&request->context->arena);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *item = json_array_get(list, i);
    text_puts(&text, i ? ", " : "");
    if (json_is_integer(item))
      text_printf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
    if (json_is_string(item)) text_puts(&text, json_string_value(item));
    for (size_t k = 0; k < json_array_size(item); k++) {
      const json_t *part = json_array_get(item, k);
      text_puts(&text, k ? ":" : "");
      if (json_is_integer(part))
        text_printf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(part));
      else if (json_is_string(part))
        text_puts(&text, json_string_value(part));
    }
  }
  return text_string(&text);
}

static bool request_box(QueryRequest *request, Ranges *ranges) {
  const json_t *box = json_object_get(request->fields, "box");
  if (json_is_array(box))
    return read_ranges(request, "box", list_text(request, box), false, ranges);
  if (box && !json_is_string(box))
    return query_field_error(request->context, "box", "expected ranges: \"0:1, c=0:16\"");
  return read_ranges(request, "box", box ? json_string_value(box) : "", false, ranges);
}

// Finds the box of ranges in numbers, which needs a static layout.
static bool static_box(QueryRequest *request, const char *field, const Ranges *ranges, int64_t *low,
                       int64_t *extent) {
  for (int i = 0; i < request->a.layout->rank; i++) {
    if (ranges->low[i]->op != LAYOUT_CONST || ranges->extent[i]->op != LAYOUT_CONST)
      return query_field_error(request->context, field, "numbers are needed for all extents");
    low[i] = ranges->low[i]->value;
    extent[i] = ranges->extent[i]->value;
  }
  return true;
}

// ---- Replies ----------------------------------------------------------------------------------

static json_t *runs_json(const LayoutRuns *runs) {
  json_t *list = json_array();
  for (int i = 0; i < runs->shown; i++)
    json_array_append_new(list, json_pack("[I, I]", (json_int_t)runs->runs[i].first,
                                          (json_int_t)runs->runs[i].count));
  return list;
}

static bool runs_reply(QueryReply *reply, const LayoutRuns *runs) {
  reply->answer = json_integer(runs->total);
  query_reply_more(reply, "run_count", json_integer(runs->run_count));
  query_reply_more(reply, "runs", runs_json(runs));
  return true;
}

// ---- Boxes ------------------------------------------------------------------------------------

bool query_run_slice(QueryRequest *r, QueryReply *reply) {
  Ranges ranges;
  LayoutSlice slice = {0};
  if (!request_box(r, &ranges)) return false;
  QUERY_ASK(reply,
            layout_slice(r->context, r->a.layout, ranges.low, ranges.extent, ranges.step, &slice));
  if (!slice.layout) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_SLICE, r->a.layout, .low = ranges.low, .extent = ranges.extent,
                .step = ranges.step, .slice = slice);
  bool strided = reply->proof.verdict == VERDICT_YES;
  query_reply_layout(r, reply, slice.layout);
  query_reply_more(reply, "offset", json_expression(r->context, slice.offset));
  query_reply_more(
      reply, "strides",
      json_expressions(r->context, strided ? slice.strides : NULL, slice.layout->rank));
  return true;
}

static bool skips(const QueryRequest *r, const Ranges *ranges) {
  bool found = false;
  for (int i = 0; i < r->a.layout->rank; i++) found |= ranges->step[i] != 1;
  return found;
}

// The cache lines that a box touches; for a box with steps, the lines of its whole slice.
bool query_run_lines(QueryRequest *r, QueryReply *reply) {
  Ranges ranges;
  LayoutRuns runs = {0};
  int64_t low[MOST_AXES], extent[MOST_AXES];
  LayoutLineSize size = {32, 64, 0};
  if (!query_optional(r, "line", &size.line_bytes) ||
      !query_optional(r, "element_bits", &size.element_bits) ||
      !query_optional(r, "base", &size.base_bytes) || !request_box(r, &ranges) ||
      !static_box(r, "box", &ranges, low, extent))
    return false;
  if (size.line_bytes < 1 || size.element_bits < 1 || size.base_bytes < 0)
    return query_field_error(r->context, "line", "a size is not positive");
  const Layout *layout = r->a.layout;
  if (skips(r, &ranges)) {
    LayoutSlice slice = {0};
    QUERY_ASK(reply,
              layout_slice(r->context, layout, ranges.low, ranges.extent, ranges.step, &slice));
    if (!(layout = slice.layout)) return query_reply_verdict(reply);
    memset(low, 0, sizeof low);
  }
  QUERY_ASK(reply, layout_lines(r->context, layout, low, extent, size, RUNS_SHOWN, &runs));
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_LINES, layout, .first = low, .counts = extent, .size = size,
                .runs = runs);
  return runs_reply(reply, &runs);
}

bool query_run_padding_runs(QueryRequest *r, QueryReply *reply) {
  LayoutRuns runs = {0};
  QUERY_ASK(reply, layout_padding_runs(r->context, r->a.layout, RUNS_SHOWN, &runs));
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_PADDING_RUNS, r->a.layout, .runs = runs);
  return runs_reply(reply, &runs);
}

// ---- Lanes ------------------------------------------------------------------------------------

// Reads an access whose lanes read the elements of ranges, the last axis fastest.
static bool range_access(QueryRequest *r, const char *field, const char *text,
                         LayoutAccess *access) {
  Ranges ranges;
  Context *context = r->context;
  int rank = r->a.layout->rank;
  int64_t low[MOST_AXES], extent[MOST_AXES], *count = arena_array(&context->arena, int64_t, 1);
  const LayoutExpr *outputs[MOST_AXES], *lane = layout_axis(context, 0);
  if (!read_ranges(r, field, text, true, &ranges) || !static_box(r, field, &ranges, low, extent))
    return false;
  *count = 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (extent[i] < 1 || !mul_fits(*count, extent[i], count))
      return query_field_error(context, field, "an empty range has no lanes");
    const LayoutExpr *digit = layout_expr(
        context, LAYOUT_MOD,
        layout_expr(context, LAYOUT_DIV, lane, layout_const(context, *count / extent[i]), NULL),
        layout_const(context, extent[i]), NULL);
    digit = layout_expr(context, LAYOUT_MUL, digit, layout_const(context, ranges.step[i]), NULL);
    outputs[i] = layout_expr(context, LAYOUT_ADD, digit, ranges.low[i], NULL);
  }
  Str name = str_intern(context, "lane");
  access->lanes = index_map_new(context, 1, &name, rank, outputs, NULL, NULL, 0);
  access->extents = count;
  return true;
}

// Reads an access from {"map": "t, lane -> …", "extents": [4, 32]}.
static bool map_access(QueryRequest *r, const char *field, const json_t *object,
                       LayoutAccess *access) {
  Context *context = r->context;
  const json_t *extents = json_object_get(object, "extents");
  const char *text = json_string_value(json_object_get(object, "map"));
  int rank = (int)json_array_size(extents);
  if (!text || !json_is_array(extents))
    return query_field_error(context, field,
                             "expected {\"map\": \"lane -> …\", \"extents\": [32]}, or \"ranges\"");
  text = arena_copy(&context->arena, text, strlen(text) + 1);
  LayoutSource source = layout_source(text, rank);
  source.pos.file = source_file_new(context, field, text, source.size);
  int64_t *sizes = arena_array(&context->arena, int64_t, rank + 1);
  for (int i = 0; i < rank; i++) {
    sizes[i] = json_integer_value(json_array_get(extents, (size_t)i));
    if (sizes[i] < 1) return query_field_error(context, field, "an extent is not positive");
  }
  access->extents = sizes;
  if (!(access->lanes = index_map_parse(context, &source))) return false;
  if (access->lanes->output_count != r->a.layout->rank || rank < 1)
    return query_field_error(context, field, "the map gives %d numbers for %d logical axes",
                             access->lanes->output_count, r->a.layout->rank);
  return true;
}

// Reads an access with "map" or "ranges", and with "vector" and "weight" of its own.
static bool object_access(QueryRequest *r, const char *field, const json_t *object,
                          LayoutAccess *access) {
  const json_t *ranges = json_object_get(object, "ranges");
  const char *text = json_is_array(ranges) ? list_text(r, ranges) : json_string_value(ranges);
  if (ranges && !text)
    return query_field_error(r->context, field, "expected ranges: \"i=0:8, j=0:8:4\"");
  if (!(ranges ? range_access(r, field, text, access) : map_access(r, field, object, access)))
    return false;
  access->vector = json_integer_value(json_object_get(object, "vector"));
  access->weight = json_integer_value(json_object_get(object, "weight"));
  return true;
}

// Refuses lanes that leave a static shape. For a symbolic shape, the question itself checks this.
static bool lanes_stay(QueryRequest *r, const char *field, const LayoutAccess *access) {
  Context *context = r->context;
  const Layout *layout = r->a.layout;
  const LayoutExpr *extents[MOST_AXES];
  int diags = context->diags.count, errors = context->error_count;
  if (!layout->is_static) return true;
  for (int i = 0; i < access->lanes->input_count; i++)
    extents[i] = layout_const(context, access->extents[i]);
  if (access->lanes->replica_count ||
      layout_new(context, access->lanes, extents, layout->shape, (LayoutFacts){0},
                 (LayoutPadding){0}, (SourcePos){0}))
    return true;
  diag_forget(context, diags, errors);
  return query_field_error(context, field, "a lane leaves the shape");
}

static bool one_access(QueryRequest *r, const char *field, const json_t *value,
                       LayoutAccess *access) {
  *access = (LayoutAccess){0};
  if (json_is_string(value) || json_is_array(value)) {
    const char *text = json_is_array(value) ? list_text(r, value) : json_string_value(value);
    if (!range_access(r, field, text, access)) return false;
  } else if (json_is_object(value)) {
    if (!object_access(r, field, value, access)) return false;
  } else {
    return query_field_error(r->context, field,
                             "expected ranges, \"i=0:8, j=0:8:4\", or an object with \"map\"");
  }
  if (!lanes_stay(r, field, access)) return false;
  return access->vector ? true : query_optional(r, "vector", &access->vector);
}

static bool read_banks(QueryRequest *r, LayoutBanks *banks) {
  *banks = (LayoutBanks){32, 4, 32};
  const json_t *value = json_object_get(r->fields, "banks");
  const char *text = json_string_value(value);
  long long count = 32, bytes = 4;
  char end;
  if (text && sscanf(text, "%lldx%lld%c", &count, &bytes, &end) != 2)
    return query_field_error(r->context, "banks", "expected a count and bytes: \"32x4\"");
  if (json_array_size(value) == 2) {
    count = json_integer_value(json_array_get(value, 0));
    bytes = json_integer_value(json_array_get(value, 1));
  }
  if (count < 1 || bytes < 1 || count > 1 << 20 || bytes > 1 << 20)
    return query_field_error(r->context, "banks", "a count or a width is out of range");
  banks->bank_count = count;
  banks->bank_bytes = bytes;
  return query_optional(r, "element_bits", &banks->element_bits);
}

bool query_run_conflicts(QueryRequest *r, QueryReply *reply) {
  LayoutBanks banks;
  LayoutAccess access;
  LayoutConflicts found = {0};
  if (!read_banks(r, &banks) || !one_access(r, "read", json_object_get(r->fields, "read"), &access))
    return false;
  QUERY_ASK(reply, layout_bank_conflicts(r->context, r->a.layout, &access, banks, &found));
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_CONFLICTS, r->a.layout, .accesses = &access, .access_count = 1,
                .banks = banks);
  if (reply->proof.verdict == VERDICT_UNDECIDED) return query_reply_verdict(reply);
  reply->answer = json_integer(found.degree);
  query_reply_more(reply, "waves", json_integer(found.waves));
  query_reply_more(reply, "words", json_integer(found.words));
  query_reply_more(reply, "bank", json_integer(found.bank));
  query_reply_more(reply, "phase", json_integer(found.phase));
  return true;
}

bool query_run_swizzle(QueryRequest *r, QueryReply *reply) {
  LayoutBanks banks;
  LayoutAccess accesses[MOST_READS];
  LayoutSwizzle found = {0};
  const json_t *reads = json_object_get(r->fields, "reads");
  int count = (int)json_array_size(reads);
  if (count < 1 || count > MOST_READS)
    return query_field_error(r->context, "reads", "expected a list of 1 to %d accesses",
                             MOST_READS);
  if (!read_banks(r, &banks)) return false;
  for (int i = 0; i < count; i++) {
    const char *field = arena_printf(&r->context->arena, "reads[%d]", i);
    if (!one_access(r, field, json_array_get(reads, (size_t)i), &accesses[i])) return false;
  }
  QUERY_ASK(reply, layout_best_swizzle(r->context, r->a.layout, banks, accesses, count, &found));
  if (!found.map) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_SWIZZLE, r->a.layout, .accesses = accesses,
                .access_count = count, .banks = banks, .swizzle = found);
  reply->answer = json_string(layout_text(r->context, found.layout));
  query_reply_more(reply, "optimal", json_boolean(reply->proof.verdict == VERDICT_YES));
  query_reply_more(reply, "swizzle",
                   found.is_named ? json_sprintf("Swizzle<%d,%d,%d>", found.b, found.m, found.s)
                                  : json_null());
  query_reply_more(reply, "offset_map", json_string(index_map_text(r->context, found.map)));
  query_reply_more(reply, "waves", json_integers(found.waves, count));
  query_reply_more(reply, "bound", json_integers(found.bound, count));
  return true;
}

// ---- Loops and shapes -------------------------------------------------------------------------

bool query_run_loop_order(QueryRequest *r, QueryReply *reply) {
  LayoutLoops loops = {0};
  QUERY_ASK(reply, layout_loop_order(r->context, r->a.layout, &loops));
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_LOOP_ORDER, r->a.layout);
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  reply->answer = json_array();
  for (int i = 0; i < loops.count; i++) {
    const LayoutLoop *loop = &loops.loops[i];
    json_t *digit = query_digit(r, loop->axis, "step", loop->step, loop->extent);
    json_object_set_new(digit, "stride", json_expression(r->context, loop->stride));
    json_array_append_new(reply->answer, digit);
  }
  query_reply_more(reply, "index", json_string(index_map_text(r->context, loops.index)));
  query_reply_more(reply, "guard", json_condition(r->context, loops.index, loops.guard));
  return true;
}

bool query_run_blocking(QueryRequest *r, QueryReply *reply) {
  LayoutBlocking found = {0};
  QUERY_ASK(reply, layout_is_blocking(r->context, r->a.layout, &found));
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_BLOCKING, r->a.layout, .blocking = found);
  reply->answer = json_array();
  for (int i = 0; i < found.count; i++) {
    const LayoutDigit *block = &found.blocks[i];
    json_array_append_new(reply->answer,
                          query_digit(r, block->axis, "block", block->cut, block->extent));
  }
  return true;
}

bool query_run_permutation(QueryRequest *r, QueryReply *reply) {
  int *order = arena_array(&r->context->arena, int, r->a.layout->rank + 1);
  QUERY_ASK(reply, layout_is_permutation(r->context, r->a.layout, order));
  if (reply->proof.verdict != VERDICT_YES) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_PERMUTATION, r->a.layout, .order = order);
  reply->answer = json_array();
  for (int i = 0; i < r->a.layout->rank; i++)
    json_array_append_new(reply->answer, json_integer(order[i]));
  return true;
}

bool query_run_is_reshape(QueryRequest *r, QueryReply *reply) {
  QUERY_ASK(reply, layout_is_reshape(r->context, r->a.layout, r->b.layout));
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_RESHAPE, r->a.layout, r->b.layout);
  return query_reply_verdict(reply);
}

bool query_run_reshape(QueryRequest *r, QueryReply *reply) {
  int count;
  const LayoutExpr *const *shape = query_extents(r, "to", &count);
  if (!shape) return false;
  int64_t start_ns = clock_now_ns();
  const Layout *made = layout_reshape(r->context, r->a.layout, shape, count);
  reply->ns = clock_now_ns() - start_ns;
  bool fixed = r->a.layout->is_static;
  for (int i = 0; i < count; i++) fixed = fixed && shape[i]->op == LAYOUT_CONST;
  reply->proof = (LayoutAnswer){.verdict = made ? VERDICT_YES : VERDICT_NO,
                                .reason = made    ? NULL
                                          : fixed ? "it has another number of elements"
                                                  : "not proved to have as many elements"};
  if (!made) return query_reply_verdict(reply);
  QUERY_CERTIFY(r, reply, LAYOUT_ASK_RESHAPE, made, r->a.layout);
  reply->answer = json_string(layout_text(r->context, made));
  query_reply_more(reply, "shape", json_expressions(r->context, shape, count));
  return true;
}

bool query_run_spell(QueryRequest *r, QueryReply *reply) {
  LayoutSpelling spelling;
  const char *why = NULL, *text;
  const char *name = json_string_value(json_object_get(r->fields, "as"));
  const char *names[LAYOUT_SPELLING_COUNT];
  for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++) names[i] = layout_spelling_name(i);
  if (!name || !layout_spelling_find(name, &spelling)) {
    const char *near = name ? nearest_name(name, names, LAYOUT_SPELLING_COUNT) : NULL;
    return query_field_error(r->context, "as", "expected the name of a spelling%s%s",
                             near ? "; did you mean " : "", near ? near : "");
  }
  int64_t start_ns = clock_now_ns();
  text = layout_spell(r->context, r->a.layout, spelling, &why);
  reply->ns = clock_now_ns() - start_ns;
  reply->proof = (LayoutAnswer){.verdict = text ? VERDICT_YES : VERDICT_NO, .reason = why};
  reply->answer = json_string(text ? text : "no");
  return true;
}
