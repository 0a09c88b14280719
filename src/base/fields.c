// SPDX-License-Identifier: Apache-2.0
// Reads structs whose first member is their size.
#include "base/fields.h"

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

bool field_array_check(Context *context, const char *field, const void *items, size_t count) {
  if (count > MOST_ITEMS)
    return field_error(context, field, "has %zu entries, expected at most %d", count, MOST_ITEMS);
  return !count || items || field_error(context, field, "is NULL, but its count is %zu", count);
}
