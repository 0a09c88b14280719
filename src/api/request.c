// SPDX-License-Identifier: Apache-2.0
// Checks requests: sizes of structs, pointers that must be there, and counts.
#include "api/request.h"

#include "runtime/runtime.h"

enum { MOST_ITEMS = 1 << 20 };

bool field_error(Context *context, const char *field, const char *format, ...) {
  SourcePos pos = {.file = source_file_new(context, field, NULL, 0)};
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(&context->arena, format, args);
  va_end(args);
  return diag_error_as(context, DIAG_OPTION, pos, "%s", message);
}

bool struct_read(Context *context, const char *what, const void *given, void *out,
                 size_t known_size) {
  size_t size;
  memset(out, 0, known_size);
  if (!given) return field_error(context, what, "is NULL, expected a %s", what);
  memcpy(&size, given, sizeof size);
  if (size < 2 * sizeof size || size % sizeof size)
    return field_error(context, "size", "is %zu, expected sizeof(%s), which is %zu", size, what,
                       known_size);
  for (size_t i = known_size; i < size; i++)
    if (((const char *)given)[i])
      return field_error(context, "size",
                         "is %zu, and byte %zu is not zero: this version of the library knows only "
                         "the first %zu bytes of a %s",
                         size, i, known_size, what);
  memcpy(out, given, MIN_OF(size, known_size));
  return true;
}

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

static bool check_count(Context *context, const char *field, const void *items, size_t count) {
  if (count > MOST_ITEMS)
    return field_error(context, field, "has %zu entries, expected at most %d", count, MOST_ITEMS);
  return !count || items || field_error(context, field, "is NULL, but its count is %zu", count);
}

static bool check_texts(Context *context, const TextField *field) {
  if (!check_count(context, field->name, field->items, field->count)) return false;
  for (size_t i = 0; i < field->count; i++)
    if (!field->items[i]) return field_error(context, field->name, "entry %zu is NULL", i);
  return true;
}

bool named_tensors_check(Context *context, const char *field, const char *what,
                         const PleatNamedTensor *tensors, size_t count) {
  if (!check_count(context, field, tensors, count)) return false;
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
  if (!check_count(context, "operators", out->operators, out->operator_count)) return false;
  bool ok = check_source(context, out) & check_known(context, out) & check_variants(context, out);
  for (int i = 0; i < COUNT_OF(fields); i++) ok &= check_texts(context, &fields[i]);
  if (!out->path) out->path = "model";
  return ok;
}
