// SPDX-License-Identifier: Apache-2.0
// Formats text as vsnprintf does. Most formats of generated code have strings and decimal integers
// alone; these are written here, because the C library takes three times as long for them.
#include "base/base.h"

typedef struct Output { // what vsnprintf would have written, cut at `room`
  char *to;
  size_t room, size;
} Output;

static void put(Output *out, const char *data, size_t size) {
  if (out->size < out->room) memcpy(out->to + out->size, data, MIN_OF(size, out->room - out->size));
  out->size += size;
}

static void put_unsigned(Output *out, uint64_t value, bool negative) {
  char digits[24];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  if (negative) digits[--at] = '-';
  put(out, digits + at, sizeof digits - at);
}

static void put_signed(Output *out, int64_t value) {
  put_unsigned(out, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

static void put_string(Output *out, const char *s) {
  if (!s) s = "(null)";
  put(out, s, strlen(s));
}

// Writes the value of the conversion whose letters are at *letters, and steps over them. False for
// a conversion that is not known here.
static bool put_conversion(Output *out, const char **letters, va_list *args) {
  const char *at = *letters;
  int count = 1;
  if (*at == 's') {
    put_string(out, va_arg(*args, const char *));
  } else if (*at == 'd') {
    put_signed(out, va_arg(*args, int));
  } else if (*at == 'c') {
    put(out, &(char){(char)va_arg(*args, int)}, 1);
  } else if (*at == '%') {
    put(out, at, 1);
  } else if (at[0] == 'l' && at[1] == 'l' && at[2] == 'd') {
    put_signed(out, va_arg(*args, long long));
    count = 3;
  } else if (at[0] == 'z' && at[1] == 'u') {
    put_unsigned(out, va_arg(*args, size_t), false);
    count = 2;
  } else {
    return false;
  }
  *letters += count;
  return true;
}

static bool format_quickly(Output *out, const char *format, va_list *args) {
  while (*format) {
    const char *end = format;
    while (*end && *end != '%') end++;
    put(out, format, (size_t)(end - format));
    format = end;
    if (*format++ != '%') return true;
    if (!put_conversion(out, &format, args)) return false;
  }
  return true;
}

size_t text_format(char *to, size_t room, const char *format, va_list args) {
  Output out = {to, room, 0};
  va_list again;
  va_copy(again, args);
  bool done = format_quickly(&out, format, &again);
  va_end(again);
  if (!done) return (size_t)vsnprintf(to, room, format, args);
  if (room) to[MIN_OF(out.size, room - 1)] = 0;
  return out.size;
}
