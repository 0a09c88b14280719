// SPDX-License-Identifier: Apache-2.0
// Implements the calls of pleat/layout.h: makes layouts, asks questions, and returns their parts.
// A layout keeps its description as JSON text, so that it never changes and threads share nothing;
// each call reads it in a context of its own.
#include "api/layout_call.h"

#include <stdlib.h>

#include "api/messages.h"
#include "query/query.h"

// ---- Layouts ----------------------------------------------------------------------------------

typedef struct MakeCall {
  Context *context;
  json_t *fields;
  PleatLayout *made;
  bool done;
} MakeCall;

static json_t *axis_names(const Layout *layout) {
  json_t *names = json_array();
  for (int i = 0; i < layout->rank; i++)
    json_array_append_new(names, json_string(layout->map->inputs[i]));
  return names;
}

static PleatLayout *layout_block(const json_t *parts) {
  ResultBlock block = block_new(parts);
  PleatLayout *made = BLOCK_ARRAY(&block, PleatLayout, 1);
  if (!made) return NULL;
  const json_t *shape = json_object_get(parts, "shape"), *axes = json_object_get(parts, "axes");
  const json_t *physical = json_object_get(parts, "physical");
  const char **names = BLOCK_ARRAY(&block, const char *, json_array_size(axes));
  for (size_t i = 0; names && i < json_array_size(axes); i++)
    names[i] = block_text(&block, json_array_get(axes, i));
  *made = (PleatLayout){.json = json_dumps(json_object_get(parts, "fields"), 0),
                        .spelling = block_text(&block, json_object_get(parts, "spelling")),
                        .rank = (int)json_array_size(shape),
                        .physical_rank = (int)json_array_size(physical),
                        .shape = block_values(&block, shape),
                        .physical = block_values(&block, physical),
                        .axes = names};
  if (made->json && !block.failed) return made;
  free(made->json);
  free(made);
  return NULL;
}

// Reads the layout; its shape is stored even where the spelling decides it.
static void make(void *arg) {
  MakeCall *call = arg;
  Context *context = call->context;
  QueryOperand operand;
  if (!query_operand_read(context, call->fields, "", NULL, &operand)) return;
  const Layout *layout = operand.layout;
  json_t *shape = json_expressions(context, layout->shape, layout->rank);
  json_object_set(call->fields, "shape", shape);
  json_t *parts =
      json_pack("{s:O, s:O, s:o, s:o, s:o}", "fields", call->fields, "spelling",
                json_object_get(call->fields, "layout"), "shape", shape, "axes", axis_names(layout),
                "physical", json_expressions(context, layout->physical, layout->physical_rank));
  call->made = parts ? layout_block(parts) : NULL;
  json_decref(parts);
  call->done = true;
}

int layout_from_fields(json_t *fields, PleatLayout **layout, PleatMessages **messages) {
  MakeCall call = {.context = fields ? context_new() : NULL, .fields = fields};
  *layout = NULL;
  if (!call.context) return json_decref(fields), messages_no_memory(messages);
  diag_code_set(call.context, DIAG_LAYOUT);
  bool finished = context_protect(call.context, make, &call);
  int status = messages_take(call.context, finished && call.done, messages);
  context_free(call.context);
  json_decref(fields);
  if (status == PLEAT_OK && !call.made) return messages_no_memory(messages);
  *layout = call.made;
  return status;
}

void pleat_layout_free(PleatLayout *layout) {
  if (layout) free(layout->json);
  free(layout);
}

// ---- Questions --------------------------------------------------------------------------------

typedef struct LayoutAsking {
  LayoutCall *call;
  Context *context;
  json_t *fields, *reply; // owned
  QueryReply query;
  bool answered;
} LayoutAsking;

static void answer(void *arg) {
  LayoutAsking *asking = arg;
  asking->answered =
      query_answer(asking->context, asking->fields, asking->call->proof != NULL, &asking->query);
  if (asking->answered) query_reply_set(&asking->query, asking->reply = json_object());
}

// The verdict: of the answer where that is a word or null, else of its proof.
static int verdict_of(const QueryReply *reply) {
  static const int verdicts[] = {
      [VERDICT_NO] = PLEAT_NO, [VERDICT_YES] = PLEAT_YES, [VERDICT_UNDECIDED] = PLEAT_UNDECIDED};
  const char *word = json_string_value(reply->answer);
  if (json_is_null(reply->answer) || (word && strcmp(word, "no") == 0)) return PLEAT_NO;
  if (word && strcmp(word, "unknown") == 0) return PLEAT_UNDECIDED;
  return json_is_integer(reply->answer) ? verdicts[reply->proof.verdict] : PLEAT_YES;
}

static bool needs_other(const LayoutCall *call) {
  const QueryRow *row = query_row_find(call->question);
  return row && query_row_takes(row, "b");
}

static int check_arguments(const LayoutCall *call) {
  static const char no_place[] = "is NULL, expected a place for the result";
  if (!call->a) return messages_refuse("a", "is NULL, expected the first layout", call->messages);
  if (needs_other(call) && !call->b)
    return messages_refuse("b", "is NULL, expected the second layout", call->messages);
  if (call->has_verdict && !call->verdict)
    return messages_refuse("verdict", no_place, call->messages);
  if (call->required > 0 && !call->results[0])
    return messages_refuse("result", no_place, call->messages);
  return PLEAT_OK;
}

static void clear_results(LayoutCall *call) {
  for (int i = 0; i < LAYOUT_RESULTS; i++)
    if (call->results[i]) *call->results[i] = NULL;
  if (call->proof) *call->proof = NULL;
  if (call->messages) *call->messages = NULL;
}

static json_t *question_fields(LayoutCall *call) {
  json_t *fields = call->fields ? call->fields : json_object();
  call->fields = NULL;
  json_object_set_new(fields, "op", json_string(call->question));
  json_object_set_new(fields, "a", json_loads(call->a->json, 0, NULL));
  if (call->b) json_object_set_new(fields, "b", json_loads(call->b->json, 0, NULL));
  return fields;
}

// Writes the results of an answer. Returns a status.
static int take_answer(LayoutCall *call, const LayoutAsking *asking) {
  int verdict = verdict_of(&asking->query), status = PLEAT_OK;
  bool counted = json_is_integer(asking->query.answer);
  if (call->take && (verdict == PLEAT_YES || counted)) status = call->take(call, asking->reply);
  if (status == PLEAT_OK && call->proof && !(*call->proof = proof_of(asking->reply, verdict)))
    status = PLEAT_NO_MEMORY;
  if (status == PLEAT_OK && call->verdict) *call->verdict = verdict;
  return status;
}

static int ask(LayoutCall *call) {
  LayoutAsking asking = {.call = call, .context = context_new()};
  if (!asking.context) return messages_no_memory(call->messages);
  asking.fields = question_fields(call);
  diag_code_set(asking.context, DIAG_LAYOUT);
  bool finished = context_protect(asking.context, answer, &asking);
  int status = messages_take(asking.context, finished && asking.answered, call->messages);
  if (status == PLEAT_OK) {
    status = take_answer(call, &asking);
    if (status == PLEAT_NO_MEMORY) messages_no_memory(call->messages);
  }
  query_reply_free(&asking.query);
  json_decref(asking.reply);
  json_decref(asking.fields);
  context_free(asking.context);
  return status;
}

int layout_call(LayoutCall *call) {
  clear_results(call);
  int status = check_arguments(call);
  if (status == PLEAT_OK) status = ask(call);
  json_decref(call->fields);
  return status;
}

// ---- Offsets ----------------------------------------------------------------------------------

typedef struct OffsetsCall {
  Context *context;
  json_t *fields;
  int64_t *offsets, count, found;
  bool done;
} OffsetsCall;

static void find_offsets(void *arg) {
  OffsetsCall *call = arg;
  Context *context = call->context;
  QueryOperand operand;
  if (!query_operand_read(context, call->fields, "", NULL, &operand)) return;
  if (!operand.layout->is_static)
    query_field_error(context, "layout", "symbolic extents have no offsets");
  else if (!layout_logical_size(layout_of_copies(context, operand.layout), &call->found))
    query_field_error(context, "layout", "the number of elements does not fit 64 bits");
  else if (call->found > call->count || layout_offsets(context, operand.layout, call->offsets))
    call->done = true;
  else
    query_field_error(context, "layout", "an element is not stored");
}

int pleat_layout_offsets(const PleatLayout *layout, int64_t *offsets, int64_t count, int64_t *total,
                         PleatMessages **messages) {
  if (!layout) return messages_refuse("layout", "is NULL", messages);
  if (!total) return messages_refuse("total", "is NULL", messages);
  if (!offsets && count > 0)
    return messages_refuse("offsets", "is NULL, but the count is not 0", messages);
  OffsetsCall call = {context_new(), json_loads(layout->json, 0, NULL), offsets, count, 0, false};
  if (!call.context) return json_decref(call.fields), messages_no_memory(messages);
  diag_code_set(call.context, DIAG_LAYOUT);
  bool finished = context_protect(call.context, find_offsets, &call);
  int status = messages_take(call.context, finished && call.done, messages);
  if (status == PLEAT_OK) *total = call.found;
  json_decref(call.fields);
  context_free(call.context);
  return status;
}

// ---- Parts of a layout ------------------------------------------------------------------------

int pleat_layout_rank(const PleatLayout *layout) {
  return layout ? layout->rank : 0;
}

int pleat_layout_physical_rank(const PleatLayout *layout) {
  return layout ? layout->physical_rank : 0;
}

const PleatValue *pleat_layout_shape(const PleatLayout *layout) {
  return layout ? layout->shape : NULL;
}

const PleatValue *pleat_layout_physical_shape(const PleatLayout *layout) {
  return layout ? layout->physical : NULL;
}

const char *pleat_layout_axis(const PleatLayout *layout, int i) {
  return i >= 0 && i < pleat_layout_rank(layout) ? layout->axes[i] : NULL;
}

const char *pleat_layout_spelling(const PleatLayout *layout) {
  return layout ? layout->spelling : NULL;
}

const char *pleat_layout_json(const PleatLayout *layout) {
  return layout ? layout->json : NULL;
}
