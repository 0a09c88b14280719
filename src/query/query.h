// SPDX-License-Identifier: Apache-2.0
// Questions about layouts as JSON objects, and their answers likewise: for `pleat layout`, with or
// without --batch, and for the public functions of pleat/pleat.h, on which Python stands.
#ifndef PLEAT_QUERY_H
#define PLEAT_QUERY_H

#include <jansson.h>

#include "layout/layout.h"

// One layout as the user gave it.
typedef struct QueryOperand {
  const Layout *layout; // NULL: not given
  LayoutConditions conditions;
} QueryOperand;

typedef struct QueryRequest {
  Context *context;
  const json_t *fields; // the object that asks
  const struct QueryRow *row;
  QueryOperand a, b;
  bool certificates; // wanted
} QueryRequest;

typedef struct QueryReply {
  json_t *answer;          // owned; NULL where diagnostics say why there is none
  json_t *more;            // owned; further fields, or NULL
  LayoutAnswer proof;      // level, witness, reason
  const char *certificate; // NULL: none
  int64_t ns;              // the question alone, without reading the layouts
} QueryReply;

// How the terminal shows the answer to a question.
typedef enum QueryPrint {
  QUERY_PRINTS_VALUE,  // as text
  QUERY_PRINTS_DIGITS, // a line for each digit, with its strides in two layouts
  QUERY_PRINTS_BLOCKS, // a line for each block
  QUERY_PRINTS_ORDER,  // the names of the axes
} QueryPrint;

// The role of the other layout of a question, "b" or, where the command's option names it, OTHER.
typedef enum QueryOther {
  QUERY_OTHER_ANY,        // a layout with a shape of its own
  QUERY_OTHER_SAME_SHAPE, // a layout of the tensor of "a": its shape may be left out
  QUERY_OTHER_DIVIDED,    // the same, and the layout of the command is "b"
  QUERY_OTHER_OUTER,      // a layout on the physical shape of the command's layout, which is "b"
} QueryOther;

// A question. The table of rows is the only list of them: the lines of a batch, the help of it, and
// the options of `pleat layout` are read by it. Python's methods are compared with it in a test.
typedef struct QueryRow {
  const char *name;
  const char *fields; // that are read beside "a", with "?" after those that may be absent
  const char *answer; // what "answer" holds
  const char *help;
  // Reads the fields, asks, and fills the reply. False with diagnostics.
  bool (*run)(QueryRequest *request, QueryReply *reply);
  LayoutAsk ask; // of the questions whose answer is a verdict
  QueryOther other;
  QueryPrint print;
  const char *no; // what the terminal says of a "no" with one index; NULL: the index alone
} QueryRow;
extern const QueryRow query_rows[];
extern const int query_row_count;
const QueryRow *query_row_find(const char *name);
// Whether the question reads the field.
bool query_row_takes(const QueryRow *row, const char *field);

// Reads a layout from an object {"layout", "shape", "physical", "where", "order", "padding"}. Only
// "layout" must be there: a shape that neither field nor spelling says is that of `like`, or, where
// that is NULL, a symbol for each axis. `name` is the field it stands in, for errors (an option of
// the command with its dashes). False with diagnostics whose files are named after the fields.
bool query_operand_read(Context *context, const json_t *object, const char *name,
                        const QueryOperand *like, QueryOperand *out);
// An error about a field. Returns false.
bool query_field_error(Context *context, const char *field, const char *format, ...)
    PRINTF_LIKE(3, 4);

// Read fields of a request. False with a diagnostic where a field has another type.
bool query_integers(QueryRequest *request, const char *field, IntArray *out);
bool query_integer(QueryRequest *request, const char *field, int64_t *out);
// The number where the field is given; otherwise *out keeps its value.
bool query_optional(QueryRequest *request, const char *field, int64_t *out);
bool query_has(const QueryRequest *request, const char *field);
// Extents as a shape has them: numbers or names, in a list or one text. NULL with a diagnostic.
const LayoutExpr *const *query_extents(QueryRequest *request, const char *field, int *count);
// Whether `index` is a logical index of a's shape (its length is checked too).
bool query_check_index(QueryRequest *request, const char *field, const IntArray *index);

// Answers an object: reads its layouts, runs the question. False with diagnostics.
bool query_answer(Context *context, const json_t *fields, bool certificate, QueryReply *reply);
void query_reply_free(QueryReply *reply);
// A further field of the reply; takes the value over.
void query_reply_more(QueryReply *reply, const char *name, json_t *value);
// Makes the verdict the answer: "yes", "no" or "unknown". Returns true.
bool query_reply_verdict(QueryReply *reply);
// The name of an axis of "a", "" for -1.
const char *query_axis_name(const QueryRequest *request, int axis);
// {"answer", …, "witness", "values", "reason", "certificate", "level", "ns"} into `object`.
void query_reply_set(const QueryReply *reply, json_t *object);

// `reply->proof = question`, timed.
#define QUERY_ASK(reply, question)                                                                 \
  do {                                                                                             \
    int64_t start_ns = clock_now_ns();                                                             \
    (reply)->proof = (question);                                                                   \
    (reply)->ns = clock_now_ns() - start_ns;                                                       \
  } while (0)

// `reply->certificate`, where one is wanted, of the question that has these members.
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
bool query_run_left_divide(QueryRequest *r, QueryReply *reply);
bool query_run_refine(QueryRequest *r, QueryReply *reply);
bool query_run_copy(QueryRequest *r, QueryReply *reply);

// A condition over the inputs of a map, or null.
json_t *json_condition(Context *context, const IndexMap *map, const LayoutExpr *condition);
json_t *json_expressions(Context *context, const LayoutExpr *const *exprs, int count);
json_t *json_integers(const int64_t *values, int count);
// An extent or another value: an integer where it is constant, otherwise text.
json_t *json_expression(Context *context, const LayoutExpr *e);

// The reply to the line `text` of a file, owned (free). NULL: there is no memory. `number` counts
// the lines from 1, for errors; *answered: the reply is not an error.
char *query_line(const char *text, size_t size, int64_t number, bool certificates, bool *answered);

#endif
