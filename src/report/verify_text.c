// SPDX-License-Identifier: Apache-2.0
// Puts the results of verifications into words and JSON objects.
#include "report/verify.h"

// The verdict on output `number` of the model.
static const PleatVerifiedTensor *output_of(const VerifyTask *v, int number) {
  const char *name = v->graph->outputs[number]->name;
  for (int i = 0; i < v->tensors.count; i++) {
    const PleatVerifiedTensor *tensor = v->tensors.items[i];
    if (tensor->is_output && !tensor->is_given && !strcmp(tensor->name, name)) return tensor;
  }
  return NULL;
}

// The outputs of a model keep its order, those of tensor programs the order of their parameters.
static void set_outputs(VerifyTask *v) {
  PleatVerification *data = &v->data;
  int most = v->graph ? v->graph->output_count : v->tensors.count;
  const PleatVerifiedTensor **outputs = arena_array(v->results, const PleatVerifiedTensor *, most);
  data->output_count = 0;
  for (int i = 0; i < most; i++) {
    const PleatVerifiedTensor *tensor = v->graph ? output_of(v, i) : v->tensors.items[i];
    if (tensor && tensor->is_output) outputs[data->output_count++] = tensor;
  }
  data->outputs = outputs;
}

void verify_finish(VerifyTask *v) {
  PleatVerification *data = &v->data;
  data->tensors = v->tensors.items;
  data->tensor_count = v->tensors.count;
  data->tolerance = tolerance_text(v->results, &v->tolerance);
  data->agrees = !data->differs && !v->context->error_count;
  set_outputs(v);
}

// ---- As text ------------------------------------------------------------------------------------

// The index of the element that differs most: "[2, 0, 5]".
static const char *index_text(Arena *arena, const PleatVerifiedTensor *tensor) {
  Text text = text_new(arena);
  int64_t rest = tensor->index, *index = arena_array(arena, int64_t, tensor->rank + 1);
  for (int i = tensor->rank - 1; i >= 0; rest /= tensor->shape[i--])
    index[i] = rest % tensor->shape[i];
  for (int i = 0; i < tensor->rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)index[i]);
  return arena_printf(arena, "[%s]", text_string(&text));
}

const char *verify_difference(const VerifyTask *v, const PleatVerifiedTensor *t) {
  Arena *arena = v->results;
  Text text = text_new(arena);
  text_printf(&text, "'%s'", t->function ? t->function : t->name);
  text_printf(&text,
              "%s%s%s is %.9g, but %.9g by %s (%lld of %lld elements differ, this one most)\n"
              "they should agree %s",
              t->function ? ": " : "", t->function ? t->name : "", index_text(arena, t), t->actual,
              t->expected, v->data.reference, (long long)t->differing, (long long)t->elements,
              tolerance_text(arena, &v->tolerance));
  if (t->at_boundaries)
    text_printf(&text, "\n%lld others are a step apart at rounding boundaries, which is allowed",
                (long long)t->at_boundaries);
  if (t == v->data.differs && v->data.kernel)
    text_printf(&text, "\nall before it agree; it is written by %s", v->data.kernel);
  if (t == v->data.differs && v->data.cause)
    text_printf(&text, "\nthe difference comes from %s", v->data.cause);
  return text_string(&text);
}

const char *verify_agreement(const VerifyTask *v, int sets) {
  Arena *arena = v->results;
  Text text = text_new(arena);
  const PleatVerification *data = &v->data;
  int compared = v->tensors.count, inside = data->kernel_count - compared;
  text_printf(&text, "with %s", data->reference);
  if (sets) text_printf(&text, " and %d set%s of test data", sets, sets == 1 ? "" : "s");
  text_printf(&text, ", %s: %d tensors of %d kernels", tolerance_text(arena, &v->tolerance),
              compared, data->kernel_count);
  if (!sets && inside > 0)
    text_printf(&text, " (%d write%s what is inside an operator)", inside, inside == 1 ? "s" : "");
  if (data->largest_at)
    text_printf(&text, "; at most %.2g of the largest element apart, at '%s'", data->largest,
                data->largest_at);
  if (data->at_boundaries)
    text_printf(&text, "; %lld elements a step apart at rounding boundaries",
                (long long)data->at_boundaries);
  return text_string(&text);
}

const char *verify_kernel_agreement(const VerifyTask *v, const Kernel *kernel, int first) {
  double largest = 0;
  for (int i = first; i < v->tensors.count; i++)
    largest = MAX_OF(largest, v->tensors.items[i]->largest);
  return arena_printf(v->results,
                      "with the interpreter, %s; at most %.2g of the largest element apart (%s)",
                      tolerance_text(v->results, &v->tolerance), largest,
                      kernel->why_written ? "as written" : "scheduled by the auto-scheduler");
}

// ---- As JSON ------------------------------------------------------------------------------------

static json_t *difference_json(const PleatVerification *v) {
  const PleatVerifiedTensor *t = v->differs;
  if (!t) return json_null();
  return json_pack("{s:s, s:I, s:f, s:f, s:I, s:I, s:s?}", "tensor", t->name, "index",
                   (json_int_t)t->index, "expected", t->expected, "actual", t->actual, "elements",
                   (json_int_t)t->elements, "differ", (json_int_t)t->differing, "made_by",
                   v->cause);
}

json_t *verify_json(const PleatVerification *v, int sets) {
  return json_pack("{s:b, s:i, s:i, s:f, s:s, s:I, s:o}", "agrees", v->agrees, "compared",
                   v->tensor_count, "sets", sets, "largest_relative_difference", v->largest,
                   "tolerance", v->tolerance, "at_rounding_boundaries",
                   (json_int_t)v->at_boundaries, "difference", difference_json(v));
}
