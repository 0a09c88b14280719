// SPDX-License-Identifier: Apache-2.0
// Computes the results with which `pleat verify` compares compiled results: the definitions of a
// graph's operators, run one node after the other by the interpreter or as code that was lowered
// without a schedule. Also compares values within a tolerance.
#include "driver/reference.h"

#include <math.h>

// ---- Computing --------------------------------------------------------------------------------

void reference_restart(Reference *reference, Tensor *const *inputs) {
  reference->data = map_new(&reference->context->arena);
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
  int64_t *shape = arena_array(&context->arena, int64_t, value->rank + 1);
  value_static_shape(value, shape);
  return (InterpTensor){
      .type = value->type, .rank = value->rank, .shape = shape, .data = (void *)data};
}

static bool compute_node(Reference *r, int number) {
  const Node *node = r->graph->nodes.items[number];
  int count = 0, most = node->input_count + node->output_count;
  InterpTensor *args = arena_array(&r->context->arena, InterpTensor, most);
  for (int i = 0; i < node->input_count; i++) {
    const Value *value = node->inputs[i];
    if (!value) continue;
    const void *data = value->data ? value->data->data : map_find(&r->data, value);
    args[count++] = argument_of(r->context, value, data);
  }
  for (int i = 0; i < node->output_count; i++) {
    const Value *value = node->outputs[i];
    void *data = arena_alloc(&r->context->arena, (size_t)value_static_bytes(value) + 64);
    map_put(&r->data, value, data);
    args[count++] = argument_of(r->context, value, data);
  }
  if (r->code) return kernel_code_run(r->code, number, NULL, args);
  return interp_run(r->context, NULL, r->funcs[number], args, count, NULL);
}

const void *reference_value(Reference *r, const Value *value) {
  if (value->data) return value->data->data;
  while (!map_contains(&r->data, value)) {
    if (r->next == r->graph->nodes.count) bug(r->context, "no node computes '%s'", value->name);
    if (!compute_node(r, r->next++)) return NULL;
  }
  return map_find(&r->data, value);
}

// ---- Comparing --------------------------------------------------------------------------------

// Maps a float to an integer such that neighbouring numbers of its type differ by one.
static int64_t float_order(DType type, double value) {
  int64_t bits = (int64_t)number_bits(type, value);
  int64_t sign = type.bits == 64 ? INT64_MIN : (int64_t)1 << (type.bits - 1);
  return bits & sign ? -(bits & ~sign) : bits;
}

static int64_t ulps_between(DType type, double a, double b) {
  if (!dtype_is_float(type) || !isfinite(a) || !isfinite(b)) return -1;
  int64_t from = float_order(type, a), to = float_order(type, b);
  uint64_t apart = from < to ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
  return apart > INT64_MAX ? INT64_MAX : (int64_t)apart;
}

typedef struct Judge {
  DType type;
  double rtol, atol; // absolute
  int64_t max_ulp;
} Judge;

static bool elements_agree(const Judge *judge, double expected, double actual) {
  if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual);
  if (expected == actual) return true;
  if (!dtype_is_float(judge->type) || isinf(expected) || isinf(actual)) return false;
  if (fabs(expected - actual) <= judge->atol + judge->rtol * fabs(expected)) return true;
  return judge->max_ulp > 0 && ulps_between(judge->type, expected, actual) <= judge->max_ulp;
}

static double largest_of(DType type, const char *data, int64_t count) {
  double largest = 0;
  int bytes = dtype_bytes(type);
  for (int64_t i = 0; i < count; i++) {
    double value = fabs(number_load(type, data + i * bytes));
    if (isfinite(value) && value > largest) largest = value;
  }
  return largest;
}

static bool is_default(const Tolerance *t) {
  return t->rtol < 0 && t->atol < 0 && t->max_ulp < 0;
}

static Judge judge_new(DType type, const Tolerance *t, double largest) {
  bool small = dtype_is_float(type) && type.bits <= 16;
  if (is_default(t)) return (Judge){type, small ? 2e-2 : 1e-4, (small ? 2e-2 : 1e-5) * largest, 0};
  return (Judge){type, fmax(t->rtol, 0), fmax(t->atol, 0), t->max_ulp};
}

const char *tolerance_text(Arena *arena, const Tolerance *t) {
  if (is_default(t)) return "within 1e-4 relative and 1e-5 of the largest element";
  Text text = text_new(arena);
  if (t->rtol > 0) text_printf(&text, "%g relative", t->rtol);
  if (t->atol > 0) text_printf(&text, "%s%g absolute", text.size ? " and " : "", t->atol);
  if (t->max_ulp > 0)
    text_printf(&text, "%s%lld ulp", text.size ? " or " : "", (long long)t->max_ulp);
  return text.size ? arena_printf(arena, "within %s", text_string(&text)) : "exactly";
}

bool values_agree(DType type, const void *expected, const void *actual, int64_t count,
                  const Tolerance *tolerance, Difference *difference) {
  double largest = largest_of(type, expected, count), apart = 0, most = -1;
  Judge judge = judge_new(type, tolerance, largest);
  int bytes = dtype_bytes(type);
  *difference = (Difference){.count = count, .index = -1};
  for (int64_t i = 0; i < count; i++) {
    double want = number_load(type, (const char *)expected + i * bytes);
    double got = number_load(type, (const char *)actual + i * bytes);
    double away = isfinite(want) && isfinite(got) ? fabs(want - got) : INFINITY;
    if (isfinite(away)) apart = fmax(apart, away);
    if (elements_agree(&judge, want, got)) continue;
    difference->mismatches++;
    if (away > most) {
      most = away;
      difference->index = i;
      difference->expected = want;
      difference->actual = got;
      difference->ulp = ulps_between(type, want, got);
    }
  }
  difference->largest = largest > 0 ? apart / largest : apart;
  return difference->mismatches == 0;
}
