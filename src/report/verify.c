// SPDX-License-Identifier: Apache-2.0
// Verifies models: compiled code runs together with the reference, and every value of the graph
// that reaches memory is compared, kernel by kernel and at logical indices.
#include "report/verify.h"

#include <math.h>

// ---- Tasks ----------------------------------------------------------------------------------

void verify_task_release(VerifyTask *v) {
  reference_end(&v->reference);
  thread_pool_free(v->pool);
  executable_free(v->executable);
  v->reference.code = NULL;
  v->pool = NULL;
  v->executable = NULL;
}

static void release(void *task) {
  verify_task_release(task);
}

VerifyTask *verify_task_new(Context *context) {
  VerifyTask *v = arena_new(&context->arena, VerifyTask);
  *v = (VerifyTask){.context = context, .results = &context->arena, .tolerance = TOLERANCE_DEFAULT};
  context_at_free(context, release, v);
  return v;
}

// ---- Tensors ------------------------------------------------------------------------------------

bool verify_set_outputs(VerifyTask *v) {
  Arena *arena = &v->context->arena;
  const GraphFunc *graph = v->graph;
  v->inputs = arena_array(arena, Tensor *, graph->param_count);
  v->given = arena_array(arena, Tensor *, graph->param_count);
  v->outputs = arena_array(arena, Tensor *, graph->output_count);
  for (int i = 0; i < graph->output_count; i++) {
    v->outputs[i] = value_tensor(v->context, graph->outputs[i], v->constraints->outputs[i].layout);
    if (!v->outputs[i]) return false;
  }
  return true;
}

static const Layout *input_layout(const VerifyTask *v, int number) {
  return v->constraints->inputs[number].layout;
}

bool verify_give_input(VerifyTask *v, int number, Tensor *given) {
  const Value *value = v->graph->params[number];
  v->given[number] = given;
  v->inputs[number] = value_unpack(v->context, value, input_layout(v, number), given);
  return v->inputs[number] != NULL;
}

bool verify_set_input(VerifyTask *v, int number, Tensor *logical) {
  const Value *value = v->graph->params[number];
  v->inputs[number] = logical;
  v->given[number] = value_pack(v->context, value, input_layout(v, number), logical);
  return v->given[number] != NULL;
}

bool verify_fill_input(VerifyTask *v, int number, int64_t seed) {
  Tensor *logical = value_tensor(v->context, v->graph->params[number], NULL);
  if (!logical) return false;
  tensor_fill_random(logical, (uint64_t)seed);
  return verify_set_input(v, number, logical);
}

// ---- Results ------------------------------------------------------------------------------------

static bool is_output(const VerifyTask *v, const Value *value) {
  for (int i = 0; i < v->graph->output_count; i++)
    if (v->graph->outputs[i] == value) return true;
  return false;
}

void verify_note(VerifyTask *v, const PleatVerifiedTensor *about, const Difference *d) {
  Arena *arena = v->results;
  PleatVerifiedTensor *tensor = arena_copy(arena, about, sizeof *about);
  tensor->name = arena_text(arena, about->name);
  tensor->function = arena_text(arena, about->function);
  tensor->shape = arena_copy(arena, about->shape, sizeof(int64_t) * (size_t)about->rank);
  tensor->agrees = d->mismatches == 0;
  tensor->elements = d->count;
  tensor->differing = d->mismatches;
  tensor->at_boundaries = d->at_boundaries;
  tensor->largest = d->largest;
  tensor->index = d->index;
  tensor->expected = d->expected;
  tensor->actual = d->actual;
  tensor->ulp = d->ulp;
  array_push(arena, &v->tensors, tensor);
  v->data.at_boundaries += d->at_boundaries;
  if (!v->data.largest_at || d->largest > v->data.largest) {
    v->data.largest = d->largest;
    v->data.largest_at = tensor->name;
  }
  if (!tensor->agrees && !v->data.differs) v->data.differs = tensor;
}

static void note_value(VerifyTask *v, const Value *value, int kernel, bool is_given,
                       const Difference *d) {
  int64_t shape[TENSOR_MAX_RANK];
  value_static_shape(value, shape);
  const PleatVerifiedTensor about = {.name = value->name,
                                     .kernel = kernel,
                                     .is_output = is_output(v, value),
                                     .is_given = is_given,
                                     .rank = value->rank,
                                     .shape = shape};
  verify_note(v, &about, d);
  map_put(&v->settled, value, (void *)array_last(&v->tensors));
  if (d->mismatches && !v->differs) v->differs = value;
}

SourcePos verify_position(const VerifyTask *v) {
  return v->differs->producer ? v->differs->producer->pos : v->differs->pos;
}

// ---- Kernels ------------------------------------------------------------------------------------

// The row-major contents of parameter `param` of a step.
static const void *contents_of(const VerifyTask *v, int step, int param) {
  const PlanKernel *kernel = v->program->steps.items[step].plan;
  const StageTensor *tensor = kernel->params.items[param];
  const Layout *layout = plan_memory_layout(v->program->plan, kernel, param);
  int arg = kernel->call ? call_argument(kernel, param) : param;
  const void *data = executable_argument(v->executable, step, arg);
  if (!layout) return data;
  void *logical = arena_alloc(&v->context->scratch, (size_t)plan_bytes(tensor, NULL) + 64);
  layout_unpack(v->context, layout, dtype_bytes(tensor->buffer->type), data, logical);
  return logical;
}

// The values that a step read, with their contents. Constants that were computed while compiling
// are taken from the reference, which thus judges them.
static Map values_read(VerifyTask *v, int step) {
  const PlanKernel *kernel = v->program->steps.items[step].plan;
  Map read = map_new(&v->context->scratch);
  for (int i = 0; i + 1 < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    if (!tensor->value) continue;
    if (!tensor->data)
      map_put(&read, tensor->value, (void *)contents_of(v, step, i));
    else if (!map_contains(&v->settled, tensor->value))
      map_put(&v->settled, tensor->value, NULL);
  }
  return read;
}

static const char *kernel_text(const VerifyTask *v, int step) {
  Context *context = v->context;
  const PlanKernel *kernel = v->program->steps.items[step].plan;
  Text text = text_new(v->results);
  text_printf(&text, "kernel %d '%s':", step + 1, kernel->name);
  for (int i = 0; i < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    text_printf(&text, "%s %s %s",
                i == kernel->params.count - 1 ? " ->"
                : i                           ? ","
                                              : "",
                plan_tensor_name(tensor),
                plan_layout_name(context, tensor, kernel->choice.layouts[i]));
  }
  return text_string(&text);
}

// A library computed the step.
static void locate_call(VerifyTask *v, int step) {
  const OpaqueCall *call = v->program->steps.items[step].plan->call;
  v->data.kernel = kernel_text(v, step);
  v->data.part = "code";
  v->data.part_name = arena_text(v->results, call->function->name);
  v->data.cause = arena_printf(v->results, "the library's kernel, %s", call->function->name);
}

// The first element outside of the box of a crop that does not hold the value `stated`; -1: none.
static int64_t first_unlike(const Value *x, const char *data, const int64_t *start,
                            const int64_t *size, double stated) {
  int64_t shape[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK];
  value_static_shape(x, shape);
  int64_t count = value_static_bytes(x) / dtype_bytes(x->type);
  for (int64_t i = 0; i < count; i++) {
    bool inside = true;
    layout_index_at(shape, x->rank, i, index);
    for (int d = 0; d < x->rank; d++)
      inside &= index[d] >= start[d] && index[d] < start[d] + size[d];
    double held = number_load(x->type, data + i * dtype_bytes(x->type));
    if (!inside && !(fabs(held - stated) <= 1e-3 * fabs(stated))) return i;
  }
  return -1;
}

// The first `cropped_value` of a crop that is false for these inputs, as text; NULL: all are true.
static const char *false_statement(VerifyTask *v) {
  int64_t start[TENSOR_MAX_RANK], size[TENSOR_MAX_RANK];
  for (int i = 0; i < v->graph->nodes.count; i++) {
    const Node *node = v->graph->nodes.items[i];
    if (node->kind != NODE_OP || strcmp(node->op, "crop") ||
        !attrs_get(&node->attrs, "cropped_value") ||
        node_ints(node, "start_indices", start, TENSOR_MAX_RANK) < 0 ||
        node_ints(node, "slice_sizes", size, TENSOR_MAX_RANK) < 0)
      continue;
    const Value *x = node->inputs[0];
    const char *data = reference_value(&v->reference, x);
    double stated = node_float(node, "cropped_value", 0);
    int64_t found = data ? first_unlike(x, data, start, size, stated) : -1;
    if (found >= 0)
      return arena_printf(v->results,
                          "cropped_value=%g of '%s', which is false: element %lld of '%s' is "
                          "cropped and is %g",
                          stated, node->outputs[0]->name, (long long)found, x->name,
                          number_load(x->type, data + found * dtype_bytes(x->type)));
  }
  return NULL;
}

static void locate(VerifyTask *v, int step, const Expected *expected) {
  if (v->program->steps.items[step].plan->call) {
    locate_call(v, step);
    return;
  }
  Cause cause = miscompile_locate(v->program, v->executable, step, expected, &v->tolerance);
  v->data.kernel = kernel_text(v, step);
  v->data.part = cause.part;
  v->data.part_name = arena_text(v->results, cause.name);
  v->data.rounding = cause.rounding;
  const char *statement = strcmp(cause.part, "stages") ? NULL : false_statement(v);
  v->data.cause = statement ? statement : arena_text(v->results, cause.text);
}

// A function outside of the model has no definition: the reference takes its results.
static bool take_call(VerifyTask *v, int step) {
  const PlanKernel *kernel = v->program->steps.items[step].plan;
  for (int i = 0; i < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    bool written = plan_kernel_writes(kernel, i);
    if (written && tensor->value)
      reference_give(&v->reference, tensor->value, contents_of(v, step, i));
    if (written && tensor->value) map_put(&v->settled, tensor->value, NULL);
  }
  return true;
}

// Compares what a step wrote. Where its kernel rounds, a result that does not agree is judged by
// the bounds of driver/rounding.c; if it then agrees, the reference goes on from it.
static bool check_value(VerifyTask *v, const Value *value, int step) {
  int last = v->program->steps.items[step].plan->params.count - 1;
  const OpaqueCall *call = v->program->steps.items[step].plan->call;
  if (call && call->node) return take_call(v, step);
  Expected expected = {.value = reference_value(&v->reference, value)};
  if (!expected.value) return false;
  const void *actual = contents_of(v, step, last);
  int64_t count = value_static_bytes(value) / dtype_bytes(value->type);
  Difference d;
  bool agrees = values_agree(value->type, &expected, actual, count, &v->tolerance, &d);
  if (!agrees) {
    Map read = values_read(v, step);
    int64_t apart = d.mismatches;
    if (reference_bounds(&v->reference, value, &read, &v->settled, &v->tolerance, &expected)) {
      agrees = values_agree(value->type, &expected, actual, count, &v->tolerance, &d);
      if (agrees && !reference_replace(&v->reference, value, actual)) return false;
      if (agrees) d.at_boundaries = apart;
    }
  }
  if (v->context->error_count) return false;
  note_value(v, value, step, false, &d);
  if (!agrees) locate(v, step, &expected);
  return agrees;
}

// Returns false at the first difference, because values of later kernels would follow from it.
static bool check_step(void *env, int step) {
  VerifyTask *v = env;
  const Value *value = array_last(&v->program->steps.items[step].plan->params)->value;
  if (v->progress) v->progress(v->env, step, v->program->steps.count);
  context_poll(v->context);
  if (!value || v->data.differs) return true;
  ArenaMark mark = arena_mark(&v->context->scratch);
  bool agrees = check_value(v, value, step);
  arena_reset(&v->context->scratch, mark);
  return agrees || (v->whole && v->data.differs);
}

// ---- Outputs ------------------------------------------------------------------------------------

// Compares the outputs that were not compared when a kernel wrote them.
static bool check_outputs(VerifyTask *v) {
  for (int i = 0; i < v->graph->output_count; i++) {
    const Value *value = v->graph->outputs[i];
    if (map_find(&v->settled, value)) continue;
    Expected expected = {.value = reference_value(&v->reference, value)};
    const Layout *layout = v->constraints->outputs[i].layout;
    Tensor *actual = value_unpack(v->context, value, layout, v->outputs[i]);
    Difference d;
    if (!expected.value || !actual) return false;
    bool agrees =
        values_agree(value->type, &expected, actual->data, tensor_count(actual), &v->tolerance, &d);
    note_value(v, value, -1, false, &d);
    if (!agrees && !v->whole) return false;
  }
  return !v->data.differs;
}

bool verify_type_fits(DType type, DType file) {
  return dtype_equal(type, file) ||
         (type.code == TYPE_BFLOAT && file.code == TYPE_UINT && file.bits == 16);
}

// Compares the outputs with contents that others computed.
static bool check_expected(VerifyTask *v) {
  for (int i = 0; v->expected && i < v->graph->output_count; i++) {
    const Value *value = v->graph->outputs[i];
    const ConstData *file = v->expected[i];
    if (!file) continue;
    const Layout *layout = v->constraints->outputs[i].layout;
    Tensor *actual = value_unpack(v->context, value, layout, v->outputs[i]);
    if (!actual) return false;
    if (!verify_type_fits(value->type, file->type) || tensor_bytes(actual) != (int64_t)file->bytes)
      return diag_error(v->context, value->pos, "'%s' has another type or shape than its file",
                        value->name);
    const Expected expected = {.value = file->data};
    Difference d;
    bool agrees =
        values_agree(value->type, &expected, actual->data, tensor_count(actual), &v->tolerance, &d);
    note_value(v, value, -1, true, &d);
    if (agrees) continue;
    v->data.reference = v->expected_from;
    return false;
  }
  return true;
}

// ---- The whole ----------------------------------------------------------------------------------

bool verify_model(VerifyTask *v) {
  Context *context = v->context;
  v->settled = map_new(&context->arena);
  v->data.reference = v->definitions ? "the definitions" : "the interpreter";
  v->data.kernel_count += v->program->steps.count;
  v->executable = executable_new(v->program, NULL);
  if (!v->executable) return false;
  return reference_begin(context, v->graph, v->inputs, v->definitions, &v->program->options,
                         &v->reference) &&
         executable_trace(v->executable, v->pool, v->given, v->outputs, check_step, v) &&
         check_outputs(v) && check_expected(v);
}
