// SPDX-License-Identifier: Apache-2.0
// Reads the texts of layout constraints (such as the options --desired-layout and --keep-layout)
// into PlanConstraints: layouts of operators, tensors that keep their layouts, layouts of inputs
// and outputs. Each text is a source file of its own, so that errors point into it.
#include <ctype.h>
#include <stdlib.h>

#include "driver/driver.h"

typedef struct ConstraintReading {
  Context *context;
  const GraphFunc *graph;
  const ConstraintTexts *texts;
  const ConstraintTextList *list;
  const SourceFile *file; // the text being read, named after its list
  PlanConstraints *constraints;
  Map letters; // Value* -> Str, where the letters of its axes are derived
  bool noted;  // that the text's letters were read by position
} ConstraintReading;

static SourcePos pos_of(const ConstraintReading *r, size_t begin, size_t end) {
  return (SourcePos){.file = r->file, .begin = (int32_t)begin, .end = (int32_t)end};
}

static void begin(ConstraintReading *r, const ConstraintTextList *list, const char *text) {
  r->list = list;
  r->file = source_file_new(r->context, list->name, text, strlen(text));
  r->noted = false;
}

// ---- Layouts ----------------------------------------------------------------------------------

// Are the capitals of the text these letters, each once?
static bool has_letters(const char *text, size_t size, const char *letters) {
  size_t capitals = 0, known = 0;
  for (size_t i = 0; i < size; i++) capitals += isupper((unsigned char)text[i]) != 0;
  for (const char *p = letters; *p; p++) known += memchr(text, *p, size) != NULL;
  return capitals == strlen(letters) && known == capitals;
}

// The order of axes that a name refers to: that of the tensor's letters, as plan_layout_name writes
// them, or the usual one of two letters. NULL for other names.
static const char *order_of(const char *letters, const char *text, size_t size) {
  const char *const orders[] = {letters, "NC", "OI"};
  for (int i = 0; i < COUNT_OF(orders); i++)
    if (orders[i] && has_letters(text, size, orders[i])) return orders[i];
  return NULL;
}

// A layout that was read from a text.
typedef struct LayoutReading {
  const Layout *layout;
  bool by_letters;     // a name such as NHWC16c, with or without physical extents
  bool by_position;    // likewise, with letters that are not those of the tensor
  const char *letters; // of the tensor; NULL: none
} LayoutReading;

static bool is_name(const char *text, size_t size) {
  size_t word = 0;
  while (word < size && isalnum((unsigned char)text[word])) word++;
  return word && (word == size || (size - word > 5 && !strncmp(text + word, " in [", 5)));
}

// Are the axes named a, b, c, …, as in tags?
static bool has_own_letters(const Layout *layout) {
  for (int d = 0; d < layout->rank; d++)
    if (layout->map->inputs[d][0] != 'a' + d) return false;
  return true;
}

// Reads the file's text from `from` to `to` as a layout of `value`.
static bool parse_layout(const ConstraintReading *r, size_t from, size_t to, const Value *value,
                         LayoutReading *out) {
  Context *context = r->context;
  int64_t shape[TENSOR_MAX_RANK];
  SourcePos pos = pos_of(r, from, to);
  if (value->rank > TENSOR_MAX_RANK || !value_static_shape(value, shape))
    return diag_error(context, pos, "'%s' has a symbolic extent; give sizes with %s", value->name,
                      r->texts->sizes);
  const LayoutExpr **extents = arena_array(&context->arena, const LayoutExpr *, value->rank + 1);
  for (int i = 0; i < value->rank; i++) extents[i] = layout_const(context, shape[i]);
  LayoutSource source = {r->file->text + from, to - from, pos, value->rank, NULL, false};
  const char *letters = map_find(&r->letters, value);
  source.order = order_of(letters, source.text, source.size);
  const Layout *layout = layout_parse(context, &source, extents, value->rank, (LayoutFacts){0});
  if (!layout) return false;
  bool known = source.order && source.order == letters, name = is_name(source.text, source.size);
  *out = (LayoutReading){layout, name, name && !known && !has_own_letters(layout), letters};
  const char *flaw = layout_storage_flaw(context, layout);
  return !flaw || diag_error(context, pos, "%s\n'%s' is %s", flaw, value->name,
                             extents_text(context, value->shape, value->rank));
}

// ---- What a layout means ------------------------------------------------------------------------

// The reading of the axes of the value, such as "has the axes N, H, W, C".
static const char *axes_text(const ConstraintReading *r, const LayoutReading *reading) {
  Text text = text_new(&r->context->arena);
  text_puts(&text, reading->by_position ? "is read as" : "has the axes");
  for (int d = 0; d < reading->layout->rank; d++) {
    const char *name = reading->layout->map->inputs[d];
    text_puts(&text, d ? ", " : " ");
    if (reading->by_letters)
      text_printf(&text, "%c", toupper((unsigned char)*name));
    else
      text_puts(&text, name);
  }
  if (!reading->by_position) return text_string(&text);
  text_puts(&text, ", by position, as ");
  if (!reading->letters) text_puts(&text, "the graph does not tell its axes");
  for (const char *p = reading->letters; p && *p; p++)
    text_printf(&text, "%s%c", p == reading->letters ? "its own axes are " : ", ", *p);
  return text_string(&text);
}

// The physical shape and what each index is: "[1, 8, 8, 3] indexed by n, h, w, c".
static const char *stored_text(const ConstraintReading *r, const Layout *layout) {
  Text text = text_new(&r->context->arena);
  for (int i = 0; i < layout->physical_rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "[", (long long)layout->physical_extents[i]);
  const char *indices = strstr(index_map_text(r->context, layout->map), "-> ");
  text_printf(&text, "]%s%s", indices ? " indexed by " : "", indices ? indices + 3 : "");
  return text_string(&text);
}

// Says in one line what the layout of an input or output does.
static void note_boundary(const ConstraintReading *r, const Value *value,
                          const LayoutReading *reading, bool same) {
  Context *context = r->context;
  bool output = &r->texts->outputs == r->list;
  const char *how =
      same ? "as it is" : str_format(context, "as %s", stored_text(r, reading->layout));
  diag_remark(context, (SourcePos){0}, "%s %s: '%s' %s %s; the caller %s it %s", r->file->name,
              r->file->text, value->name, extents_text(context, value->shape, value->rank),
              axes_text(r, reading), output ? "receives" : "passes", how);
}

// Says once for a text that its letters are those of no tensor.
static void note_position(ConstraintReading *r, const Value *value, const LayoutReading *reading) {
  if (!reading->by_position || r->noted) return;
  r->noted = true;
  diag_remark(r->context, (SourcePos){0}, "%s %s: '%s' %s %s", r->file->name, r->file->text,
              value->name, extents_text(r->context, value->shape, value->rank),
              axes_text(r, reading));
}

// Reads a layout as a constraint has it: NULL is row-major.
static bool read_layout(ConstraintReading *r, size_t from, size_t to, const Value *value,
                        const Layout **layout) {
  LayoutReading reading = {NULL};
  bool boundary = r->list == &r->texts->inputs || r->list == &r->texts->outputs;
  *layout = NULL;
  if (!value->rank && to - from == 6 && !strncmp(r->file->text + from, "scalar", 6)) return true;
  if (!parse_layout(r, from, to, value, &reading)) return false;
  bool same = layout_is_identity(r->context, reading.layout).verdict == VERDICT_YES;
  if (!same) *layout = reading.layout;
  if (boundary)
    note_boundary(r, value, &reading, same);
  else
    note_position(r, value, &reading);
  return true;
}

static bool add_constraint(ConstraintReading *r, PlanConstraint constraint, size_t from,
                           size_t to) {
  if (!read_layout(r, from, to, constraint.value, &constraint.layout)) return false;
  constraint.pos = pos_of(r, from, to);
  array_push(&r->context->arena, &r->constraints->items, constraint);
  return true;
}

// ---- Names of operators -------------------------------------------------------------------------

static bool is_named(const char *name, const char *text, size_t length) {
  return name && strlen(name) == length && !strncmp(name, text, length);
}

// Does the text name the node? "Conv", "nn.conv2d" and "conv2d" name all operators of a kind; a
// node's name names that node, and *by_name is then true.
static bool node_is(const Node *node, const char *text, size_t length, bool *by_name) {
  *by_name = is_named(node->name, text, length);
  const char *op = node->kind == NODE_CALL_TIR ? node->callee->name : node->op;
  const char *dot = strrchr(op, '.');
  const OpRow *row = node->kind == NODE_OP ? op_find(op) : NULL;
  return *by_name || is_named(op, text, length) || (dot && is_named(dot + 1, text, length)) ||
         (row && is_named(row->onnx, text, length)) ||
         (node->kind == NODE_OPAQUE && is_named(node->user_op, text, length));
}

static bool names_nodes(const ConstraintReading *r, const char *text, size_t length) {
  bool by_name;
  for (int i = 0; i < r->graph->nodes.count; i++)
    if (node_is(r->graph->nodes.items[i], text, length, &by_name)) return true;
  return false;
}

typedef Array(const char *) OperandNames;

static bool unknown(const ConstraintReading *r, size_t length, const char *what,
                    const OperandNames *names) {
  Context *context = r->context;
  const char *word = str_intern_n(context, r->file->text, length);
  return diag_error(context, pos_of(r, 0, length), "the model has no %s '%s'%s", what, word,
                    suggestion_or_names(&context->arena, word, names->items, names->count));
}

static void add_node_names(const ConstraintReading *r, OperandNames *names) {
  Arena *arena = &r->context->arena;
  for (int i = 0; i < r->graph->nodes.count; i++) {
    const Node *node = r->graph->nodes.items[i];
    const OpRow *row = node->kind == NODE_OP ? op_find(node->op) : NULL;
    if (row && row->onnx) array_push(arena, names, row->onnx);
    if (node->name) array_push(arena, names, (const char *)node->name);
  }
}

static bool unknown_operator(const ConstraintReading *r, size_t length) {
  OperandNames names = {0};
  add_node_names(r, &names);
  return unknown(r, length, "operator", &names);
}

// ---- Desired layouts: OPERATOR=LAYOUT, OPERATOR:data=LAYOUT,weight=LAYOUT -----------------------

// The operand with this name, or NULL when the node has none. *output tells whether the name is
// that of an output.
static const Value *operand_of(const Node *node, const char *text, size_t length, bool *output) {
  static const struct {
    const char *name;
    bool output;
    int number;
  } known[] = {{"data", false, 0}, {"weight", false, 1}, {"bias", false, 2}, {"output", true, 0}};
  int number = -1;
  *output = length > 6 && !strncmp(text, "output", 6);
  if (*output) number = atoi(text + 6);
  if (length > 5 && !strncmp(text, "input", 5)) number = atoi(text + 5);
  for (int i = 0; i < COUNT_OF(known); i++)
    if (is_named(known[i].name, text, length)) {
      *output = known[i].output;
      number = known[i].number;
    }
  if (number < 0 || number >= (*output ? node->output_count : node->input_count)) return NULL;
  return *output ? node->outputs[number] : node->inputs[number];
}

static size_t word_length(const char *text) {
  size_t n = 0;
  while (isalnum((unsigned char)text[n])) n++;
  return n;
}

// The end of the operand's text that begins at `from`: the position of the next ",NAME=" or the end
// of the text.
static size_t operand_end(const char *text, size_t from) {
  for (const char *p = text + from; *p; p++) {
    size_t n = *p == ',' ? word_length(p + 1) : 0;
    if (n && p[1 + n] == '=') return (size_t)(p - text);
  }
  return strlen(text);
}

static bool constrain_operand(ConstraintReading *r, size_t name, const char *word, size_t begin,
                              size_t end) {
  bool found = false, by_name, output;
  size_t length = word_length(word);
  for (int i = 0; i < r->graph->nodes.count; i++) {
    const Node *node = r->graph->nodes.items[i];
    if (!node_is(node, r->file->text, name, &by_name)) continue;
    const Value *value = operand_of(node, word, length, &output);
    if (!value) continue;
    found = true;
    if (!add_constraint(
            r, (PlanConstraint){.node = node, .value = value, .output = output, .named = by_name},
            begin, end))
      return false;
  }
  size_t at = (size_t)(word - r->file->text);
  return found || diag_error(r->context, pos_of(r, at, at + length),
                             "it has no operand '%.*s'; operands are data, weight, bias, output, "
                             "or input0, input1, …",
                             (int)length, word);
}

static bool constrain_operands(ConstraintReading *r, size_t name) {
  const char *text = r->file->text;
  for (size_t at = name + 1, end;; at = end + 1) {
    size_t equals = at + word_length(text + at);
    if (equals == at || text[equals] != '=')
      return diag_error(r->context, pos_of(r, at, at + 1),
                        "expected an operand and its layout, as in data=NHWC");
    end = operand_end(text, equals + 1);
    if (!constrain_operand(r, name, text + at, equals + 1, end)) return false;
    if (!text[end]) return true;
  }
}

// Constrains the node's inputs that are computed at run time, and its outputs, if they have as many
// axes as the layout takes.
static bool constrain_node(ConstraintReading *r, const Node *node, bool by_name, size_t from,
                           int rank, bool *found) {
  size_t to = r->file->size;
  PlanConstraint constraint = {.node = node, .named = by_name};
  for (int i = 0; i < node->input_count; i++) {
    constraint.value = node->inputs[i];
    if (!constraint.value || constraint.value->data || constraint.value->rank != rank) continue;
    *found = true;
    if (!add_constraint(r, constraint, from, to)) return false;
  }
  constraint.output = true;
  for (int i = 0; i < node->output_count; i++) {
    constraint.value = node->outputs[i];
    if (constraint.value->rank != rank) continue;
    *found = true;
    if (!add_constraint(r, constraint, from, to)) return false;
  }
  return true;
}

static int rank_taken(const ConstraintReading *r, size_t name, size_t from) {
  bool by_name;
  int rank = -1;
  for (int i = r->graph->nodes.count - 1; i >= 0; i--) // only `*indices` takes any rank
    if (strchr(r->file->text + from, '*') &&
        node_is(r->graph->nodes.items[i], r->file->text, name, &by_name))
      rank = r->graph->nodes.items[i]->outputs[0]->rank;
  LayoutSource source = {r->file->text + from,
                         r->file->size - from,
                         pos_of(r, from, r->file->size),
                         rank,
                         NULL,
                         false};
  const char *in = strstr(source.text, " in ["); // read later with the shape
  if (in) source.size = (size_t)(in - source.text);
  const IndexMap *map = index_map_parse(r->context, &source);
  return map ? map->input_count : -1;
}

static bool constrain_all(ConstraintReading *r, size_t name, size_t from) {
  bool found = false, by_name;
  int rank = rank_taken(r, name, from);
  if (rank < 0) return false;
  for (int i = 0; i < r->graph->nodes.count; i++) {
    const Node *node = r->graph->nodes.items[i];
    if (node_is(node, r->file->text, name, &by_name) &&
        !constrain_node(r, node, by_name, from, rank, &found))
      return false;
  }
  return found ||
         diag_error(r->context, pos_of(r, from, r->file->size),
                    "'%.*s' reads and writes no tensor of %d axes", (int)name, r->file->text, rank);
}

static bool read_desired(ConstraintReading *r, const char *text) {
  begin(r, &r->texts->desired, text);
  size_t first = strcspn(text, "=:");
  for (size_t end = first; text[end]; end += 1 + strcspn(text + end + 1, "=:"))
    if (names_nodes(r, text, end))
      return text[end] == ':' ? constrain_operands(r, end) : constrain_all(r, end, end + 1);
  if (!text[first])
    return diag_error(r->context, pos_of(r, 0, first), "expected OPERATOR=LAYOUT, as in Conv=NHWC");
  return unknown_operator(r, first);
}

// ---- Layouts to keep: NAME ---------------------------------------------------------------------

static const Value *value_named(const GraphFunc *graph, const char *name) {
  for (int i = 0; i < graph->param_count; i++)
    if (!strcmp(graph->params[i]->name, name)) return graph->params[i];
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->output_count; k++)
      if (!strcmp(node->outputs[k]->name, name)) return node->outputs[k];
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k] && !strcmp(node->inputs[k]->name, name)) return node->inputs[k];
  }
  return NULL;
}

static void keep_node(ConstraintReading *r, const Node *node, bool by_name) {
  Arena *arena = &r->context->arena;
  PlanConstraint constraint = {.node = node, .named = by_name, .pos = pos_of(r, 0, r->file->size)};
  for (int i = 0; i < node->input_count; i++) {
    constraint.value = node->inputs[i];
    if (constraint.value && !constraint.value->data)
      array_push(arena, &r->constraints->items, constraint);
  }
  constraint.output = true;
  for (int i = 0; i < node->output_count; i++) {
    constraint.value = node->outputs[i];
    array_push(arena, &r->constraints->items, constraint);
  }
}

static bool read_keep(ConstraintReading *r, const char *name) {
  begin(r, &r->texts->keep, name);
  bool found = false, by_name;
  const Value *value = value_named(r->graph, name);
  if (value) {
    PlanConstraint constraint = {.value = value, .named = true, .pos = pos_of(r, 0, r->file->size)};
    array_push(&r->context->arena, &r->constraints->items, constraint);
    return true;
  }
  for (int i = 0; i < r->graph->nodes.count; i++) {
    const Node *node = r->graph->nodes.items[i];
    if (!node_is(node, name, strlen(name), &by_name)) continue;
    found = true;
    keep_node(r, node, by_name);
  }
  if (found) return true;
  OperandNames names = {0};
  add_node_names(r, &names);
  for (int i = 0; i < r->graph->nodes.count; i++)
    for (int k = 0; k < r->graph->nodes.items[i]->output_count; k++)
      array_push(&r->context->arena, &names,
                 (const char *)r->graph->nodes.items[i]->outputs[k]->name);
  return unknown(r, strlen(name), "tensor or operator", &names);
}

// ---- Layouts of inputs and outputs: NAME=LAYOUT ------------------------------------------------

static bool read_boundary(ConstraintReading *r, const ConstraintTextList *list, const char *what,
                          const char *text, Value *const *values, int count,
                          PlanConstraint *constraints) {
  begin(r, list, text);
  OperandNames names = {0};
  for (int i = 0; i < count; i++) {
    size_t n = strlen(values[i]->name);
    array_push(&r->context->arena, &names, (const char *)values[i]->name);
    if (strncmp(text, values[i]->name, n) || text[n] != '=') continue;
    constraints[i].value = values[i];
    constraints[i].pos = pos_of(r, n + 1, r->file->size);
    return read_layout(r, n + 1, r->file->size, values[i], &constraints[i].layout);
  }
  size_t length = strcspn(text, "=");
  if (!text[length])
    return diag_error(r->context, pos_of(r, 0, length), "expected NAME=LAYOUT, as in %s=NHWC",
                      count ? values[0]->name : what);
  return unknown(r, length, what, &names);
}

// ---- A layout whose price is asked for: TENSOR=LAYOUT ------------------------------------------

static bool read_asked(ConstraintReading *r, const char *text) {
  begin(r, &r->texts->asked, text);
  PlanConstraint *asked = &r->constraints->asked;
  if (value_named(r->graph, text)) return true;
  for (const char *end = strchr(text, '='); end; end = strchr(end + 1, '=')) {
    size_t n = (size_t)(end - text);
    const Value *value = value_named(r->graph, str_intern_n(r->context, text, n));
    if (!value) continue;
    *asked = (PlanConstraint){.value = value, .pos = pos_of(r, n + 1, r->file->size)};
    return read_layout(r, n + 1, r->file->size, value, &asked->layout);
  }
  return true;
}

// ---- The policy --------------------------------------------------------------------------------

static bool keeps_all(const ConstraintTextList *keep) {
  for (int i = 0; i < keep->count; i++)
    if (!*keep->items[i]) return true;
  return false;
}

static const char *const policy_names[] = {[PLAN_OPTIMAL] = "optimal",
                                           [PLAN_NONE] = "none",
                                           [PLAN_FORWARD] = "forward",
                                           [PLAN_BACKWARD] = "backward"};

const char *policy_name(PlanPolicy policy) {
  return policy_names[policy];
}

static bool read_policy(const ConstraintReading *r, PlanPolicy *policy) {
  const char *asked = r->texts->policy ? r->texts->policy : policy_names[PLAN_OPTIMAL];
  int found = 0;
  while (found < COUNT_OF(policy_names) && strcmp(asked, policy_names[found]) != 0) found++;
  if (found == COUNT_OF(policy_names))
    return diag_error(r->context, (SourcePos){0},
                      "no policy '%s': expected optimal, forward, backward or none", asked);
  *policy = keeps_all(&r->texts->keep) ? PLAN_NONE : (PlanPolicy)found;
  return true;
}

// ---- The accuracy ------------------------------------------------------------------------------

static bool read_accuracy(const ConstraintReading *r, PlanAccuracy *accuracy) {
  const char *asked = r->texts->accuracy;
  *accuracy = (PlanAccuracy){0};
  if (!asked || !strcmp(asked, "default")) return true;
  accuracy->exact = !strcmp(asked, "exact");
  char *end;
  double value = accuracy->exact ? 0 : strtod(asked, &end);
  if (accuracy->exact || (end != asked && !*end && value > 0 && value < 1)) {
    accuracy->relative = value;
    return true;
  }
  return diag_error(r->context, (SourcePos){0},
                    "no accuracy '%s': expected exact, default, or a relative error between 0 and "
                    "1, such as 1e-6",
                    asked);
}

// ---- All constraints ---------------------------------------------------------------------------

// Finds the letters of the values' axes, which the texts may use. False with diagnostics.
static bool find_letters(ConstraintReading *r) {
  const ConstraintTexts *texts = r->texts;
  if (!texts->desired.count && !texts->inputs.count && !texts->outputs.count && !texts->asked.count)
    return true;
  const StageGraph *stages = stage_graph_new(r->context, r->graph);
  for (int i = 0; stages && i < stages->tensors.count; i++) {
    const StageTensor *tensor = stages->tensors.items[i];
    if (tensor->value && tensor->letters)
      map_put(&r->letters, tensor->value, (void *)tensor->letters);
  }
  return stages != NULL;
}

bool constraint_texts_read(Context *context, const GraphFunc *graph, const ConstraintTexts *texts,
                           CompileOptions *options) {
  Arena *arena = &context->arena;
  PlanConstraints *constraints = arena_new(arena, PlanConstraints);
  *constraints =
      (PlanConstraints){.inputs = arena_array(arena, PlanConstraint, graph->param_count + 1),
                        .outputs = arena_array(arena, PlanConstraint, graph->output_count + 1)};
  ConstraintReading r = {.context = context,
                         .graph = graph,
                         .texts = texts,
                         .constraints = constraints,
                         .letters = map_new(arena)};
  if (!find_letters(&r)) return false;
  DiagCode code = diag_code_set(context, DIAG_OPTION);
  bool ok = read_policy(&r, &options->policy) && read_accuracy(&r, &options->accuracy);
  for (int i = 0; i < texts->desired.count; i++) ok &= read_desired(&r, texts->desired.items[i]);
  for (int i = 0; i < texts->keep.count; i++)
    if (*texts->keep.items[i]) ok &= read_keep(&r, texts->keep.items[i]);
  for (int i = 0; i < texts->inputs.count; i++)
    ok &= read_boundary(&r, &texts->inputs, "input", texts->inputs.items[i], graph->params,
                        graph->param_count, constraints->inputs);
  for (int i = 0; i < texts->outputs.count; i++)
    ok &= read_boundary(&r, &texts->outputs, "output", texts->outputs.items[i], graph->outputs,
                        graph->output_count, constraints->outputs);
  if (texts->asked.count) ok &= read_asked(&r, texts->asked.items[0]);
  options->constraints = constraints;
  diag_code_set(context, code);
  return ok;
}
