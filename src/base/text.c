// SPDX-License-Identifier: Apache-2.0
// Implements `Text`, a string in an arena that grows as text is appended.
#include "base/base.h"

Text text_new(Arena *arena) {
  return (Text){.arena = arena};
}

static void reserve(Text *text, size_t more) {
  if (text->size + more + 1 <= text->capacity) return;
  size_t grown = MAX_OF(text->capacity * 2, text->size + more + 64);
  char *data = arena_take(text->arena, grown);
  if (text->size) memcpy(data, text->data, text->size);
  text->data = data;
  text->capacity = grown;
}

void text_append(Text *text, const char *data, size_t size) {
  reserve(text, size);
  memcpy(text->data + text->size, data, size);
  text->size += size;
  text->data[text->size] = 0;
}

void text_puts(Text *text, const char *s) {
  text_append(text, s, strlen(s));
}

void text_pad(Text *text, char c, int count) {
  for (int i = 0; i < count; i++) text_append(text, &c, 1);
}

void text_vprintf(Text *text, const char *format, va_list args) {
  enum { LIKELY = 64 };
  va_list again;
  va_copy(again, args);
  reserve(text, LIKELY);
  size_t room = text->capacity - text->size;
  size_t size = text_format(text->data + text->size, room, format, args);
  if (size >= room) {
    reserve(text, size);
    text_format(text->data + text->size, size + 1, format, again);
  }
  va_end(again);
  text->size += size;
}

void text_printf(Text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_vprintf(text, format, args);
  va_end(args);
}

const char *text_string(Text *text) {
  return text->data ? text->data : "";
}

bool text_ends_with(const char *text, const char *ending) {
  size_t size = strlen(text), tail = strlen(ending);
  return size >= tail && strcmp(text + size - tail, ending) == 0;
}

int text_word_index(const char *words, const char *word) {
  size_t length = strlen(word);
  const char *p = words ? words : "";
  for (int i = 0; *p; i++, p += strspn(p, "? ")) {
    size_t n = strcspn(p, "? ");
    if (n == length && strncmp(p, word, n) == 0) return i;
    p += n;
  }
  return -1;
}
