// SPDX-License-Identifier: Apache-2.0
// Imports one ONNX node: finds its row, checks its attributes and inputs, and adds operators of
// src/graph. An operator with a row in operators.c is imported by that row's function; an operator
// that only the operator table names is added directly.
#include "base/caller.h"
#include "frontend/onnx/import.h"

#include "graph/graph.h"
#include "interp/interp.h"

SourcePos importer_pos(const Importer *importer, Str node) {
  return (SourcePos){.file = importer->file->source, .node = node && *node ? node : NULL};
}

bool import_refuse(Import *import, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *message = arena_vprintf(&import->context->arena, format, args);
  va_end(args);
  const char *inputs = values_text(import->context, import->inputs, import->input_count);
  return diag_error_as(import->context, DIAG_OPERATOR, import->pos, "%s: %s%s%s",
                       import->user_op, message, *inputs ? "\nit reads " : "", inputs);
}

// ---- Inputs -----------------------------------------------------------------------------------

Value *import_input(const Import *import, int i) {
  return i < import->input_count ? import->inputs[i] : NULL;
}

bool import_wants_output(const Import *import, int i) {
  return i < import->node->output.count && *import->node->output.items[i];
}

int64_t import_dim(const Value *value, int axis) {
  int64_t extent = -1;
  expr_as_int(value->shape[axis], &extent);
  return extent;
}

bool import_same_form(const Value *a, const Value *b) {
  bool same = dtype_equal(a->type, b->type) && a->rank == b->rank && !value_is_list(a);
  for (int i = 0; same && i < a->rank; i++) same = import_dim(a, i) == import_dim(b, i);
  return same;
}

bool import_axis(Import *import, int64_t *axis, int rank) {
  if (*axis < -rank || *axis >= rank)
    return import_refuse(import, "axis %lld is not an axis of a tensor of rank %d",
                         (long long)*axis, rank);
  if (*axis < 0) *axis += rank;
  return true;
}

int64_t import_opset(const Import *import) {
  return import->importer->scope->opset;
}

ConstData *import_known(Import *import, int i) {
  Value *value = import_input(import, i);
  return value ? import_follow(import, value) : NULL;
}

// import_sources for a value that is refused because it is not known.
static const char *late_sources(Import *import, Value *value) {
  const char *sources = import_sources(import, value);
  import->importer->known_late |= sources != NULL;
  return sources;
}

ConstData *import_constant(Import *import, int i) {
  Value *value = import_input(import, i);
  if (!value) return NULL;
  ConstData *data = import_known(import, i);
  if (data) return data;
  const char *sources = late_sources(import, value);
  import_refuse(import,
                sources ? "its input '%s' must be known when the model is compiled: make what it "
                          "follows from initializers, or give their values with %s\n"
                          "it follows from %s"
                        : "its input '%s' must be known when the model is compiled: make it an "
                          "initializer, or give its value with %s",
                value->name, caller_option(import->context, CALLER_KNOWN), sources);
  return NULL;
}

// Many nodes of one model may have this message, so its text is the same for all, and it is printed
// once.
ConstData *import_counted(Import *import, int i) {
  Value *value = import_input(import, i);
  ConstData *data = import_known(import, i);
  if (data || !value) return data;
  const char *sources = late_sources(import, value);
  diag_error(import->context, import->pos,
             "%s: how many elements it gives must be known when the model is compiled: give the "
             "values from which that follows with %s, or end the model before it\n"
             "it follows from %s",
             import->user_op, caller_option(import->context, CALLER_KNOWN),
             sources ? sources : values_text(import->context, &value, 1));
  return NULL;
}

ConstData *import_constant_scalar(Import *import, int i) {
  ConstData *data = import_constant(import, i);
  if (data && const_count(data) != 1)
    return import_refuse(import, "its input %d must be one number", i), NULL;
  return data;
}

int64_t const_count(const ConstData *data) {
  return (int64_t)data->bytes / dtype_bytes(data->type);
}

int64_t const_int(const ConstData *data, int64_t i) {
  return number_load_int(data->type, (const char *)data->data + i * dtype_bytes(data->type));
}

double const_number(const ConstData *data, int64_t i) {
  return number_load(data->type, (const char *)data->data + i * dtype_bytes(data->type));
}

bool import_constant_ints(Import *import, int i, IntArray *values) {
  ConstData *data = import_constant(import, i);
  *values = (IntArray){0};
  if (!data) return false;
  if (!dtype_is_int(data->type) || data->rank > 1)
    return import_refuse(import, "its input '%s' must be a list of integers",
                         import_input(import, i)->name);
  for (int64_t k = 0; k < const_count(data); k++)
    array_push(&import->context->arena, values, const_int(data, k));
  return true;
}

bool import_list(Import *import, int i, const char *attribute, IntArray *values, bool *present) {
  *present = true;
  if (import_input(import, i)) return import_constant_ints(import, i, values);
  *present = import_has(import, attribute);
  *values = import_ints(import, attribute);
  return true;
}

// ---- Building ---------------------------------------------------------------------------------

Node *import_begin(Import *import, const char *op, Value *const *inputs, int count) {
  Str name =
      import->op_count++ ? str_format(import->context, "%s.%s", import->name, op) : import->name;
  Node *node = node_new(import->context, NODE_OP, op, name, inputs, count, 1);
  node->pos = import->pos;
  node->user_op = import->user_op;
  return node;
}

void import_set_ints(Import *import, Node *node, const char *key, IntArray values) {
  node_set_ints(import->context, node, key, values.items, values.count);
}

Value *import_add(Import *import, Node *node) {
  if (!importer_infer(import->importer, node)) return NULL;
  for (int i = 0; i < node->output_count; i++) {
    node->outputs[i]->pos = import->pos;
    if (!importer_size_ok(import->importer, node->outputs[i])) return NULL;
  }
  if (import_compute(import, node)) return node->outputs[0];
  array_push(&import->context->arena, &import->importer->graph->nodes, node);
  return node->outputs[0];
}

Value *import_op(Import *import, const char *op, Value *a, Value *b) {
  if (!a) return NULL;
  return import_add(import, import_begin(import, op, (Value *[]){a, b}, b ? 2 : 1));
}

Value *import_const(Import *import, DType type, const int64_t *shape, int rank, const void *data) {
  Arena *arena = &import->context->arena;
  ConstData *constant = arena_new(arena, ConstData);
  size_t bytes = (size_t)dtype_bytes(type);
  for (int i = 0; i < rank; i++) bytes *= (size_t)shape[i];
  *constant = (ConstData){import->name, type, rank, arena_array(arena, int64_t, rank), data, bytes};
  for (int i = 0; i < rank; i++) constant->shape[i] = shape[i];
  return value_constant(import->context, constant);
}

Value *import_filled(Import *import, DType type, const void *element, const int64_t *shape,
                     int rank) {
  int64_t size = dtype_bytes(type), bytes = size;
  for (int i = 0; i < rank; i++)
    if (shape[i] < 0 || !mul_fits(bytes, shape[i], &bytes) || bytes > MOST_FILLED_BYTES) {
      import_refuse(import,
                    "a constant of more than %d bytes, or a negative extent, is not supported",
                    MOST_FILLED_BYTES);
      return NULL;
    }
  char *data = arena_alloc(&import->context->arena, (size_t)bytes + 1);
  for (int64_t at = 0; element && at < bytes; at += size) memcpy(data + at, element, (size_t)size);
  return import_const(import, type, shape, rank, data);
}

Value *import_scalar(Import *import, const Value *like, double value) {
  void *data = arena_alloc(&import->context->arena, 8);
  number_store(like->type, data, value);
  return import_const(import, like->type, NULL, 0, data);
}

Value *import_cast(Import *import, Value *value, DType type) {
  if (!value || dtype_equal(value->type, type)) return value;
  Node *node = import_begin(import, "astype", &value, 1);
  node_set_string(import->context, node, "dtype", dtype_name(import->context, type));
  return import_add(import, node);
}

Value *import_reshape(Import *import, Value *value, const int64_t *shape, int rank) {
  if (!value) return NULL;
  if (value->data) return import_const(import, value->type, shape, rank, value->data->data);
  Node *node = import_begin(import, "reshape", &value, 1);
  node_set_ints(import->context, node, "shape", shape, rank);
  node_set_int(import->context, node, "allow_zero", 1);
  return import_add(import, node);
}

void import_result(Import *import, int i, Value *value) {
  Importer *importer = import->importer;
  if (!import_wants_output(import, i)) return;
  Str name = import->node->output.items[i];
  if (value)
    scope_give(importer, name, value);
  else
    scope_poison(importer, name);
}

Value *import_element(Import *import, Value *value, int axis, int64_t at) {
  if (!value) return NULL;
  int64_t *place = arena_new(&import->context->arena, int64_t);
  *place = at;
  Value *inputs[] = {value, import_const(import, DTYPE_INT64, NULL, 0, place)};
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", axis);
  return import_add(import, node);
}

Value *import_concat(Import *import, Value *const *values, int count, int axis) {
  if (count == 1) return values[0];
  Node *node = import_begin(import, "concat", values, count);
  node_set_int(import->context, node, "axis", axis);
  return import_add(import, node);
}

// Concatenates values in groups of groups, so that each kernel has few operands and most kernels
// are equal.
static Value *concatenated_in_groups(Import *import, Value **values, int count, int axis) {
  enum { GROUP = 16 };
  while (count > 1) {
    int groups = 0;
    for (int i = 0; i < count; i += GROUP) {
      Value *group = import_concat(import, values + i, MIN_OF(GROUP, count - i), axis);
      if (!group) return NULL;
      values[groups++] = group;
    }
    count = groups;
  }
  return values[0];
}

Value *import_stack(Import *import, Value *const *values, int count, int axis) {
  Value **parts = arena_array(&import->context->arena, Value *, count);
  for (int i = 0; i < count; i++) {
    int64_t shape[TE_MAX_RANK];
    int rank = values[i] ? values[i]->rank + 1 : 0;
    if (!values[i]) return NULL;
    if (rank > TE_MAX_RANK) {
      import_refuse(import, "its result would have rank %d", rank);
      return NULL;
    }
    for (int d = 0; d < rank; d++)
      shape[d] = d == axis ? 1 : import_dim(values[i], d < axis ? d : d - 1);
    if (!(parts[i] = import_reshape(import, values[i], shape, rank))) return NULL;
  }
  return concatenated_in_groups(import, parts, count, axis);
}

// ---- One node ---------------------------------------------------------------------------------

static const char *advice(const OnnxNode *node) {
  static const char text[] =
      "text cannot be computed with; make numbers of it outside of the model";
  static const char random[] = "it is random: take its numbers as an input";
  static const char *const rows[][2] = {
      {"String", text},
      {"RegexFullMatch", text},
      {"LabelEncoder", "put Gather or Where on numbers in its place"},
      {"ZipMap", "convert the model without it: options={'zipmap': False} in skl2onnx, "
                 "zipmap=False in onnxmltools"},
      {"ImageDecoder", "decode images outside of the model"},
      {"NonMaxSuppression", "how many boxes it gives is known only when it runs: end the model "
                            "before it, with boxes and scores as outputs"},
      {"Random", random},
      {"Bernoulli", random},
      {"Multinomial", random},
      {"Gradient", "export the model with its derivatives written out"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (strncmp(node->op_type, rows[i][0], strlen(rows[i][0])) == 0) return rows[i][1];
  return "write it with operators that are, or compute it outside the model";
}

static bool is_onnx_domain(Str domain) {
  return !*domain || strcmp(domain, "ai.onnx") == 0;
}

// Turns "alpha fmod" into "alpha:float fmod:int".
static const char *attributes_of(Context *context, const char *names) {
  static const char *const others[] = {
      "approximate:string",  "axis:int",         "batch_dims:int", "detect_negative:int",
      "detect_positive:int", "direction:string", "fmod:int"};
  Text text = text_new(&context->arena);
  for (const char *p = names ? names : ""; *p; p += strcspn(p, " "), p += *p == ' ') {
    size_t n = strcspn(p, " ");
    const char *kind = ":float";
    for (int i = 0; i < COUNT_OF(others); i++)
      if (strncmp(others[i], p, n) == 0 && others[i][n] == ':') kind = others[i] + n;
    text_printf(&text, "%s%.*s%s", text.size ? " " : "", (int)n, p, kind);
  }
  return text_string(&text);
}

// The row of an operator of the standard: its own, or one made from the operator table's row. NULL:
// there is none.
static const OnnxRow *standard_row(Context *context, const char *name) {
  const OnnxRow *row = onnx_row_find("", name);
  const OpRow *op = row ? NULL : op_find_onnx(name);
  if (!op) return row;
  OnnxRow *made = arena_new(&context->arena, OnnxRow);
  *made =
      (OnnxRow){name, op->min_inputs, op->max_inputs, attributes_of(context, op->attrs), NULL};
  return made;
}

// The node's row; NULL with a diagnostic when there is none.
static const OnnxRow *row_of(Import *import) {
  const OnnxNode *node = import->node;
  bool standard = is_onnx_domain(node->domain);
  if (!standard && !onnx_domain_has_rows(node->domain)) {
    import_refuse(
        import,
        "operators of domain '%s' are not supported: write it with standard ones, or give "
        "a function for '%s::%s' with %s",
        node->domain, node->domain, node->op_type,
        caller_option(import->context, CALLER_OPERATORS));
    return NULL;
  }
  if (standard && !import_opset(import)) {
    import_refuse(import, "the model does not say which opset it uses");
    return NULL;
  }
  const OnnxRow *row = standard ? standard_row(import->context, node->op_type)
                                : onnx_row_find(node->domain, node->op_type);
  if (!row) {
    import->importer->known_late |= strcmp(node->op_type, "NonMaxSuppression") == 0;
    import_refuse(import, "not supported; %s", advice(node));
  }
  return row;
}

// Collects the inputs. False when one of them failed, or their number is wrong.
static bool collect_inputs(Import *import) {
  const OnnxRow *row = import->row;
  const OnnxNames *names = &import->node->input;
  int count = names->count;
  while (count > 0 && !*names->items[count - 1]) count--;
  if (count < row->least_inputs || (row->most_inputs >= 0 && count > row->most_inputs))
    return import_refuse(import, "has %d inputs, expected %d%s%s", count, row->least_inputs,
                         row->most_inputs == row->least_inputs ? "" : " to ",
                         row->most_inputs == row->least_inputs ? ""
                         : row->most_inputs < 0
                             ? "any number"
                             : arena_printf(&import->context->arena, "%d", row->most_inputs));
  import->input_count = count;
  import->inputs = arena_array(&import->context->arena, Value *, count);
  bool known = true;
  for (int i = 0; i < count; i++) {
    import->inputs[i] = scope_value(import->importer->scope, names->items[i]);
    if (i < row->least_inputs && !*names->items[i])
      return import_refuse(import, "its input %d is absent", i);
    if (!row->lists && import->inputs[i] && value_is_list(import->inputs[i]))
      return import_refuse(import,
                           "its input '%s' is a sequence or an optional value, expected a "
                           "tensor",
                           names->items[i]);
    known &= import->inputs[i] || !*names->items[i];
  }
  return known;
}

static void set_attribute(Import *import, Node *node, const OnnxAttribute *attribute) {
  Context *context = import->context;
  if (attribute->type == onnx_AttributeProto_AttributeType_INT)
    node_set_int(context, node, attribute->name, attribute->i);
  else if (attribute->type == onnx_AttributeProto_AttributeType_STRING)
    node_set_string(context, node, attribute->name, import_text(import, attribute->name, ""));
  else
    node_set_float(context, node, attribute->name, (double)attribute->f);
}

// Adds an operator that means the same in ONNX and in src/graph, with its attributes.
static void import_as_it_is(Import *import) {
  const OpRow *row = op_find_onnx(import->node->op_type);
  Node *node = import_begin(import, row->name, import->inputs, import->input_count);
  for (int i = 0; i < import->node->attribute.count; i++)
    if (import_declares(import->row, import->node->attribute.items[i].name))
      set_attribute(import, node, &import->node->attribute.items[i]);
  import_result(import, 0, import_add(import, node));
}

static void import_by_row(Import *import) {
  import->row->import ? import->row->import(import) : import_as_it_is(import);
}

void import_made(Import *import, OnnxNode *node, const char *op, Value **inputs, int count) {
  Import inner = *import;
  node->op_type = str_intern(import->context, op);
  inner.node = node;
  inner.row = standard_row(import->context, op);
  inner.inputs = inputs;
  inner.input_count = count;
  import_by_row(&inner);
  import->op_count = inner.op_count;
}

Value *import_through(Import *import, const char *op, Value **inputs, int count) {
  Str name = str_format(import->context, "%s.%s", onnx_node_name(import->node), op);
  OnnxNode node = *import->node;
  for (int i = 0; i < count; i++)
    if (!inputs[i]) return NULL;
  node.output = (OnnxNames){.items = &name, .count = 1};
  import_made(import, &node, op, inputs, count);
  return scope_value(import->importer->scope, name);
}

void import_instead(Import *import, const char *op, Value **inputs, int count) {
  OnnxNode node = *import->node;
  import_made(import, &node, op, inputs, count);
}

static void poison_outputs(Import *import) {
  for (int i = 0; i < import->node->output.count; i++) {
    Str name = import->node->output.items[i];
    if (*name && !map_contains(&import->importer->scope->values, name))
      scope_poison(import->importer, name);
  }
}

Str importer_name(const Importer *importer, const OnnxNode *node) {
  return str_format(importer->context, "%s%s", importer->scope->path, onnx_node_name(node));
}

// Checks attributes and inputs after their conversion to the newer opsets.
static bool check_node(Import *import) {
  const OnnxNode *given = import->node;
  import->node = older_node(import, given);
  return import_check_attributes(import) && collect_inputs(import) && older_inputs(import, given);
}

void importer_node(Importer *importer, const OnnxNode *given) {
  const OnnxNode *node = function_node(importer, given);
  const OnnxFunction *function = importer_function(importer, node);
  Str name = importer_name(importer, node);
  Import *import = arena_new(&importer->context->arena, Import);
  *import = (Import){.importer = importer,
                     .context = importer->context,
                     .node = node,
                     .user_op = node->op_type,
                     .pos = importer_pos(importer, name),
                     .name = name};
  map_put(&importer->result->operators, name, node->op_type);
  const OpaqueFunction *outside = importer_outside(importer, node);
  import->row = function || outside ? NULL : row_of(import);
  if (outside)
    import_outside(import, outside);
  else if (function)
    import_call(import, function);
  else if (import->row && check_node(import) && !import_fold(import))
    import_by_row(import);
  poison_outputs(import);
}
