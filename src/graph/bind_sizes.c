// SPDX-License-Identifier: Apache-2.0
// Gives the symbolic sizes of a graph function their values. A size is given by its own name or by
// the shape of a parameter; all must agree. Then the sizes are replaced in all shapes and
// attributes, so that the function is static.
#include "graph/graph.h"

#include <stdlib.h>

#include "base/caller.h"

typedef struct KnownSize {
  Expr *var;
  int64_t value;
  const char *source; // the text or the array that gives it; NULL: nothing does
  bool is_named;      // it is given by its name
} KnownSize;

typedef struct SizeBinding {
  Context *context;
  const GraphFunc *graph;
  Array(KnownSize) sizes; // in the order of the parameters
} SizeBinding;

static bool refuse(const SizeBinding *b, const char *format, ...) PRINTF_LIKE(2, 3);
static bool refuse(const SizeBinding *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&b->context->lasting, format, args);
  va_end(args);
  return diag_error_as(b->context, DIAG_OPTION, (SourcePos){0}, "%s", text);
}

// ---- The sizes of the function ------------------------------------------------------------------

static KnownSize *find_size(SizeBinding *b, const Expr *var) {
  for (int i = 0; i < b->sizes.count; i++)
    if (b->sizes.items[i].var == var) return &b->sizes.items[i];
  return NULL;
}

static bool collect_size(Visitor *visitor, Expr *e) {
  SizeBinding *b = visitor->env;
  if (e->op == EXPR_VAR && !find_size(b, e))
    array_push(&b->context->arena, &b->sizes, ((KnownSize){.var = e}));
  return true;
}

static void collect_sizes(SizeBinding *b) {
  Visitor visitor = {.env = b, .enter_expr = collect_size};
  for (int i = 0; i < b->graph->param_count; i++)
    for (int d = 0; d < b->graph->params[i]->rank; d++)
      visit_expr(&visitor, b->graph->params[i]->shape[d]);
  for (int i = 0; i < b->graph->sizes.count; i++) visit_expr(&visitor, b->graph->sizes.items[i]);
}

static KnownSize *size_named(SizeBinding *b, const char *name) {
  for (int i = 0; i < b->sizes.count; i++)
    if (strcmp(b->sizes.items[i].var->as.var->name, name) == 0) return &b->sizes.items[i];
  return NULL;
}

static Value *param_named(const SizeBinding *b, const char *name) {
  for (int i = 0; i < b->graph->param_count; i++)
    if (strcmp(b->graph->params[i]->name, name) == 0) return b->graph->params[i];
  return NULL;
}

GraphTerm *const *graph_size_items(const GraphTerm *info, int *count) {
  GraphTerm *item = info && info->count == 1 ? info->items[0] : NULL;
  bool is_list = item && (item->kind == TERM_LIST || item->kind == TERM_TUPLE);
  *count = 1;
  if (item && term_is(info, "R.Prim") && item->kind == TERM_EXPR && item->e->op == EXPR_VAR)
    return info->items;
  if (!is_list || !term_is(info, "R.Shape")) return NULL;
  *count = item->count;
  return item->items;
}

// The parameter whose shape this is. The sizes of a parameter that is one have names of their own.
static Value *param_given(const SizeBinding *b, const GivenSizes *given) {
  int count;
  Value *param = given->is_size ? NULL : param_named(b, given->name);
  return param && !given->is_array && graph_size_items(param->info, &count) ? NULL : param;
}

// ---- What is given ------------------------------------------------------------------------------

static bool set_size(SizeBinding *b, KnownSize *size, int64_t value, const char *source) {
  const char *name = size->var->as.var->name;
  if (size->source && size->value != value)
    return refuse(b, "size '%s' is %lld by %s and %lld by %s", name, (long long)size->value,
                  size->source, (long long)value, source);
  size->value = value;
  size->source = source;
  return true;
}

static bool no_extent(const SizeBinding *b, const KnownSize *size, int64_t value,
                      const char *source) {
  return refuse(b, "%s: size '%s' would be %lld", source, size->var->as.var->name,
                (long long)value);
}

// Takes the sizes that the array of a parameter holds; check_shape refuses one of another shape.
static bool take_contents(SizeBinding *b, const Value *param, const GivenSizes *given) {
  int count;
  GraphTerm *const *items = given->contents ? graph_size_items(param->info, &count) : NULL;
  if (items && (given->rank != param->rank || (given->rank && given->shape[0] != count)))
    return true;
  for (int i = 0; items && i < count; i++) {
    KnownSize *size = find_size(b, items[i]->e);
    if (!size) continue;
    if (given->contents[i] < 0 && term_is(param->info, "R.Shape"))
      return no_extent(b, size, given->contents[i], given->source);
    if (!set_size(b, size, given->contents[i], given->source)) return false;
  }
  return true;
}

// Takes the sizes that are whole extents of the parameter; check_shape looks at the others.
static bool take_shape(SizeBinding *b, Value *param, const GivenSizes *given) {
  bool known = param->rank >= 0;
  if (!known) { // nothing states its shape
    param->rank = given->rank;
    param->shape = arena_array(&b->context->arena, Expr *, given->rank);
    param->info = NULL;
  }
  for (int d = 0; !known && d < given->rank; d++) {
    if (given->shape[d] == GIVEN_OPEN)
      return refuse(b, "%s: '%s' needs all of its extents", given->source, param->name);
    param->shape[d] = expr_index(b->context, given->shape[d]);
  }
  if (param->rank >= 0 && param->rank != given->rank)
    return refuse(b, "%s: '%s' is %s, which has %d axes and not %d", given->source, param->name,
                  value_type_text(b->context, param), param->rank, given->rank);
  for (int d = 0; d < param->rank; d++) {
    KnownSize *size = find_size(b, param->shape[d]);
    if (size && given->shape[d] != GIVEN_OPEN && !set_size(b, size, given->shape[d], given->source))
      return false;
  }
  return true;
}

// A size that a cast or an operator names, and that no parameter has.
static KnownSize *size_of_body(SizeBinding *b, const char *name) {
  SizeBinding body = {.context = b->context, .graph = b->graph};
  Visitor visitor = {.env = &body, .enter_expr = collect_size};
  for (int i = 0; i < b->graph->nodes.count; i++) {
    const Node *node = b->graph->nodes.items[i];
    const Value *value = node->outputs[0];
    for (int d = 0; d < value->rank; d++) visit_expr(&visitor, value->shape[d]);
    for (int k = 0; k < node->attrs.count; k++) visit_expr(&visitor, node->attrs.items[k].value);
  }
  const KnownSize *found = size_named(&body, name);
  if (!found) return NULL;
  array_push(&b->context->arena, &b->sizes, *found);
  return &array_last(&b->sizes);
}

static bool no_such_name(SizeBinding *b, const GivenSizes *given) {
  Array(const char *) names = {0};
  for (int i = 0; i < b->sizes.count; i++)
    array_push(&b->context->arena, &names, b->sizes.items[i].var->as.var->name);
  for (int i = 0; i < b->graph->param_count; i++)
    array_push(&b->context->arena, &names, b->graph->params[i]->name);
  const char *nearest = suggestion_of(&b->context->arena, given->name, names.items, names.count);
  return refuse(b, "%s: '%s' has no size and no parameter of this name%s", given->source,
                b->graph->name, nearest);
}

static bool take(SizeBinding *b, const GivenSizes *given) {
  KnownSize *size = size_named(b, given->name);
  Value *param = param_given(b, given);
  if (param) return take_shape(b, param, given) && take_contents(b, param, given);
  if (!size) size = size_of_body(b, given->name);
  if (!size) return given->is_array || no_such_name(b, given);
  if (given->rank != 1) return refuse(b, "%s: a size is one number", given->source);
  size->is_named = true;
  return set_size(b, size, given->shape[0], given->source);
}

// ---- Replacing ----------------------------------------------------------------------------------

static void replace_all(Context *context, const Map *values, Expr **items, int count) {
  for (int i = 0; i < count; i++) items[i] = substitute_expr(context, items[i], values);
}

// An extent that is known has the type of other extents, whatever that of its size was: the proofs
// about loops and the vectors of indices are those of one type.
static void replace_in_value(Context *context, const Map *values, Value *value) {
  if (!value || value->rank <= 0) return;
  replace_all(context, values, value->shape, value->rank);
  for (int d = 0; d < value->rank; d++) {
    int64_t extent;
    if (expr_as_int(value->shape[d], &extent)) value->shape[d] = expr_index(context, extent);
  }
}

static Map given_values(SizeBinding *b) {
  Map values = map_new(&b->context->arena);
  for (int i = 0; i < b->sizes.count; i++) {
    const KnownSize *size = &b->sizes.items[i];
    if (size->source)
      map_put(&values, size->var, expr_int(b->context, size->var->type, size->value));
  }
  return values;
}

// Is a size that is less than 0 the extent of a tensor? A number that only operators use may be.
static bool check_extents(const SizeBinding *b, const Value *value) {
  for (int i = 0; value && i < b->sizes.count; i++)
    for (int d = 0; b->sizes.items[i].value < 0 && d < value->rank; d++) {
      const KnownSize *size = &b->sizes.items[i];
      if (value->shape[d] == size->var) return no_extent(b, size, size->value, size->source);
    }
  return true;
}

static bool check_all_extents(const SizeBinding *b) {
  const GraphFunc *graph = b->graph;
  for (int i = 0; i < graph->param_count; i++)
    if (!check_extents(b, graph->params[i])) return false;
  for (int i = 0; i < graph->nodes.count; i++)
    for (int k = 0; k < graph->nodes.items[i]->output_count; k++)
      if (!check_extents(b, graph->nodes.items[i]->outputs[k])) return false;
  return true;
}

static void replace_in_graph(SizeBinding *b, Map values) {
  Context *context = b->context;
  const GraphFunc *graph = b->graph;
  replace_all(context, &values, graph->sizes.items, graph->sizes.count);
  for (int i = 0; i < graph->assertions.count; i++)
    replace_all(context, &values, &graph->assertions.items[i].condition, 1);
  for (int i = 0; i < graph->param_count; i++) replace_in_value(context, &values, graph->params[i]);
  for (int i = 0; i < graph->nodes.count; i++) {
    Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->output_count; k++)
      replace_in_value(context, &values, node->outputs[k]);
    for (int k = 0; k < node->attrs.count; k++)
      replace_all(context, &values, &node->attrs.items[k].value, 1);
  }
}

// An extent that follows from the sizes that are given; false when it does not.
static bool extent_given(SizeBinding *b, const Map *values, Expr *extent, int64_t *out) {
  return expr_as_int(substitute_expr(b->context, extent, values), out) && *out >= 0;
}

// R.match_cast of a parameter states its extents, which may follow from sizes that are given.
static bool take_cast(SizeBinding *b, const Map *values, const Value *result, Value *param) {
  const char *source = str_format(b->context, "the cast to '%s'", result->name);
  int64_t extents[TE_MAX_RANK];
  bool whole = result->rank >= 0;
  for (int d = 0; d < result->rank; d++) {
    bool known = extent_given(b, values, result->shape[d], &extents[d]);
    KnownSize *size = known && d < param->rank ? find_size(b, param->shape[d]) : NULL;
    whole &= known;
    if (size && !size->source && !set_size(b, size, extents[d], source)) return false;
  }
  if (param->rank >= 0 || !whole) return true;
  return take_shape(b, param,
                    &(GivenSizes){.rank = result->rank, .shape = extents, .source = source});
}

static bool take_casts(SizeBinding *b) {
  Map values = given_values(b);
  for (int i = 0; i < b->graph->nodes.count; i++) {
    const Node *node = b->graph->nodes.items[i];
    bool casts = node->user_op && !strcmp(node->user_op, "match_cast") && node->input_count == 1;
    Value *param = casts ? param_named(b, node->inputs[0]->name) : NULL;
    if (param && param == node->inputs[0] && !take_cast(b, &values, node->outputs[0], param))
      return false;
  }
  return true;
}

// R.assert_op of a condition on sizes.
static bool check_assertions(SizeBinding *b) {
  for (int i = 0; i < b->graph->assertions.count; i++) {
    const GraphAssertion *a = &b->graph->assertions.items[i];
    int64_t holds;
    if (expr_as_int(a->condition, &holds) && !holds)
      return diag_error_as(b->context, DIAG_OPTION, a->pos,
                           "this assertion does not hold for the sizes that are given");
  }
  return true;
}

// The elements of a parameter that is a shape or a size; false where they are not all known.
static bool find_elements(SizeBinding *b, const Map *values, const Value *param,
                          int64_t *elements) {
  int count;
  GraphTerm *const *items = graph_size_items(param->info, &count);
  bool known = count <= TE_MAX_RANK;
  for (int i = 0; known && i < count; i++)
    known =
        items[i]->e && expr_as_int(substitute_expr(b->context, items[i]->e, values), &elements[i]);
  return known;
}

static ConstData *known_elements(Context *context, const Value *param, const int64_t *elements) {
  ConstData *data = arena_new(&context->arena, ConstData);
  int64_t count = 1;
  *data = (ConstData){.name = param->name, .type = DTYPE_INT64, .rank = param->rank};
  data->shape = arena_array(&context->arena, int64_t, param->rank);
  for (int d = 0; d < param->rank && expr_as_int(param->shape[d], &count); d++)
    data->shape[d] = count;
  data->bytes = (size_t)count * sizeof *elements;
  data->data = arena_copy(&context->arena, elements, data->bytes);
  return data;
}

static bool check_contents(SizeBinding *b, const Map *values, const GivenSizes *given) {
  const Value *param = param_given(b, given);
  int64_t elements[TE_MAX_RANK];
  int count;
  if (!param || !given->contents || !graph_size_items(param->info, &count) ||
      !find_elements(b, values, param, elements))
    return true;
  for (int i = 0; i < count; i++)
    if (elements[i] != given->contents[i])
      return refuse(b, "%s: element %d of '%s' is %lld and not %lld", given->source, i, param->name,
                    (long long)elements[i], (long long)given->contents[i]);
  return true;
}

static bool are_named(SizeBinding *b, const Value *param) {
  SizeBinding own = {.context = b->context, .graph = b->graph};
  Visitor visitor = {.env = &own, .enter_expr = collect_size};
  int count;
  GraphTerm *const *items = graph_size_items(param->info, &count);
  for (int i = 0; i < count; i++)
    if (items[i]->e) visit_expr(&visitor, items[i]->e);
  for (int i = 0; i < own.sizes.count; i++) {
    const KnownSize *size = find_size(b, own.sizes.items[i].var);
    if (!size || !size->is_named) return false;
  }
  return own.sizes.count > 0 || !count;
}

// Removes the parameters that are sizes given by their names, and finds the contents of others.
static void settle_size_params(SizeBinding *b, const Map *values, GraphFunc *graph) {
  PtrArray kept = {0};
  int count;
  for (int i = 0; i < graph->param_count; i++) {
    Value *param = graph->params[i];
    int64_t elements[TE_MAX_RANK];
    bool is_size = graph_size_items(param->info, &count) != NULL;
    if (is_size && are_named(b, param)) continue;
    if (is_size && find_elements(b, values, param, elements))
      param->known = known_elements(b->context, param, elements);
    array_push(&b->context->arena, &kept, param);
  }
  graph->params = (Value **)kept.items;
  graph->param_count = kept.count;
}

// Compares a given shape with the parameter's once the sizes are known.
static bool check_shape(SizeBinding *b, const GivenSizes *given) {
  const Value *param = param_given(b, given);
  for (int d = 0; param && d < param->rank; d++) {
    int64_t extent;
    if (given->shape[d] != GIVEN_OPEN && expr_as_int(param->shape[d], &extent) &&
        extent != given->shape[d])
      return refuse(b, "%s: axis %d of '%s' has extent %lld and not %lld", given->source, d,
                    param->name, (long long)extent, (long long)given->shape[d]);
  }
  return true;
}

bool graph_bind_sizes(Context *context, GraphFunc *graph, const GivenSizes *given, int count) {
  if (!graph_flatten(context, graph)) return false;
  SizeBinding b = {.context = context, .graph = graph};
  collect_sizes(&b);
  for (int i = 0; i < count; i++)
    if (!take(&b, &given[i])) return false;
  if (!take_casts(&b) || !check_all_extents(&b)) return false;
  Map values = given_values(&b);
  replace_in_graph(&b, values);
  for (int i = 0; i < count; i++)
    if (!check_shape(&b, &given[i]) || !check_contents(&b, &values, &given[i])) return false;
  settle_size_params(&b, &values, graph);
  return check_assertions(&b);
}

int graph_free_sizes(Context *context, const GraphFunc *graph, Str **names) {
  SizeBinding b = {.context = context, .graph = graph};
  collect_sizes(&b);
  *names = arena_array(&context->arena, Str, b.sizes.count);
  for (int i = 0; i < b.sizes.count; i++) (*names)[i] = b.sizes.items[i].var->as.var->name;
  return b.sizes.count;
}

// ---- Texts --------------------------------------------------------------------------------------

bool given_extents_read(Context *context, const char *text, IntArray *extents) {
  *extents = (IntArray){0};
  for (const char *s = text; *s;) {
    char *end = (char *)s + 1;
    int64_t extent = *s == '?' ? GIVEN_OPEN : strtoll(s, &end, 10);
    if (end == s || (extent < 0 && *s != '?') || (*end && (!strchr("x,", *end) || !end[1])))
      return false;
    array_push(&context->arena, extents, extent);
    s = *end ? end + 1 : end;
  }
  return true;
}

static bool no_size(Context *context, const char *text) {
  return diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                       "'%s' is not a size: write it as in %s", text,
                       caller_size(context, "n", 128));
}

bool given_size_read(Context *context, const char *text, Str *name, int64_t *value) {
  GivenSizes given;
  if (!given_sizes_read(context, text, true, &given)) return false;
  *name = given.name;
  *value = given.shape[0];
  return (*value >= 0 && *value <= 1 << 30) || no_size(context, text);
}

bool given_sizes_read(Context *context, const char *text, bool is_size, GivenSizes *given) {
  const char *equals = strchr(text, '=');
  IntArray extents;
  if (equals && given_extents_read(context, equals + 1, &extents) &&
      (!is_size || (extents.count == 1 && extents.items[0] != GIVEN_OPEN))) {
    *given = (GivenSizes){.name = str_intern_n(context, text, (size_t)(equals - text)),
                          .rank = extents.count,
                          .shape = extents.items,
                          .source = text,
                          .is_size = is_size};
    return true;
  }
  if (is_size) return no_size(context, text);
  return diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                       "'%s' is not a shape, such as x=1x3x224x224", text);
}
