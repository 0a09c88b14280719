// SPDX-License-Identifier: Apache-2.0
// Questions about layouts and their answers, both as JSON objects, for `pleat layout` (with or
// without --batch) and for the public functions of pleat/pleat.h and pleat/layout.h.
#ifndef PLEAT_QUERY_H
#define PLEAT_QUERY_H

#include <jansson.h>

#include "layout/layout.h"

// A layout that a question is about, as the user wrote it.
typedef struct QueryOperand {
  const Layout *layout; // NULL: not given
  LayoutConditions conditions;
} QueryOperand;

typedef struct QueryRequest {
  Context *context;
  const json_t *fields; // the object with the question's fields
  const struct QueryRow *row;
  QueryOperand a, b;
  bool certificates; // certificates were asked for
} QueryRequest;

typedef struct QueryReply {
  json_t *answer;          // owned; NULL: no answer, see the diagnostics
  json_t *more;            // owned; further fields, or NULL
  LayoutAnswer proof;      // the verdict with its level, witness and reason
  const char *certificate; // NULL: none
  int64_t ns;              // time of the question alone, without reading the layouts
} QueryReply;

// How the command prints the answer to a question.
typedef enum QueryPrint {
  QUERY_PRINTS_VALUE,  // as a text
  QUERY_PRINTS_DIGITS, // one line per digit, with the digit's strides in two layouts
  QUERY_PRINTS_BLOCKS, // one line per block
  QUERY_PRINTS_ORDER,  // the names of the axes
} QueryPrint;

// The role of a question's other layout, which is the field "b", or the value of the command's
// option.
typedef enum QueryOther {
  QUERY_OTHER_ANY,        // a layout with a shape of its own
  QUERY_OTHER_SAME_SHAPE, // a layout of a's tensor, so its shape may be left out
  QUERY_OTHER_DIVIDED,    // likewise, and the command's own layout is "b"
  QUERY_OTHER_OUTER,      // a layout on the physical shape of "b", the command's own layout
} QueryOther;

// A question. The table of rows is the only list of the questions: batch lines, their help and the
// options of `pleat layout` are read with it, and a test compares Python's methods with it.
typedef struct QueryRow {
  const char *name;
  const char *fields; // the fields read besides "a"; "?" marks those that may be absent
  const char *answer; // the type of "answer"
  const char *help;
  // Reads the fields, asks the question, and fills the reply. False with diagnostics.
  bool (*run)(QueryRequest *request, QueryReply *reply);
  LayoutAsk ask; // for the questions whose answer is a verdict
  QueryOther other;
  QueryPrint print;
  const char *no; // the text for a "no" with one index; NULL: the index alone
} QueryRow;
extern const QueryRow query_rows[];
extern const int query_row_count;
const QueryRow *query_row_find(const char *name);
// Does the question read the field?
bool query_row_takes(const QueryRow *row, const char *field);

// Reads a layout from an object {"layout", "shape", "physical", "where", "order", "padding"}, of
// which only "layout" is required. When neither "shape" nor the spelling defines a shape, the shape
// is that of `like`; when `like` is NULL, each extent is a symbol. `name` is the operand's name in
// errors: the field that holds the object, or an option of the command with its dashes. False with
// diagnostics, whose files are named after the fields.
bool query_operand_read(Context *context, const json_t *object, const char *name,
                        const QueryOperand *like, QueryOperand *out);
// Reports an error about a field. Returns false.
bool query_field_error(Context *context, const char *field, const char *format, ...)
    PRINTF_LIKE(3, 4);
// Reports that a field holds another type than what was expected: "expected a list, not a string".
bool query_type_error(Context *context, const char *field, const char *expected,
                      const json_t *value);

// Read fields of a request. False with a diagnostic when a field has another type.
bool query_integers(QueryRequest *request, const char *field, IntArray *out);
bool query_integer(QueryRequest *request, const char *field, int64_t *out);
// Reads a number if the field is present; otherwise *out keeps its value.
bool query_optional(QueryRequest *request, const char *field, int64_t *out);
bool query_has(const QueryRequest *request, const char *field);
// Extents in the form of a shape: numbers or names, in a list or one text. NULL with a diagnostic.
const LayoutExpr *const *query_extents(QueryRequest *request, const char *field, int *count);
// Is `index` a logical index of a's shape, with the right length?
bool query_check_index(QueryRequest *request, const char *field, const IntArray *index);

// Answers the question in an object: reads its layouts and runs the row's function. False with
// diagnostics.
bool query_answer(Context *context, const json_t *fields, bool certificate, QueryReply *reply);
void query_reply_free(QueryReply *reply);
// Adds a further field to the reply, which takes ownership of the value.
void query_reply_more(QueryReply *reply, const char *name, json_t *value);
// Makes the verdict the answer: "yes", "no" or "unknown". Returns true.
bool query_reply_verdict(QueryReply *reply);
// Makes a layout the answer, with its extents as "shape" and "physical". Returns true.
bool query_reply_layout(QueryRequest *request, QueryReply *reply, const Layout *layout);
// Makes an inverse the answer, with its "padding" and the "shape" on which it is. Returns true.
bool query_reply_inverse(QueryRequest *request, QueryReply *reply, const LayoutInverse *inverse,
                         const LayoutExpr *const *shape, int rank, LayoutFacts facts);
// A digit as an object with "axis" ("" for -1), the number `name`, and "extent".
json_t *query_digit(const QueryRequest *request, int axis, const char *name, int64_t number,
                    const LayoutExpr *extent);
// Adds the reply's fields to `object`: {"answer", …, "witness", "values", "reason", "certificate",
// "level", "ns"}.
void query_reply_set(const QueryReply *reply, json_t *object);

// Sets `reply->proof` to the answer of `question`, and measures the time.
#define QUERY_ASK(reply, question)                                                                 \
  do {                                                                                             \
    int64_t start_ns = clock_now_ns();                                                             \
    (reply)->proof = (question);                                                                   \
    (reply)->ns = clock_now_ns() - start_ns;                                                       \
  } while (0)

// Sets `reply->certificate`, if certificates are asked for; the further arguments are the members
// of the LayoutQuestion.
#define QUERY_CERTIFY(request, reply, ...)                                                         \
  do {                                                                                             \
    if ((request)->certificates)                                                                   \
      (reply)->certificate =                                                                       \
          layout_certificate((request)->context, &(LayoutQuestion){__VA_ARGS__}, &(reply)->proof); \
  } while (0)

// Questions about boxes, lanes and loops (access.c).
bool query_run_slice(QueryRequest *r, QueryReply *reply);
bool query_run_lines(QueryRequest *r, QueryReply *reply);
bool query_run_padding_runs(QueryRequest *r, QueryReply *reply);
bool query_run_conflicts(QueryRequest *r, QueryReply *reply);
bool query_run_swizzle(QueryRequest *r, QueryReply *reply);
bool query_run_loop_order(QueryRequest *r, QueryReply *reply);
bool query_run_blocking(QueryRequest *r, QueryReply *reply);
bool query_run_permutation(QueryRequest *r, QueryReply *reply);
bool query_run_is_reshape(QueryRequest *r, QueryReply *reply);
bool query_run_reshape(QueryRequest *r, QueryReply *reply);
bool query_run_spell(QueryRequest *r, QueryReply *reply);

// Questions about two layouts (algebra.c).
bool query_run_sum(QueryRequest *r, QueryReply *reply);
bool query_run_product(QueryRequest *r, QueryReply *reply);
bool query_run_complement(QueryRequest *r, QueryReply *reply);
bool query_run_tile(QueryRequest *r, QueryReply *reply);
bool query_run_left_divide(QueryRequest *r, QueryReply *reply);
bool query_run_refine(QueryRequest *r, QueryReply *reply);
bool query_run_copy(QueryRequest *r, QueryReply *reply);

// A condition over the inputs of a map as JSON, or null.
json_t *json_condition(Context *context, const IndexMap *map, const LayoutExpr *condition);
// A list; null for NULL.
json_t *json_expressions(Context *context, const LayoutExpr *const *exprs, int count);
json_t *json_integers(const int64_t *values, int count);
// An extent or another value as JSON: an integer when it is constant, otherwise a text; null for
// NULL.
json_t *json_expression(Context *context, const LayoutExpr *e);

// The reply to the line `text` of a file, owned by the caller (free), or NULL when memory ran out.
// `number` counts the lines from 1, for errors; *answered is false when the reply is an error.
char *query_line(const char *text, size_t size, int64_t number, bool certificates, bool *answered);

#endif
