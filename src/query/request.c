// SPDX-License-Identifier: Apache-2.0
// Reads requests about layouts (the fields of JSON objects) into layouts and numbers, and writes
// the answers as JSON.
#include "query/query.h"

#include <inttypes.h>

static SourcePos field_pos(Context *context, const char *field, const char *text, size_t size) {
  return (SourcePos){.file = source_file_new(context, field, text, size)};
}

bool query_field_error(Context *context, const char *field, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(&context->arena, format, args);
  va_end(args);
  return diag_error(context, field_pos(context, field, NULL, 0), "%s", message);
}

// The name of an operand's sub-field in errors. For an operand that comes from the command, the
// sub-fields are options, and the field of the spelling is the option that names the operand, such
// as `--to`, or the command's argument.
static const char *sub_field(Context *context, const char *field, const char *key) {
  bool spelling = strcmp(key, "layout") == 0;
  if (strncmp(field, "--", 2) == 0)
    return spelling && field[2] ? field
           : spelling           ? key
                                : arena_printf(&context->arena, "--%s", key);
  return arena_printf(&context->arena, *field ? "%s.%s" : "%s%s", field, key);
}

static const char *kind_of(const json_t *value) {
  static const char *const names[] = {
      [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string",
      [JSON_INTEGER] = "a number", [JSON_REAL] = "a real",  [JSON_TRUE] = "true",
      [JSON_FALSE] = "false",      [JSON_NULL] = "null",
  };
  return names[json_typeof(value)];
}

bool query_type_error(Context *context, const char *field, const char *expected,
                      const json_t *value) {
  return query_field_error(context, field, "expected %s%s%s", expected, value ? ", not " : "",
                           value ? kind_of(value) : "");
}

// The value of an optional field, or NULL when it is absent or null.
static const json_t *field_of(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return value && !json_is_null(value) ? value : NULL;
}

// ---- Layouts ----------------------------------------------------------------------------------

typedef struct RequestOperand {
  Context *context;
  const json_t *object;
  const char *name;
  const QueryOperand *like; // its shape is used when no shape is given; or NULL
  QueryOperand *out;
  LayoutSource source; // the text of the spelling
  const LayoutExpr *const *shape, *const *physical;
  int rank, physical_count; // physical_count -1: not given
} RequestOperand;

static LayoutSource source_of(RequestOperand *o, const char *field, const char *text) {
  text = arena_copy(&o->context->arena, text, strlen(text) + 1); // diagnostics outlive the object
  LayoutSource source = layout_source(text, -1);
  source.pos = field_pos(o->context, field, text, source.size);
  source.definitions = o->out->conditions.definitions;
  source.definition_count = o->out->conditions.definition_count;
  return source;
}

static bool read_conditions(RequestOperand *o) {
  const json_t *where = field_of(o->object, "where");
  const char *field = sub_field(o->context, o->name, "where");
  int count = json_is_string(where) ? 1 : (int)json_array_size(where);
  LayoutSource *sources = arena_array(&o->context->arena, LayoutSource, count);
  if (where && !json_is_string(where) && !json_is_array(where))
    return query_type_error(o->context, field, "a list of conditions", where);
  for (int i = 0; i < count; i++) {
    const json_t *item = json_is_string(where) ? where : json_array_get(where, (size_t)i);
    const char *name = arena_printf(&o->context->arena, "%s[%d]", field, i);
    if (!json_is_string(item)) return query_type_error(o->context, name, "a condition", item);
    sources[i] = source_of(o, json_is_string(where) ? field : name, json_string_value(item));
  }
  return layout_conditions_parse(o->context, sources, count, &o->out->conditions);
}

static const LayoutExpr *read_extent(RequestOperand *o, const char *field, const json_t *item) {
  if (json_is_integer(item)) return layout_const(o->context, json_integer_value(item));
  if (!json_is_string(item)) {
    query_type_error(o->context, field, "an integer or a name", item);
    return NULL;
  }
  LayoutSource source = source_of(o, field, json_string_value(item));
  source.symbols = true;
  return layout_extent_parse(o->context, &source);
}

// Reads a list of extents, or one text such as "1x30x7x7".
static const LayoutExpr *const *read_shape(RequestOperand *o, const char *key, int *count) {
  Arena *arena = &o->context->arena;
  const json_t *value = field_of(o->object, key);
  const char *field = sub_field(o->context, o->name, key);
  if (json_is_string(value)) {
    LayoutSource source = source_of(o, field, json_string_value(value));
    source.symbols = true;
    return layout_shape_parse(o->context, &source, count);
  }
  if (!json_is_array(value)) {
    query_type_error(o->context, field, "a list of extents", value);
    return NULL;
  }
  *count = (int)json_array_size(value);
  if (*count > 64) {
    query_field_error(o->context, field, "more than 64 axes");
    return NULL;
  }
  const LayoutExpr **extents = arena_array(arena, const LayoutExpr *, *count + 1);
  for (int i = 0; i < *count; i++) {
    const char *name = arena_printf(arena, "%s[%d]", field, i);
    if (!(extents[i] = read_extent(o, name, json_array_get(value, (size_t)i)))) return NULL;
  }
  return extents;
}

static bool read_source(RequestOperand *o) {
  const json_t *text = field_of(o->object, "layout"), *order = field_of(o->object, "order");
  const char *field = sub_field(o->context, o->name, "layout");
  if (!json_is_string(text))
    return query_type_error(o->context, field, "the spelling of a layout", text);
  if (order && !json_is_string(order))
    return query_type_error(o->context, sub_field(o->context, o->name, "order"),
                            "the letters of the logical axes", order);
  o->source = source_of(o, field, json_string_value(text));
  o->source.order = json_string_value(order);
  return true;
}

// Finds the shape: from the spelling, else from `like`, else new symbols.
static bool find_shape(RequestOperand *o) {
  bool said, alone = !field_of(o->object, "where");
  if (!(o->shape = layout_shape_of(o->context, &o->source, &o->rank, &said))) return false;
  if (said || !o->like) return true;
  o->shape = o->like->layout->shape;
  o->rank = o->like->layout->rank;
  if (alone) o->out->conditions = o->like->conditions;
  return true;
}

static bool check_extents(RequestOperand *o, const char *key, const LayoutExpr *const *extents,
                          int count) {
  const char *field = sub_field(o->context, o->name, key);
  for (int i = 0; i < count; i++)
    if (extents[i]->op == LAYOUT_CONST && extents[i]->value < 0)
      return query_field_error(o->context, field, "extent %d is %" PRId64, i, extents[i]->value);
  const LayoutValue *values;
  int value_count, bad = layout_negative_extent(o->context, o->out->conditions.facts, extents,
                                                count, &values, &value_count);
  if (bad < 0) return true;
  Text text = text_new(&o->context->arena);
  for (int i = 0; i < value_count; i++)
    text_printf(&text, "%s%s = %" PRId64, i ? ", " : "", values[i].symbol, values[i].value);
  return query_field_error(o->context, field, "extent %d, `%s`, is negative where %s", bad,
                           layout_expr_text(o->context, extents[bad], NULL, 0), text_string(&text));
}

static bool read_shapes(RequestOperand *o) {
  bool given = field_of(o->object, "shape") != NULL;
  if (given && !(o->shape = read_shape(o, "shape", &o->rank))) return false;
  if (!given && !find_shape(o)) return false;
  o->physical_count = -1;
  if (field_of(o->object, "physical") &&
      !(o->physical = read_shape(o, "physical", &o->physical_count)))
    return false;
  if (!check_extents(o, "shape", o->shape, o->rank) ||
      !check_extents(o, "physical", o->physical, o->physical_count))
    return false;
  LayoutConditions *conditions = &o->out->conditions;
  layout_conditions_know(o->context, conditions, o->shape, o->rank);
  layout_conditions_know(o->context, conditions, o->physical, MAX_OF(o->physical_count, 0));
  return true;
}

static bool read_padding(RequestOperand *o, LayoutPadding *padding) {
  const json_t *value = field_of(o->object, "padding");
  const char *word = json_string_value(value);
  *padding = (LayoutPadding){0};
  if (!value || (word && strcmp(word, "unknown") == 0)) return true;
  if (json_is_number(value))
    *padding = (LayoutPadding){LAYOUT_PADDING_CONSTANT, json_number_value(value)};
  else if (word && strcmp(word, "any") == 0)
    padding->kind = LAYOUT_PADDING_ANY;
  else
    return query_field_error(o->context, sub_field(o->context, o->name, "padding"),
                             "expected a number, \"any\" or \"unknown\"");
  return true;
}

static bool check_keys(RequestOperand *o) {
  static const char *const known[] = {"layout", "shape", "physical", "where", "order", "padding"};
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)o->object, key, value) {
    bool found = false;
    for (int i = 0; i < COUNT_OF(known); i++) found |= strcmp(known[i], key) == 0;
    if (found) continue;
    const char *near = nearest_name(key, known, COUNT_OF(known));
    return query_field_error(o->context, sub_field(o->context, o->name, key),
                             "a layout has no field \"%s\"%s%s%s", key,
                             near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  }
  return true;
}

static bool build(RequestOperand *o) {
  Context *context = o->context;
  LayoutSource source = o->source;
  LayoutPadding padding;
  if (!read_padding(o, &padding)) return false;
  source.definitions = o->out->conditions.definitions;
  source.definition_count = o->out->conditions.definition_count;
  LayoutFacts facts = o->out->conditions.facts;
  const Layout *layout = layout_parse(context, &source, o->shape, o->rank, facts);
  if (layout && o->physical_count >= 0 && o->physical_count != layout->physical_rank)
    return query_field_error(context, sub_field(context, o->name, "physical"),
                             "%d extents for %d physical axes", o->physical_count,
                             layout->physical_rank);
  SourcePos pos = source.pos;
  pos.end = (int32_t)source.size;
  if (layout && o->physical_count >= 0)
    layout = layout_new(context, layout->map, o->shape, o->physical, facts, padding, pos);
  else if (layout && padding.kind != LAYOUT_PADDING_UNKNOWN)
    layout = layout_with_padding(context, layout, padding);
  return (o->out->layout = layout) != NULL;
}

bool query_operand_read(Context *context, const json_t *object, const char *name,
                        const QueryOperand *like, QueryOperand *out) {
  RequestOperand o = {.context = context, .object = object, .name = name, .like = like, .out = out};
  *out = (QueryOperand){0};
  if (!json_is_object(object))
    return query_type_error(context, name, "an object with \"layout\"", object);
  return check_keys(&o) && read_conditions(&o) && read_source(&o) && read_shapes(&o) && build(&o);
}

// ---- Other fields -----------------------------------------------------------------------------

bool query_has(const QueryRequest *request, const char *field) {
  return field_of(request->fields, field) != NULL;
}

bool query_integer(QueryRequest *request, const char *field, int64_t *out) {
  const json_t *value = field_of(request->fields, field);
  if (json_is_array(value) && json_array_size(value) == 1) value = json_array_get(value, 0);
  if (!json_is_integer(value))
    return query_type_error(request->context, field, "an integer", value);
  *out = json_integer_value(value);
  return true;
}

bool query_optional(QueryRequest *request, const char *field, int64_t *out) {
  return !query_has(request, field) || query_integer(request, field, out);
}

bool query_integers(QueryRequest *request, const char *field, IntArray *out) {
  Context *context = request->context;
  const json_t *value = field_of(request->fields, field);
  *out = (IntArray){0};
  if (!json_is_array(value)) return query_type_error(context, field, "a list of integers", value);
  for (size_t i = 0; i < json_array_size(value); i++) {
    const json_t *item = json_array_get(value, i);
    if (!json_is_integer(item))
      return query_type_error(context, arena_printf(&context->arena, "%s[%zu]", field, i),
                              "an integer", item);
    array_push(&context->arena, out, json_integer_value(item));
  }
  return true;
}

const LayoutExpr *const *query_extents(QueryRequest *request, const char *field, int *count) {
  QueryOperand operand = {.conditions = request->a.conditions};
  RequestOperand o = {
      .context = request->context, .object = request->fields, .name = "", .out = &operand};
  return read_shape(&o, field, count);
}

bool query_check_index(QueryRequest *request, const char *field, const IntArray *index) {
  Context *context = request->context;
  const Layout *layout = request->a.layout;
  if (index->count != layout->rank)
    return query_field_error(context, field, "%d numbers for %d logical axes", index->count,
                             layout->rank);
  for (int i = 0; i < index->count; i++) {
    int64_t at = index->items[i];
    bool outside = layout->shape[i]->op == LAYOUT_CONST && at >= layout->shape[i]->value;
    if (at < 0 || outside)
      return query_field_error(context, arena_printf(&context->arena, "%s[%d]", field, i),
                               "%" PRId64 " is outside the axis of %s", at,
                               layout_expr_text(context, layout->shape[i], NULL, 0));
  }
  return true;
}

// ---- Answering --------------------------------------------------------------------------------

static bool find_row(QueryRequest *request) {
  const json_t *op = field_of(request->fields, "op");
  if (!json_is_string(op))
    return query_type_error(request->context, "op", "the name of a question", op);
  const char *name = json_string_value(op);
  if ((request->row = query_row_find(name))) return true;
  const char **names = arena_array(&request->context->arena, const char *, query_row_count);
  for (int i = 0; i < query_row_count; i++) names[i] = query_rows[i].name;
  const char *near = nearest_name(name, names, query_row_count);
  return query_field_error(request->context, "op", "there is no question \"%s\"%s%s%s", name,
                           near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

bool query_row_takes(const QueryRow *row, const char *field) {
  size_t size = strlen(field);
  for (const char *p = row->fields; (p = strstr(p, field)); p += size)
    if ((p == row->fields || p[-1] == ' ') && (!p[size] || strchr(" ?", p[size]))) return true;
  return false;
}

bool query_answer(Context *context, const json_t *fields, bool certificate, QueryReply *reply) {
  QueryRequest request = {.context = context, .fields = fields, .certificates = certificate};
  *reply = (QueryReply){0};
  if (!json_is_object(fields)) return query_type_error(context, "request", "an object", fields);
  if (!find_row(&request)) return false;
  const json_t *a = json_object_get(fields, "a"), *b = json_object_get(fields, "b");
  if (!query_operand_read(context, a, "a", NULL, &request.a)) return false;
  bool same_shape =
      request.row->other == QUERY_OTHER_SAME_SHAPE || request.row->other == QUERY_OTHER_DIVIDED;
  const QueryOperand *like = same_shape ? &request.a : NULL;
  if (query_row_takes(request.row, "b") && !query_operand_read(context, b, "b", like, &request.b))
    return false;
  return request.row->run(&request, reply);
}

void query_reply_more(QueryReply *reply, const char *name, json_t *value) {
  if (!reply->more) reply->more = json_object();
  json_object_set_new(reply->more, name, value);
}

bool query_reply_verdict(QueryReply *reply) {
  static const char *const words[] = {
      [VERDICT_NO] = "no", [VERDICT_YES] = "yes", [VERDICT_UNDECIDED] = "unknown"};
  reply->answer = json_string(words[reply->proof.verdict]);
  return true;
}

bool query_reply_layout(QueryRequest *request, QueryReply *reply, const Layout *layout) {
  Context *context = request->context;
  reply->answer = json_string(layout_text(context, layout));
  query_reply_more(reply, "shape", json_expressions(context, layout->shape, layout->rank));
  query_reply_more(reply, "physical",
                   json_expressions(context, layout->physical, layout->physical_rank));
  return true;
}

json_t *query_digit(const QueryRequest *request, int axis, const char *name, int64_t number,
                    const LayoutExpr *extent) {
  return json_pack("{s:s, s:I, s:o}", "axis", axis < 0 ? "" : request->a.layout->map->inputs[axis],
                   name, (json_int_t)number, "extent", json_expression(request->context, extent));
}

void query_reply_free(QueryReply *reply) {
  json_decref(reply->answer);
  json_decref(reply->more);
  *reply = (QueryReply){0};
}

// ---- JSON -------------------------------------------------------------------------------------

json_t *json_integers(const int64_t *values, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(list, json_integer(values[i]));
  return list;
}

json_t *json_expression(Context *context, const LayoutExpr *e) {
  if (!e) return json_null();
  if (e->op == LAYOUT_CONST) return json_integer(e->value);
  return json_string(layout_expr_text(context, e, NULL, 0));
}

json_t *json_expressions(Context *context, const LayoutExpr *const *exprs, int count) {
  if (!exprs) return json_null();
  json_t *list = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(list, json_expression(context, exprs[i]));
  return list;
}

json_t *json_condition(Context *context, const IndexMap *map, const LayoutExpr *condition) {
  if (!condition) return json_null();
  return json_string(layout_expr_text(context, condition, map->inputs, map->input_count));
}

static json_t *witness_json(const LayoutAnswer *proof) {
  if (!proof->witness) return json_null();
  json_t *first = json_integers(proof->witness, proof->witness_rank);
  if (!proof->witness2) return first;
  return json_pack("[o, o]", first, json_integers(proof->witness2, proof->witness_rank));
}

void query_reply_set(const QueryReply *reply, json_t *object) {
  const LayoutAnswer *proof = &reply->proof;
  json_object_set(object, "answer", reply->answer);
  if (reply->more) json_object_update(object, reply->more);
  json_object_set_new(object, "witness", witness_json(proof));
  json_t *values = proof->instance_count ? json_object() : NULL;
  for (int i = 0; i < proof->instance_count; i++)
    json_object_set_new(values, proof->instance[i].symbol, json_integer(proof->instance[i].value));
  if (values) json_object_set_new(object, "values", values);
  if (proof->reason) json_object_set_new(object, "reason", json_string(proof->reason));
  json_object_set_new(object, "certificate",
                      reply->certificate ? json_string(reply->certificate) : json_null());
  json_object_set_new(object, "level", json_string(layout_level_name(proof->level)));
  json_object_set_new(object, "ns", json_integer(reply->ns));
}
