// SPDX-License-Identifier: Apache-2.0
// Converts operators of opsets up to 6 to their later forms: attributes that were removed or
// replaced, and broadcasting of an operand from a stated axis on.
#include "frontend/onnx/import.h"
#include "te/te.h"

typedef struct OlderRow {
  const char *operators; // with spaces around each
  int before;            // the first opset with the later form
  const char *dropped;   // attributes without a meaning after `fix` has used them
  // Reads the node as it was given and changes the inputs. May be NULL.
  bool (*fix)(Import *import, const OnnxNode *given);
} OlderRow;

static const OnnxAttribute *find(const OnnxNode *node, const char *name) {
  for (int i = 0; i < node->attribute.count; i++)
    if (strcmp(node->attribute.items[i].name, name) == 0) return &node->attribute.items[i];
  return NULL;
}

// ---- Values -----------------------------------------------------------------------------------

// Appends axes of extent 1 to `value` until it has `count` axes.
static bool widen(Import *import, Value **value, int64_t count) {
  int64_t shape[TE_MAX_RANK];
  if (count > TE_MAX_RANK) return import_refuse(import, "its operands do not broadcast");
  for (int i = 0; i < count; i++) shape[i] = i < (*value)->rank ? import_dim(*value, i) : 1;
  return (*value = import_reshape(import, *value, shape, (int)count)) != NULL;
}

// With the attribute broadcast, the second operand's axes are the first operand's from `axis` on.
static bool fix_broadcast(Import *import, const OnnxNode *given) {
  const OnnxAttribute *broadcast = find(given, "broadcast"), *axis = find(given, "axis");
  if (!broadcast || !broadcast->i || !axis) return true;
  int rank = import_input(import, 0)->rank;
  int64_t at = axis->i < 0 ? axis->i + rank : axis->i;
  if (at < 0 || at + import_input(import, 1)->rank > rank)
    return import_refuse(import, "axis %lld is not an axis of a tensor of rank %d",
                         (long long)axis->i, rank);
  return widen(import, &import->inputs[1], rank - at);
}

// The slope has one element for each channel.
static bool fix_prelu(Import *import, const OnnxNode *given) {
  (void)given;
  const Value *x = import_input(import, 0), *slope = import_input(import, 1);
  bool shared = slope->rank == 1 && import_dim(slope, 0) == 1;
  return slope->rank != 1 || shared || x->rank < 2 ||
         widen(import, &import->inputs[1], x->rank - 1);
}

static bool fix_training(Import *import, const OnnxNode *given) {
  const OnnxAttribute *is_test = find(given, "is_test");
  return (is_test && is_test->i) ||
         import_refuse(import, "training is on (is_test is 0): export the model for inference");
}

static const OlderRow rows[] = {
    {" Add And Div Equal Greater Less Mul Or Pow Sub Xor ", 7, "broadcast axis", fix_broadcast},
    {" BatchNormalization Dropout ", 7, "is_test", fix_training},
    {" Gemm ", 7, "broadcast", NULL},
    {" PRelu ", 7, NULL, fix_prelu},
};

static const OlderRow *row_of(const Import *import, const OnnxNode *node) {
  const char *word = arena_printf(&import->context->arena, " %s ", node->op_type);
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (import_opset(import) < rows[i].before && strstr(rows[i].operators, word)) return &rows[i];
  return NULL;
}

bool older_inputs(Import *import, const OnnxNode *given) {
  const OlderRow *row = row_of(import, given);
  return !row || !row->fix || row->fix(import, given);
}

// ---- Attributes -------------------------------------------------------------------------------

static bool is_dropped(const OlderRow *row, Str name) {
  const char *dropped = row && row->dropped ? row->dropped : "";
  size_t n = strlen(name);
  const char *at = strstr(dropped, name);
  return strcmp(name, "consumed_inputs") == 0 ||
         (at && (at == dropped || at[-1] == ' ') && (at[n] == ' ' || !at[n]));
}

// The element type was given by name, such as "FLOAT"; it becomes a number.
static void number_type(Context *context, OnnxAttribute *to) {
  enum { MOST_TYPES = 32 };
  Str name = str_intern_n(context, (const char *)to->s.data, to->s.size);
  for (int32_t code = 1; code < MOST_TYPES; code++)
    if (strcasecmp(onnx_type_name(code), name) == 0) to->i = code;
  to->type = onnx_AttributeProto_AttributeType_INT;
}

static void add_attribute(Import *import, OnnxNode *node, const OnnxAttribute *given) {
  OnnxAttribute attribute = *given;
  if (strcmp(node->op_type, "Pad") == 0 && strcmp(given->name, "paddings") == 0)
    attribute.name = str_intern(import->context, "pads");
  if (strcmp(node->op_type, "Cast") == 0 && given->s.data) number_type(import->context, &attribute);
  array_push(&import->context->arena, &node->attribute, attribute);
}

const OnnxNode *older_node(Import *import, const OnnxNode *given) {
  if (import_opset(import) >= ONNX_OLDEST_OPSET) return given;
  const OlderRow *row = row_of(import, given);
  OnnxNode *node = arena_copy(&import->context->arena, given, sizeof *given);
  node->attribute = (OnnxAttributes){0};
  for (int i = 0; i < given->attribute.count; i++)
    if (!is_dropped(row, given->attribute.items[i].name))
      add_attribute(import, node, &given->attribute.items[i]);
  if (import_opset(import) < 4 && strcmp(node->op_type, "Concat") == 0 && !find(given, "axis")) {
    OnnxAttribute axis = {.name = str_intern(import->context, "axis"), .i = 1};
    axis.type = onnx_AttributeProto_AttributeType_INT;
    axis.ref_attr_name = str_intern(import->context, "");
    array_push(&import->context->arena, &node->attribute, axis);
  }
  return node;
}
