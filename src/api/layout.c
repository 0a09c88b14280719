// SPDX-License-Identifier: Apache-2.0
// Implements the functions of pleat/layout.h: each makes the fields of its question.
#include "api/layout_call.h"

#include <stdlib.h>

#include "api/messages.h"
#include "api/request.h"
#include "query/query.h"

// ---- Making layouts ---------------------------------------------------------------------------

static void set_text(json_t *fields, const char *key, const char *text) {
  if (text) json_object_set_new(fields, key, json_string(text));
}

// A number, or a word.
static json_t *padding_value(const char *text) {
  char *end;
  double number = strtod(text, &end);
  return *text && !*end ? json_real(number) : json_string(text);
}

static json_t *source_fields(const PleatLayoutSource *source) {
  json_t *fields = json_object();
  set_text(fields, "layout", source->spelling);
  set_text(fields, "shape", source->shape);
  set_text(fields, "physical", source->physical);
  set_text(fields, "order", source->order);
  if (!source->shape && source->extents)
    json_object_set_new(fields, "shape", json_integers(source->extents, source->rank));
  json_t *where = source->where_count ? json_array() : NULL;
  for (size_t i = 0; i < source->where_count; i++)
    json_array_append_new(where, json_string(source->where[i] ? source->where[i] : ""));
  if (where) json_object_set_new(fields, "where", where);
  if (source->padding) json_object_set_new(fields, "padding", padding_value(source->padding));
  return fields;
}

static const char no_place[] = "is NULL, expected a place for the result";

typedef struct SourceCall {
  Context *context;
  const PleatLayoutSource *given;
  PleatLayoutSource *known; // with the fields that this version has
  bool done;
} SourceCall;

static void check_source(void *arg) {
  SourceCall *call = arg;
  PleatLayoutSource *known = call->known;
  if (!struct_read(call->context, "PleatLayoutSource", call->given, known, sizeof *known)) return;
  if (!known->spelling)
    field_error(call->context, "spelling", "is NULL, expected the text of a layout");
  else if (known->where_count && !known->where)
    field_error(call->context, "where", "is NULL, but its count is %zu", known->where_count);
  else
    call->done = true;
}

static int read_source(const PleatLayoutSource *source, PleatLayoutSource *known,
                       PleatMessages **messages) {
  SourceCall call = {context_new(), source, known, false};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, check_source, &call);
  int status = messages_take(call.context, finished && call.done, messages);
  context_free(call.context);
  return status;
}

int pleat_layout_new(const PleatLayoutSource *source, PleatLayout **layout,
                     PleatMessages **messages) {
  PleatLayoutSource known;
  if (!layout) return messages_refuse("layout", no_place, messages);
  *layout = NULL;
  int status = read_source(source, &known, messages);
  if (status != PLEAT_OK) return status;
  return layout_from_fields(source_fields(&known), layout, messages);
}

int pleat_layout_read(const char *spelling, const char *shape, PleatLayout **layout,
                      PleatMessages **messages) {
  PleatLayoutSource source = {.size = sizeof source, .spelling = spelling, .shape = shape};
  return pleat_layout_new(&source, layout, messages);
}

int pleat_layout_from_json(const char *json, PleatLayout **layout, PleatMessages **messages) {
  if (!layout) return messages_refuse("layout", no_place, messages);
  *layout = NULL;
  if (!json) return messages_refuse("json", "is NULL, expected a JSON object", messages);
  json_error_t error;
  json_t *fields = json_loads(json, JSON_REJECT_DUPLICATES, &error);
  if (json_is_object(fields)) return layout_from_fields(fields, layout, messages);
  json_decref(fields);
  char why[JSON_ERROR_TEXT_LENGTH + 64];
  snprintf(why, sizeof why, "is not a JSON object%s%s", fields ? "" : ": ",
           fields ? "" : error.text);
  return messages_refuse("json", why, messages);
}

// ---- Yes or no --------------------------------------------------------------------------------

// A question about one layout, or about two, whose answer is a verdict.
#define VERDICT_OF_ONE(function, name)                                                             \
  int function(const PleatLayout *layout, int *verdict, PleatProof **proof,                        \
               PleatMessages **messages) {                                                         \
    return layout_call(&(LayoutCall){.question = name,                                             \
                                     .a = layout,                                                  \
                                     .has_verdict = true,                                          \
                                     .verdict = verdict,                                           \
                                     .proof = proof,                                               \
                                     .messages = messages});                                       \
  }
#define VERDICT_OF_TWO(function, name)                                                             \
  int function(const PleatLayout *a, const PleatLayout *b, int *verdict, PleatProof **proof,       \
               PleatMessages **messages) {                                                         \
    return layout_call(&(LayoutCall){.question = name,                                             \
                                     .a = a,                                                       \
                                     .b = b,                                                       \
                                     .has_verdict = true,                                          \
                                     .verdict = verdict,                                           \
                                     .proof = proof,                                               \
                                     .messages = messages});                                       \
  }
VERDICT_OF_ONE(pleat_layout_is_identity, "identity")
VERDICT_OF_ONE(pleat_layout_is_injective, "injective")
VERDICT_OF_ONE(pleat_layout_is_onto, "onto")
VERDICT_OF_ONE(pleat_layout_is_bijective, "bijective")
VERDICT_OF_TWO(pleat_layout_equal, "equal")
VERDICT_OF_TWO(pleat_layout_same_map, "same_map")
VERDICT_OF_TWO(pleat_layout_is_reshape, "is_reshape")

// ---- Layouts from layouts ---------------------------------------------------------------------

// A question whose answer is a layout with, for quotients, the condition for its padding.
static int make(const char *question, const PleatLayout *a, const PleatLayout *b, json_t *fields,
                int *verdict, PleatLayout **made, char **padding, PleatProof **proof,
                PleatMessages **messages) {
  return layout_call(&(LayoutCall){.question = question,
                                   .a = a,
                                   .b = b,
                                   .fields = fields,
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .results = {(void **)made, (void **)padding},
                                   .required = 1,
                                   .take = take_map,
                                   .proof = proof,
                                   .messages = messages});
}

int pleat_layout_inverse(const PleatLayout *layout, int *verdict, PleatLayout **made,
                         char **padding, PleatProof **proof, PleatMessages **messages) {
  return make("inverse", layout, NULL, NULL, verdict, made, padding, proof, messages);
}

int pleat_layout_divide(const PleatLayout *a, const PleatLayout *b, int *verdict,
                        PleatLayout **made, char **padding, PleatProof **proof,
                        PleatMessages **messages) {
  return make("divide", a, b, NULL, verdict, made, padding, proof, messages);
}

int pleat_layout_left_divide(const PleatLayout *a, const PleatLayout *b, int *verdict,
                             PleatLayout **made, char **padding, PleatProof **proof,
                             PleatMessages **messages) {
  return make("left_divide", a, b, NULL, verdict, made, padding, proof, messages);
}

int pleat_layout_compose(const PleatLayout *outer, const PleatLayout *inner, int *verdict,
                         PleatLayout **made, PleatProof **proof, PleatMessages **messages) {
  return make("compose", outer, inner, NULL, verdict, made, NULL, proof, messages);
}

int pleat_layout_direct_sum(const PleatLayout *a, const PleatLayout *b, int *verdict,
                            PleatLayout **made, PleatProof **proof, PleatMessages **messages) {
  return make("sum", a, b, NULL, verdict, made, NULL, proof, messages);
}

int pleat_layout_product(const PleatLayout *tile, const PleatLayout *tiles, int kind, int filled,
                         int *verdict, PleatLayout **made, PleatProof **proof,
                         PleatMessages **messages) {
  static const char *const kinds[] = {[PLEAT_PRODUCT_LOGICAL] = "logical",
                                      [PLEAT_PRODUCT_BLOCKED] = "blocked",
                                      [PLEAT_PRODUCT_RAKED] = "raked"};
  if (made) *made = NULL;
  if (kind < 0 || kind >= COUNT_OF(kinds))
    return messages_refuse("kind", "is not one of the PLEAT_PRODUCT constants", messages);
  json_t *fields = json_pack("{s:s, s:b}", "kind", kinds[kind], "filled", filled != 0);
  return make("product", tile, tiles, fields, verdict, made, NULL, proof, messages);
}

int pleat_layout_complement(const PleatLayout *layout, int64_t size, int *verdict,
                            PleatLayout **made, PleatProof **proof, PleatMessages **messages) {
  json_t *fields = json_pack("{s:I}", "size", (json_int_t)size);
  return make("complement", layout, NULL, fields, verdict, made, NULL, proof, messages);
}

int pleat_layout_tile(const PleatLayout *layout, const PleatLayout *const *tilers, int *verdict,
                      PleatLayout **made, PleatProof **proof, PleatMessages **messages) {
  json_t *by = json_array();
  for (int i = 0; tilers && i < pleat_layout_rank(layout); i++)
    json_array_append_new(by, tilers[i] ? json_loads(tilers[i]->json, 0, NULL) : json_null());
  json_t *fields = json_pack("{s:o}", "by", by);
  return make("tile", layout, NULL, fields, verdict, made, NULL, proof, messages);
}

int pleat_layout_reshape(const PleatLayout *layout, const int64_t *shape, int rank, int *verdict,
                         PleatLayout **made, PleatProof **proof, PleatMessages **messages) {
  json_t *fields = json_pack("{s:o}", "to", json_integers(shape, shape ? rank : 0));
  return make("reshape", layout, NULL, fields, verdict, made, NULL, proof, messages);
}

// ---- Boxes ------------------------------------------------------------------------------------

// Ranges as the field of a question: [[start, stop, step], …]. NULL for none.
static json_t *ranges_json(const PleatLayout *layout, const PleatRange *ranges) {
  json_t *list = ranges ? json_array() : NULL;
  for (int i = 0; ranges && i < pleat_layout_rank(layout); i++) {
    json_int_t step = ranges[i].step ? ranges[i].step : 1;
    json_array_append_new(list, json_pack("[I, I, I]", (json_int_t)ranges[i].start,
                                          (json_int_t)ranges[i].stop, step));
  }
  return list;
}

static json_t *box_fields(const PleatLayout *layout, const PleatRange *box) {
  json_t *fields = json_object(), *ranges = ranges_json(layout, box);
  if (ranges) json_object_set_new(fields, "box", ranges);
  return fields;
}

int pleat_layout_slice(const PleatLayout *layout, const PleatRange *box, int *verdict,
                       PleatLayout **made, PleatValue **offset, PleatValue **strides,
                       PleatProof **proof, PleatMessages **messages) {
  return layout_call(&(LayoutCall){.question = "slice",
                                   .a = layout,
                                   .fields = box_fields(layout, box),
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .results = {(void **)made, (void **)offset, (void **)strides},
                                   .required = 1,
                                   .take = take_slice,
                                   .proof = proof,
                                   .messages = messages});
}

int pleat_layout_lines(const PleatLayout *layout, const PleatRange *box, const PleatLines *lines,
                       int *verdict, PleatRuns **runs, PleatProof **proof,
                       PleatMessages **messages) {
  json_t *fields = box_fields(layout, box);
  if (lines && lines->line_bytes)
    json_object_set_new(fields, "line", json_integer(lines->line_bytes));
  if (lines && lines->element_bits)
    json_object_set_new(fields, "element_bits", json_integer(lines->element_bits));
  if (lines && lines->base) json_object_set_new(fields, "base", json_integer(lines->base));
  return layout_call(&(LayoutCall){.question = "lines",
                                   .a = layout,
                                   .fields = fields,
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .results = {(void **)runs},
                                   .required = 1,
                                   .take = take_runs,
                                   .proof = proof,
                                   .messages = messages});
}

// ---- Offsets and strides ----------------------------------------------------------------------

typedef struct OffsetRoom {
  int64_t *offset, *physical;
} OffsetRoom;

static int take_offset(LayoutCall *call, const json_t *reply) {
  const OffsetRoom *room = call->room;
  const json_t *answer = json_object_get(reply, "answer"), *place = json_object_get(reply, "place");
  bool constant = json_is_integer(answer);
  for (size_t i = 0; i < json_array_size(place); i++)
    constant = constant && (!room->physical || json_is_integer(json_array_get(place, i)));
  if (!constant)
    return messages_refuse("layout",
                           "has symbols or copies on which the result depends; "
                           "pleat_layout_offset_map gives it as an expression",
                           call->messages);
  *room->offset = json_integer_value(answer);
  for (size_t i = 0; room->physical && i < json_array_size(place); i++)
    room->physical[i] = json_integer_value(json_array_get(place, i));
  return PLEAT_OK;
}

int pleat_layout_offset(const PleatLayout *layout, const int64_t *index, int64_t *offset,
                        int64_t *physical, PleatProof **proof, PleatMessages **messages) {
  OffsetRoom room = {offset, physical};
  if (!offset) return messages_refuse("offset", no_place, messages);
  if (!index && pleat_layout_rank(layout)) return messages_refuse("index", "is NULL", messages);
  json_t *fields = json_pack("{s:o}", "at", json_integers(index, pleat_layout_rank(layout)));
  return layout_call(&(LayoutCall){.question = "offset",
                                   .a = layout,
                                   .fields = fields,
                                   .room = &room,
                                   .take = take_offset,
                                   .proof = proof,
                                   .messages = messages});
}

int pleat_layout_offset_map(const PleatLayout *layout, char **map, PleatMessages **messages) {
  return layout_call(&(LayoutCall){.question = "offset",
                                   .a = layout,
                                   .results = {(void **)map},
                                   .required = 1,
                                   .take = take_text,
                                   .messages = messages});
}

int pleat_layout_index_at(const PleatLayout *layout, int64_t offset, int *verdict, int64_t *index,
                          PleatProof **proof, PleatMessages **messages) {
  if (!index) return messages_refuse("index", no_place, messages);
  return layout_call(&(LayoutCall){.question = "logical",
                                   .a = layout,
                                   .fields = json_pack("{s:I}", "at", (json_int_t)offset),
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .room = index,
                                   .take = take_integers,
                                   .proof = proof,
                                   .messages = messages});
}

int pleat_layout_strides(const PleatLayout *layout, PleatValue **strides, PleatProof **proof,
                         PleatMessages **messages) {
  return layout_call(&(LayoutCall){.question = "strides",
                                   .a = layout,
                                   .results = {(void **)strides},
                                   .required = 1,
                                   .take = take_values,
                                   .proof = proof,
                                   .messages = messages});
}

int pleat_layout_vector_widths(const PleatLayout *layout, int64_t *widths, PleatProof **proof,
                               PleatMessages **messages) {
  if (!widths) return messages_refuse("widths", no_place, messages);
  return layout_call(&(LayoutCall){.question = "vector",
                                   .a = layout,
                                   .room = widths,
                                   .take = take_integers,
                                   .proof = proof,
                                   .messages = messages});
}

// ---- Order of memory, copies, padding ---------------------------------------------------------

int pleat_layout_permutation(const PleatLayout *layout, int *verdict, int *order,
                             PleatProof **proof, PleatMessages **messages) {
  if (!order) return messages_refuse("order", no_place, messages);
  return layout_call(&(LayoutCall){.question = "permutation",
                                   .a = layout,
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .room = order,
                                   .take = take_order,
                                   .proof = proof,
                                   .messages = messages});
}

// A question whose answer is one owned struct, with perhaps a condition for padding.
static int describe(LayoutCall call, int *verdict, void **result, PleatProof **proof,
                    PleatMessages **messages) {
  call.has_verdict = true;
  call.verdict = verdict;
  call.results[0] = result;
  call.required = 1;
  call.proof = proof;
  call.messages = messages;
  return layout_call(&call);
}

int pleat_layout_blocking(const PleatLayout *layout, int *verdict, PleatBlocking **blocking,
                          PleatProof **proof, PleatMessages **messages) {
  LayoutCall call = {.question = "blocking", .a = layout, .take = take_blocking};
  return describe(call, verdict, (void **)blocking, proof, messages);
}

int pleat_layout_loop_order(const PleatLayout *layout, int *verdict, PleatLoops **loops,
                            PleatProof **proof, PleatMessages **messages) {
  LayoutCall call = {.question = "loop_order", .a = layout, .take = take_loops};
  return describe(call, verdict, (void **)loops, proof, messages);
}

int pleat_layout_refine(const PleatLayout *a, const PleatLayout *b, int *verdict,
                        PleatRefinement **refinement, PleatProof **proof,
                        PleatMessages **messages) {
  LayoutCall call = {.question = "refine", .a = a, .b = b, .take = take_refinement};
  return describe(call, verdict, (void **)refinement, proof, messages);
}

int pleat_layout_copy_plan(const PleatLayout *from, const PleatLayout *to, int64_t element_bits,
                           int *verdict, PleatCopy **copy, PleatProof **proof,
                           PleatMessages **messages) {
  LayoutCall call = {.question = "copy",
                     .a = from,
                     .b = to,
                     .fields = json_pack("{s:I}", "element_bits", (json_int_t)element_bits),
                     .take = take_copy};
  return describe(call, verdict, (void **)copy, proof, messages);
}

int pleat_layout_padding_count(const PleatLayout *layout, int *verdict, PleatValue **count,
                               char **condition, PleatProof **proof, PleatMessages **messages) {
  LayoutCall call = {.question = "padding",
                     .a = layout,
                     .results = {NULL, (void **)condition},
                     .take = take_value};
  return describe(call, verdict, (void **)count, proof, messages);
}

int pleat_layout_padding_runs(const PleatLayout *layout, int *verdict, PleatRuns **runs,
                              PleatProof **proof, PleatMessages **messages) {
  LayoutCall call = {.question = "padding_runs", .a = layout, .take = take_runs};
  return describe(call, verdict, (void **)runs, proof, messages);
}

// ---- Banks ------------------------------------------------------------------------------------

static json_t *access_json(const PleatLayout *layout, const PleatAccess *access) {
  json_t *object = json_object(), *ranges = ranges_json(layout, access->ranges);
  if (ranges) json_object_set_new(object, "ranges", ranges);
  set_text(object, "map", access->map);
  if (access->extents)
    json_object_set_new(object, "extents", json_integers(access->extents, access->extent_count));
  json_object_set_new(object, "vector", json_integer(access->vector));
  json_object_set_new(object, "weight", json_integer(access->weight));
  return object;
}

static json_t *banks_fields(const PleatBanks *banks) {
  json_t *fields = json_object();
  if (!banks) return fields;
  json_object_set_new(fields, "banks",
                      json_pack("[I, I]", (json_int_t)(banks->count ? banks->count : 32),
                                (json_int_t)(banks->bytes ? banks->bytes : 4)));
  if (banks->element_bits)
    json_object_set_new(fields, "element_bits", json_integer(banks->element_bits));
  return fields;
}

int pleat_layout_bank_conflicts(const PleatLayout *layout, const PleatAccess *access,
                                const PleatBanks *banks, int *verdict, PleatConflicts *conflicts,
                                PleatProof **proof, PleatMessages **messages) {
  if (!access) return messages_refuse("access", "is NULL", messages);
  if (!conflicts) return messages_refuse("conflicts", no_place, messages);
  json_t *fields = banks_fields(banks);
  json_object_set_new(fields, "read", access_json(layout, access));
  return layout_call(&(LayoutCall){.question = "conflicts",
                                   .a = layout,
                                   .fields = fields,
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .room = conflicts,
                                   .take = take_conflicts,
                                   .proof = proof,
                                   .messages = messages});
}

int pleat_layout_best_swizzle(const PleatLayout *layout, const PleatAccess *accesses, int count,
                              const PleatBanks *banks, int *verdict, PleatLayout **made,
                              PleatSwizzle **swizzle, PleatProof **proof,
                              PleatMessages **messages) {
  json_t *fields = banks_fields(banks), *reads = json_array();
  for (int i = 0; accesses && i < count; i++)
    json_array_append_new(reads, access_json(layout, &accesses[i]));
  json_object_set_new(fields, "reads", reads);
  return layout_call(&(LayoutCall){.question = "swizzle",
                                   .a = layout,
                                   .fields = fields,
                                   .has_verdict = true,
                                   .verdict = verdict,
                                   .results = {(void **)made, (void **)swizzle},
                                   .required = 1,
                                   .take = take_swizzle,
                                   .proof = proof,
                                   .messages = messages});
}

// ---- Texts and pictures -----------------------------------------------------------------------

int pleat_layout_spell(const PleatLayout *layout, const char *spelling, int *verdict, char **text,
                       PleatProof **proof, PleatMessages **messages) {
  LayoutCall call = {.question = "spell",
                     .a = layout,
                     .fields = json_pack("{s:s?}", "as", spelling),
                     .take = take_text};
  return describe(call, verdict, (void **)text, proof, messages);
}

int pleat_layout_svg(const PleatLayout *layout, char **svg, PleatMessages **messages) {
  return layout_call(&(LayoutCall){.question = "svg",
                                   .a = layout,
                                   .results = {(void **)svg},
                                   .required = 1,
                                   .take = take_text,
                                   .messages = messages});
}
