// SPDX-License-Identifier: Apache-2.0
// Infers the results of opaque operators, reads the ways in which their functions can be called,
// and makes stages of their calls.
#include "graph/opaque.h"

const OpaqueFunction *opaque_find(const OpaqueFunctions *functions, const char *name) {
  for (int i = 0; functions && i < functions->count; i++)
    if (!strcmp(functions->items[i]->name, name)) return functions->items[i];
  return NULL;
}

// ---- Results -----------------------------------------------------------------------------------

static bool refuse(Context *context, const Node *node, const char *format, ...) PRINTF_LIKE(3, 4);
static bool refuse(Context *context, const Node *node, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&context->arena, format, args);
  va_end(args);
  return diag_error_as(context, DIAG_OPERATOR, node_pos(node), "'%s': %s", node->function->name,
                       text);
}

// A function that infers types gets numbers. Another one is called when all sizes are given.
static bool check_shape(Context *context, const Node *node, const Value *value) {
  int64_t shape[TE_MAX_RANK];
  if (value->rank > TE_MAX_RANK)
    return refuse(context, node, "takes tensors of at most %d axes, '%s' has %d", TE_MAX_RANK,
                  value->name, value->rank);
  return !node->function->infer || value_static_shape(value, shape) ||
         refuse(context, node,
                "'%s' is %s, and a function outside needs all sizes; give them with the request",
                value->name, value_type_text(context, value));
}

bool opaque_infer(Context *context, Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] && !check_shape(context, node, node->inputs[i])) return false;
  if (node->function->infer && !node->function->infer(context, node->function, node)) return false;
  for (int i = 0; i < node->output_count; i++) {
    const Value *value = node->outputs[i];
    if (value->rank < 0)
      return refuse(context, node,
                    "the type of output %d is not known: the file does not declare it, and the "
                    "function does not infer it",
                    i);
    if (!check_shape(context, node, value)) return false;
  }
  return true;
}

// ---- Ways --------------------------------------------------------------------------------------

const char *opaque_tensor_text(Context *context, const OpaqueCall *call, int tensor) {
  bool input = tensor < call->input_count;
  const Node *node = call->node;
  const Value *value = node && input ? node->inputs[tensor] : NULL;
  const char *text = str_format(context, "%s %d", input ? "input" : "output",
                                input ? tensor : tensor - call->input_count);
  return value ? str_format(context, "%s '%s'", text, value->name) : text;
}

// Sets *layout to what a text says; NULL for row-major.
static bool read_layout(Context *context, const OpaqueCall *call, int tensor, const char *text,
                        const Layout **layout) {
  const Buffer *buffer = call->tensors[tensor];
  int64_t shape[TE_MAX_RANK];
  const LayoutExpr *extents[TE_MAX_RANK];
  const char *of = opaque_tensor_text(context, call, tensor);
  buffer_static_shape(buffer, shape);
  for (int d = 0; d < buffer->rank; d++) extents[d] = layout_const(context, shape[d]);
  LayoutSource source = layout_source(text, buffer->rank);
  source.pos.file = source_file_new(
      context, str_format(context, "layout of %s of '%s'", of, call->function->name), text,
      source.size);
  source.pos.end = (int32_t)source.size;
  const Layout *read = layout_parse(context, &source, extents, buffer->rank, (LayoutFacts){0});
  if (!read) return false;
  const char *flaw = layout_storage_flaw(context, read);
  if (flaw)
    return diag_error_as(context, DIAG_LAYOUT, source.pos, "%s\n%s of '%s' is %s", flaw, of,
                         call->name, extents_text(context, buffer->shape, buffer->rank));
  *layout = layout_is_identity(context, read).verdict == VERDICT_YES ? NULL : read;
  return true;
}

bool opaque_add_way(Context *context, OpaqueCall *call, const char *const *texts, double cycles) {
  OpaqueWay way = {arena_array(&context->arena, const Layout *, call->count), cycles};
  for (int i = 0; i < call->count; i++)
    if (texts[i] && call->tensors[i] && call->tensors[i]->rank &&
        !read_layout(context, call, i, texts[i], &way.layouts[i]))
      return false;
  array_push(&context->arena, &call->ways, way);
  return true;
}

static bool same_layout(const Layout *a, const Layout *b) {
  return a == b || (a && b && index_map_same(a->map, b->map));
}

int opaque_differing_tensor(const OpaqueCall *call, int way, int other) {
  const Layout **a = call->ways.items[way].layouts, **b = call->ways.items[other].layouts;
  int number = 0;
  while (number < call->count && same_layout(a[number], b[number])) number++;
  return number < call->count ? number : -1;
}

// The outputs after the first have a layout of their own only when it is the same in all ways,
// since the planner decides on one tensor of a call.
static bool check_ways(Context *context, const OpaqueCall *call) {
  const OpaqueWay *first = call->ways.items;
  for (int i = 1; i < call->ways.count; i++)
    for (int k = call->input_count + 1; k < call->count; k++) {
      if (!same_layout(first->layouts[k], call->ways.items[i].layouts[k]))
        return refuse(context, call->node,
                      "ways 0 and %d give %s in different layouts; only the first output may have "
                      "another layout in each way",
                      i, opaque_tensor_text(context, call, k));
    }
  return true;
}

// ---- Stages ------------------------------------------------------------------------------------

void opaque_add_stages(Te *te, const OpaqueCall *call) {
  static const TeUpdates none = {0};
  for (int i = call->input_count; i < call->count; i++) {
    const Buffer *like = call->tensors[i];
    TeAxes axes = te_axes(te, like->shape, like->rank);
    Expr *zero = expr_const(te->context, like->type, 0);
    TeStage *stage =
        te_ordered(te, call->function->name, like->type, like->shape, &axes, &none, zero);
    stage->value = zero;
    stage->call = call;
    stage->call_output = i - call->input_count;
    call->tensors[i] = stage->output;
    array_push(&te->context->arena, &te->outputs, stage->output);
  }
}

static Buffer *buffer_of(Context *context, const Value *value) {
  return buffer_new(context, value->name, value->type, value->shape, value->rank, NULL);
}

OpaqueCall *opaque_call_of(Context *context, const Node *node, Buffer *const *inputs) {
  OpaqueCall *call = arena_new(&context->arena, OpaqueCall);
  *call = (OpaqueCall){.function = node->function,
                       .node = node,
                       .name = node->name,
                       .input_count = node->input_count,
                       .count = node->input_count + node->output_count};
  call->tensors = arena_array(&context->arena, Buffer *, call->count);
  for (int i = 0; i < node->input_count; i++)
    call->tensors[i] = inputs            ? inputs[i]
                       : node->inputs[i] ? buffer_of(context, node->inputs[i])
                                         : NULL;
  for (int i = 0; i < node->output_count; i++)
    call->tensors[node->input_count + i] = buffer_of(context, node->outputs[i]);
  if (call->function->find_ways && !call->function->find_ways(context, call)) return NULL;
  if (!call->ways.count) {
    const char **texts = arena_array(&context->arena, const char *, call->count);
    opaque_add_way(context, call, texts, -1);
  }
  return check_ways(context, call) ? call : NULL;
}

bool opaque_define(Context *context, Te *te, const Node *node, Buffer *const *inputs) {
  const OpaqueCall *call = opaque_call_of(context, node, inputs);
  if (call) opaque_add_stages(te, call);
  return call != NULL;
}

// ---- Programs for reports ----------------------------------------------------------------------

PrimFunc *opaque_call_func(Context *context, const OpaqueCall *call, const char *name,
                           Buffer *const *params, int count) {
  Expr **args = arena_array(&context->arena, Expr *, count);
  Te *te = te_new(context);
  for (int i = 0; i < count; i++) {
    args[i] = params[i]->data;
    array_push(&context->arena, &te->inputs, params[i]);
  }
  PrimFunc *func = prim_func_copy(context, te_prim_func(te, name));
  func->body = stmt_evaluate(
      context, expr_raw(context, EXPR_CALL, DTYPE_INT32, call->function->name, args, count));
  return func;
}

PrimFunc *opaque_prim_func(Context *context, const Node *node) {
  Te *te = te_new(context);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i])
      array_push(&context->arena, &te->inputs, buffer_of(context, node->inputs[i]));
  for (int i = 0; i < node->output_count; i++) {
    const Value *value = node->outputs[i];
    TeAxes axes = te_axes(te, value->shape, value->rank);
    array_push(&context->arena, &te->outputs,
               te_compute(te, value->name, value->type, value->shape, &axes,
                          expr_const(context, value->type, 0)));
  }
  return te_prim_func(te, node->name);
}
