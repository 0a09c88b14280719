// SPDX-License-Identifier: Apache-2.0
// Implements the analyzers of pleat/tir.h: questions about expressions, which come and go as nodes,
// for the analyzer of src/arith.
#include "api/tir_nodes.h"

#include "api/tir.h"

#include <stdlib.h>

#include "arith/arith.h"

struct PleatAnalyzer {
  PleatModule *module; // an empty one, in whose store the expressions are
  Analyzer *analyzer;
  NodeKeys keys;
};

typedef struct AskCall {
  ModuleCall call;
  PleatAnalyzer *analyzer;
  const char *question;
  json_t *object; // of the question
  NodesMaking *made;
  Nodes *nodes; // of the answer
  Text text;    // the fields of the answer
  char *answer;
} AskCall;

// ---- Analyzers ----------------------------------------------------------------------------------

static void begin(void *arg) {
  AskCall *call = arg;
  Context *context = call->call.context;
  call->analyzer->analyzer = analyzer_new(context);
  call->analyzer->keys = node_keys_new(&context->arena);
  call->call.result = module_new(context, "");
  call->call.done = true;
}

int pleat_analyzer_new(PleatAnalyzer **analyzer, PleatMessages **messages) {
  if (!analyzer)
    return messages_refuse("analyzer", "is NULL, expected where to store it", messages);
  *analyzer = NULL;
  PleatAnalyzer *made = calloc(1, sizeof *made);
  if (!made) return messages_no_memory(messages);
  AskCall call = {.call = {.body = begin}, .analyzer = made};
  int status = module_call_run_new(&call, &made->module, messages);
  if (status == PLEAT_OK)
    *analyzer = made;
  else
    pleat_analyzer_free(made);
  return status;
}

void pleat_analyzer_free(PleatAnalyzer *analyzer) {
  if (!analyzer) return;
  pleat_module_free(analyzer->module);
  free(analyzer);
}

// ---- Fields of questions ------------------------------------------------------------------------

static const json_t *given(const AskCall *call, const char *field) {
  return json_object_get(call->object, field);
}

static Expr *given_expr(AskCall *call, const char *field) {
  return nodes_expr(call->made, field, given(call, field));
}

// A variable of integers; NULL with a diagnostic for another expression.
static Expr *given_variable(AskCall *call, const char *field, const json_t *reference) {
  Expr *var = nodes_expr(call->made, field, reference);
  if (!var || var->op == EXPR_VAR) return var;
  field_error(call->call.context, field, "is not a variable");
  return NULL;
}

static Expr **given_exprs(AskCall *call, const char *field, int *count) {
  const json_t *list = given(call, field);
  *count = (int)json_array_size(list);
  Expr **items = arena_array(&call->call.context->arena, Expr *, *count);
  for (int i = 0; i < *count; i++)
    if (!(items[i] = nodes_expr(call->made, field, json_array_get(list, (size_t)i)))) *count = 0;
  return items;
}

// A list of [variable, min, extent].
static VarRange *given_ranges(AskCall *call, const char *field, int *count) {
  const json_t *list = given(call, field);
  *count = (int)json_array_size(list);
  VarRange *ranges = arena_array(&call->call.context->arena, VarRange, *count);
  for (int i = 0; i < *count; i++) {
    const json_t *item = json_array_get(list, (size_t)i);
    ranges[i].var = given_variable(call, field, json_array_get(item, 0));
    ranges[i].min = nodes_expr(call->made, field, json_array_get(item, 1));
    ranges[i].extent = nodes_expr(call->made, field, json_array_get(item, 2));
    if (!ranges[i].var || !ranges[i].min || !ranges[i].extent) *count = 0;
  }
  return ranges;
}

static void answer_field(AskCall *call, const char *field) {
  text_printf(&call->text, ", \"%s\": ", field);
}

static void answer_expr(AskCall *call, const char *field, const Expr *e) {
  answer_field(call, field);
  text_printf(&call->text, e ? "{\"node\": %d}" : "null", nodes_add(call->nodes, e));
}

static void answer_bound(AskCall *call, const char *field, int64_t value) {
  answer_field(call, field);
  if (value == INT64_MIN || value == INT64_MAX)
    text_puts(&call->text, "null");
  else
    text_printf(&call->text, "%lld", (long long)value);
}

static void answer_truth(AskCall *call, const char *field, bool value) {
  answer_field(call, field);
  text_puts(&call->text, value ? "true" : "false");
}

// ---- Questions ----------------------------------------------------------------------------------

static void simplify(AskCall *call) {
  Expr *e = given_expr(call, "expr");
  if (e) answer_expr(call, "result", analyzer_simplify(call->analyzer->analyzer, e));
}

// The values that the type of an integer allows narrow the bounds: expressions do not overflow.
static void const_int_bound(AskCall *call) {
  Expr *e = given_expr(call, "expr");
  int64_t low = INT64_MIN, high = INT64_MAX;
  if (!e) return;
  bool is_signed = e->type.code == TYPE_INT, is_unsigned = e->type.code == TYPE_UINT;
  int bits = e->type.bits - is_signed;
  if (dtype_is_bool(e->type)) is_unsigned = true, bits = 1;
  analyzer_const_bounds(call->analyzer->analyzer, e, &low, &high);
  if (is_unsigned) low = MAX_OF(low, 0);
  if (is_signed && bits < 63) low = MAX_OF(low, -((int64_t)1 << bits));
  if ((is_signed || is_unsigned) && bits < 63) high = MIN_OF(high, ((int64_t)1 << bits) - 1);
  answer_bound(call, "min", low);
  answer_bound(call, "max", high);
}

static void modular_set(AskCall *call) {
  int64_t divisor, rest;
  Expr *e = given_expr(call, "expr");
  if (!e) return;
  modular_form(call->analyzer->analyzer, e, &divisor, &rest);
  answer_bound(call, "coeff", divisor);
  answer_bound(call, "base", rest);
}

static void prove(AskCall *call) {
  Expr *e = given_expr(call, "condition");
  if (e) answer_truth(call, "proved", analyzer_prove(call->analyzer->analyzer, e));
}

static void prove_equal(AskCall *call) {
  Expr *a = given_expr(call, "a"), *b = given_expr(call, "b");
  if (!a || !b) return;
  answer_truth(call, "proved", analyzer_prove_equal(call->analyzer->analyzer, a, b));
}

static void bind_value(AskCall *call) {
  Expr *var = given_variable(call, "var", given(call, "var")), *value = given_expr(call, "value");
  if (var && value) analyzer_bind_value(call->analyzer->analyzer, var, value);
}

static void bind_range(AskCall *call) {
  Expr *var = given_variable(call, "var", given(call, "var"));
  Expr *min = given_expr(call, "min"), *extent = given_expr(call, "extent");
  if (var && min && extent) analyzer_bind(call->analyzer->analyzer, var, min, extent);
}

static void assume(AskCall *call) {
  Expr *condition = given_expr(call, "condition");
  answer_bound(call, "mark", analyzer_mark(call->analyzer->analyzer));
  if (condition) analyzer_assume(call->analyzer->analyzer, condition);
}

static void forget(AskCall *call) {
  int64_t mark = json_integer_value(given(call, "mark"));
  if (mark < 0 || mark > analyzer_mark(call->analyzer->analyzer))
    field_error(call->call.context, "mark", "is none of this analyzer's");
  else
    analyzer_reset(call->analyzer->analyzer, (int)mark);
}

// The variables of the question, which their ranges bind, and one for each index range of several
// indices, which is added to the first index.
static VarRange *running_vars(AskCall *call, Expr **indices, int rank, int *count) {
  Context *context = call->call.context;
  int extent_count, given_count;
  VarRange *given_vars = given_ranges(call, "vars", &given_count);
  Expr **extents = given_exprs(call, "extents", &extent_count);
  if (extent_count != rank) field_error(context, "extents", "are not as many as the indices");
  VarRange *vars = arena_array(&context->arena, VarRange, given_count + rank);
  memcpy(vars, given_vars, sizeof *vars * (size_t)given_count);
  *count = given_count;
  for (int i = 0; i < rank && !context->error_count; i++) {
    if (expr_is_int(extents[i], 1)) continue;
    DType type = indices[i]->type;
    Expr *var = expr_var(context, "r", type), *extent = expr_cast(context, type, extents[i]);
    vars[(*count)++] = (VarRange){var, expr_int(context, type, 0), extent};
    indices[i] = expr_add(context, indices[i], var);
  }
  return vars;
}

static void answer_boxes(AskCall *call, Expr *const *min, Expr *const *extent, int rank) {
  Context *context = call->call.context;
  answer_field(call, "boxes");
  for (int i = 0; i < rank; i++) {
    text_puts(&call->text, i ? ", " : "[");
    if (!min[i] || !extent[i]) {
      text_puts(&call->text, "null");
      continue;
    }
    Expr *end = expr_add(context, min[i], extent[i]), *one = expr_int(context, end->type, 1);
    Expr *last = analyzer_simplify(call->analyzer->analyzer, expr_sub(context, end, one));
    int from = nodes_add(call->nodes, min[i]), to = nodes_add(call->nodes, last);
    text_printf(&call->text, "[{\"node\": %d}, {\"node\": %d}]", from, to);
  }
  text_puts(&call->text, rank ? "]" : "[]");
}

static void regions(AskCall *call) {
  Analyzer *analyzer = call->analyzer->analyzer;
  Context *context = call->call.context;
  int rank, count;
  bool exact;
  Expr **indices = given_exprs(call, "indices", &rank), *condition = given_expr(call, "condition");
  VarRange *vars = running_vars(call, indices, rank, &count);
  if (context->error_count) return;
  Expr **min = arena_array(&context->arena, Expr *, rank);
  Expr **extent = arena_array(&context->arena, Expr *, rank);
  int mark = analyzer_mark(analyzer);
  for (int i = 0; i < count; i++) analyzer_bind(analyzer, vars[i].var, vars[i].min, vars[i].extent);
  analyzer_assume(analyzer, condition);
  index_region_of_bound(analyzer, indices, rank, vars, count, min, extent, &exact);
  analyzer_reset(analyzer, mark);
  answer_boxes(call, min, extent, rank);
  answer_truth(call, "exact", exact);
}

static void answer_index(AskCall *call, const IterIndex *index) {
  text_printf(&call->text, "{\"base\": {\"node\": %d}", nodes_add(call->nodes, index->base));
  answer_expr(call, "scale", index->scale);
  answer_expr(call, "extent", index->extent);
  answer_field(call, "digits");
  for (int i = 0; i < index->digit_count; i++) {
    const IterDigit *digit = &index->digits[i];
    text_printf(&call->text, "%s{\"cut\": %lld", i ? ", " : "[", (long long)digit->cut);
    answer_expr(call, "source", digit->source);
    answer_expr(call, "source_extent", digit->source_extent);
    answer_expr(call, "extent", digit->extent);
    answer_expr(call, "scale", digit->scale);
    text_puts(&call->text, "}");
  }
  text_puts(&call->text, index->digit_count ? "]}" : "[]}");
}

static void iter_map(AskCall *call) {
  Context *context = call->call.context;
  IterMapQuestion question = {.predicate = given_expr(call, "condition")};
  question.indices = given_exprs(call, "indices", &question.count);
  question.loops = given_ranges(call, "vars", &question.loop_count);
  question.level = (IterMapLevel)json_integer_value(given(call, "level"));
  if (context->error_count) return;
  IterIndex *found = arena_array(&context->arena, IterIndex, question.count);
  const char *why = iter_map_find(call->analyzer->analyzer, &question, found);
  answer_field(call, "why");
  text_printf(&call->text, why ? "\"%s\"" : "null", why);
  answer_field(call, "map");
  text_puts(&call->text, "[");
  for (int i = 0; !why && i < question.count; i++) {
    if (i) text_puts(&call->text, ", ");
    answer_index(call, &found[i]);
  }
  text_puts(&call->text, "]");
}

// expr == rest + Σ coefficients[i] * vars[i]; rest is null where it is not.
static void linear(AskCall *call) {
  int count;
  Expr *e = given_expr(call, "expr"), *rest;
  Expr **vars = given_exprs(call, "vars", &count);
  Context *context = call->call.context;
  if (!e || context->error_count) return;
  int64_t *coefficients = arena_array(&context->arena, int64_t, count);
  if (!linear_form(context, e, vars, count, coefficients, &rest)) rest = NULL;
  answer_expr(call, "rest", rest);
  answer_field(call, "coefficients");
  for (int i = 0; i < count; i++)
    text_printf(&call->text, "%s%lld", i ? ", " : "[", (long long)coefficients[i]);
  text_puts(&call->text, count ? "]" : "[]");
}

// ---- Asking -------------------------------------------------------------------------------------

static const struct {
  const char *name;
  void (*answer)(AskCall *call);
} questions[] = {
    {"simplify", simplify},       {"const_int_bound", const_int_bound},
    {"modular_set", modular_set}, {"prove", prove},
    {"prove_equal", prove_equal}, {"bind_value", bind_value},
    {"bind_range", bind_range},   {"assume", assume},
    {"forget", forget},           {"regions", regions},
    {"linear", linear},           {"iter_map", iter_map},
};

static void answer(AskCall *call) {
  Context *context = call->call.context;
  const char *op = json_string_value(given(call, "op"));
  for (int i = 0; i < COUNT_OF(questions); i++) {
    if (!op || strcmp(questions[i].name, op) != 0) continue;
    call->made = nodes_read(context, given(call, "nodes"), &call->analyzer->keys);
    call->nodes = nodes_new(context, &call->analyzer->keys);
    call->text = text_new(&context->scratch);
    if (!context->error_count) questions[i].answer(call);
    return;
  }
  field_error(context, "op", "is '%s', which is no question", op ? op : "");
}

static void ask(void *arg) {
  AskCall *call = arg;
  Context *context = call->call.context;
  json_error_t error;
  call->object = json_loads(call->question, 0, &error);
  if (!call->object) {
    field_error(context, "question", "line %d: %s", error.line, error.text);
    return;
  }
  answer(call);
  if (context->error_count) return;
  Text out = text_new(&context->scratch);
  text_puts(&out, "{\"nodes\": ");
  nodes_print(call->nodes, &out);
  text_printf(&out, "%s}\n", text_string(&call->text));
  call->answer = module_owned_text(context, &out);
  call->call.done = call->answer != NULL;
}

int pleat_analyzer_ask(PleatAnalyzer *analyzer, const char *question, char **answer,
                       PleatMessages **messages) {
  if (!answer) return messages_refuse("answer", "is NULL, expected where to store it", messages);
  *answer = NULL;
  if (!analyzer) return messages_refuse("analyzer", "is NULL, expected an analyzer", messages);
  if (!question) return messages_refuse("question", "is NULL, expected an object", messages);
  AskCall call = {
      .call = {.on = analyzer->module, .body = ask}, .analyzer = analyzer, .question = question};
  int status = module_call_run(&call, NULL, messages);
  json_decref(call.object);
  *answer = call.answer;
  return status;
}
