// SPDX-License-Identifier: Apache-2.0
// Questions about layouts as JSON objects: what a line of `pleat layout --batch` says, and what
// answers it. The command's own questions go the same way.
#ifndef PLEAT_CLI_LAYOUT_REQUEST_H
#define PLEAT_CLI_LAYOUT_REQUEST_H

#include <jansson.h>

#include "layout/layout.h"

// One layout as the user gave it.
typedef struct LayoutOperand {
  const Layout *layout; // NULL: not given
  LayoutConditions conditions;
} LayoutOperand;

typedef struct LayoutRequest {
  Context *context;
  const json_t *fields; // the object that asks
  const struct LayoutOperation *operation;
  LayoutOperand a, b;
  bool certificates; // wanted
} LayoutRequest;

typedef struct LayoutReply {
  json_t *answer;          // owned; NULL where diagnostics say why there is none
  json_t *more;            // owned; further fields, or NULL
  LayoutAnswer proof;      // level, witness, reason
  const char *certificate; // NULL: none
  int64_t ns;              // the question alone, without reading the layouts
} LayoutReply;

// A row of the table of questions (layout_operations.c).
typedef struct LayoutOperation {
  const char *name;
  const char *fields; // what it reads beside "a": "b at"
  const char *answer; // what "answer" is
  const char *help;
  bool (*run)(LayoutRequest *request, LayoutReply *reply);
  bool same_shape; // "b" is about the tensor of "a": its shape may be left out
} LayoutOperation;
extern const LayoutOperation layout_operations[];
extern const int layout_operation_count;
const LayoutOperation *layout_operation_find(const char *name);

// Reads a layout from an object {"layout", "shape", "physical", "where", "order", "padding"}. Only
// "layout" must be there: a shape that neither field nor spelling says is that of `like`, or, where
// that is NULL, a symbol for each axis. `name` is the field it stands in, for errors (an option of
// the command with its dashes). False with diagnostics whose files are named after the fields.
bool layout_operand_read(Context *context, const json_t *object, const char *name,
                         const LayoutOperand *like, LayoutOperand *out);
// An error about a field. Returns false.
bool layout_field_error(Context *context, const char *field, const char *format, ...)
    PRINTF_LIKE(3, 4);

// Fields of a request. False with a diagnostic where they are not as asked.
bool request_integers(LayoutRequest *request, const char *field, IntArray *out);
bool request_integer(LayoutRequest *request, const char *field, int64_t *out);
// The number where it is given; *out stays where not.
bool request_optional(LayoutRequest *request, const char *field, int64_t *out);
bool request_has(const LayoutRequest *request, const char *field);
// Extents as a shape has them: numbers or names, in a list or one text. NULL with a diagnostic.
const LayoutExpr *const *request_extents(LayoutRequest *request, const char *field, int *count);
// Whether `index` is a logical index of a's shape (its length is checked too).
bool request_check_index(LayoutRequest *request, const char *field, const IntArray *index);

// Answers an object: reads its layouts, runs the question. False with diagnostics.
bool layout_request_answer(Context *context, const json_t *fields, bool certificate,
                           LayoutReply *reply);
void layout_reply_free(LayoutReply *reply);
// A further field of the reply; takes the value over.
void layout_reply_more(LayoutReply *reply, const char *name, json_t *value);
// "no" or "unknown", as the proof is. Returns true.
bool layout_reply_verdict(LayoutReply *reply);
// The name of an axis of "a", "" for -1.
const char *layout_axis_name(const LayoutRequest *request, int axis);
// {"answer", …, "witness", "values", "reason", "certificate", "level", "ns"} into `object`.
void layout_reply_set(const LayoutReply *reply, json_t *object);

// `reply->proof = question`, timed.
#define LAYOUT_ASK(reply, question)                                                                \
  do {                                                                                             \
    int64_t start_ns = clock_now_ns();                                                             \
    (reply)->proof = (question);                                                                   \
    (reply)->ns = clock_now_ns() - start_ns;                                                       \
  } while (0)

// `reply->certificate = certificate`, where one is wanted and the answer is no "unknown".
#define LAYOUT_CERTIFY(request, reply, text)                                                       \
  do {                                                                                             \
    if ((request)->certificates && (reply)->proof.verdict != LAYOUT_UNDECIDED)                     \
      (reply)->certificate = (text);                                                               \
  } while (0)

// Questions about boxes, lanes and loops (layout_access.c).
bool layout_run_slice(LayoutRequest *r, LayoutReply *reply);
bool layout_run_lines(LayoutRequest *r, LayoutReply *reply);
bool layout_run_padding_runs(LayoutRequest *r, LayoutReply *reply);
bool layout_run_conflicts(LayoutRequest *r, LayoutReply *reply);
bool layout_run_swizzle(LayoutRequest *r, LayoutReply *reply);
bool layout_run_loop_order(LayoutRequest *r, LayoutReply *reply);
bool layout_run_blocking(LayoutRequest *r, LayoutReply *reply);
bool layout_run_permutation(LayoutRequest *r, LayoutReply *reply);
bool layout_run_is_reshape(LayoutRequest *r, LayoutReply *reply);
bool layout_run_reshape(LayoutRequest *r, LayoutReply *reply);
bool layout_run_spell(LayoutRequest *r, LayoutReply *reply);

// Questions about two layouts (layout_algebra.c).
bool layout_run_sum(LayoutRequest *r, LayoutReply *reply);
bool layout_run_product(LayoutRequest *r, LayoutReply *reply);
bool layout_run_complement(LayoutRequest *r, LayoutReply *reply);
bool layout_run_left_divide(LayoutRequest *r, LayoutReply *reply);
bool layout_run_refine(LayoutRequest *r, LayoutReply *reply);
bool layout_run_copy(LayoutRequest *r, LayoutReply *reply);

// A condition over the places of a map, or null.
json_t *json_condition(Context *context, const IndexMap *map, const LayoutExpr *condition);
json_t *json_expressions(Context *context, const LayoutExpr *const *exprs, int count);
json_t *json_integers(const int64_t *values, int count);
// An extent or another value: an integer where it is constant, otherwise text.
json_t *json_expression(Context *context, const LayoutExpr *e);

// One line: its reply, owned (free). *answered: it is no error.
char *layout_batch_answer(const char *text, size_t size, int64_t number, bool certificates,
                          bool *answered);
// Lines of JSON from `path` ("-": standard input) to standard output.
int layout_batch(Context *context, const char *path, bool certificates);
void layout_batch_help(FILE *out);

#endif
