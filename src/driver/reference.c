// SPDX-License-Identifier: Apache-2.0
// Computes the results with which `pleat verify` compares compiled results: the definitions of a
// graph's operators, run one node after the other by the interpreter or as code that was lowered
// without a schedule.
#include "driver/reference.h"

// ---- Computing --------------------------------------------------------------------------------

void reference_restart(Reference *reference, Tensor *const *inputs) {
  reference->data = map_new(&reference->context->arena);
  reference->replaced = map_new(&reference->context->arena);
  reference->given = map_new(&reference->context->arena);
  reference->next = 0;
  for (int i = 0; i < reference->graph->param_count; i++)
    map_put(&reference->data, reference->graph->params[i], tensor_data(inputs[i]));
}

bool reference_begin(Context *context, const GraphFunc *graph, Tensor *const *inputs, bool compiled,
                     const CompileOptions *options, Reference *reference) {
  int count = graph->nodes.count;
  *reference = (Reference){.context = context, .graph = graph};
  reference_restart(reference, inputs);
  reference->funcs = arena_array(&context->arena, PrimFunc *, count);
  for (int i = 0; i < count; i++) {
    reference->funcs[i] = op_prim_func(context, graph->nodes.items[i]);
    if (!reference->funcs[i]) return false;
  }
  if (compiled) reference->code = kernel_code_new(context, reference->funcs, count, options, NULL);
  return !compiled || reference->code;
}

void reference_end(Reference *reference) {
  kernel_code_free(reference->code);
}

static InterpTensor argument_of(Context *context, const Value *value, const void *data) {
  int64_t *shape = arena_array(&context->scratch, int64_t, value->rank + 1);
  value_static_shape(value, shape);
  return (InterpTensor){
      .type = value->type, .rank = value->rank, .shape = shape, .data = (void *)data};
}

bool reference_run(Reference *r, int number, const void *const *inputs, void *const *outputs) {
  const Node *node = r->graph->nodes.items[number];
  int count = 0, most = node->input_count + node->output_count;
  ArenaMark mark = arena_mark(&r->context->scratch);
  InterpTensor *args = arena_array(&r->context->scratch, InterpTensor, most);
  context_poll(r->context);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) args[count++] = argument_of(r->context, node->inputs[i], inputs[i]);
  for (int i = 0; i < node->output_count; i++)
    args[count++] = argument_of(r->context, node->outputs[i], outputs[i]);
  bool done = r->code ? kernel_code_run(r->code, number, NULL, args)
                      : interp_run(r->context, NULL, r->funcs[number], args, count, NULL);
  arena_reset(&r->context->scratch, mark);
  return done;
}

// An opaque operator has no definition: its outputs are those that reference_give was given, or
// zeros.
static bool keep_given(Reference *r, const Node *node) {
  for (int i = 0; i < node->output_count; i++) {
    void *given = map_find(&r->given, node->outputs[i]);
    if (given)
      map_put(&r->data, node->outputs[i], given);
    else
      memset(map_find(&r->data, node->outputs[i]), 0, (size_t)value_static_bytes(node->outputs[i]));
  }
  return true;
}

static bool compute_node(Reference *r, int number) {
  const Node *node = r->graph->nodes.items[number];
  Arena *arena = &r->context->arena;
  const void **inputs = arena_array(arena, const void *, node->input_count);
  void **outputs = arena_array(arena, void *, node->output_count);
  for (int i = 0; i < node->input_count; i++) {
    const Value *value = node->inputs[i];
    if (value) inputs[i] = value->data ? value->data->data : map_find(&r->data, value);
  }
  for (int i = 0; i < node->output_count; i++) {
    const Value *value = node->outputs[i];
    outputs[i] = arena_alloc(arena, (size_t)value_static_bytes(value) + 64);
    map_put(&r->data, value, outputs[i]);
  }
  if (node->kind == NODE_OPAQUE) return keep_given(r, node);
  return reference_run(r, number, inputs, outputs);
}

const void *reference_value(Reference *r, const Value *value) {
  if (value->data) return value->data->data;
  while (!map_contains(&r->data, value)) {
    if (r->next == r->graph->nodes.count) bug(r->context, "no node computes '%s'", value->name);
    if (!compute_node(r, r->next++)) return NULL;
  }
  return map_find(&r->data, value);
}

static bool reads_one_of(const Node *node, const Map *values) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] && map_contains(values, node->inputs[i])) return true;
  return false;
}

// Computes again what was computed from the value, except for values that were replaced, too.
static bool update_readers(Reference *r, const Value *value) {
  Map changed = map_new(&r->context->arena);
  map_put(&changed, value, (void *)value);
  for (int i = 0; i < r->next; i++) {
    const Node *node = r->graph->nodes.items[i];
    if (!reads_one_of(node, &changed)) continue;
    if (!compute_node(r, i)) return false;
    for (int o = 0; o < node->output_count; o++) {
      void *replaced = map_find(&r->replaced, node->outputs[o]);
      map_put(replaced ? &r->data : &changed, node->outputs[o],
              replaced ? replaced : (void *)node->outputs[o]);
    }
  }
  return true;
}

void reference_give(Reference *r, const Value *value, const void *contents) {
  size_t bytes = (size_t)value_static_bytes(value);
  map_put(&r->given, value, memcpy(arena_alloc(&r->context->arena, bytes + 64), contents, bytes));
}

bool reference_replace(Reference *r, const Value *value, const void *contents) {
  size_t bytes = (size_t)value_static_bytes(value);
  void *copy = memcpy(arena_alloc(&r->context->arena, bytes + 64), contents, bytes);
  map_put(&r->replaced, value, copy);
  map_put(&r->data, value, copy);
  return update_readers(r, value);
}
