// SPDX-License-Identifier: Apache-2.0
// Reads the JSON replies to questions about layouts into the structs of pleat/layout.h.
#include <inttypes.h>
#include <stdlib.h>

#include "api/layout_call.h"

// ---- Blocks -----------------------------------------------------------------------------------

enum { ALIGNMENT = 16, NUMBER_BYTES = 32 };

// At least the bytes that a value and its parts take in any struct: each list has one array, and
// each value is one field of it or less than the largest element.
static size_t bytes_of(const json_t *value) {
  size_t total = sizeof(PleatMove) + sizeof(PleatProof) + NUMBER_BYTES + 2 * ALIGNMENT;
  const char *key;
  json_t *item;
  size_t i;
  if (json_is_string(value)) total += json_string_length(value);
  json_array_foreach(value, i, item) total += bytes_of(item);
  json_object_foreach((json_t *)value, key, item) total += bytes_of(item) + strlen(key);
  return total;
}

ResultBlock block_new(const json_t *values) {
  ResultBlock block = {.size = bytes_of(values)};
  block.memory = calloc(1, block.size);
  return block;
}

void *block_take(ResultBlock *block, size_t size) {
  size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  block->failed |= !block->memory || block->size - block->used < size;
  if (block->failed) return NULL;
  void *taken = block->memory + block->used;
  block->used += size;
  return taken;
}

static const char *put_text(ResultBlock *block, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = block_take(block, size);
  return copy ? memcpy(copy, text, size) : NULL;
}

const char *block_text(ResultBlock *block, const json_t *text) {
  return json_is_string(text) ? put_text(block, json_string_value(text)) : NULL;
}

PleatValue block_value(ResultBlock *block, const json_t *value) {
  char number[NUMBER_BYTES];
  if (!json_is_integer(value)) return (PleatValue){.text = block_text(block, value)};
  snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  return (PleatValue){1, json_integer_value(value), put_text(block, number)};
}

PleatValue *block_values(ResultBlock *block, const json_t *list) {
  size_t count = json_array_size(list);
  PleatValue *values = BLOCK_ARRAY(block, PleatValue, count);
  for (size_t i = 0; values && i < count; i++)
    values[i] = block_value(block, json_array_get(list, i));
  return values;
}

int64_t *block_integers(ResultBlock *block, const json_t *list) {
  size_t count = json_array_size(list);
  int64_t *numbers = BLOCK_ARRAY(block, int64_t, count);
  for (size_t i = 0; numbers && i < count; i++)
    numbers[i] = json_integer_value(json_array_get(list, i));
  return numbers;
}

static const json_t *answer_of(const json_t *reply) {
  return json_object_get(reply, "answer");
}

static int64_t integer_of(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static int64_t *integers_of(ResultBlock *block, const json_t *object, const char *key) {
  return block_integers(block, json_object_get(object, key));
}

// Result `i` becomes the block, if it is wanted.
static int give(LayoutCall *call, int i, ResultBlock *block) {
  bool kept = call->results[i] && !block->failed;
  if (kept)
    *call->results[i] = block->memory;
  else
    free(block->memory);
  return block->failed ? PLEAT_NO_MEMORY : PLEAT_OK;
}

// ---- Proofs -----------------------------------------------------------------------------------

static void put_symbols(ResultBlock *block, json_t *values, PleatProof *proof) {
  size_t count = json_object_size(values), at = 0;
  const char **symbols = BLOCK_ARRAY(block, const char *, count), *name;
  int64_t *numbers = BLOCK_ARRAY(block, int64_t, count);
  json_t *value;
  if (!symbols || !numbers) return;
  json_object_foreach(values, name, value) {
    symbols[at] = put_text(block, name);
    numbers[at++] = json_integer_value(value);
  }
  proof->symbols = symbols;
  proof->symbol_values = numbers;
  proof->symbol_count = (int)count;
}

PleatProof *proof_of(const json_t *reply, int verdict) {
  ResultBlock block = block_new(reply);
  PleatProof *proof = BLOCK_ARRAY(&block, PleatProof, 1);
  if (!proof) return NULL;
  const json_t *witness = json_object_get(reply, "witness"), *first = json_array_get(witness, 0);
  bool two = json_is_array(first);
  *proof = (PleatProof){.verdict = verdict,
                        .reason = block_text(&block, json_object_get(reply, "reason")),
                        .level = block_text(&block, json_object_get(reply, "level")),
                        .certificate = block_text(&block, json_object_get(reply, "certificate")),
                        .nanoseconds = integer_of(reply, "ns")};
  proof->witness_rank = (int)json_array_size(two ? first : witness);
  if (json_is_array(witness)) proof->witness = block_integers(&block, two ? first : witness);
  if (two) proof->second_witness = block_integers(&block, json_array_get(witness, 1));
  put_symbols(&block, json_object_get(reply, "values"), proof);
  if (!block.failed) return proof;
  free(block.memory);
  return NULL;
}

// ---- Layouts ----------------------------------------------------------------------------------

// The conditions of both operands, each once.
static json_t *conditions_of(const LayoutCall *call) {
  const PleatLayout *const operands[] = {call->a, call->b};
  json_t *all = json_array(), *seen = json_object();
  for (int i = 0; i < COUNT_OF(operands); i++) {
    json_t *fields = operands[i] ? json_loads(operands[i]->json, 0, NULL) : NULL;
    json_t *where = json_object_get(fields, "where");
    size_t count = json_is_string(where) ? 1 : json_array_size(where);
    for (size_t k = 0; k < count; k++) {
      json_t *condition = json_is_string(where) ? where : json_array_get(where, k);
      if (json_object_get(seen, json_string_value(condition))) continue;
      json_object_set_new(seen, json_string_value(condition), json_true());
      json_array_append(all, condition);
    }
    json_decref(fields);
  }
  json_decref(seen);
  return all;
}

// The layout that a reply describes: its answer, on the reply's shape, or on that of "a".
static int take_made(LayoutCall *call, const json_t *reply) {
  json_t *text = json_object_get(reply, "answer"), *shape = json_object_get(reply, "shape");
  json_t *physical = json_object_get(reply, "physical");
  json_t *fields = json_pack("{s:O}", "layout", text), *where = conditions_of(call);
  if (json_array_size(where)) json_object_set(fields, "where", where);
  json_decref(where);
  json_t *own = shape ? NULL : json_loads(call->a->json, 0, NULL);
  json_object_set(fields, "shape", shape ? shape : json_object_get(own, "shape"));
  bool said = strstr(json_string_value(text), " in [") != NULL; // the text has physical extents
  if (physical && !said) json_object_set(fields, "physical", physical);
  json_decref(own);
  PleatLayout *made;
  bool has_messages = call->messages && *call->messages; // warnings of the question
  int status = layout_from_fields(fields, &made, has_messages ? NULL : call->messages);
  if (status == PLEAT_OK) *call->results[0] = made;
  return status;
}

static int take_optional_text(LayoutCall *call, int i, const json_t *text) {
  if (!call->results[i] || !json_is_string(text)) return PLEAT_OK;
  *call->results[i] = strdup(json_string_value(text));
  return *call->results[i] ? PLEAT_OK : PLEAT_NO_MEMORY;
}

// After a further result has failed, the layout is not given either.
static int with_layout(LayoutCall *call, int status) {
  if (status == PLEAT_OK) return status;
  pleat_layout_free(*call->results[0]);
  for (int i = 0; i < LAYOUT_RESULTS; i++) {
    if (i && call->results[i]) free(*call->results[i]);
    if (call->results[i]) *call->results[i] = NULL;
  }
  return status;
}

int take_layout(LayoutCall *call, const json_t *reply) {
  return take_made(call, reply);
}

int take_map(LayoutCall *call, const json_t *reply) {
  int status = take_made(call, reply);
  if (status != PLEAT_OK) return status;
  return with_layout(call, take_optional_text(call, 1, json_object_get(reply, "padding")));
}

int take_slice(LayoutCall *call, const json_t *reply) {
  const json_t *offset = json_object_get(reply, "offset");
  const json_t *strides = json_object_get(reply, "strides");
  int status = take_made(call, reply);
  if (status != PLEAT_OK) return status;
  if (call->results[1]) {
    ResultBlock block = block_new(reply);
    PleatValue *value = BLOCK_ARRAY(&block, PleatValue, 1);
    if (value) *value = block_value(&block, offset);
    status = give(call, 1, &block);
  }
  if (status == PLEAT_OK && call->results[2] && json_is_array(strides)) {
    ResultBlock block = block_new(reply);
    block_values(&block, strides);
    status = give(call, 2, &block);
  }
  return with_layout(call, status);
}

int take_swizzle(LayoutCall *call, const json_t *reply) {
  int status = take_made(call, reply);
  if (status != PLEAT_OK || !call->results[1]) return status;
  ResultBlock block = block_new(reply);
  PleatSwizzle *swizzle = BLOCK_ARRAY(&block, PleatSwizzle, 1);
  if (swizzle)
    *swizzle =
        (PleatSwizzle){.is_optimal = json_is_true(json_object_get(reply, "optimal")),
                       .offset_map = block_text(&block, json_object_get(reply, "offset_map")),
                       .name = block_text(&block, json_object_get(reply, "swizzle")),
                       .count = (int)json_array_size(json_object_get(reply, "waves")),
                       .waves = integers_of(&block, reply, "waves"),
                       .bound = integers_of(&block, reply, "bound")};
  return with_layout(call, give(call, 1, &block));
}

// ---- Texts and numbers ------------------------------------------------------------------------

int take_text(LayoutCall *call, const json_t *reply) {
  return take_optional_text(call, 0, answer_of(reply));
}

int take_value(LayoutCall *call, const json_t *reply) {
  ResultBlock block = block_new(reply);
  PleatValue *value = BLOCK_ARRAY(&block, PleatValue, 1);
  if (value) *value = block_value(&block, answer_of(reply));
  int status = give(call, 0, &block);
  if (status != PLEAT_OK) return status;
  status = take_optional_text(call, 1, json_object_get(reply, "padding"));
  if (status != PLEAT_OK) free(*call->results[0]), *call->results[0] = NULL;
  return status;
}

int take_values(LayoutCall *call, const json_t *reply) {
  ResultBlock block = block_new(reply);
  block_values(&block, answer_of(reply));
  return give(call, 0, &block);
}

int take_integers(LayoutCall *call, const json_t *reply) {
  const json_t *list = answer_of(reply);
  int64_t *room = call->room;
  for (size_t i = 0; i < json_array_size(list); i++)
    room[i] = json_integer_value(json_array_get(list, i));
  return PLEAT_OK;
}

int take_order(LayoutCall *call, const json_t *reply) {
  const json_t *list = answer_of(reply);
  int *room = call->room;
  for (size_t i = 0; i < json_array_size(list); i++)
    room[i] = (int)json_integer_value(json_array_get(list, i));
  return PLEAT_OK;
}

int take_conflicts(LayoutCall *call, const json_t *reply) {
  *(PleatConflicts *)call->room = (PleatConflicts){.degree = integer_of(reply, "answer"),
                                                   .bank = integer_of(reply, "bank"),
                                                   .waves = integer_of(reply, "waves"),
                                                   .words = integer_of(reply, "words"),
                                                   .phase = integer_of(reply, "phase")};
  return PLEAT_OK;
}

int take_runs(LayoutCall *call, const json_t *reply) {
  const json_t *list = json_object_get(reply, "runs");
  ResultBlock block = block_new(reply);
  PleatRuns *runs = BLOCK_ARRAY(&block, PleatRuns, 1);
  size_t count = json_array_size(list);
  PleatRun *items = BLOCK_ARRAY(&block, PleatRun, count);
  for (size_t i = 0; items && i < count; i++) {
    const json_t *run = json_array_get(list, i);
    items[i] = (PleatRun){json_integer_value(json_array_get(run, 0)),
                          json_integer_value(json_array_get(run, 1))};
  }
  if (runs)
    *runs =
        (PleatRuns){integer_of(reply, "answer"), integer_of(reply, "run_count"), (int)count, items};
  return give(call, 0, &block);
}

// ---- Digits -----------------------------------------------------------------------------------

static int axis_number(const PleatLayout *layout, const char *name) {
  for (int i = 0; i < layout->rank; i++)
    if (strcmp(layout->axes[i], name) == 0) return i;
  return -1;
}

static int axis_of(const LayoutCall *call, const json_t *item) {
  return axis_number(call->a, json_string_value(json_object_get(item, "axis")));
}

static PleatDigit digit_of(ResultBlock *block, const LayoutCall *call, const json_t *item,
                           const char *cut) {
  return (PleatDigit){axis_of(call, item), integer_of(item, cut),
                      block_value(block, json_object_get(item, "extent"))};
}

int take_blocking(LayoutCall *call, const json_t *reply) {
  const json_t *list = answer_of(reply);
  size_t count = json_array_size(list);
  ResultBlock block = block_new(reply);
  PleatBlocking *blocking = BLOCK_ARRAY(&block, PleatBlocking, 1);
  PleatDigit *blocks = BLOCK_ARRAY(&block, PleatDigit, count);
  for (size_t i = 0; blocks && i < count; i++)
    blocks[i] = digit_of(&block, call, json_array_get(list, i), "block");
  if (blocking) *blocking = (PleatBlocking){(int)count, blocks};
  return give(call, 0, &block);
}

int take_loops(LayoutCall *call, const json_t *reply) {
  const json_t *list = answer_of(reply);
  size_t count = json_array_size(list);
  ResultBlock block = block_new(reply);
  PleatLoops *loops = BLOCK_ARRAY(&block, PleatLoops, 1);
  PleatLoop *items = BLOCK_ARRAY(&block, PleatLoop, count);
  for (size_t i = 0; items && i < count; i++) {
    const json_t *loop = json_array_get(list, i);
    items[i] = (PleatLoop){axis_of(call, loop), integer_of(loop, "step"),
                           block_value(&block, json_object_get(loop, "extent")),
                           block_value(&block, json_object_get(loop, "stride"))};
  }
  if (loops)
    *loops = (PleatLoops){(int)count, items, block_text(&block, json_object_get(reply, "index")),
                          block_text(&block, json_object_get(reply, "guard"))};
  return give(call, 0, &block);
}

int take_refinement(LayoutCall *call, const json_t *reply) {
  const json_t *list = answer_of(reply);
  size_t count = json_array_size(list);
  ResultBlock block = block_new(reply);
  PleatRefinement *refinement = BLOCK_ARRAY(&block, PleatRefinement, 1);
  PleatFactor *factors = BLOCK_ARRAY(&block, PleatFactor, count);
  for (size_t i = 0; factors && i < count; i++) {
    const json_t *factor = json_array_get(list, i), *strides = json_object_get(factor, "strides");
    factors[i] = (PleatFactor){digit_of(&block, call, factor, "cut"),
                               {block_value(&block, json_array_get(strides, 0)),
                                block_value(&block, json_array_get(strides, 1))}};
  }
  if (refinement)
    *refinement =
        (PleatRefinement){(int)count, factors, json_is_true(json_object_get(reply, "bits"))};
  return give(call, 0, &block);
}

// ---- Copies -----------------------------------------------------------------------------------

static PleatPosition position_of(ResultBlock *block, const json_t *position) {
  return (PleatPosition){block_text(block, json_object_get(position, "resource")),
                         block_value(block, json_object_get(position, "stride"))};
}

static PleatMove *moves_of(ResultBlock *block, const LayoutCall *call, const json_t *list) {
  size_t count = json_array_size(list);
  PleatMove *moves = BLOCK_ARRAY(block, PleatMove, count);
  for (size_t i = 0; moves && i < count; i++) {
    const json_t *move = json_array_get(list, i);
    moves[i] = (PleatMove){digit_of(block, call, move, "cut"),
                           position_of(block, json_object_get(move, "from")),
                           position_of(block, json_object_get(move, "to"))};
  }
  return moves;
}

static PleatCopyLevel *levels_of(ResultBlock *block, const json_t *list) {
  size_t count = json_array_size(list);
  PleatCopyLevel *levels = BLOCK_ARRAY(block, PleatCopyLevel, count);
  for (size_t i = 0; levels && i < count; i++) {
    const json_t *level = json_array_get(list, i);
    const char *in = json_string_value(json_object_get(level, "in"));
    levels[i] = (PleatCopyLevel){block_text(block, json_object_get(level, "resource")),
                                 strcmp(in, "to") != 0, strcmp(in, "from") != 0,
                                 integer_of(level, "elements"), integer_of(level, "bytes")};
  }
  return levels;
}

int take_copy(LayoutCall *call, const json_t *reply) {
  const json_t *moves = answer_of(reply), *levels = json_object_get(reply, "levels");
  ResultBlock block = block_new(reply);
  PleatCopy *copy = BLOCK_ARRAY(&block, PleatCopy, 1);
  if (copy)
    *copy = (PleatCopy){.move_count = (int)json_array_size(moves),
                        .moves = moves_of(&block, call, moves),
                        .is_counted = levels != NULL,
                        .copies = integer_of(reply, "copies"),
                        .still = integer_of(reply, "still"),
                        .level_count = (int)json_array_size(levels),
                        .levels = levels_of(&block, levels)};
  return give(call, 0, &block);
}
