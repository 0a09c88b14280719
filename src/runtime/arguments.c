// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of a compiled function, and says in one sentence which was wrong and how.
#include "runtime/runtime.h"

typedef struct ArgumentReport {
  const char *function;
  char *message;
  size_t size;
} ArgumentReport;

static bool wrong(ArgumentReport *report, int argument, const ArgumentSpec *spec,
                  const char *format, ...) PRINTF_LIKE(4, 5);
static bool wrong(ArgumentReport *report, int argument, const ArgumentSpec *spec,
                  const char *format, ...) {
  int n = snprintf(report->message, report->size, "argument %d '%s' of '%s': ", argument,
                   spec->name, report->function);
  if (n < 0 || (size_t)n >= report->size) return false;
  va_list args;
  va_start(args, format);
  vsnprintf(report->message + n, report->size - (size_t)n, format, args);
  va_end(args);
  return false;
}

static bool check_shape(ArgumentReport *report, int i, const ArgumentSpec *spec,
                        const Tensor *tensor) {
  for (int axis = 0; axis < spec->rank; axis++)
    if (spec->shape[axis] >= 0 && tensor->shape[axis] != spec->shape[axis])
      return wrong(report, i, spec, "axis %d has extent %lld, expected %lld", axis,
                   (long long)tensor->shape[axis], (long long)spec->shape[axis]);
  return true;
}

static bool check_strides(ArgumentReport *report, int i, const ArgumentSpec *spec,
                          const Tensor *tensor) {
  if (spec->any_strides) return true;
  if (!spec->strides)
    return tensor_is_compact(tensor) || wrong(report, i, spec,
                                              "its strides leave gaps or permute "
                                              "axes, expected compact rows");
  if (tensor_count(tensor) == 0) return true;
  int64_t step = 1;
  for (int axis = spec->rank - 1; axis >= 0; axis--) {
    int64_t stride = tensor->strides ? tensor->strides[axis] : step;
    if (tensor->shape[axis] != 1 && stride != spec->strides[axis])
      return wrong(report, i, spec, "axis %d has stride %lld, expected %lld", axis,
                   (long long)stride, (long long)spec->strides[axis]);
    step *= tensor->shape[axis];
  }
  return true;
}

static bool check_one(ArgumentReport *report, int i, const ArgumentSpec *spec,
                      const Tensor *tensor) {
  if (!tensor || !tensor->data) return wrong(report, i, spec, "is missing");
  if (tensor->device_type != 1)
    return wrong(report, i, spec, "is on device type %d, expected the processor's memory (1)",
                 tensor->device_type);
  if (!element_type_equal(tensor->type, spec->type))
    return wrong(report, i, spec, "has element type %s, expected %s",
                 element_type_name(tensor->type), element_type_name(spec->type));
  if (tensor->rank != spec->rank)
    return wrong(report, i, spec, "has %d axes, expected %d", tensor->rank, spec->rank);
  if (tensor->rank && !tensor->shape) return wrong(report, i, spec, "has no shape");
  return check_shape(report, i, spec, tensor) && check_strides(report, i, spec, tensor);
}

bool arguments_check(const char *function, const ArgumentSpec *specs, int expected,
                     Tensor *const *tensors, int given, char *message, size_t message_size) {
  ArgumentReport report = {function, message, message_size};
  if (given != expected) {
    snprintf(message, message_size, "'%s' takes %d arguments, not %d", function, expected, given);
    return false;
  }
  for (int i = 0; i < expected; i++)
    if (!check_one(&report, i, &specs[i], tensors[i])) return false;
  return true;
}
