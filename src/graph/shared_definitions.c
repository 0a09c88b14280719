// SPDX-License-Identifier: Apache-2.0
// Defines equal operators once. Operators are equal when their definitions cannot tell them apart:
// they have the same attributes, number of outputs, and types and shapes of inputs, the same tensor
// at the same inputs, and the same constants where these are no floats.
//   relu(x): stage "relu",  v0 < 8:  max(x[v0], 0)
//   act(y):  stage "act",   v0 < 8:  max(y[v0], 0), with the variable v0 of the first stage
#include "graph/shared_definitions.h"

// The stages and outputs of an operator that was defined.
typedef struct Definition {
  const Node *node;
  Buffer *const *inputs;
  int first_stage, stage_count, first_output, output_count;
  bool alone; // its stages cannot be those of another operator
} Definition;

SharedDefinitions shared_definitions_new(Te *te) {
  return (SharedDefinitions){te, map_new(&te->context->arena), word_key_new(&te->context->arena)};
}

// ---- Equal operators

// The number of the first input that is the tensor.
static int first_input(Buffer *const *inputs, const Buffer *tensor) {
  int i = 0;
  while (inputs[i] != tensor) i++;
  return i;
}

// A definition may read the contents of integers, of a constant or made of a shape.
static void add_contents(WordKey *key, const Value *value) {
  const Node *made = value->producer;
  key->whole &= !made || made->kind != NODE_OP || !text_equal(made->op, "shape_to_tensor");
  word_key_add(key, map_key(value->data));
}

static void add_input(WordKey *key, const Node *node, Buffer *const *inputs, int number) {
  const Buffer *tensor = inputs[number];
  word_key_add(key, tensor ? 1 + (uint64_t)first_input(inputs, tensor) : 0);
  if (!tensor) return;
  word_key_add_type(key, tensor->type);
  word_key_add(key, (uint64_t)tensor->rank);
  for (int d = 0; d < tensor->rank; d++) word_key_add(key, map_key(tensor->shape[d]));
  if (!dtype_is_float(tensor->type)) add_contents(key, node->inputs[number]);
}

// The definition of a cast also reads the type that is stated for its result.
static bool states_result(const Node *node) {
  return node->user_op && text_equal(node->user_op, "match_cast");
}

static void find_key(SharedDefinitions *shared, const Node *node, Buffer *const *inputs) {
  WordKey *key = &shared->key;
  key->count = 0;
  key->whole = node->kind == NODE_OP && !states_result(node);
  word_key_add(key, map_key(op_find(node->op)));
  word_key_add(key, (uint64_t)node->output_count);
  word_key_add(key, (uint64_t)node->attrs.count << 32 | (uint64_t)node->input_count);
  for (int i = 0; i < node->attrs.count; i++) {
    word_key_add(key, map_key(node->attrs.items[i].key));
    word_key_add(key, map_key(node->attrs.items[i].value));
  }
  for (int i = 0; i < node->input_count; i++) add_input(key, node, inputs, i);
}

// ---- Stages of another operator

static bool is_of_range(const Te *te, const Definition *from, const Buffer *tensor) {
  for (int i = 0; i < from->stage_count; i++)
    if (te->stages.items[from->first_stage + i]->output == tensor) return true;
  return false;
}

// The stages of an ordered computation store at targets of their own, and are left alone, as are
// stages whose names do not follow from that of the node.
static bool is_alone(const Te *te, const Definition *from) {
  size_t length = strlen(from->node->name);
  bool alone = false;
  for (int i = 0; i < from->stage_count; i++) {
    const TeStage *stage = te->stages.items[from->first_stage + i];
    alone |= stage->ordered || strncmp(stage->name, from->node->name, length) != 0 ||
             strcmp(stage->name, stage->output->name) != 0;
  }
  for (int i = 0; i < from->output_count; i++)
    alone |= !is_of_range(te, from, te->outputs.items[from->first_output + i]);
  return alone;
}

static bool define(SharedDefinitions *shared, const Node *node, Buffer *const *inputs,
                   Definition *to) {
  Te *te = shared->te;
  *to = (Definition){node, inputs, te->stages.count, 0, te->outputs.count, 0};
  if (!op_define(te->context, te, node, inputs)) return false;
  to->stage_count = te->stages.count - to->first_stage;
  to->output_count = te->outputs.count - to->first_output;
  to->alone = is_alone(te, to);
  return true;
}

static Buffer *output_like(Te *te, const Buffer *like, Str name) {
  Buffer *output = memcpy(object_pool_take(&te->buffer_pool), like, sizeof *like);
  output->id = context_next_id(te->context);
  output->name = name;
  output->data = expr_data_var(te->context, name, dtype_lanes(like->type, 1), like->scope);
  return output;
}

static void add_stage_like(SharedDefinitions *shared, Rewriter *rewriter, const TeStage *like,
                           const Definition *from, const Node *node) {
  Context *context = shared->te->context;
  const char *suffix = like->name + strlen(from->node->name);
  TeStage *stage = memcpy(object_pool_take(&shared->te->stage_pool), like, sizeof *stage);
  stage->name = *suffix ? str_format(context, "%s%s", node->name, suffix) : node->name;
  stage->output = output_like(shared->te, like->output, stage->name);
  map_put(&rewriter->buffers, like->output, stage->output);
  stage->init = rewrite_expr(rewriter, like->init);
  stage->value = rewrite_expr(rewriter, like->value);
  stage->outside = rewrite_expr(rewriter, like->outside);
  array_push(&context->arena, &shared->te->stages, stage);
}

static void define_like(SharedDefinitions *shared, const Definition *from, const Node *node,
                        Buffer *const *inputs) {
  Te *te = shared->te;
  Arena *scratch = &te->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  Rewriter rewriter = {.context = te->context,
                       .memo = map_new(scratch),
                       .buffers = map_new(scratch),
                       .uses = EXPR_USES_BUFFER};
  for (int i = 0; i < node->input_count; i++)
    if (inputs[i]) map_put(&rewriter.buffers, from->inputs[i], inputs[i]);
  for (int i = 0; i < from->stage_count; i++)
    add_stage_like(shared, &rewriter, te->stages.items[from->first_stage + i], from, node);
  for (int i = 0; i < from->output_count; i++) {
    const Buffer *output = te->outputs.items[from->first_output + i];
    array_push(&te->context->arena, &te->outputs, map_find(&rewriter.buffers, output));
  }
  arena_reset(scratch, mark);
}

bool shared_definitions_define(SharedDefinitions *shared, const Node *node, Buffer *const *inputs) {
  find_key(shared, node, inputs);
  void **known = shared->key.whole ? map_place(&shared->known, &shared->key) : NULL;
  if (!known) return op_define(shared->te->context, shared->te, node, inputs);
  Definition *from = *known;
  if (!from) {
    from = *known = arena_new(&shared->te->context->arena, Definition);
    return define(shared, node, inputs, from);
  }
  if (from->alone) return op_define(shared->te->context, shared->te, node, inputs);
  define_like(shared, from, node, inputs);
  return true;
}
