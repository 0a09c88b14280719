// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of a compiled function, and says in one sentence which was wrong and how.
#include "runtime/runtime.h"

typedef struct Message {
  char *text;
  size_t size;
} Message;

static bool wrong(const Message *message, const char *format, ...) PRINTF_LIKE(2, 3);
static bool wrong(const Message *message, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(message->text, message->size, format, args);
  va_end(args);
  return false;
}

static bool check_shape(const Message *message, const ArgumentSpec *spec, const Tensor *tensor) {
  for (int axis = 0; axis < spec->rank; axis++)
    if (spec->shape[axis] >= 0 && tensor->shape[axis] != spec->shape[axis])
      return wrong(message, "axis %d has extent %lld, expected %lld", axis,
                   (long long)tensor->shape[axis], (long long)spec->shape[axis]);
  return true;
}

static bool check_strides(const Message *message, const ArgumentSpec *spec, const Tensor *tensor) {
  if (spec->any_strides) return true;
  if (!spec->strides)
    return tensor_is_compact(tensor) ||
           wrong(message, "its strides leave gaps or permute axes, expected compact rows");
  if (tensor_count(tensor) == 0) return true;
  int64_t step = 1;
  for (int axis = spec->rank - 1; axis >= 0; axis--) {
    int64_t stride = tensor->strides ? tensor->strides[axis] : step;
    if (tensor->shape[axis] != 1 && stride != spec->strides[axis])
      return wrong(message, "axis %d has stride %lld, expected %lld", axis, (long long)stride,
                   (long long)spec->strides[axis]);
    step *= tensor->shape[axis];
  }
  return true;
}

// Does the code access the memory by strides and an offset for which it was made?
static bool has_own_strides(const ArgumentSpec *spec) {
  return spec->strides && !spec->any_strides;
}

// The code finds the first element at the offset for which it was made.
static bool check_offset(const Message *message, const ArgumentSpec *spec, const Tensor *tensor) {
  int64_t size = element_bytes(spec->type);
  if (!has_own_strides(spec) || tensor->byte_offset == (uint64_t)(spec->offset * size)) return true;
  return wrong(message, "its elements begin %llu bytes after its memory does, expected %lld",
               (unsigned long long)tensor->byte_offset, (long long)(spec->offset * size));
}

// The bytes of which the memory's address is a multiple: those that are stated, or those of a lane.
static int64_t alignment_of(const ArgumentSpec *spec) {
  ElementType lane = {spec->type.code, spec->type.bits, 1};
  return spec->alignment ? spec->alignment : element_bytes(lane);
}

bool argument_is_aligned(const ArgumentSpec *spec, const void *address) {
  return (uintptr_t)address % (uint64_t)alignment_of(spec) == 0;
}

// A tensor whose strides do not matter is copied where it is not aligned.
static bool check_alignment(const Message *message, const ArgumentSpec *spec,
                            const Tensor *tensor) {
  return !has_own_strides(spec) || argument_is_aligned(spec, tensor->data) ||
         wrong(message, "its memory begins at %p, expected a multiple of %lld bytes", tensor->data,
               (long long)alignment_of(spec));
}

static bool check_description(const Message *message, const ArgumentSpec *spec,
                              const Tensor *tensor) {
  if (tensor->device_type != 1)
    return wrong(message, "is on device type %d, expected the processor's memory (1)",
                 tensor->device_type);
  if (!element_type_equal(tensor->type, spec->type))
    return wrong(message, "has element type %s, expected %s", element_type_name(tensor->type),
                 element_type_name(spec->type));
  if (tensor->rank != spec->rank)
    return wrong(message, "has %d axes, expected %d", tensor->rank, spec->rank);
  if (tensor->rank && !tensor->shape) return wrong(message, "has no shape");
  return check_shape(message, spec, tensor);
}

bool argument_check_description(const ArgumentSpec *spec, const Tensor *tensor, char *message,
                                size_t message_size) {
  return check_description(&(Message){message, message_size}, spec, tensor);
}

static bool check_one(const Message *message, const ArgumentSpec *spec, const Tensor *tensor) {
  if (!tensor || !tensor->data) return wrong(message, "is missing");
  return check_description(message, spec, tensor) && check_strides(message, spec, tensor) &&
         check_offset(message, spec, tensor) && check_alignment(message, spec, tensor);
}

typedef bool CheckArgument(const Message *message, const ArgumentSpec *spec, const Tensor *tensor);

static bool check_output(const Message *message, const ArgumentSpec *spec, const Tensor *tensor) {
  if (!check_one(message, spec, tensor)) return false;
  return !tensor->strides || tensor_is_compact(tensor) ||
         !strides_may_overlap(tensor->rank, tensor->shape, tensor->strides) ||
         wrong(message, "it is written, and by its strides two elements may have one address");
}

// Writes which argument is wrong and how.
static bool report_wrong(CheckArgument *check, const char *function, const ArgumentSpec *specs,
                         Tensor *const *tensors, int number, const Message *message) {
  int n = snprintf(message->text, message->size, "argument %d '%s' of '%s': ", number,
                   specs[number].name, function);
  size_t used = MIN_OF((size_t)MAX_OF(n, 0), message->size);
  return check(&(Message){message->text + used, message->size - used}, &specs[number],
               tensors[number]);
}

static bool check_all(CheckArgument *check, const char *function, const ArgumentSpec *specs,
                      int expected, Tensor *const *tensors, int given, const Message *message) {
  if (given != expected)
    return wrong(message, "'%s' takes %d arguments, not %d", function, expected, given);
  for (int i = 0; i < expected; i++)
    if (!check(message, &specs[i], tensors[i]))
      return report_wrong(check, function, specs, tensors, i, message);
  return true;
}

bool arguments_check(const char *function, const ArgumentSpec *specs, int expected,
                     Tensor *const *tensors, int given, char *message, size_t message_size) {
  return check_all(check_one, function, specs, expected, tensors, given,
                   &(Message){message, message_size});
}

bool outputs_check(const char *function, const ArgumentSpec *specs, int expected,
                   Tensor *const *tensors, int given, char *message, size_t message_size) {
  return check_all(check_output, function, specs, expected, tensors, given,
                   &(Message){message, message_size});
}
