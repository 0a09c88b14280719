// SPDX-License-Identifier: Apache-2.0
// The interface between the files that implement pleat/layout.h. Every function there asks one
// question of the table in query/questions.c: it makes the JSON object of the question, and reads
// the reply into the C types of its results.
#ifndef PLEAT_API_LAYOUT_CALL_H
#define PLEAT_API_LAYOUT_CALL_H

#include <jansson.h>

#include "base/base.h"
#include "pleat/layout.h"

struct PleatLayout {
  char *json;
  const char *spelling; // within the block, as all that follows
  int rank, physical_rank;
  const PleatValue *shape, *physical;
  const char *const *axes;
};

// ---- Blocks -----------------------------------------------------------------------------------

// An owned result: one allocation that holds the result and all that it points to. Its size is a
// bound for what is read from the JSON values. What does not fit, or anything when memory is
// exhausted, is NULL, and `failed` is set.
typedef struct ResultBlock {
  char *memory;
  size_t used, size;
  bool failed;
} ResultBlock;
ResultBlock block_new(const json_t *values);
void *block_take(ResultBlock *block, size_t size); // zeros, aligned; NULL without memory
const char *block_text(ResultBlock *block, const json_t *text); // NULL for a value that is no text
PleatValue block_value(ResultBlock *block, const json_t *value);
PleatValue *block_values(ResultBlock *block, const json_t *list);
int64_t *block_integers(ResultBlock *block, const json_t *list);
#define BLOCK_ARRAY(block, Type, count) ((Type *)block_take(block, sizeof(Type) * (size_t)(count)))

// ---- Calls ------------------------------------------------------------------------------------

enum { LAYOUT_RESULTS = 3 };

typedef struct LayoutCall LayoutCall;
struct LayoutCall {
  const char *question;
  const PleatLayout *a, *b;
  json_t *fields; // owned: the further fields of the question, or NULL
  bool has_verdict;
  int *verdict; // required if has_verdict
  void *room;   // results in memory of the caller
  // Owned results, of which the first `required` must not be NULL. They are set to NULL before the
  // question is asked.
  void **results[LAYOUT_RESULTS];
  int required;
  // Reads the reply to a question with the verdict YES into the results. Returns a status.
  int (*take)(LayoutCall *call, const json_t *reply);
  PleatProof **proof;
  PleatMessages **messages;
};
// Asks the question. Returns a status of pleat.h.
int layout_call(LayoutCall *call);
// Makes a layout from the JSON object of one, whose reference is given up.
int layout_from_fields(json_t *fields, PleatLayout **layout, PleatMessages **messages);

// Functions for `take`.
int take_map(LayoutCall *call, const json_t *reply);     // results: layout, condition for padding
int take_layout(LayoutCall *call, const json_t *reply);  // results: layout
int take_slice(LayoutCall *call, const json_t *reply);   // results: layout, offset, strides
int take_swizzle(LayoutCall *call, const json_t *reply); // results: layout, swizzle
int take_text(LayoutCall *call, const json_t *reply);
int take_value(LayoutCall *call, const json_t *reply); // results: value, condition for padding
int take_values(LayoutCall *call, const json_t *reply);
int take_runs(LayoutCall *call, const json_t *reply);
int take_blocking(LayoutCall *call, const json_t *reply);
int take_loops(LayoutCall *call, const json_t *reply);
int take_refinement(LayoutCall *call, const json_t *reply);
int take_copy(LayoutCall *call, const json_t *reply);
int take_integers(LayoutCall *call, const json_t *reply);  // room: int64_t for each
int take_order(LayoutCall *call, const json_t *reply);     // room: int for each
int take_conflicts(LayoutCall *call, const json_t *reply); // room: PleatConflicts
PleatProof *proof_of(const json_t *reply, int verdict);    // NULL: no memory

#endif
