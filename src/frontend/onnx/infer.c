// SPDX-License-Identifier: Apache-2.0
// Infers the outputs of operators that the import adds. Networks repeat operators of the same
// attributes on tensors of the same types and shapes, so the outputs of an operator are remembered
// when their shapes are static. Other shapes are inferred anew, because a definition may introduce
// a size of its own for each node.
#include "frontend/onnx/import.h"
#include "graph/graph.h"

typedef struct KnownOutputs {
  Node node;      // as it was when its outputs were inferred
  Value *inputs;  // its inputs at that time; an input that is not given has the rank -1
  Value *outputs; // node.output_count of them
} KnownOutputs;

static uint64_t hash_of(const Node *node) {
  uint64_t hash = hash_mix(map_key(node->op), (uint64_t)node->output_count);
  for (int i = 0; i < node->attrs.count; i++)
    hash = hash_mix(hash_mix(hash, map_key(node->attrs.items[i].key)),
                    map_key(node->attrs.items[i].value));
  for (int i = 0; i < node->input_count; i++) {
    const Value *x = node->inputs[i];
    hash = hash_mix(hash, x ? (uint64_t)x->rank : UINT64_MAX);
    if (x) hash = hash_mix(hash, (uint64_t)x->type.code << 16 | x->type.bits);
    for (int d = 0; x && d < x->rank; d++) hash = hash_mix(hash, map_key(x->shape[d]));
  }
  return hash;
}

static bool same_type(const Value *a, const Value *b) {
  if (!dtype_equal(a->type, b->type) || a->rank != b->rank) return false;
  return a->rank <= 0 || !memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->rank);
}

// Has the node the operator, attributes and types of inputs for which the outputs are known?
static bool same_question(const KnownOutputs *known, const Node *node) {
  const Node *other = &known->node;
  if (node->op != other->op || node->input_count != other->input_count ||
      node->output_count != other->output_count || node->attrs.count != other->attrs.count)
    return false;
  for (int i = 0; i < node->attrs.count; i++)
    if (node->attrs.items[i].key != other->attrs.items[i].key ||
        node->attrs.items[i].value != other->attrs.items[i].value)
      return false;
  for (int i = 0; i < node->input_count; i++) {
    const Value absent = {.rank = -1}, *x = node->inputs[i] ? node->inputs[i] : &absent;
    if (!same_type(&known->inputs[i], x)) return false;
  }
  return true;
}

// Can the outputs be those of other nodes? All inputs that are given must have shapes.
static bool may_be_known(const Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] && node->inputs[i]->rank < 0) return false;
  for (int i = 0; i < node->output_count; i++)
    if (node->outputs[i]) return false;
  return node->kind == NODE_OP;
}

static void copy_value(Context *context, const Value *value, Value *copy) {
  *copy = *value;
  if (value->rank > 0)
    copy->shape =
        arena_copy(&context->arena, value->shape, sizeof *value->shape * (size_t)value->rank);
}

static KnownOutputs *known_outputs_new(Context *context, const Node *node) {
  KnownOutputs *known = arena_new(&context->arena, KnownOutputs);
  known->node = *node;
  known->inputs = arena_array(&context->arena, Value, node->input_count);
  known->outputs = arena_array(&context->arena, Value, node->output_count);
  for (int i = 0; i < node->input_count; i++) {
    known->inputs[i].rank = -1;
    if (node->inputs[i]) copy_value(context, node->inputs[i], &known->inputs[i]);
  }
  for (int i = 0; i < node->output_count; i++)
    copy_value(context, node->outputs[i], &known->outputs[i]);
  return known;
}

static void take_outputs(Context *context, const KnownOutputs *known, Node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const Value *like = &known->outputs[i];
    Value *value = value_new(context, node->name, like->type, like->shape, like->rank);
    value->producer = node;
    value->output = i;
    node->outputs[i] = value;
  }
}

static bool outputs_static(const Node *node) {
  int64_t extent;
  for (int i = 0; i < node->output_count; i++)
    for (int d = 0; d < node->outputs[i]->rank; d++)
      if (!expr_as_int(node->outputs[i]->shape[d], &extent)) return false;
  return true;
}

bool importer_infer(Importer *importer, Node *node) {
  Context *context = importer->context;
  if (!may_be_known(node)) return op_infer(context, node);
  uint64_t hash = hash_of(node);
  const KnownOutputs *known = map_get(&importer->inferred, hash);
  if (known && same_question(known, node)) {
    take_outputs(context, known, node);
    return true;
  }
  if (!op_infer(context, node)) return false;
  if (!known && outputs_static(node))
    map_set(&importer->inferred, hash, known_outputs_new(context, node));
  return true;
}
