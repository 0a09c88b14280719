// SPDX-License-Identifier: Apache-2.0
// Checks requests: sizes of structs, pointers that must be there, and counts.
#include "api/request.h"

#include "runtime/runtime.h"

bool threads_read(Context *context, int given, int *count) {
  if (given < 0 || given > MOST_THREADS)
    return field_error(context, "threads", "is %d, expected 0 to %d", given, MOST_THREADS);
  if (given) *count = given;
  return true;
}

bool tensor_readable(Context *context, const char *what, const char *name,
                     const PleatTensor *tensor) {
  const char *why = !tensor                              ? "is NULL"
                    : tensor->rank < 0                   ? "has a negative rank"
                    : tensor->rank > TENSOR_MAX_RANK     ? "has too many axes"
                    : tensor->rank > 0 && !tensor->shape ? "has axes and no shape"
                    : tensor->device_type != 1           ? "is not in this processor's memory"
                                                         : NULL;
  for (int i = 0; !why && i < tensor->rank; i++)
    if (tensor->shape[i] < 0) why = "has a negative extent";
  return !why ||
         diag_error_as(context, DIAG_ARGUMENT, (SourcePos){0}, "%s '%s' %s", what, name, why);
}

// ---- The fields of a request --------------------------------------------------------------------

typedef struct TextField {
  const char *name;
  const char *const *items;
  size_t count;
} TextField;

static bool check_texts(Context *context, const TextField *field) {
  if (!field_array_check(context, field->name, field->items, field->count)) return false;
  for (size_t i = 0; i < field->count; i++)
    if (!field->items[i]) return field_error(context, field->name, "entry %zu is NULL", i);
  return true;
}

bool named_tensors_check(Context *context, const char *field, const char *what,
                         const PleatNamedTensor *tensors, size_t count) {
  if (!field_array_check(context, field, tensors, count)) return false;
  for (size_t i = 0; i < count; i++) {
    const PleatNamedTensor *one = &tensors[i];
    if (!one->name) return field_error(context, field, "entry %zu has no name", i);
    if (!tensor_readable(context, what, one->name, one->tensor)) return false;
    if (!one->tensor->data)
      return field_error(context, field, "the tensor of '%s' has no data", one->name);
  }
  return true;
}

static bool check_known(Context *context, const PleatRequest *request) {
  return named_tensors_check(context, "known", "the known value of", request->known,
                             request->known_count);
}

static bool check_contents(Context *context, const PleatRequest *request) {
  if (!field_array_check(context, "contents", request->contents, request->content_count))
    return false;
  for (size_t i = 0; i < request->content_count; i++)
    if (!request->contents[i]) return field_error(context, "contents", "entry %zu is NULL", i);
  return true;
}

static bool check_source(Context *context, const PleatRequest *request) {
  if (request->byte_count && !request->bytes)
    return field_error(context, "bytes", "is NULL, but byte_count is %zu", request->byte_count);
  return request->bytes || request->path ||
         field_error(context, "path", "is NULL, and so is bytes: expected a model");
}

static bool check_variants(Context *context, const PleatRequest *request) {
  enum { MOST_VARIANTS = 1024 };
  int most = request->most_variants;
  return (most >= 0 && most <= MOST_VARIANTS) ||
         field_error(context, "most_variants", "is %d, expected 0 to %d", most, MOST_VARIANTS);
}

bool request_read(Context *context, const PleatRequest *given, PleatRequest *out) {
  if (!struct_read(context, "PleatRequest", given, out, sizeof *out)) return false;
  const TextField fields[] = {
      {"shapes", out->shapes, out->shape_count},
      {"input_layouts", out->input_layouts, out->input_layout_count},
      {"output_layouts", out->output_layouts, out->output_layout_count},
      {"desired_layouts", out->desired_layouts, out->desired_layout_count},
      {"keep_layouts", out->keep_layouts, out->keep_layout_count},
  };
  bool ok = check_source(context, out) & check_known(context, out) & check_variants(context, out) &
            check_contents(context, out);
  for (int i = 0; i < COUNT_OF(fields); i++) ok &= check_texts(context, &fields[i]);
  if (!out->path) out->path = "model";
  return ok;
}
